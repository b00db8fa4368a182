"""An environment without a model as a world: time layers, an ended state, rewards as losses.

An environment with S states and A actions is played for H steps. A state (k, s) of the loop-free world means: s
before step k. What ends early, terminated or truncated, spends the remaining steps in the state `ended`, at reward
0 and cost 0. If episodes can start in several states, a root comes first: one more layer, in which nothing is
decided.

Rewards r become losses (best - r) / (best - worst), where the range (worst, best) is stated, and widened to include
the 0 of ended steps. What lies outside is clipped and counted, as are costs outside [0, 1]: a learner that sees
clipped numbers learns another problem than the one that was meant. The first one is said (`ClippedWarning`), and
the guarantees of a run are void from then on.

Costs are computed from what a step shows, its next state included, so they may not be taken as drawn apart from the
moves. `costs_drawn="step"` declares that cost and next state are one fresh draw given state and action: right for an
environment whose steps depend on nothing but its state, and a cost function without a memory.

The *support* says which transitions are possible. With P(s'|s,a) > 0 only there, a learner has far less to find out;
with 17 states in a layer and nothing known, thousands of episodes teach it next to nothing. `stationary=True` declares
that a state-action pair has one law at all steps, so that what is seen at one step counts for all. Root and ended steps
cost nothing, and every view says so.

Without a model the expected loss of a policy is unknown, let alone that of the best one. Where the environment has a
table and it is the truth, `scored="exact"` makes the model of it (`layers.py`): runs are scored by it, learners see
nothing of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.random import Generator
from numpy.typing import ArrayLike

from hedgerow.checks import (
    FloatArray,
    IntArray,
    did_you_mean,
    float_array,
    numeric_array,
    real_number,
    short_repr,
    type_name,
    whole_number,
    within,
)
from hedgerow.errors import InvalidInput
from hedgerow.gym.layers import (
    TableStep,
    model_of,
    over_rows,
    same_at_all_steps,
    state_numbers,
    support_of,
    table_steps,
    time_layers,
)
from hedgerow.importers.unroll import RewardScale, Unrolled
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Policy
from hedgerow.model.view import View, same_layout

CostFunction = Callable[[int, int, int, float, dict[str, Any]], ArrayLike]
"""(state, action, next state, reward, info) -> costs (m,) of a step, all as the environment numbers them"""
LARGEST_REWARD = 1e300
TOL_START = 1e-6
SCORED = ("sampled", "exact")
"""How runs in a world are scored"""


class ClippedWarning(UserWarning):
    """A reward or a cost of an environment lies outside its range and is clipped.

    The promises of a run are void from there on.

    Examples:
        >>> import warnings
        >>> import hedgerow as hr
        >>> from hedgerow.gym import CMDPEnv, GymWorld, learn
        >>> env = CMDPEnv(hr.worlds.make("lower-bound-1"))
        >>> world = GymWorld(env, steps=1, rewards=(-0.1, 0), thresholds={"cost": 0.5})
        >>> with warnings.catch_warnings(record=True, action="always") as found:
        ...     _ = learn(world, hr.SVOPS(world.view(), 50, 0.05), 50)
        >>> {warning.category.__name__ for warning in found}
        {'ClippedWarning'}
    """


class GymWorld:
    """A Gymnasium environment without a model, as a world that learners can play.

    The environment has Discrete spaces and is played for a fixed number of steps. A state of the world means: the
    environment is in s before step k. An episode that ends early spends the remaining steps in a state "ended", at
    reward 0 and cost 0. Rewards become losses (best - reward) / (best - worst). Rewards outside the stated range, which
    is widened to include 0, and costs outside [0, 1] are clipped and counted, and the first one is said
    (`ClippedWarning`): a learner that sees clipped numbers learns another problem than you meant, and a run in which
    something was clipped promises nothing.

    Args:
        env: The environment; wrappers stay where they are.
        steps: The number of steps, at most the environment's own limit.
        rewards: (worst, best), the range of the reward of one step.
        thresholds: A mapping {name: the most that an episode may cost}, such as {"hole": 0.25}, or (m,) numbers.
        costs: A function (state, action, next_state, reward, info) that returns the costs (m,) of a step; None reads
            `info["cost"]`.
        support: Which transitions are possible. "auto" reads them from `env.unwrapped.P` if there is one, else takes
            "full"; "known" insists on P; "full" allows all; or booleans (S, A, S + 1), whose last column says which
            steps may end the episode. The fewer are possible, the faster a learner learns.
        starts: The states in which an episode may start; None takes `env.unwrapped.initial_state_distrib` if there is
            one, else all states.
        action_names: Names of the actions; None for none.
        costs_drawn: How costs go together with moves: "step" if cost and next state of a step are one fresh draw given
            state and action, as in an environment without memory; "apart" if the costs have nothing to do with the
            moves; "unknown" if neither is known, which turns off the aggregate certificate (`View.knowing`).
        stationary: Whether transitions and costs of a state and an action are the same at every step. Then a learner
            counts what it sees at one step for all of them.
        zero_costs: (S, A) or (m, S, A) booleans: True where a state and an action surely cost nothing; None if that is
            not known.
        max_episode_cost: (m,) numbers, or a mapping {name: number}: the most that an episode can cost, such as 1 for a
            hole that ends it; None if that is not known.
        scored: "sampled", or "exact" if `env.unwrapped.P` is the truth, with all wrappers. Runs then have the exact
            expectations of every plan, by this table and the function `costs`, which is called with an empty `info`.
            Learners see nothing of it.

    Raises:
        InvalidInput: If a space is not Discrete, or if an argument is wrong.

    Examples:
        >>> import gymnasium
        >>> from hedgerow.gym import GymWorld
        >>> def fell_into_a_hole(state, action, next_state, reward, info):
        ...     return float(next_state in (5, 7, 11, 12))
        >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> hole = {"thresholds": {"hole": 0.25}, "costs": fell_into_a_hole, "costs_drawn": "step"}
        >>> world = GymWorld(lake, steps=10, rewards=(0, 1), **hole)
        >>> world.view().layout.steps, world.view().constraint_names
        (10, ('hole',))
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        steps: int,
        rewards: tuple[float, float],
        thresholds: Mapping[str, float] | ArrayLike = (),
        costs: CostFunction | None = None,
        *,
        support: str | ArrayLike = "auto",
        starts: Sequence[int] | None = None,
        action_names: Sequence[str] | None = None,
        costs_drawn: str = "unknown",
        stationary: bool = False,
        zero_costs: ArrayLike | None = None,
        max_episode_cost: ArrayLike | Mapping[str, float] | None = None,
        scored: str = "sampled",
    ) -> None:
        self.env, self._cost_of = env, costs
        self._first_state, self.num_states = _discrete("observation", getattr(env, "observation_space", None))
        self._first_action, self.num_actions = _discrete("action", getattr(env, "action_space", None))
        self.steps = _checked_steps(env, steps)
        worst, best = _checked_range(rewards)
        self.scale = RewardScale(best, best - worst, self.steps)
        """From sums of losses back to sums of rewards, where nothing was clipped."""
        names = tuple(thresholds) if isinstance(thresholds, Mapping) else None
        alpha = np.array(list(thresholds.values())) if isinstance(thresholds, Mapping) else thresholds
        successors = support_of(env, support, self.num_states, self.num_actions, self._first_state)
        self._layers = time_layers(successors, self._starts(starts), self.num_actions, self.steps, action_names)
        layout = self._layers.cmdp.layout
        view = View(layout, alpha, names or [f"cost {i + 1}" for i in range(np.size(alpha))])  # type: ignore[arg-type]
        known = same_at_all_steps(self._layers) if _checked_flag("stationary", stationary) else {}
        if view.num_constraints:
            known |= {"costs_drawn": costs_drawn, "max_episode_cost": max_episode_cost}
            known |= {"zero_costs": self._zero_costs(zero_costs, view.num_constraints)}
        self._view = view.knowing(**known)
        self._number = state_numbers(self._layers, self.num_states)
        self.unfinished: Episode | None = None
        """What was seen of the episode that the last call of `play` could not finish, aborted where it failed; None if
        it was finished, or if it failed before the first step was over"""
        self.clipped_rewards = 0
        """Rewards outside the stated range, so far"""
        self.clipped_costs = 0
        """Costs outside [0, 1], so far"""
        if scored not in SCORED:
            raise InvalidInput(f"scored is {short_repr(scored)}{did_you_mean(str(scored), SCORED)}")
        self.model: Unrolled | None = self._modelled() if scored == "exact" else None
        """The table of the environment in these layers, as a CMDP with its loss, if scores are exact, else None"""

    @property
    def void_because(self) -> str:
        """Why a run in this world promises nothing: something was clipped; the empty string if nothing was."""
        parts = ((self.clipped_rewards, "rewards"), (self.clipped_costs, "costs"))
        counted = " and ".join(f"{number} {what}" for number, what in parts if number)
        return f"{counted} were clipped: what was learnt is another problem" if counted else ""

    def _clip(self, what: str, value: float, allowed: str) -> None:
        """Say that something was clipped, if it is the first time."""
        if not self.clipped_rewards and not self.clipped_costs:
            warnings.warn(
                f"{what} of {value:g} was clipped: {allowed}. A learner that sees clipped numbers learns another "
                "problem, and a run promises nothing from here on; this is said once, and all are counted",
                ClippedWarning,
                stacklevel=4,
            )

    def view(self) -> View:
        """Return what a learner may know: layers, possible transitions, thresholds."""
        return self._view

    @property
    def layout(self) -> Layout:
        """The layers: one for every step, and one for the start if episodes start in several states."""
        return self._view.layout

    @property
    def has_root(self) -> bool:
        """Whether the first layer only draws the state in which an episode starts."""
        return self._layers.has_root

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Play `policy` for one episode; the environment's seed and the actions are drawn from `rng`.

        If the environment raises in the middle of it, `unfinished` is the episode so far, for the learner whose plan it
        was: `learner.observe(world.unfinished)`.
        """
        self.unfinished = None
        if not same_layout(policy.layout, self._view.layout):
            policy = Policy(self._view, policy)  # by name, or refused
        m, ended, A = self._view.num_constraints, self.num_states, self.num_actions
        total = self._view.layout.steps
        rows, losses, costs = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros((total, m))
        observation, _ = self.env.reset(seed=int(rng.integers(2**31)))
        state, place = self._state(observation), 0
        if self.has_root:
            rows[0], place = policy.draw_position(0, rng), 1
        x, seen = 0, 0
        try:
            for k in range(self.steps):
                x, seen = self._place(k, state), place + k
                action = policy.draw_position(x, rng)
                rows[seen] = x * A + action
                if state == ended:
                    losses[seen] = self._loss(0.0)
                else:
                    state, losses[seen], costs[seen] = self._step(observation, action)
                    observation = state + self._first_state
        except BaseException:
            if seen:
                ended_in = self._view.layout.state_axis.entry(x)
                self.unfinished = Episode(self._view, rows[:seen], losses[:seen], costs[:seen], ended_in=ended_in)
            raise
        return Episode(self._view, rows, losses, costs)

    def _step(self, observation: Any, action: int) -> tuple[int, float, FloatArray]:
        """The next state, `num_states` if the episode has ended; the loss; the costs (m,)."""
        taken = action + self._first_action
        following, reward, terminated, truncated, info = self.env.step(taken)
        earned = real_number("a reward of the environment", reward, -LARGEST_REWARD, LARGEST_REWARD)
        state = self._state(following)
        cost = self._costs(int(observation), taken, state + self._first_state, earned, info)
        return self.num_states if terminated or truncated else state, self._loss(earned), cost

    def _loss(self, reward: float) -> float:
        loss = (self.scale.best - reward) / self.scale.width
        clipped = min(max(loss, 0.0), 1.0)
        if clipped != loss:
            worst, best = self.scale.best - self.scale.width, self.scale.best
            self._clip("a reward", reward, f"rewards=({worst:g}, {best:g}) was stated as their range")
            self.clipped_rewards += 1
        return clipped

    def _costs(self, state: int, action: int, following: int, reward: float, info: dict[str, Any]) -> FloatArray:
        m = self._view.num_constraints
        if m == 0:
            return np.zeros(0)
        if self._cost_of is not None:
            given = self._cost_of(state, action, following, reward, info)
        elif "cost" in info:
            given = info["cost"]
        else:
            raise InvalidInput("the info of a step has no 'cost'; pass costs=function to GymWorld")
        array = np.atleast_1d(numeric_array("the cost of a step", given)).astype(np.float64)
        if array.shape == (m,) and array.min() >= 0.0 and array.max() <= 1.0:  # neither holds of NaN
            return array
        if array.shape != (m,) or not np.isfinite(array).all():
            raise InvalidInput(
                f"the cost of a step is {short_repr(given)}; there are {m} thresholds, so give {m} numbers"
            )
        clipped: FloatArray = np.clip(array, 0.0, 1.0)
        self._clip("a cost", float(array[clipped != array][0]), "costs lie in [0, 1]; divide them by their largest")
        self.clipped_costs += int(np.sum(clipped != array))
        return clipped

    def _zero_costs(self, given: ArrayLike | None, m: int) -> Any:
        """(m, num_rows): where costs are surely 0; always so in the root and in ended steps, by construction."""
        shape = (m, self.num_states, self.num_actions)
        table = np.zeros(shape, dtype=bool) if given is None else np.asarray(given)
        if table.dtype != bool or table.shape not in (shape, shape[1:]):
            raise InvalidInput(
                f"zero_costs are True or False, of shape (S, A) = {shape[1:]} or (m, S, A) = {shape}; these have shape "
                f"{table.shape} and type {table.dtype}"
            )
        return over_rows(self._layers, np.broadcast_to(table, shape), elsewhere=True)

    def _modelled(self) -> Unrolled:
        """The model of the table; refused where a run would clip what the table lists."""
        if getattr(self.env.unwrapped, "P", None) is None:
            raise InvalidInput("scored='exact' needs a table env.unwrapped.P; this environment has none")
        steps = table_steps(self.env, self.num_states, self.num_actions, self._first_state)
        known = getattr(self.env.unwrapped, "initial_state_distrib", None) if self.has_root else None
        what = "initial_state_distrib of the environment"
        start = None if known is None else float_array(what, known, (self.num_states,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClippedWarning)
            model = model_of(self._layers, self._view, steps, start, self._outcome, self.scale)
        if self.void_because:
            raise InvalidInput(f"the table has numbers outside their range: {self.void_because}; widen it")
        return model

    def _outcome(self, step: TableStep) -> tuple[float, FloatArray]:
        """The loss and the costs of an entry of the table."""
        state, action = divmod(step.row, self.num_actions)
        before, after = state + self._first_state, step.arrived + self._first_state
        return self._loss(step.reward), self._costs(before, action + self._first_action, after, step.reward, {})

    def _starts(self, given: Sequence[int] | None) -> IntArray:
        """The states, numbered from 0, that an episode may start in."""
        if given is not None:
            chosen = [whole_number("a start", s, self._first_state, self._last_state()) for s in given]
            if not chosen:
                raise InvalidInput("starts must name at least one state")
            return np.unique(chosen) - self._first_state
        known = getattr(self.env.unwrapped, "initial_state_distrib", None)
        if known is None:
            return np.arange(self.num_states)
        what = "initial_state_distrib of the environment"
        try:
            starts = within(what, float_array(what, known, (self.num_states,)), 0.0, 1.0)
            if abs(starts.sum() - 1.0) > TOL_START:
                raise InvalidInput(f"{what} sums to {float(starts.sum())!r}, not 1")
        except InvalidInput as error:
            raise InvalidInput(f"{error}; name the states in which an episode may start: starts=[...]") from error
        return np.flatnonzero(starts)

    def _last_state(self) -> int:
        return self._first_state + self.num_states - 1

    def _state(self, observation: Any) -> int:
        return whole_number("an observation", observation, self._first_state, self._last_state()) - self._first_state

    def _place(self, k: int, state: int) -> int:
        """The state of the layout for s before step k."""
        x = int(self._number[k, state])
        if x < 0:
            raise InvalidInput(
                f"the environment was in state {state + self._first_state} before step {k}, which the support or the "
                "starts exclude; state others, or use support='full'"
            )
        return x

    def __repr__(self) -> str:
        return f"GymWorld({self.env}, {self._view.layout!r})"


def _discrete(what: str, space: Any) -> tuple[int, int]:
    """(start, n) of a Discrete space."""
    if not isinstance(space, Discrete):
        raise InvalidInput(
            f"the {what} space must be Discrete, not {type_name(space)}; wrap the environment to number it"
        )
    return int(space.start), int(space.n)


def _checked_flag(what: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{what} is True or False, not {short_repr(value)}")
    return bool(value)


def _checked_steps(env: gymnasium.Env[Any, Any], steps: int) -> int:
    checked = whole_number("the number of steps", steps, 1)
    limit = None if env.spec is None else env.spec.max_episode_steps
    if limit is not None and checked > limit:
        raise InvalidInput(
            f"the environment is truncated after {limit} steps; ask for at most that many, not {checked}"
        )
    return checked


def _checked_range(rewards: tuple[float, float]) -> tuple[float, float]:
    """(worst, best), widened to include the 0 of ended steps."""
    try:
        worst, best = (real_number("an end of the range of rewards", end, -1e150, 1e150) for end in rewards)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"rewards is (worst, best), the range of the reward of a step: {error}") from error
    if not worst < best:
        raise InvalidInput(f"the range of rewards is ({worst}, {best}); the first must be the smaller one")
    return min(worst, 0.0), max(best, 0.0)
