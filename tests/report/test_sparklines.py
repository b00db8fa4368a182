"""Small pictures: points where they belong, nothing outside, and sentences that cannot break them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from hedgerow.report.board import EDGE, GAP, HEIGHT, WIDTH, Scales, picture, scales

HALF = (WIDTH - GAP) // 2


def points(svg: str, kind: str) -> list[tuple[int, int]]:
    """The places of a curve, its steps added up."""
    path = next(each for each in ElementTree.fromstring(svg) if each.get("class") == kind).get("d")
    assert path is not None
    numbers = [tuple(map(int, pair)) for pair in re.findall(r"[Ml](-?\d+) (-?\d+)", path)]
    found = [numbers[0]]
    for x, y in numbers[1:]:
        found.append((found[-1][0] + x, found[-1][1] + y))
    return found


def test_points_are_where_the_numbers_say() -> None:
    svg = picture([0, 50, 100], [0.0, 2.0, 4.0], [-1.0, 0.0, 1.0], Scales((0.0, 4.0), (-1.0, 1.0)), "words")
    low = HEIGHT - EDGE
    assert points(svg, "regret") == [(0, low), (HALF // 2, HEIGHT // 2), (HALF, EDGE)]
    assert points(svg, "margin") == [(HALF + GAP, low), (HALF + GAP + HALF // 2, HEIGHT // 2), (WIDTH, EDGE)]
    assert f'<path class="limit" d="M{HALF + GAP} {HEIGHT // 2}h{HALF}"/>' in svg
    assert f'<path class="forbidden" d="M{HALF + GAP} {HEIGHT // 2}h{HALF}V{HEIGHT}h-{HALF}z"/>' in svg


def test_scales_hold_every_curve_and_zero() -> None:
    assert scales([[1.0, 3.0], [2.0, float("nan")]], [[-0.5, 0.25]]) == Scales((0.0, 3.0), (-0.5, 0.25))
    assert scales([[-1.0, -3.0]], []) == Scales((-3.0, 0.0), None)
    assert scales([[0.0]], [[0.0]]) == Scales((0.0, 1.0), (0.0, 1.0))


def test_what_is_no_number_is_left_out() -> None:
    svg = picture([1, 2, 3], [0.0, float("nan"), 1.0], [], Scales((0.0, 1.0), None), "")
    assert len(points(svg, "regret")) == 2
    assert "margin" not in svg
    nothing = picture([1], [float("nan")], [], Scales((0.0, 1.0), None), "")
    assert 'class="regret"' not in nothing


def test_a_single_point_is_seen() -> None:
    assert len(points(picture([1], [0.5], [], Scales((0.0, 1.0), None), ""), "regret")) == 2


def test_a_safe_world_has_no_forbidden_region() -> None:
    svg = picture([1, 2], [0.0, 1.0], [0.1, 0.2], Scales((0.0, 1.0), (0.0, 0.2)), "")
    assert "forbidden" not in svg


@pytest.mark.parametrize("value", [1e300, -1e300])
def test_nothing_leaves_the_picture(value: float) -> None:
    svg = picture([1, 2], [value, 0.5], [], Scales((0.0, 1.0), None), "")
    assert all(0 <= y <= HEIGHT for _, y in points(svg, "regret"))


def test_words_cannot_break_it() -> None:
    evil = "\"><script>alert(1)</script>&'"
    svg = picture([1, 2], [0.0, 1.0], [], Scales((0.0, 1.0), None), evil)
    assert ElementTree.fromstring(svg).get("aria-label") == evil
    assert len(svg) < 600
