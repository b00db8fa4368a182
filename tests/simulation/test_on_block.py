"""`on_block`: a function that sees the run between blocks, and changes nothing about it; and those of `hr.hooks`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.simulation.result import CURVES

WORLD = hr.worlds.make("lower-bound-2")


def safe_learner(episodes: int = 60) -> hr.SOPS:
    return hr.SOPS(WORLD, episodes, baseline="slater")


@pytest.mark.parametrize("step_wise", [False, True])
def test_the_run_is_seen_between_blocks_and_stays_the_same(step_wise: bool) -> None:
    seen: list[hr.results.Run] = []
    options: dict[str, Any] = {"seed": 5, "step_wise": step_wise, "progress": False, "losses": "iid"}
    plain, watched = safe_learner(), safe_learner()
    first = hr.simulate(WORLD, plain, **options)
    second = hr.simulate(WORLD, watched, on_block=seen.append, **options)
    for name in CURVES:
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    for name, values in first.notes.items():
        assert np.array_equal(values, second.notes[name], equal_nan=True), name
    assert dict(first.facts) == dict(second.facts)
    for name, array in plain.state().items():
        assert np.array_equal(array, watched.state()[name]), name
    played = [int(run.episodes[-1]) for run in seen]
    assert played == sorted(played)
    assert played[0] == 1 < played[1] < played[-1] == 60
    assert np.array_equal(seen[-1].regret, second.regret)
    assert np.array_equal(seen[1].loss, second.at(seen[1].episodes).loss)


@pytest.mark.parametrize("step_wise", [False, True])
def test_an_exception_ends_the_run_between_episodes(step_wise: bool) -> None:
    learner = safe_learner()

    def stop(run: hr.results.Run) -> None:
        if run.episodes[-1] >= 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hr.simulate(WORLD, learner, step_wise=step_wise, progress=False, on_block=stop)
    assert 3 <= learner.episode < 60
    assert not learner.open_plans
    left = 60 - learner.episode
    assert hr.simulate(WORLD, learner, progress=False).episodes[-1] == left
    assert learner.episode == 60


def test_the_learner_is_at_rest_meanwhile(tmp_path: Path) -> None:
    learner = safe_learner(8)

    def keep(run: hr.results.Run) -> None:
        hr.save(run.learner, tmp_path / f"{run.episodes[-1]}.npz")

    hr.simulate(WORLD, learner, progress=False, on_block=keep)
    assert hr.load(tmp_path / "3.npz").episode == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("step_wise", [False, True])
def test_a_run_does_not_go_on_with_a_learner_that_played_elsewhere(step_wise: bool) -> None:
    learner, rng = safe_learner(), np.random.default_rng(0)

    def meddle(run: hr.results.Run) -> None:
        learner.observe(WORLD.cmdp.play(learner.plan().policy, rng, WORLD.loss))

    with pytest.raises(InvalidInput, match="has played elsewhere; begin a new simulation"):
        hr.simulate(WORLD, learner, step_wise=step_wise, progress=False, on_block=meddle)


def test_what_is_no_function_is_refused() -> None:
    learner = safe_learner()
    with pytest.raises(InvalidInput, match=r"on_block is a function of the run so far, not .* str"):
        hr.simulate(WORLD, learner, on_block="plot")  # type: ignore[arg-type]
    assert learner.episode == 0


class Recorder(ModuleType):
    """A stand-in for a package that logs."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.logged: list[tuple[dict[str, float], int]] = []
        self.options: dict[str, Any] = {}

    def init(self, **options: Any) -> Recorder:
        self.options = options
        return self

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.logged.append((numbers, step))

    log_metrics = log


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_numbers_of_every_new_checkpoint_are_logged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Recorder(name)
    monkeypatch.setitem(sys.modules, name, package)
    hook = hr.hooks.wandb(project="charging") if name == "wandb" else hr.hooks.mlflow()
    run = hr.simulate(WORLD, safe_learner(), progress=False, marks=[1, 2, 60], on_block=hook)
    steps = [step for _, step in package.logged]
    assert steps == sorted(set(steps))
    assert set(steps) <= {1, 2, 60}
    assert steps[-1] == 60
    last = package.logged[-1][0]
    assert last["regret"] == run.regret[-1]
    assert last["mixing_weight"] == run["mixing_weight"][-1]
    assert last["violation_0"] == run.violations[-1, 0]
    assert package.options == ({"project": "charging"} if name == "wandb" else {})


@pytest.mark.parametrize("name", ["wandb", "mlflow", "tensorboard", "IPython"])
def test_a_package_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = {
        "wandb": hr.hooks.wandb, "mlflow": hr.hooks.mlflow, "tensorboard": lambda: hr.hooks.tensorboard("logs"),
        "IPython": hr.hooks.live_plot,
    }  # fmt: skip
    for module in (name, f"{name}.summary", f"{name}.display"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(HedgerowError, match=f"this needs the package {name.lower()}: pip install {name.lower()}"):
        hooks[name]()


def test_tensorboard_reads_what_is_written(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from tensorboard.util.tensor_util import make_ndarray

    run = hr.simulate(WORLD, safe_learner(), progress=False, marks="all", on_block=hr.hooks.tensorboard(tmp_path))
    found = reader.EventAccumulator(str(tmp_path))
    found.Reload()
    regrets = {event.step: float(make_ndarray(event.tensor_proto)) for event in found.Tensors("regret")}
    assert max(regrets) == 60
    assert regrets[60] == pytest.approx(run.regret[-1], rel=1e-6)
    assert {"loss", "cost_0", "mixing_weight"} <= set(found.Tags()["tensors"])


def test_a_live_plot_is_one_figure_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, Any]] = []

    def display(figure: Any, display_id: bool) -> Any:
        assert display_id
        shown.append(("new", figure))
        return SimpleNamespace(update=lambda figure: shown.append(("again", figure)))

    monkeypatch.setattr(pytest.importorskip("IPython.display"), "display", display)
    hr.simulate(WORLD, safe_learner(), progress=False, on_block=hr.hooks.live_plot("regret"))
    assert [word for word, _ in shown] == ["new", *["again"] * (len(shown) - 1)]
    assert len(shown) > 2
    assert shown[-1][1].layout.title.text == "Regret"
