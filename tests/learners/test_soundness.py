"""Files that are intact but senseless: every entry that was changed is named, and no valid file is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from known_worlds import knowing
from learner_cases import KINDS, assert_same, draw_path, make_learner, random_world, snapshot

from hedgerow.confidence.boxes import make_box_rule, make_boxes, refresh_all
from hedgerow.confidence.budget import make_unknowns
from hedgerow.confidence.counts import Counts
from hedgerow.confidence.radii import Radii
from hedgerow.errors import FileFormatError
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.files import FILE_KIND, FILE_VERSION, from_bytes, to_bytes
from hedgerow.learners.ops.search import Broken, SearchState
from hedgerow.learners.ops.soundness import RANGES
from hedgerow.learners.ops.soundness_sets import _older_bounds
from hedgerow.learners.ops.state import Incomplete, LoggedCounts, Numbers, Reals, flat_arrays
from hedgerow.model.cmdp import CMDP
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.storage import datafile

pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")

PLAIN = random_world(3)
SPARSE = random_world(7, (1, 3, 3, 1), 2, sparse=True)
TIED = knowing("ties")
RECORDS = {
    "numbers": Numbers,
    "reals": Reals,
    "search.facts": SearchState,
    "search.broken": Broken,
    "logged": LoggedCounts,
    "incomplete": Incomplete,
}
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


def observe(learner: Learner, world: CMDP, rng: np.random.Generator) -> None:
    rows = draw_path(world, learner.open_plans[0].policy, rng)
    costs = (rng.random((len(rows), world.num_constraints)) < world.mean_costs[:, rows].T).astype(float)
    learner.observe(rows, rng.random(len(rows)), costs)


def after(episodes: int, kind: str, world: CMDP = PLAIN, **options: Any) -> Learner:
    learner = make_learner(kind, world, **{"seed": 5, **options})
    rng = np.random.default_rng(1)
    for _ in range(episodes):
        learner.plan()
        observe(learner, world, rng)
    return learner


def changed(blob: bytes, change: Change) -> bytes:
    data = datafile.unpack(blob)
    change(data.meta, data.arrays)
    return datafile.pack(FILE_KIND, FILE_VERSION, data.meta, data.arrays)


def entry(name: str, place: Any, value: float) -> Change:
    """Of an array, or by the name of its field."""
    where = RECORDS[name].place(place) if isinstance(place, str) else place

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[f"state.{name}"][where] = value

    return change


def one_more_move(row: int) -> Change:
    """A visit of one row alone, which moved on as it should."""

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays["state.counts.num_visits"][row] += 1
        arrays["state.counts.num_moves"][PLAIN.layout.row_start[row]] += 1

    return change


def of_twins(name: str) -> Change:
    """One of two rows that share a law gets wider bounds."""
    layout, known = TIED.layout, TIED.knowledge
    first = known.same_costs if name.startswith("cost") else known.same_transitions
    assert first is not None
    long = np.diff(layout.row_start) > 1
    row = int(np.flatnonzero((first != np.arange(layout.num_rows)) & long)[-1])

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        place = row if name.startswith("cost") else layout.row_start[row]
        bounds = arrays[f"state.boxes.{name}"]
        bounds[place] = 0.5 * (bounds[place] + (1.0 if name.endswith("upper") else 0.0))
        if name.startswith("cost"):
            width = arrays["state.boxes.cost_upper"][row] - arrays["state.boxes.cost_lower"][row]
            arrays["state.boxes.xi"][row] = 0.5 * width.max()

    return change


def known_box(name: str) -> Change:
    """Rows that are known get boxes around what is known, all of a class alike."""

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        known = (arrays["view.known.transitions"] > 0.0) & (arrays["view.known.transitions"] < 1.0)
        assert known.any()
        bounds = arrays[f"state.boxes.{name}"]
        bounds[known] = 0.5 * (bounds[known] + (1.0 if name == "upper" else 0.0))

    return change


def elsewhere(name: str) -> Change:
    """What was counted in the first row of a class moves to another one."""
    first = TIED.knowledge.same_costs if name == "num_costs" else TIED.knowledge.same_transitions
    assert first is not None
    row = int(np.flatnonzero(first != np.arange(len(first)))[-1])

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        counts = arrays[f"state.counts.{name}"]
        counts[row], counts[first[row]] = counts[first[row]], 0
        if name == "num_visits":
            moves, start = arrays["state.counts.num_moves"], TIED.layout.row_start
            for j in range(start[row + 1] - start[row]):
                moves[start[row] + j], moves[start[first[row]] + j] = moves[start[first[row]] + j], 0

    return change


def meta_entry(name: str, value: Any) -> Change:
    return lambda meta, arrays: meta.update({name: value})


def array(name: str, value: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda meta, arrays: arrays.update({name: value(arrays[name])})


SENSELESS: list[tuple[str, Change, str]] = [
    # Files like these loaded, and their ledger said "holds".
    ("s-ops", entry("reals", "mixing", -1.0), r"state.reals is -1.0 at \(2,\)"),
    ("s-ops", entry("reals", "mixing", 1.5), "reals: mixing is 1.5"),
    ("s-ops", entry("reals", "mixing", 0.1234), "reals: mixing is 0.1234; the bounds make it"),
    ("sv-ops", entry("reals", "mixing", 0.5), "reals: mixing is 0.5, but there is no baseline"),
    ("sv-ops", entry("counts.num_visits", 2, -1), r"state.counts.num_visits is -1 at \(2,\)"),
    ("sv-ops", entry("counts.num_visits", 2, 2**62), "state.counts.num_visits is 4611686018427387904"),
    ("sv-ops", entry("counts.num_visits", 2, 30), "state.counts.num_moves of layer 1, state 0, action 0 do not add up"),
    ("sv-ops", one_more_move(2), "state.counts.num_visits of layer 1 sum to 41; there are 40 episodes"),
    ("sv-ops", entry("counts.num_costs", 0, 1), "state.counts.num_costs of layer 0, .* are not those of the visits"),
    ("sv-ops", entry("counts.num_costs", 0, 99), "state.counts.num_costs of layer 0, .* exceed visits"),
    ("sv-ops", entry("boxes.visits", 0, 1), "state.boxes.visits is 1.0 at"),
    ("sv-ops", entry("boxes.cost_visits", 0, 1), "state.boxes.cost_visits is 1.0 at"),
    ("sv-ops", entry("logged", "episodes", 3), "state.counts.num_visits of layer 0 sum to 40; there are 43"),
    ("sv-ops", entry("logged", "costless", -1), "state.logged is -1"),
    ("sv-ops", entry("logged", "costless", 1), "state.logged: costless is 1; there are 0 episodes"),
    ("sv-ops", entry("logged", "interfered", 999), "state.logged: interfered is 999"),
    ("sv-ops", entry("incomplete", "unknown", 999), "state.incomplete: unknown is 999"),
    ("sv-ops", entry("incomplete", "independent", 1), "something of 1 episodes is left out; the reasons name 0"),
    ("sv-ops", entry("counts.unknown_moves", 0, 1), "counts.unknown_moves .* more than 0 episodes can have left"),
    ("sv-ops", entry("counts.unknown_costs", (0, 0), 1), "counts.unknown_costs .* more than 0 episodes can have left"),
    ("cv-ops", entry("search.broken", "filled", 999), "state.search.broken: filled is 999"),
    ("cv-ops", entry("search.broken", "skipped", 1), "state.search"),
    ("sv-ops", entry("counts.num_moves", 2, 30), "state.counts.num_moves of layer 0, state 0, action 0 do not add up"),
    ("sv-ops", entry("counts.cost_sums", (0, 0), 1e3), "state.counts.cost_sums of layer 0, state 0, action 0 exceed"),
    ("sv-ops", entry("counts.cost_sums", (0, 0), -1.0), "state.counts.cost_sums is -1.0"),
    ("sv-ops", entry("boxes.lower", 0, 1.0), "state.boxes.lower is 1.0 at"),
    ("sv-ops", entry("boxes.upper", 0, 0.5), "state.boxes.upper is 0.5 at"),
    ("sv-ops", entry("boxes.cost_upper", (0, 0), 0.0), "state.boxes.cost_upper is 0.0 at"),
    ("sv-ops", entry("boxes.xi", 0, 0.0), "state.boxes.xi is 0.0 at"),
    ("uob-reps", entry("boxes.xi", 0, 0.0), "state.boxes.xi is 0.0 at"),
    ("uob-reps", entry("epoch_visits", 0, 10**6), "state.epoch_visits .* exceed counts.num_visits"),
    ("uob-reps", entry("epoch_visits", slice(None), 0), "have doubled, but the boxes were not rebuilt"),
    ("sv-ops", entry("reals", "eta", 1.0), "reals: eta is .*1.0.*; the horizon makes it"),
    ("sv-ops", entry("reals", "gamma", 0.0), "reals: gamma is"),
    ("sv-ops", entry("numbers", "episode", 39), "state.counts.num_visits of layer 0 sum to 40"),
    ("sv-ops", entry("numbers", "episode", 500), "built for 200 episodes and has played 500"),
    ("sv-ops", entry("numbers", "pending", 7), "numbers: pending is 7"),
    ("sv-ops", entry("numbers", "branch", 1), "numbers: branch is 1; there are 0 baselines"),
    ("sv-ops", entry("numbers", "last_status", 3), "numbers: last_status is 3"),
    ("sv-ops", entry("numbers", "last_status", 1), "numbers: last_status without an infeasible one"),
    ("sv-ops", entry("numbers", "segment", 2), "numbers: segment is 2, not 0"),
    ("cv-ops", entry("numbers", "segment", 2), "numbers: segment is 2, not 5"),
    ("sv-ops", entry("numbers", "stale", 0), "numbers: stale is 0, but no bounds are cached"),
    ("sv-ops", entry("numbers", "phase_over", 1), "numbers: phase_over, but there is no search"),
    ("sv-ops", entry("numbers", "epochs", 3), "numbers: 3 epochs in 40 episodes"),
    ("sv-ops", entry("numbers", "failed", 3), "numbers: failed exceeds suspect"),
    ("sv-ops", entry("log_weight", 0, -30.0), "state.log_weight of layer 0, state 0, action 0 is not what policy"),
    ("sv-ops", entry("log_weight", 0, 1.0), "state.log_weight is 1.0"),
    ("sv-ops", entry("conditional", 0, 0.0), "state.conditional is 0.0"),
    ("sv-ops", entry("conditional", 0, 1.0), "state.conditional of layer 0, state 0, action 0 do not sum to 1"),
    ("sv-ops", entry("policy", 0, 0.5), "does not sum to 1"),
    ("sv-ops", entry("bound", 0, 3), "state.bound is 3"),
    ("sv-ops", entry("multipliers", 0, -1.0), "state.multipliers is -1.0"),
    ("s-ops", entry("bounds", 0, 0.0), "state.bounds are not the cost bounds of the policy"),
    ("sv-ops", array("view.thresholds", lambda a: a - 9.0), "the threshold is"),
    ("sv-ops", array("view.thresholds", lambda a: a.astype(np.float32)), "view.thresholds .* float64"),
    ("tight", array("view.thresholds", lambda a: 0.01 * a), "violates the optimistic constraints|reals: cost_residual"),
    ("sv-ops", array("view.layer_sizes", lambda a: a.astype(">i8")), "view.layer_sizes"),
    ("sv-ops", array("state.numbers", lambda a: a.astype(np.int32)), "state.numbers must be int64, not int32"),
    ("sv-ops", array("state.policy", lambda a: a.astype(">f8")), "state.policy must be float64, not >f8"),
    ("s-ops", array("argument.baseline", lambda a: a.astype(np.float32)), "argument.baseline must be float64"),
    ("s-ops", array("argument.allow_no_margin", lambda a: a + 0.5), "argument.allow_no_margin"),
    ("cv-ops", array("argument.memory_budget", lambda a: a - 2**29), "memory_budget is"),
    ("cv-ops", entry("search.facts", "margin", 2.0), "state.search.facts are .* the summed costs make them"),
    ("cv-ops", entry("search.facts", "t_bar", 20.0), "state.search"),
    ("cv-ops", entry("search.facts", "t_bar", 2.5), "t_bar is 2.5, not a number of episodes"),
    ("cv-ops", entry("search.cost_sums", 0, 1e6), "state.search.cost_sums must lie in"),
    ("cv-ops", entry("search.weights", 0, 0.9), "state.search.weights must be positive and sum to 1"),
    ("cv-ops", entry("search.policies", (3, 0), 0.9), "state.search.policies: policy 3 .* does not sum to 1"),
    ("found", entry("search.facts", "rho_hat", 1e9), "state.search.facts are .* the summed costs make them"),
    ("found", entry("search.cost_sums", slice(None), 0.0), "state.search"),
    ("found", entry("numbers", "episode", 1), "t_bar is .*; there were 1"),
    ("sv-ops", meta_entry("delta", 0.15), "state.boxes|reals: eta"),
    ("sv-ops", meta_entry("seed", 6), "coin"),
    ("sv-ops", meta_entry("episodes", 20), "built for 20 episodes and has played 40|state.boxes"),
    ("sv-ops", meta_entry("comment", "hello"), r"unexpected metadata \['comment'\]"),
    ("sv-ops", meta_entry("constraint_names", ["a", "a"]), "constraint names must be distinct"),
    ("sv-ops", meta_entry("state_labels", ["a"]), "state labels: 1 given"),
    ("sv-ops", meta_entry("coin", {"bit_generator": "MT19937"}), "coin is not the state of a PCG64 generator"),
    ("sv-ops", lambda meta, arrays: meta["coin"]["state"].update(state=5), "coin was tossed, but this learner has"),
    ("s-ops", lambda meta, arrays: meta["coin"]["state"].update(state=2**200), "whole numbers of 128 bits"),
    ("found", lambda meta, arrays: meta["coin"]["state"].update(inc=5), "coin: inc does not belong to the seed"),
    ("sv-ops", lambda meta, arrays: meta["coin"].update(has_uint32=1), "coin: has_uint32 is wrong"),
    ("sv-ops", lambda meta, arrays: meta["settings"].update(sigma="literal"), "a switch that SVOPS does not have"),
    ("sv-ops", lambda meta, arrays: arrays.update(other=np.zeros(3)), "unexpected array 'other'"),
    ("sv-ops", entry("reals", "slack", 1.0), "reals: slack is 1.0, but the last projection had a solution"),
    ("sv-ops", entry("reals", "room", -1.0), "state.reals is -1.0"),
    ("sv-ops", entry("certificate", slice(None), 0.9), "state.certificate does not sum to 1"),
    ("raised", entry("reals", "slack", 1e-9), "state.log_weight violates the optimistic constraints"),
]


@pytest.fixture(scope="module")
def blobs() -> dict[str, bytes]:
    with np.errstate(all="ignore"):
        learners = {kind: after(40, kind) for kind in KINDS}
        learners["tight"] = after(40, "sv-ops", confidence_scale=0.02)
        learners["raised"] = after(40, "sv-ops", PLAIN.with_thresholds([0.1, 0.1]), confidence_scale=0.02)
        found = after(60, "cv-ops", confidence_scale=0.02)
    assert learners["raised"].core.state.reals.slack > 0.0
    assert isinstance(found, CVOPS)
    assert found.phase == 2
    return {name: to_bytes(learner) for name, learner in {**learners, "found": found}.items()}


@pytest.mark.parametrize(("name", "change", "message"), SENSELESS)
def test_a_senseless_entry_is_refused_by_name(blobs: dict[str, bytes], name: str, change: Change, message: str) -> None:
    from_bytes(blobs[name])
    with pytest.raises(FileFormatError, match=message) as error:
        from_bytes(changed(blobs[name], change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("radii", ["paper", "tight", "anytime"])
def test_boxes_of_an_older_epoch_are_bounded_by_all_that_it_can_have_counted(radii: str) -> None:
    """Against the boxes of every M' with M - (N - N') <= M' <= M and sum N'."""
    layout = Layout((1, 3, 1), 1)
    unknowns, nothing = make_unknowns(layout, 0), np.zeros((4, 0))
    rule = make_box_rule(Radii(radii, 0.1).rule(layout, 0, 0.1, 100), unknowns, False)
    rng, index = np.random.default_rng(0), index_of(layout)
    for _ in range(20):
        then = int(rng.integers(1, 12))
        now = int(rng.integers(then, 2 * then) + 1)
        moves = np.concatenate((rng.multinomial(now, [0.6, 0.3, 0.1]), np.zeros(3, dtype=np.int64)))
        visits, before = np.array([now, 0, 0, 0]), np.array([then, 0, 0, 0])
        lower_most, upper_least = np.ones(6), np.zeros(6)
        none = np.zeros(4, dtype=np.int64), np.zeros((4, 0), dtype=np.int64)
        present = Counts(visits, moves, visits.copy(), nothing, *none)
        _older_bounds(index, rule.radii, present, before, lower_most, upper_least)
        most, least = np.zeros(3), np.ones(3)
        for older in product(range(then + 1), repeat=3):
            if sum(older) == then and all(m - (now - then) <= o <= m for o, m in zip(older, moves, strict=False)):
                counts = Counts(before, np.array([*older, 0, 0, 0]), before.copy(), nothing, *none)
                boxes = make_boxes(unknowns)
                refresh_all(index, counts, rule, boxes)
                most, least = np.maximum(most, boxes.lower[:3]), np.minimum(least, boxes.upper[:3])
        assert np.all(lower_most[:3] >= most - 1e-12)
        assert np.all(upper_least[:3] <= least + 1e-12)
        assert np.all(lower_most[:3] <= moves[:3] / then)
        assert np.all(upper_least[:3] >= (moves[:3] - (now - then)) / then)


def test_a_box_of_an_older_epoch_cannot_be_narrower_than_its_counts_allow() -> None:
    learner = after(37, "s-ops", SPARSE, boxes="epoch", confidence_scale=0.05)
    state = learner.core.state
    changed_since = state.counts.num_visits > state.epoch_visits
    several = np.diff(SPARSE.layout.row_start) > 1
    row = int(np.flatnonzero(changed_since & several)[0])
    triples = slice(SPARSE.layout.row_start[row], SPARSE.layout.row_start[row + 1])
    blob, p = to_bytes(learner), (state.boxes.lower + state.boxes.upper)[triples] / 2.0

    def narrow(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays["state.boxes.lower"][triples] = arrays["state.boxes.upper"][triples] = p / p.sum()

    with pytest.raises(FileFormatError, match="are narrower than any epoch makes them"):
        from_bytes(changed(blob, narrow))
    for name, message in (
        ("cost_upper", "cost_upper are not those of any epoch"),
        ("cost_lower", "cost_lower are not"),
    ):
        wrong = entry(f"boxes.{name}", row, 0.0 if name == "cost_upper" else 1.0)
        with pytest.raises(FileFormatError, match=message):
            from_bytes(changed(blob, wrong))


OF_KT: list[tuple[str, Change, str]] = [
    ("tied", entry("boxes.cost_lower", (2, 0), 0.99), "state.boxes.cost_lower are not what any episodes"),
    ("tied", entry("boxes.cost_upper", (2, 0), 0.0), "state.boxes.cost_upper are not what any episodes"),
    ("tied", entry("boxes.cost_upper", (2, 0), 1.0), "state.boxes.cost_upper are not what any episodes"),
    ("tied", entry("boxes.xi", 2, 0.0), "state.boxes.xi are not what any episodes"),
    ("tied", entry("boxes.upper", 0, 0.0), "state.boxes.upper are not what any episodes"),
    ("tied", entry("boxes.lower", 0, 0.99), "state.boxes.lower are not what any episodes"),
    ("tied", entry("boxes.visits", 0, 3), "state.boxes.visits of layer 0, .* do not belong to the counts"),
    ("tied", entry("boxes.visits", 0, 99), "state.boxes.visits of layer 0, .* do not belong to the counts"),
    ("tied", entry("boxes.cost_visits", 2, 1), "state.boxes.cost_visits of layer 1, .* do not belong to the counts"),
    ("tied", of_twins("cost_lower"), "state.boxes.cost_lower differ between rows that share a law"),
    ("tied", of_twins("upper"), "state.boxes.upper differ between rows that share a law"),
    ("tied", elsewhere("num_visits"), "state.counts.num_visits of .* are counted elsewhere"),
    ("tied", elsewhere("num_costs"), "state.counts.num_costs of .* are counted elsewhere"),
    ("tied", entry("numbers", "episode", 39), "state.counts.num_visits sum to 200; there are 39 episodes"),
    ("tied", entry("logged", "episodes", 3), "state.counts.num_visits sum to 200; there are 43 episodes"),
    ("tied", array("view.known.same_costs", np.zeros_like), "state.counts.num_costs of .* are counted elsewhere"),
    ("much", array("view.known.most_costs", lambda a: a - 2.0), "state"),
    ("much", array("view.known.costs", lambda a: np.nan_to_num(a, nan=0.5)), "state.boxes.cost_lower .* known"),
    ("much", array("view.known.costs", lambda a: a + 0.25), "state.boxes.cost_lower .* known"),
    ("much", known_box("lower"), "state.boxes.lower .* known"),
    ("much", known_box("upper"), "state.boxes.upper .* known"),
    ("much", entry("boxes.visits", 0, 3), "state.boxes.visits of layer 0, .* do not belong to the counts"),
    ("tied", lambda meta, arrays: meta["settings"].update(ties=False), "state"),
    ("tied", lambda meta, arrays: meta["settings"].update(ball_from=2), "state"),
    (
        "tied",
        lambda meta, arrays: meta["settings"].update(aggregate=False),
        "the state needs the arrays|state.aggregate",
    ),
    ("tied", lambda meta, arrays: meta["settings"].update(radii="tight"), "belongs to radii='kt'"),
]


@pytest.fixture(scope="module")
def tied_blobs() -> dict[str, bytes]:
    with np.errstate(all="ignore"):
        worlds = {"tied": TIED, "much": knowing("much")}
        return {name: to_bytes(after(40, "s-ops", world, preset="sharpest")) for name, world in worlds.items()}


@pytest.mark.parametrize(("name", "change", "message"), OF_KT)
def test_a_senseless_entry_of_intervals_is_refused(
    tied_blobs: dict[str, bytes], name: str, change: Change, message: str
) -> None:
    from_bytes(tied_blobs[name])
    with pytest.raises(FileFormatError, match=message) as error:
        from_bytes(changed(tied_blobs[name], change))
    assert "\n" not in str(error.value)


def test_every_array_of_the_state_has_a_range() -> None:
    for kind in KINDS:
        assert set(flat_arrays(make_learner(kind, PLAIN).core.state)) == set(RANGES)


def test_a_small_file_cannot_ask_for_much_memory(blobs: dict[str, bytes]) -> None:
    # A million states in a row need a matrix of 10^12 entries if they are in one layer.
    def wide(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        n = 200_000
        meta["num_actions"] = 1
        arrays["view.layer_sizes"] = np.array([1, n, 1])
        arrays["view.row_start"] = np.concatenate(([0], n + np.arange(n + 1)))
        arrays["view.successor"] = np.concatenate((np.arange(1, n + 1), np.full(n, n + 1))).astype(np.int32)
        arrays["state.conditional"] = np.ones(2 * n)
        arrays["state.counts.cost_sums"] = np.zeros((n + 1, 2))

    with pytest.raises(FileFormatError, match=r"state.system.diagonal has .* entries; this world needs 40000000001"):
        from_bytes(changed(blobs["sv-ops"], wide))
    huge = array("argument.memory_budget", lambda a: np.array(2**52))
    with pytest.raises(FileFormatError, match=r"does not describe a learner: [A-Z]"):
        from_bytes(changed(changed(blobs["cv-ops"], huge), meta_entry("episodes", 2**50)))


VARIANTS: list[dict[str, Any]] = [
    {},
    {"preset": "sharp"},
    {"boxes": "epoch", "confidence_scale": 0.05},
    {"boxes": "epoch", "preset": "sharp", "confidence_scale": 0.3},
    {"confidence_scale": 0.01},
    {"episodes": None, "horizon": "doubling"},
    {"episodes": None, "horizon": "doubling", "boxes": "epoch"},
    {"tol": 1e-3, "confidence_scale": 0.05},
    {"known": True, "boxes": "epoch"},
]
OF_THE_SEARCH: list[dict[str, Any]] = [
    {},
    {"phase2_stats": "discard"},
    {"phase2_stats": "discard", "boxes": "epoch"},
    {"memory_budget": 8 * 12 * 5, "boxes": "epoch"},
    {"mixture_bound": "realised", "baseline_bound": "each"},
    {"episodes": None, "horizon": "doubling"},
]
CASES = [(kind, options) for kind in KINDS for options in VARIANTS]
CASES += [("cv-ops", {"confidence_scale": 0.02, **options}) for options in OF_THE_SEARCH]


@pytest.mark.slow
@pytest.mark.parametrize("world", [PLAIN, SPARSE, PLAIN.with_thresholds([0.3, 0.3])], ids=["full", "sparse", "none"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_no_valid_file_is_refused(kind: str, options: dict[str, Any], world: CMDP) -> None:
    """At many points, also between plan and observe, the twin has the same bits and goes on with the same bits."""
    if kind == "s-ops" and world not in (PLAIN, SPARSE):
        return  # nothing is safe there
    chosen = {name: value for name, value in options.items() if name != "known"}
    if options.get("known"):
        chosen["transitions"] = world.transitions
    if kind == "cv-ops" and options.get("episodes", 200) is None:
        chosen["memory_budget"] = 8 * world.layout.num_rows * 1000  # the default asks for 256 MB, again and again
    learner = make_learner(kind, world, seed=5, **chosen)
    for t in range(45):
        if t in (0, 1, 2, 5, 7, 8, 20, 33, 44):
            assert_same(snapshot(learner), snapshot(from_bytes(to_bytes(learner))))
        learner.plan()
        twin = from_bytes(to_bytes(learner)) if t % 8 == 0 else None
        observe(learner, world, np.random.default_rng(t))
        if twin is not None:
            observe(twin, world, np.random.default_rng(t))
            assert_same(snapshot(learner), snapshot(twin))
            assert to_bytes(learner) == to_bytes(twin)


@pytest.mark.parametrize("kind", ["sv-ops", "cv-ops"])
def test_a_learner_that_was_interrupted_is_saved_as_it_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A projection, or the end of a phase, that is still to be done; both need the next plan only."""
    options: dict[str, Any] = {"confidence_scale": 0.02}
    learner = make_learner(kind, PLAIN if kind == "cv-ops" else PLAIN.with_thresholds([0.3, 0.3]), **options)

    def stop(*args: Any) -> None:
        raise KeyboardInterrupt

    rng, name = np.random.default_rng(0), "_next_phase" if kind == "cv-ops" else "fallback_solve"
    if kind == "cv-ops":
        monkeypatch.setattr(CVOPS, "_next_phase", stop)
    else:
        monkeypatch.setattr("hedgerow.learners.ops.base.fallback_solve", stop)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes when it comes
        for _ in range(200):
            learner.plan()
            observe(learner, PLAIN, rng)
    monkeypatch.undo()
    assert getattr(learner.core.state.numbers, "phase_over" if name == "_next_phase" else "open") == 1
    twin = from_bytes(to_bytes(learner))
    for one in (learner, twin):
        one.plan()
    assert_same(snapshot(learner), snapshot(twin))


