"""What a learner is: an object that announces, before any random draw, the mixture of Markov policies it will play.

    plan = learner.plan()            # the mixture that is scored, and the policy that the coin chose
    learner.observe(episode)         # what happened when that policy was played to the end

That alone determines occupancy, loss, costs, violation, regret and safety, exactly. Everything else is an *ability*, a
small protocol that is asked for with `isinstance`:

    Promising    guarantees() -> Ledger                what is promised, how surely, by which theorem
    Resumable    state(), restored(view, state)        files, and learners in the middle of a run
    Limited      episodes                              after how many episodes it may be asked no more
    Watched      watch(...)                            proofs that can be watched from outside, see `watch.py`
    Compiled     run_block(...)                        many episodes in one call

Plans of the shipped learners know whose they are. An outcome may come late, twice, or to the wrong learner:
`observe(episode, plan)` therefore says which plan was played, and is refused unless that plan is open. This is decided
by what the plan says, not by which object it is, so a plan of before a restart fits the learner that was loaded:

    key        a hash of class, view, episodes, delta and seed: learners that differ in nothing else need other seeds
    number     smaller than that of the open plan: it has ended; larger: it was never made
    content    branch, policy and notes: two copies of one learner that went different ways have different plans
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, float_array, frozen, short_repr, type_name, within
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Actions, Mixture, Policy, UniformMixture
from hedgerow.model.view import View, same_layout, view_arrays, view_meta

if TYPE_CHECKING:
    from hedgerow.learners.guarantees import Ledger
    from hedgerow.learners.kernels import BaselineArrays

OWN, BASELINE = "own", "baseline"
DELTA = 0.01
"""How unsure promises may be, unless a learner or an experiment is asked for something else"""
ACTIONS = 1
"""The key of the streams of drawn actions, beside the coin, which has none"""


@dataclass(frozen=True)
class Inputs:
    """What a learner needs to know of a run before its first episode, beyond layout and thresholds.

    A comparison is fair only between learners that have the same inputs.

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
    """What it knows that no learner can know; the empty string for nothing."""

    def __str__(self) -> str:
        given = {"T": self.episodes, "delta": self.delta, "a baseline": self.baseline, "rho": self.slater}
        words = [word for word, needed in given.items() if needed]
        return "; ".join(filter(None, [", ".join(words), self.cheats and f"knows {self.cheats}"])) or "nothing"


def describe_inputs(learner: Any) -> str:
    """The inputs of a learner, or of its class, in words, with its feedback; learners of others may not say."""
    inputs = getattr(learner, "inputs", None)
    if not isinstance(inputs, Inputs):
        return "not said"
    feedback = getattr(learner, "feedback", "bandit")
    return f"{inputs}; {feedback} feedback" if feedback != "bandit" else str(inputs)


def cheats(learner: Any) -> str:
    """What a learner, or its class, knows that no learner can know; the empty text for nothing."""
    inputs = getattr(learner, "inputs", None)
    return inputs.cheats if isinstance(inputs, Inputs) else ""


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
        >>> uniform = hr.Policy.uniform(hr.Layout((1, 1), num_actions=2))
        >>> plan = hr.Plan(uniform, notes={"temperature": 0.5})
        >>> plan.policy is uniform, dict(plan.notes)
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


