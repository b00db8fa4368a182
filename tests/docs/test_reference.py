"""The reference: every public name once, docstrings of both styles, signatures as in the source."""

from __future__ import annotations

import re
import types

import pytest

import hedgerow as hr
from tools.docs import command_line, docstrings, reference
from tools.docs.api_pages import PAGES
from tools.docs.commands import hedgerow_command

MODULES = (
    "confidence", "costs", "errors", "field", "learners", "losses", "occupancy", "offline", "projection", "results",
    "worlds", "gym", "hooks",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {page.file: reference.markdown(page) for page in PAGES}


HANDED_OUT = (
    "hedgerow.importers.tables.TableWorld", "hedgerow.model.knowledge.Knowledge", "hedgerow.model.policy.Actions",
)  # fmt: skip
"""Classes without a public name of their own that the reference explains as well."""


def required() -> dict[str, object]:
    """By path, every name that must be somewhere; one object has one path."""
    found: dict[str, object] = {f"hedgerow.{name}": getattr(hr, name) for name in hr.__all__}
    taken = {id(value) for value in found.values()}
    for name in MODULES:
        module = reference.module_of(name)
        found[f"hedgerow.{name}"] = module
        for member in reference.public_names(module):
            value = getattr(module, member)
            if id(value) not in taken or isinstance(value, types.MethodType):
                found[f"hedgerow.{name}.{member}"] = value
    return found | dict.fromkeys(HANDED_OUT)


def test_every_public_name_appears_once(pages: dict[str, str]) -> None:
    listed = [entry.path for entry in reference.entries()]
    assert sorted(listed) == sorted(required())
    anchors = [anchor for text in pages.values() for anchor in re.findall(r"^## .* \{ #(\S+) \}$", text, re.MULTILINE)]
    named = [anchor for anchor in anchors if not anchor.startswith("shared-")]
    assert sorted(named) == sorted(entry.anchor for entry in reference.entries())


def test_signature_members_and_links(pages: dict[str, str]) -> None:
    text = pages["learners.md"]
    section = text[text.index("{ #hedgerow.SOPS }") : text.index("{ #hedgerow.CVOPS }")]
    assert "class hedgerow.SOPS(\n    view: View | Any,\n    episodes: int | None," in section
    assert "    *,\n    baseline: " in section
    assert "### guarantees { #hedgerow.SOPS.guarantees }" in section
    assert "](#shared-BaseLearner.observe)" in section
    assert "### observe { #shared-BaseLearner.observe }" in text
    assert "<code>first_mixing</code>" in section


def test_dataclasses_show_their_fields(pages: dict[str, str]) -> None:
    text = pages["confidence.md"]
    section = text[text.index("{ #hedgerow.offline.OfflineSolution }") :]
    assert "class hedgerow.offline.OfflineSolution(\n    value: float,\n    policy: FloatArray," in section
    assert re.search(r"\| <code>gap</code> \| <code>float</code> \| \S+", section)


def test_tables_hold_together(pages: dict[str, str]) -> None:
    """A `|` in a type or a text would tear a row apart."""
    for text in [*pages.values(), command_line.page()]:
        outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for table in re.findall(r"(?:^\|.*\|\n)+", outside, re.MULTILINE):
            widths = {re.sub(r"`[^`]*`", "", line).count("|") for line in table.splitlines()}
            assert len(widths) == 1, table


def test_google_style() -> None:
    doc = docstrings.parse(
        """Project a point.

        A second paragraph: with a colon.

        Args:
            base: The point, (rows,);
                weights of any size.
            *rest (int): More.

        Returns:
            The projection,
            as an array.

        Raises:
            InvalidInput: If `base` is no point.

        Examples:
            First:

            >>> 1 + 1
            2
        """
    )
    assert doc.text == "Project a point.\n\nA second paragraph: with a colon."
    assert doc.items("Args") == [
        docstrings.Item("base", "", "The point, (rows,); weights of any size."),
        docstrings.Item("*rest", "int", "More."),
    ]
    assert doc.sections["Returns"] == "The projection,\nas an array."
    assert doc.items("Raises") == [docstrings.Item("InvalidInput", "", "If `base` is no point.")]
    shown = docstrings.markdown(doc.sections["Examples"], docstrings.code)
    assert shown == "First:\n\n```pycon\n>>> 1 + 1\n2\n```"


def test_old_prose() -> None:
    text = "What it is, by |x| < y:\n\n    q = f(x)    # an example\n\nThen `a | b` and <tags>.\n\n    min  D(q || p)\n"
    shown = docstrings.markdown(docstrings.parse(text).text, docstrings.code)
    assert shown == (
        "What it is, by |x| < y:\n\n```python\nq = f(x)    # an example\n```\n\n"
        "Then <code>a &#124; b</code> and &lt;tags>.\n\n```text\nmin  D(q || p)\n```"
    )
    assert docstrings.parse(text).sections == {}


def test_command_line_has_every_command_and_option() -> None:
    page = command_line.page()
    for name, command in hedgerow_command().commands.items():
        start = page.index(f"## hedgerow {name} {{")
        section = page[start : page.find("\n## ", start + 1)] if "\n## " in page[start + 1 :] else page[start:]
        for option in command.params:
            if option.param_type_name == "option":
                assert option.opts[0] in section
                assert option.help
