"""Extended linear programs: values that an independent script computed, known transitions, violations."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.planning import offline
from hedgerow.planning.lp import BoxSolution, NoSolution, box_program, least_loss_in_boxes, least_violation_in_boxes


@pytest.mark.parametrize(
    ("name", "visits", "value"),
    [
        ("dope-media", 1e3, 2.453302),
        ("dope-media", 1e4, 4.892774),
        ("dope-media", 1e5, 6.3839486265463),
        ("dope-media", 1e7, 6.724064),
        ("dope-factored", 1e3, -2.108595),
        ("dope-factored", 1e5, -2.0010038070605),
    ],
)
def test_values_of_optcmdp(name: str, visits: float, value: float) -> None:
    """P_hat = P, so many visits of every pair in 1e5 episodes, delta = .01, radii of OptCMDP; costs, losses known."""
    world = worlds.make(name)
    layout, p = world.cmdp.layout, world.cmdp.transitions
    states = layout.layer_sizes[1]  # of the MDP that was unrolled
    iota = log(6 * states * layout.num_actions * layout.steps * 1e5 / 0.01)
    radius = 2.0 * np.sqrt(p * (1.0 - p) * iota / visits) + 14.0 * iota / (3.0 * visits)
    single = np.diff(layout.row_start)[layout.row_of_triple] == 1  # the last layer leads to the end
    lower = np.where(single, 1.0, np.clip(p - radius, 0.0, 1.0))
    upper = np.where(single, 1.0, np.clip(p + radius, 0.0, 1.0))
    answer = least_loss_in_boxes(
        box_program(layout, lower, upper), world.loss, world.cmdp.mean_costs.T, world.cmdp.thresholds
    )
    assert isinstance(answer, BoxSolution)
    # The source of dope-factored counts rewards: the table is of min -reward.
    found = answer.value if world.unit == "loss" else -world.source_value(answer.value)
    assert found == pytest.approx(value, abs=1e-6 if len(str(value)) < 11 else 1e-9)


@pytest.mark.parametrize("name", ["dope-factored", "dope-inventory", "random-layered"])
def test_boxes_of_one_point_give_the_offline_optimum(name: str) -> None:
    world = worlds.make(name)
    cmdp = world.cmdp
    program = box_program(cmdp.layout, cmdp.transitions, cmdp.transitions)
    answer = least_loss_in_boxes(program, world.loss, cmdp.mean_costs.T, cmdp.thresholds)
    assert isinstance(answer, BoxSolution)
    assert answer.value == pytest.approx(world.golden.optimum, abs=1e-8)
    least = least_violation_in_boxes(program, cmdp.mean_costs.T, cmdp.thresholds)
    assert least.value == pytest.approx(0.0, abs=1e-9)
    best = offline.slater(cmdp)
    missed = 0.125
    tight = cmdp.thresholds - best.margin - missed
    assert isinstance(least_loss_in_boxes(program, world.loss, cmdp.mean_costs.T, tight), NoSolution)
    least = least_violation_in_boxes(program, cmdp.mean_costs.T, tight)
    assert least.value == pytest.approx(missed, abs=1e-8)
    assert least.multipliers.sum() == pytest.approx(1.0)
