"""What SVG, PDF and PNG files of a browser lack: an exact size in mm, and bytes that only depend on the plot."""

from __future__ import annotations

import re
import zlib
from html import escape

from hedgerow.errors import HedgerowError

POINTS_PER_MM = 72.0 / 25.4


def finished_svg(blob: bytes, width_mm: float, height_mm: float, title: str) -> bytes:
    """The SVG with its size in mm, a title for those who cannot see it, and ids that are the same every time.

    plotly marks the ids of a drawing with six random digits. They are replaced where they are part of an id, or of a
    reference to one, and nowhere else: the same digits may be part of a coordinate.
    """
    text = blob.decode()
    root = re.match(r"<svg\b[^>]*>", text)
    marks = set(re.findall(r'\bid="(?:top)?defs-([0-9a-f]{6})"', text))
    if root is None or len(marks) != 1:
        raise HedgerowError("the browser's SVG is not as plotly writes it: is this a version of plotly that we know?")
    opening = re.sub(r'\b(width|height)="[^"]*"', "", root[0], count=2)
    opening = opening.replace("<svg ", f'<svg role="img" width="{width_mm:.10g}mm" height="{height_mm:.10g}mm" ')
    opening = re.sub(r"\s+", " ", opening.replace(' style=""', ""))
    text = opening + (f"<title>{escape(title)}</title>" if title else "") + text[root.end() :]
    mark = marks.pop()
    named = re.compile(rf"""(\bid="|url\((?:&quot;|['"])?\#|href="\#)([^"')&]*?){mark}""")
    return (named.sub(r"\1\2plot-", text) + "\n").encode()


def finished_pdf(blob: bytes, width_mm: float, height_mm: float, title: str) -> bytes:
    """The PDF with a page of exactly this size, its title, and no date: browsers round the size of a page."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", blob)
    if len(boxes) != 1:
        raise HedgerowError(f"the browser's PDF has {len(boxes)} pages that we know how to read instead of one")
    top = float(boxes[0][1])  # coordinates begin below, while the picture hangs from the top of the page
    width, height = width_mm * POINTS_PER_MM, height_mm * POINTS_PER_MM
    box = f"/MediaBox [0 {_number(top - height)} {_number(width)} {_number(top)}]".encode()
    blob = _replaced(blob, rb"/MediaBox \[[^\]]*\]", box)
    blob = _replaced(
        blob, rb"/Title \((?:[^()\\]|\\.)*\)", b"/Title <feff" + title.encode("utf-16-be").hex().encode() + b">"
    )
    blob = _replaced(blob, rb"/Creator \((?:[^()\\]|\\.)*\)", b"/Creator (hedgerow)")
    for name in (b"CreationDate", b"ModDate"):
        blob = _replaced(blob, rb"/" + name + rb" \([^()]*\)", b"/" + name + b" (D:20000101000000Z)")
    return blob


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _replaced(blob: bytes, pattern: bytes, new: bytes) -> bytes:
    """The file with the one match of the pattern replaced, and with the table of its objects put right."""
    found = re.search(pattern, blob)
    start = re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", blob)
    if found is None or start is None:
        raise HedgerowError("the browser's PDF has a form that we do not know how to change")
    table, shift = int(start[1]), len(new) - (found.end() - found.start())

    def moved(offset: int) -> int:
        return offset + shift if offset > found.start() else offset

    entries = re.sub(
        rb"(\d{10})( \d{5} n)", lambda entry: b"%010d" % moved(int(entry[1])) + entry[2], blob[table : start.start()]
    )
    body = blob[: found.start()] + new + blob[found.end() : table]
    return body + entries + b"startxref\n%d\n%%%%EOF\n" % moved(table)


def finished_png(blob: bytes, dots_per_inch: float) -> bytes:
    """The PNG with its resolution, from which programs compute its size on paper."""
    per_metre = round(dots_per_inch / 0.0254)
    content = b"pHYs" + per_metre.to_bytes(4, "big") * 2 + b"\x01"
    chunk = (9).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    header = 8 + 25  # the signature, and the chunk IHDR, which comes first
    return blob[:header] + chunk + blob[header:]
