"""Rewrite constraints.txt: one exact version of everything that pyproject.toml names, and of everything that follows.

    python tools/write_constraints.py             keep the versions that still fit, add what is missing
    python tools/write_constraints.py --upgrade   look for the newest versions of everything

One list serves every supported Python and system: uv resolves for all of them at once, and writes a marker beside what
only some of them need or where they need different versions. It runs in a throw-away environment. All extras and all
dependency groups are covered, so that whatever `make` or a workflow installs is pinned.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
HEADER = """\
# Exact versions of everything that pyproject.toml names (dependencies, extras, groups, build backend), and of what
# they need. These fit Python 3.11 to 3.14 on Linux, macOS and Windows; a marker says where a line counts. The file is
# written by `make constraints`, which keeps these versions and adds what is missing; `make upgrade` finds newer ones.
"""


def resolve(project: Path, pinned: str, upgrade: bool) -> str:
    """The lines of a constraints file for `project`, close to the `pinned` ones unless there is to be an upgrade."""
    about = tomllib.loads(project.read_text(encoding="utf-8"))
    oldest = about["project"]["requires-python"].removeprefix(">=")
    with tempfile.TemporaryDirectory(prefix="hedgerow-constraints-") as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([scripts / "python", "-m", "pip", "install", "-qq", "uv"], check=True)
        result = Path(folder, "constraints.txt")
        result.write_text(pinned, encoding="utf-8")  # uv keeps what its output file says already
        command = [scripts / "uv", "pip", "compile", project, "--universal", "--python-version", oldest, "--all-extras"]
        for group in about["dependency-groups"]:
            command += ["--group", f"{project}:{group}"]
        command += ["--no-header", "--no-annotate", "--quiet", "--output-file", result]
        subprocess.run([*command, *(["--upgrade"] if upgrade else [])], check=True, stdout=subprocess.DEVNULL)
        return result.read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="look for the newest versions of everything")
    upgrade = parser.parse_args().upgrade
    versions = resolve(ROOT / "pyproject.toml", TARGET.read_text(encoding="utf-8"), upgrade)
    TARGET.write_text(HEADER + versions, encoding="utf-8", newline="\n")
    print(f"constraints.txt now has {len(versions.splitlines())} lines; run make test before you commit it")


if __name__ == "__main__":
    main()
