"""What the server must be: keep what it acknowledged, evict nothing, be a master, stay itself."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import redis.asyncio

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_redis import RedisMemoryStore, RedisSettings, embedded

ALWAYS = RedisSettings(check_interval=0.0)


@pytest.fixture
async def config(beside):
    """Change settings of the server, and set them back at the end."""
    before = await beside.config_get("maxmemory-policy", "maxmemory", "appendonly", "appendfsync")

    async def change(**wanted):
        for name, value in wanted.items():
            await beside.config_set(name.replace("_", "-"), value)

    yield change
    for name, value in before.items():
        await beside.config_set(name, value)


async def unavailable(call, match):
    with pytest.raises(MemoryAdapterUnavailable, match=match) as raised:
        async with asyncio.timeout(20):
            await call
    return raised.value


# Durability


@pytest.mark.parametrize(
    ("appendonly", "appendfsync", "given"),
    [("no", "always", 0), ("yes", "no", 1), ("yes", "everysec", 1), ("yes", "always", 2)],
)
async def test_a_server_that_keeps_less_than_is_declared_is_refused(
    on_server, config, appendonly, appendfsync, given
):
    await config(appendonly=appendonly, appendfsync=appendfsync)
    for wanted, durability in enumerate(("volatile", "crash", "power")):
        store = on_server(durability=durability)
        assert store.durability == durability
        if wanted <= given:
            await store.store(MemoryItem())
        else:
            await unavailable(store.store(MemoryItem()), "durability")


async def test_a_fake_is_asked_as_a_server_is(on_fake, fake):
    fake.appendonly = False
    await unavailable(on_fake(durability="crash").search(MemoryQuery()), "durability")
    fake.appendonly, fake.appendfsync = True, "always"
    await on_fake(durability="power").store(MemoryItem())


async def test_an_append_only_file_that_goes_off_is_noticed(on_server, settings, config):
    eager = RedisSettings(prefix=settings.prefix, check_interval=0.0)
    crash, power = (on_server(durability=each, settings=eager) for each in ("crash", "power"))
    await config(appendfsync="always")
    for store in (crash, power):
        await store.store(MemoryItem())
    await config(appendfsync="everysec")
    await unavailable(power.store(MemoryItem()), "durability")
    await crash.store(MemoryItem())
    await config(appendonly="no")
    await unavailable(crash.store(MemoryItem()), "append-only")
    await config(appendonly="yes", appendfsync="always")
    for store in (crash, power):
        await store.store(MemoryItem())


async def test_without_the_right_to_config_power_is_not_believed(on_server, beside, server, config):
    await config(appendfsync="always")
    await beside.execute_command("ACL", "SETUSER", "plain", "on", ">pw", "~*", "&*", "+@all", "-config")
    url = server.url(user="plain", password="pw")
    await on_server(url, durability="crash").store(MemoryItem())
    await unavailable(on_server(url, durability="power").store(MemoryItem()), "durability")


async def test_without_the_right_to_info_the_reason_is_said(on_server, beside, server):
    await beside.execute_command("ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-info")
    url = server.url(user="blind", password="pw")
    with pytest.raises(MemoryAdapterError, match="INFO"):
        await on_server(url).store(MemoryItem())
    store = on_server(url, allow_eviction=True)
    item = MemoryItem()
    await store.store(item)
    assert await store.retrieve(item.id) == item
    assert len(await store.search(MemoryQuery())) == 1


# Eviction


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl"])
async def test_a_server_that_may_evict_is_refused_unless_that_is_allowed(on_server, config, policy):
    await config(maxmemory_policy=policy)
    store = on_server()
    for call in (lambda: store.store(MemoryItem()), lambda: store.search(MemoryQuery())):
        await unavailable(call(), f"{policy}.*allow_eviction")
    allowed = on_server(allow_eviction=True)
    await allowed.store(MemoryItem())
    assert len(await allowed.search(MemoryQuery())) == 1


async def test_nothing_is_called_missing_once_the_server_may_evict(on_server, config, beside, key):
    store = on_server()
    items = [MemoryItem(tags=["t"]) for _ in range(4)]
    await store.store_many(items)
    await config(maxmemory_policy="allkeys-lru")
    await beside.delete(key(f":item:{items[0].id}"))  # as an eviction does
    for call in (
        lambda: store.retrieve(items[0].id),
        lambda: store.retrieve_many([items[0].id, items[1].id]),
        lambda: store.search(MemoryQuery(tags=["t"])),
        lambda: store.search(MemoryQuery(tags=["none"])),
        lambda: anext(store.scan()),
        lambda: store.store(MemoryItem()),  # every call looks, as long as it lasts
    ):
        await unavailable(call(), "allkeys-lru")
    await config(maxmemory_policy="noeviction")
    assert await store.retrieve(items[1].id) == items[1]
    assert len(await store.search(MemoryQuery(tags=["t"]))) == 3


async def test_a_policy_that_appears_is_noticed_by_a_write_after_the_interval(on_fake, fake):
    store = on_fake(settings=ALWAYS)
    await store.store(MemoryItem())
    fake.policy = "volatile-lru"
    await unavailable(store.store(MemoryItem()), "volatile-lru")
    fake.policy = "noeviction"
    await store.store(MemoryItem())


async def test_the_look_at_the_server_costs_no_request(on_fake, fake):
    store = on_fake(settings=ALWAYS, durability="crash")
    await store.store(MemoryItem())
    before = len(fake.faults.calls)
    await store.store(MemoryItem())
    await store.search(MemoryQuery())
    assert [call.operation for call in fake.faults.calls[before:]] == ["put", "find"]


# A server that is full, a replica, emptied


async def test_a_server_out_of_memory_refuses_writes_whole_and_still_reads(on_server, config, beside):
    store = on_server()
    item = MemoryItem(content="old words", tags=["t"])
    await store.store(item)
    await config(maxmemory=1)
    changed = MemoryItem(id=item.id, content="new", tags=["u"])
    _, revision = await store.retrieve_revision(item.id)
    for call in (
        lambda: store.store(changed),
        lambda: store.store_many([MemoryItem(), changed]),
        lambda: store.replace(changed, expected_revision=revision),
    ):
        error = await unavailable(call(), "OOM")
        assert not error.outcome_unknown
        assert isinstance(error.__cause__, redis.RedisError)
    assert (await store.retrieve(item.id)).content == "old words"
    assert [hit.content for hit in await store.search(MemoryQuery(text="old", tags=["t"]))] == ["old words"]
    assert await store.search(MemoryQuery(tags=["u"])) == []
    assert await store.delete(item.id)
    await config(maxmemory=0)
    assert await store.search(MemoryQuery()) == []


@asynccontextmanager
async def a_replica_of(server, url):
    client = redis.asyncio.Redis.from_url(url)
    await client.config_set("masterauth", server._password)
    await client.replicaof("127.0.0.1", server.port)
    try:
        yield client
    finally:
        await client.replicaof("NO", "ONE")
        await client.aclose()


async def test_a_replica_is_refused_and_one_that_becomes_one_is_noticed(server):
    other = embedded.EmbeddedServer(appendonly=False)
    other.start()
    try:
        async with RedisMemoryStore(other.url(), index="keyspace", settings=ALWAYS) as store:
            await store.store(MemoryItem())
            async with a_replica_of(server, other.url()):
                await unavailable(store.store(MemoryItem()), "READONLY|replica|gone|MASTERDOWN|LOADING")
                await unavailable(store.search(MemoryQuery()), "READONLY|replica|gone|MASTERDOWN|LOADING")
                async with RedisMemoryStore(other.url(), index="keyspace") as fresh:
                    await unavailable(fresh.store(MemoryItem()), "replica|MASTERDOWN|LOADING")
    finally:
        other.stop()


@pytest.fixture
async def empty(request, settings):
    """Do what `FLUSHALL` does, to what `make` makes stores of."""
    if request.node.callspec.params["make"] == "fake":
        fake = request.getfixturevalue("fake")

        async def flush():
            fake.flush()

        yield flush
        return
    server = request.getfixturevalue("server")
    client = redis.asyncio.Redis.from_url(server.url())

    async def remove():
        async for one in client.scan_iter(match=f"{settings.prefix}*"):
            await client.delete(one)

    yield remove
    await client.aclose()


async def test_b43_a_namespace_that_was_emptied_is_not_taken_for_one_without_items(make, empty):
    store, other = make(), make()
    item = MemoryItem(tags=["t"])
    await store.store(item)
    assert await other.retrieve(item.id) == item
    await empty()
    for call in (
        lambda: store.retrieve(item.id),
        lambda: store.search(MemoryQuery()),
        lambda: store.store(item),
        lambda: other.retrieve_revision(item.id),
        lambda: other.delete(item.id),
        other.clear,
        lambda: anext(other.scan()),
    ):
        await unavailable(call(), "gone from the server")
    fresh = make()
    assert await fresh.search(MemoryQuery()) == []
    await fresh.store(item)
    assert await fresh.retrieve(item.id) == item


async def test_a_namespace_whose_own_key_was_lost_is_indexed_anew(on_server, beside, key):
    store = on_server()
    items = [MemoryItem(content=f"word w{n}", tags=["t"]) for n in range(5)]
    await store.store_many(items)
    _, revision = await store.retrieve_revision(items[0].id)
    await beside.delete(key())
    await unavailable(store.search(MemoryQuery()), "gone")
    fresh = on_server()
    with pytest.raises(MemoryAdapterError, match="run reindex"):
        await fresh.search(MemoryQuery())
    await fresh.reindex()
    assert len(await fresh.search(MemoryQuery(text="word", tags=["t"]))) == 5
    await fresh.store(items[0])
    _, again = await fresh.retrieve_revision(items[0].id)
    assert again > revision


async def test_a_key_of_another_program_in_the_place_of_the_namespace_is_left_alone(on_server, beside, key):
    await beside.hset(key(), "theirs", "1")
    with pytest.raises(MemoryAdapterError, match="another program"):
        await on_server().store(MemoryItem())
    assert await beside.hgetall(key()) == {b"theirs": b"1"}


async def test_scripts_that_the_server_has_forgotten_are_sent_again(on_server, beside):
    store = on_server()
    item = MemoryItem()
    await store.store(item)
    await beside.script_flush()
    await store.store(item)
    await beside.script_flush()
    assert await store.retrieve(item.id) == item
    assert len(await store.search(MemoryQuery())) == 1


async def test_a_server_without_a_search_engine_is_left_as_it_was(on_server, beside, settings) -> None:
    store = on_server(index="query-engine")
    await unavailable(store.search(MemoryQuery()), 'index="keyspace" works on any server')
    assert [key async for key in beside.scan_iter(match=f"{settings.prefix}*")] == []
    assert await on_server(index="keyspace").search(MemoryQuery()) == []


@pytest.mark.parametrize("command", ["zadd", "zrem", "hdel", "del", "pexpireat"])
async def test_an_account_that_may_not_write_all_stores_nothing_and_damages_nothing(
    on_server, beside, server, settings, command
) -> None:
    store = on_server(ttl=3600.0)
    kept = MemoryItem(content="kept", tags=["a"])
    await store.store(kept)
    user = f"{settings.prefix}-weak"
    await beside.acl_setuser(
        user, enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all", f"-{command}"]
    )
    try:
        weak = on_server(server.url(user=user, password="secret"), ttl=3600.0)
        other = MemoryItem(content="other", tags=["a"])
        for item in (other, MemoryItem(id=kept.id, content="changed", tags=["b"])):
            with pytest.raises(MemoryAdapterError):
                await weak.store(item)
        if command in ("zrem", "hdel", "del"):
            for removal in (weak.delete(kept.id), weak.clear()):
                with pytest.raises(MemoryAdapterError):
                    await removal
        await weak.close()
    finally:
        await beside.acl_deluser(user)
    assert await store.retrieve(other.id) is None
    assert [item.content for item in await store.search(MemoryQuery(tags=["a"]))] == ["kept"]
    assert await store.search(MemoryQuery(tags=["b"])) == []
    await store.store(other)


async def test_a_pool_of_the_callers_with_one_connection_serves_many_stores_of_one_tick(
    server, settings
) -> None:
    async with redis.asyncio.Redis.from_url(server.url(), max_connections=1) as client:
        store = RedisMemoryStore(client, index="keyspace", settings=settings)
        await asyncio.gather(*(store.store(MemoryItem(tags=["t"])) for _ in range(64)))
        assert len(await store.search(MemoryQuery(tags=["t"], limit=100))) == 64
        await store.close()
