"""Docstrings of every public name: the API reference is made of them, so that nothing may be missing or stale.

Public are the names of `hedgerow.__all__`, those of its public modules, of `hedgerow.gym` and of `hedgerow.registry`,
and the classes that public calls hand out (`HANDED_OUT`). Methods and properties of these classes belong to them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any

import griffe
import pytest

import hedgerow as hr
from hedgerow.registry import Registry

LONGEST_FIRST_LINE = 100

MODULES = ("hedgerow.gym", "hedgerow.registry")
"""Public modules that `hedgerow.__all__` does not list: one needs an extra, `hr.worlds` is made of the other."""

HANDED_OUT = {
    "hedgerow.losses.adaptive": ("CheckedAdaptive",),
    "hedgerow.losses.blocks": ("CheckedBlocks",),
    "hedgerow.worlds.ev_replay": ("RealCars", "Replayed", "replayed"),
    "hedgerow.testing.check_learner": ("Finding", "Findings"),
    "hedgerow.importers.tables": ("TableWorld",),
    "hedgerow.importers.unroll": ("RewardScale", "Unrolled"),
    "hedgerow.learners.field.base": ("FieldLearner",),
    "hedgerow.learners.guarantees": ("Promise",),
    "hedgerow.learners.ops.base": ("MirrorLearner",),
    "hedgerow.learners.ops.settings": ("Settings",),
    "hedgerow.learners.api": ("Inputs", "Limited", "NumberedPlan", "Promising", "Resumable"),
    "hedgerow.learners.statistics": ("Planned",),
    "hedgerow.model.knowledge": ("Knowledge",),
    "hedgerow.model.policy": ("Actions", "UniformMixture"),
    "hedgerow.projection.problem": ("ProjectionResiduals",),
    "hedgerow.results.groups": ("Group", "Setting"),
    "hedgerow.results.metrics": ("Estimate", "Growth"),
}
"""Classes without a public name of their own that users hold in their hands, by module."""

WITHOUT_EXAMPLE = {
    "hedgerow.errors": "an error has no behaviour to show, the calls that raise it do",
    "hedgerow.learners.ops.settings.Settings": "made by learners, never by hand: `learner.settings`",
}
"""Modules and objects that need no example, and why."""


@dataclass(frozen=True)
class Public:
    """One public class or function."""

    name: str
    """Where it is defined: `module.Name`"""
    thing: Any

    @cached_property
    def doc(self) -> str:
        return inspect.getdoc(self.thing) or "" if not isinstance(self.thing, type) else own_doc(self.thing)


def own_doc(cls: type) -> str:
    """The docstring of the class itself: neither inherited, nor made up by `dataclass` or `NamedTuple`."""
    tree = tree_of(cls)
    written = ast.get_docstring(tree) if tree is not None else None
    return inspect.cleandoc(cls.__doc__ or "") if written else ""  # learners complete the `Args:` of what is written


@cache
def tree_of(cls: type) -> ast.ClassDef | None:
    """The syntax tree of a class."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    return node if isinstance(node, ast.ClassDef) else None


def public_modules() -> list[types.ModuleType]:
    listed = [getattr(hr, name) for name in hr.__all__]
    modules = [thing for thing in listed if isinstance(thing, types.ModuleType)]
    return [*modules, *(importlib.import_module(name) for name in MODULES)]


