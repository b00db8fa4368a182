"""The base of the mirror-descent family: plan, play, observe (`learners/base.py`), and absorb logs.

    learner.absorb(log)                            # optional: episodes that were played before, by any policy

Learners keep their state in arrays (`state.py`) and change it by one compiled step (`step.py`), which the compiled loop
of a simulation (`loop.py`) calls as well: both ways of running give the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, frozen, num_episodes, taken
from hedgerow.confidence.anchored import make_anchor
from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.premises import make_premise_rule, make_premises
from hedgerow.confidence.radii import WITHOUT_HORIZON, refuse_empty_promise
from hedgerow.confidence.sets import make_sets
from hedgerow.environments.play import make_path
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, NumberedPlan
from hedgerow.learners.base import ARGUMENTS, BaseLearner, exclusive
from hedgerow.learners.guarantees import CLEAN_EVENT, Budget
from hedgerow.learners.kernels import BaselineArrays, baseline_arrays
from hedgerow.learners.logs import checked_digests, no_logs
from hedgerow.learners.open_plans import LostPlan, OpenPlan
from hedgerow.learners.ops.absorb import learn_broken, log_for, take_back, take_in, wait_in
from hedgerow.learners.ops.account import AccountRule, no_account
from hedgerow.learners.ops.changes import changed
from hedgerow.learners.ops.fallback import fallback_solve
from hedgerow.learners.ops.groups import learn_grouped
from hedgerow.learners.ops.mixing import cost_bounds, draw_policy
from hedgerow.learners.ops.rates import make_rate_rule
from hedgerow.learners.ops.search import Search, SearchRule, keep_policy
from hedgerow.learners.ops.settings import (
    DEFAULT_PRESET,
    CommonSwitches,
    Preset,
    make_settings,
    names_of,
)
from hedgerow.learners.ops.state import Core, RateRule, StepRule, arrays_of_state, derived, make_core, make_state
from hedgerow.learners.ops.step import REFUSED, begin, bound_plan, learn, learn_path
from hedgerow.model.cmdp import checked_transitions, view_of
from hedgerow.model.episode import Episode
from hedgerow.model.view import View
from hedgerow.projection.newton import SOLVED
from hedgerow.registry import learners

if TYPE_CHECKING:
    from hedgerow.confidence.snapshot import Estimates
    from hedgerow.importers.logs import Log
    from hedgerow.learners.ops.loop import MirrorWatcher
    from hedgerow.learners.watch import RunContext

MOST_CACHED = 1000
"""The most baselines whose upper occupancy bounds are averaged for the loss estimate."""


class MirrorLearner(BaseLearner):
    """The base of SV-OPS, S-OPS, B-OPS, C-OPS, CV-OPS and UOB-REPS, which document their arguments.

    Ask for a plan, play its policy to the end of the episode, and say what happened with `observe`.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.SVOPS(world.view(), episodes=100, delta=0.05)
        >>> learner
        SVOPS(Layout(layers=(1, 1), actions=2, full support), episode 0 of 100, preset='sharpest')
        >>> learner.guarantees()["regret"].source
        'Theorem 2 (regret_soft_unknown)'
    """

    source = "Stradi, Castiglioni, Marchesi and Gatti 2025"
    opens = True
    switches: ClassVar[frozenset[str]] = names_of(CommonSwitches)
    """The names of the switches that the learner takes."""
    epochs: ClassVar[bool] = False
    """Whether confidence sets are rebuilt when the visits of some pair have doubled, not in every episode."""
    constrained: ClassVar[bool] = True
    """Whether the projection respects the constraints."""
    mixes: ClassVar[bool] = False
    """Whether the learner plays a baseline at times."""
    pools: ClassVar[bool] = False
    """Whether it has a pool of certified policies besides, see `pool.py`."""
    preset_changes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Where a preset means something else for the learner: switches by preset."""
    floor: ClassVar[float] = 1.0
    """The least probability of the mixture without the pool."""
    argument_texts: ClassVar[Mapping[str, str]] = {
        **ARGUMENTS,
        "episodes": f'{ARGUMENTS["episodes"][:-1]}; None if that is not known, with horizon="doubling".',
        "delta": (
            f"{ARGUMENTS['delta']} Each holds with probability 1 minus a small multiple of delta; `guarantees()` says "
            "how large it is."
        ),
        "preset": (
            '"sharpest" with the best valid combination, for the fewest episodes; "sharp" with valid improvements; '
            '"paper" as printed, to reproduce the paper. All three make the same promises.'
        ),
        "transitions": "(num_triples,) probabilities of next states, if they are known; None estimates them.",
    }
    _without_horizon = ", or with horizon='doubling'"

    def __init_subclass__(cls, **options: Any) -> None:
        taken = ", ".join(f"`{name}`" for name in sorted(cls.switches))
        cls.argument_texts = {
            **cls.argument_texts,
            "**switches": (
                'Single settings that replace those of the preset, such as sets="sharp"; `Settings` explains each. '
                f"The learner takes {taken}."
            ),
        }
        super().__init_subclass__(**options)

    def __init__(
        self, view: View | Any, episodes: int | None, delta: float = DELTA, preset: Preset = DEFAULT_PRESET,
        seed: int = 0, *, transitions: ArrayLike | None = None, **switches: Unpack[CommonSwitches],
    ) -> None:  # fmt: skip
        if transitions is not None:
            known = view_of(view)
            view = known.knowing(transitions=checked_transitions(known.layout, transitions))
        chosen = {**self.preset_changes.get(preset, {}), **switches}
        self.settings = make_settings(preset, chosen, self.switches, type(self).__name__)
        super().__init__(view, episodes, delta, seed, self.settings.on_refuted)
        refuse_empty_promise(self.delta, self._budget.spent(CLEAN_EVENT))
        self.declared: dict[str, int] = {}
        """How many episodes were left out, or parts of them, for which declared reason."""
        self.absorbed = no_logs()
        """The digests of the logs that it has absorbed (`absorb.py`)."""
        self._path = make_path(self.layout, self.view.num_constraints)
        self._bound_names = [f"bound_{i}" for i in range(self.view.num_constraints)]
        self._use(self._first_core())
        self._start(self.core)

    def _use(self, core: Core) -> None:
        """Go on with `core`: the first one, or that of a new phase."""
        self.core, self.progress, self.own_policy = core, core.state.numbers, core.state.policy
        self.baselines, self.premise_rule, self.premises = core.baseline, core.rule.premises, core.state.premises

    def _checked_horizon(self, episodes: int | None) -> int | None:
        if episodes is None and self.settings.horizon == "fixed":
            raise InvalidInput("give the number of episodes, or horizon='doubling' if it is not known")
        return None if episodes is None else num_episodes(episodes)

    def _first_core(self) -> Core:
        """What the first episode starts from."""
        return self._make_core(self._no_baseline(self.constrained))

    def _no_baseline(self, constrained: bool) -> BaselineArrays:
        nothing = np.zeros((0, self.layout.num_rows))
        return self._make_baseline(nothing, np.zeros(self.view.num_constraints), constrained)

    def _make_baseline(self, policies: FloatArray, costs: FloatArray, constrained: bool = True) -> BaselineArrays:
        """Safe policies (K, num_rows) with the costs (m,) of their mixture."""
        return baseline_arrays(self.view, policies, costs, constrained)

    def _make_core(
        self,
        baseline: BaselineArrays,
        *,
        doubling: bool | None = None,
        search: Search | None = None,
        search_rule: SearchRule | None = None,
    ) -> Core:
        settings, layout, num_baselines = self.settings, self.layout, len(baseline.policies)
        # A mixture of several policies is not a Markov policy, which an anchor has to be (docs/anchored.md).
        anchored = settings.anchored and num_baselines == 1
        sets = make_sets(
            self.view, settings.choice, self.delta, self.episodes, mixes=self.mixes, bounded=num_baselines > 0,
            anchor=make_anchor(layout, baseline.policies[0], baseline.costs) if anchored else None,
        )  # fmt: skip
        absorbs, account = settings.radii in WITHOUT_HORIZON, self._account_rule()
        unknowns = make_unknowns(layout, self.view.num_constraints, self.view.knowledge, ties=settings.ties)
        premise_rule = make_premise_rule(
            self.view, unknowns, self.delta, beta=baseline.costs if self.inputs.baseline else None, absorbs=absorbs,
            stays=settings.on_refuted != "warn",
        )  # fmt: skip
        premises = make_premises(premise_rule, layout.num_triples, absorbs=absorbs)
        state = make_state(
            layout, sets, len(baseline.binding), premises, num_baselines=num_baselines, search=search,
            account=account.active,
        )  # fmt: skip
        rule = StepRule(
            epochs=self.epochs,
            doubling=settings.horizon == "doubling" if doubling is None else doubling,
            log_inverse_delta=-log(self.delta),
            pairs=float(layout.num_states * layout.num_actions),
            rates=self._rate_rule(searches=search_rule is not None),
            tol=settings.tol,
            realised=num_baselines > MOST_CACHED,
            premises=premise_rule,
            account=account,
        )
        state.numbers.stale = 1  # nothing is cached yet
        members = len(baseline.binding) + 2 if self.pools else 0  # the last place is for what was played last
        return make_core(
            layout, rule, sets, state, baseline, search_rule, members=members, floor=self.floor, delta=self.delta
        )

    def _account_rule(self) -> AccountRule:
        """Only B-OPS has an account."""
        return no_account()

    def _rate_rule(self, *, searches: bool) -> RateRule:
        """The rule of eta and gamma; the search of CV-OPS has the paper's, for which its constant is written out."""
        settings = self.settings
        if searches:
            return make_rate_rule(self.layout, "paper", "paper", 0.0)
        return make_rate_rule(self.layout, settings.eta, settings.gamma, settings.share)

    def _start(self, core: Core) -> None:
        """Rates, uniform weights and the first policy, from the episode that the state is at."""
        done = core.state.numbers.episode
        episodes, log_inverse_delta = float(max(1, (self.episodes or 1) - done)), core.rule.log_inverse_delta
        if core.rule.doubling:
            core.state.numbers.segment_end = done + 1
            episodes, log_inverse_delta = 1.0, log_inverse_delta + log(2.0)
        if begin(core, episodes, log_inverse_delta) != SOLVED:
            fallback_solve(self.layout, core)

    def _begin(self) -> None:
        self._complete()
        self.announce()
        core, state = self.core, self.core.state
        state.numbers.branch = draw_policy(core, self.coin)
        state.numbers.pending = 1
        if not self.queue.entries:
            self._enter(state.policy, False)

    def _enter(self, policy: FloatArray, repeats: bool) -> None:
        search, state = self.core.search, self.core.state.search
        if search.active:
            t = self.episode - state.broken.skipped + 1
            if t <= len(state.policies) or not repeats:  # beyond, a place that is taken is not given back
                keep_policy(search, state, policy if policy.flags.writeable else policy.copy(), t, self.coin)

    def _fold(self, entry: OpenPlan) -> None:
        buffers = self.core.buffers
        if entry.u is not None:
            buffers.late_u[:], buffers.marks.late = entry.u, 1
            buffers.marks.stayed = int(entry.plan.notes.get("staying", 0.0))
        try:
            if entry.plan.group is None:
                super()._fold(entry)
            else:
                learn_grouped(self, entry, self._path)
        finally:
            buffers.marks.values[:] = 0

    def _keep_for_later(self, fresh: list[OpenPlan]) -> None:
        numbers, found = self.core.state.numbers, dict[int, FloatArray]()
        last = numbers.branch
        for entry in fresh:
            key = numbers.branch = entry.branch if self.core.rule.realised else last
            if key not in found:
                u = np.zeros(self.layout.num_rows)
                bound_plan(self.core, u)
                found[key] = frozen(u)
            entry.u = found[key]
        numbers.branch = last

    def _take_in(self, log: Log) -> None:
        take_in(self, log)

    def _take_back(self, plan: LostPlan, outcome: Episode) -> None:
        take_back(self, plan, outcome)

    def _open_plan(self) -> NumberedPlan:
        lam, bounds = self.core.state.reals.mixing, np.zeros(self.view.num_constraints)
        cost_bounds(self.core, bounds)
        bounds.setflags(write=False)
        notes = {"mixing_weight": lam, "branch": float(self.progress.branch), **self._stay_notes()}
        notes.update(zip(self._bound_names, bounds.tolist(), strict=True))
        own = None
        if len(self.core.baseline.policies) and not self.core.rule.account.active:
            own = np.minimum(self.core.state.bounds, self.core.baseline.ceilings)
            own.setflags(write=False)
        return self._planned(lam, notes, bounds, own)

    def _stay_notes(self) -> dict[str, float]:
        """Whether the plan stays with the baseline, if there is such a rule."""
        stay = self.core.state.stay
        return {"staying": stay.now} if stay.limit > 0.0 else {}

    def _end_path(self, rows: Any, losses: Any, costs: Any) -> bool:
        """Copy a path of plain numbers into the buffers, without a look at them, and let compiled code check it."""
        own, m = self._path, self.view.num_constraints
        if costs is None:
            copied = m == 0
        else:
            copied = taken(own.costs[:, 0] if m == 1 and np.ndim(costs) == 1 else own.costs, costs)
        copied = copied and taken(own.rows, rows) and taken(own.losses, losses)
        return copied and learn_path(self.core, own) != REFUSED

    def _end(self, episode: Episode) -> None:
        if episode.irregular is not None:
            learn_broken(self, episode, self._path)
            return
        path = self._path
        # Copied, because compiled code exists once, for arrays that can be written to.
        path.rows[:], path.triples[:], path.losses[:] = episode.rows, episode.triples, episode.losses
        path.costs[:] = episode.costs
        learn(self.core, path.rows, path.triples, path.losses, path.costs)

    @exclusive
    def absorb(self, log: Log | Any, **how: Any) -> Log:
        """Learn from episodes that were played before, by any policy.

        Call it before the first episode or between two. With several open plans (`max_open`) it takes its place behind
        them: it is learnt once all of their outcomes are. It needs radii without a horizon: radii="kt" or
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
        if self.num_open or self.queue.entries:
            wait_in(self, found)
        else:
            take_in(self, found)
        self.announce()
        return found

    def with_view(self, view: View, *, baseline_costs: ArrayLike | Mapping[str, float] | None = None) -> Self:
        """Return a learner that goes on from here with other thresholds.

        It keeps what was seen, projects its weights onto the policies that the new thresholds allow, and has the open
        plans of this one: these keep the bounds that they were made under, and later ones respect the new thresholds.
        Its regret is not bounded any more, since the best policy is another one. This learner stays as it is.

        Args:
            view: The same view with other thresholds; whatever else is known must be the same.
            baseline_costs: New bounds of the costs of the baseline, for learners that were given some; None keeps them.

        Raises:
            InvalidInput: If the view differs in more than its thresholds, or if the baseline is not safe under these.

        Examples:
            >>> import hedgerow as hr
            >>> strict = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.25})
            >>> loose = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> baseline = hr.SafePolicy(hr.Policy(loose, [[0.0, 1.0]]), costs=[0.125])
            >>> learner = hr.SOPS(loose, episodes=1000, delta=0.01, baseline=baseline)
            >>> round(learner.with_view(strict).plan().mixing_weight, 3), round(learner.plan().mixing_weight, 3)
            (0.857, 0.571)
        """
        return changed(self.__copy__(), view=view_of(view), baseline_costs=baseline_costs)

    def with_episodes(self, episodes: int) -> Self:
        """Return a learner that goes on from here with another number T of episodes.

        Its confidence sets must hold without such a number, radii="kt" or radii="anytime". T decides on its rates.

        Args:
            episodes: The new T, those that were played included.
        """
        return changed(self.__copy__(), episodes=num_episodes(episodes))

    @property
    def unfinished(self) -> bool:
        return bool(self.core.state.numbers.open)

    def _complete(self) -> None:
        if self.core.state.numbers.open:
            fallback_solve(self.layout, self.core)
        if self.core.state.numbers.phase_over:
            self._next_phase()

    def _next_phase(self) -> None:
        """Only CV-OPS has phases."""
        raise NotImplementedError

    def _check_played(self, episode: Episode, played: FloatArray) -> None:
        rows = episode.rows[: None if episode.irregular is None else episode.irregular.overridden_from]
        unplayed = np.flatnonzero(~(played[rows] > 0.0))
        if unplayed.size:
            k = int(unplayed[0])
            raise InvalidInput(
                f"step {k} of the trajectory, {self.layout.describe_row(int(rows[k]))}, has probability 0 under the "
                f"plan; if somebody else chose it, say so: Episode(..., overridden_from={k})"
            )

    def check_horizon(self, more: int) -> None:
        if self.max_open == 1 or self.settings.radii not in WITHOUT_HORIZON:
            super().check_horizon(more)

    @property
    def no_groups(self) -> str:  # type: ignore[override]
        """Why its plans may not be in groups; the empty text if they may."""
        if not self.opens:
            return f"{self.title} keeps one open plan"
        if self.view.knowledge.costs_drawn != "step":
            return ""
        return "where costs are drawn with the moves (costs_drawn='step'), plans that share costs share moves as well"

    @property
    def begun(self) -> int:
        """The number of episodes observed before the present phase began."""
        return 0

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
        return Estimates.of(self.view, self.episode, state.counts, state.boxes, self.core.sets.rule.box)

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
        and the episodes, own ones included, that were cut short (`truncated`), of which something is `unknown`, or left
        out for a declared reason (`independent`), and own ones that did not follow the plan (`off_policy`).
        """
        records = self.core.state.logged, self.core.state.incomplete
        return {name: getattr(record, name) for record in records for name in record.fields}

    @property
    def _budget(self) -> Budget:
        # Intervals of the kind kt spend what the transitions do not need on the costs.
        return Budget(self.delta, self.transitions is not None and self.settings.radii != "kt")

    @property
    def transitions(self) -> FloatArray | None:
        """(num_triples,): the transition probabilities, if all of them are known; else None."""
        known = self.view.knowledge.transitions
        return None if known is None or np.isnan(known).any() else known

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
        from hedgerow.learners.ops.loop import MirrorWatcher

        return MirrorWatcher(self, stage, audit=audit, notes=notes, estimator=estimator)

    def _arguments(self) -> dict[str, Any]:
        switches = {name: getattr(self.settings, name) for name in sorted(self.switches - {"sets"})}
        common = {"episodes": self.episodes, "delta": self.delta, "seed": self.seed, "preset": self.settings.preset}
        return common | switches

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state by name, those that follow from others included."""
        return arrays_of_state(self.core.state)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        left_out = derived(self.core)
        arrays = {name: array for name, array in self.state_arrays().items() if name not in left_out}
        if self.transitions is not None:  # as an argument or as knowledge: the state is the same, and complete
            arrays["transitions"] = self.transitions
        return arrays | {"declared": np.array(json.dumps(self.declared, sort_keys=True)), "absorbed": self.absorbed}

    @classmethod
    def _rebuilt(cls, view: View, arguments: dict[str, Any], state: dict[str, NDArray[Any]]) -> Self:
        from hedgerow.learners.ops.soundness import check_sizes

        check_sizes(view, state)
        if "transitions" in state:
            arguments["transitions"] = state.pop("transitions")
        return super()._rebuilt(view, arguments, state)

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        from hedgerow.learners.ops.soundness import checked_reasons, restore_state

        absorbed = state.pop("absorbed")
        self.declared.update(checked_reasons(json.loads(str(state.pop("declared")))))
        restore_state(self, state)
        self.absorbed = checked_digests(absorbed, self.core.state.logged.episodes)

    def expect(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Make room for the state `arrays` of a file whose shapes depend on how far the learner was."""
        return

    def __copy__(self) -> Self:
        self._refuse_unknown()
        return super().__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._refuse_unknown()
        return super().__reduce__()

    def _refuse_unknown(self) -> None:
        """Refuse to copy a class that may change more than the arrays of its core."""
        if learners.name_of(type(self)) not in learners.builtin and type(self).state is MirrorLearner.state:
            raise InvalidInput(
                f"{type(self).__name__} is not one of hedgerow's own learners and may hold more than a file does: "
                "it cannot be copied or pickled; build another one, or override state() and restored(view, state)"
            )

    @property
    def _choice(self) -> tuple[str, str]:
        return "preset", self.settings.preset
