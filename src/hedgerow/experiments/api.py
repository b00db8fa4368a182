"""A whole experiment from Python, in one call: read, run, open. `hedgerow run` does the same from a shell."""

from __future__ import annotations

import os

from hedgerow.checks import type_name
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.progress import watcher
from hedgerow.experiments.reading import read
from hedgerow.experiments.source import find
from hedgerow.experiments.sweep import Workers
from hedgerow.experiments.sweep import sweep as run_sweep
from hedgerow.results.groups import Results
from hedgerow.results.store import open as open_results


def sweep(
    experiment: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    processes: int | None = None,
    scheduler: str = "",
    resume: bool = False,
    progress: bool = True,
    limit: float | None = None,
) -> Results:
    """Run an experiment and open its results.

    In a script, call it below `if __name__ == "__main__":`, because worker processes import the script.

    Args:
        experiment: The path of a TOML file, or the name of an experiment that ships, such as `quickstart`.
        directory: Where the results go.
        processes: Worker processes on this machine; one per core by default. With 1, cells run in this process, those
            with learners, worlds or adversaries of others in one beside it.
        scheduler: The address of a Dask scheduler, such as `tcp://10.0.0.1:8786`, in the place of `processes`.
        resume: Go on in a directory that was begun before; finished cells are kept.
        progress: Show what is going on.
        limit: Seconds that an episode of a learner of others may take, which run in a process apart; longer ones are
            ended, and their cells fail. None takes what the file says, or 60; infinite for no limit.

    Returns:
        The results, as `hr.results.open(directory)` gives them.

    Raises:
        InvalidInput: If the file has a mistake (with its line), or the directory holds results and `resume` is False.
        HedgerowError: If cells failed. All others have run, and `resume=True` tries those again. Also if code of others
            ends its process or takes too long when it is tried, before anything runs.

    Examples:
        >>> import hedgerow as hr
        >>> results = hr.sweep("quickstart", "out/quickstart")  # doctest: +SKIP
        >>> results.summary().num_rows  # doctest: +SKIP
        8
    """
    if not isinstance(experiment, str | os.PathLike):
        raise InvalidInput(f"an experiment is the path of a TOML file or a name, not {type_name(experiment)}")
    loaded = read(find(os.fspath(experiment)), limit)
    backend = "dask" if scheduler else "serial" if processes == 1 else "loky"
    workers = Workers(backend, None if scheduler else processes, scheduler, limit=limit)
    tally = run_sweep(loaded, directory, workers=workers, resume=resume, watch=watcher(not progress))
    if tally.interrupted:
        raise KeyboardInterrupt
    if tally.failed:
        cell, reason = next(iter(tally.failed.items()))
        raise HedgerowError(
            f"{len(tally.failed)} of {tally.total} cells failed; the first is {cell}: {reason}. The others are in "
            f"{directory}; resume=True runs the failed ones again"
        )
    if not tally.complete:
        left = tally.total - tally.skipped - tally.done
        raise HedgerowError(f"{left} of {tally.total} cells are missing in {directory}; resume=True runs them")
    return open_results(directory)
