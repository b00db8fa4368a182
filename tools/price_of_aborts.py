"""The price of aborted episodes: the floor that unknown costs leave under U, the bound of a policy's expected cost.

Counts are the expected ones after T episodes of one policy, an iterate near the optimum, of which a share is aborted at
a step that is drawn uniformly. Unknown visits go to every pair that could have been visited from there on, or, where
actions were drawn beforehand and followed, to the drawn ones. Intervals are those of the preset `sharpest`.
"""

from __future__ import annotations

from math import log

import numpy as np

import hedgerow as hr

EPISODES, DELTA, SPREAD = 10**6, 0.01, 0.02
WORLDS = {"(1,3,3,1) x 3": ((1, 3, 3, 1), 3), "(1,5,5,5,1) x 4": ((1, 5, 5, 5, 1), 4)}


def reach_from(
    layout: hr.Layout, transitions: np.ndarray, policy: np.ndarray, layer: int, start: np.ndarray
) -> np.ndarray:
    """(num_states,): the probability of each state from `layer` on, beginning with `start` (num_states,)."""
    reach = start.copy()
    for row in range(layout.num_rows):
        x = row // layout.num_actions
        if layout.layer_of_state[x] >= layer:
            for j in range(layout.row_start[row], layout.row_start[row + 1]):
                reach[layout.successor[j]] += reach[x] * policy[row] * transitions[j]
    return reach


def excess(world: hr.CMDP, policy: np.ndarray, share: float, drawn: bool) -> float:
    """U - C of the first constraint, with a share of aborted episodes."""
    layout, P, g = world.layout, world.transitions, world.costs.means[0]
    start = np.zeros(layout.num_states)
    start[0] = 1.0
    whole = reach_from(layout, P, policy, 0, start)
    seen, unknown = (1.0 - share) * whole, np.zeros(layout.num_rows)
    for k in range(layout.steps):  # aborted in layer k
        before = layout.layer_of_state < k
        seen[before] += share / layout.steps * whole[before]
        at = np.where(layout.layer_of_state == k, whole, 0.0)
        for x in np.flatnonzero(at):
            possible = reach_from(
                layout, P > 0.0, policy if drawn else np.ones(layout.num_rows), k, np.eye(layout.num_states)[x]
            )
            states = np.repeat(np.minimum(possible[: layout.num_decision_states], 1.0) > 0.0, layout.num_actions)
            unknown += share / layout.steps * at[x] * states * (policy if drawn else 1.0)
    level = log(2.0 * layout.num_triples / DELTA)
    visits = np.rint(EPISODES * np.repeat(seen[: layout.num_decision_states], layout.num_actions) * policy).astype(int)
    gone = np.rint(EPISODES * unknown).astype(int)
    upper = hr.confidence.kt_interval(visits + gone, np.minimum(visits * g + gone, visits + gone), level)[1]
    moves = visits[layout.row_of_triple]
    low, high = hr.confidence.kt_interval(moves, moves * P, level)
    values = np.zeros(layout.num_states)
    for x in range(layout.num_decision_states - 1, -1, -1):
        for row in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            own = slice(layout.row_start[row], layout.row_start[row + 1])
            values[x] += policy[row] * (upper[row] + worst(low[own], high[own], values[layout.successor[own]]))
    cost = float(np.repeat(whole[: layout.num_decision_states], layout.num_actions) @ (policy * g))
    return float(min(values[0], layout.steps) - cost)


def worst(low: np.ndarray, high: np.ndarray, values: np.ndarray) -> float:
    """The largest p . V of distributions between `low` and `high`."""
    p, left = low.copy(), 1.0 - low.sum()
    for j in np.argsort(-values):
        more = min(left, high[j] - low[j])
        p[j] += more
        left -= more
    return float(p @ values)


def main() -> None:
    for name, (layers, actions) in WORLDS.items():
        made = hr.worlds.make("random-layered", layers=layers, actions=actions, constraints=1)
        best = hr.offline.optimum(made.cmdp, made.loss).policy
        policy = (1.0 - SPREAD) * best + SPREAD / actions
        found = [
            excess(made.cmdp, policy, share, drawn)
            for share, drawn in ((0.0, False), (0.01, False), (0.1, False), (0.01, True), (0.1, True))
        ]
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in found) + " |")


if __name__ == "__main__":
    main()
