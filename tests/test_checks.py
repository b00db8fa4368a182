"""Validation at the boundary: what passes, what is copied, and the words of a refusal."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import checks
from hedgerow.errors import HedgerowError, InvalidInput


def test_a_checked_array_is_read_only_float64_in_c_order() -> None:
    for value in (
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], dtype=np.uint8),
        np.array([1.0, 2.0], dtype=">f4"),
        [True, False],
    ):
        array = checks.float_array("x", value, (2,))
        assert array.dtype == np.float64
        assert array.dtype.isnative
        assert not array.flags.writeable
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert checks.float_array("x", fortran, (2, 3)).flags.c_contiguous


def test_frozen_copies_exactly_when_somebody_could_still_write() -> None:
    mine = np.arange(3.0)
    copy = checks.frozen(mine)
    mine[0] = 9.0
    assert copy[0] == 0.0
    assert checks.frozen(copy) is copy
    part = copy[1:]
    assert checks.frozen(part) is part
    window = mine.view()
    window.setflags(write=False)
    safe = checks.frozen(window)
    mine[1] = 9.0
    assert safe[1] == 1.0


def test_numbers_that_pass() -> None:
    assert checks.whole_number("n", np.int32(3), 1) == 3
    assert type(checks.whole_number("n", np.int32(3), 1)) is int
    assert checks.real_number("x", np.float32(0.5), 0, 1) == 0.5
    assert checks.real_number("x", 1, 0, 1) == 1.0
    assert checks.positive_share("x", 1, below_one=False) == 1.0
    assert checks.positive_share("x", np.nextafter(1.0, 0.0), below_one=True) < 1.0
    assert checks.distinct_names("names", (name for name in "ab"), 2) == ("a", "b")
    assert checks.within("x", checks.float_array("x", [0.0, 1.0], (2,)), 0.0, 1.0).tolist() == [0.0, 1.0]


def test_masked_entries_are_refused() -> None:
    """Numpy would read what is under the mask, without a word."""
    masked = np.ma.masked_array([0.25, 0.75], mask=[False, True])
    for value in (masked, [masked, masked], [[0.5, 0.5], (masked)]):
        with pytest.raises(InvalidInput, match=r"x has masked entries; fill them in, as with value.filled\(0.0\)"):
            checks.numeric_array("x", value)
    nothing_masked = np.ma.masked_array([0.25, 0.75], mask=False)
    assert checks.float_array("x", nothing_masked, (2,)).tolist() == [0.25, 0.75]
    assert checks.float_array("x", masked.filled(0.0), (2,)).tolist() == [0.25, 0.0]
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput):
        checks.numeric_array("x", endless)  # type: ignore[arg-type]


def test_masked_entries_are_refused_at_every_door() -> None:
    layout = hr.Layout((1, 1), 2)
    world = hr.CMDP(layout, [1.0, 1.0])
    learner = hr.SVOPS(world.view(), 10, 0.1, "paper")
    learner.plan()
    hidden = np.ma.masked_array([0.5, 0.5], mask=[True, False])
    doors = [
        lambda: hr.CMDP(layout, hidden),
        lambda: hr.Layout((1, 1), 2, row_start=[0, 1, 2], successor=np.ma.masked_array([1, 1], mask=[True, False])),
        lambda: hr.Layout.from_support([np.ma.masked_array([[[True], [True]]], mask=[[[True], [False]]])]),
        lambda: hr.simulate(world, hr.SVOPS(world.view(), 10, 0.1, "paper"), hidden),
        lambda: learner.observe(np.ma.masked_array([0], mask=[True]), [0.5]),
        lambda: learner.observe([0], np.ma.masked_array([0.5], mask=[True])),
        lambda: hr.View(layout, np.ma.masked_array([0.5], mask=[True]), ("cost",)),
    ]
    for door in doors:
        with pytest.raises(InvalidInput, match="has masked entries"):
            door()
    learner.observe([0], [0.5])


def place(index: int) -> str:
    return f"place {index}"


TWO_BY_TWO = np.array([[0.0, 0.0], [0.0, 7.0]])
BAD = [
    (lambda: checks.float_array("x", [1.0, np.nan], (2,)), "x is nan at index 1; every entry must be a finite number"),
    (lambda: checks.float_array("x", [[1.0, -np.inf]], (1, 2)), r"x is -inf at index \(0, 1\)"),
    (lambda: checks.float_array("x", [1.0, np.nan], (2,), place), "x is nan at place 1"),
    (lambda: checks.float_array("x", np.nan, ()), r"x is nan at index \(\)"),
    (lambda: checks.float_array("x", [1.0], (2,)), r"x has shape \(1,\), expected \(2,\)"),
    (lambda: checks.float_array("x", ["1"], (1,)), "x must be an array of numbers: found entries of type <U1"),
    (lambda: checks.float_array("x", [[1], [1, 2]], (2,)), "x must be an array of numbers"),
    (lambda: checks.float_array("x", [10**400], (1,)), "x must be an array of numbers: found entries of type object"),
    (lambda: checks.float_array("x", None, (1,)), "x must be an array of numbers"),
    (lambda: checks.float_array("x", np.array(["NaT"], dtype="M8[s]"), (1,)), "found entries of type datetime64"),
    (lambda: checks.within("x", TWO_BY_TWO, 0, 1, place), r"x is 7.0 at row 1 of the array, place 1; .* in \[0, 1\]"),
    (lambda: checks.whole_number("n", 2.0, 1), "n must be a whole number, not 2.0"),
    (lambda: checks.whole_number("n", True, 1), "n must be a whole number, not True"),
    (lambda: checks.whole_number("n", np.True_, 1), "n must be a whole number, not np.True_"),
    (lambda: checks.whole_number("n", 0, 1), "n is 0; it must be at least 1"),
    (lambda: checks.real_number("x", "1", 0, 1), "x must be a number, not '1'"),
    (lambda: checks.real_number("x", True, 0, 1), "x must be a number, not True"),
    (lambda: checks.real_number("x", float("nan"), 0, 1), r"x is nan; it must lie in \[0, 1\]"),
    (lambda: checks.real_number("x", 10**400, 0, 1), "x is inf; it must lie in"),
    (lambda: checks.real_number("x", -(10**400), 0, 1), "x is -inf; it must lie in"),
    # Bounds are never printed as another number: what is below 1 is not 1.
    (lambda: checks.real_number("x", 1.0, 0.0, np.nextafter(1.0, 0.0)), r"must lie in \[0, 0.9999999999999999\]$"),
    (lambda: checks.within("x", np.ones(1), 0.0, 1.0 - 1e-15), r"must lie in \[0, 0.999999999999999\]$"),
    (lambda: checks.positive_share("x", 1.0, below_one=True), r"^x is 1.0; it must lie in \(0, 1\)$"),
    (lambda: checks.positive_share("x", 0, below_one=True), r"^x is 0.0; it must lie in \(0, 1\)$"),
    (lambda: checks.positive_share("x", 0.0, below_one=False), r"^x is 0.0; it must lie in \(0, 1\]$"),
    (lambda: checks.positive_share("x", float("nan"), below_one=False), r"^x is nan; it must lie in \(0, 1\]$"),
    (lambda: checks.positive_share("x", 1e-310, below_one=True), r"\(0, 1\); the smallest number .* is 2.225073858"),
    (lambda: checks.positive_share("x", "1", below_one=True), "x must be a number, not '1'"),
    (lambda: checks.distinct_names("names", "ab", 2), "names must be a sequence of 2 strings, not 'ab'"),
    (lambda: checks.distinct_names("names", {"a", "b"}, 2), "names must be a sequence of 2 strings"),
    (lambda: checks.distinct_names("names", {"a": 1}, 1), "names must be a sequence of 1 strings"),
    (lambda: checks.distinct_names("names", 3, 2), "names must be a sequence of 2 strings, not 3"),
    (lambda: checks.distinct_names("names", ["a", 3], 2), "names must be non-empty strings, found 3"),
    (lambda: checks.distinct_names("names", ["a"], 2), "names: 1 given, 2 needed"),
    (lambda: checks.distinct_names("names", ["b", "a", "b", "a"], 4), "names must be distinct; repeated: a, b"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert isinstance(caught.value, HedgerowError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long double is double here")
def test_an_overflow_in_a_wide_type_is_an_infinite_entry() -> None:
    with pytest.raises(InvalidInput, match="x is inf at index 0"):
        checks.float_array("x", np.array([np.finfo(np.longdouble).max]), (1,))


HUGE = (10**400, 1 << 100_000, np.uint64(2**64 - 1))


@pytest.mark.parametrize("value", HUGE, ids=["10**400", "too long to print", "numpy"])
def test_numbers_beyond_all_counting_are_refused_in_one_short_line(value: int) -> None:
    with pytest.raises(
        InvalidInput, match=r"the number of episodes is .*; it must be at most 9007199254740992"
    ) as caught:
        checks.whole_number("the number of episodes", value, 1)
    assert len(str(caught.value)) < 160
    with pytest.raises(InvalidInput, match="it must be at least 1"):
        checks.whole_number("the number of episodes", -int(value), 1)


def test_seeds_may_be_large_but_not_endless() -> None:
    assert checks.seed_number(2**128 - 1) == 2**128 - 1
    with pytest.raises(InvalidInput, match="the seed is 1000"):
        checks.seed_number(10**400)


def test_values_in_messages_are_short() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert checks.short_repr(deep) == "a value of type list"
    assert checks.short_repr("x" * 1000) == "'" + "x" * 59 + "..."
    assert checks.short_repr(np.zeros((3, 3))).count("\n") == 0


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        (np.array([1.0, 2.0]), True),
        (np.array([1.0, 2.0], dtype=np.float32), True),
        (np.array([1, 2]), True),
        ([1, 2.0], True),
        ([1.0], False),
        (np.ones((2, 1)), False),
        (np.array([1, 2], dtype=np.uint64), False),
        (np.array([True, False]), False),
        (np.array([1.0, 2.0], dtype=np.longdouble), False),
        (np.ma.masked_array([1.0, 2.0], [True, False]), False),
        ([True, False], False),
        ([np.float64(1.0), 2.0], False),
        ((1.0, 2.0), False),
        ("12", False),
        (None, False),
    ],
)
def test_plain_numbers_are_taken_as_they_are_and_nothing_else(given: object, is_taken: bool) -> None:
    place = np.full(2, 7.0)
    assert checks.taken(place, given) is is_taken
    assert place.tolist() == (np.asarray(given, dtype=float).tolist() if is_taken else [7.0, 7.0])


def test_whole_numbers_stay_whole() -> None:
    rows = np.zeros(2, dtype=np.int64)
    assert checks.taken(rows, np.array([3, 4], dtype=np.int32))
    assert not checks.taken(rows, np.array([3.0, 4.0]))
    assert not checks.taken(rows, [3.5, 4])
    assert checks.taken(np.zeros((2, 2)), [[1, 2], [3.0, 4]])
    assert rows.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (7, 7), (np.int64(7), 7), (1e5, 100_000), (np.float64(20), 20), ("100k", 100_000), ("1M", 1_000_000),
        ("1.5M", 1_500_000), ("0.1K", 100), ("1e5", 100_000), ("1E+2", 100), ("100_000", 100_000), ("19,440", 19_440),
        (" 2 k ", 2_000), ("2m", 2_000_000),
    ],
)  # fmt: skip
def test_numbers_of_episodes_as_people_write_them(given: object, number: int) -> None:
    assert checks.num_episodes(given) == number


@pytest.mark.parametrize(
    "given",
    [
        1.5,
        "1.5",
        "1.0005k",
        "k",
        "",
        "ten",
        "-5",
        "1e400",
        "1e-3",
        "5 kk",
        "0x10",
        "1/2",
        True,
        None,
        np.nan,
        np.inf,
        0,
        "0",
    ],
)
def test_what_is_no_number_of_episodes_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="the number of episodes"):
        checks.num_episodes(given)
