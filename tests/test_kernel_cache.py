"""Where compiled kernels are kept: no home, folders of others, damaged files, a full disk, and what nobody uses."""

import errno
import hashlib
import os
import pickle
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from hedgerow import compiling
from hedgerow.compiling import cache as kernel_cache
from hedgerow.compiling.kernels import kernel
from tests.soak.flip_kernels import flip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled"),
]
posix = pytest.mark.skipif(os.name != "posix", reason="permissions of other systems differ")

TINY = "from hedgerow.compiling.kernels import kernel\n\n\n@kernel\ndef double(x):\n    return x + x\n"
CALL = "from tiny import double; print(double(2.0), len(double.stats.cache_hits))"


def double(x: float) -> float:
    return x + x


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    """A cache of this test's own, for kernels that are called in this process."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(kernel_cache.INHERITED, "")  # and what the test makes of it is forgotten afterwards
    memories = (kernel_cache.root, kernel_cache.remove_unused, kernel_cache._note_use, kernel_cache._say)
    for memory in memories:
        memory.cache_clear()
    yield tmp_path / "hedgerow"
    for memory in memories:
        memory.cache_clear()


def hits() -> int:
    """Call a kernel as a new process would: how many compiled versions came from the disk."""
    compiled = kernel(double)
    assert compiled(2.0) == 4.0
    return len(compiled.stats.cache_hits)


def files_of(home: Path, ending: str) -> list[Path]:
    return sorted(home.glob(f"*/*{ending}"))


def call(tmp_path: Path, code: str = CALL, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter with nothing but these settings; its temporary files go to `tmp`."""
    (tmp_path / "tiny.py").write_text(TINY)
    (tmp_path / "tmp").mkdir(exist_ok=True)
    sources = Path(compiling.__file__).parents[1].parent
    settings = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"PYTHONPATH": f"{tmp_path}{os.pathsep}{sources}", **environment}
    command = [sys.executable, "-c", f"{before}\n{code}"]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True, umask=0)


# Folders -------------------------------------------------------------------------------------------------------------


def test_without_a_writable_home_kernels_go_to_a_temporary_folder_with_one_line_of_advice(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # no folder can be made below it, not even by root
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CALL!r}], check=True)"
    mode = "import os, pathlib; print(oct(pathlib.Path(os.environ['HEDGEROW_PRIVATE_CACHE']).stat().st_mode)[-4:])"
    done = call(tmp_path, f"{CALL}; print(end='', flush=True); {mode}; print(end='', flush=True); {child}",
                HOME=str(tmp_path / "file"))  # fmt: skip
    assert sorted(done.stdout.split("\n")) == ["", "0700", "4.0 0", "4.0 1"]  # the child finds what its parent compiled
    assert done.stderr.count("\n") == 1
    assert "hedgerow: compiled kernels are kept for this process only (" in done.stderr
    assert f"({tmp_path / 'file'}: " in done.stderr
    assert "set NUMBA_CACHE_DIR or XDG_CACHE_HOME to a folder of your own" in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []  # removed at the end


def test_without_any_folder_kernels_are_compiled_and_not_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    before = "import tempfile\ndef fail(*args, **options): raise FileNotFoundError(2, 'none')\ntempfile.mkdtemp = fail"
    done = call(tmp_path, before=before, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.stdout == "4.0 0\n"
    assert done.stderr.count("\n") == 1
    assert "compiled kernels are not kept" in done.stderr


def test_a_user_without_a_home_is_advised(tmp_path: Path) -> None:
    before = "import pathlib\ndef fail(): raise RuntimeError('Could not determine home directory.')\n"
    done = call(tmp_path, before=f"{before}pathlib.Path.home = fail")
    assert done.stdout == "4.0 0\n"
    assert done.stderr.count("\n") == 1
    assert "(Could not determine home directory.)" in done.stderr


@posix
def test_new_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    done = call(tmp_path, XDG_CACHE_HOME=str(tmp_path / "a" / "b"))
    assert (done.stdout, done.stderr) == ("4.0 0\n", "")
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "hedgerow"]
    made += (tmp_path / "a" / "b" / "hedgerow").iterdir()
    assert len(made) == 4
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}
    assert call(tmp_path, XDG_CACHE_HOME=str(tmp_path / "a" / "b")).stdout == "4.0 1\n"


