"""Parameters of a constructor or function, from its signature and annotations, and checks of values from outside.

Only simple types are checked: whole numbers, numbers, truth values, texts, sequences of these, `Literal` choices, and
unions of them. A parameter without an annotation has the type of its default. Everything else is let through, for the
constructor to judge.

    >>> def greedy(view, *, rate: float = 0.5, rounds: "int | None" = None): ...
    >>> rate = signature_of(greedy, "greedy").parameters["rate"]
    >>> checked("rate", rate, 1)
    1.0
    >>> checked("rounds", signature_of(greedy, "greedy").parameters["rounds"], "many")
    Traceback (most recent call last):
    hedgerow.errors.InvalidInput: rounds must be a whole number or none, not 'many'
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, Union, get_args, get_origin

from hedgerow.checks import LARGEST_SEED, did_you_mean, real_number, short_repr, whole_number
from hedgerow.errors import InvalidInput

F = typing.TypeVar("F", bound=Callable[..., Any])
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "none"}
_SEQUENCES = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)


@dataclass(frozen=True)
class Parameter:
    """One argument that can be given by its name."""

    name: str
    required: bool
    default: Any
    """None for a required one"""
    type: str
    """As it is written; empty if nothing is known"""
    hint: Any = field(default=Any, compare=False, repr=False)
    """The type itself; `Any` if it is not known, or was not asked for (`Registry.describe`)"""

    def __str__(self) -> str:
        kind = f": {self.type}" if self.type else ""
        return f"{self.name}{kind}" if self.required else f"{self.name}{kind} = {self.default!r}"


@dataclass(frozen=True)
class Signature:
    """All arguments, in their order."""

    parameters: Mapping[str, Parameter]
    open: bool
    """Whether it takes any further name (**options)"""


def signature_of(target: Callable[..., Any], name: str) -> Signature:
    """The arguments of a class's constructor or of a function; `name` is what messages call it."""
    try:
        arguments = inspect.signature(target).parameters.values()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the signature of {name} cannot be read: {error}") from error
    found, known = {}, _names_around(target)
    for argument in arguments:
        if argument.kind is argument.POSITIONAL_ONLY and argument.default is argument.empty:
            raise InvalidInput(f"{name} takes {argument.name!r} by its position only; let it be given by name")
        if argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY):
            required = argument.default is argument.empty
            default = None if required else argument.default
            hint = _type_of(default) if argument.annotation is argument.empty else _hint(argument.annotation, known)
            written = _in_code(hint if argument.annotation is argument.empty else argument.annotation)
            found[argument.name] = Parameter(argument.name, required, default, written, hint)
    return Signature(found, any(argument.kind is argument.VAR_KEYWORD for argument in arguments))


class WrongParameter(InvalidInput):
    """A mistake in one parameter, or in none of those that are given."""

    def __init__(self, key: str | None, message: str) -> None:
        super().__init__(message)
        self.key = key


def checked_arguments(
    name: str, signature: Signature, given: Mapping[str, Any], supplied: Collection[str] = ()
) -> dict[str, Any]:
    """`given` by name, each of its type; the caller of the constructor supplies the parameters in `supplied` itself."""
    known = {key: parameter for key, parameter in signature.parameters.items() if key not in supplied}
    checked_values = {}
    for key, value in given.items():
        try:
            if not signature.open or key in supplied:
                check_known(name, key, known)
            checked_values[key] = checked(key, known[key], value) if key in known else value
        except InvalidInput as error:
            raise WrongParameter(key, str(error)) from error
    missing = [key for key, parameter in known.items() if parameter.required and key not in given]
    if missing:
        raise WrongParameter(None, f"{name} needs the parameter {missing[0]!r}")
    return checked_values


def check_known(name: str, key: str, known: Mapping[str, Parameter]) -> None:
    """Refuse the parameter `key` if it is not among those that are known."""
    if key not in known:
        near = did_you_mean(key, known)
        told = near if near.startswith("; did") else f"; its parameters are: {', '.join(map(str, known.values()))}"
        raise InvalidInput(f"{name} has no parameter {key!r}{told if known else '; it has none'}")


def checked(what: str, parameter: Parameter, value: Any, least: int = -LARGEST_SEED) -> Any:
    """`value` as the type of `parameter`: ints become floats, lists become tuples where these are wanted."""
    return _as(what, parameter.hint, value, least, parameter.default)


OTHERWISE = {
    "T": "episodes",
    "num_episodes": "episodes",
    "n_episodes": "episodes",
    "world": "view",
    "cmdp": "view",
    "adversary": "losses",
    "loss": "losses",
    "random_state": "seed",
}
"""How people call an argument that has another name here"""


