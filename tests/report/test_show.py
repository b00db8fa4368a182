"""`run.plot()` and `results.plot()`: the right figure under every name, an overview, and helpful refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import made_directory

import hedgerow as hr
from hedgerow import results
from hedgerow.errors import InvalidInput


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return results.open(made_directory(tmp_path_factory.mktemp("show") / "out", seeds=3))


@pytest.fixture(scope="module")
def run() -> Any:
    world = hr.worlds.make("lower-bound-2")
    learner = hr.SVOPS(world.cmdp.view(), episodes=60, delta=0.1, preset="paper")
    return hr.simulate(world.cmdp, learner, world.loss, seed=0, progress=False)


@pytest.mark.parametrize(
    ("what", "title"),
    [
        ("regret", "Regret"),
        ("regret-growth", "Regret, both axes logarithmic"),
        ("violation", "Violation"),
        ("margin", "Margin: {0}"),
        ("margin-0", "Margin: {0}"),
        ("margin-1", "Margin: {1}"),
        ("mixing", "Mixing weight"),
    ],
)
def test_every_figure_of_the_page_has_a_name(found: Any, what: str, title: str) -> None:
    from plotly.graph_objects import Figure

    names = found.groups[0].constraints
    figure = found.plot(what)
    assert isinstance(figure, Figure)
    assert figure.layout.title.text == title.format(*names)
    assert figure.layout.title.subtitle.text == "toy, switching 100, 1,000 episodes"
    assert figure.layout.showlegend is True
    assert {trace.name for trace in figure.data if trace.showlegend is not False} == {"s-ops sharp", "sv-ops"}


def test_constraints_and_their_margins(found: Any) -> None:
    names = found.groups[0].constraints
    assert found.plot(names[1]).to_dict() == found.plot("margin-1").to_dict()
    line = next(trace for trace in found.plot("margin").data if trace.name == "s-ops sharp")
    assert line.y[-1] == pytest.approx(0.1)  # the made runs stay 0.1 below their thresholds


def test_an_overview_has_panels_and_one_legend(found: Any) -> None:
    figure = found.plot()
    assert {trace.xaxis for trace in figure.data} == {"x", "x2", "x3", "x4"}
    in_legend = [trace.name for trace in figure.data if trace.showlegend]
    assert in_legend == ["s-ops sharp", "sv-ops"]
    groups = {trace.legendgroup for trace in figure.data}
    assert groups == {"s-ops sharp", "sv-ops"}  # a band is switched off with its line
    labels = [figure.layout[f"yaxis{end}"].title.text for end in ("", 2, 3, 4)]
    assert labels[0].startswith("regret")
    assert labels[2] == f"margin: {found.groups[0].constraints[0]}"
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.yaxis3.domain[1] < figure.layout.yaxis.domain[0]
    assert figure.layout.shapes[0].yref == "y3"  # the forbidden region stays with its margin


def test_a_run_is_drawn_with_its_own_numbers(run: Any) -> None:
    figure = run.plot("regret")
    assert np.allclose(figure.data[0].x, run.episodes)
    assert np.allclose(figure.data[0].y, run.regret_so_far, rtol=1e-5)
    assert len({trace.xaxis for trace in run.plot().data}) >= 2


def test_a_figure_without_content_says_why(run: Any) -> None:
    figure = run.plot("mixing")
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text == "No learner here mixes with a safe baseline."


def test_notebooks_draw_it_without_the_network(run: Any) -> None:
    from plotly.io import renderers

    bundle = renderers["plotly_mimetype"].to_mimebundle(run.plot("regret").to_dict())
    assert list(bundle) == ["application/vnd.plotly.v1+json"]
    assert "http" not in str(bundle)


def test_unknown_names_are_refused_with_those_that_exist(found: Any) -> None:
    with pytest.raises(InvalidInput, match=r"no figure 'regrets'; did you mean 'regret'"):
        found.plot("regrets")
    with pytest.raises(
        InvalidInput, match=r"no figure 'xyzzy'; known: saved, regret, regret-growth, violation, margin-0"
    ):
        found.plot("xyzzy")
    with pytest.raises(InvalidInput, match="named by a text, not by 3"):
        found.plot(3)


def test_a_sweep_with_several_settings_asks_which(tmp_path: Path) -> None:
    several = results.open(made_directory(tmp_path / "out", seeds=1, worlds=("toy", "game")))
    with pytest.raises(InvalidInput, match=r"2 settings that fit: say which; choose \(world='game', adversary="):
        several.plot("regret")
    assert several.plot("regret", world="game").layout.title.subtitle.text.startswith("game, ")
    with pytest.raises(InvalidInput, match="no world 'toys' in these results; did you mean 'toy'"):
        several.plot(world="toys")
    with pytest.raises(InvalidInput, match="no episodes 5 in these results; known: 1000"):
        several.plot(episodes=5)
    with pytest.raises(InvalidInput, match="no adversary 'x'"):
        several.plot(adversary="x")


class Bell:
    """An environment of which nobody knows the truth."""

    def __init__(self) -> None:
        self._view = hr.View(hr.Layout((1, 1, 1), 2), [1.0], ["noise"])

    def view(self) -> hr.View:
        return self._view

    def play(self, policy: hr.Policy, rng: np.random.Generator) -> hr.Episode:
        actions = [policy.draw(state, rng) for state in range(2)]
        return hr.Episode(self._view, list(enumerate(actions)), [0.5 * a for a in actions], [1.0 - a for a in actions])


def test_where_nobody_knows_the_truth_an_overview_has_what_was_observed() -> None:
    sampled = hr.simulate(
        Bell(), hr.SVOPS(Bell().view(), episodes=40, delta=0.1, preset="paper"), seed=0, progress=False
    )
    labels = {sampled.plot().layout[name].title.text for name in ("yaxis", "yaxis2")}
    assert labels == {"loss per episode", "cost per episode: noise"}
    for name, title in (("observed_loss", "Loss"), ("loss", "Loss"), ("noise", "Cost: noise"), ("cost", "Cost: noise")):
        assert sampled.plot(name).layout.title.text == title
    drawn = sampled.plot("cost-0")
    assert [shape.y0 for shape in drawn.layout.shapes] == [1.0]  # the threshold
    sums = np.array([0.0, *sampled["observed_cost_0"]])
    means = np.diff(sums) / np.diff(np.array([0, *sampled.episodes]))
    np.testing.assert_allclose(drawn.data[0].y, means, rtol=1e-5)
    with pytest.raises(InvalidInput, match="no figure 'regret'; known: loss, cost-0, mixing"):
        sampled.plot("regret")
