"""Sweeps: nothing is run twice, nothing is lost, and the files do not depend on how they were made."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_experiments import NUM_CELLS, SMALL, cell_files, overlooked, small

from hedgerow import results
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.experiments import backends, progress, sweep, worker
from hedgerow.experiments import worker as run_cell
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.progress import Listener
from hedgerow.experiments.spec import CellSpec, cells_of
from hedgerow.experiments.sweep import stored_experiment
from hedgerow.experiments.worker import CellOutcome, Task
from hedgerow.simulation.run import Simulation

SERIAL, TWO = RunOptions(backend="serial"), RunOptions(processes=2)
UNSAFE = SMALL + "baseline = 'margin'\nmargin = 0.4\n"  # more than rho: every s-ops cell fails


class Ears(Listener):
    """Remembers what it heard."""

    def __init__(self, on_finish: Callable[[CellOutcome], None] = lambda outcome: None) -> None:
        self.finished: list[str] = []
        self.repeated: list[str] = []
        self.reasons: Mapping[str, str] = {}
        self.skipped, self.on_finish = -1, on_finish

    def damaged(self, reasons: Mapping[str, str]) -> None:
        self.reasons = reasons

    def start(self, cells: Sequence[CellSpec], num_skipped: int, counts: backends.Counts) -> None:
        self.skipped = num_skipped

    def finish(self, cell: CellSpec, outcome: CellOutcome) -> None:
        assert cell.id == outcome.id
        self.finished.append(cell.id)
        self.on_finish(outcome)

    def again(self, ids: Sequence[str]) -> None:
        self.repeated.extend(ids)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed serial sweep."""
    directory = tmp_path_factory.mktemp("reference") / "out"
    tally = sweep.run_experiment(small(), directory, SERIAL)
    assert (tally.total, tally.done, tally.skipped, tally.complete) == (NUM_CELLS, NUM_CELLS, 0, True)
    return cell_files(directory)


def test_the_directory(tmp_path: Path, reference: dict[str, bytes]) -> None:
    sweep.run_experiment(small(), tmp_path / "out", SERIAL)
    assert cell_files(tmp_path / "out") == reference
    opened = results.open(tmp_path / "out")
    assert {cell.id: cell.hash for cell in opened.cells} == {cell.id: cell.hash for cell in cells_of(small())}
    for entry in opened.manifest["cells"].values():
        assert entry["status"] == "done"
        assert entry["attempts"] == 1
        assert entry["seconds"]["total"] > 0.0
        assert str(os.getpid()) in entry["worker"]
    assert opened.manifest["source"] == SMALL
    assert stored_experiment(tmp_path / "out").as_data() == small().as_data()


@pytest.mark.slow
def test_processes_give_the_same_files(tmp_path: Path, reference: dict[str, bytes]) -> None:
    tally = sweep.run_experiment(small(), tmp_path / "out", TWO)
    assert tally.complete
    assert cell_files(tmp_path / "out") == reference
    workers = {entry["worker"] for entry in results.open(tmp_path / "out").manifest["cells"].values()}
    assert len(workers) == 2
    assert not any(str(os.getpid()) in name for name in workers)


@pytest.mark.slow
def test_a_process_that_dies_costs_time_only(tmp_path: Path, reference: dict[str, bytes]) -> None:
    killed: list[int] = []

    def kill_once(outcome: CellOutcome) -> None:
        if not killed:
            killed.append(int(outcome.worker.rsplit(":", 1)[1]))
            os.kill(killed[0], signal.SIGKILL)

    longer = SMALL.replace("[50, 80]", "[6_000]")  # so that something is under way
    calm = sweep.run_experiment(small(longer), tmp_path / "calm", SERIAL)
    ears = Ears(kill_once)
    tally = sweep.run_experiment(small(longer), tmp_path / "out", TWO, ears)
    assert killed
    assert tally.complete
    assert calm.complete
    assert ears.repeated
    assert cell_files(tmp_path / "out") == cell_files(tmp_path / "calm")
    attempts = {name: entry["attempts"] for name, entry in results.open(tmp_path / "out").manifest["cells"].items()}
    assert max(attempts[name] for name in ears.repeated) >= 2


