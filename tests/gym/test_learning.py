"""Learning by `env.step`: layers, starts, ends, offsets, clippings; samples agree with exact values of a table."""

from __future__ import annotations

import contextlib
import runpy
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from greedy import Greedy
from gymnasium.envs.toy_text.taxi import TaxiEnv
from small_envs import Ring, costly_world

import hedgerow as hr
import hedgerow.gym as hg
from hedgerow.model.occupancy import evaluate

EXAMPLES = sorted((Path(__file__).resolve().parent.parent.parent / "examples").glob("*.py"))
HOLES = {5, 7, 11, 12}


def fell(state: int, action: int, following: int, reward: float, info: dict[str, Any]) -> float:
    return float(following in HOLES)


def frozen_lake(steps: int = 8, **options: Any) -> hg.GymWorld:
    return hg.GymWorld(gymnasium.make("FrozenLake-v1", is_slippery=True), steps, (0, 1), {"hole": 0.3}, fell, **options)


def ring(
    steps: int = 4, thresholds: Any = (2.0,), rewards: tuple[float, float] = (0, 8), **options: Any
) -> hg.GymWorld:
    of_env = {name: options.pop(name) for name in ("limit", "reward", "cost") if name in options}
    return hg.GymWorld(Ring(**of_env), steps, rewards, thresholds, **options)


def play_some(world: hg.GymWorld) -> None:
    for seed in range(20):
        world.play(hr.Policy.uniform(world.view()), np.random.default_rng(seed))


