"""`python -m bench cores` and `python -m bench samples`: the arithmetic on known numbers, then small runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench_runs import invoke

from bench import kept_curves, samples
from bench.cores import Cores
from bench.kept_curves import Curves, Task
from bench.samples import PaperSamples, Samples, SavingRow, reach
from hedgerow.errors import FileFormatError, InvalidInput

WORLD = "random (1,3,3,1)x3"


def test_reach_is_for_good() -> None:
    episodes = np.array([1, 10, 100, 1000])
    assert reach(episodes, np.array([0.9, 0.1, 0.5, 0.2]), 0.3) == 1000
    assert reach(episodes, np.array([0.9, 0.3, 0.2, 0.2]), 0.3) == 10
    assert reach(episodes, np.array([0.1, 0.1, 0.1, 0.1]), 0.3) == 1
    assert reach(episodes, np.array([0.1, 0.1, 0.1, 0.4]), 0.3) == np.inf


def curves(
    variant: str,
    seed: int,
    regret: list[float],
    violation: list[float],
    learner: str = "S-OPS",
    mixing: tuple[float, ...] = (0.9, 0.9, 0.9),
    t_bar: float = 1000.0,
) -> Curves:
    marks = np.array([10, 100, 1000])
    task = Task(WORLD, learner, variant, "own", "safest", 1000, seed)
    sums = np.array(regret, dtype=float), np.array(violation, dtype=float)
    return Curves(task, marks, *sums, np.array(mixing), np.full(3, t_bar))


QUIET = [0.0, 0.0, 0.0]


def test_savings_pair_seeds_and_take_medians() -> None:
    found = [
        # Averages at the end 0.5, 0.2, 0.1; sharpest is there for good after 100, 1000 and never.
        curves("sharp", 0, [9, 90, 500], QUIET),
        curves("sharpest", 0, [9, 50, 300], QUIET),
        curves("sharp", 1, [9, 90, 200], QUIET),
        curves("sharpest", 1, [9, 30, 150], QUIET),
        curves("sharp", 2, [9, 90, 100], QUIET),
        curves("sharpest", 2, [9, 90, 300], QUIET),
        curves("sharpest", 3, [9, 90, 300], QUIET),  # without its reference: left out
    ]
    regret, mixing = samples.rows(found)
    assert (regret.reference, regret.value, regret.seeds) == (200.0, 300.0, 3)
    assert regret.saving == pytest.approx(np.median([10.0, 1.0, 0.0]))
    assert regret.goal is None  # there is none for 1,000 episodes
    assert mixing.note == "always below"


def test_the_weight_of_the_baseline_is_compared_as_it_is() -> None:
    found = [
        curves("sharp", 0, [1, 1, 1], QUIET, mixing=(0.9, 0.8, 0.5)),
        curves("sharpest", 0, [1, 1, 1], QUIET, mixing=(0.9, 0.5, 0.2)),
    ]
    mixing = samples.rows(found)[1]
    assert (mixing.reference, mixing.value, mixing.saving) == (0.5, 0.2, 10.0)


def test_first_phases_are_compared_by_their_length() -> None:
    found = [
        curves("sharp", 0, [1, -10, -300], QUIET, "CV-OPS", t_bar=800.0),
        curves("sharpest", 0, [1, 10, 30], QUIET, "CV-OPS", t_bar=200.0),
    ]
    t_bar, regret = samples.rows(found)
    assert (t_bar.reference, t_bar.value, t_bar.saving) == (800.0, 200.0, 4.0)
    assert regret.verdict == "not positive"


def test_what_rises_first_counts_from_where_it_stays_below() -> None:
    found = [
        curves("sharp", 0, [1, 1, 1], [9, 90, 800], "SV-OPS"),
        curves("sharpest", 0, [1, 1, 1], [9, 20, 40], "SV-OPS"),
    ]
    (violation,) = samples.rows(found)
    assert violation.saving == pytest.approx(10.0)  # 0.9 > 0.8, then 0.2
    (safe,) = samples.rows([curves(name, 0, [1, 1, 1], QUIET, "SV-OPS") for name in ("sharp", "sharpest")])
    assert safe.verdict == "no violation"


def test_the_reference_may_be_another() -> None:
    found = [curves("paper", 0, [9, 90, 500], QUIET), curves("sharp", 0, [9, 50, 300], QUIET)]
    assert samples.rows(found, "paper")[0].saving == 10.0
    assert Samples(reference="paper").variants == ("paper", "sharp")
    assert Samples().variants == ("sharp", "sharpest, no ties", "sharpest")
    with pytest.raises(InvalidInput, match="no variant 'blunt'"):
        _ = Samples(reference="blunt").variants


def test_verdicts() -> None:
    for saving, goal, verdict in (
        (5.0, 5.0, "met"),
        (4.9, 5.0, "not met"),
        (0.0, None, "not reached"),
        (2.0, None, ""),
    ):
        row = SavingRow(WORLD, "S-OPS", "own", "regret", "sharpest", 10, 3, 1.0, 1.0, saving, goal=goal)
        assert row.verdict == verdict


def test_only_worlds_with_ties_are_run_without_them() -> None:
    tasks = Samples(lengths=(10, 100), longest=1000, seeds=2, few_seeds=1).tasks
    assert len(set(tasks)) == len(tasks)
    assert not [task for task in tasks if "random" in task.world and "no ties" in task.variant]
    assert {task.learner for task in tasks if task.episodes == 1000} == {"S-OPS"}
    assert {task.learner for task in Samples(baseline="user").tasks} == {"S-OPS"}


def test_samples_run_and_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Samples(lengths=(50, 300), longest=0, seeds=2, few_seeds=1, worlds=(WORLD,))
    monkeypatch.setattr(Samples, "quick", classmethod(lambda cls: tiny))
    shown = invoke("samples", "--quick", "--processes", "1", "--seeds", "2", "--out", str(tmp_path))
    data = json.loads((tmp_path / Samples.json_file).read_text())
    cells = {(row["learner"], row["losses"], row["episodes"], row["measure"], row["seeds"]) for row in data["figures"]}
    assert {cell[:4] for cell in cells} >= {("S-OPS", "own", 300, "mixing"), ("CV-OPS", "switching", 50, "t_bar")}
    assert "S-OPS" in shown
    lines = [trace["line"] for trace in json.loads((tmp_path / Samples.figure_file).read_text())["data"]]
    assert [line["dash"] for line in lines] == ["dash", "solid"]
    assert lines[0]["color"] == lines[1]["color"]
    points = kept_curves.load_means(tmp_path / "samples.parquet")
    assert {(point.variant, point.length, point.seeds) for point in points} == {("sharp", 300, 2), ("sharpest", 300, 2)}
    assert json.dumps(samples.draw(points, tiny.variants)) == json.dumps(
        json.loads((tmp_path / Samples.figure_file).read_text())
    )


def test_the_figure_is_drawn_from_its_table(tmp_path: Path) -> None:
    found = [curves("sharp", seed, [9, 90, 500 + 20 * seed], QUIET) for seed in range(3)]
    found += [curves("sharpest", 0, [9, 50, 300], QUIET), curves("sharpest", 0, [1, 1, 1], QUIET, "SV-OPS")]
    kept_curves.save_means(tmp_path / "kept.parquet", samples.means(found))
    points = kept_curves.load_means(tmp_path / "kept.parquet")
    assert [(p.variant, p.episode, p.seeds) for p in points[2:4]] == [("sharp", 1000, 3), ("sharpest", 10, 1)]
    assert (points[2].mean, points[2].low) == (520.0, pytest.approx(520 - 4.3027 * 20 / 3**0.5, abs=0.01))
    dashed, solid = samples.draw(points, ("sharp", "sharpest"))["data"]
    assert (dashed["y"], solid["y"]) == ([9, 90, 520], [9, 50, 300])
    assert dashed["error_y"]["array"] == [None, None, pytest.approx(49.7, abs=0.05)]
    assert solid["error_y"]["array"] == [None] * 3  # one seed has no interval
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FileFormatError, match="is no table"):
        kept_curves.load_means(tmp_path / "other.parquet")


def test_baselines_have_names() -> None:
    safest, user = (samples._baseline("dope-factored", kind) for kind in ("safest", "user"))
    assert user.costs[0] == pytest.approx(0.6)  # the budget of the source
    assert safest.costs[0] < user.costs[0]
    half = samples._baseline(WORLD, "user")
    assert half.costs[0] > samples._baseline(WORLD, "safest").costs[0]


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Samples(lengths=(40,), longest=0, seeds=1, processes=1, worlds=(WORLD,), keep=str(tmp_path))
    whole = replace(settings, keep="").run()
    one_run, left = samples.one_run, [1, 1]

    def interrupted(task: Task) -> Curves:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return one_run(task)

    monkeypatch.setattr(samples, "one_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        settings.run()
    assert len(list(tmp_path.iterdir())) == 2
    left.extend([1] * (len(settings.tasks) - 2))  # no more than are missing
    again = settings.run()
    assert samples.rows(again) == samples.rows(whole)
    assert samples.rows(settings.run()) == samples.rows(whole)


def test_a_kept_run_under_another_name_is_refused(tmp_path: Path) -> None:
    run = curves("sharp", 0, [1, 1, 1], [0, 0, 0])
    kept_curves.save(tmp_path, run)
    other = run.task._replace(seed=1)
    (tmp_path / run.task.file_name).rename(tmp_path / other.file_name)
    assert kept_curves.load(tmp_path, [run.task]) == []
    with pytest.raises(FileFormatError, match="another run"):
        kept_curves.load(tmp_path, [other])


def test_throughput_and_speed_up() -> None:
    one, two = Cores(runs=10, episodes=100).figures({1: [2.0, 1.0, 4.0], 2: [1.25, 1.0, 2.0]})
    assert (one.episodes_per_second, one.speed_up) == (500.0, 1.0)
    assert (two.episodes_per_second, two.speed_up) == (800.0, 1.6)


def test_cores_run_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Cores(runs=2, episodes=50, rounds=1, processes=(1,))
    monkeypatch.setattr(Cores, "quick", classmethod(lambda cls: tiny))
    shown = invoke("cores", "--quick", "--out", str(tmp_path))
    (row,) = json.loads((tmp_path / Cores.json_file).read_text())["figures"]
    assert row["speed_up"] == 1.0
    assert row["episodes_per_second"] == pytest.approx(100 / row["time"]["median"])
    assert "100%" in shown


def test_the_comparison_with_paper_has_the_runs_that_its_page_names() -> None:
    tasks = PaperSamples().tasks
    assert len(tasks) == len(set(tasks)) == 208
    assert {task.variant for task in tasks} == {"paper", "sharp"}
    assert {task.learner for task in tasks} == {"S-OPS", "SV-OPS"}
    assert {task.episodes for task in tasks} == {100_000, 1_000_000}
    assert {task.losses for task in tasks} == {"own"}
