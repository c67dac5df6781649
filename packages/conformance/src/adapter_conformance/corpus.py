"""Generated items and queries for a comparison of adapters: plain data, the same for the same seed.

The items collide with each other on purpose: few words, tags, facet values and times, which differ in
case, type, form or one character. Most queries are made from an item, so that they find some.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from adapter_core import AnyOf, MemoryItem, MemoryQuery

from ._run import KIT_FILTERS
from .strategies import SCALARS, TAGS, TIMES, WORDS

T = TypeVar("T")

WHOLE = 2**31
"""A limit that no number of matches reaches."""

_WORDS = (
    *WORDS,
    *(
        "STRASSE",
        "cafe",
        "CAFE\u0301",
        "ﬁn",
        "fin",
        "İstanbul",
        "C#",
        "c+",
        "$1.75",
        "20.04",
        "-foo",
        "NEAR(",
    ),
    *("用户", "身份", "設備", "かな", "カナ", "ｶﾅ", "한국어", "한국", "東京都"),
    *(
        "😀😀",
        "👩\u200d👩\u200d👧",
        "☕",
        "☕\ufe0f",
        "∑",
        "\ud83d",
        "\udce9",
        "\\u0000",
        "%",
        "_",
        "'",
        '"',
        "*",
    ),
    *("пришёл", "Сергей", "مرحبا", "शब्द", "x" * 120),
)
_TAGS = (*TAGS, "用户", "\ud83d", "a b", "A,B", "x" * 200, "x" * 199 + "y", "*", "%", "{a}", "a|b", "null")
# Half of what is drawn is of these, which a store confuses that folds case, types or forms.
_NEAR_TAGS = ("a", "A", "a", "A", "b", "é", "e\u0301", "a ", "x" * 200, "x" * 199 + "y")
_NEAR_FACETS = (1, True, "1", 1.0, 0, False, "", None, "a", "A", 2**53, 2**53 + 1)
_FACETS = (*SCALARS, "A", "a", "é", "e\u0301", "用户", "\ud83d", "a" * 300, "1.0", "null", -1, 1e22, 10**22)
_TIMES = (*TIMES, 1_700_000_000.0, 1_700_000_000.0005, 1_700_000_000.0015, 253402300800.5)


@dataclass(frozen=True)
class Corpus:
    """What every adapter is given, and what it is asked.

    Attributes:
        earlier: Versions of some items that are stored first, and then replaced.
        items: What is there when the queries are asked; each has an id of its own.
        queries: Most have a limit that nothing reaches.
    """

    seed: int
    earlier: tuple[MemoryItem, ...]
    items: tuple[MemoryItem, ...]
    queries: tuple[MemoryQuery, ...]


def drawn(items: int, queries: int, seed: int = 0) -> Corpus:
    """Draw a corpus.

    Args:
        items: How many items; every tenth has an earlier version.
        queries: How many queries.
        seed: The same seed draws the same.

    Raises:
        ValueError: There would be no item or no query.
    """
    if items < 1 or queries < 1:
        raise ValueError("a corpus has at least one item and one query")
    source = random.Random(seed)
    chosen = tuple(_item(source, UUID(int=source.getrandbits(128), version=4)) for _ in range(items))
    earlier = tuple(_item(source, item.id) for item in chosen[::10])
    return Corpus(seed, earlier, chosen, tuple(_query(source, chosen) for _ in range(queries)))


# Items


def _item(source: random.Random, item_id: UUID) -> MemoryItem:
    metadata = {key: _facet(source) for key in KIT_FILTERS if source.random() < 0.6}
    if source.random() < 0.2:
        metadata[source.choice(("", "id", "created_at", "a:b", "用户"))] = _facet(source)
    return MemoryItem(
        id=item_id,
        created_at=_time(source),
        metadata=metadata,
        content=_content(source),
        tags=[_tag(source) for _ in range(source.choice((0, 1, 1, 2, 3)))],
    )


def _facet(source: random.Random) -> Any:
    """Give a scalar, or now and then a value that no filter matches."""
    if source.random() < 0.1:
        return source.choice(([], {}, [1], ["a"], {"a": 1}))
    return _scalar(source)


def _tag(source: random.Random) -> str:
    return source.choice(source.choice((_TAGS, _NEAR_TAGS)))


def _scalar(source: random.Random) -> Any:
    return source.choice(source.choice((_FACETS, _NEAR_FACETS)))


def _time(source: random.Random) -> float:
    if source.random() < 0.3:
        return source.choice(_TIMES)
    return 1_700_000_000.0 + source.randrange(10**9) / 1000.0


def _content(source: random.Random) -> Any:
    text = _joined(source, source.choice((1, 2, 3, 4, 6)))
    shape = source.random()
    if shape < 0.7:
        return text
    if shape < 0.8:
        return {"text": text, "n": source.randrange(5), _joined(source, 1): None}
    if shape < 0.9:
        return [text, [_joined(source, 1)], {"k": _joined(source, 1)}]
    return source.choice((None, 0, True, 2**63, "", [], text.upper()))


def _joined(source: random.Random, count: int) -> str:
    words = [source.choice(_WORDS) for _ in range(count)]
    # without a space between them, words form others
    return source.choice((" ", " ", " ", ", ", "\n", "-", "/")).join(words)


# Queries


def _query(source: random.Random, items: Sequence[MemoryItem]) -> MemoryQuery:
    """Ask for one thing or several that an item has, so that at least that item is found."""
    item = source.choice(items)
    makers: dict[str, Callable[[random.Random, MemoryItem], Any]] = {
        "text": _text,
        "tags": _tags,
        "filters": _filters,
    }
    groups = source.sample(sorted(makers), source.choice((1, 1, 1, 2, 3)))
    parts = {group: makers[group](source, item) for group in sorted(groups)}
    limit = source.choice((1, 3, 20)) if source.random() < 0.1 else WHOLE
    return MemoryQuery(**parts, limit=limit)


def _text(source: random.Random, item: MemoryItem) -> str:
    if type(item.content) is str and source.random() < 0.85:
        words = item.content.split() or [""]
        return " ".join(source.choice(words) for _ in range(source.choice((1, 1, 2))))
    return _joined(source, source.choice((1, 1, 1, 2)))


def _tags(source: random.Random, item: MemoryItem) -> list[str]:
    others = [_tag(source) for _ in range(source.choice((0, 0, 1, 2)))]
    return [*_some(source, item.tags), *others] or [_tag(source)]


def _some(source: random.Random, values: Sequence[T]) -> list[T]:
    return [source.choice(values)] if values and source.random() < 0.85 else []


def _filters(source: random.Random, item: MemoryItem) -> dict[str, Any]:
    filters: dict[str, Any] = {}
    for key in source.sample(KIT_FILTERS, source.choice((0, 1, 1, 2))):
        value = item.metadata.get(key)
        if isinstance(value, list | dict) or source.random() < 0.15:
            value = _scalar(source)
        filters[key] = AnyOf(*_several(source, value)) if source.random() < 0.3 else value
    if not filters or source.random() < 0.3:
        filters |= _bounds(source, item)
    return filters


def _several(source: random.Random, value: Any) -> list[Any]:
    if source.random() < 0.1:
        return []
    return [value, *(_scalar(source) for _ in range(source.randrange(3)))]


def _bounds(source: random.Random, item: MemoryItem) -> dict[str, Any]:
    near = source.choice((item.created_at, item.created_at, int(item.created_at), source.choice(_TIMES)))
    bounds = {"created_after": near, "created_before": near + source.choice((0, 0.001, 60, 10**6))}
    kept = source.choice((["created_after"], ["created_before"], list(bounds)))
    return {key: bounds[key] for key in kept}