@posix
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(home: Path, mode: int, capsys) -> None:
    home.mkdir()
    home.chmod(mode)
    assert hits() == 0
    assert list(home.iterdir()) == []
    assert capsys.readouterr().err.startswith(
        f"hedgerow: compiled kernels are kept for this process only ({home} can be written by others); set NUMBA"
    )


@posix
def test_a_folder_of_somebody_else_is_refused(home: Path, monkeypatch, capsys) -> None:
    home.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    assert hits() == 0
    assert list(home.iterdir()) == []
    assert f"({home} belongs to somebody else)" in capsys.readouterr().err


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give a link away")
def test_a_link_of_somebody_else_to_a_folder_of_ours_is_refused(home: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "mine").mkdir(0o700)
    home.symlink_to(tmp_path / "mine")
    assert hits() == 0
    assert len(list((tmp_path / "mine").iterdir())) == 1  # one's own link is followed
    os.chown(home, 12345, 12345, follow_symlinks=False)
    kernel_cache.root.cache_clear()
    assert hits() == 0
    assert "belongs to somebody else" in capsys.readouterr().err


SOMEBODY = 12345
as_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give a file away")


def planted(home: Path, tmp_path: Path) -> Path:
    """Replace the cached kernel by code that leaves a trace, signed as ours would be; the folder that it is in."""
    hits()
    assert hits() == 1
    (file,) = files_of(home, ".nbi")
    body = pickle.dumps(("", Trap(tmp_path / "sprung")))
    file.write_bytes(pickle.dumps(numba.__version__, protocol=-1) + body + hashlib.sha256(body).digest())
    kernel_cache.root.cache_clear()
    return file.parent


def fresh_again(home: Path, tmp_path: Path) -> bool:
    """Whether a kernel is compiled anew, kept in a folder of ours, and nothing planted has run."""
    compiled, found = hits(), hits()
    (folder,) = [entry for entry in home.iterdir() if not entry.name.startswith("unused-")]
    modes = {stat.S_IMODE(folder.stat().st_mode), *(stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir())}
    owners = {folder.lstat().st_uid, *(file.lstat().st_uid for file in folder.iterdir())}
    ours = modes <= {0o700, 0o600} and owners == {os.geteuid()} and not folder.is_symlink()
    return (compiled, found) == (0, 1) and ours and not (tmp_path / "sprung").exists()


def test_the_trap_of_these_tests_works(home: Path, tmp_path: Path) -> None:
    """Who can write to what is ours can have code executed: the tests below rest on that."""
    planted(home, tmp_path)
    hits()
    assert (tmp_path / "sprung").exists()


@posix
@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_code_in_a_subfolder_that_others_may_write_to_is_not_executed(home: Path, tmp_path: Path, mode: int) -> None:
    planted(home, tmp_path).chmod(mode)
    assert fresh_again(home, tmp_path)


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_code_in_a_file_that_others_may_write_to_is_not_executed(home: Path, tmp_path: Path, mode: int) -> None:
    planted(home, tmp_path)
    for file in files_of(home, ".nbi"):
        file.chmod(mode)
    assert fresh_again(home, tmp_path)


@as_root
@posix
def test_code_in_files_and_subfolders_of_somebody_else_is_not_executed(home: Path, tmp_path: Path) -> None:
    folder = planted(home, tmp_path)
    os.chown(folder, SOMEBODY, SOMEBODY)
    assert fresh_again(home, tmp_path)
    planted(home, tmp_path)
    for file in files_of(home, ".nbi"):
        os.chown(file, SOMEBODY, SOMEBODY)
    assert fresh_again(home, tmp_path)


