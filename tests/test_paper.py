"""The paper and its statements: one table of numbers that code and docs agree with, and files for those who cite."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from hedgerow import paper
from hedgerow.verify.claims import PROMISES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS = "Theorem|Lemma|Corollary|Algorithm"
CITED = re.compile(rf"((?:{KINDS}) \d+) \(([^)]+)\)")
# Statements of other papers, which are named before them.
FOREIGN = re.compile(r"Jin et al\. 2020, Theorem \d+")


def test_every_kind_is_counted_without_gaps() -> None:
    counted = defaultdict(list)
    for place in paper.NUMBERS.values():
        kind, number = place.split()
        counted[kind].append(int(number))
    assert {kind: len(numbers) for kind, numbers in counted.items()} == {
        "Algorithm": 4,
        "Theorem": 7,
        "Lemma": 13,
        "Corollary": 1,
    }
    for numbers in counted.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_an_unknown_label_is_not_cited() -> None:
    with pytest.raises(KeyError, match="rho_hat"):
        paper.cite("rho_hat")


def test_verify_names_a_statement_of_the_table_with_every_promise() -> None:
    for promise in PROMISES:
        cited = CITED.findall(promise.reference)
        ours = ("T4", "T20", "T21", "T31", "T32", "T33", "T34", "T35", "T36", "T38")  # a definition, and what is ours
        assert cited or promise.key in ours, promise.reference
        for place, label in cited:
            assert paper.NUMBERS[label] == place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_docs_cite_by_number_and_label(page: Path) -> None:
    text = FOREIGN.sub("", page.read_text()).replace(r"\_", "_")  # in a table that is written
    for place, label in CITED.findall(text):
        assert paper.NUMBERS[label] == place
    without = CITED.sub("", text)
    assert re.findall(rf"\b(?:{KINDS})s? [a-z]+[a-z_]*\b", without) == []  # a label without its number
    assert re.findall(rf"\b(?:{KINDS}) \d+", without) == []  # a number without its label


def test_the_map_lists_every_statement() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text()
    assert [label for label in paper.NUMBERS if f"| {paper.cite(label)} |" not in text] == []


def test_the_paper_can_be_found_and_cited() -> None:
    readme, citation = (ROOT / "README.md").read_text(), (ROOT / "CITATION.cff").read_text()
    bibtex = (ROOT / "docs" / "citing.md").read_text()
    for author in paper.AUTHORS:
        given, _, family = author.rpartition(" ")
        assert family in readme
        assert f"{family}, {given}" in bibtex
        assert f"family-names: {family}\n        given-names: {given}" in citation
    for text in (readme, citation):
        assert paper.TITLE in " ".join(text.split())
        assert paper.ARXIV in text
        assert paper.VENUE in text
        assert str(paper.YEAR) in text


def test_the_citation_file_is_in_its_format_and_of_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format asks for
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == project["name"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert f"version = {{{project['version']}}}" in (ROOT / "docs" / "citing.md").read_text()
    (reference,) = citation["references"]
    assert reference["title"] == paper.TITLE
    assert reference["year"] == paper.YEAR
    assert [f"{one['given-names']} {one['family-names']}" for one in reference["authors"]] == list(paper.AUTHORS)
