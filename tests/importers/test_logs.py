"""Logs: every kind of source says the same, what may not count does not, and every mistake is named with its place."""

# ruff: noqa: E501 - one line per mistake

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import hedgerow as hr

VIEW = hr.View.of(
    [["home"], ["empty", "full"], ["left", "right"]],
    ["wait", "go"],
    thresholds={"delay": 0.5, "noise": 1.0},
    successors={"empty": ["left"], "full": ["left", "right"]},
)
GOOD: dict[str, list[Any]] = {
    "episode": ["a", "a", "a", "b", "b", "c"],
    "step": [0, 1, 2, 0, 1, 0],
    "state": ["home", "full", "right", "home", "empty", "home"],
    "action": ["go", "wait", "go", "wait", "wait", "go"],
    "next_state": [None, None, None, None, "left", None],
    "delay": [0.0, 1.0, 0.5, 0.25, 0.0, 1.0],
    "noise": [1.0, 0.0, 0.0, 0.0, 0.125, 0.0],
}
"""a is complete, b was cut short, c as well, and nobody knows where its step led to."""


def changed(**columns: Any) -> dict[str, Any]:
    """GOOD with other columns; None takes one away."""
    return {name: values for name, values in {**GOOD, **columns}.items() if values is not None}


def read(source: Any, view: hr.View = VIEW, **options: Any) -> hr.Log:
    """GOOD needs a word on its open end."""
    return hr.Log.read(view, source, **{"open_ends": True, **options})


def content(log: hr.Log) -> list[Any]:
    return [np.nan_to_num(getattr(log, name), nan=-1.0).tolist() for name in ("starts", "rows", "triples", "costs")] + [
        part if isinstance(part, bool | tuple) else part.tolist() for part in log.gaps
    ]


