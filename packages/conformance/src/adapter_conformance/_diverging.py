"""A query that gives other items than it must, made as small as it can be."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from adapter_core import AnyOf, MemoryQuery

from .corpus import WHOLE
from .oracle import Oracle

T = TypeVar("T")

CALL_SECONDS = 60.0
"""How long one call may take: a hung adapter must not hang the comparison."""

SHOWN_IDS = 5
"""How many ids of each kind a divergence names."""


class Part(BaseModel):
    """A part of what the differential test found."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Divergence(Part):
    """A query that gives other items than it must.

    Attributes:
        query: Made as small as it can be while it still diverges.
        found: How many hits there were.
        expected: How many there must be.
        missing: The first few ids that are not among the hits.
        surplus: The first few ids of hits that must not be there.
    """

    query: str
    found: int
    expected: int
    missing: tuple[str, ...]
    surplus: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.query} finds {self.found} of {self.expected}"]
        parts += [f"missing {', '.join(self.missing)}"] if self.missing else []
        parts += [f"surplus {', '.join(self.surplus)}"] if self.surplus else []
        if not self.missing and not self.surplus:
            parts.append("the order is wrong, or an item comes twice")
        return "; ".join(parts)


async def divergence(store: Any, query: MemoryQuery, wanted: Sequence[UUID]) -> Divergence | None:
    async with asyncio.timeout(CALL_SECONDS):
        found = [hit.id for hit in await store.search(query)]
    count = min(query.limit, len(wanted))
    right = len(found) == len(set(found)) == count and set(found) <= set(wanted)
    if right and not (query.text or "").strip():
        right = found == list(wanted[: query.limit])
    if right:
        return None
    # which of more matches come first is for a text query the adapter's own affair
    must = wanted if query.limit >= len(wanted) else () if query.text else wanted[: query.limit]
    return Divergence(
        query=shown(query),
        found=len(found),
        expected=count,
        missing=_ids(one for one in must if one not in set(found)),
        surplus=_ids(one for one in found if one not in set(wanted)),
    )


def _ids(ids: Iterable[UUID]) -> tuple[str, ...]:
    return tuple(sorted(map(str, ids))[:SHOWN_IDS])


async def smallest(store: Any, oracle: Oracle, diverging: Sequence[MemoryQuery]) -> Divergence | None:
    """Take the shortest query, and leave out of it what it can diverge without."""
    query = min(diverging, key=lambda one: len(shown(one)))
    found = await divergence(store, query, oracle.matches(query))
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(query):
            other = await divergence(store, candidate, oracle.matches(candidate))
            if other is not None:
                query, found, smaller = candidate, other, True
                break
    return found


def _smaller(query: MemoryQuery) -> Iterator[MemoryQuery]:
    """Give the queries that lack one condition, one word, one tag, one filter or one alternative."""
    changes: list[dict[str, Any]] = [
        {name: None} for name in ("text", "tags", "filters") if getattr(query, name)
    ]
    changes += [{"text": " ".join(words)} for words in _less((query.text or "").split(" "))]
    changes += [{"tags": tags} for tags in _less(query.tags or [])]
    filters: dict[str, Any] = query.filters or {}
    changes += [{"filters": dict(pairs)} for pairs in _less(list(filters.items()))]
    changes += [
        {"filters": {**filters, key: AnyOf(*values)}}
        for key, value in filters.items()
        if isinstance(value, AnyOf)
        for values in _less(value.values)
    ]
    for change in changes:
        yield query.model_copy(update=change)


def _less(values: Sequence[T]) -> Iterator[list[T]]:
    """Give the values without each of them in turn; one alone is not left out."""
    if len(values) > 1:
        for index in range(len(values)):
            yield [*values[:index], *values[index + 1 :]]


def shown(query: MemoryQuery) -> str:
    """Write a generated query as ASCII; its values are the kit's own and no secret."""
    parts = [f"{name}={getattr(query, name)!a}" for name in ("text", "tags") if getattr(query, name)]
    if query.filters:
        values = {
            key: f"AnyOf{v.values!a}" if isinstance(v, AnyOf) else f"{v!a}"
            for key, v in query.filters.items()
        }
        parts.append("filters={" + ", ".join(f"{key!a}: {value}" for key, value in values.items()) + "}")
    if query.limit < WHOLE:
        parts.append(f"limit={query.limit}")
    return " ".join(parts) or "the empty query"
