"""The switches of a learner, the presets, and what a change voids.

paper   radii and bounds as printed, with the repairs of the known defects
sharp   valid improvements: tight radii, costs clipped to [0, 1], joint robust cost, the costs of the mixture that
        CV-OPS finds bounded one by one; the same guarantees
sharpest  the best valid combination, for the fewest episodes: intervals of the kind kt, what rows share, the aggregate
        certificate, balls for wide rows; the same guarantees

switch             values (default first)           what is lost when it is changed
radii              paper, tight, anytime, kt        nothing
ties               False, True                      nothing: rows that share a law are counted together
confidence_scale   1, anything in (0, 1)            every promise that holds with high probability
clip_costs         False, True                      nothing
joint_cost         False, True                      nothing: a smaller valid upper bound of the cost of a policy
aggregate          False, True                      nothing: another one, from the sums over the own episodes
ball_from          0, or a number of successors     nothing: rows with so many have a KL ball beside their box; 0: none
phase2_stats       keep, discard                    nothing: what the first phase saw, in the second one
search_radius      range, variance                  nothing: what costs may vary by, or what they do vary by
baseline_bound     margin, each                     nothing: costs of the found mixture, by rho_hat or one by one
on_refuted         stay, warn, raise                nothing: what to do when something that it was told proves false
horizon            fixed, doubling                  a factor 3.41 of the regret; radii must be anytime or kt
tol                1e-10, up to 1e-3                regret and violation if above eta / (L sqrt(T)), never safety
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from hedgerow.checks import did_you_mean, real_number, short_repr, whole_number
from hedgerow.confidence.radii import KINDS, WITHOUT_HORIZON, Radii
from hedgerow.errors import InvalidInput

Preset = Literal["paper", "sharp", "sharpest"]


WIDE = 6
"""A ball pays from this many successors on: narrower rows lose more by the smaller budget of their boxes."""


class CommonSwitches(TypedDict, total=False):
    """The switches that every learner has."""

    radii: Literal["paper", "tight", "anytime", "kt"]
    ties: bool
    confidence_scale: float
    clip_costs: bool
    tol: float
    horizon: Literal["fixed", "doubling"]
    on_refuted: Literal["stay", "warn", "raise"]


class MixingSwitches(CommonSwitches, total=False):
    """The switches of learners with a baseline."""

    joint_cost: bool
    aggregate: bool
    ball_from: int


class SearchSwitches(MixingSwitches, total=False):
    """The switches of CV-OPS."""

    phase2_stats: Literal["keep", "discard"]
    search_radius: Literal["range", "variance"]
    baseline_bound: Literal["margin", "each"]


CHOICES = {
    name: get_args(kind)
    for name, kind in get_type_hints(SearchSwitches).items()
    if get_origin(kind) is Literal and name != "radii"  # which has a message of its own
}
RADII: tuple[str, ...] = get_args(get_type_hints(CommonSwitches)["radii"])
"""Not all kinds: the regret constants count the widths of the paper's radii; those of Efroni et al. may be wider."""


def names_of(switches: type) -> frozenset[str]:
    """The switches of a typed dictionary, by name."""
    return frozenset(get_type_hints(switches))


@dataclass(frozen=True)
class Settings:
    """All switches of the shipped learners, with their defaults.

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
    phase2_stats: str = "keep"
    """Whether phase 2 of CV-OPS starts with what phase 1 saw ("keep") or without it ("discard")."""
    search_radius: str = "range"
    """Whether the radius of phase 1 rests on the largest possible costs ("range") or on how much they vary
    ("variance")."""
    baseline_bound: str = "margin"
    """How the costs of the found mixture are bounded: all by the margin rho_hat ("margin"), or one by one ("each")."""
    horizon: str = "fixed"
    """Either "fixed" for a known number of episodes, or "doubling" to restart after 1, 2, 4, ... episodes, which
    costs a factor 3.41 of the regret and needs radii "anytime" or "kt"."""
    on_refuted: str = "stay"
    """What to do when the learner's own observations refute something that it was told, such as what its baseline
    costs: "stay" warns and leaves every further episode to the baseline, if there is one; "warn" warns and goes on;
    "raise" raises a `PremiseError` and then stays. The ledger is void in any case."""
    tol: float = 1e-10
    """Tolerance of the projection, 1e-14 to 1e-3. A large one voids regret and violation, never safety."""

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InvalidInput(_no_preset(self.preset))
        if self.radii not in RADII:
            others = "; the learners of hr.field have them" if self.radii in tuple(KINDS) else ""
            raise InvalidInput(f"the radii are {short_repr(self.radii)}; choose one of {', '.join(RADII)}{others}")
        Radii(self.radii, self.confidence_scale)  # refuses a scale that is none
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(allowed)}")
        for name in ("ties", "clip_costs", "joint_cost", "aggregate"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} must be True or False, not {getattr(self, name)!r}")
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

    @property
    def confidence(self) -> Radii:
        """The rule of the radii that `radii` and `confidence_scale` describe."""
        return Radii(self.radii, self.confidence_scale)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "sharp": {"radii": "tight", "clip_costs": True, "joint_cost": True, "baseline_bound": "each"},
    "sharpest": {
        "radii": "kt", "ties": True, "clip_costs": True, "joint_cost": True, "aggregate": True,
        "ball_from": WIDE, "search_radius": "variance", "baseline_bound": "each",
    },
}  # fmt: skip


def make_settings(preset: str, switches: Mapping[str, Any], known: frozenset[str], learner: str) -> Settings:
    """The settings of a preset with some switches changed; `known` are the switches that the learner has."""
    if preset not in PRESETS:
        raise InvalidInput(_no_preset(preset))
    unknown = sorted(set(switches) - known)
    if unknown:
        near = did_you_mean(unknown[0], sorted(known)).replace("known:", "its switches are")
        raise InvalidInput(f"{learner} has no switch {unknown[0]!r}{near}")
    changes = {**PRESETS[preset], **switches}
    if changes.get("horizon") == "doubling" and "radii" not in switches and changes.get("radii") not in WITHOUT_HORIZON:
        changes["radii"] = "anytime"
    # A value that a preset sets only because of a switch is dropped with that switch.
    if changes.get("radii") != "kt":
        changes = {"aggregate": False, "ball_from": 0, **_without(changes, {"aggregate", "ball_from"} - set(switches))}
    if not changes.get("joint_cost"):
        changes = {"ball_from": 0, **_without(changes, {"ball_from"} - set(switches))}
    return Settings(preset=preset, **changes)


def _without(changes: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name not in names}


def _no_preset(preset: object) -> str:
    return f"the preset is {preset!r}; choose one of {', '.join(PRESETS)}"


def to_meta(settings: Settings) -> dict[str, Any]:
    """All switches by name, as plain values."""
    return {field.name: getattr(settings, field.name) for field in fields(settings)}


def from_meta(meta: Mapping[str, Any]) -> Settings:
    """What `to_meta` described."""
    unexpected = sorted(set(meta) - {field.name for field in fields(Settings)})
    if unexpected:
        raise InvalidInput(f"unknown switch {unexpected[0]!r}")
    return replace(Settings(), **meta)


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
