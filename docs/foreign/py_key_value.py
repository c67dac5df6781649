"""py-key-value's `MemoryStore`: puts, gets and lists keys; it has no search."""

from typing import Any

from key_value.aio.stores.memory import MemoryStore
from shim import ForeignHarness

from adapter_core import UnsupportedMemoryQuery


class PyKeyValue(ForeignHarness):
    adapter = "py-key-value MemoryStore"
    distributions = ("py-key-value-aio",)
    make_store_with: Any = None

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def ready(self) -> None: ...

    async def reset(self) -> None:
        self._store = MemoryStore()

    async def close(self) -> None: ...

    async def put(self, space: str, document: Any) -> None:
        await self._store.put(document["id"], document, collection=space)

    async def get(self, space: str, key: str) -> Any:
        return await self._store.get(key, collection=space)

    async def find(self, space: str, query: Any) -> Any:
        asked = {name: getattr(query, name) for name in ("text", "tags")} | (query.filters or {})
        if inexpressible := [name for name, value in asked.items() if value is not None]:
            raise UnsupportedMemoryQuery(inexpressible)
        keys = await self._store.keys(space, limit=query.limit)
        return await self._store.get_many(keys, collection=space)
