"""A client of `hedgerow serve`, by the standard library alone.

    site = Client("http://127.0.0.1:8000", token="...")
    decision = site.ask("charger-17/2026-11-18")
    site.tell("charger-17/2026-11-18", path, losses, costs)

**If there is no answer in time, play the baseline.** The decision may have been recorded all the same; what was played
is then told as overridden from its first step, or the decision expires, and counts as unknown.
"""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from hedgerow.errors import ConflictError, InvalidInput, JournalError


class Client:
    """Asks a service for decisions, and tells it their outcomes. Repeating a call is harmless.

    Args:
        url: The address of the service.
        token: Its token, if it asks for one.
        timeout: Seconds to wait for an answer; play the baseline if none came.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 5.0) -> None:
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, key: str, *, group: str | None = None) -> dict[str, Any]:
        """A decision; the same name gives the same one."""
        return self._call("/ask", {"id": key, "group": group})

    def tell(self, key: str, path: Any, losses: Any, costs: Any = None, **how: Any) -> str:
        """Tell an outcome: "recorded", "repeated", "resolved" or "late"."""
        return str(self._call("/tell", {"id": key, "path": path, "losses": losses, "costs": costs, **how})["answer"])

    def abandon(self, key: str, reason: str, *, independent: bool = False) -> str:
        """Give a decision up."""
        return str(self._call("/abandon", {"id": key, "reason": reason, "independent": independent})["answer"])

    def close_group(self, group: str) -> None:
        """Say that a group will have no further decisions."""
        self._call("/close", {"group": group})

    def decision(self, key: str) -> dict[str, Any]:
        """A decision that was asked for before, with its events."""
        return self._call(f"/decisions/{quote(key, safe='')}")

    def status(self) -> dict[str, Any]:
        """Where the journal stands."""
        return self._call("/status")

    def _call(self, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, self._headers), timeout=self.timeout) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            kind = ConflictError if error.code == 409 else JournalError if error.code >= 500 else InvalidInput
            with error:  # it holds the answer, which nobody else closes
                raise kind(_words(error)) from None
        except (OSError, HTTPException, ValueError) as error:  # a killed service may have sent half of its answer
            raise JournalError(f"no answer from {self.url}: {error}. Play the baseline") from error


def _words(error: HTTPError) -> str:
    try:
        found = json.load(error)
        return str(found.get("error") or found.get("answer"))
    except ValueError:
        return f"the service answered {error.code}"
