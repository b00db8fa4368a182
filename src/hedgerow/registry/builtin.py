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
    "sv-ops": f"{_MIRROR}.svops:SVOPS",
    "s-ops": f"{_MIRROR}.sops:SOPS",
    "cv-ops": f"{_MIRROR}.cvops:CVOPS",
    "uob-reps": f"{_MIRROR}.uobreps:UOBREPS",
    "opt-cmdp": f"{_FIELD}.opt_cmdp:OptCMDP",
    "opt-pess-lp": f"{_FIELD}.opt_pess_lp:OptPessLP",
    "dope": f"{_FIELD}.dope:DOPE",
    "opt-primal-dual": f"{_FIELD}.opt_primal_dual:OptPrimalDual",
    "ucpd": f"{_FIELD}.ucpd:UCPD",
    "ucpd-ix": f"{_FIELD}.ucpd:UCPDIX",
    "bob-pd": f"{_FIELD}.bob_pd:BoBPD",
    "s-lp": f"{_FIELD}.s_lp:SLP",
    "safe-etc": f"{_FIELD}.safe_etc:SafeETC",
    "opse-dp": f"{_FIELD}.opse_dp:OPSEDP",
    "triple-q": f"{_FIELD}.triple_q:TripleQ",
    "always-baseline": f"{_FIELD}.always_baseline:AlwaysBaseline",
    "uniform": f"{_FIELD}.uniform:Uniform",
    "oracle": f"{_FIELD}.oracle:Oracle",
}

WORLDS = {
    "random-layered": f"{_CATALOGUE}.random_layered:random_layered",
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
    "ev-workday": f"{_CATALOGUE}.ev_workday:ev_workday",
    "ev-workday-hard": f"{_CATALOGUE}.ev_workday:ev_workday_hard",
    "streaming-5": f"{_CATALOGUE}.buffers:streaming_5",
    "streaming-20": f"{_CATALOGUE}.buffers:streaming_20",
    "masa-streaming": f"{_CATALOGUE}.buffers:masa_streaming",
    "altman-queue": f"{_CATALOGUE}.buffers:altman_queue",
    "random-uniform-pac": f"{_CATALOGUE}.random_worlds:random_uniform_pac",
    "random-episode-wise": f"{_CATALOGUE}.random_worlds:random_episode_wise",
    "linear-cmdp": f"{_CATALOGUE}.random_worlds:linear_cmdp",
    "pollution-ring": f"{_CATALOGUE}.pollution:pollution_ring",
    "bidding": f"{_CATALOGUE}.everyday:bidding",
    "ev-charging": f"{_CATALOGUE}.everyday:ev_charging",
    "maintenance": f"{_CATALOGUE}.everyday:maintenance",
    "slater-chain": f"{_CATALOGUE}.slater:slater_chain",
    "slater-needle": f"{_CATALOGUE}.slater:slater_needle",
    "lock": f"{_CATALOGUE}.slater:lock",
}

ADVERSARIES = {
    "fixed": f"{_LOSSES}.losses:Fixed",
    "iid": f"{_LOSSES}.losses:IID",
    "switching": f"{_LOSSES}.losses:Switching",
    "drifting": f"{_LOSSES}.losses:Drifting",
    "random-walk": f"{_LOSSES}.random_walk:RandomWalk",
    "replay": f"{_LOSSES}.losses:Replay",
    "pursuit": f"{_LOSSES}.adaptive:Pursuit",
    "cycle": f"{_LOSSES}.hard:Cycle",
    "betrayal": f"{_LOSSES}.hard:Betrayal",
    "hidden": f"{_LOSSES}.hard:Hidden",
    "early-bird": f"{_LOSSES}.worldly:EarlyBird",
    "tempting": f"{_LOSSES}.worldly:Tempting",
    "ev-days": f"{_CATALOGUE}.ev_days:EVDays",
}

COSTS = {
    "bernoulli": f"{_COSTS}:BernoulliCosts",
    "deterministic": f"{_COSTS}:DeterministicCosts",
    "beta": f"{_COSTS}:BetaCosts",
    "empirical": f"{_COSTS}:EmpiricalCosts",
}
