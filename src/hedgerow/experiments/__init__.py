"""Experiments: sweeps described by data, run in parallel, and stored; no cell is ever run twice.

    from hedgerow.experiments.spec import load
    from hedgerow.experiments.sweep import run_experiment
    tally = run_experiment(load("quickstart"), "out/quickstart")    # the same files whichever way it is run

`source` finds the text and the lines in it, `spec` turns it into an `Experiment` and its cells (`reading`: in a process
apart, if there is code of others), with `components` for world, adversary and learner. `worker` runs a cell, `backends`
many, and `sweep` stores results and the manifest, as `options` say.
"""
