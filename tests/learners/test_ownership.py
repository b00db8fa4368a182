"""One call at a time: a second one is refused in words, changes nothing, and every turn ends."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import KINDS, assert_same, draw_path, make_learner, random_world, snapshot, to_bytes

import hedgerow as hr
from hedgerow.errors import BusyError, HedgerowError, InvalidInput
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.losses import oblivious
from hedgerow.simulation.files import load
from hedgerow.simulation.run import Simulation, simulate

WORLD = random_world(0)
ZEROS = np.zeros(3), np.zeros((3, 2))


class Waiting:
    """An adversary that does something before the loss of its second episode: between two episodes of a simulation."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self.action = action

    def start(self, layout: hr.Layout) -> None:
        self.rows = layout.num_rows

    def loss(self, episode: int) -> np.ndarray:
        if episode == 1:
            self.action()
        return np.full(self.rows, 0.5)

    def observe(self, episode: int, policy: np.ndarray, trajectory: np.ndarray) -> None:
        return


def calls(learner: Learner, folder: Path) -> dict[str, Callable[[], Any]]:
    return {
        "plan": learner.plan,
        "observe": lambda: learner.observe([0, 2, 8], *ZEROS),
        "open_plans": lambda: learner.open_plans,
        "complete": learner.complete,
        "max_open": lambda: setattr(learner, "max_open", 2),
        "close_group": lambda: learner.close_group("today"),
        "with_view": lambda: learner.with_view(learner.view),
        "policy": lambda: learner.policy,
        "estimates": lambda: learner.estimates,
        "played": lambda: learner.played,
        "guarantees": learner.guarantees,
        "save": lambda: learner.save(folder / "refused.hedge"),
        "copy": lambda: copy.copy(learner),
        "pickle": lambda: pickle.dumps(learner),
        "simulate": lambda: simulate(WORLD, learner, oblivious.IID(), episodes=1),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_thread_is_refused_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    learner = make_learner(kind, WORLD)
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go_on.wait(30)

    with ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
        run = pool.submit(simulate, WORLD, learner, Waiting(wait), seed=0, progress=False, episodes=3)
        assert inside.wait(30)
        before = snapshot(learner)
        for name, call in calls(learner, tmp_path).items():
            with pytest.raises(
                BusyError, match=r"refused: simulate is already using this learner in thread 'worker"
            ) as e:
                call()
            assert "\n" not in str(e.value), name
            assert_same(before, snapshot(learner))
        assert learner.episode == 1  # single numbers can be read meanwhile
        assert learner.diagnostics["failed"] == 0
        go_on.set()
        assert run.result(30).episodes[-1] == 3
    assert not (tmp_path / "refused.hedge").exists()
    assert learner.plan().episode == 3
    assert issubclass(BusyError, HedgerowError)
    assert hr.errors.BusyError is BusyError


def test_files_beside_a_compiled_simulation_are_whole_or_refused(tmp_path: Path) -> None:
    learner, outcomes = make_learner("sv-ops", WORLD, 60_000), []
    simulation = Simulation(WORLD, learner, oblivious.IID(seed=1), 0)

    def advance() -> None:
        while learner.episode < 60_000:
            with suppress(BusyError):  # a save came between two calls
                simulation.advance(5_000)

    thread = threading.Thread(target=advance)
    thread.start()
    while thread.is_alive():
        try:
            learner.save(tmp_path / "now.hedge", overwrite=True)
            outcomes.append(load(tmp_path / "now.hedge").episode % 5_000)
        except BusyError:
            outcomes.append(-1)
    thread.join()
    assert learner.episode == 60_000
    assert set(outcomes) <= {0, -1}
    assert -1 in outcomes


def test_two_learners_in_two_threads_are_free() -> None:
    def run(seed: int) -> bytes:
        learner = make_learner("s-ops", WORLD, 3_000, seed=seed)
        simulate(WORLD, learner, oblivious.IID(seed=seed), seed=seed, progress=False)
        return to_bytes(learner)

    one_after_the_other = [run(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == one_after_the_other


def test_an_adversary_may_save_and_copy_but_not_play(tmp_path: Path) -> None:
    learner = make_learner("cv-ops", WORLD)
    kept: list[Learner] = []

    def keep() -> None:
        learner.save(tmp_path / "between.hedge")
        kept.append(copy.deepcopy(learner))
        assert np.array_equal(learner.policy, kept[0].policy)

    simulate(WORLD, learner, Waiting(keep), seed=0, progress=False, episodes=3)
    assert load(tmp_path / "between.hedge").episode == kept[0].episode == 1
    assert kept[0].plan().episode == 1  # a copy has a turn of its own

    def play() -> None:
        path = draw_path(WORLD, learner.plan().policy, np.random.default_rng(0))
        learner.observe(path, *ZEROS)

    with pytest.raises(InvalidInput, match="is at episode 5, this simulation left it at 4: it has played elsewhere"):
        simulate(WORLD, learner, Waiting(play), seed=0, progress=False, episodes=3)


def test_nobody_comes_into_an_operation_not_even_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("sv-ops", WORLD)
    learner.plan()
    monkeypatch.setattr(SVOPS, "_complete", lambda self: self.save("never.hedge"))
    path = draw_path(WORLD, learner.played, np.random.default_rng(0))
    with pytest.raises(BusyError, match="save is refused: observe is already using this learner in this thread"):
        learner.observe(path, *ZEROS)
    assert learner.turn == {}
    monkeypatch.undo()
    assert learner.plan().episode == 1


def test_a_simulation_notices_that_its_learner_played_elsewhere() -> None:
    learner = make_learner("sv-ops", WORLD)
    simulation = Simulation(WORLD, learner, oblivious.IID())
    simulation.advance(5)
    learner.observe(draw_path(WORLD, learner.plan().policy, np.random.default_rng(0)), *ZEROS)
    with pytest.raises(InvalidInput, match="begin a new simulation"):
        simulation.advance(5)


@pytest.mark.parametrize("step_wise", [False, True])
def test_a_planned_episode_is_not_planned_again_by_a_simulation(step_wise: bool) -> None:
    """Compiled code tossed the coin a second time, and the first plan was forgotten."""
    learner = make_learner("s-ops", WORLD)
    learner.plan()
    before = snapshot(learner)
    with pytest.raises(InvalidInput, match="episode 0 of the learner is planned already; call observe"):
        simulate(WORLD, learner, oblivious.IID(), step_wise=step_wise)
    assert_same(before, snapshot(learner))


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_a_turn_ends_whenever_it_is_interrupted() -> None:
    learner, interrupts = make_learner("sv-ops", WORLD, 10**6), 0

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng(0)
    try:
        while interrupts < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 5e-4)))
                while True:
                    learner.diagnostics, learner.policy, learner.played  # noqa: B018 - short operations, many turns
            except KeyboardInterrupt:
                interrupts += 1
                assert learner.turn == {}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


