"""The gallery: a page that is made of the experiments that ship with the package, and of figures of their results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hedgerow.experiments import source
from hedgerow.experiments.spec import Experiment, load

ROOT = Path(__file__).resolve().parents[2]
FIGURES = "docs/figures/gallery"


@dataclass(frozen=True)
class Picture:
    """One figure of the gallery."""

    name: str
    """`<experiment>-<name>.svg` is its file"""
    drawn_as: str
    """The file that `hedgerow report --figures` writes, without its ending"""
    caption: str


PICTURES: dict[str, tuple[Picture, ...]] = {
    "quickstart": (
        Picture("regret", "random-small__switching-1000__T20000__regret", "Regret of four learners"),
        Picture(
            "margin",
            "random-small__switching-1000__T20000__margin-0",
            "How far every episode stays below its threshold",
        ),
    ),
    "demo": (
        Picture("saved", "ev-workday__real-days__T19440__saved", "Carbon saved, and every day over the limit"),
        Picture("mixing", "ev-workday__real-days__T19440__mixing", "How much is left to today's rule"),
    ),
    "adversaries": (
        Picture("switching", "random-small__switching-1000__T20000__regret", "Regret against losses that switch"),
        Picture(
            "pursuit", "random-small__pursuit-0.01__T20000__regret", "Regret against losses that pursue the learner"
        ),
    ),
    "lower-bound": (
        Picture("safe", "rewarding-action-safe__own__T64000__regret", "Regret where the rewarding action is safe"),
        Picture(
            "costly",
            "rewarding-action-too-costly__own__T64000__margin-0",
            "Margin where the rewarding action costs too much",
        ),
    ),
}
"""By experiment: the figures that its section shows."""


def shipped() -> tuple[str, ...]:
    """The experiments of the gallery; comparisons have a page of their own (docs/field.md)."""
    return tuple(name for name in source.shipped() if not name.startswith("compare-"))


def page() -> str:
    """The page, in Markdown."""
    parts = [
        "# Gallery\n",
        "The experiments that ship with hedgerow (`hedgerow run --list`): question, command and figures of each.\n",
    ]
    for name in shipped():
        parts.append(_section(name, load(name)))
    return "\n".join(parts)


def stage(pages: Path, root: Path = ROOT) -> list[str]:
    """Write gallery.md; complaints about figures that are missing."""
    (pages / "gallery.md").write_text(page(), encoding="utf-8")
    return missing_figures(root)


def missing_figures(root: Path = ROOT) -> list[str]:
    """What the page shows and nobody has drawn."""
    names = [figure_file(name, picture) for name in shipped() for picture in PICTURES.get(name, ())]
    undrawn = [file for file in names if not (root / FIGURES / file).is_file()]
    missing = [f"{FIGURES}/{file}: not drawn yet; python tools/draw_gallery.py draws it" for file in undrawn]
    unknown = [name for name in shipped() if not PICTURES.get(name)]
    return missing + [f"the gallery shows no figure of {name}; choose one in tools/docs/gallery.py" for name in unknown]


def figure_file(name: str, picture: Picture) -> str:
    return f"{name}-{picture.name}.svg"


def _section(name: str, experiment: Experiment) -> str:
    cells = len(experiment.worlds) * len(experiment.adversaries) * len(experiment.learners)
    cells *= len(experiment.episodes) * len(experiment.seeds)
    lengths = " and ".join(f"{length:,}" for length in experiment.episodes)
    lines = [
        f"## {experiment.title}\n",
        f"{experiment.description}\n",
        f"{cells} runs of {lengths} episodes.\n",
        f"```sh\nhedgerow run {name}\nhedgerow report out/{name}\n```\n",
    ]
    for picture in PICTURES.get(name, ()):
        lines.append(f"![{picture.caption}](figures/gallery/{figure_file(name, picture)})\n")
        lines.append(f"{picture.caption}.\n")
    lines.append(f'??? note "The file {name}.toml"\n')
    body = f'```toml title="{name}.toml"\n{experiment.source.text.rstrip()}\n```'
    lines.append("\n".join(f"    {line}" if line else "" for line in body.splitlines()) + "\n")
    return "\n".join(lines)
