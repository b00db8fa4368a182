"""Processor time per test, of the test's process and of all processes that it has started: a plugin for pytest.

    .venv/bin/python -m pytest -p tools.test_times -n 2                     # ends with a table of folders and tests
    .venv/bin/python -m pytest -p tools.test_times --times out/times.json   # and keeps all numbers

`--durations` of pytest counts seconds on the wall, which a busy machine stretches. This counts the work of processors,
also that of children: of those that have ended once their parent has waited for them, and of living ones as far as
/proc shows them (elsewhere than on Linux they are left out). A shared fixture is paid by the first test that needs it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PROC = Path("/proc")
SHOWN = 40
"""The most expensive tests that the table lists"""


def processor_seconds() -> float:
    """User and system time of this process, of its ended children and of all living descendants."""
    spent = time.process_time() + sum(os.times()[2:4])
    if not PROC.is_dir():
        return spent
    ticks, parents = {}, {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended since the folder was listed
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    living, found = {os.getpid()}, True
    while found:
        found = {child for child, parent in parents.items() if parent in living} - living
        living |= found
    return spent + sum(ticks.get(child, 0) for child in living - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write the processor time of every test to FILE, as JSON")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Each of set-up, call and tear-down pays for what was spent since the report before it."""
    report = yield
    began = time.process_time()
    now = processor_seconds()
    # A child for which nobody has waited takes its time with it when it ends: the sum may shrink.
    report.processor = max(0.0, now - item.config.stash.get(LATEST, now))  # type: ignore[attr-defined]
    item.config.stash[LATEST] = now + time.process_time() - began  # looking at /proc is not the next test's work
    return report


LATEST = pytest.StashKey[float]()
SPENT = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SPENT] = Counter()
    config.pluginmanager.register(_Sums(config), "sums of processor time")


class _Sums:
    """Adds up what the reports say; with several processes the reports of all of them come here."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.spent = config, config.stash[SPENT]

    def pytest_collection_finish(self) -> None:
        self.config.stash[LATEST] = processor_seconds()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.spent[report.nodeid] += getattr(report, "processor", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if name := self.config.getoption("--times"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(json.dumps(dict(self.spent.most_common()), indent=0))
        folders: Counter[str] = Counter()
        for test, seconds in self.spent.items():
            parts = Path(test.partition("::")[0]).parts
            folders["/".join(parts[:2])] += seconds
        terminalreporter.section(f"processor time: {sum(self.spent.values()):.0f} s in {len(self.spent)} tests")
        for title, counted, most in (("folder", folders, 100), ("test", self.spent, SHOWN)):
            terminalreporter.line(f"{title:>8}  seconds")
            for name, seconds in counted.most_common(most):
                terminalreporter.line(f"{seconds:17.2f}  {name}")
