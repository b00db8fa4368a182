"""Write the table of the learners, as the registry has them, into docs/field.md.

python tools/write_learner_table.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hedgerow.display.table import Table  # noqa: E402
from hedgerow.registry import learners  # noqa: E402
from hedgerow.report.board import write_into  # noqa: E402

PAGE = ROOT / "docs" / "field.md"
NAME = "learners"


def learner_table() -> str:
    """One row per learner that ships: its name, its source, its inputs, and what of it is quoted from memory."""
    keys = ("title", "inputs", "source", "recalled")
    table = Table("", ["name", "learner", "inputs", "source", "quoted from memory"])
    for name in learners.builtin:
        table.add_row(name, *(learners.facts(name)[key] or "-" for key in keys))
    return table.to_markdown()


if __name__ == "__main__":
    write_into(PAGE, learner_table(), NAME)
    print(PAGE.relative_to(ROOT))
