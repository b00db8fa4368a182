"""Split an experiment into cells: one run each, described by plain data, with a name for people and one for machines.

All chance of a sweep comes from one SeedSequence. A cell takes the child that belongs to its own seed s (`spawn_key`
(s,)). It does not depend on the order of the cells, on their number, or on where they run. Cells that differ in the
learner only meet the same world, the same losses and the same streams: learners are compared on equal terms. Without a
root (`root_seed` None) the cell's seed is itself the seed of world, learner and adversary.

    >>> spec = {"root_seed": 0, "seed": 3}
    >>> [int(s) for s in SeedSequence(0).spawn(4)[3].generate_state(3, "uint64")] == list(seeds_of(spec))
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from numpy.random import SeedSequence

from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.spec import Experiment
from hedgerow.results.manifest import cell_hash, cell_id, fingerprint


class CellSeeds(NamedTuple):
    """The seeds of a cell."""

    simulation: int
    learner: int
    adversary: int


@dataclass(frozen=True)
class PlannedCell:
    """A cell that has not run yet."""

    id: str
    hash: str
    spec: dict[str, Any]

    @classmethod
    def of(cls, spec: dict[str, Any]) -> PlannedCell:
        return cls(cell_id(spec), cell_hash(spec), spec)


def seeds_of(spec: Mapping[str, Any]) -> CellSeeds:
    """The seeds of a cell, independent of all other cells but those with the same seed."""
    if spec["root_seed"] is None:
        return CellSeeds(spec["seed"], spec["seed"], spec["seed"])
    child = SeedSequence(spec["root_seed"], spawn_key=(spec["seed"],))
    return CellSeeds(*(int(word) for word in child.generate_state(3, "uint64")))


def cells_of(experiment: Experiment) -> tuple[PlannedCell, ...]:
    """All cells; learners vary fastest, and a sweep shows results of each of them early."""
    folder = experiment.folder
    learners = [components.complete_learner(item.given, folder) for item in experiment.learners]
    left_out = {(item.kind, item.world, item.label, item.episodes) for item in experiment.declined}
    cells = []
    for episodes in experiment.episodes:
        worlds = [components.complete_world(item.given, episodes, folder) for item in experiment.worlds]
        adversaries = [components.complete_adversary(item.given, episodes, folder) for item in experiment.adversaries]
        for seed, (i, world), (j, adversary), (k, learner) in product(
            experiment.seeds, enumerate(worlds), enumerate(adversaries), enumerate(learners)
        ):
            label = {
                "world": experiment.worlds[i].label,
                "adversary": experiment.adversaries[j].label,
                "learner": experiment.learners[k].label,
            }
            if any((kind, label["world"], label[kind], episodes) in left_out for kind in ("adversary", "learner")):
                continue
            spec = {
                "world": world,
                "adversary": adversary,
                "learner": learner,
                "episodes": episodes,
                "delta": experiment.delta,
                "seed": seed,
                "root_seed": experiment.seed,
                "label": label,
            }
            cells.append(PlannedCell.of(spec))
    if not cells:
        reasons = "; ".join(dict.fromkeys(item.why for item in experiment.declined))
        raise InvalidInput(f"{experiment.source.name}: every cell is declined, so there is nothing to run: {reasons}")
    _check_names(experiment, cells)
    return tuple(cells)


def experiment_data(experiment: Experiment, cells: tuple[PlannedCell, ...]) -> dict[str, Any]:
    """The experiment as data, tied to the exact content of its cells."""
    return {**experiment.as_data(), "cells": fingerprint({cell.id: cell.hash for cell in cells})}


def _check_names(experiment: Experiment, cells: list[PlannedCell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            raise InvalidInput(f"{experiment.source.name}: two cells would be called {cell.id}; change a label")
        seen.add(cell.id)
