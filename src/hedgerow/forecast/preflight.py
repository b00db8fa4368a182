"""The pre-flight of a problem: what a world demands of a learner, before a run of hours starts.

feasible?       rho = max_q min_i alpha_i - g_i^T q, with the weights theta that prove it: for theta in the simplex
                no policy has theta^T G q below min_q theta^T G q, which backward induction computes exactly
thresholds      alpha_i is meaningful between the least cost that the other constraints allow and the largest cost of
                any policy: below it no policy is feasible, above it every policy is
baselines       the loss of each safe policy, and the margin that it leaves
radii           visits of a pair until the radii say more than the trivial bound, and episodes until then if actions
                are drawn uniformly; learners that prefer some actions need longer for the others
time, memory    of a short run of each learner in this world, on this machine
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, did_you_mean, short_repr
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.radii import KINDS, Radii, RadiusRule, cost_radius, transition_radius
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import BuiltWorld
from hedgerow.forecast.course import RunPlan, course, logged_baseline, models_for, read_guess, read_policy
from hedgerow.forecast.model import assumed_model, true_model
from hedgerow.forecast.summary import BaselineForecast, assumed_baseline, forecast, log_summary
from hedgerow.importers.logs import Log
from hedgerow.learners.api import checked_baseline_costs
from hedgerow.losses import oblivious
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction, evaluate, occupancy, row_occupancy, uniform_policy
from hedgerow.model.view import View
from hedgerow.planning import baselines, offline
from hedgerow.registry import learners
from hedgerow.simulation.run import Simulation
from hedgerow.worlds.world import is_free, price_of

if TYPE_CHECKING:
    from hedgerow.worlds import World

GOOD_RADIUS = 0.1
"""A cost radius that is small enough to act on."""
MOST_VISITS = 2**62
PROBE_SECONDS = 0.4
PROBE_EPISODES = 50
SMALLEST_GAIN = 1e-9
SHARES = {"half of that margin, least loss": 0.5, "a tenth of it, least loss": 0.1}
NAMES = {"budget": "the world's baseline budget, least loss", "own": "the world's own baseline"}


class Request(NamedTuple):
    """What `hedgerow check` is asked: what to look at, and how closely."""

    problem: str
    choices: list[str]
    """Parameters of the world, each as in TOML"""
    episodes: int
    delta: float
    baseline_costs: str | None
    log: str | None
    probe: bool
    losses: str | None = None
    """A file of guessed losses"""
    baseline: str | None = None
    """The safe policy: an action, or a file"""


def examine(asked: Request, world: World | None, cmdp: CMDP) -> dict[str, Any]:
    """Everything that `check` shows about a world, as plain data."""
    layout, episodes, delta = cmdp.layout, asked.episodes, asked.delta
    reached = reachable_states(cmdp)
    state = feasibility(cmdp)
    lost = [layout.describe_state(int(x)) for x in (~reached).nonzero()[0]]
    future: dict[str, Any] = {"forecast": None, "log": None, "course": None}
    if state["feasible"]:  # with the true world as the model
        loss = None if world is None else world.loss
        future = _forecasts(asked, cmdp.view(), cmdp, world_baseline(world, cmdp), loss)
    return {
        "problem": asked.problem,
        "description": None if world is None else world.description,
        "parameters": {} if world is None else dict(world.params),
        "kind": "cmdp",
        "hash": cmdp.content_hash if world is None else world.hash,
        "state_names": [layout.describe_state(x) for x in range(layout.num_decision_states)],
        "action_names": [layout.action_name(a) for a in range(layout.num_actions)],
        **sizes(layout),
        "reachable_states": int(reached.sum()),
        "unreachable": lost[:10],
        **state,
        "thresholds": [{**r._asdict(), "verdict": r.verdict} for r in threshold_ranges(cmdp)],
        "offline": None if world is None else offline_summary(world, feasible=state["feasible"]),
        "episodes": episodes,
        "delta": delta,
        "informative": informative_radii(cmdp, episodes, delta),
        "runs": probe_learners(cmdp, episodes, delta) if asked.probe else None,
        "process_bytes": process_bytes(),
        "known": cmdp.knowledge.described(layout, cmdp.constraint_names),
        **future,
    }


def examine_view(asked: Request, view: View) -> dict[str, Any]:
    """Everything that `check` shows about a view, as plain data."""
    return {
        "problem": asked.problem,
        "kind": "view",
        "hash": view.content_hash,
        **sizes(view.layout),
        "known": view.knowledge.described(view.layout, view.constraint_names),
        **_forecasts(asked, view, None, assumed_baseline(view)),
    }


def _forecasts(
    asked: Request, view: View, truth: CMDP | None, otherwise: BaselineForecast, loss: FloatArray | None = None
) -> dict[str, Any]:
    """The forecasts; `truth` is the world, if it is known, and `loss` its own."""
    log = None if asked.log is None else Log.read(view, asked.log)
    losses: Any = loss if asked.losses is None else asked.losses
    guess = None if losses is None else read_guess(view, losses)
    if asked.baseline is not None:
        otherwise = otherwise._replace(policy=read_policy(view, asked.baseline))
    elif log is not None and truth is None:
        otherwise = logged_baseline(view, log, otherwise)
    if asked.losses is not None and otherwise.policy is None:
        raise InvalidInput(
            "--losses tells what S-OPS saves against your safe policy, which is not known here: give a --log of its "
            "episodes, or --baseline with an action or a table of state, action, probability"
        )
    baseline, episodes, delta = stated_baseline(view, asked.baseline_costs, otherwise), asked.episodes, asked.delta
    if truth is not None:
        model = true_model(truth, loss)
    else:
        model = assumed_model(view) if log is None else next(iter(models_for(view, baseline, log).values()))
    played = asked.log is not None or asked.losses is not None
    return {
        "course": course(RunPlan(view, baseline, episodes, delta, log), guess, truth) if played else None,
        "forecast": forecast(view, model, baseline, episodes, delta, log),
        "log": None if log is None else {"file": asked.log, **log_summary(view, log)},
    }


def sizes(layout: Layout) -> dict[str, Any]:
    return {
        "layers": list(layout.layer_sizes),
        "steps": layout.steps,
        "states": layout.num_states,
        "actions": layout.num_actions,
        "rows": layout.num_rows,
        "triples": layout.num_triples,
        "full_support": layout.is_full,
    }


class Range(NamedTuple):
    """The meaningful range of one threshold."""

    name: str
    threshold: float
    least: float
    """The least expected cost of any policy"""
    least_with_others: float | None
    """The least under the other constraints; None if these alone are infeasible"""
    largest: float
    """The largest expected cost of any policy"""

    @property
    def verdict(self) -> str:
        """What the present threshold means."""
        low = self.least if self.least_with_others is None else self.least_with_others
        if self.threshold < low - SMALLEST_GAIN:
            return "cannot be met"
        if self.threshold >= self.largest - SMALLEST_GAIN:
            return "never binds"
        return "met, without margin" if self.threshold <= low + SMALLEST_GAIN else "can bind"


def reachable_states(cmdp: CMDP) -> NDArray[np.bool_]:
    """(num_states,) bool: whether some policy reaches the state with positive probability."""
    layout = cmdp.layout
    reached = np.zeros(layout.num_states, dtype=bool)
    reached[0] = True
    for k in range(layout.steps):
        triples = layout.triples(k)
        begins = layout.row_of_triple[triples] // layout.num_actions
        used = (cmdp.transitions[triples] > 0.0) & reached[begins]
        reached[layout.successor[triples][used]] = True
    return reached


def feasibility(cmdp: CMDP) -> dict[str, Any]:
    """rho, the safest policy, and the proof in words."""
    best = offline.slater(cmdp)
    margins = _by_name(cmdp, cmdp.thresholds - best.costs)
    strictly = {"costs": _by_name(cmdp, best.costs), "margins": margins, "policy": best.policy.tolist()}
    return {
        "feasible": best.margin >= -offline.TOL_FEASIBLE,
        "rho": best.margin if cmdp.num_constraints else None,
        "certificate": _certificate(cmdp, best),
        "multipliers": _by_name(cmdp, best.multipliers),
        "strictly_feasible": strictly if best.margin > 0.0 else None,
    }


def _by_name(cmdp: CMDP, values: FloatArray) -> dict[str, float]:
    """Numbers (m,) by the names of the constraints."""
    return dict(zip(cmdp.constraint_names, values.tolist(), strict=True))


def _certificate(cmdp: CMDP, best: offline.SlaterPoint) -> str:
    if not cmdp.num_constraints:
        return "there are no constraints: every policy is feasible"
    theta = best.multipliers
    least = backward_induction(cmdp.layout, cmdp.transitions, theta @ cmdp.mean_costs).value
    allowed = float(theta @ cmdp.thresholds)
    active = [i for i in range(cmdp.num_constraints) if theta[i] > offline.TOL_MULTIPLIER]
    weighted = " + ".join(f"{theta[i]:.4g} x {cmdp.constraint_names[i]!r}" for i in active)
    proof = f"every policy has {weighted} >= {least:.6g}, while the thresholds allow {allowed:.6g}"
    if best.margin < -offline.TOL_FEASIBLE:
        return f"infeasible: {proof}; some threshold is exceeded by {-best.margin:.6g} or more, whatever is played"
    if best.margin <= offline.TOL_FEASIBLE:
        return f"feasible, but not strictly: {proof}; there is no margin for S-OPS and CV-OPS"
    safe = f"strictly feasible: a policy stays {best.margin:.6g} below every threshold"
    return f"{safe}; no policy does better, since {proof}"


def threshold_ranges(cmdp: CMDP) -> list[Range]:
    """The meaningful range of each threshold."""
    layout, found = cmdp.layout, []
    for i, name in enumerate(cmdp.constraint_names):
        cost = cmdp.mean_costs[i]
        least = backward_induction(layout, cmdp.transitions, cost).value
        largest = layout.steps - backward_induction(layout, cmdp.transitions, 1.0 - cost).value
        found.append(Range(name, float(cmdp.thresholds[i]), least, _least_with_others(cmdp, i), largest))
    return found


def _least_with_others(cmdp: CMDP, i: int) -> float | None:
    others = [j for j in range(cmdp.num_constraints) if j != i]
    if not others:
        return backward_induction(cmdp.layout, cmdp.transitions, cmdp.mean_costs[i]).value
    rest = CMDP(cmdp.layout, cmdp.transitions, BernoulliCosts(cmdp.mean_costs[others]), cmdp.thresholds[others])
    try:
        return offline.optimum(rest, cmdp.mean_costs[i]).value
    except HedgerowError:
        return None


def offline_summary(world: World, feasible: bool = True) -> dict[str, Any]:
    """Best policies of a catalogue entry under its own loss, certified."""
    cmdp, loss = world.cmdp, world.loss
    free = offline.optimum(CMDP(cmdp.layout, cmdp.transitions), loss)
    safest = offline.slater(cmdp)
    policies = {"without constraints": _policy(world, free.policy, free.gap)}
    multipliers: dict[str, float] = {}
    if feasible:
        best = offline.optimum(cmdp, loss)
        policies["optimum"] = _policy(world, best.policy, best.gap)
        multipliers = _by_name(cmdp, best.multipliers)
    policies["safest"] = _policy(world, safest.policy, safest.gap)
    golden, frozen = world.golden, None
    if golden is not None:
        rho = golden.margin if isfinite(golden.margin) else None  # JSON has no infinity
        frozen = {"optimum": golden.optimum, "unconstrained": golden.unconstrained, "rho": rho}
    return {
        "unit": world.unit,
        "policies": policies,
        "price": _price(world, policies),
        "multipliers": multipliers,
        "baselines": baseline_choices(world) if feasible else [],
        "golden": frozen,
    }


def _price(world: World, policies: dict[str, Any]) -> dict[str, Any] | None:
    """The price of the constraint under the world's own loss; None if no policy is feasible."""
    if "optimum" not in policies or not world.cmdp.num_constraints:
        return None
    price = price_of(policies["optimum"]["loss"], policies["without constraints"]["loss"])
    return {"loss": price, "source_value": world.scale.distance(price), "control": is_free(price)}


