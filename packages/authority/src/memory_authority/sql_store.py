"""Session stores on SQLite and Postgres: one code, two engines."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from . import engines, operations, schema
from .errors import AuthorityError
from .rows import encode_turn
from .rules import check_key, check_limit, check_time
from .scope import Scope, SessionMode
from .sessions import ExpiryReport, SessionList
from .transcript import SessionInfo, Transcript, TrimReport, Turn
from .trimming import Limits

ResultT = TypeVar("ResultT")
Clock = Callable[[], float]
Uuids = list[UUID]

MEMORY = ":memory:"


class SqlSessionStore:
    """What the two stores share. Each operation is one transaction on one connection.

    Several tasks of one event loop may use a store at once. Nothing is retried.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        native: engines.Errors,
        reading: dict[str, Any],
        writing: dict[str, Any],
        finishes: bool,
        owned: bool,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._native: engines.Errors = (*native, SQLAlchemyError, OSError, TimeoutError)
        self._reader = engine.execution_options(**reading)
        self._writer = engine.execution_options(**writing)
        # on SQLite: a statement runs on a thread, where nothing interrupts it; and writers of one
        # process queue here, where none starves as in SQLite's own waiting
        self._finishes = finishes
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self._owned = owned
        self._clock = clock
        self._checked = False
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        """Name the store; the address may hold a password."""
        return f"<{type(self).__name__}>"

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for an operator's own statements. Its transactions are not this store's."""
        return self._engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Connect, and see that the tables are there. The first operation does it otherwise.

        Raises:
            SchemaMismatch: They are missing, older or newer.
        """
        await self._run(self._reader, schema.check)
        self._checked = True

    async def migrate(self) -> None:
        """Make the tables, or bring older ones to this release's version. Nothing is dropped.

        Safe while other processes do the same, and without effect when all is there.

        Raises:
            SchemaMismatch: The tables are newer, or another program's have their names.
        """
        self._checked = True
        try:
            await self._write(schema.migrate)
        except BaseException:
            self._checked = False
            raise

    async def aclose(self) -> None:
        """Close the connections. Idempotent; an engine that was given stays open."""
        if self._closed:
            return
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)
        if self._owned:
            await self._engine.dispose()

    async def create(
        self,
        scope: Scope,
        mode: SessionMode,
        *,
        session_id: UUID | None = None,
        external_key: str | None = None,
    ) -> SessionInfo:
        """Create or resume a session; see `SessionStore`."""
        key = check_key(external_key)
        now = self._clock()
        return await self._write(
            lambda one: operations.create(one, scope, SessionMode(mode), session_id, key, now)
        )

    async def get(self, scope: Scope, session_id: UUID) -> SessionInfo | None:
        """Give the session, or None; see `SessionStore`."""
        return await self._read(lambda one: operations.get(one, scope, session_id))

    async def list(
        self, scope: Scope, *, limit: int = 50, before: float | None = None, include_closed: bool = False
    ) -> SessionList:
        """Give sessions, the most recently active first; see `SessionStore`."""
        check_limit("limit", limit)
        check_time("before", before)
        return await self._read(
            lambda one: operations.list_sessions(one, scope, limit, before, include_closed=include_closed)
        )

    async def append(
        self,
        scope: Scope,
        session_id: UUID,
        turn: Turn,
        *,
        expected_version: int | None = None,
        incarnation: UUID | None = None,
    ) -> SessionInfo:
        """Append a turn, whole or not at all; see `SessionStore`."""
        encoded = encode_turn(turn)
        now = self._clock()
        return await self._write(
            lambda one: operations.append(one, scope, session_id, encoded, expected_version, incarnation, now)
        )

    async def load(self, scope: Scope, session_id: UUID, *, last_turns: int | None = None) -> Transcript:
        """Give the transcript as it goes to the model; see `SessionStore`."""
        check_limit("last_turns", last_turns)
        return await self._read(lambda one: operations.load(one, scope, session_id, last_turns))

    async def trim(
        self,
        scope: Scope,
        session_id: UUID,
        *,
        keep_turns: int | None = None,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        erase: bool = False,
        dry_run: bool = False,
    ) -> TrimReport:
        """Hide the oldest whole turns; see `SessionStore`."""
        limits = Limits(keep_turns, max_messages, max_tokens)
        now = self._clock()
        return await (self._read if dry_run else self._write)(
            lambda one: operations.trim(one, scope, session_id, limits, now, erase=erase, dry_run=dry_run)
        )

    async def close(self, scope: Scope, session_id: UUID) -> bool:
        """Close the session; see `SessionStore`. The store itself is closed by `aclose`."""
        now = self._clock()
        return await self._write(lambda one: operations.close(one, scope, session_id, now))

    async def delete(self, scope: Scope, session_id: UUID, *, incarnation: UUID | None = None) -> bool:
        """Delete the session; see `SessionStore`."""
        now = self._clock()
        return await self._write(lambda one: operations.delete(one, scope, session_id, incarnation, now))

    async def expire(self, scope: Scope, *, before: float, dry_run: bool = True) -> ExpiryReport:
        """Remove what is older than a time; see `SessionStore`."""
        check_time("before", before)
        now = self._clock()
        run = self._read if dry_run else self._write
        gone: Uuids = []
        turns = 0
        for session_id in await self._read(lambda one: operations.started_before(one, scope, before)):
            whole, older = await run(
                partial(
                    operations.expire,
                    scope=scope,
                    session_id=session_id,
                    before=before,
                    now=now,
                    dry_run=dry_run,
                )
            )
            turns += older
            if whole:
                gone.append(session_id)
        return ExpiryReport(before=before, sessions=tuple(gone), turns=turns, dry_run=dry_run)

    # Transactions

    async def _read(self, body: Callable[[Connection], ResultT]) -> ResultT:
        if not self._checked:
            await self.open()
        return await self._run(self._reader, body)

    async def _write(self, body: Callable[[Connection], ResultT]) -> ResultT:
        if not self._checked:
            await self.open()
        return await self._run(self._writer, body, write=True)

    async def _run(
        self, engine: AsyncEngine, body: Callable[[Connection], ResultT], *, write: bool = False
    ) -> ResultT:
        self._check_usable()
        if not self._finishes:
            return await self._transact(engine, body, write=write)
        if write:
            await self._turn.acquire()
            if self._closed:
                self._turn.release()
                self._check_usable()
        task = asyncio.create_task(self._transact(engine, body, write=write))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if write:
            task.add_done_callback(lambda _: self._turn.release())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # what has begun ends before anybody can look: whole, or not at all
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # nobody else will ask for it
            raise

    async def _transact(
        self, engine: AsyncEngine, body: Callable[[Connection], ResultT], *, write: bool
    ) -> ResultT:
        committing = False
        try:
            # begin, and not connect and commit: it rolls back after a commit that failed, too
            async with engine.begin() as connection:
                result = await connection.run_sync(body)
                committing = write
        except MemoryAdapterError:
            raise
        except self._native as error:
            raise self._mapped(error, outcome_unknown=committing) from error
        return result

    def _mapped(self, error: Exception, *, outcome_unknown: bool) -> MemoryAdapterError:
        if not engines.is_unavailable(error):
            return AuthorityError(f"the database refused ({engines.what(error)}); nothing was done")
        done = "it may have been done" if outcome_unknown else "nothing was done"
        return MemoryAdapterUnavailable(
            f"the database is unavailable ({engines.what(error)}); {done}", outcome_unknown=outcome_unknown
        )

    def _check_usable(self) -> None:
        if self._closed:
            raise MemoryAdapterUnavailable("the session store is closed")
        running = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = running
        elif self._loop is not running:
            raise AuthorityError("a session store serves the event loop of its first call only")


