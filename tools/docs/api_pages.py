"""Which page of the reference has which names. A test holds it against what is public."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

COMMAND_LINE = "command-line.md"


@dataclass(frozen=True)
class Page:
    """One page: names of `hedgerow`, then modules with all that is public in them."""

    file: str
    title: str
    text: str
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


PAGES = (
    Page(
        "world.md",
        "World and model",
        "Where states and actions are, how the world moves, what it costs, what a learner may see of it.",
        (
            "Layout", "CMDP", "TableWorld", "View", "Knowledge", "Log", "Episode", "Actions", "Policy", "Mixture",
            "Environment", "from_table", "unroll", "unroll_gymnasium",
        ),
        ("costs", "occupancy"),
    ),
    Page(
        "learners.md",
        "Learners",
        "The learners of the paper, what a learner is, and what a learner of your own can build on.",
        (
            "SVOPS", "SOPS", "CVOPS", "UOBREPS", "Learner", "Plan", "SafePolicy", "Ledger", "Statistics",
            "check_learner", "save", "load",
        ),
        ("learners",),
    ),
    Page(
        "field.md",
        "The field",
        "The other learners, which those of the paper are compared with, and what each of them is told.",
        (),
        ("field",),
    ),
    Page(
        "running.md",
        "Running and results",
        "Play a learner in a simulated world with exact scores, and read what runs and sweeps leave behind.",
        ("simulate", "Run", "sweep", "report", "save_figure", "__version__"),
        ("results",),
    ),
    Page(
        "projection.md",
        "Projection",
        "The convex program of every episode, on its own, with certificates.",
        (),
        ("projection",),
    ),
    Page(
        "confidence.md",
        "Confidence sets and planning",
        "Intervals that hold at all times, and optima of worlds that are known.",
        (),
        ("confidence", "offline"),
    ),
    Page("losses.md", "Losses", "Adversaries: who chooses the loss of every episode.", (), ("losses",)),
    Page("worlds.md", "Worlds", "Named worlds that never change, and those of others.", (), ("worlds",)),
    Page("gymnasium.md", "Gymnasium", "Worlds as environments, and environments as worlds.", (), ("gym",)),
    Page("errors.md", "Errors", "What hedgerow raises on purpose.", (), ("errors",)),
)  # fmt: skip


def is_generated(place: str, root: Path) -> bool:
    """Whether the site makes this page, which the repository does not have: `docs/api/world.md`, `docs/gallery.md`."""
    path = Path(place)
    if path.parent.as_posix() == "docs/notebooks":
        return (root / path.with_suffix(".py")).is_file()
    made = {"docs/gallery.md", f"docs/api/{COMMAND_LINE}", *(f"docs/api/{page.file}" for page in PAGES)}
    return place in made