def refuse_unfit(
    name: str, target: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any], texts: Mapping[str, str]
) -> None:
    """Refuse a call of a constructor or function whose arguments do not fit its signature, in words.

    `texts` say what the arguments mean. Nothing happens if they fit: then the error of the call was another one.
    """
    signature = inspect.signature(target)
    known = {each.name: each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD}
    try:
        signature.bind(*args, **given)
        return
    except TypeError as error:
        problem = str(error)
    for key, value in given.items():
        right = OTHERWISE.get(key)
        if key not in known and right in known and right not in given:
            raise InvalidInput(f"{name} has no argument {key!r}: write {right}={short_repr(value)}") from None
        if key not in known and len(known) == len(signature.parameters):  # it takes no further names
            raise InvalidInput(f"{name} has no argument {key!r}{did_you_mean(key, known)}") from None
    by_place = [key for key, each in known.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    filled = {*by_place[: len(args)], *given}
    for key, each in known.items():
        if each.default is each.empty and key not in filled:
            meaning = texts.get(key, "")
            raise InvalidInput(
                f"{name} needs the argument {key!r}{f': {meaning[0].lower()}{meaning[1:]}' if meaning else ''}"
            ) from None
    raise InvalidInput(f"{name}: {problem}; its arguments are {', '.join(known)}") from None


def explained(function: F) -> F:
    """Decorate a function: a call whose arguments do not fit is refused in words (`refuse_unfit`)."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            refuse_unfit(function.__name__, function, args, kwargs, {})
            raise

    return typing.cast(F, call)


# Types ----------------------------------------------------------------------------------------------------------------


def _as(what: str, hint: Any, value: Any, least: int, default: Any = None) -> Any:
    """`value` as the type `hint`, which may be a union; unchanged if we do not check such types."""
    alternatives = _alternatives(hint)
    if not all(map(_is_simple, alternatives)):
        return value
    if len(alternatives) == 1:
        return _as_one(what, alternatives[0], value, least, default)
    for alternative in sorted(alternatives, key=lambda each: each is float):  # a whole number stays one
        try:
            return _as_one(what, alternative, value, least, default)
        except InvalidInput:
            continue
    raise InvalidInput(f"{what} must be {' or '.join(map(_in_words, alternatives))}, not {short_repr(value)}")


def _as_one(what: str, hint: Any, value: Any, least: int, default: Any) -> Any:
    if hint is int:
        return whole_number(what, value, least, LARGEST_SEED)  # sizes are checked where they are used
    if hint is float:
        return real_number(what, value, -sys.float_info.max, sys.float_info.max)
    if _head(hint) in _SEQUENCES:
        return _sequence(what, hint, value, least, default)
    if _head(hint) is Literal:
        fits = any(value == choice and type(value) is type(choice) for choice in get_args(hint))
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise InvalidInput(f"{what} must be {_in_words(hint)}, not {short_repr(value)}")
    return value


def _sequence(what: str, hint: Any, value: Any, least: int, default: Any) -> Any:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        like = f" like {default!r}" if default else ""
        raise InvalidInput(f"{what} must be a sequence{like}, not {short_repr(value)}")
    kinds = [kind for kind in get_args(hint) if kind is not ...]
    item = kinds[0] if len(kinds) == 1 else Any
    items = (_as(f"{what}[{i}]", item, entry, least) for i, entry in enumerate(value))
    return list(items) if _head(hint) is list else tuple(items)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if _head(hint) in (Union, types.UnionType) else (hint,)


def _head(hint: Any) -> Any:
    return get_origin(hint) or hint


def _is_simple(hint: Any) -> bool:
    if _head(hint) is Literal:
        return all(isinstance(choice, bool | int | float | str) for choice in get_args(hint))
    return any(_head(hint) is kind for kind in (*_WORDS, *_SEQUENCES))


def _in_words(hint: Any) -> str:
    if _head(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    return _WORDS.get(hint, "a sequence")


def _type_of(default: Any) -> Any:
    """The type of a parameter without annotation, as far as its default tells."""
    if isinstance(default, tuple | list) and default:
        inner = {_type_of(item) for item in default}
        return collections.abc.Sequence[inner.pop()] if len(inner) == 1 else collections.abc.Sequence  # type: ignore[misc]
    return type(default) if type(default) in (bool, int, float, str) else Any


# Annotations ----------------------------------------------------------------------------------------------------------


def _names_around(target: Any) -> dict[str, Any]:
    """What the annotations of a constructor or function may name: the usual types, and what its module has."""
    usual = {**vars(typing), **vars(collections.abc), "collections": collections}
    function = vars(target).get("__init__") if isinstance(target, type) else target
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    return {**usual, **vars(module or types), **getattr(function, "__globals__", {})}


def _hint(annotation: Any, known: dict[str, Any]) -> Any:
    """The type that an annotation stands for; `Any` if it names something that is only imported for type checkers.

    One by one, unlike `typing.get_type_hints`: a single name that cannot be resolved would hide all others.
    """
    for _ in range(2):  # written in quotation marks, and postponed besides
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, known)  # code of the module itself, which has been executed
            except Exception:
                return Any
    if annotation is None:
        return type(None)
    return annotation.type if isinstance(annotation, InitVar) else annotation  # of a dataclass, which does not keep it


def _in_code(annotation: Any) -> str:
    """An annotation as one would write it; the empty text for `Any`."""
    if isinstance(annotation, str):
        written = annotation.strip("'\"")
        if written.startswith("InitVar["):
            written = written[8:-1]
    elif isinstance(annotation, type) and not get_args(annotation):
        written = annotation.__name__
    else:
        written = str(annotation).replace("typing.", "").replace("collections.abc.", "").replace("NoneType", "None")
    return "" if written == "Any" else written
