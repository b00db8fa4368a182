"""Rewrite docs/worlds.md from the catalogue: the page has no number that is not in `frozen.json`.

    python tools/write_worlds.py             after `python tools/freeze_worlds.py`
    python tools/write_worlds.py --check     exit code 1 if the page is not up to date

No world is built for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "worlds.md"
sys.path[:0] = [str(ROOT / "src")]

from hedgerow import worlds  # noqa: E402
from hedgerow.registry import worlds as registered  # noqa: E402
from hedgerow.worlds.entries import ADVERSARIES, FrozenRecord, complete_params, find_entry, frozen_record  # noqa: E402

HEAD = """\
# The worlds of the catalogue

This page is for readers who look for a world to test a learner in. It lists all worlds that ship with hedgerow, with
their sizes, optima and the price of their constraints. `hedgerow worlds -v` prints the same list, `hedgerow check NAME`
describes one world in detail.

<!-- Written by tools/write_worlds.py from the catalogue. Do not edit it here. -->

```python
import hedgerow as hr

world = hr.worlds.make("slater-chain", rho=0.5)
round(world.golden.optimum, 6)  # 3.428571
round(world.price, 6)  # 3.428571
world.golden.is_control  # False
```

The **price of the constraint** is the least expected loss under the constraints minus the least one without them, per
episode, under the world's own loss. Where the price is 0 the constraint is **slack**: the best policy
without the constraint satisfies it. Learners may still violate the constraint while they learn. A comparison on
such worlds alone says little about safety. Under an adversary other than `own` they may have a price, and another
world may have none.

"""
SIZES = """\
## Sizes and values

L is the number of steps, m the number of constraints. A world with a random start has one step more, which draws it.
Values are in the unit of the source: larger is better for a reward, smaller for a loss. The margin is the largest one
that all constraints can have simultaneously (rho in the paper), in units of cost. A world with several frozen
choices of parameters has one line for each, with the parameters that differ from the defaults.

| world | source | L | states | actions | transitions | m | unit | optimum | unconstrained | price | margin | baseline |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
BASELINES = """
The last column is the value of the baseline: of a policy that the world names, or of the best one at a smaller budget.
Without either, learners that need a baseline are given the policy with the largest margin.

"""
MEANINGS = """\
## What they are, and which adversaries make sense

`own` repeats the world's own loss in every episode; `hedgerow adversaries` lists the others.

| world | what it is | parameters | adversaries |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    lines = (line for name in registered.builtin for line in _values(name))
    meanings = (_meaning(name) for name in registered.builtin)
    return HEAD + _count() + SIZES + "".join(lines) + BASELINES + MEANINGS + "".join(meanings)


def _count() -> str:
    names = list(registered.builtin)
    slack = [name for name in names if frozen_record(name).golden.is_control]
    return (
        f"There are {len(names)} worlds. With their default parameters the constraint is slack in {len(slack)} of "
        "them: "
        f"{', '.join(slack)}.\n\n"
    )


def _values(name: str) -> Iterator[str]:
    """One line for each frozen choice of parameters."""
    told = worlds.describe(name)
    for params in told.frozen:
        complete = complete_params(find_entry(name), params)
        given = ", ".join(f"{key}={complete[key]}".replace(" ", "") for key in params)
        yield _row(f"{name} ({given})" if given else name, told.source, frozen_record(name, params))


def _row(title: str, source: str, record: FrozenRecord) -> str:
    facts, golden = record.facts, record.golden
    price = "slack" if golden.is_control else _number(facts.scale.distance(golden.price))
    sizes = (facts.steps, facts.states, facts.actions, facts.triples, facts.constraints)
    baseline = "-" if golden.baseline is None else f"{_number(facts.scale(golden.baseline))} ({facts.baseline})"
    values = (_number(facts.scale(golden.optimum)), _number(facts.scale(golden.unconstrained)))
    return _line(
        title, source, *(f"{size:,}" for size in sizes), facts.unit, *values, price, _number(golden.margin), baseline
    )


def _meaning(name: str) -> str:
    told = worlds.describe(name)
    parameters = ", ".join(f"{key}={value}".replace(" ", "") for key, value in told.parameters.items())
    return _line(name, told.description, parameters or "-", ", ".join(told.adversaries or ADVERSARIES))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _number(value: float) -> str:
    """Six decimals; rounding noise does not print as -0.000000."""
    return f"{value if abs(value) >= 5e-7 else 0.0:.6f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Rewrite docs/worlds.md from the catalogue.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    made = page()
    if not given.check:
        TARGET.write_text(made, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == made:
        return 0
    print("docs/worlds.md is not up to date: run python tools/write_worlds.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
