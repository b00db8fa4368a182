"""Streams in arrays: the bits of numpy's generators, lent and borrowed; and no kernel takes a generator."""

from __future__ import annotations

import gc
import importlib
import inspect
import itertools
import pickle
import pkgutil
import types
import typing
from typing import Any

import numba
import numpy as np
import pytest
from numpy.random import MT19937, PCG64, Generator, Philox, SeedSequence

import hedgerow
import hedgerow as hr
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.model.random_streams import (
    Stream,
    beta,
    borrowed,
    lent,
    next_word,
    seeded,
    standard_exponential,
    standard_gamma,
    standard_normal,
    stream_at,
    uniform,
)

COUNT = 100 if numba.config.DISABLE_JIT else 20_000


def pair(seed: int) -> tuple[Stream, Any]:
    return seeded(SeedSequence(seed)), np.random.default_rng(seed)


@kernel
def words(stream: Stream, target: np.ndarray) -> None:
    for i in range(len(target)):
        target[i] = next_word(stream)


@kernel
def betas(stream: Stream, a: float, b: float, target: np.ndarray) -> None:
    for i in range(len(target)):
        target[i] = beta(stream, a, b)


def in_words(state: int, inc: int) -> dict[str, Any]:
    return {"bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": 0, "uinteger": 0}


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_words_and_uniform_numbers_have_the_bits_of_numpy(seed: int) -> None:
    stream, rng = pair(seed)
    target = np.zeros(COUNT, dtype=np.uint64)
    words(stream, target)
    np.testing.assert_array_equal(target, rng.bit_generator.random_raw(COUNT))
    assert [uniform(stream) for _ in range(100)] == rng.random(100).tolist()
    assert stream.random() == rng.random()
    assert stream.state == rng.bit_generator.state


@pytest.mark.parametrize(
    ("state", "inc"), [(0, 1), (2**128 - 1, 2**128 - 1), (2**64 - 1, 2**64 + 1), (2**64, 3), (2**127, 2**127 + 1)]
)
def test_carries_and_rotations_at_the_edges(state: int, inc: int) -> None:
    bits = PCG64(0)
    bits.state = in_words(state, inc)
    stream = stream_at(in_words(state, inc))
    target = np.zeros(500, dtype=np.uint64)
    words(stream, target)
    np.testing.assert_array_equal(target, bits.random_raw(500))