LATER = ("ties", "aggregate", "ball_from", "search_radius", "on_refuted")
"""Switches that came with files of version 5, or later"""


def older_file(learner: Learner, version: int) -> bytes:
    """What an earlier release would have written of a learner of whose world only P may be known."""
    data = datafile.unpack(to_bytes(learner))
    meta, arrays = dict(data.meta), dict(data.arrays)
    # 4: costs counted with the visits, boxes did not say what made them, nothing came from logs, P was an argument.
    meta["settings"] = {k: v for k, v in meta["settings"].items() if k not in LATER}
    later = ("state.counts.num_costs", "state.boxes.visits", "state.boxes.cost_visits", "state.logged")
    later += ("state.aggregate.", "state.balls.", "state.premises.")
    arrays = {name: array for name, array in arrays.items() if not name.startswith(later)}
    if "view.known.transitions" in arrays:
        arrays["argument.transitions"] = arrays.pop("view.known.transitions")
    assert not any(name.startswith("view.known.") for name in arrays)
    if version == 3:  # thresholds were not raised
        del arrays["state.certificate"]
        arrays["state.reals"] = arrays["state.reals"][:4]
    return datafile.pack(FILE_KIND, version, meta, arrays)


def without_tests(learner: Learner) -> dict[str, np.ndarray]:
    """The state without the tests of what it was told, which begin anew where a file has none."""
    return {name: array for name, array in snapshot(learner).items() if not name.startswith("premises.")}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("options", [{}, {"preset": "sharp"}, {"boxes": "epoch"}, {"known": True}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_earlier_releases_are_read(kind: str, options: dict[str, Any], version: int) -> None:
    """The learner goes on with the same bits."""
    chosen = {name: value for name, value in options.items() if name != "known"}
    if options.get("known"):
        chosen["transitions"] = PLAIN.transitions
    learner = after(30, kind, **chosen)
    old = from_bytes(older_file(learner, version))
    assert_same(without_tests(learner), without_tests(old))
    assert (old.transitions is None) == (learner.transitions is None)
    for each in (learner, old):
        each.plan()
        observe(each, PLAIN, np.random.default_rng(7))
    assert_same(without_tests(learner), without_tests(old))


@pytest.mark.parametrize("version", [2, FILE_VERSION + 1])
def test_files_of_other_releases_are_refused(version: int) -> None:
    data = datafile.unpack(to_bytes(after(3, "sv-ops")))
    with pytest.raises(FileFormatError, match=f"version {version}; this release reads versions 3 to {FILE_VERSION}"):
        from_bytes(datafile.pack(FILE_KIND, version, data.meta, data.arrays))
