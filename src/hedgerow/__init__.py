"""hedgerow: online learning in episodic constrained MDPs with adversarial losses and hard constraints.

Every public name is listed in `__init__.pyi`, once. Names are resolved on first use, so that `import hedgerow` costs
next to nothing and a program that only solves a linear program never loads a compiler.

    >>> import hedgerow as hr
    >>> hr.Layout((1, 2, 1), num_actions=3)
    Layout(layers=(1, 2, 1), actions=3, full support)
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_load_name, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*_names, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = number = version("hedgerow")
        return number
    if name not in __all__:
        from hedgerow._nearest import nearest

        near = nearest(name, __all__)
        advice = f"did you mean {' or '.join(near)}?" if near else f"public names: {', '.join(__all__)}"
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}; {advice}")
    value = globals()[name] = _load_name(name)  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return list(__all__)