def test_a_second_call_runs_what_is_missing(tmp_path: Path, reference: dict[str, bytes]) -> None:
    directory = tmp_path / "out"
    some = [cell.id for cell in cells_of(small())][:3]
    first = sweep.run_experiment(small(), directory, replace(SERIAL, only=tuple(some)))
    assert (first.total, first.done) == (3, 3)
    before = {path: path.stat().st_mtime_ns for path in directory.glob("cells/*")}
    with pytest.raises(InvalidInput, match=r"holds results already: 3 finished cells; pass --resume"):
        sweep.run_experiment(small(), directory, SERIAL)
    ears = Ears()
    second = sweep.run_experiment(small(), directory, replace(SERIAL, resume=True), ears)
    assert (second.skipped, second.done, second.complete) == (3, NUM_CELLS - 3, True)
    assert set(ears.finished).isdisjoint(some)
    assert ears.skipped == 3
    assert cell_files(directory) == reference
    assert {path: path.stat().st_mtime_ns for path in before} == before
    third = sweep.run_experiment(small(), directory, replace(SERIAL, resume=True))
    assert (third.skipped, third.done) == (NUM_CELLS, 0)


def test_a_damaged_file_is_made_again(tmp_path: Path, reference: dict[str, bytes]) -> None:
    sweep.run_experiment(small(), tmp_path / "out", SERIAL)
    victim = sorted((tmp_path / "out" / "cells").iterdir())[0]
    blob, ears = bytearray(victim.read_bytes()), Ears()
    blob[len(blob) // 3] ^= 4
    victim.write_bytes(blob)
    tally = sweep.run_experiment(small(), tmp_path / "out", replace(SERIAL, resume=True), ears)
    assert (tally.done, tally.complete) == (1, True)
    assert list(tally.damaged) == [victim.stem] == ears.finished
    assert "is corrupt: its checksum does not fit its content" in ears.reasons[victim.stem]
    assert cell_files(tmp_path / "out") == reference


def test_a_cell_of_another_run_with_the_same_name_is_made_again(tmp_path: Path, reference: dict[str, bytes]) -> None:
    other = small(SMALL.replace("period = 20", "period = 30\nlabel = 'switching-20'"))
    assert {cell.id for cell in cells_of(other)} == {cell.id for cell in cells_of(small())}
    sweep.run_experiment(other, tmp_path / "other", SERIAL)
    sweep.run_experiment(small(), tmp_path / "out", SERIAL)
    victim = sorted((tmp_path / "out" / "cells").iterdir())[0]
    victim.write_bytes((tmp_path / "other" / "cells" / victim.name).read_bytes())
    with pytest.raises(FileFormatError, match="holds a run of another experiment"):
        results.open(tmp_path / "out")
    tally = sweep.run_experiment(small(), tmp_path / "out", replace(SERIAL, resume=True))
    assert (list(tally.damaged), tally.done, tally.complete) == ([victim.stem], 1, True)
    assert cell_files(tmp_path / "out") == reference


def test_a_trace_keeps_every_episode(tmp_path: Path) -> None:
    from hedgerow.results.store import read_table

    name = cells_of(small())[1].id
    sweep.run_experiment(small("trace = true\n" + SMALL), tmp_path / "out", replace(SERIAL, only=(name,)))
    curve, trace = (read_table(tmp_path / "out" / folder / f"{name}.parquet") for folder in ("cells", "traces"))
    assert trace.column("episode").to_pylist() == list(range(1, 51))
    kept = dict(zip(trace.column("episode").to_pylist(), trace.column("loss").to_pylist(), strict=True))
    assert curve.column("loss").to_pylist() == [kept[episode] for episode in curve.column("episode").to_pylist()]
    (tmp_path / "out" / "traces" / f"{name}.parquet").unlink()
    again = sweep.run_experiment(
        small("trace = true\n" + SMALL), tmp_path / "out", replace(SERIAL, only=(name,), resume=True)
    )
    assert (list(again.damaged), again.done) == ([name], 1)
    assert read_table(tmp_path / "out" / "traces" / f"{name}.parquet").equals(trace)


def test_a_trace_costs_no_second_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: dict[str, bytes]
) -> None:
    """One simulation per cell, and the curves have the bits that they have without a trace."""
    begun: list[int] = []

    class Counted(Simulation):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self.seed)

    monkeypatch.setattr(run_cell, "Simulation", Counted)
    sweep.run_experiment(small("trace = true\n" + SMALL), tmp_path / "out", SERIAL)
    assert len(begun) == NUM_CELLS
    found = cell_files(tmp_path / "out")
    assert {path: content for path, content in found.items() if path.startswith("cells/")} == reference
    assert len(found) == 2 * NUM_CELLS


