"""A PostgreSQL of its own for benchmarks and tests: on a free port of this machine, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

SECONDS = 60
"""After which a command of PostgreSQL counts as one that hangs"""


class MissingDatabaseError(Exception):
    """There is no PostgreSQL here; the message says what to install."""


@contextmanager
def temporary_postgresql(*, fsync: bool = False) -> Iterator[str]:
    """The address of a server that lives as long as the block; it refuses to run as root.

    Args:
        fsync: Whether it waits for the disk, as in service.
    """
    binaries = _binaries()
    if binaries is None:
        raise MissingDatabaseError("PostgreSQL is not installed (apt install postgresql)")
    if find_spec("psycopg") is None:
        raise MissingDatabaseError("psycopg is not installed (pip install 'psycopg[binary]')")
    as_user: list[str] = []
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            raise MissingDatabaseError("PostgreSQL does not run as root, and there is no user postgres") from None
        as_user = ["runuser", "-u", "postgres", "--"]
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-pg-"))
    folder.chmod(0o777)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"

    def call(*words: str) -> None:
        command = [*as_user, *words]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, cwd="/")

    try:
        call(str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        options += f" -c fsync={'on' if fsync else 'off'}"
        call(str(binaries / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            call(str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    path = shutil.which("initdb")
    return None if path is None else Path(path).parent
