"""Stores of other projects on Postgres: measured if they are installed, each used as its documents say.

They are imported by name, so that type checks and tests need none of them.
"""

import importlib
import warnings
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery

from .contender import Contender
from .on_postgres import CONNECTIONS, ServerContender

NAMESPACE = ("memories",)
COLLECTION = "memories"


def peers() -> list[Contender]:
    """Give those whose distribution is installed."""
    found: list[tuple[str, type[Contender]]] = [("psycopg_pool", LangGraph), ("key_value", PyKeyValue)]
    return [kind() for module, kind in found if find_spec(module)]


class LangGraph(ServerContender):
    """`AsyncPostgresStore`, with a pool."""

    name = "LangGraph"
    full_name = "AsyncPostgresStore of LangGraph, pool of psycopg"
    role = "peer"
    indexes = "document by key; no search index, no text search"
    lacks = frozenset({"search_text"})

    # So many rows are one statement; each has a few of the 65,535 parameters that one may have.
    _batch = 2000

    async def _open(self, url: str) -> None:
        self._base = importlib.import_module("langgraph.store.base")
        kind = importlib.import_module("langgraph.store.postgres.aio").AsyncPostgresStore
        self._stack = AsyncExitStack()
        self._store: Any = await self._stack.enter_async_context(
            kind.from_conn_string(url, pool_config={"min_size": CONNECTIONS, "max_size": CONNECTIONS})
        )
        await self._store.setup()

    async def _shut(self) -> None:
        await self._stack.aclose()

    def native_item(self, item: MemoryItem) -> tuple[str, dict[str, Any]]:
        # Its filters compare the whole value of a top-level key, so what can be asked for is one.
        value = {"content": item.content, "created_at": item.created_at}
        return str(item.id), value | item.metadata | {f"tag {tag}": True for tag in item.tags}

    def native_id(self, item_id: UUID) -> str:
        return str(item_id)

    def native_query(self, query: MemoryQuery) -> tuple[dict[str, Any], int]:
        return {f"tag {tag}": True for tag in query.tags or ()} | query.filters, query.limit

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
        filters, limit = query
        hits: Sequence[Any] = await self._store.asearch(NAMESPACE, filter=filters, limit=limit)
        return hits

    async def search_text(self, query: Any) -> Sequence[Any]:
        raise NotImplementedError


class PyKeyValue(ServerContender):
    """`PostgreSQLStore`, with the pool that it makes by default."""

    name = "py-key-value"
    full_name = "PostgreSQLStore of py-key-value, pool of asyncpg"
    role = "peer"
    indexes = "document by key; no search"
    lacks = frozenset({"search", "search_text"})

    async def _open(self, url: str) -> None:
        kind = importlib.import_module("key_value.aio.stores.postgresql").PostgreSQLStore
        self._stack = AsyncExitStack()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it calls its own interface unstable
            store = kind(url=url, default_collection=COLLECTION)
        self._store: Any = await self._stack.enter_async_context(store)

    async def _shut(self) -> None:
        await self._stack.aclose()

    def native_item(self, item: MemoryItem) -> tuple[str, dict[str, Any]]:
        return str(item.id), item.model_dump(mode="json", exclude={"id"})

    def native_id(self, item_id: UUID) -> str:
        return str(item_id)

    async def store(self, item: tuple[str, dict[str, Any]]) -> None:
        await self._store.put(*item)

    async def store_many(self, items: Iterable[tuple[str, dict[str, Any]]]) -> None:
        keys, values = zip(*items, strict=True)
        await self._store.put_many(keys, values)

    async def retrieve(self, item_id: str) -> Any:
        return await self._store.get(item_id)

    async def search(self, query: Any) -> Sequence[Any]:
        raise NotImplementedError

    async def search_text(self, query: Any) -> Sequence[Any]:
        raise NotImplementedError
