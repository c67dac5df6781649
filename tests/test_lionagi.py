"""Every installed adapter serves lionagi's own classes: `Branch(memory=...)`, `Session(memory=...)`.

The adapters are found by the entry points of their harnesses, so a new one is tested without an
edit here.
"""

import copy
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import lionagi
import pytest
from lionagi import Branch, MemoryItem, MemoryQuery, Session

from adapter_conformance import harness_entries
from adapter_core import UnrepresentableItem, UnsupportedMemoryQuery, check_item, same_fields
from adapter_sqlite import SqliteMemoryStore

HARNESSES = [
    pytest.param(kind, id=f"{entry.name}-{kind.environment}")
    for entry in harness_entries()
    for kind in entry.load()
    if kind.environment != "live"
]
LION_CLASS = "lionagi.protocols.memory.MemoryItem"


class Hosted:
    """A store of lionagi's items, and the harness that it comes from."""

    def __init__(self, harness: Any, store: Any) -> None:
        self.harness = harness
        self.store = store

    async def settle(self) -> None:
        """Let an eventual index catch up."""
        if self.store.manifest.search_consistency == "eventual":
            await self.harness.make_search_index_visible()

    def requests(self) -> int:
        """How many requests reached the service; always 0 where the harness keeps no log."""
        log = getattr(self.harness, "transport_calls", list)
        return len(log())

    async def refusal(self, item: MemoryItem) -> UnrepresentableItem:
        """Store an item that is refused, and see that nothing was sent."""
        await self.store.store(MemoryItem())  # connected, so that only the bad item's requests are counted
        before = self.requests()
        with pytest.raises(UnrepresentableItem) as caught:
            await self.store.store(item)
        assert self.requests() == before
        assert await self.store.retrieve(item.id) is None
        return caught.value


@pytest.fixture(params=HARNESSES)
async def hosted(request: pytest.FixtureRequest) -> AsyncIterator[Hosted]:
    kind: Any = request.param
    if reason := getattr(kind, "not_run_reason", lambda: None)():
        pytest.skip(reason)
    harness = kind()
    try:
        await harness.reset()
        store = await harness.make_store_with(item_type=MemoryItem, filters=["topic"])
        try:
            yield Hosted(harness, store)
        finally:
            await store.close()
    finally:
        await harness.close()


@pytest.fixture(params=[Branch, Session])
def holder(request: pytest.FixtureRequest, hosted: Hosted) -> Any:
    """A branch or a session that was given the store."""
    return request.param(memory=hosted.store)


def made(**fields: Any) -> MemoryItem:
    return MemoryItem(**{"content": "Ana likes green tea", "tags": ["taste"], **fields})


async def test_branch_and_session_keep_the_store(hosted: Hosted) -> None:
    assert isinstance(hosted.store, lionagi.MemoryStore)
    assert Branch(memory=hosted.store).memory is hosted.store
    session = Session(memory=hosted.store)
    assert session.memory is hosted.store
    assert session.default_branch.memory is hosted.store
    assert session.new_branch().memory is hosted.store


async def test_their_item_comes_back_as_declared_and_as_their_class(hosted: Hosted, holder: Any) -> None:
    item = made(content={"likes": ["tea", 1.0, -0.0, None]}, metadata={"topic": "ana", "n": 2**70})
    assert await holder.memory.store(item) == item.id
    got = await holder.memory.retrieve(item.id)
    assert type(got) is MemoryItem
    assert same_fields(got, hosted.store.projection.retrieve(check_item(item)))
    assert await holder.memory.retrieve(uuid4()) is None


