"""The docs site: built strictly, complete, without anything from the network, with links that lead somewhere."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser import DESKTOP, DESKTOP_DARK, PHONE, Chromium, Screen
from nightly import daily
from tools.docs import built_links, gallery, search_order, site, staging

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 20_000_000
MOST_SCREENS = 10
LONG_PAGES = ("field.html", "benchmarks.html", "evidence.html", "cheat-sheet.html")
LOOKED_AT = (
    ("index.html", DESKTOP),
    ("cheat-sheet.html", PHONE),
    ("notebooks/walk.html", DESKTOP_DARK),
    ("field.html", DESKTOP),
    ("tutorial.html", PHONE),
    ("gallery.html", DESKTOP_DARK),
    ("api/learners.html", PHONE),
    ("evidence.html", PHONE),
    ("own-learner.html", DESKTOP),
    ("decisions/0001-flat-row-compressed-arrays.html", DESKTOP_DARK),
)
"""Pages, each on a screen; `make test` looks at some, on every screen"""
LINKS_OF_RESULTS = """(() => {
  const links = [];
  const walk = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.matches("a[href*='?h='], a.md-search-result__link")) links.push(node.href);
      if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  walk(document);
  return links;
})"""
"""The links of a search, in JavaScript."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("zensical") is None, reason="the builder of the docs is not installed"),
]


@pytest.fixture(scope="module", params=daily(site.BUILDERS[0], nightly=site.BUILDERS[1]))
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


@pytest.mark.parametrize("looked_at", daily(LOOKED_AT[:3], nightly=LOOKED_AT), ids=["some", "all"])
def test_pages_in_a_browser(built: site.Built, chromium: Chromium, looked_at: tuple[tuple[str, Screen], ...]) -> None:
    """No message, no request off the folder, no overflow, and nothing serious from axe-core."""
    folder = built.site.as_uri() + "/"
    if built.builder != site.BUILDERS[0]:
        looked_at = looked_at[:1]  # the theme of both is the same
    found = {(page, screen.name): chromium.audit(folder + page, screen, inside=folder) for page, screen in looked_at}
    assert {where: complaints for where, complaints in found.items() if complaints} == {}


@pytest.mark.parametrize("pages", daily(LONG_PAGES[:1], nightly=LONG_PAGES), ids=["one", "all"])
def test_long_pages_fold(built: site.Built, chromium: Chromium, pages: tuple[str, ...]) -> None:
    """What a reader has to scroll past is at most ten screens; what is longer folds."""
    folder = built.site.as_uri() + "/"
    heights = {
        page: chromium.look_at(folder + page, DESKTOP, lambda look: look.evaluate("document.body.scrollHeight"))
        for page in pages
    }
    assert {page: height for page, height in heights.items() if height > MOST_SCREENS * DESKTOP.height} == {}


def test_tables_are_tables_inside_of_folds(built: site.Built) -> None:
    for page in LONG_PAGES[:3]:
        text = (built.site / page).read_text(encoding="utf-8")
        assert text.count("<table") > 3
        assert "<p>|" not in text


@pytest.mark.parametrize("word", daily("report", nightly="safe"))
def test_guides_come_first_in_the_search(built: site.Built, chromium: Chromium, word: str) -> None:
    """Although names of the reference begin with these words."""
    url = (built.site / "index.html").as_uri()
    found = chromium.look_at(url, DESKTOP, lambda page: results_of_search(page, word))
    assert Path(found[0]).with_suffix(".md").as_posix() in search_order.first_pages()
    assert any(name.startswith("api/") for name in found)
    assert not any(name.startswith("decisions/0") for name in found)


def results_of_search(page: Page, word: str) -> list[str]:
    """The pages that the search shows, best first; those of zensical are in a shadow tree."""
    page.keyboard.press("/")
    page.wait_for_timeout(500)
    page.keyboard.insert_text(word)
    page.keyboard.press("End")  # mkdocs-material waits for a key
    page.wait_for_function(f"{LINKS_OF_RESULTS}().length > 5")
    page.wait_for_timeout(500)
    folder = page.url.rpartition("/")[0] + "/"
    links: list[str] = page.evaluate(f"{LINKS_OF_RESULTS}()")
    return list(dict.fromkeys(link.removeprefix(folder).partition("?")[0].partition("#")[0] for link in links))


def test_first_pages_are_those_of_the_navigation(tmp_path: Path) -> None:
    first = search_order.first_pages()
    assert {"index.md", "install.md", "field.md", "cheat-sheet.md", "notebooks/walk.md"} <= first
    assert not {page for page in first if page.startswith(("api/", "decisions/"))}
    (tmp_path / "mkdocs.yml").write_text("docs_dir: x\nnav:\n  - Home: index.md\n")
    with pytest.raises(ValueError, match="the navigation has no section Tutorial, Guides"):
        search_order.first_pages(tmp_path)


def test_pages_say_what_the_search_has_to_know(tmp_path: Path) -> None:
    for name in ("index.md", "decisions/0001-x.md", "decisions/index.md", "api/world.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# x\n")
    search_order.mark(tmp_path)
    written = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.md")}
    assert written == {
        "index.md": "---\nsearch:\n  boost: 8\n---\n\n# x\n",
        "decisions/0001-x.md": "---\nsearch:\n  exclude: true\n---\n\n# x\n",
        "decisions/index.md": "# x\n",
        "api/world.md": "# x\n",
    }


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
