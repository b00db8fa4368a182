"""The planner allocates nothing: numba counts the blocks that compiled code asks for."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from allocations import allocations
from plan_cases import random_plan

from hedgerow.model.kernel_layout import index_of
from hedgerow.planning.decomposition import PlanProblem, make_plan_workspace
from hedgerow.planning.planner import plan_in_boxes, policy_of_row_masses

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="plain Python allocates")


def test_the_count_sees_an_array() -> None:
    assert allocations(numba.njit(lambda n: np.zeros(n).sum()), 4) == 1


@pytest.mark.parametrize("m", [0, 1, 2, 25])
def test_a_plan_allocates_nothing(m: int) -> None:
    for seed in range(6):
        layout, *arrays = random_plan(seed, m)
        workspace = make_plan_workspace(layout, m)
        problem = PlanProblem(*(array.copy() for array in arrays))
        assert allocations(plan_in_boxes, index_of(layout), problem, workspace) == 0
        policy = np.zeros(layout.num_rows)
        assert allocations(policy_of_row_masses, index_of(layout), workspace.masses, policy) == 0
