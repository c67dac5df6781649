"""Texts of many terms, groups of many tags, and many conditions."""

import asyncio

import pytest

from adapter_core import AnyOf, MemoryItem, MemoryQuery, UnsupportedMemoryQuery
from adapter_postgres import driver, statements

SECONDS = 10
MANY = statements.MANY
WORDS = [f"word{n}" for n in range(20_000)]


@pytest.mark.parametrize("count", [100, 1_000, 20_000])
async def test_long_texts_and_big_groups_over_big_items_end_soon(on_server, count):
    store = on_server(filters=["k"])
    big = [MemoryItem(content=" ".join(WORDS), tags=["big"]) for _ in range(4)]
    await store.store_many(big)
    async with asyncio.timeout(SECONDS):
        assert len(await store.search(MemoryQuery(text=" ".join(WORDS[-count:])))) == 4
        tags = [f"t{n}" for n in range(2 * count)]
        assert await store.search(MemoryQuery(tags=tags)) == []
        assert len(await store.search(MemoryQuery(tags=[*tags, "big"]))) == 4
        assert [item async for item in store.scan(filters={"k": AnyOf(*tags)})] == []


@pytest.mark.parametrize("count", [MANY - 1, MANY, MANY + 1, MANY + 2, 3 * MANY])
async def test_few_and_many_find_and_score_the_same(make, count):
    store = make(filters=["k"])
    all_of_them = MemoryItem(content=" ".join(WORDS[:count]), tags=["a", "b"], metadata={"k": 1})
    lacks_one = MemoryItem(content=" ".join(WORDS[: count - 1]), tags=["b"], metadata={"k": 2})
    await store.store_many([all_of_them, lacks_one])
    text = " ".join(WORDS[:count])
    one = (await store.search_scored(MemoryQuery(text=WORDS[0], filters={"k": 1})))[0].score
    for more in ({}, {"tags": ["a"]}, {"tags": ["b", "c"]}, {"filters": {"k": AnyOf(1, 2)}}):
        (hit,) = await store.search_scored(MemoryQuery(text=text, **more))
        assert hit.item == all_of_them
        assert hit.score == pytest.approx(count * one)
    others = [f"t{n}" for n in range(count - 1)]
    assert await store.search(MemoryQuery(tags=[*others, "a"])) == [all_of_them]
    assert await store.search(MemoryQuery(tags=[*others, "none"])) == []
    both = AnyOf(*range(count))
    found = [item.id async for item in store.scan(filters={"k": both})]
    assert found == sorted([all_of_them.id, lacks_one.id])


async def test_more_conditions_than_the_client_sends_are_unsupported(make):
    keys = [f"k{n}" for n in range(driver.MAX_GROUPS + 1)]
    store = make(filters=keys)
    with pytest.raises(UnsupportedMemoryQuery, match="filters"):
        await store.search(MemoryQuery(filters={key: AnyOf(1, 2) for key in keys}))
    assert await store.search(MemoryQuery(filters=dict.fromkeys(keys, 1))) == []
