"""Learners that would be scored wrongly, or would damage the process, if anybody believed them: one class per trick.

All of them mean to play `safe`, the uniform policy, in even episodes and `bold`, the last action, in odd ones.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.model.policy import UniformMixture


class Honest:
    """What the others pretend to be."""

    def __init__(self, view: hr.View, episodes: int, delta: float, seed: int = 0) -> None:
        self.view, self.episodes, self.done = view, episodes, 0
        self.layout, self.seen = view.layout, []
        actions = view.layout.num_actions
        self.safe = np.full(view.layout.num_rows, 1.0 / actions)
        self.bold = np.tile(np.eye(actions)[-1], view.layout.num_decision_states)

    def content(self) -> np.ndarray:
        return self.bold if self.done % 2 else self.safe

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        return hr.Policy(self.layout, content)

    def plan(self) -> Any:
        return hr.Plan(self.policy_of(self.content()))

    def observe(self, episode: hr.Episode) -> None:
        self.done += 1


def mixed(layout: hr.Layout, *parts: tuple[Any, Any]) -> hr.Mixture:
    """A mixture around all checks."""
    return hr.Mixture.trusted(*parts)


# Refused --------------------------------------------------------------------------------------------------------------


class Weights(Honest):
    """Weights that are no distribution: the loss of one part is taken off."""

    weights: tuple[Any, ...] = (-4.0, 4.0)

    def plan(self) -> Any:
        parts = [self.policy_of(self.safe), self.policy_of(self.bold)]
        return hr.Plan(mixed(self.layout, *zip(self.weights, parts, strict=True)), parts[1])


class ShiftedWeights(Weights):
    """Weights that sum to 1, one of them negative."""

    weights = (-4.0, 5.0)


class NoNumberWeights(Weights):
    """Not a number."""

    weights = (np.nan, np.nan)


class TextWeights(Weights):
    """Not even that."""

    weights = ("0.5", "0.5")


class NothingAtAll(Weights):
    """Weights 0."""

    weights = (0.0, 0.0)


class NoNumberPolicy(Honest):
    """NaN is not above any threshold."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        return hr.Policy.trusted(self.layout, np.full_like(content, np.nan))


class NegativePolicy(Honest):
    """Rows that sum to 1 and are no distributions."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        rows = np.zeros((self.layout.num_decision_states, self.layout.num_actions))
        rows[:, 0], rows[:, 1] = 2.0, -1.0
        return hr.Policy.trusted(self.layout, rows.ravel())


class ShortPolicy(Honest):
    """Fewer numbers than the world has rows."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        return hr.Policy.trusted(self.layout, content[:1])


class ObjectPolicy(Honest):
    """An array of objects."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        return hr.Policy.trusted(self.layout, content.astype(object))


class OtherWorld(Honest):
    """Sets its view to that of a larger world in the middle of a run, and plans there."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        self.layout = hr.Layout((1, 40, 40, 1), self.view.layout.num_actions)
        self.view = hr.View(self.layout, self.view.thresholds, self.view.constraint_names)
        self.safe = self.bold = np.full(self.layout.num_rows, 1.0 / self.layout.num_actions)


class Stray(Honest):
    """Announces the safe policy and plays the other one."""

    def plan(self) -> Any:
        return hr.Plan(self.policy_of(self.safe), self.policy_of(self.bold))


class NeverDrawn(Honest):
    """Plays a part of probability 0."""

    def plan(self) -> Any:
        safe, bold = self.policy_of(self.safe), self.policy_of(self.bold)
        return hr.Plan(hr.Mixture((1.0, safe), (0.0, bold)), bold)


class Fickle(hr.Policy):
    """Tells something else every time that it is asked."""

    __slots__ = ("answers",)

    @property
    def probabilities(self) -> Any:  # type: ignore[override]
        self.answers.reverse()
        return self.answers[0]


class FicklePolicy(Honest):
    """The mixture is scored by one answer, the episode played by another."""

    def plan(self) -> Any:
        policy = Fickle.__new__(Fickle)
        policy.layout, policy.answers = self.layout, [self.safe, self.bold]
        return hr.Plan(policy)


