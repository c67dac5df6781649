"""Searches whose order is the contract's, from a server that sorts by one thing alone.

Qdrant orders by a number, and gives what is equal in it in any order. So each search asks for one
hit more than it needs; if what is cut off equals what is kept, the rest of the equal ones is read too.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from adapter_core import MemoryAdapterError

from .points import Document, all_of, between, document_of, head
from .transport import Filter, Found, Search, Sparse

PAGE = 1_000
"""How many hits one request asks for at most."""

FIELDS = ("item",)
"""What is read of a hit: no tags, and nothing that was derived."""

_INFINITY = math.inf


class Ranked(NamedTuple):
    """A hit with all that decides its place."""

    score: float
    created_at: float
    id: UUID
    document: Document

    @property
    def place(self) -> tuple[float, float, UUID]:
        """Sort by this: the most relevant, then the newest, then the least id."""
        return -self.score, -self.created_at, self.id


Ask = Callable[[Search], Any]
"""Does one search, and gives its hits: an awaitable of a sequence of `Found`."""


def ranked(found: Found, *, scored: bool) -> Ranked:
    """Read a hit.

    Raises:
        MemoryAdapterError: The stored record is malformed.
    """
    document = document_of(found.payload, with_tags=False)
    try:
        item_id, created_at = head(document)
    except ValueError as error:
        raise MemoryAdapterError("the stored record of a hit is malformed") from error
    return Ranked((found.score or 0.0) if scored else 0.0, created_at, item_id, document)


async def newest(
    ask: Ask, conditions: Sequence[Mapping[str, Any]], limit: int, everything: Callable[[Filter], Any]
) -> list[Ranked]:
    """Give the newest hits, the least id first among equally old ones.

    Args:
        ask: Does a search.
        conditions: What a hit must meet.
        limit: The most hits.
        everything: Iterates over all points that meet a condition, in any order.
    """
    hits: dict[UUID, Ranked] = {}
    oldest = _INFINITY
    while len(hits) < limit and oldest > -_INFINITY:
        size = min(limit - len(hits), PAGE - 1) + 1
        condition = all_of(*conditions, *between(-_INFINITY, oldest))
        page = [
            ranked(one, scored=False)
            for one in await ask(Search(condition, size, FIELDS, newest_by="created_at"))
        ]
        if len(page) < size:
            _add(hits, sorted(page, key=_place))
            break
        last = min(hit.created_at for hit in page)
        complete = [hit for hit in page if hit.created_at > last]
        _add(hits, sorted(complete, key=_place))
        if len(hits) >= limit:
            break
        if complete:
            oldest = last  # once more from the first of the equal ones on
            continue
        equal = [
            ranked(one, scored=False) async for one in everything(all_of(*conditions, *between(last, last)))
        ]
        _add(hits, heapq.nsmallest(limit - len(hits), equal, key=_place))
        oldest = math.nextafter(last, -_INFINITY)
    return list(hits.values())[:limit]


async def nearest(
    ask: Ask,
    condition: Filter,
    limit: int,
    *,
    vector: Sparse | Sequence[float],
    using: str,
    corpus: Filter | None,
) -> list[Ranked]:
    """Give the hits with the highest score, the newest first among equal ones, then the least id."""
    hits: dict[UUID, Ranked] = {}
    offset = 0
    while True:
        size = min(max(limit - offset, 0) + 1, PAGE)
        search = Search(condition, size, FIELDS, offset, vector, using, corpus)
        page = [ranked(one, scored=True) for one in await ask(search)]
        _add(hits, page)
        offset += len(page)
        if len(page) < size or (offset > limit and _is_decided(list(hits.values()), limit)):
            return sorted(hits.values(), key=_place)[:limit]


def _is_decided(hits: Sequence[Ranked], limit: int) -> bool:
    """Whether no hit that was not read can have the score of the last one that is kept."""
    scores = sorted((hit.score for hit in hits), reverse=True)
    return len(scores) > limit and scores[-1] < scores[limit - 1]


def _add(hits: dict[UUID, Ranked], more: Sequence[Ranked]) -> None:
    """Add hits; one that moved while pages were read stays where it was seen first."""
    for hit in more:
        hits.setdefault(hit.id, hit)


def _place(hit: Ranked) -> tuple[float, float, UUID]:
    return hit.place
