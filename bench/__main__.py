"""`python -m bench NAME`, from the root of the repository: measure, print, and write with `--out FOLDER`.

    python -m bench projection --quick     ours beside general solvers, the two smallest sizes
    python -m bench scale --out out        time and memory per triple from 10^2 to 10^6 triples, with a figure
    python -m bench stress                 10,000 hard problems, each answer held against a known truth
    python -m bench agree                  500 moderate problems, ours beside cvxpy + Clarabel
    python -m bench episode --quick        an episode of each learner, beside learners with general solvers
    python -m bench calls                  what calls from Python cost, beside the mathematics inside them
    python -m bench cells --quick          what a cell of a sweep costs outside of its episodes
    python -m bench plans --quick          constrained plans in boxes, beside a kept model of HiGHS, and new ones
    python -m bench compile --quick        what compilation costs, in fresh processes with an empty cache
    python -m bench cores                  episodes per second on one and on two processes
    python -m bench presets --quick        what an episode of `sharpest` costs beside one of `sharp`
    python -m bench samples --quick        how many episodes the preset `sharpest` saves
    python -m bench ev-workday --quick     what each learner saves on real charger-days
    python -m bench field --quick          an episode of the LP learners, beside S-OPS and HiGHS
    python -m bench safety --quick         unsafe episodes of the safe learners on the clean event
    python -m bench budget --quick         regret of B-OPS beside S-OPS, and whether its budget is kept
    python -m bench serve --quick          decisions per second of `hedgerow serve`, and their latency
    python -m bench replay --quick         what it takes to replay a journal, in time and bytes
    python -m bench all                    all that the docs show, then the tables of the docs; hours

`python -m bench NAME --help` lists the options. Exit code 1: an answer was wrong. 2: the request cannot be met.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

BENCHMARKS = {
    "projection": ("bench.projection", "ProjectionSpeed"),
    "scale": ("bench.scale", "Scale"),
    "stress": ("bench.stress", "Stress"),
    "extreme": ("bench.stress", "Extreme"),
    "agree": ("bench.agreement", "Agreement"),
    "episode": ("bench.episode", "EpisodeSpeed"),
    "calls": ("bench.calls", "Calls"),
    "cells": ("bench.cells", "Cells"),
    "plans": ("bench.plans", "PlanSpeed"),
    "compile": ("bench.compilation", "Compilation"),
    "cores": ("bench.cores", "Cores"),
    "presets": ("bench.presets", "PresetTimes"),
    "samples": ("bench.samples", "Samples"),
    "ev-workday": ("bench.ev_workday", "EVWorkday"),
    "samples-paper": ("bench.samples", "PaperSamples"),
    "field": ("bench.field", "FieldSpeed"),
    "safety": ("bench.safety", "Safety"),
    "budget": ("bench.budget", "BudgetKept"),
    "serve": ("bench.serve", "Serve"),
    "replay": ("bench.serve", "Replay"),
}


ALL = "all"


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names; the exit code."""
    if not arguments or arguments[0] not in (*BENCHMARKS, ALL):
        asked = bool(arguments) and arguments[0] in ("-h", "--help")
        print(__doc__, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    for pool in ("OMP", "OPENBLAS", "MKL", "RAYON"):  # read when numpy and the solvers are loaded, which is later
        os.environ.setdefault(f"{pool}_NUM_THREADS", "1")
    from bench import benchmark, whole
    from hedgerow.errors import HedgerowError

    try:
        if arguments[0] == ALL:
            return whole.main(arguments[1:])
        module, name = BENCHMARKS[arguments[0]]
        return benchmark.main(getattr(import_module(module), name), arguments[1:])
    except HedgerowError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
