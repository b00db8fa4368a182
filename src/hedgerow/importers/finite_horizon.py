"""Finite-horizon MDPs as users have them, checked and brought into one shape.

States s in 0..S-1, actions a in 0..A-1, steps k in 0..H-1. In step k the process in s under a moves to s' with
probability P_k(s'|s,a), at loss l_k(s,a) and mean costs g_{i,k}(s,a), all in [0, 1]. Each of P, l, g may be the same in
all steps or differ between them; the transitions may be dense or sparse. Two things need no table entries:

- *absorbing* states, in which the process has ended: they lead to themselves at loss 0 and cost 0;
- *unavailable* actions, which do exactly what the first available action of their state does (an alias): every state
  has A rows although it offers fewer choices.

Entries of the tables for absorbing states and unavailable actions are never read and may hold anything.

    >>> stay_or_step = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    >>> mdp = finite_horizon(stay_or_step, horizon=3, start=0, loss=[[1.0, 0.5], [0.0, 0.0]], absorbing=[1])
    >>> mdp.num_states, mdp.num_actions, mdp.transitions_at(2).toarray().tolist()
    (2, 2, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    unmasked,
    whole_number,
    within,
)
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import TOL_ROW_SUM

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
    """Check the description of a finite-horizon MDP; `hedgerow.importers.unroll.unroll` documents the arguments."""
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
    dense = _numbers("transition probabilities", transitions)
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
    raw = _numbers("costs", costs)
    if raw.ndim not in (3, 4):
        raise InvalidInput(
            f"costs have shape {raw.shape}; expected (constraints, states, actions), with one more axis of length "
            f"{place.horizon} after the first if they differ between steps"
        )
    tables = [_table(f"the cost of constraint {i}", raw[i], read, place) for i in range(len(raw))]
    return frozen(np.stack(tables)) if tables else _cost_tables(None, read, place)


def _table(what: str, value: ArrayLike, read: BoolArray, place: _Places) -> FloatArray:
    """A table (1|H, S, A) in [0, 1], and 0 where it is not read."""
    raw = _numbers(what, value)
    shape = read.shape[1:]
    if raw.shape not in (shape, (place.horizon, *shape)):
        raise InvalidInput(f"{what} has shape {raw.shape}, expected {shape} or {(place.horizon, *shape)}")
    table = np.where(read, raw, 0)  # becomes per-step if either is
    where = place.entries(per_step=len(table) > 1)
    flat = within(what, float_array(what, table.ravel(), (table.size,), where), 0.0, 1.0, where)
    return flat.reshape(table.shape)


def _numbers(what: str, value: ArrayLike) -> NDArray[Any]:
    given = unmasked(what, value)
    try:
        raw = np.asarray(given)
    except ValueError as error:  # ragged lists
        raise InvalidInput(f"{what}: not a rectangular array of numbers: {error}") from error
    if raw.dtype.kind not in "fiub":
        raise InvalidInput(f"{what}: numbers expected, found entries of type {raw.dtype}")
    return raw
