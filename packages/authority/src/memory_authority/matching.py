"""Searching by a sentence: the store asks for every word, a question rarely has them all."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from adapter_core import ItemLike, MemoryQuery, QueryLike, terms

MAX_WORDS = 8
"""How many words of a sentence are asked for one by one: each is a search of its own."""


class Searchable(Protocol):
    """Any store, whatever its item class."""

    async def search(self, query: QueryLike) -> Sequence[ItemLike]:
        """Give the items that meet the query."""
        ...


async def search_any_word(
    store: Searchable, text: str, *, filters: Mapping[str, Any], limit: int
) -> list[ItemLike]:
    """Find items that hold some of the words of a text, those of its rarest words first.

    The longest words of the text are searched one by one, those of three letters or less only if there
    is no other. A hit counts for more the fewer hits its
    word has; between equals the newer item is first.

    Args:
        store: Where to search.
        text: A sentence.
        filters: As for a search.
        limit: The most hits to return, and to ask for each word.

    Raises:
        MemoryAdapterError: One of the searches failed.
    """
    distinct = dict.fromkeys(terms(text, asked=True))
    # A short word of a text in Latin letters is mostly "the"; a pair of CJK characters is a word.
    telling = [word for word in distinct if len(word) > 3 or not word.isascii()]
    words = sorted(telling or distinct, key=len, reverse=True)[:MAX_WORDS]
    queries = [MemoryQuery(text=word, filters=filters, limit=limit) for word in words]
    try:
        async with asyncio.TaskGroup() as group:
            searches = [group.create_task(store.search(query)) for query in queries]
    except ExceptionGroup as failed:
        # callers know the error of one search, not a group
        raise failed.exceptions[0] from failed
    found: dict[UUID, ItemLike] = {}
    weights: dict[UUID, float] = {}
    for search in searches:
        hits = search.result()
        for hit in hits:
            found[hit.id] = hit
            weights[hit.id] = weights.get(hit.id, 0.0) + 1 / len(hits)
    ranked = sorted(found.values(), key=lambda item: (-weights[item.id], -item.created_at, str(item.id)))
    return ranked[:limit]