@dataclass(frozen=True, eq=False, repr=False)
class NumberedPlan(Plan):
    """A plan of one of hedgerow's learners: for which of its episodes, and the numbers it rests on.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> plan = hr.SVOPS(view, episodes=1000, delta=0.01).plan()
        >>> plan.episode, plan.branch, plan.mixing_weight
        (0, 'own', 0.0)
    """

    episode: int = field(kw_only=True)
    """The number of the episode, counted from 0."""
    branch: str = field(kw_only=True)
    """Whose policy is played: "own", or "baseline" if the random choice of the episode fell on the safe policy."""
    learner_key: str = field(kw_only=True)
    """Tells learners apart by class, view, number of episodes, delta and seed."""
    view: View = field(kw_only=True)
    """What the learner knows of the world, with the thresholds and their names."""
    seed: int = field(kw_only=True)
    """The seed of the learner's random choices."""
    cost_bounds: FloatArray | None = field(kw_only=True, default=None)
    """(m,): upper bounds of the expected costs of the mixture, valid while the confidence sets hold the truth; None for
    learners that do not compute them."""
    own_bounds: FloatArray | None = field(kw_only=True, default=None)
    """(m,): the same for the learner's own policy, by which a learner with a baseline chooses the mixing weight; None
    for the others."""
    group: str | None = field(kw_only=True, default=None)
    """The group of plans whose costs share a cause with those of this one; None for a plan that has none."""

    @cached_property
    def actions(self) -> Actions:
        """The actions of this episode, drawn beforehand from `policy`, one for each state.

        Play them or draw from `policy` on the way: their law is the same. If they are followed, say so by
        `Episode(..., actions=plan.actions)`. Then, if the episode is aborted, it is known what it would have done, and
        the confidence sets need less room for it.
        """
        return drawn_actions(self.view.layout, self.policy.probabilities, self.seed, self.episode)

    @property
    def mixing_weight(self) -> float:
        """The probability lambda of the baseline before the random choice; 0 for learners without one."""
        return self.notes.get("mixing_weight", 0.0)

    def explain(self) -> str:
        """Say in one sentence which policy is played, and by which bounds of costs that was decided.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> always_go = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
            >>> hr.SOPS(view, episodes=1000, delta=0.01, baseline=always_go).plan().explain()
            "baseline, because the bound of 'delay' was 1 > 0.5: its own policy had the probability 0.333"
        """
        names, alpha = self.view.constraint_names, self.view.thresholds.tolist()
        if self.notes.get("staying"):
            return "baseline, because it loses so little that leaving it does not pay, by the forecast"
        if self.own_bounds is None:
            bounds = self.cost_bounds if self.cost_bounds is not None else np.zeros(0)
            costs = [f"{name!r} <= {bound:.4g}" for name, bound in zip(names, bounds, strict=False)]
            return f"{self.branch} policy" + (
                f"; its expected costs are bounded by {', '.join(costs)}" if costs else ""
            )
        above = [
            f"the bound of {name!r} was {bound:.4g} > {limit:.4g}"
            for name, bound, limit in zip(names, self.own_bounds.tolist(), alpha, strict=True)
            if bound > limit
        ]
        lam = self.mixing_weight
        if not above:
            why = "no bound exceeds its threshold" if lam == 0.0 else "the learner leaves its episodes to the baseline"
            return f"{self.branch}, because {why}"
        if self.branch == BASELINE:
            return f"baseline, because {' and '.join(above)}: its own policy had the probability {1.0 - lam:.3g}"
        return f"own, with the probability {1.0 - lam:.3g}, because {' and '.join(above)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON can hold it: what is to be played, and why that was allowed.

        Returns:
            `policy` has the probabilities of the actions in each decision state, `actions` the number of the action
            that was drawn for it beforehand; costs are by the names of the constraints.
        """
        names, layout = self.view.constraint_names, self.view.layout

        def named(values: FloatArray | None) -> dict[str, float] | None:
            return None if values is None else dict(zip(names, values.tolist(), strict=True))

        return {
            "learner": self.learner_key, "episode": self.episode, "group": self.group, "branch": self.branch,
            "mixing_weight": self.mixing_weight, "thresholds": named(self.view.thresholds),
            "cost_bounds": named(self.cost_bounds), "own_bounds": named(self.own_bounds), "notes": dict(self.notes),
            "policy": self.policy.probabilities.reshape(-1, layout.num_actions).tolist(),
            "actions": self.actions.numbers.tolist(), "explanation": self.explain(),
        }  # fmt: skip

    def __repr__(self) -> str:
        from hedgerow.display import text

        numbers = f"mixing_weight={self.mixing_weight:.4g}"
        if self.cost_bounds is not None:
            numbers += f", cost_bounds={text.numbers(self.cost_bounds)}"
        summary = f"episode {self.episode}, {self.branch}, {numbers}"
        return text.line(type(self).__name__, summary, self.policy.in_words(text.LONGEST - len(summary) - 16))


class PlanMaker:
    """Makes the plans of a learner as long as its baselines stay the same: what is known of these is kept."""

    def __init__(self, view: View, baselines: BaselineArrays, seed: int, learner_key: str) -> None:
        layout, policies = view.layout, baselines.policies
        self.baselines, self._layout = baselines, layout
        self._common = {"view": view, "seed": seed, "learner_key": learner_key}
        self._single = Policy.trusted(layout, policies[0]) if len(policies) == 1 else None
        self._mixture: Policy | Mixture | None = self._single
        if len(policies) > 1:
            self._mixture = UniformMixture.of_table(layout, policies)

    def plan(
        self,
        episode: int,
        own: FloatArray,
        mixing_weight: float,
        branch: int,
        notes: Mapping[str, float],
        cost_bounds: FloatArray | None = None,
        own_bounds: FloatArray | None = None,
        group: str | None = None,
    ) -> NumberedPlan:
        """The plan of an episode whose coin fell on `branch`: 0 for the policy `own`, j + 1 for the j-th baseline."""
        mine = Policy.trusted(self._layout, own)
        mixture: Policy | Mixture = mine
        if self._mixture is not None:
            mixture = Mixture.trusted((mixing_weight, self._mixture), (1.0 - mixing_weight, mine))
        plan = NumberedPlan.__new__(NumberedPlan)  # everything is known to be sound
        plan.__dict__.update(
            mixture=mixture,
            policy=mine if branch == 0 else self._chosen(branch - 1),
            notes=MappingProxyType(notes),
            episode=episode,
            branch=BASELINE if branch else OWN,
            cost_bounds=cost_bounds,
            own_bounds=own_bounds,
            group=group,
            **self._common,
        )
        return plan

    def _chosen(self, j: int) -> Policy:
        return self._single or Policy.trusted(self._layout, self.baselines.policies[j])


def drawn_actions(layout: Layout, policy: FloatArray, seed: int, episode: int) -> Actions:
    """The actions of an episode that plays `policy` (num_rows,), drawn beforehand; each episode has its own stream."""
    return Actions.drawn(layout, policy, Generator(PCG64(SeedSequence(seed, spawn_key=(ACTIONS, episode)))))


def learner_key(learner: Any) -> str:
    """The key of a learner: equal for its copies, and for what is loaded from its file."""
    view: View = learner.view
    facts = [type(learner).__name__, learner.episodes, learner.delta, learner.seed, view_meta(view)]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, array in sorted(view_arrays(view, support=True).items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def check_open(given: Any, current: NumberedPlan | None, key: str, episode: int) -> None:
    """Refuse a plan that is not the open one of a learner, whose next outcome is that of `episode`."""
    if not isinstance(given, NumberedPlan):
        raise InvalidInput(
            f"the plan is {type_name(given)}, not one of this learner's; pass what plan() returned: "
            "observe(episode, plan)"
        )
    if given.learner_key != key:
        raise InvalidInput(
            f"the plan of episode {given.episode} was made by another learner (its key is {given.learner_key}, that of "
            f"this one is {key}); report the outcome to the learner that made the plan"
        )
    if given.episode < episode:
        raise InvalidInput(
            f"the plan of episode {given.episode} has ended: its outcome was learnt, or it was abandoned; nothing is "
            "learnt twice"
        )
    if current is None or given.episode > episode:
        raise InvalidInput(f"the plan of episode {given.episode} is not open here; open_plans lists those that are")
    if not _same_content(given, current):
        raise InvalidInput(
            f"the plan of episode {given.episode} is not the one that is open here: it was made by a copy of this "
            "learner that has seen other episodes"
        )


def missing_outcome(view: View, reason: Any, independent: bool, actions: Actions | None = None) -> Episode:
    """The outcome of a plan that was given up for a reason, which is declared to be independent of it or is not."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput(f"abandon(plan, reason) needs the reason in words, not {short_repr(reason)}")
    return Episode.missing(view, independent=reason if independent else None, actions=actions)


