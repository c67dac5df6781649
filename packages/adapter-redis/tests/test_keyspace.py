"""The index of sorted sets: the same hits in the same order as a plain model, at any size."""

import asyncio
import random
from uuid import UUID

import pytest

from adapter_core import AnyOf, Criteria, MemoryItem, MemoryQuery
from adapter_redis import index, keyspace

WORDS = [f"word{n}" for n in range(12)]


def library(count, seed=7):
    drawn = random.Random(seed)
    return [
        MemoryItem(
            id=UUID(int=drawn.getrandbits(100)),
            content=" ".join(drawn.choices(WORDS, k=6)),
            tags=[f"t{drawn.randrange(20)}" for _ in range(drawn.randrange(4))],
            metadata={"k": drawn.choice([1, "1", True, None, 0.5]), "n": drawn.randrange(5)},
            created_at=float(drawn.randrange(30)),
        )
        for _ in range(count)
    ]


def same(a, b):
    return type(a) is type(b) and a == b


def expected(items, text=None, tags=None, filters=None):
    found = []
    for item in items:
        rest = dict(filters or {})
        after, before = rest.pop("created_after", 0), rest.pop("created_before", 99)
        if not after <= item.created_at <= before:
            continue
        if tags and not set(tags) & set(item.tags):
            continue
        if text and not set(text.split()) <= set(item.content.split()):
            continue
        values = {key: value.values if isinstance(value, AnyOf) else (value,) for key, value in rest.items()}
        if all(any(same(item.metadata[key], one) for one in values[key]) for key in values):
            found.append(item)
    return [item.id for item in sorted(found, key=lambda item: (-item.created_at, item.id))]


QUERIES = [
    {},
    {"tags": ["t1"]},
    {"tags": ["t1", "t2", "t3"]},
    {"tags": ["t1", "nothing"]},
    {"tags": ["nothing", "neither"]},
    {"filters": {"k": 1}},
    {"filters": {"k": "1", "n": 2}},
    {"filters": {"k": AnyOf(1, True, None)}, "tags": ["t4"]},
    {"filters": {"k": AnyOf(1, "1"), "n": AnyOf(0, 1, 2)}, "tags": ["t4", "t5"]},
    {"filters": {"created_after": 10, "created_before": 20}},
    {"filters": {"created_after": 10, "created_before": 20, "n": 1}, "tags": ["t6", "t7"]},
    {"filters": {"created_after": 25}, "tags": [f"t{n}" for n in range(20)]},
    {"filters": {"created_after": 31}},
    {"tags": [f"t{n}" for n in range(100)], "filters": {"n": 3}},
]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
async def test_the_hits_and_their_order_are_those_of_the_model(make, query):
    items = library(400)
    store = make(filters=["k", "n"])
    await store.store_many(items)
    right = expected(items, **query)
    for limit in (1, 7, 1000):
        hits = await store.search(MemoryQuery(limit=limit, **query))
        assert [hit.id for hit in hits] == right[:limit]


@pytest.mark.parametrize(
    "query",
    [
        {"text": "word1"},
        {"text": "word1 word2"},
        {"text": "word1 word2 word3", "tags": ["t1", "t2"]},
        {"text": "word4", "filters": {"n": 1, "created_after": 7, "created_before": 22}},
        {"text": "word4", "filters": {"n": AnyOf(1, 2)}, "tags": ["t1"]},
        {"text": "word4 nothing"},
    ],
    ids=repr,
)
async def test_text_finds_the_same_and_puts_the_best_first(make, query):
    items = library(400)
    store = make(filters=["n"])
    await store.store_many(items)
    right = expected(items, **query)
    hits = await store.search_scored(MemoryQuery(limit=1000, **query))
    assert {hit.item.id for hit in hits} == set(right)
    order = [(-hit.score, -hit.item.created_at, hit.item.id) for hit in hits]
    assert order == sorted(order)
    assert [hit.id for hit in await store.search(MemoryQuery(limit=3, **query))] == [
        hit.item.id for hit in hits[:3]
    ]


async def test_scores_are_those_that_the_meaning_says(make):
    store = make()
    for n in (1, 2, 3):
        await store.store(MemoryItem(id=UUID(int=n), content="x y " * n))
    hits = await store.search_scored(MemoryQuery(text="x y"))
    assert [hit.item.id.int for hit in hits] == [3, 2, 1]
    for n, hit in zip((3, 2, 1), hits, strict=True):
        one = n * 2.2 / (n + 1.2 * (0.25 + 0.75 * 2 * n / 100))
        assert hit.score == pytest.approx(2 * one, abs=2e-6)
    assert "BM25" in store.score_meaning


