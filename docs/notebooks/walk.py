# %% [markdown]
# # A walk through the paper
#
# The paper, *Learning Adversarial MDPs with Stochastic Hard Constraints*, has a dozen ideas that build on each other.
# Here they are one by one, on a world so small that each fits into a picture: three states in which something is
# decided. The whole page is a program. It was run when this page was built, and you can run it too.
#
# Symbols are the paper's; [Notation](../notation.md) has them all, the [glossary](../glossary.md) has the words.

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
# Two layers of decisions, then the end: an episode has L = 2 steps. Arrays are flat. A *row* is a pair (state,
# action), a *triple* adds the next state; `P` has one number per triple.

# %%
print(*map(layout.describe_triple, range(layout.num_triples)), sep="\n")

# %% [markdown]
# ## 2. Occupancies
#
# A policy says how likely each action is in each state. What an episode then passes, and how likely, is its
# *occupancy* q(x, a). Expected loss and cost are sums over it, ℓᵀq and gᵀq. That makes planning a linear program.

# %%
policy = hr.Policy.of(world, {"home": {"engine": 0.5, "muscle": 0.5}, "dry": "muscle", "wet": "engine"})
q = hr.occupancy.occupancy(layout, P, policy)
w = hr.occupancy.row_occupancy(layout, q)
names = [f"{x}, {a}" for x in ("home", "dry", "wet") for a in layout.action_labels]
picture("", "probability of passing it", go.Bar(x=names, y=w, marker_color=BLUE))

# %% [markdown]
# Every policy is one point in the plane of loss and cost. The eight corners are the deterministic ones. All others
# fill the space between, and below the threshold they are *feasible*. The optimum lies where the edge meets the
# threshold, so it has to toss a coin somewhere.

# %%
rng = np.random.default_rng(0)


def loss_and_cost(some_policy):
    worth = hr.occupancy.evaluate(world, some_policy)
    return worth.loss, worth.costs[0]


shares = np.concatenate(
    (rng.beta(0.3, 0.3, size=(3_000, 3)), np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T)
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
        name="most careful",
        marker=marker | {"color": GREY},
    ),
)
plane.add_hline(y=threshold, line_color=RED, annotation_text="threshold")

# %% [markdown]
# ## 3. Counts
#
# A learner knows none of this. It plays, and counts: N(x, a), how often a pair was visited, M(x, a, x'), where it
# went, and the sums of the costs. `hr.Statistics` does the counting. Here are 60 episodes of the uniform policy.

# %%
view, uniform = world.view(), hr.Policy.uniform(world)


@cache
def after(episodes, radii="kt", T=20_000):
    """Statistics after so many episodes of the uniform policy."""
    seen, chance = hr.Statistics(view, T, 0.01, radii=radii), np.random.default_rng(1)
    for _ in range(episodes):
        seen.add(world.cmdp.play(uniform, chance, loss=world.loss))
    return seen


seen = after(60)
picture("", "visits N", go.Bar(x=names, y=seen.visits, marker_color=BLUE))

# %% [markdown]
# ## 4. Boxes
#
# From counts come intervals that hold the truth with high probability, for all pairs and episodes at once: P̂ ± ε for
# each triple, ĝ ± ξ for each cost. Together they are the *box* of all worlds that the data still allow. Here is the
# interval of P(wet | home, muscle), by the radii of the three presets. The truth is 0.6.

# %%
wet = layout.row_start[layout.row("home", "muscle")] + 1
episodes = [10, 30, 100, 300, 1_000, 3_000]
traces = []
for radii, preset, colour, shift in (
    ("paper", "paper", GREY, 1.0),
    ("tight", "sharp", BLUE, 1.1),
    ("kt", "sharpest", GREEN, 1.2),
):
    ends = np.array([(s.lower[wet], s.upper[wet]) for s in (after(n, radii) for n in episodes)])
    middle, half = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2
    traces.append(
        go.Scatter(
            x=np.array(episodes) * shift, y=middle, mode="markers", name=preset,
            error_y={"type": "data", "array": half, "width": 5}, marker={"color": colour},
        )
    )  # fmt: skip
