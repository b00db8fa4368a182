"""The world: a loop-free episodic constrained MDP (X, A, P, G, alpha) of the paper's section 2.

The losses are not part of it: an adversary hands them out (`hedgerow.losses`). A learner gets `view()`, never the
transitions or the cost distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hedgerow._late import late
from hedgerow.checks import FloatArray, distinct_names, float_array, type_name, within
from hedgerow.errors import InvalidInput
from hedgerow.model import costs as cost_distributions
from hedgerow.model.costs import CostDistribution
from hedgerow.model.knowledge import Knowledge, check_truth, checked_knowledge
from hedgerow.model.layout import Layout
from hedgerow.model.view import KNOWN, META, Stored, View, checked_thresholds, refuse_unexpected, view_arrays, view_meta

if TYPE_CHECKING:
    from hedgerow.model.episode import Episode

TOL_ROW_SUM = 1e-10


class CMDP(Stored):
    """A constrained Markov decision process with layers: the world that learners play in.

    An episode starts in the only state of the first layer, takes one action per layer, and ends in the only state of
    the last layer. Each step moves to a state of the next layer. The world fixes how states follow each other and how
    costs are drawn. Losses are not part of it, because an adversary chooses them (`hr.losses`). Objects never change.

    A *row* is a pair (state, action), a *triple* is (state, action, next state); `Layout` says in which order arrays
    hold them. There are m constraints, and an episode has L = `layout.steps` steps.

    Args:
        layout: The layers, the actions, and which state can follow which.
        transitions: (num_triples,) probabilities of the next state; those of each row sum to 1. Use
            `layout.join_triples` to make this array from one table per layer.
        costs: How costs are drawn, such as `BernoulliCosts(means)`; None for a world without constraints.
        thresholds: (m,) numbers in [0, L]: the most that an episode may cost in expectation, one per constraint.
        constraint_names: (m,) names; None calls them "cost 1", "cost 2", ...
        state_labels: (num_states,) names of the states; None keeps those of the layout, if it has any.
        action_labels: (num_actions,) names of the actions; None keeps those of the layout, if it has any.
        knowledge: What learners know of this world besides its layout and thresholds, as a `Knowledge` or as a mapping
            with the parameters of `View.knowing`. It must be true. None for nothing.

    Raises:
        InvalidInput: If a shape or a number is wrong, if the probabilities of a row do not sum to 1, or if the
            knowledge is not true of this world.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=2)
        >>> slow_or_fast = [0.5, 0.5, 0.0, 1.0]           # from the start: two actions, two next states each
        >>> world = hr.CMDP(
        ...     layout,
        ...     transitions=slow_or_fast + [1.0, 1.0, 1.0, 1.0],
        ...     costs=hr.costs.BernoulliCosts([[0.0, 0.5, 0.0, 0.0, 0.0, 1.0]]),
        ...     thresholds=[0.5],
        ...     constraint_names=["accidents"],
        ... )
        >>> world
        CMDP(Layout(layers=(1, 2, 1), actions=2, full support), constraints=['accidents'], costs=bernoulli)
        >>> hr.occupancy.evaluate(world, hr.Policy.uniform(world)).costs.tolist()
        [0.625]
    """

    file_kind, called = "cmdp", "CMDP"

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
        """(num_states,): the names of the states, or None."""
        return self.layout.state_labels

    @property
    def action_labels(self) -> tuple[str, ...] | None:
        """(num_actions,): the names of the actions, or None."""
        return self.layout.action_labels

    @property
    def num_constraints(self) -> int:
        """The number m of constraints."""
        return self.costs.num_constraints

    @property
    def mean_costs(self) -> FloatArray:
        """(m, num_rows): the expected costs. The paper calls them bar G."""
        return self.costs.means

    def view(self) -> View:
        """Return what a learner may know of this world.

        That is its layout, its thresholds, its names and its declared knowledge, never the transitions or the costs.
        """
        return self._view

    @cached_property
    def _view(self) -> View:
        return View(self.layout, self.thresholds, self.constraint_names, knowledge=self.knowledge)

    def with_knowledge(self, knowledge: Knowledge | Mapping[str, Any] | None) -> CMDP:
        """Return the same world, of which learners know `knowledge` and nothing else."""
        return self._changed(knowledge=knowledge)

    def play(self, policy: Any, rng: Generator, loss: ArrayLike | None = None) -> Episode:
        """Play one episode: a CMDP is an environment (`hr.Environment`) like any other.

        Simulations draw actions, next states and costs from separate streams instead, so that runs can be compared.

        Args:
            policy: What to play: a `Policy`, or its action probabilities.
            rng: The generator from which actions, next states and costs are drawn.
            loss: (num_rows,) losses in [0, 1], or a table (states, actions); None for an episode without losses.

        Returns:
            The episode.
        """
        episode: Episode = late("environments.play:played")(self, policy, rng, loss)
        return episode

    def with_thresholds(self, thresholds: ArrayLike) -> CMDP:
        """Return the same world with other `thresholds` (m,)."""
        return self._changed(thresholds=thresholds)

    def _changed(self, **changes: Any) -> CMDP:
        own = {"thresholds": self.thresholds, "constraint_names": self.constraint_names, "knowledge": self.knowledge}
        return CMDP(self.layout, self.transitions, self.costs, **{**own, **changes})

    # Files -----------------------------------------------------------------------------------------------------------

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = view_arrays(self) | {"transitions": self.transitions}
        arrays |= {f"costs.{name}": array for name, array in self.costs.arrays().items()}
        return view_meta(self) | {"cost_kind": self.costs.kind}, arrays

    @classmethod
    def _from_content(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> CMDP:
        refuse_unexpected("metadata", meta, ("cost_kind", *META))
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
        refuse_unexpected("arrays", arrays)
        return cmdp

    def __repr__(self) -> str:
        from hedgerow.display import text

        names = text.listed(map(text.quoted, self.constraint_names), 3, len(self.constraint_names))
        return text.line("CMDP", repr(self.layout), f"constraints=[{names}]", f"costs={self.costs.kind}")

    def _repr_html_(self) -> str:
        from hedgerow.display.views import cmdp_html

        return cmdp_html(self)


def layout_of(place: Any) -> Layout:
    """The layout of a layout, a view, a world, or whatever has one in `.layout`."""
    for found in (place, getattr(place, "layout", None)):
        if isinstance(found, Layout):
            return found
    try:
        return view_of(place).layout
    except InvalidInput as error:
        raise InvalidInput(f"a layout, a view or a world is needed here, not {type_name(place)}") from error


def view_of(place: Any) -> View:
    """What a learner may know of a world: a view itself, or the `view()` of whatever has one, or a CMDP in `.cmdp`."""
    if isinstance(place, View):
        return place
    for found in (place, getattr(place, "cmdp", None)):
        show = None if isinstance(found, type) else getattr(found, "view", None)
        view = show() if callable(show) else None
        if isinstance(view, View):
            return view
    raise InvalidInput(
        f"a world or its view is needed here: a CMDP, an entry of the catalogue, or what has a view(), not "
        f"{type_name(place)}"
    )


def cmdp_of(world: Any) -> CMDP:
    """The CMDP of a world: itself, or what it or its `.model` holds in `.cmdp`."""
    for found in (world, getattr(world, "cmdp", None), getattr(getattr(world, "model", None), "cmdp", None)):
        if isinstance(found, CMDP):
            return found
    if hasattr(world, "play") and hasattr(world, "view"):
        raise InvalidInput(
            f"this needs the transitions and mean costs of a world, and {type_name(world)} has only its steps: an "
            "environment with a table has both with GymWorld(..., scored='exact'), or use unroll_gymnasium(env, ...)"
        )
    raise InvalidInput(f"a world is needed here, a CMDP or an entry of the catalogue, not {type_name(world)}")


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
