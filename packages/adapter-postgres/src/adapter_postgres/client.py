"""The one module that uses asyncpg, so that only its calls are weakly typed."""

# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import asyncpg

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from . import states
from .limits import Watch
from .settings import PostgresSettings

Pool = asyncpg.Pool
Row = Sequence[Any]

_SAMPLES: Mapping[str, Any] = {
    "uuid": UUID("01234567-89ab-cdef-8123-456789abcdef"),
    "text": " aB \u00e9\n",
    "float8": 0.1,
    "int8": -(2**53) - 1,
    "int4": 7,
    "bool": True,
}
_TYPES = "SELECT " + ", ".join(
    f"${n}::{kind}" for n, kind in enumerate([*_SAMPLES, *(f"{kind}[]" for kind in _SAMPLES)], 1)
)
_VALUES = (*_SAMPLES.values(), *([value] for value in _SAMPLES.values()))


class Connection:
    """One connection, which shows no more of a native error than what it is.

    Args:
        native: What asyncpg gave.
        watch: Calls `time_out` when a statement takes too long.
    """

    def __init__(self, native: Any, watch: "Watch[Connection]") -> None:
        self._native = native
        self._watch = watch
        self._running = False
        self._task: asyncio.Task[Any] | None = None
        self._timed_out = False

    async def run(self, sql: str, *arguments: Any) -> Sequence[Row]:
        """Run one statement.

        A server's error leaves the connection at rest; anything else that ends it early does not.

        Raises:
            TimeoutError: It took too long, and the server was asked to cancel it.
        """
        # asyncpg's own timeout costs several times as much: a timer for each statement
        self._task = task = cast("asyncio.Task[Any]", asyncio.current_task())
        cancelling = task.cancelling()
        self._running = True
        self._watch.begin(self)
        try:
            rows: Sequence[Row] = await self._native.fetch(sql, *arguments)
        except asyncio.CancelledError as error:
            if self._timed_out and task.uncancel() <= cancelling:  # nobody else has cancelled it
                raise TimeoutError from error
            raise
        except asyncpg.PostgresError as error:
            self._running = False
            _hide_values(error)
            state = error.sqlstate or ""
            if states.is_unavailable(state) and states.is_refusal(state):
                raise MemoryAdapterUnavailable(
                    f"the backend is unavailable ({type(error).__name__}); nothing was done"
                ) from error
            raise
        finally:
            self._watch.leave(self)
            self._task = None
        self._running = False
        return rows

    def time_out(self) -> None:
        """End the statement that runs. asyncpg asks the server to cancel what its caller gives up."""
        if self._task is not None:
            self._timed_out = True
            self._task.cancel()

    async def roll_back(self) -> None:
        """End the transaction, unless the connection is in a state in which nothing can be sent."""
        if not self._running and not self._native.is_closed():
            await self.run("ROLLBACK")

    async def check_types(self) -> None:
        """See that values are read and written as asyncpg does it by itself.

        With a codec that somebody has set, for uuid as str say, the store would take items that are
        there for missing.

        Raises:
            MemoryAdapterError: They are not.
        """
        try:
            (row,) = await self.run(_TYPES, *_VALUES)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if not isinstance(error, asyncpg.DataError):  # of the server, or of the client
                raise
            reason: str | None = type(error).__name__
        except (OSError, MemoryAdapterError):
            raise
        except Exception as error:  # noqa: BLE001 - the caller's codec may raise anything
            reason = type(error).__name__
        else:
            reason = None if all(map(_same, row, _VALUES)) else "other values came back"
        if reason is not None:
            raise MemoryAdapterError(f"a codec of the pool's connections changes types ({reason})")

    @property
    def server_process(self) -> int:
        """The number of the server's process, which no two open connections share."""
        pid: int = self._native.get_server_pid()
        return pid

    def is_at_rest(self) -> bool:
        """Whether it can serve another call: open, idle, in no transaction."""
        return not (self._running or self._native.is_closed() or self._native.is_in_transaction())

    async def close(self, seconds: float) -> None:
        """End what runs, and close. After so many seconds the socket is closed without a word."""
        try:
            async with asyncio.timeout(seconds):  # older clients wait for a cancellation without a bound
                await self._native.close(timeout=seconds)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._native.terminate()  # it was broken, and is gone now

    async def give_back(self, pool: Any, seconds: float) -> None:
        """Let the pool have it back. What goes wrong in it is not the caller's, whose call has ended."""
        try:
            await pool.release(self._native, timeout=seconds)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._native.terminate()

    def terminate(self) -> None:
        """Close the socket at once."""
        self._native.terminate()


async def connect(url: str, settings: PostgresSettings, watch: Watch[Connection] | None = None) -> Connection:
    """Open a connection; a failed or cancelled one leaves nothing open.

    Args:
        url: A libpq URI.
        settings: Timeouts, and how many statements it keeps.
        watch: Over the statements; None for one of its own.

    Raises:
        MemoryAdapterUnavailable: The server was not reached, or took no connection.
        MemoryAdapterError: The client cannot read the URL; its own message may show a part of it.
    """
    options: dict[str, Any] = {"statement_cache_size": settings.statement_cache}
    if settings.statement_cache:
        # compiling a plan costs more than all our statements; not sent where a pooler stands between
        options["server_settings"] = {
            "jit": "off",
            "application_name": "adapter-postgres",
            "default_transaction_isolation": "read committed",
            "row_security": "off",  # an error, and not an answer without the hidden rows
            "gin_fuzzy_search_limit": "0",
        }
    try:
        native: Any = await asyncpg.connect(url, timeout=settings.connect_timeout, **options)
    except (OSError, asyncpg.PostgresError) as error:  # first: a refused certificate is a ValueError too
        raise _not_connected(error) from error
    except (ValueError, OverflowError, asyncpg.ClientConfigurationError) as error:
        reason = type(error).__name__
    else:
        return Connection(native, watch or Watch(settings.command_timeout, Connection.time_out))
    raise MemoryAdapterError(f"the client cannot read the URL ({reason})")


async def borrow(pool: Any, settings: PostgresSettings, watch: Watch[Connection]) -> Connection:
    """Borrow a connection of a pool.

    Raises:
        MemoryAdapterError: The pool is of another event loop, on which its connections work.
    """
    # there is no public way to ask, and to try would harm the pool
    if getattr(pool, "_loop", None) not in (None, asyncio.get_running_loop()):
        raise MemoryAdapterError("the pool belongs to another event loop; make one for each")
    try:
        native = await pool.acquire(timeout=settings.acquire_timeout)
        return Connection(native, watch)
    except TimeoutError as error:
        raise MemoryAdapterUnavailable("the pool gave no connection in time; nothing was sent") from error
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise _not_connected(error) from error


def _not_connected(error: Exception) -> Exception:
    """Give what is raised where no connection came about."""
    name = type(error).__name__
    if isinstance(error, asyncpg.PostgresError) and not states.is_unavailable(error.sqlstate or ""):
        return MemoryAdapterError(f"the backend refused a connection ({name}); nothing was sent")
    return MemoryAdapterUnavailable(f"no connection to the backend ({name}); nothing was sent")


def _same(found: Any, sent: Any) -> bool:
    if isinstance(sent, list):
        return isinstance(found, list) and len(found) == 1 and _same(found[0], sent[0])  # pyright: ignore[reportUnknownArgumentType]
    # asyncpg has a UUID of its own, a subclass
    return isinstance(found, type(sent)) and bool(found == sent) and bool(str(found) == str(sent))


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
