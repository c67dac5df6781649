"""Harnesses for the conformance kit: the fake, and SQLite itself on a file.

They have the kit's hooks by shape and do not import it.
"""

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from adapter_core.testing import Engine, Environment, FaultHooks, ImmediateHarness, TransportCall

from . import testing
from .store import SqliteMemoryStore
from .transport import FileTransport

_NAMESPACE = "default"
_GUARD = """
CREATE TRIGGER memory_guard_{verb} BEFORE {verb} ON memory_items
BEGIN SELECT RAISE({effect}); END
"""


class SqliteFakeHarness(FaultHooks, ImmediateHarness):
    """The adapter over `FakeSqlite`."""

    adapter = "sqlite"
    environment: Environment = "fake"
    not_staged: Mapping[str, str] = {}

    def __init__(self) -> None:
        super().__init__()
        self._fake = testing.FakeSqlite()
        self.faults = self._fake.faults

    async def engine(self) -> Engine:
        return Engine("SQLite", _version(), "in memory, in the event loop; faults are injected")

    async def new_store(self, **options: Any) -> SqliteMemoryStore[Any]:
        transport = self._fake.transport()
        return SqliteMemoryStore("fake", transport=transport, **options)

    async def plant_foreign_record(self, item_id: UUID) -> None:
        testing.plant_foreign(self._fake.connection, _NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        testing.plant_malformed(self._fake.connection, _NAMESPACE, item_id)

    async def age_index(self) -> None:
        testing.prepare(self._fake.connection, _NAMESPACE)
        testing.age_index(self._fake.connection)

    async def degrade(self) -> None:
        """Another release takes the namespace over."""
        testing.age_index(self._fake.connection)

    async def reset(self) -> None:
        self.faults.reset()
        testing.prepare(self._fake.connection, _NAMESPACE)
        testing.empty(self._fake.connection)

    async def close(self) -> None:
        await self.close_stores()
        self._fake.close()


class SqliteEmbeddedHarness(ImmediateHarness):
    """The adapter over a file in a folder of its own. Every fault is a real one."""

    adapter = "sqlite"
    environment: Environment = "embedded"
    not_staged: Mapping[str, str] = {
        "hold_search_index": "the index is updated in the transaction of the write"
    }

    def __init__(self) -> None:
        super().__init__()
        self._root = TemporaryDirectory(prefix="adapter-sqlite-")
        self._folder = Path(self._root.name, "data")
        self._away = Path(self._root.name, "away")
        self._path = self._folder / "memory.db"
        self._folder.mkdir()
        self._calls: list[TransportCall] = []

    async def engine(self) -> Engine:
        return Engine("SQLite", _version())

    async def new_store(self, **options: Any) -> SqliteMemoryStore[Any]:
        transport = testing.RecordingTransport(FileTransport(str(self._path)), self._calls)
        return SqliteMemoryStore(self._path, transport=transport, **options)

    def transport_calls(self) -> Sequence[TransportCall]:
        return self._calls

    async def make_transport_unavailable(self) -> None:
        self._folder.rename(self._away)

    async def make_transport_available(self) -> None:
        self._give_folder_back()

    async def plant_foreign_record(self, item_id: UUID) -> None:
        with self._connection() as connection:
            testing.plant_foreign(connection, _NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        with self._connection() as connection:
            testing.plant_malformed(connection, _NAMESPACE, item_id)

    async def refuse_writes(self, refuse: bool) -> None:
        self._guard("ABORT, 'refused'", refuse)

    async def drop_identity(self, drop: bool) -> None:
        self._guard("IGNORE", drop)

    async def refuse_queries(self, refuse: bool) -> None:
        with self._connection() as connection:
            _give_index_back(connection)
            if refuse:
                connection.execute("ALTER TABLE memory_index RENAME TO memory_index_away")

    async def age_index(self) -> None:
        with self._connection() as connection:
            testing.age_index(connection)

    async def degrade(self) -> None:
        """Another file takes the place of the database."""
        self._folder.rename(self._away)
        self._folder.mkdir()
        self._path.touch()

    async def reset(self) -> None:
        self._give_folder_back()
        self._guard("", False)
        with self._connection() as connection:
            _give_index_back(connection)
            testing.empty(connection)

    async def close(self) -> None:
        self._give_folder_back()
        await self.close_stores()
        self._root.cleanup()

    def _give_folder_back(self) -> None:
        if self._away.exists():
            if self._folder.exists():
                rmtree(self._folder)
            self._away.rename(self._folder)

    def _guard(self, effect: str, on: bool) -> None:
        with self._connection() as connection:
            for verb in ("INSERT", "UPDATE"):
                connection.execute(f"DROP TRIGGER IF EXISTS memory_guard_{verb}")
                if on:
                    connection.execute(_GUARD.format(verb=verb, effect=effect))

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            testing.prepare(connection, _NAMESPACE)
            yield connection


def _give_index_back(connection: sqlite3.Connection) -> None:
    moved = "SELECT count(*) FROM sqlite_master WHERE name = 'memory_index_away'"
    if connection.execute(moved).fetchone()[0]:
        connection.execute("ALTER TABLE memory_index_away RENAME TO memory_index")


def _version() -> str:
    with closing(sqlite3.connect(":memory:")) as connection:
        version: str = connection.execute("SELECT sqlite_version()").fetchone()[0]
    return version


HARNESSES = (SqliteFakeHarness, SqliteEmbeddedHarness)
