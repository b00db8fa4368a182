"""The grid worlds of the catalogue: their sizes, and golden values found again from the sources' own descriptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import grid_twins as twins
import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.losses.oblivious import Switching
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline
from hedgerow.worlds import conrl, gym_maps, oreps, triple_q
from hedgerow.worlds.building import MoveOutcome, cells_of, moved, world_of_outcomes
from hedgerow.worlds.entries import build

TOL_GOLDEN = 1e-6
"""Of values with six decimals."""
TOL_HIGHS = 2e-7
TOL_TWIN = 1e-8
"""Between two exact ways, times 1 + the value."""


@cache
def frozen_lake() -> dict:
    return pytest.importorskip("gymnasium").make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped.P


@cache
def cliff_walking(slippery: bool) -> dict:
    return pytest.importorskip("gymnasium").make("CliffWalking-v1", is_slippery=slippery).unwrapped.P


def hurry(threshold: float) -> twins.Twin:
    return twins.from_gymnasium(frozen_lake(), "hurry", 20, threshold)


def goal() -> twins.Twin:
    return twins.from_gymnasium(frozen_lake(), "goal", 20, 0.1)


def cliff(slippery: bool, steps: int, threshold: float = 0.5) -> twins.Twin:
    return twins.from_gymnasium(cliff_walking(slippery), "cliff", steps, threshold)


@dataclass(frozen=True)
class Case:
    """What is known of one parameter choice."""

    name: str
    twin: Callable[[], twins.Twin]
    known: tuple[float, float]
    """Unconstrained and constrained optimum, as the source counts."""
    size: tuple[int, int, int, int]
    """States, rows, triples and dense triples of the layered world."""
    margin: float
    """As the source counts costs."""
    params: dict = field(default_factory=dict)
    cost_unit: float = 1.0
    """How much cost of the source 1 is here."""
    control: bool = False

    def world(self):
        return worlds.make(self.name, **self.params)

    def rewards(self, loss: float) -> float:
        """A loss of an episode as the twin counts it."""
        world = self.world()
        return world.source_value(loss) if world.unit == "reward" else -loss


LAKE, PLANE = (273, 1088, 2466, 15_960), (2758, 11_028, 11_028, 1_856_876)
FIVE, PER_STEP = {"alpha": 5.0}, 1 / 30
CASES = [
    Case("alwayssafe-simple", twins.always_safe_simple, (12, 20 / 3), (20, 38, 42, 102), 3),
    Case("alwayssafe-difficult", twins.always_safe_difficult, (1, 0.2), (8, 14, 20, 24), 0.1),
    Case("alwayssafe-cliff", twins.always_safe_cliff, (-7, -10), (213, 848, 848, 14_200), 2, cost_unit=2),
    Case("conrl-8x8", twins.con_rl_8x8, (1.854600, 1.546391), (1473, 5888, 21_532, 337_968), 0.299958),
    Case("conrl-grid", twins.con_rl_grid, (1.816822, 1.536288), (1469, 5872, 20_244, 336_304), 0.299996),
    Case(
        "conrl-box", twins.con_rl_box, (1.815769, 1.749677), (1355, 5416, 16_412, 284_880), 0.066745, cost_unit=1 / 30
    ),
    Case("triple-q-grid", lambda: twins.triple_q(2), (963.979997, 874.898845), PLANE, 2),
    Case("triple-q-grid", lambda: twins.triple_q(5), (963.979997, 963.979997), PLANE, 5, FIVE, control=True),
    Case("frozen4-hurry", lambda: hurry(0.1), (4.658108, 17.587402), LAKE, 0.1, {"alpha": 0.1}),
    Case("frozen4-hurry", lambda: hurry(0.3), (4.658108, 14.144287), LAKE, 0.3),
    Case("frozen4-hurry", lambda: hurry(0.5), (4.658108, 10.875309), LAKE, 0.5, {"alpha": 0.5}),
    Case("frozen4-goal", goal, (0.199133, 0.199133), LAKE, 0.1, control=True),
    Case(
        "cliff-slippery",
        lambda: cliff(True, 40),
        (39.253076, 39.253076),
        (1238, 4948, 14_015, 172_568),
        0.5,
        control=True,
    ),
    Case(
        "cliff-slippery",
        lambda: cliff(False, 20),
        (13, 13),
        (478, 1908, 1908, 57_048),
        0.5,
        {"slippery": False, "steps": 20},
        control=True,
    ),
    Case("oreps-grid", twins.o_reps, (0, 0.921500), (100, 198, 1320, 1320), 0.482845),
    Case("oreps-grid", twins.o_reps, (0, 0.921500), (100, 198, 360, 1320), 0.482845, {"support": "known"}),
]
ALL = pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.name} {case.params or ''}") for case in CASES])


@ALL
def test_the_sources_own_description_has_the_same_optima(case):
    """Neither tables nor planner are those of the package: the price of the cost is searched on the twin."""
    twin, golden = case.twin(), case.world().golden
    tol = TOL_TWIN * (1 + abs(case.known[1]))
    assert case.rewards(golden.unconstrained) == pytest.approx(twins.best_at_price(twin, 0.0).reward, abs=tol)
    assert case.rewards(golden.optimum) == pytest.approx(twins.best_by_prices(twin), abs=tol)
    least_cost = twins.best_at_price(twin, np.inf).cost
    assert golden.margin * case.cost_unit == pytest.approx(twin.threshold - least_cost, abs=tol)


@pytest.mark.sampled(6)
@ALL
def test_a_linear_program_over_all_steps_agrees(case):
    """Within HiGHS's own tolerance, 1e-7."""
    best = twins.best_by_program(case.twin())
    assert best == pytest.approx(case.rewards(case.world().golden.optimum), abs=TOL_HIGHS)


