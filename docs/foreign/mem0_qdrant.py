"""mem0's Qdrant vector store, over the engine of Qdrant's client, in a folder."""

import os
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from shim import ForeignHarness

# before mem0 is imported: it would begin to send, and write to the home directory
FOLDER = TemporaryDirectory()
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": FOLDER.name}
BOUNDS = {"created_after": "gte", "created_before": "lte"}


class Mem0Qdrant(ForeignHarness):
    adapter = "mem0 Qdrant vector store"
    distributions = ("mem0ai", "qdrant-client")
    filters = frozenset(BOUNDS)
    store: Any = None

    async def ready(self) -> None:
        from mem0.vector_stores.qdrant import Qdrant  # noqa: PLC0415 - after what is set above

        self.store = self.store or Qdrant("memories", 1, path=FOLDER.name)

    async def reset(self) -> None:
        await self.ready()
        self.store.reset()

    async def close(self) -> None:
        self.store.client.close()

    async def put(self, space: str, document: Any) -> None:
        facets = {f"metadata_{key}": value for key, value in document["metadata"].items()}
        facets |= {"created_at": document["created_at"], "tags": document["tags"], "space": space}
        payload = {"item": document, "data": str(document["content"]), **facets}
        self.store.insert([[1.0]], [payload], [point(space, document["id"])])

    async def get(self, space: str, key: str) -> Any:
        found = self.store.get(point(space, key))
        return found and found.payload["item"]

    async def find(self, space: str, query: Any) -> Any:
        asked = dict(query.filters or {})
        times = {BOUNDS[key]: asked.pop(key) for key in BOUNDS if key in asked}
        wanted: Any = {"space": space} | {f"metadata_{key}": value for key, value in asked.items()}
        wanted |= {"tags": {"in": query.tags}} if query.tags else {}
        wanted |= {"created_at": times} if times else {}
        wanted |= {"data": {"contains": query.text}} if query.text else {}
        found, _ = self.store.list(wanted, query.limit)
        return [one.payload["item"] for one in found]


def point(space: str, key: str) -> str:
    """Give the id of a point: the same id may live in two namespaces."""
    return str(uuid5(NAMESPACE_OID, f"{space} {key}"))
