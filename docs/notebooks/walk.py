# %% [markdown]
# # A walk through the paper
#
# The paper, *Learning Adversarial MDPs with Stochastic Hard Constraints*, has a dozen ideas that build on each other.
# This page shows them one by one, in a world with only three decision states, so that each idea fits into a picture.
# The page is a program: it was executed to produce the output below, and you can run it yourself.
#
# The symbols are those of the paper. The [cheat sheet](../cheat-sheet.md) has the important ones,
# [Notation](../notation.md) all of them, and the [glossary](../glossary.md) explains the terms.

# %%
from dataclasses import fields, replace
from functools import cache

import numpy as np
import plotly.graph_objects as go

import hedgerow as hr

BLUE, GREEN, RED, GREY = "#0072b2", "#009e73", "#d55e00", "#6e6e6e"


def picture(x_label, y_label, *traces, **layout):
    """A plain figure."""
    axes = {"xaxis_title": x_label, "yaxis_title": y_label, "template": "plotly_white"}
    return go.Figure(
        list(traces), {**axes, "legend_orientation": "h", "legend_y": 1.12, "margin": {"t": 40, "r": 30}, **layout}
    )


# %% [markdown]
# ## 1. The world
#
# You leave home by car or by bike, and arrive dry or wet. Then you take the lift or the stairs. So there are two
# actions, `engine` (car, lift) and `muscle` (bike, stairs). Engines cost *energy*, and an episode may cost at most
# 0.4 of it in expectation. The *loss* is the time that you need.

# %%
trips = {
    "state": ["home", "home", "home", "home", "dry", "dry", "wet", "wet"],
    "action": ["engine", "engine", "muscle", "muscle", "engine", "muscle", "engine", "muscle"],
    "next_state": ["dry", "wet", "dry", "wet", "desk", "desk", "desk", "desk"],
    "probability": [0.9, 0.1, 0.4, 0.6, 1.0, 1.0, 1.0, 1.0],
    "loss": [0.2, 0.2, 0.4, 0.4, 0.1, 0.3, 0.2, 1.0],
    "energy": [0.3, 0.3, 0.0, 0.0, 0.5, 0.0, 0.6, 0.1],
}
world = hr.from_table(trips, thresholds={"energy": 0.4})
layout, P, threshold = world.cmdp.layout, world.cmdp.transitions, 0.4
layout

# %% [markdown]
# Two layers of decisions, then the end: an episode has L = 2 steps. Arrays are flat. The code calls a state-action
# pair (x, a) a *row* and a transition (x, a, x') a *triple*; `P` has one number per transition.

# %%
print(*map(layout.describe_triple, range(layout.num_triples)), sep="\n")

# %% [markdown]
# ## 2. Occupancies
#
# A policy gives the probability of each action in each state. The probability that an episode visits a state-action
# pair is its *occupancy* q(x, a). Expected loss and expected cost are linear in it, ℓᵀq and gᵀq, so planning is a
# linear program.

# %%
policy = hr.Policy.of(world, {"home": {"engine": 0.5, "muscle": 0.5}, "dry": "muscle", "wet": "engine"})
q = hr.occupancy.occupancy(layout, P, policy)
w = hr.occupancy.row_occupancy(layout, q)
names = [f"{x}, {a}" for x in ("home", "dry", "wet") for a in layout.action_labels]
picture("", "probability of a visit", go.Bar(x=names, y=w, marker_color=BLUE))

# %% [markdown]
# Every policy is one point in the plane of loss and cost. The eight dark points are the deterministic policies. All
# others lie between them; those below the threshold are *feasible*. The optimum lies where the boundary of this set
# crosses the threshold, so the optimal policy is randomised.

# %%
rng = np.random.default_rng(0)


def loss_and_cost(some_policy):
    worth = hr.occupancy.evaluate(world, some_policy)
    return worth.loss, worth.costs[0]


shares = np.concatenate(
    (rng.beta(0.3, 0.3, size=(800, 3)), np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T)
)
cloud = np.array([loss_and_cost(np.stack([s, 1 - s], axis=1)) for s in shares])
best = hr.offline.optimum(world)
safest = hr.offline.slater(world)
marker = {"size": 14, "symbol": "star"}
plane = picture(
    "expected loss",
    "expected cost (energy)",
    go.Scatter(
        x=cloud[:-8, 0], y=cloud[:-8, 1], mode="markers", name="policies", marker={"size": 3, "color": "#b8cfe0"}
    ),
    go.Scatter(
        x=cloud[-8:, 0], y=cloud[-8:, 1], mode="markers", name="deterministic", marker={"size": 8, "color": BLUE}
    ),
    go.Scatter(x=[best.value], y=best.costs, mode="markers", name="optimum", marker=marker | {"color": GREEN}),
    go.Scatter(
        x=[loss_and_cost(safest.policy)[0]],
        y=safest.costs,
        mode="markers",
        name="largest margin",
        marker=marker | {"color": GREY},
    ),
)
plane.add_hline(y=threshold, line_color=RED, annotation_text="threshold")

