"""The registry: every way from a name to code, what is refused, and what names an origin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hedgerow as hr
from hedgerow import registry
from hedgerow.errors import InvalidInput
from hedgerow.registry import Registry, plugins
from hedgerow.registry.registry import home_of

GREEDY = '''\
"""A learner in a file."""
import hedgerow as hr


@hr.learners.register("greedy-in-file")
class Greedy:
    """Takes what looks best.

    And more."""

    def __init__(self, view, episodes: int, rate: float = 0.5):
        self.view, self.rate = view, rate

    class Inner:
        pass

    def plan(self):
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode):
        pass


def function(view):
    return Greedy(view, 1)


NUMBER = 3
'''
TABLES = (registry.learners, registry.worlds, registry.adversaries, registry.costs)


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in TABLES:
        monkeypatch.setattr(table, "_registered", {})
    monkeypatch.setattr(plugins, "_loaded", {})


def distribution(
    folder: Path, module: str, text: str, points: str, version: str = "1.2", owner: str | None = None
) -> None:
    """An installed distribution, as `pip` leaves it, with one module and entry points."""
    owner = owner or module.replace("_", "-")
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{owner.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {owner}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(f"{module}\n")
    (info / "RECORD").write_text(f"{module}.py,,\n")
    (info / "entry_points.txt").write_text(points)


# Ways -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_everything_that_ships_is_where_the_table_says(table: Registry) -> None:
    for name, home in table.builtin.items():
        found = table.look_up(name)
        assert home_of(found.target) == home
        assert found.is_built_in
        assert found.origin is None
        assert table.describe(name).description
        assert table.name_of(found.target) == name
    assert table.names() == tuple(table.builtin)


def test_kinds_of_classes_are_the_names_in_the_table() -> None:
    """The files and results of learners and losses name them by `kind`."""
    for table in (registry.learners, registry.adversaries):
        for name in table.builtin:
            assert table.find(name).kind == name


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    script = (
        "import sys, hedgerow as hr\nhr.learners.names(), hr.worlds.names(), hr.costs.names()\n"
        "assert 'numba' not in sys.modules and 'hedgerow.worlds.entries' not in sys.modules, 'too early'\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_decorator_is_a_door_for_each_kind() -> None:
    @hr.learners.register("mine")
    class Learner:
        """Mine."""

    @hr.worlds.register("my-world")
    def world() -> None: ...

    @hr.losses.register("my-losses")
    class Losses: ...

    @hr.costs.register("my-costs")
    class Costs(hr.costs.DeterministicCosts): ...

    assert hr.learners.find("mine") is Learner
    assert hr.worlds.find("my-world") is world
    assert hr.losses.find("my-losses") is Losses
    assert hr.costs.find("my-costs") is Costs
    assert hr.learners.names() == (*registry.learners.builtin, "mine")
    assert hr.learners.describe("mine").way == "registered"
    assert hr.learners.describe("mine").description == "Mine."


def test_a_module_and_a_class_inside_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ways_module.py").write_text(GREEDY)
    monkeypatch.syspath_prepend(tmp_path)
    found = registry.learners.look_up("ways_module:Greedy.Inner")
    assert (found.way, found.target.__qualname__) == ("module", "Greedy.Inner")
    assert found.origin == {"module": "ways_module", "sha256": plugins.text_digest(GREEDY)}


def test_a_built_in_learner_is_one_thing_however_it_is_called() -> None:
    found = registry.learners.look_up("hedgerow.learners.ops.s_ops:SOPS")
    assert (found.name, found.way, found.origin) == ("s-ops", "built-in", None)


def test_a_file_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "greedy.py").write_text(GREEDY)
    found = registry.learners.look_up("sub/greedy.py:Greedy", tmp_path)
    assert found.way == "file"
    assert found.origin == {"sha256": plugins.text_digest(GREEDY)}
    assert plugins.text_digest(GREEDY) in found.target.__module__
    told = hr.learners.describe("sub/greedy.py:Greedy", tmp_path)
    assert told.description == "Takes what looks best."
    assert [str(parameter) for parameter in told.parameters] == ["view", "episodes: int", "rate: float = 0.5"]
    assert registry.learners.find("greedy-in-file") is found.target  # its own decorator was heard


def test_equal_texts_are_one_module_whatever_their_line_ends(tmp_path: Path) -> None:
    (tmp_path / "unix.py").write_bytes(GREEDY.encode())
    (tmp_path / "windows.py").write_bytes(b"\xef\xbb\xbf" + GREEDY.replace("\n", "\r\n").encode())
    assert hr.learners.find("unix.py:Greedy", tmp_path) is hr.learners.find("windows.py:Greedy", tmp_path)


def test_another_text_is_another_origin(tmp_path: Path) -> None:
    file = tmp_path / "greedy.py"
    file.write_text(GREEDY)
    old = registry.learners.look_up("greedy.py:Greedy", tmp_path)
    file.write_text(GREEDY.replace("0.5", "0.75"))
    new = registry.learners.look_up("greedy.py:Greedy", tmp_path)
    assert new.target is not old.target
    assert new.origin != old.origin
    assert new.signature.parameters["rate"].default == 0.75
    assert hr.learners.find("greedy-in-file") is new.target  # the newer version of the same thing
    # What was described earlier is still the old text: it was loaded before.
    assert registry.learners.look_up("greedy.py:Greedy", tmp_path, old.origin).target is old.target
    with pytest.raises(InvalidInput, match=r"the source of greedy.py:Greedy has changed since"):
        registry.learners.look_up("greedy.py:Greedy", tmp_path, {"sha256": "0" * 64})


def test_the_order_of_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built-in names come first, then registered ones, then installed ones."""
    points = "[hedgerow.learners]\ns-ops = order_plugin:Greedy\nnovel = order_plugin:Greedy\n"
    distribution(tmp_path, "order_plugin", GREEDY, points)
    monkeypatch.syspath_prepend(tmp_path)
    assert hr.learners.find("s-ops") is hr.SOPS
    assert hr.learners.find("novel").__module__ == "order_plugin"

    @hr.learners.register("novel")
    class Novel: ...

    assert hr.learners.find("novel") is Novel


