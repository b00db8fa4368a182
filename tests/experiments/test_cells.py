"""Cells: their names, hashes and seeds; and that a cell is what one would write by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from small_experiments import NUM_CELLS, SMALL, small

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import BuiltWorld, SpecError, build_learner, build_world, complete_learner
from hedgerow.experiments.spec import CellSeeds, CellSpec, cells_of, experiment_data, load
from hedgerow.experiments.worker import run_cell
from hedgerow.planning import offline
from hedgerow.simulation.result import Run


def test_every_combination_is_a_cell() -> None:
    cells = cells_of(small())
    assert len(cells) == len({cell.id for cell in cells}) == len({cell.hash for cell in cells}) == NUM_CELLS
    assert "first__switching-20__s-ops-sharp__T80__seed1" in {cell.id for cell in cells}


def test_a_description_is_complete() -> None:
    (spec,) = (cell.data for cell in cells_of(small()) if cell.id == "first__switching-20__s-ops-sharp__T80__seed1")
    assert spec["world"] == {"name": "lower-bound-1", "episodes": 80, "rho": 0.25}  # "T" is the horizon
    assert spec["adversary"] == {"name": "switching", "period": 20, "patterns": 2}  # its seed is the cell's
    assert spec["learner"] == {"name": "s-ops", "preset": "sharp", "baseline": "slater"}
    assert (spec["episodes"], spec["delta"], spec["seed"], spec["root_seed"]) == (80, 0.01, 1, 0)


def seeded(root: int | None, seed: int) -> CellSeeds:
    return CellSpec({}, {}, {}, episodes=1, delta=0.1, seed=seed, root_seed=root).seeds


def test_without_a_root_the_seed_of_a_cell_is_every_seed() -> None:
    assert seeded(None, 7) == (7, 7, 7)
    assert seeded(0, 7) != (7, 7, 7)


def test_a_cell_may_be_looked_at_more_closely() -> None:
    """Fewer checkpoints and further columns: the run itself stays what it was."""
    cell = next(cell for cell in cells_of(small()) if cell.learner["name"] == "s-ops")
    plain = run_cell(cell).run
    closely = run_cell(replace(cell, marks=5, watch={"audit": True, "notes": True, "estimator": True})).run
    assert len(closely.episodes) == 5 < len(plain.episodes)
    assert (closely.episodes[-1], closely.loss[-1]) == (plain.episodes[-1], plain.loss[-1])
    assert set(closely.notes) - set(plain.notes) == {"width", "weighted_width", "weighted_upper", "radii", "residuals"}
    assert np.isinf(plain["mixing_slack"])
    assert np.isfinite(closely["mixing_slack"])  # the audit
    assert np.isfinite(closely["optimism"])  # the estimator
    assert {"optimism", "cost_breaches"}.isdisjoint(plain.facts)


def test_labels_change_names_and_nothing_else() -> None:
    plain, labelled = cells_of(small()), cells_of(small(SMALL.replace('"first"', '"renamed"')))
    assert [cell.hash for cell in plain] == [cell.hash for cell in labelled]
    assert all(cell.id.startswith("renamed__") for cell in labelled)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('label = "first"', 'rho = 0.3\nlabel = "first"'),
        ("period = 20", "period = 21"),
        ("period = 20", "period = 20\nseed = 5"),
        ("seeds = 2", "seeds = 2\nseed = 1"),
        ("seeds = 2", "seeds = 2\ndelta = 0.02"),
        ("seeds = 2", "seeds = [2, 3]"),
        ("[50, 80]", "[51, 81]"),
    ],
)
def test_anything_else_changes_every_hash(old: str, new: str) -> None:
    before, after = cells_of(small()), cells_of(small(SMALL.replace(old, new)))
    assert {cell.hash for cell in before}.isdisjoint(cell.hash for cell in after)
    assert experiment_data(small(), before) != experiment_data(small(SMALL.replace(old, new)), after)


def test_seeds_are_children_of_one_sequence() -> None:
    children = SeedSequence(7).spawn(6)
    for seed in range(6):
        expected = children[seed].generate_state(3, np.uint64)
        assert np.array_equal(np.array(seeded(7, seed), dtype=np.uint64), expected)
    every = [word for root in range(5) for seed in range(50) for word in seeded(root, seed)]
    assert len(set(every)) == len(every)


def test_a_cell_does_not_depend_on_its_neighbours() -> None:
    alone = small(SMALL.replace("seeds = 2", "seeds = [1]").replace("[50, 80]", "80"))
    among = {cell.id: cell for cell in cells_of(small())}
    for cell in cells_of(alone):
        assert among[cell.id] == cell


def by_hand(seeds: tuple[int, int, int]) -> Run:
    simulation_seed, learner_seed, adversary_seed = seeds
    world = hr.worlds.make("lower-bound-1", episodes=80)
    slater = hr.offline.slater(world.cmdp)
    learner = hr.SOPS(
        world.cmdp.view(), 80, 0.01, "sharp", learner_seed, baseline=slater.policy, baseline_costs=slater.costs
    )
    losses = hr.losses.Switching(period=20, seed=adversary_seed)
    return hr.simulate(world.cmdp, learner, losses, seed=simulation_seed, progress=False)


def test_a_cell_is_what_one_would_write_by_hand() -> None:
    (cell,) = (cell for cell in cells_of(small()) if cell.id == "first__switching-20__s-ops-sharp__T80__seed1")
    done, expected = run_cell(cell), by_hand(cell.seeds)
    for name in ("episodes", "loss", "regret", "costs", "violations"):
        assert np.array_equal(getattr(done.run, name), getattr(expected, name)), name
    for name in expected.notes:
        assert np.array_equal(done.run[name], expected[name]), name
    assert done.facts["slater"] == pytest.approx(0.25, abs=1e-9)  # the closed form: rho
    assert done.seconds["total"] >= done.seconds["loop"] > 0.0


def test_the_slater_point_of_a_world_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the baseline, for the record, and to begin the comparators with."""
    solved: list[tuple[float, ...]] = []
    real = offline.largest_margin

    def counting(E: Any, C: Any, alpha: Any) -> Any:
        solved.append(tuple(alpha))
        return real(E, C, alpha)

    cell = next(cell for cell in cells_of(small()) if cell.learner["name"] == "s-ops")
    monkeypatch.setattr(components, "_shared", {})
    monkeypatch.setattr(offline, "largest_margin", counting)
    run_cell(cell)
    assert solved
    assert len(solved) == len(set(solved))


