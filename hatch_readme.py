"""Metadata hook: README.md as a package index shows it, where a relative link or picture leads nowhere.

With an address under `[project.urls] Source` in pyproject.toml, relative links and pictures become absolute ones, of
the tag of this version. Without an address a link becomes its text, and a picture is left out. Code stays as it is.

>>> fit("See [the map](docs/map.md#b).", "https://host.example/we/it", "v1.0")
'See [the map](https://host.example/we/it/blob/v1.0/docs/map.md#b).'
>>> fit("See [the map](docs/map.md#b).", "", "v1.0")
'See the map.'
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_CODE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.MULTILINE | re.DOTALL
)
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)(?P<title>\s+\"[^\"]*\")?\)")
_LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^)\s]+)(?P<title>\s+\"[^\"]*\")?\)"
)
_HTML_LINK = re.compile(r"<a\b[^>]*?\bhref=\"(?P<target>[^\"]+)\"[^>]*>(?P<text>.*?)</a>", re.DOTALL)
_HTML_PICTURE = re.compile(r"<(?:img|source)\b[^>]*?\b(?:src|srcset)=\"(?P<target>[^\"]+)\"[^>]*>")
_EMPTY_FRAME = re.compile(r"<picture>\s*</picture>|<p\b[^>]*>\s*</p>")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(?P<target>\S+)", re.MULTILINE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


class IndexReadme(MetadataHookInterface):  # type: ignore[misc]
    """Fills in the field `readme`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        fitted = fit(text, source, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": fitted}


def fit(text: str, source: str, tag: str) -> str:
    """README.md for a package index; `source` is the address of the repository, "" if there is none."""
    code: list[str] = []

    def hide(found: re.Match[str]) -> str:
        code.append(found.group())
        return f"\0{len(code) - 1}\0"

    prose = _fit_prose(_CODE.sub(hide, text), source.rstrip("/"), tag)
    return re.sub(r"\0(\d+)\0", lambda found: code[int(found[1])], prose)


def _fit_prose(text: str, source: str, tag: str) -> str:
    for definition in _DEFINITION.finditer(text):
        if not _ABSOLUTE.match(definition["target"]):
            raise ValueError(f"README.md: write the link to {definition['target']} where it is used: [text](target)")

    def absolute(found: re.Match[str], view: str) -> str:
        path, mark, heading = found["target"].partition("#")
        begin, end = (place - found.start() for place in found.span("target"))
        whole = found.group()
        return f"{whole[:begin]}{source}/{view}/{tag}/{path or 'README.md'}{mark}{heading}{whole[end:]}"

    def picture(found: re.Match[str]) -> str:
        if _ABSOLUTE.match(found["target"]):
            return found.group()
        return absolute(found, "raw") if source else ""

    def link(found: re.Match[str]) -> str:
        if _ABSOLUTE.match(found["target"]):
            return found.group()
        return absolute(found, "blob") if source else found["text"]

    for pattern, change in ((_PICTURE, picture), (_HTML_PICTURE, picture), (_LINK, link), (_HTML_LINK, link)):
        text = pattern.sub(change, text)
    if source:
        return text
    return re.sub(r"\n{3,}", "\n\n", _EMPTY_FRAME.sub("", text))