def test_another_experiment_is_refused(tmp_path: Path) -> None:
    sweep.run_experiment(small(), tmp_path / "out", replace(SERIAL, only=(cells_of(small())[0].id,)))
    with pytest.raises(InvalidInput, match="another experiment"):
        sweep.run_experiment(
            small(SMALL.replace("period = 20", "period = 30")), tmp_path / "out", replace(SERIAL, resume=True)
        )


def test_a_failed_cell_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    tally = sweep.run_experiment(overlooked(UNSAFE), tmp_path / "out", SERIAL)
    assert len(tally.failed) == NUM_CELLS // 2 == tally.done
    assert not tally.complete
    assert all("no policy keeps every cost 0.4 below its threshold" in why for why in tally.failed.values())
    opened = results.open(tmp_path / "out")
    failed = [cell for cell in opened.cells if cell.status == "failed"]
    assert {cell.id for cell in failed} == set(tally.failed)
    assert all("no policy keeps" in cell.error for cell in failed)
    again = sweep.run_experiment(overlooked(UNSAFE), tmp_path / "out", replace(SERIAL, resume=True))
    assert (again.skipped, len(again.failed)) == (NUM_CELLS // 2, NUM_CELLS // 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", [RunOptions(backend="serial", fail_fast=True), RunOptions(processes=2, fail_fast=True)]
)
def test_fail_fast_stops(plan: RunOptions, tmp_path: Path) -> None:
    tally = sweep.run_experiment(overlooked(UNSAFE.replace("seeds = 2", "seeds = 20")), tmp_path / "out", plan)
    assert len(tally.failed) == 1
    assert tally.done < 20


def test_an_unforeseen_error_is_a_failure_with_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(worker, "run_cell", broken)
    tally = sweep.run_experiment(small(), tmp_path / "out", SERIAL)
    assert set(tally.failed.values()) == {"ZeroDivisionError: by zero"}
    entry = next(iter(results.open(tmp_path / "out").manifest["cells"].values()))
    assert "in broken" in entry["details"]


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path, reference: dict[str, bytes]) -> None:
    def interrupt(outcome: CellOutcome) -> None:
        if len(ears.finished) == 3:
            raise KeyboardInterrupt

    ears = Ears(interrupt)
    tally = sweep.run_experiment(small(), tmp_path / "out", SERIAL, ears)
    assert tally.interrupted
    assert tally.done == 3
    assert len(json.loads((tmp_path / "out" / "manifest.json").read_text())["cells"]) == 3
    sweep.run_experiment(small(), tmp_path / "out", replace(SERIAL, resume=True))
    assert cell_files(tmp_path / "out") == reference


def test_another_version_on_a_worker_is_refused() -> None:
    cell = cells_of(small())[0]
    outcome = worker.perform(Task(cell, ".", False, "0.0.0"))
    assert "install the same version everywhere" in outcome.error


