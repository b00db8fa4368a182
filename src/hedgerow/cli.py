"""The command line: which commands there are, and what becomes of errors.

    hedgerow demo                the learners side by side, and a page with the figures
    hedgerow run FILE            an experiment; `run --list` names those that ship with the package
    hedgerow resume DIR          finish one that was interrupted
    hedgerow report DIR          its page
    hedgerow compare minute      all learners of the field on many worlds, ranked on one page
    hedgerow check PROBLEM       look at a problem before a run
    hedgerow learners            what there is to choose from; also worlds, adversaries, costs
    hedgerow check-learner NAME  whether a learner keeps to the contract
    hedgerow compile             compile everything now

Exit code 0: done. 1: some cells or checks failed, code of others ended its process or took too long, or the problem is
infeasible. 2: the request cannot be met; one line on stderr says why. 130: interrupted by Ctrl-C. 143: asked to
end by SIGTERM.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from hedgerow.commands import check, check_learner, compare, kernels, lists, run, verify
from hedgerow.commands.signals import INTERRUPTED, ending_in_order
from hedgerow.commands.terminal import FAILED, REFUSED
from hedgerow.display.screen import say
from hedgerow.errors import HedgerowError
from hedgerow.experiments.isolation import Ended
from hedgerow.stdio import OutputLost, safe_streams

app = typer.Typer(
    name="hedgerow",
    help="Online learning in episodic constrained MDPs with adversarial losses and hard constraints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from hedgerow import __version__

        print(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for _command in (run.demo, run.run, run.resume, check.check, run.report, compare.compare):
    app.command()(_command)
for _list in (lists.learners, lists.worlds, lists.adversaries, lists.costs):
    app.command()(_list)
app.command(name="check-learner")(check_learner.check_learner)
app.command(name="compile")(kernels.compile_kernels)

app.add_typer(verify.app, name="verify")


def main() -> None:
    """Entry point: errors that hedgerow raises on purpose, and those of the system, become one line."""
    code: int | str | None = REFUSED
    try:
        with safe_streams(), ending_in_order() as code_of:
            code = code_of(_outcome())
    except OutputLost as error:  # the last of it, when buffers were emptied
        code = _refuse(error)
    raise SystemExit(code)


def _outcome() -> int | str | None:
    """Run the command; its exit code."""
    try:
        app()
    except SystemExit as stop:
        if not stop.code and not _ended_in_order(stop):
            _complain("code that this command has called wanted to end the program; the work is not finished")
            return FAILED
        return stop.code
    except Ended as error:
        _complain(error)
        return FAILED
    except HedgerowError as error:
        return _refuse(error)
    except OSError as error:
        where = "" if error.filename is None else f"cannot use {error.filename}: "
        return _refuse(f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _refuse(f"the memory is too small for this: {error}")
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    return 0


def _ended_in_order(stop: SystemExit) -> bool:
    """Whether the command line itself ends the program, as it does after every command; not sys.exit in a plug-in."""
    place = stop.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("typer", "click")


def _refuse(reason: object) -> int:
    if not (isinstance(reason, OutputLost) and reason.reader_left):
        _complain(reason)
    return REFUSED


def _complain(reason: object) -> None:
    with suppress(OSError):
        say(f"hedgerow: {reason}", error=True)
