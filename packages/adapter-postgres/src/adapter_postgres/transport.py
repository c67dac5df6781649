"""The way to Postgres: a narrow protocol, and the real one on connections of our own or a pool."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from .limits import Gate, Watch
from .settings import PostgresSettings

if TYPE_CHECKING:
    from .client import Connection, Pool

T = TypeVar("T")
Row = Sequence[Any]

CLOSE_TIMEOUT = 5.0
"""Seconds that the server has to end a connection, and what still runs on it, in good order."""


class Statement(NamedTuple):
    """One of the adapter's statements.

    Attributes:
        name: For those who record or interpret it.
        sql: What the server runs.
        shape: Which of its optional parameters it has.
        writes: Whether it changes items.
    """

    name: str
    sql: str
    shape: "Shape" = (False, 0, 0)
    writes: bool = False


Shape = tuple[bool, int, int]
"""Of a search: whether it has required tokens, how many groups of tokens, and how many terms."""


class Session(Protocol):
    """Something that runs statements.

    An error of the server is raised with its five-letter code as `sqlstate`.
    """

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        """Run one statement, as a transaction of its own unless it is part of one."""
        ...

    async def transact(self, operation: str, work: "Work[T]") -> T:
        """Run several statements in one transaction, read committed; it is undone if one fails."""
        ...


Work = Callable[[Session], Awaitable[T]]


class Transport(Session, Protocol):
    """What the driver needs of Postgres."""

    async def open(self, setup: Work[None]) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        ...

    async def close(self) -> None:
        """Close every connection. It may be called again."""
        ...


class _Bound:
    """A session on one connection."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        return await self._connection.run(statement.sql, *arguments)

    async def transact(self, operation: str, work: Work[T]) -> T:  # noqa: ARG002 - for recorders
        await self._connection.run("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            result = await work(self)
        except Exception:
            await self._connection.roll_back()
            raise
        await self._connection.run("COMMIT")
        return result


class _Leasing(ABC):
    """What both transports share: each call borrows a connection for its duration.

    A connection whose call was cancelled or timed out is given up: closed on the side, which also ends
    what still runs on it.
    """

    def __init__(self) -> None:
        self._ending: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def take(self) -> "Connection":
        """Borrow a connection that is at rest."""

    @abstractmethod
    async def keep(self, connection: "Connection") -> None:
        """Take back a connection that is at rest."""

    @abstractmethod
    async def forget(self, connection: "Connection") -> None:
        """Take back a connection that was closed."""

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        if statement.writes:
            await self._settle()
        connection = await self.take()
        try:
            return await connection.run(statement.sql, *arguments)
        finally:
            await self._give_back(connection)

    async def transact(self, operation: str, work: Work[T]) -> T:
        await self._settle()
        connection = await self.take()
        try:
            return await _Bound(connection).transact(operation, work)
        finally:
            await self._give_back(connection)

    async def _settle(self) -> None:
        """Wait until what was given up has ended: a write of it must not come after the next one."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=CLOSE_TIMEOUT)

    async def _give_back(self, connection: "Connection") -> None:
        if connection.is_at_rest():
            await self.keep(connection)
        else:
            self._on_the_side(self._end(connection))

    async def _end(self, connection: "Connection") -> None:
        try:
            await connection.close(CLOSE_TIMEOUT)
        finally:
            await self.forget(connection)

    def _on_the_side(self, work: Coroutine[Any, Any, None]) -> None:
        ending = asyncio.get_running_loop().create_task(work)
        self._ending.add(ending)
        ending.add_done_callback(self._ended)

    def _ended(self, ending: asyncio.Task[None]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled():
            ending.exception()  # seen: the connection is gone either way

    async def _all_ended(self) -> None:
        """Wait for all that is ending; cancelled, it leaves them to end by themselves."""
        if self._ending:
            ended, _ = await asyncio.wait(self._ending)
            for one in ended:
                if not one.cancelled():
                    one.result()


class ServerTransport(_Leasing):
    """Connections of our own to a server, opened when they are needed and kept until the end.

    In the place of one that was given up, the next call opens another. No state of a session is ever
    reset, so a connection costs a call no round trip.

    Args:
        url: A libpq URI; it goes to the client as it is.
        settings: Sizes and timeouts.
    """

    def __init__(self, url: str, settings: PostgresSettings) -> None:
        super().__init__()
        self._url = url
        self._settings = settings
        self._slots = Gate(settings.pool_size, settings.acquire_timeout)
        self._watch: Watch[Connection] = Watch(settings.command_timeout, _time_out)
        self._idle: list[Connection] = []

    async def open(self, setup: Work[None]) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        try:
            await setup(self)
        except BaseException:
            for connection in self._idle:
                connection.terminate()
            self._idle.clear()
            raise

    async def close(self) -> None:
        """Close every connection, those too that are being given up. Idempotent."""
        while self._idle:
            self._on_the_side(self._idle.pop().close(CLOSE_TIMEOUT))
        try:
            await self._all_ended()
        finally:
            self._watch.stop()
            self._slots.stop()

    async def take(self) -> "Connection":
        try:
            await self._slots.enter()
        except TimeoutError as error:
            raise MemoryAdapterUnavailable("every connection stayed busy; nothing was sent") from error
        return self._usable() or await self._connect()

    async def keep(self, connection: "Connection") -> None:
        self._idle.append(connection)
        self._slots.leave()

    async def forget(self, connection: "Connection") -> None:  # noqa: ARG002 - it is closed
        """Free its slot, now that the server has let go of it."""
        self._slots.leave()

    def _usable(self) -> "Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_at_rest():
                return connection
            connection.terminate()
        return None

    async def _connect(self) -> "Connection":
        connecting = asyncio.get_running_loop().create_task(
            _connected(self._url, self._settings, self._watch)
        )
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            # asyncpg, cancelled itself, may leave behind an exception that nobody retrieves
            self._on_the_side(self._abandon(connecting))
            raise
        except BaseException:
            self._slots.leave()
            raise

    async def _abandon(self, connecting: "asyncio.Task[Connection]") -> None:
        """Let a connection be made, if that does not take long, and close it."""
        try:
            await asyncio.wait((connecting,), timeout=CLOSE_TIMEOUT)
            connecting.cancel()
            await asyncio.wait((connecting,))
            if not connecting.cancelled() and connecting.exception() is None:
                await connecting.result().close(CLOSE_TIMEOUT)
        finally:
            self._slots.leave()


async def _connected(url: str, settings: PostgresSettings, watch: "Watch[Connection]") -> "Connection":
    from . import client  # noqa: PLC0415 - the client library is loaded when it is first used

    return await client.connect(url, settings, watch)


def _time_out(connection: "Connection") -> None:
    connection.time_out()


class PoolTransport(_Leasing):
    """An asyncpg pool of the caller's, which stays open.

    Args:
        pool: As the caller made it.
        settings: Timeouts.
    """

    def __init__(self, pool: "Pool", settings: PostgresSettings) -> None:
        super().__init__()
        self._pool = pool
        self._settings = settings
        self._watch: Watch[Connection] = Watch(settings.command_timeout, _time_out)
        self._checked: set[int] = set()  # server processes

    async def open(self, setup: Work[None]) -> None:
        """Run the set-up."""
        await setup(self)

    async def close(self) -> None:
        """Leave the pool to its owner, with all that was borrowed of it."""
        try:
            await self._all_ended()
        finally:
            self._watch.stop()

    async def take(self) -> "Connection":
        from . import client  # noqa: PLC0415 - the client library is loaded when it is first used

        connection = await client.borrow(self._pool, self._settings, self._watch)
        try:
            await self._check(connection)
        except BaseException:
            await self._give_back(connection)
            raise
        return connection

    async def _check(self, connection: "Connection") -> None:
        if not connection.is_at_rest():  # what is written in it, the pool would undo
            raise MemoryAdapterError("the pool's connections come in a transaction")
        process = connection.server_process
        if process not in self._checked:
            await connection.check_types()
            self._checked.add(process)

    async def keep(self, connection: "Connection") -> None:
        await connection.give_back(self._pool, CLOSE_TIMEOUT)

    async def forget(self, connection: "Connection") -> None:
        await connection.give_back(self._pool, CLOSE_TIMEOUT)
