"""Blocks of a page: their kinds, what is found by reading, what is found by running."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import blocks, commands, fences, pages_run, staging

FENCE = "```"


def page(folder: Path, *parts: str) -> Path:
    """A page whose blocks are written with ~ for `."""
    file = folder / "page.md"
    file.write_text("\n".join(parts).replace("~", "`") + "\n", encoding="utf-8")
    return file


def mistakes(folder: Path, *parts: str) -> list[str]:
    return [mistake for block in fences.blocks(page(folder, *parts)) for mistake in blocks.mistakes(block)]


def test_blocks_have_language_words_and_settings(tmp_path: Path) -> None:
    file = page(
        tmp_path, "text", '~~~python title="a b.py"', "x = 1", "~~~",
        "- a list", "  ~~~console run", "  make help", "  ~~~", "<!-- run", "y = 2", "-->", "~~~~text", "~~~", "~~~~",
    )  # fmt: skip
    found = fences.blocks(file)
    assert [(b.language, b.words, b.settings, b.line, b.text) for b in found] == [
        ("python", (), {"title": "a b.py"}, 3, "x = 1\n"),
        ("console", ("run",), {}, 7, "make help\n"),
        ("hidden", (), {}, 10, "y = 2\n"),
        ("text", (), {}, 13, FENCE + "\n"),
    ]


def test_site_shows_neither_marks_nor_hidden_code(tmp_path: Path) -> None:
    file = page(
        tmp_path, "a", '~~~toml title="x.toml"', "~~~", "~~~console run", "make", "~~~", "<!-- run", "y", "-->", "b"
    )
    shown = fences.without_marks(file.read_text())
    assert shown == f'a\n{FENCE}toml title="x.toml"\n{FENCE}\n{FENCE}sh\nmake\n{FENCE}\nb\n'


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["~~~", "x", "~~~"], "a block without a kind is not known; write one of bibtex, console"),
        (["~~~rust", "x", "~~~"], "the kind 'rust' is not known"),
        (["~~~python no-run", "x", "~~~"], "`python` blocks know no word 'no-run'"),
        (['~~~python hl="1"', "x", "~~~"], "no setting 'hl'"),
        (['~~~python title="../x.py"', "x", "~~~"], "not to ../x.py"),
        (["~~~python", "x ="], "never closed"),
        (["~~~python", "x =", "~~~"], "not valid python"),
        (["~~~toml", "x =", "~~~"], "not valid toml"),
        (["~~~json", "{", "~~~"], "not valid json"),
        (["~~~yaml", "a: [", "~~~"], "not valid yaml"),
        (["~~~csv", "a,b", "1", "~~~"], "rows have different numbers of fields"),
        (["~~~console", "make help", "make nothing", "~~~"], "line 3: `make nothing`: the Makefile has no such target"),
    ],
)
def test_mistakes_are_found_by_reading(tmp_path: Path, parts: list[str], expected: str) -> None:
    found = mistakes(tmp_path, *parts)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    "command",
    [
        "hedgerow check dope-media -T 1000 --no-probe",
        ".venv/bin/hedgerow run mine.toml --out results -j 8   # eight processes",
        "hedgerow --version",
        "hedgerow check --help",
        "HEDGEROW_COMPILED=1 .venv/bin/python -m build --wheel",
        "hedgerow worlds | cat && make help > out.txt",
        "make WORKERS=8 test",
        ".venv/bin/python -m bench episode --quick --out docs/figures",
        ".venv/bin/python -m bench all --only episode --list",
        "make bench-all",
        "python -m bench.tables docs",
        "python tools/check_docs.py",
    ],
)
def test_commands_that_exist(command: str) -> None:
    known = [problem for problem in commands.problems(command) if "program" not in problem]
    assert known == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("hedgerow dance", "`hedgerow dance` does not exist"),
        ("hedgerow check dope-media --fast", "--fast"),
        ("hedgerow check", "`hedgerow check` needs problem"),
        ("hedgerow worlds twice", "takes no further argument 'twice'"),
        ("make nothing", "no such target"),
        ("python -m bench dance", "`python -m bench dance` does not exist"),
        ("python -m bench calls --slowly", "has no option --slowly"),
        ("python -m bench all --slowly", "has no option --slowly"),
        ("python -m hedgerow.nothing", "there is no such module"),
        ("python tools/nothing.py", "there is no script tools/nothing.py"),
        ("frobnicate", "`frobnicate` is a program that nobody has listed"),
        ("hedgerow run 'mine", "cannot be read"),
    ],
)
def test_commands_that_do_not_exist(command: str, expected: str) -> None:
    found = list(commands.problems(command))
    assert len(found) == 1
    assert expected in found[0]


