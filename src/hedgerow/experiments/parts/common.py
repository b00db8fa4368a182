"""What the three ingredients share: mistakes by key, names to code, plain data, labels."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.checks import shown
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.registry import Found, Registry
from hedgerow.registry.signatures import WrongParameter, checked_arguments

Part = dict[str, Any]
"""{"name": ..., parameters}: plain data"""
PLUG_IN = "plug-in"
"""The key of a description that names the plug-in code; no parameter can have this name."""
LENGTH = "T"


class Misfit(HedgerowError):  # noqa: N818 - never leaves this folder
    """A mistake in one key of a part; the reader of the file adds the line."""

    def __init__(self, key: str | None, message: str) -> None:
        super().__init__(message)
        self.key = key


def named(registry: Registry, given: Mapping[str, Any], folder: Path) -> Found:
    """What the name of a part stands for."""
    try:
        return registry.look_up(given["name"], folder)
    except InvalidInput as error:
        raise Misfit("name", str(error)) from error


def as_described(registry: Registry, part: Part, folder: Path) -> Found:
    """What a complete description stands for: exactly the code that it names."""
    return registry.look_up(part["name"], folder, part.get(PLUG_IN))


def described(found: Found, params: Mapping[str, Any]) -> Part:
    """The description of a part, with its origin if it is a plug-in."""
    try:
        origin = found.origin
    except InvalidInput as error:
        raise Misfit("name", str(error)) from error
    return {"name": found.name, **({} if origin is None else {PLUG_IN: origin}), **plain(params)}


def checked_params(found: Found, params: Mapping[str, Any], supplied: Collection[str] = ()) -> dict[str, Any]:
    """Parameters from a file as plain data, checked against the signature of a plug-in's constructor."""
    for key, value in params.items():
        if not _is_plain(value):
            raise Misfit(key, f"{key} must be a number, a text, true or false, or a list of these, not {shown(value)}")
    try:
        return checked_arguments(found.name, found.signature, params, supplied)
    except WrongParameter as error:
        raise Misfit(error.key, str(error)) from error
    except InvalidInput as error:
        raise Misfit("name", str(error)) from error


def own_params(part: Part) -> dict[str, Any]:
    """The parameters in a description."""
    return {key: value for key, value in part.items() if key not in ("name", PLUG_IN)}


def at_length(given: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """The parameters that a file gives, for a run of so many episodes."""
    return {key: episodes if value == LENGTH else value for key, value in given.items() if key != "name"}


def named_in(message: str, params: Mapping[str, Any]) -> str | None:
    """The key that a message mentions."""
    return next((key for key in params if key in message), None)


def plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, bool | int | str) or (isinstance(value, float) and bool(np.isfinite(value)))


# Labels ---------------------------------------------------------------------------------------------------------------


def default_label(given: Mapping[str, Any], quiet: tuple[str, ...] = ()) -> str:
    """A readable name: the part's name and what was given; the keys in `quiet` are understood without their name."""
    words = [str(given["name"]).rpartition(":")[2]]
    for key, value in given.items():
        if key != "name":
            words.append(_short(value) if key in quiet else f"{key}={_short(value)}")
    return "-".join(words)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, int) for item in value) and len(value) <= 12:
        return "x".join(map(str, value))
    if isinstance(value, list):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:6]
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "+")