boxes = picture("episodes", "P(wet | home, muscle)", *traces, xaxis_type="log", yaxis_range=[0, 1])
boxes.add_hline(y=0.6, line_color=RED, line_dash="dot", annotation_text="truth")

# %% [markdown]
# For hundreds of episodes the printed interval says nothing at all. That is why safe learning takes so long, and why
# [sharper intervals](../choose-a-learner.md#which-preset) matter.
#
# ## 5. Upper occupancy bounds
#
# The learner sees the loss of a pair only if it gets there. To be fair to pairs that are seldom visited, it divides
# by the probability of getting there: ℓ̂ = ℓ / (u + γ) on the way, else 0. The true probability is unknown, so u is
# the largest one that any world in the box allows. For `wet`, one step from home, that is Σ_a π(a | home) · (largest
# P(wet | home, a)).

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
# Too large a u makes the estimate too small, never too large: the learner is *optimistic* about what it has not seen.
#
# ## 6. The projection
#
# After each episode the learner makes pairs that lost much less likely: q̃ = q̂ · exp(−η ℓ̂). That is no occupancy
# any more. So it takes the nearest one, in relative entropy, among all occupancies that some world in the box allows
# and whose *optimistic* cost (lower ends of the cost intervals) keeps the threshold. This is Problem (PROJ), one
# convex program per episode. Here: start from the uniform policy, punish all that is slow, and project, with the sets
# after 10,000 episodes.

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
# θ > 0 says that the constraint binds: without it the step would have gone further. In the plane of loss and cost
# (true loss and cost of the policies):

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
# The blue point may lie above the line: the projection used optimistic costs. That is SV-OPS, whose violations shrink
# as the intervals do.
#
# ## 7. The certificate
#
# Who believes a solver? A certificate checks the answer by conditions that only the true projection satisfies: it is
# an occupancy, inside the boxes, within the thresholds, and its distance equals a lower bound that holds for *every*
# answer. All numbers below would be 0 for the exact one. Spoil the answer a little, and it shows.

# %%
proof = hr.projection.certify(problem, nearest)
spoilt = replace(nearest, log_occupancy=nearest.log_occupancy + 1e-4 * rng.standard_normal(layout.num_triples))
kinds = [field.name for field in fields(proof) if field.name != "absolute_gap"]
traces = [
    go.Bar(x=kinds, y=[max(abs(getattr(some, kind)), 1e-17) for kind in kinds], name=name, marker_color=colour)
    for name, some, colour in (
        ("the answer", proof, GREEN),
        ("spoilt by 0.0001", hr.projection.certify(problem, spoilt), RED),
    )
]
picture("", "residual", *traces, yaxis_type="log", yaxis_exponentformat="power")

# %% [markdown]
# ## 8. Mixing
#
# S-OPS must be safe *in every episode*. It computes how much its own policy could cost in the worst world that the
# box allows, U, and mixes it with a baseline whose cost β is known to be below the threshold α. One coin per episode,
# and λ just large enough: λβ + (1 − λ)U ≤ α.

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
mix = picture("λ, the weight of the baseline", "largest possible cost of the mixture", *lines)
mix.add_hline(y=threshold, line_color=RED, annotation_text="threshold")

# %% [markdown]
# The more is known, the less the worst world costs, and the smaller λ may be.
#
# ## 9. λ over time
#
# Now the whole loop, 20,000 times, with losses that an adversary switches every 1,000 episodes. λ falls, and the margin
# stays above 0.

# %%
learner = hr.SOPS(view, episodes=20_000, delta=0.01, preset="sharpest", baseline=safest)
run = hr.simulate(world, hr.losses.Switching(period=1_000, seed=3), learner, seed=0, progress=False)
run.plot("mixing")

# %%
run.plot("margin")

# %% [markdown]
# No episode was unsafe:

# %%
run

# %% [markdown]
# And what does the learner promise? Its ledger says it, with the theorem behind each line.

# %%
learner.guarantees()

# %% [markdown]
# ## Where to go next
#
# - [The learners](../learners.md): the algorithms line by line, beside the code.
# - [The projection](../projection.md): how the program of section 6 is solved in microseconds.
# - [Paper map](../paper-map.md): every equation, where it lives, and where the code departs from the text.
# - [Evidence](../evidence.md): the paper's theorems, checked on running code.
