"""Numbers as they are shown, and pens that no two learners share."""

# ruff: noqa: RUF001

from __future__ import annotations

import itertools

import pytest

from hedgerow.display.numbers import PAGE
from hedgerow.display.text import Html, counted, formulas
from hedgerow.report.plots import (
    BLUE,
    DARK,
    FORBIDDEN,
    FURTHER,
    GOOD,
    INK,
    LIMIT,
    OF_KIND,
    PAPER,
    SOFT,
    LineStyle,
    pens,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "–"),
        (1.0, "1"),
        (9.99999, "10"),
        (0.1234567, "0.1235"),
        (-0.5, "−0.5"),
        (12.345678, "12.35"),
        (999.96, "1,000"),
        (1234.5, "1,234"),
        (98765.4, "98,765"),
        (1234567.0, "1,234,570"),
        (4.2e12, "4.200e+12"),
        (0.00012345, "1.23e-04"),
        (0.001, "0.001"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert PAGE.number(value) == shown


def test_numbers_come_back() -> None:
    """Within the digits that are shown, nothing is lost."""
    for exponent, mantissa in itertools.product(range(-6, 12), (1.0, 1.2345678, 5.0, 9.9996)):
        value = mantissa * 10.0**exponent
        assert float(PAGE.number(value).replace(",", "")) == pytest.approx(value, rel=6e-3 if exponent < -3 else 6e-4)


def test_other_words() -> None:
    assert PAGE.fixed(0.456, 2) == "0.46"
    assert PAGE.fixed(-0.001, 2) == "0.00"
    assert PAGE.fixed(-1.0, 2) == "−1.00"
    assert PAGE.interval(0.4, 0.6) == "[0.4, 0.6]"
    assert PAGE.interval(float("nan"), 1.0) == ""
    assert PAGE.whole(1e6) == "1,000,000"
    assert counted(1, "seed") == "1 seed"
    assert counted(2000, "seed") == "2,000 seeds"
    assert Html.escape("<a href='x'>&") == "&lt;a href=&#39;x&#39;&gt;&amp;"
    assert formulas("R_T and max_i of V_t, c·t^b; my_name") == (
        "R<sub>T</sub> and max<sub>i</sub> of V<sub>t</sub>, c·t<sup>b</sup>; my_name"
    )


def test_kinds_keep_their_colours() -> None:
    given = pens([("x", "s-ops"), ("y", "sv-ops"), ("z", "s-ops")])
    assert given["x"].colour == OF_KIND["s-ops"]
    assert given["y"].colour == OF_KIND["sv-ops"]
    assert len(set(given.values())) == 3
    assert pens([("y", "sv-ops"), ("x", "s-ops")])["x"] == given["x"]


def test_a_later_kind_finds_its_colour_free() -> None:
    given = pens([*((f"s{i}", "s-ops") for i in range(5)), ("u", "uob-reps")])
    assert given["u"] == LineStyle(OF_KIND["uob-reps"], "solid")


def test_many_learners_have_different_pens() -> None:
    given = pens([(f"learner {i}", "s-ops" if i % 2 else "other") for i in range(30)])
    assert len(set(given.values())) == 30


def test_every_colour_has_a_dark_form_that_is_read_on_dark() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(first: str, second: str) -> float:
        low, high = sorted([luminance(first), luminance(second)])
        return (high + 0.05) / (low + 0.05)

    for colour in (*OF_KIND.values(), *FURTHER):  # curves: 3 is enough by WCAG AA
        assert contrast(colour, PAPER) > 3.0
        assert contrast(DARK[colour], DARK[PAPER]) > 3.0
    for colour in (INK, SOFT, LIMIT, GOOD, BLUE):  # words, BLUE for links: 4.5
        assert contrast(colour, PAPER) > 4.5
        assert contrast(DARK[colour], DARK[PAPER]) > 4.5
    assert contrast(LIMIT, FORBIDDEN) > 4.5  # the label of the shaded region
    assert contrast(DARK[LIMIT], DARK[FORBIDDEN]) > 4.5
