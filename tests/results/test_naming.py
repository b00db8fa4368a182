"""Ids are readable and safe as file names; hashes see everything but the labels."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from run_cases import made_spec

from hedgerow.errors import InvalidInput
from hedgerow.results.manifest import canonical, cell_hash, cell_id, label


def test_id_is_readable() -> None:
    assert cell_id(made_spec("s-ops sharp", 3)) == "toy__switching-100__s-ops-sharp__T1000__seed3"


def test_names_stand_in_for_labels() -> None:
    spec = {**made_spec(), "label": {}}
    assert label(spec, "world") == "random-layered"
    assert cell_id(spec).startswith("random-layered__switching__s-ops__")


@pytest.mark.parametrize("name", ["../../etc/x", "a b\tc", "<script>", "π◇", "CON/..", "." * 5, "x" * 300])
def test_id_is_safe_as_a_file_name(name: str) -> None:
    found = cell_id(made_spec(name))
    assert re.fullmatch(r"[A-Za-z0-9.+=_-]+", found)
    assert len(found) < 200
    assert not found.startswith(".")


def test_names_that_are_all_strange_stay_apart() -> None:
    assert cell_id(made_spec("π◇")) != cell_id(made_spec("q◇"))
    assert cell_id(made_spec("x" * 300)) != cell_id(made_spec("x" * 301))


def test_hash_is_sha256_of_the_sorted_text_without_labels() -> None:
    spec = made_spec()
    bare = {key: spec[key] for key in sorted(spec) if key != "label"}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"))
    assert cell_hash(spec) == hashlib.sha256(text.encode()).hexdigest()
    assert cell_hash({**spec, "label": {"world": "other"}}) == cell_hash(spec)
    assert cell_hash({**spec, "delta": 0.02}) != cell_hash(spec)
    assert cell_hash(dict(reversed(spec.items()))) == cell_hash(spec)


def test_what_is_not_plain_data_is_refused() -> None:
    with pytest.raises(InvalidInput, match="plain numbers"):
        canonical({"x": float("nan")})
    with pytest.raises(InvalidInput, match="plain numbers"):
        canonical({"x": object()})
    with pytest.raises(InvalidInput, match="no 'seed'"):
        cell_id({"world": {}, "adversary": {}, "learner": {}, "episodes": 3})
