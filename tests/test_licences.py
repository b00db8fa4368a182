"""Everything that is shipped and is no source code is listed with its licence; so is every module with worlds in it."""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from hedgerow.registry import worlds
from hedgerow.report.page import packed_plotly

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "THIRD-PARTY-LICENCES.md"
SOURCE_CODE = {".py", ".pyi", ".md", ".ipynb"}
WHERE = ("src", "docs", "tests", "bench", "examples", "tools")
"""Folders of the packages; files beside them are those of every project."""
TOP = {
    ".gitattributes", ".gitignore", "CITATION.cff", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml",
    "pyproject.toml",
}  # fmt: skip
"""Files at the top that are no source code: all ours."""
LICENCES = {"MIT", "CC BY 4.0", "MIT; yours"}


def table(title: str) -> dict[str, list[str]]:
    """The rows of the table below a heading, by their first cell."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    return {row[0].strip("`"): row[1:] for row in rows}


def shipped_files() -> set[str]:
    """The files of the repository that are no source code; those of the folders if there is no repository."""
    told = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False)
    names = told.stdout.decode().splitlines() if told.returncode == 0 else []
    if not names:
        names = [path.relative_to(ROOT).as_posix() for place in WHERE for path in (ROOT / place).rglob("*")]
    found = {name for name in names if (ROOT / name).is_file() and Path(name).suffix not in SOURCE_CODE}
    return {
        name for name in found if not name.startswith((".github/", ".ci/", "kernels/")) and "__pycache__" not in name
    } | {
        name for name in names if name.startswith("src/hedgerow/") and name.endswith(".md") and (ROOT / name).is_file()
    }


def is_listed(name: str, listed: dict[str, list[str]]) -> bool:
    return name in listed or any(entry.endswith("/") and name.startswith(entry) for entry in listed)


def unlisted(names: set[str]) -> list[str]:
    return sorted(name for name in names - TOP if not is_listed(name, table("In the packages")))


def test_every_file_that_is_shipped_is_listed() -> None:
    assert unlisted(shipped_files()) == []


def test_a_new_asset_would_be_missed() -> None:
    for name in (
        "src/hedgerow/report/templates/icons.woff2",
        "docs/assets/other.js",
        "src/hedgerow/worlds/data/x.csv.gz",
    ):
        assert unlisted({name}) == [name]


def test_every_entry_names_something_and_has_a_licence() -> None:
    for name, (_, by, licence) in table("In the packages").items():
        assert (ROOT / name).exists(), name
        assert licence in LICENCES, name
        assert by
    for folder in (name for name in table("In the packages") if name.endswith("/")):
        suffixes = {path.suffix for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert suffixes <= {".csv", ".svg", ".json", ".toml", ".parquet"}, folder


def test_every_module_with_worlds_says_what_is_not_ours() -> None:
    homes = {f"src/{home.split(':')[0].replace('.', '/')}.py" for home in worlds.builtin.values()}
    assert set(table("In the sources: worlds of others")) == homes
    assert all((ROOT / home).is_file() for home in homes)


def test_data_of_others_are_those_of_the_attribution() -> None:
    attribution = (ROOT / "src/hedgerow/worlds/data/ATTRIBUTION.md").read_text(encoding="utf-8")
    tables = set(re.findall(r"`(ev_\w+)`", attribution))
    others = {name for name, row in table("In the packages").items() if row[-1] == "CC BY 4.0"}
    assert {Path(name).name.removesuffix(".csv.gz") for name in others} == tables


def test_plotly_brings_its_notice_into_every_page() -> None:
    script = gzip.decompress(base64.b64decode(packed_plotly())).decode()
    notice = script[:400]
    assert "plotly.js" in notice
    assert "Plotly, Inc." in notice
    assert "MIT license" in notice
    assert table("In pages that the package writes")["plotly.js"][-1] == "MIT"


@pytest.mark.parametrize("file", ["page.css", "page.js"])
def test_pages_bring_no_fonts_and_no_images_of_others(file: str) -> None:
    content = (ROOT / "src/hedgerow/report/templates" / file).read_text(encoding="utf-8")
    assert not re.search(r"@font-face|@import|url\(\s*['\"]?(?!#)|base64,[A-Za-z0-9+/]{40}", content)


def test_every_dependency_is_listed_with_its_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = {}
    for extra, needed in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        for one in needed:
            extras.setdefault(re.split(r"[\[><=]", one)[0], []).append(extra)
    listed = {name: row[0] for name, row in table("What an install fetches beside the package").items()}
    assert listed == {name: ", ".join(found) or "-" for name, found in extras.items()}


def test_packages_bring_the_list() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", PAGE.name]
