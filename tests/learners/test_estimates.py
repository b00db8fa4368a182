"""`learner.estimates`: labelled tables that hold what the learner holds, counted by hand, and stay as they were."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from known_worlds import TIED, episode_of, knowing
from learner_cases import KINDS, make_learner, random_world

import hedgerow as hr

WORLD = random_world(0)
LABELS = ["start", *(f"s{x}" for x in range(1, WORLD.layout.num_states - 1)), "end"]


class Record:
    """Visits, moves and costs of the episodes that a learner was told, counted in dictionaries."""

    def __init__(self, learner: Any, world: hr.CMDP, episodes: int, seed: int = 3) -> None:
        rng, layout = np.random.default_rng(seed), world.layout
        self.visits: Counter[int] = Counter()
        self.moves: Counter[tuple[int, int]] = Counter()
        self.costs: Counter[tuple[int, int]] = Counter()
        self.episodes = []
        for _ in range(episodes):
            rows, losses, costs = episode_of(world, learner.plan().policy, rng)
            learner.observe(rows, losses, costs)
            self.episodes.append((rows, losses, costs))
            following = [*(int(row) // layout.num_actions for row in rows[1:]), layout.num_states - 1]
            for k, (row, state) in enumerate(zip(rows.tolist(), following, strict=True)):
                self.visits[row] += 1
                self.moves[row, state] += 1
                for i in range(world.num_constraints):
                    self.costs[row, i] += costs[k, i]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_what_was_seen(kind: str) -> None:
    learner = make_learner(kind, WORLD)
    record, layout = Record(learner, WORLD, 40), WORLD.layout
    seen, arrays = learner.estimates, learner.state_arrays()
    rows, moves = seen.rows.to_pydict(), seen.moves.to_pydict()
    assert seen.rows.num_rows == layout.num_rows
    assert rows["visits"] == rows["costs_counted"] == [record.visits[r] for r in range(layout.num_rows)]
    assert rows["state"] == [r // 2 for r in range(layout.num_rows)]
    assert rows["action"] == [r % 2 for r in range(layout.num_rows)]
    assert rows["layer"] == [layout.layer_of_state[r // 2] for r in range(layout.num_rows)]
    for i, name in enumerate(WORLD.constraint_names):
        for r in range(layout.num_rows):
            visits = record.visits[r]
            assert rows[f"{name} mean"][r] == (record.costs[r, i] / visits if visits else None)
        assert rows[f"{name} lower"] == arrays["boxes.cost_lower"][:, i].tolist()
        assert rows[f"{name} upper"] == arrays["boxes.cost_upper"][:, i].tolist()
        assert not any(rows[f"{name} known"])
    places = [(2 * x + a, y) for x, a, y in zip(moves["state"], moves["action"], moves["next_state"], strict=True)]
    assert moves["count"] == [record.moves[place] for place in places]
    assert moves["p_hat"] == [record.moves[r, y] / n if (n := record.visits[r]) else None for r, y in places]
    assert moves["lower"] == arrays["boxes.lower"].tolist()
    assert moves["upper"] == arrays["boxes.upper"].tolist()
    assert moves["known"] == [layout.row_start[r + 1] - layout.row_start[r] == 1 for r, _ in places]
    assert seen.episode == 40


def test_a_snapshot_stays_as_it_was() -> None:
    learner = make_learner("sv-ops", WORLD)
    before = learner.estimates
    Record(learner, WORLD, 5)
    assert sum(before.visits) == 0
    assert sum(learner.estimates.visits) == 5 * WORLD.layout.steps
    assert before.rows.column("visits").to_pylist() == [0] * WORLD.layout.num_rows
    with pytest.raises(ValueError, match="read-only"):
        before.visits[0] = 1


def test_labels_take_the_place_of_numbers() -> None:
    layout = WORLD.layout.labelled(LABELS, ["wait", "go"])
    view = hr.View(layout, WORLD.thresholds, ("time", "money"))
    learner = hr.SVOPS(view, 10, 0.05, "paper")
    learner.plan()
    learner.observe([("start", "go"), ("s2", "wait"), ("s5", "go")], [0.0] * 3, np.ones((3, 2)))
    seen = learner.estimates
    visited = [(row["state"], row["action"]) for row in seen.rows.to_pylist() if row["visits"]]
    assert visited == [("start", "go"), ("s2", "wait"), ("s5", "go")]
    moved = [(row["state"], row["action"], row["next_state"]) for row in seen.moves.to_pylist() if row["count"]]
    assert moved == [("start", "go", "s2"), ("s2", "wait", "s5"), ("s5", "go", "end")]
    assert {"time mean", "money known"} <= set(seen.rows.column_names)


@pytest.mark.parametrize("what", ["ties", "much", "independent costs"])
def test_rows_that_share_a_law_share_their_counts(what: str) -> None:
    world = knowing(what)
    learner = hr.SVOPS(world.view(), 60, 0.05, "sharpest")
    record, layout, told = Record(learner, world, 30), world.layout, world.knowledge
    assert told.same_transitions is not None
    assert told.same_costs is not None
    seen = learner.estimates
    for r in range(layout.num_rows):
        twins = np.flatnonzero(told.same_transitions == told.same_transitions[r])
        assert seen.visits[r] == sum(record.visits[int(twin)] for twin in twins)
        assert seen.visits_shared_by[r] == len(twins)
        triples = slice(layout.row_start[r], layout.row_start[r + 1])
        for place in range(triples.start, triples.stop):
            nth = place - triples.start
            following = [int(layout.successor[layout.row_start[twin] + nth]) for twin in twins]
            together = sum(record.moves[int(twin), y] for twin, y in zip(twins, following, strict=True))
            assert seen.counts[place] == together
        own = told.same_costs == told.same_costs[r]
        counted, total = 0, 0.0
        for rows, _, costs in record.episodes:
            hits = np.flatnonzero(own[rows])
            hits = hits if told.independent_costs else hits[:1]
            counted, total = counted + len(hits), total + float(costs[hits, 0].sum())
        assert seen.costs_counted[r] == counted
        assert seen.costs_shared_by[r] == own.sum()
        if counted:
            assert seen.mean_costs[r, 0] == pytest.approx(total / counted, abs=1e-15)
    assert max(seen.visits_shared_by) > 1


def test_known_parts_are_shown_as_known() -> None:
    world = knowing("much")
    view, layout, told = world.view(), world.layout, world.knowledge
    assert told.transitions is not None
    assert told.costs is not None
    learner = hr.SVOPS(view, 60, 0.05, "paper")
    Record(learner, world, 10)
    seen = learner.estimates
    known = ~np.isnan(told.transitions)
    assert known.any()
    assert not known.all()
    moves, single = seen.moves.to_pydict(), np.diff(layout.row_start)[layout.row_of_triple] == 1
    assert moves["known"] == (known | single).tolist()
    assert np.array(moves["lower"])[known].tolist() == told.transitions[known].tolist()
    assert np.array(moves["upper"])[known].tolist() == told.transitions[known].tolist()
    free = ~np.isnan(told.costs[0])
    assert seen.rows.column("cost 1 known").to_pylist() == free.tolist()
    assert (seen.cost_upper[free, 0] == 0.0).all()
    html = seen._repr_html_()
    assert "0 known" in html
    assert "shared by" in hr.SVOPS(view, 60, 0.05, "sharpest").estimates._repr_html_()


def test_statistics_have_the_same_tables_with_the_loss() -> None:
    learner = hr.SVOPS(WORLD.view(), 50, 0.05, "paper", radii="tight")
    record = Record(learner, WORLD, 30)
    own = hr.learners.Statistics(WORLD.view(), 50, 0.05, "sharp")
    for rows, losses, costs in record.episodes:
        own.add(hr.Episode(WORLD.view(), rows, losses, costs))
    theirs, mine = learner.estimates, own.estimates
    for name in ("visits", "costs_counted", "counts", "p_hat", "lower", "upper", "known_transitions"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(mine.mean_costs[:, :2], theirs.mean_costs)
    np.testing.assert_array_equal(mine.visits, own.visits)
    np.testing.assert_array_equal(mine.counts, own.moves)
    np.testing.assert_array_equal(mine.cost_upper[:, :2], own.cost_upper)
    np.testing.assert_array_equal(mine.cost_lower[:, 2], own.loss_lower)
    seen = own.visits > 0
    np.testing.assert_array_equal(mine.mean_costs[seen, 2], own.mean_loss[seen])
    assert mine.names == (*WORLD.constraint_names, "loss")
    called = hr.View(WORLD.layout, WORLD.thresholds, ("loss", "loss_"))
    assert hr.learners.Statistics(called, 50, 0.05).estimates.names == ("loss", "loss_", "loss__")


def test_absorbed_episodes_count() -> None:
    log = hr.Log.played(TIED, hr.Policy.uniform(TIED), 50)
    learner = hr.SVOPS(TIED.view(), 100, 0.05, "sharpest")
    learner.absorb(log)
    seen = learner.estimates
    assert seen.episode == 0
    assert seen.visits[:2].sum() == 2 * 50  # both rows of the root share what leads out of it


def test_arrow_is_only_loaded_for_tables() -> None:
    script = (
        "import sys, hedgerow as hr\n"
        "seen = hr.learners.Statistics(hr.View.of([['a']], ['b', 'c'], thresholds={'d': 0.5}), 10, 0.05).estimates\n"
        "repr(seen), seen._repr_html_()\n"
        "print('pyarrow' in sys.modules)\n"
        "seen.rows\n"
        "print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
