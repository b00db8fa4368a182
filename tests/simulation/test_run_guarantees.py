"""What a learner promises in a run: what assumes independent losses is void against an adversary, by itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise
from hedgerow.losses.blocks import is_stochastic, known_as
from hedgerow.report.figures import run_results
from hedgerow.results.table import run_facts

WORLD = hr.worlds.make("lower-bound-1")
OWN = Promise("costs", "costs <= thresholds", 0.9, "Lemma 1")
MEANS = Promise("regret", "R_T = O(sqrt(T))", 0.95, "Theorem 2", assumes=INDEPENDENT_LOSSES)
ADVERSARIAL = "the losses of this run are adversarial ({})"


class Trusting:
    """Plays uniformly, and promises what a learner for independent losses promises."""

    episodes = 12

    def __init__(self, promises: tuple[Promise, ...] = (OWN, MEANS)) -> None:
        self.view, self.promises = WORLD.view(), promises

    def plan(self) -> hr.Plan:
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode: hr.Episode) -> None:
        pass

    def guarantees(self) -> Ledger:
        return Ledger("Trusting", self.promises, ("nothing else",))


def ran(losses: object, learner: object = None) -> hr.results.Run:
    return hr.simulate(WORLD, learner or Trusting(), losses, progress=False)


class Weekly:
    def block(self, layout, first, count):
        return np.zeros((count, layout.num_rows))


class Noise(Weekly):
    stochastic = True


def always(layout, first, count):
    return np.zeros((count, layout.num_rows))


class Spiteful:
    """An adaptive adversary."""

    def start(self, layout) -> None:
        self.rows = layout.num_rows

    def loss(self, episode):
        return np.zeros(self.rows)

    def observe(self, episode, policy, trajectory) -> None:
        pass


@pytest.mark.parametrize(
    ("losses", "name", "stochastic"),
    [
        (None, "fixed", True),
        ([0.5, 1.0], "fixed", True),
        (hr.losses.IID(), "iid", True),
        (hr.losses.Cycle(), "cycle", False),
        (hr.losses.Betrayal(12), "betrayal", False),
        (hr.losses.Replay(np.zeros((12, 2))), "replay", False),
        (hr.losses.Pursuit(), "pursuit", False),
        (Weekly(), "Weekly", False),
        (Noise(), "Noise", True),
        (always, "always", False),
        (Spiteful(), "Spiteful", False),
    ],
    ids=lambda value: str(value) if isinstance(value, str | bool) else type(value).__name__,
)
def test_promises_in_a_run(losses: object, name: str, stochastic: bool) -> None:
    run = ran(losses)
    assert (run.adversary, run.stochastic) == (name, stochastic)
    ledger = run.guarantees()
    assert ledger is not None
    assert ledger["costs"] == OWN
    assert ledger["regret"].holds == stochastic
    assert ledger["regret"].void_because == ("" if stochastic else ADVERSARIAL.format(name))
    assert ledger.assumptions == ("nothing else",)
    assert run.learner.guarantees()["regret"].holds  # type: ignore[attr-defined]  # the learner's own is as it was
    assert run.at(run.episodes[-1:]).guarantees() == ledger


def test_reasons_add_up_and_only_the_exact_words_count() -> None:
    void = Promise("a", "what", 0.5, "by", "scale = 0.5", INDEPENDENT_LOSSES)
    other = Promise("b", "what", 0.5, "by", assumes="a large margin")
    ledger = Ledger("x", (void, other)).in_run(False, "cycle")
    assert ledger["a"].void_because == "scale = 0.5; " + ADVERSARIAL.format("cycle")
    assert ledger["b"] == other
    assert Ledger("x", (void, other)).in_run(True, "iid") == Ledger("x", (void, other))


def test_a_learner_without_promises_and_one_that_lists_them() -> None:
    class Silent(Trusting):
        guarantees = None

    class Listing(Trusting):
        def guarantees(self):
            return list(self.promises)

    assert run_facts(ran(None, Silent()))["ledger"] == []
    assert ran(None, hr.field.Uniform(WORLD.view(), 5)).guarantees() == Ledger("uniform", ())
    listed = ran(hr.losses.Cycle(), Listing()).guarantees()
    assert [promise.holds for promise in listed] == [True, False]


def test_nobody_knows_who_chooses_the_losses_of_an_environment() -> None:
    class Machine:
        def view(self):
            return WORLD.view()

        def play(self, policy, rng):
            return WORLD.cmdp.play(policy, rng, WORLD.loss)

    run = hr.simulate(Machine(), Trusting(), progress=False)
    assert (run.adversary, run.stochastic) == ("", None)
    assert run.guarantees()["regret"] == MEANS


def test_own_learners_promise_whatever_the_losses_are() -> None:
    learner = hr.SVOPS(WORLD.view(), 12, 0.05, "paper")
    ledger = ran(hr.losses.Cycle(), learner).guarantees()
    assert ledger == learner.guarantees()
    assert all(promise.holds and not promise.assumes for promise in ledger)


# Where it is shown ----------------------------------------------------------------------------------------------------


def test_the_assumption_is_in_the_line_and_in_the_notebook() -> None:
    said = "regret (probability >= 0.95, Theorem 2; assumes independent losses): R_T = O(sqrt(T)) [holds]"
    assert str(MEANS) == said
    assert "assumes" not in str(OWN)
    html = Trusting().guarantees()._repr_html_()
    assert "R_T = O(sqrt(T)) (assumes independent losses)" in html
    assert "costs &lt;= thresholds<" in html
    assert ADVERSARIAL.format("cycle") in ran(hr.losses.Cycle()).guarantees()._repr_html_()


def test_results_and_pages_tell_it(tmp_path: Path) -> None:
    run = ran(hr.losses.Cycle())
    costs, regret = run_facts(run)["ledger"]
    assert (costs["void_because"], costs["assumes"]) == ("", "")
    assert (regret["void_because"], regret["assumes"]) == (ADVERSARIAL.format("cycle"), INDEPENDENT_LOSSES)
    json.dumps(run_facts(run))
    page = run.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "(assumes independent losses)" in page
    assert ADVERSARIAL.format("cycle") in page
    assert "1 of 2 promises hold" in page


def test_a_page_of_results_from_before_assumptions(tmp_path: Path) -> None:
    found = run_results(ran(None))
    for promise in found.cells[0].facts["ledger"]:
        del promise["assumes"]
    hr.report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 of 2 promises hold" in page
    assert "(assumes" not in page


def test_names_of_adversaries() -> None:
    assert known_as(hr.losses.checked(hr.losses.checked(Weekly()))) == "Weekly"
    assert known_as(hr.losses.checked(hr.losses.Pursuit())) == "pursuit"
    assert is_stochastic(hr.losses.checked(hr.losses.IID()))
    Odd = type("Odd", (Weekly,), {"stochastic": 1, "kind": 5})
    assert not is_stochastic(Odd())
    assert known_as(Odd()) == "Odd"
