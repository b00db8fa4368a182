"""What is known of a world before the first episode, beyond its layout: every piece of it saves episodes.

It is nothing that is estimated, and no failure probability is spent on it. Learners take it as true: where it is not,
their promises are void. They test what they can (`confidence/premises.py`). `View.knowing` declares it in convenient
terms, `Knowledge` holds and checks its normal form; a CMDP that carries knowledge refuses what is not true of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    did_you_mean,
    float_array,
    frozen,
    numeric_array,
    real_number,
    short_repr,
    type_name,
    unmasked,
    within,
)
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout

TOL_ROW_SUM = 1e-10
TOL_TRUE = 1e-9
"""How far a world may be from what is declared of it: rounding, no more."""
ARRAYS = {
    "same_transitions": "int64",
    "same_costs": "int64",
    "independent_costs": "bool",
    "costs_drawn": "int64",
    "transitions": "float64",
    "costs": "float64",
    "max_episode_cost": "float64",
}

COSTS_DRAWN = ("apart", "step", "unknown")
"""How costs go together with moves, see `Knowledge.costs_drawn`; "apart" is A2 of docs/aggregate.md."""


@dataclass(frozen=True, eq=False, repr=False)
class Knowledge:
    """What is known of a world before the first episode, beyond its layout.

    Every piece saves episodes, because learners need not estimate it and spend no failure probability on it. They take
    it as true, and test what can be tested: where it is false, their promises are void. Declare knowledge with
    `View.knowing`, which takes more convenient forms and checks them; this class holds the normal form. None means that
    nothing is known.

    Rows are pairs (state, action). Pairs are *tied* if they have the same transition probabilities, or the same
    distribution of costs; what is seen in one of them then counts for all.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> bool(view.knowledge), view.knowing(max_episode_cost={"delay": 1.0}).knowledge.max_episode_cost.tolist()
        (False, [1.0])
    """

    same_transitions: IntArray | None = None
    """(num_rows,): for each pair the first one that shares its transition probabilities. The successors of tied pairs
    correspond in their order, so these pairs have equally many."""
    same_costs: IntArray | None = None
    """(num_rows,): for each pair the first one that shares the distribution of its costs. Of tied pairs that one
    episode visits only the first counts, because costs of one episode may depend on each other, unless
    `independent_costs` is True."""
    independent_costs: bool = False
    """Whether costs of one episode are independent of each other; then every visit counts."""
    transitions: FloatArray | None = None
    """(num_triples,): known probabilities of next states, NaN in all triples of a pair that is not known."""
    costs: FloatArray | None = None
    """(m, num_rows): known mean costs, NaN where not known. They are often 0 because a pair cannot cost anything."""
    max_episode_cost: FloatArray | None = None
    """(m,): the most that an episode can cost, each at most the number of steps L."""
    costs_drawn: str = "apart"
    """How costs go together with moves: "apart" if the costs of an episode are drawn without regard to its moves,
    "step" if cost and next state of a step are one fresh draw given its pair, which implies `independent_costs`, and
    "unknown" if neither is known. The aggregate certificate needs to know it."""

    def __bool__(self) -> bool:
        """Whether anything is known at all."""
        flagged = self.independent_costs or self.costs_drawn != COSTS_DRAWN[0]
        return flagged or any(getattr(self, name) is not None for name in ARRAYS if name not in _FLAGS)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is known, by name, as arrays: the content of files."""
        found = {name: getattr(self, name) for name in ARRAYS if name not in _FLAGS}
        arrays: dict[str, NDArray[Any]] = {name: array for name, array in found.items() if array is not None}
        drawn = COSTS_DRAWN.index(self.costs_drawn)
        arrays |= {_DRAWN: np.array([drawn], dtype=np.int64)} if drawn else {}
        return arrays | ({_FLAG: np.array([True])} if self.independent_costs else {})

    def __repr__(self) -> str:
        from hedgerow.display import text

        parts = []
        for name in ("same_transitions", "same_costs"):
            same = getattr(self, name)
            if same is not None:
                size = np.bincount(same)
                classes = text.counted(int(np.sum(size > 1)), "distribution")
                parts.append(f"{name}: {classes} of {int(size[size > 1].sum()):,} pairs")
        parts += ["independent_costs"] * self.independent_costs
        parts += [f"costs_drawn={self.costs_drawn!r}"] * (self.costs_drawn != COSTS_DRAWN[0])
        for name in ("transitions", "costs"):
            given = getattr(self, name)
            if given is not None:
                parts.append(f"{name}: {int(np.sum(~np.isnan(given))):,} of {given.size:,}")
        if self.max_episode_cost is not None:
            parts.append(f"max_episode_cost={text.numbers(self.max_episode_cost)}")
        return text.line("Knowledge", *(parts or ["nothing"]))

    def without_ties(self) -> Knowledge:
        """Return the same knowledge without `same_transitions` and `same_costs`."""
        return replace(self, same_transitions=None, same_costs=None)

    def described(self, layout: Layout, names: tuple[str, ...]) -> list[str]:
        """Describe each piece of knowledge in one line, for people.

        Args:
            layout: The layout of the world.
            names: (m,) names of the constraints.
        """
        from hedgerow.display import text

        lines = []
        for same, what in ((self.same_transitions, "transitions"), (self.same_costs, "costs")):
            if same is not None:
                size = np.bincount(same)
                tied, classes = int(size[size > 1].sum()), int(np.sum(size > 1))
                lines.append(f"{tied} pairs share {text.counted(classes, 'distribution')} of {what}")
        if self.costs_drawn == "step":
            lines.append("cost and next state of a step are one fresh draw, given its state and action")
        elif self.independent_costs:
            lines.append("costs of one episode are independent of each other")
        if self.transitions is not None:
            known = ~np.isnan(self.transitions[layout.row_start[:-1]])
            lines.append(f"the transitions of {int(known.sum())} of {layout.num_rows} pairs are known")
        if self.costs is not None:
            for name, row in zip(names, self.costs, strict=True):
                known = ~np.isnan(row)
                zero = int(np.sum(row == 0.0))
                if known.any():
                    lines.append(f"{name!r}: the mean costs of {int(known.sum())} pairs are known, {zero} of them as 0")
        if self.max_episode_cost is not None:
            most = ", ".join(f"{name!r} {value:g}" for name, value in zip(names, self.max_episode_cost, strict=True))
            lines.append(f"an episode costs at most: {most} (L = {layout.steps})")
        return lines


