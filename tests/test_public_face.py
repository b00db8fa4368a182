"""`import hedgerow`: every public name resolves, nothing heavy is loaded before it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.storage import datafile

HEAVY = ("numpy", "scipy", "numba", "plotly", "cvxpy", "gymnasium")


def loaded_after(code: str) -> set[str]:
    """The heavy packages in `sys.modules` after a fresh interpreter has run `code`."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", hr.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(hr, name) is not None
    assert getattr(hr, name) is getattr(hr, name)
    assert name in dir(hr)


def test_public_names_are_what_they_are_called() -> None:
    assert hr.offline.__name__ == "hedgerow.planning.offline"
    assert hr.losses.__name__ == "hedgerow.losses"
    assert isinstance(hr.worlds, types.ModuleType)
    assert callable(hr.unroll)
    assert hr.results.Run.__name__ == "Run"
    assert hr.learners.Statistics.__name__ == "Statistics"
    assert hr.__version__.split(".")[0].isdigit()


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse(Path(hr.__file__).with_suffix(".pyi").read_text())
    names = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert {*names, "__version__"} == set(hr.__all__)
    assert len(hr.__all__) == len(set(hr.__all__))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Lay0ut'; did you mean Layout"):
        hr.Lay0ut  # noqa: B018
    for name in ("Sops", "S_OPS", "sops"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; did you mean SOPS\?$"):
            getattr(hr, name)


@pytest.mark.parametrize(
    "name",
    [
        "", "confidence", "costs", "errors", "field", "forecast", "gym", "hooks", "learners", "losses", "occupancy",
        "offline", "projection", "results", "worlds",
    ],
)  # fmt: skip
def test_dir_shows_public_names_alone(name: str) -> None:
    module = getattr(hr, name) if name in dir(hr) else importlib.import_module(f"hedgerow.{name}".rstrip("."))
    assert sorted(dir(module)) == sorted(module.__all__)


def test_import_is_light() -> None:
    assert loaded_after("import hedgerow") == set()
    assert loaded_after("import hedgerow; hedgerow.errors; hedgerow.__version__") == set()


def test_offline_needs_no_compiler() -> None:
    assert "numba" not in loaded_after("import hedgerow; hedgerow.offline; hedgerow.worlds")


def test_load_finds_the_kind(tmp_path: Path) -> None:
    cmdp = hr.CMDP(hr.Layout((1, 2, 1), 2), [0.25, 0.75] * 2 + [1.0] * 4)
    cmdp.save(tmp_path / "world.npz")
    loaded = hr.load(tmp_path / "world.npz")
    assert isinstance(loaded, hr.CMDP)
    assert loaded.content_hash == cmdp.content_hash


def test_load_refuses_other_kinds(tmp_path: Path) -> None:
    (tmp_path / "letter.npz").write_bytes(datafile.pack("letter", 1, {}, {}))
    with pytest.raises(hr.errors.FileFormatError, match="holds a 'letter'; this release can load: cmdp"):
        hr.load(tmp_path / "letter.npz")
    with pytest.raises(hr.errors.FileFormatError, match=r"cannot read .*nowhere"):
        hr.load(tmp_path / "nowhere.npz")
