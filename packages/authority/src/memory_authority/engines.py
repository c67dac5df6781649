"""Engines: how SQLite and Postgres are connected to, and what their errors mean."""

# pyright: reportUnknownMemberType=false

import os
import sqlite3
from typing import Any

from sqlalchemy import URL, AsyncAdaptedQueuePool, Connection, event
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from .errors import UnreadableUrl

POOL_SIZE = 8
"""How many connections one store opens at most."""
ACQUIRE_TIMEOUT = 10.0
"""Seconds to wait for a connection while all are busy."""
CONNECT_TIMEOUT = 10.0
"""Seconds to connect to Postgres."""
COMMAND_TIMEOUT = 60.0
"""Seconds that one statement on Postgres may take, waiting for locks included."""
BUSY_TIMEOUT = 5.0
"""Seconds to wait while another connection writes to the SQLite file: the default of Python's driver."""

BEGIN = "authority_begin"
"""The execution option that says how a transaction on SQLite begins."""

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
# what a server says when it cannot serve, by class or code: connection, login, resources, shutdown,
# system error, and a server or transaction that only reads, a database that is not there, a lock
_UNAVAILABLE_CLASSES = frozenset({"08", "28", "53", "57", "58"})
_UNAVAILABLE_STATES = frozenset({"25006", "3D000", "55P03"})

Errors = tuple[type[Exception], ...]


def sqlite_engine(path: str | os.PathLike[str], busy_timeout: float, pool_size: int) -> AsyncEngine:
    """Make the engine of a file. No I/O is done."""
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=os.fspath(path)),
        connect_args={"timeout": busy_timeout},
        hide_parameters=True,  # they are what was said
        poolclass=AsyncAdaptedQueuePool,  # the default of SQLAlchemy 2.0 is no pool
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=ACQUIRE_TIMEOUT,
    )
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins no transaction by itself
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    how = connection.get_execution_options().get(BEGIN, "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {how}")


def postgres_engine(url: str, pool_size: int) -> AsyncEngine:
    """Make the engine of a server. No I/O is done; the URL is read by asyncpg, as it reads it."""
    import asyncpg  # noqa: PLC0415 - an extra

    async def connect() -> Any:
        try:
            return await asyncpg.connect(url, timeout=CONNECT_TIMEOUT, command_timeout=COMMAND_TIMEOUT)
        except OSError:  # some are a ValueError too, such as a certificate that is refused
            raise
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            reason = type(error).__name__
        raise UnreadableUrl(f"asyncpg cannot read the URL ({reason})")  # its own text may show a part of it

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=ACQUIRE_TIMEOUT,
    )


def postgres_errors() -> Errors:
    """Give what asyncpg raises while it connects, where SQLAlchemy wraps nothing."""
    import asyncpg  # noqa: PLC0415 - an extra

    return (asyncpg.PostgresError, asyncpg.InterfaceError)


def is_unavailable(error: Exception) -> bool:
    """Whether an error says that the database could not be asked, and not that it refused."""
    if isinstance(error, DBAPIError):
        native: Any = error.orig
        state = getattr(native, "sqlstate", None)
        if isinstance(state, str):
            return state[:2] in _UNAVAILABLE_CLASSES or state in _UNAVAILABLE_STATES
        return error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError))
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return state[:2] in _UNAVAILABLE_CLASSES or state in _UNAVAILABLE_STATES
    # everything else that is native came from connecting
    return isinstance(error, PoolTimeout) or not isinstance(error, SQLAlchemyError)


def what(error: Exception) -> str:
    """Name an error without its text, which may hold what was said."""
    native: Any = error.orig if isinstance(error, DBAPIError) else error
    name = type(native).__name__
    code = getattr(native, "sqlstate", None) or getattr(native, "sqlite_errorname", None)
    return f"{name} {code}" if code else name


def sqlite_errors() -> Errors:
    """Give what the driver of SQLite raises where SQLAlchemy wraps nothing."""
    return (sqlite3.Error,)
