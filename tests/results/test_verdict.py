"""Verdicts in words, and the reference rows that follow from the losses that were played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import parse
from hedgerow.experiments.sweep import run_experiment
from hedgerow.results import Results
from hedgerow.results.groups import Group
from hedgerow.results.leaderboard import leaderboard
from hedgerow.results.verdict import BASELINE, ORACLE, limit_sentence, reference_rows, verdict
from hedgerow.worlds.world import content_hash

T = 3000
LEARNERS = """
[[learner]]
name = "sv-ops"
preset = "sharp"
label = "SV-OPS"
[[learner]]
name = "s-ops"
preset = "sharpest"
baseline = "slater"
known_transitions = true
known_costs = "all"
label = "S-OPS"
"""
CONTROLS = """
[[learner]]
name = "always-baseline"
baseline = "offered"
label = "today"
[[learner]]
name = "oracle"
label = "best"
"""


def swept(folder: Path, learners: str = LEARNERS, adversary: str = 'name = "ev-days"') -> Results:
    """Two seeds in the world of charging cars."""
    text = f"""
seeds = 2
episodes = {T}
delta = 0.01
[[world]]
name = "ev-workday"
[[adversary]]
{adversary}
{learners}"""
    tally = run_experiment(parse(Source("verdict", text, folder)), folder / "out", RunOptions(backend="serial"))
    assert tally.complete
    return hr.results.open(folder / "out")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return swept(tmp_path_factory.mktemp("verdict"))


def test_reference_rows_are_what_controls_would_have_got(results: Results, tmp_path: Path) -> None:
    """Computed from the losses, they agree with learners that play these policies step by step."""
    played = {group.kind: group for group in swept(tmp_path, CONTROLS).groups}
    rows = {row.kind: row for row in reference_rows(results.groups)}
    assert list(rows) == [BASELINE, ORACLE]
    for kind, row in rows.items():
        for name in ("loss", "regret", "saved", "over", "violation"):
            expected = played[kind].number(name)
            assert expected is not None
            assert row.numbers[name].value == pytest.approx(expected.value, abs=1e-9), (kind, name)
        assert row.numbers["safe"].value == 2
    assert rows[BASELINE].numbers["left"].value == T
    assert rows[ORACLE].numbers["saved"].value == pytest.approx(results.groups[0]["possible"].value)


def test_learners_of_these_kinds_take_the_place_of_their_rows(tmp_path: Path) -> None:
    found = swept(tmp_path, CONTROLS)
    assert reference_rows(found.groups) == []
    assert [name for name, _ in verdict(found.groups).rows] == ["today", "best"]


def test_losses_that_answer_have_no_common_row(tmp_path: Path) -> None:
    found = swept(tmp_path, adversary='name = "pursuit"')
    assert reference_rows(found.groups) == []
    assert verdict(found.groups).sentences[-1].startswith("The losses answer to the learner")
    for group in found.groups:  # yet each is compared with the baseline under its own losses
        lost, own = group.curve("baseline_loss")[:, -1], group.curve("loss")[:, -1]
        assert group["saved"].value == pytest.approx(np.mean(1.0 - own / lost))


def test_the_verdict_names_the_best_safe_learner_and_those_over_the_limit(results: Results) -> None:
    said = verdict(results.groups)
    safe = next(group for group in results.groups if group.kind == "s-ops")
    over = next(group for group in results.groups if group.kind == "sv-ops")
    assert said.sentences[0].startswith("S-OPS ")
    share, possible = (f"{100 * safe[name].value:.1f} %" for name in ("saved", "possible"))
    assert said.sentences[0] == (
        f"S-OPS saved {share} of the carbon, of {possible} possible, and no day in 2 seeds was over the limit."
    )
    assert said.sentences[1].startswith("SV-OPS ")
    assert f"with {round(over['over'].value):,} days on average over it" in said.sentences[1]
    assert said.heads == ("carbon saved", "days over the limit", "days left to today's rule")
    assert [name for name, _ in said.rows] == ["always today's rule", "SV-OPS", "S-OPS", "best possible (oracle)"]
    assert limit_sentence(results.groups[0]) == (
        "The limit: on every day, at most 0.1 cars are expected to leave without their charge."
    )


def test_a_run_without_a_baseline_says_so() -> None:
    from hedgerow.report.figures import run_results

    world = hr.worlds.make("ev-workday")
    run = hr.simulate(world.cmdp, hr.SVOPS(world.view(), 50, 0.05, "paper"), world.loss, progress=False)
    assert run.baseline is None
    assert np.isnan(run.saved).all()
    groups = run_results(run).groups
    assert [row.kind for row in reference_rows(groups)] == [ORACLE]
    assert verdict(groups).sentences[-1] == "There is no baseline to compare with, so nothing is said of loss saved."


def test_a_run_in_a_world_with_a_baseline_knows_what_it_saved() -> None:
    world = hr.worlds.make("ev-workday")
    learner = hr.field.AlwaysBaseline(world.view(), 30, baseline=world.baseline)
    run = hr.simulate(world, learner, world.loss, progress=False)
    np.testing.assert_allclose(run.saved, 0.0, atol=1e-12)
    np.testing.assert_allclose(run.baseline_loss, run.loss)
    assert run.terms.episode == "day"
    given = hr.simulate(world.cmdp, hr.SOPS(world, 5, 0.05, "paper", baseline="own"), world.loss, progress=False)
    np.testing.assert_allclose(given.baseline_loss, given.episodes * world.golden.baseline)  # the learner's own


def test_the_board_has_a_verdict_and_references(results: Results) -> None:
    board = leaderboard(results)
    kept = "1 of 2 learners kept every episode within the limits, in 1 setting"
    assert board.verdict().startswith(f"{kept}; of these, S-OPS has the best mean rank, 1.0")
    assert [row.kind for row in board.blocks[0].references] == [BASELINE, ORACLE]
    data = board.as_data()
    assert data["verdict"] == board.verdict()
    assert data["blocks"][0]["references"][BASELINE]["saved"] == 0.0
    share = board.blocks[0].standings[0].scores
    assert share is not None
    assert share.share == pytest.approx(
        share.numbers["regret"].value / board.blocks[0].references[0].numbers["regret"].value
    )


@pytest.mark.parametrize("term", ["", "x" * 201, 7])
def test_terms_are_words(term: object) -> None:
    with pytest.raises(InvalidInput, match="the term 'episode' is"):
        hr.worlds.Terms(episode=term)  # type: ignore[arg-type]


def test_terms_are_no_part_of_a_world_s_hash() -> None:
    world = hr.worlds.make("ev-workday", alpha=0.15)
    assert world.terms == hr.worlds.Terms("day", "carbon", "today's rule", world.terms.limit)
    assert "0.15 cars" in world.terms.limit
    assert world.hash == content_hash(world.cmdp, world.loss)


def test_groups_find_the_finest_table(results: Results) -> None:
    group: Group = results.groups[0]
    assert group.finest is group.tables[0]  # no trace was kept


def test_a_budget_that_is_kept_is_told_from_a_limit_that_is_not(tmp_path: Path) -> None:
    budget = '[[learner]]\nname = "b-ops"\nbaseline = "slater"\nlabel = "B-OPS"\n'
    said = verdict(swept(tmp_path, LEARNERS + budget).groups)
    (about,) = [sentence for sentence in said.sentences if sentence.startswith("B-OPS")]
    assert "a budget for all days so far, which it kept after every day" in about
    tones = {name: [cell.tone for cell in cells] for name, cells in said.rows}
    assert ("bad" in tones["SV-OPS"], "bad" in tones["B-OPS"]) == (True, False)
