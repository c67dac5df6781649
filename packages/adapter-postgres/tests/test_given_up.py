"""Connections whose call was cancelled: the call ends at once, and a later write comes after it."""

import asyncio
from types import SimpleNamespace

import asyncpg
import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore, PostgresSettings, client, transport
from adapter_postgres.client import Connection
from adapter_postgres.limits import Watch
from adapter_postgres.transport import PoolTransport, ServerTransport, Statement

BOUND = 20
READ, WRITE = Statement("get", "read"), Statement("put", "write", writes=True)


class Native:
    """A connection of asyncpg: what is `stuck` runs until it is cancelled, and ends when `ended` is set."""

    def __init__(self, log):
        self.log = log
        self.ended = asyncio.Event()
        self.closed = False

    async def fetch(self, sql):
        self.log.append(sql)
        if sql == "stuck":
            await asyncio.Event().wait()
        return []

    async def close(self, **_):
        await self.ended.wait()
        self.log.append("ended")
        self.closed = True

    def terminate(self):
        self.closed = True

    def is_closed(self):
        return self.closed

    def is_in_transaction(self):
        return False

    def get_server_pid(self):
        return id(self)

    def connection(self):
        return Connection(self, Watch(BOUND, Connection.time_out))


class Pool:
    """A pool that notes what it is given back."""

    def __init__(self, natives):
        self.natives = list(natives)
        self.returned = []

    async def release(self, native, **_):
        self.returned.append(native)


async def turn():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def log():
    return []


@pytest.fixture
def natives(log):
    return [Native(log) for _ in range(3)]


@pytest.fixture(params=["own", "pool"])
def way(request, natives, monkeypatch):
    """The way to three connections, in turn."""
    left = iter(natives)

    async def following(*_):
        return next(left).connection()

    if request.param == "own":
        monkeypatch.setattr(transport, "_connected", following)
        return ServerTransport("postgresql://u", PostgresSettings())
    monkeypatch.setattr(client, "borrow", following)
    made = PoolTransport(Pool(natives), PostgresSettings())
    made._checked |= {one.get_server_pid() for one in natives}
    return made


async def cancelled(call):
    task = asyncio.create_task(call)
    await turn()
    task.cancel()
    async with asyncio.timeout(BOUND):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_write_comes_after_the_end_of_one_that_was_cancelled(way, natives, log):
    await cancelled(way.run(Statement("put", "stuck", writes=True)))
    write = asyncio.create_task(way.run(WRITE))
    await way.run(READ)  # a read waits for nothing
    await turn()
    assert log == ["stuck", "read"]
    natives[0].ended.set()
    async with asyncio.timeout(BOUND):
        await write
    assert log == ["stuck", "read", "ended", "write"]
    for one in natives:
        one.ended.set()
    await way.close()


async def test_a_transaction_comes_after_the_end_of_a_write_that_was_cancelled(way, natives, log):
    async def work(session):
        await session.run(WRITE)

    await cancelled(way.run(Statement("put", "stuck", writes=True)))
    batch = asyncio.create_task(way.transact("put", work))
    await turn()
    assert log == ["stuck"]
    for one in natives:
        one.ended.set()
    async with asyncio.timeout(BOUND):
        await batch
    assert log[1:] == ["ended", "BEGIN ISOLATION LEVEL READ COMMITTED", "write", "COMMIT"]
    await way.close()


async def test_close_waits_for_what_was_given_up_also_when_it_is_repeated(way, natives, log):
    await cancelled(way.run(Statement("get", "stuck")))
    await cancelled(way.close())
    closing = asyncio.create_task(way.close())
    await turn()
    assert not closing.done()
    natives[0].ended.set()
    async with asyncio.timeout(BOUND):
        await closing
    assert log == ["stuck", "ended"]


async def test_a_connection_of_a_pool_is_given_back_after_a_cancelled_call(natives, monkeypatch):
    async def borrow(*_):
        return natives[0].connection()

    monkeypatch.setattr(client, "borrow", borrow)
    pool = Pool(natives)
    way = PoolTransport(pool, PostgresSettings())
    way._checked.add(natives[0].get_server_pid())
    await cancelled(way.run(Statement("put", "stuck", writes=True)))
    natives[0].ended.set()
    await way.close()
    assert pool.returned == [natives[0]]


async def test_a_connection_that_does_not_end_is_cut_in_time(natives):
    async with asyncio.timeout(BOUND):
        await natives[0].connection().close(0.01)
    assert natives[0].closed


async def test_what_goes_wrong_in_a_pool_afterwards_is_not_the_calls(natives):
    async def release(*_, **__):
        raise asyncpg.InterfaceError("the pool is closed")

    await natives[0].connection().give_back(SimpleNamespace(release=release), 1)
    assert natives[0].closed


async def test_a_close_that_is_cancelled_leaves_no_session(server, settings, admin):
    store = PostgresMemoryStore(server.url(), settings=settings)
    await asyncio.gather(*(store.retrieve_many([MemoryItem().id]) for _ in range(3)))
    opened = [connection._native for connection in store._driver._transport._idle]
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    async with asyncio.timeout(BOUND):
        await store.close()
    assert opened
    assert all(native.is_closed() for native in opened)


async def test_a_pool_whose_connections_come_in_a_transaction_is_refused(server, settings, admin):
    async def begin(connection):
        await connection.execute("BEGIN")

    async with (
        asyncpg.create_pool(server.url(), setup=begin, min_size=1, max_size=1) as pool,
        PostgresMemoryStore(pool, settings=settings) as store,
    ):
        with pytest.raises(MemoryAdapterError, match="in a transaction"):
            await store.store(MemoryItem())


async def test_a_pool_that_cannot_connect_has_sent_nothing(server, settings, admin):
    pool = await asyncpg.create_pool(server.url(), min_size=1, max_size=1)
    async with PostgresMemoryStore(pool, settings=settings) as store:
        await store.store(MemoryItem())
        await pool.close()
        with pytest.raises(MemoryAdapterUnavailable, match="nothing was sent") as raised:
            await store.store(MemoryItem())
        assert not raised.value.outcome_unknown
        with pytest.raises(MemoryAdapterUnavailable, match="nothing was sent"):
            await store.search(MemoryQuery())
