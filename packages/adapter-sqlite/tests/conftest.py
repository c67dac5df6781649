"""Stores over the fake and over a file, closed when the test ends."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter_sqlite import SqliteMemoryStore
from adapter_sqlite.testing import FakeSqlite

Make = Callable[..., SqliteMemoryStore[Any]]


@pytest.fixture
def fake() -> Iterator[FakeSqlite]:
    with FakeSqlite() as service:
        yield service


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def on_file(path: Path) -> AsyncIterator[Make]:
    made: list[SqliteMemoryStore[Any]] = []

    def make(**options: Any) -> SqliteMemoryStore[Any]:
        made.append(SqliteMemoryStore(path, **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture
async def on_fake(fake: FakeSqlite) -> AsyncIterator[Make]:
    made: list[SqliteMemoryStore[Any]] = []

    def make(**options: Any) -> SqliteMemoryStore[Any]:
        made.append(SqliteMemoryStore("fake", transport=fake.transport(), **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture(params=["fake", "file"])
def make(request: pytest.FixtureRequest) -> Make:
    """Make stores that share one database."""
    found: Make = request.getfixturevalue(f"on_{request.param}")
    return found
