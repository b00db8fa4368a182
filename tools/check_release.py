"""Whether the sources are ready for a tag: every copy of the version and of its date agrees with pyproject.toml.

python tools/check_release.py             the copies of the version agree
python tools/check_release.py v0.2.0      and this is its tag, the changelog is closed, kernels/ is of these sources
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_HEADING = re.compile(r"^## (?P<version>\d\S*) - (?P<date>\d{4}-\d\d-\d\d)$", re.MULTILINE)
_SOFTWARE = re.compile(r"^@software\{.*?^\}", re.MULTILINE | re.DOTALL)


def project_of(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def disagreements(root: Path = ROOT) -> Iterator[str]:
    """Copies of the version, its date or the project's address that say something else."""
    project, citation = project_of(root), _citation(root)
    version = project["version"]
    expected = {"version": version, "repository-code": project.get("urls", {}).get("Source")}
    if version in (dates := released(root)):
        expected["date-released"] = dates[version]
    for key, value in expected.items():
        if citation.get(key) != value:
            yield f"CITATION.cff: {key} is {citation.get(key)}; after pyproject.toml and CHANGELOG.md it is {value}"
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        for entry in _SOFTWARE.findall(page.read_text(encoding="utf-8")):
            found = re.search(r"^\s*version\s*=\s*\{(.*?)\}", entry, re.MULTILINE)
            if found and found[1] != version:
                yield f"{page.relative_to(root).as_posix()} cites the version {found[1]}, pyproject.toml has {version}"


def obstacles(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What keeps `tag` from being the release of these sources, beyond disagreements."""
    version = project_of(root)["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}: its tag is v{version}"
    if version not in released(root):
        yield f"CHANGELOG.md has no heading `## {version} - YEAR-MONTH-DAY`"
    waiting = _unreleased(root)
    if waiting:
        yield f"CHANGELOG.md has lines under Unreleased, which belong under {version}: {waiting.splitlines()[0]}"


def stale_archives(root: Path = ROOT) -> Iterator[str]:
    """Archives of compiled kernels that clones of these sources would unpack in vain. Needs what hedgerow needs."""
    sys.path.insert(0, str(ROOT))
    from tools import ship_kernels

    archives = sorted((root / "kernels").glob("*.tar.xz"))
    if not archives:
        yield "kernels/ has no archive of compiled kernels: run make kernels"
    for archive in archives:
        if ship_kernels.is_stale(archive):
            yield f"{archive.relative_to(root).as_posix()} was made of other sources: run make kernels"


def released(root: Path = ROOT) -> dict[str, str]:
    """The versions of CHANGELOG.md, newest first, and their dates."""
    found = _HEADING.finditer((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    return {heading["version"]: heading["date"] for heading in found}


def _unreleased(root: Path) -> str:
    sections = re.split(r"^(?=## )", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    waiting = [section for section in sections if section.startswith("## Unreleased")]
    return "".join(section.partition("\n")[2] for section in waiting).strip()


def _citation(root: Path) -> dict[str, str]:
    """The plain `key: value` lines at the top level: enough for what is compared, without a parser for YAML."""
    found = re.findall(r"^([a-z-]+): +(\S.*)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    return {key: value.strip().strip("\"'") for key, value in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tag", nargs="?", help="of the release, such as v0.2.0")
    tag = parser.parse_args().tag
    found = [*disagreements(), *([*obstacles(tag), *stale_archives()] if tag is not None else ())]
    for complaint in found:
        print(complaint, file=sys.stderr)
    if not found:
        print(f"version {project_of(ROOT)['version']}: all copies agree" + (f", {tag} may be released" if tag else ""))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
