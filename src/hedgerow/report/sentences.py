"""One sentence for each chart that says what it shows, with its numbers, for readers who do not see it.

>>> lowest([("S-OPS", 3.0), ("SV-OPS", 1.0)])
'the lowest is SV-OPS'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import unescape
from math import isfinite
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.display.text import counted, visible
from hedgerow.report.figures import Figure
from hedgerow.report.words import fixed, number, whole
from hedgerow.results.groups import Group
from hedgerow.results.metrics import REGRET

Named = Sequence[tuple[str, float]]
"""Learners with a number each"""


def sentence(figure: Figure, groups: Sequence[Group]) -> str:
    """What a figure of these groups shows; plain text. Figures of other names are read from their curves."""
    kind, _, rest = figure.name.partition("-")
    if figure.name in _OF_FIGURE:
        return _OF_FIGURE[figure.name](groups)
    if kind == "margin":
        return _margin(groups, int(rest))
    if kind == "note":
        return _note(groups, rest)
    return _ends_of_curves(figure)


def _regret(groups: Sequence[Group]) -> str:
    found = [(group.learner, float(np.mean(group.curve(REGRET)[:, -1]))) for group in groups]
    return f"Regret after {_episodes(groups)}: {_list(found)}{_lowest_of(found)}."


def _growth(groups: Sequence[Group]) -> str:
    fitted, without = [], []
    for group in groups:
        growth = group.growth
        if isfinite(growth.exponent):
            ends = f" ({fixed(growth.low)} to {fixed(growth.high)})" if isfinite(growth.low) else ""
            fitted.append(f"{visible(group.learner)} {fixed(growth.exponent)}{ends}")
        else:
            without.append(visible(group.learner))
    none = f"no exponent can be fitted for {_joined(without)}" if without else ""
    start = "Regret on two logarithmic axes"
    if not fitted:
        return f"{start}: {none}."
    exponents = f"fitted exponents over the last decade of episodes are {', '.join(fitted)}"
    return f"{start}: {'; '.join(filter(None, (exponents, none)))}."


def _violation(groups: Sequence[Group]) -> str:
    found = [(group.learner, float(np.mean(group.violation()[:, -1]))) for group in groups]
    return f"Violation after {_episodes(groups)}: {_list(found)}{_lowest_of(found)}."


def _margin(groups: Sequence[Group], i: int) -> str:
    found = [(group.learner, -float(np.max(group.curve(f"worst_{i}")))) for group in groups]
    over = [visible(learner) for learner, margin in found if margin < 0.0]
    kept = [visible(learner) for learner, margin in found if margin >= 0.0]
    verdicts = []
    if kept:
        verdicts.append(f"{_joined(kept)} {'keeps' if len(kept) == 1 else 'keep'} to the threshold")
    if over:
        verdicts.append(f"{_joined(over)} {'exceeds' if len(over) == 1 else 'exceed'} it in some episode")
    limit, name = number(groups[0].thresholds[i]), visible(groups[0].constraints[i])
    numbers = f"Least margin to the threshold {limit} of {name} in any episode and seed: {_list(found)}"
    return "; ".join([numbers, *verdicts]) + "."


def _mixing(groups: Sequence[Group]) -> str:
    curves = [(group, group.noted("mixing_weight")) for group in groups]
    mixing = [(group, weights) for group, weights in curves if weights is not None and np.any(weights > 0.0)]
    return f"Probability of leaving an episode to the safe baseline: {_courses(mixing)}."


def _note(groups: Sequence[Group], name: str) -> str:
    noted = [(group, values) for group in groups if (values := group.noted(name)) is not None]
    return f"{visible(name)}, as the learners note it: {_courses(noted)}."


_OF_FIGURE: dict[str, Callable[[Sequence[Group]], str]] = {
    "regret": _regret,
    "regret-growth": _growth,
    "violation": _violation,
    "mixing": _mixing,
}


def _ends_of_curves(figure: Figure) -> str:
    """The last point of every curve that has a name; plotly reads tags in names, so these are escaped."""
    traces: list[dict[str, Any]] = figure.plot["data"] if figure.plot else []
    ends = [
        (unescape(str(trace["name"])), float(trace["y"][-1]))
        for trace in traces
        if trace.get("name") and len(trace["y"]) and trace["y"][-1] is not None
    ]
    return f"{visible(figure.title)}, last values: {_list(ends)}." if ends else f"{visible(figure.title)}."


# Parts of a sentence --------------------------------------------------------------------------------------------------


def lowest(found: Named) -> str:
    """Who has the least of these numbers; all of them, where some are equal."""
    least = min(value for _, value in found)
    names = [visible(name) for name, value in found if value == least]
    return f"the lowest {'is' if len(names) == 1 else 'are'} {_joined(names)}"


def _lowest_of(found: Named) -> str:
    """`; the lowest is ...` where there is a choice."""
    known = [(name, value) for name, value in found if isfinite(value)]
    return f"; {lowest(known)}" if len(known) > 1 and len({value for _, value in known}) > 1 else ""


def _list(found: Named) -> str:
    return ", ".join(f"{visible(name)} {number(value) if isfinite(value) else 'unknown'}" for name, value in found)


def _courses(curves: Sequence[tuple[Group, FloatArray]]) -> str:
    """From where to where a curve of each learner goes, between the first and the last checkpoint with a number."""
    told = []
    for group, values in curves:
        (known,) = np.nonzero(np.all(np.isfinite(values), axis=0))
        if len(known):
            ends = known[[0, -1]]
            (first, last), (start, end) = group.episodes[ends], np.mean(values[:, ends], axis=0)
            learner = visible(group.learner)
            if first == last:
                told.append(f"{learner} {number(float(start))} in episode {whole(first)}")
            else:
                course = f"from {number(float(start))} in episode {whole(first)} to {number(float(end))}"
                told.append(f"{learner} {course} in episode {whole(last)}")
    return ", ".join(told)


def _joined(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _episodes(groups: Sequence[Group]) -> str:
    return counted(int(groups[0].episodes[-1]), "episode")
