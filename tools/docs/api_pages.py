"""Which page of the reference has which names. A test holds it against what is public."""

from __future__ import annotations

from dataclasses import dataclass

COMMAND_LINE = "command-line.md"


@dataclass(frozen=True)
class Page:
    """One page: names of `hedgerow`, or of classes that its calls hand out, then modules with all that is public."""

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
            "Layout", "CMDP", "View", "Log", "Episode", "Policy", "Mixture", "Environment", "from_table", "unroll",
            "importers.tables.TableWorld", "model.knowledge.Knowledge", "model.policy.Actions",
        ),
        ("costs", "occupancy"),
    ),
    Page(
        "learners.md",
        "Learners",
        "The learners of the paper, two that build on them (B-OPS, C-OPS), what a learner is, and what yours can use.",
        (
            "SVOPS", "SOPS", "CVOPS", "BOPS", "COPS", "UOBREPS", "Learner", "Plan", "SafePolicy", "check_learner",
            "save", "load", "Journal",
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
        ("simulate", "compare", "sweep", "report", "save_figure", "__version__"),
        ("results", "hooks"),
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
