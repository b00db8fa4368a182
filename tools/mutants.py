"""Would the tests notice? One mistake at a time is written into a copy of the sources, and its tests must fail.

    .venv/bin/python tools/mutants.py                       # all mutants, in some minutes
    .venv/bin/python tools/mutants.py eta gamma             # some of them
    .venv/bin/python tools/mutants.py --tree ../older       # with the sources and tests of another checkout

A mutant is killed if a test that `make test` runs fails. It names the tests that should; without the mistake they must
pass. Kernels run as plain Python: nothing is compiled for a mistake. The first eleven are the constants of
`verify/mutants.py`, wrong by little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "tools", "bench", "pyproject.toml")
OPTIONS = ("-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not nightly")
PLAIN = {"NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Mutant(NamedTuple):
    """A mistake: the old text, which is in the file once, becomes the new one; the tests should fail then."""

    file: str
    tests: str
    old: str
    new: str


MUTANTS = {
    "cost_log": Mutant("confidence/radii.py", "confidence/test_radii.py",
        "cost_log = log(2 * num_costs) + log(T)", "cost_log = log(num_costs) + log(T)"),
    "transition_log": Mutant("confidence/radii.py", "confidence/test_radii.py",
        "log(4 * max(1, unknowns.num_triples))", "log(max(1, unknowns.num_triples))"),
    "certificate_log": Mutant("confidence/aggregate.py", "confidence/test_aggregate.py -k twin",
        "log_term_of(rule.log_inverse_delta, len", "log_term_of(0.95 * rule.log_inverse_delta, len"),
    "ball_log": Mutant("confidence/balls.py", "confidence/test_ball.py -k coin",
        "(log_inverse_delta + overhead)", "(0.95 * log_inverse_delta + overhead)"),
    "ceiling": Mutant("learners/kernels.py", "learners/test_knowing.py -k first_weight",
        "min(bounds[i], baseline.ceilings[i])", "min(bounds[i], 0.95 * baseline.ceilings[i])"),
    "eta": Mutant("learners/ops/step.py", "learners/test_svops.py -k twin",
        "reals.eta = rate", "reals.eta = 0.95 * rate"),
    "gamma": Mutant("learners/ops/step.py", "learners/test_svops.py -k twin",
        "reals.gamma = rate", "reals.gamma = 0.95 * rate"),
    "search_radius": Mutant("learners/ops/search.py", "learners/test_safe_search.py -k specification_says",
        "return rule.radius_scale * radius", "return 0.95 * rule.radius_scale * radius"),
    "squares": Mutant("confidence/aggregate.py", "confidence/test_aggregate.py -k twin",
        "(miss * miss + squares) / (scale", "(0.9 * miss * miss + squares) / (scale"),
    "mixing": Mutant("learners/kernels.py", "learners/test_sops.py -k weight",
        "min(1.0, lam * ROUND_UP + 1e-15)", "min(1.0, 0.95 * lam)"),
    "coin": Mutant("learners/kernels.py", "learners/test_sops.py -k coin",
        "uniform(coin) < mixing", "uniform(coin) < 0.8 * mixing"),
    "switching": Mutant("losses/oblivious.py", "losses/test_losses.py",
        "turn = (np.arange(first, first + count) // self.period) % number",
        "turn = (np.arange(first + 1, first + count + 1) // self.period) % number"),
    "induction": Mutant("model/occupancy.py", "planning/test_offline.py -k feasible",
        "V[states] = Q.min(axis=1)", "V[states] = Q.mean(axis=1)"),
    "margin": Mutant("planning/offline.py", "planning/test_offline.py -k feasible",
        "alpha, relaxation = cmdp.thresholds - margin, 0.0", "alpha, relaxation = cmdp.thresholds, 0.0"),
    "checksum": Mutant("storage/datafile.py", "test_files.py",
        "if hashlib.sha256(body).hexdigest().encode() != digest:", "if len(digest) != _DIGEST_LENGTH:"),
    "twice": Mutant("storage/datafile.py", "test_files.py",
        "if len(set(names)) != len(names):", "if len(set(names)) > len(names):"),
    "worst constraint": Mutant("results/metrics.py", "results/test_metrics.py",
        "result: FloatArray = np.max(sums, axis=0) if", "result: FloatArray = np.sum(sums, axis=0) if"),
    "interval": Mutant("results/metrics.py", "results/test_seed_statistics.py",
        "ddof=1", "ddof=0"),
    "cell hash": Mutant("results/manifest.py", "experiments/test_frozen_cells.py experiments/test_cells.py",
        'spec.items() if key != "label"', 'spec.items() if key not in ("label", "delta")'),
    "imports": Mutant("registry/registry.py", "registry/test_registry.py",
        "target: Any = sys.modules.get(module)", "target: Any = import_module(module)"),
    "turn": Mutant("learners/base.py", "learners/test_ownership.py -k second_thread",
        "if not refused and NOW in turn and turn[NOW] is mine:", "if NOW in turn:"),
    "queue": Mutant("learners/field/flow.py", "learners/test_ucpd_and_bob_pd.py -k known",
        "@ costs - self.view.thresholds)", "@ costs - 0.95 * self.view.thresholds)"),
    "version": Mutant("learners/files.py", "learners/test_soundness.py -k releases",
        "if file.version != FILE_VERSION:", "if file.version < FILE_VERSION:"),
}  # fmt: skip


def failing(tree: Path, tests: str) -> tuple[bool, str]:
    """Whether one of the tests fails, and its name."""
    files = [str(tree / "tests" / name) if name.endswith(".py") else name for name in tests.split()]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *files]
    environment = {**os.environ, **PLAIN, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests {tests} cannot be run: {done.stdout[-500:]}{done.stderr[-500:]}")
    failed = [line.split(" - ")[0].split("::")[-1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    return done.returncode == 1, " ".join(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write mistakes into a copy of the sources; their tests must fail.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"mutants; by default all: {', '.join(MUTANTS)}")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose sources and tests are tried")
    given = parser.parse_args()
    alive, passed = 0, set[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        tree = Path(scratch)
        for name in COPIED:
            source = given.tree / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
        for name in given.names or MUTANTS:
            mutant = MUTANTS[name]
            file = tree / "src" / "hedgerow" / mutant.file
            sound = file.read_text(encoding="utf-8")
            if sound.count(mutant.old) != 1:
                raise ValueError(f"the mutant {name!r} has lost its place in {mutant.file}: write it anew")
            if mutant.tests not in passed and failing(tree, mutant.tests)[0]:
                raise RuntimeError(f"{mutant.tests} fails without a mistake")
            passed.add(mutant.tests)
            file.write_text(sound.replace(mutant.old, mutant.new), encoding="utf-8")
            dead, by = failing(tree, mutant.tests)
            file.write_text(sound, encoding="utf-8")
            alive += not dead
            print(f"{'killed' if dead else 'ALIVE'}  {name:18}{by or mutant.tests}", flush=True)
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