def tell_failure(learner: Any, plan: Plan, seen: Episode | None, error: BaseException) -> None:
    """Report to a learner what was seen before `error` ended the episode of a plan; what it refuses, the error says."""
    abandon = getattr(learner, "abandon", None)
    try:
        if seen is not None:
            learner.observe(seen)
        elif callable(abandon):
            abandon(plan, f"the environment raised {type(error).__name__} before a step was over")
    except HedgerowError as refused:
        error.add_note(f"and the learner refuses what was seen of the episode: {refused}")


def _same_content(given: NumberedPlan, current: NumberedPlan) -> bool:
    return (
        given.branch == current.branch
        and dict(given.notes) == dict(current.notes)
        and np.array_equal(given.policy.probabilities, current.policy.probabilities)
    )


@runtime_checkable
class Learner(Protocol):
    """What a simulation needs of a learner: a view, `plan` and `observe`, called in turn.

    Any object with these will do. A learner that declares `feedback = "full"` finds the losses and costs of all pairs
    in `episode.all_losses` and `episode.all_costs`. Further abilities: `guarantees()`, `episodes`, and for files
    `state()` and `restored(...)`.

    Examples:
        >>> import hedgerow as hr
        >>> class Cautious:
        ...     def __init__(self, view):
        ...         self.view = view
        ...
        ...     def plan(self):
        ...         return hr.Policy.uniform(self.view)
        ...
        ...     def observe(self, episode):
        ...         pass
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, Cautious(world.view()), episodes=10)
        >>> float(run.loss[-1])
        7.5
    """

    view: View
    """What the learner knows of the world."""

    def plan(self) -> Plan | Policy:
        """Choose what to play next: a plan, or simply a policy. Each plan is followed by one `observe`."""

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