_FLAG, _DRAWN = "independent_costs", "costs_drawn"
_FLAGS = (_FLAG, _DRAWN)
NOTHING = Knowledge()


def checked_knowledge(layout: Layout, names: tuple[str, ...], given: Knowledge | Mapping[str, Any] | None) -> Knowledge:
    """The normal form of what is given: a `Knowledge`, or a mapping of its arrays in any form that is allowed."""
    if given is None:
        return NOTHING
    parts = {name: getattr(given, name) for name in ARRAYS} if isinstance(given, Knowledge) else dict(given)
    unknown = sorted(set(parts) - set(ARRAYS))
    if unknown:
        raise InvalidInput(f"knowledge has no part {unknown[0]!r}; it has {', '.join(ARRAYS)}")
    same = _classes(layout, "same_transitions", parts.get("same_transitions"))
    drawn = _drawn(parts.get(_DRAWN))
    found = Knowledge(
        same_transitions=_equally_long(layout, same),
        same_costs=_classes(layout, "same_costs", parts.get("same_costs")),
        independent_costs=_flag(parts.get(_FLAG)) or drawn == "step",
        costs_drawn=drawn,
        transitions=_known_transitions(layout, parts.get("transitions")),
        costs=_known_costs(layout, names, parts.get("costs")),
        max_episode_cost=_ceilings(layout, names, parts.get("max_episode_cost")),
    )
    _check_agreement(layout, found)
    return found


def _classes(layout: Layout, name: str, labels: Any) -> IntArray | None:
    """The first row of each row's class; rows with the label -1 share with none."""
    if labels is None:
        return None
    array = np.asarray(unmasked(name, labels))
    if array.shape != (layout.num_rows,) or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{name} are {layout.num_rows} whole numbers, one per pair (state, action), equal for pairs that share one "
            f"distribution (-1: with no other); these have shape {array.shape} and type {array.dtype}"
        )
    alone = array < 0
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    rows = np.arange(layout.num_rows, dtype=np.int64)
    classes = np.where(alone, rows, first[inverse.ravel()]).astype(np.int64)
    return frozen(classes) if np.any(classes != rows) else None


def _equally_long(layout: Layout, same: IntArray | None) -> IntArray | None:
    if same is None:
        return None
    size = np.diff(layout.row_start)
    wrong = np.flatnonzero(size != size[same])
    if wrong.size:
        row = int(wrong[0])
        raise InvalidInput(
            f"{layout.describe_row(row)} has {size[row]} successors, {layout.describe_row(int(same[row]))} has "
            f"{size[same[row]]}: they cannot share their transitions"
        )
    return same


def _flag(value: Any) -> bool:
    if value is None:
        return False
    if np.size(value) != 1 or np.asarray(value).dtype != bool:
        raise InvalidInput(f"independent_costs must be True or False, not {value!r}")
    return bool(np.asarray(value).ravel()[0])


