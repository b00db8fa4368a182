"""Unrolling: a finite-horizon MDP that may revisit its states -> a loop-free CMDP with one layer per step.

A state (k, s) of the loop-free world means: the process is in s before step k. For k < H - 1

    P((k + 1, s') | (k, s), a) = P_k(s' | s, a),    l((k, s), a) = l_k(s, a),    g_i((k, s), a) = g_{i,k}(s, a),

and the rows of step H - 1 lead to the one terminal state. A start distribution mu adds a root before step 0 whose rows
all lead to (0, s) with probability mu(s), at loss and cost 0; then the layout has H + 1 layers of decisions, not H.
Every policy has the same expected loss and costs before and after.

With the *known* support only positive transitions are triples and states that no policy reaches are left out. With the
*full* support every state of the next layer is a possible successor and none is left out: what a learner faces that
knows nothing of P. Either way pairs that carry out the same action in the same state at several steps share one
distribution, if the tables are the same at all steps, and the result says so: its knowledge has those ties.

Tables come as users have them. States s in 0..S-1, actions a in 0..A-1, steps k in 0..H-1; each of P, l, g may be the
same in all steps or differ between them, and the transitions may be dense or sparse. Two things need no entries:

- *absorbing* states, in which the process has ended: they lead to themselves at loss 0 and cost 0;
- *unavailable* actions, which do exactly what the first available action of their state does (an alias): every state
  has A rows although it offers fewer choices.

Entries of the tables for absorbing states and unavailable actions are never read and may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hedgerow.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    distinct_names,
    float_array,
    frozen,
    numeric_array,
    unmasked,
    whole_number,
    within,
)
from hedgerow.display import text
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP, TOL_ROW_SUM
from hedgerow.model.costs import BernoulliCosts, DeterministicCosts
from hedgerow.model.episode import Episode, along, flagged
from hedgerow.model.layout import Axis, Layout
from hedgerow.model.occupancy import TOL_POLICY_SUM, checked_policy

Support = Literal["known", "full"]
COST_KINDS: dict[str, type[BernoulliCosts] | type[DeterministicCosts]] = {
    "bernoulli": BernoulliCosts,
    "deterministic": DeterministicCosts,
}


class RewardScale(NamedTuple):
    """How losses came from rewards: loss = (best - reward) / width in each of `horizon` steps.

    Examples:
        >>> from hedgerow.importers.unroll import RewardScale
        >>> scale = RewardScale(best=1.0, width=2.0, horizon=10)
        >>> scale.total_reward(2.5), scale.total_loss(5.0)
        (5.0, 2.5)
    """

    best: float
    """The largest reward of a step, which has loss 0."""
    width: float
    """The largest reward minus the smallest one."""
    horizon: int
    """The number of steps."""

    def total_reward(self, total_loss: float) -> float:
        """Return the expected reward of an episode whose expected loss is `total_loss`."""
        return self.horizon * self.best - self.width * total_loss

    def total_loss(self, total_reward: float) -> float:
        """Return the expected loss of an episode whose expected reward is `total_reward`."""
        return (self.horizon * self.best - total_reward) / self.width


@dataclass(frozen=True, eq=False, repr=False)
class Unrolled:
    """A finite-horizon MDP as a CMDP with one layer per step, and where its states and rows come from.

    `hr.unroll` and `hedgerow.gym.unroll_gymnasium` make one. The layout has `horizon` layers of decisions, and one more
    in front if there is a root, which draws the start state (`has_root`). Below, S and A are the numbers of original
    states and actions, H is the number of steps.

    Examples:
        >>> import hedgerow as hr
        >>> swap_or_stay = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
        >>> world = hr.unroll(swap_or_stay, horizon=3, start=0, loss=[[0.5, 1.0], [0.0, 1.0]])
        >>> world.state_of.tolist(), world.step_of.tolist()
        ([0, 0, 1, 0, 1, -1], [0, 1, 1, 2, 2, 3])
    """

    cmdp: CMDP
    """The world."""
    loss: FloatArray | None
    """(num_rows,): the losses, in [0, 1]; 0 in the root. None if no loss was given."""
    horizon: int
    """The number H of steps of the original process."""
    num_original_states: int
    """The number S of states of the original process."""
    state_of: IntArray
    """(num_states,): the original state; -1 for the root and the terminal state."""
    step_of: IntArray
    """(num_states,): the step before which the state is reached; -1 for the root, H for the terminal state."""
    action_of: IntArray
    """(num_rows,): the action that is carried out, which differs from the row's own where that is unavailable; -1 in
    the root."""
    is_copy: NDArray[np.bool_]
    """(num_states,): whether the state means "the process has ended in `state_of`"."""
    default_table: FloatArray
    """(1, S, A) or (H, S, A): uniform over the available actions. `table` reports this for states that were left
    out."""
    scale: RewardScale | None = None
    """How the losses came from rewards; None if they did not."""
    state_names: tuple[str, ...] | None = None
    """(S,): the names of the original states; None if they were not given any."""

    def __repr__(self) -> str:
        original = text.counted(self.num_original_states, "original state")
        return text.line("Unrolled", f"horizon={self.horizon}", original, repr(self.cmdp))

    @property
    def has_root(self) -> bool:
        """Whether a layer in front draws the start state."""
        return bool(self.step_of[0] < 0)

    def policy(self, table: ArrayLike) -> FloatArray:
        """Turn a `table` of action probabilities, (S, A) or (H, S, A), into a policy (num_rows,).

        Probability on an unavailable action counts for the action that replaces it. Only reachable states are read. The
        root's policy has no effect and is uniform.

        Raises:
            InvalidInput: Names the first step and state whose probabilities do not sum to 1.
        """
        A = self.cmdp.layout.num_actions
        shape = (self.num_original_states, A)
        per_step = np.ndim(table) == 3
        given = float_array("the table of action probabilities", table, (self.horizon, *shape) if per_step else shape)
        inner = self._inner_states()
        index = (self.step_of[inner], self.state_of[inner]) if per_step else (self.state_of[inner],)
        probabilities = given[index]
        off = np.abs(probabilities.sum(axis=1) - 1.0) > TOL_POLICY_SUM
        bad = np.flatnonzero(off | (probabilities < 0).any(axis=1))
        if len(bad):
            k, s = self.step_of[inner[bad[0]]], self.state_of[inner[bad[0]]]
            raise InvalidInput(
                f"the action probabilities of step {k}, state {s} are {probabilities[bad[0]].tolist()}; they must be "
                "at least 0 and sum to 1"
            )
        root = np.full((int(self.has_root), A), 1.0 / A)
        return np.concatenate((root, probabilities)).ravel()

    def table(self, policy: ArrayLike) -> FloatArray:
        """Turn a `policy` (num_rows,) into a table (H, S, A) of the original process.

        Probabilities of actions that do the same are added up. States that were left out get `default_table`.
        """
        pi = checked_policy(self.cmdp.layout, policy).reshape(-1, self.cmdp.layout.num_actions)
        real = self.action_of.reshape(pi.shape)
        inner = self._inner_states()
        inner = inner[~self.is_copy[inner]]
        k, s = self.step_of[inner][:, None], self.state_of[inner][:, None]
        shape = (self.horizon, *self.default_table.shape[1:])
        result = np.broadcast_to(self.default_table, shape).copy()
        result[k, s] = 0.0
        np.add.at(result, (k, s, real[inner]), pi[inner])
        return result

    def episode(
        self,
        states: Sequence[int | str],
        actions: Sequence[int | str],
        losses: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        ended: bool = False,
        overridden_from: int | None = None,
        unknown_costs: ArrayLike | bool | None = None,
        independent: str | None = None,
    ) -> Episode:
        """Turn what happened in the original process into an episode for a learner.

        Args:
            states: The original states before each of the n actions, and the one after the last, which may be left out
                if n = H: by name or by number. Numbers are names where any name of a state looks like a number and
                names were given, else positions.
            actions: The n actions, likewise.
            losses: (n,) losses in [0, 1], one per action.
            costs: (n, m) costs in [0, 1], or (n,) for one constraint; None without constraints.
            ended: Whether the process has ended by itself in its last state and stays there; else an episode with n < H
                was aborted.
            overridden_from: The first action, counted from 0, that did not follow the plan; None if all did.
            unknown_costs: True if the costs are unknown; or (n, m) flags, (n,) for one constraint; see `Episode`.
            independent: Why the episode is not whole, if that had nothing to do with it; see `Episode`.

        Returns:
            The episode, with the root added if there is one.
        """
        view, count = self.cmdp.view(), len(actions)
        if not 0 < count <= self.horizon or len(states) not in (count + 1, count + (count < self.horizon)):
            raise InvalidInput(
                f"an episode of this process has at most {self.horizon} actions, and one state more than actions; "
                f"there are {count} actions and {len(states)} states"
            )
        found, copy = [*map(self._original.position, states)], ended and count < self.horizon
        places = [
            self._place(step, state) for step, state in enumerate(found[: count + (not copy)]) if step < self.horizon
        ]
        A, taken = view.layout.num_actions, map(view.layout.action, actions)
        rows = [place * A + action for place, action in zip(places, taken, strict=False)]
        rest = [self._place(step, found[-1], copy=True) * A for step in range(count, self.horizon)] if copy else []
        stays = np.zeros(len(rest)) if self.loss is None else self.loss[rest]
        unknown = flagged(unknown_costs, count, view.num_constraints)
        cost = along(view, np.zeros(unknown.shape) if costs is None and unknown is not None else costs, count)
        # The root comes before the steps, the ended copies after them; neither costs anything.
        root = int(self.has_root)
        around = ((root, len(rest)), (0, 0))
        aborted = count < self.horizon and not copy
        return Episode(
            view,
            [0] * root + rows + rest,
            np.concatenate((np.zeros(root), numeric_array("the loss", losses), stays)),
            np.pad(cost, around),
            ended_in=view.layout.state_axis.entry(places[count]) if aborted else None,
            overridden_from=None if overridden_from is None else overridden_from + root,
            unknown_costs=None if unknown is None else np.pad(unknown, around),
            independent=independent,
        )

    @property
    def _original(self) -> Axis:
        return Axis("state", self.num_original_states if self.state_names is None else self.state_names)

    def _place(self, step: int, state: int, *, copy: bool = False) -> int:
        """The number of the loop-free state that means `state`, or "ended in `state`", before `step`."""
        found = np.flatnonzero((self.step_of == step) & (self.state_of == state) & (self.is_copy == copy))
        if not len(found):
            what = f"to have ended in state {state}" if copy else f"state {state}"
            raise InvalidInput(f"{what} is not possible before step {step}")
        return int(found[0])

    def _inner_states(self) -> IntArray:
        """The states (k, s): all but the root and the terminal state."""
        return np.flatnonzero(self.state_of >= 0)


def unroll(
    transitions: Transitions,
    horizon: int,
    start: int | ArrayLike,
    *,
    loss: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    cost_kind: Literal["bernoulli", "deterministic"] = "bernoulli",
    thresholds: ArrayLike = (),
    constraint_names: Sequence[str] | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    absorbing: Iterable[int] = (),
    available: ArrayLike | None = None,
    support: Support = "known",
) -> Unrolled:
    """Turn a finite-horizon MDP that may revisit its states into a CMDP with one layer per step.

    A state (k, s) of the result means: the process is in s before step k. Every policy has the same expected loss and
    costs before and after. Below, S and A are the numbers of states and actions, H is `horizon`, m the number of
    constraints. If the tables are the same at all steps, the result knows that the pairs of the same state and action
    share one distribution.

    Args:
        transitions: (S, A, S) probabilities of next states, or (H, S, A, S) if they differ between steps; or a
            scipy.sparse matrix (S * A, S) whose row s * A + a belongs to state s and action a, or a sequence of H of
            them.
        horizon: The number H of steps.
        start: The start state, or a distribution (S,), which adds a layer in front that draws it.
        loss: (S, A) or (H, S, A) losses in [0, 1]; None for a world without a loss of its own.
        costs: (m, S, A) or (m, H, S, A) mean costs in [0, 1]; None without constraints.
        cost_kind: "bernoulli" draws each cost as 0 or 1 with that mean, "deterministic" takes the mean itself.
        thresholds: (m,) the most that an episode may cost in expectation.
        constraint_names: (m,) names; None calls them "cost 1", "cost 2", ...
        state_names: (S,) names of the states; None numbers them.
        action_names: (A,) names of the actions; None for none.
        absorbing: States in which the process has ended.
        available: (S, A) or (H, S, A) booleans; an action that is not available does what the first available one does.
            None makes all of them available.
        support: "known" lets learners know which transitions are possible and leaves out states that no policy reaches;
            "full" makes every state a possible successor, for learners that know nothing of the transitions.

    Returns:
        The CMDP, its loss, and where its states and rows come from.

    Raises:
        InvalidInput: If a shape is wrong, or if probabilities do not sum to 1.

    Examples:
        >>> import hedgerow as hr
        >>> swap_or_stay = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
        >>> world = hr.unroll(swap_or_stay, horizon=3, start=0, loss=[[0.5, 1.0], [0.0, 1.0]])
        >>> world.cmdp.layout
        Layout(layers=(1, 2, 2, 1), actions=2, 10 of 16 triples)
        >>> world.cmdp.state_labels
        ('(0, 0)', '(1, 0)', '(1, 1)', '(2, 0)', '(2, 1)', 'end')
    """
    _one_of("support", support, ("known", "full"))
    _one_of("cost_kind", cost_kind, tuple(COST_KINDS))
    mdp = finite_horizon(
        transitions,
        horizon,
        start,
        loss=loss,
        costs=costs,
        state_names=state_names,
        action_names=action_names,
        absorbing=absorbing,
        available=available,
    )
    made = _unrolled(mdp, support, COST_KINDS[cost_kind], thresholds, constraint_names)
    return made if state_names is None else replace(made, state_names=tuple(mdp.state_names))


def _unrolled(
    mdp: FiniteHorizon,
    support: Support,
    cost_kind: type[BernoulliCosts] | type[DeterministicCosts],
    thresholds: ArrayLike,
    constraint_names: Sequence[str] | None,
) -> Unrolled:
    layers = _states_of_steps(mdp, support)
    gather = [_table_rows(mdp, k, states) for k, states in enumerate(layers)]
    layout, probabilities = (_full_world if support == "full" else _sparse_world)(mdp, layers, gather)
    num_roots = int(mdp.start_state is None)
    outside = np.zeros(num_roots * mdp.num_actions)
    means = [_over_rows(table, gather, outside) for table in mdp.costs]
    cmdp = CMDP(
        layout,
        probabilities,
        cost_kind(np.array(means).reshape(-1, layout.num_rows)),
        thresholds,
        constraint_names=constraint_names,
        state_labels=_labels(mdp, layers),
        action_labels=mdp.action_names,
        knowledge=_ties(mdp, gather, len(outside)),
    )
    offered = mdp.real_action == np.arange(mdp.num_actions)
    return Unrolled(
        cmdp=cmdp,
        loss=None if mdp.loss is None else frozen(_over_rows(mdp.loss, gather, outside)),
        horizon=mdp.horizon,
        num_original_states=mdp.num_states,
        state_of=frozen(np.concatenate((np.full(num_roots, -1), *layers, [-1]))),
        step_of=frozen(layout.layer_of_state - num_roots),
        action_of=frozen(np.concatenate((np.full(len(outside), -1), *(rows % mdp.num_actions for rows in gather)))),
        is_copy=frozen(np.zeros(layout.num_states, dtype=bool)),
        default_table=frozen(offered / offered.sum(axis=2, keepdims=True)),
    )


def _states_of_steps(mdp: FiniteHorizon, support: Support) -> list[IntArray]:
    """For each step the original states that make up its layer, ascending."""
    everywhere = np.arange(mdp.num_states)
    if support == "full":
        first = everywhere if mdp.start_state is None else np.array([mdp.start_state])
        return [first] + [everywhere] * (mdp.horizon - 1)
    layers = [np.flatnonzero(mdp.start)]
    for k in range(mdp.horizon - 1):
        rows = _table_rows(mdp, k, layers[-1])
        layers.append(np.unique(mdp.transitions_at(k)[rows].indices).astype(np.int64))
    return layers


def _table_rows(mdp: FiniteHorizon, k: int, states: IntArray) -> IntArray:
    """For each row of a layer the table row s * A + a that it carries out: aliasing is this choice."""
    return (states[:, None] * mdp.num_actions + mdp.real_action_at(k)[states]).ravel()


def _sparse_world(mdp: FiniteHorizon, layers: list[IntArray], gather: list[IntArray]) -> tuple[Layout, FloatArray]:
    """Layout and transitions with positive transitions as the only triples."""
    root = mdp.start_state is None
    sizes = [1] * int(root) + [len(states) for states in layers] + [1]
    first_state = np.cumsum(sizes)[int(root) :]  # of step 1, ..., H; the terminal state is the layer of step H
    counts, successors, probabilities = [], [], []
    if root:
        reached = mdp.start[layers[0]]
        counts.append(np.full(mdp.num_actions, len(reached)))
        successors.append(np.tile(np.arange(1, 1 + len(reached)), mdp.num_actions))
        probabilities.append(np.tile(reached, mdp.num_actions))
    for k, rows in enumerate(gather[:-1]):
        block = mdp.transitions_at(k)[rows]
        block.sort_indices()
        counts.append(np.diff(block.indptr))
        successors.append(first_state[k] + np.searchsorted(layers[k + 1], block.indices))
        probabilities.append(block.data)
    num_last = len(gather[-1])
    counts.append(np.ones(num_last, dtype=np.int64))
    successors.append(np.full(num_last, first_state[-2]))
    probabilities.append(np.ones(num_last))
    row_start = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    layout = Layout(sizes, mdp.num_actions, row_start=row_start, successor=np.concatenate(successors))
    return layout, np.concatenate(probabilities)


def _full_world(mdp: FiniteHorizon, layers: list[IntArray], gather: list[IntArray]) -> tuple[Layout, FloatArray]:
    """Layout and transitions with every state of the next layer as a possible successor."""
    root = mdp.start_state is None
    sizes = [1] * int(root) + [len(states) for states in layers] + [1]
    blocks = [np.tile(mdp.start, mdp.num_actions)] if root else []
    blocks += [mdp.transitions_at(k)[rows].toarray().ravel() for k, rows in enumerate(gather[:-1])]
    blocks.append(np.ones(len(gather[-1])))
    return Layout(sizes, mdp.num_actions), np.concatenate(blocks)


def _ties(mdp: FiniteHorizon, gather: list[IntArray], num_outside: int) -> dict[str, IntArray]:
    """Which pairs share a distribution, by construction: one table row at all steps, and aliases of one action.

    Pairs of the last step lead to the terminal state for sure: there is nothing to share.
    """
    table_size = mdp.num_states * mdp.num_actions
    outside = np.full(num_outside, mdp.horizon * table_size)

    def labels(num_tables: int) -> list[IntArray]:
        return [rows + (k * table_size if num_tables > 1 else 0) for k, rows in enumerate(gather)]

    moves = labels(len(mdp.transitions))
    ties = {"same_transitions": np.concatenate((outside, *moves[:-1], np.full(len(gather[-1]), -1)))}
    if len(mdp.costs):
        ties["same_costs"] = np.concatenate((outside, *labels(mdp.costs.shape[1])))
    return ties


def _over_rows(table: FloatArray, gather: list[IntArray], outside: FloatArray) -> FloatArray:
    """(rows,) from a table (1|H, S, A); `outside` stands in the rows of the root, if there is one."""
    return np.concatenate((outside, *(at_step(table, k).ravel()[rows] for k, rows in enumerate(gather))))


def _labels(mdp: FiniteHorizon, layers: list[IntArray]) -> list[str]:
    inner = [f"({k}, {mdp.state_names[s]})" for k, states in enumerate(layers) for s in states.tolist()]
    return ["start"] * (mdp.start_state is None) + inner + ["end"]


def _one_of(what: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"{what} is {value!r}; choose one of {', '.join(known)}")


# Tables, checked and brought into one shape ---------------------------------------------------------------------------

SparseMatrix: TypeAlias = Any
"""A scipy.sparse matrix or array (scipy ships no types)."""
Transitions: TypeAlias = ArrayLike | SparseMatrix | Sequence[SparseMatrix]


@dataclass(frozen=True, eq=False)
class FiniteHorizon:
    """A validated finite-horizon MDP. Leading axes written 1|H have length 1 if the table is the same in all steps."""

    horizon: int
    num_states: int
    num_actions: int
    transitions: tuple[SparseMatrix, ...]
    """1|H matrices (S * A, S), row s * A + a, sorted, without explicit zeros; rows of unavailable actions are empty."""
    start: FloatArray
    """(S,): the distribution of the first state."""
    start_state: int | None
    """The first state, where it was given as one state rather than as a distribution."""
    loss: FloatArray | None
    """(1|H, S, A)."""
    costs: FloatArray
    """(m, 1|H, S, A)."""
    real_action: IntArray
    """(1|H, S, A): the action that is carried out when a is chosen; a itself where it is available."""
    state_names: tuple[str, ...]
    action_names: tuple[str, ...] | None

    def transitions_at(self, k: int) -> SparseMatrix:
        return self.transitions[k if len(self.transitions) > 1 else 0]

    def real_action_at(self, k: int) -> IntArray:
        """(S, A): the action carried out in step k."""
        return at_step(self.real_action, k)


def at_step(table: NDArray[Any], k: int) -> NDArray[Any]:
    """Step k of a table (1|H, ...)."""
    step: NDArray[Any] = table[k if len(table) > 1 else 0]
    return step


def finite_horizon(
    transitions: Transitions,
    horizon: int,
    start: int | ArrayLike,
    *,
    loss: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    absorbing: Iterable[int] = (),
    available: ArrayLike | None = None,
) -> FiniteHorizon:
    """Check the description of a finite-horizon MDP; `unroll` documents the arguments.

    >>> stay_or_step = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    >>> mdp = finite_horizon(stay_or_step, horizon=3, start=0, loss=[[1.0, 0.5], [0.0, 0.0]], absorbing=[1])
    >>> mdp.num_states, mdp.num_actions, mdp.transitions_at(2).toarray().tolist()
    (2, 2, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    """
    H = whole_number("the horizon", horizon, 1)
    raw, S, A = _raw_transitions(transitions, H)
    names = distinct_names("state names", map(str, range(S)) if state_names is None else state_names, S)
    place = _Places(H, names, A)
    ended = _absorbing(absorbing, S)
    offered = _available(available, ended, place)
    first_offered = np.argmax(offered, axis=2)[:, :, None]
    read = offered & ~ended[:, None]
    distribution, start_state = checked_start(start, names)
    return FiniteHorizon(
        horizon=H,
        num_states=S,
        num_actions=A,
        transitions=tuple(
            _checked_matrix(raw[i], ended, _read_at(offered, i, len(raw)), place.rows(i if len(raw) > 1 else None))
            for i in range(len(raw))
        ),
        start=distribution,
        start_state=start_state,
        loss=None if loss is None else _table("the loss", loss, read, place),
        costs=_cost_tables(costs, read, place),
        real_action=frozen(np.where(offered, np.arange(A), first_offered).astype(np.int64)),
        state_names=names,
        action_names=None if action_names is None else distinct_names("action names", action_names, A),
    )


@dataclass(frozen=True)
class _Places:
    """Describes the place of an entry in a table."""

    horizon: int
    state_names: tuple[str, ...]
    num_actions: int

    def state(self, s: int, step: int | None) -> str:
        return f"state {self.state_names[s]}" if step is None else f"step {step}, state {self.state_names[s]}"

    def rows(self, step: int | None) -> Callable[[int], str]:
        """Locator of the flat index s * A + a."""
        return lambda row: f"{self.state(row // self.num_actions, step)}, action {row % self.num_actions}"

    def entries(self, per_step: bool) -> Callable[[int], str]:
        """Locator of the flat index of a (1|H, S, A) table."""
        size = len(self.state_names) * self.num_actions
        return lambda index: self.rows(index // size if per_step else None)(index % size)


def _raw_transitions(transitions: Transitions, H: int) -> tuple[list[SparseMatrix], int, int]:
    """The 1|H unchecked matrices (S * A, S), with S and A."""
    matrices: list[SparseMatrix]
    if sparse.issparse(transitions):
        matrices = [transitions]
    elif isinstance(transitions, list | tuple) and any(sparse.issparse(matrix) for matrix in transitions):
        matrices = list(transitions)
        if len(matrices) != H or not all(sparse.issparse(matrix) for matrix in matrices):
            raise InvalidInput(f"{len(matrices)} transition matrices given; {H} steps need {H} sparse matrices, or one")
    else:
        return _split_dense(transitions, H)
    shape = matrices[0].shape
    if len(shape) != 2 or not shape[1] or not shape[0] or shape[0] % shape[1]:
        raise InvalidInput(f"a sparse transition matrix has shape {shape}; expected (states * actions, states)")
    for k, matrix in enumerate(matrices):
        if matrix.shape != shape:
            raise InvalidInput(f"the transition matrix of step {k} has shape {matrix.shape}, that of step 0 {shape}")
        if matrix.dtype.kind not in "fiub":
            raise InvalidInput(f"transition probabilities must be numbers, not entries of type {matrix.dtype}")
    return matrices, shape[1], shape[0] // shape[1]


def _split_dense(transitions: ArrayLike, H: int) -> tuple[list[SparseMatrix], int, int]:
    dense = numeric_array("transition probabilities", transitions)
    if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or 0 in dense.shape:
        raise InvalidInput(
            f"transitions have shape {dense.shape}; expected (states, actions, states), with one more axis of length "
            f"{H} in front if they differ between steps, or sparse matrices (states * actions, states)"
        )
    if dense.ndim == 4 and len(dense) != H:
        raise InvalidInput(f"transitions are given for {len(dense)} steps; the horizon is {H}")
    S, A = dense.shape[-3], dense.shape[-2]
    return [sparse.csr_array(block) for block in dense.reshape(-1, S * A, S)], S, A


def _checked_matrix(
    matrix: SparseMatrix, ended: BoolArray, read: BoolArray, where: Callable[[int], str]
) -> SparseMatrix:
    """The rows of `matrix` as distributions, those of absorbing states replaced; `read` (S, A) says which matter."""
    A = read.shape[1]
    entries = sparse.coo_array(matrix)
    kept = ~ended[entries.row // A] & read.ravel()[entries.row]
    loops = np.flatnonzero(np.repeat(ended, A))
    row = np.concatenate((entries.row[kept], loops))
    column = np.concatenate((entries.col[kept], loops // A))
    data = np.concatenate((entries.data[kept].astype(np.float64), np.ones(len(loops))))
    bad = ~np.isfinite(data) | (data < 0)
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        raise InvalidInput(
            f"the transition probability at {where(int(row[j]))}, successor {column[j]} is {float(data[j])!r}; "
            "it must be a finite number of at least 0"
        )
    sums = np.bincount(row, weights=data, minlength=read.size)
    off = np.where(read.ravel() | np.repeat(ended, A), np.abs(sums - 1.0), 0.0)
    worst = int(np.argmax(off))
    if off[worst] > TOL_ROW_SUM:
        raise InvalidInput(
            f"transitions of {where(worst)} sum to {float(sums[worst])!r}, not 1; divide each row by its sum"
        )
    checked = sparse.csr_array((data, (row, column)), shape=matrix.shape)  # adds up repeated entries
    checked.eliminate_zeros()
    checked.sort_indices()
    return checked


def _read_at(offered: BoolArray, i: int, num_tables: int) -> BoolArray:
    """(S, A): the rows that step i reads; with one table for all steps, the rows that any step reads."""
    return np.asarray(offered.any(axis=0) if num_tables == 1 else at_step(offered, i))


def checked_start(start: int | ArrayLike, state_names: tuple[str, ...]) -> tuple[FloatArray, int | None]:
    """The start distribution (S,), and the start state if one was named."""
    S = len(state_names)
    if not isinstance(start, list | tuple) and np.ndim(start) == 0:
        state = whole_number("the start state", start.item() if isinstance(start, np.ndarray) else start, 0)
        if state >= S:
            raise InvalidInput(f"the start state is {state}; the states are numbered 0 to {S - 1}")
        return frozen((np.arange(S) == state).astype(np.float64)), state

    def where(s: int) -> str:
        return f"state {state_names[s]}"

    array = within("the start probability", float_array("the start probability", start, (S,), where), 0.0, 1.0, where)
    if abs(array.sum() - 1.0) > TOL_ROW_SUM:
        raise InvalidInput(f"the start distribution sums to {float(array.sum())!r}, not 1")
    return array, None


def _absorbing(absorbing: Iterable[int], S: int) -> BoolArray:
    ended = np.zeros(S, dtype=bool)
    if not hasattr(absorbing, "__iter__") or isinstance(absorbing, str):
        raise InvalidInput(f"absorbing must be a collection of state numbers, not {absorbing!r}")
    for state in absorbing:
        if whole_number("an absorbing state", state, 0) >= S:
            raise InvalidInput(f"absorbing state {state} does not exist; the states are numbered 0 to {S - 1}")
        ended[state] = True
    return ended


def _available(available: ArrayLike | None, ended: BoolArray, place: _Places) -> BoolArray:
    """(1|H, S, A): the mask of available actions; an absorbing state offers all of them, to no effect."""
    shape = (len(ended), place.num_actions)
    if available is None:
        return np.ones((1, *shape), dtype=bool)
    mask = np.asarray(unmasked("available", available))
    if mask.dtype != bool or mask.shape not in (shape, (place.horizon, *shape)):
        raise InvalidInput(
            f"available has shape {mask.shape} and type {mask.dtype}; expected bool of shape {shape} or "
            f"{(place.horizon, *shape)}"
        )
    offered = np.where(ended[:, None], True, mask.reshape(-1, *shape))
    stuck = np.argwhere(~offered.any(axis=2))
    if len(stuck):
        k, s = (int(i) for i in stuck[0])
        raise InvalidInput(
            f"{place.state(s, k if mask.ndim == 3 else None)} has no available action; allow one or make it absorbing"
        )
    return offered


def _cost_tables(costs: ArrayLike | None, read: BoolArray, place: _Places) -> FloatArray:
    """(m, 1|H, S, A)."""
    if costs is None:
        return frozen(np.zeros((0, 1, *read.shape[1:])))
    raw = numeric_array("costs", costs)
    if raw.ndim not in (3, 4):
        raise InvalidInput(
            f"costs have shape {raw.shape}; expected (constraints, states, actions), with one more axis of length "
            f"{place.horizon} after the first if they differ between steps"
        )
    tables = [_table(f"the cost of constraint {i}", raw[i], read, place) for i in range(len(raw))]
    return frozen(np.stack(tables)) if tables else _cost_tables(None, read, place)


def _table(what: str, value: ArrayLike, read: BoolArray, place: _Places) -> FloatArray:
    """A table (1|H, S, A) in [0, 1], and 0 where it is not read."""
    raw = numeric_array(what, value)
    shape = read.shape[1:]
    if raw.shape not in (shape, (place.horizon, *shape)):
        raise InvalidInput(f"{what} has shape {raw.shape}, expected {shape} or {(place.horizon, *shape)}")
    table = np.where(read, raw, 0)  # becomes per-step if either is
    where = place.entries(per_step=len(table) > 1)
    flat = within(what, float_array(what, table.ravel(), (table.size,), where), 0.0, 1.0, where)
    return flat.reshape(table.shape)
