"""The other learners of the field, which SV-OPS, S-OPS and CV-OPS are compared with.

    >>> import hedgerow as hr
    >>> hr.field.Uniform.told
    Inputs(episodes=False, delta=False, baseline=False, slater=False, cheats='')

Each is registered under its own name, for experiments and the command line: `hr.learners.names()`.
"""

from __future__ import annotations

from hedgerow.learners.field.controls import AlwaysBaseline, Oracle, Uniform
from hedgerow.learners.field.dope import DOPE
from hedgerow.learners.field.flow import UCPD, UCPDIX, BoBPD
from hedgerow.learners.field.opse_dp import OPSEDP
from hedgerow.learners.field.opt_cmdp import OptCMDP
from hedgerow.learners.field.opt_pess_lp import OptPessLP
from hedgerow.learners.field.primal_dual import OptPrimalDual
from hedgerow.learners.field.s_lp import SLP
from hedgerow.learners.field.safe_etc import SafeETC
from hedgerow.learners.field.triple_q import TripleQ

__all__ = [
    "DOPE",
    "OPSEDP",
    "SLP",
    "UCPD",
    "UCPDIX",
    "AlwaysBaseline",
    "BoBPD",
    "OptCMDP",
    "OptPessLP",
    "OptPrimalDual",
    "Oracle",
    "SafeETC",
    "TripleQ",
    "Uniform",
]
