"""The API reference: pages made of signatures and docstrings, every public name on one of them, once.

Sources are read, not run, for signatures and for the texts below attributes (griffe); the package itself says what is
public and where a name comes from.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import griffe

from tools.docs import docstrings
from tools.docs.api_pages import PAGES, Page
from tools.docs.docstrings import Doc, cell, code

ROOT = Path(__file__).resolve().parents[2]
WIDEST = 92
"""Characters of a signature in one line."""

INTERNAL = {"arguments", "check_horizon", "checked_outcome", "expect", "played_array", "state_arrays", "trusted"}
"""Members without an underscore that other modules of the package call; users do not need them, and they may change."""


@dataclass(frozen=True)
class Entry:
    """A public name with its place."""

    path: str
    """`hedgerow.Layout`, `hedgerow.offline.optimum`"""
    value: Any
    page: str
    note: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def anchor(self) -> str:
        """Two underscores would be read as bold type."""
        return self.path.replace("__", "")


def public_names(module: types.ModuleType) -> list[str]:
    """What `__all__` lists, or the functions and classes that a module defines itself."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)
    return [name for name in own if not name.startswith("_")]


def module_of(name: str) -> types.ModuleType:
    import hedgerow

    return importlib.import_module("hedgerow.gym") if name == "gym" else getattr(hedgerow, name)


def _named(name: str) -> Any:
    """What has this name in `hedgerow`, or in one of its modules."""
    module, _, last = f"hedgerow.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last)


@cache
def entries() -> tuple[Entry, ...]:
    """Every public name in the order of the pages. One object is entered once, under its shortest path."""
    import hedgerow

    found: list[Entry] = []
    homes = {id(getattr(hedgerow, name)): name for name in hedgerow.__all__ if _has_identity(getattr(hedgerow, name))}
    for page in PAGES:
        found += [Entry(f"hedgerow.{name}", _named(name), page.file) for name in page.names]
        for name in page.modules:
            module = module_of(name)
            found.append(Entry(f"hedgerow.{name}", module, page.file))
            members = [(member, getattr(module, member)) for member in public_names(module)]
            for member, value in members:
                if id(value) not in homes:
                    found.append(Entry(f"hedgerow.{name}.{member}", value, page.file))
                elif name == "errors":
                    found.append(Entry(f"hedgerow.{member}", value, page.file, f"also `hedgerow.errors.{member}`"))
    return tuple(found)


def complaints() -> list[str]:
    """Public names that no page of the reference has."""
    import hedgerow

    listed = {entry.path for entry in entries()}
    lost = [name for name in hedgerow.__all__ if f"hedgerow.{name}" not in listed]
    return [f"the reference has no hedgerow.{name}; give it a page in tools/docs/api_pages.py" for name in lost]


def _has_identity(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / page.file).write_text(markdown(page), encoding="utf-8")


def markdown(page: Page) -> str:
    """One page."""
    found = [entry for entry in entries() if entry.page == page.file]
    shared = _shared_bases(found)
    parts = [f"# {page.title}\n", f"{page.text}\n", _overview(found)]
    parts += [_Section(entry, shared).markdown() for entry in found]
    for base, users in shared.items():
        parts.append(_shared_section(base, users))
    return "\n".join(parts)


def _overview(found: list[Entry]) -> str:
    rows = [f"| [`{_short(entry.path)}`](#{entry.anchor}) | {cell(_summary(entry.value), _plain)} |" for entry in found]
    return "\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n"


def _summary(value: Any) -> str:
    if isinstance(value, str):
        return "The version of the package."
    if not callable(value) and not inspect.ismodule(value):
        return f"The registry of {_kinds(value)}."
    return docstrings.parse(value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)).summary


def _kinds(registry: Any) -> str:
    kind = str(registry.kind)
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _shared_bases(found: list[Entry]) -> dict[type, list[Entry]]:
    """Classes that are not public and from which two or more classes of a page inherit."""
    public = {entry.value for entry in entries() if inspect.isclass(entry.value)}
    users: dict[type, list[Entry]] = {}
    for entry in found:
        for base in _own_bases(entry.value):
            if base not in public:
                users.setdefault(base, []).append(entry)
    return {base: names for base, names in users.items() if len(names) > 1}


