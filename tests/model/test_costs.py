"""Cost distributions: means, ranges and frequencies of what they draw, against exact binomial bounds."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow import registry
from hedgerow.errors import InvalidInput
from hedgerow.model import costs
from hedgerow.model.costs import BernoulliCosts, BetaCosts, DeterministicCosts, EmpiricalCosts

DRAWS = 4_000
TABLE = np.array([[[0.0, 1.0]], [[0.5, 0.25]], [[1.0, 0.0]]])
ALL = [
    BernoulliCosts([[0.0, 0.3], [1.0, 0.7]]),
    DeterministicCosts([[0.0, 0.3], [1.0, 0.7]]),
    BetaCosts([[2.0, 0.5]], [[1.0, 0.5]]),
    EmpiricalCosts(TABLE, [0.25, 0.0, 0.75]),
    EmpiricalCosts(np.zeros((2, 0, 3))),
    BernoulliCosts(np.zeros((0, 3))),
]


def within_binomial_bounds(successes: int, draws: int, probability: float) -> bool:
    """Whether a count lies in the central region that it leaves with probability 1e-9 only."""
    low, high = stats.binom.ppf([5e-10, 1 - 5e-10], draws, probability)
    return low <= successes <= high


def samples(distribution: costs.CostDistribution, seed: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([distribution.sample(rng) for _ in range(DRAWS)])


@pytest.mark.parametrize("distribution", ALL, ids=lambda d: f"{d.kind}-{d.num_constraints}")
def test_samples_have_the_shape_range_and_mean_that_is_stated(distribution: costs.CostDistribution) -> None:
    drawn = samples(distribution)
    assert drawn.shape == (DRAWS, distribution.num_constraints, distribution.num_rows)
    assert drawn.dtype == np.float64
    assert np.all((drawn >= 0.0) & (drawn <= 1.0))
    # Hoeffding: a mean of entries in [0, 1] is off by more than this with probability 1e-9.
    radius = np.sqrt(np.log(2e9) / (2 * DRAWS))
    np.testing.assert_allclose(drawn.mean(axis=0), distribution.means, atol=radius)


@pytest.mark.parametrize("distribution", ALL, ids=lambda d: f"{d.kind}-{d.num_constraints}")
def test_equal_generators_give_equal_samples_and_arrays_rebuild(distribution: costs.CostDistribution) -> None:
    twin = costs.from_arrays(distribution.kind, distribution.arrays())
    assert type(twin) is type(distribution)
    np.testing.assert_array_equal(twin.means, distribution.means)
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        np.testing.assert_array_equal(distribution.sample(first), twin.sample(second))


def test_bernoulli_frequencies() -> None:
    means = np.array([[0.0, 0.02, 0.5], [0.9, 0.999, 1.0]])
    drawn = samples(BernoulliCosts(means))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    for place, mean in np.ndenumerate(means):
        assert within_binomial_bounds(int(drawn[:, *place].sum()), DRAWS, mean)


def test_beta_quartiles() -> None:
    a, b = np.array([[2.0, 0.5]]), np.array([[1.0, 0.5]])
    drawn = samples(BetaCosts(a, b))
    for place in np.ndindex(a.shape):
        for quarter in (0.25, 0.5, 0.75):
            edge = stats.beta.ppf(quarter, a[place], b[place])
            assert within_binomial_bounds(int((drawn[:, *place] <= edge).sum()), DRAWS, quarter)
    assert BetaCosts([[2.0]], [[1.0]]).means[0, 0] == 2.0 / 3.0


def test_deterministic_costs_never_vary_and_cannot_be_changed_through_a_sample() -> None:
    distribution = DeterministicCosts([[0.25, 0.5]])
    sample = distribution.sample(np.random.default_rng(0))
    sample[:] = 1.0
    np.testing.assert_array_equal(distribution.sample(np.random.default_rng(1)), [[0.25, 0.5]])


def test_empirical_frequencies_of_whole_matrices() -> None:
    probabilities = [0.0, 0.2, 0.0, 0.8, 0.0]
    table = np.arange(5)[:, np.newaxis, np.newaxis] * np.full((1, 2, 3), 0.25)
    distribution = EmpiricalCosts(table, probabilities)
    drawn = samples(distribution)
    assert np.all(drawn == drawn[:, :1, :1]), "a sample mixes two matrices"
    for j, probability in enumerate(probabilities):
        times = int((drawn[:, 0, 0] == j * 0.25).sum())
        assert times == 0 if probability == 0.0 else within_binomial_bounds(times, DRAWS, probability)
    np.testing.assert_allclose(distribution.means, 0.2 * 0.25 + 0.8 * 0.75)


class Stuck:
    """A generator whose uniform draw is always the same number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


@pytest.mark.parametrize("probabilities", [[0, 1, 0], [0, 0.5, 0.5], [0.5, 0.5, 0], [0.1, 0.2, 0.7], [1 / 3] * 3])
@pytest.mark.parametrize("draw", [0.0, 5e-324, 0.1, 0.5, np.nextafter(1.0, 0.0)])
def test_an_impossible_matrix_is_never_drawn(probabilities: list[float], draw: float) -> None:
    distribution = EmpiricalCosts(TABLE, probabilities)
    assert distribution.probabilities[distribution.draw(Stuck(draw))] > 0.0


