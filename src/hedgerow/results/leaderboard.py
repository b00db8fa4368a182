"""The leaderboard of a sweep, as data: who is safe in a setting, who of these has the least regret, and how surely.

    board = leaderboard(results)                  # results of `hedgerow compare`, or of any other sweep
    board.blocks[0].standings[0].rank             # one block per world, adversary and number of episodes
    board.summaries[0].mean_rank                  # one summary per learner

A learner is *safe* in a setting if no episode of any seed exceeds a threshold by more than `TOL_SAFE`. Safe learners
are ranked by their mean regret; equal ones share a rank. Others follow without a rank: those whose limit is a *budget*
for all episodes so far, if they never exceeded it; unsafe ones, by their violation; and those that know what no learner
can know. What a learner declined, and what failed, is listed with the reason.
Learners of a sweep meet the same losses and the same streams under the same seed, so neighbours in rank are compared
seed by seed: what a seed does to both of them cancels. Page, terminal and docs are made from this alone.

    >>> difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.1, 2: 3.9}).verdict
    'different'
    >>> difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 3.5, 2: 3.2}).verdict
    'within noise'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.display.numbers import percent
from hedgerow.display.text import counted
from hedgerow.environments.columns import Column
from hedgerow.errors import InvalidInput
from hedgerow.results.groups import Cell, Group, Results, Setting, by_setting, table_columns
from hedgerow.results.manifest import PARTS, plain
from hedgerow.results.metrics import TOL_SAFE, Estimate, mean_over_seeds
from hedgerow.results.verdict import BASELINE, ORACLE, ReferenceRow, keeps_budget, reference_rows

TOL_TIE = 1e-9
"""Two numbers are equal if they differ by no more than this, relative to the larger of them and 1."""
DIFFERENT, WITHIN_NOISE, EQUAL, UNKNOWN = "different", "within noise", "equal", "unknown"
LEAST_SHARE = 1e-3
"""Where the baseline loses less than this per episode against the oracle, a share of it says nothing."""
FEW_SEEDS = 5
"""With fewer seeds than this an interval is so wide that the reader is warned."""
MOST_POINTS = 32
"""Of the small curves."""
SAFE, BUDGET, UNSAFE, CHEATS, DECLINED, FAILED = "safe", "budget kept", "unsafe", "cheats", "declined", "failed"
CONTROLS = (BASELINE, "uniform")
"""Kinds of learners that learn nothing: they have ranks, but no part in a verdict."""
_ORDER = (CHEATS, SAFE, BUDGET, UNSAFE, DECLINED, FAILED)


@dataclass(frozen=True)
class Difference:
    """How much larger a number is for another learner, seed by seed."""

    other: str
    """The label of the other learner."""
    found: Estimate
    """The mean over the seeds that both of them have"""
    verdict: str
    """"different", "within noise" if the interval holds 0, "equal", or "unknown" for fewer than two seeds."""


def are_equal(one: float, other: float) -> bool:
    """Whether two numbers differ by rounding at most."""
    return abs(one - other) <= TOL_TIE * max(1.0, abs(one), abs(other))


def difference(label: str, own: Mapping[int, float], other: Mapping[int, float]) -> Difference:
    """The number of the learner `label` minus one's own, both by seed."""
    common = sorted(set(own) & set(other))
    if not common:
        return Difference(label, Estimate(nan, nan, nan, 0), UNKNOWN)
    found = mean_over_seeds([other[seed] - own[seed] for seed in common])
    if all(are_equal(own[seed], other[seed]) for seed in common):
        verdict = EQUAL
    elif not isfinite(found.low):
        verdict = UNKNOWN
    else:
        verdict = WITHIN_NOISE if found.low <= 0.0 <= found.high else DIFFERENT
    return Difference(label, found, verdict)


@dataclass(frozen=True)
class PromiseStatus:
    """Whether a promise of a learner holds in a setting."""

    name: str
    void_because: str
    """The reason, in the first seed where it is void; the empty text if it holds."""