def _own_bases(value: Any) -> Iterator[type]:
    """Classes of hedgerow behind a class, itself left out."""
    if inspect.isclass(value):
        yield from (base for base in value.__mro__[1:] if base.__module__.partition(".")[0] == "hedgerow")


def _shared_section(base: type, users: list[Entry]) -> str:
    names = ", ".join(f"[`{user.name}`](#{user.path})" for user in users)
    source = _source_of(base)
    parts = [f"## What they share {{ #shared-{base.__name__} }}\n", f"Members of {names}.\n"]
    parts.append(_members(base, source, f"shared-{base.__name__}", {base: []}, [base]))
    return "\n".join(parts)


class _Section:
    """The section of one name."""

    def __init__(self, entry: Entry, shared: dict[type, list[Entry]]) -> None:
        self.entry, self.shared = entry, shared

    def markdown(self) -> str:
        entry, value = self.entry, self.entry.value
        kind = _kind(value)
        head = f"## {_short(entry.path).replace('__', chr(92) + '_' + chr(92) + '_')} {{ #{entry.anchor} }}\n"
        also = f"{entry.note[0].upper()}{entry.note[1:]}.\n" if entry.note else ""
        if kind == "module":
            doc = docstrings.parse(value.__doc__)
            return "\n".join([head, f"Module `{entry.path}`.\n", docstrings.markdown(doc.text, _link) + "\n"])
        if kind == "value":
            return f"{head}\n{_summary(value)}\n"
        if kind == "registry":
            return f"{head}\n{self._registry()}"
        source = _source_of(value)
        body = _signature(source, entry.path, value) + "\n" + also + _doc(source, value)
        if kind == "class":
            body += _members(value, source, entry.path, self.shared, [value, *_own_bases(value)])
        return f"{head}\n{body}"

    def _registry(self) -> str:
        names = ("register", "names", "find", "describe")
        links = ", ".join(f"[`{name}`](learners.md#hedgerow.learners.{name})" for name in names)
        known = ", ".join(f"`{name}`" for name in self.entry.value.names())
        return (
            f"{_summary(self.entry.value)} It has {links}, as `hedgerow.learners` has them for learners.\n\n"
            f"Names that ship with hedgerow: {known}.\n"
        )


def _kind(value: Any) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    if inspect.isroutine(value):
        return "function"
    return "value" if isinstance(value, str) else "registry"


def _short(path: str) -> str:
    return path.removeprefix("hedgerow.")


@cache
def _module_source(name: str) -> Any:
    """A module as griffe reads it. Modules are read one by one: only those that public names come from."""
    file = Path(str(importlib.import_module(name).__file__))
    return griffe.visit(name, filepath=file, code=file.read_text(encoding="utf-8"))


def _source_of(value: Any) -> Any:
    """What griffe knows of a class, a function or a method."""
    target = inspect.unwrap(getattr(value, "__func__", value))
    source = _module_source(target.__module__)
    for part in target.__qualname__.split("."):
        source = source.members[part]
    return source


def _signature(source: Any, path: str, value: Any = None) -> str:
    """A Python block with the name and its parameters."""
    if source.is_class:
        parameters = _constructor(value)
        line = f"class {path}" + ("" if parameters is None else f"({', '.join(parameters)})")
        ending, word = "", "class "
    else:
        bound = source.parent.is_class and "staticmethod" not in source.labels
        parameters = _listed(list(source.parameters)[1 if bound else 0 :])
        ending, word = "" if source.returns is None else f" -> {source.returns}", ""
        line = f"{path}({', '.join(parameters)}){ending}"
    if len(line) > WIDEST and parameters:
        line = f"{word}{path}(\n    " + ",\n    ".join(parameters) + f",\n){ending}"
    return f"```python\n{line}\n```\n"


def _constructor(value: type) -> list[str] | None:
    """What a class is called with: its own `__init__`, or the fields of a dataclass or named tuple; None: it is not."""
    if _is_enum(value) or getattr(value, "_is_protocol", False) or issubclass(value, BaseException):
        return None
    for base in [value, *_own_bases(value)]:
        init = _source_of(base).members.get("__init__")
        if init is not None:
            return _listed(list(init.parameters)[1:])
    if not (hasattr(value, "__dataclass_fields__") or hasattr(value, "_fields")):
        return None
    shown = []
    for name, parameter in inspect.signature(value).parameters.items():
        annotation = str(parameter.annotation).removeprefix("ForwardRef('").removesuffix("')")
        default = "" if parameter.default is parameter.empty else f" = {_default_source(value, name)}"
        shown.append(f"{name}: {annotation}{default}")
    return shown


