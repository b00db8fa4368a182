"""One flipped bit anywhere in the file of a finished cell: it is found, named in one line, and repaired by a resume.

python -m tests.soak.flip_cells --count 3000
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from kill_sweep import EXPERIMENT
from rounds import Broken, main, rounds

from hedgerow import results
from hedgerow.errors import FileFormatError
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import cells_of, parse
from hedgerow.experiments.sweep import run_experiment
from hedgerow.results import store


def soak(count: int, rng: random.Random) -> str:
    experiment = parse(Source("flips.toml", EXPERIMENT, Path()))
    hashes = {cell.id: cell.hash for cell in cells_of(experiment)}
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="flip-cells-") as name:
        out = Path(name) / "out"
        if not run_experiment(experiment, out, RunOptions(backend="serial")).complete:
            raise Broken("the sweep did not end well")
        paths = sorted((out / "cells").iterdir())
        for _ in rounds(count):
            path = rng.choice(paths)
            blob = path.read_bytes()
            bit = rng.randrange(8 * len(blob))
            where = f"bit {bit} of {path.name}"
            damaged = bytearray(blob)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            found = store.inspect(out, hashes)
            if found.finished != set(hashes) - {path.stem} or list(found.damaged) != [path.stem]:
                raise Broken(f"{where} was not found")
            reasons[found.damaged[path.stem].removeprefix(f"{path} ").split(":")[0]] += 1
            _check_refused(out, where)
            tally = run_experiment(experiment, out, RunOptions(backend="serial", resume=True))
            if list(tally.damaged) != [path.stem] or not tally.complete or path.read_bytes() != blob:
                raise Broken(f"{where} was not repaired")
    told = ", ".join(f"{value} {key}" for key, value in reasons.items())
    return f"{count} flips, all found, refused by `results.open` and repaired ({told})"


def _check_refused(out: Path, where: str) -> None:
    try:
        results.open(out).curves()
    except FileFormatError as error:
        if "\n" in str(error):
            raise Broken(f"{where} takes more than a line") from error
        return
    raise Broken(f"{where} was read")


if __name__ == "__main__":
    sys.exit(main("bit flips of cells", soak, 3000))
