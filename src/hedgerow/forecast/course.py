"""The course of a run in lambda and in loss: S-OPS plays, with a log and guessed losses, in a model of the world.

`model.py` bounds lambda between two ends, in no time and for any number of episodes. What a run saves depends on how
fast mirror descent learns as well, so here nothing is approximated: the learner is built as for the real run, absorbs
the log, and plays in a model of the world. All that is assumed is that model:

    seen            of a pair in the log, (sum + what would be assumed) / (visits + 1), for transitions and costs
    guessed         mean costs that come with the guessed losses
    transitions     else uniform over the successors
    costs           of the pairs that the baseline prefers: so large that it costs beta
    other costs     nobody knows, and no single assumption will do. So there are three models, and the forecast is a
                    range: `unrelated` to the loss, and so large that the uniform policy would cost its threshold if all
                    pairs were like that; or `opposed`: what loses less than the baseline costs the more, and the
                    uniform policy costs its threshold once, or twice

Where everything is seen, guessed or known, the three are one. For a known world the model is that world.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, num_episodes
from hedgerow.errors import FileFormatError, InvalidInput, PremiseWarning
from hedgerow.forecast.model import HALVINGS, LambdaRange, Model, assumed_model, log_counts, masses, raised, rising
from hedgerow.forecast.summary import BaselineForecast, assumed_baseline, percents
from hedgerow.importers.columnar import open_table
from hedgerow.importers.log_columns import LogColumns
from hedgerow.importers.logs import Log
from hedgerow.learners.api import DELTA, checked_baseline_costs, safe_policy
from hedgerow.learners.logs import read_log
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.model.cmdp import CMDP, view_of
from hedgerow.model.costs import BernoulliCosts, DeterministicCosts
from hedgerow.model.knowledge import largest_sum
from hedgerow.model.occupancy import checked_loss, checked_policy, uniform_policy
from hedgerow.model.view import MISSING, View
from hedgerow.simulation.result import Run
from hedgerow.simulation.run import simulate

TABLE = "table of guesses"
OPPOSED = (1.0, 2.0)
"""What the uniform policy costs if costs are opposed to losses, in thresholds"""
LEAST_ADVANTAGE = 0.05
"""Where costs are opposed to losses, an action that loses no less than the baseline costs as if it lost this less."""
NUM_POINTS = 200
TINY = 1e-9
"""A loss that is rounding"""
WORTH = 0.01
"""The share of the baseline's loss from which on saving it is worth a word"""
NO_PROMISE = (
    "A forecast promises nothing: S-OPS played in a model, and whatever is neither in the log nor known nor guessed is "
    "assumed there. Where the world differs, so will the run."
)


# Guesses --------------------------------------------------------------------------------------------------------------


class Guess(NamedTuple):
    """What somebody guesses about pairs (state, action)."""

    losses: FloatArray
    """(num_rows,): in [0, 1]"""
    costs: FloatArray
    """(m, num_rows): mean costs, NaN where nothing is guessed"""


def no_guess(view: View) -> Guess:
    """Nothing is guessed, and nothing lost."""
    return Guess(np.zeros(view.layout.num_rows), np.full((view.num_constraints, view.layout.num_rows), np.nan))


def read_guess(view: View, source: Any) -> Guess:
    """Read guessed losses, and perhaps costs.

    Args:
        view: What is known of the world.
        source: (num_rows,) losses or a table (states, actions); a mapping {(state, action): loss}; or a table with the
            columns `state`, `action`, `loss` (or `reward`, which is 1 - loss) and perhaps a column of mean costs for
            each constraint: a file (CSV, Parquet, Arrow, or JSON with columns or lines), a data frame or a mapping
            {column: values}. Every pair has one loss; all numbers are in [0, 1].
    """
    layout, costs = view.layout, no_guess(view).costs
    if isinstance(source, Guess):
        return source
    if isinstance(source, np.ndarray | list | tuple):
        return Guess(checked_loss(layout, np.asarray(source)), costs)
    if isinstance(source, Mapping) and source and all(isinstance(pair, tuple) and len(pair) == 2 for pair in source):
        states, actions = zip(*source, strict=True)
        source = {"state": list(states), "action": list(actions), "loss": list(source.values())}
    table, rows = _pairs(view, source, ("loss", "reward", *view.constraint_names))
    if ("loss" in table) == ("reward" in table):
        raise InvalidInput(f"the {TABLE} needs a column 'loss' in [0, 1], or else 'reward', which is 1 - loss")
    kind, losses = "loss" if "loss" in table else "reward", np.full(layout.num_rows, np.nan)
    losses[rows] = table.costs(kind, _line)
    missing = np.flatnonzero(np.isnan(losses))
    if missing.size:
        others = f" and {missing.size - 1} other pairs" * (missing.size > 1)
        raise InvalidInput(
            f"no {kind} is guessed for {layout.describe_row(int(missing[0]))}{others}; every pair (state, action) "
            "needs a number in [0, 1], and a rough one will do"
        )
    for i, name in enumerate(view.constraint_names):
        if name in table:
            costs[i, rows] = table.costs(name, _line)
    return Guess(losses if kind == "loss" else 1.0 - losses, costs)


