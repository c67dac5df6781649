"""Coalescing: calls of the same tick become one batch call of the driver.

Each caller gets its own result or its own error. A batch is split only after the service has
definitely refused it; after a transport failure nothing is sent again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Generic, TypeVar

from ._errors import MemoryAdapterError, MemoryAdapterUnavailable

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

MAX_BATCH = 256
"""How many calls one batch holds at most: enough for the gain, small enough to be one request."""
MIN_PART = 8
"""How many calls each part of a tick has at least: most of the gain is had with so many."""


@dataclass(eq=False, slots=True)
class _Call(Generic[RequestT, ResultT]):
    request: RequestT
    future: asyncio.Future[ResultT]
    batch: "_Batch | None" = None


@dataclass(eq=False, slots=True)
class _Batch:
    """A batch on its way, and how many of its callers still wait."""

    callers: int
    task: "asyncio.Task[None] | None" = None


class Coalescer(Generic[RequestT, ResultT]):
    """Gathers the calls of one tick.

    Args:
        send: Sends a batch, and gives a result for each request in order. It raises a
            `MemoryAdapterError` for the whole batch; `MemoryAdapterUnavailable` means that the
            outcome may be unknown, any other that nothing was done.
        coalesce: False: every call is sent alone.
        at_once: Into how many batches the many calls of one tick are cut, less those that are on their
            way. With two, callers make their next requests while the backend does the other half.
        key: What tells requests apart of which the last counts. The calls of a tick that has two of one
            key are sent one batch after the other, so that they keep their order.
    """

    def __init__(
        self,
        send: Callable[[Sequence[RequestT]], Awaitable[Sequence[ResultT]]],
        *,
        coalesce: bool = True,
        at_once: int = 1,
        key: Callable[[RequestT], object] = id,
    ) -> None:
        self._send = send
        self._coalesce = coalesce
        self._at_once = at_once
        self._key = key
        self._waiting: list[_Call[RequestT, ResultT]] = []
        self._batches: set[asyncio.Task[None]] = set()

    async def call(self, request: RequestT) -> ResultT:
        """Send a request together with those that other tasks make in this tick.

        A cancelled caller leaves the others alone: its request is dropped if it was not sent yet,
        and done as a whole if it was.
        """
        if not self._coalesce:
            return await self._alone(request)
        call: _Call[RequestT, ResultT] = _Call(request, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        # the first of this tick sends for all
        if len(self._waiting) == 1 and not await self._gathered(call):
            return await self._alone(request)  # without a task: it is cancelled like any call
        try:
            return await call.future
        except asyncio.CancelledError:
            batch = call.batch
            if batch is not None and batch.task is not None:
                batch.callers -= 1
                if not batch.callers:
                    batch.task.cancel()  # like a lone call whose caller has gone
            raise

    async def _gathered(self, first: _Call[RequestT, ResultT]) -> bool:
        """Let the rest of the tick join, and send them all; False: nobody joined, and nothing was sent."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            first.future.cancel()
            raise
        finally:
            calls, self._waiting = self._waiting, []
            if len(calls) > 1:
                self._start(calls)
        return len(calls) > 1

    async def drain(self) -> None:
        """Wait for the batches that are on their way although nobody waits for them any more."""
        while self._batches:
            await asyncio.wait(self._batches)

    async def _alone(self, request: RequestT) -> ResultT:
        results: Sequence[ResultT] = await self._send([request])
        return results[0]

    def _start(self, calls: Sequence[_Call[RequestT, ResultT]]) -> None:
        calls = [call for call in calls if not call.future.done()]
        if not calls:
            return
        parts = _cut(calls, self._part_size(len(calls)))
        if len(parts) > 1 and len({self._key(call.request) for call in calls}) < len(calls):
            groups = [_cut(calls, MAX_BATCH)]  # one after the other, so that the last counts
        else:
            groups = [[part] for part in parts]
        for group in groups:
            batch = _Batch(sum(map(len, group)))
            for part in group:
                for call in part:
                    call.batch = batch
            batch.task = asyncio.ensure_future(self._run_all(group))
            self._batches.add(batch.task)  # the loop itself keeps only a weak reference
            batch.task.add_done_callback(self._batches.discard)

    def _part_size(self, count: int) -> int:
        """Say how many of the calls of a tick one batch has."""
        parts = max(1, min(self._at_once - len(self._batches), count // MIN_PART))
        return min(MAX_BATCH, -(-count // parts))

    async def _run_all(self, parts: Sequence[Sequence[_Call[RequestT, ResultT]]]) -> None:
        try:
            for part in parts:
                await self._run(part)
        except BaseException:
            for part in parts:
                for call in part:  # nobody must wait for an answer that will not come
                    call.future.cancel()
            raise

    async def _run(self, calls: Sequence[_Call[RequestT, ResultT]]) -> None:
        calls = [call for call in calls if not call.future.done()]
        if not calls:
            return
        try:
            results = await self._send([call.request for call in calls])
        except MemoryAdapterError as error:
            if len(calls) > 1 and not isinstance(error, MemoryAdapterUnavailable):
                middle = len(calls) // 2
                await self._run(calls[:middle])
                await self._run(calls[middle:])
            else:
                for call in calls:
                    _fail(call, error)
        else:
            for call, result in zip(calls, results, strict=True):
                _answer(call, result)


def _cut(calls: Sequence[_Call[RequestT, ResultT]], size: int) -> list[Sequence[_Call[RequestT, ResultT]]]:
    return [calls[begin : begin + size] for begin in range(0, len(calls), size)]


def _answer(call: _Call[RequestT, ResultT], result: ResultT) -> None:
    if not call.future.done():
        call.future.set_result(result)


def _fail(call: _Call[RequestT, ResultT], error: MemoryAdapterError) -> None:
    """Give a caller an error of its own: one that is raised twice grows two tracebacks."""
    if not call.future.done():
        own = copy(error)
        own.__cause__ = error.__cause__
        call.future.set_exception(own)
