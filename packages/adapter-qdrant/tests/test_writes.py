"""What a write sends, what it refuses, and what is known of it afterwards."""

import asyncio
import contextlib
import random
import sys
from uuid import UUID

import pytest

from adapter_conformance.url_harness import UrlHarness
from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    namespace_token,
)
from adapter_qdrant import ClientTransport, QdrantMemoryStore, QdrantSettings, driver, points
from adapter_qdrant.recording import FaultyTransport
from adapter_qdrant.testing import foreign_point
from adapter_qdrant.transport import Acknowledgement

NAME = namespace_token("default")


def made(n, /, **fields):
    return MemoryItem(id=UUID(int=n), content="word", **fields)


class Answering(FaultyTransport):
    """A transport whose writes are answered by a function, before or after they were done."""

    def __init__(self, inner, faults, answer):
        super().__init__(inner, faults)
        self.answer = answer

    async def upsert(self, points, **options):
        return self.answer(await super().upsert(points, **options), points)

    async def delete(self, condition):
        return self.answer(await super().delete(condition), None)


@pytest.fixture
async def answering(fake):
    """Give a store that is connected, and whose further writes are answered by a function."""

    async def make(answer, **options):
        transport = Answering(fake.transport()._inner, fake.faults, lambda done, _: done)
        store = QdrantMemoryStore("http://fake", transport=transport, **options)
        await store.store(made(99))
        transport.answer = answer
        return store

    return make


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout", "clock_rejected"])
async def test_a_write_that_may_be_applied_later_has_an_unknown_outcome(answering, status):
    store = await answering(lambda _, __: Acknowledgement(5, status))
    for call in (
        store.store(made(1)),
        store.store_many([made(2)]),
        store.delete(UUID(int=99)),
        store.clear(),
    ):
        with pytest.raises(MemoryAdapterUnavailable) as caught:
            await call
        assert caught.value.outcome_unknown


async def test_an_acknowledgement_without_a_number_is_a_failed_write(answering):
    store = await answering(lambda _, __: Acknowledgement(None, "completed"))
    with pytest.raises(MemoryAdapterError) as caught:
        await store.store(made(1))
    assert not isinstance(caught.value, MemoryAdapterUnavailable)


async def test_a_foreign_point_is_not_seen_and_not_touched(fake, make):
    store = make()
    await store.store(made(2))
    planted = foreign_point("default", UUID(int=1))
    fake.points[planted.id] = planted
    fake.expose()
    assert await store.retrieve(UUID(int=1)) is None
    assert set(await store.retrieve_many([UUID(int=1), UUID(int=2)])) == {UUID(int=2)}
    assert await store.delete(UUID(int=1)) is False
    for call in (store.store(made(1)), store.store_many([made(3), made(1), made(4)])):
        with pytest.raises(MemoryAdapterError, match="not this adapter's"):
            await call
    fake.expose()
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2]
    assert [item.id.int async for item in store.scan()] == [2]
    assert await store.clear() == 1
    assert fake.points[planted.id] == planted


async def test_a_foreign_point_that_comes_between_the_look_and_the_write_is_not_overwritten(fake):
    planted = foreign_point("default", UUID(int=1))

    class Planting(FaultyTransport):
        async def upsert(self, points, **options):
            if planted.id in {point.id for point in points}:
                fake.points[planted.id] = planted
            return await super().upsert(points, **options)

    transport = Planting(fake.transport(), fake.faults)
    store = QdrantMemoryStore("http://fake", transport=transport)
    await store.store(made(1))  # acknowledged, since Qdrant does not say what a condition kept
    assert fake.points[planted.id] == planted
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store(made(1))


async def test_a_coalesced_neighbour_of_a_foreign_point_is_stored(fake, make):
    store = make()
    await store.store(made(9))
    planted = foreign_point("default", UUID(int=3))
    fake.points[planted.id] = planted
    outcomes = await asyncio.gather(*(store.store(made(n)) for n in range(6)), return_exceptions=True)
    assert [isinstance(one, UUID) for one in outcomes] == [True, True, True, False, True, True]
    assert isinstance(outcomes[3], MemoryAdapterError)


async def test_the_items_of_one_namespace_have_other_points_than_those_of_another(fake, make):
    a, b = make(namespace="a"), make(namespace="b")
    await a.store(made(1, tags=["a"]))
    await b.store(made(1, tags=["b"]))
    assert (await a.retrieve(UUID(int=1))).tags == ["a"]
    assert await a.clear() == 1
    assert (await b.retrieve(UUID(int=1))).tags == ["b"]
    ids = {points.point_id(name, UUID(int=n)) for name in ("na", "nb", "n") for n in range(3)}
    assert len(ids) == 9
    assert {one.version for one in ids} == {5}


