"""A log counts once: whatever it comes from, in whatever order, after a restart too."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "importers"))

from learner_cases import to_bytes
from test_log_seals import VIEW, WORLD, played, sources

import hedgerow as hr


def learner() -> hr.SVOPS:
    return hr.SVOPS(VIEW, None, 0.05, "sharpest", horizon="doubling")


def test_the_same_log_is_refused_in_every_form(tmp_path: Path) -> None:
    log, one = played(), learner()
    one.absorb(log)
    before = to_bytes(one)
    for source in [log, *sources(log, tmp_path).values()]:
        with pytest.raises(hr.errors.InvalidInput, match="this log was absorbed before"):
            one.absorb(source)
        assert to_bytes(one) == before
    assert one.logged["episodes"] == 40


def test_it_is_refused_after_a_restart_and_by_copies(tmp_path: Path) -> None:
    one = learner()
    one.absorb(played())
    one.save(tmp_path / "learner.npz")
    loaded = hr.load(tmp_path / "learner.npz")
    for other in (loaded, copy.deepcopy(one), pickle.loads(pickle.dumps(one)), type(one).restored(VIEW, one.state())):
        with pytest.raises(hr.errors.InvalidInput, match="absorbed before"):
            other.absorb(played())
        other.absorb(played(seed=1))
        assert len(other.absorbed) == 2
    assert len(one.absorbed) == 1


def test_costs_that_were_not_read_make_no_other_log() -> None:
    """Its moves would count twice."""
    for first, second in ((False, True), (True, False), (False, False)):
        one = learner()
        one.absorb(played().table(), costs=first)
        with pytest.raises(hr.errors.InvalidInput, match="absorbed before"):
            one.absorb(played().table(), costs=second)


def test_other_logs_are_welcome_and_equal_episodes_are_no_reason() -> None:
    one = learner()
    first, second = played(40), played(40, seed=1)
    one.absorb(first)
    one.absorb(second)
    shared = {tuple(first.rows[2 * e : 2 * e + 2]) for e in range(40)} & {
        tuple(second.rows[2 * e : 2 * e + 2]) for e in range(40)
    }
    assert shared  # short episodes repeat
    one.absorb(played(39))  # a part of the first: nothing tells it from an honest log
    assert one.logged["episodes"] == 119


def test_a_file_that_claims_impossible_logs_is_refused() -> None:
    one = learner()
    one.absorb(played(2))
    state = one.state()
    known = state["absorbed"]
    assert known.shape == (1, 2, 32)
    for wrong in (known.astype(np.int64), known[:, :1], np.repeat(known, 3, axis=0)):
        with pytest.raises(hr.errors.InvalidInput, match="absorbed must be uint8 of shape"):
            type(one).restored(VIEW, {**state, "absorbed": wrong})
    assert WORLD.view().constraint_names == VIEW.constraint_names
