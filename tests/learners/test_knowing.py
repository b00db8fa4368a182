"""Learners that know something of their world: the same bits on all ways, radii of what is left, and honest bounds."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from known_worlds import MIXING, NO_EXTRAS, PIECES, TIED, episode_of, knowing, learner_for, play, process
from learner_cases import KINDS, assert_same, from_bytes, random_world, scores, snapshot, to_bytes

import hedgerow as hr
from hedgerow.learners.kernels import safe_weight
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")


def options_for(kind: str, **options: Any) -> dict[str, Any]:
    """Without the switches that a learner does not have."""
    return {k: v for k, v in options.items() if kind in MIXING or k not in NO_EXTRAS}


# The same bits --------------------------------------------------------------------------------------------------------


WAYS: list[tuple[str, str, dict[str, Any]]] = [(kind, what, {}) for kind in KINDS for what in ("nothing", *PIECES)]
WAYS += [(kind, what, NO_EXTRAS) for kind in MIXING for what in ("ties", "much")]
WAYS += [(kind, what, {"ball_from": 3}) for kind in MIXING for what in ("ties", "much")]


@pytest.mark.slow
@pytest.mark.sampled(30)
@pytest.mark.parametrize(("kind", "what", "extras"), WAYS)
def test_compiled_blocks_and_single_steps_give_the_same_bits(kind: str, what: str, extras: dict[str, Any]) -> None:
    world, runs, learners = knowing(what), [], []
    for step_wise in (False, True):
        learner = learner_for(kind, world, 150, preset="sharpest", **extras)
        losses = hr.losses.Switching(period=20, seed=1)
        runs.append(hr.simulate(world, learner, losses, seed=3, progress=False, step_wise=step_wise))
        learners.append(learner)
    assert_same(snapshot(learners[0]), snapshot(learners[1]))
    assert_same(scores(runs[0]), scores(runs[1]))
    assert learners[0].diagnostics["failed"] == 0


VARIANTS: dict[str, dict[str, Any]] = {
    "sharpest": {"preset": "sharpest"},
    "sharpest, plain": {"preset": "sharpest", **NO_EXTRAS},
    "sharpest, balls": {"preset": "sharpest", "ball_from": 3},
    "sharpest, narrow": {"preset": "sharpest", "confidence_scale": 0.05},
    "sharpest, not clipped": {"preset": "sharpest", "clip_costs": False},
    "sharpest, doubling": {"preset": "sharpest", "horizon": "doubling", "episodes": None},
    "sharp": {"preset": "sharp"},
    "sharp, ties": {"preset": "sharp", "ties": True},
}


SAVED = [(kind, what, "sharpest") for kind in KINDS for what in ("nothing", *PIECES)]
SAVED += [(kind, what, variant) for kind in KINDS for what in ("ties", "much") for variant in list(VARIANTS)[1:]]


@pytest.mark.slow
@pytest.mark.sampled(9)
@pytest.mark.parametrize(("kind", "what", "variant"), SAVED)
def test_a_file_goes_on_with_the_same_bits_at_any_point(kind: str, what: str, variant: str) -> None:
    """Between episodes and between plan and observe; CV-OPS comes into its second phase on the way."""
    world, rng = knowing(what), np.random.default_rng(1)
    learner = learner_for(kind, world, **options_for(kind, **VARIANTS[variant]))
    phases = set()
    for t in range(64):
        phases.add(getattr(learner, "phase", 2))
        looked = t < 6 or t % 9 == 0
        twin = from_bytes(to_bytes(learner)) if looked else learner
        plan = learner.plan()
        if looked:
            assert_same(snapshot(learner), snapshot(from_bytes(to_bytes(learner))))
            twin.plan()
        seen = episode_of(world, plan.policy, rng)
        learner.observe(*seen)
        if looked:
            twin.observe(*seen)
            assert_same(snapshot(learner), snapshot(twin))
            assert to_bytes(learner) == to_bytes(twin)
    assert phases == ({1, 2} if kind == "cv-ops" else {2})


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", ["nothing", "ties", "much"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["sharpest", "sharpest, balls", "sharp", "sharp, ties"])
def test_files_of_learners_whose_episodes_were_not_all_as_planned(kind: str, what: str, variant: str) -> None:
    world, rng = knowing(what), np.random.default_rng(3)
    view, layout = world.view(), world.layout
    learner = learner_for(kind, world, **options_for(kind, **VARIANTS[variant]))
    for t in range(60):
        rows, losses, costs = episode_of(world, learner.plan().policy, rng)
        episode = hr.Episode(view, rows, losses, costs)
        if t % 5 == 4:
            episode = hr.Episode(view, rows, losses, costs, unknown_costs=rng.random(costs.shape) < 0.5)
        elif t % 4:
            count = [layout.steps, 1, 2, 3][t % 4]
            ended = int(rows[count]) // layout.num_actions
            reason: dict[str, Any] = {} if t % 3 else {"independent": f"reason {t}"}
            end: dict[str, Any] = {"end_unseen": True} if t % 7 == 0 else {"ended_in": ended}
            episode = hr.Episode(view, rows[:count], losses[:count], costs[:count], **end, **reason)
            if t % 4 == 3:
                other, _, costs = episode_of(world, hr.Policy.uniform(world), rng)
                episode = hr.Episode(view, other, losses, costs, overridden_from=0, **reason)
            elif t % 11 == 0:
                episode = hr.Episode.missing(view, **reason)
        twin = from_bytes(to_bytes(learner)) if t % 5 == 0 else None
        learner.observe(episode)
        if twin is not None:
            twin.observe(episode)
            assert_same(snapshot(learner), snapshot(twin))
        assert_same(snapshot(learner), snapshot(from_bytes(to_bytes(learner))))
    logged = learner.core.state.logged
    assert logged.truncated > 0
    assert learner.logged["unknown"] > 0
    assert learner.logged["independent"] == sum(learner.declared.values()) > 0
    assert logged.off_policy > logged.truncated


@pytest.mark.parametrize("order", [[1.0] * 30 + [0.01], [0.0] * 30 + [0.99], [0.5, 1.0, 0.25, 0.0] * 8], ids=str)
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_files_whatever_the_order_of_costs_between_0_and_1(order: list[float], scale: float) -> None:
    learner = hr.SVOPS(hr.View(hr.Layout((1, 1), 2), [0.9], ["c"]), 100, 0.05, "sharpest", confidence_scale=scale)
    for cost in order:
        learner.plan()
        learner.observe([0], [0.0], [cost])
        assert_same(snapshot(learner), snapshot(from_bytes(to_bytes(learner))))


@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_older_presets_take_no_notice_of_shared_laws(kind: str, preset: str) -> None:
    learners = [learner_for(kind, knowing(what), preset=preset) for what in ("nothing", "ties")]
    for learner in learners:
        play(learner, TIED, 60)
    assert_same(*(snapshot(learner) for learner in learners))
    assert not learners[1].settings.ties


@pytest.mark.parametrize("preset", ["paper", "sharp", "sharpest"])
@pytest.mark.parametrize("kind", KINDS)
def test_known_transitions_are_an_argument_or_knowledge(kind: str, preset: str) -> None:
    world = random_world(3)
    told = world.with_knowledge({"transitions": world.transitions})
    learners = [
        learner_for(kind, world, preset=preset, transitions=world.transitions),
        learner_for(kind, told, preset=preset),
    ]
    for learner in learners:
        play(learner, world, 50)
        np.testing.assert_array_equal(learner.transitions, world.transitions)
    assert_same(*(snapshot(learner) for learner in learners))
    assert to_bytes(learners[0]) == to_bytes(learners[1])
    if kind != "cv-ops":
        assert learners[0].guarantees() == learners[1].guarantees()


# What is left to estimate ---------------------------------------------------------------------------------------------


def laws_of(world: CMDP) -> tuple[int, int]:
    """How many cost laws there are, and probabilities of transition laws that are not sure, by their values."""
    layout, costs, moves = world.layout, set(), set()
    for row in range(layout.num_rows):
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        costs.add((row < layout.num_actions, *world.mean_costs[:, row].tolist()))
        if own.stop - own.start > 1:
            moves.add((row < layout.num_actions, *world.transitions[own].tolist()))
    return len(costs), sum(len(law) - 1 for law in moves)


def test_shared_laws_are_counted_once_and_met_in_every_step() -> None:
    """Under sharp T L takes the place of T; the numbers of laws are read off the world."""
    world, T, delta = TIED, 400, 0.05
    num_costs, num_triples = laws_of(world)
    assert num_costs == 7  # three states with two actions, and the root
    L = world.layout.steps
    tied = learner_for("sv-ops", world, T, preset="sharp", ties=True).core.sets.rule
    assert tied.tied
    assert tied.box.radii.cost_log == pytest.approx(log(2 * num_costs * T * L / delta))
    assert tied.box.radii.transition_log == pytest.approx(log(num_triples * T * L / delta))
    alone = learner_for("sv-ops", world, T, preset="sharp").core.sets.rule
    assert not alone.tied
    uncertain = int(np.diff(world.layout.row_start)[np.diff(world.layout.row_start) > 1].sum())
    assert alone.box.radii.cost_log == pytest.approx(log(2 * world.layout.num_rows * T / delta))
    assert alone.box.radii.transition_log == pytest.approx(log(uncertain * T / delta))
    kt = learner_for("sv-ops", world, T, preset="sharpest").core.sets.rule
    assert kt.box.radii.cost_log == pytest.approx(log(num_costs / (3 * delta)))
    assert kt.box.radii.transition_log == pytest.approx(log(num_triples / (2 * delta)))


@pytest.mark.parametrize("kind", KINDS)
def test_shared_laws_give_narrower_boxes_and_hold_the_truth(kind: str) -> None:
    world = TIED
    options = options_for(kind, preset="sharpest", confidence_scale=1.0, **NO_EXTRAS)
    learners = [learner_for(kind, knowing(what), **options) for what in ("ties", "nothing")]
    for learner in learners:
        play(learner, world, 200, seed=2)  # one of the many seeds of the clean event
    tied, alone = (learner.core.state.boxes for learner in learners)
    assert np.mean(tied.upper - tied.lower) < np.mean(alone.upper - alone.lower)
    assert np.mean(tied.cost_upper - tied.cost_lower) < np.mean(alone.cost_upper - alone.cost_lower)
    for boxes in (tied, alone):
        assert (boxes.lower <= world.transitions + 1e-12).all()
        assert (boxes.upper >= world.transitions - 1e-12).all()
        assert (boxes.cost_lower <= world.mean_costs.T).all()
        assert (boxes.cost_upper >= world.mean_costs.T).all()


@pytest.mark.parametrize("preset", ["paper", "sharp", "sharpest"])
@pytest.mark.parametrize("kind", KINDS)
def test_known_rows_and_costs_are_points_for_ever(kind: str, preset: str) -> None:
    world = knowing("much")
    known = world.knowledge
    assert known.transitions is not None
    assert known.costs is not None
    learner, told = learner_for(kind, world, preset=preset), ~np.isnan(known.transitions)
    sure = ~np.isnan(known.costs.T)
    assert told.any()
    assert not told.all()
    assert learner.transitions is None  # of all rows
    rng = np.random.default_rng(0)
    for _ in range(60):
        boxes = learner.core.state.boxes
        for bounds in (boxes.lower, boxes.upper):
            np.testing.assert_array_equal(bounds[told], world.transitions[told])
        for bounds in (boxes.cost_lower, boxes.cost_upper):
            np.testing.assert_array_equal(bounds[sure], world.mean_costs.T[sure])
        assert (boxes.xi[sure.all(axis=1)] == 0.0).all()
        learner.observe(*episode_of(world, learner.plan().policy, rng))
    assert (boxes.xi[~sure.any(axis=1)] > 0.0).all()


@pytest.mark.parametrize("preset", ["paper", "sharp", "sharpest"])
def test_what_is_known_is_in_no_union_bound(preset: str) -> None:
    everything = learner_for("sv-ops", random_world(3), preset=preset).core.sets.rule.box.radii
    world = random_world(3)
    known = np.where(world.layout.row_of_triple < 2, world.transitions, np.nan)
    costs = np.where(np.arange(world.layout.num_rows) < 4, world.mean_costs, np.nan)
    told = world.with_knowledge({"transitions": known, "costs": costs})
    radii = learner_for("sv-ops", told, preset=preset).core.sets.rule.box.radii
    size = np.diff(world.layout.row_start)
    triples, rows = int(size[size > 1].sum()), world.layout.num_rows
    fewer = (
        (0.0, 0.0) if preset == "paper" else (log(rows / (rows - 4)), log(triples / (triples - int(size[:2].sum()))))
    )
    assert everything.cost_log - radii.cost_log == pytest.approx(fewer[0])
    assert everything.transition_log - radii.transition_log == pytest.approx(fewer[1])


@pytest.mark.parametrize("preset", ["sharp", "sharpest"])
def test_with_all_known_the_costs_of_a_plan_are_exact(preset: str) -> None:
    world = TIED.with_knowledge({"transitions": TIED.transitions, "costs": TIED.mean_costs})
    learner, rng = learner_for("sv-ops", world, preset=preset), np.random.default_rng(0)
    for _ in range(20):
        plan = learner.plan()
        exact = evaluate(world, plan.policy).costs
        np.testing.assert_allclose(plan.cost_bounds, exact, rtol=1e-12)
        assert (exact <= world.thresholds + 1e-9).all()
        learner.observe(*episode_of(world, plan.policy, rng))


# Ceilings -------------------------------------------------------------------------------------------------------------

CEILING = 2.5


def capped_world() -> CMDP:
    """Two constraints of three steps; only rows of the last two layers cost anything of the first, none of its ends."""
    layout = hr.Layout((1, 2, 2, 1), 2)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, layout.num_rows)
    transitions = np.concatenate([[p[r], 1.0 - p[r]] if r < 6 else [1.0] for r in range(layout.num_rows)])
    costs = np.zeros((2, layout.num_rows))
    costs[0, 2:] = rng.uniform(0.1, 0.6, 8)
    costs[1, 6:] = rng.uniform(0.1, 0.9, 4)
    return hr.CMDP(layout, transitions, hr.costs.BernoulliCosts(costs), [1.25, 1.0], constraint_names=["a", "b"])


@pytest.mark.parametrize("preset", ["paper", "sharp", "sharpest"])
def test_the_first_weight_uses_the_ceiling(preset: str) -> None:
    """alpha = 1.25 of constraint a, of which an episode costs 2 at most; b cannot exceed its threshold 1 at all."""
    world = capped_world()
    told = world.with_knowledge({"max_episode_cost": {"a": 2.0, "b": 1.0}})
    slater = hr.offline.slater(world)
    beta = np.array([0.75, 0.5])
    assert (slater.costs <= beta).all()
    options: dict[str, Any] = {"preset": preset, "baseline": slater.policy, "baseline_costs": beta}
    plain, capped = (hr.SOPS(one.view(), 100, 0.05, **options) for one in (world, told))
    assert plain.first_mixing == pytest.approx(max((3 - 1.25) / (3 - 0.75), (3 - 1) / (3 - 0.5)))
    assert capped.first_mixing == pytest.approx((2 - 1.25) / (2 - 0.75))
    for learner, most in ((plain, [3.0, 3.0]), (capped, [2.0, 1.0])):
        plan = learner.plan()
        assert plan.mixing_weight == pytest.approx(learner.first_mixing)
        assert (plan.cost_bounds <= most).all()
        lam = plan.mixing_weight
        raw = np.minimum(learner.core.state.bounds, most)
        np.testing.assert_allclose(plan.cost_bounds, lam * beta + (1 - lam) * raw)
    assert capped.view.binding.tolist() == [0]
    assert capped.core.state.multipliers.shape == (1,)
    assert plain.core.state.multipliers.shape == (2,)


def test_the_weight_is_the_smallest_safe_one_under_ceilings() -> None:
    rng = np.random.default_rng(0)
    learner = hr.SOPS(capped_world().view(), 100, 0.05, "paper", baseline=np.full(10, 0.5), baseline_costs=[1.0, 0.9])
    for _ in range(300):
        most = rng.uniform(0.5, 3.0, 2)
        alpha = rng.uniform(0.1, 3.0, 2)
        beta = alpha * rng.uniform(0.0, 0.99, 2)
        U = rng.uniform(0.0, 6.0, 2)
        binding = np.flatnonzero(alpha < most)
        baseline = learner.core.baseline.replace(costs=beta, thresholds=alpha, ceilings=most, binding=binding)
        lam = safe_weight(baseline, U)
        costs = np.minimum(U, most)
        assert np.all(lam * np.minimum(beta, most) + (1 - lam) * costs <= alpha)
        if lam > 0.0:
            less = lam - 1e-9
            assert np.any(less * beta[binding] + (1 - less) * costs[binding] > alpha[binding])
            assert lam <= np.max((most - alpha)[binding] / (most - beta)[binding]) + 1e-11


@pytest.mark.parametrize("kind", ["sv-ops", "uob-reps"])
def test_bounds_of_a_plan_are_at_most_the_ceilings(kind: str) -> None:
    told = capped_world().with_knowledge({"max_episode_cost": [2.0, 1.0]})
    assert learner_for(kind, told).plan().cost_bounds.tolist() == [2.0, 1.0]
    assert learner_for(kind, capped_world()).plan().cost_bounds.tolist() == [3.0, 3.0]


def test_a_search_with_nothing_to_be_found_is_refused() -> None:
    told = capped_world().with_thresholds([2.0, 1.0]).with_knowledge({"max_episode_cost": [2.0, 1.0]})
    with pytest.raises(hr.errors.InvalidInput, match="no constraint of this world can be violated"):
        hr.CVOPS(told.view(), 100, 0.05, "paper")
    learner = hr.SVOPS(told.view(), 100, 0.05, "paper")
    assert learner.core.state.multipliers.shape == (0,)
    play(learner, told, 20)


def test_a_ceiling_shortens_the_search() -> None:
    """Costs of an episode in [0, c] concentrate faster: t_bar falls with the ceiling."""
    found = []
    for most in (4.0, 3.0, 1.0):
        costs = np.zeros((1, 8))
        costs[0, 6:] = 0.05
        world = hr.CMDP(hr.Layout((1, 1, 1, 1, 1), 2), np.ones(8), hr.costs.BernoulliCosts(costs), [0.6])
        learner = hr.CVOPS(
            world.with_knowledge({"max_episode_cost": [most]}).view(), 20_000, 0.05, "paper", confidence_scale=0.5
        )
        play(learner, world, 1500)
        found.append(learner.t_bar or 10**9)
    assert found[0] > found[1] > found[2]


# Costs that count -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True], ids=["", "independent costs"])
@pytest.mark.parametrize("reason", [None, "power cut"])
@pytest.mark.parametrize("how", ["aborted", "overridden", "planned"])
def test_costs_of_steps_count_and_others_are_unknown(how: str, reason: str | None, known: bool) -> None:
    """Learners and `Statistics` read the same decision; the ledger says what it rests on."""
    world = random_world(0).with_knowledge({"independent_costs": True} if known else None)
    learner, view = learner_for("sv-ops", world), world.view()
    policy = learner.plan().policy
    rows, losses, costs = episode_of(world, policy, np.random.default_rng(0))
    costs = np.full_like(costs, 0.25)
    n = 2 if how == "aborted" else 3
    end: dict[str, Any] = {"ended_in": int(rows[2]) // 2} if how == "aborted" else {}
    end |= {"overridden_from": 1} if how == "overridden" else {}
    end |= {"independent": reason} if reason and how != "planned" else {}
    episode = hr.Episode(view, rows[:n], losses[:n], costs[:n], **end)
    seen = hr.learners.Statistics(view, 10, 0.05)
    seen.add(episode, policy)
    learner.observe(episode)
    counts = learner.core.state.counts
    moves, paid = np.zeros(world.layout.num_rows), np.zeros(world.layout.num_rows)
    unknown = how != "planned" and not known and not reason
    moves[rows[:n]] = 1
    paid[rows[: 1 if unknown and how == "overridden" else n]] = 1
    np.testing.assert_array_equal(counts.num_visits, moves)
    np.testing.assert_array_equal(counts.num_costs - counts.unknown_costs[:, 0], paid)
    np.testing.assert_array_equal(counts.cost_sums, 0.25 * np.outer(paid, [1, 1]))
    assert counts.unknown_costs.any() == unknown
    np.testing.assert_array_equal(seen.cost_sums, counts.cost_sums)
    np.testing.assert_array_equal(seen.counts.unknown_costs[:, :2], counts.unknown_costs)
    np.testing.assert_array_equal(seen.visits, moves)
    logged, told = learner.logged, " ".join(learner.guarantees().assumptions)
    declared = reason is not None and how != "planned"
    expected = (unknown, how == "aborted", how != "planned")
    assert (logged["unknown"], logged["truncated"], logged["off_policy"]) == expected
    assert ("1 episodes with unknown values" in told) == unknown == (seen.num_unknown == 1)
    assert ("'power cut'" in told) == declared == (logged["independent"] == 1)
    assert learner.guarantees()["regret"].holds != unknown


# Statistics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets", ["source", "paper", "sharp", "sharpest"])
@pytest.mark.parametrize("what", ["nothing", *PIECES])
def test_statistics_know_what_their_view_knows(what: str, sets: str) -> None:
    world, rng = knowing(what), np.random.default_rng(0)
    view, known = world.view(), world.knowledge
    seen = hr.learners.Statistics(view, 100, 0.05, sets)
    for t in range(40):
        rows, losses, costs = episode_of(world, hr.Policy.uniform(world), rng)
        seen.add(hr.Episode(view, rows, losses, costs))
        if t in (0, 1, 10, 39):
            again = hr.learners.Statistics.restored(view, seen.state())
            for name in ("lower", "upper", "cost_lower", "cost_upper", "loss_lower", "loss_upper", "cost_radius"):
                np.testing.assert_array_equal(getattr(seen, name), getattr(again, name), err_msg=name)
    assert seen.counts.num_visits.sum() == 40 * world.layout.steps
    assert (seen.visits[known.same_transitions] > 0).any() if known.same_transitions is not None else True
    if known.transitions is not None:
        sure = ~np.isnan(known.transitions)
        np.testing.assert_array_equal(seen.lower[sure], world.transitions[sure])
        np.testing.assert_array_equal(seen.upper[sure], world.transitions[sure])
        assert (seen.transition_radius[sure] == 0.0).all()
    if known.costs is not None:
        sure = ~np.isnan(known.costs.T)
        np.testing.assert_array_equal(seen.cost_lower[sure], world.mean_costs.T[sure])
        np.testing.assert_array_equal(seen.cost_upper[sure], world.mean_costs.T[sure])
    assert (seen.cost_lower <= world.mean_costs.T).all()
    assert (seen.cost_upper >= world.mean_costs.T).all()


def test_longer_processes_have_no_more_laws() -> None:
    logs = [
        learner_for("sv-ops", process(horizon=h), preset="sharpest").core.sets.rule.box.radii.cost_log for h in (2, 6)
    ]
    assert logs[0] == pytest.approx(logs[1])
