"""Execute the notebooks of docs/notebooks, and keep each as an .ipynb file beside its script.

python tools/write_notebooks.py
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tools.docs import notebooks  # noqa: E402

if __name__ == "__main__":
    for file in sorted((ROOT / "docs" / "notebooks").glob("*.py")):
        made = notebooks.rendered(file, ROOT / "out" / "notebooks") / f"{file.stem}.ipynb"
        kept = file.with_suffix(".ipynb")
        shutil.copyfile(made, kept)
        print(f"{kept.relative_to(ROOT)}: {kept.stat().st_size / 1e3:.0f} kB")
