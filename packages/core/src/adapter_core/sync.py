"""A store for scripts and notebooks: the same calls, without `await`.

with SyncStore(SqliteMemoryStore("memories.db")) as store:
    store.store(MemoryItem(content="likes green tea"))
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

from ._errors import MemoryAdapterError, MemoryAdapterUnavailable
from ._extensions import (
    ScoredHit,
    SupportsBatch,
    SupportsDelete,
    SupportsReindex,
    SupportsRevisions,
    SupportsScan,
    SupportsScoredSearch,
)
from ._items import ItemLike, QueryLike
from ._manifest import MemoryAdapterManifest
from ._protocols import ItemT
from ._store import AdapterStore

T = TypeVar("T")
P = TypeVar("P")
_END = object()


class SyncStore(Generic[ItemT]):
    """A store whose calls block, safe for many threads.

    The store lives on an event loop of its own, in a thread that the first call starts and `close`
    ends. Each call takes and raises what the store's own does. A method of an extension that the
    store does not have raises `MemoryAdapterError`.

    Args:
        store: Not yet used elsewhere. It is closed with this one.
    """

    def __init__(self, store: AdapterStore[ItemT]) -> None:
        if not isinstance(cast("object", store), AdapterStore):
            raise TypeError(f"an AdapterStore is needed, not {type(store).__name__}")
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._lock = threading.Lock()
        self._closed = False

    @property
    def manifest(self) -> MemoryAdapterManifest:
        """What survives in the store."""
        return self._store.manifest

    def store(self, item: ItemLike) -> UUID:
        """See `AdapterStore.store`."""
        return self._run(self._store.store(item))

    def retrieve(self, item_id: UUID) -> ItemT | None:
        """See `AdapterStore.retrieve`."""
        return self._run(self._store.retrieve(item_id))

    def search(self, query: QueryLike) -> list[ItemT]:
        """See `AdapterStore.search`."""
        return self._run(self._store.search(query))

    def store_many(self, items: Iterable[ItemLike]) -> list[UUID]:
        """See `SupportsBatch`."""
        return self._run(self._has(SupportsBatch[ItemT]).store_many(items))

    def retrieve_many(self, ids: Iterable[UUID]) -> Mapping[UUID, ItemT]:
        """See `SupportsBatch`."""
        return self._run(self._has(SupportsBatch[ItemT]).retrieve_many(ids))

    def delete(self, item_id: UUID) -> bool:
        """See `SupportsDelete`."""
        return self._run(self._has(SupportsDelete).delete(item_id))

    def clear(self) -> int:
        """See `SupportsDelete`."""
        return self._run(self._has(SupportsDelete).clear())

    def scan(
        self,
        *,
        filters: Mapping[str, object] | None = None,
        after: UUID | None = None,
        page_size: int = 500,
    ) -> Iterator[ItemT]:
        """See `SupportsScan`."""
        scanning = self._has(SupportsScan[ItemT])

        async def begin() -> Any:  # on the store's loop: a bad filter is refused at once
            return scanning.scan(filters=filters, after=after, page_size=page_size)

        return self._each(self._run(begin()))

    def retrieve_revision(self, item_id: UUID) -> tuple[ItemT, int] | None:
        """See `SupportsRevisions`."""
        return self._run(self._has(SupportsRevisions[ItemT]).retrieve_revision(item_id))

    def replace(self, item: ItemLike, *, expected_revision: int) -> int | None:
        """See `SupportsRevisions`."""
        return self._run(
            self._has(SupportsRevisions[ItemT]).replace(item, expected_revision=expected_revision)
        )

    @property
    def score_meaning(self) -> str:
        """See `SupportsScoredSearch`."""
        return str(self._has(SupportsScoredSearch[ItemT]).score_meaning)

    def search_scored(self, query: QueryLike) -> list[ScoredHit[ItemT]]:
        """See `SupportsScoredSearch`."""
        return self._run(self._has(SupportsScoredSearch[ItemT]).search_scored(query))

    def reindex(self) -> int:
        """See `SupportsReindex`."""
        return self._run(self._has(SupportsReindex).reindex())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and end the thread. Idempotent; every caller waits until it is done.

        In a process that was forked it does nothing: the store is the parent's.
        """
        if self._process not in (0, os.getpid()):
            return
        with self._lock:
            first = not self._closed
            self._closed = True
            loop, thread = self._loop, self._thread
            # under the lock, so that it comes behind every call that was let in
            closing = _submit(self._store.close(), loop) if first and loop is not None else None
        if loop is None or thread is None:
            return
        try:
            if closing is not None:
                closing.result()
        finally:
            if closing is not None:
                loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _has(self, protocol: type[P]) -> P:
        if isinstance(self._store, getattr(protocol, "__origin__", protocol)):
            return cast("P", self._store)
        raise MemoryAdapterError(f"{self.manifest.adapter} has no {protocol.__name__}")

    def _each(self, items: Any) -> Iterator[ItemT]:
        async def following() -> Any:
            return await anext(items, _END)

        while (item := self._run(following())) is not _END:
            yield item

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            with self._lock:
                future = _submit(call, self._started())
        except MemoryAdapterError:
            call.close()
            raise
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise MemoryAdapterUnavailable("the store is closed")
        if threading.current_thread() is self._thread:
            raise MemoryAdapterError("a call from the store's own thread would wait for itself")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._process = os.getpid()
            self._thread = threading.Thread(
                target=_serve, args=(self._loop,), name="adapter-core-sync", daemon=True
            )
            self._thread.start()
        elif self._process != os.getpid():
            raise MemoryAdapterError("the store belongs to the process that this one was forked from")
        return self._loop


def _submit(call: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> Future[T]:
    return asyncio.run_coroutine_threadsafe(call, loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
