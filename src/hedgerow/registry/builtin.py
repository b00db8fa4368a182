"""What ships with hedgerow, by name: strings, so that nothing is imported before somebody asks for it.

The order is the one of lists and reports.
"""

from __future__ import annotations

_MIRROR = "hedgerow.learners.mirror"
_FIELD = "hedgerow.learners.field"
_LOSSES = "hedgerow.adversaries"
_COSTS = "hedgerow.model.costs"
_CATALOGUE = "hedgerow.catalogue"

LEARNERS = {
    "sv-ops": f"{_MIRROR}.svops:SVOPS",
    "s-ops": f"{_MIRROR}.sops:SOPS",
    "cv-ops": f"{_MIRROR}.cvops:CVOPS",
    "uob-reps": f"{_MIRROR}.uobreps:UOBREPS",
    "opt-primal-dual": f"{_FIELD}.opt_primal_dual:OptPrimalDual",
    "opse-dp": f"{_FIELD}.opse_dp:OPSEDP",
    "triple-q": f"{_FIELD}.triple_q:TripleQ",
    "always-baseline": f"{_FIELD}.always_baseline:AlwaysBaseline",
    "uniform": f"{_FIELD}.uniform:Uniform",
}

WORLDS = {
    "random-layered": f"{_CATALOGUE}.random_layered:random_layered",
    "lower-bound-1": f"{_CATALOGUE}.lower_bound:lower_bound_1",
    "lower-bound-2": f"{_CATALOGUE}.lower_bound:lower_bound_2",
    "dope-factored": f"{_CATALOGUE}.dope:dope_factored",
    "dope-media": f"{_CATALOGUE}.dope:dope_media",
    "dope-inventory": f"{_CATALOGUE}.dope:dope_inventory",
    "ev-workday": f"{_CATALOGUE}.ev_workday:ev_workday",
    "ev-workday-hard": f"{_CATALOGUE}.ev_workday:ev_workday_hard",
}

ADVERSARIES = {
    "fixed": f"{_LOSSES}.losses:Fixed",
    "iid": f"{_LOSSES}.losses:IID",
    "switching": f"{_LOSSES}.losses:Switching",
    "drifting": f"{_LOSSES}.losses:Drifting",
    "random-walk": f"{_LOSSES}.random_walk:RandomWalk",
    "replay": f"{_LOSSES}.losses:Replay",
    "pursuit": f"{_LOSSES}.adaptive:Pursuit",
    "ev-days": f"{_CATALOGUE}.ev_days:EVDays",
}

COSTS = {
    "bernoulli": f"{_COSTS}:BernoulliCosts",
    "deterministic": f"{_COSTS}:DeterministicCosts",
    "beta": f"{_COSTS}:BetaCosts",
    "empirical": f"{_COSTS}:EmpiricalCosts",
}
