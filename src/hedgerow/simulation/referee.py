"""Plans of learners that are not ours: the referee takes a copy of its own, and checks the copy.

Whatever is scored or played is read from the plan once, copied, and then checked: every policy is a distribution over
actions in every state of the *world*, the weights of every mixture are a distribution, and the policy that is played
is, number by number, a part of the mixture that is scored. So it does not matter what a learner does to its arrays
later, whether its classes tell something else when they are asked twice, or whether it made them around the checks.

Equal contents give the same copy. What was computed for a policy is therefore found again by what the policy is, never
by which object it was: the occupancy of a baseline that is planned a million times is computed once.

None of this protects from code that means harm: all code of this process can write into all of its memory.
"""

from __future__ import annotations

import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, frozen, numeric_array, real_number, short_repr, type_name
from hedgerow.environments.columns import Column
from hedgerow.environments.play import OTHER, Environment, Player, make_streams, make_world
from hedgerow.environments.scores import Occupancies, add_scores, keep_mark, make_curves, make_scores
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import RewardScale
from hedgerow.learners.api import Plan
from hedgerow.learners.watch import RunContext
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import private_index
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.policy import TOL_WEIGHTS, Mixture, Policy, UniformMixture
from hedgerow.simulation.result import BASELINE_LOSS, COMMON

PACKAGE = __name__.partition(".")[0]
NOT_CODE = ("builtins", "abc", "typing")
"""Modules of base classes that bring no code of their own"""
MOST_PARTS, DEEPEST = 100_000, 16
"""Of a mixture: how many policies, and how many mixtures inside each other."""
MOST_NOTES = 1000
"""Names of notes in one run."""
NUMBERS_KEPT = 2**22
"""How many numbers the kept copies have together: 32 MB."""
_SEEN: dict[str, Any] = {"reduce": "rate", "tables": ("answer", "short")}
_LOSS = Column("observed_loss", label="loss observed", words="sum of observed losses, per episode", **_SEEN)
_REWARD = Column("observed_reward", label="reward observed", words="sum of observed rewards, per episode", **_SEEN)
_COST = Column("observed_cost", label="cost observed", words="sum of observed costs, per episode", each=True, **_SEEN)
OBSERVED = (_REWARD, _LOSS, _COST)
"""The columns of a run in an environment: what was observed, summed so far. Rewards where it has a `scale` of them."""
RESERVED = frozenset(column.name for column in (*COMMON, *OBSERVED, BASELINE_LOSS))


def check_note_names(notes: Iterable[str]) -> None:
    """Refuse notes that are called like a column that every run has."""
    for name in notes:
        if name in RESERVED or name.rpartition("_")[0] in RESERVED:
            raise InvalidInput(f"a note cannot be called {name!r}: that is a column of every run; choose another name")


def is_ours(learner: Any) -> bool:
    """Whether all code of a learner is that of this package: its plans are then made of checked arrays."""
    own = getattr(learner, "__dict__", {})
    return not {"plan", "observe"} & set(own) and all(map(_is_part_of_us, type(learner).__mro__))


def _is_part_of_us(base: type) -> bool:
    """Whether the class is the one that its module has under its name; what a class says of itself is not enough."""
    if base.__module__ in NOT_CODE:
        return True
    found: Any = sys.modules.get(base.__module__) if base.__module__.partition(".")[0] == PACKAGE else None
    for name in base.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is base


def may_watch(learner: Any) -> bool:
    """Whether its `watch` is our code: a watcher sees the true world, and writes into the scores."""
    watch = getattr(type(learner), "watch", None)
    home = str(getattr(watch, "__globals__", {}).get("__name__", ""))
    return home.partition(".")[0] == PACKAGE