def _policy(world: World, policy: FloatArray, gap: float) -> dict[str, Any]:
    values = evaluate(world.cmdp, policy, world.loss)
    return {
        "loss": values.loss,
        "source_value": world.source_value(values.loss),
        "costs": _by_name(world.cmdp, values.costs),
        "gap": gap,
    }


# Baselines ------------------------------------------------------------------------------------------------------------
#
# The Slater policy has the largest margin, and often the largest loss. A learner plays its baseline most of the time at
# first. Measured with losses that stay the same: for 10^5 episodes or less a policy of small loss is the better choice,
# even with a tenth of the margin. If the losses have nothing to do with the one for which the policy was chosen, the
# margin matters more (`examples/baselines.py`). All choices here are computed from the true world: a user would *have*
# a policy, and know its costs.


def baseline_choices(world: Any) -> list[dict[str, Any]]:
    """The choices in a world with a loss: name, loss, costs, smallest margin."""
    cmdp, loss = world.cmdp, world.loss
    safest = offline.slater(cmdp)
    if not cmdp.num_constraints or safest.margin <= offline.TOL_FEASIBLE:
        return []
    found = [_choice("Slater: the largest margin", cmdp, loss, safest.policy)]
    for name, share in SHARES.items():
        found.append(_choice(name, cmdp, loss, offline.strictly_feasible(cmdp, share * safest.margin, loss).policy))
    return found + [_choice(NAMES[kind], cmdp, loss, safe.policy) for kind, safe in baselines.offered_by(world).items()]


