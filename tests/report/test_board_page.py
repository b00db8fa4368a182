"""The page of a comparison, read back: numbers, marks of noise, what is declined, and nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_reader import Reader
from run_cases import made_directory, made_learner, made_run, made_spec

from browser import PHONE, SCREENS, Chromium, Screen
from hedgerow import results
from hedgerow.display.numbers import DASH, MINUS, PAGE
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.report.board import around, board_page, markdown, write_board, write_into
from hedgerow.results import store
from hedgerow.results.groups import heading
from hedgerow.results.leaderboard import leaderboard
from nightly import daily

EVIL = "<img src=x onerror=alert(1)>\"'&|`*_</script><script>alert(2)</script>"
DECLINED = {"world": "toy", "kind": "learner", "label": "shy", "episodes": 1000, "why": "it takes one <constraint>"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """s-ops sharp is safe, sv-ops is not, twin is as good as s-ops, oracle cheats, shy declines."""
    path = made_directory(tmp_path_factory.mktemp("board") / "out", seeds=3, worlds=("toy", "zoo"))
    for seed in range(3):
        store.write_cell(path, made_spec("twin", seed), made_run(2 - seed))
        oracle = made_learner(kind="oracle")
        oracle.inputs = Inputs(cheats="the losses to come")
        made = made_run(seed, learner=oracle)
        silent = made_run(seed, learner=oracle, regret=0 * made.regret, loss=made.loss - made.regret)
        store.write_cell(path, made_spec("oracle", seed), silent)
    store.update_manifest(path, {"declined": [DECLINED]})
    return path


@pytest.fixture(scope="module")
def read(directory: Path) -> Reader:
    return Reader(write_board(directory).read_text(encoding="utf-8"))


def rows(read: Reader, learner: str) -> list[dict[str, str]]:
    """Rows of the tables of settings."""
    return [row for row in read.named if "regret, margin" in row and learner in row.get("learner", "")]


def test_rows_have_the_numbers_of_the_leaderboard(directory: Path, read: Reader) -> None:
    block = leaderboard(results.open(directory)).blocks[0]
    for standing in block.standings:
        row = rows(read, standing.learner)[0]
        if standing.scores is None:
            assert row["regret RT"] == f"declined: {DECLINED['why']}"
            continue
        scores = standing.scores
        regret = scores.numbers["regret"].value
        assert row["regret RT"].startswith(PAGE.number(regret))
        assert row["RT / T"].startswith(PAGE.number(regret / 1000))
        assert ("loop" in row["learner"]) == (scores.way != "compiled")
        if standing.rank is not None:
            assert row["learner"].startswith(f"{standing.rank} {standing.learner}")
            assert (row["violation VT"], row["unsafe"]) == ("0", "0")
    assert rows(read, "sv-ops")[0]["violation VT"].startswith(PAGE.number(2.0 * 1000**0.5))
    assert "not distinguishable" in rows(read, "s-ops sharp")[0]["to the next"] + rows(read, "twin")[0]["to the next"]
    assert "void safety" in rows(read, "s-ops sharp")[0]["promises"]
    assert "reference, no rank" in rows(read, "oracle")[0]["learner"]
    assert "knows the losses to come" in rows(read, "oracle")[0]["learner"]


def test_every_row_has_a_picture_with_a_sentence(read: Reader) -> None:
    pictures = [attributes["aria-label"] or "" for tag, attributes in read.tags if attributes.get("class") == "spark"]
    assert len(pictures) == 2 * 2 + 2
    assert all(attributes["role"] == "img" for tag, attributes in read.tags if attributes.get("class") == "spark")
    assert any(
        re.match(rf"sv-ops: regret .* at the end; least margin {MINUS}0.2, in the end {MINUS}0.2", words)
        for words in pictures
    )


def test_the_matrix_and_the_summary(read: Reader) -> None:
    toy, zoo = (row for row in read.named if "setting" in row)
    assert {learner: toy[learner] for learner in ("sv-ops", "oracle", "shy")} == {
        "sv-ops": "✗",
        "oracle": "reference",
        "shy": "declined",
    }
    assert (toy["s-ops sharp"], toy["twin"]) == ("1≈", "1")  # the same mean, from other seeds
    assert (zoo["s-ops sharp"], zoo["shy"], zoo["oracle"]) == ("1", DASH, DASH)
    words = "".join(read.words)
    assert "Mind the noise:" in words
    assert "sv-ops was unsafe in all of its 2 settings, so it has no rank." in words
    assert ["shy", "learner", "toy", DECLINED["why"]] in read.rows


def test_nothing_is_loaded_from_elsewhere_and_it_is_small(directory: Path, read: Reader) -> None:
    for tag, attributes in read.tags:
        for name in ("src", "href", "data", "action", "srcset"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#")), (tag, attributes)
    content = write_board(directory).read_text(encoding="utf-8")
    assert "plotly" not in content.replace("getElementById", "")[: content.index("<script>")]
    assert len(content) < 100_000
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in read.tags].count("caption") == [tag for tag, _ in read.tags].count("table")


def test_equal_results_give_equal_pages(directory: Path) -> None:
    assert board_page(results.open(directory)) == board_page(results.open(directory))


def evil_directory(path: Path) -> Path:
    told = {**heading(EVIL, EVIL), "experiment": {}, "source": EVIL, "command": ["/somewhere/hedgerow", EVIL]}
    store.create(path, told)
    for seed in (0, 1):
        spec = made_spec(EVIL, seed, EVIL)
        spec["label"]["adversary"] = EVIL
        store.write_cell(path, spec, made_run(seed, learner=made_learner(names=(EVIL, "b"))))
    entry = {**DECLINED, "world": EVIL, "label": EVIL, "why": EVIL}
    store.update_manifest(path, {"declined": [entry]})
    return path


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    read = Reader(write_board(evil_directory(tmp_path / "out")).read_text(encoding="utf-8"))
    assert not [tag for tag, _ in read.tags if tag == "img"]
    assert not [attributes for _, attributes in read.tags if "onerror" in attributes]
    assert sum(tag == "script" for tag, _ in read.tags) == 1  # our own, and no other
    assert EVIL in "".join(read.words)


def test_nothing_finished_nothing_written(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    with pytest.raises(InvalidInput, match="no finished cell"):
        write_board(tmp_path / "out")
    assert not (tmp_path / "out" / "compare.html").exists()


@pytest.mark.parametrize("screens", daily((PHONE,), nightly=SCREENS), ids=["phone", "all"])
def test_the_page_in_a_browser(directory: Path, chromium: Chromium, screens: tuple[Screen, ...]) -> None:
    """No message, no request, no overflow, nothing serious from axe-core: light, dark, on a phone."""
    page = write_board(directory)
    assert {screen.name: chromium.audit(page.as_uri(), screen) for screen in screens} == {
        screen.name: [] for screen in screens
    }


# Markdown -------------------------------------------------------------------------------------------------------------


def markdown_of(directory: Path) -> str:
    found = results.open(directory)
    return markdown(leaderboard(found), found.manifest)


def tables_in(text: str) -> list[list[list[str]]]:
    """The cells of all tables, by rows; a pipe behind a backslash is no border."""
    found: list[list[list[str]]] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        before = line
    return found


@pytest.mark.parametrize("evil", [False, True])
def test_markdown_is_well_formed(directory: Path, tmp_path: Path, evil: bool) -> None:
    text = markdown_of(evil_directory(tmp_path / "out") if evil else directory)
    tables = tables_in(text)
    assert len(tables) == 3
    for table in tables:
        assert len({len(row) for row in table}) == 1
        assert set(table[1]) == {"---"}
        assert len(table) > 2
    assert "<img" not in text.replace(EVIL, "") or "```" in text
    assert "/somewhere" not in text
    assert not re.search(r"<(?!/?code)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def test_markdown_has_the_numbers(directory: Path) -> None:
    over_all, ranks, best = tables_in(markdown_of(directory))
    learners = {row[0]: row for row in over_all[2:]}
    assert learners["sv-ops"][3:6] == [DASH, DASH, "0 of 2"]
    assert learners["oracle"][3] == "reference"
    assert learners["shy"][-1] == "1"
    assert ranks[2][0] == "toy · switching 100"
    assert "(not distinguishable)" in best[2][4]
    assert best[3][3:5] == [DASH, DASH]  # nobody else is safe there


def test_a_page_keeps_what_people_wrote(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- table: other -->\nx\n<!-- end -->\n<!-- table: comparison -->old<!-- end -->\nafter\n"
    )
    write_into(page, "new\n")
    write_into(page, "newer\n")
    assert page.read_text() == (
        "before\n<!-- table: other -->\nx\n<!-- end -->\n<!-- table: comparison -->\n\nnewer\n\n<!-- end -->\nafter\n"
    )


@pytest.mark.parametrize("text", ["", "<!-- table: comparison -->", "<!-- end --><!-- table: comparison -->"])
def test_a_page_without_a_place_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(InvalidInput, match="needs the lines <!-- table: comparison --> and <!-- end -->"):
        around(tmp_path / "page.md")
    with pytest.raises(InvalidInput, match="cannot read the page"):
        around(tmp_path / "nowhere.md")
