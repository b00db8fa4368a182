"""What the built HTML points at: files and anchors exist, and nothing is loaded from the network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""What a browser fetches by itself."""
_SHEET_FETCHES = ("url(http", "url('http", 'url("http', "@import", "url(//")


@dataclass
class _Reader(HTMLParser):
    anchors: set[str] = field(default_factory=set)
    targets: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if name in ("href", "src", "data") and tag not in ("form", "input"):
                self.targets.append((tag, name, value))


def complaints(site: Path) -> list[str]:
    """Everything that is wrong, sorted by page."""
    readers: dict[Path, _Reader] = {}
    for file in sorted(site.rglob("*.html")):
        readers[file.resolve()] = reader = _Reader()
        reader.feed(file.read_text(encoding="utf-8"))
    found = [each for file, reader in readers.items() for each in _of_page(file, reader, readers, site.resolve())]
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        found += [f"{sheet.relative_to(site)}: loads {part}...)" for part in _SHEET_FETCHES if part in text]
    return found


def _of_page(file: Path, reader: _Reader, readers: dict[Path, _Reader], site: Path) -> Iterator[str]:
    name = file.relative_to(site).as_posix()
    for tag, attribute, value in reader.targets:
        parts = urlsplit(value)
        outside = bool(parts.scheme or parts.netloc)
        if outside:
            if parts.scheme not in ("data", "mailto") and (tag, attribute) in LOADED:
                yield f"{name}: <{tag}> loads {value}"
            continue
        if name == "404.html" and parts.path.startswith("/"):
            continue  # served for any address, so that its links start at the root of the server
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if not target.is_file() and target != file:
            yield f"{name}: {value} leads to no file"
        elif parts.fragment and target in readers and unquote(parts.fragment) not in readers[target].anchors:
            yield f"{name}: {value} leads to no anchor"
