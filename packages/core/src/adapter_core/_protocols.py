"""The base protocols: three verbs, and the manifest beside them (ADR-0093)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypedDict, runtime_checkable
from uuid import UUID

from ._items import ItemLike, MemoryItem, QueryLike
from ._manifest import MemoryAdapterManifest

if TYPE_CHECKING:
    # PEP 696 defaults are for the type checker; at run time the standard library serves
    from typing_extensions import TypeVar

    ItemT = TypeVar("ItemT", bound=ItemLike, default=MemoryItem)
    ItemT_co = TypeVar("ItemT_co", bound=ItemLike, covariant=True, default=MemoryItem)
else:
    from typing import TypeVar

    ItemT = TypeVar("ItemT", bound=ItemLike)
    ItemT_co = TypeVar("ItemT_co", bound=ItemLike, covariant=True)


class StoreOptions(TypedDict, total=False):
    """The options that every adapter's constructor has, but for `item_type`.

    For the overloads of a constructor. One signature with a default for `item_type` is not enough:
    a type checker would then take the class of the items from what the caller expects.
    """

    namespace: str
    filters: Iterable[str]
    coalesce: bool


@runtime_checkable
class MemoryStore(Protocol[ItemT]):
    """A store of memories."""

    async def store(self, item: ItemLike) -> UUID:
        """Store an item, or replace the one that has its id; give its id."""
        ...

    async def retrieve(self, item_id: UUID) -> ItemT | None:
        """Give the item with this id, or None when there is none."""
        ...

    async def search(self, query: QueryLike) -> list[ItemT]:
        """Give the items that meet every condition of the query, up to its limit."""
        ...


@runtime_checkable
class ExternalMemoryStore(MemoryStore[ItemT], Protocol[ItemT]):
    """A store that declares what survives in it."""

    @property
    def manifest(self) -> MemoryAdapterManifest:
        """The same frozen manifest for the whole life of the instance."""
        ...
