"""The page of a small sweep with hostile names, in a browser: silent, complete, offline, and read by everybody."""

from __future__ import annotations

import asyncio
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_cases import made_learner, made_run, made_spec

from browser import (
    DESKTOP,
    PHONE,
    REQUIRED,
    SCREENS,
    Chromium,
    MissingBrowserError,
    Screen,
    required_or_skipped,
    wider_than_its_screen,
)
from hedgerow.report.page import report
from hedgerow.results import store
from hedgerow.results.groups import heading
from nightly import daily

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=alert(1)>\"'&</script><script>alert(2)</script>"
LONG = "a_name_without_any_place_at_which_a_line_could_be_broken_" * 3
CHARTS = 12
"""Two settings; in each: regret, its growth, violation, two margins, mixing"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two learners in two settings; every name is code, or far too long."""
    folder = tmp_path_factory.mktemp("browser") / "out"
    told = {**heading(EVIL, LONG), "experiment": {}, "source": EVIL, "command": ["hedgerow", "run", LONG]}
    store.create(folder, told)
    cells = {EVIL: {"status": "failed", "error": LONG}}
    policy = {"states": [EVIL, LONG], "actions": [EVIL, "b"], "probabilities": [[0.25, 0.75], [1.0, 0.0]]}
    for world in (EVIL, LONG):
        for name, worst in ((EVIL, -0.1), (LONG, 0.2)):
            for seed in (0, 1):
                spec = made_spec(name, seed, world)
                spec["label"]["adversary"] = EVIL
                run = made_run(seed, worst=worst, learner=made_learner(names=(EVIL, LONG)))
                written = store.write_cell(folder, spec, run, facts={"policy": policy})
                cells[written.stem] = {"status": "done", "seconds": {"loop": 0.5}, "attempts": 1}
    store.update_manifest(folder, {"cells": cells})
    return report(folder).resolve().as_uri()


