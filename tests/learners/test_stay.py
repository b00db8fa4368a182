"""The rule when to stay with the baseline: against a slow twin, in notes and words, in files, in the ledger."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.forecast.model import Forecaster, LambdaForecast, assumed_model
from hedgerow.learners.ops.settings import make_settings
from hedgerow.learners.ops.stay import stay_limit
from hedgerow.model.layout import Layout

T = 20_000
FAMILY = (hr.SOPS, hr.BOPS, hr.COPS)


def small_world() -> Any:
    return hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=2, constraints=1, seed=4)


def make(cls: Any, world: Any, **more: Any) -> Any:
    return cls(world, episodes=T, delta=0.05, baseline="offered", **{"stay": "forecast", **more})


def play(learner: Any, world: Any, losses: Any, rng: np.random.Generator) -> tuple[Any, float]:
    """One episode with losses (num_rows,); its plan and what it lost."""
    plan = learner.plan()
    episode = world.cmdp.play(plan.policy, rng, losses)
    learner.observe(episode)
    return plan, float(episode.losses.sum())


@pytest.mark.parametrize("cls", FAMILY)
def test_it_stays_as_long_as_the_baseline_has_lost_little(cls: Any) -> None:
    """The twin keeps a list of what the baseline lost; the limit is written out from the layout and the forecast."""
    world, rng = small_world(), np.random.default_rng(3)
    learner, layout = make(cls, world), world.cmdp.layout
    caster = Forecaster(learner.view, assumed_model(learner.view), learner.baseline_costs, T, 0.05)
    own = LambdaForecast(caster, T).explored(T)
    sizes = [layout.triples(k).stop - layout.triples(k).start for k in range(layout.steps)]
    limit = min(sqrt(2.0 * sum(map(log, sizes)) * layout.num_rows / own), layout.steps + 1.0)
    assert learner.core.state.stay.limit == pytest.approx(limit)
    learner.core.state.stay.limit = limit = 0.2  # where both happens
    seen: list[float] = []
    stayed = []
    for t in range(80):
        scale = 0.5 if 20 <= t < 40 else 0.02
        before = learner.core.state.log_weight.copy()
        plan, lost = play(learner, world, rng.random(layout.num_rows) * scale, rng)
        staying = np.mean(seen) < limit if seen else True
        stayed.append(staying)
        assert plan.notes["staying"] == float(staying)
        assert plan.explain().startswith("baseline, because it loses so little") == staying
        if staying:
            assert (plan.mixing_weight, plan.branch) == (1.0, "baseline")
            assert np.all(learner.core.buffers.trace.estimate == 0.0)
        elif plan.branch == "own":
            assert not np.array_equal(before, learner.core.state.log_weight)
        if plan.branch == "baseline":
            seen.append(lost)
    assert {True, False} <= set(stayed[1:])
    assert learner.core.state.stay.losses == pytest.approx(sum(seen))
    assert learner.core.state.stay.episodes == len(seen)


def test_a_limit_is_never_left_if_the_own_policy_never_plays() -> None:
    layout = Layout((1, 2, 1), 2)
    entropy = log(4.0) + log(4.0)
    assert stay_limit(layout, entropy, 800.0) == pytest.approx(sqrt(2.0 * entropy * 6 / 800.0))
    assert stay_limit(layout, entropy, 0.0) == stay_limit(layout, entropy, 1e-6) == 3.0
    assert stay_limit(layout, 0.0, 0.0) == 3.0


def test_a_baseline_without_a_margin_is_never_left() -> None:
    view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
    baseline = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.5])
    learner = hr.SOPS(view, episodes=10, delta=0.01, baseline=baseline, allow_no_margin=True, stay="forecast")
    for _ in range(3):
        assert learner.plan().notes["staying"] == 1.0
        learner.observe([("home", "go")], losses=[1.0], costs=[0.0])


def test_nothing_is_said_of_the_regret_if_it_is_never_left() -> None:
    view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
    baseline = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.45])
    learner = hr.SOPS(view, episodes=10, delta=0.01, baseline=baseline, stay="forecast")
    assert "always stays" in learner.guarantees()["regret"].void_because
    assert learner.guarantees()["safety"].holds


@pytest.mark.parametrize("cls", FAMILY)
def test_both_ways_of_running_and_a_file_between_them_agree(cls: Any, tmp_path: Path) -> None:
    world = small_world()
    ends = []
    for way in (False, True):
        learner = make(cls, world, seed=1)
        learner.core.state.stay.limit = 0.9 * float(world.loss @ baseline_occupancy(world, learner))
        hr.simulate(world, learner, episodes=60, seed=2, progress=False, step_wise=way)
        learner.save(tmp_path / "kept.hr", overwrite=True)
        learner = hr.load(tmp_path / "kept.hr")
        hr.simulate(world, learner, episodes=60, seed=3, progress=False, step_wise=way)
        ends.append(learner.state_arrays())
    assert ends[0]["stay"][2] > 0.0
    for name, array in ends[0].items():
        assert np.array_equal(array, ends[1][name]), name


def baseline_occupancy(world: Any, learner: Any) -> Any:
    cmdp = world.cmdp
    return hr.model.occupancy.row_occupancy(
        cmdp.layout, hr.model.occupancy.occupancy(cmdp.layout, cmdp.transitions, learner.baseline)
    )


def test_off_is_the_default_and_leaves_no_trace() -> None:
    learner = make(hr.SOPS, small_world(), stay="off")
    assert "stay" not in learner.state_arrays()
    assert "staying" not in learner.plan().notes
    assert "stays" not in learner.guarantees()["regret"].statement


def test_the_ledger_says_what_staying_adds() -> None:
    world = small_world()
    on, off = make(hr.SOPS, world).guarantees(), make(hr.SOPS, world, stay="off").guarantees()
    learner = make(hr.SOPS, world)
    L, limit = learner.layout.steps, learner.core.state.stay.limit
    added = T * limit + L + L * sqrt(T * log(1.0 / 0.05) / 2.0)
    assert f"adds at most {added:,.0f}" in on["regret"].statement
    assert on["mixing"].statement.endswith("and it does not stay")
    assert on["safety"] == off["safety"]
    assert learner._budget.sure(0) - on["regret"].probability > learner._budget.sure(0) - off["regret"].probability


def test_an_outcome_that_comes_late_is_learnt_as_it_was_planned() -> None:
    """A plan that stayed makes no step of mirror descent, whatever the rule has come to say since."""
    view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
    baseline = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
    learner = hr.SOPS(view, episodes=100, delta=0.01, baseline=baseline, stay="forecast")
    learner.max_open = 2
    plans = [learner.plan(), learner.plan()]
    assert [plan.notes["staying"] for plan in plans] == [1.0, 1.0]
    for plan in plans:
        learner.observe([("home", "go")], losses=[1.0], costs=[0.0], plan=plan)
        assert learner.core.state.stay.now == 0.0
        assert learner.core.buffers.trace.estimate.tolist() == [0.0]
    assert learner.core.state.stay.losses == 2.0


def test_an_episode_that_is_not_whole_counts_as_the_worst() -> None:
    world, rng = small_world(), np.random.default_rng(0)
    learner = make(hr.SOPS, world)
    play(learner, world, np.zeros(learner.layout.num_rows), rng)
    plan = learner.plan()
    row = int(np.argmax(plan.policy.probabilities[: learner.layout.num_actions]))
    learner.observe(hr.Episode(learner.view, [row], [0.0], np.zeros((1, 1)), ended_in=1))
    assert learner.core.state.stay.losses == learner.layout.steps


def test_another_number_of_episodes_has_another_limit() -> None:
    world, rng = small_world(), np.random.default_rng(0)
    learner = make(hr.SOPS, world)
    for _ in range(5):
        play(learner, world, np.full(learner.layout.num_rows, 0.25), rng)
    longer = learner.with_episodes(100 * T)
    fresh = hr.SOPS(world, episodes=100 * T, delta=0.05, baseline="offered", stay="forecast")
    assert longer.core.state.stay.limit == fresh.core.state.stay.limit < learner.core.state.stay.limit
    assert longer.core.state.stay.losses == learner.core.state.stay.losses > 0.0


def test_it_needs_a_number_of_episodes() -> None:
    with pytest.raises(InvalidInput, match="needs the number of episodes"):
        make(hr.SOPS, small_world(), horizon="doubling")
    with pytest.raises(InvalidInput, match="stay is 'always'; choose one of off, forecast"):
        make(hr.SOPS, small_world(), stay="always")
    with pytest.raises(InvalidInput, match="no switch 'stay'"):
        make_settings("sharp", {"stay": "forecast"}, hr.CVOPS.switches, "CVOPS")


def test_while_it_stays_its_weight_is_no_breach_of_the_mixing_promise() -> None:
    """T8 and the bound of lambda by the widths are about episodes in which it does not stay."""
    world = small_world()
    learner = make(hr.SOPS, world)
    learner.core.state.stay.limit = 100.0
    run = hr.simulate(world, learner, episodes=50, progress=False, audit=True)
    assert run["mixing_weight"].max() == 1.0
    assert run.facts["mixing_over"] <= 1e-9


@pytest.mark.parametrize(
    "stay", [[9.0, 0.0, 0.0, 1.0], [0.1, 0.0, 3.0, 1.0], [0.1, 9.0, 1.0, 0.0], [0.1, 0.0, 1.0, 0.5]]
)
def test_a_file_with_numbers_that_cannot_be_is_refused(stay: list[float]) -> None:
    world, rng = small_world(), np.random.default_rng(0)
    learner = make(hr.SOPS, world)
    play(learner, world, np.zeros(learner.layout.num_rows), rng)
    state = dict(learner.state())
    assert hr.SOPS.restored(learner.view, dict(state)).core.state.stay.episodes == 1.0
    with pytest.raises(InvalidInput, match=r"state\.stay"):
        hr.SOPS.restored(learner.view, {**state, "stay": np.array(stay)})
