"""Run experiments that ship with the package at their documented size, and draw the figures of the gallery.

    python tools/draw_gallery.py                   all of them, some minutes
    python tools/draw_gallery.py quickstart demo   these

Results go to out/gallery and are used again: what is finished there is not run again. The figures that
`tools/docs/gallery.py` chooses go to docs/figures/gallery. The first one of the demo also opens README, as
docs/figures/demo.svg, in colours that follow the reader's choice of light or dark. Drawing needs hedgerow[figures].
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hedgerow.errors import HedgerowError  # noqa: E402
from hedgerow.experiments.options import RunOptions  # noqa: E402
from hedgerow.experiments.spec import load  # noqa: E402
from hedgerow.experiments.sweep import run_experiment  # noqa: E402
from hedgerow.report.export import FOR_DOCS, write_figures  # noqa: E402
from hedgerow.report.plots import DARK  # noqa: E402
from tools.docs.gallery import FIGURES, PICTURES, figure_file, shipped  # noqa: E402

LIKE_THE_OTHERS = {"width_mm": FOR_DOCS.width_mm, "font_size": FOR_DOCS.font_size, "title": True}
RESULTS = ROOT / "out" / "gallery"


def draw(name: str, results: Path = RESULTS, figures: Path = ROOT / FIGURES) -> list[Path]:
    """Run one experiment, or finish it, and write its chosen figures; their paths."""
    directory = results / name
    tally = run_experiment(load(name), directory, RunOptions(processes=2, resume=directory.exists()))
    if tally.failed:
        raise HedgerowError(f"{name}: {len(tally.failed)} cells failed; hedgerow resume {directory}")
    drawn = {path.stem: path for path in write_figures(directory, directory / "figures", ("svg",), **LIKE_THE_OTHERS)}
    missing = [picture.drawn_as for picture in PICTURES[name] if picture.drawn_as not in drawn]
    if missing:
        raise HedgerowError(f"{name} has no figure {', '.join(missing)}; it has {', '.join(sorted(drawn))}")
    figures.mkdir(parents=True, exist_ok=True)
    return [
        Path(shutil.copyfile(drawn[picture.drawn_as], figures / figure_file(name, picture)))
        for picture in PICTURES[name]
    ]


def in_both_colours(svg: str) -> str:
    """An SVG that plotly drew in the light colours, with variables in their place, which are others in the dark."""
    for light in DARK:
        red, green, blue = (int(light[k : k + 2], 16) for k in (1, 3, 5))
        svg = svg.replace(f"rgb({red}, {green}, {blue})", f"var(--c{light[1:]})")
    day = "".join(f"--c{light[1:]}:{light};" for light in DARK)
    night = "".join(f"--c{light[1:]}:{dark};" for light, dark in DARK.items())
    style = f"<style>svg{{{day}}}@media (prefers-color-scheme:dark){{svg{{{night}}}}}</style>"
    start = svg.index(">") + 1
    return svg[:start] + style + svg[start:]


def main(arguments: Sequence[str]) -> int:
    unknown = sorted(set(arguments) - set(shipped()))
    if unknown:
        print(f"no such experiment: {', '.join(unknown)}; there are {', '.join(shipped())}", file=sys.stderr)
        return 2
    try:
        for name in arguments or shipped():
            paths = draw(name)
            if name == "demo":
                paths.append(ROOT / "docs" / "figures" / "demo.svg")
                paths[-1].write_text(in_both_colours(paths[0].read_text(encoding="utf-8")), encoding="utf-8")
            for path in paths:
                print(path.relative_to(ROOT))
    except HedgerowError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
