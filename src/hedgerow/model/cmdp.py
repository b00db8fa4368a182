"""The world: a loop-free episodic constrained MDP (X, A, P, G, alpha) of the paper's section 2.

The losses are not part of it: an adversary hands them out (`hedgerow.adversaries`). A learner gets `view()`, never the
transitions or the cost distribution.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hedgerow import files
from hedgerow.checks import FloatArray, distinct_names, float_array, kind_of, within
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.model import costs as cost_distributions
from hedgerow.model.costs import CostDistribution
from hedgerow.model.knowledge import Knowledge, check_truth, checked_knowledge
from hedgerow.model.layout import Layout
from hedgerow.model.view import KNOWN, META, UNFIT, View, checked_thresholds

if TYPE_CHECKING:
    from hedgerow.model.episode import Episode

FILE_KIND = "cmdp"
FILE_VERSION = 1
TOL_ROW_SUM = 1e-10
_META_ENTRIES = {"cost_kind", *META}


class CMDP:
    """A validated, immutable constrained MDP.

    `transitions` (num_triples,) are P(x'|x,a) in the layout's order; `costs` a distribution over matrices (m, rows);
    `thresholds` (m,) in [0, L]. Names of constraints, states and actions are optional, and so is what learners are
    told of the world beyond its layout: `knowledge`, see `View.knowing`, has to be true.
    """

    def __init__(
        self,
        layout: Layout,
        transitions: ArrayLike,
        costs: CostDistribution | None = None,
        thresholds: ArrayLike = (),
        *,
        constraint_names: Sequence[str] | None = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
        knowledge: Knowledge | Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(layout, Layout):
            raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
        layout = layout.labelled(
            layout.state_labels if state_labels is None else state_labels,
            layout.action_labels if action_labels is None else action_labels,
        )
        self.layout = layout
        self.transitions = checked_transitions(layout, transitions)
        if costs is None:
            costs = cost_distributions.DeterministicCosts(np.zeros((0, layout.num_rows)))
        self.costs = _checked_costs(layout, costs)
        self.thresholds = checked_thresholds(layout, thresholds, costs.num_constraints)
        m = costs.num_constraints
        names = [f"cost {i + 1}" for i in range(m)] if constraint_names is None else constraint_names
        self.constraint_names = distinct_names("constraint names", names, m)
        self.knowledge = checked_knowledge(layout, self.constraint_names, knowledge)
        check_truth(layout, self.knowledge, self.transitions, costs.means, costs.kind)

    @property
    def state_labels(self) -> tuple[str, ...] | None:
        return self.layout.state_labels

    @property
    def action_labels(self) -> tuple[str, ...] | None:
        return self.layout.action_labels

    @property
    def num_constraints(self) -> int:
        return self.costs.num_constraints

    @property
    def mean_costs(self) -> FloatArray:
        """(m, rows): bar G."""
        return self.costs.means

    def view(self) -> View:
        """What a learner may know of this world."""
        return View(self.layout, self.thresholds, self.constraint_names, knowledge=self.knowledge)

    def with_knowledge(self, knowledge: Knowledge | Mapping[str, Any] | None) -> CMDP:
        """The same world, of which learners are told this and nothing else."""
        return self._changed(knowledge=knowledge)

    def play(self, policy: Any, rng: Generator, loss: ArrayLike | None = None) -> Episode:
        """An episode of `policy`, drawn from the one generator: a CMDP is an environment like any other.

        `loss` (num_rows,) says what was lost on the way; without it, nothing. A simulation draws actions, next states
        and costs from streams of their own instead.
        """
        # By name: who plays is further along the way of the data, and nothing here may depend on it.
        episode: Episode = import_module("hedgerow.environments.player").played(self, policy, rng, loss)
        return episode

    def with_thresholds(self, thresholds: ArrayLike) -> CMDP:
        """The same world under other thresholds."""
        return self._changed(thresholds=thresholds)

    def _changed(self, **changes: Any) -> CMDP:
        own = {"thresholds": self.thresholds, "constraint_names": self.constraint_names, "knowledge": self.knowledge}
        return CMDP(self.layout, self.transitions, self.costs, **{**own, **changes})

    # Files -----------------------------------------------------------------------------------------------------------

    def _content(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Metadata and arrays: all that a world is."""
        layout = self.layout
        arrays: dict[str, Any] = {
            "layer_sizes": np.array(layout.layer_sizes, dtype=np.int64),
            "transitions": self.transitions,
            "thresholds": self.thresholds,
        }
        if not layout.is_full:
            arrays |= {"row_start": layout.row_start, "successor": layout.successor}
        arrays |= {f"costs.{name}": array for name, array in self.costs.arrays().items()}
        arrays |= {f"{KNOWN}{name}": array for name, array in self.knowledge.arrays().items()}
        meta = {
            "num_actions": layout.num_actions,
            "cost_kind": self.costs.kind,
            "constraint_names": self.constraint_names,
            "state_labels": self.state_labels,
            "action_labels": self.action_labels,
        }
        return meta, arrays

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return files.pack(FILE_KIND, FILE_VERSION, *self._content())

    @property
    def content_hash(self) -> str:
        """SHA-256 of the content, not of its file: equal exactly for equal worlds, on every machine."""
        return files.content_hash(FILE_KIND, FILE_VERSION, *self._content())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one data file, atomically."""
        files.save(path, self.to_bytes(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CMDP:
        """Read what `save` wrote; a damaged or foreign file is refused."""
        return cls.from_file(files.load(path, FILE_KIND), str(path))

    @classmethod
    def from_bytes(cls, blob: bytes, source: str = "data") -> CMDP:
        return cls.from_file(files.unpack(blob, FILE_KIND, source), source)

    @classmethod
    def from_file(cls, file: files.DataFile, source: str = "data") -> CMDP:
        if file.version != FILE_VERSION:
            raise FileFormatError(
                f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}"
            )
        try:
            return cls._from_parts(file.meta, dict(file.arrays))
        except KeyError as error:
            raise FileFormatError(f"{source} lacks the entry {error}") from error
        except UNFIT as error:
            raise FileFormatError(f"{source} does not describe a CMDP: {error or 'no memory for it'}") from error

    @classmethod
    def _from_parts(cls, meta: dict[str, Any], arrays: dict[str, Any]) -> CMDP:
        unexpected = sorted(set(meta) - _META_ENTRIES)
        if unexpected:
            raise InvalidInput(f"unexpected metadata {unexpected}")
        costs = {name.removeprefix("costs."): arrays.pop(name) for name in list(arrays) if name.startswith("costs.")}
        known = {name.removeprefix(KNOWN): arrays.pop(name) for name in list(arrays) if name.startswith(KNOWN)}
        layout = Layout(
            arrays.pop("layer_sizes").tolist(),
            meta["num_actions"],
            row_start=arrays.pop("row_start", None),
            successor=arrays.pop("successor", None),
            # A few bytes of a file must not ask for gigabytes: full support is as long as the transitions are.
            max_triples=arrays["transitions"].size,
        )
        cmdp = cls(
            layout,
            arrays.pop("transitions"),
            cost_distributions.from_arrays(meta["cost_kind"], costs),
            arrays.pop("thresholds"),
            constraint_names=meta["constraint_names"],
            state_labels=meta["state_labels"],
            action_labels=meta["action_labels"],
            knowledge=known,
        )
        if arrays:
            raise InvalidInput(f"unexpected arrays {sorted(arrays)}")
        return cmdp

    def __repr__(self) -> str:
        from hedgerow import brief

        names = brief.listed(map(brief.quoted, self.constraint_names), 3, len(self.constraint_names))
        return brief.line("CMDP", repr(self.layout), f"constraints=[{names}]", f"costs={self.costs.kind}")

    def _repr_html_(self) -> str:
        from hedgerow.model.notebook import cmdp_html

        return cmdp_html(self)


def layout_of(place: Any) -> Layout:
    """The layout of a layout, a view, a CMDP, or whatever has one in `.layout` or `.cmdp.layout`."""
    for found in (place, getattr(place, "layout", None), getattr(getattr(place, "cmdp", None), "layout", None)):
        if isinstance(found, Layout):
            return found
    raise InvalidInput(f"a layout, a view or a world is needed here, not {kind_of(place)}")


def cmdp_of(world: Any) -> CMDP:
    """The CMDP of a world: itself, or what an entry of the catalogue or an unrolled MDP holds in `.cmdp`."""
    for found in (world, getattr(world, "cmdp", None)):
        if isinstance(found, CMDP):
            return found
    raise InvalidInput(f"a world is needed here, a CMDP or an entry of the catalogue, not {kind_of(world)}")


def checked_transitions(layout: Layout, transitions: ArrayLike) -> FloatArray:
    """`transitions` (num_triples,) if each row is a distribution over its successors."""
    shape = (layout.num_triples,)
    array = float_array("the transition probability", transitions, shape, layout.describe_triple)
    within("the transition probability", array, 0.0, 1.0, layout.describe_triple)
    sums = np.add.reduceat(array, layout.row_start[:-1])
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > TOL_ROW_SUM:
        raise InvalidInput(
            f"transitions of {layout.describe_row(worst)} sum to {float(sums[worst])!r}, not 1; "
            "divide each row by its sum"
        )
    return array


def _checked_costs(layout: Layout, costs: CostDistribution) -> CostDistribution:
    if not isinstance(costs, CostDistribution):
        raise InvalidInput(
            f"costs must be a cost distribution such as BernoulliCosts(means), not {type(costs).__name__}"
        )
    if costs.num_rows != layout.num_rows:
        raise InvalidInput(f"costs are given for {costs.num_rows} rows; the layout has {layout.num_rows}")
    return costs
