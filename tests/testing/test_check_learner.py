"""Learners that keep to the contract pass; each planted fault is refused by the check that is there for it."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import faulty
import forgers
import numpy as np
import pytest
from greedy import Greedy
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.testing.check_learner import FIRST, THEN
from hedgerow.testing.trial import small_worlds

RIGHT: dict[type, str] = {
    faulty.NoView: "construction",
    faulty.WrongSum: "plan",
    faulty.NoPlan: "plan",
    faulty.OtherLayout: "plan",
    faulty.NoteOfNothing: "plan",
    faulty.NoConstraints: "plan",
    faulty.Stray: "plan",
    faulty.TwoCoins: "double plan",
    faulty.Unprepared: "observe first",
    faulty.Unseeded: "same seed",
    faulty.Shared: "alone",
    faulty.NumpyRandom: "global random",
    faulty.PythonRandom: "global random",
    faulty.Forgetful: "restored",
    faulty.Aliased: "restored",
    faulty.Unwritable: "restored",
    faulty.Rewriter: "plans stay",
    faulty.Meddler: "episodes stay",
    faulty.Overrun: "exhausted",
}
FORGED = (
    forgers.Rebound,
    forgers.KeptBase,
    forgers.Meddler,
    forgers.FullMeddler,
    forgers.ExitInPlan,
    forgers.ExitInObserve,
    forgers.ExitWhenBuilt,
)
"""What a simulation scores as it is, and what ends a program."""
ALSO = {
    faulty.Unseeded: {"double plan", "alone", "global random", "restored"},
    faulty.Shared: {"same seed", "double plan", "restored"},  # two of them are at work there as well
}
"""Checks that a fault breaks as well, because they compare two runs."""


@pytest.mark.parametrize("learner", [faulty.Sound, Greedy, hr.SVOPS, hr.SOPS, hr.UOBREPS])
def test_sound_learners_pass(learner: Any) -> None:
    found = hr.check_learner(learner, episodes=12)
    assert found.ok, str(found)
    assert found.failures == ()
    assert len(found.findings) == len(small_worlds()) * (len(FIRST) + len(THEN))
    assert set(found.milliseconds) == {world.name for world in small_worlds()}
    assert all(0.0 < time < inf for time in found.milliseconds.values())


@pytest.mark.parametrize("fault", RIGHT, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_refused_by_the_right_check(fault: type) -> None:
    found = hr.check_learner(fault, episodes=12)
    assert not found.ok
    checks = {finding.check for finding in found.failures}
    assert RIGHT[fault] in checks
    assert checks <= {RIGHT[fault]} | ALSO.get(fault, set())
    for finding in found.failures:
        assert finding.fault is not None
        assert all(text.strip() for text in finding.fault.data().values())
    assert len(found.lines()) == 5 * len(found.failures)
    shown = found.table().to_markdown()
    assert shown.count("**failed**") == len(found.failures)  # marked, by its tone and not by a word in the cell
    assert "bold red" not in shown


def test_what_one_world_breaks_is_told_for_that_world() -> None:
    found = hr.check_learner(faulty.NoConstraints, episodes=4)
    assert {finding.world for finding in found.failures} == {"m = 0"}
    (failure,) = found.failures
    assert failure.fault is not None
    assert "zero-size array" in failure.fault.came_back
    assert "faulty.py, line" in failure.fault.came_back
    assert {finding.outcome for finding in found.findings if finding.world == "m = 0"} == {
        "passed",
        "failed",
        "not tried",
    }


def test_a_learner_may_decline_a_world_but_not_all_of_them() -> None:
    found = hr.check_learner(hr.CVOPS, episodes=4)
    assert found.ok, str(found)
    declined = [finding for finding in found.findings if finding.outcome == "declined"]
    assert {finding.world for finding in declined} == {"m = 0"}
    assert "use UOBREPS" in declined[0].remark
    assert "m = 0" not in found.milliseconds
    assert not hr.check_learner(faulty.Choosy, episodes=4).ok
    # What a library refuses is a mistake of the learner, not its choice.
    assert {finding.check for finding in hr.check_learner(faulty.Careless, episodes=4).failures} == {"construction"}


def test_the_worlds_are_as_they_are_called() -> None:
    shapes = {world.name: world.cmdp for world in small_worlds()}
    assert [shapes[f"m = {m}"].num_constraints for m in (0, 1, 3)] == [0, 1, 3]
    assert shapes["L = 1"].layout.steps == 1
    assert not shapes["sparse"].layout.is_full
    for cmdp in shapes.values():
        assert cmdp.num_constraints == 0 or hr.offline.slater(cmdp).margin > 0.1


def test_factories_and_options() -> None:
    made = []

    def factory(view: hr.View, episodes: int, delta: float, *, radii: str) -> Greedy:
        made.append((episodes, delta, radii))
        return Greedy(view, episodes, delta)

    assert hr.check_learner(factory, episodes=3, delta=0.1, options={"radii": "paper"}).ok
    assert set(made) == {(3, 0.1, "paper")}
    assert hr.check_learner(lambda view, T, delta: hr.SVOPS(view, T, delta, "sharp"), episodes=3).ok
    with pytest.raises(hr.errors.InvalidInput, match="takes a class, or a function"):
        hr.check_learner("greedy")  # type: ignore[arg-type]
    found = hr.check_learner(lambda view: Greedy(view, 3, 0.1), episodes=3)
    assert {finding.check for finding in found.failures} == {"construction"}


def test_full_feedback_reaches_those_who_ask_for_it() -> None:
    class Full(faulty.Sound):
        feedback = "full"

        def observe(self, episode: hr.Episode) -> None:
            assert episode.all_losses is not None
            assert episode.all_costs is not None
            np.testing.assert_array_equal(episode.all_losses[episode.rows], episode.losses)
            np.testing.assert_array_equal(episode.all_costs[episode.rows], episode.costs)
            super().observe(episode)

    class Odd(faulty.Sound):
        feedback = "some"

    assert hr.check_learner(Full, episodes=4).ok
    assert {finding.check for finding in hr.check_learner(Odd, episodes=4).failures} == {"construction"}


def test_the_global_random_state_is_given_back() -> None:
    np.random.seed(7)  # noqa: NPY002 - what is looked at
    expected = np.random.rand()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    hr.check_learner(faulty.Sound, episodes=2)
    assert np.random.rand() == expected  # noqa: NPY002


@pytest.mark.parametrize(("learner", "code"), [("Sound", 0), ("WrongSum", 1)])
def test_the_command(learner: str, code: int) -> None:
    learner = f"{faulty.__file__}:{learner}"
    result = CliRunner().invoke(app, ["check-learner", learner, "--episodes", "3"])
    assert result.exit_code == code
    assert ("all checks passed" in result.stdout) == (code == 0)
    assert ("what to do: hr.Policy(view, array) checks it" in result.stdout) == (code == 1)


@pytest.mark.parametrize(
    ("learner", "ok"), [("WrongSum", False), pytest.param("Sound", True, marks=pytest.mark.nightly)]
)
def test_the_command_for_machines(learner: str, ok: bool) -> None:
    learner = f"{faulty.__file__}:{learner}"
    data = json.loads(CliRunner().invoke(app, ["check-learner", learner, "--episodes", "3", "--json"]).stdout)
    assert data["ok"] == ok
    assert {finding["outcome"] for finding in data["findings"]} <= {"passed", "failed", "not tried", "declined"}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", [*forgers.REFUSED, *FORGED], ids=lambda kind: kind.__name__)
def test_what_a_simulation_refuses_is_refused_here(kind: type) -> None:
    found = hr.check_learner(kind, episodes=8)
    assert not found.ok
    assert {finding.check for finding in found.failures} <= {"plan", "construction", "plans stay", "episodes stay"}
    assert all(finding.fault is not None and finding.fault.came_back for finding in found.failures)
    assert hr.check_learner(forgers.Honest, episodes=8).ok  # in worlds that nobody has changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("HardExit", "its process ended by itself, with exit code 0, in the check 'plan' in the world 'm = 1'"),
        ("Hang", "it was ended, since it took longer than 3 s in the check 'plan' in the world 'm = 1'"),
    ],
)
def test_the_command_survives_the_learner(kind: str, words: str) -> None:
    asked = ["check-learner", f"{forgers.__file__}:{kind}", "--episodes", "2", "--limit", "3"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 1
    assert words in result.output
