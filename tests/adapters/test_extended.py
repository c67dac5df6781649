"""Revisions, scans and reindexing."""

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
    SupportsReindex,
    SupportsRevisions,
    SupportsScan,
)

pytestmark = pytest.mark.needs(SupportsBatch, SupportsReindex, SupportsRevisions, SupportsScan)


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t", f"t{n}"], **fields)


async def test_a_revision_is_never_used_again_not_even_after_a_deletion(make):
    store = await make()
    seen = []
    for _ in range(3):
        await store.store(words(1))
        _, first = await store.retrieve_revision(UUID(int=1))
        second = await store.replace(words(1), expected_revision=first)
        seen += [first, second]
        await store.delete(UUID(int=1))
        assert await store.retrieve_revision(UUID(int=1)) is None
        assert await store.replace(words(1), expected_revision=second) is None
    await store.store_many([words(1), words(2)])
    seen += [(await store.retrieve_revision(UUID(int=n)))[1] for n in (1, 2)]
    await store.clear()
    await store.store(words(1))
    seen.append((await store.retrieve_revision(UUID(int=1)))[1])
    assert seen == sorted(set(seen))


async def test_a_stale_revision_of_any_size_stores_nothing(make):
    store = await make()
    await store.store(words(1))
    for stale in (-1, 0, 2**63, 10**30):
        changed = MemoryItem(id=UUID(int=1), content="changed")
        assert await store.replace(changed, expected_revision=stale) is None
    assert (await store.retrieve(UUID(int=1))).content == "common w1"


async def test_of_many_replacements_of_one_revision_one_wins(make):
    store = await make()
    await store.store(words(1))
    _, revision = await store.retrieve_revision(UUID(int=1))
    items = [MemoryItem(id=UUID(int=1), content=n) for n in range(10)]
    outcomes = await asyncio.gather(*(store.replace(item, expected_revision=revision) for item in items))
    (winner,) = [n for n, outcome in enumerate(outcomes) if outcome is not None]
    assert (await store.retrieve(UUID(int=1))).content == winner


async def test_a_scan_gives_what_stays_exactly_once_while_others_write(make):
    store = await make(filters=["k"])
    await store.store_many([words(n, metadata={"k": n % 2}) for n in range(0, 100, 2)])
    seen = []
    async for item in store.scan(page_size=7):
        seen.append(item.id.int)
        await store.store(words(37 * len(seen) % 100 | 1))  # ahead and behind
        await store.store(words(item.id.int, created_at=5.0))
        if len(seen) == 10:
            await store.delete(UUID(int=98))
    assert [n for n in seen if n % 2 == 0] == list(range(0, 98, 2))
    assert seen == sorted(set(seen))


async def test_a_scan_meets_its_filters_and_goes_on_behind_an_id(make):
    store = await make(filters=["k"])
    await store.store_many([words(n, metadata={"k": n % 3}, created_at=float(n)) for n in range(30)])
    filters = {"k": AnyOf(0, 1), "created_after": 10, "created_before": 20}
    expected = [n for n in range(10, 21) if n % 3 < 2]
    seen = [item.id.int async for item in store.scan(filters=filters, page_size=2)]
    assert seen == expected
    after = UUID(int=expected[3])
    assert [i.id.int async for i in store.scan(filters=filters, after=after)] == expected[4:]
    assert [i async for i in store.scan(filters={"k": AnyOf()})] == []
    assert len([i async for i in store.scan(page_size=2**80)]) == 30


async def test_a_namespace_of_other_rules_is_refused_until_it_was_reindexed(make, harness):
    before = await make()
    await before.store_many([words(n) for n in range(450)])
    await harness.age_index()
    store = await make()
    for call in (
        lambda: store.search(MemoryQuery(tags=["t"])),
        lambda: store.store(words(1)),
        lambda: store.retrieve(UUID(int=1)),
    ):
        with pytest.raises(MemoryAdapterError, match="terms is 2, this store's is 1"):
            await call()
    assert await store.reindex() == 450
    assert len(await store.search(MemoryQuery(text="common", tags=["t"], limit=999))) == 450
    assert await store.reindex() == 0
    assert len(await before.search(MemoryQuery(tags=["t77"]))) == 1


async def test_a_namespace_that_another_release_took_over_is_unavailable(make, harness):
    store = await make()
    await store.store(words(1))
    await harness.age_index()
    for call in (
        lambda: store.search(MemoryQuery()),
        lambda: store.store(words(2)),
        lambda: store.replace(words(1), expected_revision=1),
        lambda: anext(store.scan()),
    ):
        with pytest.raises(MemoryAdapterUnavailable, match="indexed in another way"):
            await call()
    assert await store.retrieve(UUID(int=1)) == words(1)
    assert await store.delete(UUID(int=1))


async def test_reindexing_goes_on_where_it_stopped_and_leaves_newer_writes_alone(make, harness):
    before = await make()
    await before.store_many([words(n) for n in range(10)])
    revisions = [(await before.retrieve_revision(UUID(int=n)))[1] for n in range(4)]
    await harness.age_index()
    driver = (await make())._driver
    await driver.open()
    stale = await driver.outdated(4)
    assert [(hit.id.int, revision) for hit, revision in stale] == [*enumerate(revisions)]
    assert await before.delete(UUID(int=3))
    store = await make()
    records = [(store._reindexed(hit), revision + (hit.id.int == 2)) for hit, revision in stale]
    await driver.reindex(records)
    assert await driver.adopt() is False
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [4, 5, 6, 7, 8, 9]
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [2, 4, 5, 6, 7, 8, 9]
    await driver.close()
    assert await store.reindex() == 7
    assert len(await store.search(MemoryQuery(limit=99))) == 9


async def test_stores_of_one_release_reindex_at_once(make, harness):
    await (await make()).store_many([words(n) for n in range(300)])
    await harness.age_index()
    stores = [await make() for _ in range(3)]
    assert sum(await asyncio.gather(*(store.reindex() for store in stores))) >= 300
    for store in stores:
        assert len(await store.search(MemoryQuery(text="common", limit=999))) == 300


async def test_an_empty_namespace_is_simply_adopted(make, harness):
    await (await make()).clear()
    await harness.age_index()
    store = await make()
    assert await store.reindex() == 0
    await store.store(words(1))
