"""Experiments: sweeps described by data, run in parallel, and stored; no cell is ever run twice.

    from hedgerow.experiments.spec import load
    from hedgerow.experiments.sweep import sweep
    tally = sweep(load("quickstart"), "out/quickstart")    # loky on all cores; the same files whichever way it is run

`source` finds the text and the lines in it, `schema` turns it into an `Experiment` (`trial`: in a process apart, if
there is code of others), `cells` into cells with ids and seeds, `run_cell` runs one, `backends` runs many, `sweep`
stores results and the manifest. `preflight` checks a world before a run.
"""
