"""Every kind of public object, on a world: what the tests of short lines and of notebooks look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.importers.tables import TableWorld
from hedgerow.model.knowledge import Knowledge
from hedgerow.report.figures import run_results

HOSTILE = "<script>alert(1)</script> [/x] \x1b[31m\u202e"
SECOND = '"><img src=x onerror=alert(2)>'
EPISODES = 60


def labelled_world() -> hr.CMDP:
    """A small world in which every name is hostile."""
    view = hr.View.of(
        [["home"], ["empty", HOSTILE]],
        ["wait", SECOND],
        thresholds={"delay": 0.75, HOSTILE: 1.5},
        successors={("home", "wait"): ["empty"]},
    )
    layout = view.layout
    transitions = np.concatenate([np.full(n, 1.0 / n) for n in np.diff(layout.row_start)])
    means = np.random.default_rng(0).uniform(0.0, 0.4, (2, layout.num_rows))
    costs = hr.costs.BernoulliCosts(means)
    names = view.constraint_names
    return hr.CMDP(layout, transitions, costs, view.thresholds, constraint_names=names)


def many_labels() -> hr.CMDP:
    """Forty layers, hundreds of long labels, a dozen constraints: too much of everything for one line."""
    layout = hr.Layout((1, *[8] * 40, 1), 5)
    layout = layout.labelled(
        [f"state number {x} with a name that goes on and on" for x in range(layout.num_states)],
        [f"action {a} {HOSTILE}" for a in range(5)],
    )
    transitions = np.concatenate([np.full(n, 1.0 / n) for n in np.diff(layout.row_start)])
    names = [f"constraint {i} of a long list of constraints" for i in range(12)]
    costs = hr.costs.BernoulliCosts(np.random.default_rng(0).uniform(0.0, 0.4, (12, layout.num_rows)))
    return hr.CMDP(layout, transitions, costs, np.full(12, 25.0), constraint_names=names)


def objects(cmdp: hr.CMDP) -> dict[str, Any]:
    """By name; every class that `hedgerow` exports is among them."""
    view, layout = cmdp.view(), cmdp.layout
    loss = np.random.default_rng(1).random(layout.num_rows)
    safest, best = hr.offline.slater(cmdp), hr.offline.optimum(cmdp, loss)
    policy, uniform = hr.Policy(cmdp, best.policy), hr.Policy.uniform(cmdp)
    mixture = hr.Mixture((0.25, policy), (0.75, uniform))
    learners = {
        "SVOPS": hr.SVOPS(view, EPISODES, 0.05, "paper"),
        "SOPS": hr.SOPS(view, EPISODES, 0.05, "sharp", baseline=safest),
        "CVOPS": hr.CVOPS(view, EPISODES, 0.05, "sharp"),
        "BOPS": hr.BOPS(view, EPISODES, 0.05, "sharp", baseline=safest),
        "COPS": hr.COPS(view, EPISODES, 0.05, "sharp", baseline=safest),
        "UOBREPS": hr.UOBREPS(view, EPISODES, 0.05, "paper"),
    }
    run = hr.simulate(cmdp, learners["SOPS"], hr.losses.Fixed(loss), progress=False)
    log = hr.Log.played(cmdp, uniform, 20)
    seen = hr.learners.Statistics(view, EPISODES, 0.05)
    episode = cmdp.play(uniform, np.random.default_rng(0), loss)
    seen.add(episode)
    seen.optimistic_plan()
    known = view.knowing(costs=np.where(cmdp.mean_costs < 0.1, cmdp.mean_costs, np.nan), transitions=cmdp.transitions)
    results = run_results(run, world=HOSTILE)
    fixed = hr.losses.Fixed(loss)
    return {
        **learners,
        **projections(cmdp),
        "layout": layout,
        "cmdp": cmdp,
        "view": view,
        "table world": TableWorld(cmdp, loss),
        "knowing view": known,
        "knowledge": known.knowledge,
        "no knowledge": Knowledge(),
        "bernoulli": hr.costs.BernoulliCosts(cmdp.mean_costs),
        "deterministic": hr.costs.DeterministicCosts(cmdp.mean_costs),
        "beta": hr.costs.BetaCosts(cmdp.mean_costs + 1.0, cmdp.mean_costs + 1.0),
        "empirical": hr.costs.EmpiricalCosts(cmdp.mean_costs[np.newaxis]),
        "policy": policy,
        "mixture": mixture,
        "plan": (plan := learners["SVOPS"].plan()),
        "actions": plan.actions,
        "mixed plan": hr.Plan(mixture, mixture.draw(np.random.default_rng(0)), {f"note_{i}": 0.5 for i in range(9)}),
        "safe policy": hr.SafePolicy(policy, safest.costs),
        "episode": episode,
        "log": log,
        "statistics": seen,
        "planned": seen.planned,
        "estimates": learners["SOPS"].estimates,
        "loss estimates": seen.estimates,
        "optimum": best,
        "slater": safest,
        "evaluation": hr.occupancy.evaluate(cmdp, policy, loss),
        "run": run,
        "ledger": learners["SOPS"].guarantees(),
        "void ledger": hr.SVOPS(view, EPISODES, 0.05, "paper", confidence_scale=0.5).guarantees(),
        "promise": learners["SOPS"].guarantees()["safety"],
        "results": results,
        "cell": results.cells[0],
        "group": results.groups[0],
        "fixed": fixed,
        "iid": hr.losses.IID(seed=3, means=loss),
        "switching": hr.losses.Switching(10, np.stack([loss, 1.0 - loss])),
        "drifting": hr.losses.Drifting(10),
        "walk": hr.losses.RandomWalk(0.1),
        "replay": hr.losses.Replay(np.stack([loss] * 30)),
        "pursuit": hr.losses.Pursuit(),
        "cycle": hr.losses.Cycle(),
        "betrayal": hr.losses.Betrayal(EPISODES),
        "hidden": hr.losses.Hidden(EPISODES),
        "early bird": hr.losses.EarlyBird(loss, EPISODES),
        "tempting": hr.losses.Tempting(np.arange(layout.num_rows) % 2, EPISODES),
        "checked": hr.losses.checked(fixed),
        "checked function": hr.losses.checked(lambda layout, first, count: np.zeros((count, layout.num_rows))),
        "block": fixed.block(layout, 0, 5),
    }


def projections(cmdp: hr.CMDP) -> dict[str, Any]:
    """Problem, settings, answers and certificates."""
    layout = cmdp.layout
    base, zero, one = np.log(np.full(layout.num_triples, 0.1)), cmdp.transitions, cmdp.transitions
    problem = hr.projection.ProjectionProblem(layout, base, zero, one, cmdp.mean_costs, cmdp.thresholds)
    solved = hr.projection.project(problem)
    missed = hr.projection.project(
        hr.projection.ProjectionProblem(layout, base, zero, one, cmdp.mean_costs, 0.0 * cmdp.thresholds - 1.0)
    )
    return {
        "problem": problem,
        "solved": solved,
        "infeasible": missed,
        "settings": hr.projection.ProjectionSettings(),
        "projector": hr.projection.Projector(layout, cmdp.num_constraints),
        "warm start": hr.projection.WarmStart(solved.v, solved.theta),
        "certificate": hr.projection.certify(problem, solved),
        "bad certificate": hr.projection.certify(
            problem, replace(solved, v=solved.v + np.linspace(1.0, 0.0, layout.num_states))
        ),
    }
