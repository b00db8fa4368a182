"""Figures and tables of a verification, drawn from the observations that it kept (`hedgerow verify --figures`).

Figures take a browser, as all figures in files do (`pages.export`); tables do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log, sqrt
from pathlib import Path

import numpy as np

from hedgerow.report.export import FOR_DOCS, save_figures
from hedgerow.report.plots import Line, Plot, log_plot
from hedgerow.storage import atomic
from hedgerow.verify.judges import ended, least_regret, longest_search, margin_of
from hedgerow.verify.judging import Observation, by_horizon, split
from hedgerow.verify.levels import Level
from hedgerow.verify.verify import Evidence

Seen = dict[str, list[Observation]]
Lines = list[Line]


def draw(level: Level, folder: Path) -> list[Path]:
    """Write the tables and figures that the finished runs in a folder allow.

    Args:
        level: The level whose runs they are.
        folder: Where the runs are, and where the files go.

    Returns:
        The files, by name.

    Raises:
        HedgerowError: If kaleido or a browser is missing: install `hedgerow[figures]`.
    """
    evidence = Evidence(level, folder)
    seen = {group: evidence.seen(group, cells) for group, cells in level.groups.items()}
    tables = {"growth": growth_table, "constants": constants_table, "coverage": coverage_table}
    for name, table in tables.items():
        atomic.save(folder / f"{name}.md", table(seen).encode(), overwrite=True)
    drawn = save_figures([(plot, folder / f"{name}.svg") for name, plot in plots(seen).items()], FOR_DOCS)
    return sorted([*(folder / f"{name}.md" for name in tables), *drawn])


def plots(seen: Seen) -> dict[str, Plot]:
    """What plotly takes, by name; figures without runs are left out."""
    found = {name: (lines_of(seen), title, x, y) for name, (lines_of, title, x, y) in FIGURES.items()}
    return {name: log_plot(title, x, y, lines) for name, (lines, title, x, y) in found.items() if lines}


def _means(some: Sequence[Observation], name: str) -> list[tuple[float, float]]:
    return [(float(T), float(np.mean(values))) for T, values in by_horizon(some, name).items()]


def _root(line: Line) -> Line:
    """sqrt(T) through the last point of a line."""
    (first, _), (last, value) = line.points[0], line.points[-1]
    return Line("slope 1/2", [(first, value * sqrt(first / last)), (last, value)], reference=True)


def _linear(line: Line) -> Line:
    """T through the first point of a line."""
    (first, value), (last, _) = line.points[0], line.points[-1]
    return Line("slope 1", [(first, value), (last, value * last / first)], dash="dash", reference=True)


def _soft(seen: Seen) -> Lines:
    sets = [some for _, some in split(seen.get("soft-violation", []))]
    lines = [Line(f"V, {some[0].world}, {some[0].preset}", _means(some, "violation")) for some in sets]
    noisy = [one for one in seen.get("soft-regret", []) if one.adversary == "noisy"]
    lines += [Line("R, lower-bound-2", _means(noisy, "regret"))] if noisy else []
    return [*lines, _linear(lines[0]), _root(lines[0])] if lines else []


def _safe(seen: Seen) -> Lines:
    lines = [
        Line(f"{word}, {some[0].preset}", _means(some, name))
        for _, some in split(seen.get("safe-growth", []))
        for word, name in (("sum of weights", "mixing_total"), ("regret", "regret"))
    ]
    return [*lines, _linear(lines[0]), _root(lines[0])] if lines else []


def _constant(seen: Seen) -> Lines:
    some = ended(seen.get("constant", []))
    names = {"violation V": "violation", "end of the search": "t_bar", "regret after it": "regret_after"}
    lines = [Line(word, _means(some, name)) for word, name in names.items()]
    return [*lines, _root(lines[-1])] if some else []


def _pair(seen: Seen) -> dict[float, list[Observation]]:
    """Runs on the second instance of the pair by margin, the largest first."""
    second = [one for one in seen.get("lower-bound", []) if one.world == "lower-bound-2"]
    margins = sorted({margin_of(one) for one in second}, reverse=True)
    return {rho: [one for one in second if margin_of(one) == rho] for rho in margins}


def _lower(seen: Seen) -> Lines:
    lines: Lines = []
    least, rho = {}, 0.0
    for rho, some in _pair(seen).items():
        lines.insert(0, Line(f"rho = {rho:g}", _means(some, "regret")))
        least = {one.episodes: least_regret(one) for one in some}
    bound = Line(f"bound, rho = {rho:g}", [(float(T), least[T]) for T in sorted(least)], reference=True)
    return [*lines, bound] if len(least) > 1 else []


def _margin(seen: Seen) -> Lines:
    means = {rho: dict(_means(some, "regret")) for rho, some in _pair(seen).items()}
    horizons = sorted({T for values in means.values() for T in values})
    lines = [Line(f"T = {T:,.0f}", [(1.0 / rho, means[rho][T]) for rho in means]) for T in horizons]
    return [*lines, _linear(lines[-1])] if len(means) > 1 else []


def _adversaries(seen: Seen) -> Lines:
    lines = []
    for _, some in split(seen.get("soft-regret", [])):
        opponent, world = some[0].adversary, some[0].world
        name = opponent if world == "lower-bound-2" else f"{opponent}, {world}"
        lines.append(Line(name, _means(some, "regret")))
    return lines + [_root(line) for line in lines if line.points[-1][1] > 0.0][:1]


HORIZON, MEAN = "horizon T (every point has runs of its own)", "mean over seeds"
FIGURES: dict[str, tuple[Callable[[Seen], Lines], str, str, str]] = {
    "soft-growth": (_soft, "SV-OPS: violation and regret", HORIZON, MEAN),
    "safe-growth": (_safe, "S-OPS: regret and mixing weights", HORIZON, MEAN),
    "constant-violation": (_constant, "CV-OPS: constant violation", HORIZON, MEAN),
    "lower-bound": (_lower, "S-OPS on the lower-bound pair: regret on instance 2", HORIZON, "mean regret"),
    "margin-law": (_margin, "The price of a small margin", "1 / rho", "mean regret"),
    "adversaries": (_adversaries, "SV-OPS against five adversaries", HORIZON, "mean regret"),
}


# Tables ---------------------------------------------------------------------------------------------------------------

CURVES: tuple[tuple[str, str, str], ...] = (
    ("soft-violation", "V_T of SV-OPS", "violation"),
    ("soft-regret", "R_T of SV-OPS", "regret"),
    ("safe-growth", "sum lambda of S-OPS", "mixing_total"),
    ("safe-growth", "R_T of S-OPS", "regret"),
    ("safe-width", "sum (1 - lambda)|q - q_hat| of S-OPS", "weighted_width"),
    ("constant", "V_T of CV-OPS", "violation"),
    ("constant", "R_T - R_t_bar of CV-OPS", "regret_after"),
)


def growth_table(seen: Seen) -> str:
    """Mean values by horizon, and the local exponents between them."""
    lines = ["| quantity | world, adversary, preset | mean at T | exponents |", "|---|---|---|---|"]
    for group, title, name in CURVES:
        for label, some in split(seen.get(group, [])):
            points = [p for p in _means(some, name) if np.isfinite(p[1])]
            means = ", ".join(f"{value:.4g} at {T:,.0f}" for T, value in points)
            slopes = [
                f"{log(b / a) / log(S / T):.2f}" if a > 0.0 and b > 0.0 else "-" for (T, a), (S, b) in pairwise(points)
            ]
            escaped = title.replace("|", "\\|")
            lines.append(f"| {escaped} | {label} | {means} | {', '.join(slopes)} |")
    return "\n".join(lines) + "\n"


def constants_table(seen: Seen) -> str:
    """What the theory's constants ask for, beside what was measured."""
    lines = ["| constant | the theory's | measured, largest | runs |", "|---|---|---|---|"]
    for group in ("search", "constant", "oracle"):
        some = ended(seen.get(group, []))
        if not some:
            continue
        title, theory, dual = f"{group}, {some[0].world}", some[0]["primal_bound"], some[0]["dual_bound"]
        largest = {name: max(one[name] for one in some) for name in ("primal_ratio", "dual_ratio", "t_bar")}
        lines += [
            f"| C_P ({title}) | {theory:.3g} | {largest['primal_ratio']:.2f} | {len(some)} |",
            f"| C_D ({title}) | {dual:.2f} | {largest['dual_ratio']:.2f} | {len(some)} |",
            f"| t_bar ({title}) | {longest_search(some[0], theory):.1e} | {largest['t_bar']:,.0f} | {len(some)} |",
        ]
    return "\n".join(lines) + "\n"


