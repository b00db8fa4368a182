"""`python -m bench cores` and `python -m bench samples`: the arithmetic on known numbers, then small runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from bench_runs import invoke

from bench import kept_curves, samples
from bench.cores import Cores
from bench.kept_curves import Curves, Task
from bench.samples import Samples, SavingRow, reach
from hedgerow.errors import FileFormatError

SVG = "{http://www.w3.org/2000/svg}"
WORLD = "random (1,3,3,1)x3"


def test_reach_is_for_good() -> None:
    episodes = np.array([1, 10, 100, 1000])
    assert reach(episodes, np.array([0.9, 0.1, 0.5, 0.2]), 0.3) == 1000
    assert reach(episodes, np.array([0.9, 0.3, 0.2, 0.2]), 0.3) == 10
    assert reach(episodes, np.array([0.1, 0.1, 0.1, 0.1]), 0.3) == 1
    assert reach(episodes, np.array([0.1, 0.1, 0.1, 0.4]), 0.3) == np.inf


def curves(preset: str, seed: int, regret: list[float], violation: list[float], learner: str = "S-OPS") -> Curves:
    marks = np.array([10, 100, 1000])
    return Curves(Task(WORLD, learner, preset, 1000, seed), marks, np.array(regret), np.array(violation))


def test_savings_pair_seeds_and_take_medians() -> None:
    quiet = [0.0, 0.0, 0.0]
    found = [
        # Averages at the end 0.5, 0.2, 0.1; sharp is there for good after 100, 1000 and never.
        curves("paper", 0, [9, 90, 500], quiet),
        curves("sharp", 0, [9, 50, 300], quiet),
        curves("paper", 1, [9, 90, 200], quiet),
        curves("sharp", 1, [9, 30, 150], quiet),
        curves("paper", 2, [9, 90, 100], quiet),
        curves("sharp", 2, [9, 90, 300], quiet),
    ]
    regret, violation = samples.rows(found)
    assert (regret.paper, regret.sharp) == (200.0, 300.0)
    assert regret.saving == pytest.approx(np.median([10.0, 1.0, 0.0]))
    assert regret.verdict == "not met"
    assert violation.saving is None
    assert violation.verdict == "no violation"


def test_regret_below_zero_is_no_aim() -> None:
    found = [
        curves("paper", 0, [1, -10, -300], [9, 90, 800], "SV-OPS"),
        curves("sharp", 0, [1, 10, 30], [5, 20, 40], "SV-OPS"),
    ]
    regret, violation = samples.rows(found)
    assert regret.saving is None
    assert regret.verdict == "not positive"
    # 0.5 <= 0.8 from the first checkpoint on: better throughout, but that is not a number of episodes.
    assert violation.saving is None
    assert violation.verdict == "always below"


def test_what_rises_first_counts_from_where_it_stays_below() -> None:
    found = [
        curves("paper", 0, [1, 1, 1], [9, 90, 800], "SV-OPS"),
        curves("sharp", 0, [1, 1, 1], [9, 20, 40], "SV-OPS"),
    ]
    violation = samples.rows(found)[1]
    assert violation.saving == pytest.approx(10.0)  # 0.9 > 0.8, then 0.2
    assert violation.verdict == "met"


def test_verdicts() -> None:
    for saving, verdict in ((5.0, "met"), (4.9, "not met"), (0.0, "not reached")):
        assert SavingRow(WORLD, "S-OPS", 10, "regret", 1.0, 1.0, saving).verdict == verdict


def test_samples_run_and_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Samples(lengths=(50, 300), worlds=(WORLD,))
    monkeypatch.setattr(Samples, "quick", classmethod(lambda cls: tiny))
    shown = invoke("samples", "--quick", "--processes", "1", "--seeds", "2", "--out", str(tmp_path))
    data = json.loads((tmp_path / Samples.json_file).read_text())
    assert [(row["learner"], row["episodes"], row["measure"]) for row in data["figures"]] == [
        (learner, episodes, measure)
        for learner in samples.LEARNERS
        for episodes in (50, 300)
        for measure in samples.MEASURES
    ]
    safe = [row for row in data["figures"] if row["learner"] == "S-OPS" and row["measure"] == "violation"]
    assert all(row["paper"] == row["sharp"] == 0.0 and row["verdict"] == "no violation" for row in safe)
    assert "S-OPS" in shown
    lines = ElementTree.parse(tmp_path / Samples.figure_file).getroot().findall(f"{SVG}polyline")
    assert [line.get("stroke-dasharray") is not None for line in lines] == [True, False]
    assert lines[0].get("stroke") == lines[1].get("stroke")


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Samples(lengths=(40,), seeds=1, processes=1, worlds=(WORLD,), keep=str(tmp_path))
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
    left.extend([1, 1])  # no more than the two that are missing
    again = settings.run()
    assert samples.rows(again) == samples.rows(whole)
    assert samples.rows(settings.run()) == samples.rows(whole)


def test_a_kept_run_under_another_name_is_refused(tmp_path: Path) -> None:
    run = curves("paper", 0, [1, 1, 1], [0, 0, 0])
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
