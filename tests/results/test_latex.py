"""Tables for a paper: their structure, the numbers of the groups in them, and names that LaTeX would stumble over."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import EPISODES, made_directory, made_learner, made_run, made_spec

from hedgerow import results
from hedgerow.display.numbers import LATEX
from hedgerow.display.table import LATEX_WIDTH, Table, TableCell
from hedgerow.display.text import latex
from hedgerow.errors import InvalidInput
from hedgerow.results import store
from hedgerow.results.groups import Group, Setting, heading, latex_table
from hedgerow.results.metrics import mean_over_seeds


def rows(table: str) -> list[list[str]]:
    """The cells of the learners' rows."""
    lines = [line for line in table.splitlines() if line.endswith(r" \\") and "multicolumn" not in line]
    return [line.removesuffix(r" \\").split(" & ") for line in lines][1:]


def value(cell: str) -> float:
    return float(re.sub(r"[${},]", "", cell.split(" [")[0]))


def test_a_table_has_the_numbers_of_the_groups(tmp_path: Path) -> None:
    found = results.open(made_directory(tmp_path / "out", seeds=5, worlds=("toy", "a_b & c")))
    table = found.to_latex()
    assert table.count(r"\midrule") == 2
    assert r"\multicolumn{7}{l}{\emph{a\_b \& c, switching 100, $T = 1{,}000$}} \\" in table
    assert [table.count(rf"\{name}") for name in ("toprule", "bottomrule", "begin{table}")] == [1, 1, 0]
    lines = [cells for cells in rows(table) if cells[0]]
    below = [cells for cells in rows(table) if not cells[0]]
    assert len(lines) == len(below) == len(found.groups) == 4
    for cells, group in zip(lines, found.groups, strict=True):
        assert len(cells) == 7
        assert cells[0] == group.learner
        means = [group[name].value for name in ("regret", "violation", "net_violation")]
        assert [value(cell) for cell in cells[1:4]] == pytest.approx(means, rel=1e-3)
        assert cells[4] == f"{group['safe'].value:.0f} of 5"
        assert value(cells[5]) == pytest.approx(-group["worst_excess"].value)
        assert value(cells[6]) == pytest.approx(group["mixing_total"].value, rel=1e-3)
    found_ends = mean_over_seeds((10.0 + np.arange(5)) * 1000**0.5)
    assert below[-2][1] == rf"{{\scriptsize [{LATEX.number(found_ends.low)}, {LATEX.number(found_ends.high)}]}}"
    heads = r"Learner & Regret $R_T$ & Violation $V_T$ & Net $V_T$ & Safe & Worst margin & $\Sigma$ $\lambda_t$ \\"
    assert heads in table
    assert (lines[-2][6], below[-2][6]) == (LATEX.number(0.5 * 1000**0.5), "")  # equal seeds have no interval
    assert table == results.open(tmp_path / "out").to_latex()


def test_captions_and_labels_make_a_float(tmp_path: Path) -> None:
    found = results.open(made_directory(tmp_path / "out", seeds=1))
    lines = found.to_latex(caption=r"Regret $R_T$", label="tab:my_results").splitlines()
    assert [line for line in lines if not line.startswith("%")][:5] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Regret $R_T$}",
        r"\label{tab:my_results}",
        r"\footnotesize",
    ]
    assert lines[-1] == r"\end{table}"
    assert all(cells[0] for cells in rows("\n".join(lines)))  # one seed has no interval
    for label in ("", "a b", r"\x", "a}"):
        with pytest.raises(InvalidInput, match="must be something that"):
            found.to_latex(label=label)
    with pytest.raises(InvalidInput, match="caption must be text"):
        found.to_latex(caption=3)  # type: ignore[arg-type]


def test_without_constraints_there_is_no_margin_and_without_truth_a_dash(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {**heading("sampled"), "experiment": {}})
    nan: Any = np.full(len(EPISODES), np.nan)
    run = made_run(
        m=0, learner=made_learner(0), scored="sampled", regret=nan, loss=nan, mixing_total=np.zeros(len(EPISODES))
    )
    store.write_cell(tmp_path / "out", made_spec(), run)
    cells = rows(results.open(tmp_path / "out").to_latex())[0]
    assert cells == ["s-ops sharp", "--", "$0$", "$0$", "$0$"]  # no margin, and nothing is known to be safe


