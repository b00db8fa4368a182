"""The time layers of an environment, and what its table says of them.

A state (k, s) of the layers means: s before step k; the state S is `ended`. The support says which states may follow
which. Where the environment has a table P[s][a] of (probability, next state, reward, terminated) and the table is the
truth, the layers have a model: transitions, expected losses and expected costs of each pair,

    P((k + 1, s') | (k, s), a) = sum of the outcomes that lead to s',    g_i((k, s), a) = sum p c_i(s, a, s', r),

by which runs can be scored exactly, while learners see no more than the steps of the environment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import RewardScale, Unrolled, unroll
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.view import View

SparseMatrix: TypeAlias = Any
"""A scipy.sparse array (scipy ships no types)."""
MOST_TRIPLES = 50_000_000
"""Of one step, where nothing is known of the support."""


class TableStep(NamedTuple):
    """One entry of a table, with states numbered from 0."""

    row: int
    """s * A + a"""
    following: int
    """The next state; S if the episode ends."""
    arrived: int
    """The next state, whether the episode ends or not."""
    probability: float
    reward: float


def support_of(env: Any, support: str | ArrayLike, S: int, A: int, first_state: int) -> SparseMatrix:
    """(S * A, S + 1), sparse: which states may follow; the last one is `ended`."""
    if not isinstance(support, str):
        given = np.asarray(support, dtype=bool)
        if given.shape != (S, A, S + 1):
            raise InvalidInput(f"the support has shape {given.shape}, expected (S, A, S + 1) = {(S, A, S + 1)}")
        return sparse.csr_array(given.reshape(S * A, S + 1), dtype=np.float64)
    if support not in ("auto", "known", "full"):
        raise InvalidInput(f"support is {support!r}; choose 'auto', 'known', 'full', or truth values (S, A, S + 1)")
    has_table = getattr(env.unwrapped, "P", None) is not None
    if support == "full" or (support == "auto" and not has_table):
        if S * A * (S + 1) > MOST_TRIPLES:
            raise InvalidInput(
                f"a full support of {S} states and {A} actions has {S * A * (S + 1)} triples in each step, more than "
                f"{MOST_TRIPLES}; state which transitions are possible"
            )
        return sparse.csr_array(np.ones((S * A, S + 1)))
    if not has_table:
        raise InvalidInput("support='known' needs a table env.unwrapped.P; this environment has none")
    found = {(step.row, step.following) for step in table_steps(env, S, A, first_state)}
    rows, columns = np.array(sorted(found)).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(S * A, S + 1))


def table_steps(env: Any, S: int, A: int, first_state: int) -> list[TableStep]:
    """What the table of an environment lists with a positive probability."""
    try:
        return list(_listed(env.unwrapped.P, S, A, first_state))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"env.unwrapped.P is no table of (probability, next state, reward, terminated): {error!r}; "
            "state the support, or use support='full'"
        ) from error


def _listed(table: Any, S: int, A: int, first_state: int) -> Iterator[TableStep]:
    for s in range(S):
        for a in range(A):
            for chance, following, reward, terminated in table[s + first_state][a]:
                arrived = int(following) - first_state
                if chance > 0.0:
                    yield TableStep(s * A + a, S if terminated else arrived, arrived, float(chance), float(reward))


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


def state_numbers(layers: Unrolled, ended: int) -> IntArray:
    """(H, S + 1): the state of the layout for each step and state; -1 where there is none."""
    numbers = np.full((layers.horizon, ended + 1), -1, dtype=np.int64)
    inner = np.flatnonzero(layers.state_of >= 0)
    numbers[layers.step_of[inner], layers.state_of[inner]] = inner
    return numbers


def over_rows(layers: Unrolled, table: NDArray[Any], elsewhere: Any) -> NDArray[Any]:
    """(..., num_rows) from a table (..., S, A); `elsewhere` stands in the root and in `ended`."""
    S, A = table.shape[-2:]
    state = np.repeat(layers.state_of[:-1], A)
    inside = (state >= 0) & (state < S)
    flat = table.reshape(*table.shape[:-2], S * A)
    found = flat[..., np.where(inside, state * A + np.arange(len(state)) % A, 0)]
    result: NDArray[Any] = np.where(inside, found, elsewhere)
    return result


def same_at_all_steps(layers: Unrolled) -> dict[str, Any]:
    """The knowledge that a pair of state and action has one distribution of moves and of costs at all steps."""
    A, known = layers.cmdp.layout.num_actions, layers.cmdp.view().knowledge
    state, action = np.repeat(layers.state_of[:-1], A), np.arange(layers.cmdp.layout.num_rows) % A
    return {
        "same_transitions": known.same_transitions,
        "same_costs": np.where(state >= 0, state * A + action, -1),
    }


def model_of(
    layers: Unrolled,
    view: View,
    steps: Sequence[TableStep],
    start: FloatArray | None,
    outcome: Callable[[TableStep], tuple[float, FloatArray]],
    scale: RewardScale,
) -> Unrolled:
    """The layers with the transitions, losses and mean costs of a table.

    Its costs are 0 or 1, with the means of the table, and drawn apart from the moves. All that the view declares is
    true of it but `max_episode_cost`: two steps of an episode may both cost something, where the environment would have
    ended it at the first.

    Args:
        layers: The layers.
        view: The view of the world.
        steps: What the table lists.
        start: (S,) the distribution of the start state; None if it is not known.
        outcome: The loss and the costs (m,) of an entry of the table.
        scale: How losses come from rewards; an ended step has reward 0.
    """
    layout, S = view.layout, layers.num_original_states - 1
    A, m = layout.num_actions, view.num_constraints
    moves, loss, costs = np.zeros((S * A, S + 1)), np.zeros(S * A), np.zeros((m, S * A))
    for step in steps:
        lost, cost = outcome(step)
        moves[step.row, step.following] += step.probability
        loss[step.row] += step.probability * lost
        costs[:, step.row] += step.probability * cost
    by_row = over_rows(layers, costs.reshape(m, S, A), 0.0)
    own = over_rows(layers, loss.reshape(S, A), scale.total_loss(0.0) / scale.horizon)
    own[: A * layers.has_root] = 0.0
    cmdp = CMDP(
        layout,
        _probabilities(layers, view, moves, start),
        BernoulliCosts(np.clip(by_row, 0.0, 1.0)),
        view.thresholds,
        constraint_names=view.constraint_names,
        knowledge=dataclasses.replace(view.knowledge, max_episode_cost=None),
    )
    return dataclasses.replace(layers, cmdp=cmdp, loss=frozen(np.clip(own, 0.0, 1.0)), scale=scale)


def _probabilities(layers: Unrolled, view: View, moves: FloatArray, start: FloatArray | None) -> FloatArray:
    """(num_triples,): those of the table, of the root, and 1 where an episode has ended or ends for sure."""
    layout, S = view.layout, moves.shape[1] - 1
    row, A = layout.row_of_triple, layout.num_actions
    state, following = layers.state_of[row // A], layers.state_of[layout.successor]
    found = np.ones(layout.num_triples)
    told = (state >= 0) & (state < S) & (following >= 0)
    found[told] = moves[state[told] * A + row[told] % A, following[told]]
    if layers.has_root:
        if start is None:
            raise InvalidInput("episodes start in several states, how often in each is unknown: name one, starts=[...]")
        root = state < 0
        found[root] = start[following[root]]
    sums = np.add.reduceat(found, layout.row_start[:-1])
    if np.any(np.abs(sums - 1.0) > 1e-6):
        place = layout.describe_row(int(np.argmax(np.abs(sums - 1.0))))
        raise InvalidInput(f"the table gives other transitions than the support or the starts allow: {place}")
    return found / sums[row]
