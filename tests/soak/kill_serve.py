"""kill -9 of a service under load, at random moments: nothing acknowledged is lost, and learning goes on.

    python -m tests.soak.kill_serve --count 1000
    python -m tests.soak.kill_serve --count 100 --database postgresql

Several clients ask for decisions and tell their outcomes, and repeat every call until it is answered; some outcomes are
never told. The service is killed again and again, some times while it starts, and started anew. In the end every answer
that a client was given must be what the journal holds, replay must give the same bits, and of the outcomes that were
told more than 99 % must be learnt.

A kill is cheap because processes are forked from one that has imported everything. It has no threads, and the socket
that listens is its own: a client that comes while there is no service waits for the next one.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).resolve().parents[2]))

from rounds import Broken, main, rounds

import hedgerow as hr
from bench.databases import temporary_postgresql
from hedgerow.errors import ConflictError, JournalError
from hedgerow.journal import audit
from hedgerow.journal import journal as module
from hedgerow.journal.journal import Journal
from hedgerow.serve.app import make_app, make_server
from hedgerow.serve.client import Client
from hedgerow.serve.writer import rehearse

NAME, CLIENTS, PATIENCE = "site", 4, 120.0
LOST = 0.01
"""Share of the decisions whose outcome is never told"""
DEADLINE = 5.0
SNAPSHOT_EVERY = 100
"""Events, so that kills meet snapshots as well"""
STATES = ("road", "rail")
VIEW = hr.View.of([["home"], list(STATES)], ["wait", "go"], thresholds={"delay": 0.8})


def make_learner() -> hr.SOPS:
    safe = hr.SafePolicy(hr.Policy.of(VIEW, "go"), costs=[0.1])
    learner = hr.SOPS(VIEW, episodes=100_000, delta=0.01, baseline=safe, seed=3)
    learner.max_open = 200
    return learner


class Shared:
    """Counters that all processes see: of each client how many calls were answered, and whether to stop."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 * (CLIENTS + 1))

    def __getitem__(self, which: int) -> int:
        return int(struct.unpack_from("q", self._memory, 8 * which)[0])

    def __setitem__(self, which: int, value: int) -> None:
        struct.pack_into("q", self._memory, 8 * which, value)

    @property
    def answered(self) -> int:
        return sum(self[j] for j in range(CLIENTS))


STOP = CLIENTS
"""Where `Shared` keeps whether to stop"""


def forked(work: Callable[[], None]) -> int:
    """The number of a process that does `work`, and ends with this one."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG of Linux
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(number: int, seconds: float) -> int | None:
    """The exit code of a process once it has ended; None if it has not after so many seconds."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(0.002)


def serve(url: str, listening: socket.socket) -> None:
    module.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    journal = Journal.open(url, NAME, durability="normal", wait=PATIENCE)  # as durable as "full" when a process dies
    make_server(make_app(journal)).run(sockets=[listening])


def play(which: int, port: int, notes: Path, shared: Shared, seed: int) -> None:
    """Ask and tell until told to stop, and note every answer."""
    rng, client, number = random.Random(seed), Client(f"http://127.0.0.1:{port}", timeout=1.0), 0

    def repeated(call: Callable[[], Any]) -> Any:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                answer = call()
            except ConflictError as error:
                raise Broken(f"client {which}: {error}") from error
            except JournalError:
                if time.monotonic() > until:
                    raise
                continue
            shared[which] += 1
            return answer

    with notes.open("w") as file:
        while not shared[STOP]:
            key = f"{which}/{number}"
            number += 1
            asked = repeated(lambda key=key: client.ask(key))
            print(json.dumps(["ask", key, asked["episode"], asked["actions"]]), file=file, flush=True)
            if rng.random() < LOST:
                continue
            state = rng.choice(STATES)
            path = [["home", asked["actions"]["home"]], [state, asked["actions"][state]]]
            outcome = path, [rng.random(), rng.random()], [0.0, float(path[1][1] == "wait" and rng.random() < 0.5)]
            answer = repeated(lambda key=key, outcome=outcome: client.tell(key, *outcome))
            print(json.dumps(["tell", key, answer, outcome[1]]), file=file, flush=True)


@contextmanager
def playing(port: int, folder: Path, shared: Shared, rng: random.Random) -> Iterator[list[int]]:
    clients = []
    try:
        for j in range(CLIENTS):
            notes, seed = folder / f"client-{j}", rng.getrandbits(32)
            clients.append(forked(lambda j=j, notes=notes, seed=seed: play(j, port, notes, shared, seed)))
        yield clients
    finally:
        for number in clients:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(number, signal.SIGKILL)
                os.waitpid(number, 0)