@dataclass(frozen=True)
class SettingScores:
    """The numbers of a learner in a setting."""

    numbers: Mapping[str, Estimate]
    """By name, those of the columns of the leaderboard, and `worst_excess` where there are constraints"""
    by_seed: Mapping[int, float]
    """R_T of each seed"""
    share: float | None
    """Regret as a share of what always playing the baseline costs: 0 is the oracle, 1 is never to learn; None without
    a baseline, or if it is nearly as good as the oracle"""
    way: str
    """compiled or step-wise"""
    baseline: str
    """Which baseline it was given"""
    promises: tuple[PromiseStatus, ...]
    episodes: tuple[int, ...]
    """Where the small curves have their points"""
    regret_curve: tuple[float, ...]
    """Regret at these, mean over seeds"""
    margin_curve: tuple[float, ...]
    """Threshold minus cost at these, the least over constraints and seeds; empty without constraints"""

    @property
    def is_safe(self) -> bool:
        """Whether no episode of any seed exceeds a threshold."""
        return "worst_excess" not in self.numbers or self.numbers["worst_excess"].value <= TOL_SAFE


@dataclass(frozen=True)
class Rank:
    """A learner in a setting."""

    learner: str
    status: str
    """safe, budget kept, unsafe, cheats, declined or failed"""
    kind: str = ""
    """Such as s-ops, whatever its label is; the empty text if it has not run"""
    rank: int | None = None
    """Among the safe ones, from 1; None for others"""
    why: str = ""
    """What was declined or failed; what a reference knows"""
    scores: SettingScores | None = None
    """None if it has not run"""
    next: Difference | None = None
    """How much larger the regret of the next one in rank is"""


@dataclass(frozen=True)
class Block:
    """All learners in one setting, in the order of the table: safe ones by rank, then the others."""

    setting: Setting
    standings: tuple[Rank, ...]
    references: tuple[ReferenceRow, ...] = ()
    """The baseline and the oracle under the losses of this setting, unless a learner takes their place"""

    @property
    def baselines(self) -> tuple[str, ...]:
        """Which baselines were given here."""
        found = [standing.scores.baseline for standing in self.standings if standing.scores]
        return tuple(dict.fromkeys(name for name in found if name))


@dataclass(frozen=True)
class LearnerSummary:
    """A learner over all settings."""

    learner: str
    kind: str
    inputs: str
    """What it needs to know before its first episode; the empty text if it never ran"""
    radii: str
    """source, hedgerow, or those of its preset; the empty text if it has none"""
    settings: int
    safe: int
    """Settings in which it was safe"""
    budget: int
    """Settings in which it was not, but its limit is a budget, which it kept"""
    unsafe: int
    declined: int
    failed: int
    ranked: int
    """Settings in which it has a rank"""
    mean_rank: float | None
    firsts: int
    """Settings in which no safe learner had less regret"""
    share: float | None
    """The median, over settings where it is safe or kept its budget, of its regret as a share of the baseline's"""
    cheats: str

    @property
    def ran(self) -> int:
        """Settings in which it ran."""
        return self.safe + self.budget + self.unsafe

    def sentence(self) -> str:
        """What came of it, in words."""
        if self.ran == 0:
            return f"{self.learner} has not run: {_without_run(self)}."
        if self.cheats:
            words = [f"{self.learner} is a reference and has no rank: it knows {self.cheats}"]
        elif self.safe == self.ran:
            words = [f"{self.learner} was safe in {_every(self.safe)}"]
        elif self.unsafe == self.ran:
            words = [f"{self.learner} was unsafe in {_every(self.unsafe)}, so it has no rank"]
        else:
            words = [f"{self.learner} was safe in {self.safe} of {counted(self.ran, 'setting')}"]
            words += [f"it kept its budget in {counted(self.budget, 'other')}"] * bool(self.budget)
        if self.mean_rank is not None:
            first = f", and it comes first in {self.firsts} of them" if self.firsts else ""
            words.append(f"its mean rank there is {self.mean_rank:.1f}{first}")
        if self.share is not None and not self.cheats:
            words.append(f"its regret was {percent(self.share)} of the baseline's (median)")
        if self.declined or self.failed:
            words.append(_without_run(self))
        return "; ".join(words) + "."


