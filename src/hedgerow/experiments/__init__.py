"""Experiments: sweeps described by data, run in parallel, stored so that nothing is ever run twice.

    experiment = load("quickstart")               # or a TOML file of your own
    done = sweep(experiment, "out/quickstart")    # loky on all cores; the same files whichever way it is run

`source` finds the text and the lines in it, `schema` turns it into an `Experiment`, `cells` into cells with ids and
seeds, `run_cell` runs one, `backends` runs many, `sweep` keeps the books. `problem` is the pre-flight of a world.
"""

from hedgerow.experiments.schema import Experiment, load
from hedgerow.experiments.source import shipped
from hedgerow.experiments.sweep import sweep

__all__ = ["Experiment", "load", "shipped", "sweep"]