# %% [markdown]
# ## 3. Counts
#
# A learner knows none of these numbers. It plays and counts: N(x, a), the visits to each state-action pair,
# M(x, a, x'), the observed transitions, and the sums of the costs. `hr.learners.Statistics` does the counting. Here
# are the counts after 60 episodes of the uniform policy.

# %%
view, uniform = world.view(), hr.Policy.uniform(world)


@cache
def after(episodes, sets="sharpest", T=20_000):
    """Statistics after so many episodes of the uniform policy."""
    seen, chance = hr.learners.Statistics(view, T, 0.01, sets), np.random.default_rng(1)
    for _ in range(episodes):
        seen.add(world.cmdp.play(uniform, chance, loss=world.loss))
    return seen


seen = after(60)
picture("", "visits N", go.Bar(x=names, y=seen.visits, marker_color=BLUE))

# %% [markdown]
# ## 4. Boxes
#
# The counts give intervals that contain the true values with high probability, for all pairs and episodes
# simultaneously: P̂ ± ε for each transition, ĝ ± ξ for each cost. Together they form the *box* of all models that are
# consistent with the data. The figure shows the interval for P(wet | home, muscle) with the sets of the three presets.
# The true value is 0.6.

# %%
wet = layout.row_start[layout.row("home", "muscle")] + 1
episodes = [10, 30, 100, 300, 1_000, 3_000]
traces = []
for sets, colour, shift in (("paper", GREY, 1.0), ("sharp", BLUE, 1.1), ("sharpest", GREEN, 1.2)):
    ends = np.array([(s.lower[wet], s.upper[wet]) for s in (after(n, sets) for n in episodes)])
    middle, half = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2
    traces.append(
        go.Scatter(
            x=np.array(episodes) * shift, y=middle, mode="markers", name=sets,
            error_y={"type": "data", "array": half, "width": 5}, marker={"color": colour},
        )
    )  # fmt: skip
boxes = picture("episodes", "P(wet | home, muscle)", *traces, xaxis_type="log", yaxis_range=[0, 1])
boxes.add_hline(y=0.6, line_color=RED, line_dash="dot", annotation_text="truth")

# %% [markdown]
# For hundreds of episodes the interval of the paper is [0, 1]: it contains no information. This is why safe learning
# takes so long, and why [sharper intervals](../choose-a-learner.md#which-preset) matter.
#
# ## 5. Upper occupancy bounds
#
# The learner observes the loss of a pair only when it visits that pair. It corrects for this by importance weighting:
# ℓ̂ = ℓ / (u + γ) for visited pairs, and 0 otherwise. The true probability of a visit is unknown, so u is the largest
# probability under any model in the box. For the state `wet`, one step from home, that is
# Σ_a π(a | home) · (largest P(wet | home, a)).

# %%
truth = hr.occupancy.state_occupancy(layout, hr.occupancy.occupancy(layout, P, uniform))[2]
wet_by_engine = layout.row_start[layout.row("home", "engine")] + 1
bounds = [0.5 * s.upper[wet_by_engine] + 0.5 * s.upper[wet] for s in (after(n) for n in episodes)]
uob = picture(
    "episodes",
    "probability of being wet",
    go.Scatter(x=episodes, y=bounds, mode="lines+markers", name="upper occupancy bound u", line_color=BLUE),
    xaxis_type="log",
    yaxis_range=[0, 1.05],
)
uob.add_hline(y=truth, line_color=RED, line_dash="dot", annotation_text="truth")

# %% [markdown]
# An overestimated u makes the loss estimate too small, never too large: the learner is *optimistic* about pairs that
# it has rarely seen.
#
# ## 6. The projection
#
# After each episode the learner lowers the weight of pairs with a large loss: q̃ = q̂ · exp(−η ℓ̂). The result is not
# an occupancy. The learner therefore takes the closest one in relative entropy among all occupancies that some model in
# the box allows and whose *optimistic* cost (lower ends of the cost intervals) satisfies the threshold. This is
# Problem (PROJ), one convex program per episode. The example starts from the uniform policy, takes one step against
# the loss, and projects, with the sets after 10,000 episodes.

# %%
seen = after(10_000)
eta = 8.0
base = np.log(hr.occupancy.occupancy(layout, P, uniform)) - eta * world.loss[layout.row_of_triple]
problem = hr.projection.ProjectionProblem(
    layout, base, seen.lower, seen.upper, costs=seen.cost_lower.T.copy(), thresholds=view.thresholds
)
free = hr.projection.project(hr.projection.ProjectionProblem(layout, base, seen.lower, seen.upper))
nearest = hr.projection.project(problem)
nearest.status.name, float(nearest.theta[0].round(3))

