"""Stores of other projects on Redis: measured if they are installed, each used as its documents say.

They are imported by name, so that type checks and tests need none of them.
"""

import importlib
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery

from .contender import Contender
from .on_redis import ServerContender, Servers

NAMESPACE = ("memories",)
COLLECTION = "memories"

_MOST_READ = 5_000  # memories that one search reads; of more, a turn would take minutes


def peers(servers: Servers, *, engine: bool) -> list[Contender]:
    """Give those whose distribution is installed.

    Args:
        servers: Where they take their servers from.
        engine: Whether those have a search engine and documents of JSON.
    """
    found: list[tuple[str, type[ServerContender]]] = [("key_value", PyKeyValue)]
    if engine:
        found.insert(0, ("redisvl", LangGraph))
    return [kind(servers) for module, kind in found if find_spec(module)]


class LangGraph(ServerContender):
    """`AsyncRedisStore`, without embeddings.

    It cuts what it finds at the limit and filters what is left, so it is asked for everything; only
    then does it find what there is.
    """

    name = "LangGraph"
    full_name = "AsyncRedisStore of LangGraph, asked for everything"
    role = "peer"
    indexes = "document by key; filters what it has read, no text search"
    lacks = frozenset({"search_text"})

    async def _open(self, url: str) -> None:
        self._base = importlib.import_module("langgraph.store.base")
        kind = importlib.import_module("langgraph.store.redis.aio").AsyncRedisStore
        self._stack = AsyncExitStack()
        self._store: Any = await self._stack.enter_async_context(kind.from_conn_string(url))
        self._held = 0

    async def _shut(self) -> None:
        await self._stack.aclose()

    async def loaded(self) -> None:
        if self._held > _MOST_READ:
            self.lacks = self.lacks | {"search"}

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
        self._held += 1
        await self._store.aput(NAMESPACE, key, value)

    async def store_many(self, items: Iterable[tuple[str, dict[str, Any]]]) -> None:
        puts = [self._base.PutOp(NAMESPACE, key, value) for key, value in items]
        self._held += len(puts)
        await self._store.abatch(puts)

    async def retrieve(self, item_id: str) -> Any:
        return await self._store.aget(NAMESPACE, item_id)

    async def search(self, query: tuple[dict[str, Any], int]) -> Sequence[Any]:
        filters, limit = query
        hits: Sequence[Any] = await self._store.asearch(NAMESPACE, filter=filters, limit=self._held)
        return hits[:limit]

    async def search_text(self, query: Any) -> Sequence[Any]:
        raise NotImplementedError


class PyKeyValue(ServerContender):
    """`RedisStore`, with the client that it makes."""

    name = "py-key-value"
    full_name = "RedisStore of py-key-value"
    role = "peer"
    indexes = "document by key; no search"
    lacks = frozenset({"search", "search_text"})

    async def _open(self, url: str) -> None:
        kind = importlib.import_module("key_value.aio.stores.redis").RedisStore
        self._stack = AsyncExitStack()
        self._store: Any = await self._stack.enter_async_context(kind(url=url, default_collection=COLLECTION))

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