def incomplete(page: Page) -> list[str]:
    """Unfold everything, wait for the charts, and tell what is missing or too wide then."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    missing = "[...document.querySelectorAll('.plot')].filter((plot) => !plot.querySelector('.scatterlayer .trace'))"
    page.wait_for_function(f"{missing}.length === 0")
    count = page.locator(".plot[role=img][aria-label]").count()
    return [*wider_than_its_screen(page), *([] if count == CHARTS else [f"{count} charts instead of {CHARTS}"])]


@pytest.mark.parametrize("screens", daily((PHONE,), nightly=SCREENS), ids=["phone", "all"])
def test_nothing_is_wrong_with_the_page(chromium: Chromium, url: str, screens: tuple[Screen, ...]) -> None:
    """On a phone the contents are folded up, for the answer comes first there."""

    def look(page: Page, touch: bool) -> list[str]:
        unfolded = page.evaluate("document.querySelector('nav details').open")
        return [*([f"contents: open is {unfolded}"] if unfolded == touch else []), *incomplete(page)]

    for screen in screens:
        assert chromium.audit(url, screen, look=partial(look, touch=screen.touch)) == [], screen.name


@pytest.mark.nightly  # five seconds; `make test` looks at the page on a phone
def test_the_keyboard_reaches_links_and_buttons(chromium: Chromium, url: str) -> None:
    """The first stop skips the contents; links lead to sections; a chart is saved, and its zoom is undone."""
    place = """(id) => {
        const end = document.documentElement.scrollHeight - innerHeight - scrollY < 2;
        return end || Math.abs(document.querySelector(id).getBoundingClientRect().y) < 20;
    }"""

    def press(page: Page, target: Locator) -> None:
        target.focus()
        page.keyboard.press("Enter")

    def walk(page: Page) -> dict[str, Any]:
        page.keyboard.press("Tab")
        first = "document.activeElement.getBoundingClientRect().x >= 0 && document.activeElement.textContent"
        found: dict[str, Any] = {"first stop": page.evaluate(first)}
        page.keyboard.press("Enter")
        found["then"] = page.evaluate("document.activeElement.tagName")
        for link in page.locator("nav a").all():
            press(page, link)
            target = link.get_attribute("href") or ""
            found[target] = page.evaluate(place, target)
        return {**found, **chart(page)}

    def chart(page: Page) -> dict[str, Any]:
        figure = page.locator("figure").first
        figure.scroll_into_view_if_needed()
        save, reset = (figure.get_by_role("button", name=f"{words}: Regret") for words in ("Save as SVG", "Reset axes"))
        save.wait_for(state="attached")
        with page.expect_download() as download:
            press(page, save)
        upper = "document.querySelector('.plot').layout.xaxis.range[1]"
        before = page.evaluate(upper)
        page.evaluate("Plotly.relayout(document.querySelector('.plot'), {'xaxis.range': [0, 1]})")
        zoomed = page.evaluate(upper)
        press(page, reset)
        return {
            download.value.suggested_filename: Path(download.value.path()).read_text(encoding="utf-8")[:4],
            "undone": zoomed == 1 and page.evaluate(upper) == before,
        }

    anchors = (
        "verdict",
        "answer",
        "setting-0",
        "setting-1",
        "policies",
        "guarantees",
        "checks",
        "unfinished",
        "repeat",
        "origin",
    )
    assert chromium.look_at(url, DESKTOP, walk) == {
        "first stop": "Skip to the results",
        "then": "MAIN",
        **{f"#{anchor}": True for anchor in anchors},
        "s0-regret.svg": "<svg",
        "undone": True,
    }


@pytest.mark.nightly
def test_paper_has_all_charts_and_opens_the_ledgers(chromium: Chromium, url: str) -> None:
    """Nobody scrolled, so most charts had not been drawn; afterwards the page is as it was."""

    def print_it(page: Page) -> dict[str, Any]:
        page.wait_for_function("window.Plotly")
        page.evaluate(
            """() => addEventListener("beforeprint", () => {
                const count = (what) => document.querySelectorAll(what).length;
                const drawn = count(".plot:has(.scatterlayer .trace)");
                window.onPaper = { drawn, folded: count(".learner:not([open])") };
            })"""
        )
        before = page.locator(".plot[data-drawn]").count()
        content = page.pdf(format="A4")
        after = page.locator(".learner[open]").count()
        return {"content": content, "before": before, "open after": after, **page.evaluate("window.onPaper")}

    told = chromium.look_at(url, DESKTOP, print_it)
    assert told["content"].startswith(b"%PDF")
    assert told["before"] < CHARTS == told["drawn"]
    assert told["folded"] == told["open after"] == 0


@pytest.mark.nightly  # it tries the audit itself
def test_a_faulty_page_is_found_out(chromium: Chromium, tmp_path: Path) -> None:
    """The audit is not blind: one finding of each kind."""
    faulty = tmp_path / "faulty.html"
    faulty.write_text(
        '<!doctype html><html lang="en"><title>faulty</title><main><h1>faulty</h1>'
        '<p style="color:#bbb;background:#fff">pale</p><div style="width:3000px">wide</div>'
        '<img alt="" src="other.png"></main>'
        "<script>console.warn('careful'); fetch('http://example.org/x').catch(() => {}); nothing.at.all;</script>"
    )
    found = chromium.audit(faulty.as_uri(), look=lambda page: ["looked"])
    requests = ("request: http://example.org/x", f"request: {(tmp_path / 'other.png').as_uri()}")
    for start in ("console warning: careful", "script: ", *requests, "overflow: ", "axe serious: color", "looked"):
        assert [line for line in found if line.startswith(start)], (start, found)
    (tmp_path / "other.png").write_bytes(b"")
    found = chromium.audit(faulty.as_uri(), inside=tmp_path.as_uri() + "/")
    assert not [line for line in found if line.startswith("request: file")]


def test_other_tests_may_run_asyncio_beside_the_browser(chromium: Chromium) -> None:
    async def answer() -> int:
        return 42

    assert asyncio.run(answer()) == 42


def test_without_a_browser_tests_are_skipped_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs a browser: none of chromium, .* is installed"):
        required_or_skipped()
    monkeypatch.setenv(REQUIRED, "required")
    with pytest.raises(
        pytest.fail.Exception, match=r"HEDGEROW_BROWSER=required, but none of chromium, .* is installed"
    ):
        required_or_skipped()
    monkeypatch.setenv(REQUIRED, "yes")
    with pytest.raises(pytest.fail.Exception, match="'yes', but only `required` is known"):
        required_or_skipped()


def test_without_playwright_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    with pytest.raises(MissingBrowserError, match=r"the package playwright.sync_api is not installed"):
        Chromium()