def _choice(name: str, cmdp: CMDP, loss: FloatArray, policy: FloatArray) -> dict[str, Any]:
    values = evaluate(cmdp, policy, loss)
    margin = float(np.min(cmdp.thresholds - values.costs))
    return {"policy": name, "loss": values.loss, "costs": _by_name(cmdp, values.costs), "margin": margin}


def world_baseline(world: Any, cmdp: CMDP) -> BaselineForecast:
    """The baseline of a forecast for a known world: the world's own, by its budget, or the Slater policy."""
    for kind, safe in baselines.offered_by(world).items():
        return BaselineForecast(np.array(safe.costs), NAMES[kind], np.array(safe.policy))
    safest = offline.slater(cmdp)
    return BaselineForecast(np.array(safest.costs), "the Slater policy: the largest margin", np.array(safest.policy))


def stated_baseline(view: View, stated: str | None, otherwise: BaselineForecast) -> BaselineForecast:
    """The baseline with the costs of `--baseline-costs name=value,...`; the other costs are those of `otherwise`."""
    if not stated:
        return otherwise
    beta = np.array(otherwise.costs)
    given = parsed_costs(stated, view.constraint_names)
    for name, value in given.items():
        beta[view.constraint_names.index(name)] = value
    missing = [name for name in view.constraint_names if name not in given]
    words = "as given" + (f"; for {', '.join(map(repr, missing))} {otherwise.words}" if missing else "")
    return otherwise._replace(costs=np.array(checked_baseline_costs(view, beta, allow_no_margin=False)), words=words)


