"""Hypothesis strategies for items and queries, aimed at what stores get wrong."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from adapter_core import AnyOf, MemoryItem, MemoryQuery

WORDS: tuple[str, ...] = (
    "memory",
    "quantum",
    "Straße",
    "café",
    "don't",
    "C++",
    "用户身份",
    "😀",
    "42",
    "a\x00b",
    "\u2013",
)
TAGS: tuple[str, ...] = ("a", "A", "a,b", " a", "", "b", "é", "e\u0301", "😀", "t\x00")
SCALARS = (None, True, False, 0, 1, 1.0, -0.0, 0.5, "1", "", "true", "a:b", 2**53 + 1, 2**63, 10**40)
TIMES = (0.0, -1.5, 100.0, 100.0004, 100.0006, 1735689600.123456)

_Dict = dict[str, Any]
_ids = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))


def texts() -> st.SearchStrategy[str]:
    """Any text that can be stored: all of Unicode, NUL and lone surrogates among it."""
    pieces = st.one_of(
        st.sampled_from(WORDS),
        st.text(st.characters(), max_size=8),
        st.sampled_from(["\ud83d ", "\udce9", "\u0000", "\\u0000"]),
    )
    return st.lists(pieces, max_size=6).map(" ".join).map(_joined_pairs)


def _joined_pairs(text: str) -> str:
    """Make one character of a high surrogate next to a low one, which no store accepts."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def json_values() -> st.SearchStrategy[Any]:
    """Any value that content and metadata may hold."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(10**60), 10**60),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts(), inner, max_size=4)),
        max_leaves=12,
    )


def items(keys: tuple[str, ...] = ("topic", "rank", "owner")) -> st.SearchStrategy[MemoryItem]:
    """Items that collide with each other: few tags, few values under few keys, few times.

    Args:
        keys: Metadata keys that queries filter by.
    """
    facets = _some_of(keys, st.one_of(st.sampled_from(SCALARS), json_values()), 3)
    others = st.dictionaries(texts(), json_values(), max_size=2)
    return st.builds(
        MemoryItem,
        id=_ids,
        created_at=st.one_of(st.sampled_from(TIMES), st.floats(-1e12, 1e12, allow_nan=False)),
        metadata=st.builds(_merged, others, facets),
        content=st.one_of(
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), texts(), json_values()
        ),
        tags=st.one_of(
            st.lists(st.sampled_from(TAGS), min_size=1, max_size=3), st.lists(texts(), max_size=3)
        ),
    )


def queries(
    keys: tuple[str, ...] = ("topic", "rank", "owner"), *, time_filters: bool = True
) -> st.SearchStrategy[MemoryQuery]:
    """Queries that such items meet now and then.

    Args:
        keys: Metadata keys that the store declares as filters.
        time_filters: Whether the store takes `created_after` and `created_before`.
    """
    scalars = st.sampled_from(SCALARS)
    values = st.one_of(scalars, st.lists(scalars, max_size=3).map(lambda chosen: AnyOf(*chosen)))
    by_key = _some_of(keys, values, 2)
    times = st.one_of(st.sampled_from(TIMES), st.integers(-2, 2**31))
    bounds = _some_of(("created_after", "created_before") if time_filters else (), times, 2)
    text = st.one_of(st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), max_size=2).map(" ".join))
    tags = st.lists(st.sampled_from(TAGS), min_size=1, max_size=3)
    filters = st.builds(_merged, by_key, bounds)
    none = st.none()
    # mostly one group at a time: a query of all three seldom finds anything
    groups = st.one_of(
        st.tuples(text, none, none),
        st.tuples(none, tags, none),
        st.tuples(none, none, filters),
        st.tuples(st.one_of(none, text), st.one_of(none, tags), st.one_of(none, filters)),
    )
    return groups.map(_query)


def _query(groups: tuple[str | None, list[str] | None, _Dict | None]) -> MemoryQuery:
    text, tags, filters = groups
    return MemoryQuery(text=text, tags=tags, filters=filters, limit=1000)


def _some_of(keys: tuple[str, ...], values: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[_Dict]:
    nothing: _Dict = {}
    return st.dictionaries(st.sampled_from(keys), values, max_size=most) if keys else st.just(nothing)


def _merged(one: _Dict, other: _Dict) -> _Dict:
    return {**one, **other}