class Copies:
    """Makes private, checked copies of the plans of one learner, on the layout of its world."""

    def __init__(self, learner: Any, layout: Layout) -> None:
        self._name, self._shared = type(learner).__name__, layout
        self._layout = copy(layout)  # attributes of the shared one can be set to something else
        self._num_rows = layout.num_rows
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._most = max(64, NUMBERS_KEPT // max(1, layout.num_rows))
        self._table: tuple[UniformMixture, frozenset[bytes]] | None = None
        self._notes: set[str] = set()
        self._count = 0

    def of(self, plan: Plan, episode: int) -> Plan:
        """The copy of a plan; refused with the learner and the episode if it is not what it must be."""
        try:
            return self._of(plan)
        except InvalidInput as error:
            raise InvalidInput(f"the plan of {self._name} in episode {episode} is refused: {error}") from error

    def _of(self, plan: Plan) -> Plan:
        mixture, policy, notes = plan.mixture, plan.policy, plan.notes
        played: set[bytes] = set()
        self._count = 0
        copied = self._mixture(mixture, played, 1.0, 0)
        drawn, content = self._policy(policy)
        if content not in played:
            raise InvalidInput(
                "the policy that it plays is no part of the mixture that is scored, or has probability 0 there; "
                "draw it by mixture.draw(rng)"
            )
        made = Plan(copied, drawn, notes)  # which copies and checks the notes
        if not made.notes.keys() <= self._notes:
            self._check_names(made.notes)
        return made

    def _mixture(self, given: Any, played: set[bytes], weight: float, depth: int) -> Policy | Mixture:
        """The copy of a policy or mixture; what it may play with positive probability is added to `played`."""
        if isinstance(given, Policy):
            policy, content = self._policy(given)
            if weight > 0.0:
                played.add(content)
            return policy
        if not isinstance(given, Mixture):
            raise InvalidInput(f"a plan is made of a Policy or a Mixture, not of {type_name(given)}")
        if depth == DEEPEST:
            raise InvalidInput(f"more than {DEEPEST} mixtures are inside each other, or one is a part of itself")
        if isinstance(given, UniformMixture):
            table, rows = self._uniform(given)
            if weight > 0.0:
                played |= rows
            return table
        self._check_layout(given.layout)
        return self._parts(given.parts, played, weight, depth)

    def _parts(self, given: Any, played: set[bytes], weight: float, depth: int) -> Mixture:
        parts, total = tuple(given), 0.0
        self._check_count(len(parts))
        copies = []
        for entry in parts:
            share, part = entry
            if type(share) is not float or not 0.0 <= share <= 1.0:
                share = real_number("the weight of a part", share, 0.0, 1.0)
            total += share
            copies.append((share, self._mixture(part, played, weight * share, depth + 1)))
        if not abs(total - 1.0) <= TOL_WEIGHTS:
            raise InvalidInput(f"the weights of a mixture sum to {total!r}, not 1")
        key = tuple(copies)
        mixture: Mixture | None = self._found(key)
        return self._keep(key, Mixture.trusted(*copies)) if mixture is None else mixture

    def _uniform(self, given: UniformMixture) -> tuple[UniformMixture, frozenset[bytes]]:
        self._check_layout(given.layout)
        raw = numeric_array("the policies", given.table)
        if raw.ndim != 2 or raw.shape[1] != self._layout.num_rows:
            raise InvalidInput(f"the policies have shape {raw.shape}, expected (K, {self._layout.num_rows})")
        self._check_count(len(raw))
        if self._table is not None and np.array_equal(self._table[0].table, raw):
            return self._table
        table = frozen(raw + 0.0)
        for policy in table:
            checked_policy(self._layout, policy)
        self._table = UniformMixture.of_table(self._layout, table), frozenset(policy.tobytes() for policy in table)
        return self._table

    def policy(self, given: Any) -> Policy:
        """The copy of a policy, refused unless it is one of this world."""
        return self._policy(given)[0]

    def _policy(self, given: Any) -> tuple[Policy, bytes]:
        """The copy of a policy, and its content."""
        if not isinstance(given, Policy):
            raise InvalidInput(f"the policy of a plan is a Policy, not {type_name(given)}")
        self._check_layout(given.layout)
        raw = given.probabilities
        if type(raw) is not np.ndarray or raw.dtype != np.float64:
            raw = numeric_array("the action probability", raw)
        if raw.shape != (self._num_rows,):
            raise InvalidInput(f"the action probabilities have shape {raw.shape}, expected ({self._num_rows},)")
        content = (raw + 0.0).tobytes()  # adding 0 makes equal numbers equal bytes: -0 and 0
        policy: Policy | None = self._found(content)
        if policy is None:
            array = np.frombuffer(content)  # read-only: nobody can write into bytes
            policy = self._keep(content, Policy.trusted(self._layout, checked_policy(self._layout, array)))
        return policy, content

    def _found(self, content: Any) -> Any:
        """What was made of this content before, or None."""
        found = self._kept.get(content)
        if found is not None:
            self._kept.move_to_end(content)
        return found

    def _keep(self, content: Any, made: Any) -> Any:
        """Keep what was made of a content; the least recently used is forgotten."""
        self._kept[content] = made
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return made

    def _check_layout(self, given: Any) -> None:
        if given is self._shared:
            return
        ours = self._layout
        # Of our own class, whatever the given one says of equality.
        alike = Layout.__eq__(ours, given) is True
        for name in ("state_labels", "action_labels"):
            labels = getattr(given, name, None)
            alike = alike and (labels is None or getattr(ours, name) is None or labels == getattr(ours, name))
        if not alike:
            raise InvalidInput("it belongs to another layout than that of the world; use the layout of world.view()")

    def _check_count(self, more: int) -> None:
        """Count the parts of a plan, those of mixtures inside mixtures as often as they are met."""
        self._count += more
        if not more:
            raise InvalidInput("a mixture needs at least one part")
        if self._count > MOST_PARTS:
            raise InvalidInput(f"its mixtures have more than {MOST_PARTS:,} parts together")

    def _check_names(self, notes: Mapping[str, float]) -> None:
        check_note_names(notes)
        self._notes |= notes.keys()
        if len(self._notes) > MOST_NOTES:
            raise InvalidInput(
                f"the notes of its plans have more than {MOST_NOTES:,} names, one of them is "
                f"{short_repr(next(iter(notes)))}: the name of a note stays the same, its value changes"
            )


class Seal:
    """Whether a world is still what it was: learners share the arrays of its layout and its thresholds."""

    def __init__(self, cmdp: CMDP) -> None:
        self._cmdp = cmdp
        self._sums = self._content()

    def check(self, learner: Any) -> None:
        now = self._content()
        changed = [name for name, value in self._sums.items() if now[name] != value]
        if changed:
            raise InvalidInput(
                f"{type(learner).__name__} has changed the {' and the '.join(changed)} of the world that it plays in; "
                "work on copies of what a view holds"
            )

    def _content(self) -> dict[str, Any]:
        cmdp, layout = self._cmdp, self._cmdp.layout
        arrays = {
            "layout": (layout.row_start, layout.successor, layout.state_start),
            "thresholds": (cmdp.thresholds,),
            "transitions": (cmdp.transitions,),
            "mean costs": (cmdp.mean_costs,),
        }
        sums: dict[str, Any] = {name: tuple(map(_sum, group)) for name, group in arrays.items()}
        sums["layout"] += (layout.layer_sizes, layout.num_actions)
        return sums


def _sum(array: Any) -> tuple[Any, int]:
    return array.shape, zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


# --------------------------------------------------------------------------------------------------------------------
# Referees: they play the policies of a run and keep its scores.
#
# `Exact` knows the true world: scores are those of the mixtures (`environments/scores.py`), never of samples.
# `Sampled` sees no more than the learner does. It reports neither regret nor violation, only what was observed, under
# names of its own: `observed_loss` and `observed_cost_i`. `Modelled` plays in an environment that has a `model` of
# itself, and scores by that. None believes a learner that is not ours: it gets copies of their plans, checked
# (`Copies`).


class Exact:
    """Plays in a CMDP and scores by its true transitions and mean costs."""

    scored = "exact"
    declared: tuple[Column, ...] = ()

    def __init__(self, cmdp: CMDP, seed: int, marks: IntArray, *, full: bool, private: bool = False) -> None:
        """With `private` arrays: for learners that are not ours, which share the arrays of the layout."""
        layout, m = cmdp.layout, cmdp.num_constraints
        world, streams = make_world(cmdp), make_streams(seed)
        self.stage = RunContext(cmdp, world, make_scores(layout, m), make_curves(layout, m, marks), streams)
        self.scores, self.curves = self.stage.scores, self.stage.curves
        self.compiled = world.cost_kind != OTHER
        index = private_index(layout) if private else None
        self._player = Player(cmdp, world, streams, full=full, index=index)
        self._occupancies = Occupancies(layout, world.transitions, index)
        self._loss = np.zeros(layout.num_rows)

    def add(self, plan: Plan, loss: FloatArray) -> None:
        """Score a plan, before it is played, under the loss (num_rows,)."""
        self._loss[:] = loss
        self.scores.occupancy[:] = self._occupancies.of(plan.mixture)
        add_scores(self.stage.world, self._loss, self.scores)

    def play(self, plan: Plan, loss: FloatArray) -> Episode:
        return self._player.play(plan.policy, loss)

    def keep(self) -> int:
        """The checkpoint that the finished episode is, -1 if none."""
        return keep_mark(self.scores, self.curves)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        return {}


class Sampled:
    """Plays in an environment whose true transitions and costs are unknown."""

    scored, compiled = "sampled", False

    def __init__(self, environment: Environment, seed: int, marks: IntArray) -> None:
        view, scale = environment.view(), getattr(environment, "scale", None)
        self._scale = scale if isinstance(scale, RewardScale) else None
        layout, m = view.layout, view.num_constraints
        # Where there are rewards, tables show them and not the losses that were made of them.
        self.declared = (_REWARD, replace(_LOSS, tables=()), _COST) if self._scale else (_LOSS, _COST)
        self.last = np.zeros(1 + m)
        """The loss and the costs (m,) of the episode that was played last"""
        self._environment, self._rng = environment, Generator(PCG64(SeedSequence(seed)))
        self.scores, self.curves = make_scores(layout, m), make_curves(layout, m, marks)
        for name, array in self.curves.as_dict().items():
            if array.dtype == np.float64 and name != "losses":
                array[:] = np.nan  # nothing exact is known
        self._observed = np.zeros(1 + m)
        self._kept = np.zeros((len(marks), 1 + m))

    def add(self, plan: Plan, loss: FloatArray | None) -> None:
        self.scores.tallies.played += 1

    def play(self, plan: Plan, loss: FloatArray | None) -> Episode:
        episode = self._environment.play(plan.policy, self._rng)
        if not isinstance(episode, Episode):
            raise InvalidInput(f"play of an environment returns an Episode, not {type_name(episode)}")
        self.last = np.concatenate(([episode.losses.sum()], episode.costs.sum(axis=0)))
        self._observed += self.last
        return episode

    def keep(self) -> int:
        tallies = self.scores.tallies
        mark = tallies.next_mark
        if mark >= len(self.curves.marks) or tallies.played != self.curves.marks[mark]:
            return -1
        self._kept[mark] = self._observed
        tallies.next_mark += 1
        return mark

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        kept = self._kept[:reached]
        costs = {f"observed_cost_{i}": kept[:, 1 + i] for i in range(kept.shape[1] - 1)}
        if self._scale is not None:
            costs["observed_reward"] = (
                self._scale.total_reward(0.0) * self.curves.marks[:reached] - self._scale.width * kept[:, 0]
            )
        return {"observed_loss": kept[:, 0], **costs}


class Modelled(Sampled):
    """Plays in an environment whose `model` is known to the referee alone, and scores by it."""

    scored = "exact"

    def __init__(self, environment: Environment, seed: int, marks: IntArray, *, private: bool = False) -> None:
        super().__init__(environment, seed, marks)
        model: Any = environment.model  # type: ignore[attr-defined]
        self._loss, self._exact = model.loss, Exact(model.cmdp, seed, marks, full=False, private=private)
        self.scores, self.curves = self._exact.scores, self._exact.curves

    def add(self, plan: Plan, loss: FloatArray | None) -> None:
        self._exact.add(plan, self._loss)

    def keep(self) -> int:
        mark = self._exact.keep()
        if mark >= 0:
            self._kept[mark] = self._observed
        return mark
