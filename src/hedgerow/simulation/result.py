"""What a simulation returns: scores that every learner has, at checkpoints, and what the learner noted of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._late import late
from hedgerow.checks import FloatArray, IntArray, did_you_mean, frozen
from hedgerow.display import text
from hedgerow.display.terms import USUAL, Terms
from hedgerow.environments.columns import Column, spread
from hedgerow.environments.play import Environment
from hedgerow.errors import HedgerowError, InfeasibleError, InvalidInput
from hedgerow.learners.api import Inputs, Learner, Promising, feedback_of
from hedgerow.learners.guarantees import ABOUT_SETS, Ledger
from hedgerow.losses.blocks import is_stochastic, known_as
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import row_occupancy
from hedgerow.model.policy import Policy
from hedgerow.planning import offline
from hedgerow.storage import datafile

if TYPE_CHECKING:
    from hedgerow.simulation.run import Simulation

_REGRET = (
    "loss of all episodes minus that of the best policy that respects the constraints (a linear program); expected, "
    "from the true transitions; may be negative"
)
COMMON: Mapping[Column, str] = {
    Column("episode", "int64", words="episodes played so far", reduce="", tables=()): "episodes",
    Column("loss", words="sum of expected losses", show="sum", tables=()): "loss",
    Column("regret", "float64", "regret R_T", _REGRET, "mean", "sum", ("answer", "short", "latex", "board")): "regret",
    Column("regret_so_far", words="R_t of every t", reduce="", tables=()): "regret_so_far",
    Column("unsafe", "int64", words="episodes that violated a constraint", show="whole", tables=()): "unsafe",
    Column("cost", words="sum of expected costs", reduce="", tables=(), each=True): "costs",
    Column("violation", words="sum of [cost - threshold]^+", reduce="", tables=(), each=True): "violations",
    Column("worst", words="largest cost - threshold so far", reduce="", tables=(), each=True): "worst",
    Column("excess", words="cost - threshold of the episode", reduce="", tables=(), each=True): "excess",
}
"""The columns that every run has, with the attributes of `Run` that hold them, (C,) or (C, m)."""
FILE_KIND, FILE_VERSION = "run", 1
TEXTS = ("scored", "way", "seed", "adversary", "stochastic")
"""What a file keeps of a run as it is"""
MOST_COMPARATORS = 400
"""Of a table: each value of `regret_so_far` is a linear program, so that a trace has it in about so many rows only."""
CURVES = (*(name for name in COMMON.values() if name != "regret_so_far"), "losses")
"""What a `Run` has of every checkpoint, and does not compute when it is asked."""
BASELINE_LOSS = Column(
    "baseline_loss", words="sum of the baseline's expected losses under the same losses", show="sum", tables=()
)
"""The column of runs in worlds with a baseline: what would have been lost by always playing it"""


@dataclass(frozen=True, eq=False)
class Run:
    """The scores of a run, as curves over the episodes.

    Curves have the shape (C,) or (C, m); entry c belongs to the checkpoint after `episodes[c]` episodes. If `scored` is
    "exact", scores are expectations under the true transitions and mean costs, and under the mixture of each episode,
    not under the policy that was drawn. If it is "sampled", the truth is not known: scores are NaN, and `notes` holds
    what was observed. `run["name"]` is a note or a fact.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> int(run.episodes[-1]), run.costs.shape == (len(run.episodes), 1), bool(run.safe[-1])
        (20, True, True)
    """

    episodes: IntArray
    """(C,): the checkpoints: numbers of episodes since the start of this run."""
    loss: FloatArray
    """(C,): the sum of expected losses so far."""
    regret: FloatArray
    """(C,): `loss` minus the loss of the best feasible policy for the whole run; NaN if no policy is feasible."""
    costs: FloatArray
    """(C, m): the sum of expected costs so far."""
    violations: FloatArray
    """(C, m): the sum of max(0, expected cost - threshold) so far. Cheap episodes do not make up for unsafe ones."""
    worst: FloatArray
    """(C, m): the largest expected cost - threshold of any episode so far."""
    unsafe: IntArray
    """(C,): the number of episodes so far that violated a constraint."""
    excess: FloatArray
    """(C, m): expected cost - threshold of the episode at the checkpoint."""
    losses: FloatArray
    """(C, num_rows): the sum of the adversary's losses so far, for each pair of state and action."""
    notes: Mapping[str, NDArray[Any]]
    """What the learner, or its watcher, noted at the checkpoints: arrays (C,) by name, such as "mixing_weight"."""
    facts: Mapping[str, float | int | None]
    """What is one number for the whole run, by name, as its watcher found it."""
    policy: Policy | None
    """The learner's own policy at the end, or the policy that it played last."""
    optimum: float
    """The loss per episode of the best feasible policy for the mean loss of the run; NaN if no policy is feasible."""
    comparator: FloatArray
    """(num_rows,): how often that policy visits each pair of state and action."""
    scored: str
    """How the run was scored: "exact", or "sampled" in an environment whose truth is not known."""
    way: str
    """How the episodes were played: "compiled" or "step-wise". Both give the same scores."""
    seed: int
    """The seed of the run."""
    seconds: float
    """Wall time of the episodes, in seconds."""
    world: CMDP | Environment
    """The world that was played."""
    learner: Learner
    """The learner as it is now; if it has learnt more since the run, so has this."""
    adversary: str = ""
    """Who chose the losses, by name; empty in an environment, which has its own losses."""
    stochastic: bool | None = None
    """Whether the losses are independent draws of one distribution; None in an environment, where it is not known."""
    columns: tuple[Column, ...] = ()
    """How notes and facts are declared; a note without a declaration is averaged over seeds and drawn."""
    baseline: FloatArray | None = None
    """(num_rows,): how often the policy that is known to be safe visits each pair of state and action, in truth: the
    world's own, or the one that the learner was given. None if there is none."""
    terms: Terms = USUAL
    """What episodes, loss and baseline are called in figures and on the page."""

    def __getitem__(self, name: str) -> Any:
        """A note (C,) or a fact, by name."""
        for known in (self.notes, self.facts):
            if name in known:
                return known[name]
        own = [curve for curve in (*CURVES, "regret_so_far", "violation", "net_violation", "safe") if curve == name]
        if own:
            raise InvalidInput(f"{name!r} is no note of the learner, but an attribute of every run: run.{name}")
        raise InvalidInput(f"this run has no note {name!r}{did_you_mean(str(name), [*self.notes, *self.facts])}")

    @property
    def violation(self) -> FloatArray:
        """(C,): the summed violation of the constraint where it is largest; V+ in the paper."""
        largest: FloatArray = np.max(self.violations, axis=1, initial=0.0)
        return largest

    @property
    def net_violation(self) -> FloatArray:
        """(C,): the largest summed cost - threshold, at least 0. Cheap episodes make up for unsafe ones."""
        summed = self.costs - self.episodes[:, None] * self.world.view().thresholds
        largest: FloatArray = np.max(summed, axis=1, initial=0.0)
        return largest

    @cached_property
    def regret_so_far(self) -> FloatArray:
        """(C,): `loss` minus that of the best feasible policy for the losses up to each checkpoint.

        NaN if no policy is feasible.
        """
        world = true_cmdp(self.world)
        if np.isnan(self.optimum) or world is None:
            return frozen(np.full(len(self.episodes), np.nan))
        means = np.clip(self.losses / self.episodes[:, None], 0.0, 1.0)
        values = offline.remembered(world, "values", means, lambda: offline.least_losses(world, means))
        return frozen(self.loss - values * self.episodes)

    @property
    def baseline_loss(self) -> FloatArray:
        """(C,): the sum of the baseline's expected losses under the same losses; NaN without a baseline."""
        if self.baseline is None:
            return frozen(np.full(len(self.episodes), np.nan))
        return frozen(self.losses @ self.baseline)

    @property
    def saved(self) -> FloatArray:
        """(C,): the share of the baseline's loss that was saved so far; negative if more was lost.

        NaN without a baseline, or while the baseline has lost nothing.
        """
        lost = self.baseline_loss
        return frozen(1.0 - self.loss / np.where(lost > 0.0, lost, np.nan))

    def at(self, episodes: ArrayLike) -> Run:
        """Return the same run at fewer checkpoints: `episodes` (c,), which must be among its own."""
        wanted = np.atleast_1d(np.asarray(episodes))
        missing = wanted[~np.isin(wanted, self.episodes)]
        if len(missing) or not len(wanted):
            what = f"episode {missing[0]} is no checkpoint" if len(missing) else "no checkpoint is named"
            raise InvalidInput(f"{what}; `run.episodes` has the {len(self.episodes)} of this run")
        places = np.searchsorted(self.episodes, wanted)
        changes: dict[str, Any] = {name: frozen(getattr(self, name)[places]) for name in CURVES}
        # As in `make_run`: the product of some rows need not have the bits of some rows of the product.
        changes["regret"] = frozen(changes["loss"] - changes["losses"] @ self.comparator)
        notes = MappingProxyType({name: frozen(values[places]) for name, values in self.notes.items()})
        return replace(self, **changes, notes=notes)

    def guarantees(self) -> Ledger | None:
        """Return what the learner promises in this run.

        Where the losses are chosen by an adversary, promises that assume independent losses are void, and say so. An
        environment may void promises too, by a text `void_because`: `GymWorld` does where it clipped something. In
        an environment of your own it is not known who chooses them: the ledger is that of the learner.

        Returns:
            The ledger; None for a learner that has no `guarantees()`.

        Examples:
            >>> import hedgerow as hr
            >>> world = hr.worlds.make("lower-bound-2")
            >>> learner = hr.SVOPS(world.view(), 20, 0.05)
            >>> run = hr.simulate(world, learner, hr.losses.Cycle(), progress=False)
            >>> run.adversary, run.stochastic, run.guarantees()["regret"].holds
            ('cycle', False, True)
        """
        ledger = self._own_ledger()
        if ledger is None:
            return None
        ledger = ledger.voided(str(getattr(self.world, "void_because", "")), but=ABOUT_SETS)
        return ledger if self.stochastic is None else ledger.in_run(self.stochastic, self.adversary)

    def _own_ledger(self) -> Ledger | None:
        """What the learner promises in any run; None if it makes no promises."""
        if not isinstance(self.learner, Promising):
            return None
        ledger: Any = self.learner.guarantees()
        if ledger is None or isinstance(ledger, Ledger):
            return ledger
        return Ledger(self.learner_name, tuple(ledger))  # a learner of one's own may simply list its promises

    @property
    def learner_name(self) -> str:
        """The class of the learner, by name."""
        return str(getattr(self.learner, "class_name", type(self.learner).__name__))

    @property
    def safe(self) -> NDArray[np.bool_]:
        """(C,): whether every episode so far respected every constraint; False where the truth is not known."""
        respected: NDArray[np.bool_] = np.all(self.worst <= 0.0, axis=1)
        return respected & (self.scored == "exact")

    def to_pandas(self) -> Any:
        """Return the curves and notes as a data frame of pandas: one line per checkpoint.

        Its columns are those of the tables of results: `episode`, `loss`, `regret`, ..., those of each constraint with
        the suffix _0, _1, ..., and the notes of the learner.

        Raises:
            HedgerowError: If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise HedgerowError("a data frame needs pandas: pip install pandas") from error
        return pandas.DataFrame(run_columns(self))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the run to one data file, atomically; `hr.load` reads it.

        The file holds scores, notes, facts, the world and what the learner promised. It does not hold the learner,
        which is saved by `hr.save(run.learner, path)`, nor an environment without a model.

        Args:
            path: The file; `.npz` is the usual ending.
            overwrite: Whether an existing file may be replaced.

        Raises:
            InvalidInput: If the file exists and `overwrite` is False.

        Examples:
            >>> import hedgerow as hr
            >>> import tempfile
            >>> world = hr.worlds.make("lower-bound-2")
            >>> run = hr.simulate(world, hr.UOBREPS(world, 20), progress=False)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     run.save(f"{folder}/run.npz")
            ...     again = hr.load(f"{folder}/run.npz")
            >>> bool((again.regret == run.regret).all()), again.learner_name
            (True, 'UOBREPS')
        """
        datafile.save(path, pack_run(self), overwrite=overwrite)

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one self-contained HTML page about this run.

        Args:
            path: The file to write.
            overwrite: Whether an existing file may be replaced.

        Returns:
            The path of the page.
        """
        written: Path = late("report.page:report")(self, path, overwrite=overwrite)
        return written

    def plot(self, what: str | None = None) -> Any:
        """Draw one figure of this run, or an overview of it.

        A notebook displays the figure by itself. JupyterLab, Notebook 7 and VS Code draw it with their own copy of
        plotly (mime type `application/vnd.plotly.v1+json`) and need no network. A notebook exported to plain HTML has
        the figure only with plotly's renderer `notebook` (`plotly.io.renderers.default = "notebook"`): plotly is then
        inside, and the page asks the network for MathJax, which our figures do without. `fig.write_html(path)` writes
        a file that needs no network, and `hr.save_figure(fig, path)` writes PDF, SVG or PNG.

        Args:
            what: `"regret"`, `"regret-growth"`, `"violation"`, `"saved"` (compared with the baseline, with the episodes
                over a limit), `"margin"` or `"margin-0"` (the first constraint), `"margin-1"` or the name of a
                constraint, `"mixing"`, or the name of a note. By default an overview: regret, violation, first margin
                and mixing weight in small panels.

        Returns:
            A `plotly.graph_objects.Figure` with title and legend, which you may change. Where there is nothing to
            draw, such as the violation of a safe learner, the figure says so.

        Raises:
            InvalidInput: If there is no figure of this name.

        Examples:
            >>> import hedgerow as hr
            >>> world = hr.worlds.make("lower-bound-2")
            >>> learner = hr.SVOPS(world.cmdp.view(), episodes=50, delta=0.1)
            >>> run = hr.simulate(world.cmdp, learner, world.loss, seed=0, progress=False)
            >>> run.plot("regret").layout.title.text
            'Regret'
        """
        return late("report.figures:run_plot")(self, what)

    def __repr__(self) -> str:
        known = f"regret={self.regret[-1]:.6g}, violation={self.violation[-1]:.6g}, safe={bool(self.safe[-1])}"
        scores = known if self.scored == "exact" else f"observed_loss={self['observed_loss'][-1]:.6g}, sampled"
        return text.line("Run", self.learner_name, f"episodes={self.episodes[-1]}", scores, self.way)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import run_html

        return run_html(self)


def run_columns(run: Run) -> dict[str, NDArray[Any]]:
    """All columns of a run by name, (C,) each: those that every run has, then its notes."""
    arrays: dict[str, NDArray[Any]] = {}
    for column, attribute in COMMON.items():
        values = _few_comparators(run) if attribute == "regret_so_far" else getattr(run, attribute)
        if column.each:
            arrays |= {f"{column.name}_{i}": np.ascontiguousarray(each) for i, each in enumerate(np.transpose(values))}
        else:
            arrays[column.name] = values
    return arrays | dict(run.notes)


def _few_comparators(run: Run) -> FloatArray:
    """(C,): `regret_so_far`, at no more than MOST_COMPARATORS log-spaced rows; else NaN."""
    count = len(run.episodes)
    if count <= MOST_COMPARATORS:
        return run.regret_so_far
    rows = np.unique(np.round(np.geomspace(1, count, MOST_COMPARATORS)).astype(np.int64)) - 1
    few = replace(run, episodes=run.episodes[rows], loss=run.loss[rows], losses=run.losses[rows])
    result = np.full(count, np.nan)
    result[rows] = few.regret_so_far
    return result


def pack_run(run: Run) -> bytes:
    """The content of the file of a run (`simulation/files.py` reads it); equal for equal runs, but for `seconds`."""
    exact = isinstance(run.world, CMDP)
    arrays = {f"curve.{name}": getattr(run, name) for name in CURVES}
    arrays |= {f"note.{name}": np.asarray(values) for name, values in run.notes.items()}
    arrays |= {f"fact.{name}": np.asarray(value) for name, value in run.facts.items() if value is not None}
    arrays |= {name: np.asarray(getattr(run, name)) for name in ("optimum", "comparator", "seconds")}
    if run.policy is not None:
        arrays["policy"] = run.policy.probabilities
    if run.baseline is not None:
        arrays["baseline"] = run.baseline
    model = true_cmdp(run.world)
    if model is not None and not exact:
        arrays["model"] = np.frombuffer(model.to_bytes(), dtype=np.uint8)
    place = run.world if isinstance(run.world, CMDP) else run.world.view()
    arrays["world"] = np.frombuffer(place.to_bytes(), dtype=np.uint8)
    ledger, inputs, learner = run._own_ledger(), getattr(run.learner, "inputs", None), run.learner
    meta = {
        **{name: getattr(run, name) for name in TEXTS},
        "notes": list(run.notes),
        "facts": {name: None if value is None else "kept" for name, value in run.facts.items()},
        "world": "cmdp" if exact else "view",
        "void_because": str(getattr(run.world, "void_because", "")),
        "columns": msgspec.to_builtins(run.columns),
        "terms": asdict(run.terms),
        "learner": {
            "class_name": run.learner_name,
            "kind": str(getattr(learner, "kind", run.learner_name)),
            "inputs": asdict(inputs) if isinstance(inputs, Inputs) else None,
            "feedback": feedback_of(learner),
            "delta": getattr(learner, "delta", None),
            "preset": str(getattr(getattr(learner, "settings", None), "preset", "")),
            "ledger": None if ledger is None else asdict(ledger),
        },
    }
    return datafile.pack(FILE_KIND, FILE_VERSION, meta, arrays)


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
        adversary="" if simulation.losses is None else known_as(simulation.losses),
        stochastic=None if simulation.losses is None else is_stochastic(simulation.losses),
        columns=simulation.declared,
        baseline=simulation.baseline,
        terms=simulation.terms,
    )


def declared_columns(learner: Any, *others: Sequence[Column], num_constraints: int) -> tuple[Column, ...]:
    """What the learner and the others declare; of a name that several declare, the last one counts."""
    own = getattr(learner, "columns", ())
    if not isinstance(own, tuple | list) or not all(isinstance(column, Column) for column in own):
        raise InvalidInput(f"{type(learner).__name__}.columns must be a tuple of hedgerow.results.Column")
    return tuple(spread((*own, *(column for each in others for column in each)), num_constraints))


def true_cmdp(world: CMDP | Environment) -> CMDP | None:
    """What a run is scored by: a CMDP itself, or the `model` of an environment that has one; None if it has none."""
    found = world if isinstance(world, CMDP) else getattr(getattr(world, "model", None), "cmdp", None)
    return found if isinstance(found, CMDP) else None


def _comparator(world: CMDP | Environment, mean_loss: FloatArray) -> tuple[float, FloatArray]:
    """OPT and q* (num_rows,) of a mean loss; NaN where no policy is feasible, or the world is not known."""
    cmdp = true_cmdp(world)
    try:
        if cmdp is not None:
            loss = np.clip(mean_loss, 0.0, 1.0)
            best = offline.remembered(cmdp, "optimum", loss, lambda: offline.optimum(cmdp, loss))
            return best.value, row_occupancy(cmdp.layout, best.occupancy)
    except InfeasibleError:
        pass
    return float("nan"), np.full(len(mean_loss), np.nan)
