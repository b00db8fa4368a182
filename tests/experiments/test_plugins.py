"""Worlds, adversaries and learners of others in an experiment: what is built, what is refused, what workers get."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiments import cell_files, small

import hedgerow as hr
from hedgerow import registry
from hedgerow.errors import InvalidInput
from hedgerow.experiments import backends, components, plugins
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.spec import Experiment, cells_of
from hedgerow.experiments.sweep import run_experiment, stored_experiment
from hedgerow.experiments.worker import CellOutcome, Task, own_version, perform, run_cell
from hedgerow.registry import plugins as loading
from nightly import daily

PLUGIN = '''\
"""Everything that one can bring along."""
import numpy as np
import hedgerow as hr


def meadow(width: int = 2, slack: float = 0.5):
    """One step, `width` actions."""
    layout = hr.Layout((1, 1), width)
    costs = hr.costs.BernoulliCosts([np.linspace(0.1, 0.9, width)])
    return hr.CMDP(layout, [1.0] * width, costs, [slack]), np.linspace(1.0, 0.0, width)


class Hill:
    """A world that is a class."""
    def __init__(self):
        self.cmdp, self.loss = meadow(3)


def bare():
    return meadow()[0]


class Foe:
    """Alternates."""
    def __init__(self, period: int, seed: int = 0):
        self.period, self.seed = period, seed % 2  # a seed has up to 64 bits

    def block(self, layout, first, count):
        turn = (np.arange(first, first + count) // self.period + self.seed) % 2
        return np.repeat(turn[:, None], layout.num_rows, axis=1).astype(float)


class Watchful:
    """Adaptive."""
    def start(self, layout):
        self.layout = layout

    def loss(self, episode):
        return np.full(self.layout.num_rows, 0.25)

    def observe(self, episode, policy, trajectory):
        pass


def always(layout, first, count):
    """Losses of one half."""
    return np.full((count, layout.num_rows), 0.5)


class Tuned(hr.SVOPS):
    """SV-OPS under another name."""


class Greedy:
    """Plays uniformly, and remembers what it was given."""
    def __init__(self, view, episodes: int, delta, seed=0, *, rate: float = 0.5, rounds: int, given=None):
        if rate > 1.0:
            raise ValueError("rate is too large")
        self.view, self.episodes, self.delta, self.seed = view, episodes, delta, seed
        self.rate, self.rounds, self.given = rate, rounds, given

    def plan(self):
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode):
        pass


class Knowing:
    def __init__(self, view, transitions, baseline, baseline_costs):
        self.view, self.transitions, self.baseline, self.costs = view, transitions, baseline, baseline_costs

    plan = observe = None


class Careful:
    def __init__(self, view, baseline=None):
        self.view, self.baseline = view, baseline

    plan = observe = None


class NoLearner:
    def __init__(self, view):
        pass


class Blind:
    def __init__(self, rate=1.0):
        pass
'''
PLAIN = """\
seeds = 2
episodes = 40
[[world]]
name = "mine.py:meadow"
width = 3
[[adversary]]
name = "mine.py:Foe"
period = 5
[[learner]]
name = "mine.py:Tuned"
"""


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in plugins.TABLES.values():
        monkeypatch.setattr(table, "_registered", {})
    monkeypatch.setattr(loading, "_loaded", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN)
    return tmp_path


def changed(folder: Path, old: str = "0.5", new: str = "0.5 + 0.0") -> None:
    text = PLUGIN.replace(old, new)
    assert text != PLUGIN
    (folder / "mine.py").write_text(text)


def learner_of(folder: Path, **given: Any) -> Any:
    cmdp = hr.worlds.make("lower-bound-1").cmdp
    part = components.complete_learner(given, folder)
    return components.build_learner(part, components.BuiltWorld(cmdp), 30, 0.05, 7, folder)


# Descriptions ---------------------------------------------------------------------------------------------------------


def test_a_description_says_which_code_was_run(folder: Path) -> None:
    (cell, _) = cells_of(small(PLAIN, folder))
    origin = {"sha256": loading.text_digest(PLUGIN)}
    assert cell.id == "meadow-width=3__Foe-5__Tuned__T40__seed0"
    assert cell.world == {"name": "mine.py:meadow", "plug-in": origin, "width": 3}
    assert cell.adversary == {"name": "mine.py:Foe", "plug-in": origin, "period": 5}
    assert cell.learner == {"name": "mine.py:Tuned", "plug-in": origin, "preset": "sharpest"}


def test_another_source_is_another_cell(folder: Path) -> None:
    before = cells_of(small(PLAIN, folder))
    changed(folder, "Alternates.", "Alternates in turn.")
    after = cells_of(small(PLAIN, folder))
    assert {cell.id for cell in before} == {cell.id for cell in after}
    assert {cell.hash for cell in before}.isdisjoint(cell.hash for cell in after)


def test_built_in_names_have_no_origin() -> None:
    assert all(components.PLUG_IN not in part for cell in cells_of(small()) for part in cell.parts)


def test_a_cell_refuses_other_code_than_it_describes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cells_of(small(PLAIN, folder))[0]
    monkeypatch.setattr(loading, "_loaded", {})  # as in another process
    changed(folder)
    with pytest.raises(InvalidInput, match=r"the source of mine.py:meadow has changed since this experiment was begun"):
        run_cell(cell, folder)


# Worlds and adversaries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "actions", "own"), [("meadow", 2, True), ("Hill", 3, True), ("bare", 2, False)])
def test_what_a_world_may_return(folder: Path, name: str, actions: int, own: bool) -> None:
    part = components.complete_world({"name": f"mine.py:{name}"}, 10, folder)
    built = components.build_world(part, folder)
    cmdp, loss = built.cmdp, built.loss
    assert cmdp.layout.num_actions == actions
    assert (loss is not None) == own
    text = PLAIN.replace('"mine.py:meadow"\nwidth = 3', f'"mine.py:{name}"')
    assert small(text, folder).worlds[0].label == name


def test_the_catalogue_makes_worlds_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    world = hr.worlds.make("mine.py:meadow", width=4)
    assert (world.cmdp.layout.num_actions, world.golden, world.description) == (4, None, "One step, `width` actions.")
    with pytest.raises(InvalidInput, match="bare has no loss of its own"):
        hr.worlds.make("mine.py:bare")
    with pytest.raises(InvalidInput, match="has no parameter 'with'; did you mean 'width'"):
        hr.worlds.make("mine.py:meadow", **{"with": 4})


@pytest.mark.parametrize(("name", "extra"), [("Foe", {"period": 3}), ("Watchful", {}), ("always", {})])
def test_what_an_adversary_may_be(folder: Path, name: str, extra: dict[str, Any]) -> None:
    part = components.complete_adversary({"name": f"mine.py:{name}", **extra}, 10, folder)
    adversary = components.build_adversary(part, 1, None, folder)
    layout = hr.Layout((1, 1), 2)
    if name == "Watchful":
        adversary.start(layout)
        assert adversary.loss(0).tolist() == [0.25, 0.25]
    else:
        first = 0.5 if name == "always" else 1.0  # the cell's seed is 1: the second pattern comes first
        assert adversary.block(layout, 0, 1).dense().tolist() == [[first, first]]


def test_a_cell_with_plug_ins_is_what_one_would_write_by_hand(folder: Path) -> None:
    cell = cells_of(small(PLAIN, folder))[0]
    done = run_cell(cell, folder)

    seeds = cell.seeds
    module = loading.load_text(PLUGIN, "elsewhere.py").module
    cmdp, _ = module.meadow(3)
    foe = hr.losses.checked(module.Foe(5, seeds.adversary))
    run = hr.simulate(cmdp, hr.SVOPS(cmdp.view(), 40, seed=seeds.learner), foe, seed=seeds.simulation, progress=False)
    assert np.array_equal(done.run.regret, run.regret)
    assert np.array_equal(done.run.violation, run.violation)


# Learners -------------------------------------------------------------------------------------------------------------


def test_a_constructor_gets_what_it_asks_for(folder: Path) -> None:
    learner = learner_of(folder, name="mine.py:Greedy", rounds=3, rate=1, given=["a", 1])
    assert (learner.episodes, learner.delta, learner.seed) == (30, 0.05, 7)
    assert (learner.rate, learner.rounds, learner.given) == (1.0, 3, ["a", 1])
    assert type(learner.rate) is float


def test_transitions_and_baseline(folder: Path) -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp
    slater = hr.offline.slater(cmdp)
    knowing = learner_of(folder, name="mine.py:Knowing", known_transitions=True)
    assert np.array_equal(knowing.transitions, cmdp.transitions)
    assert np.array_equal(knowing.baseline, slater.policy)
    assert np.array_equal(knowing.costs, slater.costs)
    assert learner_of(folder, name="mine.py:Careful").baseline is None
    careful = learner_of(folder, name="mine.py:Careful", baseline="slater").baseline
    assert np.array_equal(careful.costs, slater.costs)
    bolder = learner_of(folder, name="mine.py:Careful", margin=0.1).baseline
    assert bolder.costs[0] <= cmdp.thresholds[0] - 0.1 + 1e-9


def test_a_subclass_of_ours_keeps_its_switches(folder: Path) -> None:
    part = components.complete_learner({"name": "mine.py:Tuned", "preset": "sharp", "radii": "anytime"}, folder)
    assert part == {
        "name": "mine.py:Tuned",
        "plug-in": {"sha256": loading.text_digest(PLUGIN)},
        "preset": "sharp",
        "radii": "anytime",
    }
    with pytest.raises(components.SpecError, match="has no switch 'sigma'"):
        components.complete_learner({"name": "mine.py:Tuned", "sigma": "safe"}, folder)


HEAD = 'seeds = 1\nepisodes = 10\n[[world]]\nname = "lower-bound-1"\n[[adversary]]\nname = "own"\n[[learner]]\n'
# (the table of the learner from line 8 on, the line to blame, words of the message)
MALFORMED: dict[str, tuple[str, int, str]] = {
    "unknown parameter": ('name = "mine.py:Greedy"\nrounds = 1\nrat = 1\n', 10, "has no parameter 'rat'; did you mean"),
    "missing parameter": ('name = "mine.py:Greedy"\n', 7, "learner 1: mine.py:Greedy needs the parameter 'rounds'"),
    "wrong type": ('name = "mine.py:Greedy"\nrounds = 1.5\n', 9, "rounds: rounds must be a whole number, not 1.5"),
    "a date": ('name = "mine.py:Greedy"\nrounds = 1\ngiven = 1979-05-27\n', 10, "given must be a number, a text, true"),
    "not finite": ('name = "mine.py:Greedy"\nrounds = 1\ngiven = [nan]\n', 10, "given must be a number, a text, true"),
    "given by the experiment": ('name = "mine.py:Greedy"\nrounds = 1\ndelta = 0.1\n', 10, "has no parameter 'delta'"),
    "raises": ('name = "mine.py:Greedy"\nrounds = 1\nrate = 2\n', 8, "line 58: ValueError: rate is too large"),
    "no preset": ('name = "mine.py:Greedy"\nrounds = 1\npreset = "sharp"\n', 10, "has no parameter 'preset'"),
    "no transitions": (
        'name = "mine.py:Greedy"\nrounds = 1\nknown_transitions = true\n',
        10,
        "cannot know the transitions",
    ),
    "needs transitions": (
        'name = "mine.py:Knowing"\n',
        7,
        "has to know the transitions: write known_transitions = true",
    ),
    "unknown baseline": ('name = "mine.py:Careful"\nbaseline = "hope"\n', 9, "choose one of slater, budget"),
    "impossible margin": ('name = "mine.py:Careful"\nmargin = 0.4\n', 9, "in the world 'lower-bound-1': no policy"),
    "no learner": ('name = "mine.py:NoLearner"\n', 8, "which is no learner: it has no 'view'"),
    "no view": ('name = "mine.py:Blind"\n', 8, "is no learner: its constructor has no parameter 'view'"),
    "not there": ('name = "mine.py:Gredy"\n', 8, "has no 'Gredy'; it has: meadow"),
    "no file": ('name = "yours.py:Greedy"\n', 8, "cannot read"),
    "broken file": ('name = "broken.py:Greedy"\n', 8, "broken.py, line 2: ZeroDivisionError"),
    "no module": ('name = "no_such_package.x:Greedy"\n', 8, "cannot import no_such_package.x: ModuleNotFoundError"),
    "a function of the system": ('name = "os:system"\ncommand = "true"\n', 8, "os:system"),
    "unknown name": ('name = "gready"\n', 8, "unknown learner 'gready'; known: sv-ops"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_mistake_is_known_by_its_line(name: str, folder: Path) -> None:
    text, line, words = MALFORMED[name]
    (folder / "broken.py").write_text("x = 0\n1 / x\n")
    with pytest.raises(InvalidInput) as refusal:
        small(HEAD + text, folder)
    message = str(refusal.value)
    assert message.startswith(f"small.toml, line {line}, learner 1"), message
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (
            '"mine.py:meadow"\nwidth = 3',
            '"mine.py:meadow"\nwith = 3',
            5,
            "has no parameter 'with'; did you mean 'width'",
        ),
        ('"mine.py:meadow"\nwidth = 3', '"mine.py:meadow"\nwidth = 0', 3, "mine.py:meadow fails: "),
        (
            '"mine.py:meadow"\nwidth = 3',
            '"mine.py:Blind"',
            3,
            "must return a CMDP, a pair (CMDP, loss) or WorldDefinition",
        ),
        ('"mine.py:Foe"\nperiod = 5', '"mine.py:Foe"', 6, "mine.py:Foe needs the parameter 'period'"),
        ('"mine.py:Foe"\nperiod = 5', '"mine.py:Foe"\nperiod = 0.5', 8, "period must be a whole number, not 0.5"),
        ('"mine.py:Foe"\nperiod = 5', '"mine.py:Blind"', 6, "Blind is no adversary: it needs start, loss and observe"),
        ('"mine.py:Foe"\nperiod = 5', '"mine.py:always"\nfirst = 1', 8, "has no parameter 'first'"),
        ('"mine.py:Foe"\nperiod = 5', '"mine.py:Foee"', 7, "has no 'Foee'"),
    ],
)
def test_mistakes_in_worlds_and_adversaries(old: str, new: str, line: int, words: str, folder: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        small(PLAIN.replace(old, new), folder)
    assert f"line {line}, " in str(refusal.value)
    assert words in str(refusal.value)


def test_losses_of_others_are_looked_at_before_the_run(folder: Path) -> None:
    changed(folder, "astype(float)", "astype(float) + 1.5")
    with pytest.raises(InvalidInput, match=r"adversary 1: mine.py:Foe fails: the loss of episode 0 is .* must lie in"):
        small(PLAIN, folder)
    changed(folder, "turn = (np", "turn = (nump")
    with pytest.raises(InvalidInput, match=r"mine.py:Foe fails: .*mine.py, line \d+: NameError: name 'nump'"):
        small(PLAIN, folder)


# Sweeps ---------------------------------------------------------------------------------------------------------------


def test_resume_never_mixes_two_versions(folder: Path) -> None:
    out = folder / "out"
    assert run_experiment(small(PLAIN, folder), out, RunOptions(backend="serial")).complete
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["plug_ins"]["mine.py:Tuned"]["text"] == PLUGIN
    assert run_experiment(stored_experiment(out), out, RunOptions(backend="serial", resume=True)).skipped == 2
    changed(folder)
    with pytest.raises(InvalidInput, match=r"out holds results of another version of mine.py:Foe: restore its source"):
        run_experiment(stored_experiment(out), out, RunOptions(backend="serial", resume=True))


def tasks_of(experiment: Experiment, folder: str) -> list[Task]:
    """The tasks of a sweep, whose workers find nothing in `folder`."""
    packer = plugins.PluginCollector(experiment.folder)
    return [
        Task(cell, folder, False, own_version(), number=number, luggage=packer.pack(*cell.parts))
        for number, cell in enumerate(cells_of(experiment))
    ]


def content(outcomes: list[CellOutcome]) -> dict[str, bytes]:
    assert [outcome.error for outcome in outcomes] == [""] * len(outcomes)
    return {path: blob for outcome in outcomes for path, blob in outcome.files.items()}


def test_a_worker_needs_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks_of(small(PLAIN, folder), "/nowhere")[0]
    (folder / "mine.py").unlink()
    monkeypatch.setattr(loading, "_loaded", {})
    outcome = perform(task)
    assert not outcome.failed, outcome.error
    monkeypatch.setattr(loading, "_loaded", {})
    assert "cannot read /nowhere/mine.py" in perform(replace(task, luggage=plugins.PluginBundle())).error


def test_luggage_is_packed_once(folder: Path) -> None:
    first, second = tasks_of(small(PLAIN, folder), "")
    assert first.luggage is second.luggage
    assert first.luggage.files == ((str(folder / "mine.py"), PLUGIN),)
    assert plugins.PluginCollector(folder).pack(*cells_of(small())[0].parts) == plugins.PluginBundle()


@pytest.mark.nightly  # without processes: test_a_worker_needs_no_file; with processes: test_compare.py
def test_loky_workers_get_the_text(folder: Path) -> None:
    experiment = small(PLAIN, folder)
    tasks = tasks_of(experiment, "/nowhere")
    found = content(list(backends.loky(tasks, 2, lambda: [0] * len(tasks), lambda lost: None)))
    assert run_experiment(experiment, folder / "calm", RunOptions(backend="serial")).complete
    assert found == cell_files(folder / "calm")


@pytest.mark.nightly
def test_dask_workers_get_the_text(
    cluster: tuple[str, list[subprocess.Popen[Any]]],
    folder: Path,
) -> None:
    experiment = small(PLAIN, folder)
    found = content(list(backends.dask(tasks_of(experiment, "/nowhere"), cluster[0])))
    assert run_experiment(experiment, folder / "calm", RunOptions(backend="serial")).complete
    assert found == cell_files(folder / "calm")


SCRIPT = """\
import sys
from pathlib import Path
import hedgerow as hr
from hedgerow.experiments.spec import parse
from hedgerow.experiments.source import Source
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.sweep import run_experiment

