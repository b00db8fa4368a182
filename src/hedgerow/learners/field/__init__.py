"""The other learners of the field, which SV-OPS, S-OPS and CV-OPS are compared with.

    >>> import hedgerow as hr
    >>> hr.field.Uniform.inputs
    Inputs(episodes=False, delta=False, baseline=False, slater=False, cheats='')

Each is registered under its own name, for experiments and the command line: `hr.learners.names()`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
