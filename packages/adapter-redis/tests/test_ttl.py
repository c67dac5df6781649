"""Items that do not stay: they are gone at once, from everywhere."""

import math
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t"], created_at=float(n), **fields)


@pytest.mark.parametrize("ttl", [0, -1, math.inf, math.nan, True, "60", 1e9])
def test_a_time_to_live_is_a_number_of_seconds(on_fake, ttl):
    with pytest.raises(MemoryAdapterError, match="ttl"):
        on_fake(ttl=ttl)


async def traces(beside, settings):
    """What is left under the prefix, but for the namespace's own key."""
    keys = [key async for key in beside.scan_iter(match=f"{settings.prefix}*")]
    return sorted(key for key in keys if not key.endswith(b"}"))


async def expire(beside, settings, *numbers):
    """Let some items expire as the server does it, with no wait: their time is set to the past."""
    for n in numbers:
        item_id = str(UUID(int=n))
        await beside.zadd(f"{settings.prefix}:{{ndefault}}:expiry", {item_id: 1.0})
        await beside.pexpireat(f"{settings.prefix}:{{ndefault}}:item:{item_id}", 1)


async def test_an_item_has_its_time_to_live_on_the_server(on_server, beside, settings):
    await on_server(ttl=60).store(words(1))
    item = f"{settings.prefix}:{{ndefault}}:item:{UUID(int=1)}"
    assert 59_000 < await beside.pttl(item) <= 60_000
    await on_server().store(words(1))  # replaced by a store without one
    assert await beside.pttl(item) == -1
    assert await beside.zcard(f"{settings.prefix}:{{ndefault}}:expiry") == 0


async def test_what_has_expired_is_found_by_nothing_and_leaves_nothing(on_server, beside, settings):
    store = on_server(ttl=3600, filters=["k"])
    await store.store_many([words(n, metadata={"k": 1}) for n in range(1, 7)])
    await expire(beside, settings, 5, 6)
    assert await store.retrieve(UUID(int=6)) is None
    assert await store.retrieve_revision(UUID(int=6)) is None
    for conditions in ({}, {"tags": ["t"]}, {"text": "common"}, {"filters": {"k": 1}}, {"tags": ["t", "x"]}):
        hits = await store.search(MemoryQuery(limit=3, **conditions))
        assert [hit.id.int for hit in hits][:1] != [6]
        assert len(hits) == 3
    assert [item.id.int async for item in store.scan()] == [1, 2, 3, 4]
    assert await store.delete(UUID(int=6)) is False
    await expire(beside, settings, 1, 2, 3, 4)
    await store.search(MemoryQuery())
    assert await traces(beside, settings) == []
    assert await store.clear() == 0


async def test_more_expire_at_once_than_one_call_removes(on_server, beside, settings):
    store = on_server(ttl=3600)
    await store.store_many([words(n) for n in range(1, 301)])
    await expire(beside, settings, *range(11, 301))
    for _ in range(4):
        hits = await store.search(MemoryQuery(limit=5, tags=["t"]))
        assert [hit.id.int for hit in hits] == [10, 9, 8, 7, 6]
    await expire(beside, settings, *range(1, 11))
    await store.search(MemoryQuery())
    assert await traces(beside, settings) == []


async def test_an_item_that_another_client_deleted_is_found_by_nothing(on_server, beside, settings):
    store = on_server()
    await store.store_many([words(n) for n in range(1, 5)])
    await beside.delete(f"{settings.prefix}:{{ndefault}}:item:{UUID(int=4)}")
    assert await store.retrieve(UUID(int=4)) is None
    assert [hit.id.int for hit in await store.search(MemoryQuery(limit=2, text="common"))] == [3, 2]
    assert await beside.zscore(f"{settings.prefix}:{{ndefault}}:ids", str(UUID(int=4))) is None
    await store.store(words(4))
    assert len(await store.search(MemoryQuery(tags=["t"]))) == 4


async def test_the_fake_forgets_as_the_server_does(on_fake, fake):
    now = [0.0]
    fake.clock = lambda: now[0]
    store = on_fake(ttl=60)
    await store.store(words(1))
    now[0] = 60.0
    assert await store.retrieve(UUID(int=1)) is not None
    now[0] = 60.5
    assert await store.retrieve(UUID(int=1)) is None
    assert await store.search(MemoryQuery()) == []