class Agreeable(hr.Layout):
    """Equal to every layout."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = hr.Layout.__hash__


class AgreeableLayout(Honest):
    """A policy of another world whose layout says that it is this one."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        layout = Agreeable((1, 40, 40, 1), self.layout.num_actions)
        return hr.Policy.trusted(layout, np.full(layout.num_rows, 1.0 / layout.num_actions))


class Renamed(Honest):
    """The actions of its layout have other names."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        layout = hr.Layout(self.layout.layer_sizes, self.layout.num_actions)
        names = [f"s{x}" for x in range(layout.num_states)], [f"a{a}" for a in range(layout.num_actions)]
        return hr.Policy(layout.labelled(names[0], names[1][::-1]), content)


class Endless(Honest):
    """A mixture that is a part of itself."""

    def plan(self) -> Any:
        policy = self.policy_of(self.content())
        mixture = mixed(self.layout, (1.0, policy))
        mixture.parts = ((0.5, policy), (0.5, mixture))
        return hr.Plan(mixture, policy)


class Enormous(Honest):
    """A few objects that stand for ten million policies."""

    def plan(self) -> Any:
        policy = self.policy_of(self.content())
        mixture: Any = policy
        for _ in range(7):
            mixture = mixed(self.layout, *[(0.1, mixture)] * 10)
        return hr.Plan(mixture, policy)


class Hollow(Honest):
    """A mixture of nothing."""

    def plan(self) -> Any:
        policy = self.policy_of(self.content())
        mixture = mixed(self.layout, (1.0, policy))
        mixture.parts = ()
        return hr.Plan(mixture, policy)


class HalfTable(Honest):
    """A table of policies of which one is none."""

    def plan(self) -> Any:
        table = np.array([self.safe, 0.5 * self.bold])
        return hr.Plan(UniformMixture.of_table(self.layout, table), self.policy_of(self.safe))


class Notorious(Honest):
    """A new name for a note in every episode."""

    def plan(self) -> Any:
        notes = {f"episode_{self.done}_{number}": 1.0 for number in range(400)}
        return hr.Plan(self.policy_of(self.content()), notes=notes)


class ForgedNotes(Honest):
    """A plan whose notes are called like a column of every run."""

    def plan(self) -> Any:
        plan = hr.Plan(self.policy_of(self.content()))
        object.__setattr__(plan, "notes", {"regret": -1e6})
        return plan


class LayoutMender(Honest):
    """Writes into the arrays of the layout, which it shares with the world."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        successor = self.view.layout.successor
        successor.setflags(write=True)
        successor[:] = 10**8
        successor.setflags(write=False)


class ThresholdMender(Honest):
    """Writes into the thresholds, which it shares with the world."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        thresholds = self.view.thresholds
        thresholds.setflags(write=True)
        thresholds[:] = 3.0
        thresholds.setflags(write=False)


REFUSED: dict[type, str] = {
    Weights: r"the weight of a part is -4\.0; it must lie in \[0, 1\]",
    ShiftedWeights: r"the weight of a part is -4\.0",
    NoNumberWeights: "the weight of a part is nan",
    TextWeights: "the weight of a part must be a number, not '0.5'",
    NothingAtAll: r"the weights of a mixture sum to 0\.0, not 1",
    NoNumberPolicy: "is nan at .*; every entry must be a finite number",
    NegativePolicy: r"the action probability is 2\.0 at .*; every entry must lie in \[0, 1\]",
    ShortPolicy: r"have shape \(1,\), expected \(\d+,\)",
    ObjectPolicy: "must be an array of numbers",
    OtherWorld: "in episode 1 is refused: it belongs to another layout than that of the world",
    Stray: "the policy that it plays is no part of the mixture that is scored",
    NeverDrawn: "or has probability 0 there",
    FicklePolicy: "no part of the mixture",
    AgreeableLayout: "another layout than that of the world",
    Renamed: "another layout than that of the world",
    Endless: "more than 16 mixtures are inside each other, or one is a part of itself",
    Enormous: "its mixtures have more than 100,000 parts together",
    Hollow: "a mixture needs at least one part",
    HalfTable: r"sum to 0\.5, not 1",
    Notorious: "more than 1,000 names",
    ForgedNotes: "cannot be called 'regret': that is a column of every run",
    LayoutMender: "LayoutMender has changed the layout of the world",
    ThresholdMender: "ThresholdMender has changed the thresholds of the world",
}
"""By a message in which this is said."""


# Scored as they are ---------------------------------------------------------------------------------------------------


class Rebound(Honest):
    """One policy for ever, whose array is set to another one."""

    def plan(self) -> Any:
        if not hasattr(self, "only"):
            self.only = self.policy_of(self.content())
        self.only.probabilities = self.content().copy()
        return hr.Plan(self.only)


class KeptBase(Honest):
    """A read-only view of memory that it keeps, and writes to while the episode is observed."""

    def plan(self) -> Any:
        self.kept = self.content().copy()
        shown = self.kept.view()
        shown.setflags(write=False)
        policy = self.policy_of(self.content())
        policy.probabilities = shown
        return hr.Plan(policy)

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        if hasattr(self, "kept"):
            self.kept[:] = np.roll(self.kept, 1)


class Strided(Honest):
    """Every second number of an array."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        policy = super().policy_of(content)
        policy.probabilities = np.repeat(content, 2)[::2]
        return policy


