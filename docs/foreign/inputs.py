"""The smallest inputs: for each case a ladder, of which the first step that shows a difference is told.

The kit's cases use large and many inputs at once, so that one run finds as much as it can. A step here
is one or two items and one call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from shim import ForeignHarness, Speaker

from adapter_core import (
    AnyOf,
    MemoryAdapterError,
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    same_value,
)

Look = Callable[[Speaker], Awaitable[str]]


@dataclass(frozen=True)
class Step:
    """One small input.

    Attributes:
        shown: The input, as the page shows it.
        look: Tries it, and says what differs; empty: nothing does.
    """

    shown: str
    look: Look


async def smallest(harness: ForeignHarness, case: str) -> tuple[str, str] | None:
    """Give the first input of a case's ladder that shows a difference, and what was seen."""
    for step in LADDERS.get(case, ()):
        await harness.reset()
        seen = await _told(step.look(await harness.make_store()))
        if seen:
            return step.shown, seen
    return None


async def _told(call: Awaitable[str]) -> str:
    try:
        return await call
    except MemoryAdapterError as error:
        cause = error.__cause__
        return f"raises {type(cause or error).__name__}"


def _item(number: int = 1, **fields: Any) -> MemoryItem:
    return MemoryItem(**{"id": UUID(int=number), "created_at": float(number), **fields})