async def test_an_answer_that_is_too_large_comes_in_parts_and_whole(on_server, monkeypatch):
    small = keyspace.FIND.replace("< 8000000", "< 2000").replace("< 1000 then", "< 7 then")
    assert small.count("2000") == small.count("< 7 then") == 1
    monkeypatch.setattr(keyspace, "FIND", small)
    monkeypatch.setattr(index, "VERIFIED_AT_ONCE", 10)
    items = library(120)
    store = on_server(filters=["n"])
    await store.store_many(items)
    for query in ({}, {"tags": ["t1", "t2", "t3"]}, {"filters": {"n": 1, "created_before": 20}}):
        hits = await store.search(MemoryQuery(limit=1000, **query))
        assert [hit.id for hit in hits] == expected(items, **query)
    hits = await store.search_scored(MemoryQuery(text="word1", limit=1000))
    assert {hit.item.id for hit in hits} == set(expected(items, text="word1"))
    order = [(-hit.score, -hit.item.created_at, hit.item.id) for hit in hits]
    assert order == sorted(order)


async def test_b37_twelve_stores_set_up_one_namespace_at_once(make):
    for round_number in range(5):
        stores = [make(namespace=f"n{round_number}") for _ in range(12)]
        await asyncio.gather(*(store.store(MemoryItem(content="word")) for store in stores))
        assert len(await stores[0].search(MemoryQuery(text="word", limit=50))) == 12


async def test_b27_thousands_of_hits_are_all_given(on_server):
    store = on_server()
    items = [MemoryItem(id=UUID(int=n), tags=["t"], created_at=float(n)) for n in range(10_050)]
    await store.store_many(items)
    for limit in (10_050, 2**63):
        hits = await store.search(MemoryQuery(tags=["t"], limit=limit))
        assert [hit.id.int for hit in hits] == list(range(10_049, -1, -1))
    assert len(await store.search(MemoryQuery(limit=20_000))) == 10_050
    assert await store.clear() == 10_050


@pytest.mark.parametrize("count", [60, 70, 1500, 5000])
async def test_any_number_of_alternatives_and_terms_can_be_asked_for(make, count):
    store = make(filters=["k"])
    await store.store(
        MemoryItem(id=UUID(int=1), content=" ".join(f"x{n}" for n in range(count)), tags=["t7"])
    )
    await store.store(MemoryItem(id=UUID(int=2), content="x1", tags=["other"]))
    tags = [f"t{n}" for n in range(count)]
    assert [hit.id.int for hit in await store.search(MemoryQuery(tags=tags))] == [1]
    assert [hit.id.int for hit in await store.search(MemoryQuery(tags=[*tags, "other"]))] != []
    assert [
        hit.id.int for hit in await store.search(MemoryQuery(text=" ".join(f"x{n}" for n in range(count))))
    ] == [1]
    hits = await store.search(MemoryQuery(text="x1", tags=tags))
    assert [hit.id.int for hit in hits] == [1]


async def test_metadata_with_many_keys_is_one_item(make):
    store = make(filters=["k4999"])
    item = MemoryItem(metadata={f"k{n}": n for n in range(5000)})
    await store.store(item)
    (hit,) = await store.search(MemoryQuery(filters={"k4999": 4999}))
    assert list(hit.metadata.items()) == [(f"k{n}", str(n)) for n in range(5000)]


async def test_a_replaced_item_leaves_nothing_in_any_set(on_server, beside, settings):
    store = on_server(filters=["k"])
    item = MemoryItem(content="old words", tags=["a", "b"], metadata={"k": 1}, created_at=5.0)
    await store.store(item)
    await store.store(MemoryItem(id=item.id, content="new words", tags=["b"], created_at=6.0))
    sets = [key async for key in beside.scan_iter(match=f"{settings.prefix}*:x:*")]
    assert sorted(key.rpartition(b":")[2] for key in sets) == [b"tb", b"wnew", b"wwords"]
    assert await beside.zscore(f"{settings.prefix}:{{ndefault}}:x:tb", str(item.id)) == -6.0
    await store.delete(item.id)
    left = [key async for key in beside.scan_iter(match=f"{settings.prefix}*")]
    assert left == [f"{settings.prefix}:{{ndefault}}".encode()]


async def test_a_type_is_part_of_a_value_and_survives_reindexing(make, request):
    store = make(filters=["k"])
    values = [True, 1, 1.5, "1", "true", 0, False, 0.75, None, 2**64, 2**64 - 1]
    await store.store_many([MemoryItem(id=UUID(int=n), metadata={"k": v}) for n, v in enumerate(values)])
    driver = store._driver

    async def found():
        return [[hit.id.int for hit in await store.search(MemoryQuery(filters={"k": v}))] for v in values]

    assert await found() == [[n] for n in range(len(values))]
    documents = [(one, await store.retrieve_revision(UUID(int=one))) for one in range(len(values))]
    hits = await driver.page(Criteria(), None, 100)
    again = [(store._reindexed(hit), documents[hit.id.int][1][1]) for hit in hits]
    await driver.reindex(again)
    assert await found() == [[n] for n in range(len(values))]
