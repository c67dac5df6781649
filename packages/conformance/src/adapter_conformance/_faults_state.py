"""Faults that take more than one call to show: the broken stores that remember something."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any
from uuid import UUID

from adapter_core import (
    TIME_FILTERS,
    ItemFields,
    ItemLike,
    MemoryAdapterError,
    MemoryAdapterManifest,
    MemoryAdapterUnavailable,
    MemoryQuery,
    same_fields,
)

from ._delegate import delegate
from ._faults import Inner, filters_of, with_fields
from ._run import fields_of, projection_of


def manifest_made_anew(store: Any) -> Any:
    """Each look at the manifest makes another object."""

    def made(inner: Inner) -> MemoryAdapterManifest:
        return inner.manifest.model_copy()

    return delegate(store, manifest=property(made))


def manifest_invalid(store: Any) -> Any:
    """The manifest was made past its validator."""
    manifest: MemoryAdapterManifest = store.manifest
    return delegate(store, manifest=manifest.model_copy(update={"adapter": ""}))


def similar_id(store: Any) -> Any:
    """An id is looked up by its first half only."""
    known: dict[str, UUID] = {}

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        known[item.id.hex[:16]] = item.id
        return await inner.store(item)

    async def retrieve(inner: Inner, item_id: UUID) -> Any:
        got = await inner.retrieve(item_id)
        return got or await inner.retrieve(known.get(item_id.hex[:16], item_id))

    return delegate(store, store=keep, retrieve=retrieve)


def replace_seen_late(store: Any) -> Any:
    """The first search after a replace gives the item as it was."""
    stored: dict[UUID, ItemFields] = {}
    late: dict[UUID, ItemFields] = {}

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        fields = fields_of(item)
        result = await inner.store(item)
        if item.id in stored:
            late[item.id] = stored[item.id]
        stored[item.id] = fields
        return result

    async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
        project = projection_of(inner).search
        old = {item_id: project(fields)._asdict() for item_id, fields in late.items()}
        late.clear()
        hits = await inner.search(query)
        return [with_fields(hit, **old[hit.id]) if hit.id in old else hit for hit in hits]

    return delegate(store, store=keep, search=search)


def never_recovers(store: Any) -> Any:
    """After the first outage every call says that the service is down."""
    broken: list[MemoryAdapterUnavailable] = []

    def guarded(verb: str) -> Callable[..., Any]:
        async def call(inner: Inner, argument: Any) -> Any:
            if broken:
                await getattr(inner, verb)(argument)  # asked all the same
                raise broken[0]
            try:
                return await getattr(inner, verb)(argument)
            except MemoryAdapterUnavailable as error:
                if error.__cause__ is not None:
                    broken.append(error)
                raise

        return call

    return delegate(store, **{verb: guarded(verb) for verb in ("store", "retrieve", "search")})


def refused_replace_shows(store: Any) -> Any:
    """A cache is written before the service has agreed to a replace."""
    known: set[UUID] = set()
    cached: dict[UUID, ItemFields] = {}

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        cached.pop(item.id, None)
        try:
            result = await inner.store(item)
        except MemoryAdapterError as error:
            if type(error) is MemoryAdapterError and item.id in known:
                cached[item.id] = fields_of(item)
            raise
        known.add(item.id)
        return result

    async def retrieve(inner: Inner, item_id: UUID) -> Any:
        got = await inner.retrieve(item_id)
        return with_fields(got, **cached[item_id]._asdict()) if got and item_id in cached else got

    return delegate(store, store=keep, retrieve=retrieve)


def own_facets_only(store: Any) -> Any:
    """Filters find what this handle stored, and not what was there before it."""
    own: set[UUID] = set()

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        own.add(item.id)
        return await inner.store(item)

    async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
        hits = await inner.search(query)
        by_key = set(filters_of(query)) - TIME_FILTERS
        return [hit for hit in hits if hit.id in own] if by_key else hits

    return delegate(store, store=keep, search=search)


def _trace(matches: Callable[[ItemFields, MemoryQuery], bool]) -> Callable[[Any], Any]:
    """A replaced item is still found by what it was."""

    def wrap(store: Any) -> Any:
        stored: dict[UUID, ItemFields] = {}
        traces: dict[UUID, ItemFields] = {}

        async def keep(inner: Inner, item: ItemLike) -> UUID:
            fields = fields_of(item)
            result = await inner.store(item)
            if item.id in stored:
                traces[item.id] = stored[item.id]
            stored[item.id] = fields
            return result

        async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
            hits = await inner.search(query)
            there = {hit.id for hit in hits}
            for item_id, old in traces.items():
                if item_id not in there and matches(old, query):
                    hits.append(await inner.retrieve(item_id))
            return hits

        return delegate(store, store=keep, search=search)

    return wrap


def _old_value(old: ItemFields, query: MemoryQuery) -> bool:
    filters = filters_of(query)
    return bool(filters) and all(key in old.metadata and old.metadata[key] == filters[key] for key in filters)


def _old_text(old: ItemFields, query: MemoryQuery) -> bool:
    return bool(query.text) and query.text == old.content


old_values_stay = _trace(_old_value)
old_text_stays = _trace(_old_text)


def caller_keeps_hold(store: Any) -> Any:
    """What is stored is the caller's own object."""
    held: dict[UUID, tuple[ItemFields, ItemFields]] = {}
    project = projection_of(store).retrieve

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        live = fields_of(item)
        held[item.id] = (deepcopy(live), live)
        return await inner.store(item)

    async def retrieve(inner: Inner, item_id: UUID) -> Any:
        got = await inner.retrieve(item_id)
        if got is not None and item_id in held:
            given, live = held[item_id]
            if same_fields(got, project(given)):
                return with_fields(got, **deepcopy(project(live))._asdict())
        return got

    return delegate(store, store=keep, retrieve=retrieve)


