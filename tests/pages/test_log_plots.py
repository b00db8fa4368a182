"""Plots on two logarithmic axes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from hedgerow.pages.log_plots import Line, log_plot


def test_plots_place_points_logarithmically() -> None:
    svg = log_plot("a < b", "x", "y", [Line("one", [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0), (5.0, -1.0)])])
    root = ElementTree.fromstring(svg)
    circles = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(circles) == 3
    (x1, y1), (x2, y2), (x3, y3) = circles
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert y1 > y2
