"""The fake and the recorder that are shipped for tests, and the harnesses."""

import asyncio
import subprocess
import sys
from collections import Counter

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore, harness
from adapter_postgres.harness import HARNESSES, PostgresEmbeddedHarness, PostgresFakeHarness

HOOKS = {
    "age_index", "close", "degrade", "drop_identity", "engine", "hold_search_index", "make_search_index_visible",
    "make_store", "make_store_with", "make_transport_available", "make_transport_unavailable",
    "plant_foreign_record", "plant_malformed_record", "refuse_queries", "refuse_writes", "reset",
    "transport_calls",
}  # fmt: skip
ORDINARY = (PostgresFakeHarness, PostgresEmbeddedHarness)


def kinds(calls):
    return Counter(call.kind for call in calls)


@pytest.fixture(params=ORDINARY)
def ordinary(request):
    ask = getattr(request.param, "not_run_reason", None)
    if ask is not None and (reason := ask()):
        pytest.skip(reason)
    return request.param


def test_importing_the_package_does_not_load_the_client_library():
    code = (
        "import sys, adapter_postgres as a; a.PostgresMemoryStore('postgresql://host'); "
        "sys.exit('asyncpg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


async def test_a_store_on_the_fake_declares_what_one_on_a_server_does(on_fake):
    fake, real = on_fake(filters=["k"]), PostgresMemoryStore("postgresql://host", filters=["k"])
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


async def test_a_held_index_shows_searches_the_past_and_retrieval_the_present(fake, on_fake):
    store = on_fake()
    old = MemoryItem(content="v1")
    await store.store(old)
    fake.faults.hold_index = True
    await store.store(MemoryItem(content="v2", id=old.id))
    assert [hit.content for hit in await store.search(MemoryQuery(text="v1"))] == ["v1"]
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


# Harnesses


async def test_a_harness_has_every_hook_or_a_reason(ordinary):
    made = ordinary()
    lacking = {hook for hook in HOOKS if not callable(getattr(made, hook, None))}
    assert lacking == set(made.not_staged)
    assert (await made.engine()).version
    await made.close()
    await made.close()


def test_the_harnesses_say_where_they_run():
    assert [one.environment for one in HARNESSES][:2] == ["fake", "embedded"]
    assert {one.adapter for one in HARNESSES} == {"postgres"}


def test_without_an_engine_the_harness_says_why(monkeypatch):
    monkeypatch.setattr(harness.embedded, "_installed", lambda: None)
    assert PostgresEmbeddedHarness.not_run_reason() == "no wheel for this platform"


async def test_reset_ends_whatever_is_staged_also_twice(ordinary):
    made = ordinary()
    await made.reset()
    store = await made.make_store_with(namespace="other")
    default = await made.make_store()
    await default.clear()
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
