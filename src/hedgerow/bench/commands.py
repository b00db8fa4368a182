"""`hedgerow bench ...`: parse, measure, print. Everything heavy is imported inside the commands.

hedgerow bench projection --quick     ours beside general solvers, the two smallest sizes
hedgerow bench scale --out out        time and memory per triple from 10^2 to 10^6 triples, with a figure
hedgerow bench stress                 10,000 hard problems, each answer held against a known truth
hedgerow bench agree                  500 moderate problems, ours beside cvxpy + Clarabel
hedgerow bench episode --quick        an episode of each learner, part by part, beside learners with general solvers
hedgerow bench cores                  episodes per second on one and on two processes
hedgerow bench samples --quick        how many episodes the preset `sharp` saves
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.output import say

app = typer.Typer(no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller problems: well under a minute.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Out = Annotated[Path | None, typer.Option("--out", file_okay=False, help="Also write the figures into this folder.")]
Count = Annotated[int, typer.Option("--count", min=1, help="How many instances.")]
First = Annotated[int, typer.Option("--first", min=0, help="The seed of the first instance; the others follow.")]


@app.callback()
def _one_thread() -> None:
    """Measure speed, scale and robustness; every solver on one thread, unless the environment says otherwise."""
    for pool in ("OMP", "OPENBLAS", "MKL", "RAYON"):  # read when numpy and the solvers are loaded, which is later
        os.environ.setdefault(f"{pool}_NUM_THREADS", "1")


@app.command()
def projection(
    quick: Quick = False,
    as_json: AsJson = False,
    out: Out = None,
    sizes: Annotated[
        int | None, typer.Option("--sizes", min=1, max=4, help="Only the smallest so many of the four sizes.")
    ] = None,
) -> None:
    """The projection beside general solvers, interleaved on the same problems."""
    from hedgerow.bench import projection as bench

    settings = bench.Settings.quick(sizes or 2) if quick else bench.Settings(num_sizes=sizes or 4)
    rows = bench.run(settings)
    data = bench.as_data(settings, rows)
    _tell(data, as_json, out, lambda: bench.show(rows), lambda folder: bench.write(folder, data))


@app.command()
def scale(
    quick: Quick = False,
    as_json: AsJson = False,
    out: Out = None,
    sizes: Annotated[
        int | None, typer.Option("--sizes", min=1, max=9, help="Only the smallest so many of the nine dense sizes.")
    ] = None,
) -> None:
    """Time and memory per triple, from 10^2 to 10^6 triples."""
    from hedgerow.bench import scale as bench

    settings = bench.Settings.quick(sizes or 5) if quick else bench.Settings(num_sizes=sizes or 9)
    rows = bench.run(settings)
    data = bench.as_data(settings, rows)
    _tell(data, as_json, out, lambda: bench.show(rows), lambda folder: bench.write(folder, data, rows))


@app.command()
def stress(
    count: Count = 10_000,
    first: First = 0,
    processes: Annotated[int, typer.Option("--processes", min=1, help="Processes that share the instances.")] = 2,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Hard projections against a known truth; ends with 1 if an answer is wrong."""
    from hedgerow.bench import stress as bench

    settings = bench.Settings(count, first, processes)
    trials = bench.run(settings)
    data = bench.as_data(settings, trials)
    _tell(data, as_json, out, lambda: bench.show(trials), lambda folder: bench.write(folder, data))
    if bench.offenders(trials):
        raise typer.Exit(1)


@app.command()
def agree(count: Count = 500, first: First = 0, as_json: AsJson = False, out: Out = None) -> None:
    """Moderate projections beside cvxpy + Clarabel; ends with 1 if an answer is wrong."""
    from hedgerow.bench import agreement as bench

    settings = bench.Settings(count, first)
    comparisons = bench.run(settings)
    data = bench.as_data(settings, comparisons)
    _tell(data, as_json, out, lambda: bench.show(comparisons), lambda folder: bench.write(folder, data))
    if bench.offenders(comparisons):
        raise typer.Exit(1)


@app.command()
def episode(
    quick: Quick = False,
    as_json: AsJson = False,
    out: Out = None,
    worlds: Annotated[
        int | None, typer.Option("--worlds", min=1, max=7, help="Only the first so many of the seven worlds.")
    ] = None,
) -> None:
    """Microseconds per episode, ours beside learners with general solvers, interleaved."""
    from dataclasses import asdict, replace

    from hedgerow.bench import episode as bench
    from hedgerow.bench import episode_report

    settings = bench.Settings.quick() if quick else bench.Settings()
    if worlds is not None:
        settings = replace(settings, worlds=bench.Settings().worlds[:worlds])
    report = bench.run(settings)
    data = episode_report.as_data(asdict(settings), report)
    _tell(
        data,
        as_json,
        out,
        lambda: episode_report.show(report),
        lambda folder: episode_report.write(folder, data, report),
    )


@app.command()
def cores(quick: Quick = False, as_json: AsJson = False, out: Out = None) -> None:
    """Episodes per second of a sweep on one and on two processes."""
    from hedgerow.bench import cores as bench

    settings = bench.Settings.quick() if quick else bench.Settings()
    rows = bench.run(settings)
    data = bench.as_data(settings, rows)
    _tell(data, as_json, out, lambda: bench.show(rows), lambda folder: bench.write(folder, data))


@app.command()
def samples(
    quick: Annotated[
        bool, typer.Option("--quick", help="Ten times fewer episodes and 3 seeds: some minutes instead of hours.")
    ] = False,
    processes: Annotated[int, typer.Option("--processes", min=1, help="Processes that share the runs.")] = 2,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Runs per cell of the table.")] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", file_okay=False, help="Keep finished runs in this folder, and go on from there."),
    ] = None,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Regret and violation under the presets `paper` and `sharp`, and how many episodes `sharp` saves."""
    from dataclasses import replace

    from hedgerow.bench import samples as bench

    settings = replace(bench.Settings.quick() if quick else bench.Settings(), processes=processes)
    if seeds is not None:
        settings = replace(settings, seeds=seeds)
    found = bench.run(settings, keep)
    rows = bench.rows(found)
    data = bench.as_data(settings, rows)
    _tell(data, as_json, out, lambda: bench.show(rows), lambda folder: bench.write(folder, data, found))


def _tell(
    data: object,
    as_json: bool,
    out: Path | None,
    show: Callable[[], None],
    write: Callable[[Path], Path | tuple[Path, ...]],
) -> None:
    """Print the report, as JSON or as tables, and write its figures where they are wanted."""
    from hedgerow.bench import manifest

    if as_json:
        print(manifest.as_json(data), end="")
    else:
        show()
    if out is not None:
        written = write(out)
        paths = written if isinstance(written, tuple) else (written,)
        say("written: " + ", ".join(map(str, paths)), error=True)  # stdout may be JSON
