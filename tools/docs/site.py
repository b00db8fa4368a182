"""Build the site: stage the pages, write those that are made, call the builder, count."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools.docs import command_line, gallery, notebooks, reference, search_order, staging
from tools.docs.api_pages import COMMAND_LINE

ROOT = Path(__file__).resolve().parents[2]
PAGES, SITE = "docs-pages", "site"
BUILDERS = ("zensical", "mkdocs")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class DocsError(Exception):
    """The site cannot be built; the message says why, a complaint per line."""


@dataclass(frozen=True)
class Built:
    """What a build left."""

    builder: str
    site: Path
    pages: int
    bytes: int
    seconds: float
    log: str
    """What the builder said, without colours."""

    def __str__(self) -> str:
        return f"{self.site}: {self.pages} pages, {self.bytes / 1e6:.1f} MB, {self.seconds:.1f} s"


def build(work: Path, builder: str = "zensical", cache: Path | None = None, root: Path = ROOT) -> Built:
    """Stage everything into `work`/docs-pages and build it strictly into `work`/site; both are emptied first.

    Args:
        work: A folder. The configuration is copied there too: the builders take paths from where it stands, and
            zensical refuses absolute ones.
        builder: `zensical` or `mkdocs`.
        cache: Where executed notebooks are kept between builds.
        root: The repository.

    Raises:
        DocsError: If anything is missing, or the builder has a warning.
    """
    if builder not in BUILDERS:
        raise DocsError(f"there is no builder {builder!r}; choose {' or '.join(BUILDERS)}")
    start = time.perf_counter()
    pages, site = work / PAGES, work / SITE
    complaints = staging.stage(pages, root)
    complaints += notebooks.stage(pages, cache or root / "out" / "notebooks", root)
    complaints += reference.complaints()
    reference.write(pages / "api")
    command_line.write(pages / "api" / COMMAND_LINE)
    complaints += gallery.stage(pages, root)
    complaints += missing_pages(pages, root)
    if complaints:
        raise DocsError("\n".join(complaints))
    search_order.mark(pages, root)
    log = _call(builder, work, root)
    if builder == "zensical":
        search_order.lower(site, root)
    files = [file for file in site.rglob("*") if file.is_file()]
    count = sum(file.suffix == ".html" for file in files)
    return Built(builder, site, count, sum(file.stat().st_size for file in files), time.perf_counter() - start, log)


def nav_pages(root: Path = ROOT) -> list[str]:
    """The pages that the navigation of mkdocs.yml names, in its order."""
    text = (root / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r"([\w./-]+\.md)$", text, re.MULTILINE)


def missing_pages(pages: Path, root: Path = ROOT) -> list[str]:
    """Pages of the navigation that do not exist, and pages of docs/ that no navigation leads to."""
    named = nav_pages(root)
    staged = {file.relative_to(pages).as_posix() for file in pages.rglob("*.md")}
    lost = [name for name in sorted(staged - set(named)) if not name.startswith("examples/")]
    return [
        *(f"mkdocs.yml: the navigation names {name}, which does not exist" for name in named if name not in staged),
        *(f"mkdocs.yml: no entry of the navigation leads to {name}" for name in lost),
        *(
            f"mkdocs.yml: the navigation names {name} twice"
            for name in sorted({n for n in named if named.count(n) > 1})
        ),
    ]


def _call(builder: str, work: Path, root: Path) -> str:
    site = work / SITE
    if site.exists():
        shutil.rmtree(site)
    shutil.copyfile(root / "mkdocs.yml", work / "mkdocs.yml")
    command = [str(Path(sys.executable).parent / builder), "build", "--strict", "--clean", "-f", "mkdocs.yml"]
    ours = {"HEDGEROW_DOCS_PAGES": PAGES, "HEDGEROW_DOCS_SITE": SITE, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=work, check=False, capture_output=True, text=True, encoding="utf-8", env={**os.environ, **ours}
    )
    log = _COLOUR.sub("", done.stdout + done.stderr)
    if done.returncode or not (site / "index.html").is_file():
        raise DocsError(f"{builder} ended with {done.returncode}:\n{log}")
    return log