def read_policy(view: View, source: str) -> FloatArray:
    """(num_rows,): an action for all states, or a file with `state`, `action` and perhaps `probability`."""
    layout, policy = view.layout, np.zeros(view.layout.num_rows)
    if Path(source).suffix or Path(source).exists():
        table, rows = _pairs(view, source, ("probability",))
        policy[rows] = np.nan_to_num(table.costs("probability", _line)) if "probability" in table else 1.0
    else:
        policy.reshape(-1, layout.num_actions)[:, layout.action_axis.read(source)] = 1.0
    return checked_policy(layout, policy)


def _line(line: int) -> str:
    return f"line {line} of the {TABLE}"


def _pairs(view: View, source: Any, more: tuple[str, ...]) -> tuple[LogColumns, IntArray]:
    """A table, and the row (lines,) that each of its lines is about."""
    layout = view.layout
    if isinstance(source, str | os.PathLike) and str(source).endswith(".json"):
        try:
            source = json.loads(Path(source).read_bytes())
        except (ValueError, OSError) as error:
            raise FileFormatError(f"cannot read the {TABLE} {source}: {error}") from error
        if isinstance(source, list) and source and all(isinstance(line, dict) for line in source):
            source = {name: [line.get(name) for line in source] for name in source[0]}
    opened, places = open_table(source, TABLE, ("state", "action")), []
    table = LogColumns(opened, ("state", "action", *more), None)
    for axis, count in ((layout.state_axis, layout.num_decision_states), (layout.action_axis, layout.num_actions)):
        if axis.what not in table:
            raise InvalidInput(f"the {TABLE} has no column {axis.what!r}; its columns are {', '.join(opened.names)}")
        places.append(table.placed(axis.what, axis, _line))
        wrong = np.flatnonzero((places[-1] == MISSING) | (places[-1] >= count))
        if wrong.size:
            raise InvalidInput(f"{_line(int(wrong[0]))} has no {axis.what!r}, or one in which no action is taken")
    rows = places[0] * layout.num_actions + places[1]
    twice = np.flatnonzero(np.bincount(rows, minlength=layout.num_rows) > 1)
    if twice.size:
        raise InvalidInput(f"{layout.describe_row(int(twice[0]))} stands in two lines of the {TABLE}")
    return table, rows


# The models -----------------------------------------------------------------------------------------------------------


def logged_baseline(view: View, log: Log, otherwise: BaselineForecast) -> BaselineForecast:
    """The policy that a log shows, uniform in states that it never visits, and what its episodes cost on average.

    Where that is no less than the threshold, or costs are missing, the costs are those of `otherwise`.
    """
    visits = np.bincount(log.rows, minlength=view.layout.num_rows).reshape(-1, view.layout.num_actions)
    total = visits.sum(axis=1, keepdims=True)
    policy = np.where(total > 0, visits / np.maximum(total, 1), 1.0 / view.layout.num_actions).ravel()
    costs = log.costs.sum(axis=0) / max(1, len(log))
    if np.isnan(costs).any() or not len(log) or np.any(costs[view.binding] >= view.thresholds[view.binding]):
        return otherwise._replace(words=f"the policy of the log; its costs: {otherwise.words}", policy=policy)
    words = "the policy of the log, with the mean costs of its episodes: an estimate, no bound"
    return BaselineForecast(np.minimum(costs, view.thresholds), words, policy)


