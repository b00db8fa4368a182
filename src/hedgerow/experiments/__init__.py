"""Experiments: sweeps described by data, run in parallel, stored so that nothing is ever run twice.

    from hedgerow.experiments import load, sweep
    experiment = load("quickstart")               # or a TOML file of your own
    tally = sweep(experiment, "out/quickstart")   # loky on all cores; the same files whichever way it is run

`source` finds the text and the lines in it, `schema` turns it into an `Experiment`, `cells` into cells with ids and
seeds, `run_cell` runs one, `backends` runs many, `sweep` keeps the books. `preflight` looks at a world before a run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.experiments.schema import Experiment, load
    from hedgerow.experiments.source import shipped
    from hedgerow.experiments.sweep import Plan, Tally, sweep

__all__ = ["Experiment", "Plan", "Tally", "load", "shipped", "sweep"]

_HOME = {"Experiment": "schema", "load": "schema", "shipped": "source", "Plan": "sweep", "Tally": "sweep"}


def __getattr__(name: str) -> Any:
    """Resolved on first use: the list of what ships needs neither a compiler nor numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'hedgerow.experiments' has no attribute {name!r}")
    module = import_module(f"hedgerow.experiments.{_HOME.get(name, 'sweep')}")
    return module if name == "sweep" and not hasattr(module, name) else getattr(module, name)
