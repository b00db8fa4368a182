"""What the catalogue hands out: a world, its own loss, and the numbers that are known about it.

A builder returns `WorldDefinition`; `entries` turns them into a `World` with a content hash and, for frozen
parameter choices, a `Golden`. Values are losses in [0, L]; `Scale` converts them to the scale of the source.

    >>> Scale("reward", offset=6.0, factor=-1.0)(4.0)
    2.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from hedgerow.checks import FloatArray, float_array
from hedgerow.display import text
from hedgerow.display.terms import USUAL
from hedgerow.display.terms import Terms as Terms
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.view import Stored, View, refuse_unexpected
from hedgerow.storage import datafile

FREE = 1e-9
"""A constraint whose price is at most this is called free: it is slack at the optimum."""


def price_of(optimum: float, unconstrained: float) -> float:
    """The price of the constraint; the rounding of two programs does not make it negative."""
    return max(0.0, optimum - unconstrained)


def is_free(price: float) -> bool:
    """Whether a price of the constraint is 0, up to the rounding of the programs it comes from."""
    return price <= FREE


@dataclass(frozen=True)
class Scale:
    """How a world's source counts: source value = offset + factor * loss, per episode.

    Examples:
        >>> import hedgerow as hr
        >>> reward = hr.worlds.Scale("reward", offset=6.0, factor=-1.0)
        >>> reward(4.0), reward.distance(0.5)
        (2.0, 0.5)
    """

    unit: str = "loss"
    """What the source counts, such as "reward"."""
    offset: float = 0.0
    """The source value of loss 0."""
    factor: float = 1.0
    """By how much the source value grows with one unit of loss."""

    def __call__(self, loss_value: float) -> float:
        return self.offset + self.factor * loss_value

    def distance(self, loss_difference: float) -> float:
        """Return the distance, in the source's unit, of two values whose losses differ by `loss_difference`."""
        return abs(self.factor) * loss_difference


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """A policy that the source of a world knows to be safe.

    Learners that ask for a baseline take it as it is: `hr.SOPS(view, ..., baseline=world.baseline)`.

    Examples:
        >>> import hedgerow as hr
        >>> hr.worlds.make("ev-workday").baseline.costs.tolist()
        [0.001]
    """

    policy: FloatArray
    """(num_rows,): the action probabilities."""
    costs: FloatArray
    """(m,): upper bounds of its expected costs, which a learner may use."""

    def __repr__(self) -> str:
        return text.line("Baseline", text.counted(len(self.policy), "row"), f"costs={text.numbers(self.costs)}")


