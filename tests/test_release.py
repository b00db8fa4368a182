"""What a release is made of: one version, pinned dependencies, workflows that parse, packages with what they need."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import types
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = ABOUT["project"]["version"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {"linux": "x86_64", "darwin": "arm64", "win32": "AMD64"}


def load(path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load("tools/check_release.py")


# The version ----------------------------------------------------------------------------------------------------------


def test_all_copies_of_the_version_agree() -> None:
    assert list(release.disagreements()) == []


def test_the_installed_version_is_that_of_the_sources() -> None:
    assert version("hedgerow") == ABOUT["project"]["version"], "install the sources again: pip install -e ."


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources that are ready for the tag v1.2.0."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.0\ndate-released: 2030-01-02\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2030-01-02\n\n- All.\n")
    (tmp_path / "docs" / "cite.md").write_text("```bibtex\n@software{x,\n  version = {1.2.0},\n}\n```\n")
    return tmp_path


def test_sources_that_are_ready(sources: Path) -> None:
    assert [*release.disagreements(sources), *release.obstacles("v1.2.0", sources)] == []


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("CITATION.cff", "1.2.0", "1.1.0", "CITATION.cff: version is 1.1.0; .* it is 1.2.0"),
        ("CITATION.cff", "2030", "2029", "CITATION.cff: date-released is 2029-01-02; .* it is 2030-01-02"),
        (
            "pyproject.toml",
            "x",
            'x"\nurls.Source = "https://host.example/x',
            "repository-code is None; .* https://host.example/x",
        ),
        ("docs/cite.md", "1.2.0", "1.1.0", "docs/cite.md cites the version 1.1.0, pyproject.toml has 1.2.0"),
        ("CHANGELOG.md", "## 1.2.0", "## 1.1.0", "no heading `## 1.2.0 - "),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n- More.\n", "lines under Unreleased.*1.2.0: - More."),
    ],
)
def test_what_keeps_sources_from_a_release(sources: Path, file: str, old: str, new: str, complaint: str) -> None:
    path = sources / file
    path.write_text(path.read_text().replace(old, new, 1))
    found = [*release.disagreements(sources), *release.obstacles("v1.2.0", sources)]
    assert len(found) == 1
    assert re.search(complaint, found[0])


def test_another_tag(sources: Path) -> None:
    assert list(release.obstacles("1.2.0", sources)) == ["the tag is 1.2.0, the version 1.2.0: its tag is v1.2.0"]


def test_a_release_has_compiled_kernels_of_its_sources(tmp_path: Path) -> None:
    assert list(release.stale_archives(tmp_path)) == ["kernels/ has no archive of compiled kernels: run make kernels"]
    (tmp_path / "kernels").mkdir()
    with tarfile.open(tmp_path / "kernels" / "cp311-old.tar.xz", "w:xz") as packed:
        packed.addfile(tarfile.TarInfo("hedgerow/sources.txt"), io.BytesIO())
    assert list(release.stale_archives(tmp_path)) == [
        "kernels/cp311-old.tar.xz was made of other sources: run make kernels"
    ]


# Dependencies ---------------------------------------------------------------------------------------------------------


def groups(name: str) -> Iterator[str]:
    for item in ABOUT["dependency-groups"][name]:
        if isinstance(item, str):
            yield item
        else:
            yield from groups(item["include-group"])


def surroundings() -> Iterator[dict[str, str]]:
    for python, (system, machine) in product(PYTHONS, SYSTEMS.items()):
        yield {
            "python_version": python,
            "python_full_version": f"{python}.2",
            "sys_platform": system,
            "platform_machine": machine,
            "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
        }


def pins() -> list[Any]:
    from packaging.requirements import Requirement

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_everything_is_pinned_once_wherever_it_is_needed() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    canonical = pytest.importorskip("packaging.utils").canonicalize_name
    project, pinned = ABOUT["project"], pins()
    wanted = {*project["dependencies"], *ABOUT["build-system"]["requires"]}
    wanted |= {one for extra in project["optional-dependencies"].values() for one in extra}
    wanted |= {one for name in ABOUT["dependency-groups"] for one in groups(name)}
    for text in sorted(wanted):
        need = requirements.Requirement(text)
        for where in surroundings():
            if need.marker is not None and not need.marker.evaluate(where):
                continue
            found = [
                pin
                for pin in pinned
                if canonical(pin.name) == canonical(need.name) and (pin.marker is None or pin.marker.evaluate(where))
            ]
            assert len(found) == 1, f"{text} has {len(found)} pins in constraints.txt for {where}: run make constraints"
            assert next(iter(found[0].specifier)).version in need.specifier, f"{found[0]} does not fit {text}"


def test_every_dependency_has_a_lower_bound_and_no_upper_one() -> None:
    """Which are tried by tools/check_dependencies.py, see CONTRIBUTING.md, "How to release"."""
    requirements = pytest.importorskip("packaging.requirements")
    project = ABOUT["project"]
    bounds: dict[str, set[str]] = {}
    for text in [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]:
        need = requirements.Requirement(text)
        assert [one.operator for one in need.specifier] == [">="], f"{text}: which versions work?"
        bounds.setdefault(need.name, set()).add(str(need.specifier))
    for text in groups("dev"):
        need = requirements.Requirement(text)
        if need.name in bounds:
            bounds[need.name].add(str(need.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_the_oldest_numba_is_one_that_kernels_are_linked_with() -> None:
    from hedgerow.compiling import kernels

    (oldest,) = (one.partition(">=")[2] for one in ABOUT["project"]["dependencies"] if one.startswith("numba"))
    assert f"({oldest.replace('.', ', ')}) <= version_info" in Path(kernels.__file__).read_text(encoding="utf-8")


def test_pins_are_exact_and_say_nothing_of_where_they_come_from() -> None:
    pytest.importorskip("packaging")
    for pin in pins():
        assert [one.operator for one in pin.specifier] == ["=="], pin
        assert pin.url is None
    assert not re.search(r"://|--|@|(?<!\w)/\w", (ROOT / "constraints.txt").read_text(encoding="utf-8"))


def test_developers_tools_are_groups_and_users_see_none_of_them() -> None:
    extras, dev = ABOUT["project"]["optional-dependencies"], set(groups("dev"))
    assert set(extras) == {"dask", "figures", "gym", "journal", "serve", "tensorboard"}
    for name in ("install", "test", "lint", "docs", "bench"):
        assert set(groups(name)) <= dev
    assert any(one.startswith("pip>=25.1") for one in groups("install"))  # the first that knows groups


def test_classifiers_exist_and_name_every_python_of_the_workflows() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    stated = ABOUT["project"]["classifiers"]
    assert set(stated) <= set(known)
    assert stated == sorted(stated)
    assert tuple(re.findall(r"Python :: (3\.\d+)", " ".join(stated))) == PYTHONS
    assert ABOUT["project"]["requires-python"] == f">={PYTHONS[0]}"


# Workflows and forms --------------------------------------------------------------------------------------------------


def parsed(path: Path) -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
IN_CLONE = pytest.mark.skipif(not WORKFLOWS, reason="source packages come without workflows")


@IN_CLONE
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_parses_and_may_do_little(path: Path) -> None:
    workflow = parsed(path)
    assert {"name", "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 90
        for needed in job.get("needs", []):
            assert needed in workflow["jobs"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"[\w./-]+@(v\d+|release/v1)", step.get("uses", "x/y@v1")), step
        allowed = {"id-token": "write"} if (path.stem, name) == ("release", "publish") else None
        assert job.get("permissions") == allowed
    pythons = [job["strategy"]["matrix"]["python"] for job in workflow["jobs"].values() if "strategy" in job]
    assert all(tuple(each) == PYTHONS for each in pythons)


@IN_CLONE
def test_a_release_is_tested_and_tried_before_it_is_published() -> None:
    workflow = parsed(ROOT / ".github" / "workflows" / "release.yml")
    publish = workflow["jobs"]["publish"]
    assert publish["environment"] == "release"
    assert set(publish["needs"]) == {"test", "bounds", "try"}
    assert set(workflow["jobs"]["try"]["needs"]) == {"pure", "platform"}
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML takes `on` for a truth value


@IN_CLONE
def test_forms_for_issues_are_in_their_format() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    assert {path.stem for path in folder.glob("*.yml")} == {"bug", "config", "idea", "wrong-number"}
    for path in folder.glob("*.yml"):
        form = parsed(path)
        if path.stem == "config":
            assert form == {"blank_issues_enabled": False}
            continue
        assert {"name", "description", "body"} <= set(form)
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert {field["type"] for field in fields} <= {"textarea", "input", "dropdown"}
        assert all(field["attributes"]["label"] for field in fields)
        assert any(field.get("validations", {}).get("required") for field in fields)


@IN_CLONE
def test_the_workflows_run_targets_and_groups_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        for group in re.findall(r"--group (\w+)", text):
            assert group in ABOUT["dependency-groups"]
        for target in re.findall(r"\bmake(?: [A-Z]+=\w+)* ([a-z./]+)", re.sub(r"#.*|name:.*", "", text)):
            assert re.search(rf"^{re.escape(target.replace('.venv', '$(VENV)'))}:", makefile, re.MULTILINE), target


# README.md in the metadata --------------------------------------------------------------------------------------------

SOURCE = "https://host.example/we/x"


@pytest.fixture(scope="module")
def readme() -> types.ModuleType:
    pytest.importorskip("hatchling")
    return load("hatch_readme.py")


@pytest.mark.parametrize(
    ("text", "with_source", "without"),
    [
        ("[a](b.md)", f"[a]({SOURCE}/blob/v1/b.md)", "a"),
        ("[b.md](b.md#c)", f"[b.md]({SOURCE}/blob/v1/b.md#c)", "b.md"),
        ("[below](#c)", f"[below]({SOURCE}/blob/v1/README.md#c)", "below"),
        ('[a](b.md "why")', f'[a]({SOURCE}/blob/v1/b.md "why")', "a"),
        ("[`f`](b.md), `[a](b.md)`", f"[`f`]({SOURCE}/blob/v1/b.md), `[a](b.md)`", "`f`, `[a](b.md)`"),
        ("[a](https://b.example/c) <d@e.example>", None, None),
        ("[a](mailto:d@e.example)", None, None),
        ("x\n\n![p](d/p.svg)\n\ny", f"x\n\n![p]({SOURCE}/raw/v1/d/p.svg)\n\ny", "x\n\ny"),
        ("![p](https://b.example/p.svg)", None, None),
        ("[![p](p.svg)](b.md)", f"[![p]({SOURCE}/raw/v1/p.svg)]({SOURCE}/blob/v1/b.md)", ""),
        ('<a href="b.md">a</a>', f'<a href="{SOURCE}/blob/v1/b.md">a</a>', "a"),
        (
            'x\n\n<picture><source media="(m: d)" srcset="d.svg"><img src="p.svg" alt="p"></picture>\n\ny',
            (
                f'x\n\n<picture><source media="(m: d)" srcset="{SOURCE}/raw/v1/d.svg">'
                f'<img src="{SOURCE}/raw/v1/p.svg" alt="p"></picture>\n\ny'
            ),
            "x\n\ny",
        ),
        ("```\n[a](b.md)\n```\n", None, None),
        ("x[0](y) and [i] alone", f"x[0]({SOURCE}/blob/v1/y) and [i] alone", "x0 and [i] alone"),
    ],
)
def test_links_for_a_package_index(
    readme: types.ModuleType, text: str, with_source: str | None, without: str | None
) -> None:
    assert readme.fit(text, f"{SOURCE}/", "v1") == (text if with_source is None else with_source)
    assert readme.fit(text, "", "v1") == (text if without is None else without)


def test_links_by_reference_are_refused(readme: types.ModuleType) -> None:
    with pytest.raises(ValueError, match=r"write the link to docs/b\.md where it is used"):
        readme.fit("[a][b]\n\n[b]: docs/b.md\n", SOURCE, "v1")
    assert readme.fit("[a][b]\n\n[b]: https://c.example\n", SOURCE, "v1").endswith("https://c.example\n")


@pytest.mark.parametrize("source", ["", SOURCE])
def test_no_link_of_our_readme_leads_nowhere(readme: types.ModuleType, source: str) -> None:
    text = readme.fit((ROOT / "README.md").read_text(encoding="utf-8"), source, "v1")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)|(?:src|srcset|href)=\"([^\"]+)", prose)
    assert [one or other for one, other in targets if not re.match(r"https://|mailto:", one or other)] == []


# What is packed -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_has_the_package_and_nothing_else(packages: Path) -> None:
    (path,) = packages.glob("*-py3-none-any.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        about = Parser().parsestr(wheel.read(next(name for name in names if name.endswith("METADATA"))).decode())
    assert {name.split("/")[0] for name in names} == {"hedgerow", f"hedgerow-{ABOUT['project']['version']}.dist-info"}
    here = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "hedgerow").rglob("*") if path.is_file()
    }
    here = {name for name in here if "__pycache__" not in name and not name.startswith("hedgerow/compiled/")}
    assert {name for name in names if name.startswith("hedgerow/")} == here
    assert {"hedgerow/py.typed", "hedgerow/worlds/frozen.json", "hedgerow/report/templates/page.css"} <= set(names)
    assert path.stat().st_size < 2_000_000
    assert (about["License-Expression"], about["License-File"]) == ("MIT", "LICENSE")
    assert about["Description-Content-Type"] == "text/markdown"
    assert "# hedgerow" in about.get_payload()


def test_the_source_package_builds_the_same_packages_and_is_small(packages: Path, tmp_path: Path) -> None:
    (path,) = packages.glob("*.tar.gz")
    assert path.stat().st_size < 20_000_000
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not before Python 3.11.4
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, **safely)
    (top,) = tmp_path.iterdir()
    found = {entry.name for entry in top.iterdir()}
    assert {"src", "tests", "docs", "LICENSE", "README.md", "constraints.txt", "Makefile", "SECURITY.md"} <= found
    assert found.isdisjoint({"out", "site", "dist", ".git", ".github", ".ci", ".venv", "kernels"})
    (top / "PKG-INFO").unlink()  # written anew
    for file in tmp_path.rglob("*"):  # what was packed must not depend on when files were written
        os.utime(file, (1.7e9, 1.7e9))
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "again")]
    subprocess.run(command, cwd=top, check=True, capture_output=True)
    again = {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()}
    assert again == {file.name: file.read_bytes() for file in packages.iterdir()}
    assert {name.partition("-")[2] for name in again} == {f"{VERSION}.tar.gz", f"{VERSION}-py3-none-any.whl"}
    shutil.rmtree(top)
