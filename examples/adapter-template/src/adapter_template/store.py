"""The adapter: a driver that maps records to the service, and the store that users hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, Unpack, overload
from uuid import UUID

import adapter_core as core
from adapter_core import Criteria, Hit, ItemFields, ItemT, Record

from .gaps import Gap, TemplateOptions, declared_with, kept, shown
from .service import ForeignRow, Row, TemplateService

KIND = "memory"  # the marker of our rows; a row without it is foreign


class TemplateDriver(core.DeletingDriver[str]):
    """Records as rows of one table for each namespace. A full adapter has no `gap`."""

    def __init__(self, service: TemplateService, namespace: str, gap: Gap | None) -> None:
        self._service = service
        self._table = core.namespace_token(namespace)
        self._gap: Gap | None = gap
        self._refresh = gap != "eventual"

    def pack(self, item: ItemFields) -> str:
        return core.encode_document(kept(item, self._gap))

    def unpack(self, document: str) -> ItemFields:
        return core.decode_document(document)

    def is_unavailable(self, error: Exception) -> bool:
        return isinstance(error, OSError)

    async def open(self) -> None:
        await self._service.connect(self._table)

    async def close(self) -> None:
        """Nothing to release: the service is given, and whoever gave it closes it."""

    async def put(self, records: Sequence[Record[str]]) -> Sequence[UUID]:
        rows = {
            one.id: Row(KIND, one.document, one.created_at, frozenset([*one.tags, *one.facets, *one.terms]))
            for one in records
        }
        try:
            return await self._service.write(self._table, rows, refresh=self._refresh)
        except ForeignRow as error:
            raise core.MemoryAdapterError("store: a record that is not ours has this id") from error

    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, str]:
        rows = await self._service.read(self._table, ids)
        return {key: row.document for key, row in rows.items() if row.kind == KIND}

    async def find(self, criteria: Criteria) -> Sequence[Hit[str]]:
        # a token begins with its kind, so tags, facets and terms can share one set
        groups = [*criteria.facets, *((term,) for term in criteria.terms)]
        if criteria.tags:
            groups.append(criteria.tags)
        times = criteria.created_after, criteria.created_before
        found = await self._service.search(self._table, KIND, groups, times, criteria.limit)
        return [Hit(key, shown(row.document, self._gap)) for key, row in found]

    async def delete(self, item_id: UUID) -> bool:
        return await self._service.delete(self._table, KIND, [item_id], refresh=self._refresh) == 1

    async def clear(self) -> int:
        return await self._service.delete(self._table, KIND, refresh=self._refresh)


class TemplateMemoryStore(core.Batching[ItemT], core.Deleting[ItemT], core.AdapterStore[ItemT]):
    """A memory store in the process; text is not ranked, hits come newest first."""

    durability: core.Durability = "volatile"

    # Without item_type the items are MemoryItem, whatever class the caller expects.
    @overload
    def __init__(
        self: "TemplateMemoryStore[core.MemoryItem]",
        service: TemplateService,
        **options: Unpack[TemplateOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, service: TemplateService, *, item_type: Callable[..., ItemT], **options: Unpack[TemplateOptions]
    ) -> None: ...
    def __init__(
        self,
        service: TemplateService,
        *,
        namespace: str = "default",
        filters: Iterable[str] = (),
        item_type: Callable[..., ItemT] = core.DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
        gap: Gap | None = None,
    ) -> None:
        declared = declared_with(gap)
        manifest = core.MemoryAdapterManifest(
            adapter=f"template-{gap}" if gap else "template",
            native_item_fields=declared.native,
            dropped_item_fields=declared.dropped,
            supported_filters=core.check_filter_keys(filters) | core.TIME_FILTERS,
            search_consistency=declared.consistency,
            retrieve_fidelity=declared.retrieve,
            search_fidelity=declared.search,
            search_returns_tags=declared.tags_in_search,
            preserves_metadata=True,
        )
        driver = TemplateDriver(service, namespace, gap)
        super().__init__(
            driver, manifest=manifest, projection=declared.projection, item_type=item_type, coalesce=coalesce
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Make a store over a new service, for `open_store("template:///")`."""
        if url != "template:///":
            raise core.MemoryAdapterError("the URL is template:/// and nothing more")
        return cls(TemplateService(), **options)
