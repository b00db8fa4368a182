"""What a certificate shows in a notebook: each residual, what it means, and whether it is small enough."""

from __future__ import annotations

from hedgerow.display.html import HtmlCell, card, line, table, verdict
from hedgerow.projection.certificate import Certificate

FINE = 1e-9
"""Residuals up to this are rounding: what every projection of this package stays below."""
MEANINGS = {
    "mass": "each layer has probability 1",
    "flow": "what flows into a state flows out of it",
    "boxes": "the transitions lie in their boxes",
    "costs": "the constraints are respected",
    "complementarity": "a constraint has a price only where it binds",
    "stationarity": "the point has the exponential form of its multipliers",
    "gap": "nothing that is allowed is nearer: duality gap, relative",
    "absolute_gap": "the same, absolute: an upper bound of D(q ‖ q*)",
}


def certificate_html(certificate: Certificate) -> str:
    """One line per residual."""
    fine = certificate.worst <= FINE

    def row(key: str, meaning: str) -> list[str | HtmlCell]:
        value = float(getattr(certificate, key))
        told = verdict(abs(value) <= FINE) if key != "absolute_gap" else HtmlCell("-")
        return [key.replace("_", " "), meaning, f"{value:.2g}", told]

    rows = (row(key, meaning) for key, meaning in MEANINGS.items())
    found = "every residual is rounding" if fine else "this is not the projection, to within rounding"
    told = table(["residual", "0 means", "value", "fine"], rows, num_text=2)
    return card("Certificate", [f"worst {certificate.worst:.2g}", found], told, line(f"fine: at most {FINE:g}"))
