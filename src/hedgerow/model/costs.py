"""Cost distributions: how the matrix G_t of an episode is drawn, with entries in [0, 1] and known means.

One matrix (m, rows) serves a whole episode. A loop-free episode visits a row at most once, so a simulation only needs
the entries of the visited rows; `sample` draws the whole matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, float_array, frozen, numeric_array, short_repr, within
from hedgerow.errors import InvalidInput
from hedgerow.registry import costs as kinds

__all__ = [
    "BernoulliCosts",
    "BetaCosts",
    "CostDistribution",
    "DeterministicCosts",
    "EmpiricalCosts",
    "describe",
    "find",
    "names",
    "register",
]


def __dir__() -> list[str]:
    return list(__all__)


TOL_PROBABILITY = 1e-10


class CostDistribution(ABC):
    """A distribution over cost matrices of shape (m, num_rows) with entries in [0, 1].

    Each episode draws one matrix. Entry (i, row) is what constraint i costs if the episode visits that pair of state
    and action. Use one of the ready classes (`BernoulliCosts`, `DeterministicCosts`, `BetaCosts`, `EmpiricalCosts`), or
    derive your own: set `means` in the constructor and write `sample` and `arrays`. `@hr.costs.register(name)` gives it
    a name that experiments and files can use. Objects never change.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> class HalfOrNothing(hr.costs.CostDistribution):
        ...     def __init__(self, chances):
        ...         self.chances = np.asarray(chances, dtype=float)
        ...         self.means = 0.5 * self.chances
        ...
        ...     def sample(self, rng):
        ...         return 0.5 * (rng.random(self.means.shape) < self.chances)
        ...
        ...     def arrays(self):
        ...         return {"chances": self.chances}
        >>> costs = HalfOrNothing([[0.5, 1.0]])
        >>> costs.means.tolist(), costs.num_constraints, costs.num_rows
        ([[0.25, 0.5]], 1, 2)
    """

    means: FloatArray
    """(m, num_rows): the expected costs. The paper calls them bar G (transposed)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            raise InvalidInput(
                f"the kind of {cls.__name__} is the name that it is registered by: write @hr.costs.register(NAME) "
                "before the class and leave `kind` out"
            )

    @property
    def kind(self) -> str:
        """The name of this distribution in files: the name it is registered by, or else `module:Name`."""
        return kinds.name_of(type(self))

    @property
    def num_constraints(self) -> int:
        """The number m of constraints."""
        return int(self.means.shape[0])

    @property
    def num_rows(self) -> int:
        """The number of rows, which are pairs of a state and an action."""
        return int(self.means.shape[1])

    @abstractmethod
    def sample(self, rng: Generator) -> FloatArray:
        """Draw the cost matrix (m, num_rows) of one episode from the generator `rng`."""

    @abstractmethod
    def arrays(self) -> dict[str, FloatArray]:
        """Return the constructor's arguments by name: everything that a file has to store."""

    def __repr__(self) -> str:
        from hedgerow.display import text

        shape = text.counted(self.num_constraints, "constraint"), text.counted(self.num_rows, "row")
        return text.line(type(self).__name__, *shape)


class BernoulliCosts(CostDistribution):
    """Independent costs: each entry is 1 with the probability that `means` gives it, and else 0.

    Args:
        means: (m, num_rows) array of probabilities in [0, 1].

    Raises:
        InvalidInput: If `means` is not a two-dimensional array of numbers in [0, 1].

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> costs = hr.costs.BernoulliCosts([[0.0, 0.5, 1.0]])
        >>> costs.sample(np.random.default_rng(0)).tolist()
        [[0.0, 1.0, 1.0]]
    """

    def __init__(self, means: ArrayLike) -> None:
        self.means = _matrix("cost means", means, 0.0, 1.0)

    def sample(self, rng: Generator) -> FloatArray:
        return (rng.random(self.means.shape) < self.means).astype(np.float64)

    def arrays(self) -> dict[str, FloatArray]:
        return {"means": self.means}


class DeterministicCosts(CostDistribution):
    """Costs without chance: the same matrix in every episode.

    Args:
        values: (m, num_rows) array of costs in [0, 1].

    Raises:
        InvalidInput: If `values` is not a two-dimensional array of numbers in [0, 1].

    Examples:
        >>> import hedgerow as hr
        >>> hr.costs.DeterministicCosts([[0.0, 0.25]]).means.tolist()
        [[0.0, 0.25]]
    """

    def __init__(self, values: ArrayLike) -> None:
        self.means = _matrix("cost values", values, 0.0, 1.0)

    def sample(self, rng: Generator) -> FloatArray:
        return self.means.copy()

    def arrays(self) -> dict[str, FloatArray]:
        return {"values": self.means}


