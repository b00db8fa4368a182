"""Counts against a recount of the whole history."""

import naive_estimates as naive
import numpy as np
import pytest

from hedgerow.confidence.counts import find_triple, make_counts, make_unknowns, record, record_costs
from hedgerow.errors import InvalidInput
from hedgerow.model.kernel_layout import index_of


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_counts_are_those_of_a_recount(full: bool, m: int) -> None:
    rng = np.random.default_rng(m)
    layout = naive.some_layout(rng, full=full)
    p, pi = naive.some_transitions(rng, layout), naive.some_policy(rng, layout)
    counts, laws, history = make_counts(layout, m), make_unknowns(layout, m).laws, []
    for _ in range(50):
        rows, triples = naive.some_episode(rng, layout, p, pi)
        costs = rng.random((layout.steps, m))
        record(index_of(layout), laws, counts, np.array(rows), np.array(triples))
        record_costs(laws, counts, np.array(rows), costs)
        history.append((rows, triples, costs))
    for r in range(layout.num_rows):
        visits = [(costs, rows.index(r)) for rows, _, costs in history if r in rows]
        assert counts.num_visits[r] == len(visits)
        np.testing.assert_allclose(counts.cost_sums[r], sum((c[k] for c, k in visits), np.zeros(m)), rtol=1e-14)
    moves = [j for _, triples, _ in history for j in triples]
    assert counts.num_moves.tolist() == [moves.count(j) for j in range(layout.num_triples)]
    assert np.add.reduceat(counts.num_moves, layout.row_start[:-1]).tolist() == counts.num_visits.tolist()
    assert counts.num_visits.sum() == 50 * layout.steps
    assert counts.num_costs.tolist() == counts.num_visits.tolist()


def test_an_episode_changes_its_own_rows_only() -> None:
    rng = np.random.default_rng(5)
    layout = naive.some_layout(rng, full=True)
    counts, laws = make_counts(layout, 2), make_unknowns(layout, 2).laws
    rows, triples = naive.some_episode(rng, layout, naive.some_transitions(rng, layout), naive.some_policy(rng, layout))
    record(index_of(layout), laws, counts, np.array(rows), np.array(triples))
    record_costs(laws, counts, np.array(rows), np.ones((layout.steps, 2)))
    assert np.flatnonzero(counts.num_visits).tolist() == rows
    assert np.flatnonzero(counts.num_moves).tolist() == triples
    assert np.flatnonzero(counts.cost_sums.sum(axis=1)).tolist() == rows


@pytest.mark.parametrize("full", [True, False])
def test_a_triple_is_found_by_its_row_and_successor(full: bool) -> None:
    layout = naive.some_layout(np.random.default_rng(7), full=full)
    index = index_of(layout)
    for r, row in enumerate(naive.rows_of(layout)):
        where = {int(layout.successor[j]): j for j in range(row.start, row.stop)}
        for state in range(-1, layout.num_states + 1):
            assert find_triple(index, r, state) == where.get(state, -1)


@pytest.mark.parametrize("m", [-1, 1.5, True])
def test_a_wrong_number_of_constraints_is_refused(m: object) -> None:
    layout = naive.some_layout(np.random.default_rng(0), full=True)
    with pytest.raises(InvalidInput, match="number of constraints"):
        make_counts(layout, m)  # type: ignore[arg-type]
