"""What is not known of the episodes of a log: who chose actions, which costs are unknown, what is declared of them.

Which of it is counted is decided episode by episode, as for own ones (`model/counting.py`). Nobody knows what the
policy of a log could have done, so an unknown visit is one of every pair that the layout can reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.importers.log_columns import Columns
from hedgerow.model.counting import COUNTED, INDEPENDENT, UNKNOWN, Counting, decide
from hedgerow.model.episode import Episode, Irregular
from hedgerow.model.identity import MISSING

if TYPE_CHECKING:
    from hedgerow.importers.log_paths import Lines, Steps
    from hedgerow.importers.logs import Log
    from hedgerow.model.view import View


class LogGaps(NamedTuple):
    """How the episodes of a log differ from whole ones."""

    with_costs: bool
    """Whether the costs of the log are counted at all"""
    unknown: BoolArray
    """(steps, m): which costs nobody knows"""
    overridden: IntArray
    """(episodes,): the first step in which somebody chose the action who may have seen costs; -1 for none"""
    reason: IntArray
    """(episodes,): the place of the declared reason in `reasons`; -1 for none"""
    reasons: tuple[str, ...]
    """The declared reasons"""
    missing: BoolArray
    """(episodes,): whether nothing at all is known of it"""


def no_gaps(episodes: int, steps: int, constraints: int) -> LogGaps:
    """All episodes are whole, as far as their lines go."""
    none = np.full(episodes, MISSING, dtype=np.int64)
    return LogGaps(True, np.zeros((steps, constraints), dtype=bool), none, none, (), np.zeros(episodes, dtype=bool))


def irregular_episodes(view: View, steps: Steps) -> Iterator[tuple[int, Episode]]:
    """The episodes that are not whole, by number."""
    gaps, sizes = steps.gaps, np.diff(steps.starts)
    some = (sizes < view.layout.steps) | (gaps.overridden != MISSING) | gaps.missing
    if gaps.unknown.any():
        some |= np.add.reduceat(np.append(gaps.unknown.any(axis=1), False), steps.starts[:-1]) * (sizes > 0) > 0
    for e in np.flatnonzero(some).tolist():
        own = slice(steps.starts[e], steps.starts[e + 1])
        count = int(sizes[e])
        episode = Episode.trusted(
            view, steps.rows[own], steps.triples[own], np.zeros(count), np.zeros((count, gaps.unknown.shape[1]))
        )
        first, code = int(gaps.overridden[e]), int(gaps.reason[e])
        unknown = gaps.unknown[own]
        episode.irregular = Irregular(
            overridden_from=None if first == MISSING else first,
            unknown=unknown if unknown.any() else None,
            independent=None if code == MISSING else gaps.reasons[code],
            missing=bool(gaps.missing[e]),
        )
        yield e, episode


def decisions(log: Log, independent_costs: bool) -> dict[int, Counting]:
    """What is counted of the episodes of a log that are not whole, by number."""
    decided = {}
    for e, episode in irregular_episodes(log.view, log.steps):
        counting = decide(episode, independent_costs=independent_costs)
        if not log.gaps.with_costs and counting.word == UNKNOWN:  # then no cost is, but perhaps a move
            counting = counting._replace(gaps=None, layer=counting.layer if counting.moves_lost else -1)
            if not counting.last_lost and not counting.moves_lost:
                counting = counting._replace(word=COUNTED)
        decided[e] = counting
    return decided


def summary(decided: Mapping[int, Counting]) -> tuple[int, int]:
    """How many episodes have unknown values, and from how many something is left out for a declared reason."""
    words = [counting.word for counting in decided.values()]
    return words.count(UNKNOWN), words.count(INDEPENDENT)


def gaps_of_table(columns: Columns, lines: Lines, constraints: int, costs: bool, independent: str | None) -> LogGaps:
    """What the columns `overridden`, `unknown_costs` and `independent` say; unknown costs are those without a value."""
    episodes, steps = len(lines.starts) - 1, len(lines.order)
    gaps = no_gaps(episodes, steps, constraints)._replace(with_costs=costs)
    overridden = gaps.overridden.copy()
    if "overridden" in columns:
        chosen = np.flatnonzero(columns.flags("overridden")[lines.order] == 1)
        of, first = np.unique(np.searchsorted(lines.starts, chosen, side="right") - 1, return_index=True)
        overridden[of] = lines.layer[chosen[first]]
    unknown = gaps.unknown.copy()
    if "unknown_costs" in columns:
        unknown[columns.flags("unknown_costs")[lines.order] == 1] = True
    reason, reasons = gaps.reason, gaps.reasons
    if independent is not None:
        reason, reasons = np.zeros(episodes, dtype=np.int64), (independent,)
    elif "independent" in columns:
        reason, reasons = _reasons(columns, lines)
    return gaps._replace(overridden=overridden, unknown=unknown, reason=reason, reasons=reasons)


def _reasons(columns: Columns, lines: Lines) -> tuple[IntArray, tuple[str, ...]]:
    """The declared reason of each episode, which all its lines have."""
    codes, reasons = columns.texts("independent")
    codes = codes[lines.order]
    said: IntArray = codes[lines.starts[:-1]]
    differ = np.flatnonzero(codes != np.repeat(said, np.diff(lines.starts)))
    if differ.size:
        where = lines.where(int(lines.order[differ[0]]))
        raise InvalidInput(
            f"independent at {where} differs from that of step 0; all steps of an episode need the same reason"
        )
    return said, reasons


def gaps_of_episodes(episodes: Sequence[Episode], constraints: int, costs: bool, independent: str | None) -> LogGaps:
    """The same from `Episode`s."""
    steps = sum(len(episode.rows) for episode in episodes)
    gaps, reasons = no_gaps(len(episodes), steps, constraints), [] if independent is None else [independent]
    unknown, missing = gaps.unknown.copy(), gaps.missing.copy()
    overridden, reason = gaps.overridden.copy(), gaps.reason.copy()
    if independent is not None:
        reason[:] = 0
    first = 0
    for e, episode in enumerate(episodes):
        what, last = episode.irregular, first + len(episode.rows)
        if what is not None:
            overridden[e] = MISSING if what.overridden_from is None else what.overridden_from
            missing[e] = what.missing
            if what.unknown is not None:
                unknown[first:last] = what.unknown
            if what.independent is not None:
                if what.independent not in reasons:
                    reasons.append(what.independent)
                reason[e] = reasons.index(what.independent)
        first = last
    return LogGaps(costs, unknown, overridden, reason, tuple(reasons), missing)


def columns_of(gaps: LogGaps, starts: IntArray) -> dict[str, Any]:
    """The columns that `gaps_of_table` reads, those that say something."""
    import pyarrow as pa

    sizes = np.diff(starts)
    layer = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    columns: dict[str, Any] = {}
    if np.any(gaps.overridden != MISSING):
        first = np.repeat(gaps.overridden, sizes)
        columns["overridden"] = (first != MISSING) & (layer >= first)
    if gaps.unknown.any():
        columns["unknown_costs"] = gaps.unknown.any(axis=1)
    if np.any(gaps.reason != MISSING):
        codes = np.repeat(gaps.reason, sizes).astype(np.int32)
        texts = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == MISSING), pa.array(gaps.reasons))
        columns["independent"] = texts.dictionary_decode()
    return columns
