"""Every judge can say `holds`, and says `refuted` as soon as the one thing that it watches is broken."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from observed import found, seen

from hedgerow.learners.ops.notes import ODDS
from hedgerow.verify.claims import BY_KEY, PROMISES
from hedgerow.verify.judging import (
    Observation,
    Status,
    Verdict,
    any_of,
    holds,
    log_evidence,
    never,
    rate,
    refuted,
    together,
    untested,
)

HORIZONS = (256, 1024, 4096)
NOISE = (0.98, 1.0, 1.02)
ORACLE = {"switches": {"primal_constant": 1.5}}


def curve(name: str, power: float, group: str = "any", **more: float) -> list[Observation]:
    """Three seeds at three horizons, growing like T^power."""
    make = found if name == "regret_after" else seen
    return [
        make({"episodes": T, "seed": k, "group": group}, **{name: noise * T**power, **more})
        for T in HORIZONS
        for k, noise in enumerate(NOISE)
    ]


def pair(regret: float, violation: float = 0.0) -> list[Observation]:
    """The lower-bound pair at two margins; regret like 1/rho."""
    return [
        seen(
            {"world": world, "episodes": 4096, "seed": k, "group": "lower-bound"},
            rho=rho,
            regret=regret / rho,
            violation=violation,
        )
        for world in ("lower-bound-1", "lower-bound-2")
        for rho in (0.1, 0.4)
        for k in range(20)
    ]


def many(count: int, bad: int, **broken: float) -> list[Observation]:
    return [seen(None, **broken) if k < bad else seen() for k in range(count)]


def sharpest(count: int, bad: int, delta: float = 0.05, **broken: float) -> list[Observation]:
    """Runs whose sets share 5 delta among all four kinds."""
    shares = {"cost_share": 1.5, "aggregate_share": 1.5, "transition_share": 1.0, "ball_share": 1.0}
    spec = {"switches": {"preset": "sharpest"}, "delta": delta}
    return [seen(spec, **shares, **(broken if k < bad else {})) for k in range(count)]


def searches(count: int, bad: int, **broken: float) -> list[Observation]:
    return [found(ORACLE, **broken) if k < bad else found(ORACLE) for k in range(count)]


KEPT: dict[str, list[Observation]] = {
    **{
        key: [*many(40, 0), *sharpest(40, 1, cost_breaches=1.0)]
        for key in (
            "T1",
            "T2",
            "T3",
            "T4",
            "T7",
            "T8",
            "T9",
            "T18",
            "T19",
            "T21",
            "T22",
            "T23",
            "T24",
            "T25",
            "T26",
            "T29",
            "T31",
            "T32",
            "T33",
            "T34",
            "T35",
            "T36",
            "T37",
            "T38",
        )
    },
    **{key: searches(40, 0) for key in ("T12", "T13", "T14", "T15", "T20", "T27")},
    "T5": curve("violation", 0.5, width=100.0),
    "T6": curve("regret", 0.5),
    "T10": [
        seen({"episodes": T, "seed": k, "group": "safe-growth"}, mixing_total=noise * T**0.5, regret=noise * T**0.5)
        for T in HORIZONS
        for k, noise in enumerate(NOISE)
    ],
    "T11": curve("weighted_width", 0.5),
    "T16": curve("regret_after", 0.5, mixing_total=1.0),
    "T17": pair(20.0),
    "T28": curve("weighted_upper", 0.5),
    "T30": [seen(None, mixing_total=0.0)] * 40,
}
BROKEN: dict[str, list[list[Observation]]] = {
    "T1": [many(40, 12, cost_breaches=3.0), sharpest(40, 14, aggregate_breaches=1.0)],
    "T2": [many(40, 20, transition_breaches=1.0), sharpest(40, 12, ball_breaches=1.0)],
    "T3": [many(40, 1, refuted_feasibility=1.0, infeasible=1.0), many(40, 25, infeasible=2.0, clean=0.0)],
    "T4": [many(40, 1, least_excess=-1e-9)],
    "T5": [curve("violation", 1.0, clean=0.0), curve("violation", 0.5, violation=30.0)],
    "T6": [curve("regret", 1.0), [*curve("regret", 0.8), *curve("regret", 0.8)]],
    "T7": [many(40, 1, refuted_safety=1.0, unsafe=1.0), many(40, 25, unsafe=1.0, clean=0.0)],
    "T8": [many(40, 1, mixing_over=1e-3)],
    "T9": [many(40, 1, mixing_slack=-1e-3)],
    "T10": [curve("regret", 1.0, "safe-growth"), curve("mixing_total", 0.9, "safe-growth", first_mixing=1.0)],
    "T11": [curve("weighted_width", 0.9)],
    "T12": [searches(40, 12, rho_hat=0.31), searches(40, 1, margin=0.41)],
    "T13": [searches(40, 20, rho_hat=0.19)],
    "T14": [searches(40, 1, t_bar=1e9)],
    "T15": [searches(40, 30, violation_after=1.0, unsafe_after=4.0), searches(40, 1, refuted_safety=2.0)],
    "T16": [curve("regret_after", 1.0, mixing_total=1.0)],
    "T17": [pair(0.01)],
    "T18": [many(40, 1, mirror_left=2.1)],
    "T19": [many(40, 12, optimism=3.0)],
    "T20": [searches(40, 1, dual_ratio=2.1), searches(40, 35, primal_ratio=1e6)],
    "T21": [many(40, 12, cost_breaches=3.0), many(40, 1, refuted_safety=1.0, unsafe=1.0)],
    "T22": [many(40, 1, interval_gap=1e-8), many(40, 1, interval_gap=math.nan)],
    "T23": [many(40, 1, bound_gap=1e-8), many(40, 1, certificate_gap=1e-8)],
    "T24": [many(40, 1, mixing_gap=1e-8), many(40, 1, mixture_gap=1e-8)],
    "T25": [many(40, 40, coin_3=9.0), many(40, 40, actions_8=9.0)],  # 9 - ln 12 > ln 100
    "T26": [many(40, 1, rate_gap=1e-8), many(40, 1, estimate_gap=1e-8)],
    "T27": [searches(40, 1, search_gap=1e-8)],
    "T28": [curve("weighted_upper", 0.9), curve("weighted_upper", 0.5, upper_bound=5.0)],
    "T29": [many(40, 12, **{f"weighted_optimism_{name}": 4.0}) for name in ("all", "iterate", "chosen")],
    "T30": [
        [seen(None, mixing_total=0.0), seen(None, mixing_total=0.0, bias=10.1)],
        [seen(None, mixing_total=0.0, bias_seen=13.0)] * 8,
    ],
    "T31": [many(40, 4, refuted_premises=1.0)],
    "T32": [
        many(40, 1, refuted_budget=1.0, overdrawn=1.0),
        many(40, 12, account_breaches=1.0),
        many(40, 25, overdrawn=3.0, account_breaches=0.0),
    ],
    "T33": [many(40, 1, mirror_left=1.6)],
    "T34": [many(40, 1, anchored_gap=1e-8)],
    "T35": [many(40, 1, refuted_safety=1.0, unsafe=1.0), many(40, 25, unsafe=1.0, clean=0.0)],
    "T36": [many(40, 25, bound_breaches=1.0)],
    "T37": [many(40, 1, low_bounds=1.0), many(40, 25, low_bounds=1.0, clean=0.0)],
    "T38": [
        many(40, 1, refuted_safety=1.0, unsafe=1.0),
        many(40, 12, cost_breaches=3.0),
        many(40, 20, transition_breaches=1.0),
    ],
}


def judged(key: str, observations: Sequence[Observation]) -> Verdict:
    return BY_KEY[key].judge(observations)


def test_the_promises_are_numbered_in_their_order() -> None:
    numbers = [int(promise.key.removeprefix("T")) for promise in PROMISES]
    assert numbers == list(range(1, len(PROMISES) + 1))
    for promise in PROMISES:
        assert promise.statement
        assert promise.reference
        assert promise.probability
        assert promise.rule
        assert promise.groups


@pytest.mark.parametrize("key", list(KEPT))
def test_what_is_kept_holds(key: str) -> None:
    verdict = judged(key, KEPT[key])
    assert verdict.status is Status.HOLDS, verdict.sentence


@pytest.mark.parametrize(("key", "case"), [(key, case) for key, cases in BROKEN.items() for case in range(len(cases))])
def test_what_is_broken_is_refuted(key: str, case: int) -> None:
    verdict = judged(key, BROKEN[key][case])
    assert verdict.status is Status.REFUTED, verdict.sentence


def test_every_promise_has_both_cases() -> None:
    assert set(KEPT) == set(BROKEN) == set(BY_KEY)


def test_a_few_failures_within_the_budget_refute_nothing() -> None:
    assert judged("T1", many(40, 3, cost_breaches=1.0)).status is Status.HOLDS
    assert judged("T2", many(40, 10, transition_breaches=1.0)).status is Status.HOLDS


def test_runs_that_may_fail_more_often_do_not_cover_for_others() -> None:
    """Six failures of 40 runs are too many for 1.5 percent, and would not be for the largest budget of the group."""
    sure = sharpest(40, 6, delta=0.01, cost_breaches=1.0)
    assert judged("T1", [*sharpest(40, 6, cost_breaches=1.0)]).status is Status.HOLDS
    verdict = judged("T1", [*sharpest(400, 0), *sure])
    assert verdict.status is Status.REFUTED
    assert "6 of 40 runs" in verdict.sentence
    assert judged("T7", [*many(400, 0), *sharpest(40, 9, delta=0.01, unsafe=1.0)]).status is Status.REFUTED


def test_budgets_are_those_of_the_sets() -> None:
    verdict = judged("T2", [*many(20, 0), *sharpest(20, 0), *sharpest(20, 0, delta=0.01)])
    allowed = sorted(value for name, value in verdict.figures.items() if name.endswith("allowed"))
    assert allowed == pytest.approx([0.01, 0.01, 0.05, 0.05, 0.2])


def test_growth_that_still_bends_is_not_judged() -> None:
    values = {256: 256.0, 1024: 256.0 * 4**0.9, 4096: 256.0 * 4**0.9 * 4**0.7}
    bending = [
        seen({"episodes": T, "seed": k}, regret=noise * values[T]) for T in values for k, noise in enumerate(NOISE)
    ]
    verdict = judged("T6", bending)
    assert verdict.status is Status.UNTESTED
    assert "falling" in verdict.sentence


def test_the_linear_prefix_is_not_judged() -> None:
    flat = curve("mixing_total", 1.0, "safe-growth", first_mixing=1.0, regret=-1.0)
    verdict = judged("T10", flat)
    assert verdict.status is Status.UNTESTED
    assert "prefix" in verdict.sentence


def test_noise_is_not_judged() -> None:
    wild = [
        seen({"episodes": T, "seed": k}, regret=T * factor)
        for T in HORIZONS
        for k, factor in enumerate((0.01, 0.02, 3.0))
    ]
    assert judged("T6", wild).status is Status.UNTESTED


def test_growth_that_may_be_slow_enough_is_not_refuted() -> None:
    """The exponent is too large, its interval is narrow enough to be judged, but begins below what is allowed."""
    unsure = [
        seen({"episodes": T, "seed": k}, regret=factor * T**0.65)
        for T in HORIZONS
        for k, factor in enumerate((0.8, 1.0, 1.2))
    ]
    verdict = judged("T6", unsure)
    figures = verdict.figures
    assert figures["0.low"] < figures["0.allowed"] < figures["0.exponent"] < figures["0.high"]
    assert verdict.status is Status.UNTESTED
    assert "too noisy" in verdict.sentence


def test_the_lower_bound_says_nothing_about_learners_that_violate() -> None:
    verdict = judged("T17", pair(0.01, violation=50.0))
    assert verdict.status is Status.UNTESTED
    assert "premise" in verdict.sentence


def test_no_runs_is_not_a_success() -> None:
    for key in BY_KEY:
        assert judged(key, []).status is Status.UNTESTED


def test_joining_verdicts() -> None:
    good, bad, open_ = holds("good"), refuted("bad"), untested("open")
    assert together(good, bad, open_).status is any_of([good, bad, open_]).status is Status.REFUTED
    assert together(good, open_).status is Status.UNTESTED
    assert any_of([good, open_]).status is Status.HOLDS
    assert together(good, good).status is Status.HOLDS
    assert "not tested: open" in any_of([good, open_]).sentence
    assert "not tested: open. " in together(together(good, open_), good).sentence
    assert never("x", []).status is rate("x", [], 0.5).status is any_of([]).status is Status.UNTESTED


def test_likelihood_ratios_of_runs_with_one_seed_are_averaged_and_of_several_multiplied() -> None:
    """Runs with one seed share their random numbers: forty of them say no more than one."""
    ratio = 9.0
    same = [seen({"seed": 0}, coin_3=math.log(ratio)) for _ in range(40)]
    several = [seen({"seed": k}, coin_3=math.log(ratio)) for k in range(3)]
    others = (len(ODDS) - 1) * math.exp(-0.1)
    assert math.exp(log_evidence(same, "coin")) == pytest.approx((ratio + others) / len(ODDS))
    tripled = (len(ODDS) - 1) * math.exp(-0.3)
    assert math.exp(log_evidence(several, "coin")) == pytest.approx((ratio**3 + tripled) / len(ODDS))
    assert judged("T25", same).status is Status.HOLDS


def test_learners_that_mix_nothing_in_have_no_coin() -> None:
    assert judged("T25", [seen(None, mixing_total=0.0)]).status is Status.UNTESTED