def _short(fields: dict[str, Any]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    return text.encode("ascii", "backslashreplace").decode()


def _kept(field: str, values: list[Any], *, hit: bool = False) -> Iterator[Step]:
    """One item with a value, read back."""
    for value in values:

        async def look(store: Speaker, value: Any = value) -> str:
            item = _item(**{field: deepcopy(value)})
            await store.store(item)
            hits = [await store.retrieve(item.id)] if not hit else await store.search(MemoryQuery(limit=2))
            if not hits or hits[0] is None:
                return "is not found"
            got = getattr(hits[0], field)
            return "" if same_value(got, value) else f"comes back as {_short({field: got})}"

        yield Step(_short({field: value}), look)


def _refused(field: str, values: list[Any]) -> Iterator[Step]:
    """One item with a value that is no JSON value."""
    for value in values:

        async def look(store: Speaker, value: Any = value) -> str:
            item = _item(**{field: value})
            with suppress(UnrepresentableItem):
                await store.store(item)
                got = getattr(await store.retrieve(item.id), field)
                return f"is accepted, and comes back as {_short({field: got})}"
            return ""

        yield Step(_short({field: value}), look)


def _found(items: list[dict[str, Any]], query: dict[str, Any], wanted: list[int]) -> Step:
    """A few items and one search; `wanted` are the places of the items, in order."""

    async def look(store: Speaker) -> str:
        made = [_item(number, **fields) for number, fields in enumerate(items, start=1)]
        for item in made:
            await store.store(item)
        found = [hit.id.int - 1 for hit in await store.search(MemoryQuery(**query))]
        if found == wanted:
            return ""
        same = sorted(found) == sorted(wanted)
        return "comes in another order" if same else f"finds {len(found)} of {len(items)}, not {len(wanted)}"

    given = "; ".join(_short(fields) or "an item" for fields in items) or "no item"
    return Step(f"{given}; search {_short(query) or 'everything'}", look)


def _rejected(*queries: dict[str, Any]) -> Iterator[Step]:
    """A search that is to be refused."""
    for query in queries:

        async def look(store: Speaker, query: dict[str, Any] = query) -> str:
            await store.store(_item())
            with suppress(UnsupportedMemoryQuery):
                return f"is accepted, and finds {len(await store.search(MemoryQuery(**query)))}"
            return ""

        yield Step(f"search {_short(query)}", look)


def _replaced(old: dict[str, Any], query: dict[str, Any]) -> Step:
    """An item that is replaced, and asked for by what it was."""

    async def look(store: Speaker) -> str:
        await store.store(_item(**old))
        await store.store(_item())
        found = await store.search(MemoryQuery(**query))
        return f"finds {len(found)}, not 0" if found else ""

    return Step(f"{_short(old)}, then the same id without it; search {_short(query)}", look)


async def _changed_after(store: Speaker) -> str:
    item = _item(content=[1])
    await store.store(item)
    item.content.append(2)
    got = await store.retrieve(item.id)
    return "" if got.content == [1] else f"comes back as {_short({'content': got.content})}"


async def _changed_during(store: Speaker) -> str:
    item = _item(content=[1])
    storing = asyncio.ensure_future(store.store(item))
    await asyncio.sleep(0)
    item.content.append(2)
    await storing
    got = await store.retrieve(item.id)
    return "" if got.content == [1] else f"comes back as {_short({'content': got.content})}"


_VALUES: list[Any] = [
    *(None, 1, 1.0, "a", [], {}, {"b": 1, "a": 2}, -0.0, 1e22, 2**53 + 1, 2**63, 2**64, 10**40),
    *("é", "\x00", "\ud83d", [{"k": [1]}]),
]
_NESTED = [[value] for value in _VALUES]
_TAGS = [[], ["a"], ["A"], ["a", "a"], ["b", "a"], [""], ["a b"], ["a.b"], ["é"], ["\x00"], ["\ud83d"]]
_METADATA: list[Any] = [{}, *({"k": value} for value in _VALUES), {"": 1}, {"a b": 1}, {"a.b": 1}, {"$": 1}]
_TWO = [{"metadata": {"owner": 1}}, {"metadata": {"owner": True}}]


def _filtered() -> Iterator[Step]:
    pairs: list[tuple[Any, Any, bool]] = [
        *(("a", "a", True), (1, 1, True), (1, 1.0, True), (1, True, False), (True, 1, False)),
        *((1, "1", False), ("1", 1, False), (None, None, True), (0.75, 0.75, True)),
        *((2**64, 2**64, True), (10**40, 10**40, True), ("\x00", "\x00", True), ("*", "*", True)),
        *((["a"], "a", False), ("a", "*", False)),
    ]
    for stored, asked, matches in pairs:
        query = {"filters": {"owner": asked}}
        yield _found([{"metadata": {"owner": stored}}], query, [0] if matches else [])
    yield _found([{}], {"filters": {"owner": None}}, [])
    for bound, wanted in (("created_after", [1, 0]), ("created_before", [0])):
        yield _found([{}, {}], {"filters": {bound: 1}}, wanted)
    yield _found([{"created_at": 9.0}, {"created_at": 10.0}], {"filters": {"created_after": 9}}, [1, 0])
    yield _found([{"metadata": {"owner": "a"}}], {"filters": {"owner": AnyOf("a", "b")}}, [0])


def _texts() -> Iterator[Step]:
    for content, text, matches in (
        ("tea", "tea", True),
        ("tea", "TEA", True),
        ("tea", "te", False),
        ("tea", "coffee", False),
        ("green tea", "tea green", True),
        ("tea", "!", False),
        ("café", "cafe", True),
        ({"tea": 1}, "tea", False),
        ("\x00 tea", "tea", True),
    ):
        yield _found([{"content": content}], {"text": text}, [0] if matches else [])


LADDERS: dict[str, list[Step]] = {
    "C03": [*_kept("content", [*_VALUES, *_NESTED]), *_kept("created_at", [0.0, 1735689600.123456, -1.5])],
    "C06": [*_refused("content", [(1,), {1}, b"a", float("nan"), {1: 2}])],
    "C07": [*_kept("content", [*_VALUES, *_NESTED], hit=True)],
    "C08": [
        *_rejected({"limit": -1}, {"limit": True}, {"limit": "3"}, {"limit": None}),
        _found([{}], {"limit": 0}, []),
        _found([{}], {"limit": 2**63}, [0]),
    ],
    "C09": [
        _found([{}, {}], {}, [1, 0]),
        _found([{"created_at": 2.0}, {"created_at": 1.0}], {}, [0, 1]),
        _found([{"created_at": 1.0}, {"created_at": 1.0}], {}, [0, 1]),
        *(_found([{}], query, [0]) for query in ({"text": ""}, {"text": " "}, {"tags": []}, {"filters": {}})),
    ],
    "C10": [
        *_rejected(
            {"filters": {"never_declared": 1}},
            {"filters": {"owner": [1]}},
            {"filters": {"$or": 1}},
            {"filters": [("owner", 1)]},
        )
    ],
    "C11": list(_filtered()),
    "C12": [
        *_kept("tags", _TAGS),
        *_kept("tags", _TAGS, hit=True),
        _found([{"tags": ["a"]}, {}], {"tags": ["a"]}, [0]),
        _found([{"tags": ["a"]}, {"tags": ["b"]}], {"tags": ["a", "b"]}, [1, 0]),
        *(_found([{"tags": ["a"]}], {"tags": tags}, []) for tags in (["A"], ["a "], ["b"])),
    ],
    "C13": [*_kept("metadata", _METADATA), *_kept("metadata", _METADATA, hit=True)],
    "C14": [_found([{"tags": ["a"]}], {"tags": ["a"]}, [0]), _replaced({"content": "a"}, {"text": "a"})],
    "X01": [_found([{"metadata": {"owner": "a"}}], {"filters": {"owner": "a"}}, [0])],
    "X03": [
        _replaced({"content": "a"}, {"text": "a"}),
        _replaced({"tags": ["a"]}, {"tags": ["a"]}),
        _replaced({"metadata": {"owner": "a"}}, {"filters": {"owner": "a"}}),
    ],
    "X04": [
        Step("content=[1], stored; then 2 is appended to the caller's list", _changed_after),
        Step("content=[1]; 2 is appended to the caller's list while store runs", _changed_during),
    ],
    "X06": [_found([{"tags": ["a"]}], {"tags": ["a"]}, [0])],
    "X08": [_found([{"tags": ["a"]}, {"tags": ["b"]}], {"tags": ["a"]}, [0])],
    "X14": list(_texts()),
}
