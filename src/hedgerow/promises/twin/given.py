"""What a learner was told before its first episode: the shape of the world, what is known of it, and how sure to be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log
from typing import NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.model.view import View


class Switches(NamedTuple):
    """The switches that decide which formulas apply; the twin knows those of the presets."""

    radii: str
    """paper, tight or kt"""
    clip_costs: bool
    joint_cost: bool
    ties: bool
    aggregate: bool
    """With a certificate; only for learners that mix"""
    ball_from: int
    """Balls from so many successors on, 0 for none; only for learners that mix"""


class Shares(NamedTuple):
    """How 5 delta is split: three parts for costs and two for transitions, all for costs where no transition is
    uncertain; the certificate takes half of the costs' part, balls take half of the transitions' part.
    """

    costs: float
    transitions: float
    certificate: float
    balls: float


@dataclass(frozen=True, eq=False)
class Given:
    """Shape, knowledge, delta and the number of episodes."""

    view: View
    switches: Switches
    delta: float
    episodes: int | None

    @property
    def steps(self) -> int:
        return self.view.layout.steps

    @property
    def num_actions(self) -> int:
        return self.view.layout.num_actions

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def num_constraints(self) -> int:
        return len(self.view.thresholds)

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """The triples of each row: first and last + 1."""
        starts = self.view.layout.row_start.tolist()
        return list(pairwise(starts))

    @cached_property
    def successor(self) -> list[int]:
        """The next state of each triple."""
        found: list[int] = self.view.layout.successor.tolist()
        return found

    @cached_property
    def layers(self) -> list[range]:
        """The states of each layer, the terminal one included."""
        starts = self.view.layout.state_start.tolist()
        return [range(a, b) for a, b in pairwise(starts)]

    @property
    def num_states(self) -> int:
        return self.layers[-1].stop

    @cached_property
    def moves_at(self) -> IntArray:
        """(num_rows,): the first row with the same transitions."""
        same = self.view.knowledge.same_transitions
        return same if self.switches.ties and same is not None else np.arange(self.num_rows)

    @cached_property
    def costs_at(self) -> IntArray:
        """(num_rows,): the first row with the same costs."""
        same = self.view.knowledge.same_costs
        return same if self.switches.ties and same is not None else np.arange(self.num_rows)

    @property
    def tied(self) -> bool:
        own = np.arange(self.num_rows)
        return bool((self.moves_at != own).any() or (self.costs_at != own).any())

    @property
    def every_visit(self) -> bool:
        """Whether all visits of one episode to a cost law count."""
        return bool(self.view.knowledge.independent_costs)

    @cached_property
    def known_costs(self) -> FloatArray:
        """(num_rows, m): mean costs that are known, else NaN."""
        costs = self.view.knowledge.costs
        return np.full((self.num_rows, self.num_constraints), np.nan) if costs is None else costs.T

    @cached_property
    def known_moves(self) -> FloatArray:
        """(num_triples,): likewise the transitions; those of rows with one successor are known."""
        moves = self.view.knowledge.transitions
        found = np.full(len(self.successor), np.nan) if moves is None else moves.copy()
        for first, last in self.rows:
            if last - first == 1:
                found[first] = 1.0
        return found

    @cached_property
    def uncertain(self) -> BoolArray:
        """(num_rows,): whether the transitions have to be estimated."""
        return np.array([np.isnan(self.known_moves[first]) for first, _ in self.rows])

    @cached_property
    def wide(self) -> BoolArray:
        """(num_rows,): whether the row has a ball beside its box."""
        least = self.switches.ball_from
        sizes = np.array([last - first for first, last in self.rows])
        return self.uncertain & (sizes >= max(2, least)) & (least > 0)

    @cached_property
    def ceilings(self) -> FloatArray:
        """(m,): what an episode costs at most."""
        most = self.view.knowledge.most_costs
        return np.full(self.num_constraints, float(self.steps)) if most is None else np.minimum(most, self.steps)

    @cached_property
    def binding(self) -> list[int]:
        """The constraints that can be violated at all."""
        return [i for i in range(self.num_constraints) if self.view.thresholds[i] < self.ceilings[i]]

    # What has to be estimated, and how surely ------------------------------------------------------------------------

    @property
    def num_costs(self) -> int:
        """Mean costs to be estimated, one per law and constraint."""
        first = self.costs_at == np.arange(self.num_rows)
        return int(np.isnan(self.known_costs[first]).sum())

    @cached_property
    def counted(self) -> list[int]:
        """The rows that count uncertain transitions, one per law."""
        return [r for r in range(self.num_rows) if self.uncertain[r] and self.moves_at[r] == r]

    @property
    def num_triples(self) -> int:
        """Probabilities to be estimated."""
        return sum(self.rows[r][1] - self.rows[r][0] for r in self.counted)

    @cached_property
    def shares(self) -> Shares:
        costs = 3.0 if self.num_triples else 5.0
        balls = any(self.wide[r] for r in self.counted)
        return Shares(
            costs=costs / 2.0 if self.switches.aggregate else costs,
            transitions=1.0 if balls else 2.0,
            certificate=costs / 2.0,
            balls=1.0,
        )

    @property
    def horizon(self) -> float:
        """T of the union bounds; a law may be visited L times in an episode."""
        return float(self.episodes or 1) * (self.steps if self.tied else 1)

    @cached_property
    def cost_log(self) -> float:
        """The logarithm behind the bounds of one mean cost."""
        m, kind = max(1, self.num_constraints), self.switches.radii
        if kind == "paper":
            return log(self.horizon * self.num_states * self.num_actions * m / self.delta)
        if kind == "tight":
            return log(2.0 * max(1, self.num_costs) * self.horizon / self.delta)
        return log(max(1, self.num_costs) / (self.shares.costs * self.delta))

    @cached_property
    def transition_log(self) -> float:
        """The logarithm behind the bounds of one transition probability."""
        kind = self.switches.radii
        if kind == "paper":
            return log(self.horizon * self.num_states * self.num_actions / self.delta)
        if kind == "tight":
            return log(max(1, self.num_triples) * self.horizon / self.delta)  # 4 n T / (4 delta)
        return log(max(1, self.num_triples) / (self.shares.transitions * self.delta))

    @cached_property
    def ball_log(self) -> float:
        return log(max(1, sum(bool(self.wide[r]) for r in self.counted)) / (self.shares.balls * self.delta))

    @cached_property
    def certificate_log(self) -> float:
        """ln(1 / delta_A)."""
        return -log(self.shares.certificate * self.delta)
