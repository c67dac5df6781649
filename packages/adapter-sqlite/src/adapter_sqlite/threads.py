"""Worker threads: where SQLite runs, since it blocks whoever calls it."""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class Pool:
    """Threads that each have a connection, and take calls as they become free.

    A `ThreadPoolExecutor` would do; handing a call over and back costs it half as much again,
    which is a good part of a read. A pool is used on the event loop's thread alone.
    """

    def __init__(self, size: int, connect: Callable[[], sqlite3.Connection]) -> None:
        self._size = size
        self._connect = connect
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []  # the last one that was used has the warmest cache
        self._waiting: deque[_Call[Any]] = deque()

    async def run(self, work: Work[T], *, interrupt: bool = False) -> T:
        """Do work on a thread. If the caller is cancelled, it is dropped, or else interrupted if asked."""
        call = _Call(work, asyncio.get_running_loop(), self._freed)
        if self._idle:
            self._idle.pop().calls.put(call)
        elif len(self._workers) < self._size:
            self._workers.append(_Worker(self._connect))
            self._workers[-1].calls.put(call)
        else:
            self._waiting.append(call)
        try:
            return await call.future
        except asyncio.CancelledError:
            call.drop(interrupt=interrupt)
            raise

    async def retire(self) -> None:
        """Close everything as soon as the last work has ended. May be repeated when cancelled."""
        self.dismiss()
        failed: sqlite3.Error | None = None
        for worker in self._workers:
            try:
                # shielded: to cancel the wait must not cancel what a repeated call waits for
                await asyncio.shield(worker.ended)
            except sqlite3.Error as error:
                failed = failed or error
            worker.thread.join()  # at once: it has nothing left to do
        if failed is not None:
            raise failed

    def dismiss(self) -> None:
        """Let the threads end on their own, once the work that is under way has ended."""
        while self._waiting:  # what was taken on is done first
            self._workers[0].calls.put(self._waiting.popleft())
        for worker in self._workers:
            worker.calls.put(None)

    def _freed(self, worker: "_Worker") -> None:
        if self._waiting:
            worker.calls.put(self._waiting.popleft())
        else:
            self._idle.append(worker)


class _Worker:
    """A thread with its connection, made for the first call and anew after a failed rollback.

    Attributes:
        calls: What it does, in turn; None ends it.
        ended: Done when it has released its connection, with the error if that failed.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self.thread = threading.Thread(target=self._serve, name="adapter-sqlite", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while (call := self.calls.get()) is not None:
            call.perform(self._connected)
            if self._connection is not None and self._connection.in_transaction:
                self._release()  # the rollback failed
            call.answer(self)
            del call  # an idle thread must not keep what a call holds
        error = self._release()
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: sqlite3.Error | None) -> None:
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _release(self) -> sqlite3.Error | None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                return error
        return None


class _Call(Generic[T]):
    """One piece of work: dropped before it begins, interrupted while it runs, never after it."""

    __slots__ = (
        "_connection",
        "_dropped",
        "_failure",
        "_freed",
        "_lock",
        "_loop",
        "_result",
        "_work",
        "future",
    )

    def __init__(
        self, work: Work[T], loop: asyncio.AbstractEventLoop, freed: Callable[[_Worker], None]
    ) -> None:
        self.future: asyncio.Future[T] = loop.create_future()
        self._work = work
        self._loop = loop
        self._freed = freed
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._dropped = False
        self._result: T | None = None
        self._failure: BaseException | None = None

    def perform(self, connected: Callable[[], sqlite3.Connection]) -> None:
        """Do the work, on the worker's thread."""
        with self._lock:
            if self._dropped:
                return
        try:
            connection = connected()
            with self._lock:
                self._connection = connection
            try:
                self._result = self._work(connection)
            finally:
                with self._lock:
                    self._connection = None
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            self._failure = error

    def answer(self, worker: _Worker) -> None:
        """Hand the outcome over to the event loop, unless that is closed and nobody waits."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, worker)

    def drop(self, *, interrupt: bool) -> None:
        """Give the call up: its caller was cancelled."""
        with self._lock:
            self._dropped = True
            if interrupt and self._connection is not None:
                self._connection.interrupt()

    def _settle(self, worker: _Worker) -> None:
        self._freed(worker)
        if self.future.done():
            return
        failure, self._failure = self._failure, None  # it holds the frame that holds this
        if failure is not None:
            self.future.set_exception(failure)
        else:
            self.future.set_result(cast("T", self._result))
