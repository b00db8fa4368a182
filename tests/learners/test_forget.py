"""The switch forget: the estimate and its radius against their definitions, its promises, and files."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, draw_path, from_bytes, make_learner, random_world, snapshot, to_bytes

import hedgerow as hr
from hedgerow.confidence.counts import effective_number
from hedgerow.confidence.radii import Radii, weighted_cost_radius
from hedgerow.storage import datafile

RATES = (0.003, 0.07, 0.25, 0.5, 0.9, 1.0)


def weights_of(num: int, forget: float) -> np.ndarray:
    """w_j = b_j prod_{h > j} (1 - b_h), as it is written."""
    b = [max(1.0 / n, forget) for n in range(1, num + 1)]
    return np.array([b[j] * np.prod([1.0 - b[h] for h in range(j + 1, num)]) for j in range(num)])


@pytest.mark.parametrize("forget", [0.0, 1e-9, *RATES])
def test_the_effective_number(forget: float) -> None:
    for num in (1, 2, 3, 4, 7, 14, 15, 40, 120):
        w = weights_of(num, forget)
        assert w.sum() == pytest.approx(1.0)
        assert effective_number(num, forget) == pytest.approx(1.0 / float(w @ w), rel=1e-12)
    assert effective_number(0, forget) == 0.0
    if forget > 0.0:
        assert effective_number(10**12, forget) == pytest.approx(min(1e12, (2.0 - forget) / forget))


def played(learner: Any, world: hr.CMDP, count: int, seed: int) -> list[tuple[list[int], np.ndarray]]:
    """Play so many episodes; returns their rows and costs."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(count):
        rows = draw_path(world, learner.plan().policy, rng)
        costs = (rng.random((len(rows), world.num_constraints)) < world.mean_costs[:, rows].T).astype(float)
        learner.observe(rows, rng.random(len(rows)), costs)
        seen.append((rows.tolist(), costs))
    return seen


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
@pytest.mark.parametrize("kind", ["sv-ops", "s-ops"])
@pytest.mark.parametrize(("radii", "factor"), [("paper", 4.0), ("tight", 0.5), ("anytime", 0.5)])
@pytest.mark.parametrize("forget", [0.07, 0.9])
def test_bounds_against_the_definition(kind: str, radii: str, factor: float, forget: float) -> None:
    world, T, delta, scale = random_world(2), 150, 0.05, 0.2
    learner = make_learner(kind, world, T, delta, radii=radii, forget=forget, confidence_scale=scale)
    seen = played(learner, world, T, 1)
    rows, pairs, boxes, fading = world.layout.num_rows, world.layout.num_states * 2, learner.core.state.boxes, 0
    for row in range(rows):
        costs = np.array([costs[path.index(row)] for path, costs in seen if row in path])
        n = len(costs)
        if n == 0:
            continue
        fading += n > 1 / forget
        w = weights_of(n, forget)
        union = {"paper": T * pairs * 2, "tight": 2 * rows * 2 * T, "anytime": 2 * rows * 2 * n * (n + 1)}[radii]
        xi = min(1.0, scale * sqrt(factor * log(union / delta) * float(w @ w)))
        np.testing.assert_allclose(boxes.cost_lower[row], w @ costs - xi, atol=1e-12)
        np.testing.assert_allclose(boxes.cost_upper[row], w @ costs + xi, atol=1e-12)
        assert boxes.xi[row] == pytest.approx(xi)
    assert fading > 5


def test_the_weighted_bounds_hold_at_all_numbers_of_costs() -> None:
    """The union over N of 400 Bernoulli costs, by 4,000 runs: the truth leaves in fewer than delta of them."""
    delta, T, forget, p = 0.2, 400, 0.05, 0.3
    rule = Radii("tight").rule(hr.Layout((1, 1), 1), 1, delta, T)
    draws = np.random.default_rng(0).random((4_000, T)) < p
    mean, outside, closest = np.zeros(4_000), np.zeros(4_000, dtype=bool), np.inf
    for n in range(1, T + 1):
        b = max(1.0 / n, forget)
        mean = (1.0 - b) * mean + b * draws[:, n - 1]
        xi = weighted_cost_radius(rule, n, effective_number(n, forget))
        outside |= np.abs(mean - p) > xi
        closest = min(closest, float(np.min(xi - np.abs(mean - p))))
    assert outside.mean() <= delta
    assert closest < 0.1  # the bounds are not empty words


@pytest.mark.parametrize("kind", ["sv-ops", "s-ops"])
@pytest.mark.parametrize("preset", ["paper", "sharp"])
def test_0_and_rates_below_1_over_the_visits_change_no_bit(kind: str, preset: str) -> None:
    world, found = random_world(3), []
    for options in ({}, {"forget": 0.0}, {"forget": 1e-3}):
        learner = make_learner(kind, world, 200, preset=preset, confidence_scale=0.1, **options)
        hr.simulate(world, hr.losses.IID(seed=1), learner, seed=5, progress=False)
        found.append(snapshot(learner))
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])
    learner = make_learner(kind, world, 200, preset=preset, confidence_scale=0.1, forget=0.2)
    hr.simulate(world, hr.losses.IID(seed=1), learner, seed=5, progress=False)
    assert not np.array_equal(found[0]["counts.cost_sums"], snapshot(learner)["counts.cost_sums"])


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
def test_the_compiled_loop_forgets_as_the_steps_do() -> None:
    world, found = random_world(3), []
    for step_wise in (False, True):
        learner = make_learner("s-ops", world, 200, preset="sharp", confidence_scale=0.1, forget=0.1)
        run = hr.simulate(world, hr.losses.IID(seed=1), learner, seed=5, progress=False, step_wise=step_wise)
        assert run.way == ("step-wise" if step_wise else "compiled")
        found.append(snapshot(learner))
    assert_same(*found)