def _drawn(value: Any) -> str:
    """One of `COSTS_DRAWN`, by name, or by its number in an array of a file."""
    if value is None:
        return COSTS_DRAWN[0]
    if isinstance(value, str) and value in COSTS_DRAWN:
        return value
    array = np.asarray(value)
    if array.dtype == np.int64 and array.shape == (1,) and 0 <= array[0] < len(COSTS_DRAWN):
        return COSTS_DRAWN[int(array[0])]
    raise InvalidInput(f"costs_drawn is {value!r}; choose one of {', '.join(COSTS_DRAWN)}")


def _known_transitions(layout: Layout, given: Any) -> FloatArray | None:
    if given is None:
        return None
    name = "the known transition probability"
    array = _with_gaps(name, given, (layout.num_triples,), layout.describe_triple)
    starts, missing = layout.row_start[:-1], np.isnan(array)
    gaps = np.add.reduceat(missing, starts)
    half = np.flatnonzero((gaps > 0) & (gaps < np.diff(layout.row_start)))
    if half.size:
        raise InvalidInput(
            f"the transitions of {layout.describe_row(int(half[0]))} are known in part; give all of them, or NaN for "
            "all"
        )
    sums = np.add.reduceat(np.where(missing, 0.0, array), starts)
    off = np.flatnonzero((gaps == 0) & (np.abs(sums - 1.0) > TOL_ROW_SUM))
    if off.size:
        row = int(off[0])
        raise InvalidInput(
            f"the known transitions of {layout.describe_row(row)} sum to {float(sums[row])!r}, not 1; "
            "divide the row by its sum"
        )
    return None if missing.all() else frozen(array)


def _known_costs(layout: Layout, names: tuple[str, ...], given: Any) -> FloatArray | None:
    if given is None:
        return None
    m = len(names)
    if isinstance(given, Mapping):
        given = _costs_by_name(layout, names, given)

    def where(place: int) -> str:
        return f"constraint {place // layout.num_rows}, {layout.describe_row(place % layout.num_rows)}"

    array = numeric_array("the known costs", given)
    if array.shape == (layout.num_rows,) and m == 1:
        array = array[np.newaxis]
    if array.shape != (m, layout.num_rows):
        raise InvalidInput(f"known costs have the shape {(m, layout.num_rows)} (NaN: not known), not {array.shape}")
    flat = _with_gaps("the known cost", array.ravel(), (array.size,), where)
    return None if np.isnan(flat).all() else frozen(flat.reshape(array.shape))


def _costs_by_name(layout: Layout, names: tuple[str, ...], given: Mapping[str, Any]) -> FloatArray:
    """(m, num_rows): the costs {constraint: {(state, action): mean}}, NaN elsewhere."""
    found = np.full((len(names), layout.num_rows), np.nan)
    for name, values in given.items():
        if not isinstance(values, Mapping):
            raise InvalidInput(
                f"known costs of {name!r} are a mapping {{(state, action): mean}}, not {type_name(values)}"
            )
        i = constraint(names, name)
        for pair, value in values.items():
            found[i, row_of(layout, pair)] = real_number("a known cost", value, 0.0, 1.0)
    return found


def rows_by_name(layout: Layout, names: tuple[str, ...], given: Any) -> BoolArray:
    """(m, num_rows): True in the given pairs (state, action), for all constraints or as {constraint: pairs}."""
    found = np.zeros((len(names), layout.num_rows), dtype=bool)
    if isinstance(given, Mapping):
        for name, pairs in given.items():
            if not isinstance(pairs, list | tuple | set):
                raise InvalidInput(
                    f"zero_costs of {name!r} are a list of pairs (state, action), not {type_name(pairs)}"
                )
            found[constraint(names, name), [row_of(layout, pair) for pair in pairs]] = True
    else:
        found[:, [row_of(layout, pair) for pair in given]] = True
    return found