class BetaCosts(CostDistribution):
    """Independent costs with Beta distributions: entry (i, row) follows Beta(a[i, row], b[i, row]).

    Args:
        a: (m, num_rows) array of first parameters, each from 0.001 to 1e9.
        b: (m, num_rows) array of second parameters, each from 0.001 to 1e9.

    Raises:
        InvalidInput: If the arrays differ in shape, or if an entry is out of range.

    Examples:
        >>> import hedgerow as hr
        >>> hr.costs.BetaCosts(a=[[1.0, 3.0]], b=[[1.0, 1.0]]).means.tolist()
        [[0.5, 0.75]]
    """

    _SMALLEST, _LARGEST = 1e-3, 1e9  # outside, the generator's own accuracy suffers

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        self.a = _matrix("Beta parameters a", a, self._SMALLEST, self._LARGEST)
        self.b = _matrix("Beta parameters b", b, self._SMALLEST, self._LARGEST)
        if self.a.shape != self.b.shape:
            raise InvalidInput(f"Beta parameters a and b differ in shape: {self.a.shape} and {self.b.shape}")
        self.means = frozen(self.a / (self.a + self.b))

    def sample(self, rng: Generator) -> FloatArray:
        return rng.beta(self.a, self.b)

    def arrays(self) -> dict[str, FloatArray]:
        return {"a": self.a, "b": self.b}


class EmpiricalCosts(CostDistribution):
    """Costs drawn from a list of matrices, such as recorded episodes.

    An episode gets one whole matrix. Costs of different rows and constraints may therefore depend on each other.

    Args:
        table: (s, m, num_rows) array: the s matrices, with entries in [0, 1].
        probabilities: (s,) probabilities of the matrices, which sum to 1; None makes all of them equally likely.

    Raises:
        InvalidInput: If a shape or an entry is wrong, or if the probabilities do not sum to 1.

    Examples:
        >>> import hedgerow as hr
        >>> cheap, dear = [[0.0, 0.0]], [[1.0, 0.5]]
        >>> hr.costs.EmpiricalCosts([cheap, dear], probabilities=[0.75, 0.25]).means.tolist()
        [[0.25, 0.125]]
    """

    def __init__(self, table: ArrayLike, probabilities: ArrayLike | None = None) -> None:
        entries = numeric_array("cost table", table)
        if entries.ndim != 3 or not len(entries):
            raise InvalidInput(f"a cost table has shape (matrices, constraints, rows), not {entries.shape}")
        self.table = within("cost table", float_array("cost table", entries, entries.shape), 0.0, 1.0)
        if probabilities is None:
            probabilities = np.full(len(entries), 1.0 / len(entries))
        weights = float_array("probabilities of the cost table", probabilities, (len(entries),))
        self.probabilities = within("probabilities of the cost table", weights, 0.0, 1.0)
        if abs(self.probabilities.sum() - 1.0) > TOL_PROBABILITY:
            raise InvalidInput(f"probabilities of the cost table sum to {float(self.probabilities.sum())!r}, not 1")
        self.cumulative = frozen(np.minimum(np.cumsum(self.probabilities), 1.0))
        self.means = frozen(np.clip(np.einsum("s,sir->ir", self.probabilities, self.table), 0.0, 1.0))

    def draw(self, rng: Generator) -> int:
        """Draw the number of the matrix that an episode gets from the generator `rng`."""
        index = int(np.searchsorted(self.cumulative, rng.random(), side="right"))
        return min(index, int(np.flatnonzero(self.probabilities)[-1]))  # rounding never selects an impossible one

    def sample(self, rng: Generator) -> FloatArray:
        matrix: FloatArray = self.table[self.draw(rng)]
        return matrix.copy()

    def arrays(self) -> dict[str, FloatArray]:
        return {"table": self.table, "probabilities": self.probabilities}

    def __repr__(self) -> str:
        from hedgerow.display import text

        many, m, rows = self.table.shape
        matrices = f"{many:,} {'matrix' if many == 1 else 'matrices'}"
        return text.line(type(self).__name__, matrices, text.counted(m, "constraint"), text.counted(rows, "row"))


def from_arrays(kind: str, arrays: Mapping[str, NDArray[Any]]) -> CostDistribution:
    """The distribution that `arrays()` described.

    Data never decide what is imported: a kind from outside has to be registered, or its module imported, beforehand.
    """
    found = kinds.known(kind)
    if found is None:
        raise InvalidInput(
            f"unknown cost distribution {short_repr(kind)}; known: {', '.join(kinds.names())}. A file imports no code: "
            "import the module that defines or registers it first"
        )
    try:
        made: CostDistribution = found.target(**arrays)
    except TypeError as error:
        raise InvalidInput(f"a {kind} cost distribution cannot be made of {sorted(arrays)}: {error}") from error
    return made


def _matrix(what: str, value: ArrayLike, low: float, high: float) -> FloatArray:
    array = numeric_array(what, value)
    if array.ndim != 2:
        raise InvalidInput(f"{what} must have shape (constraints, rows), not {array.shape}")
    return within(what, float_array(what, array, array.shape), low, high)


register, names, find, describe = kinds.register, kinds.names, kinds.find, kinds.describe
