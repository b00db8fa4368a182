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

import ast
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.checks import LARGEST_SEED, did_you_mean, real_number, short_repr, whole_number
from hedgerow.errors import InvalidInput

_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text", "None": "none"}
_SEQUENCES = ("Sequence", "list", "tuple", "List", "Tuple", "Iterable")


@dataclass(frozen=True)
class Parameter:
    """One argument that can be given by its name."""

    name: str
    required: bool
    default: Any
    """None for a required one"""
    type: str
    """As it is written; empty if nothing is known"""

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
    found = {}
    for argument in arguments:
        if argument.kind is argument.POSITIONAL_ONLY and argument.default is argument.empty:
            raise InvalidInput(f"{name} takes {argument.name!r} by its position only; let it be given by name")
        if argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY):
            required = argument.default is argument.empty
            default = None if required else argument.default
            written = _written(argument.annotation) or _type_of(default)
            found[argument.name] = Parameter(argument.name, required, default, written)
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
    alternatives = _alternatives(parameter.type)
    if not alternatives or not all(map(_is_simple, alternatives)):
        return value
    if len(alternatives) == 1:
        return _as(what, alternatives[0], value, least, parameter.default)
    for alternative in sorted(alternatives, key=lambda name: name == "float"):  # a whole number stays one
        try:
            return _as(what, alternative, value, least, parameter.default)
        except InvalidInput:
            continue
    raise InvalidInput(f"{what} must be {' or '.join(map(_in_words, alternatives))}, not {short_repr(value)}")


def _as(what: str, name: str, value: Any, least: int, default: Any) -> Any:
    """`value` as the one type `name`."""
    head, inner = _parts(name)
    if head == "int":
        return whole_number(what, value, least, LARGEST_SEED)  # sizes are checked where they are used
    if head == "float":
        return real_number(what, value, -sys.float_info.max, sys.float_info.max)
    if head in _SEQUENCES:
        return _sequence(what, head, inner, value, least, default)
    if head == "Literal":
        fits = any(value == choice and type(value) is type(choice) for choice in _choices(inner))
    else:
        fits = value is None if head == "None" else isinstance(value, {"bool": bool, "str": str}[head])
    if not fits:
        raise InvalidInput(f"{what} must be {_in_words(name)}, not {short_repr(value)}")
    return value


def _sequence(what: str, head: str, inner: str, value: Any, least: int, default: Any) -> Any:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        like = f" like {default!r}" if default else ""
        raise InvalidInput(f"{what} must be a sequence{like}, not {short_repr(value)}")
    kinds = [part for part in _split(inner, ",") if part != "..."]
    item = Parameter(what, True, None, kinds[0] if len(kinds) == 1 else "")
    items = (checked(f"{what}[{i}]", item, entry, least) for i, entry in enumerate(value))
    return list(items) if head in ("list", "List") else tuple(items)


# Annotations as texts -------------------------------------------------------------------------------------------------


def _written(annotation: Any) -> str:
    """An annotation as one would write it."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        written = annotation.strip("'\"")  # written in quotation marks, and postponed besides
        head, inner = _parts(written)
        written = inner if head == "InitVar" else written  # of a dataclass, which does not keep it
        return "" if written == "Any" else written
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("collections.abc.", "").replace("NoneType", "None")


def _type_of(default: Any) -> str:
    """The type of a parameter without annotation, as far as its default tells."""
    if isinstance(default, tuple | list) and default:
        inner = {_type_of(item) for item in default}
        return f"Sequence[{inner.pop()}]" if len(inner) == 1 and "" not in inner else "Sequence"
    return type(default).__name__ if type(default) in (bool, int, float, str) else ""


def _alternatives(written: str) -> list[str]:
    """The parts of a union."""
    found = []
    for part in _split(written, "|"):
        head, inner = _parts(part)
        if head == "Optional":
            found += [*_alternatives(inner), "None"]
        elif head == "Union":
            found += [name for item in _split(inner, ",") for name in _alternatives(item)]
        else:
            found.append(part)
    return found


def _parts(written: str) -> tuple[str, str]:
    """`Sequence[int]` as ("Sequence", "int"), without the names of modules before it."""
    head, _, inner = written.partition("[")
    return head.strip().rpartition(".")[2], inner.strip().removesuffix("]")


def _split(written: str, mark: str) -> list[str]:
    """The pieces of a text between marks that stand outside of brackets."""
    pieces, depth = [""], 0
    for letter in written:
        depth += (letter in "[(") - (letter in "])")
        if letter == mark and not depth:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def _is_simple(name: str) -> bool:
    head, inner = _parts(name)
    return head in _WORDS or head in _SEQUENCES or (head == "Literal" and bool(_choices(inner)))


def _choices(inner: str) -> tuple[Any, ...]:
    """The values of a `Literal`; none if they are more than numbers and texts."""
    try:
        return tuple(ast.literal_eval(f"({inner},)"))
    except (SyntaxError, ValueError):
        return ()


def _in_words(name: str) -> str:
    head, inner = _parts(name)
    if head == "Literal":
        return f"one of {inner}"
    return _WORDS.get(head, "a sequence")