def _default_source(value: type, name: str) -> str:
    for base in [value, *_own_bases(value)]:
        member = _source_of(base).members.get(name)
        if member is not None and member.is_attribute and member.value is not None:
            text = str(member.value)
            return "..." if text.startswith("field(") else text
    return "..."


def _listed(parameters: list[Any]) -> list[str]:
    """Parameters as they stand in the source, with its `/` and `*`."""
    kinds = [parameter.kind.value for parameter in parameters]
    shown = [_parameter(parameter) for parameter in parameters]
    if "keyword-only" in kinds and "variadic positional" not in kinds:
        shown.insert(kinds.index("keyword-only"), "*")
    if "positional-only" in kinds:
        shown.insert(len(kinds) - kinds[::-1].index("positional-only"), "/")
    return shown


def _parameter(parameter: Any) -> str:
    stars = {"variadic positional": "*", "variadic keyword": "**"}.get(parameter.kind.value, "")
    annotation = f": {parameter.annotation}" if parameter.annotation is not None else ""
    if parameter.default is None or stars:
        return f"{stars}{parameter.name}{annotation}"
    return (
        f"{parameter.name}{annotation} = {parameter.default}" if annotation else f"{parameter.name}={parameter.default}"
    )


def _doc(source: Any, value: Any = None) -> str:
    """The docstring, its lists as tables; what `__init__` says follows what the class says."""
    text = source.docstring.value if source.docstring else (inspect.getdoc(value) if value is not None else "")
    if inspect.isclass(value):  # the classes of learners complete the `Args:` of their docstrings
        text = inspect.cleandoc(value.__doc__ or "") if source.docstring else ""
    parts = [_parts(docstrings.parse(text), source)]
    init = source.members.get("__init__") if source.is_class else None
    if init is not None and init.docstring:
        parts.append(_parts(docstrings.parse(init.docstring.value), source))
    return "".join(parts)


def _parts(doc: Doc, source: Any) -> str:
    parts = [docstrings.markdown(doc.text, _link) + "\n"] if doc.text else []
    types = _parameter_types(source)
    for title, text in doc.sections.items():
        if title in docstrings.LISTS:
            items = doc.items(title)
            heading = {"Args": "Parameters", "Keyword Args": "Keyword parameters"}.get(title, title)
            rows = [(item.name, item.type or str(types.get(item.name.lstrip("*")) or ""), item.text) for item in items]
            with_types = title not in ("Raises", "Warns")
            parts.append(f"**{heading}**\n\n" + _table(rows, with_types))
        else:
            parts.append(f"**{title}**\n\n" + docstrings.markdown(text, _link) + "\n")
    return "\n".join(parts) + "\n" if parts else ""


def _parameter_types(source: Any) -> dict[str, Any]:
    if not source.is_class:
        return {each.name: each.annotation for each in getattr(source, "parameters", [])}
    fields = {name: member.annotation for name, member in source.members.items() if member.is_attribute}
    init = source.members.get("__init__")
    return fields | ({each.name: each.annotation for each in init.parameters} if init is not None else {})


def _table(rows: list[tuple[str, str, str]], with_types: bool = True) -> str:
    head = ["| name | type | meaning |", "|---|---|---|"] if with_types else ["| error | when |", "|---|---|"]
    lines = [
        f"| {code(name) if with_types else _link(name)} |"
        + (f" {_typed(kind)} |" if with_types else "")
        + f" {cell(text, _link)} |"
        for name, kind, text in rows
    ]
    return "\n".join([*head, *lines]) + "\n"


