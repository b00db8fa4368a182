"""The docs site: built strictly, complete, without anything from the network, with links that lead somewhere."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser import DESKTOP, DESKTOP_DARK, PHONE, Chromium
from tools.docs import built_links, gallery, site, staging

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 20_000_000
LOOKED_AT = (
    ("index.html", DESKTOP),
    ("tutorial.html", PHONE),
    ("notebooks/walk.html", DESKTOP_DARK),
    ("gallery.html", DESKTOP_DARK),
    ("api/learners.html", PHONE),
    ("evidence.html", PHONE),
    ("own-learner.html", DESKTOP),
    ("decisions/0001-flat-row-compressed-arrays.html", DESKTOP_DARK),
)
"""Pages, each on a screen"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("zensical") is None, reason="the builder of the docs is not installed"),
]


@pytest.fixture(scope="module", params=site.BUILDERS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, chromium: Chromium) -> site.Built:
    """The site, by both builders; executed notebooks are kept in out/ from build to build. A browser draws figures."""
    return site.build(tmp_path_factory.mktemp(request.param), request.param, cache=ROOT / "out" / "notebooks")


def test_builds_without_a_warning(built: site.Built) -> None:
    assert "warning" not in built.log.lower()
    assert built.bytes < MOST_BYTES
    print(built)


def test_every_page_of_the_navigation_is_there(built: site.Built) -> None:
    pages = [(built.site / name).with_suffix(".html") for name in site.nav_pages()]
    assert len(pages) > 50
    assert [page for page in pages if not page.is_file()] == []


def test_links_lead_somewhere_and_nothing_is_fetched(built: site.Built) -> None:
    assert built_links.complaints(built.site) == []


def test_marks_of_the_checker_are_not_shown(built: site.Built) -> None:
    for page in built.site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<!-- run" not in text
        assert "```" not in text


def test_pages_in_a_browser(built: site.Built, chromium: Chromium) -> None:
    """No message, no request off the folder, no overflow, and nothing serious from axe-core."""
    folder = built.site.as_uri() + "/"
    looked_at = LOOKED_AT if built.builder == site.BUILDERS[0] else LOOKED_AT[:1]  # the theme of both is the same
    found = {(page, screen.name): chromium.audit(folder + page, screen, inside=folder) for page, screen in looked_at}
    assert {where: complaints for where, complaints in found.items() if complaints} == {}


def test_mistakes_of_built_pages_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="b.html#there">x</a><a href="b.html#gone">x</a><a href="c.html">x</a>'
        '<a href="https://example.org">x</a><script src="https://example.org/x.js"></script><img src="gone.svg">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="#nowhere">x</a><a href="a.html#top">x</a>')
    (tmp_path / "s.css").write_text("@import 'x.css'")
    assert built_links.complaints(tmp_path) == [
        "a.html: b.html#gone leads to no anchor",
        "a.html: c.html leads to no file",
        "a.html: <script> loads https://example.org/x.js",
        "a.html: gone.svg leads to no file",
        "b.html: #nowhere leads to no anchor",
        "s.css: loads @import...)",
    ]


def test_links_are_mended() -> None:
    text = (
        "[a](../README.md#two-commands) [`b`](../src/hedgerow/cli.py) [c](decisions/) ![d](figures/x.svg)\n\n"
        "```text\n[a](../README.md)\n```\n\n[e](https://example.org) [f](#here) [g](../examples/baselines.py)\n"
    )
    shown = staging.with_links(text, "docs/page.md", "page.md")
    assert shown == (
        "[a](project/overview.md#two-commands) `b` [c](decisions/index.md) d\n\n"
        "```text\n[a](../README.md)\n```\n\n[e](https://example.org) [f](#here) [g](examples/baselines.md)\n"
    )
    assert (
        staging.with_links("[a](docs/projection.md)", "README.md", "project/overview.md") == "[a](../projection.md)\n"
    )


def test_pages_that_nothing_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("docs_dir: x\nnav:\n  - A: a.md\n  - b.md\n  - Again: b.md\n")
    for name in ("b.md", "c.md"):
        (tmp_path / name).write_text("# x\n")
    assert site.missing_pages(tmp_path, tmp_path) == [
        "mkdocs.yml: the navigation names a.md, which does not exist",
        "mkdocs.yml: no entry of the navigation leads to c.md",
        "mkdocs.yml: the navigation names b.md twice",
    ]


def test_gallery_misses_figures(tmp_path: Path) -> None:
    figures = tmp_path / gallery.FIGURES
    shutil.copytree(ROOT / gallery.FIGURES, figures)
    assert gallery.missing_figures(tmp_path) == []
    (figures / "quickstart-regret.svg").unlink()
    assert gallery.missing_figures(tmp_path) == [
        f"{gallery.FIGURES}/quickstart-regret.svg: not drawn yet; python tools/draw_gallery.py draws it"
    ]


def test_unknown_builder(tmp_path: Path) -> None:
    with pytest.raises(site.DocsError, match="no builder 'sphinx'; choose zensical or mkdocs"):
        site.build(tmp_path, "sphinx")
