"""Pages in headless Chromium: what is wrong with a page, on a desktop, in the dark, on a phone.

    def test_a_page(chromium):                                   # a fixture of conftest.py, started once
        assert chromium.audit(path.as_uri(), PHONE) == []

Playwright keeps an asyncio loop running in its thread. It has a thread of its own here, because tests of the same
process run asyncio themselves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

Answer = TypeVar("Answer")

REQUIRED = "HEDGEROW_BROWSER"
"""`required` in this variable makes a missing browser a failure, as in the CI; otherwise its tests are skipped."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OFFENCES = ("serious", "critical")
"""What axe-core finds of less weight is advice."""
PATIENCE = 20_000
"""Milliseconds: far more than anything takes, on a machine that does other things as well"""
ITS_OWN = ("data:", "blob:", "about:")
"""Addresses of what a page holds itself"""


@dataclass(frozen=True)
class Screen:
    """What a page is looked at on."""

    name: str
    width: int
    height: int
    dark: bool = False
    touch: bool = False

    def options(self) -> dict[str, Any]:
        return {
            "viewport": {"width": self.width, "height": self.height},
            "color_scheme": "dark" if self.dark else "light",
            "has_touch": self.touch,
            "is_mobile": self.touch,
            "reduced_motion": "reduce",  # scrolling arrives at once
        }


DESKTOP = Screen("desktop", 1280, 900)
DESKTOP_DARK = Screen("desktop, dark", 1280, 900, dark=True)
PHONE = Screen("phone", 390, 844, touch=True)
SCREENS = (DESKTOP, DESKTOP_DARK, PHONE)


class MissingBrowserError(Exception):
    """There is no Chromium here, or no playwright to drive it."""


def required_or_skipped() -> Chromium:
    """A running browser. Without one the test that asks is skipped, or fails where a browser is required."""
    demand = os.environ.get(REQUIRED, "")
    if demand not in ("", "required"):
        pytest.fail(f"{REQUIRED} is {demand!r}, but only `required` is known")
    try:
        return Chromium()
    except MissingBrowserError as error:
        if demand:
            pytest.fail(f"{REQUIRED}={demand}, but {error}")
        pytest.skip(f"needs a browser: {error}")


class Chromium:
    """A running browser. Close it by `stop`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chromium")
        try:
            self._inside(self._start)
        except BaseException:
            self._thread.shutdown()
            raise

    def stop(self) -> None:
        self._inside(self._stop)
        self._thread.shutdown()

    def audit(
        self,
        url: str,
        screen: Screen = DESKTOP,
        *,
        inside: str | None = None,
        look: Callable[[Page], list[str]] | None = None,
    ) -> list[str]:
        """Open a page, scroll through it and tell everything that is wrong with it, one line each.

        Findings are: anything on the console that is a warning or an error, errors of scripts, requests for anything
        but addresses that begin with `inside` (the page alone, if it is not given), a page that is wider than its
        screen, serious or critical findings of axe-core, and what `look` finds in the page, scrolled to its end.
        """
        return self._inside(lambda: self._audit(url, screen, inside or url, look))

    def look_at(self, url: str, screen: Screen, look: Callable[[Page], Answer]) -> Answer:
        """What `look` answers about a page that was just opened. It runs in the thread of the browser."""
        return self._inside(lambda: self._look_at(url, screen, look))

    # In the thread of the browser -------------------------------------------------------------------------------------

    def _inside(self, call: Callable[[], Answer]) -> Answer:
        return self._thread.submit(call).result()

    def _start(self) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            raise MissingBrowserError(f"none of {', '.join(NAMES)} is installed")
        try:
            from playwright.sync_api import sync_playwright

            axe = resources.files("axe_playwright_python").joinpath("axe.min.js")
        except ImportError as error:
            raise MissingBrowserError(f"the package {error.name} is not installed") from error
        self._axe = axe.read_text(encoding="utf-8")
        self._playwright = sync_playwright().start()
        try:
            as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
            self._browser = self._playwright.chromium.launch(executable_path=program, args=as_root)
        except BaseException:
            self._playwright.stop()
            raise

    def _stop(self) -> None:
        self._browser.close()
        self._playwright.stop()

    def _audit(self, url: str, screen: Screen, inside: str, look: Callable[[Page], list[str]] | None) -> list[str]:
        findings: list[str] = []
        context = self._browser.new_context(**screen.options())
        try:
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            _listen(page, inside, findings)
            page.goto(url, wait_until="load")
            _scroll_through(page)
            findings += wider_than_its_screen(page)
            findings += look(page) if look else []
            page.add_script_tag(content=self._axe)
            findings += _axe_findings(page)
        finally:
            context.close()
        return findings

    def _look_at(self, url: str, screen: Screen, look: Callable[[Page], Answer]) -> Answer:
        context = self._browser.new_context(**screen.options())
        try:
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.goto(url, wait_until="load")
            return look(page)
        finally:
            context.close()


def _listen(page: Page, inside: str, findings: list[str]) -> None:
    """Note what the page says and asks for; refuse what is not its own."""

    def decide(route: Any) -> None:
        wanted = route.request.url
        if wanted.split("#")[0].startswith(inside) or wanted.startswith(ITS_OWN):
            route.continue_()
        else:
            findings.append(f"request: {wanted}")
            route.abort()

    def hear(message: Any) -> None:
        if message.type in ("warning", "error"):
            findings.append(f"console {message.type}: {message.text}")

    page.on("console", hear)
    page.on("pageerror", lambda error: findings.append(f"script: {error}"))
    page.on("websocket", lambda socket: findings.append(f"websocket: {socket.url}"))
    page.route("**/*", decide)


def _scroll_through(page: Page) -> None:
    """To the end in steps of a screen; what appears on the way gets a moment each."""
    page.evaluate(
        """async () => {
            const pause = (time) => new Promise((done) => setTimeout(done, time));
            const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
            const moment = () => Promise.race([frame(), pause(1000)]);  // a hidden page draws no frames, for ever
            for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
                scrollTo(0, y);
                await moment();
            }
        }"""
    )


def wider_than_its_screen(page: Page) -> list[str]:
    wide, screen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    return [f"overflow: the page is {wide} px wide on a screen of {screen}"] if wide > screen else []


def _axe_findings(page: Page) -> list[str]:
    # preload would fetch the style sheets again, which a page from a file may not
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [
        f"axe {rule['impact']}: {rule['id']} ({rule['help']}) at {node['target'][0]}: {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in OFFENCES
        for node in rule["nodes"]
    ]