async def test_a_batch_that_is_too_large_is_several_requests_and_says_how_far_it_came(
    fake, make, monkeypatch
):
    monkeypatch.setattr(driver, "MAX_POINTS", 4)
    store = make()
    await store.store_many([made(n) for n in range(10)])
    assert [call.kind for call in fake.faults.calls].count("write") == 4  # one is the namespace
    planted = foreign_point("default", UUID(int=106))
    fake.points[planted.id] = planted
    with pytest.raises(MemoryAdapterUnavailable, match="4 of 10 items were stored") as caught:
        await store.store_many([made(n) for n in range(100, 110)])
    assert caught.value.outcome_unknown
    assert isinstance(caught.value.__cause__, MemoryAdapterError)


async def test_a_large_document_is_a_request_of_its_own(fake, make, monkeypatch):
    monkeypatch.setattr(driver, "MAX_REQUEST", 10_000)
    store = make()
    await store.store_many([made(1), MemoryItem(content='"' * 9_000), made(2), made(3)])
    assert [call.kind for call in fake.faults.calls].count("write") == 4


@pytest.mark.parametrize(
    "damage", [{"item_tags": "{"}, {"item_tags": "[1]"}, {"item_tags": None}, {"item": 5}]
)
async def test_a_damaged_record_of_ours_is_an_error_that_shows_nothing(fake, make, damage):
    store, item = make(), made(1, tags=["sesame"])
    await store.store(item)
    one = points.point_id(NAME, item.id)
    fake.points[one] = fake.points[one]._replace(payload={**fake.points[one].payload, **damage})
    with pytest.raises(MemoryAdapterError, match="malformed") as caught:
        await store.retrieve(item.id)
    assert not isinstance(caught.value, MemoryAdapterUnavailable)
    assert "sesame" not in f"{caught.value}{caught.value.__cause__}"


# the client leaves its lock file open when the lock is another's
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_path_keeps_items_and_serves_one_client_at_a_time(tmp_path):
    place = f"path:{tmp_path / 'data'}"
    item = made(1, tags=["t"])
    async with QdrantMemoryStore(place) as store:
        await store.store(item)
        second = QdrantMemoryStore(place)
        with pytest.raises(MemoryAdapterUnavailable, match="in use"):
            await second.retrieve(item.id)
    async with QdrantMemoryStore(place) as store:
        assert await store.retrieve(item.id) == item
        assert [hit.id for hit in await store.search(MemoryQuery(tags=["t"]))] == [item.id]


async def test_a_path_may_hold_spaces_but_its_parent_must_be_there(tmp_path):
    with pytest.raises(MemoryAdapterUnavailable, match="the one that holds it is missing"):
        await QdrantMemoryStore(f"path:{tmp_path / 'no' / 'such'}").store(made(1))
    assert not list(tmp_path.iterdir())
    async with QdrantMemoryStore(f"path:{tmp_path / 'with a space'}/") as store:
        await store.store(made(1))
    assert [one.name for one in tmp_path.iterdir()] == ["with a space"]


async def test_stores_on_one_path_work_beside_each_other_with_what_the_first_shares(tmp_path):
    place = f"path:{tmp_path / 'data'}"
    first = QdrantMemoryStore(place)
    second = QdrantMemoryStore(place, namespace="other", **first.shared)
    await asyncio.gather(first.store(made(1)), second.store(made(2)))
    await first.close()
    assert await second.retrieve(UUID(int=2)) == made(2)
    await second.close()
    async with QdrantMemoryStore(place) as again:  # the folder is free
        assert await again.retrieve(UUID(int=1)) == made(1)
        assert await again.retrieve(UUID(int=2)) is None
    assert QdrantMemoryStore("http://x").shared == QdrantMemoryStore(":memory:").shared == {}


async def test_the_check_of_a_users_store_on_a_path_has_several_stores_at_once_and_leaves_nothing(tmp_path):
    place = f"path:{tmp_path / 'data'}"
    harness = UrlHarness(f"qdrant+{place}")
    assert "handles share one connection" in (await harness.engine()).note
    async with await harness.make_store() as one, await harness.make_store_with(namespace="n") as other:
        await asyncio.gather(one.store(made(1)), other.store(made(2)))
        async with await harness.make_store() as third:
            assert await third.retrieve(UUID(int=1)) == made(1)
    await harness.close()
    assert harness.left == []
    client = ClientTransport(place, QdrantSettings())
    await client.open()
    assert await client.count({"must": []}) == 0
    await client.close()


