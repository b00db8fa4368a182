"""What a verification measured, as four small tables, each kept as a Parquet file; all figures are drawn from these.

    curves        means over seeds by horizon, with their intervals: growth, the lower bound, the law in the margin
    coverage      how often each kind of confidence set lost the truth, and how often it may
    calibration   (U - C) / (U - C_hat) before the episodes 10, 100, ... of S-OPS, over seeds
    constants     the theory's constants, and the largest that were measured

Intervals of means are Student's of level 95 % over seeds, those of probabilities Clopper and Pearson's, one-sided at
99 % each. The band of a calibration holds 90 % of the seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import isfinite, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.display.numbers import PAGE as NUMBERS
from hedgerow.display.table import Table
from hedgerow.errors import FileFormatError
from hedgerow.results.metrics import seed_interval
from hedgerow.storage import atomic
from hedgerow.verify.calibrated import CALIBRATION, EXCESS, values_by_episode
from hedgerow.verify.claims import ended, least_regret, longest_search, margin_of
from hedgerow.verify.judging import Observation, by_horizon, clopper_pearson, split

Seen = Mapping[str, Sequence[Observation]]
"""Finished runs by group"""
BAND = (0.05, 0.95)
SETS = {"boxes": "transition", "balls": "ball", "costs": "cost", "aggregate": "aggregate"}
"""The column of the page, and how the set is called in a run"""
ANY, UNSAFE = "any of them", "unsafe"
COVERED = ("confidence", "coverage", "interrupted", "steps")
"""Groups of runs with random failures of sets"""
CIRCUMSTANCES = {
    "Interrupted": "s-ops, a person aborts",
    "TakenOver": "s-ops, a person takes over",
    "FallsIntoHoles": "s-ops",
}
"""Learners that stand for a circumstance"""


@dataclass(frozen=True)
class CurvePoint:
    """The mean of a quantity over the runs of one length."""

    group: str
    world: str
    adversary: str
    preset: str
    quantity: str
    """The name of the column"""
    margin: float
    """rho of the lower-bound pair; NaN elsewhere"""
    episodes: int
    seeds: int
    mean: float
    low: float
    high: float
    least: float
    """The lower bound of the regret by Theorem 7 (lower_bound); NaN elsewhere"""


@dataclass(frozen=True)
class CoverageRow:
    """Failures of one kind of set in the runs of one setting."""

    setting: str
    preset: str
    episodes: int
    runs: int
    delta: float
    kind: str
    """One of `SETS`, or `ANY`, or `UNSAFE`: an unsafe episode"""
    allowed: float
    """The probability of a failure that is promised; NaN where none is"""
    failed: int
    low: float
    high: float


@dataclass(frozen=True)
class CalibrationRow:
    """The calibration of U before one episode."""

    world: str
    preset: str
    episodes: int
    """T"""
    episode: int
    """t"""
    seeds: int
    median: float
    low: float
    high: float
    excess: float
    """Median of U - C"""
    below: int
    """Runs in which U was below C"""


@dataclass(frozen=True)
class ConstantRow:
    """A constant of the search of CV-OPS."""

    constant: str
    setting: str
    theory: float
    measured: float
    runs: int


KINDS: dict[str, type[Any]] = {
    "curves": CurvePoint,
    "coverage": CoverageRow,
    "calibration": CalibrationRow,
    "constants": ConstantRow,
}
Rows = dict[str, list[Any]]
"""Rows of the tables by the name of the table"""


# From runs to tables --------------------------------------------------------------------------------------------------


def tables_of(seen: Seen) -> Rows:
    """All tables."""
    return {
        "curves": list(_curves(seen)),
        "coverage": list(_coverage(seen)),
        "calibration": list(_calibration(seen)),
        "constants": list(_constants(seen)),
    }


QUANTITIES = (
    ("soft-violation", "violation"),
    ("soft-regret", "regret"),
    ("safe-growth", "mixing_total"),
    ("safe-growth", "regret"),
    ("safe-width", "weighted_width"),
    ("soft-width", "weighted_upper"),
    ("constant", "violation"),
    ("constant", "t_bar"),
    ("constant", "regret_after"),
)


def _curves(seen: Seen) -> Iterable[CurvePoint]:
    for group, quantity in QUANTITIES:
        runs = seen.get(group, [])
        for _, some in split(ended(runs) if group == "constant" else runs):
            yield from _points(group, quantity, some)
    pair = [one for one in seen.get("lower-bound", []) if one.world == "lower-bound-2"]
    for rho in sorted({margin_of(one) for one in pair}, reverse=True):
        yield from _points("lower-bound", "regret", [one for one in pair if margin_of(one) == rho], rho)


def _points(group: str, quantity: str, some: Sequence[Observation], margin: float = nan) -> Iterable[CurvePoint]:
    first = some[0]
    for T, values in by_horizon(some, quantity).items():
        if np.isfinite(values).all():
            mean, low, high = (float(end) for end in seed_interval(values))
            least = next(least_regret(one) for one in some if one.episodes == T) if isfinite(margin) else nan
            yield CurvePoint(
                group, first.world, first.adversary, first.preset, quantity, margin, T, len(values), mean, low, high,
                least,
            )  # fmt: skip


def _coverage(seen: Seen) -> Iterable[CoverageRow]:
    sets: dict[tuple[str, str, int, float], list[Observation]] = {}
    for group in COVERED:
        for one in seen.get(group, []):
            sets.setdefault((setting_of(one), one.preset, one.episodes, one.delta), []).append(one)
    for (setting, preset, episodes, delta), some in sorted(sets.items()):
        promised = {kind: some[0][f"{name}_share"] * delta for kind, name in SETS.items()}
        failed = {kind: sum(one[f"{name}_breaches"] > 0 for one in some) for kind, name in SETS.items()}
        promised |= {ANY: 5.0 * delta, UNSAFE: 5.0 * delta if some[0]["honest_baseline"] else 0.0}
        failed |= {ANY: sum(one["unclean"] > 0 for one in some), UNSAFE: sum(one["unsafe"] > 0 for one in some)}
        for kind, allowed in promised.items():
            if allowed > 0.0:
                ends = clopper_pearson(failed[kind], len(some))
                yield CoverageRow(setting, preset, episodes, len(some), delta, kind, allowed, failed[kind], *ends)


def setting_of(one: Observation) -> str:
    """The world, how its costs depend on each other, and the learner, in words."""
    learner = str(one.spec["learner"]["name"]).rpartition(":")[2]
    costs = "drawn with the step" if one.world == "holes" else one.spec["world"].get("kind", "independent")
    return f"{one.world}, {costs}{' costs' if ' ' not in costs else ''}, {CIRCUMSTANCES.get(learner, learner)}"


def _calibration(seen: Seen) -> Iterable[CalibrationRow]:
    for _, some in split(seen.get("calibration", [])):
        first = some[0]
        for episodes in sorted({one.episodes for one in some}):
            runs = [one for one in some if one.episodes == episodes]
            for t in sorted(values_by_episode(runs[0], CALIBRATION)):
                shares = np.array([one[f"{CALIBRATION}{t}"] for one in runs])
                excess = np.array([one[f"{EXCESS}{t}"] for one in runs])
                known = shares[np.isfinite(shares)]
                low, median, high = np.quantile(known, (BAND[0], 0.5, BAND[1])).tolist() if len(known) else [nan] * 3
                below = int(np.sum(excess < 0.0))
                middle = float(np.median(excess))
                yield CalibrationRow(
                    first.world, first.preset, episodes, t, len(known), median, low, high, middle, below
                )  # fmt: skip


def _constants(seen: Seen) -> Iterable[ConstantRow]:
    for group in ("search", "constant", "oracle"):
        some = ended(seen.get(group, []))
        if not some:
            continue
        theory, where = some[0]["primal_bound"], f"{group}, {some[0].world}"
        asked = {"C_P": theory, "C_D": some[0]["dual_bound"], "t_bar": longest_search(some[0], theory)}
        names = {"C_P": "primal_ratio", "C_D": "dual_ratio", "t_bar": "t_bar"}
        for constant, name in names.items():
            yield ConstantRow(constant, where, asked[constant], max(one[name] for one in some), len(some))


# Files ----------------------------------------------------------------------------------------------------------------


def keep(folder: Path, tables: Rows) -> list[Path]:
    """Write `NAME.parquet` for every table, also for empty ones; the files."""
    written = []
    for name, rows in tables.items():
        columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(KINDS[name])}
        out = pa.BufferOutputStream()
        pq.write_table(pa.table(columns, schema=_schema(name)), out, compression="zstd")
        written.append(folder / f"{name}.parquet")
        atomic.save(written[-1], out.getvalue().to_pybytes(), overwrite=True)
    return written


def load(folder: Path) -> Rows:
    """The tables of a folder."""
    found: Rows = {}
    for name, kind in KINDS.items():
        table = pq.read_table(folder / f"{name}.parquet")
        if not table.schema.equals(_schema(name)):
            raise FileFormatError(f"{folder / name}.parquet has other columns than the table {name!r}; write it again")
        found[name] = [kind(**row) for row in table.to_pylist()]
    return found


def _schema(name: str) -> pa.Schema:
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    return pa.schema([(field.name, types[str(field.type)]) for field in fields(KINDS[name])])


# For the page ---------------------------------------------------------------------------------------------------------

TITLES = {
    ("soft-violation", "violation"): "V_T of SV-OPS",
    ("soft-regret", "regret"): "R_T of SV-OPS",
    ("safe-growth", "mixing_total"): "sum lambda of S-OPS",
    ("safe-growth", "regret"): "R_T of S-OPS",
    ("safe-width", "weighted_width"): "sum (1 - lambda)|q - q_hat| of S-OPS",
    ("constant", "violation"): "V_T of CV-OPS",
    ("constant", "regret_after"): "R_T - R_t_bar of CV-OPS",
}


def by_curve(points: Iterable[CurvePoint], group: str, quantity: str) -> list[list[CurvePoint]]:
    """The points of one quantity, curve by curve, in the order of their horizons."""
    curves: dict[tuple[Any, ...], list[CurvePoint]] = {}
    for point in points:
        if (point.group, point.quantity) == (group, quantity):
            key = (point.world, point.adversary, point.preset, str(point.margin))
            curves.setdefault(key, []).append(point)
    return [sorted(curve, key=lambda point: point.episodes) for curve in curves.values()]


def exponents(curve: Sequence[CurvePoint]) -> list[float]:
    """The slopes between neighbouring horizons; NaN where a mean is not positive."""
    return [
        log(b.mean / a.mean) / log(b.episodes / a.episodes) if a.mean > 0.0 and b.mean > 0.0 else nan
        for a, b in pairwise(curve)
    ]


def growth_table(tables: Rows) -> Table:
    """Mean values by horizon, and the local exponents between them."""
    table = Table("growth", ["quantity", "world, adversary, preset", "seeds", "mean at T", "exponents"], num_text=5)
    for (group, quantity), title in TITLES.items():
        for curve in by_curve(tables["curves"], group, quantity):
            first, counts = curve[0], sorted({point.seeds for point in curve})
            means = ", ".join(f"{point.mean:.4g} at {point.episodes:,}" for point in curve)
            slopes = ", ".join(f"{slope:.2f}" if isfinite(slope) else "-" for slope in exponents(curve))
            label = f"{first.world}, {first.adversary}, {first.preset}"
            table.add_row(title, label, " to ".join(map(str, counts)), means, slopes)
    return table


def coverage_table(tables: Rows) -> Table:
    """How often the truth left a set at any time, with the interval of that probability, beside how often it may."""
    settings: dict[tuple[Any, ...], dict[str, CoverageRow]] = {}
    for row in tables["coverage"]:
        key = (row.setting, row.preset, row.episodes, row.delta)
        settings.setdefault(key, {})[row.kind] = row
    heads = ["world, costs, learner", "preset", "T", "runs", "5 delta", *SETS, ANY, UNSAFE]
    table = Table("coverage", heads, num_text=len(heads))
    for (setting, preset, episodes, delta), found in settings.items():
        runs = next(iter(found.values())).runs
        shares = [_share(found.get(kind)) for kind in (*SETS, ANY)]
        unsafe = str(found[UNSAFE].failed) if UNSAFE in found else ""
        table.add_row(setting, preset, f"{episodes:,}", f"{runs:,}", f"{5.0 * delta:g}", *shares, unsafe)
    return table


def _share(row: CoverageRow | None) -> str:
    """The share of runs with a failure, its interval, and in brackets what is allowed."""
    if row is None:
        return ""
    return f"{row.failed / row.runs:.4f} [{row.low:.3f}, {row.high:.3f}] ({row.allowed:.3g})"


def calibration_table(tables: Rows) -> Table:
    """Median and band of the calibration, and the median of U - C, by episode."""
    heads = ["world, preset", "seeds", "t", "(U - C) / (U - C_hat)", "90 % of seeds", "U - C", "U below C"]
    table = Table("calibration", heads, num_text=len(heads))
    for row in tables["calibration"]:
        band = f"[{row.low:.2f}, {row.high:.2f}]"
        name = f"{row.world}, {row.preset}"
        table.add_row(
            name, str(row.seeds), f"{row.episode:,}", f"{row.median:.2f}", band, f"{row.excess:.3f}", str(row.below)
        )
    return table


def constants_table(tables: Rows) -> Table:
    """What the theory's constants ask for, beside what was measured."""
    table = Table("constants", ["constant", "the theory's", "measured, largest", "runs"], num_text=4)
    for row in tables["constants"]:
        asked = {"C_P": f"{row.theory:.3g}", "C_D": f"{row.theory:.2f}"}.get(row.constant, f"{row.theory:.1e}")
        found = f"{row.measured:,.0f}" if row.constant == "t_bar" else f"{row.measured:.2f}"
        table.add_row(f"{row.constant} ({row.setting})", asked, found, f"{row.runs:,}")
    return table


def margin_table(tables: Rows) -> Table:
    """The mean regret on the second instance of the pair, its interval, and regret times rho / sqrt(T)."""
    points = [point for point in tables["curves"] if point.group == "lower-bound"]
    margins = sorted({point.margin for point in points}, reverse=True)
    table = Table("margin", ["T", *(f"rho = {rho:g}" for rho in margins)], num_text=1 + len(margins))
    for T in sorted({point.episodes for point in points}):
        cells = [_price(point) for rho in margins for point in points if (point.margin, point.episodes) == (rho, T)]
        table.add_row(f"{T:,}", *cells)
    return table


def _price(point: CurvePoint) -> str:
    interval = NUMBERS.interval(point.low, point.high)
    return f"{NUMBERS.number(point.mean)} {interval} ({point.mean * point.margin / point.episodes**0.5:.2f})"


PAGE_TABLES = {
    "growth": growth_table,
    "coverage": coverage_table,
    "calibration": calibration_table,
    "constants": constants_table,
    "margin": margin_table,
}
