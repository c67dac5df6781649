"""Rows that are foreign or malformed, and writes that the backend refuses."""

import asyncio
from uuid import UUID

import pytest

from adapter_core import (
    AnyOf,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsBatch,
    SupportsRevisions,
    SupportsScan,
)

pytestmark = pytest.mark.needs(SupportsBatch, SupportsRevisions, SupportsScan)


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t", f"t{n}"], **fields)


@pytest.mark.parametrize("first", [True, False], ids=["planted-first", "planted-later"])
async def test_a_foreign_row_is_not_seen_and_not_touched(make, harness, first):
    store = await make()
    foreign = UUID(int=1)
    if first:
        await harness.plant_foreign_record(foreign)
    await store.store(words(2))
    if not first:
        await harness.plant_foreign_record(foreign)
    assert await store.retrieve(foreign) is None
    assert await store.retrieve_revision(foreign) is None
    assert set(await store.retrieve_many([foreign, UUID(int=2)])) == {UUID(int=2)}
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2]
    assert [hit.id.int async for hit in store.scan()] == [2]
    assert await store.replace(words(1), expected_revision=0) is None
    assert await store.delete(foreign) is False
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store(words(1))
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store_many([words(3), words(1), words(4)])
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2]
    assert await store.clear() == 1


async def test_a_coalesced_neighbour_of_a_foreign_row_is_stored(make, harness):
    store = await make()
    await store.store(words(9))
    await harness.plant_foreign_record(UUID(int=3))
    outcomes = await asyncio.gather(*(store.store(words(n)) for n in range(6)), return_exceptions=True)
    assert [isinstance(one, UUID) for one in outcomes] == [True, True, True, False, True, True]
    assert isinstance(outcomes[3], MemoryAdapterError)


async def test_a_row_that_became_foreign_is_in_no_search_and_takes_no_place_of_a_hit(make, harness):
    store = await make(filters=["k"])
    await store.store_many([words(n, metadata={"k": 1}, created_at=float(n)) for n in range(1, 21)])
    for n in range(11, 21):
        await harness.plant_foreign_record(UUID(int=n))
    for conditions in (
        {},
        {"tags": ["t"]},
        {"tags": ["t", "t1", "t20"]},
        {"tags": ["t", *(f"t{n}" for n in range(200))]},
        {"text": "common"},
        {"text": "common", "tags": ["t", "t20"]},
        {"filters": {"k": AnyOf(1, 2)}},
    ):
        hits = await store.search(MemoryQuery(limit=3, **conditions))
        assert [hit.id.int for hit in hits] == [10, 9, 8]
        assert len(await store.search(MemoryQuery(limit=50, **conditions))) == 10


async def test_a_malformed_document_is_an_error_that_shows_no_content(make, harness):
    store = await make()
    await store.store(words(1))
    await harness.plant_malformed_record(UUID(int=1))
    for call in (
        lambda: store.retrieve(UUID(int=1)),
        lambda: store.search(MemoryQuery(tags=["t"])),
        lambda: anext(store.scan()),
    ):
        with pytest.raises(MemoryAdapterError, match="malformed") as raised:
            await call()
        assert not isinstance(raised.value, MemoryAdapterUnavailable)


async def test_a_write_that_is_refused_is_an_error_and_nothing_is_stored(make, harness):
    await nothing_is_stored_under(harness.refuse_writes, await make())


@pytest.mark.needs("drop_identity")
async def test_a_write_that_is_skipped_is_an_error_and_nothing_is_stored(make, harness):
    await nothing_is_stored_under(harness.drop_identity, await make())


async def nothing_is_stored_under(refuse, store):
    before = words(1)
    await store.store(before)
    _, revision = await store.retrieve_revision(before.id)
    await refuse(True)
    changed = MemoryItem(id=before.id, content="changed", tags=["t"])
    for call in (
        lambda: store.store(words(2)),
        lambda: store.store(changed),
        lambda: store.store_many([words(3), words(4)]),
        lambda: store.replace(changed, expected_revision=revision),
    ):
        with pytest.raises(MemoryAdapterError) as raised:
            await call()
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
    assert [hit.content for hit in await store.search(MemoryQuery())] == [before.content]
    await refuse(False)
    await store.store(words(2))