@pytest.mark.parametrize(
    "query",
    [
        MemoryQuery(),
        MemoryQuery(text="GREEN tea"),
        MemoryQuery(tags=["other", "taste"]),
        MemoryQuery(filters={"topic": "ana"}),
        MemoryQuery(text="tea", tags=["taste"], filters={"topic": "ana"}, limit=1),
    ],
    ids=lambda query: ",".join(sorted(query.model_fields_set)) or "empty",
)
async def test_their_query_finds_their_items(hosted: Hosted, holder: Any, query: MemoryQuery) -> None:
    item = made(metadata={"topic": "ana"})
    await holder.memory.store(item)
    await hosted.settle()
    (hit,) = await holder.memory.search(query)
    assert type(hit) is MemoryItem
    assert same_fields(hit, hosted.store.projection.search(check_item(item)))


async def test_their_query_that_cannot_be_met_is_refused_by_name(hosted: Hosted) -> None:
    for query, keys in (
        (MemoryQuery(filters={"topic": "ana", "tenant": "acme"}), ("tenant",)),
        (MemoryQuery(limit=-1), ("limit",)),
    ):
        with pytest.raises(UnsupportedMemoryQuery) as caught:
            await hosted.store.search(query)
        assert caught.value.rejected_keys == keys
    assert await hosted.store.search(MemoryQuery(limit=0)) == []


async def test_what_comes_back_works_in_lionagi(hosted: Hosted) -> None:
    item = made(metadata={"topic": "ana"})
    await hosted.store.store(item)
    got = await hosted.store.retrieve(item.id)
    assert got == item
    assert lionagi.Pile(collections=[got], item_type=MemoryItem)[item.id] is got
    assert type(lionagi.Element.from_dict(got.to_dict(mode="json"))) is MemoryItem
    got.content = "Ana likes black tea"
    await hosted.store.store(got)
    again = await hosted.store.retrieve(item.id)
    assert (again.content, again.metadata) == ("Ana likes black tea", {"topic": "ana"})


async def test_nothing_is_shared_with_what_goes_in_or_out(hosted: Hosted) -> None:
    item = made(content={"list": [1]}, metadata={"m": {"k": [1]}})
    await hosted.store.store(item)
    await hosted.settle()
    (hit,) = await hosted.store.search(MemoryQuery())
    got = await hosted.store.retrieve(item.id)
    kept = copy.deepcopy((got.content, got.metadata, got.tags))
    assert (kept[0], kept[2]) == ({"list": [1]}, ["taste"])
    for mine in (item, hit, got):
        mine.content["list"].append(2)
        if isinstance(nested := mine.metadata["m"], dict):  # a lossy store gives its text
            nested["k"].append(2)
        mine.metadata["new"] = 1
        mine.tags.append("mine")
    again = await hosted.store.retrieve(item.id)
    assert again is not got
    assert (again.content, again.metadata, again.tags) == kept


async def test_a_class_name_that_lionagi_would_refuse_on_the_way_back_is_not_stored(hosted: Hosted) -> None:
    item = made()
    item.metadata["lion_class"] = "x"
    error = await hosted.refusal(item)
    assert error.path == "item_type"


async def test_the_items_own_class_name_in_its_metadata_is_kept(hosted: Hosted) -> None:
    item = made(metadata={"lion_class": LION_CLASS})
    await hosted.store.store(item)
    got = await hosted.store.retrieve(item.id)
    assert got.metadata == {"lion_class": LION_CLASS}


async def test_an_item_with_a_further_field_is_refused_since_the_field_would_be_lost(hosted: Hosted) -> None:
    class Ranked(MemoryItem):
        rank: int = 0

    error = await hosted.refusal(Ranked(content="tea", rank=3))
    assert error.path == "rank"


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
async def test_a_time_that_is_not_finite_is_refused(hosted: Hosted, time: float) -> None:
    error = await hosted.refusal(made(created_at=time))
    assert error.path == "created_at"


async def test_what_a_branch_stored_in_a_file_another_session_finds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    item = made()
    async with SqliteMemoryStore(path, item_type=MemoryItem) as store:
        await Branch(memory=store).memory.store(item)
    async with SqliteMemoryStore(path, item_type=MemoryItem) as store:
        assert await Session(memory=store).memory.search(MemoryQuery(text="tea")) == [item]
