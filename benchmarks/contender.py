"""What a contender is: a store that takes its turn in the measuring."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery

Role = Literal["ours", "raw", "peer"]


class Contender(ABC):
    """One store, or one way to use a client library.

    The methods that are timed take what `native_item`, `native_id` and `native_query` made: a peer
    gets its own kind of object, and the clock does not see how it came to be.

    Attributes:
        name: Stands over the column.
        full_name: What it is.
        role: `raw` is what all others are compared with; there is exactly one.
        indexes: What a write keeps up to date for later searches, in a few words.
        durability: What an acknowledged write survives, in a few words.
        lacks: The methods that it has no counterpart of; they are not timed.
    """

    name: str
    full_name: str
    role: Role
    indexes: str
    durability: str
    lacks: frozenset[str] = frozenset()

    @abstractmethod
    async def setup(self, folder: Path) -> None:
        """Open, with all data in a folder of its own."""

    @abstractmethod
    async def close(self) -> None:
        """Release what `setup` took."""

    async def loaded(self) -> None:  # noqa: B027 - most have nothing to do
        """Prepare for reading: the data has been brought in."""

    async def server_memory(self) -> int | None:
        """Give the bytes of memory that a server of its own uses now; None if there is none."""
        return None

    def native_item(self, item: MemoryItem) -> Any:
        """Give the item in the contender's own form."""
        return item

    def native_id(self, item_id: UUID) -> Any:
        """Give the identity in the contender's own form."""
        return item_id

    def native_query(self, query: MemoryQuery) -> Any:
        """Give the query in the contender's own form."""
        return query

    def ids(self, hits: Sequence[Any]) -> list[UUID]:
        """Name the hits of a search."""
        return [hit.id for hit in hits]

    # What is timed

    @abstractmethod
    async def store(self, item: Any) -> None:
        """Store one item. When this returns, it is as durable as the contender makes it."""

    @abstractmethod
    async def store_many(self, items: Iterable[Any]) -> None:
        """Store many items; also used to bring in the data."""

    @abstractmethod
    async def retrieve(self, item_id: Any) -> Any:
        """Give the item with this id."""

    @abstractmethod
    async def search(self, query: Any) -> Sequence[Any]:
        """Search by tag and filter."""

    @abstractmethod
    async def search_text(self, query: Any) -> Sequence[Any]:
        """Search by text."""