class Narrow(Honest):
    """Half as many bits; those of the two policies suffice for two actions."""

    def policy_of(self, content: np.ndarray) -> hr.Policy:
        return hr.Policy.trusted(self.layout, content.astype(np.float32))


class Again(Honest):
    """The same two plans all the time."""

    def plan(self) -> Any:
        if self.done < 2:
            self.seen.append(super().plan())
        return self.seen[self.done % 2]


class LyingPlan(hr.Plan):
    """A plan that tells its mixture once, and another one afterwards."""

    def __getattribute__(self, name: str) -> Any:
        told = object.__getattribute__(self, "__dict__")
        if name == "mixture" and "second" in told:
            told["asked"] += 1
            return told["second"] if told["asked"] > 1 else told["mixture"]
        return object.__getattribute__(self, name)


class SecondThoughts(Honest):
    """Its plans change when they are asked twice."""

    def plan(self) -> Any:
        plan = LyingPlan(self.policy_of(self.content()))
        vars(plan).update(second=hr.Policy.trusted(self.layout, -self.content()), asked=0)
        return plan


class Meddler(Honest):
    """Writes into the episodes that it is told."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        for array in (episode.rows, episode.triples, episode.losses, episode.costs):
            array.setflags(write=True)
            array[:] = 0


class FullMeddler(Meddler):
    """Writes into the losses and costs of all pairs."""

    feedback = "full"

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        for array in (episode.all_losses, episode.all_costs):
            while isinstance(array, np.ndarray):
                array.setflags(write=True)
                array[...] = 0.0
                array = array.base


class Overseer(Honest):
    """Brings a watcher of its own, which would be given the scores to write to."""

    def watch(self, stage: Any, *, audit: bool = False) -> Any:
        stage.scores.loss[0] = -1e6
        raise AssertionError("it was asked")


SCORED = (Rebound, KeptBase, Strided, Narrow, Again, SecondThoughts, Meddler, FullMeddler, Overseer)
"""What they play is a policy in every episode, and is scored by what it was when it was planned."""


# Ending the program ---------------------------------------------------------------------------------------------------


class ExitInPlan(Honest):
    def plan(self) -> Any:
        sys.exit(0)


class ExitInObserve(Honest):
    def observe(self, episode: hr.Episode) -> None:
        sys.exit(0)


class ExitWhenBuilt(Honest):
    def __init__(self, view: hr.View, episodes: int, delta: float, seed: int = 0) -> None:
        sys.exit(0)


class HardExit(Honest):
    def observe(self, episode: hr.Episode) -> None:
        os._exit(0)


class Crash(Honest):
    def observe(self, episode: hr.Episode) -> None:
        os.kill(os.getpid(), 11)


class Hang(Honest):
    def observe(self, episode: hr.Episode) -> None:
        while True:
            time.sleep(0.1)


class Busy(Honest):
    def plan(self) -> Any:
        while True:
            pass


class Interrupting(Honest):
    def observe(self, episode: hr.Episode) -> None:
        raise KeyboardInterrupt
