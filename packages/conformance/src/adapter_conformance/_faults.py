"""Faults of what a read gives and of what a search is asked, and the ways to put a fault around a store."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from adapter_core import (
    AnyOf,
    ExternalMemoryStore,
    MemoryAdapterManifest,
    MemoryItem,
    MemoryQuery,
    QueryLike,
    UnsupportedMemoryQuery,
    same_fields,
)

from ._delegate import delegate
from ._run import changed_fields, fields_of, projection_of
from .values import CONTENTS, METADATA, TAGS, TIMES

Inner = ExternalMemoryStore[Any]

Wrap = Callable[[Any], Any]


@dataclass(frozen=True)
class BrokenStore:
    """A store with one fault, which passes everything else on to a good one.

    Attributes:
        name: Stable name.
        verb: The verb, or property, that is broken.
        fault: What it does wrong.
        case: The id of the case that must notice, and the only one that may.
        reason: A part of the reason that this case must give.
        wrap: Puts the fault around a good store.
        needs: A method of an extension, without which the fault cannot be shown.
        if_eventual: A part of the reason where the search index may lag, if it is another one.
    """

    name: str
    verb: str
    fault: str
    case: str
    reason: str
    wrap: Wrap
    needs: str = ""
    if_eventual: str = ""

    def reason_for(self, manifest: MemoryAdapterManifest) -> str:
        """Give a part of the reason that the case must give for a store with this manifest."""
        eventual = manifest.search_consistency == "eventual"
        return self.if_eventual if eventual and self.if_eventual else self.reason

    def not_applicable(self, store: Any) -> str:
        """Say why the fault cannot be told from what a good store declares; empty: it can.

        The rule has two parts: the store lacks the method that would be broken; or its manifest
        says that the verb is not full, and its projection has done already what the fault does.
        """
        if self.needs and not hasattr(store, self.needs):
            return f"the store has no {self.needs}"
        return self.wrap.declared_by(store) if isinstance(self.wrap, Changed) else ""


# Ways to put a fault around a store


def on(verb: str, fault: Callable[..., Any]) -> Wrap:
    """Replace one verb; the fault takes the inner store first."""
    return lambda store: delegate(store, **{verb: fault})


@dataclass(frozen=True)
class Changed:
    """A fault that changes each item which a verb gives."""

    verb: Literal["retrieve", "search"]
    change: Callable[[Any], Any]

    def __call__(self, store: Any) -> Any:
        """Put the fault around a store."""

        async def retrieve(inner: Inner, item_id: UUID) -> Any:
            got = await inner.retrieve(item_id)
            return None if got is None else self.change(got)

        async def search(inner: Inner, query: QueryLike) -> list[Any]:
            return [self.change(hit) for hit in await inner.search(query)]

        return delegate(store, **{self.verb: retrieve if self.verb == "retrieve" else search})

    def declared_by(self, store: Any) -> str:
        """Name the losses that leave this fault nothing to change; empty: it shows."""
        if getattr(store.manifest, f"{self.verb}_fidelity") == "full":
            return ""
        projection = projection_of(store)
        changes: set[str] = set()
        for probe in _probes():
            declared = with_fields(probe, **getattr(projection, self.verb)(fields_of(probe))._asdict())
            if not same_fields(self.change(deepcopy(declared)), declared):
                return ""
            changes |= set(changed_fields(probe, self.change(deepcopy(probe))))
        names = [loss.name for loss in projection.losses if loss.field in changes]
        return f"it is declared: {', '.join(names)}" if names else ""


def _probes() -> Iterator[MemoryItem]:
    for content in CONTENTS.values():
        yield MemoryItem(content=content)
    for metadata in METADATA.values():
        yield MemoryItem(metadata=metadata)
    for tags in TAGS.values():
        yield MemoryItem(tags=tags)
    for time in TIMES.values():
        yield MemoryItem(created_at=time)


def retrieved(change: Callable[[Any], Any]) -> Wrap:
    """Change what `retrieve` gives."""
    return Changed("retrieve", change)


def found(change: Callable[[Any], Any]) -> Wrap:
    """Change each hit of a search."""
    return Changed("search", change)


def asked(change: Callable[[Inner, MemoryQuery], MemoryQuery]) -> Wrap:
    """Change what `search` asks the inner store; the change takes that store and the query."""

    async def search(inner: Inner, query: MemoryQuery) -> Any:
        return await inner.search(change(inner, query))

    return on("search", search)


def with_fields(item: Any, **fields: Any) -> Any:
    """Give an item of the same class with other fields."""
    return type(item)(**{**fields_of(item)._asdict(), **fields})


def filters_of(query: MemoryQuery) -> dict[str, Any]:
    """Give the filters of a query, none for None and for what is no dict."""
    filters: Any = query.filters
    return filters if type(filters) is dict else {}  # pyright: ignore[reportUnknownVariableType]


def but(query: MemoryQuery, **fields: Any) -> MemoryQuery:
    """Give a query with other fields; what a host put into the rest is not checked."""
    given = {name: getattr(query, name) for name in MemoryQuery.model_fields}
    return MemoryQuery.model_construct(None, **{**given, **fields})


# What comes back


def milliseconds(item: Any) -> Any:
    return with_fields(item, created_at=round(item.created_at, 3))


def lower_tags(item: Any) -> Any:
    return with_fields(item, tags=[tag.lower() for tag in item.tags])


def distinct_tags(item: Any) -> Any:
    return with_fields(item, tags=list(dict.fromkeys(item.tags)))


def untagged(item: Any) -> Any:
    return with_fields(item, tags=[])


def without_nulls(item: Any) -> Any:
    """A null is `"null"` where values come back as text."""
    kept = {key: value for key, value in item.metadata.items() if value not in (None, "null")}
    return with_fields(item, metadata=kept)


def sorted_keys(item: Any) -> Any:
    return with_fields(item, metadata=dict(sorted(item.metadata.items())))


def whole_floats_as_ints(item: Any) -> Any:
    """What `jsonb` does: 1e22 comes back as an int."""
    content: Any = item.content
    if type(item.content) is list:
        content = [int(one) if type(one) is float and one.is_integer() else one for one in content]
    return with_fields(item, content=content)


def stripped(item: Any) -> Any:
    content: Any = item.content
    if type(item.content) is list:
        content = [one.strip(" ") if type(one) is str else one for one in content]
    return with_fields(item, content=content)


class ScoredItem(MemoryItem):
    """A hit of a class of the backend's own."""