@posix
def test_a_link_or_a_pipe_in_the_place_of_a_file_is_not_read(home: Path, tmp_path: Path) -> None:
    planted(home, tmp_path)
    (file,) = files_of(home, ".nbi")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert fresh_again(home, tmp_path)
    (file,) = files_of(home, ".nbi")
    file.unlink()
    os.mkfifo(file)
    assert fresh_again(home, tmp_path)


@posix
def test_a_link_in_the_place_of_a_subfolder_is_replaced(home: Path, tmp_path: Path) -> None:
    folder = planted(home, tmp_path)
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o777)
    folder.symlink_to(tmp_path / "elsewhere")
    assert fresh_again(home, tmp_path)


@posix
@pytest.mark.parametrize(("mode", "trusted"), [(0o777, False), (0o1777, True), (0o755, True), (0o757, False)])
def test_a_parent_in_which_others_could_exchange_the_folder_is_refused(
    home: Path, tmp_path: Path, mode: int, trusted: bool, capsys
) -> None:
    assert hits() == 0
    tmp_path.chmod(mode)
    kernel_cache.root.cache_clear()
    assert hits() == int(trusted)
    reason = f"({tmp_path} can be written by others, who could exchange what is in it)"
    assert (reason in capsys.readouterr().err) == (not trusted)


@as_root
@posix
def test_a_parent_of_somebody_else_is_refused_also_behind_a_link(home: Path, tmp_path: Path, capsys) -> None:
    assert hits() == 0
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    home.rename(theirs / "hedgerow")
    home.symlink_to(Path("theirs", "..", "theirs", "hedgerow"))
    kernel_cache.root.cache_clear()
    assert hits() == 1  # all of it is ours
    os.chown(theirs, SOMEBODY, SOMEBODY)
    kernel_cache.root.cache_clear()
    assert hits() == 0
    assert f"({theirs} belongs to somebody else)" in capsys.readouterr().err


@posix
def test_a_group_of_ones_own_may_write_to_parents(home: Path, tmp_path: Path, monkeypatch) -> None:
    """Many systems make a group for each user, and folders that it may write to."""
    assert hits() == 0
    tmp_path.chmod(0o770)
    for own, expected in ((True, 1), (False, 0)):
        monkeypatch.setattr(kernel_cache, "_is_own_group", lambda number, own=own: own)
        kernel_cache.root.cache_clear()
        assert hits() == expected


def test_a_folder_on_a_read_only_disk_is_refused(home: Path, monkeypatch, capsys) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(kernel_cache.tempfile, "TemporaryFile", fail)
    assert hits() == 0
    assert f"({home}: {os.strerror(errno.EROFS)})" in capsys.readouterr().err


# Files ---------------------------------------------------------------------------------------------------------------


