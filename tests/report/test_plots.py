"""What plots are made of: lines on logarithmic axes, ticks, titles."""

from __future__ import annotations

import json

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.report.plots import Line, log_plot, log_ticks


def test_lines_lose_what_has_no_logarithm() -> None:
    nan = float("nan")
    plot = log_plot(
        "a < b", "x", "y", [Line("one", [(1.0, 1.0), (10.0, 10.0), (5.0, -1.0), (7.0, nan)]), Line("no", [])]
    )
    assert [(trace["name"], trace["x"], trace["y"]) for trace in plot["data"]] == [("one", [1, 10], [1, 10])]
    assert plot["layout"]["title"]["text"] == "a &lt; b"
    assert {plot["layout"][axis]["type"] for axis in ("xaxis", "yaxis")} == {"log"}
    json.dumps(plot, allow_nan=False)


def test_no_two_lines_look_the_same_and_a_reference_is_no_line_among_others() -> None:
    points = [(1.0, 1.0), (2.0, 2.0)]
    plot = log_plot("t", "x", "y", [*(Line(str(i), points) for i in range(14)), Line("slope", points, reference=True)])
    *lines, reference = plot["data"]
    looks = {(line["line"]["color"], line["line"]["dash"], line["marker"]["symbol"]) for line in lines}
    assert len(looks) == 14
    assert (reference["mode"], reference["line"]["dash"]) == ("lines", "dot")
    same = log_plot("t", "x", "y", [Line("a", points, dash="dash", colour=3), Line("b", points, colour=3)])["data"]
    assert [line["line"]["dash"] for line in same] == ["dash", "solid"]
    assert same[0]["line"]["color"] == same[1]["line"]["color"]


def test_a_plot_without_a_point_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'empty' has no point"):
        log_plot("empty", "x", "y", [Line("one", [(1.0, -1.0)])])


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [(1.0, 10.0, ["1", "2", "5", "10", "20", "50"]), (90.0, 2e5, ["10", "100", "10³", "10⁴", "10⁵", "10⁶"])],
)
def test_ticks_are_powers_of_ten_or_a_few_between(low: float, high: float, labels: list[str]) -> None:
    places, words = log_ticks(low, high)
    assert words == labels
    assert places[0] <= low <= high <= places[-1]
