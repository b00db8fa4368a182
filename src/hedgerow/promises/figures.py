"""Figures and tables of a verification, drawn from the observations that it kept (`hedgerow verify --figures`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log, sqrt
from pathlib import Path

import numpy as np

from hedgerow import disk
from hedgerow.pages.log_plots import Line, log_plot
from hedgerow.promises.constant import longest_search
from hedgerow.promises.evidence import Evidence
from hedgerow.promises.growth import Measure, by_horizon
from hedgerow.promises.levels import Level
from hedgerow.promises.lower import least_regret, margin_of
from hedgerow.promises.observation import Observation
from hedgerow.promises.soft import split

EPISODES = "horizon T (every point has runs of its own)"


def draw(level: Level, folder: Path) -> list[Path]:
    """Write what the finished runs in `folder` allow; returns the files."""
    evidence = Evidence(level, folder)
    seen = {group: evidence.seen(group, cells) for group, cells in level.groups.items()}
    drawn = {f"{name}.svg": make(seen) for name, make in FIGURES.items()}
    texts = {**drawn, "growth.md": growth_table(seen), "constants.md": constants_table(seen)}
    for name, text in texts.items():
        if text:
            disk.save(folder / name, text.encode(), overwrite=True)
    return [folder / name for name, text in texts.items() if text]


Seen = dict[str, list[Observation]]


def _means(some: Sequence[Observation], measure: Measure) -> list[tuple[float, float]]:
    return [(float(T), float(np.mean(values))) for T, values in by_horizon(some, measure).items()]


def _root(points: Sequence[tuple[float, float]], name: str = "slope 1/2") -> Line:
    """sqrt(T) through the last point."""
    (first, _), (last, value) = points[0], points[-1]
    return Line(name, [(first, value * sqrt(first / last)), (last, value)], reference=True)


def _line(points: Sequence[tuple[float, float]]) -> Line:
    """T through the first point."""
    (first, value), (last, _) = points[0], points[-1]
    return Line("slope 1", [(first, value), (last, value * last / first)], reference=True)


def _soft(seen: Seen) -> str:
    curves = [
        Line(f"V, {_short(some[0])}", _means(some, lambda one: one["violation"]))
        for _, some in split(seen.get("soft-violation", []))
    ]
    noisy = [one for one in seen.get("soft-regret", []) if one.adversary == "noisy"]
    if noisy:
        curves.append(Line("R, lower-bound-2", _means(noisy, lambda one: one["regret"])))
    if not curves:
        return ""
    references = [_line(curves[0].points), _root(curves[0].points)]
    return log_plot("SV-OPS: violation and regret", EPISODES, "mean over seeds", [*curves, *references])


def _safe(seen: Seen) -> str:
    curves = []
    for _, some in split(seen.get("safe-growth", [])):
        curves.append(Line(f"sum of weights, {some[0].preset}", _means(some, lambda one: one["mixing_total"])))
        curves.append(Line(f"regret, {some[0].preset}", _means(some, lambda one: one["regret"])))
    if not curves:
        return ""
    references = [_line(curves[0].points), _root(curves[0].points)]
    return log_plot("S-OPS: regret and mixing weights", EPISODES, "mean over seeds", [*curves, *references])


def _constant(seen: Seen) -> str:
    some = [one for one in seen.get("constant", []) if np.isfinite(one["t_bar"])]
    if not some:
        return ""
    curves = [
        Line("violation V", _means(some, lambda one: one["violation"])),
        Line("end of the search", _means(some, lambda one: one["t_bar"])),
        Line("regret after it", _means(some, lambda one: one["regret_after"])),
    ]
    return log_plot(
        "CV-OPS: constant violation", EPISODES, "mean over seeds", [*curves, _root(curves[-1].points)]
    )  # fmt: skip


def _pair(seen: Seen) -> tuple[list[Observation], list[float]]:
    second = [one for one in seen.get("lower-bound", []) if one.world == "lower-bound-2"]
    return second, sorted({margin_of(one) for one in second})


def _lower(seen: Seen) -> str:
    second, margins = _pair(seen)
    if len({one.episodes for one in second}) < 2:
        return ""
    curves = []
    for rho in margins:
        some = [one for one in second if margin_of(one) == rho]
        curves.append(Line(f"rho = {rho:g}", _means(some, lambda one: one["regret"])))
    tight = [one for one in second if margin_of(one) == margins[0]]
    bound = Line(f"bound, rho = {margins[0]:g}", _means(tight, least_regret), reference=True)
    return log_plot("S-OPS on the lower-bound pair: regret on instance 2", EPISODES, "mean regret", [*curves, bound])


def _margin(seen: Seen) -> str:
    second, margins = _pair(seen)
    if len(margins) < 2:
        return ""
    curves = []
    for T in sorted({one.episodes for one in second}):
        points = [
            (1.0 / rho, float(np.mean([o["regret"] for o in second if o.episodes == T and margin_of(o) == rho])))
            for rho in reversed(margins)
        ]
        curves.append(Line(f"T = {T:,}", points))
    return log_plot("The price of a small margin", "1 / rho", "mean regret", [*curves, _line(curves[-1].points)])


def _adversaries(seen: Seen) -> str:
    curves = [
        Line(_opponent(some[0]), _means(some, lambda one: one["regret"]))
        for _, some in split(seen.get("soft-regret", []))
    ]
    if not curves:
        return ""
    drawn = [curve for curve in curves if curve.points[-1][1] > 0.0]
    return log_plot("SV-OPS against five adversaries", EPISODES, "mean regret", [*curves, _root(drawn[0].points)])


def _opponent(one: Observation) -> str:
    return one.adversary if one.world == "lower-bound-2" else f"{one.adversary}, {one.world}"


def _short(one: Observation) -> str:
    return f"{one.world}, {one.preset}"


FIGURES: dict[str, Callable[[Seen], str]] = {
    "soft-growth": _soft,
    "safe-growth": _safe,
    "constant-violation": _constant,
    "lower-bound": _lower,
    "margin-law": _margin,
    "adversaries": _adversaries,
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
            points = [p for p in _means(some, lambda one, name=name: one[name]) if np.isfinite(p[1])]  # type: ignore[misc]
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
        some = [one for one in seen.get(group, []) if np.isfinite(one["t_bar"])]
        if not some:
            continue
        title, theory = f"{group}, {some[0].world}", some[0]["primal_bound"]
        primal = max(one["primal_ratio"] for one in some)
        lines.append(f"| C_P ({title}) | {theory:.3g} | {primal:.2f} | {len(some)} |")
        dual = max(one["dual_ratio"] for one in some)
        lines.append(f"| C_D ({title}) | {some[0]['dual_bound']:.2f} | {dual:.2f} | {len(some)} |")
        longest = max(one["t_bar"] for one in some)
        lines.append(f"| t_bar ({title}) | {longest_search(some[0], theory):.1e} | {longest:,.0f} | {len(some)} |")
    return "\n".join(lines) + "\n"
