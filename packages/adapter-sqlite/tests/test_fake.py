"""The fake and the recorder that are shipped for tests, and the harnesses."""

import asyncio
from collections import Counter

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_sqlite import FileTransport, SqliteMemoryStore
from adapter_sqlite.harness import HARNESSES, SqliteEmbeddedHarness, SqliteFakeHarness
from adapter_sqlite.testing import FakeSqlite, RecordingTransport

HOOKS = {
    "age_index", "close", "degrade", "drop_identity", "engine", "hold_search_index", "make_search_index_visible",
    "make_store", "make_store_with", "make_transport_available", "make_transport_unavailable",
    "plant_foreign_record", "plant_malformed_record", "refuse_queries", "refuse_writes", "reset",
    "transport_calls",
}  # fmt: skip


def kinds(calls):
    return Counter(call.kind for call in calls)


async def test_a_store_on_the_fake_declares_what_one_on_a_file_does(on_fake, path):
    fake, real = on_fake(filters=["k"]), SqliteMemoryStore(path, filters=["k"])
    assert fake.manifest == real.manifest
    assert fake.durability == real.durability == "power"
    assert fake.score_meaning == real.score_meaning


async def test_stores_on_one_fake_see_the_same_database(on_fake):
    item = MemoryItem()
    await on_fake().store(item)
    assert await on_fake().retrieve(item.id) == item
    assert await on_fake(namespace="other").retrieve(item.id) is None


async def test_every_call_is_logged_with_its_kind_also_a_failed_one(fake, on_fake):
    store = on_fake()
    item = MemoryItem(content="words", tags=["t"])
    await store.store(item)
    assert kinds(fake.faults.calls) == {"setup": 2, "write": 1}
    del fake.faults.calls[:]
    await store.retrieve(item.id)
    assert kinds(fake.faults.calls) == {"identity": 1}
    fake.faults.down = True
    with pytest.raises(MemoryAdapterUnavailable):
        await store.search(MemoryQuery())
    assert kinds(fake.faults.calls) == {"identity": 1, "search": 1}
    assert await store.search(MemoryQuery(limit=0)) == []
    assert len(fake.faults.calls) == 2


async def test_while_it_is_down_every_call_sends_once_and_is_unavailable(fake, on_fake):
    fake.faults.down = True
    store = on_fake()
    for _ in range(2):
        del fake.faults.calls[:]
        with pytest.raises(MemoryAdapterUnavailable):
            await store.store(MemoryItem())
        assert len(fake.faults.calls) == 1
    fake.faults.down = False
    await store.store(MemoryItem())


async def test_refusals_store_nothing_and_end(fake, on_fake):
    store = on_fake()
    faults = fake.faults
    for switch in ("refuse_writes", "drop_identity"):
        setattr(faults, switch, True)
        with pytest.raises(MemoryAdapterError) as raised:
            await store.store(MemoryItem())
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
        setattr(faults, switch, False)
        assert await store.search(MemoryQuery()) == []
    faults.refuse_queries = True
    with pytest.raises(MemoryAdapterError):
        await store.search(MemoryQuery())
    faults.refuse_queries = False
    await store.store(MemoryItem())
    assert len(await store.search(MemoryQuery())) == 1


async def test_a_held_index_shows_searches_the_past_and_retrieval_the_present(fake, on_fake):
    store = on_fake()
    old = MemoryItem(content="v1")
    await store.store(old)
    fake.faults.hold_index = True
    new = MemoryItem(content="v2", id=old.id)
    await store.store(new)
    await on_fake(namespace="late").store(MemoryItem())
    assert await on_fake(namespace="late").search(MemoryQuery()) == []
    assert [hit.content for hit in await store.search(MemoryQuery(text="v1"))] == ["v1"]
    assert await store.search(MemoryQuery(text="v2")) == []
    assert (await store.retrieve(old.id)).content == "v2"
    fake.faults.hold_index = False
    assert [hit.content for hit in await store.search(MemoryQuery(text="v2"))] == ["v2"]


@pytest.mark.parametrize("turns", range(6))
async def test_a_call_cancelled_at_any_point_is_whole_or_absent(on_fake, turns):
    store = on_fake()
    await store.clear()
    item = MemoryItem(content="word", tags=["t"])
    task = asyncio.create_task(store.store(item))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    there = await store.retrieve(item.id) is not None
    assert len(await store.search(MemoryQuery(tags=["t"], text="word"))) == there


async def test_the_recorder_changes_nothing_and_sees_the_sql(path):
    calls = []
    transport = RecordingTransport(FileTransport(str(path)), calls)
    async with SqliteMemoryStore(path, transport=transport) as store:
        item = MemoryItem(tags=["seen"])
        await store.store(item)
        assert await store.search(MemoryQuery(tags=["seen"])) == [item]
        assert [call.operation for call in calls] == ["open", "remembered", "put", "find"]
        assert "'tseen'" in calls[-1].payload


def test_the_fake_is_closed_by_its_context():
    with FakeSqlite() as fake:
        fake.faults.hold_index = True
        fake.perform("open", lambda _: None)


# Harnesses


@pytest.mark.parametrize("harness", HARNESSES)
async def test_a_harness_has_every_hook_or_a_reason(harness):
    made = harness()
    lacking = {hook for hook in HOOKS if not callable(getattr(made, hook, None))}
    assert lacking == set(made.not_staged)
    engine = await made.engine()
    assert engine.name == "SQLite"
    assert engine.version.count(".") == 2
    await made.close()
    await made.close()


def test_the_harnesses_say_where_they_run():
    assert [harness.environment for harness in HARNESSES] == ["fake", "embedded"]
    assert SqliteFakeHarness.adapter == SqliteEmbeddedHarness.adapter == "sqlite"


@pytest.mark.parametrize("harness", HARNESSES)
async def test_reset_ends_whatever_is_staged_also_twice(harness):
    made = harness()
    await made.reset()
    store = await made.make_store_with(namespace="other")
    default = await made.make_store()
    for _ in range(2):
        item = MemoryItem(tags=["t"])
        await store.store(item)
        await made.refuse_writes(True)
        await made.refuse_queries(True)
        await made.drop_identity(True)
        await made.plant_foreign_record(item.id)
        await made.age_index()
        await made.degrade()
        with pytest.raises(MemoryAdapterError):
            await store.store(item)
        await made.reset()
        assert await store.search(MemoryQuery(tags=["t"])) == []
        assert await default.search(MemoryQuery()) == []
        await made.make_transport_unavailable()
        with pytest.raises(MemoryAdapterUnavailable):
            await store.retrieve(item.id)
        await made.make_transport_available()
        assert await store.retrieve(item.id) is None
    assert made.transport_calls()
    await made.close()
