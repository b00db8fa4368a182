"""Negative controls: learners broken on purpose, each of which some promise must refute.

A check that cannot fail proves nothing. Every control runs through the same observation and the same judge as the real
learners; one that is not refuted fails the whole verification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hedgerow.errors import InvalidInput
from hedgerow.promises.controls import clumsy, deaf, forgetful
from hedgerow.promises.observation import plain_witness
from hedgerow.promises.specs import RunSpec
from hedgerow.promises.witness import Witness


@dataclass(frozen=True)
class Control:
    """What is broken, and which promises must be refuted by it."""

    name: str
    broken: str
    promises: tuple[str, ...]
    make: Callable[[RunSpec], Witness]


CONTROLS = (
    Control("literal-sigma", "sigma as printed, with two constraints (D1)", ("T8",), plain_witness),
    Control("layer-0-skipped", "CV-OPS sums costs from layer 1 on (D2)", ("T12",), forgetful.skips_first_layer),
    Control("index-drawn-once", "CV-OPS draws one policy of its mixture and keeps it (D5)", ("T7",), clumsy.index_once),
    Control("per-step-mixing", "S-OPS tosses its coin at every step", ("T7",), clumsy.per_step),
    Control("narrow-radii", "all radii times 0.1", ("T1", "T2"), plain_witness),
    Control("narrow-radii-mixing", "all radii times 0.1, S-OPS", ("T7",), plain_witness),
    Control("wrong-counts", "u from boxes in which every pair has t visits", ("T4",), forgetful.wrong_counts),
    Control("unconstrained", "UOB-REPS, which ignores costs, on a constrained world", ("T5",), plain_witness),
    Control("explore-then-commit", "explores for T/8 episodes, then keeps the best", ("T6",), deaf.commits),
    Control("wrong-box", "projects onto transitions that exclude the true ones", ("T3",), clumsy.wrong_box),
    Control("backward-steps", "mirror descent moves towards the losses", ("T18",), deaf.moves_wrongly),
    Control("timid-estimator", "divides losses by a tenth of u", ("T19",), deaf.timid_estimator),
)
BY_NAME = {control.name: control for control in CONTROLS}


def broken_witness(spec: RunSpec) -> Witness:
    """The simulation of a spec that names a control."""
    if spec.control not in BY_NAME:
        raise InvalidInput(f"there is no control {spec.control!r}; known: {', '.join(BY_NAME)}")
    return BY_NAME[spec.control].make(spec)
