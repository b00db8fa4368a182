"""The base of the mirror-descent family: plan, play, observe.

    learner.absorb(log)                            # optional: episodes that were played before, by any policy
    plan = learner.plan()                          # the policy of the next episode; it has to be played to its end
    learner.observe(episode)                       # what happened: an `Episode`, or its pieces (path, losses, costs)

A call that is refused changes nothing. One call at a time: while one is at work on a learner, a second one from another
thread is refused with `BusyError` (`ownership.py`). Single numbers such as `episode` can be read at any time.

Learners keep their state in arrays (`state.py`) and change it by one compiled step (`step.py`), which the compiled loop
of a simulation (`loop.py`) calls as well: both ways of running give the same bits.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, frozen, num_episodes, positive_share, seed_number, taken
from hedgerow.confidence.aggregate import make_aggregate_rule
from hedgerow.confidence.balls import BallRule, make_balls
from hedgerow.confidence.boxes import make_box_rule
from hedgerow.confidence.budget import refuse_empty_promise
from hedgerow.confidence.premises import make_premise_rule, make_premises
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.environments.play import make_path
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs, Plan, checked_view, in_own_terms
from hedgerow.learners.guarantees import CLEAN_EVENT, Budget, Ledger
from hedgerow.learners.locking import Turn, exclusive
from hedgerow.learners.ops.absorb import learn_broken, log_for, no_logs, take_in
from hedgerow.learners.ops.fallback import fallback_solve
from hedgerow.learners.ops.mixing import cost_bounds, draw_branch
from hedgerow.learners.ops.plans import Baselines, MirrorPlan, drawn_actions
from hedgerow.learners.ops.search import Search, SearchRule, keep_policy
from hedgerow.learners.ops.settings import CommonSwitches, Preset, make_settings, names_of
from hedgerow.learners.ops.spending import certifies, make_spending
from hedgerow.learners.ops.state import (
    MIXTURE_BOUNDS,
    BaselineArrays,
    Core,
    StepRule,
    flat_arrays,
    make_core,
    make_state,
)
from hedgerow.learners.ops.step import REFUSED, begin, learn, learn_path
from hedgerow.learners.plans import check_open, learner_key, missing_outcome
from hedgerow.learners.premises import announce, as_refuted
from hedgerow.model.actions import Actions
from hedgerow.model.cmdp import checked_transitions
from hedgerow.model.counting import known_costs, refuse_impossible
from hedgerow.model.episode import Episode
from hedgerow.model.identity import same_layout
from hedgerow.model.random_streams import seeded
from hedgerow.model.view import View
from hedgerow.projection.newton import SOLVED

if TYPE_CHECKING:
    from hedgerow.confidence.snapshot import Estimates
    from hedgerow.importers.logs import Log
    from hedgerow.learners.api import RunContext
    from hedgerow.learners.ops.audit import MirrorWatcher

MOST_CACHED = 1000
"""The most baselines whose bounds are averaged when mixture_bound is `auto`."""


class MirrorLearner(ABC):
    """The base of SV-OPS, S-OPS, CV-OPS and UOB-REPS: plan, play, observe.

    Ask for a plan, play its policy to the end of the episode, and say what happened with `observe`. A call that is
    refused changes nothing. A learner serves one call at a time; a second one from another thread raises `BusyError`.
    Make one of the four classes, which document their arguments.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.SVOPS(world.view(), episodes=100, delta=0.05)
        >>> learner
        SVOPS(Layout(layers=(1, 1), actions=2, full support), episode 0 of 100, preset='paper')
        >>> learner.guarantees()["regret"].source
        'Theorem 2 (regret_soft_unknown)'
    """

    kind: ClassVar[str]
    """The name by which experiments and files call the learner, such as "s-ops"."""
    source: ClassVar[str] = "Stradi, Castiglioni, Marchesi and Gatti 2025"
    """Who described it, and when."""
    told: ClassVar[Inputs] = Inputs()
    """What it is told before its first episode."""
    switches: ClassVar[frozenset[str]] = names_of(CommonSwitches)
    """The names of the switches that the learner takes."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Switches that the learner sets differently from the presets."""
    constrained: ClassVar[bool] = True
    """Whether the projection respects the constraints."""
    mixes: ClassVar[bool] = False
    """Whether the learner plays a baseline at times."""

    def __init__(
        self, view: View, episodes: int | None, delta: float, preset: Preset = "paper", seed: int = 0, *,
        transitions: ArrayLike | None = None, **switches: Unpack[CommonSwitches],
    ) -> None:  # fmt: skip
        view = checked_view(view)
        self.view = (
            view if transitions is None else view.knowing(transitions=checked_transitions(view.layout, transitions))
        )
        self.layout = view.layout
        self.turn: Turn = {}
        self.settings = make_settings(preset, {**self.defaults, **switches}, self.switches, type(self).__name__)
        self.episodes = self._checked_horizon(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        refuse_empty_promise(self.delta, self._budget.spent(CLEAN_EVENT))
        self.seed = seed_number(seed)
        self.coin = seeded(SeedSequence(self.seed))
        self.declared: dict[str, int] = {}
        """How many episodes were left out, or parts of them, for which declared reason."""
        self.absorbed = no_logs()
        """The digests of the logs that it has absorbed (`absorbed.py`)."""
        self.core = self._first_core()
        self._baselines = Baselines(self.view, self.core.baseline, self.seed, learner_key(self))
        self._path = make_path(self.layout, view.num_constraints)
        self._start(self.core)

    # Construction ----------------------------------------------------------------------------------------------------

    def _checked_horizon(self, episodes: int | None) -> int | None:
        if episodes is None:
            if self.settings.horizon == "fixed":
                raise InvalidInput("give the number of episodes, or horizon='doubling' if it is not known")
            return None
        return num_episodes(episodes)

    def _first_core(self) -> Core:
        """What the first episode starts from."""
        return self._make_core(self._no_baseline(self.constrained))

    def _no_baseline(self, constrained: bool) -> BaselineArrays:
        nothing = np.zeros((0, self.layout.num_rows))
        return self._make_baseline(nothing, np.zeros(self.view.num_constraints), constrained)

    def _make_baseline(self, policies: FloatArray, costs: FloatArray, constrained: bool = True) -> BaselineArrays:
        """Safe policies (K, num_rows) with the costs (m,) of their mixture, and the constraints that bind."""
        # No cost exceeds its ceiling: such a threshold cannot bind, and its term of the mixing weight would be 0/0.
        binding = self.view.binding if constrained else np.zeros(0, dtype=np.int64)
        return BaselineArrays(policies, costs, self.view.thresholds.copy(), self.view.ceilings.copy(), binding)

    def _make_core(
        self,
        baseline: BaselineArrays,
        *,
        doubling: bool | None = None,
        search: Search | None = None,
        search_rule: SearchRule | None = None,
    ) -> Core:
        settings, layout, m = self.settings, self.layout, self.view.num_constraints
        unknowns, wide, num_balls, shares = make_spending(self.view, settings, mixes=self.mixes)
        radii = settings.confidence.rule(layout, m, self.delta, self.episodes, unknowns, shares)
        num_baselines = len(baseline.policies)
        kind = settings.mixture_bound
        if kind == "auto":
            kind = "mixture" if num_baselines <= MOST_CACHED else "realised"
        absorbs = settings.radii in WITHOUT_HORIZON
        premise_rule = make_premise_rule(
            self.view, unknowns, self.delta, beta=baseline.costs if self.told.baseline else None, absorbs=absorbs,
            stays=settings.on_refuted != "warn",
        )  # fmt: skip
        state = make_state(
            unknowns,
            len(baseline.binding),
            settings.clip_costs,
            make_premises(premise_rule, layout.num_triples, absorbs=absorbs),
            num_baselines=num_baselines,
            search=search,
            aggregate=certifies(self.view, settings) and num_baselines > 0,
            balls=make_balls(wide, layout.num_triples) if num_baselines else None,
        )
        rule = StepRule(
            box=make_box_rule(radii, unknowns, settings.clip_costs, gradual=settings.radii == "kt"),
            epochs=settings.boxes == "epoch",
            doubling=settings.horizon == "doubling" if doubling is None else doubling,
            log_inverse_delta=-log(self.delta),
            pairs=float(layout.num_states * layout.num_actions),
            tol=settings.tol,
            joint_cost=settings.joint_cost,
            mixture_bound=MIXTURE_BOUNDS[kind],
            literal_sigma=settings.sigma == "literal",
            tied=unknowns.tied,
            aggregate=make_aggregate_rule(
                layout,
                state.boxes,
                -log((shares.aggregate or 1.0) * self.delta),  # without a share there is no certificate either
                self.view.thresholds,
                ceilings=self.view.ceilings,
                watched=self.view.binding,
                per_step=self.view.knowledge.costs_drawn == "step",
            ),
            ball=BallRule(wide.astype(np.int8), log(max(1, num_balls)) - log(max(shares.balls, 1.0) * self.delta)),
            premises=premise_rule,
        )
        state.numbers.stale = 1  # nothing is cached yet
        return make_core(layout, rule, state, baseline, search_rule)

    def _start(self, core: Core) -> None:
        """Rates, uniform weights and the first policy, from the episode that the state is at."""
        done = core.state.numbers.episode
        episodes, log_inverse_delta = float(max(1, (self.episodes or 1) - done)), core.rule.log_inverse_delta
        if core.rule.doubling:
            core.state.numbers.segment_end = done + 1
            episodes, log_inverse_delta = 1.0, log_inverse_delta + log(2.0)
        if begin(core, episodes, log_inverse_delta) != SOLVED:
            fallback_solve(self.layout, core)

    # The loop --------------------------------------------------------------------------------------------------------

    @exclusive
    def plan(self) -> MirrorPlan:
        """Choose the policy of the next episode. Each plan must be followed by one `observe`.

        Returns:
            The plan: `plan.policy` is to be played to the end of the episode.

        Raises:
            InvalidInput: If an episode is planned already, or if all episodes have been played.
        """
        if self.core.state.numbers.pending:
            raise InvalidInput(f"episode {self.episode} is planned already; call observe with what happened in it")
        self.check_horizon(1)
        self._complete()
        self.announce()
        core, state = self.core, self.core.state
        draw_branch(core, self.coin)
        if core.search.active:
            searched = self.episode - state.search.broken.skipped
            keep_policy(core.search, state.search, state.policy, searched + 1, self.coin)
        return self._open_plan()

    @property
    @exclusive
    def open_plans(self) -> tuple[MirrorPlan, ...]:
        """The plans that wait for their outcome, at most one.

        A learner that was loaded after a crash still has it.
        """
        return (self._open_plan(),) if self.core.state.numbers.pending else ()

    def _open_plan(self) -> MirrorPlan:
        state = self.core.state
        if self._baselines.source is not self.core.baseline:  # a new phase
            self._baselines = Baselines(self.view, self.core.baseline, self.seed, self._baselines.learner_key)
        lam, branch = state.reals.mixing, state.numbers.branch
        return self._baselines.plan(self.episode, state.policy, lam, branch, self._cost_bounds())

    def _check_open(self, plan: Any) -> None:
        current = self._open_plan() if self.core.state.numbers.pending else None
        check_open(plan, current, self._baselines.learner_key, self.episode)

    @exclusive
    def observe(
        self,
        episode: Episode | Any,
        losses: ArrayLike | Plan | None = None,
        costs: ArrayLike | None = None,
        *,
        plan: Plan | None = None,
    ) -> None:
        """Learn from an episode that was planned: `observe(episode)`, `observe(episode, plan)`.

        Say which plan was played wherever an outcome may be delivered late, twice, or to the wrong learner: a plan that
        has ended, or that another learner made, is refused. Without it the episode is that of the only open plan.

        From an episode that was aborted, or in which somebody else chose an action, only the confidence sets learn;
        its losses say nothing about the plan and are left out. They make room for what is unknown of it.

        Args:
            episode: An `Episode`; or the path alone: rows (L,), or pairs (state, action) by number or label.
            losses: (L,) losses in [0, 1], if `episode` is a path; else the plan may stand here.
            costs: (L, m) costs in [0, 1], or (L,) for one constraint, if `episode` is a path.
            plan: The plan that was played.

        Raises:
            InvalidInput: If no episode is planned, if the plan is not open, if the path is impossible or has
                probability 0 under the plan, if what the view knows rules it out, or if a number is wrong.
            PremiseError: If the episode, which has been learnt, refutes something that the learner was told, and
                on_refuted="raise".

        Warns:
            PremiseWarning: If the episode refutes something that the learner was told.
        """
        if isinstance(losses, Plan):
            losses, plan = None, losses
        if plan is not None:
            self._check_open(plan)
        if not self.core.state.numbers.pending:
            raise InvalidInput("no episode is planned; call plan, play its policy, then observe")
        if not isinstance(episode, Episode):
            if losses is None:
                raise InvalidInput("the losses along the trajectory are missing: observe(path, losses, costs)")
            if self._take(episode, losses, costs) and learn_path(self.core, self._path) != REFUSED:
                self._complete()
                self.announce()
                return
            episode = Episode(self.view, episode, losses, costs)  # says what is wrong, or reads what is put otherwise
        elif losses is not None or costs is not None:
            raise InvalidInput("an Episode holds its losses and costs already; pass it alone")
        self._learn(episode)
        self._complete()
        self.announce()

    def announce(self) -> None:
        """Say, once, that something that the learner was told has been refuted.

        `observe` and `absorb` call it.
        """
        core = self.core
        mixes = len(core.baseline.policies) > 0
        announce(self.view, core.rule.premises, core.state.premises, self.settings.on_refuted, mixes=mixes)

    @exclusive
    def abandon(self, plan: Plan, reason: str, *, independent: bool = False, actions: Actions | None = None) -> None:
        """End a plan whose outcome nobody will tell: an episode that was lost, or never carried out.

        What its policy could have visited is unknown from here on, and confidence sets make room for it, since whoever
        gave up the episode may have foreseen its costs. Only a reason that has nothing to do with costs or moves leaves
        nothing unknown; the promises then rest on that.

        Args:
            plan: The open plan.
            reason: Why, in words. The ledger names it if it is declared to be independent; else nothing rests on it.
            independent: Whether the reason is declared to have nothing to do with what the episode cost, or would have.
                "It was never carried out" is not enough.
            actions: `plan.actions`, if they were followed, or would have been: then only the pairs that were drawn
                become unknown.

        Raises:
            InvalidInput: If the plan is not open, or if the reason has no words.
        """
        self._check_open(plan)
        self._learn(missing_outcome(self.view, reason, independent, actions))
        self._complete()

    def _take(self, rows: Any, losses: Any, costs: Any) -> bool:
        """Copy a path of plain numbers into the buffers, without a look at them; False if it is anything else."""
        own, m = self._path, self.view.num_constraints
        if costs is None:
            return m == 0 and taken(own.rows, rows) and taken(own.losses, losses)
        column = own.costs[:, 0] if m == 1 and np.ndim(costs) == 1 else own.costs
        return taken(own.rows, rows) and taken(own.losses, losses) and taken(column, costs)

    def _learn(self, episode: Episode) -> None:
        episode = in_own_terms(self.view, episode)
        refuse_impossible(self.view, episode.rows, episode.triples, known_costs(episode))
        if episode.irregular is not None:
            learn_broken(self, episode)
            return
        self._check_possible(episode.rows)
        path = self._path
        # Copied, because compiled code exists once, for arrays that can be written to.
        path.rows[:], path.triples[:], path.losses[:] = episode.rows, episode.triples, episode.losses
        path.costs[:] = episode.costs
        learn(self.core, path.rows, path.triples, path.losses, path.costs)

    @exclusive
    def absorb(self, log: Log | Any, **how: Any) -> Log:
        """Learn from episodes that were played before, by any policy.

        Call it before the first episode or between two. It needs radii without a horizon: radii="kt" or
        radii="anytime". A log is absorbed only once: the learner knows the content of each, in whatever file, order or
        object it comes, and refuses it the second time. A part of a log, or a log that holds some of the same episodes,
        it does not know: nothing tells an episode that is there twice from two equal ones. Nor may a log hold any of
        the learner's own episodes. The promises rest on that, and on what the text of `hedgerow.importers.logs` says.

        Args:
            log: A `Log`, or what `Log.read` takes.
            **how: Options of `Log.read`.

        Returns:
            The log, in the terms of the learner's view.

        Raises:
            InvalidInput: If the log was absorbed before, or if it is of another world. One of a view that has the same
                names in another order is translated by name.
        """
        found = log_for(self, log, how)
        self._complete()
        take_in(self, found)
        self.announce()
        return found

    @exclusive
    def complete(self) -> None:
        """Finish what compiled code left open, such as a projection that needs the slow solver.

        If that is interrupted, the next plan begins with it. An episode is never learnt by halves.
        """
        self._complete()

    def _complete(self) -> None:
        if self.core.state.numbers.open:
            fallback_solve(self.layout, self.core)
        if self.core.state.numbers.phase_over:
            self._next_phase()

    def _next_phase(self) -> None:
        """Only CV-OPS has phases."""
        raise NotImplementedError

    def check_horizon(self, more: int) -> None:
        """Refuse to play `more` episodes if that is beyond the number that the learner was built for."""
        if self.episodes is not None and self.episode + more > self.episodes:
            raise InvalidInput(
                f"this learner was built for {self.episodes} episodes and has played {self.episode}; "
                "build one for more, or with horizon='doubling'"
            )

    def _check_possible(self, rows: IntArray) -> None:
        """Refuse steps, the first ones by their rows (n,), that the plan cannot have produced."""
        unplayed = np.flatnonzero(~(self.played_array()[rows] > 0.0))
        if unplayed.size:
            k = int(unplayed[0])
            raise InvalidInput(
                f"step {k} of the trajectory, {self.layout.describe_row(int(rows[k]))}, has probability 0 under the "
                f"plan; if somebody else chose it, say so: Episode(..., overridden_from={k})"
            )

    def drawn_actions(self) -> Actions:
        """Return the actions of the plan that waits for its `observe`, drawn beforehand: `plan.actions`."""
        return drawn_actions(self.layout, self.played_array(), self.seed, self.episode)

    # What it knows ---------------------------------------------------------------------------------------------------

    def _cost_bounds(self) -> FloatArray:
        bounds = np.zeros(self.view.num_constraints)
        cost_bounds(self.core, bounds)
        bounds.setflags(write=False)
        return bounds

    @property
    def episode(self) -> int:
        """The number of episodes observed so far."""
        return self.core.state.numbers.episode

    @property
    def begun(self) -> int:
        """The number of episodes observed before the present phase began."""
        return 0

    @property
    @exclusive
    def policy(self) -> FloatArray:
        """(num_rows,): the learner's own policy for the next episode."""
        return frozen(self.core.state.policy)

    @property
    @exclusive
    def played(self) -> FloatArray:
        """(num_rows,): the policy of the last plan."""
        return frozen(self.played_array())

    def played_array(self) -> FloatArray:
        """Return the policy of the last plan as the array that compiled code uses; do not write to it."""
        branch = self.core.state.numbers.branch
        return self.core.baseline.policies[branch - 1] if branch else self.core.state.policy

    @property
    @exclusive
    def estimates(self) -> Estimates:
        """What was seen of transitions and costs so far, and the bounds that follow: a snapshot.

        Returns:
            `Estimates` whose `rows` and `moves` are Arrow tables; what is learnt later does not change them.

        Examples:
            >>> from hedgerow.learners.ops.sv_ops import SVOPS
            >>> view = View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> learner = SVOPS(view, episodes=1000, delta=0.01)
            >>> _ = learner.plan()
            >>> learner.observe([("home", "go")], losses=[1.0], costs=[1.0])
            >>> learner.estimates.rows.column("visits").to_pylist()
            [0, 1]
        """
        from hedgerow.confidence.snapshot import Estimates

        state = self.core.state
        return Estimates.of(self.view, self.episode, state.counts, state.boxes, self.core.rule.box)

    @property
    def eta(self) -> float:
        """The learning rate of mirror descent; eta in the paper."""
        return self.core.state.reals.eta

    @property
    def gamma(self) -> float:
        """The implicit exploration of the loss estimate; gamma in the paper."""
        return self.core.state.reals.gamma

    @property
    def diagnostics(self) -> dict[str, int]:
        """Counters of the projections so far.

        They are `infeasible`, `suspect` (solved the slow way), `failed`, and `iterations` (Newton steps).
        """
        numbers = self.core.state.numbers
        return {name: getattr(numbers, name) for name in ("infeasible", "suspect", "failed", "iterations")}

    @property
    def logged(self) -> dict[str, int]:
        """Counters of what came from logs and of incomplete episodes.

        They count episodes and steps from logs, and those of them whose costs were left out altogether (`costless`);
        and the episodes, own ones included, that were cut short (`prefixes`), of which something is `unknown`, or left
        out for a declared reason (`independent`), and own ones that did not follow the plan (`interfered`).
        """
        records = self.core.state.logged, self.core.state.incomplete
        return {name: getattr(record, name) for record in records for name in record.fields}

    def as_seen(self, ledger: Ledger) -> Ledger:
        """Return `ledger` as it stands now: void where it rests on something that was refuted."""
        return as_refuted(ledger, self.view, self.core.rule.premises, self.core.state.premises)

    @abstractmethod
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches, how surely, and by which theorem."""

    @property
    def _budget(self) -> Budget:
        # Intervals of the kind kt spend what the transitions do not need on the costs.
        return Budget(self.delta, self.transitions is not None and self.settings.radii != "kt")

    @property
    def transitions(self) -> FloatArray | None:
        """(num_triples,): the transition probabilities, if all of them are known; else None."""
        known = self.view.knowledge.transitions
        return None if known is None or np.isnan(known).any() else known

    def arguments(self) -> dict[str, NDArray[Any]]:
        """Return the arguments of the constructor that only this class has, as arrays by name."""
        return {}

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state by name: what a file has to hold."""
        return flat_arrays(self.core.state)

    def expect(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Make room for the state `arrays` of a file whose shapes depend on how far the learner was."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays by name; `restored` takes them back."""
        from hedgerow.learners.ops.files import to_bytes

        return {"file": np.frombuffer(to_bytes(self), dtype=np.uint8)}

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> MirrorLearner:
        """Return the learner whose `state()` was `state`, on the same `view`."""
        from hedgerow.learners.ops.files import from_bytes

        learner = from_bytes(np.asarray(state["file"], dtype=np.uint8).tobytes())
        named = same_layout(learner.layout, view.layout) and learner.view.constraint_names == view.constraint_names
        if not named or not np.array_equal(learner.view.thresholds, view.thresholds):
            raise InvalidInput("the state is that of a learner in another world")
        return learner

    def watch(
        self, stage: RunContext, *, audit: bool = False, notes: bool = False, estimator: bool = False
    ) -> MirrorWatcher:
        """Make the object that watches the learner's proofs during a simulation and runs its compiled blocks.

        Args:
            stage: Where the simulation keeps its scores.
            audit: Whether to watch the bounds of all pairs as well, which is slower.
            notes: Whether to keep what each step rests on.
            estimator: Whether to watch the loss estimator.
        """
        from hedgerow.learners.ops.audit import MirrorWatcher

        return MirrorWatcher(self, stage, audit=audit, notes=notes, estimator=estimator)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the learner to one data file, atomically; `hr.load` reads it.

        A learner may be saved between any two calls, a planned episode included.

        Args:
            path: The file; `.npz` is the usual ending.
            overwrite: Whether an existing file may be replaced.
        """
        from hedgerow.learners.ops.files import save

        save(self, path, overwrite=overwrite)

    def __copy__(self) -> MirrorLearner:
        """An equal learner of its own, as from a file; a learner shares nothing."""
        from hedgerow.learners.ops.files import copied

        return copied(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> MirrorLearner:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the content of a data file, and reading it checks that content as `load` does."""
        from hedgerow.learners.ops.files import from_bytes, own_bytes

        return from_bytes, (own_bytes(self),)

    def __repr__(self) -> str:
        from hedgerow.display import text

        limit = "unknown" if self.episodes is None else str(self.episodes)
        parts = f"episode {self.episode} of {limit}", f"preset={self.settings.preset!r}"
        return text.line(type(self).__name__, repr(self.layout), *parts)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import learner_html

        return learner_html(self, f"preset {self.settings.preset}")
