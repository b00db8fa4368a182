"""The grid worlds once more, from what their sources say: tables on the source's scales, without layers or maps.

A twin shares no code with the catalogue. Its best reward is found in two ways, neither of them that of
`hedgerow.planning`: by one linear program over all (step, state, action), and by searching the price of the cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)


class Twin(NamedTuple):
    P: np.ndarray
    """(S, A, S)"""
    reward: np.ndarray
    """(S, A): means"""
    cost: np.ndarray
    """(S, A): means"""
    horizon: int
    start: np.ndarray
    """(S,): a distribution"""
    threshold: float


class Worth(NamedTuple):
    reward: float
    cost: float


# Two ways to the optimum ----------------------------------------------------------------------------------------------


def best_by_program(twin: Twin) -> float:
    """The most reward under the threshold: HiGHS on the occupancies of all steps, unreachable states included."""
    S, A, H = *twin.cost.shape, twin.horizon
    leaves = sparse.kron(sparse.eye(H * S), np.ones((1, A)))
    arrives = sparse.kron(sparse.eye(H, k=-1), twin.P.reshape(S * A, S).T)
    inflow = np.concatenate((twin.start, np.zeros((H - 1) * S)))
    answer = linprog(
        -np.tile(twin.reward.ravel(), H),
        A_ub=np.tile(twin.cost.ravel(), H)[None],
        b_ub=[twin.threshold],
        A_eq=sparse.csr_matrix(leaves - arrives),
        b_eq=inflow,
        method="highs",
    )
    assert answer.status == 0, answer.message
    return -float(answer.fun)


def best_by_prices(twin: Twin) -> float:
    """The most reward under the threshold: the price at which two policies, one on each side of it, do equally well."""
    free, safest = best_at_price(twin, 0.0), best_at_price(twin, np.inf)
    if free.cost <= twin.threshold:
        return free.reward
    assert safest.cost <= twin.threshold
    for _ in range(200):
        price = (free.reward - safest.reward) / (free.cost - safest.cost)
        found = best_at_price(twin, price)
        if found.reward - price * found.cost <= free.reward - price * free.cost + 1e-11:
            share = (twin.threshold - safest.cost) / (free.cost - safest.cost)
            return share * free.reward + (1 - share) * safest.reward
        free, safest = (found, safest) if found.cost > twin.threshold else (free, found)
    raise AssertionError("no price found")


def best_at_price(twin: Twin, price: float) -> Worth:
    """Reward and cost of a policy that is best for reward - price * cost; with an infinite price, of least cost."""
    paid = -twin.cost if np.isinf(price) else twin.reward - price * twin.cost
    V = R = C = np.zeros(len(twin.P))
    for _ in range(twin.horizon):
        action = np.argmax(paid + twin.P @ V, axis=1)
        rows = np.arange(len(action)), action
        V, R, C = (table[rows] + twin.P[rows] @ after for table, after in ((paid, V), (twin.reward, R), (twin.cost, C)))
    return Worth(float(twin.start @ R), float(twin.start @ C))


# The worlds -----------------------------------------------------------------------------------------------------------


def at(s: int, S: int) -> np.ndarray:
    return np.eye(S)[s]


def always_safe_simple() -> Twin:
    stay, move = np.eye(3), np.roll(np.eye(3), 1, axis=1)
    reward, cost = np.array([[0, 1], [0, 2], [0, 3.0]]), np.array([[0, 1.0]] * 3)
    return Twin(np.stack((stay, move), axis=1), reward, cost, 6, np.full(3, 1 / 3), 3)


def always_safe_difficult() -> Twin:
    P, reward, cost = np.zeros((6, 2, 6)), np.zeros((6, 2)), np.zeros((6, 2))
    P[:2, :, 2], P[:2, :, 3] = 0.1, 0.9
    P[2, :, 4] = P[3, :, 5] = P[4, :, 4] = P[5, :, 5] = 1
    reward[2, 1] = reward[3, 0] = 1
    cost[2:4, 0] = 1
    return Twin(P, reward, cost, 3, np.array([0.5, 0.5, 0, 0, 0, 0]), 0.1)


def always_safe_cliff() -> Twin:
    P, reward, cost = np.zeros((24, 4, 24)), np.full((24, 4), -1.0), np.zeros((24, 4))
    for s in range(23):
        for a, (down, right) in enumerate((UP, RIGHT, DOWN, LEFT)):
            r, c = min(max(s // 6 + down, 0), 3), min(max(s % 6 + right, 0), 5)
            falls = r == 3 and 0 < c < 5
            P[s, a, 18 if falls else 6 * r + c] = 1
            reward[s, a] = -100 if falls else -1
            cost[s, a] = r if r in (1, 2) and 0 < c < 5 else 0
    P[23, :, 23], reward[23] = 1, 0
    return Twin(P, reward, cost, 15, at(18, 24), 2)


def con_rl_pits(start: tuple[int, int], goal: tuple[int, int], pits: set[tuple[int, int]]) -> Twin:
    """8 x 8 cells, counted from 0."""
    P, reward, cost = np.zeros((64, 4, 64)), np.zeros((64, 4)), np.zeros((64, 4))
    for s in range(64):
        for a in range(4):
            for b, (down, right) in enumerate((UP, DOWN, LEFT, RIGHT)):
                r, c = min(max(s // 8 + down, 0), 7), min(max(s % 8 + right, 0), 7)
                ended = divmod(s, 8) in {goal, *pits}
                if ended:
                    r, c = divmod(s, 8)
                p, worth = 0.9 * (a == b) + 0.025, 1 / 30 if ended else 1
                P[s, a, 8 * r + c] += p
                reward[s, a] += p * worth * ((r, c) in {goal, *pits})
                cost[s, a] += p * worth * ((r, c) in pits)
    return Twin(P, reward, cost, 30, at(8 * start[0] + start[1], 64), 0.3)


def con_rl_8x8() -> Twin:
    return con_rl_pits((7, 0), (0, 7), {(1, 3), (3, 5), (6, 3)})


def con_rl_grid() -> Twin:
    return con_rl_pits((0, 0), (7, 7), {(2, 3), (2, 6), (5, 1), (5, 2), (6, 1), (6, 4), (6, 6), (7, 3)})


def con_rl_box() -> Twin:
    """All pairs of the eleven open cells; costs and threshold as in the source."""
    cells = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4), (4, 3), (4, 4)]
    goal, pairs = (4, 4), [(agent, box) for agent in cells for box in cells]
    S = len(pairs)
    P, reward, cost = np.zeros((S, 4, S)), np.zeros((S, 4)), np.zeros((S, 4))
    for s, (agent, box) in enumerate(pairs):
        for a in range(4):
            for b, (down, right) in enumerate((UP, DOWN, LEFT, RIGHT)):
                ahead = agent[0] + down, agent[1] + right
                pushed = (box[0] + down, box[1] + right) if ahead == box else box
                blocked = agent == goal or ahead not in cells or pushed not in cells
                after = (agent, box) if blocked else (ahead, pushed)
                y, x = after[1]
                walls = sum(next_to not in cells for next_to in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)))
                p = 0.9 * (a == b) + 0.025
                P[s, a, pairs.index(after)] += p
                reward[s, a] += p * (1 / 30 if agent == goal else after[0] == goal)
                cost[s, a] += p * (walls >= 2) / 30
    return Twin(P, reward, cost, 30, at(pairs.index(((1, 2), (2, 2))), S), 0.1)


def triple_q(threshold: float) -> Twin:
    """The draws of the source's notebook, in its order, on all 400 cells of the plane."""
    draws = np.random.RandomState(1234)
    obstacle = np.zeros((20, 20), dtype=bool)
    obstacle[2:18, 1:19] = draws.rand(16, 18) <= 0.4
    goal = 1, 1 + int(draws.rand() * 17)
    assert (obstacle.sum(), goal) == (105, (1, 16))
    P, reward, cost = np.zeros((400, 4, 400)), np.zeros((400, 4)), np.zeros((400, 4))
    for s in range(400):
        for a, (down, right) in enumerate((UP, DOWN, LEFT, RIGHT)):
            r, c = s // 20 + down, s % 20 + right
            if not (0 < r < 19 and 0 < c < 19):
                r, c = divmod(s, 20)
            P[s, a, 20 * r + c] = 1
            reward[s, a] = 100 if (r, c) == goal else 514**0.5 - np.hypot(r - goal[0], c - goal[1])
            cost[s, a] = obstacle[r, c]
    return Twin(P, reward, cost, 25, at(18 * 20 + 18, 400), threshold)


