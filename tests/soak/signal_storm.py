"""Signals without pause in a loop of short simulations, saves and episodes: the process lives, and its learners go on.

    python -m tests.soak.signal_storm --count 20000

A child process sends SIGINT every 0.3 ms, and SIGTERM with every third; after 50 it rests for a moment, so that some
rounds get further than others. Handlers raise wherever they are called. Rounds
alternate between a whole run with a new learner, an episode of `CMDP.play`, and some more episodes of one learner that
meets all the signals; in the end, left alone, it plays its episodes to the last.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from rounds import Broken, main, rounds

import hedgerow as hr
from hedgerow.learners.base import NOW

PAUSE = 0.0003
EVERY = 3
"""SIGTERM comes with every third SIGINT."""
BURST, REST = 50, 0.02
EPISODES = 1_000_000


class Struck(BaseException):
    """A signal came."""


class Rounds:
    """What a round does; signals outside of `guarded` pass without effect."""

    def __init__(self, seed: int) -> None:
        self.world = hr.worlds.make("random-layered", layers=(1, 2, 1), actions=2, constraints=1)
        self.policy, self.rng = hr.Policy.uniform(self.world.cmdp), np.random.default_rng(seed)
        self.old, self.found = self._learner(EPISODES), Counter[str]()

    def _learner(self, episodes: int) -> Any:
        return hr.SVOPS(self.world.view(), episodes, 0.05, preset="sharp")

    def guarded(self, kind: int) -> None:
        if kind == 0:
            hr.simulate(self.world, self._learner(5), progress=False)
        elif kind == 1:
            self.world.cmdp.play(self.policy, self.rng)
        else:
            for plan in self.old.open_plans:
                self.old.observe(self.world.cmdp.play(plan.policy, self.rng))
            hr.simulate(self.world, self.old, progress=False, episodes=3)

    def run(self, number: int) -> None:
        try:
            self.guarded(number % 3)
            self.found["finished"] += 1
        except Struck:
            self.found["struck"] += 1


def strike(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code is Rounds.guarded.__code__:
            raise Struck
        frame = frame.f_back


def soak(count: int, rng: random.Random) -> str:
    work = Rounds(rng.getrandbits(32))
    for number in range(6):  # compiled before the storm
        work.run(number)
    work.found.clear()
    begun = work.old.episode
    before = {number: signal.signal(number, strike) for number in (signal.SIGINT, signal.SIGTERM)}
    sender = _start_sender()
    try:
        for number in rounds(count):
            work.run(number)
    finally:
        os.kill(sender, signal.SIGKILL)
        os.waitpid(sender, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
    if not work.found["struck"]:
        raise Broken("no round was struck by a signal")
    if NOW in work.old.turn:
        raise Broken("the learner believes that somebody is at work on it")
    reached = work.old.episode
    work.run(2)
    if not begun < reached < work.old.episode:
        raise Broken("the learner that met all signals does not go on")
    told = ", ".join(f"{value} {key}" for key, value in work.found.items())
    return f"{count} rounds without a crash ({told}); the learner goes on after {reached} episodes"


def _start_sender() -> int:
    parent, child = os.getpid(), os.fork()
    if child:
        return child
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    sent = 0
    while os.getppid() == parent:
        os.kill(parent, signal.SIGINT)
        sent += 1
        if sent % EVERY == 0:
            os.kill(parent, signal.SIGTERM)
        time.sleep(PAUSE if sent % BURST else REST)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main("signals in a loop of simulations", soak, 20_000))
