"""Recompute `worlds/frozen.json`: content hashes, sizes and golden values of every frozen parameter choice.

    python tools/freeze_worlds.py                 all entries
    python tools/freeze_worlds.py dope-media      these entries only; the others stay as they are

Run it after an intended change of a builder, read the difference, and say in the changelog why the numbers moved. It
refuses to store values that contradict the numbers an entry quotes from its source.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from hedgerow.errors import CertificateError  # noqa: E402
from hedgerow.model.occupancy import backward_induction, evaluate  # noqa: E402
from hedgerow.planning import offline  # noqa: E402
from hedgerow.registry import worlds  # noqa: E402
from hedgerow.worlds import entries  # noqa: E402
from hedgerow.worlds.world import Golden, World  # noqa: E402

SCHEMA = 2
TOL_PUBLISHED = 1e-6
"""How far a computed value may be from a number of the source (which has six decimals)."""


def golden_values(world: World, published: Mapping[str, float] | None = None) -> Golden:
    """The golden values of a world, computed with certificates and compared with the source's numbers."""
    cmdp, loss = world.cmdp, world.loss
    baseline = None
    if world.baseline_thresholds is not None:
        baseline = offline.optimum(cmdp.with_thresholds(world.baseline_thresholds), loss).value
    if world.baseline is not None:
        baseline = evaluate(cmdp, world.baseline.policy, loss).loss
    golden = Golden(
        optimum=offline.optimum(cmdp, loss).value,
        unconstrained=backward_induction(cmdp.layout, cmdp.transitions, loss).value,
        margin=offline.slater(cmdp).margin,
        baseline=baseline,
        published=None if published is None else dict(published),
    )
    for name, quoted in (published or {}).items():
        found = world.source_value(getattr(golden, name))
        if abs(found - quoted) > TOL_PUBLISHED:
            raise CertificateError(
                f"{world.name}: the {name} is {found!r} ({world.unit}), but the source gives {quoted!r}; "
                "correct the builder or the quoted number"
            )
    return golden


def records(name: str) -> list[dict[str, Any]]:
    """What `frozen.json` stores about an entry."""
    found = entries.find_entry(name)
    result = []
    for params in found.frozen:
        world = entries.build(name, params)
        golden = golden_values(world, None if params else found.published)
        values = {key: value for key, value in vars(golden).items() if value is not None}
        facts = entries.facts_of(world)._asdict()
        result.append(
            {"name": name, "params": dict(world.params), "hash": world.hash, "facts": facts, "golden": values}
        )
    return result


def refresh(path: Path, names: Iterable[str]) -> None:
    """Write the records of `names` into the file, in the order of the catalogue, and keep those of other entries."""
    kept = json.loads(path.read_text(encoding="utf-8"))["entries"]
    fresh = {name: records(name) for name in names}
    stored = [item for name in worlds.builtin for item in fresh.get(name, [old for old in kept if old["name"] == name])]
    path.write_text(json.dumps({"schema": SCHEMA, "entries": stored}, indent=1) + "\n", encoding="utf-8")
    entries.frozen_records.cache_clear()


def main(arguments: Sequence[str]) -> None:
    names = tuple(arguments) or tuple(worlds.builtin)
    refresh(ROOT / "src" / "hedgerow" / "worlds" / entries.FROZEN_FILE, names)
    for item in (item for name in names for item in entries.frozen_records().items() if item[0].startswith(f"{name} ")):
        print(f"{item[1].hash[:12]}  {item[1].golden.optimum:.9f}  {item[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
