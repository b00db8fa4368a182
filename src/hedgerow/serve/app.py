"""What the service answers: JSON over HTTP.

    POST /ask       {"id": "charger-17/2026-11-18"}                      a decision; again: the same one
    POST /tell      {"id": ..., "path": ..., "losses": ..., "costs": ...}  {"answer": "recorded"}
    POST /abandon   {"id": ..., "reason": ...}
    POST /close     {"group": ...}
    GET  /decisions/{id}   /status   /health   /metrics   /openapi.json   /

400 says what is wrong with a request, 401 that the token is, 404 that no such decision was asked for, 409 that another
outcome was told, 503 that nothing could be recorded: then the client plays the baseline.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import msgspec

from hedgerow.display.screen import say
from hedgerow.errors import HedgerowError, JournalError
from hedgerow.journal.journal import Journal, UnknownDecisionError
from hedgerow.serve.page import live_page, prometheus
from hedgerow.serve.writer import Writer

try:
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError as error:  # pragma: no cover - the message is all there is
    raise ModuleNotFoundError("the service needs Starlette and uvicorn: pip install 'hedgerow[serve]'") from error

MOST_BYTES = 1_000_000
"""Of the body of a request"""
SECONDS = 10.0
"""In which the body of a request has to arrive"""
PATIENCE = 30.0
"""Seconds in which a call has to be carried out; whoever asked has played the baseline by then"""
MOST_CONNECTIONS = 1000
"""At a time; requests on further ones are answered with 503"""
EXPIRE_EVERY = 1.0
"""Seconds between two looks for decisions whose deadline has passed"""


class Ask(msgspec.Struct, forbid_unknown_fields=True):
    """A decision is asked for."""

    id: str
    group: str | None = None

    def act(self, journal: Journal) -> dict[str, Any]:
        return journal.ask(self.id, group=self.group).to_dict()


class Tell(msgspec.Struct, forbid_unknown_fields=True):
    """What happened; as `hedgerow.Episode` takes it."""

    id: str
    path: list[int | list[int | str]]
    losses: list[float]
    costs: list[float | list[float]] | None = None
    ended_in: int | str | None = None
    end_unseen: bool = False
    overridden_from: int | None = None
    unknown_costs: bool | list[bool | list[bool]] | None = None
    independent: str | None = None
    followed_actions: bool = False
    """Whether the actions that the decision named were followed"""

    def act(self, journal: Journal) -> dict[str, Any]:
        names = "losses", "costs", "ended_in", "end_unseen", "overridden_from", "unknown_costs", "independent"
        how = {name: getattr(self, name) for name in names}
        plan = journal.decision(self.id).plan if self.followed_actions else None
        if plan is not None:
            how["actions"] = plan.actions
        path = [step if isinstance(step, int) else tuple(step) for step in self.path]
        return {"id": self.id, "answer": journal.try_tell(self.id, path, **how)}


class Abandon(msgspec.Struct, forbid_unknown_fields=True):
    """A decision is given up."""

    id: str
    reason: str
    independent: bool = False

    def act(self, journal: Journal) -> dict[str, Any]:
        return {"id": self.id, "answer": journal.abandon(self.id, self.reason, independent=self.independent)}


class Close(msgspec.Struct, forbid_unknown_fields=True):
    """A group will have no further decisions."""

    group: str

    def act(self, journal: Journal) -> dict[str, Any]:
        journal.close_group(self.group)
        return {"group": self.group, "answer": "recorded"}


REQUESTS: dict[str, type[Ask | Tell | Abandon | Close]] = {
    "/ask": Ask, "/tell": Tell, "/abandon": Abandon, "/close": Close
}  # fmt: skip


def make_app(journal: Journal, *, token: str | None = None, group_commit: bool = True) -> Starlette:
    """The service of a journal; it closes the journal when it stops.

    Args:
        journal: The journal, open for writing.
        token: Clients send "Authorization: Bearer TOKEN"; None asks for none.
        group_commit: Whether calls that come together share a commit.
    """
    writer = Writer(journal, group=group_commit)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        expiring = asyncio.create_task(_expire(writer))
        yield
        expiring.cancel()
        await asyncio.to_thread(writer.stop)

    routes = [Route(path, _posting(writer, kind), methods=["POST"]) for path, kind in REQUESTS.items()]
    routes += [
        Route("/", _getting(writer, _page)),
        Route("/decisions/{id:path}", _getting(writer, _decision)),
        Route("/status", _getting(writer, lambda journal, _: journal.status())),
        Route("/metrics", _getting(writer, lambda journal, _: PlainTextResponse(prometheus(journal.status(), writer)))),
        Route("/health", _getting(writer, _health, SECONDS)),
        Route("/openapi.json", lambda _: JSONResponse(openapi())),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.writer = writer
    return app if token is None else _guarded(app, token)


async def _expire(writer: Writer) -> None:
    while True:
        await asyncio.sleep(EXPIRE_EVERY)
        try:
            await asyncio.wrap_future(writer.submit(lambda journal: journal.expire()))
        except Exception:
            continue  # the next call says so to its client


def _guarded(app: Starlette, token: str) -> Any:
    expected = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] != "/health":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, expected):
                refusal = _refusal(401, "the token is missing or wrong: send Authorization: Bearer TOKEN")
                await refusal(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def _posting(writer: Writer, kind: type[Ask | Tell | Abandon | Close]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            body = await asyncio.wait_for(_body(request), SECONDS)
        except TimeoutError:
            return _refusal(408, f"the request did not arrive within {SECONDS:g} s")
        except ClientDisconnect:
            return _refusal(400, "the client went away")
        if body is None:
            return _refusal(413, f"a request has at most {MOST_BYTES} bytes")
        try:
            given = msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refusal(400, f"this is no request for {request.url.path}: {error}")
        return await _answered(writer, given.act, PATIENCE)

    return answer


def _getting(
    writer: Writer, act: Callable[[Journal, Request], Any], patience: float | None = None
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await _answered(writer, lambda journal: act(journal, request), patience or PATIENCE)

    return answer


async def _answered(writer: Writer, call: Callable[[Journal], Any], patience: float) -> Response:
    try:
        found = await asyncio.wait_for(asyncio.wrap_future(writer.submit(call)), patience)
    except TimeoutError:
        return _refusal(503, f"no answer within {patience:g} s. Play the baseline")
    except JournalError as error:
        return _refusal(503, f"{error}. Play the baseline")
    except UnknownDecisionError as error:
        return _refusal(404, str(error))
    except HedgerowError as error:
        return _refusal(400, str(error))
    if isinstance(found, Response):
        return found
    return JSONResponse(found, status_code=409 if found.get("answer") == "conflict" else 200)


async def _body(request: Request) -> bytes | None:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def _refusal(code: int, words: str) -> JSONResponse:
    return JSONResponse({"error": words}, status_code=code)


def _decision(journal: Journal, request: Request) -> dict[str, Any]:
    return journal.decision(request.path_params["id"]).to_dict(events=True)


def _page(journal: Journal, _: Request) -> Response:
    return Response(live_page(journal.status(), journal.latest()), media_type="text/html")


def _health(journal: Journal, _: Request) -> dict[str, Any]:
    return {"status": "ok", "last_event": journal.last_event}


def openapi() -> dict[str, Any]:
    """The description of the service in the words of OpenAPI 3.1."""
    kinds = list(REQUESTS.values())
    references, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    answers = {
        "200": {"description": "done"}, "400": {"description": "refused; the answer says why"},
        "409": {"description": "another outcome was told before"},
        "503": {"description": "nothing was recorded: play the baseline"},
    }  # fmt: skip
    paths: dict[str, Any] = {
        path: {
            "post": {
                "summary": kind.__doc__, "responses": answers,
                "requestBody": {"required": True, "content": {"application/json": {"schema": reference}}},
            }
        }
        for (path, kind), reference in zip(REQUESTS.items(), references, strict=True)
    }  # fmt: skip
    for path in ("/status", "/health", "/metrics", "/decisions/{id}"):
        paths[path] = {"get": {"responses": {"200": {"description": "the answer"}}}}
    identity = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    paths["/decisions/{id}"]["get"]["parameters"] = [identity]
    return {
        "openapi": "3.1.0", "info": {"title": "hedgerow", "version": version("hedgerow")}, "paths": paths,
        "components": {"schemas": components},
    }  # fmt: skip


def run(app: Any, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C; calls that were taken are answered before the end. Says where it listens."""
    server = make_server(app, host, port)
    listening = server.config.bind_socket()
    listening.listen(MOST_CONNECTIONS)  # whoever reads the address may come at once
    say(f"serving on http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
    server.run(sockets=[listening])


def make_server(app: Any, host: str = "127.0.0.1", port: int = 0, *, patience: int = 20) -> Any:
    """A uvicorn server with limits for everything: connections, their silence, and `patience` seconds for its end."""
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Prompt(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """Ends connections that send no request; uvicorn itself would keep them for ever."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(SECONDS, lambda: self.cycle is None and transport.abort())

    return uvicorn.Server(
        uvicorn.Config(
            app, host=host, port=port, http=Prompt, log_level="warning", access_log=False, timeout_keep_alive=30,
            limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=patience, lifespan="on",
        )
    )  # fmt: skip
