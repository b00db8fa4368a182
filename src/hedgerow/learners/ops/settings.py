"""The switches of a learner, the presets, and what a change voids.

paper   radii and bounds as printed, with the repairs of the known defects
sharp   valid improvements: tight radii, costs clipped to [0, 1], joint robust cost, the costs of the mixture that
        CV-OPS finds bounded one by one; the same guarantees
sharpest  the best valid combination, for the fewest episodes: intervals of the kind kt, what rows share, the aggregate
        certificate, balls for wide rows, adaptive rates; the same guarantees
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from hedgerow.checks import did_you_mean, real_number, short_repr, whole_number
from hedgerow.confidence.radii import KINDS, WITHOUT_HORIZON, Radii
from hedgerow.confidence.sets import SETS, SetChoice, checked_word
from hedgerow.errors import InvalidInput

Preset = Literal["paper", "sharp", "sharpest"]
DEFAULT_PRESET: Preset = "sharpest"
"""Of all learners and experiments that name none; "paper" is for reproducing the paper."""


MOST_FACTOR, MOST_SHARE = 1e3, 0.01
"""Of the rates, up or down from the paper's; of the uniform weights"""


class CommonSwitches(TypedDict, total=False):
    """The switches that every learner has."""

    sets: Literal["paper", "sharp", "sharpest"]
    radii: Literal["paper", "tight", "anytime", "kt"]
    ties: bool
    confidence_scale: float
    clip_costs: bool
    tol: float
    horizon: Literal["fixed", "doubling"]
    on_refuted: Literal["stay", "warn", "raise"]
    eta: Literal["paper", "adaptive"] | float
    gamma: Literal["paper"] | float
    share: float


class MixingSwitches(CommonSwitches, total=False):
    """The switches of learners with a baseline."""

    joint_cost: bool
    aggregate: bool
    ball_from: int
    anchored: bool


class BaselineSwitches(MixingSwitches, total=False):
    """The switches of learners that are given a baseline."""

    stay: Literal["off", "forecast"]


class SearchSwitches(MixingSwitches, total=False):
    """The switches of CV-OPS."""

    phase2_stats: Literal["keep", "discard"]
    search_radius: Literal["range", "variance"]
    baseline_bound: Literal["margin", "each"]


class BudgetSwitches(BaselineSwitches, total=False):
    """The switches of B-OPS."""

    rule: Literal["ceiling", "bound"]


CHOICES = {
    name: get_args(kind)
    for name, kind in (get_type_hints(SearchSwitches) | get_type_hints(BudgetSwitches)).items()
    if get_origin(kind) is Literal and name not in ("radii", "sets")  # which have messages of their own
}
RADII: tuple[str, ...] = get_args(get_type_hints(CommonSwitches)["radii"])
"""Not all kinds: the regret constants count the widths of the paper's radii; those of Efroni et al. may be wider."""


def names_of(switches: type) -> frozenset[str]:
    """The switches of a typed dictionary, by name."""
    return frozenset(get_type_hints(switches))


