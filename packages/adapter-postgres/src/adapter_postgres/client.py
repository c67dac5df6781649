"""The one module that uses asyncpg, so that only its calls are weakly typed."""

# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

import asyncpg

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from .settings import PostgresSettings

Pool = asyncpg.Pool
Row = Sequence[Any]


class Connection:
    """One connection, which shows no more of a native error than what it is.

    Args:
        native: What asyncpg gave.
        seconds: How long one statement may take.
    """

    def __init__(self, native: Any, seconds: float) -> None:
        self._native = native
        self._seconds = seconds
        self._running = False

    async def run(self, sql: str, *arguments: Any) -> Sequence[Row]:
        """Run one statement.

        A server's error leaves the connection at rest; anything else that ends it early does not.
        """
        self._running = True
        try:
            rows: Sequence[Row] = await self._native.fetch(sql, *arguments, timeout=self._seconds)
        except asyncpg.PostgresError as error:
            self._running = False
            _hide_values(error)
            raise
        self._running = False
        return rows

    async def roll_back(self) -> None:
        """End the transaction, unless the connection is in a state in which nothing can be sent."""
        if not self._running and not self._native.is_closed():
            await self.run("ROLLBACK")

    def is_at_rest(self) -> bool:
        """Whether it can serve another call: open, idle, in no transaction."""
        return not (self._running or self._native.is_closed() or self._native.is_in_transaction())

    async def close(self, seconds: float) -> None:
        """End what runs, and close. After so many seconds the socket is closed without a word."""
        try:
            await self._native.close(timeout=seconds)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._native.terminate()  # it was broken, and is gone now

    async def give_back(self, pool: Any, seconds: float) -> None:
        """Let the pool have it back; the pool itself ends what may still run."""
        await pool.release(self._native, timeout=seconds)

    def terminate(self) -> None:
        """Close the socket at once."""
        self._native.terminate()


async def connect(url: str, settings: PostgresSettings) -> Connection:
    """Open a connection; a failed or cancelled one leaves nothing open.

    Raises:
        MemoryAdapterError: The client cannot read the URL; its own message may show a part of it.
    """
    options: dict[str, Any] = {"statement_cache_size": settings.statement_cache}
    if settings.statement_cache:
        # compiling a plan costs more than all our statements; not sent where a pooler stands between
        options["server_settings"] = {"jit": "off", "application_name": "adapter-postgres"}
    try:
        native: Any = await asyncpg.connect(url, timeout=settings.connect_timeout, **options)
    except (ValueError, asyncpg.ClientConfigurationError) as error:
        reason = type(error).__name__
    else:
        return Connection(native, settings.command_timeout)
    raise MemoryAdapterError(f"the client cannot read the URL ({reason})")


async def borrow(pool: Any, settings: PostgresSettings) -> Connection:
    """Borrow a connection of a pool."""
    try:
        native = await pool.acquire(timeout=settings.acquire_timeout)
        return Connection(native, settings.command_timeout)
    except TimeoutError as error:
        raise MemoryAdapterUnavailable("the pool gave no connection in time; nothing was sent") from error


def is_pool(value: object) -> bool:
    """Whether this is a pool of asyncpg."""
    return isinstance(value, asyncpg.Pool)


def is_broken(error: Exception) -> bool:
    """Whether an error of the client itself means that the server was not asked or did not answer."""
    if isinstance(error, asyncpg.DataError | asyncpg.ClientConfigurationError):
        return False
    kinds = (asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.TargetServerAttributeNotMatched)
    return isinstance(error, kinds)


def _hide_values(error: Any) -> None:
    """Take away what shows rows: a violated constraint quotes the whole row as its detail."""
    error.detail = error.hint = error.context = error.internal_query = None
