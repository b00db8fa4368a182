"""Rewrite constraints.txt: the newest versions of everything that fits pyproject.toml, as one exact list.

The versions are resolved in a throw-away environment of the interpreter that runs this script. Run it with the oldest
supported Python (3.11): versions that still support that one also support its successors, and one list serves all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Exact versions of everything that `make` installs, build backend included; they work on Python 3.11, 3.12 and 3.13.
# Written by `make constraints`, which asks the package index for the newest versions that fit pyproject.toml.
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(Path(folder, "bin", "python")), "-m", "pip"]
        subprocess.run([*pip, "install", "-qq", f"{ROOT}[dev]", "hatchling"], check=True)
        freeze = [*pip, "freeze", "--exclude", "hedgerow"]
        versions = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    (ROOT / "constraints.txt").write_text(HEADER + versions)
    print(f"constraints.txt now pins {len(versions.splitlines())} packages; run make test before you commit it")


if __name__ == "__main__":
    main()
