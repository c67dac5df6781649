"""The index of the search engine, on a Redis Stack or Redis 8 in a container.

It runs where `ADAPTER_REDIS_IMAGE` names an image; some tests change the server's settings, so no
server of a user is taken.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
import redis.asyncio

from adapter_conformance import _containers
from adapter_core import AnyOf, MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_core._records import check_query
from adapter_redis import RedisMemoryStore, RedisSettings, live
from adapter_redis.query_engine import MAX_CLAUSES, _query, _sortable

Make = Callable[..., RedisMemoryStore[Any]]


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    image = os.environ.get("ADAPTER_REDIS_IMAGE")
    if not image:
        pytest.skip("no image of a Redis with a search engine: set ADAPTER_REDIS_IMAGE")
    try:
        running = _containers.start(live.RedisLiveHarness.container, image)
    except _containers.NoContainer as error:
        pytest.skip(str(error))
    yield running.url
    running.remove()


@pytest.fixture
async def engine(url: str) -> AsyncIterator["redis.asyncio.Redis"]:
    """Connect beside the stores, once the server answers; the server is empty."""
    client = redis.asyncio.Redis.from_url(url, protocol=2)
    async with asyncio.timeout(60):
        while True:
            try:
                await client.flushall()
                break
            except redis.exceptions.ConnectionError:
                await asyncio.sleep(0.05)
    yield client
    await client.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", "1000000")
    await client.execute_command("FT.CONFIG", "SET", "TIMEOUT", "500")
    await client.aclose()


@pytest.fixture
async def on_engine(url: str, engine: "redis.asyncio.Redis", settings: RedisSettings) -> AsyncIterator[Make]:
    made: list[RedisMemoryStore[Any]] = []

    def make(where: Any = url, **options: Any) -> RedisMemoryStore[Any]:
        made.append(RedisMemoryStore(where, **{"settings": settings, **options}))
        return made[-1]

    yield make
    for store in made:
        await store.close()


def by_order(items: list[MemoryItem]) -> list[UUID]:
    return [item.id for item in sorted(items, key=lambda item: (-item.created_at, str(item.id)))]


def ids(items: list[Any]) -> list[UUID]:
    return [item.id for item in items]


async def test_b27_a_limit_past_the_servers_window_is_paged(
    on_engine: Make, engine: "redis.asyncio.Redis"
) -> None:
    await engine.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", "7")
    items = [MemoryItem(content="x", created_at=1_000.0 + number // 3) for number in range(60)]
    store = on_engine()
    await store.store_many(items)
    for limit in (1, 6, 7, 8, 20, 59, 60, 1_000):
        assert ids(await store.search(MemoryQuery(limit=limit))) == by_order(items)[:limit]


async def test_what_the_window_cannot_page_is_an_error(
    on_engine: Make, engine: "redis.asyncio.Redis"
) -> None:
    await engine.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", "5")
    await engine.execute_command("FT.CONFIG", "SET", "MAXAGGREGATERESULTS", "5")
    store = on_engine()
    await store.store_many([MemoryItem(content="word", created_at=1.0) for _ in range(9)])
    try:
        for query in (MemoryQuery(limit=9), MemoryQuery(text="word", limit=9)):
            with pytest.raises(MemoryAdapterUnavailable, match="MAXSEARCHRESULTS"):
                await store.search(query)
        assert len(await store.search(MemoryQuery(limit=5))) == 5
    finally:
        await engine.execute_command("FT.CONFIG", "SET", "MAXAGGREGATERESULTS", "-1")


@pytest.mark.parametrize("window", ["1500", "1001", "1000", "999", "7"])
async def test_a_window_that_becomes_smaller_cuts_nothing(
    on_engine: Make, engine: "redis.asyncio.Redis", window: str
) -> None:
    store = on_engine()
    items = [MemoryItem(content="word", created_at=1_000.0 + number // 2) for number in range(3_100)]
    await store.store_many(items)
    assert ids(await store.search(MemoryQuery(limit=4_000))) == by_order(items)
    await engine.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", window)
    for limit in (5, 1_200, 4_000):
        assert ids(await store.search(MemoryQuery(limit=limit))) == by_order(items)[:limit]
        assert ids(await store.search(MemoryQuery(text="word", limit=limit))) == by_order(items)[:limit]


async def test_a_window_that_becomes_larger_is_used(on_engine: Make, engine: "redis.asyncio.Redis") -> None:
    await engine.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", "5")
    store = on_engine()
    await store.store_many([MemoryItem(created_at=1.0) for _ in range(9)])
    with pytest.raises(MemoryAdapterUnavailable, match="MAXSEARCHRESULTS"):
        await store.search(MemoryQuery(limit=9))
    await engine.execute_command("FT.CONFIG", "SET", "MAXSEARCHRESULTS", "100")
    assert len(await store.search(MemoryQuery(limit=9))) == 9


async def test_an_answer_is_never_cut_short_in_silence(
    on_engine: Make, engine: "redis.asyncio.Redis"
) -> None:
    store = on_engine()
    items = [MemoryItem(content=f"common word{number % 7}", tags=["t"]) for number in range(12_000)]
    await store.store_many(items)
    await engine.execute_command("FT.CONFIG", "SET", "TIMEOUT", "1")
    found = await store.search(MemoryQuery(text="common", tags=["t"], limit=20_000))
    assert set(ids(found)) == set(ids(items))


async def test_equal_scores_come_newest_first_and_then_by_id(on_engine: Make) -> None:
    store = on_engine()
    items = [MemoryItem(content="same words", created_at=1_000.0 + number // 2) for number in range(1_500)]
    await store.store_many(items)
    for limit in (1, 10, 1_400, 1_500):
        assert ids(await store.search(MemoryQuery(text="words", limit=limit))) == by_order(items)[:limit]


async def test_what_says_the_word_more_often_is_more_relevant(on_engine: Make) -> None:
    store = on_engine()
    texts = ["sail " * count + "x " * (9 - count) for count in (1, 3, 9)]
    await store.store_many([MemoryItem(content=text, created_at=1.0) for text in texts])
    hits = await store.search_scored(MemoryQuery(text="sail"))
    assert [hit.item.content for hit in hits] == texts[::-1]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


async def test_a_dropped_index_is_made_again_and_finds_all(
    on_engine: Make, engine: "redis.asyncio.Redis", key: Callable[[str], str]
) -> None:
    store = on_engine()
    items = [MemoryItem(content="x") for _ in range(500)]
    await store.store_many(items)
    await engine.execute_command("FT.DROPINDEX", key(":ft1"))
    assert set(ids(await store.search(MemoryQuery(limit=1_000)))) == set(ids(items))
    await engine.execute_command("FT.DROPINDEX", key(":ft1"))
    await store.store(MemoryItem(content="stored meanwhile"))
    found = await store.search(MemoryQuery(text="meanwhile"))
    assert [item.content for item in found] == ["stored meanwhile"]


SORTED = ("index.o", "AS", "o", "TEXT", "SORTABLE", "UNF")
OURS = ("created_at", "NUMERIC", *SORTED, "index.t", "AS", "t", "TAG", "index.w", "AS", "w", "TEXT")


@pytest.mark.parametrize(
    "definition",
    [
        ("ON", "HASH", "PREFIX", "1", "other:", "SCHEMA", *OURS),
        ("ON", "JSON", "PREFIX", "1", "ITEMS", "SCHEMA", "$.o", "AS", "o", "TEXT", "SORTABLE"),
        ("ON", "HASH", "PREFIX", "1", "ITEMS", "FILTER", "@created_at<0", "SCHEMA", *OURS),
        ("ON", "HASH", "PREFIX", "1", "ITEMS", "SCHEMA", "title", "TEXT"),
        ("ON", "HASH", "PREFIX", "1", "ITEMS", "SKIPINITIALSCAN", "SCHEMA", *OURS),
    ],
    ids=["prefix", "json", "filter", "fields", "unread"],
)
async def test_an_index_of_our_name_that_has_not_our_items_is_never_an_empty_answer(
    on_engine: Make,
    engine: "redis.asyncio.Redis",
    key: Callable[[str], str],
    definition: tuple[str, ...],
) -> None:
    store = on_engine()
    items = [MemoryItem(content="word", tags=["t"]) for _ in range(3)]
    await store.store_many(items)
    await engine.execute_command("FT.DROPINDEX", key(":ft1"))
    words = [key(":item:") if word == "ITEMS" else word for word in definition]
    await engine.execute_command("FT.CREATE", key(":ft1"), *words)
    for asked in (store, on_engine()):
        for query in (MemoryQuery(), MemoryQuery(text="word"), MemoryQuery(tags=["t"])):
            with pytest.raises(MemoryAdapterError):
                await asked.search(query)
    await engine.execute_command("FT.DROPINDEX", key(":ft1"))
    assert set(ids(await store.search(MemoryQuery()))) == set(ids(items))


async def test_an_index_whose_maker_ended_midway_is_waited_for(
    on_engine: Make, engine: "redis.asyncio.Redis", key: Callable[[str], str]
) -> None:
    store = on_engine()
    await store.store(MemoryItem(content="x"))
    await engine.hset(key(""), "building", "1")
    assert len(await store.search(MemoryQuery())) == 1
    assert await engine.hexists(key(""), "building") == 0


async def test_a_lost_namespace_is_unavailable_and_never_empty(
    on_engine: Make, engine: "redis.asyncio.Redis"
) -> None:
    store = on_engine()
    await store.store(MemoryItem(content="x"))
    await engine.flushall()
    for call in (store.search(MemoryQuery()), store.retrieve(UUID(int=1)), store.store(MemoryItem())):
        with pytest.raises(MemoryAdapterUnavailable, match="gone"):
            await call


async def test_many_terms_and_many_filters_are_all_conditions(on_engine: Make) -> None:
    words = [f"w{number}" for number in range(MAX_CLAUSES * 3)]
    keys = [f"k{number}" for number in range(MAX_CLAUSES)]
    store = on_engine(filters=keys)
    whole = MemoryItem(content=" ".join(words), metadata=dict.fromkeys(keys, 1), tags=["t"])
    shorter = [MemoryItem(content=" ".join(words[:-1]), metadata=dict.fromkeys(keys, 1)) for _ in range(20)]
    partial = [MemoryItem(content=" ".join(words), metadata=dict.fromkeys(keys[:-1], 1)) for _ in range(20)]
    await store.store_many([*shorter, *partial, whole])
    query = MemoryQuery(text=" ".join(words), filters=dict.fromkeys(keys, 1), tags=["t", "u"], limit=5)
    assert ids(await store.search(query)) == [whole.id]
    without_text = MemoryQuery(filters=dict.fromkeys(keys, AnyOf(1, 2)), limit=50)
    assert set(ids(await store.search(without_text))) == set(ids([*shorter, whole]))


async def test_a_group_of_ten_thousand_alternatives_is_one_condition(on_engine: Make) -> None:
    store = on_engine(filters=["k"])
    items = [MemoryItem(content="x", metadata={"k": number}) for number in range(20)]
    await store.store_many(items)
    query = MemoryQuery(filters={"k": AnyOf(*range(10, 10_000))}, limit=100)
    assert set(ids(await store.search(query))) == set(ids(items[10:]))


async def test_an_answer_larger_than_one_request_is_fetched_in_parts(on_engine: Make) -> None:
    store = on_engine()
    items = [MemoryItem(content="word " + "x" * 100_000) for _ in range(200)]
    await store.store_many(items)
    assert set(ids(await store.search(MemoryQuery(limit=500)))) == set(ids(items))
    assert set(ids(await store.search(MemoryQuery(text="word", limit=500)))) == set(ids(items))


async def test_the_other_index_is_refused_until_reindex_and_then_finds_the_same(
    on_engine: Make, engine: "redis.asyncio.Redis", key: Callable[[str], str]
) -> None:
    items = [MemoryItem(content=f"word {number % 3}", metadata={"k": number % 2}) for number in range(50)]
    async with on_engine(index="keyspace", filters=["k"]) as store:
        await store.store_many(items)
    query = MemoryQuery(text="word", filters={"k": 1}, limit=100)
    for index in ("query-engine", "keyspace", "query-engine"):
        async with on_engine(index=index, filters=["k"]) as store:
            with pytest.raises(MemoryAdapterUnavailable.__mro__[1], match="index"):
                await store.search(query)
            assert await store.reindex() == len(items)
            assert set(ids(await store.search(query))) == set(ids(items[1::2]))
    left = [name async for name in engine.scan_iter(match=key(":x:*"))]
    assert left == []


async def test_an_item_whose_hash_is_gone_does_not_spoil_the_other_index(
    on_engine: Make, engine: "redis.asyncio.Redis", key: Callable[[str], str]
) -> None:
    items = [MemoryItem(content="word") for _ in range(3)]
    async with on_engine() as store:
        await store.store_many(items)
    await engine.delete(key(f":item:{items[0].id}"))
    await engine.set(key(f":item:{items[1].id}"), "foreign")
    async with on_engine(index="keyspace") as store:
        assert await store.reindex() == 1
        assert ids(await store.search(MemoryQuery(text="word"))) == [items[2].id]


async def test_what_is_deleted_while_the_other_index_is_made_is_not_in_it(
    on_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [MemoryItem(content="word") for _ in range(3)]
    async with on_engine() as old, on_engine(index="keyspace") as new:
        await old.store_many(items)
        adopt = new._driver.adopt

        async def deleted_before() -> bool:
            if await old.retrieve(items[0].id) and not await new._driver.outdated(9):
                await old.delete(items[0].id)
            return bool(await adopt())

        monkeypatch.setattr(new._driver, "adopt", deleted_before)
        await new.reindex()
        assert set(ids(await new.search(MemoryQuery()))) == set(ids(items[1:]))


async def test_b37_twenty_stores_set_up_one_namespace_at_once(on_engine: Make) -> None:
    stores = [on_engine() for _ in range(20)]
    await asyncio.gather(*(store.store(MemoryItem(content="x")) for store in stores))
    assert len(await stores[0].search(MemoryQuery(limit=50))) == 20


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
async def test_both_protocols_and_both_kinds_of_clients_search_alike(
    url: str, on_engine: Make, protocol: int, decode: bool
) -> None:
    client = redis.asyncio.Redis.from_url(url, protocol=protocol, decode_responses=decode)
    async with on_engine(client) as store:
        item = MemoryItem(content="größe 東京", tags=["a,b", ""], created_at=-1.5)
        await store.store(item)
        assert ids(await store.search(MemoryQuery(text="東京", tags=["a,b"]))) == [item.id]
        assert ids(await store.search(MemoryQuery(filters={"created_before": -1.5}))) == [item.id]
        assert await store.search(MemoryQuery(filters={"created_after": -1.4})) == []
    await client.aclose()


async def test_an_expired_item_does_not_eat_the_limit(
    on_engine: Make, engine: "redis.asyncio.Redis", key: Callable[[str], str]
) -> None:
    store = on_engine(ttl=3_600)
    items = [MemoryItem(content="word", created_at=1_000.0 + number) for number in range(10)]
    await store.store_many(items)
    newest = by_order(items)
    for gone in newest[:3]:
        await engine.pexpire(key(f":item:{gone}"), 1)
    async with asyncio.timeout(10):
        while await engine.exists(*(key(f":item:{gone}") for gone in newest[:3])):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert ids(await store.search(MemoryQuery(limit=4))) == newest[3:7]
    assert ids(await store.search(MemoryQuery(text="word", limit=4))) == newest[3:7]


async def test_dropping_the_namespace_drops_its_index(on_engine: Make, engine: "redis.asyncio.Redis") -> None:
    store = on_engine()
    await store.store(MemoryItem(content="x"))
    await store.drop_namespace()
    assert await engine.execute_command("FT._LIST") == []
    assert [name async for name in engine.scan_iter()] == []


async def test_a_server_without_an_engine_names_the_other_index(on_server: Make) -> None:
    store = on_server(index="query-engine")
    with pytest.raises(MemoryAdapterUnavailable, match='index="keyspace" works on any server'):
        await store.search(MemoryQuery())


def test_only_tokens_reach_the_engines_query() -> None:
    criteria = check_query(
        MemoryQuery(
            text="a|b (c) @d:{e} -f *",
            tags=["x}|*", "-@y"],
            filters={"k": "z | w", "created_after": 1.5},
        ),
        frozenset({"k", "created_after", "created_before"}),
    )
    text, rest = _query(criteria.criteria)
    assert rest == []
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789_ ")
    for part in ("@t:{", "@w:(", "@created_at:[$from $to]", "|", "}", ")"):
        text = text.replace(part, "")
    assert set(text) <= allowed


def test_the_order_of_floats_is_the_order_of_their_texts() -> None:
    numbers = [
        float("-inf"),
        -1e308,
        -1.5,
        -5e-324,
        0.0,
        5e-324,
        1e-3,
        1.0,
        1735689600.123,
        1e22,
        float("inf"),
    ]
    assert sorted(numbers, key=_sortable) == numbers
    assert _sortable(-0.0) == _sortable(0.0)
