"""An HTML document that needs nothing else: styles and script inside, contents, landmarks, light and dark."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from hedgerow.errors import HedgerowError
from hedgerow.html_parts import text
from hedgerow.pages.colours import DARK


class Part(NamedTuple):
    """A section of the page. Title and content are HTML; a part without content is left out."""

    anchor: str
    title: str
    content: str


def _section(part: Part) -> str:
    return f'<section id="{part.anchor}"><h2>{part.title}</h2>{part.content}</section>'


def _contents(parts: Sequence[Part]) -> str:
    """Links to the sections; the script folds them up on narrow screens, where they would push the answer down."""
    links = "".join(f'<li><a href="#{part.anchor}">{part.title}</a></li>' for part in parts)
    return f'<nav aria-label="Contents"><details open><summary>Contents</summary><ul>{links}</ul></details></nav>'


def document(title: str, header: str, parts: Sequence[Part], *, plotly: str = "") -> str:
    """The whole page: a header, links to the parts, and the parts; `plotly` is its packed script, if charts need it."""
    style = (
        _asset("page.css").replace("/* light */", _variables(light=True)).replace("/* dark */", _variables(light=False))
    )
    script = _asset("page.js").replace("/* dark colours */ {}", json.dumps(DARK))
    body = "".join(map(_section, parts))
    charts = f'<script type="application/gzip" id="plotly">{plotly}</script>\n' if plotly else ""
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n"
        '<body><a class="skip" href="#content">Skip to the results</a>'
        f'<div class="page">{header}{_contents(parts)}<main id="content" tabindex="-1">{body}</main>'
        "<footer>Written by hedgerow. This file needs no network.</footer></div>\n"
        f"{charts}"
        f"<script>{script}</script></body></html>\n"
    )


def _variables(*, light: bool) -> str:
    """Every colour as a variable, named after its light form."""
    return "".join(f"--c{colour[1:]}:{colour if light else dark};" for colour, dark in DARK.items())


def _asset(name: str) -> str:
    return resources.files("hedgerow.pages").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def packed_plotly() -> str:
    """plotly's own script, compressed, as text."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise HedgerowError("reports need plotly: install it and write the report again") from error
    script: str = get_plotlyjs()
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()