# What a learner shares: nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_pickles_are_learners_of_their_own(kind: str, twin_of: Callable[[Learner], Learner]) -> None:
    learner = make_learner(kind, WORLD, confidence_scale=0.05)
    simulate(WORLD, learner, oblivious.IID(), seed=0, progress=False, episodes=30)
    before, twin = snapshot(learner), twin_of(learner)
    assert_same(before, snapshot(twin))
    for one, other in zip(snapshot(learner), snapshot(twin), strict=True):
        assert one == other
    arrays, others = learner.state_arrays(), twin.state_arrays()
    assert not any(np.shares_memory(arrays[name], others[name]) for name in arrays)
    simulate(WORLD, twin, oblivious.IID(), seed=0, progress=False, episodes=5)
    assert_same(before, snapshot(learner))
    assert twin.turn is not learner.turn


def test_a_class_of_ones_own_is_not_copied_as_its_base() -> None:
    class Mine(SVOPS):
        pass

    learner = Mine(WORLD.view(), 10, 0.1)
    for copies in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="Mine is not one of hedgerow's own learners"):
            copies(learner)


@pytest.mark.parametrize("kind", KINDS)
def test_the_played_policy_is_a_frozen_copy(kind: str) -> None:
    learner = make_learner(kind, WORLD)
    plan = learner.plan()
    np.testing.assert_array_equal(learner.played, plan.policy)
    with pytest.raises(ValueError, match="read-only"):
        learner.played[0] = 0.5
    assert not np.shares_memory(learner.played, learner.core.state.policy)
    assert not np.shares_memory(learner.policy, learner.core.state.policy)
