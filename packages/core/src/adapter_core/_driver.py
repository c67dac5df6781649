"""What an adapter implements: a driver over records and criteria.

`AdapterStore` does what is the same for every backend; a driver holds only what is special to
one. All methods of a driver are called from one event loop, and several may be under way at once.
A driver raises native exceptions; the store maps them, once. It raises a `MemoryAdapterError` of
its own only for what the client library cannot know, such as a foreign record.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic
from uuid import UUID

from ._items import ItemFields
from ._records import Criteria, DocumentT, Hit, Record


class Driver(ABC, Generic[DocumentT]):
    """The part of an adapter that is special to its backend, for one namespace.

    Attributes:
        puts_at_once: Into how many batches many `store` calls of one tick are cut, which are then sent at
            the same time. More than 1 pays where the backend works beside the client.
    """

    puts_at_once: int = 1

    @abstractmethod
    def pack(self, item: ItemFields) -> DocumentT:
        """Write a checked item in the backend's form. Pure; called before any I/O.

        The result shares no mutable part with the item.
        """

    @abstractmethod
    def unpack(self, document: DocumentT) -> ItemFields:
        """Read what the backend gave back. Pure.

        Raises:
            ValueError: The document is malformed. The message does not show it.
        """

    @abstractmethod
    def is_unavailable(self, error: Exception) -> bool:
        """Whether a native error means that the backend could not be asked or did not answer.

        Down, refused, timed out, authentication failed, pool exhausted, read-only, out of memory.
        Any other native error is taken as a refusal: nothing was stored.
        """

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the schema if need be; safe when many do it at once.

        Called again after a failure. A failed or cancelled `open` leaves nothing behind.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release all that `open` took. Called only after `open` succeeded, and again if cancelled."""

    @abstractmethod
    async def put(self, records: Sequence[Record[DocumentT]]) -> Sequence[UUID]:
        """Store or replace whole items, all of them or none, atomically for each item.

        No id occurs twice. A replaced item leaves no trace in any index. The write is retrievable
        when this returns. It is sent once: never retried.

        Returns:
            The ids that the backend acknowledged. If one is missing, nothing was stored.

        Raises:
            MemoryAdapterError: A record under one of the ids is not ours; nothing was stored.
        """

    @abstractmethod
    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, DocumentT]:
        """Read items by identity, never through a search index.

        An unknown id, and a record that is not ours, is left out.
        """

    @abstractmethod
    async def find(self, criteria: Criteria) -> Sequence[Hit[DocumentT]]:
        """Search. Every condition is met inside the backend, before the limit.

        Without terms the order is `created_at` descending, then `id` ascending; with terms the
        adapter's relevance, then that order. A limit beyond what the backend gives at once is
        paged until it is met or the data ends.
        """


class DeletingDriver(Driver[DocumentT]):
    """A driver that can delete."""

    @abstractmethod
    async def delete(self, item_id: UUID) -> bool:
        """Delete one item from everywhere; whether it was there. A foreign record stays."""

    @abstractmethod
    async def clear(self) -> int:
        """Delete every item of the namespace; how many there were."""


class ScanningDriver(Driver[DocumentT]):
    """A driver that can list everything, in an order that does not change."""

    @abstractmethod
    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[DocumentT]]:
        """Give the next items that meet the criteria; fewer than `size` at the end.

        The place of an item depends on its id alone: it is ascending, or the backend's own order.

        The criteria have no terms and no limit.
        """


class RevisingDriver(Driver[DocumentT]):
    """A driver that numbers every write of an item.

    A number is never used again for an id, not even after a deletion.
    """

    @abstractmethod
    async def get_revision(self, item_id: UUID) -> tuple[DocumentT, int] | None:
        """Read an item and its revision in one step."""

    @abstractmethod
    async def replace(self, record: Record[DocumentT], expected_revision: int) -> int | None:
        """Replace an item if its revision is the expected one; the new revision, or None."""


class ReindexingDriver(Driver[DocumentT]):
    """A driver whose namespace remembers how its items were indexed.

    A namespace that another signature owns answers neither `put` nor `find` of this driver.
    """

    @property
    @abstractmethod
    def signature(self) -> Mapping[str, str]:
        """How this driver indexes items: storage layout, version of the term rules, and so on."""

    @abstractmethod
    async def remembered(self) -> Mapping[str, str]:
        """How the namespace is indexed; a new namespace takes this driver's signature."""

    @abstractmethod
    async def outdated(self, size: int) -> Sequence[tuple[Hit[DocumentT], int]]:
        """Some items that are not indexed by this driver's signature, with their revisions."""

    @abstractmethod
    async def reindex(self, records: Sequence[tuple[Record[DocumentT], int]]) -> None:
        """Replace the tokens of the items whose revision is still the given one."""

    @abstractmethod
    async def adopt(self) -> bool:
        """Give the namespace this signature, unless an item is left that has another."""
