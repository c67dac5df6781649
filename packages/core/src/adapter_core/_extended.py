"""The extensions over a driver: mixins that an adapter's store class is composed of.

    class MyStore(Batching[ItemT], Deleting[ItemT], AdapterStore[ItemT]): ...

Each needs the driver class of the same name in `_driver`.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any
from uuid import UUID

from ._driver import DeletingDriver, Driver, ReindexingDriver, RevisingDriver, ScanningDriver
from ._errors import MemoryAdapterError, UnrepresentableItem
from ._extensions import ScoredHit
from ._items import ItemLike, MemoryQuery, QueryLike
from ._protocols import ItemT
from ._records import Criteria, Record, check_query, index_tokens
from ._store import AdapterStore, check_id

_REINDEX_PAGE = 200
_IDLE_ROUNDS = 10  # another writer may take away what hinders; a driver at fault does so for ever


class Batching(AdapterStore[ItemT]):
    """`SupportsBatch`: many items in one call."""

    async def store_many(self, items: Iterable[ItemLike]) -> list[UUID]:
        """Store many items: all of them, or none and an error. Of the same id, the last wins.

        Returns:
            The ids, in the order of the items.

        Raises:
            UnrepresentableItem: Naming the first such item, as `items[3].metadata.when`.
                Nothing was sent.
            MemoryAdapterUnavailable: The backend was not reached or did not answer.
            MemoryAdapterError: The backend refused. Nothing was stored.
        """
        self._check_usable()
        records: list[Record[Any]] = []
        for position, item in enumerate(items):
            try:
                records.append(self._record(item))
            except UnrepresentableItem as error:
                raise UnrepresentableItem(f"items[{position}].{error.path}", error.reason) from None
        if records:
            await self._counted(self._put(records))
        return [record.id for record in records]

    async def retrieve_many(self, ids: Iterable[UUID]) -> dict[UUID, ItemT]:
        """Give the items that are there, by id. An unknown id is left out."""
        self._check_usable()
        given = list(ids)
        for item_id in given:
            check_id(item_id)
        wanted = list(dict.fromkeys(given))
        if not wanted:
            return {}
        documents = await self._counted(self._get(wanted))
        found = zip(wanted, documents, strict=True)
        return {one: self._item(one, document) for one, document in found if document is not None}


class Deleting(AdapterStore[ItemT]):
    """`SupportsDelete`: deletion from every index at once."""

    async def delete(self, item_id: UUID) -> bool:
        """Delete an item; whether it was there."""
        check_id(item_id)
        driver: DeletingDriver[Any] = _need(self._driver, DeletingDriver)
        return await self._call("delete", lambda: driver.delete(item_id), write=True)

    async def clear(self) -> int:
        """Delete every item of the namespace; how many there were."""
        driver: DeletingDriver[Any] = _need(self._driver, DeletingDriver)
        return await self._call("clear", driver.clear, write=True)


class Scanning(AdapterStore[ItemT]):
    """`SupportsScan`: everything, in an order that does not change."""

    def scan(
        self,
        *,
        filters: Mapping[str, object] | None = None,
        after: UUID | None = None,
        page_size: int = 500,
    ) -> AsyncIterator[ItemT]:
        """Give every item, in an order that depends on the ids alone: ascending, unless the adapter says so.

        An item that is there throughout comes exactly once, whatever is written meanwhile.

        Args:
            filters: As in a query.
            after: Go on behind this id: the last one seen of an earlier scan.
            page_size: How many items one request asks for.

        Raises:
            UnsupportedMemoryQuery: Naming every rejected key, at once and not at the first item.
        """
        self._check_usable()
        if type(page_size) is not int or page_size < 1:
            raise MemoryAdapterError("page_size must be an int of at least 1")
        if after is not None:
            check_id(after)
        checked = check_query(MemoryQuery(filters=filters, limit=1), self._manifest.supported_filters)
        size = page_size if checked.satisfiable else 1
        return self._pages(checked.criteria, after, size, checked.satisfiable)

    async def _pages(
        self, criteria: Criteria, after: UUID | None, size: int, satisfiable: bool
    ) -> AsyncIterator[ItemT]:
        driver: ScanningDriver[Any] = _need(self._driver, ScanningDriver)
        if not satisfiable:
            await self._call("scan", lambda: driver.page(Criteria(), None, 1))
            return
        while True:
            start = after
            page = await self._call("scan", lambda: driver.page(criteria, start, size))  # noqa: B023
            for hit in page:
                yield self._item(hit.id, hit.document)
            if len(page) < size:
                return
            after = page[-1].id


class Revising(AdapterStore[ItemT]):
    """`SupportsRevisions`: replace an item only if nobody wrote it in between."""

    async def retrieve_revision(self, item_id: UUID) -> tuple[ItemT, int] | None:
        """Give an item and the number of its last write."""
        check_id(item_id)
        driver: RevisingDriver[Any] = _need(self._driver, RevisingDriver)
        found = await self._call("retrieve", lambda: driver.get_revision(item_id))
        return None if found is None else (self._item(item_id, found[0]), found[1])

    async def replace(self, item: ItemLike, *, expected_revision: int) -> int | None:
        """Store an item over the revision it was made from.

        Returns:
            The new revision; None when the expected one is stale or the item is gone, and then
            nothing was stored.
        """
        if type(expected_revision) is not int:
            raise MemoryAdapterError("expected_revision must be an int")
        record = self._record(item)
        driver: RevisingDriver[Any] = _need(self._driver, RevisingDriver)
        return await self._call("replace", lambda: driver.replace(record, expected_revision), write=True)


class Scoring(AdapterStore[ItemT]):
    """`SupportsScoredSearch`: hits with their scores."""

    _score_meaning: str

    @property
    def score_meaning(self) -> str:
        """What the score of a hit means, in a sentence."""
        return self._score_meaning

    async def search_scored(self, query: QueryLike) -> list[ScoredHit[ItemT]]:
        """Search as `search` does, and give each hit's score; None without text."""
        return [ScoredHit(self._item(hit.id, hit.document), hit.score) for hit in await self._find(query)]


