"""Stores of other projects: measured if they are installed, each used as its documents say.

They are imported by name, so that type checks and tests need none of them.
"""

import importlib
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery

from .contender import Contender

NAMESPACE = ("memories",)


def peers() -> list[Contender]:
    """Give those whose distribution is installed."""
    found: list[tuple[str, type[Contender]]] = [
        ("aiosqlite", LangGraphSqlite),
        ("lionagi", LionagiInMemory),
    ]
    return [kind() for module, kind in found if find_spec(module)]


class LangGraphSqlite(Contender):
    """`AsyncSqliteStore`, with the write-ahead log and the same syncs as ours."""

    name = "LangGraph"
    full_name = "AsyncSqliteStore of LangGraph, WAL"
    role = "peer"
    indexes = "document by key; no search index, no text search"
    durability = "power cut"
    lacks = frozenset({"search_text"})

    # So many rows are one statement; more than a few thousand pass the limits of some builds of SQLite.
    _batch = 2000

    async def setup(self, folder: Path) -> None:
        self._base = importlib.import_module("langgraph.store.base")
        kind = importlib.import_module("langgraph.store.sqlite").AsyncSqliteStore
        self._stack = AsyncExitStack()
        self._store: Any = await self._stack.enter_async_context(
            kind.from_conn_string(str(folder / "langgraph.db"))
        )
        await self._store.conn.execute("PRAGMA journal_mode = WAL")
        await self._store.conn.execute("PRAGMA synchronous = FULL")
        await self._store.setup()

    async def close(self) -> None:
        await self._stack.aclose()

    def native_item(self, item: MemoryItem) -> tuple[str, dict[str, Any]]:
        # Its filters compare the value at a path, so a tag that can be asked for is a path.
        value = {
            "content": item.content,
            "created_at": item.created_at,
            "metadata": item.metadata,
            "tags": dict.fromkeys(item.tags, True),
        }
        return str(item.id), value

    def native_id(self, item_id: UUID) -> str:
        return str(item_id)

    def native_query(self, query: MemoryQuery) -> tuple[dict[str, Any], int]:
        paths: dict[str, Any] = {f"tags.{tag}": True for tag in query.tags or ()}
        return paths | {f"metadata.{key}": value for key, value in query.filters.items()}, query.limit

    def ids(self, hits: Sequence[Any]) -> list[UUID]:
        return [UUID(hit.key) for hit in hits]

    async def store(self, item: tuple[str, dict[str, Any]]) -> None:
        key, value = item
        await self._store.aput(NAMESPACE, key, value)

    async def store_many(self, items: Iterable[tuple[str, dict[str, Any]]]) -> None:
        puts = [self._base.PutOp(NAMESPACE, key, value) for key, value in items]
        for begin in range(0, len(puts), self._batch):
            await self._store.abatch(puts[begin : begin + self._batch])

    async def retrieve(self, item_id: str) -> Any:
        return await self._store.aget(NAMESPACE, item_id)

    async def search(self, query: tuple[dict[str, Any], int]) -> Sequence[Any]:
        paths, limit = query
        hits: Sequence[Any] = await self._store.asearch(NAMESPACE, filter=paths, limit=limit)
        return hits

    async def search_text(self, query: Any) -> Sequence[Any]:
        raise NotImplementedError


class LionagiInMemory(Contender):
    """`InMemoryStore` of lionagi, with its own items and queries."""

    name = "lionagi"
    full_name = "InMemoryStore of lionagi"
    role = "peer"
    indexes = "document by key; no search index"
    durability = "none"
    lacks = frozenset({"store_many"})

    async def setup(self, folder: Path) -> None:  # noqa: ARG002 - it has no file
        self._memory = importlib.import_module("lionagi.protocols.memory")
        self._store: Any = self._memory.InMemoryStore()

    async def close(self) -> None:
        pass

    def native_item(self, item: MemoryItem) -> Any:
        return self._memory.MemoryItem(
            id=item.id,
            created_at=item.created_at,
            metadata=item.metadata,
            content=item.content,
            tags=item.tags,
        )

    def native_query(self, query: MemoryQuery) -> Any:
        return self._memory.MemoryQuery(
            text=query.text, tags=query.tags, filters=query.filters, limit=query.limit
        )

    async def store(self, item: Any) -> None:
        await self._store.store(item)

    async def store_many(self, items: Iterable[Any]) -> None:
        for item in items:
            await self._store.store(item)

    async def retrieve(self, item_id: UUID) -> Any:
        return await self._store.retrieve(item_id)

    async def search(self, query: Any) -> Sequence[Any]:
        hits: Sequence[Any] = await self._store.search(query)
        return hits

    async def search_text(self, query: Any) -> Sequence[Any]:
        return await self.search(query)
