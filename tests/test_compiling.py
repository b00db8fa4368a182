"""The kernel cache: a changed kernel anywhere is a new cache, and kernels run as plain Python on request."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from hedgerow import compiling
from hedgerow.compiling import cache as kernel_cache
from hedgerow.compiling import kernels

CALLEE = "from probe.compiling import kernel\n\n\n@kernel\ndef inner(x):\n    return x + {number}\n"
CALLER = (
    "from probe.callee import inner\n"
    "from probe.compiling import kernel\n\n\n"
    "@kernel\n"
    "def outer(x):\n    return inner(x)\n"
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package named `probe` with the real compiling.py, and a kernel that calls a kernel of another file."""
    folder = tmp_path / "probe"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "compiling.py").write_bytes(Path(compiling.__file__).read_bytes())
    (folder / "callee.py").write_text(CALLEE.format(number=1))
    (folder / "caller.py").write_text(CALLER)
    return folder


def cache_of(package: Path) -> str:
    spec = importlib.util.spec_from_file_location("probe_compiling", package / "compiling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cache_name(package / "caller.py")


def run(package: Path, code: str, **environment: str) -> str:
    """What `code` prints in a fresh interpreter that can import the package."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    ours = Path(compiling.__file__).parents[1].parent
    settings |= {"PYTHONPATH": f"{package.parent}{os.pathsep}{ours}", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout.strip()


def test_the_cache_folder_changes_with_every_source_a_kernel_depends_on_and_with_nothing_else(package: Path) -> None:
    before = cache_of(package)
    assert cache_of(package) == before
    (package / "unrelated.py").write_text("@kernel\ndef f(): ...\n")
    assert cache_of(package) == before
    (package / "callee.py").write_text("import probe.constants\n" + CALLEE.format(number=1))
    (package / "constants.py").write_text("ONE = 1\n")
    changed = cache_of(package)
    assert changed != before
    (package / "constants.py").write_text("ONE = 2\n")  # imported by the callee only
    assert cache_of(package) not in {before, changed}


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert kernel_cache.usual_root() == tmp_path / "chosen" / "hedgerow"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert kernel_cache.usual_root() == tmp_path / "xdg" / "hedgerow"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert kernel_cache.usual_root() == Path.home() / ".cache" / "hedgerow"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kernel_cache.usual_root() == Path.home() / ".cache" / "hedgerow"
    monkeypatch.setenv("HOME", "not/absolute")
    with pytest.raises(OSError, match="there is no home folder"):
        kernel_cache.usual_root()


@pytest.mark.slow
def test_a_changed_callee_in_another_file_is_not_served_from_the_cache(package: Path) -> None:
    code = "from probe.caller import outer; print(outer(1), len(outer.stats.cache_hits))"
    cache = {"NUMBA_CACHE_DIR": str(package.parent / "cache")}
    assert run(package, code, **cache) == "2 0"
    assert run(package, code, **cache) == "2 1"
    (package / "callee.py").write_text(CALLEE.format(number=10))
    assert run(package, code, **cache) == "11 0"


def test_kernels_run_as_plain_python_on_request(package: Path) -> None:
    code = "from probe.caller import outer; print(type(outer).__name__, outer(1))"
    assert run(package, code, NUMBA_DISABLE_JIT="1") == "function 2"


def test_compiling_leaves_the_setting_of_others_alone() -> None:
    before = numba.config.CACHE_DIR

    @kernels.kernel
    def unused(x: float) -> float:
        return x

    after = numba.config.CACHE_DIR
    assert after == before
    assert unused.__name__ == "unused"
