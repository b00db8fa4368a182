"""What a learner is told before its first episode: a comparison is fair only between learners that are told the same.

Everybody knows the layout and the thresholds. `Inputs` says what a learner is given beyond that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, float_array, frozen, type_name, within
from hedgerow.environments.columns import Column
from hedgerow.environments.play import KernelWorld, Streams
from hedgerow.environments.scores import Curves, Scores
from hedgerow.errors import InvalidInput
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.identity import same_layout
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import View

if TYPE_CHECKING:
    from hedgerow.learners.guarantees import Ledger


@dataclass(frozen=True)
class Inputs:
    """What a learner is told of a run before its first episode.

    Examples:
        >>> import hedgerow as hr
        >>> hr.SOPS.inputs.baseline, str(hr.SOPS.inputs)
        (True, 'T, delta, a baseline')
    """

    episodes: bool = True
    """Whether it needs the number T of episodes."""
    delta: bool = True
    """Whether it needs the failure probability."""
    baseline: bool = False
    """Whether it needs a policy that is known to be safe, with bounds of its costs."""
    slater: bool = False
    """Whether it needs the largest margin rho that all constraints can have at once."""
    cheats: str = ""
    """What it is told that no learner can know; the empty string for nothing."""

    def __str__(self) -> str:
        given = {"T": self.episodes, "delta": self.delta, "a baseline": self.baseline, "rho": self.slater}
        words = [word for word, is_told in given.items() if is_told]
        return ", ".join([*words, *([f"cheats: {self.cheats}"] if self.cheats else [])]) or "nothing"


def describe_inputs(learner: Any) -> str:
    """What a learner, or its class, is told, its feedback included; learners of others may not say."""
    inputs = getattr(learner, "inputs", None)
    if not isinstance(inputs, Inputs):
        return "not said"
    feedback = getattr(learner, "feedback", "bandit")
    return f"{inputs}; {feedback} feedback" if feedback != "bandit" else str(inputs)


def cheats(learner: Any) -> str:
    """What a learner, or its class, is told that no learner can know; the empty text for nothing."""
    inputs = getattr(learner, "inputs", None)
    return inputs.cheats if isinstance(inputs, Inputs) else ""


# --------------------------------------------------------------------------------------------------------------------
# A learner is an object that announces, before any random draw, the mixture of Markov policies it will play.
#
#     plan = learner.plan()            # the mixture that is scored, and the policy that the coin chose
#     learner.observe(episode)         # what happened when that policy was played to the end
#
# That alone determines occupancy, loss, costs, violation, regret and safety, exactly. Everything else is an
# *ability*, a small protocol that is asked for with `isinstance`:
#
#     Promising    guarantees() -> Ledger                what is promised, how surely, by which theorem
#     Resumable    state(), restored(view, state)        files, and learners in the middle of a run
#     Limited      episodes                              after how many episodes it may be asked no more
#     Watched      watch(...)                            proofs that can be watched from outside, see `watch.py`
#     Compiled     run_block(...)                        many episodes in one call
#
# A learner that declares `feedback = "full"` finds the losses and costs of *all* pairs in `episode.all_losses` and
# `episode.all_costs`.


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a learner will play in one episode, from its first step to its last.

    `Plan(policy)` is enough for a learner that plays a policy. A learner that chooses at random among policies returns
    `Plan(mixture, mixture.draw(rng))`: the mixture is scored, the drawn policy is played.

    Raises:
        InvalidInput: If a mixture comes without the policy that was drawn, if their layouts differ, or if a note is not
            a number.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> layout = hr.Layout((1, 1), num_actions=2)
        >>> waiting, going = hr.Policy(layout, [1.0, 0.0]), hr.Policy(layout, [0.0, 1.0])
        >>> coin = hr.Mixture((0.5, waiting), (0.5, going))
        >>> plan = hr.Plan(coin, coin.draw(np.random.default_rng(0)), notes={"temperature": 0.5})
        >>> plan.policy is going, dict(plan.notes)
        (True, {'temperature': 0.5})
    """

    mixture: Policy | Mixture
    """The policy or mixture before the random choice: losses, costs and safety are those of the mixture."""
    policy: Policy = None  # type: ignore[assignment]  # filled in below where the mixture is a policy
    """The policy that was drawn, to be played to the end of the episode; may be left out if `mixture` is a policy."""
    notes: Mapping[str, float] = field(default_factory=dict)
    """Numbers worth keeping of this episode, by name, such as `mixing_weight`. They become columns of results: as plain
    notes, or as the learner declares them in an attribute `columns`, a tuple of `hedgerow.results.Column`."""

    def __post_init__(self) -> None:
        if not isinstance(self.mixture, Policy | Mixture):
            raise InvalidInput(f"a plan is made of a Policy or a Mixture, not of {type_name(self.mixture)}")
        if self.policy is None:
            if isinstance(self.mixture, Mixture):
                raise InvalidInput("a plan with a mixture also needs the policy that its coin chose: mixture.draw(rng)")
            object.__setattr__(self, "policy", self.mixture)
        if not isinstance(self.policy, Policy):
            raise InvalidInput(f"the policy of a plan is a Policy, not {type_name(self.policy)}")
        if not same_layout(self.policy.layout, self.mixture.layout):
            raise InvalidInput("the mixture and the policy of a plan belong to different layouts")
        object.__setattr__(self, "notes", MappingProxyType(_checked_notes(self.notes)))

    def __repr__(self) -> str:
        from hedgerow.display import text

        notes = text.listed((f"{name}={value:.6g}" for name, value in self.notes.items()), count=len(self.notes))
        return text.line(type(self).__name__, notes, self.policy.in_words(text.LONGEST - len(notes) - 8))

    def _repr_html_(self) -> str:
        from hedgerow.display.views import plan_html

        return plan_html(self)


