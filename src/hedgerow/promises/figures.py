"""Figures and tables of a verification, drawn from the observations that it kept (`hedgerow verify --figures`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log, sqrt
from pathlib import Path

import numpy as np

from hedgerow import disk
from hedgerow.pages.log_plots import Line, log_plot
from hedgerow.promises.constant import ended, longest_search
from hedgerow.promises.evidence import Evidence
from hedgerow.promises.growth import by_horizon, split
from hedgerow.promises.levels import Level
from hedgerow.promises.lower import least_regret, margin_of
from hedgerow.promises.observation import Observation

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


Points = Sequence[tuple[float, float]]


def _means(some: Sequence[Observation], name: str) -> list[tuple[float, float]]:
    return [(float(T), float(np.mean(values))) for T, values in by_horizon(some, name).items()]


def _root(points: Points) -> Line:
    """sqrt(T) through the last point."""
    (first, _), (last, value) = points[0], points[-1]
    return Line("slope 1/2", [(first, value * sqrt(first / last)), (last, value)], reference=True)


def _line(points: Points) -> Line:
    """T through the first point."""
    (first, value), (last, _) = points[0], points[-1]
    return Line("slope 1", [(first, value), (last, value * last / first)], reference=True)


def _between(title: str, curves: Sequence[Line]) -> str:
    """Curves with both slopes through the first of them."""
    if not curves:
        return ""
    references = [_line(curves[0].points), _root(curves[0].points)]
    return log_plot(title, EPISODES, "mean over seeds", [*curves, *references])


def _soft(seen: Seen) -> str:
    sets = [some for _, some in split(seen.get("soft-violation", []))]
    curves = [Line(f"V, {some[0].world}, {some[0].preset}", _means(some, "violation")) for some in sets]
    noisy = [one for one in seen.get("soft-regret", []) if one.adversary == "noisy"]
    regret = [Line("R, lower-bound-2", _means(noisy, "regret"))] if noisy else []
    return _between("SV-OPS: violation and regret", curves + regret)


def _safe(seen: Seen) -> str:
    curves = [
        Line(f"{word}, {some[0].preset}", _means(some, name))
        for _, some in split(seen.get("safe-growth", []))
        for word, name in (("sum of weights", "mixing_total"), ("regret", "regret"))
    ]
    return _between("S-OPS: regret and mixing weights", curves)


def _constant(seen: Seen) -> str:
    some, names = ended(seen.get("constant", [])), ("violation", "t_bar", "regret_after")
    if not some:
        return ""
    words = ("violation V", "end of the search", "regret after it")
    curves = [Line(word, _means(some, name)) for word, name in zip(words, names, strict=True)]
    references = [_root(curves[-1].points)]
    return log_plot("CV-OPS: constant violation", EPISODES, "mean over seeds", [*curves, *references])


def _pair(seen: Seen) -> dict[float, list[Observation]]:
    """Runs on the second instance of the pair by margin."""
    second = [one for one in seen.get("lower-bound", []) if one.world == "lower-bound-2"]
    margins = sorted({margin_of(one) for one in second})
    return {rho: [one for one in second if margin_of(one) == rho] for rho in margins}


def _lower(seen: Seen) -> str:
    pair = _pair(seen)
    if len({one.episodes for some in pair.values() for one in some}) < 2:
        return ""
    curves = [Line(f"rho = {rho:g}", _means(some, "regret")) for rho, some in pair.items()]
    rho, tight = next(iter(pair.items()))
    least = {one.episodes: least_regret(one) for one in tight}
    bound = Line(f"bound, rho = {rho:g}", [(float(T), least[T]) for T in sorted(least)], reference=True)
    return log_plot("S-OPS on the lower-bound pair: regret on instance 2", EPISODES, "mean regret", [*curves, bound])


def _margin(seen: Seen) -> str:
    means = {rho: dict(_means(some, "regret")) for rho, some in sorted(_pair(seen).items(), reverse=True)}
    if len(means) < 2:
        return ""
    horizons = sorted({T for by_horizon in means.values() for T in by_horizon})
    curves = [Line(f"T = {T:,.0f}", [(1.0 / rho, means[rho][T]) for rho in means]) for T in horizons]
    return log_plot("The price of a small margin", "1 / rho", "mean regret", [*curves, _line(curves[-1].points)])


def _adversaries(seen: Seen) -> str:
    sets = [some for _, some in split(seen.get("soft-regret", []))]
    curves = [Line(_opponent(some[0]), _means(some, "regret")) for some in sets]
    drawn = [curve for curve in curves if curve.points[-1][1] > 0.0]
    references = [_root(drawn[0].points)] if drawn else []
    title = "SV-OPS against five adversaries"
    return log_plot(title, EPISODES, "mean regret", [*curves, *references]) if curves else ""


def _opponent(one: Observation) -> str:
    return one.adversary if one.world == "lower-bound-2" else f"{one.adversary}, {one.world}"


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
        title, theory = f"{group}, {some[0].world}", some[0]["primal_bound"]
        primal = max(one["primal_ratio"] for one in some)
        lines.append(f"| C_P ({title}) | {theory:.3g} | {primal:.2f} | {len(some)} |")
        dual = max(one["dual_ratio"] for one in some)
        lines.append(f"| C_D ({title}) | {some[0]['dual_bound']:.2f} | {dual:.2f} | {len(some)} |")
        longest = max(one["t_bar"] for one in some)
        lines.append(f"| t_bar ({title}) | {longest_search(some[0], theory):.1e} | {longest:,.0f} | {len(some)} |")
    return "\n".join(lines) + "\n"