def models_for(view: View, safe: BaselineForecast, log: Log | None, guess: Guess | None = None) -> dict[str, Model]:
    """The models, by name; one for all if they are equal. Without a policy in `safe`, `assumed_model`."""
    layout, prior, guess = view.layout, assumed_model(view), guess or no_guess(view)
    P, G = _estimates(view, prior, log, guess)
    P = np.where(np.isnan(P), prior.transitions, P)
    policy = uniform_policy(layout) if safe.policy is None else safe.policy
    played, uniform = masses(layout, P, policy), masses(layout, P, uniform_policy(layout))
    lost = np.repeat((policy * guess.losses).reshape(-1, layout.num_actions).sum(axis=1), layout.num_actions)
    same = np.arange(layout.num_rows) if view.knowledge.same_costs is None else view.knowledge.same_costs
    fair = np.repeat(played.reshape(-1, layout.num_actions).mean(axis=1), layout.num_actions)
    visits, by_chance, size = (np.bincount(same, x, len(same))[same] for x in (played, fair, np.ones(len(same))))
    preferred = (visits >= by_chance) & (visits > 0.0) & (safe.policy is not None)  # pairs that share a law, together
    shape, better = rising(view), np.maximum(LEAST_ADVANTAGE, lost - guess.losses)
    better = np.bincount(same, better, len(same))[same] / size
    found: dict[str, FloatArray] = {}
    for level in (0.0, *OPPOSED):
        costs = np.zeros_like(G)
        for i, threshold in enumerate(view.thresholds.tolist()):
            own = raised(played, shape, G[i], float(safe.costs[i]))
            known = np.where(np.isnan(G[i]) & preferred, np.minimum(own, prior.costs[i]), G[i])
            other = raised(uniform, better, np.where(preferred, known, np.nan), level * threshold)
            costs[i] = np.where(np.isnan(known), other if level else prior.costs[i], known)
        costs = _within_ceilings(view, P, costs)
        if not any(np.array_equal(costs, one) for one in found.values()):
            found[f"opposed to losses, {level:g}x" if level else "unrelated to losses"] = costs
    words = {
        "transitions": "as known, else as seen, else uniform over the successors of each pair",
        "costs": "as known, else as seen, else as guessed, else as the baseline's costs say, else "
        + ("; ".join(found) if len(found) > 1 else "(nothing is left)"),
        "exploration": "what S-OPS plays, beginning with the log",
        "policy": "the uniform one, for the two ends of lambda",
    }
    return {name: Model(layout, P, costs, uniform_policy(layout), words) for name, costs in found.items()}


def _estimates(view: View, prior: Model, log: Log | None, guess: Guess) -> tuple[FloatArray, FloatArray]:
    """Transitions (num_triples,) and mean costs (m, num_rows) as far as they are known, seen or guessed, else NaN."""
    layout, known = view.layout, view.knowledge
    P, G = np.full(layout.num_triples, np.nan), guess.costs.copy()
    if log is not None:
        counts, laws = log_counts(view, log)
        row, at = layout.row_of_triple, laws.moves_at
        visits = counts.num_visits[at][row]
        moves = counts.num_moves[layout.row_start[at[row]] + np.arange(layout.num_triples) - layout.row_start[row]]
        P = np.where(visits > 0, (moves + prior.transitions) / (visits + 1.0), np.nan)
        sums = counts.cost_sums[laws.costs_at].T
        number = counts.num_costs[laws.costs_at] - counts.unknown_costs[laws.costs_at].T
        assumed = np.where(np.isnan(G), prior.costs, G)
        G = np.where(number > 0, (sums + assumed) / (number + 1.0), G)
    if known.transitions is not None:
        P = np.where(np.isnan(known.transitions), P, known.transitions)
    if known.costs is not None:
        G = np.where(np.isnan(known.costs), G, known.costs)
    return P, G


