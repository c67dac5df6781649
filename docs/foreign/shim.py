"""What the shims share: the kit's items as plain documents, and a harness. It decides nothing.

A shim says how a foreign store puts, gets and finds a document. It claims the most that the store
could, and passes on whatever the store can express.
"""

from collections.abc import Mapping
from typing import Any, get_args
from uuid import UUID

from adapter_conformance import Engine
from adapter_core import (
    ItemFields,
    MemoryAdapterError,
    MemoryAdapterManifest,
    MemoryItem,
    MemoryItemField,
    QueryLike,
    namespace_token,
)

Document = dict[str, Any]


def manifest(adapter: str, filters: frozenset[str]) -> MemoryAdapterManifest:
    """Claim everything: full fidelity, at once, with these filters."""
    return MemoryAdapterManifest(
        adapter=adapter,
        native_item_fields=frozenset(get_args(MemoryItemField)),
        dropped_item_fields=frozenset(),
        supported_filters=filters,
        search_consistency="immediate",
        retrieve_fidelity="full",
        search_fidelity="full",
        search_returns_tags=True,
        preserves_metadata=True,
    )


class ForeignHarness:
    """Stores over one foreign store. A subclass is the shim.

    Attributes:
        adapter: How the page calls it.
        distributions: What is installed for it; the first one is the store's own.
        filters: The filter keys that it can express.
        takes_filters: Whether any metadata key can be one.
    """

    adapter: str
    distributions: tuple[str, ...]
    environment = "embedded"
    filters: frozenset[str] = frozenset()
    not_staged: Mapping[str, str] = {
        "make_transport_available": "no outage is staged",
        "refuse_writes": "no refusal is staged",
        "plant_foreign_record": "no foreign record is staged",
        "plant_malformed_record": "no damaged record is staged",
        "age_index": "it does not remember how it was indexed",
        "degrade": "no loss of a capability is staged",
        "make_store_with": "it can express no filter",
    }

    async def engine(self) -> Engine:
        return Engine(self.adapter, "")

    async def make_store(self) -> "Speaker":
        await self.ready()
        return Speaker(self)

    async def make_store_with(
        self, *, namespace: str = "default", filters: Any = (), item_type: Any = MemoryItem
    ) -> "Speaker":
        await self.ready()
        return Speaker(self, namespace, self.filters | set(filters), item_type)

    async def make_search_index_visible(self) -> None: ...

    async def make_transport_unavailable(self) -> None: ...

    # What a shim gives

    async def ready(self) -> None:
        """Open the store, unless it is open."""
        raise NotImplementedError

    async def reset(self) -> None:
        """Empty the store."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the store."""
        raise NotImplementedError

    async def put(self, space: str, document: Document) -> None:
        """Store a document, or replace it, under its `id`."""
        raise NotImplementedError

    async def get(self, space: str, key: str) -> Document | None:
        """Give the document with this id."""
        raise NotImplementedError

    async def find(self, space: str, query: QueryLike) -> list[Document]:
        """Search."""
        raise NotImplementedError


class Speaker:
    """Speaks for a foreign store: the three verbs and a manifest."""

    def __init__(
        self,
        foreign: ForeignHarness,
        namespace: str = "default",
        filters: frozenset[str] = frozenset(),
        item_type: Any = MemoryItem,
    ) -> None:
        self._foreign = foreign
        self._space = namespace_token(namespace)
        self._item_type = item_type
        self._manifest = manifest(foreign.adapter, filters)

    @property
    def manifest(self) -> MemoryAdapterManifest:
        return self._manifest

    async def store(self, item: Any) -> UUID:
        fields = ItemFields(item.id, item.created_at, item.metadata, item.content, item.tags)
        await _mapped(self._foreign.put(self._space, fields._replace(id=str(item.id))._asdict()))
        return item.id

    async def retrieve(self, item_id: UUID) -> Any:
        document = await _mapped(self._foreign.get(self._space, str(item_id)))
        return None if document is None else self._item(document)

    async def search(self, query: QueryLike) -> list[Any]:
        return [self._item(one) for one in await _mapped(self._foreign.find(self._space, query))]

    def _item(self, document: Document) -> Any:
        fields = {name: document[name] for name in ItemFields._fields}
        return self._item_type(**fields | {"id": UUID(fields["id"])})


async def _mapped(call: Any) -> Any:
    """Name the store's own error in the way that the contract asks for."""
    try:
        return await call
    except MemoryAdapterError:
        raise
    except Exception as error:
        raise MemoryAdapterError(f"the store raises {type(error).__name__}") from error
