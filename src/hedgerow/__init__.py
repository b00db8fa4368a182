"""hedgerow: online learning in episodic constrained MDPs with adversarial losses and hard constraints.

Every public name is listed here, once. Names are resolved on first use, so that `import hedgerow` costs next to nothing
and a program that only solves a linear program never loads a compiler.

    >>> import hedgerow as hr
    >>> hr.Layout((1, 2, 1), num_actions=3)
    Layout(layers=(1, 2, 1), actions=3, full support)
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow import catalogue, errors, estimates, field, learners, results
    from hedgerow.adversaries import losses
    from hedgerow.contract.checker import check_learner
    from hedgerow.environments.protocol import Environment
    from hedgerow.errors import (
        BusyError,
        CertificateError,
        FileFormatError,
        HedgerowError,
        InfeasibleError,
        InfeasibleWarning,
        InvalidInput,
    )
    from hedgerow.estimates.frames import Estimates
    from hedgerow.experiments.whole import sweep
    from hedgerow.importers.gym_table import unroll_gymnasium
    from hedgerow.importers.logs import Log
    from hedgerow.importers.tables import TableWorld, from_table
    from hedgerow.importers.unroll import unroll
    from hedgerow.learners.ledger import Ledger
    from hedgerow.learners.mirror.cvops import CVOPS
    from hedgerow.learners.mirror.sops import SOPS
    from hedgerow.learners.mirror.svops import SVOPS
    from hedgerow.learners.mirror.uobreps import UOBREPS
    from hedgerow.learners.premises import PremiseError, PremiseWarning
    from hedgerow.learners.protocol import Learner, Plan, SafePolicy
    from hedgerow.learners.saving import save
    from hedgerow.learners.statistics import Statistics
    from hedgerow.model import occupancy
    from hedgerow.model.actions import Actions
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.costs import BernoulliCosts, BetaCosts, CostDistribution, DeterministicCosts, EmpiricalCosts
    from hedgerow.model.episode import Episode
    from hedgerow.model.knowledge import Knowledge
    from hedgerow.model.layout import Layout
    from hedgerow.model.policy import Mixture, Policy
    from hedgerow.model.view import View
    from hedgerow.pages.export import save_figure
    from hedgerow.pages.page import report
    from hedgerow.planning import offline
    from hedgerow.projection.certificate import Certificate, certify
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.projector import Projector
    from hedgerow.projection.result import ProjectionResult, ProjectionSettings, ProjectionStatus
    from hedgerow.projection.solve import WarmStart, project
    from hedgerow.registry import costs, worlds
    from hedgerow.simulation.outcome import Run
    from hedgerow.simulation.run import simulate

    __version__: str

__all__ = [
    "CMDP",
    "CVOPS",
    "SOPS",
    "SVOPS",
    "UOBREPS",
    "Actions",
    "BernoulliCosts",
    "BetaCosts",
    "BusyError",
    "Certificate",
    "CertificateError",
    "CostDistribution",
    "DeterministicCosts",
    "EmpiricalCosts",
    "Environment",
    "Episode",
    "Estimates",
    "FileFormatError",
    "HedgerowError",
    "InfeasibleError",
    "InfeasibleWarning",
    "InvalidInput",
    "Knowledge",
    "Layout",
    "Learner",
    "Ledger",
    "Log",
    "Mixture",
    "Plan",
    "Policy",
    "PremiseError",
    "PremiseWarning",
    "ProjectionProblem",
    "ProjectionResult",
    "ProjectionSettings",
    "ProjectionStatus",
    "Projector",
    "Run",
    "SafePolicy",
    "Statistics",
    "TableWorld",
    "View",
    "WarmStart",
    "__version__",
    "catalogue",
    "certify",
    "check_learner",
    "costs",
    "errors",
    "estimates",
    "field",
    "from_table",
    "learners",
    "load",
    "losses",
    "occupancy",
    "offline",
    "project",
    "report",
    "results",
    "save",
    "save_figure",
    "simulate",
    "sweep",
    "unroll",
    "unroll_gymnasium",
    "worlds",
]

_MODULES = {
    "catalogue": "hedgerow.catalogue",
    "errors": "hedgerow.errors",
    "estimates": "hedgerow.estimates",
    "field": "hedgerow.field",
    "learners": "hedgerow.learners",
    "losses": "hedgerow.adversaries.losses",
    "occupancy": "hedgerow.model.occupancy",
    "offline": "hedgerow.planning.offline",
    "results": "hedgerow.results",
}

_HOME = {
    "hedgerow.errors": (
        "BusyError",
        "CertificateError",
        "FileFormatError",
        "HedgerowError",
        "InfeasibleError",
        "InfeasibleWarning",
        "InvalidInput",
    ),
    "hedgerow.learners.mirror.cvops": ("CVOPS",),
    "hedgerow.learners.mirror.sops": ("SOPS",),
    "hedgerow.learners.mirror.svops": ("SVOPS",),
    "hedgerow.learners.mirror.uobreps": ("UOBREPS",),
    "hedgerow.model.cmdp": ("CMDP",),
    "hedgerow.model.knowledge": ("Knowledge",),
    "hedgerow.model.view": ("View",),
    "hedgerow.model.costs": (
        "BernoulliCosts",
        "BetaCosts",
        "CostDistribution",
        "DeterministicCosts",
        "EmpiricalCosts",
    ),
    "hedgerow.experiments.whole": ("sweep",),
    "hedgerow.importers.gym_table": ("unroll_gymnasium",),
    "hedgerow.importers.logs": ("Log",),
    "hedgerow.importers.tables": ("TableWorld", "from_table"),
    "hedgerow.contract.checker": ("check_learner",),
    "hedgerow.environments.protocol": ("Environment",),
    "hedgerow.estimates.frames": ("Estimates",),
    "hedgerow.learners.ledger": ("Ledger",),
    "hedgerow.learners.premises": ("PremiseError", "PremiseWarning"),
    "hedgerow.learners.saving": ("save",),
    "hedgerow.learners.protocol": ("Learner", "Plan", "SafePolicy"),
    "hedgerow.learners.statistics": ("Statistics",),
    "hedgerow.model.actions": ("Actions",),
    "hedgerow.model.episode": ("Episode",),
    "hedgerow.model.layout": ("Layout",),
    "hedgerow.model.policy": ("Mixture", "Policy"),
    "hedgerow.pages.export": ("save_figure",),
    "hedgerow.pages.page": ("report",),
    "hedgerow.importers.unroll": ("unroll",),
    "hedgerow.projection.certificate": ("Certificate", "certify"),
    "hedgerow.projection.problem": ("ProjectionProblem",),
    "hedgerow.projection.projector": ("Projector",),
    "hedgerow.projection.result": ("ProjectionResult", "ProjectionSettings", "ProjectionStatus"),
    "hedgerow.projection.solve": ("WarmStart", "project"),
    "hedgerow.registry": ("costs", "worlds"),
    "hedgerow.simulation.outcome": ("Run",),
    "hedgerow.simulation.run": ("simulate",),
}

_READERS = {
    "cmdp": ("hedgerow.model.cmdp", "CMDP", "from_file"),
    "view": ("hedgerow.model.view", "View", "from_file"),
    "learner": ("hedgerow.learners.mirror.files", "from_file"),
    "own-learner": ("hedgerow.learners.saving", "from_file"),
}
"""By kind of data file: where its reader is. Compilers are only loaded for files that need them."""

_MEMBERS = {name: module for module, names in _HOME.items() for name in names}


def load(path: str | os.PathLike[str]) -> CMDP | View | Learner:
    """Read any data file that hedgerow wrote.

    Args:
        path: The file.

    Returns:
        A CMDP, a view or a learner: what the file holds.

    Raises:
        FileFormatError: If the file cannot be read, is damaged, or holds something else.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     view.save(f"{folder}/view.npz")
        ...     hr.load(f"{folder}/view.npz").constraint_names
        ('delay',)
    """
    from hedgerow import files
    from hedgerow.errors import FileFormatError

    file = files.load(path)
    if file.kind not in _READERS:
        raise FileFormatError(f"{path} holds a {file.kind!r}; this release can load: {', '.join(_READERS)}")
    module, *attributes = _READERS[file.kind]
    reader: Any = importlib.import_module(module)
    for attribute in attributes:
        reader = getattr(reader, attribute)
    content: CMDP | View | Learner = reader(file, str(path))
    return content


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _MEMBERS:
        value = getattr(importlib.import_module(_MEMBERS[name]), name)
    elif name == "__version__":
        value = importlib.import_module("importlib.metadata").version("hedgerow")
    else:
        near = importlib.import_module("difflib").get_close_matches(name, __all__, n=2)
        advice = f"did you mean {' or '.join(near)}?" if near else f"public names: {', '.join(__all__)}"
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}; {advice}")
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
