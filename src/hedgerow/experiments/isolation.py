"""Code of others runs in a process apart: one that can be ended, and whose end ends no other.

    place = Apart()
    place.call(function, argument, limit=60.0)      # function(argument, beat) over there; its result here
    place.close()

`function` is given `beat` and calls it with what comes next, such as "episode 12". `limit` is the longest time in
seconds between two beats: a process that is silent for longer is ended, and `Ended` says what it was about to do. The
process serves one call after the other; it is started when it is needed, and again after it was ended. It ends by
itself when the process that started it has ended.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from hedgerow.errors import HedgerowError, InvalidInput

Beat = Callable[[str], None]
"""Called with what comes next; with the empty string if that may take any time."""
BETWEEN_BEATS = 0.2
"""Seconds between two beats that are sent: an episode may take microseconds."""
LOOK = 0.1
"""Seconds between two looks at the clock, and at the parent process."""
BEAT, DONE, REFUSED, RAISED = "beat", "done", "refused", "raised"
EPISODE = "episode"
"""How beats begin that come too often to be sent all."""
COMPILING = "a moment after kernels were compiled"


class Ended(HedgerowError):  # noqa: N818 - read as a sentence
    """The process ended before its call did, or was ended.

    Args:
        how: What became of the process.
        during: What it was about to do.
        killed: Whether it was ended by SIGKILL, from outside or for want of memory.
    """

    def __init__(self, how: str, during: str, *, killed: bool = False) -> None:
        super().__init__(f"{how} in {during}" if during else how)
        self.how, self.during, self.killed = how, during, killed


class Apart:
    """A process that calls functions for this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()

    def call(
        self,
        function: Callable[..., Any],
        argument: Any,
        *,
        limit: float = float("inf"),
        look: Callable[[], None] = lambda: None,
        heard: Beat = lambda _: None,
    ) -> Any:
        """What function(argument, beat) returns over there.

        Args:
            function: A function that can be pickled.
            argument: Its argument; classes of a script are sent along.
            limit: The longest time between two beats, in seconds.
            look: Called ten times a second meanwhile; the process is ended if it raises.
            heard: Called with every beat that arrives.

        Raises:
            InvalidInput: If the function does.
            Ended: If the process ends, or is silent for too long, or if the function raises anything else.
        """
        try:
            self._send((function, argument))
            return self._answer(limit, look, heard)
        except BaseException:
            self.close()
            raise

    def _send(self, content: Any) -> None:
        from joblib.externals.loky.backend.reduction import dumps  # as workers are sent their tasks

        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: the answer says so
            self._process.stdin.write(dumps(content))
            self._process.stdin.flush()

    def _answer(self, limit: float, look: Callable[[], None], heard: Beat) -> Any:
        during, last = "", time.monotonic()  # a process may take its time to start
        while True:
            try:
                message = self._messages.get(timeout=LOOK)
            except queue.Empty:
                look()
                if during and time.monotonic() - last > limit:
                    raise Ended(f"it was ended, since it took longer than {limit:g} s", during) from None
                continue
            if message is None:
                raise self._death(during)
            kind, content = message
            if kind == DONE:
                return content
            if kind == REFUSED:
                raise InvalidInput(content)
            if kind == RAISED:
                raise Ended(content, during)
            during, last = content, time.monotonic()
            heard(during)

    def _start(self) -> None:
        # The path is handed on: this process may have found its modules in its own way.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({os.getpid()})"
        command = [sys.executable, "-c", code]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._messages = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process.stdout, self._messages), daemon=True).start()

    def _death(self, during: str) -> Ended:
        assert self._process is not None
        code = self._process.wait()
        if during.startswith(EPISODE):
            during += " or a moment later"  # not every beat is sent
        if code >= 0:
            return Ended(f"its process ended by itself, with exit code {code},", during)
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return Ended(f"its process was ended by {name}", during, killed=name == "SIGKILL")

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()


def _read(stream: BinaryIO, messages: queue.SimpleQueue[Any]) -> None:
    """Pass on what the process says; None at its end."""
    with suppress(Exception):  # half a message: it has ended
        while True:
            messages.put(pickle.load(stream))
    messages.put(None)


# Over there -----------------------------------------------------------------------------------------------------------


def serve(parent: int) -> None:
    """Call what arrives, until nothing more does."""
    calls, answers = _own_streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent decides
    lock, speaking = threading.Lock(), _Speaking()

    def say(kind: str, content: Any) -> None:
        with lock:
            pickle.dump((kind, content), answers)
            answers.flush()

    def beat(during: str) -> None:
        now, frequent = time.monotonic(), all(told.startswith(EPISODE) for told in (during, speaking.latest))
        speaking.latest = during
        if not frequent or now - speaking.when > BETWEEN_BEATS:
            speaking.sent, speaking.when = during, now
            say(BEAT, during)

    threading.Thread(target=_follow, args=(parent, beat, speaking), daemon=True).start()
    while True:
        try:
            function, argument = pickle.load(calls)
        except EOFError:
            os._exit(0)
        speaking.latest = ""
        try:
            result = function(argument, beat)
        except InvalidInput as error:
            say(REFUSED, str(error))
        except BaseException as error:
            say(RAISED, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        else:
            say(DONE, result)


class _Speaking:
    """What comes next in this process, and what of it was told, and when."""

    latest = sent = ""
    when = 0.0


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Input and output for the calls alone: whatever is printed goes to the error stream."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return calls, answers


def _follow(parent: int, beat: Beat, speaking: _Speaking) -> None:
    """End with the parent, even in an episode that never ends; tell it that kernels are compiled, and the last beat."""
    from hedgerow.compiling.warmup import announcer

    while os.getppid() == parent:
        time.sleep(0.5)
        if announcer.depth:
            beat(COMPILING)
        elif speaking.latest != speaking.sent:
            beat(speaking.latest)
    os._exit(1)