def _within_ceilings(view: View, transitions: FloatArray, costs: FloatArray) -> FloatArray:
    """The costs (m, num_rows), so much smaller that no path exceeds a declared ceiling, except where they are known."""
    known, found = view.knowledge, costs.copy()
    given = np.full(costs.shape, np.nan) if known.costs is None else known.costs
    for i, most in enumerate([] if known.max_episode_cost is None else known.max_episode_cost):
        low, high = 0.0, 2.0
        for _ in range(HALVINGS):
            scale = 0.5 * (low + high)
            found[i] = np.where(np.isnan(given[i]), min(1.0, scale) * costs[i], given[i])
            low, high = (scale, high) if largest_sum(view.layout, transitions, found[i]) <= most else (low, scale)
        found[i] = np.where(np.isnan(given[i]), min(1.0, low) * costs[i], given[i])
    return found


def _world(view: View, model: Model) -> CMDP:
    """The model as a world. Costs are drawn as 0 or 1, or are their means where an episode has a ceiling."""
    kind = BernoulliCosts if view.knowledge.max_episode_cost is None else DeterministicCosts
    names = view.constraint_names
    return CMDP(view.layout, model.transitions, kind(model.costs), view.thresholds, constraint_names=names)


# The runs -------------------------------------------------------------------------------------------------------------


class RunPlan(NamedTuple):
    """What all runs of a forecast share."""

    view: View
    safe: BaselineForecast
    episodes: int
    delta: float
    log: Log | None
    seed: int = 0

    def play(self, world: CMDP, losses: FloatArray, log: Log | None) -> Run:
        """S-OPS in a world, after a log."""
        view, T = self.view, self.episodes
        policy = uniform_policy(view.layout) if self.safe.policy is None else self.safe.policy
        tens = [10**k for k in range(len(str(T)))]
        with warnings.catch_warnings():  # the model need not agree with what is declared to the last digit
            warnings.simplefilter("ignore", PremiseWarning)
            learner = SOPS(
                view, T, self.delta, "sharpest", self.seed, baseline=policy, baseline_costs=self.safe.costs,
                allow_no_margin=True, on_refuted="warn",
            )  # fmt: skip
            if log is not None:
                learner.absorb(log)
            marks = np.unique([*tens, *np.rint(np.geomspace(1, T, NUM_POINTS)).astype(int)])
            return simulate(world, learner, losses, seed=self.seed, marks=marks)


