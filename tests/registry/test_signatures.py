"""Parameters from signatures and annotations, and the values that they take."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal, Optional, Union

import numpy as np
import pytest

from hedgerow.errors import InvalidInput
from hedgerow.registry.signatures import Parameter, WrongParameter, checked, checked_arguments, signature_of


def parameter(annotation: Any = "", default: Any = None) -> Parameter:
    def function(x: Any = default) -> None: ...

    function.__annotations__ = {"x": annotation} if annotation != "" else {}
    return signature_of(function, "f").parameters["x"]


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, 3, 3),
        ("int", -3, -3),
        (float, 3, 3.0),
        ("float", 0.5, 0.5),
        (bool, True, True),
        (str, "a", "a"),
        ("int | None", None, None),
        (Optional[int], 4, 4),  # noqa: UP045
        (Union[int, str], "a", "a"),  # noqa: UP007
        (int | str, 4, 4),
        ("float | int", 4, 4),
        ("int | float", 0.5, 0.5),
        (tuple[int, ...], [1, 2], (1, 2)),
        ("list[float]", [1, 2.5], [1.0, 2.5]),
        (Sequence[str], ["a"], ("a",)),
        ("collections.abc.Sequence[int]", [1], (1,)),
        ("Sequence[Sequence[int]]", [[1], [2, 3]], ((1,), (2, 3))),
        (tuple, [1, "a"], (1, "a")),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Literal["a", "b"], "b", "b"),
        ("Literal[1, 2]", 2, 2),
        (np.ndarray, [1, 2], [1, 2]),
        ("ArrayLike", "anything", "anything"),
        ("int | ArrayLike", "anything", "anything"),
        ("Whatever[int, 'x']", 3, 3),
        ("Literal[Colour.RED]", 3, 3),
    ],
)
def test_values_that_fit(annotation: Any, value: Any, result: Any) -> None:
    taken = checked("x", parameter(annotation), value)
    assert taken == result
    assert type(taken) is type(result)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, 1.5, "x must be a whole number, not 1.5"),
        (int, True, "x must be a whole number, not True"),
        ("int", "3", "x must be a whole number, not '3'"),
        (float, "3", "x must be a number, not '3'"),
        (float, True, "x must be a number, not True"),
        (float, float("nan"), "x is nan"),
        (float, float("inf"), "x is inf"),
        (bool, 1, "x must be true or false, not 1"),
        (str, 1, "x must be a text, not 1"),
        ("int | None", "a", "x must be a whole number or none, not 'a'"),
        (int | str, 1.5, "x must be a whole number or a text, not 1.5"),
        ("tuple[int, ...]", 3, "x must be a sequence, not 3"),
        ("tuple[int, ...]", "12", "x must be a sequence, not '12'"),
        ("tuple[int, ...]", [1, 2.5], r"x\[1\] must be a whole number, not 2.5"),
        ("Sequence[Sequence[int]]", [[1], ["a"]], r"x\[1\]\[0\] must be a whole number"),
        (Literal["a", "b"], "c", "x must be one of 'a', 'b', not 'c'"),
        ("Literal[1]", True, "x must be one of 1, not True"),
    ],
)
def test_values_that_do_not(annotation: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        checked("x", parameter(annotation), value)


@pytest.mark.parametrize(
    ("default", "right", "wrong"),
    [(3, 4, 1.5), (0.5, 1, "a"), (True, False, 0), ("a", "b", 1), ((1, 2), [3], [1.5]), ([0.5], [1], ["a"])],
)
def test_without_an_annotation_the_default_tells(default: Any, right: Any, wrong: Any) -> None:
    checked("x", parameter(default=default), right)
    with pytest.raises(InvalidInput):
        checked("x", parameter(default=default), wrong)


def test_arguments_by_name() -> None:
    def target(view: Any, rate: float, rounds: int = 3, *, label: str = "a") -> None: ...

    signature = signature_of(target, "t")
    assert checked_arguments("t", signature, {"rate": 1}, ("view",)) == {"rate": 1.0}
    for given, key, message in (
        ({"rate": 1, "rouns": 2}, "rouns", "t has no parameter 'rouns'; did you mean 'rounds'?"),
        ({"rate": 1, "zzz": 2}, "zzz", "t has no parameter 'zzz'; its parameters are: rate: float, rounds: int = 3"),
        ({"rate": 1, "view": 2}, "view", "t has no parameter 'view'"),
        ({"rate": "a"}, "rate", "rate must be a number, not 'a'"),
        ({}, None, "t needs the parameter 'rate'"),
    ):
        with pytest.raises(WrongParameter) as refusal:
            checked_arguments("t", signature, given, ("view",))
        assert refusal.value.key == key
        assert message in str(refusal.value)


def test_open_signatures_take_any_name_but_those_that_are_supplied() -> None:
    def target(view: Any, **options: Any) -> None: ...

    signature = signature_of(target, "t")
    assert checked_arguments("t", signature, {"anything": [1]}, ("view",)) == {"anything": [1]}
    with pytest.raises(WrongParameter, match="no parameter 'view'; it has none"):
        checked_arguments("t", signature, {"view": 1}, ("view",))


def test_signatures_that_cannot_be_called_by_name() -> None:
    def positional(x: int, /) -> None: ...

    with pytest.raises(InvalidInput, match="takes 'x' by its position only"):
        signature_of(positional, "p")
    with pytest.raises(InvalidInput, match="the signature of dict cannot be read"):
        signature_of(dict, "dict")
    assert list(signature_of(functools.partial(lambda a, b: 0, 1), "partial").parameters) == ["b"]
