"""One layer of sets for everybody: the vocabulary, the bounds of `Statistics`, and LP learners with sets="sharpest"."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_worlds import TIED, knowing
from learner_cases import assert_same, random_world, scores
from lp_cases import roomy_world

import hedgerow as hr
from hedgerow.confidence.anchored import anchored_bounds, make_anchored_scratch
from hedgerow.confidence.kl import kt_interval
from hedgerow.errors import InvalidInput
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.kernels import safe_weight
from hedgerow.model.occupancy import occupancy, row_occupancy

SHARPEST: dict[str, tuple[type[LPLearner], dict[str, Any]]] = {
    "s-lp": (hr.field.SLP, {}),
    "s-lp epoch": (hr.field.SLP, {"replan": "epoch"}),
    "dope": (hr.field.DOPE, {"warmup": 0}),
    "dope-plus": (hr.field.DOPEPlus, {}),
    "opt-pess-lp": (hr.field.OptPessLP, {}),
    "opt-cmdp": (hr.field.OptCMDP, {}),
    "opt-cmdp bonus": (hr.field.OptCMDP, {"optimism": "bonus"}),
    "safe-etc": (hr.field.SafeETC, {}),
}
MUCH = knowing("much")


def built(name: str, world: hr.CMDP, episodes: int, delta: float = 0.05, seed: int = 0) -> LPLearner:
    cls, options = SHARPEST[name]
    if cls.inputs.baseline:
        options = {**options, "baseline": hr.offline.slater(world)}
    return cls(world.view(), episodes, delta, seed, sets="sharpest", **options)


def true_costs(world: hr.CMDP, policy: np.ndarray) -> np.ndarray:
    masses = row_occupancy(world.layout, occupancy(world.layout, world.transitions, policy))
    costs: np.ndarray = world.mean_costs @ masses
    return costs


def played(world: hr.CMDP, episodes: int, seed: int = 0, **options: Any) -> tuple[hr.learners.Statistics, hr.Policy]:
    """Statistics after episodes of one policy, which prefers the first action."""
    rng, A = np.random.default_rng(seed), world.layout.num_actions
    chances = np.full(world.layout.num_rows, 0.2 / max(1, A - 1))
    chances[::A] = 0.8 if A > 1 else 1.0
    policy, loss = hr.Policy(world.layout, chances), rng.random(world.layout.num_rows)
    seen = hr.learners.Statistics(world.view(), None, 0.05, "sharpest", **options)
    for _ in range(episodes):
        seen.add(world.play(policy, rng, loss), policy)
    return seen, policy


# The vocabulary ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("former", "word"), [("hedgerow", "sharp"), ("tight", "sharp"), ("kt", "sharpest"), (7, "sharp")]
)
def test_radii_are_refused_and_the_new_word_is_said(former: Any, word: str) -> None:
    view, safest = TIED.view(), hr.offline.slater(TIED)
    for build in (
        lambda: hr.learners.Statistics(view, 10, 0.05, radii=former),  # type: ignore[call-arg]
        lambda: hr.field.DOPE(view, 10, 0.05, baseline=safest, radii=former),  # type: ignore[call-arg]
    ):
        with pytest.raises(InvalidInput, match=f"is now sets = '{word}'"):
            build()


def test_former_names_of_sets_are_explained() -> None:
    with pytest.raises(InvalidInput, match="what was radii='tight' is sets='sharp'"):
        hr.learners.Statistics(TIED.view(), 10, 0.05, "tight")
    with pytest.raises(InvalidInput, match="the sets are 'sharpest'; choose one of source, paper, sharp"):
        hr.field.OPSEDP(TIED.view(), 10, 0.05, baseline=hr.offline.slater(TIED), sets="sharpest")


def test_sets_are_a_switch_of_our_learners_beside_the_preset() -> None:
    view, safest = TIED.view(), hr.offline.slater(TIED)
    best, mixed = (
        hr.SOPS(view, 10, 0.01, preset, baseline=safest, sets="sharpest") for preset in ("sharpest", "sharp")
    )
    assert mixed.settings.choice == best.settings.choice == hr.SOPS(view, 10, baseline=safest).settings.choice
    plain = hr.SOPS(view, 10, 0.01, "sharpest", baseline=safest, sets="paper", ties=True)
    assert (plain.settings.radii, plain.settings.clip_costs, plain.settings.aggregate) == ("paper", False, False)
    assert plain.settings.ties  # single switches come after the group
    assert copy.copy(plain).settings == plain.settings
    with pytest.raises(InvalidInput, match="the sets are 'source'; choose one of paper, sharp, sharpest"):
        hr.SOPS(view, 10, baseline=safest, sets="source")  # type: ignore[arg-type]


# Statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["nothing", "ties", "much"])
def test_bounds_of_a_pool_are_those_of_its_policies_and_above_the_truth(what: str) -> None:
    world = knowing(what)
    seen, policy = played(world, 300)
    pool = [policy, *(hr.Policy(world.layout, each) for each in random_policies(world, 20))]
    found = seen.bounds(pool)
    assert found.values.shape == found.by.shape == (21, 1)
    again = seen.bounds(np.array([each.probabilities for each in pool]))
    np.testing.assert_array_equal(found.values, again.values)
    for k, each in enumerate(pool):
        one = seen.bound(each)
        assert (one.values.tolist(), one.by.tolist()) == (found.values[k].tolist(), found.by[k].tolist())
        assert np.all(one.values <= np.minimum(seen.robust_cost(each), world.view().ceilings) + 1e-12)
        assert np.all(one.values >= true_costs(world, each.probabilities))
        if one.by[0] == "box":
            np.testing.assert_allclose(one.values, seen.robust_cost(each), rtol=1e-12)


def random_policies(world: hr.CMDP, count: int) -> np.ndarray:
    rng, A = np.random.default_rng(5), world.layout.num_actions
    return rng.dirichlet(np.full(A, 0.3), (count, world.layout.num_rows // A)).reshape(count, -1)


def test_the_certificate_knows_the_policy_that_was_played() -> None:
    """Long enough, the sum over its episodes bounds a policy better than the boxes do; not without `own` episodes."""
    world = random_world(3, (1, 3, 3, 1), 2, 1)
    seen, policy = played(world, 3000)
    best = seen.bound(policy)
    assert best.by.tolist() == ["certificate"]
    assert seen.robust_cost(policy)[0] > best.values[0] >= true_costs(world, policy.probabilities)[0]
    # The first line of U_agg alone, from the sums of the oldest generation: SX / n + what the centres differ by.
    sums, slot = seen.layer.aggregate, int(np.argmax(seen.layer.aggregate.episodes))
    assert sums.numbers.own == 3000
    assert sums.episodes[slot] < 3000  # generations start after some episodes
    other, _ = played(world, 3000, bounded=False)
    assert other.bound(policy).by.tolist() == ["box"]
    rng, loss = np.random.default_rng(0), np.zeros(world.layout.num_rows)
    seen.add(world.play(policy, rng, loss), policy, own=False)
    seen.add(world.play(policy, rng, loss))
    assert sums.numbers.own == 3000
    with pytest.raises(InvalidInput, match="together with the policy"):
        seen.add(world.play(policy, rng, loss), own=True)


def test_a_baseline_lowers_bounds_to_the_formula_and_its_reason_is_said() -> None:
    """With a baseline a bound is the smaller of the former one and beta + D(x_0), which `test_anchored.py` checks."""
    world = roomy_world(1)
    seen, policy = played(world, 40)
    safe = hr.offline.slater(world)
    pool = np.array([*random_policies(world, 12), policy.probabilities, safe.policy])
    plain, found = seen.bounds(pool), seen.bounds(pool, baseline=safe)
    anchored = np.full(plain.values.shape, np.inf)
    scratch = make_anchored_scratch(world.layout)
    for k, each in enumerate(pool):
        scratch.columns.kept[0] = 0
        base, beta = np.array(safe.policy), np.array(safe.costs)
        anchored_bounds(seen.layer.index, each.copy(), base, seen.boxes, beta, scratch, anchored[k])
    np.testing.assert_array_equal(found.values, np.minimum(plain.values, anchored))
    np.testing.assert_array_equal(found.by == "anchored", anchored < plain.values)
    assert np.any(found.by == "anchored")
    np.testing.assert_allclose(found.values[-1], safe.costs)
    assert np.all(found.values >= [true_costs(world, each) for each in pool] - np.float64(1e-12))
    assert seen.bounds(pool).values.tolist() == plain.values.tolist()  # nothing is kept of it


def test_wrong_baselines_of_bounds_are_refused() -> None:
    seen, policy = played(TIED, 3)
    for given, words in (
        ({"baseline": policy}, "costs of the baseline are missing"),
        ({"baseline_costs": [0.1]}, "no baseline"),
        ({"baseline": policy, "baseline_costs": [99.0]}, "baseline cost"),
        ({"baseline": policy, "baseline_costs": [np.nan]}, "baseline cost"),
        ({"baseline": [0.5], "baseline_costs": [0.0]}, "shape"),
    ):
        with pytest.raises(InvalidInput, match=words):
            seen.bound(policy, **given)


def test_the_loss_shares_no_law_with_the_costs() -> None:
    """Rows that share the law of their costs keep their own means and intervals of the loss."""
    world, T = TIED, 200
    rng, loss = np.random.default_rng(1), np.linspace(0.0, 1.0, TIED.layout.num_rows)
    seen, policy = hr.learners.Statistics(world, T, 0.05, "sharpest"), hr.Policy.uniform(world)
    visits = np.zeros(world.layout.num_rows, dtype=int)
    for _ in range(T):
        episode = world.play(policy, rng, loss)
        visits[episode.rows] += 1
        seen.add(episode, policy)
    met = visits > 0
    np.testing.assert_allclose(seen.mean_loss[met], loss[met])
    assert np.all((seen.loss_lower <= loss) & (loss <= seen.loss_upper))
    share = 0.1 * 3.0 * 0.05 / world.layout.num_rows
    lower, upper = kt_interval(visits[met], (visits * loss)[met], np.log(1.0 / share))
    # They may be older than the counts by 2 %, and are intersections of all so far.
    assert np.all(seen.loss_lower[met] <= lower + 0.05)
    assert np.all(seen.loss_upper[met] >= upper - 0.05)
    shared = world.knowledge.same_costs
    assert shared is not None
    np.testing.assert_array_equal(seen.mean_costs, seen.mean_costs[shared])


def test_a_log_is_counted_once_and_not_for_the_certificate() -> None:
    world = TIED
    log = hr.Log.played(world, hr.Policy.uniform(world), 50, seed=1)
    seen, policy = played(world, 30)
    own = seen.layer.aggregate.numbers.own
    before = seen.counts.num_visits.sum()
    seen.absorb(log)
    assert seen.counts.num_visits.sum() == before + 50 * world.layout.steps
    assert seen.layer.aggregate.numbers.own == own
    with pytest.raises(InvalidInput, match="was absorbed before"):
        seen.absorb(log)
    again = hr.learners.Statistics.restored(world.view(), seen.state())
    assert again.bound(policy).values.tolist() == seen.bound(policy).values.tolist()
    with pytest.raises(InvalidInput, match="use sets='sharpest'"):
        hr.learners.Statistics(world, 10).absorb(log)


def test_wrong_pools_are_refused() -> None:
    seen, _ = played(TIED, 3)
    table = random_policies(TIED, 3)
    table[1, 0] += 0.5
    for wrong, words in ((table, "policy 1 of the array"), (table[:, :-1], "shape"), (-table, "policy 0 of the array")):
        with pytest.raises(InvalidInput, match=words):
            seen.bounds(wrong)
    assert seen.bounds([]).values.shape == (0, 1)


# LP learners ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["tied", "much", "wide"])
@pytest.mark.parametrize("name", SHARPEST)
def test_both_ways_and_files_have_the_same_bits(name: str, world: str, tmp_path: Path) -> None:
    cmdp = {"tied": TIED, "much": MUCH, "wide": random_world(2, (1, 7, 7, 1), 2, 2)}[world]
    losses = hr.losses.Switching(period=5, seed=1)
    learners = [built(name, cmdp, 120, seed=3) for _ in range(3)]
    runs = [
        hr.simulate(cmdp, each, losses, seed=7, progress=False, step_wise=step_wise, marks="all")
        for each, step_wise in zip(learners[:2], (False, True), strict=True)
    ]
    assert_same(*map(scores, runs))
    hr.simulate(cmdp, learners[2], losses, seed=7, progress=False, episodes=60)
    hr.save(learners[2], tmp_path / "learner")
    rest = [
        hr.simulate(cmdp, each, losses, seed=9, progress=False)
        for each in (hr.load(tmp_path / "learner"), copy.copy(learners[2]))
    ]
    assert_same(*map(scores, rest))


@pytest.mark.parametrize("name", [name for name, (cls, _) in SHARPEST.items() if cls.inputs.baseline])
def test_no_unsafe_episode_where_safety_is_promised(name: str) -> None:
    left = 0
    for seed, world in enumerate((roomy_world(0), roomy_world(1, 3), TIED, MUCH)):
        for losses in (hr.losses.Pursuit(), hr.losses.Switching(period=5, seed=1)):
            learner = built(name, world, 1500, 0.15, seed)
            run = hr.simulate(world, learner, losses, seed=seed, progress=False, marks="all")
            assert run.facts["refuted_safety"] == 0
            assert not np.any(run["clean_now"] & (np.diff(run.unsafe, prepend=0) > 0))
            left += np.sum(run["mixing_weight"] < 1.0)
        promised = learner.guarantees()
        assert promised["safety"].probability == promised["confidence"].probability == pytest.approx(0.25)
    assert left > 0


def test_s_lp_mixes_by_the_bounds_that_statistics_give() -> None:
    """A learner of one's own on `Statistics` has the bounds of S-LP, and its weight of the baseline."""
    world, loss = TIED, np.random.default_rng(0).random(TIED.layout.num_rows)
    learner, rng = built("s-lp", world, 400), np.random.default_rng(4)
    seen = hr.learners.Statistics(world.view(), 400, 0.05, "sharpest")
    for _ in range(400):
        plan = learner.plan()
        own, policy = learner.progress.branch == 0, learner.played_array()
        episode = world.play(hr.Policy(world.layout, policy), rng, loss)
        learner.observe(episode)
        seen.add(episode, hr.Policy(world.layout, policy), own=own)
        assert safe_weight(learner.baselines, seen.bound(learner.policy).values.copy()) == learner.reals.mixing
    assert plan.mixing_weight < 1.0


def test_pessimistic_tables_are_ends_of_intervals_and_half_widths() -> None:
    world, T = random_world(2, (1, 3, 3, 1), 2, 2), 300
    learner = built("dope", world, T)
    hr.simulate(world, learner, np.full(world.layout.num_rows, 0.5), seed=0, progress=False)
    seen, layout = learner.statistics, world.layout
    half = np.minimum(1.0, 0.5 * np.add.reduceat(seen.upper - seen.lower, layout.row_start[:-1]))
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    expected = seen.cost_upper + ((layout.steps - layer - 1) * half)[:, None]
    np.testing.assert_allclose(learner.core.problem.costs, expected, rtol=1e-12)
    far = [
        np.maximum(seen.cost_upper[:, i] - seen.mean_costs[:, i], seen.mean_costs[:, i] - seen.cost_lower[:, i])
        for i in range(2)
    ]
    radius = np.max([*far, np.maximum(seen.loss_upper - seen.mean_loss, seen.mean_loss - seen.loss_lower)], axis=0)
    L, gap = layout.steps, learner.margin
    bonus = 3 * L / gap * radius + L**2 / gap * half
    np.testing.assert_allclose(learner.core.problem.loss, seen.mean_loss - bonus, rtol=1e-9)
