"""For tests: a database in this process with faults to switch on, and a recorder of calls.

fake = FakeSqlite()
store = SqliteMemoryStore(":memory:", transport=fake.transport())
fake.faults.down = True
"""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self, TypeVar
from uuid import UUID

from adapter_core import TERMS_VERSION, namespace_token
from adapter_core.testing import OPERATION_KINDS, Faults, TransportCall

from . import schema, statements
from .threads import Work
from .transport import Transport, transaction

T = TypeVar("T")

_IGNORE = """
CREATE TEMP TRIGGER memory_ignore_{verb} BEFORE {verb} ON main.memory_items
BEGIN SELECT RAISE(IGNORE); END
"""


def unavailable() -> sqlite3.OperationalError:
    """Make the error that SQLite gives when it cannot open the file."""
    return _error(sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN, "unable to open database file")


def refused() -> sqlite3.IntegrityError:
    """Make the error that SQLite gives when a trigger or a constraint refuses a write."""
    return _error(sqlite3.IntegrityError, sqlite3.SQLITE_CONSTRAINT, "constraint failed")


ErrorT = TypeVar("ErrorT", bound=sqlite3.Error)


def _error(kind: type[ErrorT], code: int, text: str) -> ErrorT:
    error = kind(text)
    error.sqlite_errorcode = code
    return error


class _Trace:
    """The SQL that was run for one call, values filled in."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def of(self, work: Work[T]) -> Work[T]:
        """Make work tell its SQL."""

        def run(connection: sqlite3.Connection) -> T:
            connection.set_trace_callback(self.statements.append)
            try:
                return work(connection)
            finally:
                connection.set_trace_callback(None)

        return run


@contextmanager
def _logged(calls: list[TransportCall], operation: str) -> Generator[_Trace]:
    """Log one call when it ends, however it does."""
    trace = _Trace()
    try:
        yield trace
    finally:
        kind = OPERATION_KINDS.get(operation, "other")
        calls.append(TransportCall(operation, kind, "\n".join(trace.statements)))


class RecordingTransport:
    """Hands every call on to another transport, and logs it.

    Args:
        inner: The transport that does the work.
        calls: Where the calls are appended as they end.
    """

    def __init__(self, inner: Transport, calls: list[TransportCall]) -> None:
        self._inner = inner
        self._calls = calls

    async def open(self, setup: Work[None]) -> None:
        with _logged(self._calls, "open") as trace:
            await self._inner.open(trace.of(setup))

    async def read(self, operation: str, work: Work[T]) -> T:
        with _logged(self._calls, operation) as trace:
            return await self._inner.read(operation, trace.of(work))

    async def write(self, operation: str, work: Work[T]) -> T:
        with _logged(self._calls, operation) as trace:
            return await self._inner.write(operation, trace.of(work))

    async def close(self) -> None:
        await self._inner.close()


class FakeSqlite:
    """One database that many stores can use through `transport()`, without file and threads.

    It runs the adapter's own SQL. Each call gives way to the event loop once before and once
    after its work, so that a cancellation can strike on either side of the commit.

    Attributes:
        faults: Switches that make it misbehave, and the log of calls.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self._connection = _memory()
        self._held: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The database itself, for staging what a store should meet."""
        return self._connection

    def transport(self) -> "FakeTransport":
        """Make a transport for one store."""
        return FakeTransport(self)

    def close(self) -> None:
        """Let the database go."""
        self._release()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def perform(self, operation: str, work: Work[T]) -> T:
        """Run work as the faults allow; for the transports of this fake."""
        self._hold_or_release()
        kind = OPERATION_KINDS.get(operation, "other")
        if self.faults.down:
            raise unavailable()
        if kind == "write" and self.faults.refuse_writes:
            raise refused()
        if kind == "search" and self.faults.refuse_queries:
            raise _error(sqlite3.OperationalError, sqlite3.SQLITE_ERROR, "no such table")
        if self._held is not None:
            if kind == "search":
                return work(self._held)
            if operation == "open":
                work(self._held)  # a namespace made since then is there, and empty
        if kind == "write" and self.faults.drop_identity:
            return self._ignoring(work)
        return work(self._connection)

    def _ignoring(self, work: Work[T]) -> T:
        for verb in ("INSERT", "UPDATE"):
            self._connection.execute(_IGNORE.format(verb=verb))
        try:
            return work(self._connection)
        finally:
            for verb in ("INSERT", "UPDATE"):
                self._connection.execute(f"DROP TRIGGER temp.memory_ignore_{verb}")

    def _hold_or_release(self) -> None:
        if not self.faults.hold_index:
            self._release()
        elif self._held is None:
            self._held = _memory()
            self._connection.backup(self._held)

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class FakeTransport:
    """The way of one store to a `FakeSqlite`."""

    def __init__(self, service: FakeSqlite) -> None:
        self._service = service

    async def open(self, setup: Work[None]) -> None:
        await self._run("open", setup)

    async def read(self, operation: str, work: Work[T]) -> T:
        return await self._run(operation, work)

    async def write(self, operation: str, work: Work[T]) -> T:
        def transact(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return await self._run(operation, transact)

    async def close(self) -> None:
        pass  # the database belongs to the service

    async def _run(self, operation: str, work: Work[T]) -> T:
        await asyncio.sleep(0)
        with _logged(self._service.faults.calls, operation) as trace:
            result = self._service.perform(operation, trace.of(work))
        await asyncio.sleep(0)
        return result


# Staging, on any connection to a database of the adapter


def prepare(connection: sqlite3.Connection, namespace: str) -> int:
    """Make the tables and the namespace if they are not there; the namespace's number."""
    schema.prepare(connection, namespace, schema.signature_text(schema.SIGNATURE))
    row = connection.execute(
        "SELECT ns FROM memory_namespaces WHERE name = ?", (namespace_token(namespace),)
    ).fetchone()
    number: int = row[0]
    return number


def plant_foreign(connection: sqlite3.Connection, namespace: str, item_id: UUID) -> None:
    """Put a row that is not the adapter's where the item with this id would be."""
    connection.execute(
        "INSERT INTO memory_items VALUES (NULL, ?, ?, 0.0, 0, 'foreign', '{}', '', 'foreign') "
        "ON CONFLICT (ns, id) DO UPDATE SET marker = 'foreign', document = 'foreign'",
        (prepare(connection, namespace), item_id.bytes),
    )


def plant_malformed(connection: sqlite3.Connection, namespace: str, item_id: UUID) -> None:
    """Damage the document of a stored item."""
    connection.execute(
        "UPDATE memory_items SET document = '{' WHERE ns = ? AND id = ?",
        (prepare(connection, namespace), item_id.bytes),
    )


def age_index(connection: sqlite3.Connection) -> None:
    """Let every namespace remember another version of the term rules."""
    aged = schema.signature_text({**schema.SIGNATURE, "terms": str(TERMS_VERSION + 1)})
    with transaction(connection):
        connection.execute("UPDATE memory_namespaces SET indexed_as = ?", (aged,))
        connection.execute("UPDATE memory_items SET indexed_as = ?", (aged,))


def empty(connection: sqlite3.Connection) -> None:
    """Remove every item of every namespace, foreign rows too, and the memory of other rules."""
    ours = schema.signature_text(schema.SIGNATURE)
    with transaction(connection):
        connection.execute(statements.UNINDEX_ALL)
        connection.execute("DELETE FROM memory_items")
        connection.execute("UPDATE memory_namespaces SET indexed_as = ?", (ours,))


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)
