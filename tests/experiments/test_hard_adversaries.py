"""Adversaries that need the number of episodes, the world or its loss get them from their cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_experiments import small

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.spec import cells_of
from hedgerow.experiments.worker import run_cell

NAMES = ("cycle", "betrayal", "hidden", "early-bird", "tempting")
TEXT = """\
seeds = 1
episodes = [20, 30]

[[world]]
name = "lower-bound-1"
episodes = "T"
label = "first"

{adversaries}
[[learner]]
name = "uniform"
"""
PLAIN = TEXT.format(adversaries="".join(f'[[adversary]]\nname = "{name}"\n\n' for name in NAMES))


def with_one(adversary: str) -> str:
    return TEXT.format(adversaries=f"[[adversary]]\n{adversary}\n")


def test_descriptions_stay_small_and_complete() -> None:
    found = {cell.adversary["name"]: cell.adversary for cell in cells_of(small(PLAIN))}
    assert found == {
        "cycle": {"name": "cycle"},
        "betrayal": {"name": "betrayal", "turn": 0.5, "safe_loss": 0.2},
        "hidden": {"name": "hidden", "turn": 0.25},
        "early-bird": {"name": "early-bird", "until": 0.1},
        "tempting": {"name": "tempting", "turn": 0.5},
    }


def test_a_cell_runs_the_losses_of_its_own_length_and_world() -> None:
    for cell in cells_of(small(PLAIN)):
        T = cell.episodes
        world = hr.worlds.make("lower-bound-1", episodes=T)
        by_hand = {
            "cycle": hr.losses.Cycle(),
            "betrayal": hr.losses.Betrayal(T),
            "hidden": hr.losses.Hidden(T),
            "early-bird": hr.losses.EarlyBird(world, T),
            "tempting": hr.losses.Tempting(world, T),
        }[cell.adversary["name"]]
        run = run_cell(cell).run
        assert run.adversary == by_hand.kind
        np.testing.assert_allclose(run.losses[-1], T * by_hand.mean(world.cmdp.layout, T), atol=1e-9)


def test_a_small_sweep_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "hard.toml").write_text(PLAIN, encoding="utf-8")
    found = hr.sweep(tmp_path / "hard.toml", tmp_path / "out", processes=1, progress=False)
    assert [cell.status for cell in found.cells] == ["done"] * 10


def test_parameters_of_the_file_count() -> None:
    cell = cells_of(small(with_one('name = "betrayal"\nturn = 1\nsafe_loss = 0.4')))[0]
    assert cell.adversary == {"name": "betrayal", "turn": 1.0, "safe_loss": 0.4}
    assert isinstance(cell.adversary["turn"], float)
    part = components.complete_adversary({"name": "betrayal", "episodes": 4}, 20)
    assert part == {"name": "betrayal", "episodes": 4, "turn": 0.5, "safe_loss": 0.2}
    built = components.build_adversary(part, 0, None, episodes=20)
    assert built == hr.losses.Betrayal(4)


BAD = [
    ('name = "betrayal"\nturn = 2', r"line 11, adversary 1, turn: turn is 2.0; it must lie in \[0, 1\]"),
    ('name = "betrayal"\nturn = "late"', "line 11, adversary 1, turn: turn must be a number, not 'late'"),
    (
        'name = "hidden"\nuntil = 0.5',
        "until: hidden losses have no parameter 'until'; they have: episodes",
    ),
    ('name = "early-bird"\nuntil = -1', "line 11, adversary 1, until: until is -1.0"),
    ('name = "tempting"\nworld = "media"', "adversary 1, world: the world of tempting losses must be an array"),
    ('name = "tempting"\nepisodes = 0', "adversary 1.*the number of episodes is 0"),
    ('name = "cycle"\nperiod = 2', "adversary 1, period: cycle losses have no parameter 'period'; they have: none"),
]


@pytest.mark.parametrize(("adversary", "message"), BAD)
def test_mistakes_have_a_line(adversary: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        small(with_one(adversary))


def test_worlds_without_a_loss_or_without_temptation_are_known_before_the_run(tmp_path: Path) -> None:
    hr.worlds.make("lower-bound-1").cmdp.save(tmp_path / "world.npz")
    text = with_one('name = "early-bird"').replace('name = "lower-bound-1"\nepisodes = "T"', 'file = "world.npz"')
    with pytest.raises(InvalidInput, match="adversary 1: this world has no loss of its own: early-bird needs one"):
        small(text, tmp_path)
    small(text.replace("early-bird", "tempting"), tmp_path)
    with pytest.raises(InvalidInput, match="adversary 1: no pair of state and action violates a constraint"):
        small(with_one('name = "tempting"').replace("lower-bound-1", "lower-bound-2"))


def test_a_plug_in_is_filled_in_as_well_unless_it_has_defaults(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "class Late:\n"
        "    stochastic = True\n"
        "    def __init__(self, episodes, world, own_loss, rate: float = 0.5, seed=0):\n"
        "        self.seen = episodes, world.layout.num_rows, own_loss.tolist(), rate\n"
        "    def block(self, layout, first, count):\n"
        "        return np.zeros((count, layout.num_rows))\n"
        "class Own(Late):\n"
        "    def __init__(self, episodes=7, world='none'):\n"
        "        self.seen = episodes, world\n",
        encoding="utf-8",
    )
    world = hr.worlds.make("lower-bound-1")
    built = {}
    for name in ("Late", "Own"):
        part = components.complete_adversary({"name": f"mine.py:{name}"}, 20, tmp_path)
        assert not {"episodes", "world", "own_loss"} & set(part)
        made = components.build_adversary(part, 0, components.BuiltWorld(world.cmdp, world.loss), tmp_path, 20)
        built[name] = made.adversary.seen
    assert built == {"Late": (20, 2, [0.5, 1.0], 0.5), "Own": (7, "none")}
    cell = cells_of(small(with_one('name = "mine.py:Late"\nrate = 0.25'), tmp_path))[0]
    assert run_cell(cell, tmp_path).run.stochastic


def test_ev_days_keep_their_world_of_the_file() -> None:
    assert components.complete_adversary({"name": "ev-days"}, 10)["world"] == "ev-workday"
