"""Addresses, protocols, accounts, the caller's own clients, and calls that end early."""

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery, same_fields
from adapter_core.testing import Proxy
from adapter_redis import RedisMemoryStore, RedisSettings
from adapter_redis.client import Addressed

README = Path(__file__).parent.with_name("README.md").read_text("utf-8")
AWKWARD = MemoryItem(
    content={"a": "\x00 \ud800 é", "b": [1.0, -0.0, 2**80]}, tags=["é", "\udce9"], metadata={"k\x00": "v"}
)


async def works(store):
    await store.store(AWKWARD)
    assert same_fields(await store.retrieve(AWKWARD.id), store.preview(AWKWARD).retrieve)
    assert len(await store.search(MemoryQuery(tags=["é"]))) == 1
    assert len([item async for item in store.scan()]) == 1
    assert await store.delete(AWKWARD.id)


# Addresses


@pytest.mark.parametrize(
    "query", ["", "?protocol=2", "?protocol=3", "?decode_responses=True", "?socket_timeout=5"]
)
async def test_a_url_goes_to_the_clients_own_parser(on_server, server, query):
    await works(on_server(server.url() + query))


async def test_a_unix_socket_serves_as_well(on_server, server):
    await works(on_server(server.unix_url()))


@pytest.mark.parametrize(
    "url", ["", "localhost", "postgresql://x", "redis:/x", "http://h", "redis+unix:///x"]
)
def test_another_address_is_refused_at_once(on_server, url):
    with pytest.raises(MemoryAdapterError, match="begins with redis://"):
        RedisMemoryStore(url, index="keyspace")


@pytest.mark.parametrize("query", ["?socket_timeout=soon", "?no_such_option=sesame"])
async def test_a_url_that_the_client_cannot_read_is_an_error_that_does_not_show_it(on_server, server, query):
    with pytest.raises(MemoryAdapterError) as raised:
        await on_server(server.url() + query).store(MemoryItem())
    assert not isinstance(raised.value, MemoryAdapterUnavailable)
    assert "sesame" not in f"{raised.value}"
    assert server._password not in f"{raised.value!r}"


def test_something_else_than_an_address_or_a_client_is_refused():
    for other in (None, 7, object(), redis.Redis()):
        with pytest.raises(MemoryAdapterError, match="asyncio client"):
            RedisMemoryStore(other, index="keyspace")


# Accounts


async def test_b43_a_wrong_password_and_no_password_are_unavailability(on_server, server):
    for url in (server.url(password="wrong"), f"redis://127.0.0.1:{server.port}"):
        with pytest.raises(MemoryAdapterUnavailable) as raised:
            await on_server(url).search(MemoryQuery())
        assert raised.value.__cause__ is not None
        assert "wrong" not in f"{raised.value!r}"


async def test_an_account_works_with_the_rights_that_the_document_names(on_server, beside, server, settings):
    rights = README.partition("```text\n")[2].partition("```")[0].split()
    pattern = f"~{settings.prefix}:*"
    await beside.execute_command("ACL", "SETUSER", "narrow", "reset", "on", ">pw", pattern, "-@all", *rights)
    store = on_server(server.url(user="narrow", password="pw"), ttl=60, filters=["k"])
    await works(store)
    await store.store_many([MemoryItem(tags=["a"]), MemoryItem(content="x y", tags=["b"], metadata={"k": 1})])
    assert len(await store.search(MemoryQuery(tags=["a", "b"], text="x y", filters={"k": 1}))) == 1
    assert await store.clear() == 2
    other = on_server(server.url(user="narrow", password="pw"), settings=RedisSettings(prefix="other"))
    with pytest.raises(MemoryAdapterError, match="refused") as raised:
        await other.store(MemoryItem())
    assert not isinstance(raised.value, MemoryAdapterUnavailable)


# Clients of the caller's


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request):
    return request.param