# Entry points ---------------------------------------------------------------------------------------------------------


def test_a_file_of_a_shipped_learner_asks_nobody_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read what every installed distribution offers takes longer than to read the file."""

    def refuse(table: Registry) -> None:
        raise AssertionError("all distributions are looked at")

    monkeypatch.setattr(Registry, "_entry_points", refuse)
    found = registry.learners.known("sv-ops")
    assert found is not None
    assert found.target is hr.SVOPS
    with pytest.raises(AssertionError, match="all distributions"):
        registry.learners.known("sv-op")


def test_the_distribution_of_a_module_is_what_the_library_says() -> None:
    from importlib.metadata import packages_distributions, version

    installed = packages_distributions()
    for module in ("numpy", "pytest", "_pytest", "yaml", "typing_extensions", "six", "hedgerow", "no_such_module"):
        owners = sorted(set(installed.get(module, ())))
        expected = {"distribution": owners[0], "version": version(owners[0])} if len(owners) == 1 else {}
        assert registry.registry._distribution(module) == expected


def test_entry_points_of_every_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GREEDY + "class Costs(hr.costs.BernoulliCosts): ...\n"
    points = (
        "[hedgerow.learners]\ngreedy = fake_plugin:Greedy\n[hedgerow.worlds]\nmeadow = fake_plugin:function\n"
        "[hedgerow.adversaries]\nfoe = fake_plugin:Greedy.Inner [extra]\n[hedgerow.costs]\nodd = fake_plugin:Costs\n"
    )
    distribution(tmp_path, "fake_plugin", text, points)
    monkeypatch.syspath_prepend(tmp_path)
    found = registry.learners.look_up("greedy")
    assert found.way == "installed"
    assert found.origin == {
        "module": "fake_plugin",
        "sha256": plugins.text_digest(text),
        "distribution": "fake-plugin",
        "version": "1.2",
    }
    assert hr.worlds.find("meadow").__name__ == "function"
    assert hr.losses.find("foe").__qualname__ == "Greedy.Inner"
    assert issubclass(hr.costs.find("odd"), hr.costs.BernoulliCosts)
    assert "greedy" in hr.learners.names()
    assert "meadow" in hr.worlds.names()
    other = {**found.origin, "version": "1.3"}
    with pytest.raises(InvalidInput, match=r"greedy is fake-plugin 1.2 here, .* begun with fake-plugin 1.3: install"):
        registry.learners.look_up("greedy", expected=other)


def test_a_name_that_two_distributions_offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("twin_one", "twin_two"):
        distribution(tmp_path, module, GREEDY, f"[hedgerow.learners]\ntwin = {module}:Greedy\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"'twin' is offered by several distributions \(twin-one, twin-two\)"):
        hr.learners.find("twin")


def test_a_broken_entry_point_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hedgerow.commands.lists import summaries

    points = "[hedgerow.learners]\nbroken = sad_plugin:Greedy\n"
    distribution(tmp_path, "sad_plugin", "x = 1\nimport no_such_package\n", points)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"cannot import sad_plugin: .*sad_plugin.py, line 2: ModuleNotFoundError"):
        hr.learners.find("broken")
    listed = {entry["name"]: entry for entry in summaries(registry.learners)}
    assert "no_such_package" in listed["broken"]["error"]
    assert "error" not in listed["s-ops"]


# Registering ----------------------------------------------------------------------------------------------------------


def test_a_taken_name_is_refused_and_nothing_changes() -> None:
    @hr.learners.register("mine")
    class Mine: ...

    with pytest.raises(InvalidInput, match=r"'mine' is taken by .*Mine; choose another name for .*Other"):

        @hr.learners.register("mine")
        class Other: ...

    assert hr.learners.find("mine") is Mine
    with pytest.raises(InvalidInput, match=r"'s-ops' ships with hedgerow"):
        hr.learners.register("s-ops")
    with pytest.raises(InvalidInput, match=r"'own' ships with hedgerow"):
        hr.losses.register("own")
    with pytest.raises(InvalidInput, match=r"'file' ships with hedgerow"):
        hr.worlds.register("file")


def test_a_class_that_is_defined_again_replaces_the_old_one() -> None:
    """As when a cell of a notebook runs a second time."""

    def define() -> type:
        @hr.learners.register("again")
        class Again: ...

        return Again

    first, second = define(), define()
    assert first is not second
    assert hr.learners.find("again") is second


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a:b", "../x", "x" * 61, "-x", "a\nb", "\x1b[31m", "é", None, 3, ("a",), len]
)
def test_strange_names_cannot_be_registered(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"the name of a learner is a word of at most 60"):
        hr.learners.register(name)  # type: ignore[arg-type]


def test_only_classes_and_functions_are_registered() -> None:
    for thing in (3, "text", object(), None):
        with pytest.raises(InvalidInput, match="must be a class or a function"):
            hr.learners.register("thing")(thing)  # type: ignore[type-var]
    with pytest.raises(InvalidInput, match=r"is no cost distribution: derive it from CostDistribution"):
        hr.costs.register("thing")(dict)
    assert "thing" not in hr.learners.names()


# What is refused ------------------------------------------------------------------------------------------------------


def test_unknown_names_say_what_was_meant() -> None:
    with pytest.raises(InvalidInput, match=r"unknown learner 's-opps'; did you mean 's-ops'"):
        hr.learners.find("s-opps")
    with pytest.raises(InvalidInput, match=r"unknown adversary 'xyz'; known: fixed, .*own"):
        hr.losses.find("xyz")


@pytest.mark.parametrize(
    ("table", "given", "meant"),
    [
        (hr.learners, "SOPS", "s-ops"),
        (hr.learners, "S-OPS", "s-ops"),
        (hr.learners, "s_ops", "s-ops"),
        (hr.learners, "OptPrimalDual", "opt-primal-dual"),
        (hr.worlds, "Dope_Media", "dope-media"),
        (hr.losses, "EarlyBird", "early-bird"),
        (hr.losses, "OWN", "own"),
        (hr.costs, "Bernoulli", "bernoulli"),
    ],
)
def test_a_name_that_differs_in_case_and_signs_alone_is_the_one_that_is_meant(
    table: Any, given: str, meant: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^unknown .* {given!r}; did you mean {meant!r}\?$"):
        table.find(given)


HOSTILE = (
    *("", ":", "::", ":Name", "x.py:", "x.py", ".py:x", "../../etc/passwd:root", "/dev/zero:x", "no_such_package:X"),
    *("os:", "os:path", "os:sep", "os:nothing", "builtins:None", "hedgerow:worlds", "a b:c", "os;sys:exit"),
    *("\x00.py:X", "a\nb", "\x1b[31m:x", "x" * 5000, f"{'x' * 5000}.py:X", "os:path.join.", "s-ops:x", ".:x", "..:x"),
    *("{0}:x", "%s:x", "$HOME:x", "hedgerow.learners.ops.s_ops:__doc__", "..mirror:x"),
)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_hostile_names_get_one_line(table: Registry, name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        table.find(name, tmp_path)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 6000
    assert table.known(name) is None


@pytest.mark.parametrize("name", [None, 3, b"s-ops", ["s-ops"], {}])
def test_names_are_texts(name: object) -> None:
    with pytest.raises(InvalidInput, match="the name of a learner is a text"):
        hr.learners.find(name)  # type: ignore[arg-type]
    assert registry.learners.known(name) is None


def test_a_data_file_never_decides_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sly_costs.py").write_text("import hedgerow as hr\nclass Sly(hr.costs.BernoulliCosts): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.costs.known("sly_costs:Sly") is None
    assert "sly_costs" not in sys.modules
    assert registry.costs.known(f"{tmp_path}/sly_costs.py:Sly") is None
    import sly_costs  # type: ignore[import-not-found]

    found = registry.costs.known("sly_costs:Sly")
    assert found is not None
    assert found.target is sly_costs.Sly
    assert registry.costs.known("os:system") is None  # imported, but no cost distribution


def test_code_without_a_source_cannot_say_what_was_run() -> None:
    space: dict[str, object] = {"__name__": "nowhere"}
    exec("class Ghost: ...", space)
    hr.learners.register("ghost")(space["Ghost"])  # type: ignore[type-var]
    with pytest.raises(InvalidInput, match=r"the source of ghost cannot be found.*name it file.py:Name"):
        _ = registry.learners.look_up("ghost").origin