class Trap:
    """Unpickling it leaves a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"garbage" * 100,
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
        lambda content: pickle.dumps("0.1.0", protocol=-1) + content,
        lambda content: pickle.dumps((b"stamp", {})),
    ],
    ids=["empty", "half", "one byte less", "garbage", "flip near start", "flip near end", "other version", "unsigned"],
)
def test_a_damaged_file_is_compiled_again_and_repaired(home: Path, ending: str, damage, capsys) -> None:
    assert [hits(), hits()] == [0, 1]
    (file,) = files_of(home, ending)
    file.write_bytes(damage(file.read_bytes()))
    assert [hits(), hits()] == [0, 1]
    assert capsys.readouterr().err == ""


def test_no_flipped_bit_is_executed(home: Path) -> None:
    bits, failures = flip(home, 24, seed=3)
    assert bits > 10_000
    assert failures == []


def test_two_versions_of_python_share_a_cache_without_sharing_code(home: Path, monkeypatch) -> None:
    """The name of each file says for which version and which ABI of Python it was compiled."""
    assert [hits(), hits()] == [0, 1]
    (own,) = files_of(home, ".nbi")
    version = sys.version_info
    assert f".py{version.major}{version.minor}{getattr(sys, 'abiflags', '')}." in own.name
    later = SimpleNamespace(version_info=(version.major, version.minor + 1))
    with monkeypatch.context() as other:
        other.setattr(numba.core.caching, "sys", later)
        assert [hits(), hits()] == [0, 1]  # compiled again, and kept beside the first
    names = {file.name for file in files_of(home, ".nbi")}
    assert len(names) == 2
    assert hits() == 1
    with monkeypatch.context() as other:
        other.setattr(sys, "abiflags", "t", raising=False)  # without the lock
        assert [hits(), hits()] == [0, 1]
    assert len(files_of(home, ".nbi")) == 3


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_what_nobody_signed_is_not_unpickled(home: Path, ending: str, tmp_path: Path) -> None:
    assert hits() == 0
    (file,) = files_of(home, ending)
    file.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")) + file.read_bytes())
    assert hits() == 0
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_missing_or_unreadable_file_is_compiled_again(home: Path, ending: str) -> None:
    assert hits() == 0
    (file,) = files_of(home, ending)
    file.unlink()
    assert [hits(), hits()] == [0, 1]
    for file in files_of(home, ending):
        file.unlink()
    file.mkdir()
    assert hits() == 0


def test_a_full_disk_costs_the_cache_and_not_the_answer(home: Path, monkeypatch, capsys) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernel_cache._CheckedFiles, "_save_data", fail)
    assert [hits(), hits()] == [0, 0]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"cannot be kept ({home}: {os.strerror(errno.ENOSPC)}); the next process compiles them again" in said


def test_two_processes_never_give_one_file_to_two_versions(home: Path, monkeypatch) -> None:
    """Both may read the same index and add to it; what then counts must not point to the code of the other."""
    assert hits() == 0
    (index,) = files_of(home, ".nbi")
    with_one, ours = index.read_bytes(), set(files_of(home, ".nbc"))
    compiled = kernel(double)
    assert compiled(2) == 4
    index.write_bytes(with_one)  # the other process did not know of it
    compiled = kernel(double)
    assert compiled(2.0 + 1j) == 4.0 + 2j
    assert len(set(files_of(home, ".nbc")) - ours) == 2
    assert kernel(double)(2) == 4


# What nobody uses ----------------------------------------------------------------------------------------------------


def aged(folder: Path, days: float) -> Path:
    folder.mkdir()
    (folder / "content").touch()
    os.utime(folder, (time.time() - days * 86400.0,) * 2)
    return folder


def test_folders_that_nothing_has_used_for_long_are_removed_when_something_new_is_compiled(home: Path) -> None:
    assert hits() == 0
    old, young = aged(home / "double-0123456789abcdef", 31), aged(home / "double-0123456789abcde0", 29)
    foreign = [aged(home / "notes", 400), aged(home / "double-012345", 400)]
    kernel_cache.remove_unused.cache_clear()
    assert hits() == 1  # nothing new, nothing removed
    assert old.exists()
    assert kernel(double)(2) == 4
    assert not old.exists()
    assert young.exists()
    assert all(folder.exists() for folder in foreign)
    assert not [folder for folder in home.iterdir() if folder.name.startswith("unused-")]


def test_using_a_folder_keeps_it(home: Path) -> None:
    assert hits() == 0
    (folder,) = home.iterdir()
    os.utime(folder, (time.time() - 29 * 86400.0,) * 2)
    kernel_cache._note_use.cache_clear()
    assert hits() == 1
    assert time.time() - folder.stat().st_mtime < 3600


def test_a_cache_that_was_removed_under_a_running_process_is_made_again(home: Path) -> None:
    assert hits() == 0
    kernel_cache.shutil.rmtree(home)
    assert [hits(), hits()] == [0, 1]


def test_importing_kernels_touches_no_disk(home: Path) -> None:
    kernel(double)
    assert not home.exists()
