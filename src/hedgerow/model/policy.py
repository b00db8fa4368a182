"""Policies, and mixtures of them: what a learner may say that it plays.

A `Policy` is the action probabilities of a Markov policy, a frozen array over rows that also answers by state and by
label. A `Mixture` is a coin that is tossed once, before an episode, to choose the policy of all of it; parts may be
mixtures themselves. The occupancy of a mixture is the mixture of the occupancies, which no single coin toss
decides: losses, costs and safety are those of the mixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hedgerow.checks import FloatArray, IntArray, float_array, frozen, real_number, type_name
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import layout_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.view import rows_between, same_layout

Choice = int | str
TOL_WEIGHTS = 1e-10
MOST_SHOWN, LONGEST_NAME = 3, 20
"""Of one state in the line that a policy prints: how many actions, and how long their names are."""


class Policy:
    """A Markov policy: for each state the probability of each action.

    A policy is a frozen array that also answers by state and by label: `policy[state]` gives the probabilities of its
    actions, `policy[state, action]` one of them. NumPy functions take it as an array (num_rows,). A policy is equal to
    itself only, which lets hedgerow remember what it computed for it. Compare contents with NumPy.

    Args:
        place: Where it is played: a layout, or anything that has one, such as a view, a CMDP, or a world of the
            catalogue.
        probabilities: (num_rows,) array, or a table (num_decision_states, num_actions). The probabilities of each state
            sum to 1.

    Raises:
        InvalidInput: If the shape is wrong, or if the numbers of some state are not a distribution.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 1), num_actions=2).labelled(["home", "end"], ["wait", "go"])
        >>> policy = hr.Policy(layout, [[0.25, 0.75]])
        >>> policy["home"].tolist(), policy["home", "go"]
        ([0.25, 0.75], 0.75)
    """

    __slots__ = ("__weakref__", "layout", "probabilities")
    layout: Layout
    """The layout that the policy belongs to."""
    probabilities: FloatArray
    """(num_rows,): the action probabilities, read-only."""

    def __init__(self, place: Any, probabilities: ArrayLike | Policy) -> None:
        layout = layout_of(place)
        self.layout, self.probabilities = layout, checked_policy(layout, probabilities)

    @classmethod
    def uniform(cls, place: Any) -> Policy:
        """Return the policy in which all actions are equally likely; `place` is as in the constructor."""
        layout = layout_of(place)
        return cls.trusted(layout, np.full(layout.num_rows, 1.0 / layout.num_actions))

    @classmethod
    def of(cls, place: Any, choices: Choice | Mapping[int | str, Choice | Mapping[int | str, float]]) -> Policy:
        """Make a policy from names.

        Args:
            place: A layout with labels, or what has one: a view, a CMDP, a world.
            choices: The action of every state, by name; or one action for all states. An action may also be a mapping
                {action: probability}. A number is a label where any label of the axis looks like a number, else a
                position.

        Returns:
            The policy.

        Raises:
            InvalidInput: If a state has no action, or a name is unknown.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"], ["shop"]], ["walk", "drive"], thresholds={"fuel": 0.5})
            >>> hr.Policy.of(view, "walk")["shop", "walk"]
            1.0
            >>> hr.Policy.of(view, {"home": "drive", "shop": {"walk": 0.5, "drive": 0.5}})["shop"].tolist()
            [0.5, 0.5]
        """
        layout = layout_of(place)
        table = np.zeros((layout.num_decision_states, layout.num_actions))
        if isinstance(choices, str | int | np.integer):
            table[:, layout.action(choices)] = 1.0
            return cls(layout, table)
        if not isinstance(choices, Mapping):
            raise InvalidInput(f"choices are an action or a mapping {{state: action}}, not {type_name(choices)}")
        for state, chosen in choices.items():
            x = layout.decision_state(state)
            shares = chosen if isinstance(chosen, Mapping) else {chosen: 1.0}
            for action, share in shares.items():
                table[x, layout.action(action)] = real_number("the probability of an action", share, 0.0, 1.0)
        silent = np.flatnonzero(~table.any(axis=1))
        if len(silent):
            raise InvalidInput(f"choices have no action for {layout.describe_state(int(silent[0]))}")
        return cls(layout, table)

    @classmethod
    def trusted(cls, layout: Layout, probabilities: FloatArray) -> Policy:
        """Return a policy without checks, for arrays that are known to be sound.

        Args:
            layout: The layout.
            probabilities: (num_rows,) array; it is copied unless it is frozen already.
        """
        policy = cls.__new__(cls)
        policy.layout, policy.probabilities = layout, frozen(probabilities)
        return policy

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype not in (None, np.float64):
            raise ValueError("a policy is an array of float64")
        return np.array(self.probabilities, dtype=dtype) if copy or dtype else self.probabilities

    def __getitem__(self, place: Any) -> Any:
        """`policy[state]`: its action probabilities (num_actions,); `policy[state, action]`: one of them.

        States and actions are given by label or by a number. A number is a label where any label of the axis looks
        like a number, else a position.
        """
        if isinstance(place, tuple):
            return float(self.probabilities[self.layout.row(*place)])
        return self._of_state(self.layout.decision_state(place))

    def _of_state(self, x: int) -> FloatArray:
        A = self.layout.num_actions
        return self.probabilities[x * A : (x + 1) * A]

    def draw(self, state: int | str, rng: Generator) -> int | str:
        """Draw an action in a state; an action of probability 0 is never drawn, whatever the rounding.

        Args:
            state: A decision state, by label or by a number as in `policy[state]`.
            rng: The generator, from which one number is drawn.

        Returns:
            The action as `Episode` takes it: its position, or its label where labels of actions look like numbers.
        """
        x = self.layout.decision_state(state)
        return self.layout.action_axis.entry(self.draw_position(x, rng))

    def draw_position(self, state: int, rng: Generator) -> int:
        """Draw an action as `draw` does, with positions in the place of labels, whatever labels look like.

        Args:
            state: The position of a decision state, as a row has it: row // num_actions.
            rng: The generator, from which one number is drawn.

        Returns:
            The position of the action.
        """
        probabilities = self._of_state(state)
        allowed = np.flatnonzero(probabilities)
        place = int(np.searchsorted(np.cumsum(probabilities[allowed]), rng.random(), side="right"))
        return int(allowed[min(place, len(allowed) - 1)])

    def __repr__(self) -> str:
        from hedgerow.display import text

        return self.in_words(text.LONGEST)

    def in_words(self, room: int) -> str:
        """What it does in the first states.

        Args:
            room: About how many characters there are for it.

        Returns:
            One line; it names one state at least, and how many follow.

        Examples:
            >>> Policy(Layout((1, 1), 2).labelled(["home", "end"], ["wait", "go"]), [0.25, 0.75]).in_words(80)
            "Policy(state 'home' -> 'wait': 0.25, 'go': 0.75)"
        """
        from hedgerow.display import text

        layout, shown, room = self.layout, [], room - 30
        for x in range(layout.num_decision_states):
            shown.append(self._state_line(x))
            room -= len(shown[-1]) + 2
            if room < 0:
                del shown[max(1, len(shown) - 1) :]
                break
        more = layout.num_decision_states - len(shown)
        rest = f"; ... {text.counted(more, 'state')} more" if more else ""
        return text.line("Policy", f"{'; '.join(shown)}{rest}")

    def _state_line(self, state: int) -> str:
        """What it does in one state: the actions that it may take, the most likely ones first where there are many."""
        from hedgerow.display import text

        layout = self.layout
        chances = self.probabilities[state * layout.num_actions : (state + 1) * layout.num_actions]
        likely = np.flatnonzero(chances)
        if len(likely) > MOST_SHOWN:
            likely = likely[np.argsort(-chances[likely], kind="stable")]
        labels, first = layout.action_labels, int(layout.state_start[layout.layer_of_state[state]])
        actions = (f"{a if labels is None else text.quoted(labels[a], LONGEST_NAME)}: {chances[a]:.3g}" for a in likely)
        states = layout.state_labels
        name = f"layer {layout.layer_of_state[state]}, state {state - first}"
        if states is not None:
            name = f"state {text.quoted(states[state])}"
        return f"{name} -> {text.listed(actions, MOST_SHOWN, len(likely))}"

    def _repr_html_(self) -> str:
        from hedgerow.display.views import policy_html

        return policy_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy.trusted, (self.layout, self.probabilities)


class Mixture:
    """A random choice among policies, made once before an episode.

    The chosen policy is then played to the end of the episode. Parts may be mixtures themselves. The expected loss and
    the expected costs of a mixture are the weighted averages of those of its parts, and safety is judged by them, not
    by the policy that was drawn. Like a policy, a mixture is frozen and equal to itself only.

    Args:
        *parts: Pairs (weight, policy or mixture). The weights are in [0, 1] and sum to 1.

    Raises:
        InvalidInput: If there is no part, if the weights do not sum to 1, or if the layouts differ.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> layout = hr.Layout((1, 1), num_actions=2)
        >>> waiting, going = hr.Policy(layout, [1.0, 0.0]), hr.Policy(layout, [0.0, 1.0])
        >>> coin = hr.Mixture((0.5, waiting), (0.5, going))
        >>> coin.draw(np.random.default_rng(0)) is going
        True
    """

    __slots__ = ("__weakref__", "layout", "parts")
    layout: Layout
    """The layout that all parts belong to."""
    parts: tuple[tuple[float, Policy | Mixture], ...]
    """Pairs (weight, policy or mixture)."""

    def __init__(self, *parts: tuple[float, Policy | Mixture]) -> None:
        if not parts:
            raise InvalidInput("a mixture needs at least one part: Mixture((0.5, policy), (0.5, other))")
        checked = []
        for entry in parts:
            if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[1], Policy | Mixture):
                raise InvalidInput(f"a part of a mixture is (weight, policy or mixture), not {type_name(entry)}")
            checked.append((real_number("the weight of a part", entry[0], 0.0, 1.0), entry[1]))
        total = sum(weight for weight, _ in checked)
        if abs(total - 1.0) > TOL_WEIGHTS:
            raise InvalidInput(f"the weights of a mixture sum to {total!r}, not 1")
        self.layout = checked[0][1].layout
        if not all(same_layout(part.layout, self.layout) for _, part in checked):
            raise InvalidInput("the parts of a mixture belong to different layouts")
        self.parts = tuple(checked)

    @classmethod
    def trusted(cls, *parts: tuple[float, Policy | Mixture]) -> Mixture:
        """Return a mixture without checks, for `*parts` that are known to be sound."""
        mixture = cls.__new__(cls)
        mixture.layout, mixture.parts = parts[0][1].layout, parts
        return mixture

    def draw(self, rng: Generator) -> Policy:
        """Draw the policy of one episode from the generator `rng`."""
        draw, chosen = rng.random(), self.parts[0][1]
        for weight, part in self.parts:
            if weight > 0.0:
                chosen = part
                draw -= weight
                if draw < 0.0:
                    break
        return chosen if isinstance(chosen, Policy) else chosen.draw(rng)

    def policies(self) -> Iterator[tuple[float, Policy]]:
        """Iterate over (probability, policy) of all policies, with mixtures inside mixtures resolved."""
        for weight, part in self.parts:
            if isinstance(part, Policy):
                yield weight, part
            else:
                yield from ((weight * inner, policy) for inner, policy in part.policies())

    def __repr__(self) -> str:
        from hedgerow.display import text

        parts = (f"{weight:.4g} {type(part).__name__}" for weight, part in self.parts)
        return text.line("Mixture", text.listed(parts, count=len(self.parts)))


class UniformMixture(Mixture):
    """A mixture in which all policies are equally likely, kept as one array.

    Thousands of policies need no object each. CV-OPS plays one after its first phase.

    Args:
        place: A layout, or anything that has one: a view, a CMDP, a world of the catalogue.
        policies: (K, num_rows) array: the action probabilities of K policies.

    Raises:
        InvalidInput: If there is no policy, or if one of them is not a policy on this layout.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.model.policy import UniformMixture
        >>> UniformMixture(hr.Layout((1, 1), num_actions=2), [[1.0, 0.0], [0.5, 0.5]])
        UniformMixture(2 policies)
    """

    __slots__ = ("table",)
    table: FloatArray
    """(K, num_rows): the action probabilities of the K policies."""

    def __init__(self, place: Any, policies: ArrayLike) -> None:
        layout = layout_of(place)
        table = float_array("the policies", policies, (len(np.asarray(policies)), layout.num_rows))
        for policy in table:
            checked_policy(layout, policy)
        self._fill(layout, table)

    @classmethod
    def of_table(cls, layout: Layout, table: FloatArray) -> UniformMixture:
        """Return a mixture without checks, for policies that are known to be sound.

        Args:
            layout: The layout.
            table: (K, num_rows) array of action probabilities.
        """
        mixture = cls.__new__(cls)
        mixture._fill(layout, frozen(table))
        return mixture

    def _fill(self, layout: Layout, table: FloatArray) -> None:
        if not len(table):
            raise InvalidInput("a mixture needs at least one policy")
        self.layout, self.table = layout, table

    @property
    def parts(self) -> tuple[tuple[float, Policy | Mixture], ...]:  # type: ignore[override]
        """Pairs (1 / K, policy)."""
        return tuple((1.0 / len(self.table), Policy.trusted(self.layout, policy)) for policy in self.table)

    def draw(self, rng: Generator) -> Policy:
        return Policy.trusted(self.layout, self.table[int(rng.integers(len(self.table)))])

    def __repr__(self) -> str:
        return f"UniformMixture({len(self.table)} policies)"


class Actions:
    """The actions of one episode, drawn beforehand, one for each state.

    `plan.actions` has those of a plan. Pass them to `Episode` if they were followed. A world is loop-free: an episode
    visits a state once at most, so it makes no difference whether the action of a state is drawn when the state is
    reached, or before the episode. Drawn beforehand, it is known what *would* have been done in the states that an
    aborted episode never reached.

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

        Examples:
            >>> layout = Layout((1, 2, 1), 2).labelled(["home", "empty", "full", "end"], ["wait", "go"])
            >>> actions = Actions.drawn(layout, np.array([0.5, 0.5, 1.0, 0.0, 0.0, 1.0]), np.random.default_rng(0))
            >>> actions["empty"], actions["full"]
            ('wait', 'go')
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
