"""Numbers in the sentences of README.md and the docs, each with the figures that it is taken from.

A claim is a piece of a page in which every number that was measured is a pair of braces. A test compares them all with
the JSON files, and `python -m bench.tables docs` writes them anew. Words around the numbers are not judged: whoever
measures reads the sentences again.

>>> example = Claim("page.md", "takes {} in a small world", lambda found: [short(found["x"]["seconds"])])
>>> complaints(example, "It takes 7.5 µs in a\\nsmall world.", {"x": {"seconds": 8.12e-6}})
["page.md says '7.5 µs', the figures say '8.1 µs': takes {} in a small world"]
>>> written(example, "It takes 7.5 µs in a\\nsmall world.", {"x": {"seconds": 8.12e-6}})
'It takes 8.1 µs in a\\nsmall world.'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any

from bench.timing import duration

Data = Mapping[str, Any]
Found = Mapping[str, Data]
"""The contents of the JSON files by their names"""
Values = Callable[[Any], Sequence[str]]

_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?:\s(?:ns|µs|ms|s|min|MB|GB)\b)?)"


class Figures(dict[str, Any]):
    """The JSON files of a folder by name, without `.json`; read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __contains__(self, name: object) -> bool:
        return (self.folder / f"{name}.json").exists()

    def __missing__(self, name: str) -> Any:
        self[name] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return self[name]


@dataclass(frozen=True)
class Claim:
    """A piece of a page; white space stands for any white space."""

    page: str
    """From the folder of the docs"""
    text: str
    values: Values
    """What stands in the braces"""

    @property
    def pattern(self) -> re.Pattern[str]:
        words = [re.escape(part) for part in " ".join(self.text.split()).split("{}")]
        return re.compile(_NUMBER.join(words).replace(r"\ ", r"\s+"))


def complaints(claim: Claim, page: str, found: Found) -> list[str]:
    """What the claim's page says otherwise than the figures do."""
    match = claim.pattern.search(page)
    if match is None:
        return [f"{claim.page} has no such sentence; change bench/claims.py with it: {claim.text}"]
    pairs = zip(match.groups(), claim.values(found), strict=True)
    return [
        f"{claim.page} says {said!r}, the figures say {true!r}: {claim.text}"
        for said, true in pairs
        if " ".join(said.split()) != true
    ]


def written(claim: Claim, page: str, found: Found) -> str:
    """The page with the numbers of the claim exchanged; a claim without its sentence changes nothing."""
    match = claim.pattern.search(page)
    if match is None:
        return page
    for number, value in reversed(list(enumerate(claim.values(found), 1))):
        page = page[: match.start(number)] + value + page[match.end(number) :]
    return page


def rewritten(name: str, page: str, found: Found) -> str:
    """The page of this name with all its numbers exchanged."""
    for claim in CLAIMS:
        if claim.page == name:
            page = written(claim, page, found)
    return page


def pages() -> list[str]:
    """The pages that have claims."""
    return list(dict.fromkeys(claim.page for claim in CLAIMS))


def check(docs: Path, found: Found) -> list[str]:
    """What all pages say otherwise than the figures do."""
    texts = {name: (docs / name).read_text(encoding="utf-8") for name in pages()}
    return [complaint for claim in CLAIMS for complaint in complaints(claim, texts[claim.page], found)]


# How numbers are shown ----------------------------------------------------------------------------------------------


def two_digits(value: float) -> str:
    """Two digits that count: 501 is 500, 9.66 is 9.7."""
    digits = 1 - floor(log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def short(seconds: float) -> str:
    """Two digits and a unit: `7.5 µs`."""
    value, unit = duration(float(f"{seconds:.1e}")).split()
    return f"{two_digits(float(value))} {unit.replace('us', 'µs')}"


def exponent(value: float) -> str:
    """One digit: `4e-10`."""
    mantissa, power = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(power)}"


def seconds(value: float) -> str:
    """Whole seconds: `74 s`."""
    return f"{value:.0f} s"


# Where they are found -----------------------------------------------------------------------------------------------

SMALL, LARGEST, LAKE = "(1,3,3,1)x3, m=1", "(1,10^9,1)x5, m=2", "FrozenLake 8x8"


def rows(data: Data, **keys: Any) -> list[Data]:
    """The rows that have these entries, at least one."""
    found = [row for row in data["figures"] if all(row[key] == value for key, value in keys.items())]
    if not found:
        raise LookupError(f"the figures of {data['benchmark']!r} have no row with {keys}")
    return found


