"""Negative controls: learners broken on purpose, each of which some promise must refute.

A check that cannot fail proves nothing. Every control is a cell like those of the real learners and meets the same
judge; one that is not refuted fails the whole verification. Most are broken learners, the others are sound learners in
worlds that they are not made for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Control:
    """What is broken, and which promises must refute it; `levels.controls` has its runs."""

    name: str
    broken: str
    promises: tuple[str, ...]


CONTROLS = (
    Control("literal-sigma", "sigma as printed, with two constraints (D1)", ("T8",)),
    Control("layer-0-skipped", "CV-OPS sums costs from layer 1 on (D2)", ("T12",)),
    Control("index-drawn-once", "CV-OPS draws one policy of its mixture and keeps it (D5)", ("T7",)),
    Control("per-step-mixing", "S-OPS tosses its coin at every step", ("T7",)),
    Control("narrow-radii", "all radii times 0.1", ("T1", "T2")),
    Control("narrow-radii-mixing", "all radii times 0.1, S-OPS", ("T7",)),
    Control("wrong-counts", "u from boxes in which every pair has t visits", ("T4",)),
    Control("unconstrained", "UOB-REPS, which ignores costs, on a constrained world", ("T5",)),
    Control("explore-then-commit", "explores for T/8 episodes, then keeps the best", ("T6",)),
    Control("wrong-box", "projects onto transitions that exclude the true ones", ("T3",)),
    Control("backward-steps", "mirror descent moves towards the losses", ("T18",)),
    Control("hundred-delta", "all sets are made for 100 delta", ("T1", "T2")),
    Control("false-ties", "rows are said to share their laws, and do not", ("T1", "T2", "T31")),
    Control("false-baseline", "the baseline is said to cost a quarter of what it costs", ("T31",)),
    Control("selected-log", "a log that has lost the dearer half of its episodes", ("T1",)),
    Control("counts-all", "all visits of a cost law count, where all costs of an episode are one", ("T1",)),
    Control("timid-estimator", "divides losses by a tenth of u", ("T19", "T29")),
    Control("dull-estimator", "divides losses by ten times u", ("T30",)),
    Control("frozen-boxes", "boxes of transitions that never shrink", ("T28",)),
    Control("short-logs", "all logarithms times 0.95", ("T22",)),
    Control("squares-per-step", "VV of the certificate adds squares step by step", ("T23",)),
    Control("cheap-certificate", "a certificate that leaves out dear episodes", ("T1",)),
    Control("late-lambda", "lambda from the U of the episode before", ("T24",)),
    Control("low-ceiling", "an episode costs at most 0.95 of what it can", ("T24",)),
    Control("biased-coin", "the baseline is played with probability 0.8 lambda", ("T25",)),
    Control("idle-coin", "the own policy is played whatever the coin says", ("T25",)),
    Control("small-gamma", "gamma times 0.95", ("T26",)),
    Control("false-reason", "episodes aborted because of costs are declared to be independent of these", ("T21",)),
    Control("short-search", "the radius of the search times 0.95", ("T27",)),
)
