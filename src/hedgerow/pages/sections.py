"""The sections of a page as HTML. Everything that comes from a file is escaped here."""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from hedgerow.brief import counted
from hedgerow.html_parts import text
from hedgerow.pages.colours import Pen
from hedgerow.pages.figures import Figure
from hedgerow.pages.sentences import sentence
from hedgerow.pages.words import DASH, count_of, fixed, interval, number, subscripts, whole
from hedgerow.results.groups import Group, Setting
from hedgerow.results.record import Cell

Rows = Iterable[Sequence[str]]


def answer(groups: Sequence[Group], pens: Mapping[str, Pen]) -> str:
    """The table that answers first: one row for each learner in each setting."""
    constrained = any(group.constraints for group in groups)
    phases = any(group.summary().t_bar for group in groups)
    mixes = any((group.summary().mixing_total or 0.0) > 0.0 for group in groups)
    head = ["learner", "regret R_T", "exponent b", "violation V_T", "net V_T", "safe"]
    head += ["worst margin"] if constrained else []
    head += ["Σ λ"] if mixes else []
    head += ["t̄", "ρ̂"] if phases else []
    head += ["episodes / s"]
    parts = []
    for setting, members in by_setting(groups):
        rows = []
        for group in members:
            summary = group.summary()
            worst = None if summary.worst_excess is None else -summary.worst_excess
            row = [
                chip(group.learner, pens),
                _with_range(summary.regret, summary.regret_quartiles, summary.seeds),
                _exponent(group),
                _with_range(summary.violation, summary.violation_quartiles, summary.seeds),
                number(summary.net_violation),
                _safe(group),
            ]
            row += [number(worst)] if constrained else []
            row += [number(summary.mixing_total) if summary.mixing_total else DASH] if mixes else []
            row += [_middle(summary.t_bar), _middle(summary.rho_hat)] if phases else []
            rows.append([*row, number(summary.episodes_per_second, 3)])
        title = setting_title(setting)
        parts.append(f"<h3>{title}</h3>" + table(head, rows, "answer", f"Results of the learners: {title}"))
    return "".join(parts) + _definitions(constrained, mixes, phases)


_REGRET = (
    "loss of all episodes minus that of the best policy that respects the constraints (a linear program); expected, "
    "from the true transitions; may be negative"
)
_EXPONENT = (
    "R_t ≈ c·t^b over the last decade of episodes, with the 95 % bootstrap interval over seeds; 0.5 is the order √T, "
    "1 means that nothing is learnt; a dash where the regret is not positive"
)


def _definitions(constrained: bool, mixes: bool, phases: bool) -> str:
    terms = [
        ("R_T", _REGRET),
        ("b", _EXPONENT),
        ("V_T", "max over constraints of the sum over episodes of what the expected cost exceeds its threshold by"),
        ("net V_T", "the same with cancellation: episodes below a threshold make up for those above it"),
        ("safe", "seeds in which every episode respected every threshold, for the mixture that was played"),
    ]
    terms += [("worst margin", "threshold minus expected cost, the least over constraints, episodes and seeds")] * (
        constrained
    )
    terms += [("Σ λ", "episodes left to the safe baseline, expected")] * mixes
    terms += [("t̄, ρ̂", "end of the exploration phase, and the margin that it found; medians")] * phases
    terms += [("episodes / s", "median over seeds, of the loop alone where its time is known, on the machine below")]
    items = "".join(
        f"<div><dt>{subscripts(text(name))}</dt><dd>{subscripts(text(words))}</dd></div>" for name, words in terms
    )
    return (
        '<p class="note">Regret and violation: interquartile mean over seeds, with the quartiles in brackets.</p>'
        f'<dl class="terms">{items}</dl>'
    )


def charts(groups: Sequence[Group], drawn: Sequence[Figure], pens: Mapping[str, Pen], place: int) -> str:
    """The figures of one setting, under a legend that they share."""
    seeds = sorted({group.summary().seeds for group in groups})
    counts = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else counted(seeds[0], "seed")
    legend = "".join(f"<li>{chip(group.learner, pens)}</li>" for group in groups)
    blocks = []
    for figure in drawn:
        if figure.plot is None:
            body = f'<p class="empty">{text(figure.empty)}</p>'
        else:
            body = _chart(place, figure, sentence(figure, groups)) + _data(place, figure)
        words = subscripts(text(figure.note)) + text(figure.found)
        blocks.append(
            f"<figure><figcaption><h3>{text(figure.title)}</h3><span>{words}</span></figcaption>{body}</figure>"
        )
    return (
        f'<ul class="legend" aria-label="colours">{legend}</ul>'
        f'<p class="note">{counts} per learner.</p><div class="grid">{"".join(blocks)}</div>'
    )