@pytest.mark.parametrize("steps", range(1, 14))
@pytest.mark.parametrize("verb", ["store", "store_many", "delete", "clear", "drop_namespace"])
async def test_a_call_that_is_cancelled_anywhere_leaves_each_item_whole_or_absent(fake, make, verb, steps):
    store = make()
    old, new = made(1, tags=["old"]), MemoryItem(id=UUID(int=1), content="new", tags=["new"])
    await store.store(old)
    calls = {
        "store": lambda: store.store(new),
        "store_many": lambda: store.store_many([new]),
        "delete": lambda: store.delete(old.id),
        "clear": store.clear,
        "drop_namespace": store.drop_namespace,
    }
    calling = asyncio.ensure_future(calls[verb]())
    for _ in range(steps):
        await asyncio.sleep(0)
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await calling
    fake.expose()
    other = make()
    found = await other.retrieve(old.id)
    hits = await other.search(MemoryQuery(tags=["old", "new"]))
    assert [hit.id for hit in hits] == ([] if found is None else [old.id])
    if found is not None:
        assert (found.content, found.tags) in [("word", ["old"]), ("new", ["new"])]
        (hit,) = await other.search(MemoryQuery(tags=found.tags))
        assert hit.content == found.content
    await other.store(new)
    assert (await other.retrieve(new.id)).tags == ["new"]


@pytest.mark.parametrize("there", ["fake", "local"])
async def test_two_stores_that_race_leave_one_whole_item_that_every_index_agrees_on(fake, make, local, there):
    stores = [make(), make()] if there == "fake" else [await local(), await local()]
    chance = random.Random(5)

    async def work(store, n):
        for turn in range(12):
            item = made(chance.randrange(3), tags=[f"{n}-{turn}"], created_at=float(turn))
            verb = chance.choice(["store", "store", "store_many", "delete", "clear", "reindex"])
            if verb in ("store", "store_many"):
                await (store.store(item) if verb == "store" else store.store_many([item, made(9)]))
            else:
                await (store.delete(item.id) if verb == "delete" else getattr(store, verb)())

    await asyncio.gather(*(work(store, n) for n in range(4) for store in stores))
    fake.expose()
    left = {item.id: item async for item in stores[0].scan()}
    assert {hit.id for hit in await stores[1].search(MemoryQuery(text="word"))} == left.keys()
    for item in left.values():
        assert await stores[1].retrieve(item.id) == item
        if item.tags:
            (hit,) = await stores[1].search(MemoryQuery(tags=item.tags))
            assert (hit.id, hit.created_at) == (item.id, item.created_at)


async def test_a_record_of_another_item_does_not_lead_a_scan_astray(fake, make):
    store = make()
    await store.store_many([made(n) for n in range(20)])
    last = max(fake.points.values(), key=lambda point: (point.payload["record"] == points.ITEM, point.id))
    first = min(
        (point for point in fake.points.values() if point.payload["record"] == points.ITEM),
        key=lambda point: point.id,
    )
    forged = last._replace(payload={**last.payload, "item": first.payload["item"]})
    fake.points[last.id] = forged
    with pytest.raises(MemoryAdapterError, match="that of another item"):
        [item async for item in store.scan(page_size=4)]


PROGRAM = """
import asyncio, os, signal, sys
from uuid import UUID
from adapter_core import MemoryItem
from adapter_qdrant import QdrantMemoryStore

async def main():
    store = QdrantMemoryStore("path:" + sys.argv[1])
    for n in range(20):
        await store.store(MemoryItem(id=UUID(int=n), content="word"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_on_a_path_an_acknowledged_item_survives_the_death_of_its_process(tmp_path):
    folder = str(tmp_path / "data")
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, folder)
    assert await asyncio.wait_for(died.wait(), 120) == -9
    async with QdrantMemoryStore(f"path:{folder}") as store:
        assert len(await store.search(MemoryQuery(limit=99))) == 20


async def test_an_injected_client_stays_open():
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(":memory:")
    settings = QdrantSettings(durability="volatile")
    async with QdrantMemoryStore(client, settings=settings) as store:
        await store.store(made(1))
    async with QdrantMemoryStore(client, settings=settings) as store:
        assert await store.retrieve(UUID(int=1)) == made(1)
    with pytest.raises(MemoryAdapterError, match="its own api_key"):
        QdrantMemoryStore(client, api_key="sesame")
    await client.close()
