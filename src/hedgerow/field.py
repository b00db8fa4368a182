"""The other learners of the field, which SV-OPS, S-OPS and CV-OPS are compared with.

    >>> import hedgerow as hr
    >>> hr.field.Uniform.told
    Told(episodes=False, delta=False, baseline=False, slater=False, cheats='')

Each is registered under its own name, for experiments and the command line: `hr.learners.names()`.
"""

from __future__ import annotations

from hedgerow.learners.field.always_baseline import AlwaysBaseline
from hedgerow.learners.field.opse_dp import OPSEDP
from hedgerow.learners.field.opt_primal_dual import OptPrimalDual
from hedgerow.learners.field.triple_q import TripleQ
from hedgerow.learners.field.uniform import Uniform

__all__ = ["OPSEDP", "AlwaysBaseline", "OptPrimalDual", "TripleQ", "Uniform"]