@ALL
def test_golden_values_are_those_that_are_known(case):
    world = case.world()
    unconstrained, optimum = case.known
    assert world.source_value(world.golden.unconstrained) == pytest.approx(unconstrained, abs=TOL_GOLDEN)
    assert world.source_value(world.golden.optimum) == pytest.approx(optimum, abs=TOL_GOLDEN)
    assert world.golden.margin * case.cost_unit == pytest.approx(case.margin, abs=TOL_GOLDEN)


@ALL
def test_sizes(case):
    layout = case.world().cmdp.layout
    assert (layout.num_states, layout.num_rows, layout.num_triples, layout.num_dense_triples) == case.size
    assert case.world().cmdp.num_constraints == 1


@ALL
def test_the_constraint_has_a_price_except_in_controls(case):
    golden, text = case.world().golden, worlds.describe(case.name).description
    if case.control:
        assert golden.optimum == pytest.approx(golden.unconstrained, abs=1e-9)
        assert "slack" in text
    else:
        assert golden.optimum > golden.unconstrained + 1e-2


@ALL
def test_the_baseline_is_safe_and_has_room(case):
    world = case.world()
    baseline = offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    assert np.all(world.baseline_thresholds < world.cmdp.thresholds)
    costs = evaluate(world.cmdp, baseline.policy).costs
    assert np.all(costs <= world.baseline_thresholds + 1e-9)
    assert baseline.value == pytest.approx(world.golden.baseline, abs=1e-7)
    assert baseline.value >= world.golden.optimum - 1e-9


@ALL
def test_building_twice_gives_the_same_bits(case):
    assert build(case.name, case.params).hash == case.world().hash


@ALL
def test_states_and_actions_have_names(case):
    cmdp = case.world().cmdp
    assert len(cmdp.state_labels) == cmdp.layout.num_states
    assert len(cmdp.action_labels) == cmdp.layout.num_actions
    if "grid" in case.name or "cliff" in case.name:
        assert set(cmdp.action_labels) <= {"up", "down", "left", "right"}


# One by one -----------------------------------------------------------------------------------------------------------


def test_outcomes_are_weighed_exactly():
    def outcomes(state, _):
        return [MoveOutcome(37, "a", 1, 0), MoveOutcome(1, "b", 1, 1), MoveOutcome(2, "a", 1, 0)]

    made = world_of_outcomes(("a", "b"), ["on"], outcomes, 2, "a", {"cost": (1.0, 0.5)}, named=str)
    assert made.cmdp.transitions[:2].tolist() == [39 / 40, 1 / 40]
    assert made.loss.tolist() == [1.0] * 3
    assert made.cmdp.mean_costs.tolist() == [[0.025] * 3]


def test_walls_and_edges_hold():
    cells = cells_of(("..", "#."))
    assert [moved(cells, (0, 0), move) for move in (twins.UP, twins.DOWN, twins.LEFT, twins.RIGHT)] == [
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 1),
    ]


def test_the_box_stays_where_it_cannot_be_pushed():
    cells = cells_of(conrl.BOX)
    against_a_wall = conrl._Scene(agent=(2, 3), box=(2, 4))
    assert conrl._pushed(cells, against_a_wall, twins.RIGHT) == against_a_wall
    free = conrl._Scene(agent=(2, 2), box=(2, 3))
    assert conrl._pushed(cells, free, twins.RIGHT) == conrl._Scene((2, 3), (2, 4))
    assert conrl._pushed(cells, free, twins.DOWN) == conrl._Scene((3, 2), (2, 3))


def test_the_map_of_triple_q_is_the_draw_of_its_source():
    draws = np.random.RandomState(1234)
    obstacle = draws.rand(16, 18) <= 0.4
    assert [[mark == "X" for mark in row[1:-1]] for row in triple_q.MAP[2:18]] == obstacle.tolist()
    assert triple_q.MAP[1].index("G") == 1 + int(draws.rand() * 17)


