"""What is declared of an environment, and what its table says: knowledge, exact scores, and where words are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from small_envs import Ring

import hedgerow as hr
import hedgerow.gym as hg
from hedgerow.errors import PremiseWarning
from hedgerow.model.occupancy import evaluate

HOLES = {5, 7, 11, 12}
ACTIONS = ["left", "down", "right", "up"]


def fell(state: int, action: int, following: int, reward: float, info: dict[str, Any]) -> float:
    return float(following in HOLES)


def lake(steps: int = 6, limit: float = 0.3, **options: Any) -> hg.GymWorld:
    env = gymnasium.make("FrozenLake-v1", success_rate=0.9)
    given: dict[str, Any] = {"costs_drawn": "step", "action_names": ACTIONS, "scored": "exact", **options}
    return hg.GymWorld(env, steps, (0, 1), {"hole": limit}, fell, **given)


def safely(world: hg.GymWorld, episodes: int, **options: Any) -> Any:
    up = hr.SafePolicy(hr.Policy.of(world, "up"), np.array([0.0]))
    return hr.SOPS(world.view(), episodes, 0.05, "sharpest", baseline=up, **options)


class Uniform:
    """A learner that is not ours: its plans are copied and checked."""

    def __init__(self, view: hr.View) -> None:
        self.view = view

    def plan(self) -> hr.Plan:
        policy = hr.Policy.uniform(self.view)
        return hr.Plan(policy, policy)

    def observe(self, episode: hr.Episode) -> None:
        pass


# Knowledge ------------------------------------------------------------------------------------------------------------


def test_pairs_of_a_stationary_world_share_their_laws_at_all_steps() -> None:
    world = lake(stationary=True)
    known, layout = world.view().knowledge, world.layout
    assert known.same_transitions is not None
    assert known.same_costs is not None
    assert layout.state_labels is not None
    A, last = layout.num_actions, layout.state_start[layout.steps - 1]
    original = [label.partition(", ")[2] for label in layout.state_labels[:-1]]
    for row in range(layout.num_rows):
        first = original.index(original[row // A]) * A + row % A
        assert known.same_costs[row] == first
        if row < last * A and original[row // A] != "ended":  # at the last step nothing is left to share
            assert known.same_transitions[row] == first
    free = hg.GymWorld(world.env, 6, (0, 1), stationary=True, action_names=ACTIONS)  # without constraints
    np.testing.assert_array_equal(free.view().knowledge.same_transitions, known.same_transitions)
    plain = lake().view().knowledge
    assert plain.same_transitions is None
    assert plain.same_costs is None


def test_stationary_is_in_the_ledger_and_is_tested() -> None:
    class Thaw(gymnasium.Wrapper[Any, Any, Any, Any]):
        """From the second step on, another action is carried out: no step is as the first one."""

        def reset(self, **options: Any) -> Any:
            self.time = 0
            return self.env.reset(**options)

        def step(self, action: Any) -> Any:
            self.time += 1
            return self.env.step(action if self.time == 1 else (action + 1) % 4)

    env = Thaw(gymnasium.make("FrozenLake-v1", success_rate=0.9))
    world = hg.GymWorld(
        env, 4, (0, 1), {"hole": 0.9}, fell, costs_drawn="step", stationary=True, support="full", action_names=ACTIONS
    )
    learner = hr.SVOPS(world.view(), 600, 0.05, "sharpest")
    assert any("share" in line for line in learner.guarantees().assumptions)
    with pytest.warns(PremiseWarning, match="rows that are declared to share its law"):
        record = hg.learn(world, learner, 600)
    assert record.ledger is not None
    assert record.ledger["violation"].void_because.startswith("refuted")


def test_root_and_ended_steps_cost_nothing_and_more_may_be_declared() -> None:
    world = hg.GymWorld(Ring(), 4, (0, 8), [2.0, 2.0], lambda *step: (0.0, 0.5 * (step[1] == 3)))
    costs, labels = world.view().knowledge.costs, world.layout.state_labels
    assert costs is not None
    assert labels is not None
    nothing = np.repeat([label == "start" or "ended" in label for label in labels[:-1]], 2)
    np.testing.assert_array_equal(costs == 0.0, np.stack([nothing, nothing]))
    assert np.isnan(costs[:, ~nothing]).all()
    zero = np.zeros((2, 4, 2), dtype=bool)
    zero[0], zero[1, :, 0] = True, True
    options: Any = {"zero_costs": zero, "max_episode_cost": [0.5, 2.0]}
    more = hg.GymWorld(Ring(), 4, (0, 8), [2.0, 2.0], lambda *step: (0.0, 0.5 * (step[1] == 3)), **options)
    found = more.view().knowledge
    assert found.costs is not None
    assert found.max_episode_cost is not None
    assert (found.costs[0] == 0.0).all()
    np.testing.assert_array_equal(found.costs[1] == 0.0, nothing | (np.arange(len(nothing)) % 2 == 0))
    assert found.max_episode_cost.tolist() == [0.5, 2.0]


# The model ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"support": "full"}, {"stationary": True}])
def test_the_model_is_the_unrolled_table(options: dict[str, Any]) -> None:
    world, rng = lake(**options), np.random.default_rng(1)
    P: Any = world.env.unwrapped.P  # type: ignore[attr-defined]
    cost = np.array([[sum(p for p, y, _, _ in P[s][a] if y in HOLES) for a in range(4)] for s in range(16)])
    exact = hg.unroll_gymnasium(world.env, 6, costs=[cost], thresholds=[0.3])
    assert world.model is not None
    assert exact.scale is not None
    for _ in range(3):
        table = rng.dirichlet(np.ones(4), size=(6, 16))
        padded = np.pad(table, ((0, 0), (0, 1), (0, 0)), constant_values=0.25)  # what is done in `ended`
        ours = evaluate(world, world.model.policy(padded), world.model.loss)
        theirs = evaluate(exact, exact.policy(table), exact.loss)
        np.testing.assert_allclose(ours.costs, theirs.costs, atol=1e-12)
        assert world.scale.total_reward(ours.loss) == pytest.approx(exact.scale.total_reward(theirs.loss), abs=1e-12)


def test_the_model_of_an_environment_with_several_starts() -> None:
    env: Any = gymnasium.make("FrozenLake-v1", success_rate=0.9)
    env.unwrapped.initial_state_distrib = np.eye(16)[0] * 0.25 + np.eye(16)[4] * 0.75
    world = hg.GymWorld(env, 3, (0, 1), {"hole": 0.3}, fell, scored="exact")
    assert world.has_root
    assert world.model is not None
    value = evaluate(world, hr.Policy.uniform(world), world.model.loss)
    rng = np.random.default_rng(3)
    falls = np.array([world.play(hr.Policy.uniform(world), rng).costs.sum() for _ in range(3000)])
    assert abs(falls.mean() - value.costs[0]) < 4.0 * falls.std() / np.sqrt(3000)


def test_plans_are_scored_by_the_table_while_episodes_are_played_by_steps() -> None:
    world = lake(stationary=True)
    assert world.model is not None
    uniform = evaluate(world, hr.Policy.uniform(world), world.model.loss)
    for learner in (hr.field.Uniform(world.view(), 300), Uniform(world.view())):
        record = hg.learn(world, learner, 300)
        run = record.run
        assert record.scored == run.scored == "exact"
        assert int(run.unsafe[-1]) == 300 * (uniform.costs[0] > 0.3)
        np.testing.assert_allclose(run.costs[:, 0], run.episodes * uniform.costs[0])
        np.testing.assert_allclose(run.loss, run.episodes * uniform.loss)
        best = hr.offline.optimum(world, world.model.loss)
        np.testing.assert_allclose(run.regret_so_far, run.episodes * (uniform.loss - best.value), atol=1e-6)
        # What was observed is a sample of it.
        assert run["observed_reward"][-1] == pytest.approx(record.rewards.sum())
        assert abs(record.costs.mean() - uniform.costs[0]) < 4.0 * record.costs.std() / np.sqrt(300)


def test_exact_scores_change_nothing_of_what_is_learnt() -> None:
    records = [hg.learn(world, safely(world, 60), 60) for world in (lake(), lake(scored="sampled"))]
    np.testing.assert_array_equal(records[0].losses, records[1].losses)
    np.testing.assert_array_equal(records[0].costs, records[1].costs)
    assert np.isnan(records[1].run.regret).all()


def test_frozen_lake_is_safe_in_every_episode_with_its_guarantee_intact() -> None:
    world = lake(8, 0.2, stationary=True, max_episode_cost={"hole": 1})
    record = hg.learn(world, safely(world, 400), 400)
    assert record.ledger is not None
    assert record.ledger["safety"].holds
    assert int(record.run.unsafe[-1]) == 0
    assert bool(record.run.safe[-1])
    assert float(record.run.costs[-1, 0]) > 0.0  # it does not only stay with its baseline
    unsafe = hg.learn(world, hr.SVOPS(world.view(), 400, 0.05, "sharpest"), 400)
    assert int(unsafe.run.unsafe[-1]) > 300
    assert "episodes over a threshold: 0, exact" in repr(record)


def test_what_needs_a_model_works_with_one_and_says_so_without() -> None:
    world = lake()
    assert world.model is not None
    assert float(hr.offline.slater(world).margin) == pytest.approx(0.3)  # in the top row there is no hole
    with pytest.raises(hr.errors.InvalidInput, match=r"GymWorld has only its steps.*scored='exact'"):
        hr.offline.slater(lake(scored="sampled"))


REFUSED = {
    "needs a table env.unwrapped.P": lambda: hg.GymWorld(Ring(), 3, (0, 8), scored="exact"),
    "table has numbers outside their range": lambda: hg.GymWorld(
        gymnasium.make("CliffWalking-v1"), 3, (-1, 0), scored="exact"
    ),
    "has no 'cost'": lambda: hg.GymWorld(gymnasium.make("FrozenLake-v1"), 3, (0, 1), [0.5], scored="exact"),
    "scored is 'exactly'": lambda: lake(scored="exactly"),
    "stationary is True or False, not 1": lambda: lake(stationary=1),
    r"zero_costs are True or False.*\(16, 4\)": lambda: lake(zero_costs=np.zeros((16, 4))),
    "other transitions than the support": lambda: lake(support=np.ones((16, 4, 17)) * (np.arange(17) != 1)),
    "the most that an episode costs": lambda: lake(max_episode_cost=[-1.0]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused_declarations(words: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=words):
        REFUSED[words]()


# Records --------------------------------------------------------------------------------------------------------------


def test_a_record_is_drawn_tabled_and_reported_as_a_run_is(tmp_path: Path) -> None:
    world = lake(scored="sampled")
    record = hg.learn(world, safely(world, 450), 450)
    assert len(record.run.episodes) == 200  # blocks, not logarithmic
    frame = record.to_pandas()
    assert list(frame.columns) == ["episode", "reward", "loss", "hole"]
    np.testing.assert_array_equal(frame["hole"], record.costs[:, 0])
    assert record.plot("reward").layout.title.text == "Reward"
    assert record.plot("hole").layout.title.text == "Cost: hole"
    assert record.plot().layout.title.text == "Overview"
    assert record.plot().layout.title.subtitle.text == "FrozenLake-v1, its own rewards, 450 episodes"
    page = record.report(tmp_path / "record.html").read_text(encoding="utf-8")
    assert "reward observed" in page
    assert "loss observed" not in page
    assert "s-ops (sharpest)" in page
    assert "Mean cost of the episodes between two checkpoints, as observed." in page
    with pytest.raises(hr.errors.InvalidInput, match="no figure 'regret'"):
        record.plot("regret")


def test_records_of_several_learners_come_together(tmp_path: Path) -> None:
    world = lake(stationary=True)
    records = {
        "safe": hg.learn(world, safely(world, 50), 50),
        "careless": hg.learn(world, hr.field.Uniform(world.view(), 50), 50),
    }
    results = hg.together(records, "a lake")
    assert [group.learner for group in results.groups] == ["safe", "careless"]
    assert {trace.name for trace in results.plot("cost-0").data} == {"safe", "careless"}
    assert "expected, by the table of the environment" in hr.report(results, tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(hr.errors.InvalidInput, match="at least one entry"):
        hg.together({})
    with pytest.raises(hr.errors.InvalidInput, match="differ in episodes"):
        hg.together(records | {"short": hg.learn(world, hr.field.Uniform(world.view(), 10), 10)})


def test_a_record_is_what_simulate_plays() -> None:
    world = lake(scored="sampled")
    record = hg.learn(world, safely(world, 40), 40, seed=3)
    run = record.run
    assert run["observed_loss"][-1] == pytest.approx(record.losses.sum())
    assert run["observed_cost_0"][-1] == pytest.approx(record.costs.sum())
    np.testing.assert_allclose(np.diff(run["observed_reward"], prepend=0.0), record.rewards, atol=1e-9)
    with pytest.raises(hr.errors.InvalidInput, match="learn plays a GymWorld"):
        hg.learn(hr.worlds.make("lower-bound-1"), safely(world, 40), 40)  # type: ignore[arg-type]
