"""A sweep whose every name is hostile, from its file to the terminal and the page: shown as it is, obeyed nowhere."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow import cli
from hedgerow.display.text import visible

pytestmark = pytest.mark.slow

LABELS = (
    *("sv [sharp]", "sv [/x]", "\x1b[31mred", "<script>alert(1)</script>", "[link=http://x]y", "gnp.\u202etxt"),
    *("a \"b\" 'c'", "R_t", ":smile:", "two\nlines"),
)
WORLD, LOSSES, COST = "world [/x] \x1b[2J", "iid \u202e[/y]", "cost [/x]\x1b[1m"
TITLE, DESCRIPTION = "Title [/x] <b>\x1b[31m", "What it shows:\u202e [bold]nothing[/bold] & no more"


class Page(HTMLParser):
    """The texts of a page, its headings, and the names in its plots."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.content = path.read_text(encoding="utf-8")
        self.words: list[str] = []
        self.of_tag: dict[str, list[str]] = {}
        self.curves: set[str] = set()
        self._tag, self._kind = "", ""
        self.feed(self.content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag, self._kind = tag, dict(attrs).get("type") or ""

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._kind == "application/json" and self._tag == "script":
            self.curves.update(trace.get("name", "") for trace in json.loads(data)["data"])
        elif self._tag != "script":
            self.words.append(data)
            self.of_tag.setdefault(self._tag, []).append(data)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One learner for each label; even the folder has a strange name."""
    folder = tmp_path_factory.mktemp("hostile") / "of [/x]"
    (folder / "world [").mkdir(parents=True)
    world = hr.worlds.make("lower-bound-1").cmdp
    names = {"constraint_names": (COST,)}
    hr.CMDP(world.layout, world.transitions, world.costs, world.thresholds, **names).save(folder / "world [/x].npz")
    learners = "".join(f'[[learner]]\nname = "sv-ops"\nlabel = {json.dumps(label)}\n' for label in LABELS)
    (folder / "tiny.toml").write_text(
        f"title = {json.dumps(TITLE)}\ndescription = {json.dumps(DESCRIPTION)}\nseeds = 3\nepisodes = 60\n"
        f'[[world]]\nfile = "world [/x].npz"\nlabel = {json.dumps(WORLD)}\n'
        f'[[adversary]]\nname = "iid"\nlabel = {json.dumps(LOSSES)}\n{learners}'
    )
    return folder / "tiny.toml"


@pytest.fixture(scope="module")
def swept(experiment: Path) -> Path:
    """The results of the experiment, by way of the command line."""
    target = experiment.parent / "out [/x]"
    assert ended("run", str(experiment), "--out", str(target), "-j", "1", "-q") == 0
    return target


def ended(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hedgerow", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    return int(stop.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """What a command prints, none of which is an order to a terminal."""
    capsys.readouterr()
    assert ended(*arguments) == code
    captured = capsys.readouterr()
    for stream in captured:
        assert all(char.isprintable() or char == "\n" for char in stream), stream
    return captured.out, captured.err


def test_the_table_of_a_sweep_names_its_learners(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, "resume", str(swept))
    for label in (*LABELS, WORLD, LOSSES):
        assert visible(label) in out
    assert f"results in {swept}" in out


def test_progress_and_errors_are_plain(
    experiment: Path, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, error = printed(capsys, "run", str(experiment), "--out", str(tmp_path / "b [/x]\x1b[1m"), "-j", "1")
    assert error.count("\n") == 3 * len(LABELS)
    _, error = printed(capsys, "run", str(experiment), "--out", str(swept), code=2)
    assert f"hedgerow: {swept} holds results already" in error
    _, error = printed(capsys, "run", str(tmp_path / "no\x1b[31m\n[/x].toml"), code=2)
    assert r"no\x1b[31m\n[/x].toml: No such file" in error
    assert error.count("\n") == 1
    _, error = printed(capsys, "check", str(tmp_path / "[/x]\u202e.npz"), code=2)
    assert r"[/x]\u202e.npz" in error


def test_a_look_at_a_world_with_hostile_names(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = experiment.parent / "world [/x].npz"
    out, _ = printed(capsys, "check", str(world), "--no-probe")
    assert str(world) in out
    assert visible(COST) in out


def test_the_page_has_title_description_and_names(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, "report", str(swept))
    assert out == f"{swept / 'report.html'}\n"
    page = Page(swept / "report.html")
    assert all(char.isprintable() or char in "\n\xa0" for char in page.content)
    assert page.of_tag["h1"] == page.of_tag["title"] == [visible(TITLE)]
    assert visible(DESCRIPTION) in page.words
    for label in LABELS:
        assert visible(label) in page.words
    assert any(visible(COST) in words for words in page.of_tag["h3"])
    # plotly reads tags and a few entities; quotation marks are not among them.
    assert {"sv [sharp]", "&lt;script&gt;alert(1)&lt;/script&gt;", r"gnp.\u202etxt", "a \"b\" 'c'"} <= page.curves
    assert any("R_t: " in words for words in page.words)  # the name in a sentence is no formula
