"""The actions of an episode, drawn beforehand, one for each state.

A world is loop-free: an episode visits a state once at most. So it makes no difference whether the action of a state is
drawn when the state is reached, or before the episode. Drawn beforehand, it is known what *would* have been done in the
states that an aborted episode never reached (`counting.py`).

    >>> layout = Layout((1, 2, 1), 2).labelled(["home", "empty", "full", "end"], ["wait", "go"])
    >>> actions = Actions.drawn(layout, np.array([0.5, 0.5, 1.0, 0.0, 0.0, 1.0]), np.random.default_rng(0))
    >>> actions["empty"], actions["full"]
    ('wait', 'go')
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.errors import InvalidInput
from hedgerow.model.identity import rows_between
from hedgerow.model.layout import Layout


class Actions:
    """The actions of one episode, drawn beforehand, one for each state.

    `plan.actions` has those of a plan. Pass them to `Episode` if they were followed.

    Args:
        layout: The layout of the world.
        numbers: (num_decision_states,) the number of the action in each state.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> plan = hr.SVOPS(view, episodes=1000, delta=0.01).plan()
        >>> plan.actions["home"] in ("wait", "go")
        True
    """

    __slots__ = ("layout", "numbers")
    layout: Layout
    """The layout of the world."""
    numbers: IntArray
    """(num_decision_states,): the number of the action in each state."""

    def __init__(self, layout: Layout, numbers: IntArray) -> None:
        given = np.asarray(numbers)
        shape = (layout.num_decision_states,)
        if given.shape != shape or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= layout.num_actions:
            raise InvalidInput(f"actions are {shape[0]} numbers from 0 to {layout.num_actions - 1}, one for each state")
        self.layout, self.numbers = layout, frozen(given.astype(np.int64))

    @classmethod
    def drawn(cls, layout: Layout, policy: FloatArray, rng: Generator) -> Actions:
        """Draw the action of each state; one of probability 0 is never drawn, whatever the rounding.

        Args:
            layout: The layout of the world.
            policy: (num_rows,) probabilities.
            rng: The generator, from which one number is drawn for each state.
        """
        table = np.asarray(policy).reshape(layout.num_decision_states, layout.num_actions)
        draws, upto = rng.random(len(table)), np.cumsum(table, axis=1)
        place = np.sum(upto <= (draws * upto[:, -1])[:, np.newaxis], axis=1)
        last = layout.num_actions - 1 - np.argmax(table[:, ::-1] > 0.0, axis=1)
        return cls(layout, np.minimum(place, last))

    @property
    def policy(self) -> FloatArray:
        """(num_rows,): 1 for the actions that were drawn, else 0."""
        table = np.zeros((self.layout.num_decision_states, self.layout.num_actions))
        table[np.arange(len(table)), self.numbers] = 1.0
        return frozen(table.ravel())

    def __getitem__(self, state: int | str) -> int | str:
        """Return the action in a state: its label, or its number where actions have no labels.

        Args:
            state: A decision state, by label or by a number, which is a label where any label of a state looks like a
                number, else a position.
        """
        return self._at(self.layout.decision_state(state))

    def _at(self, x: int) -> int | str:
        action, labels = int(self.numbers[x]), self.layout.action_labels
        return action if labels is None else labels[action]

    def in_terms_of(self, layout: Layout) -> Actions:
        """Return the same actions for a layout with the same names, perhaps in another order.

        Args:
            layout: The layout.

        Raises:
            InvalidInput: If it is the layout of another world.
        """
        rows = rows_between(self.layout, layout)
        if rows is None:
            return self
        A = layout.num_actions
        states, numbers = np.divmod(rows[np.arange(len(self.numbers)) * A + self.numbers], A)
        result = np.empty_like(self.numbers)
        result[states] = numbers
        return Actions(layout, result)

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("Actions", text.listed((str(self._at(x)) for x in range(len(self.numbers))), 6))