@dataclass(frozen=True)
class Settings:
    """All switches of the shipped learners, with their values in the preset "paper".

    `learner.settings` holds those of a learner. Set them in the constructor, by a preset and by name. No switch voids a
    promise unless its text says so; `learner.guarantees()` always says what holds. Each class of learners takes the
    switches that mean something to it.
    """

    preset: str = "paper"
    """The preset that the others came from: "paper", "sharp" or "sharpest"."""
    radii: str = "paper"
    """Kind of confidence radii: "paper" as printed; "tight" smaller, for a known number of episodes; "anytime" and
    "kt" need no such number, and "kt" also uses how small a mean is."""
    confidence_scale: float = 1.0
    """Factor on all radii, in (0, 1]. Below 1 every promise that holds with high probability is void."""
    ties: bool = False
    """Whether rows that are known to share a law are counted together."""
    clip_costs: bool = False
    """Whether bounds of mean costs are clipped to [0, 1]."""
    joint_cost: bool = False
    """Whether the cost of a policy is bounded over all steps at once, which is smaller than step by step."""
    aggregate: bool = False
    """Whether the cost of a policy is also bounded by the sums over the learner's own episodes; needs radii="kt"."""
    ball_from: int = 0
    """Rows with at least this many successors have a ball in relative entropy beside their box; 0 for none. Needs
    radii="kt" and joint_cost=True."""
    anchored: bool = False
    """Whether the cost of a policy is also bounded by the known cost of the baseline and the largest difference to it;
    not where the baseline is a mixture, as that of CV-OPS. No preset has it: it seldom helps (docs/anchored.md)."""
    phase2_stats: str = "keep"
    """Whether phase 2 of CV-OPS starts with what phase 1 saw ("keep") or without it ("discard")."""
    search_radius: str = "range"
    """Whether the radius of phase 1 rests on the largest possible costs ("range") or on how much they vary
    ("variance")."""
    baseline_bound: str = "margin"
    """How the costs of the found mixture are bounded: all by the margin rho_hat ("margin"), or one by one ("each")."""
    rule: str = "bound"
    """What B-OPS charges an own episode with before it is played: the upper bound of its policy's cost ("bound"), which
    needs the confidence sets, or the most that an episode can cost ("ceiling"), which needs nothing."""
    stay: str = "off"
    """Whether to keep the baseline while a forecast says that leaving it does not pay by the last episode: "off", or
    "forecast", which needs the number of episodes. It voids no promise; the ledger says what it adds to the regret."""
    horizon: str = "fixed"
    """Either "fixed" for a known number of episodes, or "doubling" to restart after 1, 2, 4, ... episodes, which
    costs a factor 3.41 of the regret and needs radii "anytime" or "kt"."""
    on_refuted: str = "stay"
    """What to do when the learner's own observations refute something that it was told, such as what its baseline
    costs: "stay" warns and leaves every further episode to the baseline, if there is one; "warn" warns and goes on;
    "raise" raises a `PremiseError` and then stays. The ledger is void in any case."""
    eta: float | str = "paper"
    """The learning rate: "paper" as printed, a number for a multiple of that, from 0.001 to 1000, or "adaptive" for one
    that falls as far as what was seen asks for. Larger rates follow changing losses faster and lose more against an
    adversary that follows the learner. No rate voids a promise; the ledger says what it does to the regret."""
    gamma: float | str = "paper"
    """The implicit exploration, which keeps loss estimates small: "paper" as printed, or a number for a multiple of
    that, from 0.001 to 1000. Smaller ones use what was seen sooner."""
    share: float = 0.0
    """The weight of the uniform occupancy that is mixed in per episode, 0 to 0.01. With one there is a promise against
    sequences of policies that change; about one change in 1 / share episodes is cheap."""
    tol: float = 1e-10
    """Tolerance of the projection, 1e-14 to 1e-3. A large one voids regret and violation, never safety."""

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InvalidInput(no_preset(self.preset))
        if self.radii not in RADII:
            others = "; the learners of hr.field have them" if self.radii in tuple(KINDS) else ""
            raise InvalidInput(f"the radii are {short_repr(self.radii)}; choose one of {', '.join(RADII)}{others}")
        Radii(self.radii, self.confidence_scale)  # refuses a scale that is none
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(allowed)}")
        for name in ("ties", "clip_costs", "joint_cost", "aggregate", "anchored"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} must be True or False, not {getattr(self, name)!r}")
        for name, words in (("eta", ("paper", "adaptive")), ("gamma", ("paper",))):
            object.__setattr__(self, name, _checked_rate(name, getattr(self, name), words))
        object.__setattr__(self, "share", real_number("share", self.share, 0.0, MOST_SHARE))
        object.__setattr__(self, "tol", real_number("tol", self.tol, 1e-14, 1e-3))
        object.__setattr__(self, "ball_from", whole_number("ball_from", self.ball_from, 0))
        if self.radii != "kt" and (self.aggregate or self.ball_from):
            name = "aggregate" if self.aggregate else "ball_from"
            raise InvalidInput(f"{name} belongs to radii='kt', which share their failure probability with it")
        if self.ball_from and not self.joint_cost:
            raise InvalidInput("ball_from belongs to joint_cost=True: balls bound the joint cost")
        if self.horizon == "doubling" and self.radii not in WITHOUT_HORIZON:
            raise InvalidInput(
                f"without a horizon (horizon='doubling') the radii must be 'anytime' or 'kt', not {self.radii!r}: "
                "the others need the number of episodes"
            )

        if self.horizon == "doubling" and self.stay != "off":
            raise InvalidInput(
                "stay='forecast' needs the number of episodes, and horizon='doubling' has none: choose stay='off', or "
                "give episodes and horizon='fixed'"
            )

    @property
    def choice(self) -> SetChoice:
        """The confidence sets that the switches describe."""
        radii = Radii(self.radii, self.confidence_scale)
        return SetChoice(radii, self.ties, self.clip_costs, self.joint_cost, self.aggregate, self.ball_from)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "sharp": {**SETS["sharp"], "joint_cost": True, "baseline_bound": "each"},
    "sharpest": {
        **SETS["sharpest"], "joint_cost": True, "search_radius": "variance", "baseline_bound": "each",
        "eta": "adaptive", "gamma": 0.1,
    },
}  # fmt: skip