SHAPES = (0.001, 0.02, 0.3, 0.9, 1.0, 1.5, 4.0, 250.0, 1e9)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_beta_variables_have_the_bits_of_numpy(a: float, b: float) -> None:
    stream, rng = pair(3)
    drawn = np.zeros(COUNT // 20)
    betas(stream, a, b, drawn)
    # As plain Python, logarithms are those of numpy's vector code, which may differ in the last bit.
    limit = 1e-14 if numba.config.DISABLE_JIT else 0.0
    np.testing.assert_allclose(drawn, rng.beta(a, b, size=len(drawn)), rtol=limit, atol=0.0)
    assert stream.state == rng.bit_generator.state


def test_normal_exponential_and_gamma_variables_as_well() -> None:
    stream, rng = pair(4)
    count = COUNT // 4
    limit = 1e-14 if numba.config.DISABLE_JIT else 0.0
    for draw, expected in ((standard_normal, rng.standard_normal), (standard_exponential, rng.standard_exponential)):
        drawn = [draw(stream) for _ in range(count)]
        np.testing.assert_allclose(drawn, expected(count), rtol=limit, atol=0.0)
    for shape in (0.2, 1.0, 3.5):
        drawn = [standard_gamma(stream, shape) for _ in range(200)]
        np.testing.assert_allclose(drawn, rng.standard_gamma(shape, 200), rtol=limit, atol=0.0)
    assert stream.state == rng.bit_generator.state


def test_a_lent_generator_gives_the_place_back() -> None:
    stream, rng = pair(5)
    with lent(stream) as own:
        assert own.integers(10, size=3, dtype=np.int32).tolist() == rng.integers(10, size=3, dtype=np.int32).tolist()
    assert stream.state == rng.bit_generator.state
    assert stream.state["has_uint32"] == 1  # a half of an output is left
    with pytest.raises(ValueError, match="scale < 0"), lent(stream) as own:
        own.normal(rng.normal(), scale=-abs(own.normal()))
    assert stream.state == rng.bit_generator.state


def test_a_borrowed_generator_goes_on_where_the_stream_is_left() -> None:
    rng, twin = np.random.default_rng(6), np.random.default_rng(6)
    with borrowed(rng) as stream:
        drawn = [uniform(stream) for _ in range(5)]
    assert drawn == twin.random(5).tolist()
    assert rng.random() == twin.random()


@pytest.mark.parametrize("bits", [MT19937, Philox])
def test_another_generator_seeds_a_stream_anew_each_time(bits: Any) -> None:
    rng, twin, drawn = Generator(bits(7)), Generator(bits(7)), []
    for _ in range(3):
        with borrowed(rng) as stream, borrowed(twin) as same:
            drawn.append(uniform(stream))
            assert uniform(same) == drawn[-1]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize("rng", [None, 5, np.random])
def test_what_is_no_generator_is_refused(rng: Any) -> None:
    world = hr.worlds.make("lower-bound-2").cmdp
    with pytest.raises(InvalidInput, match=r"rng must be a numpy.random.Generator, such as default_rng\(seed\)"):
        world.play(hr.Policy.uniform(world), rng)


def test_a_pickled_stream_is_a_stream_of_its_own() -> None:
    stream, rng = pair(8)
    twin = pickle.loads(pickle.dumps(stream))
    assert uniform(twin) == rng.random()
    assert stream.state != twin.state


@pytest.mark.parametrize(
    "state",
    [
        {},
        {**in_words(1, 1), "bit_generator": "MT19937"},
        in_words(-1, 1),
        in_words(2**128, 1),
        {**in_words(1, 1), "state": 5},
        {**in_words(1, 1), "has_uint32": 2},
        {**in_words(1, 1), "uinteger": 1.0},
    ],
)
def test_a_wrong_state_is_refused_and_changes_nothing(state: dict[str, Any]) -> None:
    stream, rng = pair(9)
    with pytest.raises(ValueError, match="no state of a PCG64 generator"):
        stream.go_to(state)
    assert stream.state == rng.bit_generator.state


def test_episodes_of_a_generator_are_those_of_its_bits() -> None:
    """By hand: actions, next states and costs drawn from one generator, one number each, step by step."""
    world = hr.worlds.make("random-layered").cmdp
    policy, rng, twin = hr.Policy.uniform(world), np.random.default_rng(10), np.random.default_rng(10)
    layout = world.layout
    for _ in range(20):
        episode, state = world.play(policy, rng), 0
        for k, row in enumerate(episode.rows.tolist()):
            assert row == state * layout.num_actions + int(twin.random() * layout.num_actions)
            first, last = layout.row_start[row], layout.row_start[row + 1]
            place = int(np.searchsorted(np.cumsum(world.transitions[first:last]), twin.random(), side="right"))
            assert episode.triples[k] == first + min(place, last - first - 1)
            state = int(layout.successor[episode.triples[k]])
            costs = [float(twin.random() < world.mean_costs[i, row]) for i in range(world.num_constraints)]
            assert episode.costs[k].tolist() == costs
    assert rng.bit_generator.state == twin.bit_generator.state


# No kernel takes a generator -----------------------------------------------------------------------------------------


def kernels() -> list[tuple[str, Any]]:
    """Every compiled function of the package, by name, as Python sees it."""
    found = {}
    for info in pkgutil.walk_packages(hedgerow.__path__, "hedgerow."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            function = getattr(value, "py_func", None)
            if function is not None and function.__module__ == info.name:
                found[f"{info.name}.{name}"] = function
    return sorted(found.items())


def allowed(kind: Any) -> bool:
    """Whether an argument is a bundle, a record, an array, a number, a named tuple of these, or None instead of one."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return all(allowed(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is np.ndarray:
        return True
    if inspect.isclass(kind) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return all(map(allowed, typing.get_type_hints(kind).values()))
    return inspect.isclass(kind) and issubclass(kind, Bundle | Record | np.number | int | float | types.NoneType)


def test_no_kernel_takes_a_generator() -> None:
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    found = kernels()
    assert len(found) > 200
    wrong = [
        f"{name}({argument}: {kind})"
        for name, function in found
        for argument, kind in typing.get_type_hints(function).items()
        if argument != "return" and not allowed(kind)
    ]
    assert wrong == []


def generators() -> int:
    gc.collect()
    # By type(): isinstance asks a dead weak proxy of another test for its class, which raises.
    return sum(issubclass(type(thing), Generator | PCG64) for thing in gc.get_objects())


def test_a_simulation_keeps_no_generator() -> None:
    world = hr.worlds.make("lower-bound-2")

    def runs(count: int) -> None:
        for seed in range(count):
            learner = hr.SVOPS(world.view(), episodes=5, delta=0.1, preset="paper", seed=seed)
            hr.simulate(world, learner, seed=seed, progress=False)
            world.cmdp.play(hr.Policy.uniform(world.cmdp), np.random.default_rng(seed))

    runs(2)
    before = generators()
    runs(10)
    assert generators() == before