def forecast_run(
    view: View | Any, episodes: int | float | str, delta: float = DELTA, *, baseline: Any = None,
    baseline_costs: ArrayLike | Mapping[str, float] | None = None, log: Any = None, losses: Any = None, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Forecast lambda and the saved loss of a run of S-OPS, with a log and guessed losses.

    S-OPS plays in models of the world (docs/forecast.md). It is a forecast and promises nothing.

    Args:
        view: A view; or a world with a model, which then takes the place of all assumptions.
        episodes: The length of the run.
        delta: The failure probability of the learner.
        baseline: The safe policy as learners take it; None takes the policy that the log shows.
        baseline_costs: Upper bounds of its expected costs; None takes those of `baseline`, or the means of the log.
        log: A `Log`, or what `Log.read` takes; None without one.
        losses: Guessed losses, as `read_guess` takes them; None forecasts lambda alone.
        seed: Seed of everything random.

    Returns:
        Plain data: the `verdict` in words; `marks` with lambda, the share left to the baseline and the saved loss after
        t episodes, from `least` to `most` over the models; and when it was `paid_back` in each of them.

    Raises:
        InvalidInput: If an argument is wrong, or if there is neither a baseline nor a log.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.forecast import forecast_run
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> go = hr.SafePolicy(hr.Policy.of(view, "go"), costs=[0.25])
        >>> guess = {("home", "wait"): 0.25, ("home", "go"): 0.75}
        >>> found = forecast_run(view, 2000, 0.05, baseline=go, losses=guess)
        >>> found["saved_share"]["least"] > 0
        True
    """
    own, safe = view_of(view), assumed_baseline(view_of(view))
    read = None if log is None else read_log(own, log, {})
    if baseline is not None:
        policy, baseline_costs = safe_policy(baseline, baseline_costs, view)
        safe = safe._replace(policy=np.array(checked_policy(own.layout, policy)))
    elif read is not None:
        safe = logged_baseline(own, read, safe)
    else:
        raise InvalidInput("a run is compared with the baseline: give it, or a log of its episodes")
    if baseline_costs is not None:
        safe = safe._replace(costs=np.array(checked_baseline_costs(own, baseline_costs)), words="as given")
    world = getattr(view, "cmdp", view)
    truth = world if isinstance(world, CMDP) else None
    guess = None if losses is None else read_guess(own, losses)
    return course(RunPlan(own, safe, num_episodes(episodes), delta, read, seed), guess, truth)


def course(setting: RunPlan, guess: Guess | None, truth: CMDP | None = None) -> dict[str, Any]:
    """The forecast, as plain data; `truth` is the world, if it is known."""
    view, T = setting.view, setting.episodes
    given = guess or no_guess(view)  # without losses the learner has nothing to learn, and explores
    worlds = {"the world": truth} if truth is not None else {
        name: _world(view, model) for name, model in models_for(view, setting.safe, setting.log, given).items()
    }  # fmt: skip
    runs = [setting.play(world, given.losses, setting.log) for world in worlds.values()]
    bare = [setting.play(world, given.losses, None) for world in worlds.values()] if setting.log else []
    episodes = runs[0].episodes.tolist()
    found: dict[str, Any] = {
        "episodes": T,
        "models": list(worlds),
        "marks": [
            {
                "episodes": t,
                "lambda": _range(run["mixing_weight"][k] for run in runs),
                "lambda_without_log": _range(run["mixing_weight"][k] for run in bare) if bare else None,
                "share": _range(run["mixing_total"][k] / t for run in runs),
                "saved": _range(run.baseline_loss[k] - run.loss[k] for run in runs) if guess else None,
            }
            for k, t in enumerate(episodes)
            if t in (T, 10 ** (len(str(t)) - 1))
        ],
        "baseline_loss": _range(run.baseline_loss[-1] for run in runs) if guess else None,
        "saved_share": _range(run.saved[-1] for run in runs) if guess else None,
        "paid_back": [paid_back(run.episodes, run.baseline_loss - run.loss) for run in runs] if guess else None,
    }
    return {"verdict": worth(found), **found, "note": NO_PROMISE}


def _range(values: Iterable[float]) -> dict[str, float]:
    listed = [float(value) for value in values]
    return LambdaRange(min(listed), max(listed))._asdict()


def paid_back(episodes: IntArray, saved: FloatArray) -> int | None:
    """From which episode on a run is ahead of its baseline for good; after the run, if its last tenth went on.

    None if it never is. `saved` (C,) is the loss that was saved up to each of the `episodes` (C,).
    """
    behind = np.flatnonzero(saved < -TINY)
    if not behind.size or behind[-1] + 1 < len(saved):
        return int(episodes[behind[-1] + 1]) if behind.size else 1
    k = min(int(np.searchsorted(episodes, 0.9 * episodes[-1])), len(saved) - 2)
    gained = float(saved[-1] - saved[k])
    return int(episodes[-1] - saved[-1] * (episodes[-1] - episodes[k]) / gained) if gained > TINY else None


def worth(found: Mapping[str, Any]) -> str:
    """The verdict in words."""
    last, T, size, back = found["marks"][-1], found["episodes"], found["saved_share"], found["paid_back"]
    left = f"Of {T:,} episodes S-OPS would leave {percents(LambdaRange(**last['share']))} to the baseline."
    if size is None:
        return f"Worth it? That takes a guess of the losses. {left}"
    answer = (
        "No" if last["saved"]["most"] <= 0.0
        else "Hardly" if size["most"] < WORTH
        else "That depends on what nobody has seen" if last["saved"]["least"] <= 0.0
        else "Yes, by this forecast"
    )  # fmt: skip
    total, amount = _ends(found["baseline_loss"].values()), _ends(last["saved"].values())
    known = [t for t in back if t is not None]
    when = ", or ".join(
        [f"episode {_ends(known or [0])}"] * bool(known) + ["never, at the pace of its last tenth"] * (None in back)
    )
    return (
        f"Worth it? {answer}: of the baseline's loss of {total} it would save {amount} "
        f"({percents(LambdaRange(**size))}). {left} Ahead of the baseline for good from: {when}."
    )


def _ends(values: Iterable[float]) -> str:
    """The least and the most, in words."""
    listed = list(values)
    return " to ".join(dict.fromkeys(f"{x:,.0f}" if abs(x) >= 10 else f"{x:.2g}" for x in (min(listed), max(listed))))