def test_the_best_way_of_triple_q_enters_four_obstacles():
    """The source's own threshold is never felt, one of 4 is not either, and one of 3 is."""
    world = worlds.make("triple-q-grid")
    best = {limit: offline.optimum(world.cmdp.with_thresholds([limit]), world.loss).value for limit in (3, 4, 5, 25)}
    assert best[4] == pytest.approx(world.golden.unconstrained, abs=1e-10)
    assert best[25] == pytest.approx(best[5], abs=1e-10)
    assert best[3] > best[4] + 1e-3


def test_the_loss_of_oreps_is_the_first_draw_of_its_source():
    lossless = np.random.RandomState(0).randint(2, size=(10, 10))
    assert [["RD".index(letter) for letter in row] for row in oreps.FREE] == lossless.tolist()


def test_both_supports_of_oreps_are_one_world():
    full, known = worlds.make("oreps-grid"), worlds.make("oreps-grid", support="known")
    for a, b in zip(
        full.cmdp.layout.split_triples(full.cmdp.transitions),
        known.cmdp.layout.split_triples(known.cmdp.transitions),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(full.loss, known.loss)
    np.testing.assert_array_equal(full.cmdp.mean_costs, known.cmdp.mean_costs)


def test_switching_redraws_the_loss_of_oreps_like_its_source():
    """In every cell one direction is free and the other loses 1, for 50 episodes each."""
    layout = worlds.make("oreps-grid").cmdp.layout
    drawn = Switching(period=50, patterns=20).block(layout, 0, 1000).dense()
    assert np.all(drawn.reshape(1000, -1, 2).sum(axis=2) == 1)
    assert [len(np.unique(drawn[k : k + 50], axis=0)) for k in range(0, 1000, 50)] == [1] * 20
    assert not np.array_equal(drawn[49], drawn[50])


def test_gymnasiums_maps_are_written_down_rightly():
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1", map_name="4x4").unwrapped.desc
    assert ["".join(letter.decode() for letter in row) for row in lake] == list(gym_maps.FROZEN_MAP)
    walk = gymnasium.make("CliffWalking-v1").unwrapped._cliff
    assert [[mark == "C" for mark in row] for row in gym_maps.CLIFF_MAP] == walk.tolist()


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("frozen4-hurry", frozen_lake),
        ("frozen4-goal", frozen_lake),
        ("cliff-slippery", lambda: cliff_walking(True)),
    ],
)
def test_rows_are_those_of_gymnasium(name, table):
    """Every row of the layered world but those of the last step, by the names of its states."""
    cmdp, P = worlds.make(name).cmdp, table()
    layout, columns = cmdp.layout, len(P) // 4
    place = [label.split(", ")[-1][:-1] for label in cmdp.state_labels]
    number = {f"r{s // columns}c{s % columns}": s for s in P}
    for row in range(layout.rows(layout.steps - 1).start):
        s = number[place[row // 4]]
        expected, found = np.zeros(len(P)), np.zeros(len(P))
        for p, after, _, _ in P[s][row % 4] if s < len(P) - 1 else [(1.0, s, 0, True)]:  # nobody leaves the goal
            expected[after] += p
        for triple in range(layout.row_start[row], layout.row_start[row + 1]):
            found[number[place[layout.successor[triple]]]] = cmdp.transitions[triple]
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_a_cliff_without_ice_needs_thirteen_steps_and_no_fall():
    world = worlds.make("cliff-slippery", slippery=False, steps=20, alpha=0.0)
    best = offline.optimum(world)
    assert (best.value, best.costs.tolist()) == (pytest.approx(13.0), [0.0])
    assert offline.slater(world).margin == pytest.approx(0.0, abs=1e-12)


def test_the_price_of_hurry_is_thirteen_of_twenty_steps_at_a_tenth():
    golden = worlds.make("frozen4-hurry", alpha=0.1).golden
    assert golden.optimum - golden.unconstrained == pytest.approx(12.929294, abs=TOL_GOLDEN)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("frozen4-hurry", {"alpha": 1.5}, r"frozen4-hurry: alpha is 1.5; it must lie in \[0, 1\]"),
        ("frozen4-goal", {"alpha": -0.1}, r"frozen4-goal: alpha is -0.1"),
        ("triple-q-grid", {"alpha": 26.0}, r"triple-q-grid: alpha is 26.0; it must lie in \[0, 25\]"),
        ("cliff-slippery", {"steps": 0}, r"cliff-slippery: steps is 0; it must be at least 1"),
        ("cliff-slippery", {"slippery": 1}, r"cliff-slippery: slippery must be true or false, not 1"),
        ("oreps-grid", {"support": "some"}, r"support is 'some'; choose full or known"),
        ("conrl-box", {"slip": 0.1}, r"conrl-box has no parameter 'slip'; it has none"),
    ],
)
def test_mistakes_are_named(name, params, message):
    with pytest.raises(InvalidInput, match=message):
        worlds.make(name, **params)
