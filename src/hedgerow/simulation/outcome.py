"""What a simulation returns: scores that every learner has, at checkpoints, and what the learner noted of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import brief
from hedgerow.checks import FloatArray, IntArray, did_you_mean, frozen
from hedgerow.environments.protocol import Environment
from hedgerow.errors import InfeasibleError, InvalidInput
from hedgerow.learners.protocol import Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import row_occupancy
from hedgerow.model.policy import Policy
from hedgerow.planning import offline

if TYPE_CHECKING:
    from hedgerow.simulation.run import Simulation

CURVES = ("episodes", "loss", "regret", "costs", "violations", "worst", "unsafe", "excess", "losses")
"""What a `Run` has of every checkpoint."""


@dataclass(frozen=True, eq=False)
class Run:
    """The scores of a run. Curves (C,) or (C, m) belong to `episodes` (C,), the numbers of episodes played so far.

    Where `scored` is "exact", they come from the true transitions and mean costs, and from the mixture of an episode,
    not from the policy that its coin chose. Where it is "sampled", nobody knows the truth: they are NaN, and `notes`
    holds what was observed. `run["name"]` is a note or a fact.
    """

    episodes: IntArray
    """(C,): counted from the start of this run"""
    loss: FloatArray
    """(C,): sum_t l_t^T q_t"""
    regret: FloatArray
    """(C,): loss - sum_t l_t^T q*; NaN if no policy is feasible"""
    costs: FloatArray
    """(C, m): sum_t g_i^T q_t"""
    violations: FloatArray
    """(C, m): sum_t [g_i^T q_t - alpha_i]^+"""
    worst: FloatArray
    """(C, m): max_t g_i^T q_t - alpha_i"""
    unsafe: IntArray
    """(C,): episodes so far that violated a constraint"""
    excess: FloatArray
    """(C, m): g_i^T q_t - alpha_i of the episode that is the checkpoint"""
    losses: FloatArray
    """(C, num_rows): sum_t l_t"""
    notes: Mapping[str, NDArray[Any]]
    """What the learner, or who watches it, noted at the checkpoints: arrays (C,) by name"""
    facts: Mapping[str, float | int | None]
    """What is one number for the whole run, of whoever watched the learner"""
    policy: Policy | None
    """The learner's own policy at the end, or what it played last"""
    optimum: float
    """l^T q* of the mean loss; NaN if no policy is feasible"""
    comparator: FloatArray
    """(num_rows,): q*"""
    scored: str
    """`exact`, or `sampled` in an environment whose truth nobody knows"""
    way: str
    """`compiled` or `step-wise`: the same scores"""
    seed: int
    seconds: float
    """Wall time in the loop"""
    world: CMDP | Environment
    learner: Learner
    """As it is now: if it has learnt more since, so has this"""

    def __getitem__(self, name: str) -> Any:
        """A note (C,) or a fact, by name."""
        for known in (self.notes, self.facts):
            if name in known:
                return known[name]
        raise InvalidInput(f"this run has no note {name!r}{did_you_mean(name, [*self.notes, *self.facts])}")

    @property
    def violation(self) -> FloatArray:
        """(C,): V+ = max_i sum_t [g_i^T q_t - alpha_i]^+, the maximum outside the sum"""
        largest: FloatArray = np.max(self.violations, axis=1, initial=0.0)
        return largest

    @property
    def net_violation(self) -> FloatArray:
        """(C,): V+- = max_i [sum_t (g_i^T q_t - alpha_i)]^+, in which safe episodes make up for unsafe ones"""
        summed = self.costs - self.episodes[:, None] * self.learner.view.thresholds
        largest: FloatArray = np.max(summed, axis=1, initial=0.0)
        return largest

    @cached_property
    def regret_so_far(self) -> FloatArray:
        """(C,): loss - the optimum of the losses up to each checkpoint; NaN if infeasible"""
        if np.isnan(self.optimum) or not isinstance(self.world, CMDP):
            return frozen(np.full(len(self.episodes), np.nan))
        optima, means = offline.Optima(self.world), self.losses / self.episodes[:, None]
        values = np.array([optima.optimum(mean).value for mean in np.clip(means, 0.0, 1.0)])
        return frozen(self.loss - values * self.episodes)

    def at(self, episodes: IntArray) -> Run:
        """The same run at fewer checkpoints: those of `episodes` (c,), each of which must be one of this run's."""
        places = np.searchsorted(self.episodes, episodes)
        changes: dict[str, Any] = {name: frozen(getattr(self, name)[places]) for name in CURVES}
        # As in `make_run`: the product of some rows need not have the bits of some rows of the product.
        changes["regret"] = frozen(changes["loss"] - changes["losses"] @ self.comparator)
        notes = MappingProxyType({name: frozen(values[places]) for name, values in self.notes.items()})
        return replace(self, **changes, notes=notes)

    @property
    def safe(self) -> NDArray[np.bool_]:
        """(C,): whether every episode so far respected every constraint; never where nobody knows"""
        respected: NDArray[np.bool_] = np.all(self.worst <= 0.0, axis=1)
        return respected & (self.scored == "exact")

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one self-contained HTML page about this run."""
        # By name: pages are further along the way of the data, and nothing here may depend on them.
        written: Path = import_module("hedgerow.pages.page").report(self, path, overwrite=overwrite)
        return written

    def plot(self, what: str | None = None) -> Any:
        """Draw one figure of this run, or an overview of it.

        A notebook displays the figure by itself. JupyterLab, Notebook 7 and VS Code draw it with their own copy of
        plotly (mime type `application/vnd.plotly.v1+json`) and need no network. A notebook exported to plain HTML has
        the figure only with plotly's renderer `notebook` (`plotly.io.renderers.default = "notebook"`): plotly is then
        inside, and the page asks the network for MathJax, which our figures do without. `fig.write_html(path)` writes
        a file that needs no network, and `hr.save_figure(fig, path)` writes PDF, SVG or PNG.

        Args:
            what: `"regret"`, `"regret-growth"`, `"violation"`, `"margin"` or `"margin-0"` (the first constraint),
                `"margin-1"` or the name of a constraint, `"mixing"`, or the name of a note. By default an overview:
                regret, violation, first margin and mixing weight in small panels.

        Returns:
            A `plotly.graph_objects.Figure` with title and legend, which you may change. Where there is nothing to
            draw, such as the violation of a safe learner, the figure says so.

        Raises:
            InvalidInput: If there is no figure of this name.

        Examples:
            >>> import hedgerow as hr
            >>> world = hr.catalogue.make("lower-bound-2")
            >>> learner = hr.SVOPS(world.cmdp.view(), episodes=50, delta=0.1)
            >>> run = hr.simulate(world.cmdp, world.loss, learner, seed=0, progress=False)
            >>> run.plot("regret").layout.title.text
            'Regret'
        """
        return import_module("hedgerow.pages.show").run_plot(self, what)

    def __repr__(self) -> str:
        known = f"regret={self.regret[-1]:.6g}, violation={self.violation[-1]:.6g}, safe={bool(self.safe[-1])}"
        scores = known if self.scored == "exact" else f"observed_loss={self['observed_loss'][-1]:.6g}, sampled"
        return brief.line("Run", type(self.learner).__name__, f"episodes={self.episodes[-1]}", scores, self.way)

    def _repr_html_(self) -> str:
        from hedgerow.simulation.notebook import run_html

        return run_html(self)


def make_run(simulation: Simulation) -> Run:
    """The scores of the checkpoints that were reached; the comparator is the optimum of the mean loss so far."""
    scores, curves = simulation.referee.scores, simulation.referee.curves
    reached = scores.tallies.next_mark
    optimum, comparator = _comparator(simulation.world, scores.losses / max(1, simulation.done))
    notes = simulation.columns(reached)
    return Run(
        episodes=frozen(curves.marks[:reached]),
        loss=frozen(curves.loss[:reached]),
        regret=frozen(curves.loss[:reached] - curves.losses[:reached] @ comparator),
        costs=frozen(curves.costs[:reached]),
        violations=frozen(curves.violation[:reached]),
        worst=frozen(curves.worst[:reached]),
        unsafe=frozen(curves.unsafe[:reached]),
        excess=frozen(curves.excess[:reached]),
        losses=frozen(curves.losses[:reached]),
        notes=MappingProxyType({name: frozen(values) for name, values in notes.items()}),
        facts=MappingProxyType(dict(simulation.watcher.facts(comparator))),
        policy=simulation.last_policy(),
        optimum=optimum,
        comparator=frozen(comparator),
        scored=simulation.referee.scored,
        way=simulation.way,
        seed=simulation.seed,
        seconds=simulation.seconds,
        world=simulation.world,
        learner=simulation.learner,
    )


def _comparator(world: CMDP | Environment, mean_loss: FloatArray) -> tuple[float, FloatArray]:
    """OPT and q* (num_rows,) of a mean loss; NaN where no policy is feasible, or the world is not known."""
    try:
        if isinstance(world, CMDP):
            best = offline.optimum(world, np.clip(mean_loss, 0.0, 1.0))
            return best.value, row_occupancy(world.layout, best.occupancy)
    except InfeasibleError:
        pass
    return float("nan"), np.full(len(mean_loss), np.nan)