def test_unknown_cell_and_wrong_plans(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no cell 'x'; the first of 8 is 'first__"):
        sweep.run_experiment(small(), tmp_path / "out", RunOptions(only=("x",)))
    assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInput, match="choose one of loky, serial, dask"):
        RunOptions(backend="threads")
    with pytest.raises(InvalidInput, match="belong together"):
        RunOptions(backend="dask")
    with pytest.raises(InvalidInput, match="belong together"):
        RunOptions(backend="serial", scheduler="tcp://127.0.0.1:1")
    assert RunOptions(scheduler="tcp://127.0.0.1:1").backend == "dask"
    with pytest.raises(InvalidInput, match="at least 1"):
        RunOptions(processes=0)


# The repetition after deaths, without processes -----------------------------------------------------------------------


def tasks(count: int) -> list[Task]:
    cells = (CellSpec({"name": "a"}, {"name": "b"}, {"name": "c"}, 1, 0.1, number, None) for number in range(count))
    return [Task(cell, ".", False, "", cell.seed) for cell in cells]


def run_with_killers(
    monkeypatch: pytest.MonkeyPatch, count: int, killers: dict[int, int]
) -> tuple[list[CellOutcome], int]:
    """All outcomes of `count` tasks on pretended processes; killer k takes its process down `killers[k]` times."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left, begun, deaths = dict(killers), [worker.NOT_BEGUN] * count, 0

    def pretend(batch: Sequence[Task], **_: Any) -> Iterator[CellOutcome]:
        for first in range(0, len(batch), 2):
            pair = batch[first : first + 2]
            for task in pair:
                begun[task.number] = 0
            for task in pair:
                if left.get(task.number, 0):
                    left[task.number] -= 1
                    raise TerminatedWorkerError
            yield from (CellOutcome(task.cell.id, task.number, {}, {}, "") for task in pair)

    def count_death(lost: list[Task]) -> None:
        nonlocal deaths
        deaths += 1
        for task in lost:
            begun[task.number] = worker.NOT_BEGUN

    monkeypatch.setattr(backends, "_parallel", pretend)
    return list(backends.loky(tasks(count), 2, lambda: begun, count_death)), deaths


@pytest.mark.parametrize(("killers", "failures"), [({}, set()), ({3: 1}, set()), ({3: 2}, set()), ({3: 99}, {3})])
def test_deaths_are_survived_and_killers_are_named(
    monkeypatch: pytest.MonkeyPatch, killers: dict[int, int], failures: set[int]
) -> None:
    outcomes, deaths = run_with_killers(monkeypatch, 7, killers)
    assert sorted(outcome.number for outcome in outcomes) == list(range(7))
    assert {outcome.number for outcome in outcomes if outcome.failed} == failures
    assert deaths == min(2, *killers.values()) if killers else deaths == 0
    assert all("its process died 3 times" in outcome.error for outcome in outcomes if outcome.failed)


def test_two_killers_do_not_take_the_innocent_along(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, _ = run_with_killers(monkeypatch, 9, {1: 99, 2: 99})
    assert {outcome.number for outcome in outcomes if outcome.failed} == {1, 2}
    assert len(outcomes) == 9


def test_plain_lines_may_be_patient(capsys: pytest.CaptureFixture[str]) -> None:
    """Many short cells would flood a log: failures and the last cell are told in any case."""
    cells = cells_of(small())[:4]
    for patience, told in ((0.0, [1, 2, 3, 4]), (60.0, [1, 3, 4])):
        lines = progress.ProgressLines(patience)
        lines.start(cells, 0, list)
        for number, cell in enumerate(cells, start=1):
            lines.finish(cell, CellOutcome(cell.id, number, {}, {}, "", "out of luck" if number == 3 else ""))
        shown = capsys.readouterr().err.splitlines()
        assert [int(line[1]) for line in shown] == told
        assert "failed: out of luck" in shown[-2]