@dataclass(frozen=True)
class Leaderboard:
    """Blocks and summaries of a sweep, in the order of its file."""

    title: str
    description: str
    columns: tuple[Column, ...]
    """The columns that are declared for it and that some learner has"""
    blocks: tuple[Block, ...]
    summaries: tuple[LearnerSummary, ...]
    declined: tuple[Mapping[str, Any], ...]
    """What was left out before the run, as the manifest has it: world, kind, label, episodes, why"""
    fewest_seeds: int
    """Of any learner in any setting"""

    def __repr__(self) -> str:
        from hedgerow.display import text

        best = {standing.learner for standing in self._all if standing.rank == 1}
        first = f"first: {text.listed(sorted(best), 3, len(best))}" if best else "no learner has a rank"
        sizes = text.counted(len(self.blocks), "setting"), text.counted(len(self.summaries), "learner")
        return text.line("Leaderboard", text.quoted(self.title), *sizes, first)

    def status(self, block: Block, learner: str) -> Rank | None:
        """How a learner stands in a block; None if it was not there."""
        return next((standing for standing in block.standings if standing.learner == learner), None)

    @property
    def noisy(self) -> int:
        """How many neighbours in rank cannot be told apart."""
        return sum(standing.next is not None and standing.next.verdict != "different" for standing in self._all)

    @property
    def pairs(self) -> int:
        """How many neighbours in rank there are."""
        return sum(standing.next is not None for standing in self._all)

    @property
    def _all(self) -> Iterable[Rank]:
        return (standing for block in self.blocks for standing in block.standings)

    def warning(self) -> str:
        """What to keep in mind when ranks are read, in words; the empty text if nothing."""
        words = []
        if self.fewest_seeds < FEW_SEEDS and self.blocks:
            words.append(f"some results rest on {counted(self.fewest_seeds, 'seed')}: too few for fine differences")
        if self.noisy:
            words.append(f"{self.noisy:,} of {counted(self.pairs, 'pair')} of neighbours in rank cannot be told apart")
        return "; ".join(words)

    def verdict(self) -> str:
        """Who kept to the limits everywhere, and who of these was best, in sentences."""
        entrants = [s for s in self.summaries if s.ran and not s.cheats and s.kind not in CONTROLS]
        kept = sorted((s for s in entrants if s.safe == s.ran), key=lambda s: s.mean_rank or inf)
        settings, learners = counted(len(self.blocks), "setting"), counted(len(entrants), "learner")
        if not kept:
            most = max(entrants, key=lambda s: s.safe, default=None)
            nearest = "" if most is None else f" {most.learner} did in {most.safe}, more than any other."
            return f"None of {learners} kept every episode of all {settings} within the limits.{nearest}"
        first = kept[0]
        words = [f"{len(kept)} of {learners} kept every episode within the limits, in {settings}"]
        if first.mean_rank is not None:
            words.append(f"of these, {first.learner} has the best mean rank, {first.mean_rank:.1f}")
            words[-1] += f", and comes first in {first.firsts}" * bool(first.firsts)
        if first.share is not None:
            words.append(f"its regret is {percent(first.share)} of that of always playing the baseline (median)")
        budgets = [s.learner for s in entrants if s.safe < s.ran and not s.unsafe]
        words += [f"{', '.join(budgets)} kept the limits as a budget for all episodes so far"] * bool(budgets)
        return "; ".join(words) + "."

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data; what is no number is None."""
        bare = tuple(replace(block, references=()) for block in self.blocks)
        data: dict[str, Any] = plain(asdict(replace(self, columns=(), blocks=bare)))
        for block, entry in zip(self.blocks, data["blocks"], strict=True):
            entry["references"] = {
                row.kind: {name: number.value for name, number in row.numbers.items()} for row in block.references
            }
        data["columns"] = [{"name": each.name, "label": each.head, "words": each.words} for each in self.columns]
        for summary, entry in zip(self.summaries, data["summaries"], strict=True):
            entry["sentence"] = summary.sentence()
        return {
            **data,
            "verdict": self.verdict(),
            "warning": self.warning(),
            "noisy_pairs": self.noisy,
            "pairs": self.pairs,
        }


def leaderboard(results: Results) -> Leaderboard:
    """Rank the learners of a sweep, setting by setting.

    Args:
        results: A sweep, as `hr.results.open` returns it.

    Returns:
        The leaderboard.

    Raises:
        InvalidInput: If no cell is finished.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.report.figures import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> from hedgerow.results.leaderboard import leaderboard
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> leaderboard(run_results(run)).blocks[0].standings[0].rank
        1
    """
    groups = results.groups
    if not groups:
        raise InvalidInput(f"{results.directory} has no finished cell, so there is nothing to compare")
    place = _order(results)
    declined = tuple(results.manifest.get("declined", []))
    blocks = [_block(setting, members, declined, _failed(results, setting)) for setting, members in by_setting(groups)]
    blocks.sort(key=lambda block: _place_of(block.setting, place))
    names = {standing.learner for block in blocks for standing in block.standings}
    learners = sorted(names, key=lambda name: place("learner", name))
    summaries = tuple(_summary(learner, blocks, groups) for learner in learners)
    fewest = min(len(group.cells) for group in groups)
    board = table_columns(groups, "board")
    columns = tuple(each for name, each in board.items() if any(group.number(name) for group in groups))
    return Leaderboard(results.title, results.description, columns, tuple(blocks), summaries, declined, fewest)


# One setting ----------------------------------------------------------------------------------------------------------


def _block(
    setting: Setting, groups: Sequence[Group], declined: Sequence[Mapping[str, Any]], failed: Sequence[Cell]
) -> Block:
    shares = _shares(groups)
    ran = [_ran(group, shares[group.learner]) for group in groups]
    present = {standing.learner for standing in ran}
    broken = {cell.label("learner"): cell.error for cell in failed if cell.label("learner") not in present}
    ran += [Rank(learner, FAILED, why=why) for learner, why in broken.items()]
    here = setting.world, setting.episodes
    for entry in declined:
        meant = entry.get("adversary") in (None, "", setting.adversary)
        if entry["kind"] == "learner" and (entry["world"], entry["episodes"]) == here and meant:
            ran.append(Rank(entry["label"], DECLINED, why=entry["why"]))
    return Block(setting, ranked(ran), tuple(reference_rows(groups)))


def ranked(standings: Sequence[Rank]) -> tuple[Rank, ...]:
    """Standings in the order of a table, with ranks for the safe ones and differences between neighbours."""
    ordered = sorted(standings, key=lambda standing: (_ORDER.index(standing.status), _key(standing), standing.learner))
    safe = [standing for standing in ordered if standing.status == SAFE]
    made: list[Rank] = []
    for place, standing in enumerate(safe):
        tied = place > 0 and are_equal(_key(safe[place - 1]), _key(standing))
        rank = made[-1].rank if tied else place + 1
        after = safe[place + 1] if place + 1 < len(safe) else None
        made.append(replace(standing, rank=rank, next=None if after is None else _ahead(standing, after)))
    others = {status: [item for item in ordered if item.status == status] for status in _ORDER if status != SAFE}
    return (*others[CHEATS], *made, *(standing for status in _ORDER[2:] for standing in others[status]))


def _key(standing: Rank) -> float:
    """Unsafe ones by their violation, others by their regret."""
    if standing.scores is None:
        return 0.0
    found = standing.scores.numbers.get("violation" if standing.status == UNSAFE else "regret")
    return float("inf") if found is None else found.value


def _ahead(one: Rank, after: Rank) -> Difference:
    assert one.scores is not None
    assert after.scores is not None
    return difference(after.learner, one.scores.by_seed, after.scores.by_seed)


def _ran(group: Group, share: float | None) -> Rank:
    cheating = str(group.cells[0].facts.get("cheats") or "")
    scores = _scores(group, share)
    kept = SAFE if scores.is_safe else BUDGET if keeps_budget(group) else UNSAFE
    status = CHEATS if cheating else kept
    return Rank(group.learner, status, group.kind, why=cheating, scores=scores)


def _scores(group: Group, share: float | None) -> SettingScores:
    regret, chosen, facts = group.curve("regret"), _few(group.episodes), group.cells[0].facts
    found = {name: group.number(name) for name in (*table_columns([group], "board"), "worst_excess")}
    return SettingScores(
        numbers={name: number for name, number in found.items() if number is not None},
        by_seed={cell.seed: float(value) for cell, value in zip(group.cells, regret[:, -1], strict=True)},
        share=share,
        way=", ".join(group.ways),
        baseline=str(facts.get("baseline_taken") or group.cells[0].spec["learner"].get("baseline") or ""),
        promises=_promises(group.cells),
        episodes=tuple(group.episodes[chosen].tolist()),
        regret_curve=tuple(np.mean(regret[:, chosen], axis=0).tolist()),
        margin_curve=tuple(_margin(group)[chosen].tolist()) if group.constraints else (),
    )


def _margin(group: Group) -> FloatArray:
    """(C,): threshold minus cost, the least over constraints and seeds."""
    excess = [group.curve(f"excess_{i}").max(axis=0) for i in range(len(group.constraints))]
    least: FloatArray = -np.max(excess, axis=0)
    return least


def _few(episodes: IntArray) -> IntArray:
    """The places of checkpoints that are about evenly spaced over the run, the first and the last among them."""
    wanted = np.linspace(episodes[0], episodes[-1], MOST_POINTS)
    nearest = np.abs(episodes[np.newaxis] - wanted[:, np.newaxis]).argmin(axis=1)
    return np.unique(nearest)


def _promises(cells: Sequence[Cell]) -> tuple[PromiseStatus, ...]:
    found: dict[str, str] = {}
    for cell in cells:
        for promise in cell.facts.get("ledger", []):
            found[promise["name"]] = found.get(promise["name"]) or str(promise["void_because"] or "")
    return tuple(PromiseStatus(name, why) for name, why in found.items())


def _shares(groups: Sequence[Group]) -> dict[str, float | None]:
    """By learner: regret as a share of the baseline's, both counted from the oracle's (0 where there is none)."""
    means = {group.learner: float(np.mean(group.curve("regret")[:, -1])) for group in groups}
    of_kind = {group.kind: means[group.learner] for group in reversed(groups)}  # the first of a kind
    known = {row.kind: row.numbers["regret"].value for row in reference_rows(groups) if "regret" in row.numbers}
    least, baseline = of_kind.get(ORACLE, 0.0), of_kind.get(BASELINE, known.get(BASELINE))
    if baseline is None or baseline - least <= LEAST_SHARE * groups[0].setting.episodes:
        return dict.fromkeys(means)
    return {learner: (mean - least) / (baseline - least) for learner, mean in means.items()}


def _failed(results: Results, setting: Setting) -> list[Cell]:
    return [cell for cell in results.cells if cell.status == "failed" and cell.spec and cell.setting == setting]


# All settings ---------------------------------------------------------------------------------------------------------


def _summary(learner: str, blocks: Sequence[Block], groups: Sequence[Group]) -> LearnerSummary:
    standings = [standing for block in blocks for standing in block.standings if standing.learner == learner]
    first = next((group.cells[0] for group in groups if group.learner == learner), None)
    ranks = [standing.rank for standing in standings if standing.rank is not None]
    ran = [standing.scores for standing in standings if standing.scores is not None]
    safe = [scores for scores in ran if scores.is_safe]
    budgets = [standing.scores for standing in standings if standing.status == BUDGET and standing.scores is not None]
    shares = [scores.share for scores in (*safe, *budgets) if scores.share is not None]
    part: Mapping[str, Any] = {} if first is None else first.spec["learner"]
    facts: Mapping[str, Any] = {} if first is None else first.facts

    def count(status: str) -> int:
        return sum(standing.status == status for standing in standings)

    return LearnerSummary(
        learner=learner,
        kind=str(facts.get("kind", "")),
        inputs=str(facts.get("inputs") or ("" if first is None else "not said")),
        radii=str(part.get("sets") or part.get("radii") or (f"preset {part['preset']}" if "preset" in part else "")),
        settings=len(standings),
        safe=len(safe),
        budget=len(budgets),
        unsafe=len(ran) - len(safe) - len(budgets),
        declined=count(DECLINED),
        failed=count(FAILED),
        ranked=len(ranks),
        mean_rank=float(np.mean(ranks)) if ranks else None,
        firsts=sum(rank == 1 for rank in ranks),
        share=float(np.median(shares)) if shares else None,
        cheats=str(facts.get("cheats") or ""),
    )


Order = Callable[[str, str], tuple[int, str]]
"""The place of a label of some kind ("world", "adversary", "learner") among the others."""


def _order(results: Results) -> Order:
    """The order of the file, then of the alphabet."""
    experiment, places = results.manifest.get("experiment", {}), dict[tuple[str, str], int]()
    for kind in PARTS:
        items = experiment.get(kind, [])
        labels = [item.get("label") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        places |= {(kind, str(label)): place for place, label in enumerate(labels)}
    return lambda kind, label: (places.get((kind, label), len(places)), label)


def _place_of(setting: Setting, order: Order) -> tuple[Any, ...]:
    return order("world", setting.world), order("adversary", setting.adversary), setting.episodes


def _every(count: int) -> str:
    return "its one setting" if count == 1 else f"all of its {count} settings"


def _without_run(summary: LearnerSummary) -> str:
    told = [f"it declined {counted(summary.declined, 'setting')}"] * bool(summary.declined)
    told += [f"it failed in {counted(summary.failed, 'setting')}"] * bool(summary.failed)
    return " and ".join(told)
