"""Build hook: with HEDGEROW_COMPILED=1 a wheel brings its kernels compiled, for this Python, system and numba.

    python -m build --wheel --no-isolation                          the pure wheel, for every system
    HEDGEROW_COMPILED=1 python -m build --wheel --no-isolation      one for this Python and x86-64: nothing to compile

The kernels are compiled by `hedgerow compile` in a process of its own, for the processors of `compiling/cache.py`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH = "HEDGEROW_COMPILED"
TARGET = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
"""As `SETTINGS` of src/hedgerow/compiling/cache.py; a test compares them."""
PLATFORMS = {"linux": "manylinux_2_28_x86_64", "win32": "win_amd64", "darwin": "macosx_11_0_x86_64"}


class CompiledKernels(BuildHookInterface):  # type: ignore[misc]
    """Fills `hedgerow/compiled` of a platform wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable" or not os.environ.get(SWITCH):
            return
        if platform.machine().lower() not in ("x86_64", "amd64"):
            raise RuntimeError(f"{SWITCH} is for x86-64 processors; this is {platform.machine()}: build the pure wheel")
        self.folder = Path(tempfile.mkdtemp(prefix="hedgerow-kernels-"))
        settings = (
            os.environ | TARGET | {"NUMBA_CACHE_DIR": str(self.folder), "PYTHONPATH": str(Path(self.root, "src"))}
        )
        settings.pop("HEDGEROW_PRIVATE_CACHE", None)
        subprocess.run([sys.executable, "-m", "hedgerow", "compile", "--native"], env=settings, check=True)
        build_data["force_include"][str(self.folder / "hedgerow")] = "hedgerow/compiled"
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["pure_python"], build_data["tag"] = False, f"{python}-{python}-{PLATFORMS[sys.platform]}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)
