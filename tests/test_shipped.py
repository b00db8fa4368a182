"""Compiled code that comes with the package: used where the processor can, and nowhere else."""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import numba
import pytest

from hedgerow import compiling
from hedgerow.compiling import cache, warmup

ROOT = Path(__file__).resolve().parent.parent
TINY = "from hedgerow.compiling.kernels import kernel\n\n\n@kernel\ndef double(x):\n    return x + x\n"
CALL = "from tiny import double; print(double(2.0), len(double.stats.cache_hits))"
SETTINGS = cache.settings_for(cache.target())
intel = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64") or bool(numba.config.DISABLE_JIT),
    reason="compiled code is shipped for x86-64",
)


def call(tmp_path: Path, code: str, **environment: str) -> str:
    """What `code` prints in a fresh interpreter, where compiled code came with the package in the folder `shipped`."""
    (tmp_path / "tiny.py").write_text(TINY)
    folder = str(tmp_path / "shipped" / "hedgerow")
    before = f"from hedgerow.compiling import cache as shipped; shipped.FOLDER = shipped.Path({folder!r})"
    sources = Path(compiling.__file__).parents[2]
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "HEDGEROW_"))}
    settings |= {"PYTHONPATH": f"{tmp_path}{os.pathsep}{sources}", "NUMBA_CACHE_DIR": str(tmp_path / "own")}
    command = [sys.executable, "-c", f"{before}; {code}"]
    done = subprocess.run(command, env=settings | environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder whose `shipped` holds the kernel `double`, compiled for the best target of this processor."""
    assert call(tmp_path, CALL, NUMBA_CACHE_DIR=str(tmp_path / "shipped"), **SETTINGS) == "4.0 0"
    return tmp_path


@intel
@pytest.mark.slow
def test_what_came_with_the_package_is_not_compiled_again(package: Path) -> None:
    assert call(package, CALL) == "4.0 1"
    assert not (package / "own" / "hedgerow").is_dir() or not any((package / "own" / "hedgerow").iterdir())
    # Compiled for this processor all the same, and preferred from then on.
    assert call(package, f"shipped.ignore(); {CALL}") == "4.0 0"
    assert any((package / "own" / "hedgerow").rglob("*.nbc"))
    (package / "shipped").rename(package / "gone")
    assert call(package, CALL) == "4.0 1"


@intel
@pytest.mark.slow
def test_a_lesser_processor_another_source_and_damaged_files_find_nothing(package: Path) -> None:
    lesser = "from llvmlite import binding as b; found = b.get_host_cpu_features(); found['fma'] = False"
    assert (
        call(package, f"{lesser}; b.get_host_cpu_features = lambda: found; {CALL}", NUMBA_CACHE_DIR=str(package / "a"))
        == "4.0 0"
    )
    for file in (package / "shipped").rglob("*.nbc"):
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert call(package, CALL, NUMBA_CACHE_DIR=str(package / "b")) == "4.0 0"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_build_hook_compiles_for_the_same_processors(hook: ModuleType) -> None:
    assert tuple(cache.TARGETS) == hook.TARGETS


LACKING = (
    "from llvmlite import binding as b; found = b.get_host_cpu_features(); found.update(dict.fromkeys({0!r}, False)); "
    "b.get_host_cpu_features = lambda: found"
)


@intel
@pytest.mark.slow
def test_each_processor_takes_the_code_of_its_own_level(tmp_path: Path) -> None:
    best, (first, last) = cache.target(), cache.TARGETS
    beyond = tuple(set(cache.TARGETS[first]) - set(cache.TARGETS[last]))

    def found(number: int, *lacking: str) -> str:
        code = f"{LACKING.format(lacking)}; {CALL}"
        return call(tmp_path, code, NUMBA_CACHE_DIR=str(tmp_path / str(number)))[-1]

    shipped = {"NUMBA_CACHE_DIR": str(tmp_path / "shipped")}
    call(tmp_path, CALL, **shipped, **cache.settings_for(last))
    assert found(1) == ("1" if best == last else "0")
    assert found(2, *beyond) == "1"
    assert found(3, "avx2") == "0"
    # What is compiled for another level comes beside it, in the same folder.
    call(tmp_path, f"shipped.ignore(); {CALL}", **shipped, **cache.settings_for(best))
    assert found(4) == "1"
    assert found(5, *beyond) == "1"


# Archives of a clone -------------------------------------------------------------------------------------------------


@pytest.fixture
def tool(monkeypatch) -> ModuleType:
    pytest.importorskip("hatchling")
    monkeypatch.setattr(sys, "path", sys.path[:])  # the tool adds to it
    spec = importlib.util.spec_from_file_location("ship_kernels", ROOT / "tools" / "ship_kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(hook: ModuleType, root: Path, version: str) -> None:
    """Let the hook do what it does when a clone in `root` is built."""
    (root / "src" / "hedgerow").mkdir(parents=True, exist_ok=True)
    build = hook.CompiledKernels(str(root), {}, None, None, str(root), "wheel")
    build.initialize(version, {"force_include": {}})


@intel
@pytest.mark.slow
def test_an_editable_install_unpacks_what_was_packed_and_it_is_used(
    hook: ModuleType, tool: ModuleType, package: Path, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(package)  # what is compared refers to the module of the kernel
    clone, shipped = package / "clone", package / "shipped" / "hedgerow"
    clone.mkdir()
    tool.pack(shipped, hook.archive_in(clone))
    (clone / "src" / "hedgerow" / "compiled" / "double-of-former-sources").mkdir(parents=True)
    installed(hook, clone, "standard")
    assert [each.name for each in (clone / "src" / "hedgerow" / "compiled").iterdir()] == ["double-of-former-sources"]
    installed(hook, clone, "editable")
    unpacked = clone / "src" / "hedgerow" / "compiled"
    assert tool.machine_code(unpacked) == tool.machine_code(shipped)
    assert {each.name for each in unpacked.iterdir()} == {each.name for each in shipped.iterdir()}
    assert not tool.is_stale(hook.archive_in(clone))
    (package / "shipped").rename(package / "gone")
    (package / "shipped").mkdir()
    unpacked.rename(shipped)
    assert call(package, CALL) == "4.0 1"
    # The same sources give the same machine code, and other ones are told apart.
    assert call(package, CALL, NUMBA_CACHE_DIR=str(package / "again"), **SETTINGS) == "4.0 1"
    ignored = f"shipped.ignore(); {CALL}"
    assert call(package, ignored, NUMBA_CACHE_DIR=str(package / "again"), **SETTINGS) == "4.0 0"
    assert tool.machine_code(package / "again" / "hedgerow") == tool.machine_code(shipped)


def archive_of(path: Path, members: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:xz") as packed:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "/etc/passwd"
            packed.addfile(entry, io.BytesIO(content))
    return path


GOOD = {"hedgerow/sources.txt": b"a\n", "hedgerow/kl-0123456789abcdef/kl.f-1.py311.nbi": b"index" * 99}


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({**GOOD, "../outside.nbi": b""}, tarfile.REGTYPE),
        ({**GOOD, "/tmp/outside.nbi": b""}, tarfile.REGTYPE),
        ({**GOOD, "hedgerow/../../outside.nbi": b""}, tarfile.REGTYPE),
        ({**GOOD, "hedgerow/kl-0123456789abcdef/..": b""}, tarfile.REGTYPE),
        ({**GOOD, "hedgerow/kl-0123456789abcdef/__init__.py": b"evil()"}, tarfile.REGTYPE),
        ({"hedgerow/kl-0123456789abcdef/kl.f-1.py311.nbi": b""}, tarfile.SYMTYPE),
        ({"hedgerow/kl-0123456789abcdef/kl.f-1.py311.nbi": b""}, tarfile.LNKTYPE),
        ({"hedgerow/kl-0123456789abcdef/kl.f-1.py311.nbi": b"x"}, tarfile.REGTYPE),  # nobody knows of which sources
    ],
)
def test_an_archive_with_anything_else_is_refused(
    hook: ModuleType, tmp_path: Path, members: dict[str, bytes], kind: bytes
) -> None:
    before = tmp_path / "compiled" / "kl-fedcba9876543210" / "before"
    before.parent.mkdir(parents=True)
    before.touch()
    with pytest.raises(ValueError, match="no archive of compiled kernels"):
        hook.unpack(archive_of(tmp_path / "evil.tar.xz", members, kind), tmp_path / "compiled")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["compiled", "evil.tar.xz"]
    assert before.exists()


def test_a_damaged_archive_stops_the_install_and_says_what_to_do(hook: ModuleType, tmp_path: Path) -> None:
    archive = hook.archive_in(tmp_path)
    archive.parent.mkdir()
    whole = archive_of(archive, GOOD).read_bytes()
    for place in range(0, len(whole), 7):
        archive.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"is damaged.* fetch it again, or remove it"):
            hook.unpack(archive, tmp_path / "compiled")
    for length in range(0, len(whole), 9):
        archive.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"is damaged.* fetch it again, or remove it"):
            hook.unpack(archive, tmp_path / "compiled")
    assert [each.name for each in tmp_path.iterdir()] == ["kernels"]
    if hook.is_intel():
        with pytest.raises(ValueError, match="is damaged"):
            installed(hook, tmp_path, "editable")


def test_what_is_unpacked_belongs_to_who_installs_and_nobody_else_may_write_to_it(
    hook: ModuleType, tmp_path: Path
) -> None:
    hook.unpack(archive_of(tmp_path / "a.tar.xz", GOOD), tmp_path / "compiled")
    for path in [tmp_path / "compiled", *(tmp_path / "compiled").rglob("*")]:
        assert cache.objection_to(path) == ""


def test_an_archive_of_other_sources_is_stale(tool: ModuleType, tmp_path: Path) -> None:
    name = "hedgerow/sources.txt"
    assert not tool.is_stale(archive_of(tmp_path / "a.tar.xz", {name: tool.sources().encode()}))
    assert tool.is_stale(archive_of(tmp_path / "b.tar.xz", {name: tool.sources().encode()[:-2] + b"\n"}))
    assert tool.is_stale(archive_of(tmp_path / "c.tar.xz", {"hedgerow/kl-0123456789abcdef/kl.nbi": b""}))


def test_without_an_archive_for_this_python_a_clone_compiles(hook: ModuleType, tmp_path: Path) -> None:
    installed(hook, tmp_path, "editable")
    assert not (tmp_path / "src" / "hedgerow" / "compiled").exists()


def test_what_an_install_unpacks_is_no_part_of_the_repository() -> None:
    assert f"src/hedgerow/{cache.FOLDER.name}/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_a_companion_is_waited_for_while_it_works_and_ended_afterwards() -> None:
    looked: list[int] = []

    def is_there() -> bool:
        looked.append(1)
        return len(looked) > 3

    with warmup.companion("climb", ["-c", "import time; time.sleep(60)"]):
        warmup.wait("another", is_there)
        assert looked == []
        warmup.wait("climb", is_there)
        assert len(looked) == 4
    warmup.wait("climb", is_there)
    assert len(looked) == 4
    with warmup.companion("climb", ["-c", "raise SystemExit(1)"]):
        warmup.wait("climb", lambda: False)  # it has failed: nobody waits for ever