def soak(count: int, rng: random.Random, url: str | None = None) -> str:
    with tempfile.TemporaryDirectory(prefix="kill-serve-") as name, socket.socket() as listening:
        folder, shared = Path(name), Shared()
        url = url or f"sqlite:///{name}/site.db"
        learner = make_learner()
        rehearse(learner)  # so that forked processes have all kernels,
        make_server(None).config.load()  # and all modules
        Journal.create(url, NAME, learner, deadline=DEADLINE, durability="normal").close()
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        server = 0
        try:
            with playing(listening.getsockname()[1], folder, shared, rng) as clients:
                for number in rounds(count):
                    server = forked(lambda: serve(url, listening))
                    if rng.random() < 0.9:
                        _wait_for(shared, rng.choice((1, 5, 20)), server)
                    time.sleep(rng.uniform(0.0, 0.05))
                    os.kill(server, signal.SIGKILL)
                    if ended(server, PATIENCE) != -signal.SIGKILL:
                        raise Broken(f"round {number}: the service ended by itself")
                server = forked(lambda: serve(url, listening))
                _wait_for(shared, 1, server)
                shared[STOP] = 1
                for client in clients:
                    if ended(client, PATIENCE) != 0:
                        raise Broken("a client failed, or was not answered in time")
                clients.clear()
            _wait_for_expiry(listening.getsockname()[1])
            os.kill(server, signal.SIGTERM)
            if ended(server, PATIENCE) is None:
                raise Broken("the service does not stop")
            server = 0
        finally:
            if server:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(server, signal.SIGKILL)
                    os.waitpid(server, 0)
        return f"{count} kills, {_judged(url, folder)}"


def _wait_for(shared: Shared, answers: int, server: int) -> None:
    """Wait until so many further calls were answered."""
    wanted, until = shared.answered + answers, time.monotonic() + PATIENCE
    while shared.answered < wanted:
        if ended(server, 0.0) is not None:
            raise Broken("the service ended by itself")
        if time.monotonic() > until:
            raise Broken(f"no progress: {shared.answered} calls were answered")
        time.sleep(0.002)


def _wait_for_expiry(port: int) -> None:
    """Until the decisions whose outcome is never told have expired."""
    client, until = Client(f"http://127.0.0.1:{port}", timeout=PATIENCE), time.monotonic() + PATIENCE
    while client.status()["open"]:
        if time.monotonic() > until:
            raise Broken("decisions stay open past their deadline")
        time.sleep(0.2)


def _judged(url: str, folder: Path) -> str:
    """Hold what clients were answered against what the journal holds."""
    verdict = audit.verify(url, NAME)
    if verdict.problem:
        raise Broken(f"the journal is not whole: {verdict.problem}")
    with audit.reading(url, NAME) as store:
        status = module.status_of(audit.current(store), NAME, 0.0, None)
        asked = {event.decision: event.content for event in store.events(kinds=("ask",))}
        told = {event.decision: event.content for event in store.events(kinds=("tell", "late"))}
        learnt = {event.decision for event in store.events(kinds=("tell",))}
    notes = [json.loads(line) for path in sorted(folder.glob("client-*")) for line in path.open()]
    tells = 0
    for kind, key, answer, content in notes:
        if kind == "ask":
            kept = asked.get(key, {"actions": (), "episode": None})
            drawn = {state: ("wait", "go")[a] for state, a in zip(("home", *STATES), kept["actions"], strict=False)}
            if (kept["episode"], drawn) != (answer, content):
                raise Broken(f"the decision {key} that a client was given is not in the journal")
        else:
            tells += 1
            if key not in told or told[key]["losses"] != content:
                raise Broken(f"the outcome of {key}, which was answered with {answer!r}, is not in the journal")
    if status["open"] or status["waiting"] or status["learnt"] != status["asked"]:
        raise Broken(f"learning stands still: {status['learnt']} of {status['asked']} decisions are learnt")
    if len(learnt) <= 0.99 * tells:
        raise Broken(f"of {tells} outcomes that were told only {len(learnt)} are learnt")
    return (
        f"0 of {len(notes)} answers lost, {len(learnt)} of {tells} outcomes learnt, "
        f"{status['events'].get('expire', 0)} expired, {verdict.events} events and {verdict.snapshots} snapshots "
        "replayed with the same bits"
    )


def soak_postgresql(count: int, rng: random.Random) -> str:
    with temporary_postgresql() as url:
        return soak(count, rng, url)


if __name__ == "__main__":
    if "--database" in sys.argv:
        place = sys.argv.index("--database")
        if sys.argv[place : place + 2] != ["--database", "postgresql"]:
            sys.exit("--database postgresql, or nothing for SQLite")
        del sys.argv[place : place + 2]
        sys.exit(main("kill -9 of a service, PostgreSQL", soak_postgresql, 100))
    sys.exit(main("kill -9 of a service, SQLite", soak, 1000))
