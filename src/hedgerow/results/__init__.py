"""Results: what a sweep leaves behind, and how it is read.

    import hedgerow as hr
    results = hr.results.open("out/quickstart")
    results.summary()                     # one row per cell: regret, violation, safety, ... (an Arrow table)
    results.curves()                      # all checkpoints of all cells

A `Column` declares what is in the tables. `table` turns a run into columns, `store` writes and reads directories,
`groups` has what comes back, `metrics` the numbers that a reader wants. Equal runs give equal tables, byte for byte;
whatever differs from run to run (times, machine, versions) is in the manifest.
"""

from hedgerow.environments.columns import Column
from hedgerow.results.groups import Cell, Results
from hedgerow.results.store import create, finished, open, update_manifest, write_cell  # noqa: A004 - read as hr.results.open
from hedgerow.simulation.result import Run

__all__ = ["Cell", "Column", "Results", "Run", "create", "finished", "open", "update_manifest", "write_cell"]


def __dir__() -> list[str]:
    return list(__all__)