def _checked_notes(notes: Mapping[str, float]) -> dict[str, float]:
    checked = {}
    for name, value in dict(notes).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput(f"the name of a note is a word of letters, digits and _, not {name!r}")
        try:
            checked[name] = float(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the note {name!r} must be a number, not {value!r}") from error
    return checked


@runtime_checkable
class Learner(Protocol):
    """What a simulation needs of a learner: a view, `plan` and `observe`, called in turn.

    Any object with these will do. A learner that declares `feedback = "full"` finds the losses and costs of all pairs
    in `episode.all_losses` and `episode.all_costs`. Further abilities are small protocols of their own: `guarantees()`,
    `state()` and `restored(...)` for files, and `episodes`.

    Examples:
        >>> import hedgerow as hr
        >>> class Cautious:
        ...     def __init__(self, view):
        ...         self.view = view
        ...
        ...     def plan(self):
        ...         return hr.Plan(hr.Policy.uniform(self.view))
        ...
        ...     def observe(self, episode):
        ...         pass
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, None, Cautious(world.view()), episodes=10)
        >>> float(run.loss[-1])
        7.5
    """

    view: View
    """What the learner knows of the world."""

    def plan(self) -> Plan:
        """Choose what to play next. Each plan is followed by one `observe`."""

    def observe(self, episode: Episode) -> None:
        """Learn from `episode`: what happened when the policy of the plan was played."""


@runtime_checkable
class Promising(Protocol):
    """A learner that makes promises.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.learners.api import Promising
        >>> isinstance(hr.SVOPS(hr.worlds.make("lower-bound-2").view(), 10, 0.05), Promising)
        True
    """

    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches."""


@runtime_checkable
class Resumable(Protocol):
    """A learner that can be saved between two episodes and continue elsewhere as if nothing had happened.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.learners.api import Resumable
        >>> class Counting:
        ...     def __init__(self, view, count=0):
        ...         self.view, self.count = view, count
        ...
        ...     def state(self):
        ...         return {"count": self.count}
        ...
        ...     @classmethod
        ...     def restored(cls, view, state):
        ...         return cls(view, int(state["count"]))
        >>> isinstance(Counting(None), Resumable)
        True
    """

    def state(self) -> Mapping[str, ArrayLike]:
        """Return arrays and numbers by name: all that is needed to continue."""

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> Resumable:
        """Return the learner on `view` whose `state()` was `state`."""


@runtime_checkable
class Limited(Protocol):
    """A learner that was made for a certain number of episodes.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.learners.api import Limited
        >>> learner = hr.SVOPS(hr.worlds.make("lower-bound-2").view(), episodes=10, delta=0.05)
        >>> isinstance(learner, Limited), learner.episodes
        (True, 10)
    """

    episodes: int | None
    """The number of episodes; None for any number."""


@dataclass(frozen=True, eq=False, repr=False)
class SafePolicy:
    """A policy that is known to be safe, with upper bounds of its costs: the baseline of S-OPS.

    Anything that has `.policy` and `.costs`, such as `hr.offline.slater(world)`, serves as well.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> baseline = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
        >>> hr.SOPS(view, episodes=1000, delta=0.05, baseline=baseline).baseline_costs.tolist()
        [0.25]
    """

    policy: FloatArray | Policy
    """The policy, as a `Policy`, an array (num_rows,), or a table (states, actions)."""
    costs: FloatArray
    """(m,): upper bounds of its expected costs."""

    def __repr__(self) -> str:
        from hedgerow.display import text

        policy = f"policy={type(self.policy).__name__} of {text.counted(np.size(np.asarray(self.policy)), 'row')}"
        return text.line("SafePolicy", policy, f"costs={text.numbers(np.ravel(self.costs))}")


def in_own_terms(view: View, episode: Episode) -> Episode:
    """An episode as the learner's view has it: itself, or translated by name; one of another world is refused."""
    try:
        return episode.in_terms_of(view)
    except InvalidInput as error:
        raise InvalidInput(f"the episode belongs to another world than the learner: {error}") from error


def checked_view(view: View) -> View:
    """`view`, if it is one: what a learner may see of a world."""
    if not isinstance(view, View):
        raise InvalidInput(f"a learner is built on cmdp.view(), not on {type_name(view)}")
    return view


def feedback_of(learner: Any) -> str:
    """`bandit`, or `full` for learners that declare it."""
    feedback = getattr(learner, "feedback", "bandit")
    if feedback not in ("bandit", "full"):
        raise InvalidInput(f"the feedback of {type(learner).__name__} is {feedback!r}; choose 'bandit' or 'full'")
    return str(feedback)


def safe_policy(baseline: Any, costs: ArrayLike | Mapping[str, float] | None) -> tuple[Any, Any]:
    """Policy and costs (m,) of a baseline: something with `.policy` and `.costs`, or a policy and `costs` beside it."""
    if hasattr(baseline, "policy") and hasattr(baseline, "costs"):
        return baseline.policy, baseline.costs if costs is None else costs
    if costs is None:
        raise InvalidInput(
            "the costs of the baseline are missing: pass baseline_costs (m,), or baseline=hr.offline.slater(world)"
        )
    return baseline, costs


def checked_baseline_costs(
    view: View, costs: ArrayLike | Mapping[str, float], allow_no_margin: bool = False
) -> FloatArray:
    """beta (m,) with 0 <= beta_i < alpha_i, or = alpha_i if allowed; no tolerance: this is where safety begins.

    `costs` (m,) in the order of the constraints, or by their names.
    """
    if isinstance(costs, Mapping):
        names = view.constraint_names
        wrong = [name for name in costs if name not in names] + [name for name in names if name not in costs]
        if wrong:
            raise InvalidInput(f"baseline_costs need the constraints {', '.join(names)}, once each; see {wrong[0]!r}")
        costs = [costs[name] for name in names]
    beta = float_array("the baseline cost", costs, (view.num_constraints,))
    within("the baseline cost", beta, 0.0, float(view.layout.steps))
    binding = set(view.binding.tolist())
    for i, name in enumerate(view.constraint_names):
        alpha = float(view.thresholds[i])
        if beta[i] > alpha:
            raise InvalidInput(
                f"the baseline is not safe: {name!r} costs {float(beta[i])!r}, its threshold is {alpha!r}"
            )
        if beta[i] == alpha and i in binding and not allow_no_margin:
            raise InvalidInput(
                f"the baseline leaves no margin for {name!r}: its cost equals the threshold {alpha!r}, so nothing "
                "else would ever be played; pass allow_no_margin=True if that is wanted"
            )
    return frozen(beta)


# --------------------------------------------------------------------------------------------------------------------
# Watchers: they check the proofs of a learner during a simulation, which alone knows the truth.
#
# A learner that is `Watched` returns a `Watcher` for a run. The simulation tells it, episode by episode, what was
# planned, learnt and closed; the watcher returns columns at the checkpoints and facts of the run. A `Compiled` watcher
# also runs whole blocks of episodes by itself, and must leave the same scores, bit for bit.


@dataclass(frozen=True, eq=False)
class RunContext:
    """What a run works with: the true world, the scores so far, the random streams."""

    cmdp: CMDP
    world: KernelWorld
    scores: Scores
    curves: Curves
    streams: Streams


class Watcher(Protocol):
    """Observes the learner of a run from outside."""

    declared: tuple[Column, ...]
    """How its columns and facts are declared; a column without a declaration is a note."""

    def ready(self) -> None:
        """Before episodes are played: refuse a learner that cannot go on, finish what an interrupt left open."""

    def planned(self) -> None:
        """A plan was made, and its scores have been added."""

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        """The plan was played under the loss (num_rows,), at the costs (L, m); the learner does not know it yet."""

    def learnt(self, rows: IntArray) -> bool:
        """The learner has been told of the visited rows (n,): whether it has learnt, even if something then failed."""

    def finish(self) -> None:
        """Let the learner finish what an interrupt has left open."""

    def closed(self, mark: int) -> None:
        """The episode is over; it is the checkpoint `mark`, or none if that is -1."""

    def columns(self, reached: int) -> Mapping[str, NDArray[Any]]:
        """What was kept at the first `reached` checkpoints: arrays (reached,) by name."""

    def facts(self, comparator: FloatArray) -> Mapping[str, float | int | None]:
        """The facts of the run, one number each; `comparator` is q* (num_rows,)."""


@runtime_checkable
class Watched(Protocol):
    """A learner whose proofs can be watched."""

    def watch(self, stage: RunContext, *, audit: bool = False) -> Watcher:
        """The watcher of one run; an `audit` looks at more, and takes longer."""


@runtime_checkable
class Compiled(Protocol):
    """A watcher that can run blocks of episodes."""

    @property
    def compiled(self) -> bool:
        """Whether it may do so for this learner."""

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""


class NullWatcher:
    """The watcher of learners that have none of their own."""

    declared: tuple[Column, ...] = ()

    def ready(self) -> None:
        return

    def planned(self) -> None:
        return

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        return

    def learnt(self, rows: IntArray) -> bool:
        return True

    def finish(self) -> None:
        return

    def closed(self, mark: int) -> None:
        return

    def columns(self, reached: int) -> Mapping[str, NDArray[Any]]:
        return {}

    def facts(self, comparator: FloatArray) -> Mapping[str, float | int | None]:
        return {}