def test_progress_is_told() -> None:
    told: list[int] = []
    run_cell(cells_of(small())[0], tick=told.append)
    assert told[0] == 0


def test_the_two_baselines() -> None:
    cmdp = hr.worlds.make("lower-bound-1", rho=0.25).cmdp
    safest = build_learner(complete_learner({"name": "s-ops"}), BuiltWorld(cmdp), 10, 0.1, 0)
    assert isinstance(safest, hr.SOPS)
    assert safest.baseline_costs == pytest.approx([0.25], abs=1e-9)  # alpha - rho
    bolder = build_learner(complete_learner({"name": "s-ops", "margin": 0.1}), BuiltWorld(cmdp), 10, 0.1, 0)
    assert isinstance(bolder, hr.SOPS)
    assert bolder.baseline_costs[0] <= 0.4 + 1e-9
    assert hr.occupancy.evaluate(cmdp, bolder.baseline).costs == pytest.approx(bolder.baseline_costs, abs=1e-12)
    with pytest.raises(hr.errors.InfeasibleError, match=r"no policy keeps every cost 0.3 below"):
        build_learner(complete_learner({"name": "s-ops", "margin": 0.3}), BuiltWorld(cmdp), 10, 0.1, 0)


def test_the_baselines_that_a_world_brings() -> None:
    world = build_world({"name": "dope-media", "support": "full"}, Path())
    learner = build_learner(complete_learner({"name": "s-ops", "baseline": "budget"}), world, 10, 0.1, 0)
    assert isinstance(learner, hr.SOPS)
    assert learner.baseline_costs == pytest.approx([1.0], abs=1e-8)  # DOPE's own budget
    golden = hr.worlds.make("dope-media").golden
    assert golden is not None
    assert hr.occupancy.evaluate(world.cmdp, learner.baseline, world.loss).loss == pytest.approx(
        golden.baseline, abs=1e-8
    )
    days = build_world({"name": "ev-workday", "alpha": 0.1, "prices": "carbon"}, Path())
    own = build_learner(complete_learner({"name": "s-ops", "baseline": "own"}), days, 10, 0.1, 0)
    assert isinstance(own, hr.SOPS)
    assert own.baseline_costs.tolist() == [0.001]
    for kind, offers in (("own", "it offers 'budget'"), ("budget", "it offers none")):
        part = complete_learner({"name": "s-ops", "baseline": kind})
        with pytest.raises(InvalidInput, match=rf"no baseline '{kind}' \({offers}\); take baseline = 'slater'"):
            build_learner(part, world if kind == "own" else BuiltWorld(world.cmdp), 10, 0.1, 0)
    with pytest.raises(SpecError, match="a margin belongs to baseline = 'margin', not to 'budget'"):
        complete_learner({"name": "s-ops", "baseline": "budget", "margin": 0.1})


