"""For harnesses: what happens to a real collection, staged beside the stores."""

from typing import Any
from uuid import UUID

from adapter_core import namespace_token

from . import points, schema
from .settings import QdrantSettings
from .testing import AGED, foreign_point

_NAMESPACES = {"must": [points.equals("record", points.NAMESPACE)]}
_OURS = {"must": [points.any_of("record", [points.ITEM, points.NAMESPACE])]}
_ALL_BUT_NAMESPACES = {"must_not": [points.equals("record", points.NAMESPACE)]}


class Admin:
    """Stages faults in one collection.

    Args:
        place: A URL, or a client.
        settings: The collection.
        api_key: Of the server; None: none.
    """

    def __init__(self, place: Any, settings: QdrantSettings, api_key: str | None) -> None:
        from qdrant_client import models  # noqa: PLC0415 - it takes seconds to load

        from .client import Client  # noqa: PLC0415 - for the same reason

        self._client = Client(place, settings, api_key)
        self._native: Any = self._client.native
        self._models: Any = models
        self._name = settings.collection

    async def version(self) -> str:
        """Give the version of the server."""
        return await self._client.version()

    async def plant_foreign(self, namespace: str, item_id: UUID) -> None:
        """Put a point that is not the adapter's where the item with this id would be."""
        planted = foreign_point(namespace, item_id)
        await self._native.delete(self._name, [str(planted.id)])
        await self._client.upsert([planted], _OURS, "upsert")

    async def plant_malformed(self, namespace: str, item_id: UUID) -> None:
        """Damage the stored text of an item."""
        one = points.point_id(namespace_token(namespace), item_id)
        await self._native.set_payload(self._name, {"item": "{"}, [str(one)])

    async def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        await self._set(_OURS, {"indexed_as": AGED})

    async def drop(self) -> None:
        """Delete the collection."""
        if await self._native.collection_exists(self._name):
            await self._native.delete_collection(self._name)

    async def reset(self) -> None:
        """Remove every item, foreign points too, and let the namespaces be indexed as they were."""
        if not await self._native.collection_exists(self._name):
            return
        await self._client.delete(_ALL_BUT_NAMESPACES)
        ours = schema.signature_text(schema.signature(None))
        await self._set(_NAMESPACES, {"indexed_as": ours, "unfinished": False})

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _set(self, condition: dict[str, Any], payload: dict[str, Any]) -> None:
        chosen = self._models.FilterSelector(filter=self._models.Filter.model_validate(condition))
        await self._native.set_payload(self._name, payload, chosen)
