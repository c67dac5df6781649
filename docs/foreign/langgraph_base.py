"""What the shims for both stores of LangGraph share: its filters compare top-level keys of a value."""

from contextlib import AsyncExitStack
from typing import Any

from shim import ForeignHarness

BOUNDS = {"created_after": "$gte", "created_before": "$lte"}


class LangGraph(ForeignHarness):
    filters = frozenset(BOUNDS)
    store: Any = None

    def __init__(self) -> None:
        self.stack = AsyncExitStack()

    async def reset(self) -> None:
        await self.ready()
        async with self.store._cursor() as cursor:  # noqa: SLF001 - both stores have it
            await cursor.execute("DELETE FROM store")

    async def close(self) -> None:
        await self.stack.aclose()

    async def put(self, space: str, document: Any) -> None:
        facets = {f"metadata_{key}": value for key, value in document["metadata"].items()}
        facets |= {"created_at": document["created_at"]} | {f"tag_{tag}": True for tag in document["tags"]}
        await self.store.aput((space,), document["id"], {"item": document, **facets})

    async def get(self, space: str, key: str) -> Any:
        found = await self.store.aget((space,), key)
        return found and found.value["item"]

    async def find(self, space: str, query: Any) -> Any:
        asked = dict(query.filters or {})
        times = {BOUNDS[key]: asked.pop(key) for key in BOUNDS if key in asked}
        wanted: Any = {f"metadata_{key}": value for key, value in asked.items()}
        wanted |= {f"tag_{tag}": True for tag in query.tags or ()} | ({"created_at": times} if times else {})
        hits = await self.store.asearch((space,), query=query.text, filter=wanted, limit=query.limit)
        return [hit.value["item"] for hit in hits]