def from_gymnasium(table: dict, kind: str, horizon: int, threshold: float) -> Twin:
    """`table` is Gymnasium's own P; `kind` says what is counted: hurry, goal or cliff."""
    S = len(table)
    P, reward, cost = np.zeros((S, 4, S)), np.zeros((S, 4)), np.zeros((S, 4))
    terminal = {s for actions in table.values() for rows in actions.values() for _, s, _, ended in rows if ended}
    goal = {S - 1}
    for s in range(S):
        for a in range(4):
            if s in terminal:
                P[s, a, s] = 1
                continue
            for p, after, gained, _ in table[s][a]:
                P[s, a, after] += p
                reward[s, a] += p * (after in goal) if kind == "goal" else -p
                cost[s, a] += p * (gained == -100 if kind == "cliff" else after in terminal - goal)
    return Twin(P, reward, cost, horizon, at(36 if kind == "cliff" else 0, S), threshold)


def o_reps() -> Twin:
    """Reward is minus the loss of the first draw of the source's example."""
    lossless = np.random.RandomState(0).randint(2, size=100)
    marked = {(2, 3), (2, 4), (3, 3), (3, 4), (4, 6), (5, 6), (5, 7), (6, 7)}
    P, reward, cost = np.zeros((100, 2, 100)), np.zeros((100, 2)), np.zeros((100, 2))
    for s in range(100):
        r, c = divmod(s, 10)
        for a in range(2):
            reward[s, a] = -float(lossless[s] != a)
            for b, (down, right) in enumerate((RIGHT, DOWN)):
                if r == 9 or c == 9:
                    down, right = (1, 0) if r < 9 else (0, 1)
                after = min(r + down, 9), min(c + right, 9)
                p = 0.9 if a == b else 0.1
                P[s, a, 10 * after[0] + after[1]] += p
                cost[s, a] += p * (after in marked)
    return Twin(P, reward, cost, 18, at(0, 100), 0.5)
