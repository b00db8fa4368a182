"""Profile an episode, function by function: samples of Linux `perf` in the compiled loop.

    python tools/profile_episode.py "(1,5^9,1)x4, m=2"   # or 1 to 7, in the order of `python -m bench episode`
    python tools/profile_episode.py 4 --learner s-ops --preset sharpest --horizon 20000 --after 8000

Compiled code has no names for `perf`. The tool compiles the kernels again, into a folder of their own, and writes their
symbols where `perf` looks for them, /tmp/perf-PID.map. It takes about two minutes, most of it compilation.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

EPISODES = 60_000
LEAST_SHARE = 0.01


def main(choice: str, kind: str, preset: str, horizon: int, after: int | None) -> None:
    with TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder  # read when kernels are made; object code comes with compilation only
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from bench.episode import DELTA
        from bench.episode_worlds import LABELS
        from hedgerow.compiling import cache

        cache.ignore()  # code that came with the package has no symbols
        from hedgerow.learners.api import SafePolicy
        from hedgerow.learners.ops.s_ops import SOPS
        from hedgerow.learners.ops.sv_ops import SVOPS
        from hedgerow.planning.offline import slater
        from hedgerow.simulation.run import Simulation

        label = list(LABELS)[int(choice) - 1] if choice.isdigit() else choice
        world = LABELS[label]()
        view, baseline = world.cmdp.view(), None
        if kind == "s-ops":
            safest = slater(world.cmdp)
            baseline = SafePolicy(safest.policy, safest.costs)
        learner = (
            SVOPS(view, horizon, DELTA, preset)
            if baseline is None
            else SOPS(view, horizon, DELTA, preset, baseline=baseline)
        )
        simulation = Simulation(world.cmdp, learner, world.loss, 0)
        count = int(EPISODES * min(1.0, 200 / world.triples))
        simulation.advance(count if after is None else after)  # compiles, and learns something
        with Path(f"/tmp/perf-{os.getpid()}.map").open("w") as symbols:
            symbols.writelines(f"{start:x} {size:x} {name}\n" for start, size, name in _symbols(Path(folder)))
        data = Path(folder) / "perf.data"
        perf = subprocess.Popen(["perf", "record", "-q", "-F", "5000", "-o", data, "-p", str(os.getpid())])
        time.sleep(1.0)  # until it listens
        begun = time.process_time()
        simulation.advance(count)
        spent = time.process_time() - begun
        perf.send_signal(signal.SIGINT)
        perf.wait()
        print(f"{label}, {kind}, {preset}: {1e6 * spent / count:.1f} us per episode")
        _report(data)


def _symbols(folder: Path) -> list[tuple[int, int, str]]:
    """(address, size, name) of every function in the object code of every compiled kernel."""
    from numba.core.dispatcher import Dispatcher

    found = []
    for kernel in [each for each in gc.get_objects() if isinstance(each, Dispatcher)]:
        for compiled in kernel.overloads.values():
            library, entry = compiled.library, compiled.fndesc.llvm_func_name
            try:
                address, code = library.get_pointer_to_function(entry), library._get_compiled_object()
            except (RuntimeError, ValueError):  # a kernel that only exists within others
                continue
            (folder / "kernel.o").write_bytes(code)
            listing = subprocess.run(
                ["nm", "-S", "--defined-only", folder / "kernel.o"], capture_output=True, text=True
            )
            functions = {
                name: (int(at, 16), int(size, 16))
                for at, size, kind, name in re.findall(r"(\w+) (\w+) (\w) (\S+)", listing.stdout)
                if kind in "tTwW"
            }
            if entry in functions:
                base = address - functions[entry][0]
                found += [(base + at, size, _readable(name)) for name, (at, size) in functions.items()]
    return found


def _readable(symbol: str) -> str:
    """`projection.dual._flow_pass` for _ZN8hedgerow10projection4dual10_flow_passB3v56..."""
    match = re.match(r"_ZN8hedgerow(.*)", symbol)
    if not match:
        return symbol
    parts, rest = [], match.group(1)
    while number := re.match(r"\d+", rest):
        length = int(number.group())
        parts.append(rest[number.end() : number.end() + length])
        rest = rest[number.end() + length :]
    return ".".join(parts)


def _report(data: Path) -> None:
    """Shares of all functions above a percent; exponentials and logarithms of the C library together."""
    command = ["perf", "report", "-i", str(data), "--stdio", "--sort", "symbol"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    shares: Counter[str] = Counter()
    for line in lines:
        if match := re.match(r"\s*([\d.]+)%\s+\[.\]\s+(\S+)", line):
            name = match.group(2)
            library = re.search(r"(exp|log)(_fma|@|$)", name) is not None and "." not in name
            shares["exp and log of the C library" if library else name] += float(match.group(1)) / 100.0
    for name, share in shares.most_common():
        if share >= LEAST_SHARE:
            print(f"{share:6.1%}  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world")
    parser.add_argument("--learner", choices=("sv-ops", "s-ops"), default="sv-ops")
    parser.add_argument("--preset", choices=("paper", "sharp", "sharpest"), default="sharp")
    parser.add_argument("--horizon", type=int, default=10 * EPISODES, metavar="EPISODES", help="of the learner")
    parser.add_argument("--after", type=int, metavar="EPISODES", help="that are played before; as many as are profiled")
    asked = parser.parse_args()
    main(asked.world, asked.learner, asked.preset, asked.horizon, asked.after)
