"""Could eight learners share the lanes of vector registers, with kernels compiled from the same source as now?

    python tools/lanes_study.py                # compiles and measures for a minute or two
    python tools/lanes_study.py --branches     # counts what kernels decide by branches; a second

The projection without constraints, a Newton method for its dual, is written once below and compiled twice: for numbers,
and for a type of eight numbers, one per learner. Of these `x > y` is eight truths, `pick` takes the place of a branch,
and a loop goes on while `any_of` the learners needs it. The tool prints the time per learner and projection of both,
and of the package's solver from the same start, all called in compiled loops.
docs/decisions/0033-one-learner-per-lane.md says what follows.
"""

from __future__ import annotations

import argparse
import ast
import math
import operator
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.extending import intrinsic, overload

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import maximise_dual
from hedgerow.projection.problem import ProjectionProblem, make_workspace
from hedgerow.projection.vectors import LANES, Lanes, _exponential, _logarithm, ir

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bench.mirror_steps import SIZES, Size, mirror_step  # noqa: E402

TOL, STEPS, HALVINGS, TINY = 1e-10, 60, 40, 1e-300
TURNS, SECONDS = 15, 0.03
FOLDERS = ("projection", "confidence", "learners/ops")
DECISIONS = (ast.If, ast.IfExp, ast.While)

# Eight numbers, or eight truths, as a type ----------------------------------------------------------------------------


class Eight(types.Type):
    """A vector register, one learner per lane."""

    def __init__(self, name: str, element: Any) -> None:
        self.vector = ir.VectorType(element, LANES)
        super().__init__(name=name)


NUMBERS, TRUTHS = Eight("numbers", ir.DoubleType()), Eight("truths", ir.IntType(1))


@register_default(Eight)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Eight) -> None:
        super().__init__(manager, kind, kind.vector)  # type: ignore[no-untyped-call]