@hr.learners.register("scripted")
class Scripted(hr.SVOPS):
    "Registered by a script, which no worker can import."

TEXT = '''seeds = 2
episodes = 40
[[world]]
name = "lower-bound-1"
[[adversary]]
name = "own"
[[learner]]
name = "scripted"
'''

if __name__ == "__main__":
    options = RunOptions(2, sys.argv[2])
    tally = run_experiment(parse(Source("x.toml", TEXT, Path())), sys.argv[1], options)
    print(tally.done, tally.failed)
"""


@pytest.mark.nightly  # a class of a script that is not registered: test_compare.py
@pytest.mark.parametrize("backend", ["loky", "serial"])
def test_what_a_script_registers_reaches_its_workers(backend: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "out"), backend]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert result.stdout == "2 {}\n", result.stderr


def test_a_registered_class_of_a_module_is_imported_by_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import hedgerow as hr\n\n@hr.learners.register('modular')\nclass Modular(hr.SVOPS): ...\n"
    (tmp_path / "modular_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    __import__("modular_plugin")
    task = tasks_of(small(HEAD + 'name = "modular"\n'), "")[0]
    ((kind, name, target, origin),) = task.luggage.registered
    assert (kind, name, target) == ("learner", "modular", "modular_plugin:Modular")
    monkeypatch.setattr(registry.learners, "_registered", {})  # as in another process, where it was imported already
    assert not perform(task).failed
    # The worker's own copy is another one.
    monkeypatch.setattr(registry.learners, "_registered", {})
    (tmp_path / "modular_plugin.py").write_text(text + "# changed\n")
    assert "the source of modular has changed since" in perform(task).error
    assert origin["sha256"] == loading.text_digest(text)
    monkeypatch.setitem(sys.modules, "modular_plugin", None)
    assert "cannot import modular_plugin: ModuleNotFoundError" in perform(task).error


# Learners that are no mirror descent ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backend", daily("serial", nightly="loky"))
def test_a_sweep_of_a_plain_learner(backend: str, folder: Path) -> None:
    experiment = small(HEAD.replace("seeds = 1", "seeds = 2") + 'name = "mine.py:Greedy"\nrounds = 2\n', folder)
    tally = run_experiment(experiment, folder / "out", RunOptions(backend=backend, processes=2))
    assert tally.failed == {}
    assert tally.done == 2


@pytest.mark.nightly
def test_a_plain_learner_on_a_cluster(
    cluster: tuple[str, list[subprocess.Popen[Any]]],
    folder: Path,
) -> None:
    experiment = small(HEAD.replace("seeds = 1", "seeds = 2") + 'name = "mine.py:Greedy"\nrounds = 2\n', folder)
    assert run_experiment(experiment, folder / "out", RunOptions(backend="dask", scheduler=cluster[0])).done == 2
