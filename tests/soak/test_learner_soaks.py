"""A slice of the soaks of learners: some signed mutations, and a few seconds of threads in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from field_mutations import judge as judge_field
from field_mutations import played_learners
from learner_files import situations
from signed_mutations import judge
from sound_learner import problems

import hedgerow as hr

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")]

HERE = Path(__file__).resolve().parent


def test_signed_mutations_are_refused_or_sound() -> None:
    with np.errstate(all="ignore"):
        verdicts = judge(first=10_000, count=150)
    assert [words for words in verdicts if words not in ("refused", "sound")] == []
    assert verdicts.count("refused") > 75
    assert verdicts.count("sound") > 10, "some must get through, or the mutations are too coarse to test the checks"


def test_changed_states_of_the_learners_of_the_field_are_refused_or_sound() -> None:
    with np.errstate(all="ignore"):
        verdicts = judge_field(first=50_000, count=150)
    assert [words for words in verdicts if words not in ("refused", "sound")] == []
    assert verdicts.count("refused") > 75
    assert verdicts.count("sound") > 10


def test_counters_that_no_run_has_are_refused() -> None:
    for learner in played_learners():
        state = learner.state()
        if "own.tallies" in state:
            for place in range(len(state["own.tallies"])):
                changed = {**state, "own.tallies": state["own.tallies"].copy()}
                changed["own.tallies"][place] = 2**31 - 1
                with pytest.raises(hr.errors.InvalidInput, match="its plans are not those of 15 episodes"):
                    type(learner).restored(learner.view, changed)


def test_the_twin_of_the_checks_sees_what_is_wrong() -> None:
    with np.errstate(all="ignore"):
        case = next(case for case in situations() if case.name == "s-ops")
        learner = case.learner()
        assert problems(learner) == []
        learner.core.state.reals.mixing = -1.0
        learner.core.state.counts.num_visits[0] += 1
        learner.core.state.boxes.upper[:] = 0.0
        found = problems(learner)
    assert {"mixing", "visits of layer 0", "box of row 0"} <= set(found)
    assert learner.core.state.numbers.branch >= 0


@pytest.mark.nightly
def test_threads_on_shared_learners_neither_crash_nor_tear_files() -> None:
    command = [sys.executable, str(HERE / "thread_torture.py"), "--worker", "1", "--seconds", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failures"] == []
    assert found["tally"]["refused"] > 0
    assert found["tally"]["save"] > 0
