"""Lines of the ledger that several learners share."""

from __future__ import annotations

from hedgerow.checks import shown
from hedgerow.learners.ledger import Promise, first_reason
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.settings import accuracy_void, confidence_void, forgetting_void
from hedgerow.paper import cite


def limits(learner: MirrorLearner) -> str:
    """The thresholds by name: `delay <= 0.5, noise <= 1`."""
    view = learner.view
    named = zip(view.constraint_names, view.thresholds.tolist(), strict=True)
    return ", ".join(f"{name} <= {value:g}" for name, value in named) or "there are none"


def rests_on(learner: MirrorLearner) -> tuple[str, ...]:
    """What the learner was told, and what it learnt from episodes that it did not plan."""
    view, logged, used = learner.view, learner.core.state.logged, learner.view.knowledge
    if not learner.settings.ties:
        used = used.without_ties()
    told = [f"it is known that {line}" for line in used.described(view.layout, view.constraint_names)]
    if learner.settings.forget > 0.0:
        told.append(
            f"costs are independent draws around means that do not change: forget = {learner.settings.forget:g} can "
            "follow means that do, but then no confidence set is promised"
        )
    if logged.episodes:
        told.append(
            f"{logged.episodes} logged episodes ({logged.steps} steps): in each of them actions were chosen without "
            "seeing its costs or what would follow, and none was selected, or left out, by its outcome"
        )
    told.extend(incomplete(learner))
    return tuple(told)


def incomplete(learner: MirrorLearner) -> list[str]:
    """What the promises rest on where episodes were not whole."""
    logged, unknown, told = learner.core.state.logged, learner.core.state.incomplete.unknown, []
    if logged.costless:
        told.append(f"the costs of {logged.costless} logged episodes were left out, those of whole logs at a time")
    if unknown:
        told.append(
            f"{unknown} episodes with unknown values, for which the confidence sets have room: who stopped an "
            "episode, or took over, had not foreseen where the next step would lead"
        )
    for reason, count in learner.declared.items():
        told.append(
            f"something of {count} episodes was left out, which is declared to have nothing to do with their costs or "
            f"moves: {shown(reason)}"
        )
    if logged.interfered:
        told.append(
            f"{logged.interfered} own episodes did not follow their plans to the end: the promises are about the plans"
        )
    return told


def unknown_void(learner: MirrorLearner) -> str:
    """Why bounds on regret and summed violation do not hold, or the empty string."""
    unknown = learner.core.state.incomplete.unknown
    if unknown:
        return f"{unknown} episodes with unknown values: the confidence sets keep room for these and need not shrink"
    return ""


def clean_event(learner: MirrorLearner) -> Promise:
    return Promise(
        "confidence",
        "in every episode all transitions and mean costs lie within their confidence sets",
        learner._budget.sure(5),
        cite("gen_confidence", "confidenceset") + (", Hoeffding 1963 for weights" if learner.settings.forget else ""),
        confidence_void(learner.settings),
    )


def feasible_projection(learner: MirrorLearner) -> Promise:
    return Promise(
        "feasibility",
        "every projection has a solution, if some policy satisfies the constraints",
        learner._budget.sure(5),
        cite("feasibility"),
        confidence_void(learner.settings),
    )


def regret_reasons(learner: MirrorLearner) -> tuple[str, str]:
    """What voids a bound on regret or violation: the confidence sets; then estimates that forget, unknown values, and
    the accuracy of the projection.
    """
    settings, episodes = learner.settings, learner.episodes or max(1, learner.episode)
    accuracy = accuracy_void(settings, learner.eta, learner.layout.steps, episodes)
    return confidence_void(settings), first_reason(forgetting_void(settings), unknown_void(learner), accuracy)


def regret_statement(learner: MirrorLearner, rate: str) -> str:
    """The rate, with the factor that restarts cost."""
    return f"3.41 {rate}" if learner.settings.horizon == "doubling" else rate