class SqliteSessionStore(SqlSessionStore):
    """Sessions in one SQLite file: the embedded default.

    The constructor does no I/O. The journal is a write-ahead log, and a commit is flushed: what was
    acknowledged survives a power cut. Writes take the write lock when they begin.

    Args:
        path: The file; its folder must be there. A database in memory is refused: use
            `InMemorySessionStore`.
        busy_timeout: Seconds to wait while another process writes.
        pool_size: How many connections are opened at most.
        clock: Gives the seconds since 1970 in UTC.

    Raises:
        ValueError: The path is no file's.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout: float = engines.BUSY_TIMEOUT,
        pool_size: int = engines.POOL_SIZE,
        clock: Clock = time.time,
    ) -> None:
        if os.fspath(path) in {"", MEMORY}:
            raise ValueError("a file is needed; InMemorySessionStore keeps sessions in memory")
        super().__init__(
            engines.sqlite_engine(path, busy_timeout, pool_size),
            native=engines.sqlite_errors(),
            reading={engines.BEGIN: "DEFERRED"},
            writing={engines.BEGIN: "IMMEDIATE"},
            finishes=True,
            owned=True,
            clock=clock,
        )


class PostgresSessionStore(SqlSessionStore):
    """Sessions on a Postgres server, for several processes. Needs the extra `[postgres]`.

    The constructor does no I/O. The tables stand in the first schema of the connection's
    `search_path`, which the URL may set: `?search_path=agent_memory`.

    Args:
        url: A `postgresql://` URL, as asyncpg reads it; or an engine of SQLAlchemy over asyncpg,
            which is never closed. Make one with `hide_parameters=True`, or its log may show contents.
        pool_size: How many connections are opened at most.
        clock: Gives the seconds since 1970 in UTC.
    """

    def __init__(
        self,
        url: str | AsyncEngine,
        *,
        pool_size: int = engines.POOL_SIZE,
        clock: Clock = time.time,
    ) -> None:
        given = isinstance(url, AsyncEngine)
        super().__init__(
            url if isinstance(url, AsyncEngine) else engines.postgres_engine(url, pool_size),
            native=engines.postgres_errors(),
            # all that one load reads is of one moment
            reading={"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
            writing={"isolation_level": "READ COMMITTED"},
            finishes=False,
            owned=not given,
            clock=clock,
        )