@dataclass(frozen=True, eq=False)
class WorldDefinition(Stored):
    """What a function that builds a world returns, if it wants to say more than a CMDP does.

    It has a data file of its own (`save`, `load`), which an experiment can name like that of a CMDP: `file =
    "world.npz"`. With it come the world's own loss and its baseline.

    Examples:
        >>> import hedgerow as hr
        >>> cmdp = hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], hr.costs.BernoulliCosts([[0.75, 0.25]]), [0.5])
        >>> hr.worlds.WorldDefinition(cmdp, loss=[0.0, 1.0]).scale.unit
        'loss'
    """

    file_kind: ClassVar[str] = "world"
    called: ClassVar[str] = "world"
    cmdp: CMDP
    """The world itself."""
    loss: FloatArray
    """(num_rows,): the world's own loss, in [0, 1]."""
    scale: Scale = Scale()
    """How the source counts; losses themselves unless it is given."""
    baseline_thresholds: FloatArray | None = None
    """(m,): the thresholds at which the source takes its safe baseline policy, if it defines one that way; else
    None."""
    baseline: Baseline | None = None
    """The baseline policy itself, if the source names one; else None."""
    terms: Terms = USUAL
    """What its episodes, its loss and its baseline are called on pages."""

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        meta, arrays = self.cmdp._content()
        layout, m = self.cmdp.layout, self.cmdp.num_constraints
        own: dict[str, NDArray[Any]] = {"loss": checked_loss(layout, self.loss)}
        if self.baseline_thresholds is not None:
            own["baseline_thresholds"] = float_array("the baseline threshold", self.baseline_thresholds, (m,))
        if self.baseline is not None:
            own["baseline.policy"] = float_array("the baseline policy", self.baseline.policy, (layout.num_rows,))
            own["baseline.costs"] = float_array("the cost of the baseline", self.baseline.costs, (m,))
        inner = {f"{_INNER}{name}": array for name, array in arrays.items()}
        return {"cmdp": meta, "scale": asdict(self.scale), "terms": asdict(self.terms)}, inner | own

    @classmethod
    def _from_content(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> WorldDefinition:
        refuse_unexpected("metadata", meta, ("cmdp", "scale", "terms"))
        inner = {name.removeprefix(_INNER): arrays.pop(name) for name in list(arrays) if name.startswith(_INNER)}
        cmdp, policy = CMDP._from_content(meta["cmdp"], inner), arrays.pop("baseline.policy", None)
        baseline = None if policy is None else Baseline(policy, arrays.pop("baseline.costs"))
        budget = arrays.pop("baseline_thresholds", None)
        made = cls(cmdp, arrays.pop("loss"), Scale(**meta["scale"]), budget, baseline, Terms(**meta["terms"]))
        refuse_unexpected("arrays", arrays)
        made._content()  # checks losses, shapes and numbers
        return made


def definition_of(world: Any) -> WorldDefinition | CMDP:
    """All that runs in `world` depend on; the CMDP itself if there is no loss.

    A world is an object with a CMDP, or one whose `.model` has one, such as a GymWorld with exact scores.
    """
    cmdp, model = cmdp_of(world), getattr(world, "model", None)
    world = model if getattr(model, "cmdp", None) is cmdp else world
    loss = getattr(world, "loss", None)
    if loss is None:
        return cmdp
    scale, terms = getattr(world, "scale", None), getattr(world, "terms", USUAL)
    offered = getattr(world, "baseline_thresholds", None), getattr(world, "baseline", None)
    return WorldDefinition(cmdp, loss, scale if isinstance(scale, Scale) else Scale(), *offered, terms)


def read_definition(file: datafile.DataFile, source: str) -> WorldDefinition:
    """The world in a data file; `source` names it in messages."""
    return WorldDefinition.from_file(file, source)


_INNER = "cmdp."
"""How the arrays of the CMDP begin in the file of a world."""


@dataclass(frozen=True)
class Golden:
    """Known optimal values of a world of the catalogue, as losses per episode.

    Examples:
        >>> import hedgerow as hr
        >>> golden = hr.worlds.make("lower-bound-2").golden
        >>> golden.optimum, golden.margin
        (0.5, 0.25)
        >>> golden.price, golden.is_control  # the best policy is exactly safe
        (0.0, True)
    """

    optimum: float
    """The least loss under the constraints."""
    unconstrained: float
    """The least loss without the constraints."""
    margin: float
    """The largest margin that all constraints can have at once; rho in the paper."""
    baseline: float | None = None
    """The loss of the source's baseline policy, or the least one at its baseline thresholds; None if it has neither."""
    published: Mapping[str, float] | None = None
    """Numbers that the source, a closed form or another program gives, on the source's scale, by name: `optimum`,
    `unconstrained`, `baseline`. None if there are none."""

    @property
    def price(self) -> float:
        """The price of the constraint: the loss that it adds to the least one, per episode."""
        return price_of(self.optimum, self.unconstrained)

    @property
    def is_control(self) -> bool:
        """Whether the constraint is slack at the optimum: it costs nothing there, but may bind while learning."""
        return is_free(self.price)


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A world of the catalogue: a CMDP with its own loss, and what is known about it.

    `hr.worlds.make` makes one. Functions that take a world take it as it is.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-media")
        >>> world.cmdp.layout.steps, world.cmdp.constraint_names
        (10, ('fast deliveries',))
    """

    name: str
    """The name in the catalogue."""
    description: str
    """What it is, in one line."""
    params: Mapping[str, Any]
    """All parameters by name, defaults included."""
    cmdp: CMDP
    """The world itself."""
    loss: FloatArray
    """(num_rows,): its own loss, in [0, 1]."""
    scale: Scale
    """How its source counts."""
    golden: Golden | None
    """Its known optimal values; None if these parameters have none."""
    hash: str
    """SHA-256 of the world and its loss, as a text."""
    baseline_thresholds: FloatArray | None = None
    """(m,): the thresholds at which the source takes its baseline policy; None if it does not define one that way."""
    baseline: Baseline | None = None
    """A policy that is known to be safe, for `hr.SOPS(world.view(), ..., baseline=world.baseline)`; None if there is
    none."""
    terms: Terms = USUAL
    """What its episodes, its loss and its baseline are called on pages; no part of its hash."""

    def __repr__(self) -> str:
        layout, known = self.cmdp.layout, [f"optimum={self.golden.optimum:.6g}"] if self.golden else []
        constraints = text.counted(self.cmdp.num_constraints, "constraint")
        return text.line("World", text.quoted(self.name), repr(layout), constraints, *known)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import cmdp_html

        facts = f"{self.name}: {self.description}"
        return cmdp_html(self.cmdp, title=facts)

    def view(self) -> View:
        """Return what a learner may know of this world."""
        return self.cmdp.view()

    @property
    def unit(self) -> str:
        """What the source counts: `source_value` is in this unit."""
        return self.scale.unit

    def source_value(self, loss_value: float) -> float:
        """Turn the loss `loss_value` of an episode into the source's own unit."""
        return self.scale(loss_value)

    @property
    def price(self) -> float | None:
        """The price of the constraint, as loss per episode; None if these parameters have no golden values."""
        return None if self.golden is None else self.golden.price

    @property
    def source_price(self) -> float | None:
        """The price of the constraint in the source's unit, at least 0; None without golden values."""
        return None if self.golden is None else self.scale.distance(self.golden.price)


def content_hash(cmdp: CMDP, loss: FloatArray) -> str:
    """SHA-256 over the content of the world and its loss (rows,)."""
    return datafile.content_hash("instance", 1, {"cmdp": cmdp.content_hash}, {"loss": loss})