SETS = ("transition", "ball", "cost", "aggregate")


def coverage_table(seen: Seen) -> str:
    """How often the truth left a set at any time, beside how often it may."""
    sets: dict[tuple[str, str, int, float], list[Observation]] = {}
    for one in seen.get("coverage", []):
        costs = one.spec["world"].get("kind", "independent")
        name = f"{one.world}, {costs} costs, {one.spec['learner']['name']}"
        sets.setdefault((name, one.preset, one.episodes, one.delta), []).append(one)
    lines = [
        "| world, costs, learner | T | runs | 5 delta | boxes | balls | costs | aggregate | any of them | unsafe |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, _, episodes, delta), some in sorted(sets.items()):
        shares = [_share(some, kind, delta) for kind in SETS]
        whole = f"{sum(one['unclean'] > 0 for one in some) / len(some):.4f}"
        unsafe = str(sum(one["unsafe"] > 0 for one in some)) if some[0]["honest_baseline"] else ""
        told = [name, f"{episodes:,}", f"{len(some):,}", f"{5.0 * delta:g}", *shares, whole, unsafe]
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _share(some: Sequence[Observation], kind: str, delta: float) -> str:
    """The share of runs with a breach, and in brackets what is allowed."""
    allowed = some[0][f"{kind}_share"] * delta
    breached = sum(one[f"{kind}_breaches"] > 0 for one in some)
    return f"{breached / len(some):.4f} ({allowed:g})" if allowed > 0.0 else ""
