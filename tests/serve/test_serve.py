"""The service: a real server on a port of its own, real clients, and everything that may be sent to it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from browser import DESKTOP, SCREENS, Chromium, Screen

pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import hedgerow as hr
from hedgerow.errors import ConflictError, InvalidInput, JournalError
from hedgerow.journal import audit
from hedgerow.journal.journal import Journal
from hedgerow.serve import app as module
from hedgerow.serve import page as pages
from hedgerow.serve import writer as writers
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


STEP: dict[str, Any] = {"id": "open", "path": [["home", "go"]], "losses": [0.5], "costs": [0.0]}
BAD: list[tuple[str, Any, int]] = [
    *((path, body, 400) for path in ("/ask", "/tell", "/abandon", "/close") for body in (
        b"", b"\xff\xfe", b"[1]", b"null", b"3", b"{", b'{"id": "a"} {"id": "b"}', b"[" * 5000, {}, {"id": None},
        {"id": 3}, {"id": ["a"]}, {"id": "a", "nonsense": 1},
    )),
    *((path, b'{"id": "' + b"x" * 1_100_000 + b'"}', 413) for path in ("/ask", "/tell", "/abandon", "/close")),
    *(("/ask", {"id": name}, 400) for name in ("", "x" * 201, "a\nb", "a\u0000b", "\u202ea")),
    ("/ask", b'{"id": "\\ud800"}', 400),
    ("/ask", {"id": "a", "gruop": "b"}, 400),
    ("/ask", {"id": "a", "group": 3}, 400),
    ("/ask", {"id": "open", "group": "another"}, 400),
    ("/tell", STEP | {"id": "nobody"}, 404),
    *(("/tell", STEP | wrong, 400) for wrong in (
        {"losses": [1.5]}, {"losses": ["a"]}, {"losses": [0.5, 0.5]}, {"losses": []}, {"losses": 0.5},
        {"costs": [-0.1]}, {"costs": [[0.0, 0.0]]}, {"costs": [[[0.0]]]}, {"costs": "none"}, {"costs": [None]},
        {"path": [["nowhere", "go"]]}, {"path": [["home", "fly"]]}, {"path": [["home", "go", "go"]]}, {"path": [[]]},
        {"path": [["home", 0.5]]}, {"path": [10**30]}, {"path": [-1]}, {"path": [7]}, {"path": ["home"]}, {"path": {}},
        {"path": [["home", "go"]] * 2000, "losses": [0.5] * 2000, "costs": [0.0] * 2000},
        {"path": [], "losses": [], "costs": []}, {"ended_in": "nowhere"}, {"ended_in": 1.5}, {"end_unseen": "yes"},
        {"overridden_from": 9}, {"overridden_from": -1}, {"overridden_from": "0"}, {"unknown_costs": 3},
        {"independent": ""}, {"independent": 1}, {"followed_actions": "yes"},
    )),
    ("/tell", b'{"id": "open", "path": [0], "losses": [NaN], "costs": [0]}', 400),
    ("/tell", b'{"id": "open", "path": [0], "losses": [1e999], "costs": [0]}', 400),
    ("/abandon", {"id": "open", "reason": ""}, 400),
    ("/abandon", {"id": "open", "reason": 3}, 400),
    ("/abandon", {"id": "open", "reason": "off", "independent": "no"}, 400),
    ("/abandon", {"id": "nobody", "reason": "why"}, 404),
    ("/close", {"group": "none"}, 400),
    ("/close", {"group": 3}, 400),
    ("/nothing", {}, 404),
    *((path, {}, 405) for path in ("/status", "/health", "/metrics", "/openapi.json", "/", "/decisions/open")),
    *((path, None, 405) for path in ("/ask", "/tell", "/abandon", "/close")),
    ("/decisions/nobody", None, 404),
    ("/decisions/" + "x" * 201, None, 400),
    ("/decisions/a%00b", None, 400),
    ("/decisions/%ff%fe", None, 404),
    ("/decisions/", None, 400),
]  # fmt: skip


def test_bad_requests_are_answered_in_words_and_change_nothing(database: str) -> None:
    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        client.ask("open")
        before = client.status()["hash"]
        for path, body, code in BAD:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            try:
                fetch(address + path, data)
                pytest.fail(f"{path} took {str(body)[:100]}")
            except HTTPError as error:
                caught = error
            except OSError:  # it need not read all of what is too long before it closes the connection
                assert code == 413
                continue
            assert caught.code == code, (path, str(body)[:100])
            text = caught.read().decode()
            assert code in (404, 405) or "error" in text
            caught.close()
        assert client.status()["hash"] == before
        assert play(client, "next") == "recorded"


def connected(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), SECONDS)


HEAD = b"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"


def test_slow_and_half_closed_clients_block_nobody(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    with serving(make_journal(database)) as address, ExitStack() as stack:
        slow, half, silent, garbled, gone = (stack.enter_context(connected(address)) for _ in range(5))
        slow.sendall(HEAD + b'{"id": ')
        half.sendall(HEAD)
        half.shutdown(socket.SHUT_WR)
        garbled.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        gone.sendall(HEAD + b'{"id": "x"')
        gone.close()
        silent.sendall(b"POST /ask HT")  # and nothing more
        assert play(Client(address, timeout=SECONDS), "meanwhile") == "recorded"
        assert b"408" in slow.recv(1000)
        assert b"400" in garbled.recv(1000)
        with suppress(ConnectionResetError):
            assert silent.recv(1000) == b""
        assert Client(address, timeout=SECONDS).status()["asked"] == 1


def test_the_service_stops_while_clients_hold_connections(database: str) -> None:
    with ExitStack() as stack:
        with serving(make_journal(database)) as address:
            idle, asking = stack.enter_context(connected(address)), stack.enter_context(connected(address))
            asking.sendall(HEAD + b'{"id": ')
            assert play(Client(address, timeout=SECONDS), "meanwhile") == "recorded"
        idle.close()
    with Journal.open(database, "site") as journal:
        assert journal.status()["told"] == 1


def test_more_connections_and_calls_than_allowed_are_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 4)
    with serving(make_journal(database)) as address, ExitStack() as stack:
        client = Client(address, timeout=SECONDS)
        client.ask("before")
        for _ in range(4):
            stack.enter_context(connected(address)).sendall(HEAD)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                client.status()
            except JournalError:
                break
        else:
            pytest.fail("nothing was refused")
        stack.close()
        while time.monotonic() < until:
            with suppress(JournalError):
                client.status()
                break
        assert client.ask("after")["status"] == "open"


def test_calls_that_wait_are_bounded_and_nobody_waits_for_ever(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "MOST_WAITING", 5)
    writer, blocked, begun = writers.Writer(make_journal(database)), threading.Event(), threading.Event()

    def block(_: Journal) -> str:
        begun.set()
        assert blocked.wait(SECONDS)
        return "done"

    first = writer.submit(block)
    assert begun.wait(SECONDS)
    waiting = [writer.submit(lambda journal, j=j: journal.ask(f"day {j}").id) for j in range(5)]
    with pytest.raises(JournalError, match="5 calls wait already"):
        writer.submit(lambda journal: journal.last_event)
    assert waiting[2].cancel()  # whoever asked has gone: it is not carried out

    def leave(_: Journal) -> None:
        raise SystemExit

    blocked.set()
    assert first.result(SECONDS) == "done"
    assert [future.result(SECONDS) for future in waiting if not future.cancelled()] == [
        "day 0",
        "day 1",
        "day 3",
        "day 4",
    ]
    with pytest.raises(SystemExit):  # answered as well, and the thread goes on
        writer.submit(leave).result(SECONDS)
    assert writer.submit(lambda journal: journal.status()["asked"]).result(SECONDS) == 4
    writer.stop()
    writer.stop()
    with pytest.raises(JournalError, match="stopped"):
        writer.submit(lambda journal: journal.last_event)


def test_a_database_that_does_not_answer_means_baseline(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    hanging, ask = threading.Event(), Journal.ask

    def slow(journal: Journal, key: str, **how: Any) -> Any:
        assert hanging.wait(SECONDS)
        return ask(journal, key, **how)

    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        monkeypatch.setattr(Journal, "ask", slow)
        with pytest.raises(JournalError, match="no answer within"):
            client.ask("day")
        hanging.set()
        monkeypatch.setattr(module, "PATIENCE", SECONDS)
        assert client.ask("day")["status"] == "open"


def test_a_token_is_asked_for(database: str) -> None:
    with serving(make_journal(database), token="secret") as address:
        for client in (Client(address, timeout=SECONDS), Client(address, token="other", timeout=SECONDS)):
            with pytest.raises(InvalidInput, match="token"):
                client.status()
        for header in ("secret", "Basic secret", "Bearer", "bearer secret", "Bearer s\u00e9cret"):
            for path in ("/", "/status", "/metrics", "/openapi.json", "/decisions/x", "/ask", "/nothing"):
                with pytest.raises(HTTPError, match="401") as caught:
                    fetch(address + path, b'{"id": "x"}' if path == "/ask" else None, Authorization=header)
                caught.value.close()
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
        assert "1 whole outcome of 1 decision" in page
        assert "delay" in page
    assert "1 whole outcome" in stored_page(database, "site")


def test_the_curves_have_the_means_of_neighbouring_blocks() -> None:
    costs = [{"told": float(j >= 100), "baseline": 3.0} for j in range(199)]
    history = [{"told": 2, "baseline": 0.5, "costs": each} for each in costs]
    blocks = pages._joined(history)
    assert len(blocks) == 50
    assert [blocks[j][None] for j in (0, 49)] == [0.5, 0.5]
    assert [blocks[j]["told"] for j in (0, 24, 25, 49)] == [0.0, 0.0, 0.5, 0.5]
    assert pages._line(blocks, "baseline", 1.0)["points"].split()[0] == "0.0,0.0"  # at the edge: 1.5 of its limit
    assert pages._line(blocks, "told", 0.5)["points"].split()[-1] == "640.0,24.0"
    assert pages._line(blocks, "told", 0.0)["points"].split()[0] == "0.0,120.0"
    assert pages._line([], None, 1.0)["points"] == ""


def test_names_are_shown_as_text(database: str) -> None:
    with serving(make_journal(database)) as address:
        play(Client(address, timeout=SECONDS), "<script>alert(1)</script>")
        page = fetch(f"{address}/").decode()
    assert "<script>alert" not in page
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


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_live_page_in_a_browser(database: str, chromium: Chromium, screen: Screen) -> None:
    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        for j in range(3):
            play(client, f"charger-{j}/<b>" + "x" * 100)
        client.ask("open one")
        assert chromium.audit(address + "/", screen) == []


def test_the_live_page_refreshes_itself_and_says_if_it_cannot(
    database: str, chromium: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_page = pages.live_page
    monkeypatch.setattr(module, "live_page", lambda *what: live_page(*what, refresh=1))
    with serving(make_journal(database)) as address:
        client = Client(address, timeout=SECONDS)
        play(client, "first")

        def look(page: Any) -> bool:
            assert "second" not in page.inner_text("#live")
            play(client, "second")
            page.wait_for_function("document.getElementById('live').innerText.includes('second')")
            assert "2 whole outcomes of 2 decisions" in page.inner_text(".verdict")
            page.route("**/*", lambda route: route.abort())
            page.wait_for_function("document.getElementById('said').innerText.includes('not answered since')")
            page.unroute("**/*")
            page.wait_for_function("document.getElementById('said').innerText === ''")
            return True

        assert chromium.look_at(address + "/", DESKTOP, look)