class Speaking:
    """A table of some other package that speaks Arrow."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Converting:
    """One that only converts."""

    columns = ()

    def __init__(self, table: Any) -> None:
        self._table = table

    def to_arrow(self) -> Any:
        return self._table


def pandas_frame(table: Any, folder: Path) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas()


def polars_frame(table: Any, folder: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def in_file(write: Callable[[Any, str], Any]) -> Callable[[Any, Path], Any]:
    def source(table: Any, folder: Path) -> Any:
        write(table, str(folder / "log"))
        return folder / "log"

    return source


def write_ipc(table: Any, path: str, *, stream: bool) -> None:
    with pa.OSFile(path, "wb") as sink, (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as out:
        out.write_table(table)


def encoded(table: Any, folder: Path) -> Any:
    return pa.table({name: table[name].dictionary_encode() for name in table.column_names})


def numbered(table: Any, folder: Path) -> Any:
    """Numbers in the place of labels, in other types: missing ones make floats of them."""
    layout = VIEW.layout
    states = np.array([layout.state(x) for x in GOOD["state"]])
    following = [np.nan if x is None else float(layout.state(x)) for x in GOOD["next_state"]]
    return {
        **{name: np.array(GOOD[name]) for name in ("episode", "delay", "noise")},
        "step": np.array(GOOD["step"], dtype=np.uint8),
        "state": states.astype(np.int16),
        "action": [layout.action(a) for a in GOOD["action"]],
        "next_state": np.array(following),
    }


def by_row(table: Any, folder: Path) -> Any:
    rows = [VIEW.layout.row(x, a) for x, a in zip(GOOD["state"], GOOD["action"], strict=True)]
    return changed(state=None, action=None, row=rows)


def shuffled(table: Any, folder: Path) -> Any:
    """The lines of an episode are not together; episodes begin in the same order."""
    return table.take(pa.array([2, 4, 0, 5, 1, 3]))


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "table": lambda table, folder: table,
    "chunks": lambda table, folder: pa.concat_tables([table.slice(0, 2), table.slice(2)]),
    "batch": lambda table, folder: table.combine_chunks().to_batches()[0],
    "mapping": lambda table, folder: GOOD,
    "arrays": numbered,
    "rows": by_row,
    "shuffled": shuffled,
    "without steps": lambda table, folder: changed(step=None),
    "dictionaries": encoded,
    "speaking": lambda table, folder: Speaking(table),
    "converting": lambda table, folder: Converting(table),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "parquet": in_file(parquet.write_table),
    "feather": in_file(feather.write_feather),
    "ipc": in_file(lambda table, path: write_ipc(table, path, stream=False)),
    "ipc stream": in_file(lambda table, path: write_ipc(table, path, stream=True)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_says_the_same(kind: str, tmp_path: Path) -> None:
    log = read(SOURCES[kind](pa.table(GOOD), tmp_path))
    layout = VIEW.layout
    assert log.starts.tolist() == [0, 3, 5, 6]
    pairs = zip(GOOD["state"], GOOD["action"], strict=True)
    assert log.rows.tolist() == [layout.row(x, a) for x, a in pairs]
    led_to = ["full", "right", "end", "empty", "left"]
    assert [layout.state_labels[layout.successor[j]] for j in log.triples[:-1]] == led_to  # type: ignore[index]
    assert log.triples[-1] == -1
    np.testing.assert_array_equal(log.costs, np.column_stack((GOOD["delay"], GOOD["noise"])))
    assert (len(log), log.num_steps, log.num_prefixes, log.num_open, log.num_unknown) == (3, 6, 2, 1, 2)
    assert log.gaps.with_costs
    assert log.view is VIEW


def test_the_order_of_episodes_is_that_of_their_first_lines() -> None:
    log = read(pa.table(GOOD).take(pa.array([5, 1, 2, 4, 0, 3])))
    assert log.starts.tolist() == [0, 1, 4, 6]


def test_episodes_are_a_log() -> None:
    whole = hr.Episode(VIEW, [("home", "go"), ("full", "wait"), ("right", "go")], [0.5] * 3, [[0, 1], [1, 0], [0.5, 0]])
    cut = hr.Episode(VIEW, [("home", "wait"), ("empty", "wait")], [0, 0], [[0.25, 0], [0, 0.125]], ended_in="left")
    table = pa.table(GOOD).slice(0, 5)
    assert content(read([whole, cut])) == content(read(table))
    assert content(read(iter((whole, cut)))) == content(read(table))
    assert content(hr.Log.read(VIEW, whole)) == content(hr.Log.read(VIEW, table.slice(0, 3)))
    overridden = hr.Episode(VIEW, whole.rows, whole.losses, whole.costs, overridden_from=1)
    silent = hr.Episode(VIEW, whole.rows, whole.losses, unknown_costs=True, independent="power cut")
    log = read([whole, overridden, silent, hr.Episode.missing(VIEW)])
    assert log.gaps.overridden.tolist() == [-1, 1, -1, -1]
    assert log.gaps.reason.tolist() == [-1, -1, 0, -1]
    assert (log.num_unknown, log.num_independent) == (2, 1)
    assert np.isnan(log.costs[6:]).all()
    assert np.isnan(read([whole, cut], costs=False).costs).all()
    known = read([whole, cut, overridden], VIEW.knowing(independent_costs=True))
    assert (known.num_unknown, known.num_independent) == (0, 0)
    assert read([whole, cut, overridden], independent="a drill").num_independent == 2
    with pytest.raises(hr.errors.InvalidInput, match="episode 3 of the log has no steps: a table"):
        log.table()
    for wrong, message in (
        ([], "at least one episode"),
        ([whole, 3], "entry 1 of the log is 3, not a hedgerow Episode"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.Log.read(VIEW, wrong)
    with pytest.raises(hr.errors.InvalidInput, match="entry 0 of the log is an episode of another world"):
        hr.Log.read(hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5}), [whole])
    with pytest.raises(hr.errors.InvalidInput, match="episodes have none"):
        hr.Log.read(VIEW, [whole], columns={"state": "soc"})


def test_what_is_not_known_is_said_by_columns_and_options() -> None:
    log = read(changed(overridden=[False, True, True, None, None, None]))
    assert log.gaps.overridden.tolist() == [1, -1, -1]
    assert log.num_unknown == 3
    some = read(changed(independent=pa.array([None] * 3 + ["power cut"] * 2 + ["a drill"])))
    assert (some.gaps.reason.tolist(), some.gaps.reasons) == ([-1, 0, 1], ("power cut", "a drill"))
    assert (some.num_unknown, some.num_independent) == (0, 2)
    assert read(GOOD, independent="power cut").num_independent == 2
    known = VIEW.knowing(independent_costs=True)
    assert read(GOOD, known).num_unknown == 1  # a move
    assert len(read(GOOD, hr.View(VIEW.layout, [], ()))) == 3
    with pytest.raises(hr.errors.InvalidInput, match=r"episode 'c', step 0 \(line 5\) is the last .* open_ends=True"):
        read(GOOD, open_ends=False)


def test_costs_may_be_missing_if_that_is_said() -> None:
    silent = read(changed(delay=None, noise=None), costs=False)
    assert np.isnan(silent.costs).all()
    assert (silent.num_unknown, silent.gaps.with_costs) == (1, False)  # one move
    lines = changed(noise=[1.0, 0.0, 0.0, None, float("nan"), 0.0], unknown_costs=[False] * 3 + [True] * 2 + [False])
    log = read(lines)
    assert np.isnan(log.costs[3:5, 1]).all()
    assert log.gaps.unknown.tolist() == [[False, False]] * 3 + [[False, True]] * 2 + [[False, False]]
    assert content(read({**lines, "unknown_costs": [False] * 6}, unknown_costs=True)) == content(log)
    with pytest.raises(hr.errors.InvalidInput, match=r"the cost 'noise' at episode 'b', step 0 \(line 3\) is missing"):
        read({**lines, "unknown_costs": [False] * 6})


def test_names_of_columns() -> None:
    one = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
    lines = {"episode": [1, 2], "state": [0, 0], "action": ["go", "wait"]}
    expected = content(hr.Log.read(one, {**lines, "delay": [0.5, True]}))
    assert content(hr.Log.read(one, {**lines, "cost": [0.5, 1.0]})) == expected
    assert content(hr.Log.read(one, {**lines, "x": [0.5, 1.0]}, columns={"delay": "x"})) == expected
    assert content(hr.Log.read(one, {**lines, "x": [0.5, 1.0], "cost": [2.0, 2.0]}, columns={"delay": "x"})) == expected
    soc = {"run": [1, 2], "soc": ["home", "home"], "do": [1, 0], "cost": [0.5, 1.0], "losses": ["?", "?"]}
    names = {"episode": "run", "state": "soc", "action": "do"}
    assert content(hr.Log.read(one, soc, columns=names)) == expected
    taken = hr.View.of([["home"]], ["wait", "go"], thresholds={"state": 0.5, "cost": 0.5})
    log = hr.Log.read(taken, {**lines, "cost:state": [0.5, 1.0], "cost": [0.0, 0.0]})
    assert log.costs.tolist() == [[0.5, 0.0], [1.0, 0.0]]
    assert content(hr.Log.read(taken, log.table())) == content(log)


NAN, INF = float("nan"), float("inf")
WRONG: list[tuple[dict[str, Any], str]] = [
    (changed(episode=None), "no column 'episode' .which lines belong together.; its columns are step, state"),
    (changed(episode=None, episodes=GOOD["episode"]), "no column 'episode' .*did you mean 'episodes'.*columns={'episode'"),
    (changed(state=None, stat=GOOD["state"]), "no column 'state' .*did you mean 'stat'"),
    (changed(action=None), "no column 'action' .it belongs to 'state'."),
    (changed(state=None, action=None), "no column 'state' .*or 'row'"),
    (changed(noise=None), "no column 'noise' .*costs=False"),
    (changed(episode=["a", "a", "a", "b", None, "c"]), "line 4 of the log has no 'episode'"),
    (changed(step=[0, 1, 2, 0, 2, 0]), r"step 1 of episode 'b' is missing: after step 0 comes step 2 \(line 4\)"),
    (changed(step=[0, 1, 1, 0, 1, 0]), "step 1 of episode 'a' is there twice, in the lines 1 and 2"),
    (changed(step=[1, 2, 3, 1, 2, 1]), r"the column 'step' is 3 at episode 'a' \(line 2\); .* in 0..2"),
    (changed(step=[0, 1, 2, 1, 2, 0]), r"episode 'b' begins with step 1 \(line 3\); steps are counted from 0"),
    (changed(step=[0, 1, 2, 0, 1, 0.5]), "the column 'step' is 0.5 at episode 'c'"),
    (changed(step=[0, 1, None, 0, 1, 0]), r"no step at episode 'a' \(line 2\)"),
    (changed(step=["0", "1", "2", "0", "1", "0"]), "the column 'step' must hold whole numbers; its type is string"),
    (changed(step=None, episode=["a"] * 6), "episode 'a' has more than 3 lines"),
    (changed(state=["home", "ful", "right", "home", "empty", "home"]), "'ful' at episode 'a', step 1 .*mean 'full'"),
    (changed(action=["go", "wait", "og", "wait", "wait", "go"]), "'og' at episode 'a', step 2 .*no action 'og'; known: wait, go"),
    (changed(state=[0, 2, 9, 0, 1, 0]), r"the column 'state' is 9 at episode 'a', step 2 \(line 2\); .* in 0..5"),
    (changed(state=[0, -1, 4, 0, 1, 0]), "the column 'state' is -1 at episode 'a', step 1"),
    (changed(state=["home", None, "right", "home", "empty", "home"]), "no state at episode 'a', step 1"),
    (changed(action=["go", None, "go", "wait", "wait", "go"]), "no action at episode 'a', step 1"),
    (changed(state=["home", "full", "end", "home", "empty", "home"]), "step 2 .* terminal state, .* leave that line out"),
    (changed(state=["full", "full", "right", "home", "empty", "home"]), "step 0 .* layer 1, state 'full', .*starts in layer 0"),
    (changed(state=["home", "right", "right", "home", "empty", "home"]), "step 1 .* is layer 2, .*; step 1 is in layer 1"),
    (changed(state=["home", "empty", "right", "home", "empty", "home"]), r"episode 'a', step 1 \(line 1\) is impossible: .*'empty', action 'wait' cannot lead to .*'right'"),
    (changed(next_state=[None, None, None, None, "right", None]), "episode 'b', step 1 .* impossible"),
    (changed(next_state=["empty", None, None, None, "left", None]), "step 0 .* next_state layer 1, state 'empty', but the episode goes on in layer 1, state 'full'"),
    (changed(next_state=[None, None, "left", None, "left", None]), "step 2 .* next_state layer 2, state 'left', but"),
    (changed(next_state=[None, None, None, None, "letf", None]), "'letf' at episode 'b', step 1 .*no state 'letf'; did you mean 'left'"),
    (changed(delay=[0.0, NAN, 0.5, 0.25, 0.0, 1.0]), r"the cost 'delay' at episode 'a', step 1 \(line 1\) is missing"),
    (changed(delay=[0.0, INF, 0.5, 0.25, 0.0, 1.0]), "'delay' is inf at episode 'a', step 1 .*divide by the largest"),
    (changed(delay=[0.0, 1.0, 0.5, 25.0, 0.0, 1.0]), r"'delay' is 25.0 at episode 'b', step 0 \(line 3\); losses and costs lie in \[0, 1\]"),
    (changed(noise=[0.0, -0.5, 0.5, 0.25, 0.0, 1.0]), "'noise' is -0.5 at episode 'a', step 1"),
    (changed(noise=["high"] * 6), "the column 'noise' must hold numbers; its type is string"),
    (changed(overridden=[1] * 6), "'overridden' must be True or False; its type is int64"),
    (changed(independent=[True] * 6), "'independent' must hold texts; its type is bool"),
    (changed(independent=["x", "y", "x", "x", "x", "x"]), "independent at episode 'a', step 1 .* differs from that of step 0"),
    (changed(row=[0, 0, 0, 0, 0, 0]), "'row' is 0 at episode 'a', step 0 .*, but its state and action are row 1"),
    (changed(state=None, action=None, row=[1, 4, 99, 0, 2, 1]), "'row' is 99 at episode 'a', step 2"),
    (changed(step=[0, 1]), "the log is no table"),
    (changed(delay=[[0.0], [1.0]]), "the log is no table"),
    (changed(delay=0.5), "the column 'delay' of the log must be a list of values"),
    (changed(delay=[0.0, "a", 1, 1, 1, 1]), "the column 'delay' of the log must hold values of one kind"),
    (changed(delay=np.ma.masked_array(np.zeros(6), [0, 1, 0, 0, 0, 0])), "'delay' has masked entries"),
    ({name: [] for name in GOOD}, "the log is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), WRONG, ids=range(len(WRONG)))
def test_mistakes_are_named(lines: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        read(lines)


def test_wrong_arguments() -> None:
    plain = hr.View(hr.Layout((1, 2, 2, 1), 2), [1.0], ["delay"])
    for view, source, options, message in (
        (VIEW, 3, {}, "a log is the path of a CSV, Parquet or Arrow file, .* not an object of the class int"),
        (VIEW, np.zeros(3), {}, "not an object of the class ndarray"),
        (VIEW.layout, GOOD, {}, "read for a view, .* not for an object of the class Layout"),
        (VIEW, read(GOOD), {}, "a Log already"),
        (VIEW, GOOD, {"open_ends": None}, "open_ends is True or False, not None"),
        (VIEW, GOOD, {"costs": "yes"}, "costs is True or False, not 'yes'"),
        (VIEW, GOOD, {"unknown_costs": 1}, "unknown_costs is True or False, not 1"),
        (VIEW, GOOD, {"independent": ""}, "the reason, in words"),
        (VIEW, GOOD, {"columns": ["state"]}, "columns is a mapping"),
        (VIEW, GOOD, {"columns": {"stat": "state"}}, "renames 'stat', which no log has; did you mean 'state'"),
        (VIEW, GOOD, {"columns": {"state": "stat"}}, "'state' is called 'stat', .* did you mean 'state'"),
        (plain, GOOD, {}, "'state' holds labels, but the states of this view have none; give numbers in 0..5"),
        (VIEW, pa.table([[1], [1]], names=["a", "a"]), {}, "several columns that are called 'a'"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.Log.read(view, source, **options)  # type: ignore[arg-type]


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    whole = tmp_path / "log.parquet"
    parquet.write_table(pa.table(GOOD), whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "log.txt").write_text("episode,step\n1,0\n")
    (tmp_path / "cut.csv").write_text("episode,step\n1,0,7\n")
    (tmp_path / "cut.arrow").write_bytes(b"ARROW1\0\0")
    for name, message in (
        ("nowhere", "no such file"),
        ("", "no such file"),
        ("cut.parquet", "damaged"),
        ("cut.arrow", "damaged"),
        ("log.txt", "no CSV, Parquet or Arrow file; read it with what you have, such as pandas"),
        ("cut.csv", "damaged"),
    ):
        with pytest.raises(hr.errors.FileFormatError, match=message):
            hr.Log.read(VIEW, tmp_path / name)


def test_written_logs_are_read_back(tmp_path: Path) -> None:
    noise, why = [1.0, None, 0.0, 0.0, 0.125, 0.0], [None] * 3 + ["power cut"] * 2 + [None]
    log = read(changed(noise=noise, independent=why, overridden=[False, False, True] * 2), unknown_costs=True)
    log.write(tmp_path / "log.parquet")
    assert content(read(tmp_path / "log.parquet")) == content(log)
    assert parquet.read_table(tmp_path / "log.parquet")["state"].to_pylist() == GOOD["state"]
    with pytest.raises(hr.errors.InvalidInput, match="exists already"):
        log.write(tmp_path / "log.parquet")
    silent = read(GOOD, costs=False)
    silent.write(tmp_path / "log.parquet", overwrite=True)
    assert content(read(tmp_path / "log.parquet", costs=False)) == content(silent)
    with pytest.raises(hr.errors.InvalidInput, match="without them pass costs=False"):
        read(tmp_path / "log.parquet")
    assert repr(silent) == (
        "Log(3 episodes, 6 steps, 2 cut short, 1 without their last transition, 1 with unknown values, "
        "3 whose costs do not count)"
    )
    with pytest.raises(ValueError, match="read-only"):
        log.rows[0] = 1


def test_logs_that_were_played() -> None:
    world = hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=2, constraints=2).cmdp
    uniform, slater = hr.Policy.uniform(world), hr.Policy(world, hr.offline.slater(world).policy)
    log = hr.Log.played(world, uniform, 4000, seed=3)
    assert (len(log), log.num_steps, log.num_unknown) == (4000, 12_000, 0)
    assert content(hr.Log.read(world.view(), log.table())) == content(log)
    assert content(hr.Log.played(world, uniform.probabilities, 4000, seed=3)) == content(log)
    q = hr.occupancy.occupancy(world.layout, world.transitions, uniform.probabilities)
    seen = np.bincount(log.triples, minlength=world.layout.num_triples) / 4000
    np.testing.assert_allclose(seen, q, atol=0.03)
    mixed = hr.Log.played(world, hr.Mixture((0.25, uniform), (0.75, slater)), 4000, seed=3)
    half = 0.25 * q + 0.75 * hr.occupancy.occupancy(world.layout, world.transitions, slater.probabilities)
    np.testing.assert_allclose(np.bincount(mixed.triples, minlength=len(q)) / 4000, half, atol=0.03)
    costs = np.array([np.bincount(log.rows, c, minlength=world.layout.num_rows) for c in log.costs.T])
    visits = np.bincount(log.rows, minlength=world.layout.num_rows)
    np.testing.assert_allclose(costs / visits, world.mean_costs, atol=0.1)
    with pytest.raises(hr.errors.InvalidInput, match="another layout"):
        hr.Log.played(world, hr.Policy.uniform(hr.Layout((1, 1), 2)), 3)


def test_costs_of_any_class_are_logged() -> None:
    class Coin(hr.costs.CostDistribution):
        """All pairs cost the same in an episode."""

        def __init__(self, means: np.ndarray) -> None:
            self.means = means

        def sample(self, rng: np.random.Generator) -> np.ndarray:
            return np.full(self.means.shape, float(rng.random() < 0.5))

        def arrays(self) -> dict[str, np.ndarray]:
            return {"means": self.means}

    layout = hr.Layout((1, 2, 1), 2)
    world = hr.CMDP(layout, [0.25, 0.75] * 2 + [1.0] * 4, Coin(np.full((1, layout.num_rows), 0.5)), [1.0])
    log = hr.Log.played(world, hr.Policy.uniform(world), 200, seed=1)
    both = log.costs[:, 0].reshape(200, 2)
    np.testing.assert_array_equal(both[:, 0], both[:, 1])
    assert 60 < both[:, 0].sum() < 140