class Reindexing(AdapterStore[ItemT]):
    """`SupportsReindex`: rebuild a namespace's search index after a change of its rules."""

    async def reindex(self) -> int:
        """Index every item as this store does, and let the namespace remember it.

        Safe while others write, and goes on where an interrupted run stopped.

        Returns:
            How many items were indexed anew.
        """
        self._check_usable()
        driver: ReindexingDriver[Any] = _need(self._driver, ReindexingDriver)
        done = idle = 0
        self._active += 1
        try:
            await self._mapped("reindex", self._open)
            await self._mapped("reindex", driver.remembered)
            while not await self._mapped("reindex", driver.adopt):
                stale = await self._mapped("reindex", lambda: driver.outdated(_REINDEX_PAGE))
                records = [(self._reindexed(hit), revision) for hit, revision in stale]
                await self._mapped("reindex", lambda: driver.reindex(records), write=True)  # noqa: B023
                done += len(records)
                idle = 0 if records else idle + 1
                if idle > _IDLE_ROUNDS:
                    raise MemoryAdapterError("reindex: items that cannot be listed keep their old index")
        finally:
            self._leave()
        return done

    def _reindexed(self, hit: Any) -> Record[Any]:
        try:
            fields = self._driver.unpack(hit.document)
        except ValueError as error:
            raise MemoryAdapterError(f"the stored record of {hit.id} is malformed") from error
        stored = self._projection.retrieve(fields)
        tags, facets, terms = index_tokens(fields)
        return Record(hit.id, stored.created_at, hit.document, tags, facets, terms)


def _need(driver: Driver[Any], kind: type[Any]) -> Any:
    if not isinstance(driver, kind):
        raise TypeError(f"{type(driver).__name__} is no {kind.__name__}, which this method needs")
    return driver