def plan_of(learner: Any, made: Any) -> Plan:
    """What the `plan()` of a learner returned, as a plan: a bare policy is what is played and scored."""
    if isinstance(made, Policy):
        return Plan(made)
    if not isinstance(made, Plan):
        drawn = ": Plan(mixture, mixture.draw(rng))" if isinstance(made, Mixture) else ""
        raise InvalidInput(f"plan of {type(learner).__name__} returns a Plan or a Policy, not {type_name(made)}{drawn}")
    return made


def feedback_of(learner: Any) -> str:
    """`bandit`, or `full` for learners that declare it."""
    feedback = getattr(learner, "feedback", "bandit")
    if feedback not in ("bandit", "full"):
        raise InvalidInput(f"the feedback of {type(learner).__name__} is {feedback!r}; choose 'bandit' or 'full'")
    return str(feedback)


def safe_policy(baseline: Any, costs: ArrayLike | Mapping[str, float] | None, world: Any) -> tuple[Any, Any]:
    """Policy and costs (m,) of a baseline: something with `.policy` and `.costs`, or a policy and `costs` beside it.

    A name stands for what the model of the `world` has, see `planning/baselines.py`.
    """
    if isinstance(baseline, str):
        from hedgerow.planning import baselines

        baseline = baselines.named(baseline, world)
    if hasattr(baseline, "policy") and hasattr(baseline, "costs"):
        return baseline.policy, baseline.costs if costs is None else costs
    if costs is None:
        raise InvalidInput(
            "the costs of the baseline are missing: pass baseline_costs (m,), or baseline='slater' for the safest "
            "policy of a world with a model"
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
