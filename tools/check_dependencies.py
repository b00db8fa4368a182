"""Does the package work with the oldest and with the newest versions of everything that pyproject.toml allows?

    python tools/check_dependencies.py                  # both, each in an environment of its own; minutes
    python tools/check_dependencies.py --only oldest    # the lower bounds alone
    python tools/check_dependencies.py --only newest --python python3.13

The wheel is built and installed with all extras, without constraints.txt. Then the catalogue, the extras and files of
results are tested, an experiment and the demo are run from the command line, and golden runs are recorded: both
environments have to compute the same bits. uv chooses the versions, from wheels alone. The lower bounds are those of
the oldest Python that the package supports; a newer one may have no wheels of them, and needs newer versions anyway.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
TESTS = (
    "tests/worlds/test_contract.py",
    "tests/gym/test_cmdp_env.py",
    "tests/journal/test_journal.py",
    "tests/serve/test_serve.py",
    "tests/experiments/test_dask.py",
    "tests/report/test_export.py",
    "tests/report/test_page.py",
    "tests/results/test_store.py",
    "tests/simulation/test_on_block.py",
)
"""Every dependency and every extra is used by one of these."""
TOOLS = ("hypothesis", "packaging", "pandas", "pytest", "pytest-timeout")
GOLDEN = r"^(s-ops sharpest|cv-ops paper|dope source|s-lp hedgerow) .*tied switching"
VERSIONS = (
    "import json, sys; from importlib.metadata import version; print(json.dumps([version(n) for n in sys.argv[1:]]))"
)


class Environment:
    """A new environment with the wheel, all extras, and versions of one kind."""

    def __init__(self, folder: Path, uv: Path, python: str, kind: str) -> None:
        self.folder, self.uv, self.kind = folder, uv, kind
        self.scripts = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        self.settings = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self.run(uv, "venv", "--quiet", "--python", python, folder / "env")

    def install(self, wheel: Path) -> None:
        self._uv_install("--resolution", RESOLUTIONS[self.kind], "--all-extras", "-r", str(ROOT / "pyproject.toml"))
        self._uv_install("--no-deps", str(wheel))
        self._uv_install(*TOOLS)

    def _uv_install(self, *arguments: str) -> None:
        self.run(self.uv, "pip", "install", "--quiet", "--no-build", "--python", self.scripts / "python", *arguments)

    def versions(self) -> str:
        names = _direct()
        command = [self.scripts / "python", "-c", VERSIONS, *names]
        told = subprocess.run(command, env=self.settings, check=True, capture_output=True, text=True).stdout
        return ", ".join(f"{name} {version}" for name, version in zip(names, json.loads(told), strict=True))

    def run(self, *command: str | Path, cwd: Path = ROOT) -> None:
        """Run a command, or end with what it was."""
        print(f"{self.kind}:", *(str(word).removeprefix(f"{self.folder}{os.sep}") for word in command), flush=True)
        done = subprocess.run(list(command), env=self.settings, cwd=cwd, check=False)
        if done.returncode:
            sys.exit(f"{self.kind}: exit code {done.returncode}")

    def try_all(self, golden: Path) -> None:
        python, program = self.scripts / "python", self.scripts / "hedgerow"
        out = self.folder / "out"
        self.run(program, "run", "quickstart", "--quiet", "--out", out / "quickstart", cwd=self.folder)
        self.run(program, "report", out / "quickstart", cwd=self.folder)
        self.run(program, "demo", "--quiet", "--out", out / "demo", cwd=self.folder)
        plain = ["-m", "not nightly", "-W", "ignore::DeprecationWarning", "-p", "no:cacheprovider", "-rs"]
        self.run(python, "-m", "pytest", *plain, *TESTS)
        command = "check" if golden.exists() else "record"
        self.run(python, ROOT / "tools" / "golden_runs.py", command, golden, "--only", GOLDEN)


def _about() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def _direct() -> list[str]:
    """The names of all dependencies, those of extras included."""
    about = _about()
    wanted = [*about["dependencies"], *(one for extra in about["optional-dependencies"].values() for one in extra)]
    return sorted({one.partition(">")[0].partition("[")[0] for one in wanted})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=RESOLUTIONS, help="one of the environments")
    parser.add_argument("--python", default=sys.executable, help="that of the environments")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hedgerow-dependencies-") as name:
        folder = Path(name)
        venv.create(folder / "uv", with_pip=True)
        scripts = folder / "uv" / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([scripts / "python", "-m", "pip", "install", "-qq", "uv"], check=True)
        build = [scripts / "uv", "build", "--quiet", "--wheel", "--out-dir", folder / "dist", ROOT]
        subprocess.run(build, check=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        for kind in [given.only] if given.only else RESOLUTIONS:
            begun = time.perf_counter()
            (folder / kind).mkdir()
            environment = Environment(folder / kind, scripts / "uv", given.python, kind)
            environment.install(wheel)
            print(f"{kind}: {environment.versions()}", flush=True)
            environment.try_all(folder / "golden.json")
            print(f"{kind}: all is well, after {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
