"""Harnesses: how the suite makes stores, spoils rows and lets statements fail."""

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol
from uuid import UUID

from sqlalchemy import TextClause, delete, event, select, text
from sqlalchemy.exc import OperationalError

from adapter_core import MemoryAdapterUnavailable
from memory_authority import (
    InMemorySessionStore,
    MemoryTables,
    PostgresSessionStore,
    SessionStore,
    SqliteSessionStore,
    schema,
)
from memory_authority.sql_store import SqlSessionStore

Corruption = Literal["content", "arguments", "call", "message"]
"""What `corrupt_row` does to a session: content or arguments become no JSON; calls or messages go."""

Dump = Mapping[str, Sequence[tuple[Any, ...]]]
"""The rows of every table."""

_NO_JSON = "{no json"


class ManualClock:
    """Seconds that pass only when a test says so."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Give the time."""
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class SessionStoreHarness(Protocol):
    """What the suite needs of a backend.

    Attributes:
        clock: The clock of every store that it makes.
    """

    clock: ManualClock

    async def make(self) -> SessionStore:
        """Make a store that is ready for use, on the one database of the harness."""
        ...

    async def reset(self) -> None:
        """Empty the database."""
        ...

    async def corrupt_row(self, session_id: UUID, what: Corruption) -> None:
        """Spoil stored rows of a session behind the store's back."""
        ...

    def fail_after(self, statements: int | None) -> None:
        """Let the stores fail once, after so many more statements; None: not any more."""
        ...

    async def dump(self) -> Dump:
        """Read all rows behind the store's back."""
        ...

    async def close(self) -> None:
        """Close the stores, and release the database."""
        ...


class Countdown:
    """Fails once, after so many statements."""

    def __init__(self) -> None:
        self.left: int | None = None

    def due(self) -> bool:
        """Whether the statement at hand is the one that fails."""
        if self.left is None:
            return False
        self.left -= 1
        if self.left >= 0:
            return False
        self.left = None
        return True


class _FailingMemoryStore(InMemorySessionStore):
    def __init__(self, tables: MemoryTables, clock: ManualClock, countdown: Countdown) -> None:
        super().__init__(tables, clock=clock)
        self._countdown = countdown

    def _step(self) -> None:
        super()._step()
        if self._countdown.due():
            raise MemoryAdapterUnavailable("a staged failure")


class InMemoryHarness:
    """The store in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._tables = MemoryTables()
        self._countdown = Countdown()

    async def make(self) -> SessionStore:
        """Make a store over the tables that all share."""
        return _FailingMemoryStore(self._tables, self.clock, self._countdown)

    async def reset(self) -> None:
        """Empty the tables."""
        self._tables.sessions.clear()
        self._tables.tombstones.clear()

    async def corrupt_row(self, session_id: UUID, what: Corruption) -> None:
        """Spoil rows of a session."""
        for key, stored in list(self._tables.sessions.items()):
            if key[3] != session_id:
                continue
            if what == "content":
                messages = tuple(one._replace(content=_NO_JSON) for one in stored.messages)
                after = replace(stored, messages=messages)
            elif what == "arguments":
                calls = tuple(one._replace(arguments=_NO_JSON) for one in stored.calls)
                after = replace(stored, calls=calls)
            elif what == "call":
                after = replace(stored, calls=())
            else:
                after = replace(stored, messages=())
            self._tables.sessions[key] = after

    def fail_after(self, statements: int | None) -> None:
        """Let a step fail."""
        self._countdown.left = statements

    async def dump(self) -> Dump:
        """Give all rows."""
        stored = list(self._tables.sessions.values())
        return {
            "authority_session": [tuple(one.row) for one in stored],
            "authority_turn": [tuple(row) for one in stored for row in one.turns],
            "authority_message": [tuple(row) for one in stored for row in one.messages],
            "authority_tool_call": [tuple(row) for one in stored for row in one.calls],
            "authority_trim": [tuple(row) for one in stored for row in one.trims],
            "authority_session_tombstone": sorted(self._tables.tombstones),
        }

    async def close(self) -> None:
        """Nothing to release."""


class SqlHarness:
    """What the harnesses of both databases share.

    Args:
        store: Makes a store on the one database, for a clock.
    """

    def __init__(self, store: Callable[[ManualClock], SqlSessionStore]) -> None:
        self.clock = ManualClock()
        self._store = store
        self._made: list[SqlSessionStore] = []
        self._countdown = Countdown()

    async def make(self) -> SqlSessionStore:
        """Make a store, and the tables if they are missing."""
        store = self._store(self.clock)
        event.listen(store.engine.sync_engine, "before_cursor_execute", self._before_statement)
        event.listen(store.engine.sync_engine, "commit", self._before_statement)
        self._made.append(store)
        await store.migrate()
        return store

    async def reset(self) -> None:
        """Delete all rows."""
        store = await self._any()
        async with store.engine.begin() as connection:
            await connection.execute(delete(schema.session))
            await connection.execute(delete(schema.tombstone))

    async def corrupt_row(self, session_id: UUID, what: Corruption) -> None:
        """Spoil rows of a session, without the foreign keys that forbid it."""
        of_session = (
            "WHERE incarnation IN (SELECT incarnation FROM authority_session WHERE session_id = :session)"
        )
        statements = {
            "content": "UPDATE authority_message SET content = :spoilt ",
            "arguments": "UPDATE authority_tool_call SET arguments = :spoilt ",
            "call": "DELETE FROM authority_tool_call ",
            "message": "DELETE FROM authority_message ",
        }
        await self._unchecked(statements[what] + of_session, session_id)

    @abstractmethod
    async def _unchecked(self, statement: str, session_id: UUID) -> None: ...

    def fail_after(self, statements: int | None) -> None:
        """Let a statement or a commit fail, as if the connection had broken."""
        self._countdown.left = statements

    async def dump(self) -> Dump:
        """Read all rows."""
        store = await self._any()
        found: dict[str, list[tuple[Any, ...]]] = {}
        async with store.engine.connect() as connection:
            for table in schema.TABLES:
                rows = await connection.execute(select(table).order_by(*table.primary_key.columns))
                found[table.name] = [tuple(row) for row in rows]
        return found

    async def close(self) -> None:
        """Close every store that was made."""
        for store in self._made:
            await store.aclose()

    async def _any(self) -> SqlSessionStore:
        return self._made[0] if self._made else await self.make()

    def _before_statement(self, *_: Any) -> None:
        if self._countdown.due():
            raise OperationalError(None, None, sqlite3.OperationalError("a staged failure"))


class SqliteHarness(SqlHarness):
    """A file.

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(lambda clock: SqliteSessionStore(path, clock=clock))
        self._path = path

    async def _unchecked(self, statement: str, session_id: UUID) -> None:
        # a connection of its own checks no foreign keys
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute(statement, {"session": session_id.hex, "spoilt": _NO_JSON})


class PostgresHarness(SqlHarness):
    """A server, as a superuser.

    Args:
        url: Its address; tables are made in the first schema of the search path.
    """

    def __init__(self, url: str) -> None:
        super().__init__(lambda clock: PostgresSessionStore(url, clock=clock, pool_size=4))

    async def _unchecked(self, statement: str, session_id: UUID) -> None:
        store = await self._any()
        clause: TextClause = text(statement)
        given = {"session": session_id} | ({"spoilt": _NO_JSON} if ":spoilt" in statement else {})
        async with store.engine.begin() as connection:
            await connection.execute(text("SET LOCAL session_replication_role = replica"))
            await connection.execute(clause, given)