def members(module: types.ModuleType) -> Iterator[Any]:
    """What a public module offers: its `__all__`, or what it defines without an underscore."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    for name in names:
        if not name.startswith("_"):
            yield getattr(module, name)


def collected() -> list[Public]:
    found: dict[str, Any] = {}

    def add(thing: Any) -> None:
        if isinstance(thing, Registry):
            thing = Registry
        if isinstance(thing, types.MethodType):  # hr.learners.register: documented as Registry.register
            return
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("hedgerow"):
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing

    for name in hr.__all__:
        add(getattr(hr, name))
    for module in public_modules():
        for thing in members(module):
            add(thing)
    for name, names in HANDED_OUT.items():
        for each in names:
            add(getattr(importlib.import_module(name), each))
    return [Public(name, thing) for name, thing in sorted(found.items())]


PUBLIC = collected()


@dataclass(frozen=True)
class Member:
    """A public method or property that a public class defines itself."""

    name: str
    thing: Any
    """The function"""
    is_property: bool
    doc: str


def members_of(public: Public) -> Iterator[Member]:
    if not isinstance(public.thing, type):
        return
    for name, thing in vars(public.thing).items():
        if name.startswith("_"):
            continue
        is_property = isinstance(thing, property | cached_property)
        function = thing.fget if isinstance(thing, property) else getattr(thing, "func", thing)
        function = getattr(function, "__func__", function)  # of class methods
        if not inspect.isfunction(function):
            continue
        yield Member(f"{public.name}.{name}", function, is_property, inspected_doc(public.thing, name, function))


def inspected_doc(cls: type, name: str, function: Callable[..., Any]) -> str:
    """The docstring of a method, its own or the one of the base class that declares it."""
    for base in cls.__mro__:
        thing = vars(base).get(name)
        thing = thing.fget if isinstance(thing, property) else getattr(thing, "func", thing)
        doc = getattr(getattr(thing, "__func__", thing), "__doc__", None)
        if doc:
            return inspect.cleandoc(doc)
    return ""


MEMBERS = [member for public in PUBLIC for member in members_of(public)]


def sections(doc: str) -> list[griffe.DocstringSection]:
    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # types are in signatures
    return griffe.Docstring(doc, lineno=1).parse("google")


def documented(doc: str) -> list[str]:
    """The names in the section `Args:`."""
    kinds = (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.other_parameters)
    return [item.name for section in sections(doc) if section.kind in kinds for item in section.value]


def has_example(doc: str) -> bool:
    return any(
        section.kind is griffe.DocstringSectionKind.examples and any(">>>" in text for _, text in section.value)
        for section in sections(doc)
    )


def parameters(thing: Any) -> list[str]:
    """The parameters of a function or constructor, with the stars that `Args:` shows."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    target = thing
    if isinstance(thing, type):
        if is_error(thing) and "__init__" not in vars(thing):
            return []
        if issubclass(thing, Enum) or getattr(thing, "_is_protocol", False) or inspect.isabstract(thing):
            return []
        target = thing.__init__ if thing.__init__ is not object.__init__ else thing.__new__
        if target is object.__new__:
            return []
    found = [stars.get(each.kind, "") + each.name for each in inspect.signature(target).parameters.values()]
    return [name for name in found if name not in ("self", "cls", "_cls")]


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


def attribute_docs(cls: type) -> dict[str, str]:
    """The strings that follow attributes in the body of a class, and in those of its bases."""
    found: dict[str, str] = {}
    for base in reversed([each for each in cls.__mro__ if each.__module__.startswith(("hedgerow", __name__))]):
        tree = tree_of(base)
        for node, following in zip(tree.body, tree.body[1:], strict=False) if tree is not None else ():
            match node, following:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = text
    return found