# Names that would stop LaTeX, or that it would change -----------------------------------------------------------------

HOSTILE = (
    "[sharp] x",
    "[3cm] far",
    "*ours*",
    "* [",
    r"\\ \x \end{tabular} \input{/etc/passwd}",
    "a & b % c # d _ e ^ f ~ g",
    "{ } }{ $x$ $$",
    "a < b > c | d",
    "\"q\" 'q' ''q'' ``q``",
    "a -- b --- c",
    "?`que? !`no! ,,x,, <<y>>",
    "^^M ^^41 %%",
    "na\u00efve Erd\u0151s \u0141\u00f3d\u017a e\u0301 i\u0308 o\u0304\u0323",
    "\u1ebf \u20dd q\u0307 1\u0301 \u0301",
    "λ ≤ α·Ω → ∞ ο",  # noqa: RUF001 - the last one is an omicron
    "木の葉 한국어 עברית 🌿 \ufe0f",
    "a\nb\tc\rd\x00\x1b[31m\u202e\u200d\udc80",
    "\u00a0nbsp\u2003wide  two",
    "",
    "-",
    "x" * 500,
    "word " * 200,
    "\u00ab\u00bb \u20ac \u00a3 \u00f0\u00fe \u00bd \u2122",
)


def hostile_groups(labels: tuple[str, ...], tmp_path: Path) -> list[Group]:
    """A group under each of the labels, in a setting that has the same name."""
    group = results.open(made_directory(tmp_path / "out", seeds=3)).groups[0]
    return [replace(group, learner=label, setting=Setting(label, label, 10)) for label in labels]


def compiled(engine: str, table: str, folder: Path, preamble: str = "") -> str:
    """The log of a document that holds a table; LaTeX stops at the first error."""
    preamble = rf"\documentclass{{article}}\usepackage{{booktabs}}{preamble}"
    body = preamble + "\n\\begin{document}\n" + table + "\n\\end{document}\n"
    (folder / "t.tex").write_text(body, encoding="utf-8")
    command = [engine, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "t.log").read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, log[-3000:]
    return log


def printed(pdf: Path) -> str:
    """The words of a PDF whose streams are not compressed, by the codes of the usual text font; kerns are spaces."""
    shown = []
    for line in re.findall(rb"\[((?:\((?:\\.|[^\\)])*\)|[-0-9. ])*)\]TJ", pdf.read_bytes()):
        for text, kern in re.findall(rb"\(((?:\\.|[^\\)])*)\)|(-?[0-9.]+)", line):
            shown.append(re.sub(rb"\\([()\\])", rb"\1", text) if text else b" " * (float(kern) < -200.0))
    return b"".join(shown).decode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pdflatex", "lualatex", "xelatex"])
