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
    from hedgerow import confidence, errors, field, learners, results, worlds
    from hedgerow.confidence.snapshot import Estimates
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
    from hedgerow.experiments.api import sweep
    from hedgerow.importers.gym_table import unroll_gymnasium
    from hedgerow.importers.logs import Log
    from hedgerow.importers.tables import TableWorld, from_table
    from hedgerow.importers.unroll import unroll
    from hedgerow.learners.api import Learner, Plan, SafePolicy
    from hedgerow.learners.guarantees import Ledger
    from hedgerow.learners.ops.cv_ops import CVOPS
    from hedgerow.learners.ops.s_ops import SOPS
    from hedgerow.learners.ops.sv_ops import SVOPS
    from hedgerow.learners.ops.uob_reps import UOBREPS
    from hedgerow.learners.premises import PremiseError, PremiseWarning
    from hedgerow.learners.saving import save
    from hedgerow.learners.statistics import Statistics
    from hedgerow.losses import oblivious
    from hedgerow.model import occupancy
    from hedgerow.model.actions import Actions
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.costs import BernoulliCosts, BetaCosts, CostDistribution, DeterministicCosts, EmpiricalCosts
    from hedgerow.model.episode import Episode
    from hedgerow.model.knowledge import Knowledge
    from hedgerow.model.layout import Layout
    from hedgerow.model.policy import Mixture, Policy
    from hedgerow.model.view import View
    from hedgerow.planning import offline
    from hedgerow.projection.certificate import Certificate, certify
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.projector import Projector
    from hedgerow.projection.result import ProjectionResult, ProjectionSettings, ProjectionStatus
    from hedgerow.projection.solve import WarmStart, project
    from hedgerow.registry import costs, worlds
    from hedgerow.report.export import save_figure
    from hedgerow.report.page import report
    from hedgerow.simulation.result import Run
    from hedgerow.simulation.run import simulate
    from hedgerow.testing.check_learner import check_learner

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
    "catalogue": "hedgerow.worlds",
    "errors": "hedgerow.errors",
    "estimates": "hedgerow.confidence",
    "field": "hedgerow.field",
    "learners": "hedgerow.learners",
    "losses": "hedgerow.losses.oblivious",
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
    "hedgerow.learners.ops.cv_ops": ("CVOPS",),
    "hedgerow.learners.ops.s_ops": ("SOPS",),
    "hedgerow.learners.ops.sv_ops": ("SVOPS",),
    "hedgerow.learners.ops.uob_reps": ("UOBREPS",),
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
    "hedgerow.experiments.api": ("sweep",),
    "hedgerow.importers.gym_table": ("unroll_gymnasium",),
    "hedgerow.importers.logs": ("Log",),
    "hedgerow.importers.tables": ("TableWorld", "from_table"),
    "hedgerow.testing.check_learner": ("check_learner",),
    "hedgerow.environments.protocol": ("Environment",),
    "hedgerow.confidence.snapshot": ("Estimates",),
    "hedgerow.learners.guarantees": ("Ledger",),
    "hedgerow.learners.premises": ("PremiseError", "PremiseWarning"),
    "hedgerow.learners.saving": ("save",),
    "hedgerow.learners.api": ("Learner", "Plan", "SafePolicy"),
    "hedgerow.learners.statistics": ("Statistics",),
    "hedgerow.model.actions": ("Actions",),
    "hedgerow.model.episode": ("Episode",),
    "hedgerow.model.layout": ("Layout",),
    "hedgerow.model.policy": ("Mixture", "Policy"),
    "hedgerow.report.export": ("save_figure",),
    "hedgerow.report.page": ("report",),
    "hedgerow.importers.unroll": ("unroll",),
    "hedgerow.projection.certificate": ("Certificate", "certify"),
    "hedgerow.projection.problem": ("ProjectionProblem",),
    "hedgerow.projection.projector": ("Projector",),
    "hedgerow.projection.result": ("ProjectionResult", "ProjectionSettings", "ProjectionStatus"),
    "hedgerow.projection.solve": ("WarmStart", "project"),
    "hedgerow.registry": ("costs", "worlds"),
    "hedgerow.simulation.result": ("Run",),
    "hedgerow.simulation.run": ("simulate",),
}

_READERS = {
    "cmdp": ("hedgerow.model.cmdp", "CMDP", "from_file"),
    "view": ("hedgerow.model.view", "View", "from_file"),
    "learner": ("hedgerow.learners.ops.files", "from_file"),
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
    from hedgerow.errors import FileFormatError
    from hedgerow.storage import datafile

    file = datafile.load(path)
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
