"""What a write sends, what it refuses, and what is known of it afterwards."""

import asyncio
import sys
from uuid import UUID

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    namespace_token,
)
from adapter_qdrant import QdrantMemoryStore, driver, points
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

    from adapter_qdrant import QdrantSettings

    client = AsyncQdrantClient(":memory:")
    settings = QdrantSettings(durability="volatile")
    async with QdrantMemoryStore(client, settings=settings) as store:
        await store.store(made(1))
    async with QdrantMemoryStore(client, settings=settings) as store:
        assert await store.retrieve(UUID(int=1)) == made(1)
    with pytest.raises(MemoryAdapterError, match="its own api_key"):
        QdrantMemoryStore(client, api_key="sesame")
    await client.close()