class Recording(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes down what was done to an environment and what came back."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.log: list[tuple[Any, ...]] = []

    def reset(self, **options: Any) -> Any:
        observation, info = self.env.reset(**options)
        self.log = [(observation,)]
        return observation, info

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.log.append((action, *result))
        return result


def test_layers_of_an_environment_with_random_starts_and_offsets() -> None:
    world = ring()
    layout = world.view().layout
    assert world.has_root
    assert layout.layer_sizes == (1, 4, 5, 5, 5, 1)  # root, then four states, then with `ended`
    assert layout.num_actions == 2
    assert layout.state_labels is not None
    assert layout.state_labels[:2] == ("start", "(0, 0)")
    one = ring(starts=[6])
    assert not one.has_root
    assert one.view().layout.layer_sizes == (1, 5, 5, 5, 1)


def test_an_episode_is_what_the_environment_did() -> None:
    env = Recording(Ring())
    world = hg.GymWorld(env, 4, (0, 8), [2.0])
    layout, rng, early = world.view().layout, np.random.default_rng(3), 0
    for _ in range(30):
        episode = world.play(hr.Policy.uniform(world.view()), rng)
        labels = [layout.state_labels[row // 2] for row in episode.rows]  # type: ignore[index]
        states = [env.log[0][0], *(entry[1] for entry in env.log[1:])]
        num_taken = len(env.log) - 1
        early += num_taken < 4
        assert labels[0] == "start"
        assert labels[1 : num_taken + 1] == [f"({k}, {s - 5})" for k, s in enumerate(states[:num_taken])]
        assert labels[num_taken + 1 :] == [f"({k}, ended)" for k in range(num_taken, 4)]
        actions = (episode.rows % 2)[1 : num_taken + 1] + 2
        assert actions.tolist() == [entry[0] for entry in env.log[1:]]
        assert episode.losses[0] == 0.0
        np.testing.assert_allclose(episode.losses[1 : num_taken + 1], [(8 - s) / 8 for s in states[:num_taken]])
        assert (episode.losses[num_taken + 1 :] == 1.0).all()  # reward 0 in the range (0, 8)
        np.testing.assert_array_equal(episode.costs[1 : num_taken + 1, 0], 0.5 * (actions == 3))
        assert (episode.costs[num_taken + 1 :] == 0.0).all()
        assert world.scale.total_reward(episode.losses.sum()) == pytest.approx(sum(entry[2] for entry in env.log[1:]))
    assert early > 3
    assert (world.clipped_rewards, world.clipped_costs) == (0, 0)


def test_what_is_truncated_has_ended() -> None:
    world = ring(limit=2, starts=[5, 6, 7, 8])
    episode = world.play(hr.Policy.uniform(world.view()), np.random.default_rng(0))
    assert [world.view().layout.state_name(int(row) // 2) for row in episode.rows[3:]] == [
        "'(2, ended)'",
        "'(3, ended)'",
    ]


def test_the_support_comes_from_the_table() -> None:
    known, full = frozen_lake(), frozen_lake(support="full")
    assert known.view().layout.layer_sizes[:3] == (1, 3, 6)
    assert full.view().layout.layer_sizes[:3] == (1, 17, 17)
    # In 15, the goal, and in the holes the table stays there, terminated: nobody is ever in them.
    assert not any(label.endswith(", 5)") for label in known.view().layout.state_labels or ())
    own = np.zeros((4, 2, 5), dtype=bool)
    own[[0, 1, 2], 0, [1, 2, 3]] = own[3, 0, 4] = True
    own[range(4), 1, range(4)] = True
    assert ring(support=own, starts=[5]).view().layout.layer_sizes == (1, 2, 3, 4, 1)
    stated = ring(support=own)
    play_some(stated)
    own[2, 1] = [False, False, False, True, False]  # staying in 7 leads to 8
    with pytest.raises(hr.errors.InvalidInput, match="no path"):
        play_some(ring(support=own))


def test_samples_agree_with_the_exact_values_of_the_table() -> None:
    """The uniform policy on FrozenLake: means of samples against the unrolled table, which no step has touched."""
    steps, count, rng = 8, 3000, np.random.default_rng(5)
    world = frozen_lake(steps)
    episodes = [world.play(hr.Policy.uniform(world.view()), rng) for _ in range(count)]
    P = world.env.unwrapped.P  # type: ignore[attr-defined]
    cost = np.array([[sum(p for p, y, _, _ in P[s][a] if y in HOLES) for a in range(4)] for s in range(16)])
    exact = hg.unroll_gymnasium(P, steps, 0, costs=[cost], thresholds=[0.3])
    value = evaluate(exact.cmdp, hr.Policy.uniform(exact.cmdp), exact.loss)
    assert exact.scale is not None
    samples = np.array([[world.scale.total_reward(e.losses.sum()), e.costs.sum()] for e in episodes])
    expected = np.array([exact.scale.total_reward(value.loss), value.costs[0]])
    assert (np.abs(samples.mean(axis=0) - expected) < 4.5 * samples.std(axis=0) / np.sqrt(count)).all()
    assert expected[1] > 0.3


def test_our_own_environments_come_back_as_their_own_layers() -> None:
    cmdp, loss = costly_world()
    world = hg.GymWorld(hg.CMDPEnv(cmdp, loss), 3, (-1, 0), cmdp.thresholds)
    assert world.view().layout == cmdp.layout
    with pytest.raises(hr.errors.InvalidInput, match="another layout: its states are without labels"):
        world.play(hr.Policy.uniform(cmdp), np.random.default_rng(0))
    episode = world.play(hr.Policy.uniform(world.view()), np.random.default_rng(0))
    np.testing.assert_allclose(episode.losses, loss[episode.rows])
    np.testing.assert_array_equal(episode.costs, cmdp.mean_costs[:, episode.rows].T)


@pytest.mark.parametrize("reward", [-1.0, 9.0])
def test_rewards_outside_the_range_are_clipped_and_counted(reward: float) -> None:
    world = ring(reward=reward, starts=[5, 6, 7, 8])
    assert world.void_because == ""
    with pytest.warns(hg.ClippedWarning, match=f"a reward of {reward:g} was clipped") as said:
        episode = world.play(hr.Policy.uniform(world.view()), np.random.default_rng(1))
    assert len(said) == 1
    taken = sum("ended" not in world.view().layout.state_name(int(row) // 2) for row in episode.rows[1:])
    assert world.clipped_rewards == taken
    assert world.void_because == f"{taken} rewards were clipped: what was learnt is another problem"
    assert (episode.losses[1 : 1 + taken] == (1.0 if reward < 0 else 0.0)).all()


def test_costs_outside_the_range_are_clipped_and_counted() -> None:
    world = ring(thresholds={"high": 1.0, "low": 1.0, "fine": 1.0}, cost=[1.5, -0.5, 0.25])
    assert world.view().constraint_names == ("high", "low", "fine")
    with pytest.warns(hg.ClippedWarning, match=r"a cost of 1\.5 was clipped: costs lie in") as said:
        record = hg.learn(world, Greedy(world.view(), 5, 0.1), 5)
    assert len(said) == 1
    assert record.ledger is None
    assert record.clipped_costs == world.clipped_costs > 0
    assert record.clipped_costs % 2 == 0
    np.testing.assert_allclose(record.costs[:, 0], 4.0 * record.costs[:, 2])
    assert (record.costs[:, 1] == 0.0).all()


def test_the_range_includes_the_zero_of_ended_steps() -> None:
    world = hg.GymWorld(gymnasium.make("CliffWalking-v1"), 5, (-100, -1))
    assert (world.scale.best, world.scale.width) == (0.0, 100.0)


@pytest.mark.filterwarnings("ignore::hedgerow.learners.guarantees.PremiseWarning")  # it is told too little
@pytest.mark.parametrize("kind", ["greedy", "sv-ops", "s-ops"])
def test_equal_seeds_give_equal_records(kind: str) -> None:
    records = []
    for seed in (0, 0, 1):
        world = frozen_lake(6)
        view = world.view()
        learner: Any = {
            "greedy": lambda view=view: Greedy(view, 40, 0.1),
            "sv-ops": lambda view=view: hr.SVOPS(view, 40, 0.1, "paper"),
            "s-ops": lambda view=view: hr.SOPS(
                view, 40, 0.1, "paper", baseline=hr.Policy.uniform(view).probabilities, baseline_costs=[0.0]
            ),
        }[kind]()
        records.append(hg.learn(world, learner, 40, seed=seed))
    np.testing.assert_array_equal(records[0].losses, records[1].losses)
    np.testing.assert_array_equal(records[0].costs, records[1].costs)
    assert (records[0].costs != records[2].costs).any()
    assert records[0].scored == "sampled"
    assert not hasattr(records[0], "regret")
    assert "hole" in repr(records[0])


def test_simulate_takes_it_as_an_environment() -> None:
    world = frozen_lake(6)
    run = hr.simulate(world, hr.SVOPS(world.view(), 40, 0.1, "paper"), progress=False)
    assert isinstance(world, hr.Environment)
    assert run.scored == "sampled"
    assert np.isnan(run.regret).all()


def test_a_run_in_which_something_was_clipped_promises_no_safety() -> None:
    for clips, holds in (({}, True), ({"cost": 1.5}, False), ({"reward": 9.0}, False)):
        world = ring(starts=[5, 6, 7, 8], **clips)
        safe = hr.SafePolicy(hr.Policy.uniform(world.view()), [1.9])
        learner = hr.SOPS(world.view(), 3, 0.01, "paper", baseline=safe)
        with contextlib.nullcontext() if holds else pytest.warns(hg.ClippedWarning):
            ledger = hr.simulate(world, learner, progress=False).guarantees()
        assert ledger is not None
        assert ledger["safety"].holds == holds
        assert ledger["confidence"].holds
        if not holds:
            assert "were clipped: what was learnt is another problem" in ledger["safety"].void_because


def test_who_does_not_say_how_costs_are_drawn_has_no_certificate() -> None:
    """A cost function sees the next state, so nothing may be taken for granted; a declaration turns it on."""
    for said, drawn, slots in (({}, "unknown", 0), ({"costs_drawn": "step"}, "step", 8)):
        world = ring(starts=[5], **said)
        assert world.view().knowledge.costs_drawn == drawn
        learner = hr.SOPS(
            world.view(), 3, 0.01, "sharpest", baseline=hr.Policy.uniform(world.view()), baseline_costs=[1]
        )
        assert len(learner.core.state.aggregate.generation) == slots
        assert bool(learner.core.sets.rule.aggregate.per_step) == (drawn == "step")


def test_cliff_walking_is_learnt_within_the_constraint() -> None:
    """Deterministic moves: with the support, all there is to learn are losses and costs."""

    def off_the_cliff(state: int, action: int, following: int, reward: float, info: dict[str, Any]) -> float:
        return float(reward == -100)

    world = hg.GymWorld(gymnasium.make("CliffWalking-v1"), 15, (-1, 0), {"fallen": 0.2}, off_the_cliff)
    learner = hr.SVOPS(world.view(), 1500, 0.05, "sharp", confidence_scale=0.05)
    with pytest.warns(hg.ClippedWarning, match="a reward of -100 was clipped"):
        record = hg.learn(world, learner, 1500)
    assert record.ledger is not None
    assert "rewards were clipped" in record.ledger["violation"].void_because
    assert record.ledger["confidence"].void_because == learner.guarantees()["confidence"].void_because
    assert record.costs[:100].mean() > 0.4
    assert record.costs[-500:].mean() < 0.3
    assert record.clipped_rewards == record.costs.sum()  # a fall earns -100


def test_taxi_starts_anywhere() -> None:
    """500 states, 300 of which an episode may start in; a sparse table."""
    world = hg.GymWorld(TaxiEnv(), 5, (-10, 20))
    assert world.view().layout.layer_sizes[:2] == (1, 300)
    record = hg.learn(world, Greedy(world.view(), 3, 0.1), 3)
    assert record.costs.shape == (3, 0)
    assert (record.rewards <= 20).all()


class Numbered(Ring):
    observation_space = gymnasium.spaces.Discrete(100_000)


class Tabled(Ring):
    P = {5: {2: [(1.0, 6)]}}  # noqa: RUF012 - as Gymnasium has it


REFUSED = {
    "more than 50000000": lambda: hg.GymWorld(Numbered(), 3, (0, 1)),
    "is no table of": lambda: hg.GymWorld(Tabled(), 3, (0, 1)),
    "Discrete": lambda: hg.GymWorld(gymnasium.make("CartPole-v1"), 5, (0, 1)),
    "truncated after 100 steps": lambda: frozen_lake(101),
    "first must be the smaller": lambda: ring(rewards=(1, 0)),
    "rewards is": lambda: ring(rewards=3),  # type: ignore[arg-type]
    "choose 'auto', 'known', 'full'": lambda: ring(support="some"),
    "needs a table": lambda: ring(support="known"),
    r"expected \(S, A, S \+ 1\)": lambda: ring(support=np.ones((4, 2, 4))),
    "support of state 0, action 0 is empty": lambda: ring(support=np.zeros((4, 2, 5))),
    "a start is 4": lambda: ring(starts=[4]),
    "at least one state": lambda: ring(starts=[]),
    "the number of steps": lambda: ring(steps=0),
    "the threshold": lambda: ring(thresholds=[9.0]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused_worlds(words: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=words):
        REFUSED[words]()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward": np.nan}, "a reward of the environment is nan"),
        ({"cost": None}, "has no 'cost'"),
        ({"cost": [np.nan]}, "the cost of a step is"),
        ({"cost": [0.0, 0.0]}, "so give 1 numbers"),
        ({"starts": [5]}, "support or the starts exclude"),
    ],
)
def test_refused_steps(options: dict[str, Any], words: str) -> None:
    world = ring(**options)
    with pytest.raises(hr.errors.InvalidInput, match=words):
        play_some(world)


def test_a_learner_of_another_world_is_refused() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="built for another world"):
        hg.learn(ring(), Greedy(ring(steps=3).view(), 5, 0.1), 5)
    with pytest.raises(hr.errors.InvalidInput, match="another layout"):
        ring().play(hr.Policy.uniform(ring(steps=3).view()), np.random.default_rng(0))


STUDIES = {"fleet": ["--chargers", "4", "--days", "2"], "forecast": ["streaming-5", "-T", "200"]}
"""Examples with options, which are no texts to copy from, and what makes them short."""


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem in STUDIES], ids=lambda path: path.stem)
def test_the_studies_run(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(path), *STUDIES[path.stem]])
    runpy.run_path(str(path), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 3


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem not in STUDIES], ids=lambda path: path.stem)
def test_the_examples_run(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text()
    assert len(text.splitlines()) < 40 + 10 * (path.stem == "sb3_costs")  # a callback more
    if path.stem == "sb3_costs":
        pytest.importorskip("stable_baselines3", reason="torch has 750 MB: not among what tests need")
    shorter = text.replace("EPISODES, LIMIT, HOLES = 40_000", "EPISODES, LIMIT, HOLES = 60").replace("= 3_000", "= 60")
    shorter = shorter.replace("(10_000, 100_000)", "(60, 90)").replace(
        "ROLLOUTS, DAYS = 20, 512", "ROLLOUTS, DAYS = 2, 64"
    )
    assert shorter != text
    monkeypatch.setattr(sys, "argv", [str(path)])
    exec(compile(shorter, str(path), "exec"), {"__name__": "__main__"})
    assert len(capsys.readouterr().out.splitlines()) >= 3


# Environments that fail ----------------------------------------------------------------------------------------------


class Failing(Ring):
    """Raises in the steps with these numbers, counted over its whole life."""

    def __init__(self, *steps: int, error: type[BaseException] = RuntimeError) -> None:
        super().__init__()
        self.fails, self.error, self.count = set(steps), error, 0

    def step(self, action: int) -> Any:
        self.count += 1
        if self.count in self.fails:
            raise self.error("the motor is stuck")
        return super().step(action)


def simulated(world: hg.GymWorld, learner: Any, episodes: int) -> None:
    hr.simulate(world, learner, progress=False, episodes=episodes)


@pytest.mark.parametrize("play", [hg.learn, simulated])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_after_an_error_of_the_environment_the_learner_goes_on(error: type[BaseException], play: Any) -> None:
    """The plan stayed open, and the learner refused every further call."""
    world = hg.GymWorld(Failing(3, 9, error=error), 4, (0, 8), [2.0])
    learner = hr.SVOPS(world.view(), 50, 0.1, preset="sharp")
    for _ in range(2):
        with pytest.raises(error, match="the motor is stuck"):
            play(world, learner, 10)
        assert world.unfinished is not None
        assert learner.open_plans == ()
    before = learner.episode
    play(world, learner, 10)
    assert learner.episode == before + 10
    assert world.unfinished is None


def test_what_was_seen_of_an_episode_is_told() -> None:
    world = hg.GymWorld(Failing(3), 4, (0, 8), [2.0])
    seen: list[hr.Episode] = []

    class Watching(Greedy):
        def observe(self, episode: hr.Episode) -> None:
            seen.append(episode)

    env = Recording(world.env)
    world.env = env
    with pytest.raises(RuntimeError, match="stuck"):
        hg.learn(world, Watching(world.view(), 10, 0.1), 1)
    (episode,) = seen
    assert not episode.complete
    assert len(episode.rows) == 3  # the root and two steps; the third failed
    layout = world.view().layout
    assert layout.successor[episode.triples[-1]] == layout.state(f"(2, {env.log[2][1] - 5})")
    np.testing.assert_allclose(episode.costs[1:, 0], [entry[5]["cost"][0] for entry in env.log[1:]])


def test_a_plan_whose_episode_did_not_begin_is_abandoned() -> None:
    class NoReset(Ring):
        broken = True

        def reset(self, **options: Any) -> Any:
            if self.broken:
                raise OSError("no connection")
            return super().reset(**options)

    world = hg.GymWorld(NoReset(), 4, (0, 8), [2.0])
    learner = hr.SOPS(world.view(), 20, 0.1, "paper", baseline=hr.Policy.uniform(world.view()), baseline_costs=[1.0])
    with pytest.raises(OSError, match="no connection"):
        hg.learn(world, learner, 3)
    assert learner.open_plans == ()
    NoReset.broken = False
    hg.learn(world, learner, 3)
    assert learner.episode == 4  # the first one is unknown


def test_a_learner_that_refuses_an_aborted_episode_is_named_in_the_error() -> None:
    class Strict(Greedy):
        def observe(self, episode: hr.Episode) -> None:
            if not episode.complete:
                raise hr.errors.InvalidInput("only whole episodes")

    world = hg.GymWorld(Failing(3), 4, (0, 8), [2.0])
    with pytest.raises(RuntimeError, match="stuck") as caught:
        hg.learn(world, Strict(world.view(), 10, 0.1), 1)
    assert caught.value.__notes__ == ["and the learner refuses what was seen of the episode: only whole episodes"]


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        (np.zeros(16), "sums to 0.0, not 1"),
        (np.full(16, np.nan), "must be a finite number"),
        (np.full(16, 0.5), "sums to 8.0, not 1"),
        (np.r_[2.0, -1.0, np.zeros(14)], r"must lie in \[0, 1\]"),
        (np.full(5, 0.2), r"has shape \(5,\), expected \(16,\)"),
        ("nowhere", "initial_state_distrib of the environment"),
    ],
)
def test_a_wrong_distribution_of_starts_is_refused(distribution: Any, words: str) -> None:
    """A division by zero, or silently all states."""
    lake: Any = gymnasium.make("FrozenLake-v1")
    lake.unwrapped.initial_state_distrib = distribution
    with pytest.raises(
        hr.errors.InvalidInput, match=rf"{words}.*; name the states in which an episode may start: starts="
    ):
        hg.GymWorld(lake, 4, (0, 1))
    assert hg.GymWorld(lake, 4, (0, 1), starts=[0]).view().layout.layer_sizes[0] == 1
