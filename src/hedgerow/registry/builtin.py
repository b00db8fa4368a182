"""What ships with hedgerow, by name: strings, so that nothing is imported before somebody asks for it.

The order is the one of lists and reports.
"""

from __future__ import annotations

_MIRROR = "hedgerow.learners.ops"
_FIELD = "hedgerow.learners.field"
_LOSSES = "hedgerow.losses"
_COSTS = "hedgerow.model.costs"
_CATALOGUE = "hedgerow.worlds"

LEARNERS = {
    "sv-ops": f"{_MIRROR}.sv_ops:SVOPS",
    "s-ops": f"{_MIRROR}.s_ops:SOPS",
    "cv-ops": f"{_MIRROR}.cv_ops:CVOPS",
    "uob-reps": f"{_MIRROR}.uob_reps:UOBREPS",
    "opt-cmdp": f"{_FIELD}.opt_cmdp:OptCMDP",
    "opt-pess-lp": f"{_FIELD}.opt_pess_lp:OptPessLP",
    "dope": f"{_FIELD}.dope:DOPE",
    "opt-primal-dual": f"{_FIELD}.primal_dual:OptPrimalDual",
    "ucpd": f"{_FIELD}.flow:UCPD",
    "ucpd-ix": f"{_FIELD}.flow:UCPDIX",
    "bob-pd": f"{_FIELD}.flow:BoBPD",
    "s-lp": f"{_FIELD}.s_lp:SLP",
    "safe-etc": f"{_FIELD}.safe_etc:SafeETC",
    "opse-dp": f"{_FIELD}.opse_dp:OPSEDP",
    "triple-q": f"{_FIELD}.triple_q:TripleQ",
    "always-baseline": f"{_FIELD}.controls:AlwaysBaseline",
    "uniform": f"{_FIELD}.controls:Uniform",
    "oracle": f"{_FIELD}.controls:Oracle",
}

WORLDS = {
    "random-layered": f"{_CATALOGUE}.random:random_layered",
    "lower-bound-1": f"{_CATALOGUE}.lower_bound:lower_bound_1",
    "lower-bound-2": f"{_CATALOGUE}.lower_bound:lower_bound_2",
    "dope-factored": f"{_CATALOGUE}.dope:dope_factored",
    "dope-media": f"{_CATALOGUE}.dope:dope_media",
    "dope-inventory": f"{_CATALOGUE}.dope:dope_inventory",
    "alwayssafe-simple": f"{_CATALOGUE}.alwayssafe:alwayssafe_simple",
    "alwayssafe-difficult": f"{_CATALOGUE}.alwayssafe:alwayssafe_difficult",
    "alwayssafe-cliff": f"{_CATALOGUE}.alwayssafe:alwayssafe_cliff",
    "conrl-8x8": f"{_CATALOGUE}.conrl:conrl_8x8",
    "conrl-grid": f"{_CATALOGUE}.conrl:conrl_grid",
    "conrl-box": f"{_CATALOGUE}.conrl:conrl_box",
    "triple-q-grid": f"{_CATALOGUE}.triple_q:triple_q_grid",
    "oreps-grid": f"{_CATALOGUE}.oreps:oreps_grid",
    "frozen4-hurry": f"{_CATALOGUE}.gym_maps:frozen4_hurry",
    "frozen4-goal": f"{_CATALOGUE}.gym_maps:frozen4_goal",
    "cliff-slippery": f"{_CATALOGUE}.gym_maps:cliff_slippery",
    "ev-workday": f"{_CATALOGUE}.ev.workday:ev_workday",
    "ev-workday-hard": f"{_CATALOGUE}.ev.workday:ev_workday_hard",
    "streaming-5": f"{_CATALOGUE}.queues:streaming_5",
    "streaming-20": f"{_CATALOGUE}.queues:streaming_20",
    "masa-streaming": f"{_CATALOGUE}.queues:masa_streaming",
    "altman-queue": f"{_CATALOGUE}.queues:altman_queue",
    "random-uniform-pac": f"{_CATALOGUE}.random:random_uniform_pac",
    "random-episode-wise": f"{_CATALOGUE}.random:random_episode_wise",
    "linear-cmdp": f"{_CATALOGUE}.random:linear_cmdp",
    "pollution-ring": f"{_CATALOGUE}.pollution:pollution_ring",
    "bidding": f"{_CATALOGUE}.small_examples:bidding",
    "ev-charging": f"{_CATALOGUE}.small_examples:ev_charging",
    "maintenance": f"{_CATALOGUE}.small_examples:maintenance",
    "slater-chain": f"{_CATALOGUE}.slater:slater_chain",
    "slater-needle": f"{_CATALOGUE}.slater:slater_needle",
    "lock": f"{_CATALOGUE}.slater:lock",
}

ADVERSARIES = {
    "fixed": f"{_LOSSES}.oblivious:Fixed",
    "iid": f"{_LOSSES}.oblivious:IID",
    "switching": f"{_LOSSES}.oblivious:Switching",
    "drifting": f"{_LOSSES}.oblivious:Drifting",
    "random-walk": f"{_LOSSES}.oblivious:RandomWalk",
    "replay": f"{_LOSSES}.oblivious:Replay",
    "pursuit": f"{_LOSSES}.adaptive:Pursuit",
    "cycle": f"{_LOSSES}.oblivious:Cycle",
    "betrayal": f"{_LOSSES}.oblivious:Betrayal",
    "hidden": f"{_LOSSES}.oblivious:Hidden",
    "early-bird": f"{_LOSSES}.world_aware:EarlyBird",
    "tempting": f"{_LOSSES}.world_aware:Tempting",
    "ev-days": f"{_CATALOGUE}.ev.replay:EVDays",
}

COSTS = {
    "bernoulli": f"{_COSTS}:BernoulliCosts",
    "deterministic": f"{_COSTS}:DeterministicCosts",
    "beta": f"{_COSTS}:BetaCosts",
    "empirical": f"{_COSTS}:EmpiricalCosts",
}