def test_the_demo_names_its_baseline() -> None:
    cells = [cell for cell in cells_of(load("demo")) if cell.learner["name"] == "s-ops"]
    assert {cell.learner["baseline"] for cell in cells} == {"own"}
    assert {cell.label["learner"] for cell in cells} == {"S-OPS (safe)"}
    short = replace(cells[0], episodes=50)
    assert bool(run_cell(short).run.safe[-1])


def test_known_transitions_reach_the_learner() -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp
    learner = build_learner(
        complete_learner({"name": "sv-ops", "known_transitions": True}), BuiltWorld(cmdp), 10, 0.1, 0
    )
    assert learner.transitions is not None
    assert build_learner(complete_learner({"name": "sv-ops"}), BuiltWorld(cmdp), 10, 0.1, 0).transitions is None


def test_numbers_that_only_one_learner_knows() -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp
    learner = build_learner(complete_learner({"name": "cv-ops", "memory_budget": 4096}), BuiltWorld(cmdp), 10, 0.1, 0)
    assert isinstance(learner, hr.CVOPS)
    assert learner.memory_budget == 4096
    with pytest.raises(SpecError, match="memory_budget must be a number, not 'much'"):
        complete_learner({"name": "cv-ops", "memory_budget": "much"})
    with pytest.raises(SpecError, match="sv-ops has no switch 'memory_budget'"):
        complete_learner({"name": "sv-ops", "memory_budget": 4096})


def test_the_demo_shows_every_learner_of_the_family() -> None:
    shown = [item.given["name"] for item in load("demo").learners]
    assert sorted(shown) == ["b-ops", "cv-ops", "s-ops", "sv-ops", "uob-reps"]


def test_a_world_file_that_changes_is_refused(tmp_path: Path) -> None:
    world = hr.worlds.make("lower-bound-1")
    world.cmdp.save(tmp_path / "world.npz")
    text = SMALL.replace('name = "lower-bound-1"\nepisodes = "T"', 'file = "world.npz"')
    cell = cells_of(small(text, tmp_path))[0]
    assert run_cell(cell, tmp_path).run.episodes[-1] == 50
    world.cmdp.with_thresholds([0.4]).save(tmp_path / "world.npz", overwrite=True)
    with pytest.raises(InvalidInput, match=r"world.npz has changed"):
        run_cell(cell, tmp_path)
    assert cells_of(small(text, tmp_path))[0].hash != cell.hash


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The worlds that are built from now on; none is shared yet."""
    names: list[str] = []
    real = components.build_world

    def noting(part: dict[str, Any], folder: Path) -> BuiltWorld:
        names.append(part["name"])
        return real(part, folder)

    monkeypatch.setattr(components, "_shared", {})
    monkeypatch.setattr(components, "build_world", noting)
    return names


def test_cells_of_a_process_share_worlds_and_optima(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell for cell in cells_of(small()) if cell.episodes == 80 and cell.seed == 0]
    alone = []
    for cell in cells:
        components._shared.clear()
        alone.append(run_cell(cell))
    made.clear()
    components._shared.clear()
    asked: list[Any] = []
    real = offline.least_loss
    monkeypatch.setattr(offline, "least_loss", lambda *given: asked.append(given) or real(*given))
    together = [run_cell(cell) for cell in cells]
    assert len(cells) == 2
    assert made == ["lower-bound-1"]
    assert len(asked) == 1  # both learners met the same losses
    for one, other in zip(alone, together, strict=True):
        for name in ("loss", "regret", "regret_so_far", "costs"):
            assert np.array_equal(getattr(one.run, name), getattr(other.run, name)), name


def test_code_of_others_gets_a_world_of_its_own(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "import hedgerow as hr\nclass Mine(hr.field.Uniform):\n"
        "    def __init__(self, view, episodes): super().__init__(view, episodes)\n"
    )
    text = SMALL.replace('name = "sv-ops"', 'name = "mine.py:Mine"')
    made.clear()
    for cell in cells_of(small(text, tmp_path)):
        if cell.is_foreign:
            run_cell(cell, tmp_path)
    assert not components._shared


def test_shared_worlds_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_shared", {})
    monkeypatch.setattr(components, "MOST_TRIPLES", 100)
    for seed in range(40):
        world = components.shared_world({"name": "random-layered", "layers": [1, 2, 1], "seed": seed}, Path())
        assert sum(one.cmdp.layout.num_triples for one in components._shared.values()) <= 100
    assert world in components._shared.values()
    large = components.shared_world({"name": "random-layered", "layers": [1, 9, 9, 1]}, Path())
    assert large.cmdp.layout.num_triples > 100
    assert not components._shared