def live_items(store: Any) -> Any:
    """An item that did not change is handed out as the same object again."""
    out: dict[UUID, tuple[ItemFields, Any]] = {}

    async def retrieve(inner: Inner, item_id: UUID) -> Any:
        got = await inner.retrieve(item_id)
        return None if got is None else _same_object(out, got)

    return delegate(store, retrieve=retrieve)


def live_hits(store: Any) -> Any:
    """The same for hits."""
    out: dict[UUID, tuple[ItemFields, Any]] = {}

    async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
        return [_same_object(out, hit) for hit in await inner.search(query)]

    return delegate(store, search=search)


def _same_object(out: dict[UUID, tuple[ItemFields, Any]], got: Any) -> Any:
    if got.id in out and same_fields(out[got.id][0], got):
        return out[got.id][1]
    out[got.id] = (deepcopy(fields_of(got)), got)
    return got


class SharedCache:
    """One cache for all the stores of the process, whatever their namespace.

    It serves only an item that this store wrote last, so that of one namespace it is always right.
    """

    def __init__(self) -> None:
        self._newest: dict[UUID, ItemFields] = {}

    def __call__(self, store: Any) -> Any:
        """Put the cache before a store."""
        own: dict[UUID, ItemFields] = {}
        project = projection_of(store).retrieve

        async def keep(inner: Inner, item: ItemLike) -> UUID:
            fields = deepcopy(fields_of(item))
            result = await inner.store(item)
            own[item.id] = self._newest[item.id] = project(fields)
            return result

        async def retrieve(inner: Inner, item_id: UUID) -> Any:
            got = await inner.retrieve(item_id)
            if got is not None and item_id in own and same_fields(got, own[item_id]):
                return with_fields(got, **deepcopy(self._newest[item_id])._asdict())
            return got

        return delegate(store, store=keep, retrieve=retrieve)


def cached_after_close(store: Any) -> Any:
    """What was stored can still be had from a store that is closed."""
    cached: dict[UUID, Any] = {}

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        cached[item.id] = item
        return await inner.store(item)

    async def retrieve(inner: Inner, item_id: UUID) -> Any:
        try:
            return await inner.retrieve(item_id)
        except MemoryAdapterUnavailable as error:
            if error.__cause__ is None and item_id in cached:
                return cached[item_id]
            raise

    return delegate(store, store=keep, retrieve=retrieve)


def other_index_is_empty(store: Any) -> Any:
    """A namespace that is indexed by other rules is taken for an empty one."""

    async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
        try:
            return await inner.search(query)
        except MemoryAdapterError as error:
            if type(error) is MemoryAdapterError and error.__cause__ is None:
                return []
            raise

    return delegate(store, search=search)


def degraded_is_empty(store: Any) -> Any:
    """A capability that went away is taken for a search that finds nothing."""
    closed: list[bool] = []

    async def close(inner: Any) -> None:
        closed.append(True)
        await inner.close()

    async def search(inner: Inner, query: MemoryQuery) -> list[Any]:
        try:
            return await inner.search(query)
        except MemoryAdapterUnavailable as error:
            if error.__cause__ is None and not closed:
                return []
            raise

    closing = {"close": close} if hasattr(store, "close") else {}
    return delegate(store, search=search, **closing)


def torn_replace(store: Any) -> Any:
    """Two writes of one item at once mix: the content of the one, the tags of the other."""
    under_way: dict[UUID, ItemFields] = {}

    async def keep(inner: Inner, item: ItemLike) -> UUID:
        fields = fields_of(item)
        if item.id in under_way:
            return await inner.store(fields._replace(content=under_way[item.id].content))
        under_way[item.id] = fields
        try:
            return await inner.store(item)
        finally:
            del under_way[item.id]

    return delegate(store, store=keep)


class SetUpRace:
    """When more than two stores set up at once, writes are acknowledged and lost."""

    def __init__(self) -> None:
        self._setting_up = 0

    def __call__(self, store: Any) -> Any:
        """Watch the first write of a store."""
        first = [True]

        async def keep(inner: Inner, item: ItemLike) -> UUID:
            if not first:
                return await inner.store(item)
            first.clear()
            self._setting_up += 1
            try:
                return item.id if self._setting_up > 2 else await inner.store(item)
            finally:
                self._setting_up -= 1

        return delegate(store, store=keep)


def scan_skips(store: Any) -> Any:
    """The first item of the second page is left out."""

    async def scan(inner: Any, *, page_size: int = 500, **options: Any) -> Any:
        position = 0
        async for item in inner.scan(page_size=page_size, **options):
            position += 1
            if position != page_size + 1:
                yield item

    return delegate(store, scan=scan)
