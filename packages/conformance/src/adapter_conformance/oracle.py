"""The oracle: a small model of what a search must find (contract, section 5).

It shares nothing with the search path of a store but the rules for cutting text into terms: it
compares values, not tokens, and looks at every item.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from adapter_core import AnyOf, ItemLike, MemoryQuery, Projection, terms

from ._run import fields_of
from .values import equal_scalars


@dataclass
class Oracle:
    """A model store: what a query over these items must find.

    Attributes:
        projection: Of the store that is compared: time ranges and order see the stored value.
        items: What was stored last under each id.
    """

    projection: Projection
    items: dict[UUID, ItemLike] = field(default_factory=dict[UUID, ItemLike])
    _terms: dict[UUID, frozenset[str]] = field(init=False, default_factory=dict[UUID, frozenset[str]])

    def store(self, item: ItemLike) -> None:
        """Take an item, or another version of it."""
        self.items[item.id] = item
        self._terms[item.id] = frozenset(term for string in _strings(item.content) for term in terms(string))

    def matches(self, query: MemoryQuery) -> list[UUID]:
        """Give the ids of all the matches, whatever the limit: newest first, then by id."""
        found = [item for item in self.items.values() if self._matches(item, query)]
        return [one.id for one in sorted(found, key=lambda one: (-self.time(one), one.id))]

    def time(self, item: ItemLike) -> float:
        """Give the `created_at` that the store compares."""
        return self.projection.retrieve(fields_of(item)).created_at

    def _matches(self, item: ItemLike, query: MemoryQuery) -> bool:
        if query.tags and not set(query.tags) & set(item.tags):
            return False
        filters: Mapping[str, Any] = query.filters or {}
        for key, value in filters.items():
            if key == "created_after":
                if not self.time(item) >= value:
                    return False
            elif key == "created_before":
                if not self.time(item) <= value:
                    return False
            elif not _has_value(item.metadata, key, value):
                return False
        if query.text is None or not query.text.strip():
            return True
        asked = set(terms(query.text, asked=True))
        return bool(asked) and asked <= self._terms[item.id]


def _has_value(metadata: Mapping[str, Any], key: str, value: Any) -> bool:
    if key not in metadata:
        return False
    alternatives: Sequence[Any] = value.values if isinstance(value, AnyOf) else (value,)
    return any(equal_scalars(metadata[key], one) for one in alternatives)


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | dict):
        parts = cast("Iterable[Any]", content.values() if isinstance(content, dict) else content)
        for part in parts:
            yield from _strings(part)