def parsed_costs(stated: str, names: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE, separated by commas; a number alone is enough where there is one constraint."""
    found: dict[str, float] = {}
    for piece in stated.split(","):
        name, equals, value = (part.strip() for part in piece.rpartition("="))
        if not equals and len(names) == 1:
            name = names[0]
        if name not in names:
            reason = (
                f"there is no constraint {short_repr(name)}{did_you_mean(name, names)}" if name else "it names nothing"
            )
            raise InvalidInput(f"--baseline-costs {short_repr(piece.strip())} is not NAME=VALUE: {reason}")
        try:
            found[name] = float(value)
        except ValueError as error:
            raise InvalidInput(
                f"--baseline-costs {short_repr(piece.strip())}: {short_repr(value)} is not a number"
            ) from error
    return found


# Radii ------------------------------------------------------------------------------------------------------------


def informative_radii(cmdp: CMDP, episodes: int, delta: float) -> list[dict[str, Any]]:
    """Visits, and episodes under the uniform policy, until each kind of radii is informative."""
    layout = cmdp.layout
    often = row_occupancy(layout, occupancy(layout, cmdp.transitions, uniform_policy(layout)))
    often = often[often > 0.0]
    successors, uncertain = int(np.diff(layout.row_start).max()), make_unknowns(layout, 0).num_triples > 0
    rows = []
    for kind in KINDS:
        rule = Radii(kind).rule(layout, cmdp.num_constraints, delta, episodes)
        visits = {
            "cost_below_1": first_visits(partial(_cost_is_below, rule, 1.0)),
            f"cost_below_{GOOD_RADIUS:g}": first_visits(partial(_cost_is_below, rule, GOOD_RADIUS)),
            "transitions": first_visits(partial(_box_says_something, rule, successors)) if uncertain else 0,
        }
        rows.append(
            {
                "radii": kind,
                "visits": visits,
                "episodes_typical_pair": _episodes(visits, float(np.median(often))),
                "episodes_rarest_pair": _episodes(visits, float(often.min())),
            }
        )
    return rows


def first_visits(informative: Callable[[int], bool]) -> int:
    """The least number of visits from which on a radius, which falls with them, is informative."""
    high = 1
    while not informative(high):
        if high >= MOST_VISITS:
            return MOST_VISITS
        high *= 2
    low = high // 2  # not informative
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if informative(middle) else (middle, high)
    return high


def _cost_is_below(rule: RadiusRule, radius: float, visits: int) -> bool:
    return bool(cost_radius(rule, visits) < radius)


def _box_says_something(rule: RadiusRule, successors: int, visits: int) -> bool:
    """Whether P_hat + epsilon < 1 for a row whose successors were seen equally often."""
    return bool(transition_radius(rule, 1.0 / successors, visits) < 1.0 - 1.0 / successors)


def _episodes(visits: dict[str, int], often: float) -> dict[str, int]:
    return {name: int(np.ceil(number / often)) for name, number in visits.items()}


# Time and memory --------------------------------------------------------------------------------------------------


def probe_learners(cmdp: CMDP, episodes: int, delta: float) -> list[dict[str, Any]]:
    """Run every learner for a moment: microseconds per episode, seconds for all of them, bytes of its arrays."""
    return [_probe(cmdp, name, episodes, delta) for name in learners.builtin]


def _probe(cmdp: CMDP, name: str, episodes: int, delta: float) -> dict[str, Any]:
    try:
        part = components.complete_learner({"name": name})
        learner = components.build_learner(
            part, BuiltWorld(cmdp), episodes, delta, 0, losses=oblivious.Switching(period=1000)
        )
    except HedgerowError as error:
        return {"learner": name, "refused": str(error)}
    simulation = Simulation(cmdp, learner, oblivious.Switching(period=1000), 0)
    simulation.advance(min(PROBE_EPISODES, episodes))  # compiled code is loaded here
    first, begun = simulation.done, time.perf_counter()
    while simulation.done < episodes and time.perf_counter() - begun < PROBE_SECONDS:
        simulation.advance(PROBE_EPISODES)
    spent, played = time.perf_counter() - begun, max(1, simulation.done - first)
    per_episode = spent / played if simulation.done > first else 0.0
    arrays = num_bytes((getattr(learner, "core", ()), simulation.referee.scores, simulation.referee.curves))
    return {
        "learner": name,
        "microseconds_per_episode": 1e6 * per_episode,
        "seconds": per_episode * episodes,
        "bytes": arrays,
    }


def num_bytes(value: Any) -> int:
    """The bytes of all arrays in a tree of tuples, bundles and records; bundles share arrays, and each counts once."""
    return sum({array.ctypes.data: array.nbytes for array in _arrays(value)}.values())


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    if isinstance(value, Bundle):
        value = tuple(value.as_dict().values())
    if isinstance(value, tuple):
        for each in value:
            yield from _arrays(each)
    array = value.values if isinstance(value, Record) else value
    if isinstance(array, np.ndarray):
        yield array


def process_bytes() -> int | None:
    """The peak memory of this process, where the system reports it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
