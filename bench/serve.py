"""`python -m bench serve` and `python -m bench replay`: what a journal costs, as a service and when it is replayed.

`serve` starts `hedgerow serve` in a process of its own for every database, durability and way of committing. Clients
are threads of this process on the same machine; each of them asks for a decision and tells its outcome, one after
another, by `hedgerow.serve.client.Client`. Counted are pairs of ask and tell. Every measurement ends after a fixed
number of decisions or after some seconds, whichever comes first. Rates and latencies are by the clock on the wall: a
client waits. The processor time of the service stands beside them.

`replay` writes a journal of so many events with SQLite, and replays it from its first snapshot as an auditor does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Self
from urllib.request import urlopen

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.databases import MissingDatabaseError, temporary_postgresql
from bench.timing import duration
from hedgerow.display.screen import say
from hedgerow.display.table import Table
from hedgerow.journal import audit
from hedgerow.journal.journal import Journal
from hedgerow.learners.api import SafePolicy
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.model.policy import Policy
from hedgerow.model.view import View
from hedgerow.serve.client import Client

STATES = ("low", "high")
VIEW = View.of([["arrival"], list(STATES)], ["charge", "wait"], thresholds={"missed": 0.2}, end="departure")
PATIENCE = 120.0
"""Seconds after which a service counts as one that hangs"""
ADDRESS = " on http://"


def make_learner(episodes: int) -> SOPS:
    """A learner of three states, with as many open decisions as there are ever clients."""
    learner = SOPS(VIEW, episodes, 0.01, baseline=SafePolicy(Policy.of(VIEW, "charge"), np.array([0.02])))
    learner.max_open = 200
    return learner


def outcome(actions: Any, number: int) -> tuple[list[tuple[str, str]], list[float], list[float]]:
    """What happens when a decision is followed; a function of its number."""
    state = STATES[number % 2]
    path = [("arrival", actions["arrival"]), (state, actions[state])]
    return path, [0.5, 0.25], [0.0, float(path[1][1] == "wait" and number % 7 == 0)]


@dataclass(frozen=True)
class LoadRow:
    """One measurement; times are seconds from the call of ask to the answer of tell."""

    database: str
    durability: str
    group_commit: bool
    clients: int
    decisions: int
    per_second: float
    p50: float
    p99: float
    processor: float
    """Processor time of the service for a decision; a busy machine stretches it less than the others"""
    failed: int


@dataclass(frozen=True)
class Serve(Benchmark[list[LoadRow]]):
    """Decisions per second and their latency, by the number of clients, database and durability."""

    name, json_file = "serve", "serve.json"

    decisions: int = option(1000, "decisions of a measurement, at most")
    seconds: int = option(8, "seconds of a measurement, at most")
    clients: tuple[int, ...] = (1, 8, 32)
    databases: tuple[tuple[str, str], ...] = (("SQLite", "full"), ("SQLite", "normal"), ("PostgreSQL", "full"))
    commits: tuple[bool, ...] = (True, False)

    @classmethod
    def quick(cls) -> Self:
        return cls(decisions=40, seconds=5, clients=(1, 8), databases=(("SQLite", "full"),))

    def run(self) -> list[LoadRow]:
        """Measure everything; PostgreSQL is left out with a word if it is not installed."""
        rows: list[LoadRow] = []
        total = len(self.databases) * len(self.commits) * len(self.clients)
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="bench-serve-"))
            advance = stack.enter_context(terminal.progress("bench serve", total))
            for number, (database, durability) in enumerate(self.databases):
                url = f"sqlite:///{folder}/{number}.db"
                if database == "PostgreSQL":
                    try:
                        url = stack.enter_context(temporary_postgresql(fsync=True))
                    except MissingDatabaseError as error:
                        say(f"bench serve: without PostgreSQL: {error}", error=True)
                        continue
                for group in self.commits:
                    with served(url, f"site-{group}", durability, group) as address:
                        self._measure(address, 1, 20, 10.0)  # connections and pages of memory
                        for clients in self.clients:
                            found = self._measure(address, clients, self.decisions, self.seconds)
                            rows.append(LoadRow(database, durability, group, clients, *found))
                            advance(f"{database}, {durability}, {clients} clients")
        return rows

    def _measure(
        self, address: str, clients: int, decisions: int, seconds: float
    ) -> tuple[int, float, float, float, float, int]:
        """What a row holds, from the number of decisions on."""
        before = processor_seconds(address)
        numbers, begun = iter(range(decisions)), time.perf_counter()

        def play(which: int) -> tuple[list[float], int]:
            client, times, failed = Client(address, timeout=PATIENCE), [], 0
            for number in numbers:
                start = time.perf_counter()
                if start - begun > seconds:
                    break
                key = f"{clients}/{which}/{number}/{start}"
                actions = client.ask(key)["actions"]
                failed += client.tell(key, *outcome(actions, number)) != "recorded"
                times.append(time.perf_counter() - start)
            return times, failed

        with ThreadPoolExecutor(clients) as pool:
            found = list(pool.map(play, range(clients)))
        took = time.perf_counter() - begun
        times = np.array([each for own, _ in found for each in own])
        p50, p99 = np.quantile(times, (0.5, 0.99))
        processor = (processor_seconds(address) - before) / len(times)
        return len(times), len(times) / took, float(p50), float(p99), processor, sum(failed for _, failed in found)

    def shown(self, found: list[LoadRow]) -> Iterator[Table | str]:
        yield load_table(found)

    def is_right(self, found: list[LoadRow]) -> bool:
        """Whether every outcome was recorded."""
        return not any(row.failed for row in found)


def load_table(rows: list[LoadRow]) -> Table:
    """The rows for people."""
    heads = ["database", "durability", "commits", "clients"]
    heads += ["decisions/s (wall)", "p50 (wall)", "p99 (wall)", "processor"]
    table = Table("ask and tell", heads, 3)
    for row in rows:
        commits = "shared" if row.group_commit else "one a call"
        table.add_row(
            row.database, row.durability, commits, str(row.clients), f"{row.per_second:,.0f}", duration(row.p50),
            duration(row.p99), duration(row.processor),
        )  # fmt: skip
    return table


def processor_seconds(address: str) -> float:
    """The processor time that a service has used."""
    with urlopen(f"{address}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("hedgerow_cpu_seconds_total"))


@contextmanager
def served(url: str, name: str, durability: str, group: bool) -> Iterator[str]:
    """The address of a service of a new journal, in a process of its own."""
    Journal.create(url, name, make_learner(1_000_000), deadline="1h").close()
    command = [sys.executable, "-m", "hedgerow", "serve", url, name, "--port", "0", "--durability", durability]
    command += ["--group-commit" if group else "--no-group-commit"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watchdog = Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            watchdog.cancel()
            if ADDRESS not in line:
                raise RuntimeError(f"the service did not begin: {line!r}")
            yield "http://" + line.strip().rpartition(ADDRESS)[2]
        finally:
            watchdog.cancel()
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass(frozen=True)
class ReplayRow:
    """A journal of so many events."""

    events: int
    snapshots: int
    bytes: int
    write_seconds: float
    """Processor time of asking and telling, many calls to a commit"""
    replay_seconds: float
    """Processor time of `audit.verify`"""
    problem: str


@dataclass(frozen=True)
class Replay(Benchmark[list[ReplayRow]]):
    """Time and bytes of a journal that is replayed from its beginning."""

    name, json_file = "replay", "replay.json"

    events: int = option(1_000_000, "events of the journal")
    per_commit: int = 1000

    @classmethod
    def quick(cls) -> Self:
        return cls(events=2_000)

    def run(self) -> list[ReplayRow]:
        """Write and replay."""
        pairs, numbers = self.events // 2, count()
        with TemporaryDirectory(prefix="bench-replay-") as folder:
            url = f"sqlite:///{folder}/site.db"
            steps = max(1, pairs // self.per_commit)
            with terminal.progress("bench replay", steps, forecast=True) as advance:
                begun = time.process_time()
                with Journal.create(url, "site", make_learner(pairs + 1), durability="normal") as journal:
                    for _ in range(steps):
                        with journal.batch():
                            for number, _ in zip(numbers, range(min(self.per_commit, pairs)), strict=False):
                                decision = journal.ask(f"charger-{number % 200}/day-{number // 200}")
                                journal.tell(decision.id, *outcome(decision.actions, number))
                        advance("written")
                written = time.process_time() - begun
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            begun = time.process_time()
            verdict = audit.verify(url, "site")
            took = time.process_time() - begun
        return [ReplayRow(verdict.events, verdict.snapshots, size, written, took, verdict.problem)]

    def shown(self, found: list[ReplayRow]) -> Iterator[Table | str]:
        heads = ["events", "snapshots", "size", "bytes/event", "written in", "replayed in", "events/s"]
        table = Table("replay, in processor time", heads, 0)
        for row in found:
            table.add_row(
                f"{row.events:,}", str(row.snapshots), f"{row.bytes / 1e6:.1f} MB", f"{row.bytes / row.events:.0f}",
                duration(row.write_seconds), duration(row.replay_seconds), f"{row.events / row.replay_seconds:,.0f}",
            )  # fmt: skip
        yield table
        yield from (f"not whole: {row.problem}" for row in found if row.problem)

    def is_right(self, found: list[ReplayRow]) -> bool:
        """Whether replay gave the same bits."""
        return not any(row.problem for row in found)