def _chart(place: int, figure: Figure, words: str) -> str:
    """Where the script draws a figure. The words stand for it where nobody sees it, or nothing is drawn."""
    name = f"s{place}-{text(figure.name)}"
    return (
        f'<div class="plot" role="img" aria-label="{text(words)}" data-figure="{name}">'
        f"<noscript>{text(words)}</noscript></div>"
    )


def _data(place: int, figure: Figure) -> str:
    content = json.dumps(figure.plot, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return f'<script type="application/json" id="s{place}-{text(figure.name)}">{script_safe(content)}</script>'


def policies(groups: Sequence[Group], pens: Mapping[str, Pen]) -> str:
    """What each learner ended with, state by state, in worlds whose states have names; of its first seed."""
    parts = []
    for group in groups:
        kept = group.cells[0].facts.get("policy")
        if kept:
            rows = [
                [text(state), *(fixed(p) if p > 0.0 else DASH for p in row)]
                for state, row in zip(kept["states"], kept["probabilities"], strict=True)
            ]
            title = f"{chip(group.learner, pens)} <span>{setting_title(group.setting)}</span>"
            about = f"Probabilities of the actions of {text(group.learner)}, {setting_title(group.setting)}"
            shown = table(["state", *kept["actions"]], rows, "policy", about)
            parts.append(f'<details class="learner"><summary>{title}</summary>{shown}</details>')
    return "".join(parts)


def ledger(groups: Sequence[Group], pens: Mapping[str, Pen]) -> str:
    """What each learner promises under its switches; a promise that depends on the setting has a row for each form."""
    by_learner: dict[str, list[Group]] = {}
    for group in groups:
        by_learner.setdefault(group.learner, []).append(group)
    head = ["promise", "statement", "probability", "source", "status"]
    return "".join(
        f'<details class="learner"><summary>{chip(learner, pens)} {_counted(members)}</summary>'
        f"{table(head, _promises(members), 'ledger', f'Promises of {text(learner)}')}{_rests_on(members)}</details>"
        for learner, members in by_learner.items()
    )


def _rests_on(members: Sequence[Group]) -> str:
    """What the learner was told in any of the settings."""
    told = [line for group in members for cell in group.cells for line in cell.facts.get("rests_on", [])]
    return "".join(f"<p>Rests on: {text(line)}.</p>" for line in dict.fromkeys(told))


def _counted(members: Sequence[Group]) -> str:
    """How many promises hold in every setting, and which do not."""
    promises = [promise for group in members for cell in group.cells for promise in cell.facts.get("ledger", [])]
    names = list(dict.fromkeys(promise["name"] for promise in promises))
    void = [name for name in names if any(promise["name"] == name and promise["void_because"] for promise in promises)]
    if not names:
        return "<span>makes no promises</span>"
    words = f"{len(names) - len(void)} of {counted(len(names), 'promise')} hold"
    if not void:
        return f"<span>{words}</span>"
    return f'<span>{words}; <b class="bad">void</b>: {text(", ".join(void))}</span>'


def _promises(members: Sequence[Group]) -> list[list[str]]:
    """The rows of a ledger. Where the seeds of a group differ (in numbers that they found), the first one speaks."""
    forms: dict[str, dict[str, list[str]]] = {}
    for group in members:
        ledgers = [cell.facts.get("ledger", []) for cell in group.cells]
        for place, promise in enumerate(ledgers[0]):
            same = all(other[place : place + 1] == [promise] for other in ledgers)
            seed = "" if same else f", seed {group.cells[0].seed}; other seeds differ"
            sharing = forms.setdefault(promise["name"], {}).setdefault(json.dumps([promise, seed], sort_keys=True), [])
            sharing.append(setting_title(group.setting) + seed)
    rows = []
    for name, variants in forms.items():
        for content, places in variants.items():
            promise, seed = json.loads(content)
            where = f" <small>({'; '.join(places)})</small>" if len(variants) > 1 or seed else ""
            status = _status(promise["void_because"])
            sure = f"≥ {number(promise['probability'])}"
            assumed = f" (assumes {promise['assumes']})" if promise.get("assumes") else ""
            what = text(promise["statement"] + assumed) + where
            rows.append([text(name), what, sure, text(promise["source"]), status])
    return rows


def _status(void_because: str) -> str:
    if not void_because:
        return '<span class="good">holds</span>'
    return f'<span class="bad">void</span>: {text(void_because)}'


def failures(cells: Sequence[Cell]) -> str:
    """Cells that left no table."""
    rows = [[f"<code>{text(cell.id)}</code>", text(cell.status), text(cell.error) or DASH] for cell in cells]
    return table(["cell", "status", "why"], rows, "failures", "Cells without a result")


def origin(manifest: Mapping[str, Any]) -> str:
    """Where the numbers come from, and the whole manifest."""
    machine = manifest.get("machine") or {}
    versions = {name: found for name, found in (manifest.get("versions") or {}).items() if found}
    facts = [
        ("created", manifest.get("created")),
        ("commit", manifest.get("commit")),
        ("python", manifest.get("python")),
        ("versions", ", ".join(f"{name} {found}" for name, found in versions.items())),
        ("system", machine.get("system")),
        ("processor", machine.get("processor")),
        ("cores", machine.get("cores")),
        ("experiment hash", manifest.get("experiment_hash")),
    ]
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(found)}</dd></div>" for name, found in facts if found)
    parts = [f'<dl class="terms">{items}</dl>']
    if manifest.get("source"):
        parts.append(_details("the experiment file", str(manifest["source"])))
    everything = {key: value for key, value in manifest.items() if key != "source"}
    parts.append(_details("the whole manifest", json.dumps(everything, indent=1, ensure_ascii=False)))
    return "".join(parts)


