"""Numbers in sentences: those of the pages are those of the figures, and one that is wrong is noticed and corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import claims
from bench.claims import CLAIMS, Claim, Figures

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOUND = {"x": {"benchmark": "x", "figures": [{"world": "w", "time": 8.12e-6}, {"world": "v", "time": 1.27e-4}]}}


def times(found: Any) -> list[str]:
    return [claims.short(row["time"]) for row in found["x"]["figures"]]


CLAIM = Claim("page.md", "takes {} here and {} (there)", times)


def test_pages_say_what_the_figures_say() -> None:
    wrong = claims.check(DOCS, Figures(DOCS / "figures"))
    assert not wrong, "run python -m bench.tables docs, and read the sentences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:40])
def test_every_number_is_on_its_page_and_another_would_be_noticed(claim: Claim) -> None:
    text, found = (DOCS / claim.page).read_text(encoding="utf-8"), Figures(DOCS / "figures")
    match = claim.pattern.search(text)
    assert match is not None
    assert claim.pattern.search(text, match.end()) is None or claim.text.count("{}") == 1, "which sentence is meant?"
    for number in range(1, 1 + claim.text.count("{}")):
        broken = f"{text[: match.start(number)]}9{match.group(number)}{text[match.end(number) :]}"
        (complaint,) = claims.complaints(claim, broken, found)
        assert f"says '9{' '.join(match.group(number).split())}'" in complaint
        assert claims.written(claim, broken, found) == text


def test_a_sentence_may_be_broken_anywhere() -> None:
    page = "It takes 8.1\nµs here and 130 µs\n(there)."
    assert claims.complaints(CLAIM, page, FOUND) == []
    assert claims.written(CLAIM, page.replace("130", "1,200"), FOUND) == "It takes 8.1 µs here and 130 µs\n(there)."


def test_a_sentence_that_is_gone_is_named() -> None:
    (complaint,) = claims.complaints(CLAIM, "It takes ages here and there.", FOUND)
    assert "page.md has no such sentence" in complaint
    assert claims.written(CLAIM, "It takes ages.", FOUND) == "It takes ages."


def test_a_row_that_is_missing_is_named() -> None:
    with pytest.raises(LookupError, match="the figures of 'x' have no row"):
        claims.row(FOUND["x"], world="u")


@pytest.mark.parametrize(
    ("value", "text"),
    [(501.2, "500"), (4242.0, "4,200"), (9.66, "9.7"), (51.1, "51"), (0.123, "0.12"), (1000.0, "1,000")],
)
def test_numbers_have_two_digits(value: float, text: str) -> None:
    assert claims.two_digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.46e-6, "7.5 µs"), (1.27e-4, "130 µs"), (1.02e-3, "1.0 ms"), (0.553, "550 ms"), (2.04, "2.0 s")],
)
def test_times_have_two_digits_and_a_unit(value: float, text: str) -> None:
    assert claims.short(value) == text