def test_it_follows_costs_that_change() -> None:
    view = hr.View(hr.Layout((1, 1), 1), [1.0], ["c"])
    steady, forgetful = (hr.SVOPS(view, 400, 0.05, forget=forget) for forget in (0.0, 0.1))
    for t in range(400):
        for learner in (steady, forgetful):
            learner.plan()
            learner.observe([0], [0.0], [float(t >= 200)])
    for learner, mean in ((steady, 0.5), (forgetful, 1.0 - 0.9**200)):
        assert learner.core.state.counts.cost_sums[0, 0] / 400 == pytest.approx(mean)


def test_a_log_is_absorbed_in_its_order() -> None:
    world, forget = random_world(4), 0.3
    learner = make_learner("sv-ops", world, radii="anytime", forget=forget)
    log_of = hr.Log.played(world, hr.Policy.uniform(world), 50, 3)
    learner.absorb(log_of)
    counts = learner.core.state.counts
    for row in range(world.layout.num_rows):
        costs = log_of.costs[log_of.rows == row]
        expected = weights_of(len(costs), forget) @ costs if len(costs) else np.zeros(2)
        np.testing.assert_allclose(counts.cost_sums[row] / max(1, counts.num_costs[row]), expected, atol=1e-12)


# Switches, promises, files -------------------------------------------------------------------------------------------


def test_where_it_belongs() -> None:
    world = random_world(0)
    for value in (-0.1, 1.5, float("nan"), "fast"):
        with pytest.raises(hr.errors.InvalidInput, match="forget"):
            make_learner("sv-ops", world, forget=value)
    for options in ({"radii": "kt"}, {"preset": "sharpest"}):
        with pytest.raises(hr.errors.InvalidInput, match="forget belongs to other radii than 'kt'"):
            make_learner("s-ops", world, forget=0.1, **options)
    for kind in ("uob-reps", "cv-ops"):
        with pytest.raises(hr.errors.InvalidInput, match="has no switch 'forget'"):
            make_learner(kind, world, forget=0.1)


def test_what_is_promised() -> None:
    world = random_world(0)
    soft = make_learner("sv-ops", world, forget=0.1).guarantees()
    safe = make_learner("s-ops", world, forget=0.1).guarantees()
    for ledger, holding in ((soft, {"confidence", "feasibility"}), (safe, {"confidence", "feasibility", "safety"})):
        assert {promise.name for promise in ledger if promise.holds} - {"mixing"} == holding
        assert "Hoeffding" in ledger["confidence"].source
        assert any("means that do not change" in line for line in ledger.assumptions)
    for promise in (soft["violation"], soft["regret"], safe["regret"]):
        assert "WC-OPS-style, ours; no published guarantee for this form" in promise.void_because
    plain = make_learner("sv-ops", world).guarantees()
    assert all(promise.holds for promise in plain)
    assert not any("forget" in line for line in plain.assumptions)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
@pytest.mark.parametrize("boxes", ["episode", "epoch"])
@pytest.mark.parametrize("forget", [0.02, 0.3, 1.0])
def test_files_in_the_middle_of_a_run(boxes: str, forget: float) -> None:
    world = random_world(3)
    learner = make_learner("sv-ops", world, 200, boxes=boxes, forget=forget, confidence_scale=0.2)
    for seed in range(12):
        played(learner, world, 13, seed)
        other = from_bytes(to_bytes(learner))  # refuses boxes that do not follow from the counts
    assert other.settings.forget == forget
    for each in (learner, other):
        played(each, world, 44, 7)
    assert_same(snapshot(learner), snapshot(other))


def test_a_file_from_before_the_switch_is_read() -> None:
    world = random_world(3)
    learner = make_learner("sv-ops", world, 50)
    played(learner, world, 20, 1)
    data = datafile.unpack(to_bytes(learner))
    del data.meta["settings"]["forget"]
    old = from_bytes(datafile.pack("learner", data.version, data.meta, data.arrays))
    assert old.settings.forget == 0.0
    assert_same(snapshot(learner), snapshot(old))


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
@pytest.mark.parametrize("amount", [0.15, -0.15])
def test_a_file_with_other_bounds_is_refused(amount: float) -> None:
    """One visit since the bounds were made: with forget = 0.1 it leaves a range of 1/9 for what they were."""
    world = random_world(3)
    learner = make_learner("sv-ops", world, 400, boxes="epoch", forget=0.1, confidence_scale=0.1)
    state = learner.core.state
    since = np.zeros(1)
    while not np.any((since == 1) & (state.epoch_visits > 20)):
        played(learner, world, 1, learner.episode)
        since = state.counts.num_visits - state.epoch_visits
    row = int(np.flatnonzero((since == 1) & (state.epoch_visits > 20))[0])
    data = datafile.unpack(to_bytes(learner))
    assert isinstance(from_bytes(datafile.pack("learner", data.version, data.meta, data.arrays)), hr.SVOPS)
    data.arrays["state.boxes.cost_lower"][row] += amount
    data.arrays["state.boxes.cost_upper"][row] += amount
    with pytest.raises(hr.errors.FileFormatError, match="not those of any epoch"):
        from_bytes(datafile.pack("learner", data.version, data.meta, data.arrays))
