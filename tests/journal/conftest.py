"""Databases for the tests of journals: SQLite always, and a PostgreSQL of its own where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bench.databases import MissingDatabaseError, temporary_postgresql

pytest.importorskip("sqlalchemy")
_NUMBERS = count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server that lives as long as the tests."""
    try:
        with temporary_postgresql() as url:
            yield url
    except MissingDatabaseError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database; journals in it need names of their own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/site.db"
    address: str = request.getfixturevalue("postgresql")
    return address


@pytest.fixture
def name() -> str:
    """The name of a journal that no other test has."""
    return f"site-{next(_NUMBERS)}"
