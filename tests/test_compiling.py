"""The kernel cache: a changed kernel anywhere is a new cache, and kernels run as plain Python on request."""

import ast
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
from parsed import nodes

CALLEE = "from probe.compiling.kernels import kernel\n\n\n@kernel\ndef inner(x):\n    return x + {number}\n"
CALLER = (
    "from probe.callee import inner\n"
    "from probe.compiling.kernels import kernel\n\n\n"
    "@kernel\n"
    "def outer(x):\n    return inner(x)\n"
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package named `probe` with the real kernels.py, and a kernel that calls a kernel of another file."""
    folder = tmp_path / "probe"
    (folder / "compiling").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "compiling" / "__init__.py").touch()
    (folder / "compiling" / "kernels.py").write_bytes(Path(kernels.__file__).read_bytes())
    (folder / "callee.py").write_text(CALLEE.format(number=1))
    (folder / "caller.py").write_text(CALLER)
    return folder


def cache_of(package: Path) -> str:
    spec = importlib.util.spec_from_file_location("probe_compiling", package / "compiling" / "kernels.py")
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


# Parts, programs, and what programs share ----------------------------------------------------------------------------

SHARED = """
from hedgerow.compiling.kernels import kernel, shared_kernel


@kernel
def twice(x):
    return 2.0 * x


@shared_kernel(0.0)
def large(x, times):
    total = 0.0
    for _ in range(times):
        total += twice(x)
    return total


@kernel
def first(x):
    return large(x, 3) + twice(x)


@kernel
def second(x):
    return large(x, 4)
"""
COUNT = "[(k.__name__, sum(k.stats.cache_hits.values()), sum(k.stats.cache_misses.values())) for k in (first, large)]"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with two programs that share a third one, and call a part."""
    (tmp_path / "shared.py").write_text(SHARED)
    return tmp_path / "shared.py"


def run_programs(programs: Path, code: str, **environment: str) -> str:
    cache = {"NUMBA_CACHE_DIR": str(programs.parent / "cache")}
    return run(programs, f"from shared import first, second, large, twice; {code}", **cache, **environment)


@pytest.mark.slow
def test_a_shared_program_is_compiled_once_and_found_again_by_those_that_call_it(programs: Path) -> None:
    code = f"print(first(1.5), second(1.0), {COUNT}, len(twice.part.overloads), len(twice.overloads))"
    expected = "12.0 8.0 [('first', {}, {}), ('large', {}, {})] {} 0"
    assert run_programs(programs, code) == expected.format(0, 1, 0, 1, 1)
    assert run_programs(programs, code) == expected.format(1, 0, 1, 0, 0)
    # Files of the shared one are lost: who calls it has it compiled again before it is loaded itself.
    lost = [file for file in (programs.parent / "cache").rglob("*large*") if file.suffix == ".nbc"]
    assert len(lost) == 1
    lost[0].unlink()
    assert run_programs(programs, code) == expected.format(1, 0, 0, 1, 1)


@pytest.mark.slow
def test_without_numbas_internals_kernels_are_compiled_plainly_to_the_same_result(programs: Path) -> None:
    plain = "import numba.core.codegen as c; del c.JITCodeLibrary; "
    code = "print(first(1.5), second(1.0), type(first).__name__)"
    folder = {"NUMBA_CACHE_DIR": str(programs.parent / "cache")}
    script = f"{plain}from shared import first, second; {code}"
    assert run(programs, script, **folder) == "12.0 8.0 CPUDispatcher"
    assert run(programs, f"from shared import first, second; {code}", **folder) == "12.0 8.0 Program"


def test_a_literal_and_a_number_are_one_signature() -> None:
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")

    @kernels.kernel
    def add(x: float, k: int) -> float:
        return x + k

    @kernels.kernel
    def call(x: float, k: int) -> float:
        return add(x, 0) + add(x, k) + add(x, 1)

    assert call(1.0, 2) == 6.0
    assert len(add.part.overloads) == 1


# The house rule ------------------------------------------------------------------------------------------------------

MOST_ARGUMENTS = 10


@pytest.mark.parametrize("file", sorted(Path(compiling.__file__).parents[1].rglob("*.py")), ids=lambda file: file.name)
def test_a_kernel_takes_few_arguments(file: Path) -> None:
    for node in nodes(file.read_text()):
        if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(each) for each in node.decorator_list):
            assert len(node.args.args) <= MOST_ARGUMENTS, f"{node.name}: hand over a bundle"