def test_hostile_names_compile(engine: str, tmp_path: Path) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    table = latex_table(hostile_groups(HOSTILE, tmp_path), caption="x")
    compiled(engine, table, tmp_path)
    if engine == "pdflatex":
        compiled(engine, table, tmp_path, r"\usepackage[T1]{fontenc}\usepackage{lmodern}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    """Whatever stands at the beginning of a row is not taken for an option of the row before."""
    labels = ("[sharp] x", "[3cm] far", "*ours*", "a--b", "a''b", "?`x", "{b}", "c", "木")
    table = latex_table(hostile_groups(labels, tmp_path))
    compiled("pdflatex", table, tmp_path, r"\pdfcompresslevel=0 \pdfobjcompresslevel=0")
    shown = printed(tmp_path / "t.pdf")
    for words in ("[sharp] x", "[3cm] far", "*ours*", "a--b", "a''b", "?`x", "U+6728"):
        assert words in shown, shown


# Widths ---------------------------------------------------------------------------------------------------------------


def wide_table(columns: int, value: float) -> Table:
    """Numbers of a size with their intervals, as a sweep of a long horizon has them."""
    table = Table("long", ["Learner", *(f"V_{i}" for i in range(columns))])
    cell = TableCell(lambda n: n.number(value), note=lambda n: n.interval(0.75 * value, 1.25 * value))
    for name in ("SV-OPS", "UOB-REPS", "primal-dual (sharp)"):
        table.add_row(name, *[cell] * columns)
    return table


@pytest.mark.parametrize(("columns", "value"), [(6, 456.7), (6, -4567890.0), (12, 45.67), (30, -0.5)])
def test_columns_that_do_not_fit_follow_in_another_tabular(columns: int, value: float) -> None:
    table = wide_table(columns, value)
    widths = table.latex_widths()
    parts = re.findall(r"\\begin{tabular}{l(r+)}", table.to_latex())
    assert sum(map(len, parts)) == columns
    place = 1
    for part in parts:  # as many columns as fit, and no more
        taken = [widths[0], *widths[place : place + len(part) + 1]]
        assert sum(taken[: len(part) + 1]) + 6.0 * (len(part) + 1) <= LATEX_WIDTH
        place += len(part)
        assert place > columns or sum(taken) + 6.0 * len(taken) > LATEX_WIDTH
    assert (len(parts) == 1) == (columns == 6 and value > 0.0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize(("columns", "value"), [(6, 45678.0), (6, -4567890.0), (12, 45.67), (9, 1.2e-7)])
def test_no_tabular_is_wider_than_15_cm(columns: int, value: float, tmp_path: Path) -> None:
    table = wide_table(columns, value)
    measured = table.to_latex().replace(r"\begin{tabular}", r"\begin{lrbox}{\B}\begin{tabular}")
    measured = measured.replace(r"\end{tabular}", r"\end{tabular}\end{lrbox}\typeout{WIDE=\the\wd\B}")
    log = compiled("pdflatex", measured + " x", tmp_path, r"\newsavebox{\B}")
    found = [float(width) for width in re.findall(r"WIDE=([0-9.]+)pt", log)]
    assert len(found) == table.to_latex().count(r"\begin{tabular}")
    assert max(found) <= LATEX_WIDTH
    total = sum(table.latex_widths()) + 6.0 * (columns + 1) + (len(found) - 1) * (table.latex_widths()[0] + 6.0)
    assert 0.8 * total <= sum(found) <= total  # estimated widths are rather too large, by little


def test_directories_without_a_result_are_refused(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {**heading("empty"), "experiment": {}})
    with pytest.raises(InvalidInput, match="no finished cell"):
        results.open(tmp_path / "out").to_latex()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (r"a\b", r"a\textbackslash{}b"),
        ("50% {x} #1 $y", r"50\% \{x\} \#1 \$y"),
        ("a^b~c", r"a\textasciicircum{}b\textasciitilde{}c"),
        ("λ=0.5", r"$\lambda$=0.5"),
        ("[3cm] far", "{[}3cm{]} far"),
        ("*ours*", "{*}ours{*}"),
        ("a---b", r"a-\kern0pt-\kern0pt-b"),
        ("?`!`''", r"?\kern0pt`!\kern0pt`'\kern0pt'"),
        ("a  b", r"a \ b"),
        ("e\u0301 \u00e9", r"\'{e} \'{e}"),
        ("\u012b \u1ecb", r"\={\i} \d{i}"),
        ("木", r"\hedgerowsign{6728}{木}"),
        ("\u20dd", "\\hedgerowsign{20DD}{\u20dd}"),
        ("a\nb\x00", r"a\textbackslash{}nb\textbackslash{}x00"),
        ("", ""),
    ],
)
def test_names_are_escaped(given: str, shown: str) -> None:
    assert latex(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (0.0, "$0$"),
        (12.3456, "$12.35$"),
        (-0.5, "$-0.5$"),
        (9999.7, "$10{,}000$"),
        (123456.0, "$123{,}456$"),
        (1234567.0, "$1{,}234{,}570$"),
        (0.001234, "$0.001234$"),
        (2.5e-7, r"$2.5 \cdot 10^{-7}$"),
        (-1e12, r"$-1 \cdot 10^{12}$"),
        (float("inf"), "--"),
    ],
)
def test_numbers_have_few_digits(given: float, shown: str) -> None:
    assert LATEX.number(given) == shown
