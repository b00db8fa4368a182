"""The documentation check itself, and that it has nothing to complain about."""

# ruff: noqa: RUF001

from __future__ import annotations

import importlib.util
import re
import types
from pathlib import Path
from typing import Any

import pytest

from tools.docs import blocks, fences

# Every symbol of the paper's sections 2 and 3 that has a row in docs/notation.md.
SYMBOLS = """
    t T X A X_k x_0 x_L L k(x) P M ℓ_t G_t g_{t,i} Ḡ ḡ_i 𝒢 α m π q(x,a,x') q(x,a) q(x) Δ(M) π^q P^q ℓᵀq OPT ℓ̄ q* π* R_T
    V_T [x]⁺ π_t q_t λ_t ρ q◇ π◇ β η γ δ n_pair n 1_t N_t M_t S_{t,i} ĝ_{t,i} Ĝ_t ξ_t Ξ_t P̂_t ε_t ι n⁻ ι' V̂ lo hi 𝒫_t
    Δ(𝒫_t) LCB UCB u_t û_t ℓ̂_t q̂_t q̃_t π̂_t
"""

ROOT = Path(__file__).resolve().parent.parent
DEAR = ("docs/sweeps.md", "docs/own-learner.md", "docs/results.md", "docs/real-loop.md")
"""Pages whose blocks take 4 to 14 seconds of processor time"""


def load_tool() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "tools" / "check_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docs = load_tool()


@pytest.mark.parametrize("file", docs.markdown_files(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(file: Path) -> None:
    assert list(docs.broken_links(file)) == []


@pytest.mark.parametrize("name", docs.NAMED_SOURCES)
def test_named_sources_exist(name: str) -> None:
    assert list(docs.unknown_names(ROOT / name)) == []


def pages() -> list[Any]:
    """All pages; those that start many processes are read by `make test`, and run by `make nightly` and `make docs`."""
    return [
        pytest.param(file, id=name, marks=[pytest.mark.nightly] if name in DEAR else [])
        for file in docs.markdown_files()
        for name in [file.relative_to(ROOT).as_posix()]
    ]


@pytest.mark.parametrize("name", DEAR)
def test_blocks_are_right(name: str) -> None:
    found = [mistake for block in fences.blocks(ROOT / name) for mistake in blocks.mistakes(block)]
    assert found == []


@pytest.mark.parametrize("file", pages())
def test_blocks_are_right_and_run(file: Path, request: pytest.FixtureRequest) -> None:
    if "hr.save_figure(" in file.read_text(encoding="utf-8"):
        request.getfixturevalue("chromium")  # skips the page where no browser can draw
    assert docs.failing_blocks(file) == []


@pytest.mark.parametrize("file", docs.markdown_files(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_commands_in_sentences_exist(file: Path) -> None:
    if file.name not in docs.HISTORY:
        assert list(docs.unknown_commands(file)) == []


def test_docstring_examples_run() -> None:
    assert list(docs.failing_doctests()) == []


def test_mistakes_are_found(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# A heading, here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](gone.md) [b](good.md) [c](good.md#a-heading-here) [d](good.md#other) [e](https://example.org/x)\n"
        "`model/layout.py` `model/layout.py::Layout.steps` `model/cmdp.py::CMDP.thresholds` `model/never.py` "
        "`model/layout.py::Layoutt`\n"
        "```python\nx = 1 + 1\nx  # 3\n```\n```python\nx  # 2\n```\n```python\nraise KeyError(x)\n```\n"
    )
    links = list(docs.broken_links(page))
    assert [re.search(r"gone.md|#other", link).group() for link in links] == ["gone.md", "#other"]
    names = list(docs.unknown_names(page))
    assert names == [
        "page.md: there is no source file model/never.py",
        "page.md: model/layout.py defines no Layoutt",
    ]
    assert docs.failing_blocks(page) == [
        "page.md, block in line 3: AssertionError: x is 2, the text says 3",
        "page.md, line 11: KeyError: 2",
    ]
    page.write_text("Call `hedgerow dance --now`, `hedgerow check` or `make nothing`.\n")
    assert [re.search(r"hedgerow \w+|make \w+", found).group() for found in docs.unknown_commands(page)] == [
        "hedgerow dance",
        "make nothing",
    ]


def test_links_to_what_is_built_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link leads to a file of the repository: not to a page that only the site has, and never into out/."""
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    for folder in ("docs", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "out" / "site.html").touch()
    page = tmp_path / "docs" / "page.md"
    page.write_text("[a](../out/site.html) [b](api/world.md) [c](gallery.md) [d](page.md)\n")
    assert list(docs.broken_links(page)) == [
        "docs/page.md: the link ../out/site.html leads to what a command makes, not to a file of the repository",
        "docs/page.md: the link api/world.md leads nowhere",
        "docs/page.md: the link gallery.md leads nowhere",
    ]


def test_notation_covers_the_model_and_the_estimators() -> None:
    """Every symbol of the paper's sections 2 and 3 has its row."""
    rows = [line for line in (ROOT / "docs" / "notation.md").read_text().splitlines() if line.startswith("|")]
    symbols = " ".join(line.split("|")[1] for line in rows)
    assert [symbol for symbol in SYMBOLS.split() if f"`{symbol}`" not in symbols] == []
