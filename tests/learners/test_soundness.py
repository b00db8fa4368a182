"""Files that are intact but senseless: what compiled code could not work with is refused by name, what follows from
other entries is computed anew, and no valid file is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from known_worlds import knowing
from learner_cases import (
    KINDS,
    WITH_BASELINE,
    assert_same,
    draw_path,
    from_bytes,
    make_learner,
    random_world,
    snapshot,
    to_bytes,
)

from hedgerow.confidence.aggregate import AggregateNumbers
from hedgerow.confidence.premises import COSTS, PremiseNumbers
from hedgerow.errors import FileFormatError
from hedgerow.learners.files import FILE_KIND, FILE_VERSION
from hedgerow.learners.ops.account import AccountNumbers
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.search import Broken, SearchState
from hedgerow.learners.ops.state import RANGES, Incomplete, LoggedCounts, Numbers, Reals, arrays_of_state
from hedgerow.model.cmdp import CMDP
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
    "aggregate.numbers": AggregateNumbers,
    "account.numbers": AccountNumbers,
    "premises.numbers": PremiseNumbers,
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


def refuted(field: str, value: int) -> Change:
    """A refutation of a cost, one number of which is `value`."""

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers = arrays["state.premises.numbers"]
        numbers[PremiseNumbers.place("what")] = COSTS
        numbers[PremiseNumbers.place(field)] = value

    return change


def meta_entry(name: str, value: Any) -> Change:
    return lambda meta, arrays: meta.update({name: value})


def text(name: str, **changes: Any) -> Change:
    """Of the arguments, or of the coin, which are texts in JSON."""

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        content = json.loads(str(arrays[f"state.{name}"]))
        arrays[f"state.{name}"] = np.array(json.dumps({**content, **changes}))

    return change


def coin(**changes: Any) -> Change:
    return lambda meta, arrays: text("coin", state={**json.loads(str(arrays["state.coin"]))["state"], **changes})(
        meta, arrays
    )


def array(name: str, value: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda meta, arrays: arrays.update({name: value(arrays[name])})


SENSELESS: list[tuple[str, Change, str]] = [
    ("s-ops", entry("reals", "mixing", -1.0), r"state.reals is -1.0 at \(2,\)"),
    ("s-ops", entry("reals", "mixing", 1.5), "reals: mixing is 1.5"),
    ("sv-ops", entry("counts.num_visits", 2, -1), r"state.counts.num_visits is -1 at \(2,\)"),
    ("sv-ops", entry("counts.num_visits", 2, 2**62), "state.counts.num_visits is 4611686018427387904"),
    ("sv-ops", entry("counts.num_visits", 2, 30), "state.counts.num_moves of layer 1, state 0, action 0 do not add up"),
    ("sv-ops", one_more_move(2), "state.counts.num_visits of layer 1 sum to 41; there are 40 episodes"),
    ("sv-ops", entry("counts.num_costs", 0, 1), "state.counts.num_costs of layer 0, .* are not those of the visits"),
    ("sv-ops", entry("counts.num_costs", 0, 99), "state.counts.num_costs of layer 0, .* exceed visits"),
    ("sv-ops", entry("logged", "episodes", 3), "state.counts.num_visits of layer 0 sum to 40; there are 43"),
    ("sv-ops", entry("logged", "costless", -1), "state.logged is -1"),
    ("sv-ops", entry("counts.unknown_moves", 0, 1), "counts.unknown_moves .* more than 0 episodes can have left"),
    ("sv-ops", entry("counts.unknown_costs", (0, 0), 1), "counts.unknown_costs .* more than 0 episodes can have left"),
    ("cv-ops", entry("search.broken", "skipped", 1), "state.search"),
    ("sv-ops", entry("counts.num_moves", 2, 30), "state.counts.num_moves of layer 0, state 0, action 0 do not add up"),
    ("sv-ops", entry("counts.cost_sums", (0, 0), 1e3), "state.counts.cost_sums of layer 0, state 0, action 0 exceed"),
    ("sv-ops", entry("counts.cost_sums", (0, 0), -1.0), "state.counts.cost_sums is -1.0"),
    ("sv-ops", entry("numbers", "episode", 39), "state.counts.num_visits of layer 0 sum to 40"),
    ("sv-ops", entry("numbers", "episode", 500), "built for 200 episodes and has played 500"),
    ("sv-ops", entry("numbers", "pending", 7), "numbers: pending is 7"),
    ("sv-ops", entry("numbers", "branch", 1), "numbers: branch is 1; there are 0 baselines"),
    ("sv-ops", entry("numbers", "last_status", 3), "numbers: last_status is 3"),
    ("sv-ops", entry("numbers", "phase_over", 1), "numbers: phase_over, but there is no search"),
    ("sv-ops", entry("log_weight", 0, 1.0), "state.log_weight is 1.0"),
    ("sv-ops", entry("conditional", 0, 0.0), "state.conditional is 0.0"),
    ("sv-ops", entry("conditional", 0, 1.0), "state.conditional of layer 0, state 0, action 0 do not sum to 1"),
    ("sv-ops", entry("policy", 0, 0.5), "does not sum to 1"),
    ("sv-ops", entry("bound", 0, 3), "state.bound is 3"),
    ("sv-ops", entry("multipliers", 0, -1.0), "state.multipliers is -1.0"),
    ("sv-ops", array("view.thresholds", lambda a: a - 9.0), "the threshold is"),
    ("sv-ops", array("view.thresholds", lambda a: a.astype(np.float32)), "view.thresholds .* float64"),
    ("sv-ops", array("view.layer_sizes", lambda a: a.astype(">i8")), "view.layer_sizes"),
    ("sv-ops", array("state.numbers", lambda a: a.astype(np.int32)), "state.numbers must be int64, not int32"),
    ("sv-ops", array("state.policy", lambda a: a.astype(">f8")), "state.policy must be float64, not >f8"),
    ("s-ops", array("state.baseline", lambda a: a.astype(np.float32)), "baseline and baseline_costs must be float64"),
    ("s-ops", text("arguments", allow_no_margin=0.5), "its arguments must mean what they say"),
    ("cv-ops", text("arguments", memory_budget=-2), "memory_budget is"),
    ("cv-ops", entry("search.facts", "t_bar", 20.0), "state.search"),
    ("cv-ops", entry("search.facts", "t_bar", 2.5), "t_bar is 2.5, not a number of episodes"),
    ("cv-ops", entry("search.cost_sums", 0, 1e6), "state.search.cost_sums must lie in"),
    ("cv-ops", entry("search.weights", 0, 0.9), "state.search.weights must sum to 1"),
    ("cv-ops", entry("search.policies", (3, 0), 0.9), "state.search.policies: policy 3 .* does not sum to 1"),
    ("found", entry("numbers", "episode", 1), "t_bar is .*; there were 1"),
    ("sv-ops", text("arguments", seed=6), "coin"),
    ("sv-ops", text("arguments", episodes=20), "built for 20 episodes and has played 40|state.boxes"),
    ("sv-ops", meta_entry("comment", "hello"), "its metadata are action_labels, comment"),
    ("sv-ops", meta_entry("constraint_names", ["a", "a"]), "constraint names must be distinct"),
    ("sv-ops", meta_entry("state_labels", ["a"]), "state labels: 1 given"),
    (
        "sv-ops",
        array("state.coin", lambda a: np.array('{"bit_generator": "MT19937"}')),
        "coin is not the state of a PCG64 generator",
    ),
    ("s-ops", coin(state=2**200), "whole numbers of 128 bits"),
    ("found", coin(inc=5), "coin: inc does not belong to the seed"),
    ("sv-ops", text("coin", has_uint32=1), "coin: has_uint32 is wrong"),
    ("sv-ops", text("arguments", joint_cost=True), "SVOPS has no switch 'joint_cost'"),
    ("sv-ops", lambda meta, arrays: arrays.update(other=np.zeros(3)), "should not have, the entry 'other'"),
    ("sv-ops", entry("reals", "room", -1.0), "state.reals is -1.0"),
    ("sv-ops", lambda meta, arrays: arrays.update({"state.boxes.xi": np.ones(6)}), "the state needs the arrays"),
    ("uob-reps", entry("boxes.upper", slice(None), 0.0), "hold no distribution"),
    ("uob-reps", entry("boxes.upper", 0, 1.5), "state.boxes.upper is 1.5"),
    ("sv-ops", entry("log_weight", 0, -700.0), "state.log_weight has an entry below -600"),
    ("sv-ops", entry("certificate", slice(None), 0.9), "state.certificate does not sum to 1"),
    ("b-ops", entry("account.numbers", "own", 41), "state.account.numbers do not add up to 40 episodes"),
    ("b-ops", entry("account.allowed", 0, 1e3), "state.account.allowed: other thresholds"),
    ("b-ops", entry("account.seen", 0, 1e3), "state.account.seen is more than episodes can cost"),
    ("b-ops", entry("account.squares", 0, 1e3), "state.account.squares is more than episodes can differ"),
    ("b-ops", entry("account.fixed", 0, 0.0), "state.account.fixed is not what the baseline costs"),
    ("b-ops", entry("account.charged", 0, 1e3), "state.account.charged is more than was seen"),
    ("b-ops", entry("account.charged", 0, -1.0), "state.account.charged is -1.0"),
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


OF_KT: list[tuple[str, Change, str]] = [
    ("tied", entry("boxes.cost_lower", (2, 0), 0.99), "state.boxes.cost_lower exceed cost_upper"),
    ("tied", entry("boxes.cost_upper", (2, 0), 0.0), "state.boxes.cost_lower exceed cost_upper"),
    ("tied", entry("boxes.upper", 0, 0.0), "hold no distribution"),
    ("tied", entry("boxes.lower", 0, 0.99), "hold no distribution"),
    ("tied", entry("aggregate.numbers", "turn", 8), "state.aggregate.numbers: turn is 8; there are 8 slots"),
    ("tied", entry("aggregate.best", 0, 8), "state.aggregate.best names a slot that does not exist"),
    ("tied", entry("aggregate.generation", 0, 10**6), "state.aggregate.generation is not started yet"),
    ("tied", entry("aggregate.p_hat", 0, 0.0), "state.aggregate.p_hat of a row do not sum to 1"),
    ("tied", entry("aggregate.ranges", 0, 0.0), "state.aggregate.ranges must be positive"),
    ("tied", entry("premises.numbers", "what", 99), "state.premises.numbers: kind is 99"),
    ("tied", entry("premises.numbers", "stream", 2), "state.premises.numbers: a flag"),
    ("tied", refuted("where", 10**6), "state.premises.numbers: where is 1000000"),
    ("tied", refuted("column", 5), "state.premises.numbers: column names no constraint"),
    ("tied", elsewhere("num_visits"), "state.counts.num_visits of .* are counted elsewhere"),
    ("tied", elsewhere("num_costs"), "state.counts.num_costs of .* are counted elsewhere"),
    ("tied", entry("numbers", "episode", 39), "state.counts.num_visits sum to 200; there are 39 episodes"),
    ("tied", entry("logged", "episodes", 3), "state.counts.num_visits sum to 200; there are 43 episodes"),
    ("tied", array("view.known.same_costs", np.zeros_like), "state.counts.num_costs of .* are counted elsewhere"),
    ("much", array("view.known.max_episode_cost", lambda a: a - 2.0), "state"),
    ("tied", text("arguments", ties=False), "state"),
    ("tied", text("arguments", ball_from=2), "state"),
    (
        "tied",
        text("arguments", aggregate=False),
        "the state needs the arrays|state.aggregate",
    ),
    ("tied", text("arguments", radii="tight"), "belongs to radii='kt'"),
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


DERIVED: list[tuple[str, Change]] = [
    ("s-ops", entry("reals", "mixing", 0.1234)),
    ("s-ops", entry("bounds", 0, 0.0)),
    ("sv-ops", entry("reals", "mixing", 0.5)),
    ("sv-ops", entry("reals", "eta", 1.0)),
    ("sv-ops", entry("reals", "gamma", 0.0)),
    ("sv-ops", entry("numbers", "segment", 2)),
    ("sv-ops", entry("numbers", "stale", 0)),
    ("sv-ops", entry("incomplete", "independent", 1)),
    ("cv-ops", entry("numbers", "segment", 2)),
    ("cv-ops", entry("numbers", "segment_end", 0)),
    ("cv-ops", entry("search.facts", "margin", 2.0)),
    ("found", entry("search.facts", "rho_hat", 1e9)),
    ("tied", entry("reals", "mixing", 0.1234)),
    ("much", known_box("lower")),
    ("much", known_box("upper")),
]


@pytest.mark.parametrize(("name", "change"), DERIVED)
def test_what_follows_from_the_rest_is_not_believed(
    blobs: dict[str, bytes], tied_blobs: dict[str, bytes], name: str, change: Change
) -> None:
    blob = {**blobs, **tied_blobs}[name]
    assert changed(blob, change) != blob
    assert_same(snapshot(from_bytes(changed(blob, change))), snapshot(from_bytes(blob)))


def test_every_array_of_the_state_has_a_range() -> None:
    account = {name for name in RANGES if name.startswith("account.")}
    for kind in KINDS:
        stays = {"stay": "forecast"} if kind in ("s-ops", "b-ops", "c-ops") else {}
        state = make_learner(kind, PLAIN, **stays).core.state
        absent = (set() if kind == "b-ops" else account) | (set() if stays else {"stay"})
        absent |= set() if len(state.anchor) else {"anchor"}
        assert set(arrays_of_state(state)) == set(RANGES) - absent


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
    huge = text("arguments", memory_budget=2**52, episodes=2**50)
    with pytest.raises(FileFormatError, match=r"does not hold its state: this is no state of CV-OPS: Unable to alloc"):
        from_bytes(changed(blobs["cv-ops"], huge))


VARIANTS: list[dict[str, Any]] = [
    {},
    {"preset": "sharp"},
    {"preset": "sharp", "confidence_scale": 0.3},
    {"confidence_scale": 0.01},
    {"episodes": None, "horizon": "doubling"},
    {"tol": 1e-3, "confidence_scale": 0.05},
    {"known": True},
]
OF_THE_SEARCH: list[dict[str, Any]] = [
    {},
    {"phase2_stats": "discard"},
    {"memory_budget": 8 * 12 * 5},
    {"baseline_bound": "each"},
    {"episodes": None, "horizon": "doubling"},
]
CASES = [(kind, options) for kind in KINDS for options in VARIANTS]
CASES += [("cv-ops", {"confidence_scale": 0.02, **options}) for options in OF_THE_SEARCH]


@pytest.mark.slow
@pytest.mark.sampled(15)
@pytest.mark.parametrize("world", [PLAIN, SPARSE, PLAIN.with_thresholds([0.3, 0.3])], ids=["full", "sparse", "none"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_no_valid_file_is_refused(kind: str, options: dict[str, Any], world: CMDP) -> None:
    """At many points, also between plan and observe, the twin has the same bits and goes on with the same bits."""
    if kind in WITH_BASELINE and world not in (PLAIN, SPARSE):
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


@pytest.mark.parametrize("version", [FILE_VERSION - 1, FILE_VERSION + 1])
def test_files_of_other_releases_are_refused(version: int) -> None:
    data = datafile.unpack(to_bytes(after(3, "sv-ops")))
    with pytest.raises(FileFormatError, match=f"version {version}; this release reads version {FILE_VERSION}"):
        from_bytes(datafile.pack(FILE_KIND, version, data.meta, data.arrays))