def _made(count: int, result: Any, write: Callable[[Lanes, Any], Any]) -> Any:
    """A function of `count` arguments whose instructions `write` writes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return write(Lanes(context, builder, signature, values, ir.IntType(64)(LANES)), values)

    typed: dict[int, Any] = {
        1: lambda context, a: (result(a), generate),
        2: lambda context, a, b: (result(a, b), generate),
        3: lambda context, a, b, c: (result(a, b, c), generate),
    }
    return intrinsic(typed[count])


def _any_code(lanes: Lanes, values: Any) -> Any:
    bits = ir.IntType(LANES)
    return lanes.builder.icmp_unsigned("!=", lanes.builder.bitcast(values[0], bits), bits(0))


def _root_code(lanes: Lanes, values: Any) -> Any:
    kind = ir.FunctionType(lanes.double, [lanes.double])
    return lanes.builder.call(lanes.builder.module.declare_intrinsic("llvm.sqrt.v8f64", fnty=kind), values)


def _place(lanes: Lanes, index: Any) -> Any:
    return lanes.builder.mul(index, index.type(LANES))


def _put_code(lanes: Lanes, values: Any) -> Any:
    lanes.store(values[2], 0, _place(lanes, values[1]))
    return lanes.context.get_dummy_value()


_spread = _made(1, NUMBERS, lambda lanes, values: lanes.spread(values[0], lanes.double))
_exp = _made(1, NUMBERS, lambda lanes, values: _exponential(lanes, values[0]))
_log = _made(1, NUMBERS, lambda lanes, values: _logarithm(lanes, values[0]))
_root = _made(1, NUMBERS, _root_code)
_any = _made(1, types.boolean, _any_code)
_pick = _made(3, NUMBERS, lambda lanes, values: lanes.builder.select(*values))
_get = _made(2, NUMBERS, lambda lanes, values: lanes.load(0, _place(lanes, values[1]), lanes.double))
_put = _made(3, types.void, _put_code)


def _operator(function: Any, result: Any, argument: Any, instruction: str, *first: str) -> None:
    """Give an operator its meaning for eights; a number beside eight numbers is spread."""
    code = _made(2, result, lambda lanes, values: getattr(lanes.builder, instruction)(*first, *values))

    def choose(a: Any, b: Any) -> Any:
        if a == argument and b == argument:
            return lambda a, b: code(a, b)
        if argument == NUMBERS and a == NUMBERS and isinstance(b, types.Float):
            return lambda a, b: code(a, _spread(b))
        if argument == NUMBERS and b == NUMBERS and isinstance(a, types.Float):
            return lambda a, b: code(_spread(a), b)
        return None

    overload(function, strict=False)(choose)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operator(_function, NUMBERS, NUMBERS, _instruction)
_operator(operator.lt, TRUTHS, NUMBERS, "fcmp_ordered", "<")
_operator(operator.gt, TRUTHS, NUMBERS, "fcmp_ordered", ">")
_operator(operator.and_, TRUTHS, TRUTHS, "and_")
overload(math.exp)(lambda a: (lambda a: _exp(a)) if a == NUMBERS else None)
overload(math.log)(lambda a: (lambda a: _log(a)) if a == NUMBERS else None)
overload(math.sqrt)(lambda a: (lambda a: _root(a)) if a == NUMBERS else None)


def _choose(one: Any, eight: Any) -> Any:
    """A function of the source that means one thing for numbers and another for eights, and arrays of them."""

    def stub(*arguments: Any) -> Any:
        raise NotImplementedError("only compiled code calls this")

    def is_eight(kind: Any) -> bool:
        return isinstance(kind, Eight) or (isinstance(kind, types.Array) and kind.ndim == 2)

    by_count: dict[int, Any] = {
        1: lambda a: eight if is_eight(a) else one,
        2: lambda a, b: eight if is_eight(a) else one,
        3: lambda a, b, c: eight if is_eight(a) else one,
    }
    overload(stub, strict=False)(by_count[one.__code__.co_argcount])
    return stub


def _set(a: Any, b: int, c: Any) -> None:
    a[b] = c


get = _choose(lambda a, b: a[b], lambda a, b: _get(a, b))
put = _choose(_set, lambda a, b, c: _put(a, b, c))
pick = _choose(lambda a, b, c: b if a else c, lambda a, b, c: _pick(a, b, c))
any_of = _choose(lambda a: a, lambda a: _any(a))

# The source -----------------------------------------------------------------------------------------------------------
#
#     g(v) = - sum_k ln Z_k,   Z_k = sum of wt e^{v(x) - h} over the rows of layer k,   h = sum p (v(x') + ln(p / pt))
#
# A problem is (pt, lower, upper, wt). Rows lead to the whole next layer; blocks of matrices stand one after the other.

compiled = njit(error_model="numpy", nogil=True)


@compiled
def solve_row(at: int, there: int, width: int, problem: Any, v: Any, p: Any, free: Any) -> Any:
    """Write p of a row within its box and who is free; return h. See `hedgerow.projection.rows.find_bounds`."""
    pt, lower, upper, _ = problem
    zero = 0.0 * get(v, there)
    one = zero + 1.0
    for j in range(width):
        put(p, at + j, get(pt, at + j) * math.exp(zero - get(v, there + j)))
        put(free, at + j, one)
    rest, scale = one, one
    for _ in range(width + 1):
        total, above, below = zero, zero, zero
        for j in range(width):
            total = total + get(free, at + j) * get(p, at + j)
        scale = pick(rest > 0.0, rest, zero) / pick(total > 0.0, total, one)
        for j in range(width):
            x = get(p, at + j) * scale
            over, under = x - get(upper, at + j), get(lower, at + j) - x
            above = above + get(free, at + j) * pick(over > 0.0, over, zero)
            below = below + get(free, at + j) * pick(under > 0.0, under, zero)
        if not any_of(above + below > 0.0):
            break
        # Fix the violators of the heavier side. Learners that are done have none.
        for j in range(width):
            weight = get(p, at + j)
            limit = pick(above < below, get(lower, at + j), get(upper, at + j))
            beyond = pick(above < below, limit - weight * scale, weight * scale - limit)
            leaves = (beyond > 0.0) & (get(free, at + j) > 0.5)
            put(p, at + j, pick(leaves, limit, weight))
            put(free, at + j, pick(leaves, zero, get(free, at + j)))
            rest = rest - pick(leaves, limit, zero)
    h = rest * math.log(pick(scale > TINY, scale, one))
    for j in range(width):
        x, held = get(p, at + j), get(free, at + j) < 0.5
        if any_of(held):
            ratio = pick(x > TINY, x, one) / get(pt, at + j)
            h = h + pick(held & (x > TINY), x * (get(v, there + j) + math.log(ratio)), zero)
        put(p, at + j, pick(held, x, x * scale))
    return h


@compiled
def evaluate(start: IntArray, actions: int, problem: Any, v: Any, p: Any, free: Any, w: Any) -> Any:
    """g(v); writes p, and w of mass 1 in each layer."""
    value, at = 0.0 * get(v, 0), 0
    for k in range(len(start) - 2):
        mass, width = 0.0 * value, start[k + 2] - start[k + 1]
        for row in range(start[k] * actions, start[k + 1] * actions):
            h = solve_row(at, start[k + 1], width, problem, v, p, free)
            weight = get(problem[3], row) * math.exp(get(v, row // actions) - h)
            put(w, row, weight)
            mass = mass + weight
            at += width
        for row in range(start[k] * actions, start[k + 1] * actions):
            put(w, row, get(w, row) / mass)
        value = value - math.log(mass)
    return value


@compiled
def build(start: IntArray, actions: int, p: Any, free: Any, w: Any, D: Any, C: Any, g: Any) -> Any:
    """Diagonal blocks D (their upper halves), couplings C, gradient g; return the largest |gradient|."""
    zero = 0.0 * get(w, 0)
    worst, at, d, c = zero, 0, 0, 0
    for x in range(start[-1]):
        put(g, x, zero)
    for i in range(len(D)):
        put(D, i, zero)
    for k in range(len(start) - 2):
        n, width = start[k + 1] - start[k], start[k + 2] - start[k + 1]
        for x in range(n):
            out, row = zero, c + x * width
            for j in range(width):
                put(C, row + j, zero)
            for a in range(actions):
                weight, held, mass = get(w, (start[k] + x) * actions + a), zero, zero
                out = out + weight
                for j in range(width):
                    put(C, row + j, get(C, row + j) + weight * get(p, at + j))
                    held = held + (1.0 - get(free, at + j))
                    mass = mass + get(free, at + j) * get(p, at + j)
                # At bounds w (p p^T + diag(p_F) - p_F p_F^T / mass_F) is not diagonal; F are those that are free.
                if any_of(held > 0.5) and k < len(start) - 3:
                    mass = pick(mass > 0.0, mass, zero + 1.0)
                    for i in range(width):
                        pi = pick(held > 0.5, weight * get(p, at + i), zero)
                        fi = pi * get(free, at + i)
                        here = d + n * n + i * width
                        put(D, here + i, get(D, here + i) - pi + fi)
                        for j in range(i, width):
                            more = (pi - fi * get(free, at + j) / mass) * get(p, at + j)
                            put(D, here + j, get(D, here + j) + more)
                at += width
            for j in range(width):
                put(g, start[k + 1] + j, get(g, start[k + 1] + j) + get(C, row + j))
            inflow = get(g, start[k] + x) if k > 0 else zero + 1.0
            put(g, start[k] + x, inflow - out)
            put(D, d + x * n + x, get(D, d + x * n + x) + out + inflow)
            size = pick(inflow > out, inflow - out, out - inflow)
            worst = pick(size > worst, size, worst)
        d += n * n
        c += n * width
    return worst


@compiled
def solve(start: IntArray, D: Any, C: Any, g: Any, step: Any) -> None:
    """Factor the system block by block and solve it for the step."""
    d, c, last = 0, 0, len(start) - 3
    for x in range(start[-2]):
        put(step, x, get(g, x))
    for k in range(last + 1):
        n, width = start[k + 1] - start[k], start[k + 2] - start[k + 1] if k < last else 0
        for i in range(n):
            row, own = d + i * n, c + i * width
            inverse = 1.0 / math.sqrt(get(D, row + i))
            solved = get(step, start[k] + i) * inverse
            put(step, start[k] + i, solved)
            for j in range(i, n):
                put(D, row + j, get(D, row + j) * inverse)
            for j in range(width):
                put(C, own + j, get(C, own + j) * inverse)
            for r in range(i + 1, n):
                entry = get(D, row + r)
                put(step, start[k] + r, get(step, start[k] + r) - solved * entry)
                for j in range(r, n):
                    put(D, d + r * n + j, get(D, d + r * n + j) - entry * get(D, row + j))
                for j in range(width):
                    put(C, c + r * width + j, get(C, c + r * width + j) - entry * get(C, own + j))
            for r in range(width):
                entry, there = get(C, own + r), d + n * n + r * width
                put(step, start[k + 1] + r, get(step, start[k + 1] + r) + solved * entry)
                for j in range(r, width):
                    put(D, there + j, get(D, there + j) - entry * get(C, own + j))
        d += n * n
        c += n * width
    for k in range(last, -1, -1):
        n, width = start[k + 1] - start[k], start[k + 2] - start[k + 1] if k < last else 0
        d -= n * n
        c -= n * width
        for i in range(n - 1, -1, -1):
            value = get(step, start[k] + i)
            for j in range(width):
                value = value + get(C, c + i * width + j) * get(step, start[k + 1] + j)
            for j in range(i + 1, n):
                value = value - get(D, d + i * n + j) * get(step, start[k] + j)
            put(step, start[k] + i, value / get(D, d + i * n + i))


@compiled
def project(start: IntArray, actions: int, problem: Any, work: Any) -> None:
    """Maximise g from v = 0 until |gradient| <= TOL; write v, w and the number of steps."""
    v, p, free, w, D, C, g, step, trial, steps = work
    for x in range(len(v)):
        put(v, x, 0.0 * get(problem[3], 0))
    value = evaluate(start, actions, problem, v, p, free, w)
    taken = 0.0 * value
    for _ in range(STEPS):
        worst = build(start, actions, p, free, w, D, C, g)
        if not any_of(worst > TOL):
            break
        solve(start, D, C, g, step)
        slope = 0.0 * value
        for x in range(start[-2]):
            slope = slope + get(g, x) * get(step, x)
        # Who has arrived waits for the others, with steps of length 0.
        length = pick(worst > TOL, 0.0 * value + 1.0, 0.0 * value)
        taken = taken + length
        for _ in range(HALVINGS):
            for x in range(start[-2]):
                put(trial, x, get(v, x) + length * get(step, x))
            new = evaluate(start, actions, problem, trial, p, free, w)
            short = new - value < 1e-4 * length * slope - 1e-12
            if not any_of(short):
                break
            length = pick(short, 0.5 * length, length)
        value = new
        for x in range(start[-2]):
            put(v, x, get(trial, x))
    put(steps, 0, taken)


@compiled
def project_all(times: int, start: IntArray, actions: int, learners: Any) -> None:
    """Solve the problems of all learners, or of all eight at once, `times` times."""
    for _ in range(times):
        for problem, work in learners:
            project(start, actions, problem, work)


@kernel
def project_by_package(times: int, learners: Any) -> int:
    """The number of Newton steps of the learner that takes most."""
    most = 0
    for _ in range(times):
        for index, problem, v, theta, ws in learners:
            for x in range(len(v)):
                v[x] = 0.0
            most = max(most, maximise_dual(index, problem, v, theta, ws, TOL, 1e9, 1_000).iterations)
    return most


# Problems and runs ----------------------------------------------------------------------------------------------------


def after_an_episode(size: Size, boxes: bool = True) -> list[ProjectionProblem]:
    """What eight learners solve after an episode, without the constraints; `boxes` are active, or [0, 1]."""
    steps = [mirror_step(size, seed) for seed in range(LANES)]
    bounds = [(each.lower, each.upper) if boxes else (0.0 * each.lower, 0.0 * each.upper + 1.0) for each in steps]
    return [ProjectionProblem(each.layout, each.log_base, *own) for each, own in zip(steps, bounds, strict=True)]


class Contenders:
    """The same problems, one for each of eight learners, for the source alone, in lanes, and for the package."""

    def __init__(self, problems: list[ProjectionProblem]) -> None:
        layout = self.layout = problems[0].layout
        self.start = np.concatenate(([0], np.cumsum(layout.layer_sizes)))
        given = [problem.kernel_arguments() for problem in problems]
        rows = [(p.conditional, p.lower, p.upper, np.exp(p.log_weight)) for _, p in given]
        columns = tuple(np.ascontiguousarray(np.stack(each, axis=1)) for each in zip(*rows, strict=True))
        self.alone = tuple((each, _work(layout)) for each in rows)
        self.in_lanes = ((columns, _work(layout, LANES)),)
        self.package = tuple(
            (*each, np.zeros(layout.num_states), np.zeros(0), make_workspace(layout, 0)) for each in given
        )

    def run(self, name: str, times: int = 1) -> None:
        if name == "package":
            project_by_package(times, self.package)
        else:
            project_all(times, self.start, self.layout.num_actions, getattr(self, name))

    def weights(self, name: str) -> FloatArray:
        """(rows, learners): w of the last run."""
        if name == "in_lanes":
            return self.in_lanes[0][1][3]
        return np.stack([each[-1].w if name == "package" else each[1][3] for each in getattr(self, name)], axis=1)

    def steps(self) -> FloatArray:
        return np.array([work[-1][0] for _, work in self.alone])

    def share_at_bound(self) -> float:
        choice = np.repeat(np.diff(self.layout.row_start) > 1, np.diff(self.layout.row_start))
        return float(np.mean([work[2][choice] < 0.5 for _, work in self.alone]))


def _work(layout: Layout, *lanes: int) -> tuple[FloatArray, ...]:
    sizes, states = np.array(layout.layer_sizes), layout.num_states
    blocks, couplings = int((sizes[:-1] ** 2).sum()), int(sizes[:-1] @ sizes[1:])
    triples, rows = layout.num_triples, layout.num_rows
    counts = (states, triples, triples, rows, blocks, couplings, states, states, states, 1)
    return tuple(np.zeros((count, *lanes)) for count in counts)


def measure(contenders: Contenders) -> dict[str, float]:
    """Processor microseconds per learner and projection: medians of turns, each of SECONDS or one run."""
    spent: dict[str, list[float]] = {"alone": [], "in_lanes": [], "package": []}
    times = {}
    for name in spent:
        contenders.run(name)  # compiles
        begun = time.process_time()
        contenders.run(name, 3)
        times[name] = 1 + int(3 * SECONDS / max(time.process_time() - begun, 1e-6))
    for _ in range(TURNS):
        for name, taken in spent.items():
            begun = time.process_time()
            contenders.run(name, times[name])
            taken.append(1e6 * (time.process_time() - begun) / times[name] / LANES)
    return {name: float(np.median(taken)) for name, taken in spent.items()}


def print_times() -> None:
    smallest = Contenders(after_an_episode(SIZES[0]))
    for name in ("alone", "in_lanes"):
        begun = time.process_time()
        smallest.run(name)
        print(f"{name}: compiled in {time.process_time() - begun:.1f} s of processor time")
    print("triples  at bounds  steps   alone  lanes  package (us)  alone/lanes  package/lanes  differences of w")
    for boxes in (False, True):
        for size in SIZES:
            own = Contenders(after_an_episode(size, boxes))
            alone, lanes, package = measure(own).values()
            steps, w = own.steps(), own.weights("alone")
            apart = [np.abs(w - own.weights(name)).max() for name in ("in_lanes", "package")]
            print(
                f"{size.layout.num_triples:7} {own.share_at_bound():9.0%} {steps.min():4.0f}-{steps.max():.0f}"
                f" {alone:8.1f} {lanes:6.1f} {package:8.1f} {alone / lanes:17.1f} {package / lanes:14.1f}"
                f"       {apart[0]:.0e} {apart[1]:.0e}",
                flush=True,
            )


# Branches -------------------------------------------------------------------------------------------------------------


def kernels_of(source: Path) -> dict[str, ast.FunctionDef]:
    """The kernels that a file defines, by name."""
    found = {}
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names = [each.id for line in node.decorator_list for each in ast.walk(line) if isinstance(each, ast.Name)]
            if "kernel" in names or "shared_kernel" in names:
                found[node.name] = node
    return found


def print_branches() -> None:
    """Count decisions in the kernels that `learn` of the OPS family may call, for any settings."""
    package = ROOT / "src" / "hedgerow"
    pending, reached = [(package / "learners/ops/step.py", "learn")], dict[tuple[Path, str], ast.FunctionDef]()
    while pending:
        source, name = pending.pop()
        if (source, name) in reached or not source.is_file() or name not in kernels_of(source):
            continue
        node = reached[source, name] = kernels_of(source)[name]
        places = {}
        for line in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("hedgerow."):
                file = ROOT.joinpath("src", *str(line.module).split(".")).with_suffix(".py")
                places.update({alias.name: file for alias in line.names})
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        pending += [(places.get(each, source), each) for each in names]
    print("folder        modules  kernels (lines)  that decide (lines)     if  if-else  while")
    for folder in FOLDERS:
        own = {key: node for key, node in reached.items() if key[0].is_relative_to(package / folder)}
        kinds = {key: Counter(type(each) for each in ast.walk(node)) for key, node in own.items()}
        lines = {key: (node.end_lineno or 0) - node.lineno + 1 for key, node in own.items()}
        deciding = [key for key in own if any(kinds[key][kind] for kind in DECISIONS)]
        counts = [sum(each[kind] for each in kinds.values()) for kind in DECISIONS]
        print(
            f"{folder:13} {len({source for source, _ in own}):7} {len(own):8} {sum(lines.values()):7}"
            f" {len(deciding):12} {sum(lines[key] for key in deciding):7} {counts[0]:6} {counts[1]:8} {counts[2]:6}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--branches", action="store_true", help="count branches of the kernels of an episode instead")
    print_branches() if parser.parse_args().branches else print_times()
