"""One registry: from names to learners, worlds, adversaries and cost distributions, and a door for those of others.

    @hr.learners.register("greedy")                   # also hr.worlds, hr.losses (adversaries) and hr.costs
    class Greedy: ...

    hr.learners.names(), hr.learners.find("greedy"), hr.learners.describe("greedy")

A name is looked for in this order:

    "s-ops"                   what ships with hedgerow (`builtin.py`)
    "greedy"                  what was registered with the decorator
    "package.module:Greedy"   anything that can be imported
    "greedy.py:Greedy"        a file, by its path from the folder of the experiment that names it
    "greedy"                  entry points of installed distributions, groups `hedgerow.learners`, `hedgerow.worlds`,
                              `hedgerow.losses` and `hedgerow.costs`

Whatever goes wrong in somebody else's code is one line that names its file, its line and the error; nothing is
swallowed. `table` looks up and registers, `loading` runs the code of others, `origin` says which code it was,
`signatures` reads parameters.
"""

from __future__ import annotations

from hedgerow.registry import builtin
from hedgerow.registry.registry import Description, Found, Registry

__all__ = ["Description", "Found", "Registry", "adversaries", "costs", "learners", "worlds"]

learners = Registry("learner", "hedgerow.learners", builtin.LEARNERS)
worlds = Registry("world", "hedgerow.worlds", builtin.WORLDS, reserved=("file",))
adversaries = Registry("adversary", "hedgerow.adversaries", builtin.ADVERSARIES, reserved=("own",))
costs = Registry(
    "cost distribution", "hedgerow.costs", builtin.COSTS, base="hedgerow.model.costs:CostDistribution"
)  # fmt: skip
