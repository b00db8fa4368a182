"""What the tests of the page read from it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any


class Reader(HTMLParser):
    """Collects tags with their attributes, scripts by id, the cells of tables (by column too), and titles."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.named: list[dict[str, str]] = []
        self.titles = {"title": "", "h1": ""}
        self._script = self._title = self._column = ""
        self._in_cell = self._in_label = False
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs).get("id") or f"script {len(self.scripts)}"
        elif tag in self.titles:
            self._title = tag
        elif tag == "tr":
            self.rows.append([])
            self.named.append({})
        elif tag == "td" or (tag == "th" and dict(attrs).get("scope") == "row"):
            self._in_cell, self._column = True, ""
            self.rows[-1].append("")
        elif tag == "i" and self._in_cell:
            self._in_label = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = ""
        elif tag in self.titles:
            self._title = ""
        elif tag in ("td", "th") and self._in_cell:
            self._in_cell = False
            self.named[-1][self._column] = self.rows[-1][-1]
        elif tag == "i":
            self._in_label = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        elif self._title:
            self.titles[self._title] += data
        elif self._in_label:
            self._column += data
        elif self._in_cell:
            self.rows[-1][-1] += data
        self.words.append(data)

    def plot(self, name: str) -> Any:
        return json.loads(self.scripts[name])