def row_of(layout: Layout, pair: Any) -> int:
    """The row of a pair (state, action)."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidInput(f"a row is named by a pair (state, action), not by {short_repr(pair)}")
    return layout.row(*pair)


def constraint(names: tuple[str, ...], name: Any) -> int:
    """The place of a constraint; they are known by name alone."""
    if name not in names:
        raise InvalidInput(f"there is no constraint {short_repr(name)}{did_you_mean(str(name), names)}")
    return names.index(name)


def _with_gaps(what: str, given: ArrayLike, shape: tuple[int, ...], where: Any) -> FloatArray:
    """Numbers in [0, 1], or NaN."""
    array = numeric_array(what, given)
    if array.shape != shape:
        raise InvalidInput(f"{what} has shape {array.shape}, expected {shape} (NaN: not known)")
    filled = float_array(what, np.where(np.isnan(array), 0.0, array), shape, where)
    within(what, filled, 0.0, 1.0, where)
    return array.astype(np.float64)


def _ceilings(layout: Layout, names: tuple[str, ...], given: Any) -> FloatArray | None:
    if given is None:
        return None
    limit = np.full(len(names), float(layout.steps))
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name not in names:
                listed = ", ".join(map(repr, names))
                raise InvalidInput(f"max_episode_cost names {name!r}; the constraints are {listed}")
            limit[names.index(name)] = real_number("the most that an episode costs", value, 0.0, float(layout.steps))
    elif isinstance(given, str):
        raise InvalidInput(f"max_episode_cost has one number per constraint, not {type_name(given)}")
    else:
        limit = float_array("the most that an episode costs", given, (len(names),))
    checked = within("the most that an episode costs", limit, 0.0, float(layout.steps))
    return None if np.all(checked == layout.steps) else frozen(checked)


def _check_agreement(layout: Layout, known: Knowledge) -> None:
    """Rows of one class cannot be known to differ, and the known parts of a class are known of all its rows."""
    if known.same_transitions is not None and known.transitions is not None:
        P = known.transitions
        twins = P[_tied_triples(layout, known.same_transitions)]
        _refuse_twins(layout, layout.row_of_triple, P, twins, "transitions")
    if known.same_costs is not None and known.costs is not None:
        for values in known.costs:
            _refuse_twins(layout, np.arange(layout.num_rows), values, values[known.same_costs], "costs")


def _tied_triples(layout: Layout, same: IntArray) -> IntArray:
    """(num_triples,): the triple in the same place of the first row of each class."""
    row = layout.row_of_triple
    first: IntArray = layout.row_start[same[row]] + np.arange(layout.num_triples) - layout.row_start[row]
    return first


def _refuse_twins(layout: Layout, row: IntArray, own: FloatArray, first: FloatArray, what: str) -> None:
    differ = (np.isnan(own) != np.isnan(first)) | (np.abs(own - first) > TOL_TRUE)
    if differ.any():
        place = layout.describe_row(int(row[np.flatnonzero(differ)[0]]))
        raise InvalidInput(f"the known {what} of {place} are not those of the pairs that it is tied to")


# Is it true? ----------------------------------------------------------------------------------------------------------


def check_truth(layout: Layout, known: Knowledge, transitions: FloatArray, means: FloatArray, kind: str) -> None:
    """Refuse knowledge that a world with these transitions (num_triples,) and mean costs (m, num_rows) contradicts."""
    if known.same_transitions is not None:
        off = np.abs(transitions - transitions[_tied_triples(layout, known.same_transitions)])
        _refuse_false(layout, layout.row_of_triple, off, "same_transitions")
    rows = np.arange(layout.num_rows)
    for g in means if known.same_costs is not None else ():
        _refuse_false(layout, rows, np.abs(g - g[known.same_costs]), "same_costs")
    if known.transitions is not None:
        off = np.nan_to_num(np.abs(transitions - known.transitions))
        _refuse_false(layout, layout.row_of_triple, off, "the known transitions")
    if known.costs is not None:
        for g, given in zip(means, known.costs, strict=True):
            _refuse_false(layout, rows, np.nan_to_num(np.abs(g - given)), "the known costs")
    if known.max_episode_cost is not None:
        # A drawn cost may be anything up to 1 where its mean is positive, unless costs are fixed numbers.
        largest = means if kind == "deterministic" else (means > 0.0).astype(np.float64)
        for i, most in enumerate(known.max_episode_cost):
            reached = largest_sum(layout, transitions, largest[i])
            if reached > most + TOL_TRUE:
                raise InvalidInput(
                    f"an episode can cost {reached:g} of constraint {i}, more than max_episode_cost = {most:g}"
                )


def _refuse_false(layout: Layout, row: IntArray, off: FloatArray, what: str) -> None:
    wrong = np.flatnonzero(off > TOL_TRUE)
    if wrong.size:
        raise InvalidInput(f"{what} are not true of this world: {layout.describe_row(int(row[wrong[0]]))} differs")


def largest_sum(layout: Layout, transitions: FloatArray, largest: FloatArray) -> float:
    """The most that the entries of `largest` (num_rows,) add up to along any path that is possible."""
    value = np.zeros(layout.num_states)
    reached = np.where(transitions > 0.0, 0.0, -np.inf)
    for k in reversed(range(layout.steps)):
        rows, triples = layout.rows(k), layout.triples(k)
        ahead = value[layout.successor[triples]] + reached[triples]
        first = layout.row_start[rows] - layout.row_start[rows.start]
        best = np.maximum.reduceat(ahead, first) + largest[rows]
        value[layout.state_start[k] : layout.state_start[k + 1]] = best.reshape(-1, layout.num_actions).max(axis=1)
    return float(value[0])
