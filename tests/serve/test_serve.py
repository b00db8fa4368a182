"""The service: a real server on a port of its own, real clients, and everything that may be sent to it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import hedgerow as hr
from hedgerow.errors import ConflictError, InvalidInput, JournalError
from hedgerow.journal import audit
from hedgerow.journal.journal import Journal
from hedgerow.serve import app as module
from hedgerow.serve.app import make_app, make_server
from hedgerow.serve.client import Client
from hedgerow.serve.page import stored_page

SECONDS = 60.0
"""After which a test gives up: nothing here may wait for ever"""
VIEW = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})


def make_journal(url: str, max_open: int = 64) -> Journal:
    learner = hr.SOPS(VIEW, episodes=50_000, baseline=hr.SafePolicy(hr.Policy(VIEW, [[0.0, 1.0]]), costs=[0.25]))
    learner.max_open = max_open
    return Journal.create(url, "site", learner, deadline="1h", durability="normal")


@contextmanager
def serving(journal: Journal, **options: Any) -> Iterator[str]:
    server = make_server(make_app(journal, **options), patience=5)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + SECONDS
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive(), "the service does not stop"


def fetch(url: str, data: bytes | None = None, **headers: str) -> bytes:
    with urlopen(Request(url, data, headers), timeout=SECONDS) as answer:
        found: bytes = answer.read()
    return found


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/site.db"


def play(client: Client, name: str) -> str:
    decision = client.ask(name)
    action = decision["actions"]["home"]
    return client.tell(name, [["home", action]], [0.5], [1.0 if action == "wait" else 0.0])


def test_decisions_are_asked_for_and_told(database: str) -> None:
    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        first = client.ask("a/b c")
        assert client.ask("a/b c") == first
        assert play(client, "a/b c") == "recorded"
        assert play(client, "a/b c") == "repeated"
        action = first["actions"]["home"]
        with pytest.raises(ConflictError):
            client.tell("a/b c", [["home", action]], [0.25], [0.0])
        found = client.decision("a/b c")
        assert (found["status"], [event["kind"] for event in found["events"]]) == ("told", ["ask", "tell", "conflict"])
        client.ask("lost")
        assert client.abandon("lost", "charger off") == "recorded"
        assert client.ask("followed")["status"] == "open"
        path = [["home", client.ask("followed")["actions"]["home"]]]
        assert client.tell("followed", path, [0.5], None, unknown_costs=True, followed_actions=True) == "recorded"
        status = client.status()
        assert (status["asked"], status["told"], status["learnt"]) == (3, 1, 3)
    assert audit.verify(database, "site").problem == ""


def test_clients_at_the_same_time_lose_nothing_and_share_commits(database: str) -> None:
    with serving(make_journal(database)) as address, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda j: play(Client(address, timeout=SECONDS), f"day {j}"), range(120)))
        numbers = fetch(f"{address}/metrics").decode()
    assert answers == ["recorded"] * 120
    commits = next(float(line.split()[-1]) for line in numbers.splitlines() if line.startswith("hedgerow_commits"))
    assert commits < 300  # 240 calls, those of the metrics, and the looks for deadlines
    verdict = audit.verify(database, "site")
    assert (verdict.problem, verdict.events) == ("", 240)


BAD: list[tuple[str, Any, int]] = [
    ("/ask", b"", 400),
    ("/ask", b"\xff\xfe", 400),
    ("/ask", b"[1]", 400),
    ("/ask", {}, 400),
    ("/ask", {"id": 3}, 400),
    ("/ask", {"id": ""}, 400),
    ("/ask", {"id": "x" * 201}, 400),
    ("/ask", {"id": "a\nb"}, 400),
    ("/ask", {"id": "a", "gruop": "b"}, 400),
    ("/ask", b'{"id": "' + b"x" * 1_100_000 + b'"}', 413),
    ("/tell", {"id": "nobody", "path": [["home", "go"]], "losses": [0.5], "costs": [0.0]}, 404),
    ("/tell", {"id": "open", "path": [["home", "go"]], "losses": [1.5], "costs": [0.0]}, 400),
    ("/tell", {"id": "open", "path": [["home", "go"]], "losses": ["a"], "costs": [0.0]}, 400),
    ("/tell", {"id": "open", "path": [["nowhere", "go"]], "losses": [0.5], "costs": [0.0]}, 400),
    ("/tell", {"id": "open", "path": [["home", "go", "go"]], "losses": [0.5], "costs": [0.0]}, 400),
    ("/tell", {"id": "open", "path": [], "losses": [], "costs": []}, 400),
    ("/tell", {"id": "open", "path": [10**30], "losses": [0.5], "costs": [0.0]}, 400),
    ("/tell", b'{"id": "open", "path": [0], "losses": [NaN], "costs": [0]}', 400),
    ("/tell", b'{"id": "open", "path": ' + b"[" * 5000, 400),
    ("/abandon", {"id": "open", "reason": ""}, 400),
    ("/abandon", {"id": "nobody", "reason": "why"}, 404),
    ("/close", {"group": "none"}, 400),
    ("/nothing", {}, 404),
    ("/status", {}, 405),
]


def test_bad_requests_are_answered_in_words_and_change_nothing(database: str) -> None:
    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        client.ask("open")
        before = client.status()["hash"]
        for path, body, code in BAD:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            with pytest.raises(HTTPError) as caught:
                fetch(address + path, data)
            assert caught.value.code == code, (path, body)
            text = caught.value.read().decode()
            assert code in (404, 405) or "error" in text
            caught.value.close()
        assert client.status()["hash"] == before
        assert play(client, "next") == "recorded"


def test_slow_and_half_closed_clients_block_nobody(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    with serving(make_journal(database)) as address:
        port = int(address.rpartition(":")[2])
        head = b"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        with (
            socket.create_connection(("127.0.0.1", port), SECONDS) as slow,
            socket.create_connection(("127.0.0.1", port), SECONDS) as half,
        ):
            slow.sendall(head + b'{"id": ')
            half.sendall(head)
            half.shutdown(socket.SHUT_WR)
            assert play(Client(address, timeout=SECONDS), "meanwhile") == "recorded"
            assert b"408" in slow.recv(1000)
        assert Client(address, timeout=SECONDS).status()["asked"] == 1


def test_a_token_is_asked_for(database: str) -> None:
    with serving(make_journal(database), token="secret") as address:
        for client in (Client(address, timeout=SECONDS), Client(address, token="other", timeout=SECONDS)):
            with pytest.raises(InvalidInput, match="token"):
                client.status()
        assert play(Client(address, token="secret", timeout=SECONDS), "day") == "recorded"
        assert json.loads(fetch(f"{address}/health"))["status"] == "ok"


def test_a_database_that_fails_means_baseline(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    from hedgerow.journal.storage import Store

    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        play(client, "before")
        append = Store.append

        def full(store: Any, event: Any) -> None:
            raise OperationalError("INSERT", {}, Exception("disk full"))

        monkeypatch.setattr(Store, "append", full)
        with pytest.raises(JournalError, match="Play the baseline"):
            client.ask("during")
        monkeypatch.setattr(Store, "append", append)
        assert play(client, "after") == "recorded"
    assert audit.verify(database, "site").problem == ""


def test_no_service_means_baseline() -> None:
    with pytest.raises(JournalError, match="Play the baseline"):
        Client("http://127.0.0.1:9", timeout=1.0).ask("day")


def test_the_description_and_the_numbers(database: str) -> None:
    with serving(make_journal(database)) as address:
        play(Client(address, timeout=SECONDS), "day")
        described = json.loads(fetch(f"{address}/openapi.json"))
        assert set(described["paths"]) >= {"/ask", "/tell", "/abandon", "/close", "/status", "/decisions/{id}"}
        assert "Tell" in described["components"]["schemas"]
        numbers = fetch(f"{address}/metrics").decode()
        assert 'hedgerow_events_total{journal="site",kind="tell"} 1' in numbers
        assert 'hedgerow_promise_holds{journal="site",promise="safety"} 1' in numbers
        page = fetch(f"{address}/").decode()
        assert "1 whole outcomes of 1 decisions" in page
        assert "delay" in page
    assert "1 whole outcomes" in stored_page(database, "site")


def test_names_are_shown_as_text(database: str) -> None:
    with serving(make_journal(database)) as address:
        play(Client(address, timeout=SECONDS), "<script>alert(1)</script>")
        page = fetch(f"{address}/").decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_it_learns_what_the_same_learner_learns_alone(database: str) -> None:
    journal = make_journal(database)
    alone = journal.learner.__copy__()
    with serving(journal) as address:
        for j in range(20):
            play(Client(address, timeout=SECONDS), f"day {j}")
    for _ in range(20):
        plan = alone.plan()
        go = int(plan.actions.numbers[0])
        alone.observe(hr.Episode(VIEW, [go], [0.5], [1.0 - go]), plan)
    with Journal.open(database, "site") as again:
        state, expected = again.learner.state(), alone.state()
    assert all(np.array_equal(state[key], expected[key]) for key in expected)
