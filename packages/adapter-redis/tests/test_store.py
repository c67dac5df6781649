"""The constructor: which address, client and options it takes, without a server."""

import pytest
import redis.asyncio

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery
from adapter_redis import RedisMemoryStore, RedisSettings
from adapter_redis.connections import ClientTransport, ClusterTransport, ServerTransport
from adapter_redis.query_engine import SCORE_MEANING


@pytest.mark.parametrize(
    "url", ["redis://me:sesame@host:1/2", "rediss://:sesame@host", "unix://me:sesame@/tmp/socket?db=1"]
)
def test_each_form_of_a_url_is_taken_and_not_shown(url):
    store = RedisMemoryStore(url, index="keyspace")
    assert isinstance(store._driver._transport, ServerTransport)
    assert "sesame" not in f"{store!r} {vars(store)!r} {store._driver._transport!r}"


def test_a_url_that_is_refused_is_not_shown():
    with pytest.raises(MemoryAdapterError, match="begins with redis://") as raised:
        RedisMemoryStore("postgresql://me:sesame@host")
    assert "sesame" not in f"{raised.value!r}"


async def test_the_callers_client_is_used_and_stays_open():
    client = redis.asyncio.Redis(host="nowhere.invalid")
    store = RedisMemoryStore(client)
    assert isinstance(store._driver._transport, ClientTransport)
    await store.close()
    await store.close()
    await client.aclose()


def test_a_cluster_client_is_told_apart():
    client = redis.asyncio.RedisCluster(host="nowhere.invalid")
    store = RedisMemoryStore(client, index="keyspace")
    assert isinstance(store._driver._transport, ClusterTransport)


def test_a_cluster_is_refused_for_the_search_engine_before_any_io():
    with pytest.raises(MemoryAdapterError, match='index="keyspace" is needed'):
        RedisMemoryStore(redis.asyncio.RedisCluster(host="nowhere.invalid"))


@pytest.mark.parametrize("other", [None, 7, b"redis://host", object(), redis.Redis()])
def test_what_is_no_asyncio_client_is_refused(other):
    with pytest.raises(MemoryAdapterError, match="asyncio client of redis-py"):
        RedisMemoryStore(other)


def test_the_search_engine_is_the_default_and_says_what_its_score_means():
    store = RedisMemoryStore("redis://host", filters=["k"])
    assert store.score_meaning == SCORE_MEANING
    assert store.score_meaning != RedisMemoryStore("redis://host", index="keyspace").score_meaning
    assert store.manifest == RedisMemoryStore("redis://host", index="keyspace", filters=["k"]).manifest


@pytest.mark.parametrize("ttl", [0, -1, True, "60", float("nan"), float("inf")])
def test_a_time_to_live_that_is_no_positive_number_is_refused(ttl):
    with pytest.raises(MemoryAdapterError, match="ttl"):
        RedisMemoryStore("redis://host", ttl=ttl)


def test_settings_stand_beside_options_in_from_url():
    store = RedisMemoryStore.from_url(
        "redis://host", index="keyspace", prefix="mine", settings=RedisSettings(prefix="other", pool_size=2)
    )
    assert store._driver._transport._settings == RedisSettings(prefix="mine", pool_size=2)
    assert store._driver._index.space.base.startswith(b"mine:{")


def test_from_url_without_options_has_the_defaults():
    assert RedisMemoryStore.from_url("redis://host")._driver._transport._settings == RedisSettings()


def test_from_url_refuses_settings_and_options_that_are_not_legal():
    with pytest.raises(MemoryAdapterError, match="pool_size"):
        RedisMemoryStore.from_url("redis://host", pool_size=0)
    with pytest.raises(TypeError, match="no_such_option"):
        RedisMemoryStore.from_url("redis://host", no_such_option=1)


async def test_a_closed_store_on_the_fake_leaves_what_it_stored(on_fake):
    item = MemoryItem(content="kept")
    async with on_fake() as store:
        await store.store(item)
    assert [hit.content for hit in await on_fake().search(MemoryQuery())] == ["kept"]
