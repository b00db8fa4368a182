"""Where a journal is kept: one schema for SQLite and PostgreSQL, by SQLAlchemy Core. Rows are only ever inserted.

One process at a time writes to a journal; others may read it meanwhile. The lock of the writer ends with its process,
so that another one can go on: on SQLite it is a transaction on a small file beside the database, on PostgreSQL an
advisory lock of the writer's connection, which the server notices to be dead at once if the process was killed, and
after half a minute if its machine vanished. On SQLite the database is in WAL mode; `durability="full"` waits for the
disk at every commit, "normal" may lose the last commits when the power fails, never when a process dies.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.checks import short_repr
from hedgerow.errors import InvalidInput, JournalError
from hedgerow.journal.events import Event

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:  # pragma: no cover - the message is all there is
    raise ModuleNotFoundError("a journal needs SQLAlchemy: pip install 'hedgerow[journal]'") from error

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

SCHEMA_VERSION = 1
CHUNK = 2_000
"""Events that are fetched at once"""
LOOK_EVERY = 0.05
"""Seconds between two looks at a lock that another process holds"""
_KEEPALIVES = {"idle": 10, "interval": 5, "count": 4}
"""Both sides of a connection to PostgreSQL take it for dead after 30 s without an answer"""
POSTGRESQL_OPTIONS = {
    "connect_timeout": 10,
    **{f"keepalives_{name}": value for name, value in _KEEPALIVES.items()},
    "options": " ".join(f"-c tcp_keepalives_{name}={value}" for name, value in _KEEPALIVES.items())
    + " -c lock_timeout=10s",
}
"""Unless the address of the database says otherwise; with these nothing waits for ever"""
Durability = Literal["full", "normal"]
_METADATA = sa.MetaData()
_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JOURNALS = sa.Table(
    "hedgerow_journals",
    _METADATA,
    sa.Column("journal", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
)
EVENTS = sa.Table(
    "hedgerow_events",
    _METADATA,
    sa.Column("journal", sa.Integer, sa.ForeignKey(JOURNALS.c.journal), primary_key=True),
    sa.Column("number", _WHOLE, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("decision", sa.String(200)),
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("clock", sa.Float(53), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Index("hedgerow_decisions", "journal", "decision"),
)
SNAPSHOTS = sa.Table(
    "hedgerow_snapshots",
    _METADATA,
    sa.Column("journal", sa.Integer, sa.ForeignKey(JOURNALS.c.journal), primary_key=True),
    sa.Column("number", _WHOLE, primary_key=True, autoincrement=False),
    sa.Column("meta", sa.Text, nullable=False),
    sa.Column("learner", sa.LargeBinary, nullable=False),
)
LOGS = sa.Table(
    "hedgerow_logs",
    _METADATA,
    sa.Column("journal", sa.Integer, sa.ForeignKey(JOURNALS.c.journal), primary_key=True),
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
_COLUMNS = [EVENTS.c[name] for name in Event._fields]
_ADD_EVENT = sa.insert(EVENTS)  # the statements of every call are made once: to make them takes longer than to run them
OF_DECISION = sa.select(*_COLUMNS).where(
    EVENTS.c.journal == sa.bindparam("journal"), EVENTS.c.decision == sa.bindparam("decision")
)
"""Without an order: for that of the numbers SQLite would go through the whole journal, by its primary key"""


class Store:
    """One journal in a database; the writer holds its lock until `close`."""

    def __init__(self, url: str, name: str, *, durability: Durability = "full", writes: bool = True) -> None:
        self.name = checked_name(name)
        self.engine = make_engine(url, durability)
        self.journal, self.settings = -1, "{}"
        self._connection: Connection | None = None
        self._lock: sqlite3.Connection | None = None
        self._writes = writes

    @property
    def deadline(self) -> float | None:
        """The seconds after which an outcome that has not come is unknown."""
        found: float | None = json.loads(self.settings)["deadline"]
        return found

    @property
    def connection(self) -> Connection:
        """The connection of this journal; its transaction begins with the first statement."""
        if self._connection is None:
            self._connection = self.engine.connect()
        return self._connection

    def create(self, settings: str, meta: str, learner: bytes) -> None:
        """Make the tables that are missing, and a new journal with its first snapshot."""
        with self.transaction():
            _METADATA.create_all(self.connection)
            if self._find() is not None:
                raise InvalidInput(f"there is a journal {self.name!r} already; Journal.open goes on with it")
            made = self.connection.execute(
                sa.insert(JOURNALS).values(name=self.name, schema_version=SCHEMA_VERSION, settings=settings)
            )
            assert made.inserted_primary_key is not None
            self.journal, self.settings = int(made.inserted_primary_key[0]), settings
            self.add_snapshot(0, meta, learner)
        self._take_lock()

    def open(self, wait: float = 0.0) -> None:
        """Find the journal, and take its lock if this process is to write, for which it waits so many seconds."""
        database = self.engine.url.database
        if self.engine.dialect.name == "sqlite" and not Path(str(database)).is_file():  # which SQLite would make
            raise InvalidInput(f"there is no database {database}; Journal.create makes one")
        with self.transaction():
            found = self._find() if sa.inspect(self.connection).has_table(JOURNALS.name) else None
        if found is None:
            raise InvalidInput(f"there is no journal {self.name!r} in this database; Journal.create makes one")
        if found.schema_version != SCHEMA_VERSION:
            raise JournalError(
                f"the journal {self.name!r} has the schema version {found.schema_version}; this release reads version "
                f"{SCHEMA_VERSION}"
            )
        self.journal, self.settings = int(found.journal), str(found.settings)
        if self._writes:
            self._take_lock(wait)

    def _find(self) -> Any:
        return self.connection.execute(sa.select(JOURNALS).where(JOURNALS.c.name == self.name)).one_or_none()

    def _take_lock(self, wait: float = 0.0) -> None:
        until = time.monotonic() + wait
        while not self._try_lock():
            left = until - time.monotonic()
            if left <= 0.0:
                self.close()
                raise JournalError(f"another process writes to the journal {self.name!r}; one does at a time")
            time.sleep(min(LOOK_EVERY, left))

    def _try_lock(self) -> bool:
        if self.engine.dialect.name != "sqlite":
            with self.transaction():
                return bool(self.connection.scalar(sa.select(sa.func.pg_try_advisory_lock(self._key))))
        if self._lock is None:
            path = f"{self.engine.url.database}.{self.journal}.lock"
            self._lock = sqlite3.connect(path, isolation_level=None, timeout=0.0, check_same_thread=False)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        return True

    @property
    def _key(self) -> int:
        """The number of the advisory lock on PostgreSQL."""
        digest = hashlib.sha256(f"hedgerow {self.name}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside becomes durable together, or not at all."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
            self.connection.commit()
        except SQLAlchemyError as error:
            self._forget()
            raise JournalError(
                f"the database of the journal {self.name!r} failed, and nothing was recorded: "
                f"{str(error).splitlines()[0]}"
            ) from error
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        """Undo what was not committed; a broken connection is given up, and with it the lock on PostgreSQL."""
        from sqlalchemy.exc import SQLAlchemyError

        connection = self._connection
        if connection is None:
            return
        try:
            connection.rollback()
        except SQLAlchemyError:
            connection.invalidate()
        if connection.invalidated:
            connection.close()
            self._connection = None

    @property
    def is_broken(self) -> bool:
        """Whether the connection was lost, and on PostgreSQL the lock with it."""
        return self._connection is None

    def reopen(self) -> None:
        """Connect again after the connection was lost, and take the lock again."""
        if self.engine.dialect.name != "sqlite":
            self._take_lock()

    def append(self, event: Event) -> None:
        """Insert an event."""
        self.connection.execute(_ADD_EVENT, {"journal": self.journal, **event._asdict()})

    def events(self, after: int = 0, kinds: tuple[str, ...] = ()) -> Iterator[Event]:
        """The events after the one of this number, in their order."""
        while True:
            wanted = sa.select(*_COLUMNS).where(EVENTS.c.journal == self.journal, EVENTS.c.number > after)
            if kinds:
                wanted = wanted.where(EVENTS.c.kind.in_(kinds))
            found = self.connection.execute(wanted.order_by(EVENTS.c.number).limit(CHUNK)).all()
            yield from (Event(*row) for row in found)
            if len(found) < CHUNK:
                return
            after = found[-1].number

    def last_number(self) -> int:
        """The number of the last event."""
        wanted = sa.select(sa.func.max(EVENTS.c.number)).where(EVENTS.c.journal == self.journal)
        return int(self.connection.scalar(wanted) or 0)

    def of_decision(self, decision: str) -> list[Event]:
        """The events of one decision, in their order."""
        wanted = {"journal": self.journal, "decision": decision}
        return sorted(Event(*row) for row in self.connection.execute(OF_DECISION, wanted))

    def newest(self, kind: str, count: int, skip: int = 0) -> list[Event]:
        """The last events of a kind, the newest first, but for so many."""
        wanted = sa.select(*_COLUMNS).where(EVENTS.c.journal == self.journal, EVENTS.c.kind == kind)
        wanted = wanted.order_by(EVENTS.c.number.desc()).limit(count).offset(skip)
        return [Event(*row) for row in self.connection.execute(wanted)]

    def add_snapshot(self, number: int, meta: str, learner: bytes) -> None:
        """Insert the state after the event of this number."""
        row = {"journal": self.journal, "number": number, "meta": meta, "learner": learner}
        self.connection.execute(sa.insert(SNAPSHOTS).values(**row))

    def snapshot(self, number: int | None = None) -> Any:
        """The snapshot after the event of this number, or the last one: (number, meta, learner)."""
        found = sa.select(*SNAPSHOTS.c["number", "meta", "learner"]).where(SNAPSHOTS.c.journal == self.journal)
        if number is not None:
            found = found.where(SNAPSHOTS.c.number == number)
        return self.connection.execute(found.order_by(SNAPSHOTS.c.number.desc()).limit(1)).one()

    def snapshot_numbers(self) -> set[int]:
        """The numbers of the events after which there is a snapshot."""
        return set(self.connection.scalars(sa.select(SNAPSHOTS.c.number).where(SNAPSHOTS.c.journal == self.journal)))

    def add_log(self, digest: str, content: bytes) -> None:
        """Keep the content of a log, once."""
        if self.log(digest) is None:
            row = {"journal": self.journal, "digest": digest, "content": content}
            self.connection.execute(sa.insert(LOGS).values(**row))

    def log(self, digest: str) -> bytes | None:
        """The content of a log."""
        wanted = sa.select(LOGS.c.content).where(LOGS.c.journal == self.journal, LOGS.c.digest == digest)
        return self.connection.scalar(wanted)

    def close(self) -> None:
        """Give the lock back."""
        if self._connection is not None:
            with suppress(Exception):
                if self._writes and self.engine.dialect.name != "sqlite":  # at once, not when the server sees the end
                    self._connection.rollback()
                    self._connection.execute(sa.select(sa.func.pg_advisory_unlock(self._key)))
                self._connection.close()
            self._connection = None
        self.engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def checked_name(name: Any) -> str:
    """The name of a journal or of a decision."""
    if not isinstance(name, str) or not 1 <= len(name) <= 200 or not name.isprintable():
        raise InvalidInput(f"a name has 1 to 200 printable characters; this is {short_repr(name)}")
    return name


def make_engine(url: str, durability: str) -> Engine:
    """The engine of a database; SQLite and PostgreSQL are supported."""
    if durability not in ("full", "normal"):
        raise InvalidInput(f"durability is {short_repr(durability)}; choose 'full' or 'normal'")
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{short_repr(url)} is not the address of a database: sqlite:///file.db or postgresql://user@host/name"
        ) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite" and parsed.database and parsed.database != ":memory:":
        engine = sa.create_engine(parsed, connect_args={"check_same_thread": False, "timeout": 10.0})
        sa.event.listen(engine, "connect", _prepare_sqlite(durability))
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    if backend == "postgresql":
        if "+" not in parsed.drivername:
            parsed = parsed.set(drivername="postgresql+psycopg")
        try:
            chosen = {name: value for name, value in POSTGRESQL_OPTIONS.items() if name not in parsed.query}
            engine = sa.create_engine(parsed, connect_args=chosen)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "PostgreSQL needs psycopg: pip install 'hedgerow[journal]' 'psycopg[binary]'"
            ) from error
        if durability == "normal":
            sa.event.listen(engine, "connect", _relax_postgresql)
        return engine
    raise InvalidInput(f"a journal is kept by SQLite, in a file, or by PostgreSQL, not by {short_repr(url)}")


def _prepare_sqlite(durability: str) -> Any:
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        for pragma in ("journal_mode = WAL", f"synchronous = {durability.upper()}", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    return prepare


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _relax_postgresql(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO off")
    connection.commit()
