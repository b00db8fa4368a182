"""What objects show in a notebook: small HTML that needs nothing, obeys nothing, and says what it should."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.display import views
from hedgerow.display.numbers import PAGE
from hedgerow.display.table import TableCell
from hedgerow.display.text import visible
from shown_objects import HOSTILE, SECOND, labelled_world, many_labels, objects

SHOWING = (
    "layout", "cmdp", "view", "knowing view", "policy", "plan", "mixed plan", "ledger", "void ledger", "certificate",
    "bad certificate", "run", "results", "estimates", "loss estimates", "SVOPS", "SOPS", "CVOPS", "UOBREPS",
)  # fmt: skip
TAGS = {
    "div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "svg", "g", "line", "circle",
    "title",
}  # fmt: skip
LARGEST = 60_000


class Shown(HTMLParser):
    """A fragment taken apart: its words and tables; tags that do not match are an error."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.content: str = value._repr_html_()
        self.words: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(self.content)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(key, found or "") for key, found in attrs]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(key, found or "") for key, found in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def column(self, heading: str, table: int = 0) -> list[str]:
        head, *rows = self.tables[table]
        return [row[head.index(heading)] for row in rows]


@pytest.fixture(scope="module")
def hostile() -> dict[str, Any]:
    return objects(labelled_world())


@pytest.fixture(scope="module")
def middling() -> dict[str, Any]:
    return objects(hr.worlds.make("dope-media").cmdp)


def check(value: Any) -> Shown:
    """What has to hold of everything that is shown."""
    shown = Shown(value)
    assert shown.tags <= TAGS
    assert not [key for key, _ in shown.attributes if key.startswith("on") or key in ("src", "href", "class", "id")]
    assert "url(" not in shown.content
    assert all(char.isprintable() for char in shown.content)
    assert len(shown.content) <= LARGEST
    assert all(len(table) <= views.MOST_ROWS + 1 for table in shown.tables)
    # No colour but half transparent ones, and the blue of the drawing: what is below decides.
    assert not re.search(r"(?<!-)(color|background):(?!inherit|none|rgba)", shown.content)
    return shown


@pytest.mark.parametrize("name", SHOWING)
def test_a_middling_world(name: str, middling: dict[str, Any]) -> None:
    check(middling[name])


@pytest.mark.parametrize("name", SHOWING)
def test_hostile_names_are_shown_and_never_obeyed(name: str, hostile: dict[str, Any]) -> None:
    shown = check(hostile[name])
    assert "<script" not in shown.content
    assert "<img" not in shown.content


def test_hostile_names_are_there(hostile: dict[str, Any]) -> None:
    for name in ("cmdp", "view", "policy", "plan", "run", "estimates", "SOPS", "results"):
        assert visible(HOSTILE) in check(hostile[name]).text, name
    for name in ("layout", "policy", "plan", "estimates"):
        assert SECOND in check(hostile[name]).text, name


def test_much_of_everything_is_cut_and_counted() -> None:
    cmdp = many_labels()
    assert "and 22 more layers" in check(cmdp.layout).text
    assert "and 301 more states" in check(hr.Policy.uniform(cmdp)).text
    many = hr.Policy.uniform(hr.Layout((1, 2, 1), 30))
    assert "20 more actions, not shown" in check(many).text
    view = check(cmdp.view())
    assert len(view.tables[0]) == 13
    seen = check(hr.learners.Statistics(cmdp.view(), 10, 0.05).estimates)
    assert "and 1,585 more pairs" in seen.text
    assert "and 9 more constraints, not shown" in seen.text


def test_a_policy_is_a_table_shaded_by_probability(hostile: dict[str, Any]) -> None:
    policy = hr.Policy(labelled_world(), [[0.25, 0.75], [1.0, 0.0], [1e-9, 1.0 - 1e-9]])
    shown = check(policy)
    assert shown.tables[0][0] == ["state", "layer", "wait", SECOND]
    assert shown.column("wait") == ["0.250", "1", "1e-09"]
    assert shown.column(SECOND) == ["0.750", "0", "1"]
    shades = [float(x) for x in re.findall(r"background:rgba\(38,120,210,([\d.]+)\)", shown.content)]
    assert shades == [0.15, 0.45, 0.6, 0.0, 0.0, 0.6]


def test_a_run_says_its_scores_and_whether_it_was_safe(hostile: dict[str, Any], middling: dict[str, Any]) -> None:
    run = hostile["run"]
    shown = check(run)
    assert len(shown.tables[0]) <= 7
    assert shown.column("episodes")[-1] == "60"
    assert shown.column("regret")[-1] == PAGE.number(float(run.regret[-1]))
    assert shown.column("safe so far")[-1] == ("yes" if run.safe[-1] else "no")
    assert ("not safe: " in shown.text) == (not run.safe[-1])
    assert shown.column("constraint", 1) == ["delay", visible(HOSTILE)]
    unsafe = hr.simulate(
        middling["cmdp"], hr.SVOPS(middling["view"], 200, 0.05, "paper"), hr.losses.IID(), progress=False
    )
    assert f"not safe: {unsafe.unsafe[-1]} episodes" in check(unsafe).text