def fields(cls: type) -> list[str]:
    """The public fields of a dataclass or named tuple, and the public annotated attributes of any other class."""
    tree = tree_of(cls)
    declared = [] if tree is None else [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    names = [node.target.id for node in declared if "ClassVar" not in ast.unparse(node.annotation)]
    return [name for name in names if not name.startswith("_")]


def first_line_faults(doc: str) -> Iterator[str]:
    if not doc:
        yield "has no docstring"
        return
    first, *rest = doc.splitlines()
    if not first.endswith((".", "?", "!")):
        yield f"its first line is no sentence with a full stop: {first!r}"
    if len(first) > LONGEST_FIRST_LINE:
        yield f"its first line has {len(first)} characters, more than {LONGEST_FIRST_LINE}"
    if rest and rest[0]:
        yield "its first line is not followed by an empty one"


def stale_names(doc: str, known: list[str]) -> Iterator[str]:
    for name in documented(doc):
        if name not in known:
            yield f"its Args name {name!r}, which is no parameter"


def faults(public: Public) -> list[str]:
    """What is wrong with the docstring of a class or function."""
    found, doc, thing = list(first_line_faults(public.doc)), public.doc, public.thing
    known, told = parameters(thing), set(documented(doc))
    if isinstance(thing, type):
        told |= set(attribute_docs(thing))
        known_fields = fields(thing)
        found += [f"its field {name!r} has no docstring" for name in known_fields if name not in told]
        found += list(stale_names(doc, [*known, *known_fields]))
    else:
        found += list(stale_names(doc, known))
        known_fields = []
    found += [f"its Args do not name {name!r}" for name in known if name not in told and name not in known_fields]
    excused = any(public.name == name or public.name.startswith(f"{name}.") for name in WITHOUT_EXAMPLE)
    if not excused and not has_example(doc):
        found.append("has no section Examples: with >>>")
    return found


def member_faults(member: Member) -> list[str]:
    """What is wrong with the docstring of a method or property."""
    found, known = list(first_line_faults(member.doc)), [] if member.is_property else parameters(member.thing)
    found += list(stale_names(member.doc, known))
    told = {*documented(member.doc), *re.findall(r"`([*\w]+)`", member.doc)}
    found += [f"neither its Args nor its text name `{name}`" for name in known if name not in told]
    return found


def test_everything_public_is_looked_at() -> None:
    names = {public.name for public in PUBLIC}
    assert {"hedgerow.model.layout.Layout", "hedgerow.simulation.files.load", "hedgerow.gym.world.GymWorld"} <= names
    assert {"hedgerow.registry.registry.Registry", "hedgerow.losses.oblivious.Switching"} <= names
    assert len(PUBLIC) > 90
    assert any(member.name.endswith("Layout.split_rows") for member in MEMBERS)
    assert any(member.is_property and member.name.endswith("Layout.steps") for member in MEMBERS)


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.name)
def test_classes_and_functions(public: Public) -> None:
    assert faults(public) == []


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_methods_and_properties(member: Member) -> None:
    assert member_faults(member) == []


@pytest.mark.parametrize("name", WITHOUT_EXAMPLE)
def test_exceptions_still_exist(name: str) -> None:
    assert any(public.name == name or public.name.startswith(f"{name}.") for public in PUBLIC)


def test_faults_are_found() -> None:
    def good(costs: Any, *, steps: int = 3) -> int:
        """Count the costs.

        Args:
            costs: (m, rows) array in [0, 1].
            steps: how many steps an episode has.

        Returns:
            How many there are.

        Examples:
            >>> good([1.0])
            1
        """
        return len(costs) + steps

    def bad(costs: Any, steps: int) -> None:
        """Count the costs
        of an episode.

        Args:
            costs: an array.
            cost: an array.
        """

    assert faults(Public("good", good)) == []
    assert faults(Public("bad", bad)) == [
        "its first line is no sentence with a full stop: 'Count the costs'",
        "its first line is not followed by an empty one",
        "its Args name 'cost', which is no parameter",
        "its Args do not name 'steps'",
        "has no section Examples: with >>>",
    ]


def test_faults_of_classes_are_found() -> None:
    @dataclass
    class Bad:
        """A world with a very long first line, which says more than one thing at once, and which no table holds."""

        rows: int
        """How many rows there are."""
        costs: float

        def play(self, policy: Any, rng: Any) -> None:
            """Play `policy` once."""

    public = Public("Bad", Bad)
    assert faults(public) == [
        "its first line has 102 characters, more than 100",
        "its field 'costs' has no docstring",
        "has no section Examples: with >>>",
    ]
    (member,) = members_of(public)
    assert member_faults(member) == ["neither its Args nor its text name `rng`"]