def test_commands_go_on_in_the_next_line_and_show_output() -> None:
    text = "$ hedgerow run \\\n>   a.toml\nfirst\nsecond\n\n$ make help\n"
    assert list(commands.command_lines(text)) == [(0, "hedgerow run a.toml", "first\nsecond\n\n"), (5, "make help", "")]
    assert list(commands.command_lines("# a remark\nmake help\n")) == [(1, "make help", "")]


def test_a_page_is_run_in_order_in_its_own_folder(tmp_path: Path) -> None:
    file = page(
        tmp_path,
        '~~~python title="mine/own.py"', "VALUE = 3", "~~~",
        "<!-- run", "from mine.own import VALUE", "-->",
        "~~~python", "VALUE  # 3", "print('a', VALUE)  # a 3", "print('b')", "[].append(1)  # a remark", "~~~",
        "~~~text output", "a 3", "...", "~~~",
        "~~~console run", "$ python -c 'from mine import own; print(own.VALUE)'", "3", "~~~",
        "~~~console run", "echo > left-behind.txt", "~~~",
    )  # fmt: skip
    commands.OTHERS["echo"] = "for this test"
    try:
        outcome = pages_run.check_page(file)
    finally:
        del commands.OTHERS["echo"]
    assert outcome.complaints == ()
    assert outcome.seconds > 0
    assert not (tmp_path / "left-behind.txt").exists()


def test_what_a_page_shows_and_does_not_do(tmp_path: Path) -> None:
    file = page(
        tmp_path,
        "~~~python", "x = 1", "", "x + 1  # 3", "~~~",
        "~~~python", "print(x)  # 2", "~~~",
        "~~~python", "def f():", "    raise KeyError(x)", "", "f()", "~~~",
        "~~~text output", "nothing", "~~~",
        "~~~console run", "$ python -c 'print(5)'", "6", "~~~",
        "~~~console run", "python -c 'raise SystemExit(3)'", "~~~",
        "~~~toml", "episodes = 1", "seeds = 1", "world = 1", "adversary = 1", "learner = 1", "~~~",
    )  # fmt: skip
    found = pages_run.check_page(file).complaints
    assert len(found) == 7
    assert found[0] == "page.md, block in line 1: AssertionError: x + 1 is 2, the text says 3"
    assert found[1] == "page.md, block in line 6: AssertionError: print(x) is 1, the text says 2"
    assert found[2] == "page.md, line 11: KeyError: 1"
    assert "the Python block before it prints" in found[3]
    assert "prints\n5" in found[4]
    assert "ended with 3" in found[5]
    assert "InvalidInput: experiment.toml, line" in found[6]


def test_pages_run_two_at_a_time(tmp_path: Path) -> None:
    names = ["a.md", "b.md", "c.md"]
    for name in names:
        (tmp_path / name).write_text(f"{FENCE}python\n1 + 1  # 2\n{FENCE}\n")
    outcomes = pages_run.check_pages([tmp_path / name for name in names])
    assert [(outcome.name, outcome.complaints) for outcome in outcomes] == [(name, ()) for name in names]


def test_nothing_is_shown_only() -> None:
    assert blocks.SHOWN_ONLY == {}


def test_anchors_of_a_page() -> None:
    text = '# A `b` & c\n\n**box (B)**\n:   An interval.\n\n<a id="own"></a>text\n'
    assert fences.anchors(text) == {"a-b--c", "box", "own"}
    assert "**box (B)**{ #box }\n:   An" in staging.with_term_anchors(text)
    assert staging.with_term_anchors('**own**\n:   x <a id="own">\n') == '**own**\n:   x <a id="own">\n'
