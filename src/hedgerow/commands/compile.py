"""`hedgerow compile`: compile all kernels now, so that the first run need not wait; say where they are; remove them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.commands import FAILED, Quiet, one_thread
from hedgerow.display.screen import say
from hedgerow.experiments.warmup import CompileStage


def compile_kernels(
    quiet: Quiet = False,
    only: Annotated[
        CompileStage | None,
        typer.Option(
            metavar="STAGE",
            help="projection, blocks (simulations), steps (plan and observe), field (its learners) or rare; by default "
            "all.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            max=2,
            help="Processes: two finish sooner, one needs less time in total.",
        ),
    ] = 2,
    native: Annotated[
        bool, typer.Option("--native", help="Compile for this processor, even if compiled code came with the package.")
    ] = False,
    where: Annotated[bool, typer.Option("--where", help="Say where compiled code is, and compile nothing.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what was compiled, and compile nothing.")] = False,
) -> None:
    """Compile all kernels now, so that the first run need not wait.

    This takes seconds if compiled code came with the package, and otherwise a minute and a half of processor time.
    Exit code 1 if --clean could not remove everything.
    """
    one_thread()
    if where or clean:
        (_clean if clean else _say_where)()
        return
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # nobody reads them; a tenth of the time
    from hedgerow.compiling import cache
    from hedgerow.experiments.warmup import compile_stages, compiled_together

    begun = time.perf_counter()
    if native:
        cache.ignore()
    with compiled_together(alone=jobs == 1 or only is not None, shown=not quiet, everything=only is None):
        compile_stages(only)
        if only in (None, CompileStage.STEPS):
            _forecast()
    if not quiet:
        say(f"compiled, or loaded, in {time.perf_counter() - begun:.0f} s; hedgerow compile --where tells where it is")


def _forecast() -> None:
    """The kernels of `hedgerow check`; rows of so many successors have KL balls beside their boxes."""
    from hedgerow import forecast, worlds
    from hedgerow.forecast.summary import assumed_baseline

    view = worlds.make("random-layered", layers=(1, 6, 1), actions=2, constraints=1).cmdp.view()
    forecast.forecast(view, forecast.assumed_model(view), assumed_baseline(view), 3, 0.1)


def _clean() -> None:
    from hedgerow.compiling import cache

    folder = cache.root()
    before, size = _content(folder)
    cache.remove_all()
    left, left_size = _content(folder)
    say(f"removed {before - left} files, {(size - left_size) / 1e6:.1f} MB, from {folder}")
    if left:
        say(f"hedgerow: {left} files could not be removed from {folder}", error=True)
        raise typer.Exit(FAILED)


def _say_where() -> None:
    from hedgerow.compiling import cache

    num_files, size = _content(cache.root())
    say(f"compiled on this machine: {cache.root()}, {num_files} files, {size / 1e6:.1f} MB")
    if not cache.FOLDER.is_dir():
        say("no compiled code came with this package")
        return
    num_files, size = _content(cache.FOLDER)
    used = "used where the first has nothing" if cache.is_usable() else "not for this processor"
    say(f"came with the package: {cache.FOLDER}, {num_files} files, {size / 1e6:.1f} MB, {used}")


def _content(folder: Path | None) -> tuple[int, int]:
    """The number of files of compiled code below a folder, and their bytes."""
    found = [] if folder is None else [file.stat().st_size for file in folder.rglob("*.nb[ci]")]
    return len(found), sum(found)