@pytest.mark.parametrize("decode", [False, True])
async def test_a_client_of_the_callers_serves_as_it_is_and_stays_open(on_server, server, protocol, decode):
    client = redis.asyncio.Redis.from_url(server.url(), protocol=protocol, decode_responses=decode)
    store = on_server(client)
    await works(store)
    await store.close()
    assert await client.ping()
    await client.aclose()


async def test_a_client_with_another_encoding_and_one_connection_serves(on_server, server):
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        server.url(), max_connections=1, timeout=5, encoding="latin-1", decode_responses=True
    )
    client = redis.asyncio.Redis(connection_pool=pool)
    store = on_server(client)
    items = [MemoryItem(content=f"é {n}") for n in range(20)]
    await asyncio.gather(*map(store.store, items))
    assert [await store.retrieve(item.id) for item in items] == items
    await client.aclose()
    await pool.aclose()


async def test_b39_a_client_without_a_free_connection_is_unavailable(on_server, server):
    client = redis.asyncio.Redis.from_url(server.url(), max_connections=1)
    held = await client.connection_pool.get_connection()
    with pytest.raises(MemoryAdapterUnavailable, match="nothing was sent"):
        await on_server(client).store(MemoryItem())
    await client.connection_pool.release(held)
    await client.aclose()


# Calls that end early


