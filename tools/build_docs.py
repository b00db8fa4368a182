"""Build the docs site into out/site: stage the pages, execute notebooks, write the reference, run the builder strictly.

python tools/build_docs.py                       with zensical
python tools/build_docs.py --builder mkdocs      with mkdocs-material, from the same mkdocs.yml
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tools.docs import built_links, site  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(description="Build the docs site.")
    parser.add_argument("--builder", choices=site.BUILDERS, default="zensical")
    parser.add_argument("--work", type=Path, default=ROOT / "out", help="the site goes to its folder `site`")
    given = parser.parse_args(arguments)
    try:
        built = site.build(given.work, given.builder)
    except site.DocsError as error:
        print(error, file=sys.stderr)
        return 1
    complaints = built_links.complaints(built.site)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(built)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