def _members(value: type, source: Any, path: str, shared: dict[type, list[Entry]], bases: list[type]) -> str:
    """Attributes as a table, methods and properties with text of their own as sections."""
    attributes: list[tuple[str, str, str]] = []
    methods: list[str] = []
    notes: list[str] = []
    seen = set(INTERNAL)
    told = {item.name for item in docstrings.parse(value.__doc__).items("Attributes")}
    told |= {item.name for item in docstrings.parse(value.__doc__).items("Args")}
    public = {entry.value: entry for entry in entries() if inspect.isclass(entry.value)}
    for base in bases:
        if base is not value and (base in public or base in shared):
            notes.append(_inherited(base, public, seen))
            continue
        for name, member in _source_of(base).members.items():
            if name.startswith("_") or name in seen or member.is_alias or member.is_class:
                continue
            seen.add(name)
            if member.is_attribute and "property" not in member.labels:
                if name not in told and (member.docstring or _is_field(value, name)):
                    attributes.append((name, str(member.annotation or member.value or ""), _attribute_text(member)))
            elif member.is_attribute:
                attributes.append((name, str(member.annotation or ""), _property_text(value, name, member)))
            else:
                methods.append(_method(value, name, member, path))
    out = f"**Attributes**\n\n{_table(attributes)}\n" if attributes else ""
    return out + "".join(f"{method}\n" for method in methods) + "".join(note for note in notes if note)


def _is_enum(value: type) -> bool:
    return any(base.__name__ == "Enum" for base in value.__mro__)


def _is_field(value: type, name: str) -> bool:
    """Part of what the class is, with or without a text: a field, or a member of an Enum."""
    fields = {*getattr(value, "__dataclass_fields__", ()), *getattr(value, "_fields", ())}
    return name in fields or _is_enum(value) or bool(getattr(value, "_is_protocol", False))


def _attribute_text(member: Any) -> str:
    return member.docstring.value if member.docstring else ""


def _property_text(value: type, name: str, member: Any) -> str:
    if member.docstring:
        return str(member.docstring.value)
    return inspect.getdoc(getattr(value, name, None)) or ""


def _method(value: type, name: str, member: Any, path: str) -> str:
    labels = [label for label in ("classmethod", "staticmethod") if label in member.labels]
    kind = f" ({labels[0].replace('method', ' method')})" if labels else ""
    head = f"### {name}{kind} {{ #{path}.{name} }}\n"
    call = f"{_short(path)}.{name}" if not path.startswith("shared-") else name
    found = getattr(value, name, None)
    return f"{head}\n{_signature(member, call)}\n{_doc(member, found)}"


def _inherited(base: type, public: dict[type, Entry], seen: set[str]) -> str:
    names = [
        name
        for name in vars(base)
        if not name.startswith("_") and name not in seen and callable(getattr(base, name, None))
    ]
    seen.update(names)
    if base in public:
        entry = public[base]
        where = f"[`{_short(entry.path)}`]({entry.page}#{entry.path})"
        links = ", ".join(f"[`{name}`]({entry.page}#{entry.path}.{name})" for name in names)
    else:
        where = f"[what they share](#shared-{base.__name__})"
        links = ", ".join(f"[`{name}`](#shared-{base.__name__}.{name})" for name in names)
    return f"From {where}{': ' if links else ''}{links}.\n\n"


@cache
def _index() -> dict[str, Entry]:
    """By every spelling in which a text may name it."""
    found: dict[str, Entry] = {}
    for entry in entries():
        short = _short(entry.path)
        for spelling in (entry.path, f"hr.{short}", short if "." in short or short[0].isupper() else ""):
            found[spelling] = entry
        if inspect.isclass(entry.value):
            found.setdefault(entry.name, entry)
    found.pop("", None)
    return found


def _link(text: str) -> str:
    """`code`, as a link if it is a public name."""
    entry = _index().get(re.sub(r"\(.*\)$", "", text))
    shown = code(text)
    return f"[{shown}]({entry.page}#{entry.path})" if entry else shown


def _plain(text: str) -> str:
    return code(text)


def _typed(annotation: str) -> str:
    """A type, whose public names are links. The links are HTML, because half of a code span cannot be Markdown."""
    if not annotation:
        return ""

    def link(match: re.Match[str]) -> str:
        entry = _index().get(match[0])
        if entry is None or not inspect.isclass(entry.value):
            return match[0]
        return f'<a href="{Path(entry.page).with_suffix(".html").name}#{entry.path}">{match[0]}</a>'

    return re.sub(r"\b[A-Z]\w+\b", link, code(annotation))
