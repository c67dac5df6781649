"""The order of hits, what is asked for, and how it is paged; on the fake, then on a real engine."""

import asyncio
import sys
from uuid import UUID

import pytest

from adapter_core import MemoryItem, MemoryQuery, term_token
from adapter_qdrant import finding, points


def made(n, /, content="word", **fields):
    return MemoryItem(id=UUID(int=n), content=content, **fields)


async def numbers(store, **query):
    return [hit.id.int for hit in await store.search(MemoryQuery(**query))]


def searches(fake):
    return [call for call in fake.faults.calls if call.kind == "search"]


@pytest.fixture(params=["fake", "local"])
async def store(request, fake, make, local):
    """Give a store whose index is exposed after each batch."""
    if request.param == "local":
        store = await local(filters=["k"])
        store.expose = lambda: None
    else:
        store = make(filters=["k"])
        store.expose = fake.expose
    return store


@pytest.mark.parametrize("page", [2, 3, 7, 1_000])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 11, 12, 13, 50])
async def test_equally_old_items_come_by_id_wherever_a_page_or_the_limit_ends(
    store, monkeypatch, page, limit
):
    monkeypatch.setattr(finding, "PAGE", page)
    times = {
        1: 5.0,
        2: 5.0,
        3: 9.0,
        4: 5.0,
        5: 5.0,
        6: 1.0,
        7: 9.0,
        8: 5.0,
        9: -0.5,
        10: 5.0,
        11: 1.0,
        12: 9.0,
    }
    items = [made(n, created_at=time, tags=["t"]) for n, time in times.items()]
    await store.store_many([*items, made(99, created_at=5.0)])
    store.expose()
    expected = sorted(times, key=lambda n: (-times[n], n))
    assert await numbers(store, tags=["t"], limit=limit) == expected[:limit]


@pytest.mark.parametrize("limit", [1, 3, 9])
async def test_the_ends_of_time_are_reached(store, monkeypatch, limit):
    monkeypatch.setattr(finding, "PAGE", 2)
    largest = sys.float_info.max
    times = [-largest, -largest, -largest, largest, 0.0, -0.0, 5e-324]
    await store.store_many([made(n, created_at=time) for n, time in enumerate(times)])
    store.expose()
    assert await numbers(store, limit=limit) == [3, 6, 4, 5, 0, 1, 2][:limit]


@pytest.mark.parametrize("page", [2, 5, 1_000])
@pytest.mark.parametrize("limit", [1, 3, 4, 6, 9, 30])
async def test_equally_relevant_items_come_newest_first_then_by_id(store, monkeypatch, page, limit):
    monkeypatch.setattr(finding, "PAGE", page)
    items = [made(n, created_at=float(n % 3)) for n in range(1, 9)]
    best = made(20, "word word word", created_at=0.0)
    longer = made(21, "word and many others beside it", created_at=50.0)
    await store.store_many([*items, best, longer])
    store.expose()
    equal = sorted(range(1, 9), key=lambda n: (-(n % 3), n))
    assert await numbers(store, text="word", limit=limit) == [20, *equal, 21][:limit]


async def test_a_rare_term_weighs_more_than_a_common_one(store):
    await store.store_many([made(n, f"common filler{n}") for n in range(1, 9)])
    await store.store_many([made(20, "common rare rare"), made(21, "common common rare")])
    store.expose()
    scored = await store.search_scored(MemoryQuery(text="common rare"))
    assert [hit.item.id.int for hit in scored] == [20, 21]
    assert scored[0].score > scored[1].score > 0
    assert "rarity" in store.score_meaning


async def test_the_words_of_another_namespace_do_not_show_in_a_score(fake, make, local):
    for there, make_store in (("fake", make), ("local", local)):
        stores = [make_store(), make_store(namespace="noisy")]
        here, noisy = [await one if there == "local" else one for one in stores]
        await here.store_many([made(1, "rare word"), made(2, "other")])
        fake.expose()
        (before,) = await here.search_scored(MemoryQuery(text="rare"))
        await noisy.store_many([made(n, "rare rare rare") for n in range(30)])
        fake.expose()
        (after,) = await here.search_scored(MemoryQuery(text="rare"))
        assert after.score == before.score


async def test_terms_that_share_an_index_rank_together_and_select_apart(store, monkeypatch):
    monkeypatch.setattr(points, "term_index", lambda term: 7)
    await store.store_many([made(1, "tea tea coffee"), made(2, "tea"), made(3, "coffee")])
    store.expose()
    assert sorted(await numbers(store, text="tea")) == [1, 2]
    assert await numbers(store, text="tea coffee") == [1]
    assert await numbers(store, text="milk") == []


def test_the_places_of_terms_are_the_same_for_ever():
    assert points.term_index(term_token("tea")) == 2792049049
    assert points.term_index(term_token("茶")) == 3824736611


async def test_an_item_that_loses_its_words_is_ranked_by_none(store):
    await store.store(made(1, "word"))
    await store.store(made(1, 5))
    await store.store(made(2, "word"))
    store.expose()
    assert await numbers(store, text="word") == [2]


async def test_a_search_asks_for_the_item_alone(fake, make):
    store = make()
    await store.store(made(1, tags=["t"]))
    fake.expose()
    before = len(fake.faults.calls)
    for query in ({}, {"text": "word"}, {"tags": ["t"]}):
        (hit,) = await store.search(MemoryQuery(**query))
        assert hit.tags == []
    sent = fake.faults.calls[before:]
    assert [call.operation for call in sent] == ["search"] * 3
    assert all("item_tags" not in call.payload and "fields=('item',)" in call.payload for call in sent)


async def test_a_large_limit_is_paged_until_the_data_ends(store):
    await store.store_many([made(n, created_at=float(n)) for n in range(2_500)])
    store.expose()
    assert await numbers(store, limit=2**200) == [*reversed(range(2_500))]
    assert len(await numbers(store, limit=2**200, text="word")) == 2_500
    assert len(await numbers(store, limit=2_100)) == 2_100


async def test_items_that_move_while_pages_are_read_come_once(fake, make, monkeypatch):
    monkeypatch.setattr(finding, "PAGE", 3)
    store, other = make(), make()
    await store.store_many([made(n, created_at=float(n)) for n in range(10)])
    await other.retrieve(UUID(int=1))
    fake.expose()
    searching = asyncio.ensure_future(store.search(MemoryQuery(limit=50)))
    for _ in range(200):
        if len(searches(fake)) == 2:
            break
        await asyncio.sleep(0)
    assert not searching.done()
    await other.store(made(9, created_at=-1.0))
    fake.expose()
    found = [hit.id.int for hit in await searching]
    assert sorted(found) == list(range(10))


async def test_a_scan_gives_everything_once_in_one_order_and_goes_on_behind_an_id(store, monkeypatch):
    monkeypatch.setattr(finding, "PAGE", 7)
    await store.store_many([made(n, metadata={"k": n % 3}, tags=["t"]) for n in range(50)])
    seen = [item async for item in store.scan(page_size=9)]
    assert sorted(item.id.int for item in seen) == list(range(50))
    assert all(item.tags == ["t"] for item in seen)
    for after in (0, 8, 9, 30, 49):
        rest = [item.id async for item in store.scan(after=seen[after].id, page_size=4)]
        assert rest == [item.id for item in seen[after + 1 :]]
    some = [item.id async for item in store.scan(filters={"k": 1}, page_size=2)]
    assert some == [item.id for item in seen if item.id.int % 3 == 1]
    await store.delete(seen[8].id)
    assert [item.id async for item in store.scan(after=seen[8].id)] == [item.id for item in seen[9:]]
