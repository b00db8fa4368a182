"""What a chart shows, in a sentence: the numbers are those of the tables, and nothing is claimed that is unknown."""

# ruff: noqa: RUF001 - a true minus sign is meant

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import EPISODES, made_learner, made_run, made_spec

from hedgerow import results
from hedgerow.report.figures import figures, lowest, margin_sentence
from hedgerow.report.plots import pens
from hedgerow.results import store
from hedgerow.results.groups import Group


def made_groups(folder: Path, **runs: list[Any]) -> list[Group]:
    """The groups of a directory: for each learner the runs of its seeds."""
    store.create(folder, {"experiment": {}})
    for learner, seeds in runs.items():
        for seed, run in enumerate(seeds):
            store.write_cell(folder, made_spec(learner, seed), run)
    return results.open(folder).groups


def said(groups: list[Group]) -> dict[str, str]:
    """The sentences of all figures, by the name of the figure."""
    drawn = figures(groups, pens([(group.learner, group.kind) for group in groups]))
    return {figure.name: figure.sentence for figure in drawn if figure.plot}


def test_numbers_and_verdicts(tmp_path: Path) -> None:
    """Regrets 10 t^0.5 and 10 t^0.75, the second learner over its thresholds by 0.2, weights 0.5 / sqrt(t)."""
    told = said(made_groups(tmp_path / "out", calm=[made_run()], wild=[made_run(exponent=0.75, worst=0.2)]))
    numbers = "in any episode and seed: calm 0.1, wild −0.2"
    verdict = "calm keeps to the threshold; wild exceeds it in some episode"
    course = "from 0.5 in episode 1 to 0.01581 in episode 1,000"
    exponents = "fitted exponents over the last decade of episodes are calm 0.50, wild 0.75"
    assert told == {
        "regret": "Regret after 1,000 episodes: calm 316.2, wild 1,778; the lowest is calm.",
        "regret-growth": f"Regret on two logarithmic axes: {exponents}.",
        "violation": "Violation after 1,000 episodes: calm 0, wild 63.25; the lowest is calm.",
        "margin-0": f"Least margin to the threshold 1 of budget 0 {numbers}; {verdict}.",
        "margin-1": f"Least margin to the threshold 2 of budget 1 {numbers}; {verdict}.",
        "mixing": f"Probability of leaving an episode to the safe baseline: calm {course}, wild {course}.",
    }


def test_exponents_have_their_intervals_where_there_are_seeds(tmp_path: Path) -> None:
    told = said(made_groups(tmp_path / "out", a=[made_run(seed) for seed in range(4)]))
    assert "are a 0.50 (0.50 to 0.50)." in told["regret-growth"]


def test_no_lowest_where_nothing_differs(tmp_path: Path) -> None:
    told = said(made_groups(tmp_path / "out", a=[made_run()], b=[made_run()]))
    assert told["regret"] == "Regret after 1,000 episodes: a 316.2, b 316.2."
    assert told["margin-0"].endswith("a 0.1, b 0.1; a and b keep to the threshold.")


def test_no_verdict_on_what_is_unknown() -> None:
    words = margin_sentence("budget", "1", [("a", float("nan")), ("b", 0.1)])
    assert words.endswith("a unknown, b 0.1; b keeps to the threshold.")


def test_a_regret_that_is_not_positive_has_no_exponent(tmp_path: Path) -> None:
    run = made_run()
    sinking = made_run(loss=run.loss - 2.0 * run.regret, regret=-run.regret)
    told = said(made_groups(tmp_path / "out", up=[run], down=[sinking], below=[sinking]))
    assert told["regret"].endswith("below −316.2, down −316.2, up 316.2; the lowest are below and down.")
    assert told["regret-growth"].endswith("are up 0.50; no exponent can be fitted for below and down.")


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Escaping is left to whoever writes HTML; what cannot be printed is shown as its code."""
    run = made_run(learner=made_learner(names=("<b>\x1b", "b")))
    told = said(made_groups(tmp_path / "out", **{"<i> & \u202e": [run]}))
    assert "episodes: <i> & \\u202e 316.2." in told["regret"]
    assert "of <b>\\x1b in any episode" in told["margin-0"]


def test_notes_go_from_the_first_number_to_the_last(tmp_path: Path) -> None:
    run = made_run()
    noted = np.where(EPISODES < 10, np.nan, EPISODES / 4.0)
    run.notes["own-note"] = noted
    single = np.where(EPISODES == 1000, 7.0, np.nan)
    other = made_run()
    other.notes["own-note"] = single
    first = int(EPISODES[np.isfinite(noted)][0])
    told = said(made_groups(tmp_path / "out", a=[run], b=[other]))
    expected = f"own-note, as the learners note it: a from {first / 4:g} in episode {first} to 250 in episode 1,000, "
    assert told["note-own-note"] == f"{expected}b 7 in episode 1,000."


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([("a", 1.0)], "the lowest is a"),
        ([("a", 1.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)], "the lowest are b, c and d"),
    ],
)
def test_lowest(found: list[tuple[str, float]], words: str) -> None:
    assert lowest(found) == words
