"""The index of what ships: written from the sources, complete, and enough for lists."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hedgerow import registry
from hedgerow.registry.signatures import signature_of

ROOT = Path(__file__).resolve().parents[2]
TABLES = (registry.learners, registry.worlds, registry.adversaries, registry.costs)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_index", ROOT / "tools" / "write_index.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_index_and_stubs_are_up_to_date(tool: ModuleType) -> None:
    assert tool.main(["--check"]) == 0, "run python tools/write_index.py"


def test_a_name_keeps_its_place_and_new_ones_follow(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = registry.costs
    kept = {name: costs.builtin[name] for name in reversed(costs.builtin) if name != "beta"}
    monkeypatch.setattr(costs, "builtin", kept)
    names = [record["name"] for record in json.loads(tool.index())["cost distribution"]]
    assert names == [*kept, "beta"]


def test_stubs_drop_what_is_gone_and_keep_what_does_not_ship(tool: ModuleType) -> None:
    shipped = json.loads((ROOT / "src/hedgerow/registry/index.json").read_text(encoding="utf-8"))["adversary"]
    without = [record for record in shipped if record["name"] != "cycle"]
    text = tool.stub("losses", shipped, without)
    assert "Cycle" not in text
    assert "from .blocks import LossBlock as LossBlock" in text
    added = [*shipped, {"home": "hedgerow.losses.waves:Waves"}]
    assert "from .waves import Waves as Waves\n" in tool.stub("losses", shipped, added)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_the_index_says_of_parameters_what_the_code_says(table: registry.Registry) -> None:
    for name in table.builtin:
        assert table.describe(name).parameters == tuple(signature_of(table.find(name), name).parameters.values())


def test_lists_import_no_compiler() -> None:
    script = (
        "import sys\nfrom hedgerow.commands import lists\n"
        "lists.worlds(True), lists.learners(True), lists.adversaries(True), lists.costs(True)\n"
        "assert 'numba' not in sys.modules and 'hedgerow.learners.api' not in sys.modules, 'too much'\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
