"""docs/evidence.md: its tables and figures are those of the kept results."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.report.board import around
from hedgerow.verify.claims import PROMISES
from hedgerow.verify.controls import CONTROLS
from hedgerow.verify.figures import plots
from hedgerow.verify.tables import (
    CalibrationRow,
    ConstantRow,
    CoverageRow,
    CurvePoint,
    Rows,
    by_curve,
    calibration_table,
    coverage_table,
    exponents,
    keep,
    load,
    margin_table,
)
from tools import write_evidence

NAN = math.nan
FIXED = CurvePoint("soft-violation", "gate", "fixed", "sharp", "violation", NAN, 100, 4, 10.0, 8.0, 12.0, NAN)
PAIR = CurvePoint("lower-bound", "lower-bound-2", "fixed", "sharp", "regret", 0.5, 400, 3, 20.0, -1.0, 41.0, 2.0)
TINY: Rows = {
    "curves": [FIXED, CurvePoint(**{**FIXED.__dict__, "episodes": 400, "mean": 20.0, "seeds": 6}), PAIR],
    "coverage": [
        CoverageRow("gate, independent costs, s-ops", "sharpest", 50, 40, 0.04, "costs", 0.06, 1, 0.0, 0.11),
        CoverageRow("gate, independent costs, s-ops", "sharpest", 50, 40, 0.04, "unsafe", 0.2, 0, 0.0, 0.1),
    ],
    "calibration": [
        CalibrationRow("gate", preset, 100, t, 40, 0.9, 0.5, 1.5, 0.1, 0)
        for preset in ("sharp", "sharpest")
        for t in (10, 100)
    ],
    "constants": [ConstantRow("t_bar", "search, wide", 1e9, 400.0, 16)],
}


def shown(marker: str) -> str:
    before, after = around(write_evidence.PAGE, marker)
    text = write_evidence.PAGE.read_text(encoding="utf-8")
    return text[len(before) : len(text) - len(after)].strip()


@pytest.mark.parametrize("marker", list(write_evidence.tables()))
def test_the_page_shows_what_was_measured(marker: str) -> None:
    assert shown(marker) == write_evidence.tables()[marker].strip(), "run: python tools/write_evidence.py"


def test_the_page_has_all_promises_and_controls() -> None:
    found = write_evidence.verdicts()
    assert [one["key"] for one in found["promises"]] == [promise.key for promise in PROMISES]
    assert {one["name"] for one in found["controls"]} == {control.name for control in CONTROLS}


def test_every_figure_of_the_page_is_drawn_from_its_tables() -> None:
    names = {path.name for _, path in write_evidence.pictures()}
    assert names == {path.name for path in write_evidence.PICTURES.glob("evidence-*.svg")}
    text = write_evidence.PAGE.read_text(encoding="utf-8")
    for name in names:
        assert f"figures/{name}" in text


def test_numbers_of_the_text_are_those_of_the_tables() -> None:
    """The sentences that sum up a table; whoever writes new tables sees which of them to write anew."""
    text, found = " ".join(write_evidence.PAGE.read_text(encoding="utf-8").split()), load(write_evidence.FOLDER)
    ends = {
        (curve[0].group, curve[0].quantity, curve[0].preset): curve
        for group, quantity in (
            ("soft-violation", "violation"),
            ("safe-growth", "regret"),
            ("constant", "regret_after"),
        )
        for curve in by_curve(found["curves"], group, quantity)
        if curve[0].world == "two-actions"
    }
    for group, quantity in (("soft-violation", "violation"), ("safe-growth", "regret")):
        paper, sharp = (ends[group, quantity, preset][-1].mean for preset in ("paper", "sharp"))
        assert f"({round(paper, -2):,.0f} against {round(sharp, -2):,.0f})" in text
        assert f"factor of {paper / sharp:.1f}" in text or f"of {paper / sharp:.1f} in the regret" in text
    slopes = exponents(ends["constant", "regret_after", "sharp"])
    assert f"exponent {slopes[0]:.2f} at first" in text
    assert f"and {slopes[-1]:.2f} [" in text
    late = [row for row in found["calibration"] if row.episode >= 1_000]
    medians = [row.median for row in late]
    assert f"medians are between {min(medians):.2f} and {max(medians):.2f}" in text
    assert f"No band begins below {min(row.low for row in late):.2f} there" in text
    ratios = [row.theory / row.measured for row in found["constants"] if row.constant == "C_P"]
    assert f"{round(min(ratios)):d} to {round(max(ratios), -2):.0f} times smaller than C_P" in text


def verdict(key: str, words: str) -> dict[str, Any]:
    return {"key": key, "verdict": words}


@pytest.mark.parametrize(
    ("verdicts", "caught", "words"),
    [
        (["holds", "holds"], [True], "**All 2 promises hold on running code, and all 1 learners"),
        (
            ["holds", "not tested here"],
            [True],
            "**1 of 2 promises hold on running code, T2 is not tested here, and all",
        ),
        (["refuted", "refuted"], [False], "**0 of 2 promises hold on running code, T1, T2 are refuted, and 0 of 1"),
    ],
)
def test_the_headline_names_what_does_not_hold(verdicts: list[str], caught: list[bool], words: str) -> None:
    promises = [verdict(f"T{number}", status) for number, status in enumerate(verdicts, 1)]
    controls = [{"name": "x", "caught": yes} for yes in caught]
    assert write_evidence.headline({"promises": promises, "controls": controls}).startswith(words)


def report(folder: Path, level: str, statuses: dict[str, str], controls: bool = True) -> Path:
    """Results of a level with the verdicts of some promises, the tables of `TINY`, and all controls or none."""
    promises = [{"key": key, "verdict": status} for key, status in statuses.items()]
    broken = [
        {"name": control.name, "promise": key, "verdict": "refuted", "caught": True}
        for control in CONTROLS
        for key in control.promises
        if controls
    ]
    found = {"promises": promises, "controls": broken, "manifest": {"level": level, "runs": len(promises)}}
    (folder / level).mkdir()
    (folder / level / "verdicts.json").write_text(json.dumps(found))
    keep(folder / level, TINY)
    return folder / level


def test_what_was_not_run_is_taken_from_a_shorter_level_and_named(tmp_path: Path) -> None:
    keys = [promise.key for promise in PROMISES]
    full = report(tmp_path, "full", {**dict.fromkeys(keys, "holds"), "T9": "not run at this level"})
    quick = report(tmp_path, "quick", dict.fromkeys(keys, "not tested here"))
    with pytest.raises(InvalidInput, match="no verdict on T9; run"):
        write_evidence.keep([full], tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
    write_evidence.keep([full, quick], tmp_path / "kept")
    found = write_evidence.verdicts(tmp_path / "kept")
    assert [(one["key"], one["verdict"]) for one in found["promises"] if one["level"] == "quick"] == [
        ("T9", "not tested here")
    ]
    assert write_evidence.headline(found).startswith("**37 of 38 promises hold on running code, T9 is not tested here")
    told = write_evidence._runs(found)
    assert told.endswith("missing: T9 by `hedgerow verify --quick`.")
    assert len(told) < 200


def test_a_control_that_was_not_run_is_missed(tmp_path: Path) -> None:
    full = report(tmp_path, "full", {promise.key: "holds" for promise in PROMISES}, controls=False)
    with pytest.raises(InvalidInput, match="no verdict on literal-sigma T8"):
        write_evidence.keep([full], tmp_path / "kept")


def test_tables_come_back_from_their_files(tmp_path: Path) -> None:
    keep(tmp_path, TINY)
    assert str(load(tmp_path)) == str(TINY)  # NaN is not equal to itself
    (tmp_path / "constants.parquet").write_bytes((tmp_path / "coverage.parquet").read_bytes())
    with pytest.raises(FileFormatError, match="has other columns"):
        load(tmp_path)


def test_tables_say_intervals_and_what_is_allowed() -> None:
    assert "0.0250 \\[0.000, 0.110\\] (0.06)" in coverage_table(TINY).to_markdown()
    assert "| gate, sharp | 40 | 10 | 0.90 | \\[0.50, 1.50\\] | 0.100 | 0 |" in calibration_table(TINY).to_markdown()
    assert "0.50" in margin_table(TINY).to_markdown()  # 20 * 0.5 / sqrt(400)


def test_figures_have_seeds_and_intervals() -> None:
    drawn = plots(TINY)
    assert set(drawn) == {"soft-growth", "coverage", "calibration"}
    line, *references = drawn["soft-growth"]["data"]
    assert line["name"] == "V, gate, sharp (4 to 6 seeds)"
    assert (line["error_y"]["arrayminus"][0], line["error_y"]["array"][0]) == (2.0, 2.0)
    assert [trace["name"] for trace in references] == ["slope 1", "slope 1/2"]
    points, diagonal = drawn["coverage"]["data"]
    assert (points["x"], points["y"]) == ([0.06], [0.025])
    assert diagonal["x"] == diagonal["y"] == [0.0, 0.06]
    panels = {trace["xaxis"] for trace in drawn["calibration"]["data"]}
    assert panels == {"x", "x2"}
    assert "40 seeds" in drawn["calibration"]["layout"]["title"]["text"]