class Slow(Proxy):
    """A way that answers only once it is let."""

    def __init__(self, server):
        super().__init__("127.0.0.1", server.port)
        self.open = asyncio.Event()
        self.open.set()
        self.requests = 0
        self.wanted = asyncio.Event()

    async def _serve(self, reader, writer):
        there, back = await asyncio.open_connection(*self._target)

        async def forward():
            while data := await reader.read(65536):
                self.requests += 1
                self.wanted.set()
                back.write(data)

        async def answer():
            while data := await there.read(65536):
                await self.open.wait()
                writer.write(data)

        both = [asyncio.ensure_future(forward()), asyncio.ensure_future(answer())]
        self._pipes.update(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        self._pipes.difference_update(both)
        back.close()
        writer.close()


@asynccontextmanager
async def slow_way(server):
    way = Slow(server)
    await way.accept()
    try:
        yield way
    finally:
        way.open.set()
        await way.close()


@pytest.fixture(params=["ours", "pool"])
async def through(request, on_server, server):
    """A store over a slow way, with connections of its own or those of a client with one."""
    async with slow_way(server) as way:
        if request.param == "ours":
            yield (
                way,
                on_server(server.url(port=way.port), settings=RedisSettings(pool_size=1, prefix="slow")),
            )
            return
        client = redis.asyncio.Redis.from_url(server.url(port=way.port), max_connections=1)
        yield way, on_server(client, settings=RedisSettings(prefix="slow"))
        await client.aclose()


async def test_b40_a_cancelled_call_leaves_its_answer_for_nobody(through):
    way, store = through
    one, other = MemoryItem(content="one"), MemoryItem(content="other")
    await store.store_many([one, other])
    for _ in range(20):
        way.open.clear()
        way.wanted.clear()
        call = asyncio.ensure_future(store.retrieve(one.id))
        await asyncio.wait_for(way.wanted.wait(), 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        way.open.set()
        assert (await store.retrieve(other.id)).content == "other"
        assert (await store.retrieve(one.id)).content == "one"
    await store.drop_namespace()


async def test_a_call_that_takes_too_long_ends_and_leaves_its_answer_for_nobody(
    on_server, server, beside, settings
):
    async with slow_way(server) as way:
        brief = RedisSettings(prefix=settings.prefix, command_timeout=0.2, connect_timeout=0.2, pool_size=1)
        store = on_server(server.url(port=way.port), settings=brief)
        item = MemoryItem()
        await store.store(item)
        way.open.clear()
        with pytest.raises(MemoryAdapterUnavailable) as raised:
            await store.store(MemoryItem())
        assert raised.value.outcome_unknown
        with pytest.raises(MemoryAdapterUnavailable):
            await store.retrieve(item.id)
        way.open.set()
        assert await store.retrieve(item.id) == item


@pytest.mark.parametrize("kind", ["ours", "pool"])
async def test_a_write_whose_answer_is_lost_is_sent_once(on_server, server, beside, settings, kind):
    async with slow_way(server) as way:
        url = server.url(port=way.port)
        # a client that would send again what failed
        client = redis.asyncio.Redis.from_url(url, retry=Retry(NoBackoff(), 3))
        store = on_server(url if kind == "ours" else client)
        item = MemoryItem(content="first")
        await store.store(item)
        (_, before) = await store.retrieve_revision(item.id)
        way.open.clear()
        way.wanted.clear()
        call = asyncio.ensure_future(store.store(item))
        await asyncio.wait_for(way.wanted.wait(), 5)
        async with asyncio.timeout(5):
            while int(await beside.hget(f"{settings.prefix}:{{ndefault}}", "revision")) == before:
                pass
        await way.refuse()
        with pytest.raises(MemoryAdapterUnavailable) as raised:
            await call
        assert raised.value.outcome_unknown
        way.open.set()
        await way.accept()
        (_, after) = await store.retrieve_revision(item.id)
        assert after == before + 1
        await client.aclose()


async def test_connections_that_the_server_has_closed_are_noticed_before_a_write(on_server, beside):
    store = on_server()
    await store.store(MemoryItem())
    await beside.client_kill_filter(_type="normal", skipme=True)
    async with asyncio.timeout(5):
        while any(connection.is_at_rest() for connection in store._driver._transport._idle):
            await beside.ping()
    await store.store(MemoryItem())
    assert len(await store.search(MemoryQuery())) == 2


async def test_b39_when_every_connection_is_busy_the_wait_is_bounded(on_server, server, settings):
    async with slow_way(server) as way:
        tight = RedisSettings(prefix=settings.prefix, acquire_timeout=0.1, pool_size=1)
        store = on_server(server.url(port=way.port), settings=tight)
        await store.store(MemoryItem())
        way.open.clear()
        way.wanted.clear()
        first = asyncio.ensure_future(store.search(MemoryQuery()))
        await asyncio.wait_for(way.wanted.wait(), 5)
        with pytest.raises(MemoryAdapterUnavailable, match="busy"):
            await store.retrieve(UUID(int=1))
        way.open.set()
        assert len(await first) == 1


async def test_b39_after_close_and_on_another_loop(on_server):
    store = on_server()
    item = MemoryItem()
    await store.store(item)
    with pytest.raises(MemoryAdapterError, match="event loop"):
        await asyncio.to_thread(asyncio.run, store.retrieve(item.id))
    assert await store.retrieve(item.id) == item
    await store.close()
    for call in (store.retrieve(item.id), store.search(MemoryQuery()), store.store(item)):
        with pytest.raises(MemoryAdapterUnavailable, match="closed"):
            await call


async def test_what_was_not_sent_of_a_cancelled_request_is_never_sent():
    request = b"x" * 100_000_000
    arriving, going_on, received = asyncio.Event(), asyncio.Event(), asyncio.Queue()

    async def serve(reader, writer):
        while (part := await reader.read(65_536)) and not part.startswith(b"x"):
            writer.write(b"+OK\r\n" * (part.count(b"\r\n*") + 1))  # the handshake
        arriving.set()
        await going_on.wait()
        count = len(part)
        with suppress(ConnectionError):
            while part := await reader.read(65_536):
                count += len(part)
        writer.close()
        received.put_nowait(count)

    async with await asyncio.start_server(serve, "127.0.0.1") as listener, asyncio.timeout(20):
        port = listener.sockets[0].getsockname()[1]
        connection = await Addressed(f"redis://127.0.0.1:{port}", RedisSettings()).connect()
        call = asyncio.create_task(connection.exchange(request, 1))
        await arriving.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        going_on.set()
        assert await received.get() < len(request)
