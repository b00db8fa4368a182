"""Build hook: brings compiled kernels, for this Python, system and numba, to wheels and to clones.

    python -m build --wheel --no-isolation                          the pure wheel, for every system
    HEDGEROW_COMPILED=1 python -m build --wheel --no-isolation      one for this Python and x86-64: nothing to compile
    pip install -e .                                                in a clone: unpacks the archive for this Python, if
                                                                    `kernels/` has one (`tools/ship_kernels.py`)

The kernels are compiled by `hedgerow compile` in a process of its own, for the processors of `compiling/cache.py`.
"""

from __future__ import annotations

import io
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH = "HEDGEROW_COMPILED"
TARGETS = ("x86-64-v4", "x86-64-v3")
"""As in src/hedgerow/compiling/cache.py; a test compares them."""
PLATFORMS = {"linux": "manylinux_2_28_x86_64", "win32": "win_amd64", "darwin": "macosx_11_0_x86_64"}

SOURCES = "sources.txt"
"""In an archive: the names of the folders of all modules with kernels, which are hashes of their sources"""
MEMBER = re.compile(rf"hedgerow/({SOURCES}|\w+-[0-9a-f]{{16}}/[\w.<>-]+\.nb[ci])")
"""What may be in an archive. There are no links and no names that lead out of the folder."""
MOST_BYTES = 100_000_000
"""Of all that is in an archive, several times what it takes"""


def python_tag() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def archive_in(root: Path) -> Path:
    """The archive of a clone with the kernels for this Python and system, whether or not it exists."""
    return root / "kernels" / f"{python_tag()}-{PLATFORMS.get(sys.platform, sys.platform)}.tar.xz"


def is_intel() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def compile_into(folder: Path, root: Path) -> Path:
    """Compile all kernels of the sources in `root` for TARGETS; the folder below `folder` that holds them.

    In one process for each: names in compiled code may depend on what a process has compiled before.
    """
    settings = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(root / "src")}
    settings.pop("HEDGEROW_PRIVATE_CACHE", None)
    for target in TARGETS:
        settings |= {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": ""}
        subprocess.run([sys.executable, "-m", "hedgerow", "compile", "--native", "-j", "1"], env=settings, check=True)
    return folder / "hedgerow"


def unpack(archive: Path, target: Path) -> None:
    """Let `target` hold what is in the archive, and nothing else. Code of other sources is never looked up there.

    Raises:
        ValueError: If the archive is damaged, or holds anything but files of compiled code; then nothing is written.
    """
    advice = "fetch it again, or remove it: then kernels are compiled when they are needed"
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="kernels-") as folder:
        made = Path(folder, "hedgerow")
        made.mkdir()
        try:
            with lzma.open(archive) as whole:  # read to its end, where its checksum is
                content = whole.read(MOST_BYTES)
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as packed:
                for entry in packed:
                    if not entry.isreg() or not MEMBER.fullmatch(entry.name):
                        raise ValueError(f"it has no place for {entry.name!r}")
                    file = Path(folder, entry.name)
                    file.parent.mkdir(exist_ok=True)
                    file.write_bytes(packed.extractfile(entry).read())  # type: ignore[union-attr] - a file has content
            if not (made / SOURCES).is_file():
                raise ValueError(f"it has no {SOURCES}")
        except (EOFError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
            raise ValueError(f"{archive} is damaged or no archive of compiled kernels ({error}); {advice}") from error
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


class CompiledKernels(BuildHookInterface):  # type: ignore[misc]
    """Fills `hedgerow/compiled` of a platform wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if self.target_name != "wheel":
            return
        if version == "editable":
            if is_intel() and archive_in(root).is_file():
                unpack(archive_in(root), root / "src" / "hedgerow" / "compiled")
            return
        if not os.environ.get(SWITCH):
            return
        if not is_intel():
            raise RuntimeError(f"{SWITCH} is for x86-64 processors; this is {platform.machine()}: build the pure wheel")
        self.folder = Path(tempfile.mkdtemp(prefix="hedgerow-kernels-"))
        build_data["force_include"][str(compile_into(self.folder, root))] = "hedgerow/compiled"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python_tag()}-{python_tag()}-{PLATFORMS[sys.platform]}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)
