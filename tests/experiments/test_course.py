"""The forecast in which S-OPS plays: guesses, models and verdicts by hand, and a run in a known world as its twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.forecast import forecast_run, read_guess
from hedgerow.forecast.course import logged_baseline, models_for, paid_back, read_policy, worth
from hedgerow.forecast.model import masses
from hedgerow.forecast.summary import BaselineForecast, assumed_baseline
from hedgerow.model.occupancy import uniform_policy

PAIRS = [(state, action) for state in ("home", "left", "right") for action in ("wait", "go")]
LOSSES = [0.75, 0.25, 0.5, 0.125, 1.0, 0.0]
GUESS = dict(zip(PAIRS, LOSSES, strict=True))


def small() -> hr.View:
    return hr.View.of([["home"], ["left", "right"]], ["wait", "go"], thresholds={"delay": 0.5})


def columns(**changes: Any) -> dict[str, list[Any]]:
    states, actions = zip(*PAIRS, strict=True)
    return {"state": list(states), "action": list(actions), "loss": list(LOSSES)} | changes


# Guesses --------------------------------------------------------------------------------------------------------------


def test_all_forms_of_a_guess_say_the_same(tmp_path: Path) -> None:
    view, table = small(), columns()
    lines = [dict(zip(table, line, strict=True)) for line in zip(*table.values(), strict=True)]
    (tmp_path / "lines.json").write_text(json.dumps(lines[::-1]))
    (tmp_path / "columns.json").write_text(json.dumps(table))
    text = ["state,action,loss", *(",".join(map(str, line.values())) for line in lines)]
    (tmp_path / "guess.csv").write_text("\n".join(text) + "\n")
    rewards = columns(reward=[1.0 - loss for loss in LOSSES])
    del rewards["loss"]
    forms = [GUESS, table, rewards, np.array(LOSSES), np.reshape(LOSSES, (3, 2)).tolist()]
    for form in [*forms, *(tmp_path / name for name in ("lines.json", "columns.json", "guess.csv"))]:
        assert read_guess(view, form).losses.tolist() == LOSSES
        assert np.isnan(read_guess(view, form).costs).all()
    costs = read_guess(view, columns(delay=[0.0, 1.0, None, 0.5, 0.25, None])).costs
    assert np.array_equal(costs, [[0.0, 1.0, np.nan, 0.5, 0.25, np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"state": ["home"], "loss": [0.5]}, "has no column 'action'; its columns are state, loss"),
        ({"state": ["home"], "action": ["go"]}, "needs a column 'loss' in [0, 1], or else 'reward'"),
        (columns(reward=LOSSES), "needs a column 'loss' in [0, 1], or else 'reward'"),
        (columns(loss=[float("nan"), *LOSSES[1:]]), "no loss is guessed for layer 0, state 'home', action 'wait';"),
        (columns(loss=[None, None, *LOSSES[2:]]), "action 'wait' and 1 other pairs; every pair"),
        (columns(loss=[1.5, *LOSSES[1:]]), "the column 'loss' is 1.5 at line 0 of the table of guesses; losses and"),
        (columns(loss=["much"] * 6), "the column 'loss' must hold numbers"),
        (columns(delay=[2.0] * 6), "the column 'delay' is 2.0 at line 0"),
        (columns(action=["stop", *columns()["action"][1:]]), "'stop'"),
        (columns(state=["end", *columns()["state"][1:]]), "line 0 of the table of guesses has no 'state', or one in"),
        (columns(state=[None, *columns()["state"][1:]]), "line 0 of the table of guesses has no 'state', or one in"),
        (columns(action=["go"] * 6), "layer 0, state 'home', action 'go' stands in two lines"),
        ({("home", "go"): 0.5}, "no loss is guessed for layer 0, state 'home', action 'wait' and 4 other pairs"),
        ({**GUESS, ("home", "go"): -0.1}, "the column 'loss' is -0.1"),
        ({**GUESS, ("house", "go"): 0.1}, "'house'"),
        ([0.5] * 5, "loss"),
        ([2.0] * 6, "loss"),
        (7, "of the class int"),
    ],
)  # fmt: skip
def test_a_wrong_guess_is_refused_in_a_sentence(source: Any, words: str) -> None:
    with pytest.raises(HedgerowError) as refused:
        read_guess(small(), source)
    assert words in str(refused.value)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "guess.json").write_text("{")
    with pytest.raises(hr.errors.FileFormatError, match="cannot read the table of guesses"):
        read_guess(small(), tmp_path / "guess.json")


def test_a_baseline_by_action_or_by_table(tmp_path: Path) -> None:
    view = small()
    assert read_policy(view, "go").tolist() == [0.0, 1.0] * 3
    file = tmp_path / "policy.csv"
    file.write_text("state,action,probability\nhome,wait,0.25\nhome,go,0.75\nleft,go,1\nright,wait,1\n")
    assert read_policy(view, str(file)).tolist() == [0.25, 0.75, 0.0, 1.0, 1.0, 0.0]
    file.write_text("state,action\nhome,wait\nleft,go\n")
    with pytest.raises(hr.errors.InvalidInput, match="'right'"):
        read_policy(view, str(file))


# Models ---------------------------------------------------------------------------------------------------------------


def days(view: hr.View) -> hr.Log:
    paths = [("wait", "left", "wait")] * 3 + [("wait", "right", "wait")]
    episodes = [
        hr.Episode(view, [("home", first), (state, then)], [0.0, 0.0], [0.0, float(state == "right")])
        for first, state, then in paths
    ]
    return hr.Log.read(view, episodes)


def test_the_baseline_of_a_log() -> None:
    view = small()
    found = logged_baseline(view, days(view), assumed_baseline(view))
    assert found.policy is not None
    assert found.policy.tolist() == [1.0, 0.0] * 3
    assert found.costs.tolist() == [0.25]
    dear = hr.View.of([["home"], ["left", "right"]], ["wait", "go"], thresholds={"delay": 0.2})
    otherwise = logged_baseline(dear, days(view).in_terms_of(dear), assumed_baseline(dear))
    assert otherwise.costs.tolist() == [0.1]  # half of the threshold: the log's mean is above it
    assert "half of each threshold" in otherwise.words


def test_the_models_by_hand() -> None:
    view = small()
    safe, guess = logged_baseline(view, days(view), assumed_baseline(view)), read_guess(view, LOSSES)
    models = models_for(view, safe, days(view), guess)
    assert list(models) == ["unrelated to losses", "opposed to losses, 1x", "opposed to losses, 2x"]
    mild, once, twice = models.values()
    # Assumed: uniform moves, costs .25 x (1, .5, 1.5); seen: 4 visits of home, 3 of left and 1 of right.
    assert mild.transitions[:2] == pytest.approx([(3 + 0.5) / 5, (1 + 0.5) / 5])
    assert mild.transitions[2:4].tolist() == [0.5, 0.5]
    assert mild.costs[0] == pytest.approx([0.25 / 5, 0.25, 0.125 / 4, 0.125, 1.375 / 2, 0.375])
    # What nobody has seen: `go`, which loses .5, .375 and 1 less than the baseline, and costs in this proportion.
    # Pairs of the baseline count as they are seen; the uniform policy costs its threshold .5, or twice that.
    for model, level in ((once, 0.5), (twice, 1.0)):
        go = model.costs[0, 1::2]
        q = masses(view.layout, model.transitions, uniform_policy(view.layout))
        assert q @ model.costs[0] == pytest.approx(level, abs=1e-6)
        scale = go[0] / 0.5
        assert go == pytest.approx(np.minimum(1.0, scale * np.array([0.5, 0.375, 1.0])), abs=1e-6)
    known = guess._replace(costs=np.full((1, 6), 0.125))
    (only,) = models_for(view, safe, None, known).values()
    assert only.costs.tolist() == [[0.125] * 6]


def test_pairs_that_share_a_law_have_one_cost() -> None:
    world = hr.worlds.make("streaming-5")
    view = world.view()
    safe = BaselineForecast(np.array([0.4]), "", np.tile([0.0, 1.0], view.layout.num_decision_states))
    for model in models_for(view, safe, None, read_guess(view, np.linspace(0, 1, view.layout.num_rows))).values():
        assert np.array_equal(model.costs, model.costs[:, view.knowledge.same_costs])


# Runs -----------------------------------------------------------------------------------------------------------------


def test_in_a_known_world_the_forecast_is_a_run() -> None:
    world = hr.worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1)
    safest, T = hr.offline.slater(world), 300
    log = hr.Log.played(world.cmdp, hr.Policy.uniform(world.view()), 200, seed=3)
    found = forecast_run(world, T, 0.05, baseline=safest, log=log, losses=world.loss, seed=2)
    learner = hr.SOPS(world.view(), T, 0.05, seed=2, baseline=safest)
    learner.absorb(log)
    run = hr.simulate(world, learner, seed=2, progress=False, marks="all")
    for mark in found["marks"]:
        k = mark["episodes"] - 1
        assert mark["lambda"] == {"least": run["mixing_weight"][k], "most": run["mixing_weight"][k]}
        assert mark["share"]["least"] == pytest.approx(run["mixing_total"][k] / (k + 1))
        assert mark["saved"]["most"] == pytest.approx(run.baseline_loss[k] - run.loss[k])
    assert found["saved_share"]["least"] == pytest.approx(run.saved[-1])
    assert found["marks"][-1]["lambda"]["most"] < found["marks"][-1]["lambda_without_log"]["most"]


def test_a_ceiling_is_no_obstacle() -> None:
    """Costs of the model are drawn apart, so that an episode can cost more than was declared."""
    view = small().knowing(max_episode_cost={"delay": 1.0})
    found = forecast_run(view, 200, 0.05, baseline=read_policy(view, "wait"), baseline_costs=[0.4], losses=GUESS)
    assert found["marks"][0]["lambda"]["most"] <= (1.0 - 0.5) / (1.0 - 0.4) + 1e-9


def test_what_cannot_be_forecast_is_refused() -> None:
    view = small()
    with pytest.raises(hr.errors.InvalidInput, match="give it, or a log of its episodes"):
        forecast_run(view, 100, losses=GUESS)
    other = hr.View.of([["home"], ["up", "down"]], ["wait", "go"], thresholds={"delay": 0.5})
    with pytest.raises(hr.errors.InvalidInput, match="another world"):
        forecast_run(other, 100, log=days(view))
    with pytest.raises(hr.errors.InvalidInput, match="not safe"):
        forecast_run(view, 100, baseline=read_policy(view, "wait"), baseline_costs=[0.75])


# Verdicts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "episode"),
    [
        ([0.0, 1.0, 2.0, 3.0], 1),
        ([-1.0, -2.0, 1.0, 2.0], 95),
        ([-1.0, 2.0, -3.0, 4.0], 100),
        ([-1.0, -9.0, -8.0, -6.0], 100 + 15),  # .4 an episode from 95 to 100, and 6 to go
        ([-1.0, -2.0, -3.0, -4.0], None),
    ],
)
def test_when_it_is_paid_back(saved: list[float], episode: int | None) -> None:
    assert paid_back(np.array([1, 10, 95, 100]), np.array(saved)) == episode


def test_one_episode_pays_nothing_back() -> None:
    assert paid_back(np.array([1]), np.array([-1.0])) is None


@pytest.mark.parametrize(
    ("least", "most", "back", "words"),
    [
        (20.0, 40.0, [1, 50], "Yes, by this forecast: of the baseline's loss of 100 it would save 20 to 40 ("),
        (-5.0, 40.0, [50, None], "That depends on what nobody has seen: of the baseline's loss of 100 it would save"),
        (0.2, 0.5, [50, 50], "Hardly: of the baseline's loss of 100 it would save 0.2 to 0.5 (0.2 to 0.5 %)."),
        (-5.0, -5.0, [None, None], "No: of the baseline's loss of 100 it would save -5 (-5.0 %)."),
    ],
)  # fmt: skip
def test_verdicts(least: float, most: float, back: list[int | None], words: str) -> None:
    share = {"least": 0.25, "most": 0.5}
    found = {
        "episodes": 2_000,
        "marks": [{"share": share, "saved": {"least": least, "most": most}}],
        "baseline_loss": {"least": 100.0, "most": 100.0},
        "saved_share": {"least": least / 100, "most": most / 100},
        "paid_back": back,
    }
    text = worth(found)
    assert text.startswith(f"Worth it? {words}")
    assert "Of 2,000 episodes S-OPS would leave 25 to 50 % to the baseline." in text
    assert ("never" in text) == (None in back)
    assert ("episode 1 to 50" in text) == (back == [1, 50])
