"""One registry: from names to learners, worlds, adversaries and cost distributions, and a door for those of others.

    @hr.learners.register("greedy")                   # also hr.worlds, hr.losses (adversaries) and hr.costs
    class Greedy: ...

    hr.learners.names(), hr.learners.find("greedy"), hr.learners.describe("greedy")

A name is looked for in this order:

    "s-ops"                   what ships with hedgerow (`index.json`)
    "greedy"                  what was registered with the decorator
    "package.module:Greedy"   anything that can be imported
    "greedy.py:Greedy"        a file, by its path from the folder of the experiment that names it
    "greedy"                  entry points of installed distributions, groups `hedgerow.learners`, `hedgerow.worlds`,
                              `hedgerow.adversaries` and `hedgerow.costs`

Whatever goes wrong in foreign code is one line that names its file, its line and the error; nothing is
swallowed. `registry` looks up, registers and says which code something was, `plugins` runs the code of others,
`signatures` reads parameters. `index.json` says what ships with hedgerow, and what lists tell about it, so that nothing
is imported before it is used; `tools/write_index.py` writes it from the sources.
"""

from __future__ import annotations

import json
from importlib import resources

from hedgerow.registry.registry import Description, Found, Registry

__all__ = ["Description", "Found", "Registry", "adversaries", "costs", "learners", "worlds"]

INDEX = "index.json"

_shipped = json.loads(resources.files(__name__).joinpath(INDEX).read_text(encoding="utf-8"))

learners = Registry("learner", "hedgerow.learners", _shipped["learner"])
worlds = Registry("world", "hedgerow.worlds", _shipped["world"], reserved=("file",))
adversaries = Registry("adversary", "hedgerow.adversaries", _shipped["adversary"], reserved=("own",))
costs = Registry(
    "cost distribution", "hedgerow.costs", _shipped["cost distribution"], base="hedgerow.model.costs:CostDistribution"
)  # fmt: skip
