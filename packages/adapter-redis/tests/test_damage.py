"""An index that lost a key, or of which another program took one: said, made anew, never an empty answer."""

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery


@pytest.mark.parametrize("lost", [":times", ":tokens", ":ids"])
async def test_b43_an_index_that_lost_a_key_says_so(on_server, beside, key, lost):
    store = on_server()
    item = MemoryItem(tags=["t"])
    await store.store(item)
    await beside.delete(key(lost))
    with pytest.raises(MemoryAdapterUnavailable, match="index is gone"):
        await store.search(MemoryQuery(tags=["t"]))
    with pytest.raises(MemoryAdapterUnavailable, match="index is gone"):
        await store.store(MemoryItem())
    assert await store.retrieve(item.id) == item


@pytest.mark.parametrize("lost", [":times", ":tokens", ":ids"])
async def test_an_index_that_lost_a_key_is_rebuilt_by_reindex(on_server, beside, key, lost):
    store = on_server()
    items = [MemoryItem(content=f"word w{n}", tags=["t"], created_at=float(n)) for n in range(5)]
    await store.store_many(items)
    await beside.delete(key(f":item:{items[4].id}"))  # gone without the index
    await beside.delete(key(lost))
    for call in (lambda: store.delete(items[0].id), store.clear):
        with pytest.raises(MemoryAdapterUnavailable, match="reindex"):
            await call()
    await store.reindex()
    for query in (MemoryQuery(), MemoryQuery(text="word"), MemoryQuery(tags=["t"])):
        assert [hit.id for hit in await store.search(query)] == [item.id for item in items[3::-1]]
    await store.store(MemoryItem(id=items[0].id, tags=["u"]))
    assert len(await store.search(MemoryQuery(tags=["t"]))) == 3
    assert await store.clear() == 4
    assert [one async for one in beside.scan_iter(match=key(":*"))] == []
    assert await store.reindex() == 0


async def test_an_index_that_lost_what_cannot_be_rebuilt_stays_unavailable(on_server, beside, key):
    store = on_server()
    item = MemoryItem(tags=["t"])
    await store.store(item)
    await beside.delete(key(":ids"), key(":times"))
    with pytest.raises(MemoryAdapterError, match="cannot be listed"):
        await store.reindex()
    with pytest.raises(MemoryAdapterUnavailable, match="index is gone"):
        await store.search(MemoryQuery())
    assert await store.retrieve(item.id) == item


async def test_a_foreign_key_in_the_index_refuses_the_items_that_need_it_and_no_others(
    on_server, beside, settings
) -> None:
    store = on_server()
    await store.store(MemoryItem(content="kept"))
    (base,) = [key[: -len(b":times")] async for key in beside.scan_iter(match=f"{settings.prefix}*:times")]
    await beside.set(base + b":x:tred", "foreign")
    refused = MemoryItem(tags=["red"])
    with pytest.raises(MemoryAdapterError):
        await store.store(refused)
    assert await store.retrieve(refused.id) is None
    await store.store(MemoryItem(content="more"))
    assert len(await store.search(MemoryQuery())) == 2


async def test_what_a_foreign_key_in_the_index_refuses_leaves_no_trace(on_server, beside, key) -> None:
    store = on_server()
    item = MemoryItem(content="old", tags=["a", "b"], created_at=5.0)
    await store.store(item)
    await beside.set(key(":x:tred"), "foreign")
    tags = ["b", "red", *(f"t{n}" for n in range(30))]
    batch = [MemoryItem(tags=[f"c{n % 2}", "d"], created_at=9.0) for n in range(900)]
    for refused in ([MemoryItem(id=item.id, tags=tags, created_at=9.0)], [*batch, MemoryItem(tags=tags)]):
        with pytest.raises(MemoryAdapterError):
            await store.store_many(refused)
    kept = [(key(":x:ta"), [(str(item.id).encode(), -5.0)]), (key(":x:tb"), [(str(item.id).encode(), -5.0)])]
    for name, members in kept:
        assert await beside.zrange(name, 0, -1, withscores=True) == members
    left = {one.decode() async for one in beside.scan_iter(match=key(":x:*"))}
    assert left == {key(":x:ta"), key(":x:tb"), key(":x:wold"), key(":x:tred")}
    assert len(await store.search(MemoryQuery(text="old", tags=["b"]))) == 1


async def test_an_item_leaves_a_set_that_a_foreign_key_has_taken(on_server, beside, key) -> None:
    store = on_server()
    items = [MemoryItem(tags=["red"]) for _ in range(3)]
    await store.store_many(items)
    await beside.set(key(":x:tred"), "foreign")
    await store.store(MemoryItem(id=items[0].id, tags=["blue"]))
    assert [hit.id for hit in await store.search(MemoryQuery(tags=["blue"]))] == [items[0].id]
    assert await store.delete(items[1].id)
    await beside.delete(key(f":item:{items[2].id}"))
    assert [hit.id for hit in await store.search(MemoryQuery())] == [items[0].id]