def repeat(manifest: Mapping[str, Any]) -> str:
    """The command that gives the same tables again."""
    command = manifest.get("command")
    if not command:
        return ""
    line = shlex.join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    version = (manifest.get("versions") or {}).get("hedgerow")
    commit = manifest.get("commit")
    at = f"hedgerow {version}" if version else "the same release"
    at += f", commit {commit}" if commit else ""
    return (
        f'<pre><code>{text(line)}</code></pre><p class="note">With {text(at)}; into an empty directory. Tables of '
        "equal runs are equal byte for byte; times and machine are in the manifest alone.</p>"
    )


# Parts ----------------------------------------------------------------------------------------------------------------


def by_setting(groups: Sequence[Group]) -> list[tuple[Setting, list[Group]]]:
    """Groups under their setting, in their order."""
    found: dict[Setting, list[Group]] = {}
    for group in groups:
        found.setdefault(group.setting, []).append(group)
    return list(found.items())


def setting_title(setting: Setting) -> str:
    return f"{text(setting.world)} · {text(setting.adversary)} · T = {whole(setting.episodes)}"


def chip(learner: str, pens: Mapping[str, Pen]) -> str:
    """The name of a learner beside a stroke of its pen."""
    pen = pens[learner]
    stroke = f'<svg class="pen" viewBox="0 0 22 8" aria-hidden="true"><path d="M1 4H21" {_stroke(pen)}/></svg>'
    return f'<span class="chip">{stroke}{text(learner)}</span>'


def _stroke(pen: Pen) -> str:
    dashes = {"solid": "", "dash": "6 3", "dashdot": "6 2 1 2", "longdash": "9 3", "dot": "1.5 2.5"}[pen.dash]
    return f'style="stroke:var(--c{pen.colour[1:]})"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def table(head: Sequence[str], rows: Rows, kind: str, caption: str, marks: Mapping[int, str] | None = None) -> str:
    """A table whose cells name their column, for narrow screens, where rows become blocks. Cells are HTML already.

    `marks` are classes of rows, by their place. The first cell of a row is its head. The caption is heard, not seen: a
    heading stands above every table. Roles are written out, because some browsers forget them where a table is shown as
    blocks.
    """
    names = [subscripts(text(name)) for name in head]
    top = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    kinds = {place: f' class="{mark}"' for place, mark in (marks or {}).items()}
    body = "".join(
        f'<tr role="row"{kinds.get(place, "")}>{"".join(_row(names, row))}</tr>' for place, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table class="{kind}" role="table"><caption>{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{top}</tr></thead><tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _row(names: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    for place, (name, content) in enumerate(zip(names, row, strict=True)):
        kind = ' class="none"' if content == DASH else ""
        tag, roles = ("td", 'role="cell"') if place else ("th", 'scope="row" role="rowheader"')
        yield f'<{tag} {roles}{kind}><i aria-hidden="true">{name}</i><span>{content}</span></{tag}>'


def script_safe(content: str) -> str:
    """JSON that cannot end the script element that holds it."""
    return content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _details(title: str, content: str) -> str:
    lines = "\n".join(text(line.expandtabs()) for line in content.split("\n"))
    return f'<details class="file"><summary>{text(title)}</summary><pre><code>{lines}</code></pre></details>'


def _with_range(middle: float, quartiles: tuple[float, float], seeds: int) -> str:
    differ = seeds > 1 and isfinite(middle) and not quartiles[0] == middle == quartiles[1]
    around = f" <small>[{number(quartiles[0])}, {number(quartiles[1])}]</small>" if differ else ""
    return f"{number(middle)}{around}"


def _exponent(group: Group) -> str:
    growth = group.summary().regret_growth
    around = interval(growth.low, growth.high)
    return f"{fixed(growth.exponent)}{f' <small>{around}</small>' if around else ''}"


def _safe(group: Group) -> str:
    if not group.constraints:
        return DASH
    summary = group.summary()
    word = '<span class="good">yes</span>' if summary.safe == summary.seeds else '<span class="bad">no</span>'
    return f"{word} <small>{count_of(summary.safe, summary.seeds)}</small>"


def _middle(values: Sequence[float]) -> str:
    return number(float(np.median(values))) if values else DASH
