"""The page: its numbers are those of the tables, names cannot break it, nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from page_reader import Reader
from run_cases import made_directory, made_learner, made_run, made_spec
from scipy.stats import ttest_1samp

import hedgerow as hr
from hedgerow import results
from hedgerow.display.numbers import PAGE
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import parse
from hedgerow.experiments.sweep import run_experiment
from hedgerow.report import page as document
from hedgerow.report.figures import run_results
from hedgerow.report.page import environment, page, report
from hedgerow.results import store
from hedgerow.results.groups import groups, heading

EVIL = "<img src=x onerror=alert(1)>\"'&</script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_directory(tmp_path_factory.mktemp("report") / "out", seeds=5, worlds=("toy", "zoo"))


@pytest.fixture(scope="module")
def read(directory: Path) -> Reader:
    return Reader(report(directory).read_text(encoding="utf-8"))


def test_answer_has_the_numbers_of_the_tables(directory: Path, read: Reader) -> None:
    for group in groups(results.open(directory)):
        rows = [row for row in read.rows if row and row[0] == group.learner and len(row) >= 7]
        place = ["toy", "zoo"].index(group.setting.world)
        row = rows[place]
        regret = group["regret"]
        assert row[1] == f"{PAGE.number(regret.value)} [{PAGE.number(regret.low)}, {PAGE.number(regret.high)}]"
        assert f"{group.growth.exponent:.2f}" in row[2]
        assert row[3] == PAGE.number(group["violation"].value)
        assert row[4] == PAGE.number(group["net_violation"].value)
        assert row[5] == ("5 of 5" if group["safe"].value == 5 else "0 of 5")
        assert row[-1] == "2,000"


def test_curves_are_those_of_the_tables(directory: Path, read: Reader) -> None:
    group = groups(results.open(directory))[0]
    plot = read.plot("s0-regret")
    line = next(trace for trace in plot["data"] if trace.get("name") == group.learner)
    assert line["x"] == group.episodes.tolist()
    np.testing.assert_allclose(line["y"], group.curve("regret").mean(axis=0), rtol=1e-5)
    band = plot["data"][0]
    count = len(group.episodes)
    ends = ttest_1samp(group.curve("regret"), 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(band["y"][:count], ends.high, rtol=1e-5)
    np.testing.assert_allclose(band["y"][count:][::-1], ends.low, rtol=1e-5)
    margin = read.plot("s0-margin-1")
    line = next(trace for trace in margin["data"] if trace.get("name") == "sv-ops")
    assert set(line["y"]) == {-0.2}
    weights = next(trace for trace in read.plot("s1-mixing")["data"] if trace.get("name") == group.learner)
    np.testing.assert_allclose(weights["y"], 0.5 / np.sqrt(group.episodes), rtol=1e-5)


def test_fit_is_drawn_over_the_last_decade(read: Reader) -> None:
    fits = [trace for trace in read.plot("s0-regret-growth")["data"] if "fit" in trace.get("name", "")]
    assert len(fits) == 2
    for fit, exponent in zip(fits, (0.5, 0.75), strict=True):
        (x0, x1), (y0, y1) = fit["x"], fit["y"]
        assert (x0, x1) == (100, 1000)
        assert np.log(y1 / y0) / np.log(x1 / x0) == pytest.approx(exponent, abs=1e-4)
        assert y1 == pytest.approx(12.0 * 1000**exponent, rel=1e-4)  # the mean of five seeds, 10 to 14
    assert any("s-ops sharp: 0.50 [0.50, 0.50]" in words for words in read.words)


def test_one_colour_for_each_learner_everywhere(read: Reader) -> None:
    colours: dict[str, set[str]] = {}
    for name, content in read.scripts.items():
        if re.match(r"s\d", name):
            for trace in json.loads(content)["data"]:
                if "fit" not in trace.get("name", "fit"):
                    colours.setdefault(trace["name"], set()).add(trace["line"]["color"])
    assert {name: len(found) for name, found in colours.items()} == {"s-ops sharp": 1, "sv-ops": 1}
    assert colours["s-ops sharp"] != colours["sv-ops"]


def test_threshold_is_a_line(read: Reader) -> None:
    plot = read.plot("s0-margin-0")["layout"]
    low, high = plot["yaxis"]["range"]
    assert plot["yaxis"]["zeroline"] is True
    assert low < 0.0 < high
    assert "threshold of 1" in plot["annotations"][0]["text"]
    assert plot["shapes"][0]["y1"] == 0


def test_the_rest_is_there(directory: Path, read: Reader) -> None:
    words = " ".join(read.words)
    manifest = results.open(directory).manifest
    for expected in ("made up", "Lemma 1", "confidence_scale = 0.5 < 1", "void", "≥ 0.95", manifest["python"]):
        assert expected in words, expected
    assert 'title = "made up"' in words  # the experiment file
    assert manifest["experiment_hash"] in words
    assert manifest["command"][0] in words


def test_nothing_is_loaded_from_elsewhere(directory: Path, read: Reader) -> None:
    for tag, attributes in read.tags:
        for name in ("src", "href", "data", "poster", "action", "srcset"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#")), (tag, attributes)
        assert tag not in ("iframe", "object", "embed", "base")
    content = report(directory).read_text(encoding="utf-8")
    style = content.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    own = re.sub(r'<script type="application/gzip".*?</script>', "", content, flags=re.DOTALL)
    assert "://" not in own
    packed = next(value for key, value in read.scripts.items() if key == "plotly")
    assert b"plotly.js" in gzip.decompress(base64.b64decode(packed))[:200]


def test_paper_is_no_phone_and_never_dark(directory: Path) -> None:
    """A sheet is as narrow as a phone, yet has tables; charts are drawn again, light and as wide as their column."""
    content = report(directory).read_text(encoding="utf-8")
    style = content.split("<style>")[1].split("</style>")[0]
    for rule in ("(max-width:760px)", "(prefers-color-scheme:dark)"):
        assert style.count(rule) == style.count(f"@media screen and {rule}") == 1
    paper = style.split("@media print{\n")[1]
    assert "nav,.skip,.file,.tools{display:none!important}" in paper
    assert "figure,table,tr,.terms,pre{break-inside:avoid}" in paper
    width, height = re.findall(r"\.plot\{width:(\d+)px;height:(\d+)px\}", paper)[0]
    assert f"width: {width}, height: {height}, autosize: false" in content
    assert all(f'addEventListener("{event}"' in content for event in ("beforeprint", "afterprint"))


def test_contents_name_every_section_once(read: Reader) -> None:
    sections = [attributes["id"] for tag, attributes in read.tags if tag == "section"]
    links = [attributes["href"] for tag, attributes in read.tags if tag == "a"]
    assert sections == ["verdict", "answer", "setting-0", "setting-1", "guarantees", "checks", "repeat", "origin"]
    assert links == ["#content", *(f"#{anchor}" for anchor in sections)]
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_landmarks_language_and_heads(read: Reader) -> None:
    tags = [tag for tag, _ in read.tags]
    assert [tags.count(name) for name in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert dict(read.tags)["html"] == {"lang": "en"}
    assert tags.count("caption") == tags.count("table") == 8  # verdict, answer and checks of two settings, two ledgers
    heads = [attributes for tag, attributes in read.tags if tag == "th"]
    assert {attributes["scope"] for attributes in heads} == {"row", "col"}
    assert sum(attributes["scope"] == "row" for attributes in heads) == len([row for row in read.rows if row])


def test_every_chart_has_a_sentence_with_its_numbers(directory: Path, read: Reader) -> None:
    plots = [attributes for _, attributes in read.tags if attributes.get("class") == "plot"]
    assert len(plots) == 12
    assert all(plot["role"] == "img" for plot in plots)
    said = {plot["data-figure"]: plot["aria-label"] or "" for plot in plots}
    for group in groups(results.open(directory)):
        place = ["toy", "zoo"].index(group.setting.world)
        assert f"{group.learner} {PAGE.number(group['regret'].value)}" in said[f"s{place}-regret"]
        assert f"{group.learner} {PAGE.number(group['violation'].value)}" in said[f"s{place}-violation"]
    assert said["s0-regret"].endswith("; the lowest is s-ops sharp.")


def test_the_page_is_small_enough_for_a_phone(directory: Path) -> None:
    assert report(directory).stat().st_size < 3_000_000


def test_equal_results_give_equal_pages(directory: Path) -> None:
    assert page(results.open(directory)) == page(results.open(directory))


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    told = {**heading(EVIL, EVIL), "experiment": {}, "source": EVIL, "command": ["hedgerow", EVIL]}
    store.create(tmp_path / "out", told)
    for seed in (0, 1):
        spec = made_spec(EVIL, seed, EVIL)
        spec["label"]["adversary"] = EVIL
        store.write_cell(tmp_path / "out", spec, made_run(seed, learner=made_learner(names=(EVIL, "b"))))
    store.update_manifest(tmp_path / "out", {"cells": {EVIL: {"status": "failed", "error": EVIL}}})
    content = report(tmp_path / "out").read_text(encoding="utf-8")
    read = Reader(content)
    assert not [tag for tag, _ in read.tags if tag == "img"]
    assert not [attributes for _, attributes in read.tags if "onerror" in attributes]
    scripts = [attributes for tag, attributes in read.tags if tag == "script"]
    assert sum("type" not in attributes for attributes in scripts) == 1  # our own, and no other
    assert EVIL in "".join(read.words)  # shown as what it is
    assert read.plot("s0-regret")["data"][-1]["name"].startswith("&lt;img")  # plotly reads tags in names


def test_data_cannot_end_its_script() -> None:
    content = {"x": "</script><!--\u2028\u2029"}
    safe = environment().from_string("{{ content|tojson }}").render(content=content)
    assert json.loads(safe) == content
    assert not set("<\u2028\u2029") & set(safe)


def test_failed_cells_are_listed(tmp_path: Path) -> None:
    made_directory(tmp_path / "out", seeds=1)
    store.update_manifest(tmp_path / "out", {"cells": {"lost__cell": {"status": "failed", "error": "out of memory"}}})
    read = Reader(page(results.open(tmp_path / "out")))
    assert ["lost__cell", "failed", "out of memory"] in read.rows
    assert "1 cell without a result" in read.words


def test_a_page_has_the_title_and_the_description_of_its_sweep(tmp_path: Path) -> None:
    """From the file of an experiment, through a real sweep."""
    text = (
        'title = "Two & <two>"\ndescription = "What it shows."\nseeds = 1\nepisodes = 20\n[[world]]\n'
        'name = "lower-bound-1"\n[[adversary]]\nname = "own"\n[[learner]]\nname = "sv-ops"\n'
    )
    run_experiment(parse(Source("tiny.toml", text, tmp_path)), tmp_path / "out", RunOptions(backend="serial"))
    content = report(tmp_path / "out").read_text(encoding="utf-8")
    assert "<title>Two &amp; &lt;two&gt;</title>" in content
    assert '<h1>Two &amp; &lt;two&gt;</h1><p class="about">What it shows.</p>' in content
    untitled = text[text.index("seeds") :]
    run_experiment(parse(Source("tiny.toml", untitled, tmp_path)), tmp_path / "plain", RunOptions(backend="serial"))
    assert results.open(tmp_path / "plain").title == "tiny"
    assert 'class="about"' not in report(tmp_path / "plain").read_text(encoding="utf-8")


def test_results_without_a_title_are_called_after_their_directory(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    opened = results.open(tmp_path / "out")
    assert (opened.title, opened.description) == ("out", "")


def test_nothing_finished_nothing_reported(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    with pytest.raises(InvalidInput, match="no finished cell"):
        report(tmp_path / "out")


def test_without_constraints_without_regret(tmp_path: Path) -> None:
    """A world without constraints, a regret that is never positive, no mixing: words instead of empty charts."""
    store.create(tmp_path / "out", {"experiment": {}})
    run = made_run(m=0)
    changes = {"loss": run.loss - 2.0 * run.regret, "regret": -run.regret, "mixing_total": 0 * run["mixing_total"]}
    run = made_run(m=0, **changes, mixing_weight=0 * run["mixing_weight"])
    store.write_cell(tmp_path / "out", made_spec(), run)
    read = Reader(page(results.open(tmp_path / "out")))
    words = " ".join(read.words)
    for expected in ("No learner has a positive regret", "There are no constraints", "No learner here mixes"):
        assert expected in words
    assert [name for name in read.scripts if name.startswith("s0")] == ["s0-regret"]


def test_an_infeasible_world_can_be_reported(tmp_path: Path) -> None:
    """No policy is feasible: no optimum, no regret, yet a page."""
    store.create(tmp_path / "out", {"experiment": {}})
    run = made_run()
    nothing = np.full(len(run.episodes), np.nan)
    for seed in (0, 1):
        lost = made_run(seed, loss=nothing, regret=nothing, optimum=float("nan"))
        store.write_cell(tmp_path / "out", made_spec(seed=seed), lost)
    read = Reader(page(results.open(tmp_path / "out")))
    assert {row["regret RT"] for row in read.named if "regret RT" in row} == {"–"}  # noqa: RUF001
    assert "s0-regret" not in read.scripts
    assert any("no optimum to compare with" in words for words in read.words)


def test_another_place_and_an_older_page(directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("older")
    assert report(directory, target) == target
    assert "older" not in target.read_text(encoding="utf-8")[:200]


def test_a_single_run(tmp_path: Path) -> None:
    world = hr.worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1)
    learner = hr.SVOPS(world.cmdp.view(), 200, 0.05, "paper")
    run = hr.simulate(world.cmdp, learner, world.loss, progress=False)
    path = report(run, tmp_path / "run.html")
    read = Reader(path.read_text(encoding="utf-8"))
    learnt, best = (row["regret RT"] for row in read.named if "regret RT" in row)
    assert (learnt, best) == (PAGE.number(float(run.regret[-1])), "0")
    with pytest.raises(InvalidInput, match="exists already"):
        report(run, path)
    with pytest.raises(InvalidInput, match="say where the page of a run"):
        report(run)
    report(run, path, overwrite=True)
    written = [run.report(tmp_path / "own.html").read_text(), page(run_results(run))]
    assert len({re.sub(r"\d+-\d+-\d+T[\d:]+", "now", text) for text in written}) == 1  # the second may have passed
    assert run_results(run).cells[0].label("world") == "layers 1-2-2-1, 2 actions"


def test_without_plotly_the_error_says_so(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document.packed_plotly.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(HedgerowError, match="need plotly"):
        report(directory)