def test_a_run_without_a_model_shows_what_was_observed(hostile: dict[str, Any]) -> None:
    world = hostile["cmdp"]

    class Outside:
        def view(self) -> hr.View:
            return world.view()

        def play(self, policy: Any, rng: np.random.Generator) -> hr.Episode:
            return world.play(policy, rng)

    shown = check(hr.simulate(Outside(), hr.SVOPS(world.view(), 20, 0.05, "paper"), progress=False))
    assert "observed loss" in shown.tables[0][0]
    assert "nothing is scored" in shown.text


def test_a_plan_holds_its_bounds_against_the_thresholds(hostile: dict[str, Any]) -> None:
    plan = hostile["plan"]
    shown = check(plan)
    assert shown.column("threshold") == ["0.75", "1.5"]
    assert shown.column("expected cost at most") == [PAGE.number(float(u)) for u in plan.cost_bounds]
    assert shown.column("within") == ["not proven", "not proven"]
    assert "episode 0" in shown.text
    assert "own policy" in shown.text
    safe = hr.SOPS(plan.view, 60, 0.05, "sharp", baseline=hostile["slater"]).plan()
    assert set(check(safe).column("within")) == {"yes"}
    assert f"λ = {safe.mixing_weight:.4g}" in check(safe).text
    notes = check(hostile["mixed plan"])
    assert notes.column("note") == [f"note_{i}" for i in range(9)]


def test_a_ledger_shows_promises_and_what_they_rest_on(hostile: dict[str, Any]) -> None:
    ledger = hostile["ledger"]
    shown = check(ledger)
    assert shown.column("promise") == [promise.name for promise in ledger]
    assert shown.column("status") == ["holds"] * len(ledger)
    assert shown.column("by") == [promise.source for promise in ledger]
    assert "void: confidence_scale = 0.5 < 1" in check(hostile["void ledger"]).text
    told = hr.SVOPS(hostile["knowing view"], 60, 0.05, "paper").guarantees()
    assert told.assumptions
    assert all(f"rests on: {visible(words)}" in check(told).text for words in told.assumptions)


def test_a_certificate_says_what_is_fine(hostile: dict[str, Any]) -> None:
    assert set(check(hostile["certificate"]).column("fine")) == {"yes", "-"}
    bad = check(hostile["bad certificate"])
    assert "no" in bad.column("fine")
    assert "not the projection" in bad.text
    values = dict(zip(bad.column("residual"), bad.column("value"), strict=True))
    assert values["gap"] == f"{hostile['bad certificate'].gap:.2g}"


def test_results_have_a_line_per_learner(hostile: dict[str, Any]) -> None:
    results = hostile["results"]
    shown, group = check(results), results.groups[0]
    assert shown.column("regret R_T") == [PAGE.number(group["regret"].value)]
    assert shown.column("safe") == [f"{group['safe'].value:.0f} of 1"]
    assert shown.column("world") == [visible(HOSTILE)]
    empty = type(results)(None, results.manifest, (), results.load)
    assert "no finished cell" in check(empty).text


def test_a_world_tells_constraints_and_knowledge(hostile: dict[str, Any]) -> None:
    shown = check(hostile["cmdp"])
    assert shown.column("threshold") == ["0.75", "1.5"]
    assert "costs: bernoulli" in shown.text
    known = check(hostile["knowing view"])
    assert "known beforehand: the transitions of 6 of 6 pairs are known" in known.text
    assert "no constraints" in check(hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0])).text
    world = hr.worlds.make("dope-media")
    assert "dope-media: " in check(world).text


def test_small_layouts_are_drawn_and_large_ones_are_not(hostile: dict[str, Any]) -> None:
    drawn = check(hostile["layout"])
    assert drawn.content.count("<circle") == 4
    assert drawn.content.count("<line") == 4
    assert drawn.column("triples") == ["3", "4", "-"]
    assert drawn.column("of") == ["4", "4", "-"]
    assert "<svg" not in check(many_labels().layout).content


def test_pieces() -> None:
    assert views.name("x" * 100).words == "x" * 47 + "…"
    assert views.table(["a"], []) == ""
    assert "<b>" not in views.table(["<b>"], [[TableCell("<b>", hint='"<b>')]])
    assert "and 3 more" in views.table(["n"], [[str(i)] for i in range(23)])
