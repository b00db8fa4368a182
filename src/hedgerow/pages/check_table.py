"""What watchers saw of each learner: clean events, programs and projections, promises that were refuted.

Watchers are of different families and note different columns. So each check declares the columns that it is made of: it
is shown for the learners whose runs have all of them, the others have a dash, and a check that no learner of a page has
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.html_parts import text
from hedgerow.pages.colours import Pen
from hedgerow.pages.sections import by_setting, chip, setting_title, table
from hedgerow.pages.words import DASH, count_of, number, whole
from hedgerow.results.groups import Group

REFUTED = ("refuted_feasibility", "refuted_safety")
"""The facts of a run that count what contradicts a proof."""


class Check(NamedTuple):
    """A column of the table: its name, what it means, and how it is made of columns (seeds, C) of the runs."""

    name: str
    words: str
    of: tuple[str, ...]
    show: Callable[..., str]


def _clean(unclean: FloatArray) -> str:
    return count_of(int(np.sum(unclean[:, -1] == 0)), len(unclean))


def _total(counts: FloatArray) -> str:
    total = float(np.sum(counts[:, -1]))
    return whole(total) if np.isfinite(total) else DASH


def _per_episode(counts: FloatArray, episodes: FloatArray) -> str:
    return number(float(np.sum(counts[:, -1]) / np.sum(episodes[:, -1])), 3)


def _largest(values: FloatArray) -> str:
    return number(float(np.max(values)))


CHECKS = (
    Check(
        "clean seeds",
        "the true transitions and mean costs were inside all confidence sets in all episodes",
        ("unclean",),
        _clean,
    ),
    Check("infeasible", "projections or linear programs without a solution", ("infeasible",), _total),
    Check("slow solver", "projections that the method of Newton left open", ("suspect",), _total),
    Check("slow solver", "linear programs that the own solver left open", ("unsolved",), _total),
    Check("steps / episode", "iterations of the projections", ("iterations", "episode"), _per_episode),
    Check("largest residual", "of the costs of the projections, at the checkpoints", ("residual",), _largest),
)
"""In the order of the table. Of checks of one name, a learner has the first one that its runs have the columns of."""
_LOOP = ("loop", "compiled, or step-wise through plan and observe; the scores are the same")
_REFUTED = (
    "refuted",
    "what a clean event rules out: infeasible projections, unsafe episodes with a baseline; anything but 0 is a defect",
)


def checks(groups: Sequence[Group], pens: Mapping[str, Pen]) -> str:
    """A table for each setting, and what its columns mean."""
    found = {id(group): _results(group) for group in groups}
    names = [name for name in _names() if any(name in results for results in found.values())]
    parts = []
    for setting, members in by_setting(groups):
        rows = [[chip(group.learner, pens), *(found[id(group)].get(name, DASH) for name in names)] for group in members]
        title = setting_title(setting)
        parts.append(
            f"<h3>{title}</h3>" + table(["learner", *names], rows, "checks", f"Checks of the learners: {title}")
        )
    return "".join(parts) + _meanings(groups, names)


def _names() -> list[str]:
    return [_LOOP[0], *dict.fromkeys(check.name for check in CHECKS), _REFUTED[0]]


def _results(group: Group) -> dict[str, str]:
    """What there is to say of a learner, by the name of the check."""
    results = {_LOOP[0]: text(", ".join(group.ways))}
    for check in CHECKS:
        curves = [group.noted(name) for name in check.of]
        if check.name not in results and all(curve is not None for curve in curves):
            results[check.name] = check.show(*curves)
    counts = [cell.facts[name] for cell in group.cells for name in REFUTED if cell.facts.get(name) is not None]
    return {**results, _REFUTED[0]: whole(sum(counts))} if counts else results


def _meanings(groups: Sequence[Group], names: Sequence[str]) -> str:
    """The words of the columns that are shown, those of one name together."""
    words: dict[str, list[str]] = {_LOOP[0]: [_LOOP[1]]}
    for check in CHECKS:
        if any(all(group.has(name) for name in check.of) for group in groups):
            words.setdefault(check.name, []).append(check.words)
    words[_REFUTED[0]] = [_REFUTED[1]]
    sentences = [f"{text(name.capitalize())}: {text('; '.join(words[name]))}." for name in names]
    return f'<p class="note">{" ".join(sentences)}</p>'