# %% [markdown]
# θ > 0 means that the constraint is active: without it the step would have gone further. In the plane of the true loss
# and the true cost:

# %%
points = {
    "before": uniform,
    "after the step, no constraint": hr.occupancy.induced_policy(layout, np.exp(free.log_occupancy)),
    "after the projection": hr.occupancy.induced_policy(layout, np.exp(nearest.log_occupancy)),
}
step = picture(
    "expected loss",
    "expected cost (energy)",
    go.Scatter(
        x=cloud[:-8, 0], y=cloud[:-8, 1], mode="markers", name="policies", marker={"size": 3, "color": "#d5e2ec"}
    ),
    *(
        go.Scatter(x=[x], y=[y], mode="markers", name=name, marker={"size": 13, "color": colour})
        for (name, point), colour in zip(points.items(), (GREY, RED, BLUE), strict=True)
        for x, y in [loss_and_cost(point)]
    ),
)
step.add_hline(y=threshold, line_color=RED, annotation_text="threshold")

# %% [markdown]
# The blue point may lie above the threshold, because the projection uses optimistic costs. This is SV-OPS: its
# violations shrink with the intervals.
#
# ## 7. The certificate
#
# A certificate verifies the solution independently of the solver, by conditions that only the true projection
# satisfies: it is an occupancy, inside the boxes, within the thresholds, and its distance equals a lower bound that is
# valid for *every* feasible point. For the exact solution all residuals below would be 0. A perturbation of 0.0001 is
# clearly detected.

# %%
proof = hr.projection.certify(problem, nearest)
spoilt = replace(nearest, log_occupancy=nearest.log_occupancy + 1e-4 * rng.standard_normal(layout.num_triples))
kinds = [field.name for field in fields(proof) if field.name != "absolute_gap"]
traces = [
    go.Bar(x=kinds, y=[max(abs(getattr(some, kind)), 1e-17) for kind in kinds], name=name, marker_color=colour)
    for name, some, colour in (
        ("the solution", proof, GREEN),
        ("perturbed by 0.0001", hr.projection.certify(problem, spoilt), RED),
    )
]
picture("", "residual", *traces, yaxis_type="log", yaxis_exponentformat="power")

# %% [markdown]
# ## 8. Mixing
#
# S-OPS must be safe *in every episode*. It computes U, the cost of its learned policy under the worst model in the
# box, and mixes this policy with a baseline whose cost β is known to be below the threshold α. It plays the baseline
# with probability λ, drawn once per episode, where λ is the smallest value with λβ + (1 − λ)U ≤ α.

# %%
own = hr.Policy(world, points["after the projection"])
beta, lambdas = float(safest.costs[0]), np.linspace(0, 1, 50)
lines = []
for n, colour in ((100, GREY), (1_000, BLUE), (10_000, GREEN)):
    worst = float(after(n).robust_cost(own)[0])
    lam = max(0.0, (worst - threshold) / (worst - beta))
    lines.append(
        go.Scatter(x=lambdas, y=lambdas * beta + (1 - lambdas) * worst, name=f"after {n:,} episodes", line_color=colour)
    )
    lines.append(
        go.Scatter(
            x=[lam],
            y=[lam * beta + (1 - lam) * worst],
            mode="markers",
            showlegend=False,
            marker={"size": 11, "color": colour},
        )
    )
mix = picture("λ, the weight of the baseline", "worst-case cost of the mixture", *lines)
mix.add_hline(y=threshold, line_color=RED, annotation_text="threshold")

# %% [markdown]
# With more data the worst case costs less, and λ can be smaller.
#
# ## 9. λ over time
#
# Finally 20,000 episodes of the whole loop, with losses that an adversary switches every 1,000 episodes. λ falls, and
# the margin stays above 0.

# %%
learner = hr.SOPS(view, episodes=20_000, delta=0.01, preset="sharpest", baseline=safest)
run = hr.simulate(world, learner, hr.losses.Switching(period=1_000, seed=3), seed=0, progress=False)
run.plot("mixing")

# %%
run.plot("margin")

# %% [markdown]
# No episode was unsafe:

# %%
run

# %% [markdown]
# The ledger lists what the learner guarantees, and the theorem behind each guarantee.

# %%
learner.guarantees()

# %% [markdown]
# ## Where to go next
#
# - [The learners](../learners.md): the algorithms line by line, beside the code.
# - [The projection](../projection.md): how the program of section 6 is solved in microseconds.
# - [Paper map](../paper-map.md): where each equation is implemented, and where the code departs from the paper.
# - [Evidence](../evidence.md): the paper's theorems, checked on running code.
