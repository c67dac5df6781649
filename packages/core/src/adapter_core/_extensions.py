"""Extension protocols: what a store may offer beside the three verbs.

A store has the methods of a protocol only if it keeps the whole promise.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from ._items import ItemLike, QueryLike
from ._projection import Projection
from ._protocols import ItemT, ItemT_co

Durability = Literal["volatile", "crash", "power"]


@dataclass(frozen=True, slots=True)
class ScoredHit(Generic[ItemT]):
    """A search hit and its score; what the score means, the store's `score_meaning` says."""

    item: ItemT
    score: float | None

    def __repr__(self) -> str:
        """Give the score without the item's contents."""
        return f"ScoredHit(score={self.score!r})"


@runtime_checkable
class DeclaresProjection(Protocol):
    """The store says as code what it does to an item."""

    @property
    def projection(self) -> Projection: ...


@runtime_checkable
class DeclaresDurability(Protocol):
    """The store says what an acknowledged write survives.

    `volatile`: nothing. `crash`: the death of any process. `power`: a power cut. Fixed at
    construction, and checked against the service's own settings when connecting.
    """

    @property
    def durability(self) -> Durability: ...


@runtime_checkable
class SupportsBatch(Protocol[ItemT_co]):
    """Many items in one call."""

    async def store_many(self, items: Iterable[ItemLike]) -> list[UUID]: ...
    async def retrieve_many(self, ids: Iterable[UUID]) -> Mapping[UUID, ItemT_co]: ...


@runtime_checkable
class SupportsDelete(Protocol):
    """Deletion of one item, or of all that the namespace holds."""

    async def delete(self, item_id: UUID) -> bool: ...
    async def clear(self) -> int: ...


@runtime_checkable
class SupportsScan(Protocol[ItemT_co]):
    """Every item that was there throughout, exactly once, in a stable order."""

    def scan(
        self,
        *,
        filters: Mapping[str, object] | None = None,
        after: UUID | None = None,
        page_size: int = 500,
    ) -> AsyncIterator[ItemT_co]: ...


@runtime_checkable
class SupportsRevisions(Protocol[ItemT_co]):
    """Optimistic concurrency: replace an item only if nobody wrote it in between."""

    async def retrieve_revision(self, item_id: UUID) -> tuple[ItemT_co, int] | None: ...
    async def replace(self, item: ItemLike, *, expected_revision: int) -> int | None: ...


@runtime_checkable
class SupportsScoredSearch(Protocol[ItemT]):
    """Search hits with their scores."""

    @property
    def score_meaning(self) -> str: ...
    async def search_scored(self, query: QueryLike) -> list[ScoredHit[ItemT]]: ...


@runtime_checkable
class SupportsReindex(Protocol):
    """Rebuild the search index of the namespace after a change of its rules."""

    async def reindex(self) -> int: ...


class Extension(NamedTuple):
    """An extension protocol, with the name and version that reports use."""

    name: str
    version: int
    protocol: type


EXTENSIONS = (
    Extension("batch", 1, SupportsBatch),
    Extension("delete", 1, SupportsDelete),
    Extension("scan", 1, SupportsScan),
    Extension("revisions", 1, SupportsRevisions),
    Extension("scored-search", 1, SupportsScoredSearch),
    Extension("reindex", 1, SupportsReindex),
)


def extensions_of(store: object) -> list[str]:
    """Name the extensions that a store claims, as `batch/1`."""
    return [f"{e.name}/{e.version}" for e in EXTENSIONS if isinstance(store, e.protocol)]