def test_rounded_probabilities_do_not_open_the_door_to_the_last_matrix() -> None:
    # The sum is below 1 by 5e-11, within tolerance: a draw above it must not fall to the impossible last matrix.
    distribution = EmpiricalCosts(TABLE, [0.5, 0.5 - 5e-11, 0.0])
    assert distribution.draw(Stuck(np.nextafter(1.0, 0.0))) == 1


BAD = [
    (
        lambda: BernoulliCosts([[0.5, np.nan]]),
        r"cost means is nan at index \(0, 1\); every entry must be a finite number",
    ),
    (lambda: BernoulliCosts([[np.inf]]), "cost means is inf"),
    (lambda: BernoulliCosts([[0.5, 1.5]]), r"cost means is 1.5 at index \(0, 1\); every entry must lie in \[0, 1\]"),
    (lambda: BernoulliCosts([[-0.1]]), "cost means is -0.1"),
    (lambda: BernoulliCosts([0.5]), r"cost means must have shape \(constraints, rows\), not \(1,\)"),
    (lambda: BernoulliCosts([[0.5], [0.5, 0.5]]), "cost means must be an array of numbers"),
    (lambda: BernoulliCosts([["a"]]), "cost means must be an array of numbers: found entries of type <U1"),
    (lambda: BernoulliCosts([[1j]]), "cost means must be an array of numbers: found entries of type complex128"),
    (lambda: BernoulliCosts([[None]]), "cost means must be an array of numbers: found entries of type object"),
    (lambda: DeterministicCosts([[2.0]]), "cost values is 2.0"),
    (lambda: BetaCosts([[1.0]], [[0.0]]), r"Beta parameters b is 0.0 at index \(0, 0\)"),
    (lambda: BetaCosts([[1.0]], [[1.0, 1.0]]), r"differ in shape: \(1, 1\) and \(1, 2\)"),
    (lambda: EmpiricalCosts([[0.5]]), r"shape \(matrices, constraints, rows\), not \(1, 1\)"),
    (lambda: EmpiricalCosts(np.zeros((0, 1, 1))), r"not \(0, 1, 1\)"),
    (lambda: EmpiricalCosts(2.0 * TABLE), "cost table is 2.0"),
    (lambda: EmpiricalCosts(TABLE, [0.5, 0.5]), r"shape \(2,\), expected \(3,\)"),
    (lambda: EmpiricalCosts(TABLE, [0.5, 0.4, 0.0]), "probabilities of the cost table sum to 0.9, not 1"),
    (lambda: EmpiricalCosts(TABLE, [1.5, -0.5, 0.0]), "probabilities of the cost table is 1.5 at index 0"),
    (lambda: costs.from_arrays("poisson", {}), "unknown cost distribution 'poisson'; known: bernoulli, deterministic"),
    (lambda: costs.from_arrays(["beta"], {}), "unknown cost distribution"),
    (lambda: costs.from_arrays("beta", {"a": np.ones((1, 1))}), r"a beta cost distribution cannot be made of \['a'\]"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


# Distributions of others ----------------------------------------------------------------------------------------------


class Coarse(costs.BernoulliCosts):
    """A class of somebody else: not what its base is."""


class Halved(costs.CostDistribution):
    """Half of a matrix, always."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.means = self.values / 2.0

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        return self.means.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        return {"values": self.values}


def world_of(distribution: costs.CostDistribution) -> hr.CMDP:
    return hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], distribution, [0.5])


@pytest.mark.parametrize("cls", [Coarse, Halved])
def test_a_distribution_of_others_is_kept_under_its_own_name(cls: type, tmp_path: Path) -> None:
    world = world_of(cls(np.array([[0.25, 1.0]])))
    assert world.costs.kind == f"{__name__}:{cls.__name__}"
    world.save(tmp_path / "world.npz")
    again = hr.CMDP.load(tmp_path / "world.npz")
    assert type(again.costs) is cls
    assert again.content_hash == world.content_hash
    assert world.content_hash != world_of(costs.BernoulliCosts([[0.25, 1.0]])).content_hash


def test_a_registered_distribution_is_kept_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.costs, "_registered", {})
    hr.costs.register("halved")(Halved)
    world = world_of(Halved(np.array([[0.25, 1.0]])))
    assert world.costs.kind == "halved"
    world.save(tmp_path / "world.npz")
    assert isinstance(hr.load(tmp_path / "world.npz").costs, Halved)  # type: ignore[union-attr]
    monkeypatch.setattr(registry.costs, "_registered", {})  # as in a process that knows nothing of it
    words = r"unknown cost distribution 'halved'; known: bernoulli, .*A file imports no code: import the module"
    with pytest.raises(hr.errors.FileFormatError, match=words):
        hr.CMDP.load(tmp_path / "world.npz")


@pytest.mark.parametrize(
    "kind", ["os:system", "antigravity:fly", "x.py:Costs", "collections:OrderedDict", "", ":", "a:"]
)
def test_a_file_imports_no_code(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    with pytest.raises(InvalidInput, match="unknown cost distribution"):
        costs.from_arrays(kind, {"means": np.zeros((1, 1))})
    assert "antigravity" not in sys.modules


def test_a_kind_is_not_chosen_by_the_class() -> None:
    with pytest.raises(InvalidInput, match=r"the kind of Sly is the name that it is registered by"):

        class Sly(costs.BernoulliCosts):
            kind = "bernoulli"