def row(data: Data, **keys: Any) -> Data:
    return rows(data, **keys)[0]


def episode(found: Found, world: str) -> float:
    return float(row(found["episode-speed"], world=world, contender="SV-OPS")["time"]["median"])


def against_cvxpy(found: Found, world: str | None = None) -> list[float]:
    """How many times longer the learner with cvxpy takes, in a world or in all."""
    keys = {"world": world} if world else {}
    return [each["factor"] for each in rows(found["episode-speed"], contender="SV-OPS with cvxpy + Clarabel", **keys)]


def savings(found: Found, keep: Callable[[Data], bool]) -> list[float]:
    """What `sharpest` saves over `sharp`: the regret of S-OPS with the world's own losses."""
    keys = {"learner": "S-OPS", "losses": "own", "measure": "regret", "variant": "sharpest"}
    return [each["saving"] for each in rows(found["samples"], **keys) if keep(each)]


def shared(each: Data) -> bool:
    """Whether the pairs of the world share their distributions."""
    return not each["world"].startswith("random")


def ends(values: Sequence[float]) -> list[str]:
    """The least and the largest."""
    return [two_digits(min(values)), two_digits(max(values))]


def call(found: Found, world: str, what: str = "plan + observe") -> Data:
    return row(found["calls"], world=world, who="SV-OPS", call=what)


def spent(found: Found, process: str) -> float:
    """Processor time: that by the clock on the wall, which the table has beside it, says more about the machine."""
    return float(row(found["compile"], process=process)["cpu"]["median"])


def sizes(found: Found, sparse: bool) -> list[Data]:
    return rows(found["projection-scale"], sparse=sparse)


def apart(found: Found, sparse: bool, measure: str, least: int = 0) -> float:
    """How much longer the slowest size takes per transition than the fastest, of those with `least` transitions."""
    times = [each[measure] / each["triples"] for each in sizes(found, sparse) if each["triples"] >= least]
    return float(max(times) / min(times))


def plan_ratios(found: Found, losses: str, way: str = "kept") -> list[float]:
    """How many times longer HiGHS takes for a plan, by world."""
    return [each[way]["median"] / each["ours"]["median"] for each in rows(found["plans"], losses=losses)]


def solver_factors(found: Found, name: str) -> list[float]:
    return [each["factor"] for each in rows(found["projection-speed"], contender=name)]


def shared_commits(found: Found, clients: int) -> list[float]:
    """The share of processor time that shared commits spare at full durability, by database, in per cent."""
    data, spared = found["serve"], []
    for each in rows(data, clients=clients, group_commit=True, durability="full"):
        keys = {"database": each["database"], "durability": "full", "clients": clients}
        one, other = (row(data, group_commit=way, **keys)["processor"] for way in (True, False))
        spared.append(100.0 * (1.0 - one / other))
    return spared


def processor_times(found: Found) -> list[float]:
    """Of the service for a decision."""
    return [each["processor"] for each in found["serve"]["figures"]]


def replay(found: Found) -> Data:
    only: Data = found["replay"]["figures"][0]
    return only


