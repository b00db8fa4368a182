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

from hedgerow.checks import FloatArray, float_array, frozen, numeric_array, shown, within
from hedgerow.errors import InvalidInput
from hedgerow.registry import costs as kinds

TOL_PROBABILITY = 1e-10


class CostDistribution(ABC):
    """A distribution over cost matrices (m, rows) in [0, 1]. Immutable."""

    means: FloatArray
    """(m, rows): the expected costs, the paper's bar G (transposed)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            raise InvalidInput(
                f"the kind of {cls.__name__} is the name that it is registered by: write @hr.costs.register(NAME) "
                "before the class and leave `kind` out"
            )

    @property
    def kind(self) -> str:
        """How files call this distribution: the name that it is registered by, or else `module:Name`."""
        return kinds.name_of(type(self))

    @property
    def num_constraints(self) -> int:
        return int(self.means.shape[0])

    @property
    def num_rows(self) -> int:
        return int(self.means.shape[1])

    @abstractmethod
    def sample(self, rng: Generator) -> FloatArray:
        """The cost matrix (m, rows) of one episode."""

    @abstractmethod
    def arrays(self) -> dict[str, FloatArray]:
        """The constructor's arguments by name: all there is to store."""

    def __repr__(self) -> str:
        from hedgerow import brief

        shape = brief.counted(self.num_constraints, "constraint"), brief.counted(self.num_rows, "row")
        return brief.line(type(self).__name__, *shape)


class BernoulliCosts(CostDistribution):
    """Independent entries: 1 with probability `means`, else 0."""

    def __init__(self, means: ArrayLike) -> None:
        self.means = _matrix("cost means", means, 0.0, 1.0)

    def sample(self, rng: Generator) -> FloatArray:
        return (rng.random(self.means.shape) < self.means).astype(np.float64)

    def arrays(self) -> dict[str, FloatArray]:
        return {"means": self.means}


class DeterministicCosts(CostDistribution):
    """The same matrix in every episode."""

    def __init__(self, values: ArrayLike) -> None:
        self.means = _matrix("cost values", values, 0.0, 1.0)

    def sample(self, rng: Generator) -> FloatArray:
        return self.means.copy()

    def arrays(self) -> dict[str, FloatArray]:
        return {"values": self.means}


class BetaCosts(CostDistribution):
    """Independent Beta(a, b) entries."""

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
    """One of finitely many matrices (so entries may depend on each other), e.g. recorded episodes."""

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
        """Which matrix of the table an episode gets."""
        index = int(np.searchsorted(self.cumulative, rng.random(), side="right"))
        return min(index, int(np.flatnonzero(self.probabilities)[-1]))  # rounding never selects an impossible one

    def sample(self, rng: Generator) -> FloatArray:
        matrix: FloatArray = self.table[self.draw(rng)]
        return matrix.copy()

    def arrays(self) -> dict[str, FloatArray]:
        return {"table": self.table, "probabilities": self.probabilities}

    def __repr__(self) -> str:
        from hedgerow import brief

        many, m, rows = self.table.shape
        matrices = f"{many:,} {'matrix' if many == 1 else 'matrices'}"
        return brief.line(type(self).__name__, matrices, brief.counted(m, "constraint"), brief.counted(rows, "row"))


def from_arrays(kind: str, arrays: Mapping[str, NDArray[Any]]) -> CostDistribution:
    """The distribution that `arrays()` described.

    Data never decide what is imported: a kind from outside has to be registered, or its module imported, beforehand.
    """
    found = kinds.known(kind)
    if found is None:
        raise InvalidInput(
            f"unknown cost distribution {shown(kind)}; known: {', '.join(kinds.names())}. A file imports no code: "
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