def make_settings(preset: str, switches: Mapping[str, Any], known: frozenset[str], learner: str) -> Settings:
    """The settings of a preset with some switches changed; `known` are the switches that the learner has.

    The switch `sets` stands for those of `SETS`; single ones come after it.
    """
    if preset not in PRESETS:
        raise InvalidInput(no_preset(preset))
    unknown = sorted(set(switches) - known)
    if unknown:
        near = did_you_mean(unknown[0], sorted(known)).replace("known:", "its switches are")
        raise InvalidInput(f"{learner} has no switch {unknown[0]!r}{near}")
    switches, sets = dict(switches), switches.get("sets")
    switches.pop("sets", None)
    group = {} if sets is None else SETS[checked_word(sets, tuple(SETS))]
    changes = {**PRESETS[preset], **group, **switches}
    if changes.get("horizon") == "doubling" and "radii" not in switches and changes.get("radii") not in WITHOUT_HORIZON:
        changes["radii"] = "anytime"
    # A value that a preset sets only because of a switch is dropped with that switch.
    # B-OPS that charges ceilings needs no bounds of costs, whose certificates cost the sets a share of their delta.
    if changes.get("radii") != "kt" or changes.get("rule") == "ceiling":
        changes = {"aggregate": False, "ball_from": 0, **_without(changes, {"aggregate", "ball_from"} - set(switches))}
    if not changes.get("joint_cost"):
        changes = {"ball_from": 0, **_without(changes, {"ball_from"} - set(switches))}
    return Settings(preset=preset, **changes)


def _without(changes: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name not in names}


def _checked_rate(name: str, value: Any, words: tuple[str, ...]) -> float | str:
    """A multiple of the paper's rate, or one of the words."""
    if isinstance(value, str):
        if value in words:
            return value
        choices = " or ".join(map(repr, words))
        raise InvalidInput(f"{name} is {short_repr(value)}; choose {choices}, or a multiple of the paper's rate")
    return real_number(name, value, 1.0 / MOST_FACTOR, MOST_FACTOR)


def no_preset(preset: object) -> str:
    """What is said of a preset that there is not."""
    near = did_you_mean(str(preset), PRESETS).replace("known:", "choose one of")
    return f"the preset is {short_repr(preset)}{near}"


def confidence_void(settings: Settings) -> str:
    """Why promises that rest on the confidence sets do not hold, or the empty string."""
    if settings.confidence_scale < 1.0:
        return f"confidence_scale = {settings.confidence_scale:g} < 1: the truth may leave the confidence sets"
    return ""


def accuracy_void(settings: Settings, eta: float, steps: int, episodes: int) -> str:
    """Why regret and violation are not proved at this accuracy of the projection, or the empty string.

    A relative error e of q_hat adds at most L e / eta to the regret of an episode, so that e <= eta / (L sqrt(T)) keeps
    the sum below sqrt(T).
    """
    allowed = eta / (steps * float(episodes) ** 0.5)
    if settings.tol > allowed:
        return f"tol = {settings.tol:g} is above eta / (L sqrt(T)) = {allowed:.1e}"
    return ""


def budget_events(settings: Settings) -> int:
    """How many events of probability delta the budget of B-OPS rests on: its account, and with U the clean event."""
    return 6 if settings.rule == "bound" else 1