CLAIMS = (
    Claim(
        "../README.md",
        "scoring included, takes {} on 45 of them and {} on 4,100: {} and {} times less than the same learner",
        lambda found: [
            short(episode(found, SMALL)),
            short(episode(found, LARGEST)),
            *(two_digits(against_cvxpy(found, world)[0]) for world in (SMALL, LARGEST)),
        ],
    ),
    Claim(
        "../README.md",
        "HiGHS, with one model that is kept and warm-started, takes {} to {} times as long.",
        lambda found: ends([*plan_ratios(found, "same"), *plan_ratios(found, "new")]),
    ),
    Claim(
        "../README.md",
        "that `sharp` has after 10⁵ episodes {} times earlier, or more, in random worlds and {} to {} times earlier "
        "where",
        lambda found: [
            two_digits(min(savings(found, lambda each: each["episodes"] == 100_000 and not shared(each)))),
            *ends(savings(found, lambda each: each["episodes"] == 100_000 and shared(each))),
        ],
    ),
    Claim(
        "../README.md",
        "`hedgerow demo` takes {} of processor time with compiled code, and to compile takes {}.",
        lambda found: [
            seconds(spent(found, "hedgerow demo, all compiled")),
            seconds(spent(found, "hedgerow compile --only blocks")),
        ],
    ),
    Claim(
        "index.md",
        "draws the picture above, which takes {} of processor time",
        lambda found: [seconds(spent(found, "hedgerow demo, nothing in the cache"))],
    ),
    Claim(
        "install.md",
        "`hedgerow compile`, which compiles everything, takes {} of processor time",
        lambda found: [seconds(spent(found, "hedgerow compile"))],
    ),
    # The first screen of the benchmarks -----------------------------------------------------------------------------
    Claim(
        "benchmarks.md",
        "**An episode takes {} in a small world and {} in one with 8,394 transitions: {} to {} times faster than",
        lambda found: [short(episode(found, SMALL)), short(episode(found, LAKE)), *ends(against_cvxpy(found))],
    ),
    Claim(
        "benchmarks.md",
        "`sharpest` needs {} to {} times fewer episodes than `sharp` where state-action pairs share their "
        "distributions, and {} to {} times fewer elsewhere",
        lambda found: [*ends(savings(found, shared)), *ends(savings(found, lambda each: not shared(each)))],
    ),
    Claim(
        "benchmarks.md",
        "| {} with 45 transitions, {} with 1,640 (`dope-media`), {} with 8,394 (FrozenLake 8x8) |",
        lambda found: [short(episode(found, world)) for world in (SMALL, "dope-media", LAKE)],
    ),
    Claim(
        "benchmarks.md",
        "dense worlds ({} per episode with 902,000 transitions), more than linearly in sparse ones ({} with 930,000)",
        lambda found: [short(sizes(found, sparse)[-1]["episode"]) for sparse in (False, True)],
    ),
    Claim(
        "benchmarks.md",
        "| {} to {} per episode, for `plan` and `observe` together |",
        lambda found: [
            short(
                edge([each["time"]["median"] - each["inside"] for each in rows(found["calls"], call="plan + observe")])
            )
            for edge in (min, max)
        ],
    ),
    Claim(
        "benchmarks.md",
        "| {} of processor time, once; the first episode of later processes takes {} |",
        lambda found: [
            seconds(spent(found, "hedgerow compile")),
            short(spent(found, "first episode, all compiled")),
        ],
    ),
    Claim(
        "benchmarks.md",
        "| {} times the episodes per second of one |",
        lambda found: [f"{row(found['cores'], processes=2)['speed_up']:.2f}"],
    ),
    Claim(
        "benchmarks.md",
        "| {} to {} times fewer for S-OPS where pairs share distributions, {} to {} times fewer in random worlds |",
        lambda found: [*ends(savings(found, shared)), *ends(savings(found, lambda each: not shared(each)))],
    ),
    Claim(
        "benchmarks.md",
        "| {} to {} times as long as ours with a model that is kept and warm-started, {} to {} times if built anew |",
        lambda found: [
            *ends([*plan_ratios(found, "same"), *plan_ratios(found, "new")]),
            *ends([*plan_ratios(found, "same", "anew"), *plan_ratios(found, "new", "anew")]),
        ],
    ),
    # Further down ---------------------------------------------------------------------------------------------------
    Claim(
        "benchmarks.md",
        "Projections stay within a factor of {}. An episode costs less per transition in larger worlds: {} ns at 120 "
        "transitions and {} to {} ns beyond 3,000, because only the visited pairs change. At 902,000 transitions it "
        "takes {}.",
        lambda found: [
            f"{max(apart(found, False, measure) for measure in ('mirror_step', 'cold_start')):.1f}",
            f"{1e9 * sizes(found, False)[0]['episode'] / sizes(found, False)[0]['triples']:.0f}",
            *(
                f"{1e9 * edge(each['episode'] / each['triples'] for each in sizes(found, False)[3:]):.0f}"
                for edge in (min, max)
            ),
            short(sizes(found, False)[-1]["episode"]),
        ],
    ),
    Claim(
        "benchmarks.md",
        "Projections stay within {}. From 1,280 transitions on, the time of an episode per transition grows by a "
        "factor of {}, and at 930,000 transitions an episode takes {}.",
        lambda found: [
            f"{max(apart(found, True, measure) for measure in ('mirror_step', 'cold_start')):.1f}",
            f"{apart(found, True, 'episode', 1_000):.1f}",
            short(sizes(found, True)[-1]["episode"]),
        ],
    ),
    Claim(
        "benchmarks.md",
        "For SV-OPS they take {} together with 45 transitions, and {} with 1,640; an episode of the compiled loop "
        "takes {} and {}. Loading a saved learner takes {}.",
        lambda found: [
            *(short(call(found, world)["time"]["median"]) for world in (SMALL, "dope-media")),
            *(short(call(found, world)["inside"]) for world in (SMALL, "dope-media")),
            short(call(found, SMALL, "load")["time"]["median"]),
        ],
    ),
    Claim(
        "benchmarks.md",
        "takes {} to {} times as long as ours, where losses stay and boxes hardly change, and {} to {} times where all "
        "losses change; built anew for each plan {} to {} times",
        lambda found: [
            *ends(plan_ratios(found, "same")),
            *ends(plan_ratios(found, "new")),
            *ends([*plan_ratios(found, "same", "anew"), *plan_ratios(found, "new", "anew")]),
        ],
    ),
    Claim(
        "benchmarks.md",
        "counts unsafe episodes in {} runs of {} episodes each",
        lambda found: [f"{found['safety']['settings'][name]:,}" for name in ("runs", "episodes")],
    ),
    Claim(
        "benchmarks.md",
        "`hedgerow compile` takes {} of processor time. With everything compiled, a process takes {} from the start of "
        "Python to its first episode, and {} with a wheel",
        lambda found: [
            seconds(spent(found, "hedgerow compile")),
            short(spent(found, "first episode, all compiled")),
            short(spent(found, "first episode of a wheel, nothing in the cache")),
        ],
    ),
    Claim(
        "benchmarks.md",
        "This takes {} to {} per cell",
        lambda found: [
            short(edge(each["outside"]["median"] for each in found["cells"]["figures"])) for edge in (min, max)
        ],
    ),
    # Other pages ----------------------------------------------------------------------------------------------------
    Claim(
        "projection.md",
        "Our infeasibility and gap are at most {} and {}, those of Clarabel {} and {}.",
        lambda found: [
            exponent(max(each[measure] for each in rows(found["projection-speed"], contender=name)))
            for name in ("hedgerow", "Clarabel")
            for measure in ("infeasibility", "gap")
        ],
    ),
    Claim(
        "projection.md",
        "calls {} of its answers optimal. There the objectives differ by at most {} and the occupancies by at most {}. "
        "On the other {} it",
        lambda found: [
            str(sum(each["agree"] for each in found["agreement"]["figures"])),
            *(
                exponent(max(each[name] for each in found["agreement"]["figures"]))
                for name in ("objective_distance", "occupancy_distance")
            ),
            str(sum(each["certificate_decides"] for each in found["agreement"]["figures"])),
        ],
    ),
    Claim(
        "projection.md",
        "A projection is {} to {} times faster than Clarabel alone, and {} to {} times faster than cvxpy with Clarabel",
        lambda found: [
            *ends(solver_factors(found, "Clarabel")),
            *ends(solver_factors(found, "cvxpy + Clarabel, as written")),
        ],
    ),
    Claim(
        "projection.md",
        "({} for mirror steps and {} for cold starts in the run of the figure, {} at 902,000)",
        lambda found: [
            *(f"{apart(found, False, measure):.1f}" for measure in ("mirror_step", "cold_start")),
            short(sizes(found, False)[-1]["mirror_step"]),
        ],
    ),
    Claim(
        "years.md",
        "had a load of {}",
        lambda found: [f"{found['serve']['load']:.1f}"],
    ),
    Claim(
        "years.md",
        "at {} to {} for a decision, a whole core has room for {} to {} decisions a second",
        lambda found: [
            *(short(edge(processor_times(found))) for edge in (min, max)),
            *(two_digits(1.0 / edge(processor_times(found))) for edge in (max, min)),
        ],
    ),
    Claim(
        "years.md",
        "With 32 clients and full durability, shared commits took {} to {} % less of it",
        lambda found: [f"{edge(shared_commits(found, 32)):.0f}" for edge in (min, max)],
    ),
    Claim(
        "years.md",
        "as `verify` does: {} with its {} snapshots, {} bytes an event, and {} of processor time, {} events a second",
        lambda found: [
            f"{replay(found)['bytes'] / 1e6:.1f} MB",
            str(replay(found)["snapshots"]),
            f"{replay(found)['bytes'] / replay(found)['events']:.0f}",
            seconds(replay(found)["replay_seconds"]),
            two_digits(replay(found)["events"] / replay(found)["replay_seconds"]),
        ],
    ),
    Claim(
        "years.md",
        "with the same bits (load {}; `docs/figures/replay.json`). Writing took {}",
        lambda found: [f"{found['replay']['load']:.1f}", seconds(replay(found)["write_seconds"])],
    ),
)
