"""The way to SQLite: a narrow protocol, and the real one on worker threads."""

import asyncio
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from .threads import Pool, Work

T = TypeVar("T")

MEMORY = ":memory:"
BUSY_TIMEOUT = 5.0
"""Seconds to wait for another writer, unless the constructor says otherwise."""
READERS = 4
"""How many reads of one store run at once; each has a thread and a connection."""
WRITER_CACHE_KIB = 32_768
"""Memory that the writer may use for pages."""
READER_CACHE_KIB = 16_384
"""Memory that each reader may use for pages."""
CHECKPOINT_PAGES = 8_000
"""How far the write-ahead log grows before it is copied back: 32 MiB with pages of 4 KiB."""
LOG_BYTES = 67_108_864
"""What is left of the log's file when it had to grow further, as behind a long read."""
OLDEST_SQLITE = (3, 35, 0)
"""The first version with `RETURNING`."""

_RETRY_PAUSE = 0.01
# by the level that is asked for: PRAGMA synchronous and the number it reads back as
_SYNCHRONOUS = {"power": ("FULL", 2), "crash": ("NORMAL", 1)}


class Transport(Protocol):
    """What the driver needs of SQLite. Each call is one piece of work on one connection.

    `operation` names the work for those who record it; it changes nothing.
    """

    async def open(self, setup: Work[None]) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        ...

    async def read(self, operation: str, work: Work[T]) -> T:
        """Run work that only reads, outside a transaction."""
        ...

    async def write(self, operation: str, work: Work[T]) -> T:
        """Run work in a transaction that is committed when it returns and else rolled back."""
        ...

    async def close(self) -> None:
        """Wait for the work that is under way, then close every connection."""
        ...


@contextmanager
def transaction(connection: sqlite3.Connection, mode: str = "IMMEDIATE") -> Generator[None]:
    """Commit at the end; roll back on any exception, a failed commit among them.

    Raises:
        MemoryAdapterUnavailable: Another connection kept the lock for longer than the timeout.
    """
    try:
        connection.execute(f"BEGIN {mode}")
    except sqlite3.OperationalError as error:
        if _is_busy(error):  # here it is known that nothing was done
            raise MemoryAdapterUnavailable("another connection kept writing; nothing was done") from error
        raise
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have rolled back already
            connection.execute("ROLLBACK")
        raise


class FileTransport:
    """SQLite on worker threads: one writer, and a few readers that see the last commit.

    A call that is cancelled before its thread takes it up is dropped. A write that has begun runs
    to its end, whole or rolled back; a read is interrupted.

    Args:
        path: The database file, or `:memory:`, which one connection serves alone.
        durability: `power` syncs every commit to the disk, `crash` only checkpoints.
        busy_timeout: Seconds to wait for a lock that another connection holds.
    """

    def __init__(
        self,
        path: str,
        *,
        durability: Literal["power", "crash"] = "power",
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        self._given = path
        self._durability = durability
        self._timeout = busy_timeout
        # fixed here: a later chdir of the process must not lead to another file
        self._path = Path(path).absolute()
        self._identity = (0, 0)
        self._writer: Pool | None = None
        self._readers: Pool | None = None

    async def open(self, setup: Work[None]) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        if self._given == MEMORY:
            writer = readers = Pool(1, self._connect_memory)
        else:
            writer, readers = Pool(1, self._connect_writer), Pool(READERS, self._connect_reader)
        try:
            await writer.run(setup)
        except asyncio.CancelledError:
            writer.dismiss()  # once the set-up that is under way has ended
            raise
        except BaseException:
            await writer.retire()
            raise
        self._writer, self._readers = writer, readers

    async def read(self, operation: str, work: Work[T]) -> T:  # noqa: ARG002 - for recorders
        """Run work that only reads, outside a transaction."""
        return await _opened(self._readers).run(partial(self._read, work), interrupt=True)

    async def write(self, operation: str, work: Work[T]) -> T:  # noqa: ARG002 - for recorders
        """Run work in a transaction that is committed when it returns and else rolled back."""
        return await _opened(self._writer).run(partial(self._write, work))

    async def close(self) -> None:
        """Wait for the work that is under way, then close every connection."""
        failed: sqlite3.Error | None = None
        # the writer last: of connections that close at one time, none may be the one that removes the log
        for pool in dict.fromkeys((self._readers, self._writer)):
            if pool is not None:
                try:
                    await pool.retire()
                except sqlite3.Error as error:
                    failed = failed or error
        self._readers = self._writer = None  # only now: a close that was cancelled is repeated
        if failed is not None:
            raise failed

    def _read(self, work: Work[T], connection: sqlite3.Connection) -> T:
        self._check_file()
        return work(connection)

    def _write(self, work: Work[T], connection: sqlite3.Connection) -> T:
        self._check_file()
        with transaction(connection):
            return work(connection)

    def _check_file(self) -> None:
        """Refuse to work on a file that nobody else would find at the path any more."""
        if self._given == MEMORY:
            return
        try:
            identity = _identity(self._path)
        except OSError as error:
            raise MemoryAdapterUnavailable("the database file was moved or removed") from error
        if identity != self._identity:
            raise MemoryAdapterUnavailable("the database file was replaced by another one")

    def _connect_memory(self) -> sqlite3.Connection:
        _check_version()
        return sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)

    def _connect_writer(self) -> sqlite3.Connection:
        _check_version()
        try:
            connection = self._connect("rwc")
        except sqlite3.OperationalError as error:
            if self._path.parent.is_dir():
                raise
            raise MemoryAdapterUnavailable("the folder of the database file is not there") from error
        with _closed_on_error(connection):
            self._identity = _identity(self._path)
            _use_wal(connection, self._timeout)
            self._configure(connection)
            # room for the pages that merges of the index read, and fewer checkpoints
            connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        self._check_file()
        connection = self._connect("rw")
        with _closed_on_error(connection):
            self._check_file()  # it may have been replaced just before
            self._configure(connection)
            connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _configure(self, connection: sqlite3.Connection) -> None:
        """Set how commits reach the disk, and read back that it is so."""
        level, number = _SYNCHRONOUS[self._durability]
        connection.execute(f"PRAGMA synchronous = {level}")
        # these two change something on macOS only, where fsync alone does not reach the disk
        full = int(self._durability == "power")
        connection.execute(f"PRAGMA fullfsync = {full}")
        connection.execute(f"PRAGMA checkpoint_fullfsync = {full}")
        if _pragma(connection, "synchronous") != number:
            raise MemoryAdapterUnavailable(f"the database does not take synchronous = {level}")


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Generator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _opened(pool: Pool | None) -> Pool:
    if pool is None:
        raise MemoryAdapterUnavailable("the transport is not open")
    return pool


def _use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Switch to the write-ahead log; SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if _pragma(connection, "journal_mode = WAL") == "wal":
                return
            raise MemoryAdapterUnavailable("the file system of the database cannot keep a WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_PAUSE)


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _pragma(connection: sqlite3.Connection, pragma: str) -> object:
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return row[0] if row else None


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _check_version() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise MemoryAdapterError(
            f"SQLite {'.'.join(map(str, OLDEST_SQLITE))} or newer is needed; "
            f"this Python has {sqlite3.sqlite_version}"
        )
