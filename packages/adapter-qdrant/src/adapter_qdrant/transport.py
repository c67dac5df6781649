"""The way to Qdrant: a narrow protocol in Qdrant's own words, and the real one over its client.

A condition is a filter as Qdrant's REST interface has it. This module does not load the client
library; `client` does, when a store connects.
"""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from uuid import UUID

from adapter_core import MemoryAdapterUnavailable

from .settings import QdrantSettings

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

    from .client import Client

Filter = Mapping[str, Any]
"""A filter in the form of the REST interface."""

UpdateMode = Literal["upsert", "insert_only", "update_only"]
IndexKind = Literal["keyword", "tenant", "float", "integer"]


class Sparse(NamedTuple):
    """A sparse vector: distinct indices of 32 bits, and the value of each."""

    indices: Sequence[int]
    values: Sequence[float]


class Point(NamedTuple):
    """A point as it is written.

    Attributes:
        id: Of the point, not of the item.
        payload: JSON values.
        vectors: By name.
    """

    id: UUID
    payload: Mapping[str, Any]
    vectors: Mapping[str, Sparse | Sequence[float]]


class Found(NamedTuple):
    """A point as it was read, with the payload fields that were asked for.

    Attributes:
        id: Of the point.
        payload: The fields that are there.
        score: Of a search by vector.
        order: What a search by `order_by` sorted by.
    """

    id: UUID
    payload: Mapping[str, Any]
    score: float | None = None
    order: float | None = None


class Search(NamedTuple):
    """One search of a request.

    Attributes:
        condition: What a hit must meet.
        limit: The most hits.
        fields: The payload fields that come with a hit.
        offset: How many hits are left out.
        vector: What to be near to; None: no vector.
        using: The name of the vector.
        corpus: Whose frequencies the server weighs terms by; None: those of the collection.
        newest_by: A payload field whose largest values come first; None: no such order.
    """

    condition: Filter
    limit: int
    fields: Sequence[str]
    offset: int = 0
    vector: Sparse | Sequence[float] | None = None
    using: str | None = None
    corpus: Filter | None = None
    newest_by: str | None = None


class Acknowledgement(NamedTuple):
    """What the server says of a write.

    Attributes:
        operation: The number under which it was done; None: it was not.
        status: `completed`, or that it may be done later: `acknowledged`, `wait_timeout`.
    """

    operation: int | None
    status: str


class CollectionState(NamedTuple):
    """What the server says of the collection.

    Attributes:
        metadata: As it was made with.
        indexes: The payload fields that have an index; None: an index has no effect here.
        dense: The size of each dense vector, by name.
        sparse: The names of the sparse vectors.
        replicas: How many each shard has.
        required_writes: How many of them must have applied a write.
    """

    metadata: Mapping[str, Any]
    indexes: frozenset[str] | None
    dense: Mapping[str, int]
    sparse: frozenset[str]
    replicas: int
    required_writes: int


class NewCollection(NamedTuple):
    """What a collection is made with: see `CollectionState`."""

    metadata: Mapping[str, Any]
    dense: Mapping[str, int]
    sparse: Sequence[str]


class Transport(Protocol):
    """What the driver needs of Qdrant, for one collection. Each method is one request.

    An answer other than a success is raised as an error with its number as `status_code`.
    """

    async def open(self) -> None:
        """Get ready to send; no request. After a failure nothing is left open."""
        ...

    async def close(self) -> None:
        """Close every connection of our own, unless another store still uses it."""
        ...

    async def version(self) -> str:
        """Give the version of the server."""
        ...

    async def is_volatile(self) -> bool:
        """Whether the data is only in this process; no request."""
        ...

    async def describe(self) -> CollectionState | None:
        """Describe the collection; None if there is none."""
        ...

    async def create(self, collection: NewCollection) -> None:
        """Make the collection; one that is there already stays as it is."""
        ...

    async def add_index(self, field: str, kind: IndexKind) -> None:
        """Index a payload field; an index that is there already stays as it is."""
        ...

    async def add_vector(self, name: str, size: int) -> None:
        """Let points have a dense vector of this name; one that is there already stays as it is."""
        ...

    async def upsert(
        self, points: Sequence[Point], *, only_over: Filter, mode: UpdateMode = "upsert"
    ) -> Acknowledgement:
        """Write points; one that is there is replaced only if it meets the condition.

        What the condition keeps is left out without a word.
        """
        ...

    async def delete(self, condition: Filter) -> Acknowledgement:
        """Delete the points that meet the condition."""
        ...

    async def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        """Read points by id; an unknown one is left out."""
        ...

    async def search(self, searches: Sequence[Search]) -> Sequence[Sequence[Found]]:
        """Do several searches; the hits of each."""
        ...

    async def scroll(
        self, condition: Filter, fields: Sequence[str], *, start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        """List points by ascending point id, and say where the next page starts; None: nowhere.

        Args:
            condition: What a point must meet.
            fields: The payload fields that come with a point.
            start: The first id that may be given; None: from the first one on.
            limit: The most points.
        """
        ...

    async def count(self, condition: Filter) -> int:
        """Count points, exactly."""
        ...


class ClientTransport:
    """Qdrant through `AsyncQdrantClient`.

    Several stores of one event loop may be given the same one, for one collection: the first that
    connects opens the client, and the last that is closed closes it.

    Args:
        place: A URL, `:memory:`, or `path:` and a folder; or a client of the caller's, which stays open.
        settings: The collection, and how it is spoken to.
        api_key: Of the server; None: none.
    """

    def __init__(
        self, place: "str | AsyncQdrantClient", settings: QdrantSettings, api_key: str | None = None
    ) -> None:
        self._place = place
        self._settings = settings
        self._api_key = api_key
        self._client: Client | None = None
        self._users = 0

    async def open(self) -> None:
        # it takes seconds to load, which the event loop should not wait for
        client: Any = await asyncio.to_thread(importlib.import_module, "adapter_qdrant.client")
        if self._client is None:
            self._client = client.Client(self._place, self._settings, self._api_key)
        self._users += 1

    async def close(self) -> None:
        self._users = max(self._users - 1, 0)
        if self._users:
            return
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def version(self) -> str:
        return await self._opened.version()

    async def is_volatile(self) -> bool:
        return self._opened.is_volatile

    async def describe(self) -> CollectionState | None:
        state = await self._opened.describe()
        if state is not None:
            self._opened.replicated = state.replicas > 1
        return state

    async def create(self, collection: NewCollection) -> None:
        await self._opened.create(collection)

    async def add_index(self, field: str, kind: IndexKind) -> None:
        await self._opened.add_index(field, kind)

    async def add_vector(self, name: str, size: int) -> None:
        await self._opened.add_vector(name, size)

    async def upsert(
        self, points: Sequence[Point], *, only_over: Filter, mode: UpdateMode = "upsert"
    ) -> Acknowledgement:
        return await self._opened.upsert(points, only_over, mode)

    async def delete(self, condition: Filter) -> Acknowledgement:
        return await self._opened.delete(condition)

    async def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        return await self._opened.retrieve(ids, fields)

    async def search(self, searches: Sequence[Search]) -> Sequence[Sequence[Found]]:
        return await self._opened.search(searches)

    async def scroll(
        self, condition: Filter, fields: Sequence[str], *, start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        return await self._opened.scroll(condition, fields, start, limit)

    async def count(self, condition: Filter) -> int:
        return await self._opened.count(condition)

    @property
    def _opened(self) -> "Client":
        if self._client is None:
            raise MemoryAdapterUnavailable("the transport is not open")
        return self._client
