"""Time layers of an environment: which states may follow which, and where a state stands in the layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hedgerow.checks import IntArray
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import Unrolled, unroll

SparseMatrix: TypeAlias = Any
"""A scipy.sparse array (scipy ships no types)."""
MOST_TRIPLES = 50_000_000
"""Of one step, where nothing is known of the support."""


def support_of(env: Any, support: str | ArrayLike, S: int, A: int, first_state: int) -> SparseMatrix:
    """(S * A, S + 1), sparse: which states may follow; the last one is `ended`."""
    if not isinstance(support, str):
        given = np.asarray(support, dtype=bool)
        if given.shape != (S, A, S + 1):
            raise InvalidInput(f"the support has shape {given.shape}, expected (S, A, S + 1) = {(S, A, S + 1)}")
        return sparse.csr_array(given.reshape(S * A, S + 1), dtype=np.float64)
    if support not in ("auto", "known", "full"):
        raise InvalidInput(f"support is {support!r}; choose 'auto', 'known', 'full', or truth values (S, A, S + 1)")
    table = getattr(env.unwrapped, "P", None)
    if support == "full" or (support == "auto" and table is None):
        if S * A * (S + 1) > MOST_TRIPLES:
            raise InvalidInput(
                f"a full support of {S} states and {A} actions has {S * A * (S + 1)} triples in each step, more than "
                f"{MOST_TRIPLES}; state which transitions are possible"
            )
        return sparse.csr_array(np.ones((S * A, S + 1)))
    if table is None:
        raise InvalidInput("support='known' needs a table env.unwrapped.P; this environment has none")
    return _support_of_table(table, S, A, first_state)


def _support_of_table(table: Any, S: int, A: int, first_state: int) -> SparseMatrix:
    """The support of a table P[state][action] of (probability, next state, reward, terminated)."""
    try:
        found = {
            (s * A + a, S if terminated else int(following) - first_state)
            for s in range(S)
            for a in range(A)
            for chance, following, _, terminated in table[s + first_state][a]
            if chance > 0.0
        }
        rows, columns = np.array(sorted(found)).reshape(-1, 2).T
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(S * A, S + 1))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"env.unwrapped.P is no table of (probability, next state, reward, terminated): {error!r}; "
            "state the support, or use support='full'"
        ) from error


def time_layers(
    support: SparseMatrix, starts: IntArray, A: int, steps: int, action_names: Sequence[str] | None
) -> Unrolled:
    """The time layers. Only the support of the transitions is used, because P is unknown."""
    S = support.shape[1] - 1
    count = np.diff(support.indptr)
    if not count.all():
        s, a = divmod(int(np.argmin(count)), A)
        raise InvalidInput(f"the support of state {s}, action {a} is empty")
    uniform = sparse.diags_array(1.0 / count) @ support
    first = np.zeros(S + 1)
    first[starts] = 1.0 / len(starts)
    return unroll(
        sparse.vstack([uniform, sparse.csr_array((A, S + 1))], format="csr"),
        steps,
        int(starts[0]) if len(starts) == 1 else first,
        state_names=[*map(str, range(S)), "ended"],
        action_names=action_names,
        absorbing=[S],
    )


def state_numbers(unrolled: Unrolled, ended: int) -> IntArray:
    """(H, S + 1): the state of the layout for each step and state; -1 where there is none."""
    numbers = np.full((unrolled.horizon, ended + 1), -1, dtype=np.int64)
    inner = np.flatnonzero(unrolled.state_of >= 0)
    numbers[unrolled.step_of[inner], unrolled.state_of[inner]] = inner
    return numbers
