"""Gymnasium-style transition tables -> loop-free CMDPs.

A table P[s][a] lists (probability, next state, reward, terminated). A transition that terminates leads to a copy of its
successor in which the process has ended and every step earns reward 0. The expected rewards r(s, a) become losses

    l(s, a) = (best - r(s, a)) / width,    best = max r,  width = max r - min r,

where the extremes include the 0 of the ended copies, which therefore have loss best / width, not 0. Each of the H steps
has exactly one reward, so for *every* policy

    expected reward = H * best - width * expected loss,

which `Unrolled.scale` computes. An action that a state's table lacks is unavailable there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hedgerow.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    distinct_names,
    frozen,
    numeric_array,
    real_number,
    type_name,
    whole_number,
)
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import RewardScale, Support, Unrolled, checked_start, unroll

Outcome: TypeAlias = tuple[float, int, float, bool]
GymTable: TypeAlias = Mapping[int, Mapping[int, Sequence[Outcome]]]
_LARGEST = float(np.finfo(np.float64).max) / 4  # so that the difference of two rewards stays finite


class _Parsed(NamedTuple):
    """A table as arrays; S' = S + number of ended copies, which come last."""

    transitions: Any
    """sparse (S' * A, S')"""
    rewards: FloatArray
    """(S', A): expected rewards, 0 in ended copies and where the action is unavailable"""
    available: BoolArray
    """(S', A)"""
    original: IntArray
    """(S',): the state that each one is or is a copy of"""
    num_states: int
    """S"""


def unroll_gymnasium(
    P: GymTable | Any,
    horizon: int,
    start: int | ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    cost_kind: Literal["bernoulli", "deterministic"] = "bernoulli",
    thresholds: ArrayLike = (),
    constraint_names: Sequence[str] | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    support: Support = "known",
) -> Unrolled:
    """Turn an environment of Gymnasium that has a table into a CMDP with one layer per step.

    A transition that terminates leads to a copy of its successor in which the process has ended and every step earns 0.
    Rewards become losses in [0, 1]; `.scale.total_reward` of the result turns losses back into rewards. An action that
    the table of a state lacks is unavailable there. Below, S and A are the numbers of states and actions of the table.

    Args:
        P: The environment, or its table: P[state][action] lists (probability, next state, reward, terminated).
        horizon: The number H of steps.
        start: The start state, or a distribution (S,). None takes that of the environment,
            `env.unwrapped.initial_state_distrib`; a table alone does not say where episodes start.
        costs: (m, S, A) or (m, H, S, A) mean costs in [0, 1]; ended copies cost nothing. None without constraints.
        cost_kind: "bernoulli" draws each cost as 0 or 1 with that mean, "deterministic" takes the mean itself.
        thresholds: (m,) the most that an episode may cost in expectation.
        constraint_names: (m,) names; None calls them "cost 1", "cost 2", ...
        state_names: (S,) names of the states; None numbers them.
        action_names: (A,) names of the actions; None for none.
        support: "known" or "full", as in `unroll`.

    Returns:
        The CMDP, its loss, and where its states come from. `state_of` maps an ended copy to the state that it is a copy
        of; tables of action probabilities are over the S states of the table.

    Raises:
        InvalidInput: If the table is not of this form, or if there is none, or no start.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.gym import unroll_gymnasium
        >>> table = {0: {0: [(0.5, 0, -1.0, False), (0.5, 1, 3.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
        >>> world = unroll_gymnasium(table, horizon=2, start=0)
        >>> world.cmdp.state_labels
        ('(0, 0)', '(1, 0)', '(1, 1 ended)', 'end')
        >>> loss = hr.occupancy.evaluate(world, hr.Policy.uniform(world), world.loss).loss
        >>> world.scale.total_reward(loss)
        1.5
    """
    table, start = _table_and_start(P, start)
    parsed = _parse(table)
    S, num_copies = parsed.num_states, len(parsed.original) - parsed.num_states
    names = distinct_names("state names", map(str, range(S)) if state_names is None else state_names, S)
    distribution, start_state = checked_start(start, names)
    loss, best, width = _losses(parsed)
    world = unroll(
        parsed.transitions,
        horizon,
        np.pad(distribution, (0, num_copies)) if start_state is None else start_state,
        loss=loss,
        costs=None if costs is None else _with_copies(costs, S, num_copies),
        cost_kind=cost_kind,
        thresholds=thresholds,
        constraint_names=constraint_names,
        state_names=[*names, *(f"{names[s]} ended" for s in parsed.original[S:])],
        action_names=action_names,
        available=parsed.available,
        support=support,
    )
    return dataclasses.replace(
        world,
        num_original_states=S,
        state_of=frozen(np.where(world.state_of >= 0, parsed.original[world.state_of], -1)),
        is_copy=frozen(world.state_of >= S),
        default_table=frozen(world.default_table[:, :S]),
        scale=RewardScale(best, width, world.horizon),
        state_names=None if state_names is None else names,
    )


