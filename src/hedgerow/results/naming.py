"""The name and the fingerprint of a cell.

A cell is one run of a sweep, given by a plain dictionary: world, adversary and learner with their parameters,
episodes, delta, seed, and readable labels. Its id is made of the labels, for people and file names; its hash covers
everything but the labels, for machines: equal hashes mean equal runs.

    >>> spec = {"world": {"name": "dope-media"}, "adversary": {"name": "iid"}, "learner": {"name": "s-ops"},
    ...         "episodes": 1000, "delta": 0.01, "seed": 3, "label": {"learner": "s-ops sharp"}}
    >>> cell_id(spec)
    'dope-media__iid__s-ops-sharp__T1000__seed3'
    >>> cell_hash(spec) == cell_hash({**spec, "label": {}})
    True
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from hedgerow.errors import InvalidInput

PARTS = ("world", "adversary", "learner")
_UNSAFE = re.compile(r"[^A-Za-z0-9.+=]+")
_LONGEST_PART = 60


def canonical(data: Mapping[str, Any]) -> str:
    """One text for equal content: sorted keys, no spaces, no NaN."""
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a cell is described by plain numbers, texts, lists and tables only: {error}") from error


def fingerprint(data: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def cell_hash(spec: Mapping[str, Any]) -> str:
    """The fingerprint of a cell, its labels left out."""
    return fingerprint({key: value for key, value in spec.items() if key != "label"})


def cell_id(spec: Mapping[str, Any]) -> str:
    """A readable name, safe as a file name: world__adversary__learner__T<episodes>__seed<seed>."""
    for key in (*PARTS, "episodes", "seed"):
        if key not in spec:
            raise InvalidInput(f"the description of a cell has no {key!r}; it has: {', '.join(sorted(spec))}")
    names = [slug(label(spec, part)) for part in PARTS]
    return "__".join([*names, f"T{spec['episodes']}", f"seed{spec['seed']}"])


def label(spec: Mapping[str, Any], part: str) -> str:
    """How `part` (world, adversary, learner) of a cell is called: its label, or else its name."""
    given = spec.get("label", {}).get(part)
    return str(given if given is not None else spec[part]["name"])


def slug(text: str) -> str:
    """`text` with everything that a file name should not contain turned into single dashes; long ones are cut."""
    slug = _UNSAFE.sub("-", text).strip("-.")
    if not slug or len(slug) > _LONGEST_PART:
        slug = f"{slug[: _LONGEST_PART - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
    return slug