def of_own_class(item: Any) -> Any:
    return ScoredItem(**fields_of(item)._asdict()) if type(item) is MemoryItem else item


def with_score(item: Any) -> Any:
    if type(item) is MemoryItem:
        vars(item)["score"] = 0.5
    return item


def as_memory_item(item: Any) -> Any:
    return MemoryItem(**fields_of(item)._asdict())


# What is asked


def one_is_two(_: Any, query: MemoryQuery) -> MemoryQuery:
    return but(query, limit=2) if type(query.limit) is int and query.limit == 1 else query


def negative_is_zero(_: Any, query: MemoryQuery) -> MemoryQuery:
    return but(query, limit=0) if type(query.limit) is int and query.limit < 0 else query


def known_filters_only(inner: Inner, query: MemoryQuery) -> MemoryQuery:
    known: frozenset[str] = inner.manifest.supported_filters
    return but(query, filters={key: one for key, one in filters_of(query).items() if key in known})


def _each_filter(query: MemoryQuery, change: Callable[[Any], Any]) -> MemoryQuery:
    if type(query.filters) is not dict:
        return query
    return but(query, filters={key: change(value) for key, value in filters_of(query).items()})


def list_is_any_of(_: Any, query: MemoryQuery) -> MemoryQuery:
    def any_of(value: Any) -> Any:
        values: Any = value
        return AnyOf(*values) if type(value) is list else value

    return _each_filter(query, any_of)


def true_is_one(_: Any, query: MemoryQuery) -> MemoryQuery:
    return _each_filter(query, lambda value: AnyOf(True, 1) if value is True else value)


def first_alternative(_: Any, query: MemoryQuery) -> MemoryQuery:
    return _each_filter(query, lambda value: AnyOf(*value.values[:1]) if type(value) is AnyOf else value)


def any_case(_: Any, query: MemoryQuery) -> MemoryQuery:
    tags: Any = query.tags
    if type(tags) is not list or not all(isinstance(tag, str) for tag in tags):  # pyright: ignore[reportUnknownVariableType]
        return query
    return but(query, tags=[*tags, *(tag.lower() for tag in tags)])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


async def exclusive_bound(inner: Inner, query: MemoryQuery) -> list[Any]:
    """`created_after` is taken as later than."""
    bound = filters_of(query).get("created_after")
    hits = await inner.search(query)
    return hits if type(bound) is not float else [hit for hit in hits if hit.created_at != bound]


async def tags_after_limit(inner: Inner, query: MemoryQuery) -> list[Any]:
    if not (query.tags and query.text):
        return await inner.search(query)
    wanted = {hit.id for hit in await inner.search(but(query, limit=1000))}
    return [hit for hit in await inner.search(but(query, tags=None)) if hit.id in wanted]


async def filters_after_limit(inner: Inner, query: MemoryQuery) -> list[Any]:
    if not (query.filters and query.text):
        return await inner.search(query)
    wanted = {hit.id for hit in await inner.search(but(query, limit=1000))}
    return [hit for hit in await inner.search(but(query, filters={})) if hit.id in wanted]


async def reversed_ties(inner: Inner, query: MemoryQuery) -> list[Any]:
    hits = await inner.search(query)
    return hits if query.text else sorted(hits, key=lambda hit: (-hit.created_at, -hit.id.int))


async def blank_is_a_text(inner: Inner, query: MemoryQuery) -> list[Any]:
    hits = await inner.search(query)
    return [] if query.text and not query.text.strip() else hits


async def limit_zero_asks(inner: Inner, query: MemoryQuery) -> list[Any]:
    if type(query.limit) is int and query.limit == 0:
        await inner.search(but(query, limit=1))
    return await inner.search(query)


async def limit_zero_at_once(inner: Inner, query: MemoryQuery) -> list[Any]:
    if type(query.limit) is int and query.limit == 0:
        return []  # also of a store that is closed
    return await inner.search(query)


async def first_key_named(inner: Inner, query: MemoryQuery) -> list[Any]:
    try:
        return await inner.search(query)
    except UnsupportedMemoryQuery as error:
        raise UnsupportedMemoryQuery(error.rejected_keys[:1]) from None


async def parts_of_words(inner: Inner, query: MemoryQuery) -> list[Any]:
    hits = await inner.search(query)
    text = query.text or ""
    if hits or not text.strip():
        return hits
    everything = await inner.search(but(query, text=None))
    return [hit for hit in everything if text in str(hit.content)]


async def any_word(inner: Inner, query: MemoryQuery) -> list[Any]:
    hits = await inner.search(query)
    words = (query.text or "").split()
    for word in words if not hits else ():
        hits = hits or await inner.search(but(query, text=word))
    return hits


async def keys_are_text(inner: Inner, query: MemoryQuery) -> list[Any]:
    hits = await inner.search(query)
    if hits or query.text != "key":
        return hits
    everything = await inner.search(but(query, text=None))
    return [hit for hit in everything if "'key'" in str(hit.content)]
