"""A server in cluster mode: every key of a namespace is in one slot, and no command crosses slots."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import redis.asyncio
from redis.asyncio.cluster import RedisCluster
from redis.crc import key_slot

from adapter_core import AnyOf, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_redis import RedisMemoryStore, embedded

NAMESPACES = ["default", "", "a{b}c", "{", "}", "ünï", "x" * 300]


@pytest.fixture(scope="module")
def cluster() -> Iterator[embedded.EmbeddedServer]:
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    made = embedded.EmbeddedServer(("--cluster-enabled", "yes"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def node(cluster: embedded.EmbeddedServer) -> AsyncIterator["redis.asyncio.Redis"]:
    """Connect to the one node, which has all slots."""
    client = redis.asyncio.Redis.from_url(cluster.url())
    if not await client.execute_command("CLUSTER SLOTS"):
        await client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
    async with asyncio.timeout(30):
        while (await client.cluster("INFO"))["cluster_state"] != "ok":  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.mark.parametrize("through", ["node", "cluster client"])
@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_no_verb_crosses_slots(
    namespace: str, through: str, cluster: embedded.EmbeddedServer, node: "redis.asyncio.Redis"
) -> None:
    where: Any = cluster.url()
    if through == "cluster client":
        where = RedisCluster.from_url(cluster.url())
    async with RedisMemoryStore(
        where, index="keyspace", namespace=namespace, filters=["k"], ttl=3_600
    ) as store:
        items = [
            MemoryItem(content=f"word{number % 3} common", tags=[f"t{number % 4}"], metadata={"k": number})
            for number in range(30)
        ]
        await store.store(items[0])
        assert await store.store_many(items) == [item.id for item in items]
        assert len(await store.retrieve_many([item.id for item in items])) == 30
        assert len(await store.search(MemoryQuery(text="word1 common", limit=50))) == 10
        assert len(await store.search(MemoryQuery(tags=["t1", "t2"], limit=50))) == 15
        assert len(await store.search(MemoryQuery(filters={"k": AnyOf(1, 2, 99)}))) == 2
        assert len([item async for item in store.scan(filters={"k": AnyOf(3, 4)})]) == 2
        found = await store.retrieve_revision(items[1].id)
        assert found is not None
        assert await store.replace(items[1], expected_revision=found[1]) is not None
        assert await store.delete(items[2].id)
        keys = [key async for key in node.scan_iter(count=1_000)]
        assert len({key_slot(key) for key in keys}) == 1
        assert await store.clear() == 29
        await store.drop_namespace()
        assert [key async for key in node.scan_iter()] == []
    if through == "cluster client":
        await where.aclose()


async def test_a_cluster_client_reads_what_the_server_keeps(
    cluster: embedded.EmbeddedServer, node: "redis.asyncio.Redis"
) -> None:
    client = RedisCluster.from_url(cluster.url())
    async with RedisMemoryStore(client, index="keyspace", durability="crash") as store:
        await store.store(MemoryItem(content="x"))
    await node.config_set("appendfsync", "always")
    async with RedisMemoryStore(client, index="keyspace", durability="power") as store:
        assert len(await store.search(MemoryQuery())) == 1
    await node.config_set("appendfsync", "everysec")
    async with RedisMemoryStore(client, index="keyspace", durability="power") as store:
        with pytest.raises(MemoryAdapterUnavailable, match="'crash'"):
            await store.search(MemoryQuery())
    await client.aclose()


async def test_namespaces_are_spread_over_slots(cluster: embedded.EmbeddedServer) -> None:
    client = redis.asyncio.Redis.from_url(cluster.url())
    await client.flushall()
    for number in range(16):
        async with RedisMemoryStore(cluster.url(), index="keyspace", namespace=f"n{number}") as store:
            await store.store(MemoryItem(content="x"))
    keys = [key async for key in client.scan_iter(count=1_000)]
    assert len({key_slot(key) for key in keys}) > 8
    await client.aclose()
