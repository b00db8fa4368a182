"""Names in tables: a number is what the axis says, and a CSV file holds text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr

CODES = """state,action,next_state,loss,fault
0456,true,0x10,0.1,0.9
0456,false,NA,0.9,0.1
0x10,true,end,0.1,0.9
0x10,false,end,0.9,0.1
NA,true,end,0.1,0.9
NA,false,end,0.9,0.1
"""


def plant(actions: tuple[Any, Any] = (1, 0)) -> Any:
    """Its first action costs .9, its second one .05."""
    lines = {"state": ["on", "on"], "action": list(actions), "next_state": ["end", "end"]}
    return hr.from_table({**lines, "loss": [0.0, 1.0], "fault": [0.9, 0.05]}, thresholds={"fault": 0.3})


def days(count: int, seed: int = 0) -> dict[str, Any]:
    """Days of the plant, whose action 1 is the costly one."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 2, count)
    fault = (rng.random(count) < np.where(action == 1, 0.9, 0.05)).astype(float)
    return {"episode": np.arange(count), "state": ["on"] * count, "action": action, "fault": fault}


def as_text(values: Any) -> list[str]:
    return [str(value) for value in values]


def written(table: dict[str, Any], path: Path) -> Path:
    lines = [",".join(table), *(",".join(map(str, line)) for line in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_plant_with_actions_1_and_0_is_not_read_swapped(tmp_path: Path) -> None:
    world, table = plant(), days(400)
    assert world.view().action_labels == ("1", "0")
    textual = {**table, "action": as_text(table["action"])}
    for source in (table, textual, written(table, tmp_path / "days.csv")):
        log = hr.Log.read(world.view(), source)
        costs = [float(log.costs[log.rows == row].mean()) for row in (0, 1)]
        assert costs[0] > 0.8
        assert costs[1] < 0.15
    again = tmp_path / "again.parquet"
    log.write(again)
    assert hr.Log.read(world.view(), again).rows.tolist() == log.rows.tolist()


def test_it_stays_safe_with_such_a_log() -> None:
    """Read swapped, the log proves that the costly action is cheap."""
    world, table = plant(), days(1500)
    baseline = hr.SafePolicy(hr.Policy.of(world, 0), costs=[0.05])
    learner = hr.SOPS(world.view(), 1000, 0.05, "sharpest", baseline=baseline)
    learner.absorb(table)
    run = hr.simulate(world, learner, episodes=1000)
    assert int(run.unsafe[-1]) == 0


@pytest.mark.parametrize(
    ("labels", "column", "rows"),
    [
        (("1", "0"), [1, 0, 1], [0, 1, 0]),
        (("1", "0"), ["0", "1", "1"], [1, 0, 0]),
        (("1.0", "0.5"), [0.5, 1.0, 0.5], [1, 0, 1]),
        (("fast", "slow"), [1, 0, 1], [1, 0, 1]),
        (("fast", "slow"), [1.0, 0.0, 1.0], [1, 0, 1]),
        (None, [1, 0, 1], [1, 0, 1]),
    ],
)
def test_what_a_column_of_actions_means(labels: Any, column: list[Any], rows: list[int]) -> None:
    view = hr.View(hr.Layout((1, 1), 2).labelled(None, labels), [0.5], ["fault"])
    table = {"episode": [0, 1, 2], "state": [0] * 3, "action": column, "fault": [0.0] * 3}
    assert hr.Log.read(view, table).rows.tolist() == rows


@pytest.mark.parametrize(
    ("labels", "column", "message"),
    [
        (("1", "0"), [1, 2, 0], r"'action' is 2 at episode 1, step 0 \(line 1\); there is no action 2: labels of act"),
        (("1", "0"), [1.0, 0.0, 1.0], r"is 1.0 at episode 0, .*no action 1.0: .*'1' is written otherwise"),
        (("01", "00"), [1, 0, 1], r"no action 1: .*'01' is written otherwise"),
        (("1", "0"), ["1", "01", "0"], r"is '01' at episode 1.*no action '01'; '1' is written otherwise"),
        (("1", "0"), [True, False, True], "must hold labels or whole numbers; its type is bool"),
        (("a", "b"), ["1", "0", "1"], "no action '1'"),
        (("1", "0"), [1, None, 0], "there is no action at episode 1"),
        (("1.5", "0.5"), [1.5, float("nan"), 0.5], "there is no action at episode 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_with_its_place(labels: Any, column: list[Any], message: str) -> None:
    view = hr.View(hr.Layout((1, 1), 2).labelled(None, labels), [0.5], ["fault"])
    table = {"episode": [0, 1, 2], "state": [0] * 3, "action": column, "fault": [0.0] * 3}
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.Log.read(view, table)


def test_names_in_csv_files_are_text(tmp_path: Path) -> None:
    (tmp_path / "world.csv").write_text(CODES)
    world = hr.from_table(tmp_path / "world.csv", thresholds={"fault": 1.5})
    view = world.view()
    assert view.state_labels == ("0456", "0x10", "NA", "end")
    assert view.action_labels == ("true", "false")
    lines = ["episode,state,action,next_state,fault", "007,0456,true,,1", "007,0x10,false,,0", "7,0456,false,,0", "7,NA,true,end,1"]  # noqa: E501  # fmt: skip
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = hr.Log.read(view, tmp_path / "log.csv")
    assert len(log) == 2  # 007 and 7 are two episodes
    assert log.rows.tolist() == [view.layout.row("0456", "true"), view.layout.row("0x10", "false"), view.layout.row("0456", "false"), view.layout.row("NA", "true")]  # noqa: E501  # fmt: skip
    (tmp_path / "bad.csv").write_text("\n".join([lines[0], "1,456,true,,1"]) + "\n")
    with pytest.raises(
        hr.errors.InvalidInput, match=r"'state' is '456' at .*no state '456'; '0456' is written otherwise"
    ):
        hr.Log.read(view, tmp_path / "bad.csv")


def test_csv_files_may_hold_positions(tmp_path: Path) -> None:
    for labels in (None, ("fast", "slow")):
        view = hr.View(hr.Layout((1, 1), 2).labelled(None, labels), [0.5], ["fault"])
        (tmp_path / "log.csv").write_text("episode,state,action,fault\na,0,1,1\nb,0,0,0\n")
        assert hr.Log.read(view, tmp_path / "log.csv").rows.tolist() == [1, 0]
        (tmp_path / "log.csv").write_text("episode,state,action,fault\na,0,01,1\nb,0,0,0\n")
        with pytest.raises(hr.errors.InvalidInput, match="'01'"):
            hr.Log.read(view, tmp_path / "log.csv")


def test_renamed_columns_of_csv_files_are_text_too(tmp_path: Path) -> None:
    text = CODES.replace("state,action,next_state", "soc,what,to")
    (tmp_path / "world.csv").write_text(text)
    columns = {"state": "soc", "action": "what", "next_state": "to"}
    world = hr.from_table(tmp_path / "world.csv", {"fault": 1.5}, columns=columns)
    assert world.view().state_labels == ("0456", "0x10", "NA", "end")
    (tmp_path / "log.csv").write_text("day,soc,what,to,fault\n01,0456,true,,1\n01,0x10,false,,0\n")
    log = hr.Log.read(world.view(), tmp_path / "log.csv", columns={"episode": "day", **columns})
    assert log.num_steps == 2