def _table_and_start(given: Any, start: int | ArrayLike | None) -> tuple[GymTable, int | ArrayLike]:
    """The table of an environment, or the given one; and where episodes start, as one state if it is only one."""
    env = getattr(given, "unwrapped", None)
    table = given if env is None else getattr(env, "P", None)
    if table is None:
        raise InvalidInput(
            f"{type_name(env)} has no table P; pass one, or learn by its steps: hedgerow.gym.GymWorld(env, ...)"
        )
    if start is not None:
        return table, start
    known = getattr(env, "initial_state_distrib", None)
    if known is None:
        what = "a table" if env is None else f"{type_name(env)} has no initial_state_distrib: its table"
        raise InvalidInput(f"{what} does not say where episodes start; pass start=, a state or a distribution")
    chances = numeric_array("initial_state_distrib of the environment", known)
    only = np.flatnonzero(chances == 1.0)
    return table, int(only[0]) if len(only) == 1 and not np.any(np.delete(chances, only)) else chances


def _losses(parsed: _Parsed) -> tuple[FloatArray, float, float]:
    """Losses (S', A), and best and width of the scale."""
    counted = parsed.rewards[parsed.available]  # ended copies offer every action: their 0 is among these
    best = float(counted.max())
    width = best - float(counted.min())
    if width == 0.0:
        width = 1.0  # one reward everywhere: loss 0 everywhere
    return np.where(parsed.available, (best - parsed.rewards) / width, 0.0), best, width


def _parse(P: GymTable) -> _Parsed:
    states = _numbered("the table", P)
    S = len(states)
    actions = [_numbered(f"the table of state {s}", table, gaps=True) for s, table in states.items()]
    A = 1 + max(max(offered) for offered in actions)
    pairs, outcomes = [], []
    for s, offered in enumerate(actions):
        for a, listed in offered.items():
            for outcome in _listed(listed, f"state {s}, action {a}"):
                pairs.append(s * A + a)
                outcomes.append(_checked_outcome(outcome, S, f"state {s}, action {a}"))
    row, array = np.array(pairs, dtype=np.int64), np.array(outcomes, dtype=np.float64).reshape(-1, 4)
    probability, target, reward, terminated = array[:, 0], array[:, 1].astype(np.int64), array[:, 2], array[:, 3] > 0
    ended_in = np.unique(target[terminated])
    target = np.where(terminated, S + np.searchsorted(ended_in, target), target)
    size = S + len(ended_in)
    loops = np.arange(S * A, size * A)
    transitions = sparse.csr_array(
        (
            np.concatenate((probability, np.ones(len(loops)))),
            (np.concatenate((row, loops)), np.concatenate((target, loops // A))),
        ),
        shape=(size * A, size),
    )
    rewards = np.zeros(size * A)
    np.add.at(rewards, row, probability * reward)
    available = np.zeros((size, A), dtype=bool)
    available.ravel()[row] = True
    available[S:] = True
    return _Parsed(transitions, rewards.reshape(size, A), available, np.concatenate((np.arange(S), ended_in)), S)


def _numbered(what: str, table: Any, gaps: bool = False) -> dict[int, Any]:
    """A mapping from, or a list over, the numbers 0, 1, ... as an ascending dict; `gaps` allows missing ones."""
    if isinstance(table, Sequence) and not isinstance(table, str):
        table = dict(enumerate(table))
    if not isinstance(table, Mapping) or not table:
        raise InvalidInput(f"{what} must be a non-empty mapping from 0, 1, ... to its entries, not {table!r}")
    numbers = sorted(whole_number(f"an index of {what}", key, 0) for key in table)
    if not gaps and numbers[-1] != len(numbers) - 1:
        missing = min(set(range(len(numbers))) - set(numbers))
        raise InvalidInput(f"{what} has {len(numbers)} entries but none for {missing}; number them from 0 without gaps")
    return {number: table[number] for number in numbers}


def _listed(outcomes: Any, where: str) -> Sequence[Any]:
    if not isinstance(outcomes, Sequence) or isinstance(outcomes, str) or not outcomes:
        raise InvalidInput(f"{where} lists no outcomes; give some, or leave the action out where it is unavailable")
    return outcomes


def _checked_outcome(outcome: Any, S: int, where: str) -> tuple[float, int, float, bool]:
    try:
        probability, target, reward, terminated = outcome
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{where} has the outcome {outcome!r}; expected (probability, next state, reward, terminated)"
        ) from error
    if not isinstance(terminated, bool | np.bool_):
        raise InvalidInput(f"{where}: terminated must be True or False, not {terminated!r}")
    if whole_number(f"{where}: the next state", target, 0) >= S:
        raise InvalidInput(f"{where} leads to state {target}; the states are numbered 0 to {S - 1}")
    return (
        real_number(f"{where}: the probability", probability, 0.0, 1.0),
        int(target),
        real_number(f"{where}: the reward", reward, -_LARGEST, _LARGEST),
        bool(terminated),
    )


def _with_copies(costs: ArrayLike, S: int, num_copies: int) -> FloatArray:
    """`costs` (..., S, A) with zeros for the ended copies."""
    array = numeric_array("costs", costs)
    if array.ndim < 2 or array.shape[-2] != S:
        raise InvalidInput(
            f"costs have shape {array.shape}; the axis of states, the last but one, must have length {S}"
        )
    return np.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, num_copies), (0, 0)])
