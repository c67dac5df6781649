"""What `kill -9` of the server leaves: all that was acknowledged, or the loss that was declared."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_redis import RedisMemoryStore, embedded

KILLS = 10
WRITERS = 8


@pytest.fixture(params=["crash", "volatile"])
def server(request: pytest.FixtureRequest) -> Iterator[embedded.EmbeddedServer]:
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    # `everysec` may put a write to the file off while it waits for the disk: see the README
    made = embedded.EmbeddedServer(appendonly=request.param == "crash", appendfsync="no")
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("server", ["crash"], indirect=True)
async def test_no_acknowledged_item_is_lost_when_the_server_is_killed(
    server: embedded.EmbeddedServer,
) -> None:
    acknowledged: dict[UUID, str] = {}
    for kill in range(KILLS):
        await _write_until_killed(server, kill, acknowledged)
        async with RedisMemoryStore(server.url(), index="keyspace", durability="crash") as store:
            found = {item.id: item.content async for item in store.scan()}
            # what was under way when the server died is there whole, or not at all
            assert acknowledged.items() <= found.items()
            assert all(_is_whole(content) for content in found.values())
            newest = next(reversed(acknowledged))
            hits = await store.search(MemoryQuery(text=acknowledged[newest].split()[0]))
            assert [hit.id for hit in hits] == [newest]
    assert len(acknowledged) >= KILLS * WRITERS


@pytest.mark.parametrize("server", ["volatile"], indirect=True)
async def test_a_server_without_a_file_loses_what_was_declared(server: embedded.EmbeddedServer) -> None:
    acknowledged: dict[UUID, str] = {}
    async with RedisMemoryStore(server.url(), index="keyspace") as before:
        assert before.durability == "volatile"
        await before.store(MemoryItem(content="first"))
        await _write_until_killed(server, 0, acknowledged)
        # one that knew the items says that they are gone, and does not answer as if there were none
        with pytest.raises(MemoryAdapterUnavailable, match="gone"):
            await before.search(MemoryQuery())
        with pytest.raises(MemoryAdapterUnavailable, match="gone"):
            await before.retrieve(next(iter(acknowledged)))
    async with RedisMemoryStore(server.url(), index="keyspace") as after:
        assert await after.retrieve_many(acknowledged) == {}
        assert await after.search(MemoryQuery()) == []


@pytest.mark.parametrize("server", ["volatile"], indirect=True)
async def test_a_server_without_a_file_is_refused_where_crash_is_demanded(
    server: embedded.EmbeddedServer,
) -> None:
    async with RedisMemoryStore(server.url(), index="keyspace", durability="crash") as store:
        with pytest.raises(MemoryAdapterUnavailable, match="'volatile'"):
            await store.store(MemoryItem(content="x"))


async def _write_until_killed(
    server: embedded.EmbeddedServer, kill: int, acknowledged: dict[UUID, str]
) -> None:
    enough = asyncio.Event()

    async def write(store: RedisMemoryStore[Any], writer: int) -> None:
        number = 0
        while True:
            item = MemoryItem(content=f"k{kill}w{writer}n{number} " + "x" * 5_000 + " end", tags=["t"])
            try:
                await store.store(item)
            except MemoryAdapterError:
                return
            acknowledged[item.id] = item.content
            number += 1
            if number == 10:
                enough.set()

    async with RedisMemoryStore(server.url(), index="keyspace", coalesce=kill % 2 == 0) as store:
        writers = [asyncio.create_task(write(store, writer)) for writer in range(WRITERS)]
        await enough.wait()
        await asyncio.to_thread(server.restart, crash=True)
        # those that met the new server instead of the end of the old one would go on
        for task in writers:
            task.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


def _is_whole(content: str) -> bool:
    return content == "first" or content.endswith(" end")
