"""Groups of seeds: the right cells come together, and their numbers are those of numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from run_cases import made_directory, made_run, made_spec
from scipy.stats import ttest_1samp

from hedgerow import results
from hedgerow.errors import InvalidInput
from hedgerow.report.export import paper_plots
from hedgerow.report.page import report
from hedgerow.results import groups as groups_module
from hedgerow.results import store
from hedgerow.results.groups import Setting, groups
from hedgerow.results.metrics import Estimate, growth_exponent


def test_seeds_come_together(tmp_path: Path) -> None:
    made_directory(tmp_path / "out", seeds=5, worlds=("b", "a"))
    made = groups(results.open(tmp_path / "out"))
    assert [(group.setting.world, group.learner) for group in made] == [
        ("a", "s-ops sharp"),
        ("a", "sv-ops"),
        ("b", "s-ops sharp"),
        ("b", "sv-ops"),
    ]
    assert made[0].setting == Setting("a", "switching 100", 1000)
    assert [cell.seed for cell in made[0].cells] == [0, 1, 2, 3, 4]


def test_numbers_of_a_group(tmp_path: Path) -> None:
    made_directory(tmp_path / "out", seeds=5)
    safe, loose = groups(results.open(tmp_path / "out"))
    finals = (10.0 + np.arange(5)) * 1000**0.5
    ends = ttest_1samp(finals, 0.0).confidence_interval(0.95)
    assert safe["regret"] == Estimate(pytest.approx(np.mean(finals)), *map(pytest.approx, ends), 5)
    assert safe["regret_exponent"].value == safe.growth.exponent == pytest.approx(0.5)
    assert (safe["safe"].value, safe["worst_excess"].value, safe["violation"].value) == (5, -0.1, 0.0)
    assert (safe["worst_margin"].value, safe["violation"].low, safe["violation"].high) == (0.1, 0.0, 0.0)
    assert loose["regret_exponent"].value == pytest.approx(0.75)
    assert (loose["safe"].value, loose["worst_excess"].value) == (0, 0.2)
    assert loose["violation"].value == pytest.approx(2.0 * 1000**0.5)  # the second constraint is the worse one
    assert safe["episodes_per_second"].value == 2000.0
    assert (safe["unclean"].value, safe.number("t_bar"), safe.number("rho_hat")) == (5, None, None)
    with pytest.raises(InvalidInput, match=r"have no number 'regert'; did you mean 'regret'"):
        safe["regert"]


def test_tables_are_read_and_intervals_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of a command, the page and its figures look at the same groups."""
    made_directory(tmp_path / "out", seeds=3)
    fitted, read = [], []
    monkeypatch.setattr(groups_module, "growth_exponent", lambda t, y: fitted.append(y) or growth_exponent(t, y))
    opened = results.open(tmp_path / "out")
    counted = replace(opened, load=lambda name: read.append(name) or opened.load(name))
    report(counted, tmp_path / "page.html")
    paper_plots(counted)
    assert [group["regret"].seeds for group in counted.groups] == [3, 3]
    assert len(fitted) == 2
    assert len(read) == len(set(read)) == 6


def test_curves_are_those_of_the_tables(tmp_path: Path) -> None:
    made_directory(tmp_path / "out", seeds=3)
    group = groups(results.open(tmp_path / "out"))[0]
    np.testing.assert_array_equal(group.curve("regret")[2], made_run(2).regret)
    np.testing.assert_array_equal(group.margin(1)[0], -made_run(0).excess[:, 1])


def test_different_checkpoints_meet_where_they_can(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    for seed, episodes in ((0, [1, 2, 4, 8]), (1, [2, 3, 8])):
        run = made_run(seed, episodes=np.array(episodes))
        store.write_cell(tmp_path / "out", made_spec(seed=seed), run)
    (group,) = groups(results.open(tmp_path / "out"))
    assert group.episodes.tolist() == [2, 8]
    np.testing.assert_allclose(group.curve("regret")[:, -1], [10 * 8**0.5, 11 * 8**0.5])
    store.write_cell(tmp_path / "out", made_spec(seed=2), made_run(2, episodes=np.array([5])))
    (group,) = groups(results.open(tmp_path / "out"))
    with pytest.raises(InvalidInput, match="no checkpoint in common"):
        group.curve("regret")
