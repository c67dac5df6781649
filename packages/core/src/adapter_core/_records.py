"""What passes between the portable store and a driver: records, criteria, hits."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast
from uuid import UUID

from ._errors import MemoryAdapterError, UnsupportedMemoryQuery
from ._items import AnyOf, ItemFields, QueryLike
from ._terms import MAX_TERMS, content_terms, plain_words, terms
from ._tokens import facet_token, is_scalar, tag_token, term_token, term_tokens, word_tokens

DocumentT = TypeVar("DocumentT")

TIME_FILTERS = frozenset({"created_after", "created_before"})
"""Filter keys that every adapter has, beside those that its constructor names."""


@dataclass(frozen=True, slots=True)
class Record(Generic[DocumentT]):
    """An item as a driver writes it.

    Attributes:
        id: The item's identity.
        created_at: What ranges and order compare: the value that `retrieve` will give back.
        document: What `Driver.pack` made of the item; the only part that is ever read back.
        tags: Token of each distinct tag.
        facets: Token of each top-level scalar of metadata.
        terms: Token of each distinct term of the content, and how often it occurs.
    """

    id: UUID
    created_at: float
    document: DocumentT
    tags: tuple[str, ...]
    facets: tuple[str, ...]
    terms: Mapping[str, int]

    def __repr__(self) -> str:
        """Name the record without its contents."""
        return f"Record(id={self.id!r})"


class Hit(NamedTuple, Generic[DocumentT]):
    """A stored item as a driver found it: what `pack` made, and the relevance of a text search."""

    id: UUID
    document: DocumentT
    score: float | None = None

    def __repr__(self) -> str:
        """Name the hit without its contents."""
        return f"Hit(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class Criteria:
    """A checked query. All groups combine with AND, inside the backend.

    Attributes:
        tags: Tag tokens, of which at least one must be there; empty: no condition.
        facets: Groups of facet tokens; of each group at least one must be there.
        terms: Distinct term tokens, all of which must be there; empty: no condition.
        created_after: Least `created_at`, inclusive; `-inf`: no condition.
        created_before: Greatest `created_at`, inclusive; `inf`: no condition.
        limit: The most hits to give. May be larger than any data. A driver never sees 0.
        text: What `terms` were cut from, for a driver that ranks by meaning; empty: no condition.
    """

    tags: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    terms: tuple[str, ...] = ()
    created_after: float = -math.inf
    created_before: float = math.inf
    limit: int = 1
    text: str = ""

    def __repr__(self) -> str:
        """Give the shape of the query, not what is searched for."""
        return (
            f"Criteria(tags=<{len(self.tags)}>, facets=<{len(self.facets)}>, "
            f"terms=<{len(self.terms)}>, limit={self.limit})"
        )


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """What `check_query` makes of a query: criteria, and whether anything could meet them."""

    criteria: Criteria
    satisfiable: bool


def index_tokens(
    item: ItemFields,
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, int]]:
    """Derive the search tokens of a checked item: tags, facets, and terms with their counts."""
    return (
        tuple(dict.fromkeys(map(tag_token, item.tags))),
        tuple(facet_token(key, value) for key, value in item.metadata.items() if is_scalar(value)),
        _terms(item.content),
    )


def _terms(content: Any) -> Mapping[str, int]:
    words = plain_words(content)
    if words and len(words) <= MAX_TERMS:
        counts = word_tokens(words)
        if counts is not None:
            return counts
    return term_tokens(content_terms(content))


def check_filter_keys(filters: Iterable[str]) -> frozenset[str]:
    """Check the filter keys that a constructor names.

    Raises:
        MemoryAdapterError: One is no str, or is a key that every adapter has already.
    """
    if isinstance(filters, str):
        raise MemoryAdapterError("filters takes a collection of metadata keys, not one string")
    try:
        keys = frozenset(filters)
    except TypeError as error:
        raise MemoryAdapterError("filters takes a collection of metadata keys") from error
    if not all(type(key) is str for key in keys):
        raise MemoryAdapterError("every filter key must be a str")
    if reserved := sorted(keys & TIME_FILTERS):
        raise MemoryAdapterError(f"{', '.join(reserved)}: always there, and no metadata key")
    return keys


def check_query(query: QueryLike, supported: frozenset[str]) -> CheckedQuery:
    """Turn a query into criteria, or refuse it whole, before any I/O.

    Args:
        query: Any object with the four attributes of a query.
        supported: The legal filter keys.

    Raises:
        UnsupportedMemoryQuery: With every rejected key, sorted, and a note on each.
        MemoryAdapterError: It is no query.
    """
    try:
        text, tags, filters, limit = _attributes(query)
    except AttributeError as error:
        raise MemoryAdapterError(f"a query is needed, not {type(query).__name__}") from error
    rejected: dict[str, str] = {}
    if type(limit) is not int or limit < 0:
        rejected["limit"] = "an int of at least 0 is needed"
    if text is not None and not isinstance(text, str):
        rejected["text"] = f"a str or None is needed, not {type(text).__name__}"
    group = _tag_group(tags, rejected)
    facets, after, before, possible = _filters(filters, supported, rejected)
    if rejected:
        refusal = UnsupportedMemoryQuery(rejected)
        for key in refusal.rejected_keys:
            refusal.add_note(f"{key}: {rejected[key]}")
        raise refusal
    wanted: tuple[str, ...] = ()
    if text is None or not text.strip():
        text = ""
    else:
        wanted = tuple(dict.fromkeys(map(term_token, terms(text, asked=True))))
        possible = possible and bool(wanted)
    criteria = Criteria(group, facets, wanted, after, before, limit, text)
    return CheckedQuery(criteria, possible and after <= before and all(facets))


def _attributes(query: Any) -> tuple[Any, Any, Any, Any]:
    return query.text, query.tags, query.filters, query.limit


def _tag_group(tags: Any, rejected: dict[str, str]) -> tuple[str, ...]:
    if tags is None:
        return ()
    if isinstance(tags, list | tuple | set | frozenset):
        given = cast("Collection[Any]", tags)
        if all(isinstance(tag, str) for tag in given):
            return tuple(dict.fromkeys(map(tag_token, given)))
    rejected["tags"] = "a collection of str is needed"
    return ()


def _filters(
    filters: Any, supported: frozenset[str], rejected: dict[str, str]
) -> tuple[tuple[tuple[str, ...], ...], float, float, bool]:
    """Check every filter, so that all the rejected keys can be named together."""
    groups: list[tuple[str, ...]] = []
    after, before, possible = -math.inf, math.inf, True
    if filters is not None and not isinstance(filters, Mapping):
        rejected["filters"] = f"a mapping is needed, not {type(filters).__name__}"
        filters = None
    given = cast("Mapping[object, Any]", {} if filters is None else filters)
    for key, value in given.items():
        if type(key) is not str or key not in supported:
            name = key if isinstance(key, str) else f"<{type(key).__name__} key>"
            rejected[name] = f"not among the supported filters: {', '.join(sorted(supported))}"
        elif key in TIME_FILTERS:
            if type(value) not in (int, float) or not _finite(value):
                rejected[key] = f"finite seconds are needed, not {type(value).__name__}"
            elif key == "created_after":
                after = _bound(value, math.inf)
                possible = possible and after != math.inf
            else:
                before = _bound(value, -math.inf)
                possible = possible and before != -math.inf
        else:
            values: tuple[Any, ...] = value.values if isinstance(value, AnyOf) else (value,)
            if all(is_scalar(one) and _finite(one) for one in values):
                groups.append(tuple(dict.fromkeys(facet_token(key, one) for one in values)))
            else:
                rejected[key] = f"a finite scalar or AnyOf is needed, not {type(value).__name__}"
    return tuple(groups), after, before, possible


def _finite(value: Any) -> bool:
    return type(value) is not float or math.isfinite(value)


def _bound(value: int | float, direction: float) -> float:
    """Give the nearest float that is not on the wrong side of an exact bound."""
    try:
        bound = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if (bound < value) if direction > 0 else (bound > value):
        return math.nextafter(bound, direction)
    return bound
