"""What an experiment file may say, and the one clear message for what it may not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from small_experiments import SMALL, small

import hedgerow as hr
from hedgerow import cli
from hedgerow.errors import InvalidInput
from hedgerow.experiments.source import shipped
from hedgerow.experiments.spec import TOP, cells_of, load


def test_what_a_file_says() -> None:
    experiment = small()
    assert experiment.seeds == (0, 1)
    assert experiment.episodes == (50, 80)
    assert (experiment.seed, experiment.delta, experiment.trace) == (0, 0.01, False)
    assert [item.label for item in experiment.worlds] == ["first"]
    assert [item.label for item in experiment.adversaries] == ["switching-20"]
    assert [item.label for item in experiment.learners] == ["sv-ops-sharpest", "s-ops-sharp"]


def test_one_number_or_a_list() -> None:
    single = small(SMALL.replace("seeds = 2", "seeds = [7, 3]").replace("[50, 80]", "64"))
    assert single.seeds == (7, 3)
    assert single.episodes == (64,)


def test_switches_and_baselines_show_in_the_label() -> None:
    text = SMALL + "margin = 0.1\nradii = 'anytime'\n"
    assert small(text).learners[1].label == "s-ops-sharp-margin=0.1-radii=anytime"


@pytest.mark.parametrize("name", shipped())
def test_what_ships_is_valid(name: str) -> None:
    experiment = load(name)
    assert experiment.title
    assert experiment.description
    assert experiment.name == name


def test_a_world_from_a_file(tmp_path: Path) -> None:
    world = hr.worlds.make("lower-bound-1")
    world.cmdp.save(tmp_path / "world.npz")
    text = SMALL.replace('name = "lower-bound-1"\nepisodes = "T"', 'file = "world.npz"')
    assert small(text, tmp_path).worlds[0].given == {"name": "file", "file": "world.npz"}


def test_a_world_without_a_safe_policy_is_known_before_the_run(tmp_path: Path) -> None:
    hr.worlds.make("lower-bound-1").cmdp.with_thresholds([0.2]).save(tmp_path / "world.npz")
    text = SMALL.replace('name = "lower-bound-1"\nepisodes = "T"', 'file = "world.npz"')
    words = r"line 14, learner 2, baseline: in the world 'first': the baseline is not safe: 'cost 1' costs 0.25"
    with pytest.raises(InvalidInput, match=words):
        small(text, tmp_path)


# (the text, its line if one can be named, words of the message)
MALFORMED: dict[str, tuple[str, int | None, str]] = {
    "no TOML": ("seeds = \n", 1, "not valid TOML"),
    "cut short": ("seeds = 2\n[[world", 2, "not valid TOML"),
    "twice the same key": ("seeds = 2\nseeds = 3\n", 2, "not valid TOML"),
    "empty": ("", None, "'episodes' is missing"),
    "nearly an entry": (SMALL.replace("[[world]]", "[[worlds]]"), None, "unknown entry; did you mean 'world'"),
    "nearly a preset": (SMALL.replace('"sharp"', '"Sharp"'), 17, "the preset is 'Sharp'; did you mean 'sharp'?"),
    "unknown entry": ("copies = 3\n" + SMALL, 1, "copies: unknown entry; an experiment has: title"),
    "no seeds": (SMALL.replace("seeds = 2\n", ""), None, "'seeds' is missing"),
    "seeds as text": (SMALL.replace("seeds = 2", 'seeds = "two"'), 1, "must be a whole number, not 'two'"),
    "no seed at all": (SMALL.replace("seeds = 2", "seeds = []"), 1, "the list is empty"),
    "a seed twice": (SMALL.replace("seeds = 2", "seeds = [1, 1]"), 1, "names a number twice"),
    "no episodes": (SMALL.replace("[50, 80]", "0"), 2, "is 0; it must be at least 1"),
    "half an episode": (SMALL.replace("[50, 80]", "[50, 1.5]"), 2, "must be a whole number, not 1.5"),
    "delta of 2": ("delta = 2.0\n" + SMALL, 1, "delta is 2.0; it must lie in (0, 1)"),
    "delta of 1": ("delta = 1.0\n" + SMALL, 1, "delta is 1.0; it must lie in (0, 1)"),
    "title is a number": ("title = 5\n" + SMALL, 1, "must be a text in quotation marks, not 5"),
    "trace is a text": ("trace = 'yes'\n" + SMALL, 1, "must be true or false"),
    "too many cells": (SMALL.replace("seeds = 2", "seeds = 1_000_000_000"), 1, "more than 1,000,000 cells"),
    "no learner": (SMALL[: SMALL.index("[[learner]]")], None, "there is no learner; add a table [[learner]]"),
    "single brackets": (SMALL.replace("[[adversary]]", "[adversary]"), 8, "with double brackets"),
    "no name": (SMALL.replace('name = "sv-ops"\n', ""), 12, "learner 1, name: the name is missing"),
    "name is a number": (SMALL.replace('name = "sv-ops"', "name = 3"), 13, "must be a text in quotation marks"),
    "unknown world": (SMALL.replace("lower-bound-1", "atlantis"), 4, "unknown world 'atlantis'; known: random-"),
    "unknown parameter": (
        SMALL.replace("label =", "size ="),
        6,
        "has no parameter 'size'; its parameters are: episodes",
    ),
    "parameter of a wrong kind": (SMALL.replace('"T"', '"many"'), 5, "episodes must be a whole number, not 'many'"),
    "impossible world": (SMALL.replace('label = "first"', "rho = 0.0001"), 3, "the bound needs rho >= eps"),
    "world that is no file": (
        SMALL.replace('name = "lower-bound-1"\nepisodes = "T"', 'file = "no.npz"'),
        3,
        "cannot read",
    ),
    "unknown adversary": (SMALL.replace('"switching"', '"clever"'), 9, "unknown adversary 'clever'; known: fixed, iid"),
    "adversary without its step": (
        SMALL.replace('"switching"\nperiod = 20', '"random-walk"'),
        8,
        "random-walk losses need the parameter 'step'",
    ),
    "adversary's parameter unknown": (
        SMALL.replace("period =", "perriod ="),
        10,
        "no parameter 'perriod'; did you mean 'period'?",
    ),
    "adversary's parameter wrong": (
        SMALL.replace("period = 20", "period = 0"),
        10,
        "period is 0; it must be at least 1",
    ),
    "loss of a wrong length": (SMALL.replace('"switching"\nperiod = 20', '"fixed"\nloss = [0.5]'), 8, "adversary 1"),
    "unknown learner": (SMALL.replace("sv-ops", "sv-opps"), 13, "unknown learner 'sv-opps'; did you mean 'sv-ops'"),
    "unknown preset": (SMALL.replace('"sharp"', '"blunt"'), 17, "the preset is 'blunt'; choose one of paper, sharp"),
    "unknown switch": (SMALL + "speed = 3\n", 18, "s-ops has no switch 'speed'; its switches are"),
    "switch of a wrong value": (SMALL + "radii = 'loose'\n", 18, "the radii are 'loose'; choose one of paper, tight"),
    "switch of another learner": (SMALL.replace('"sv-ops"', '"sv-ops"\nsigma = "safe"'), 14, "has no switch 'sigma'"),
    "baseline of nobody": (SMALL.replace('"sv-ops"', '"sv-ops"\nbaseline = "slater"'), 14, "has no switch 'baseline'"),
    "unknown baseline": (
        SMALL + "baseline = 'hope'\n",
        18,
        "the baseline is 'hope'; choose one of slater, budget, own, offered, margin",
    ),
    "margin without number": (SMALL + "baseline = 'margin'\n", 18, "needs a number: margin = 0.1"),
    "negative margin": (SMALL + "margin = -1\n", 18, "the margin is -1.0; it must lie in"),
    "margin that no policy has": (
        SMALL + "margin = 0.4\n",
        18,
        "learner 2, margin: in the world 'first': no policy keeps every cost 0.4 below its threshold",
    ),
    "margin beyond the horizon": (SMALL + "margin = 1.5\n", 18, "the margin is 1.5; it must lie in [0, 1]"),
    "no room for policies": (
        SMALL + '[[learner]]\nname = "cv-ops"\nmemory_budget = 0\n',
        20,
        "learner 3, memory_budget: in the world 'first': memory_budget is 0; it must be at least 1",
    ),
    "too few recorded losses": (
        SMALL.replace('"switching"\nperiod = 20', '"replay"\ntable = [[0.5, 0.5], [1.0, 0.0]]'),
        8,
        "episode 49 was not recorded: the table holds 2",
    ),
    "twice the same learner": (
        SMALL + '[[learner]]\nname = "sv-ops"\n',
        18,
        "is called 'sv-ops-sharpest' like learner 1",
    ),
    "label too long": (SMALL.replace('"first"', f'"{"x" * 99}"'), 6, "must be a text of 1 to 60 characters"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_file_gets_one_message(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line, words = MALFORMED[name]
    file = tmp_path / "broken.toml"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["hedgerow", "run", str(file), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"hedgerow: {file}")
    assert captured.err.count("\n") == 1
    assert words in captured.err
    assert line is None or f"line {line}" in captured.err
    assert not (tmp_path / "out").exists()


def test_enough_malformed_files() -> None:
    assert len(MALFORMED) >= 20


def test_labels_that_become_the_same_file_name() -> None:
    text = SMALL.replace('name = "sv-ops"', 'name = "sv-ops"\nlabel = "a b"').replace(
        'preset = "sharp"', 'preset = "sharp"\nlabel = "a-b"'
    )
    from hedgerow.experiments.spec import cells_of

    with pytest.raises(InvalidInput, match="two cells would be called"):
        cells_of(small(text))


def test_arrays_may_stand_in_the_file() -> None:
    experiment = small(SMALL.replace("period = 20", "period = 20\npatterns = [[0.0, 1.0], [1.0, 0.0]]"))
    from hedgerow.experiments.components import build_adversary, complete_adversary

    part = complete_adversary(experiment.adversaries[0].given, 50)
    losses = build_adversary(part, 0, None)
    assert isinstance(losses, hr.losses.Switching)
    assert np.array_equal(losses.patterns, [[0.0, 1.0], [1.0, 0.0]])


STRANGE = (
    "[]",
    "{}",
    "''",
    "'a\\u0000b'",
    '"a\\u0000b"',
    "nan",
    "-inf",
    "1e400",
    "-1",
    "true",
    "1979-05-27",
    "[[1, 2], [3]]",
    "[{a = 1}]",
    "{T = 'T'}",
    "'T'",
    f"{2**63}",
    f"{2**1000}",
    f"[{', '.join(['1'] * 2000)}]",
    f"'{'x' * 500}'",
)
PLACES = {
    "": (*TOP, "x"),
    "world": ("name", "label", "layers", "actions", "constraints", "seed", "tightness", "file", "x"),
    "adversary": ("name", "label", "period", "patterns", "seed", "x"),
    "learner": (
        "name",
        "label",
        "preset",
        "baseline",
        "margin",
        "allow_no_margin",
        "known_transitions",
        "radii",
        "eta",
        "memory_budget",
        "confidence_scale",
        "tol",
        "x",
    ),
}
LEGAL = {
    "": {"seeds": "1", "episodes": "5"},
    "world": {"name": "'random-layered'", "layers": "[1, 2, 1]"},
    "adversary": {"name": "'switching'", "period": "3"},
    "learner": {"name": "'s-ops'"},
}


@pytest.mark.slow
@pytest.mark.parametrize("value", STRANGE)
def test_strange_values_are_taken_or_refused_in_one_line(value: str, tmp_path: Path) -> None:
    """Whatever stands in whichever place: an experiment, or one line that says what is wrong."""
    messages = []
    for table, keys in PLACES.items():
        for key in keys:
            entries = {name: dict(given) for name, given in LEGAL.items()}
            entries[table][key] = value
            if key == "file":
                del entries[table]["name"], entries[table]["layers"]
            text = "".join(
                (f"[[{name}]]\n" if name else "") + "".join(f"{k} = {v}\n" for k, v in given.items())
                for name, given in entries.items()
                if table or name not in entries[""]
            )
            try:
                cells_of(small(text, tmp_path))
            except InvalidInput as error:
                messages.append(str(error))
    assert len(messages) > 20
    assert not [message for message in messages if "\n" in message or len(message) > 900]
