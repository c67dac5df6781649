"""Threads, transactions, cancellation, and other connections to the same file."""

import asyncio
import sqlite3
import threading
from contextlib import asynccontextmanager, closing

import pytest

from adapter_core import MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_sqlite import READERS, FileTransport, SqliteMemoryStore
from adapter_sqlite.threads import Pool

SECONDS = 20
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


@asynccontextmanager
async def opened(path, **options):
    file = FileTransport(str(path), **options)
    await file.open(lambda connection: connection.execute("CREATE TABLE t (x)") and None)
    try:
        yield file
    finally:
        await file.close()


@asynccontextmanager
async def writing_elsewhere(path):
    """Hold the write lock of the file in another connection."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        if other.in_transaction:
            other.execute("ROLLBACK")


def rows(connection):
    return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


async def started(event):
    assert await asyncio.to_thread(event.wait, SECONDS)


def inserting(value, *, begun=None, go=None):
    def work(connection):
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        if begun is not None:
            begun.set()
            assert go.wait(SECONDS)

    return work


@pytest.mark.parametrize("place", ["file", ":memory:"])
async def test_b41_a_write_cancelled_before_its_commit_is_whole_and_blocks_nobody(path, place):
    begun, go = threading.Event(), threading.Event()
    async with opened(path if place == "file" else place) as transport:
        first = asyncio.create_task(transport.write("put", inserting(1, begun=begun, go=go)))
        await started(begun)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(transport.write("put", inserting(2)))
        go.set()
        await second
        assert await transport.read("get", rows) == [1, 2]


async def test_b41_a_write_cancelled_in_the_queue_is_dropped(path):
    begun, go = threading.Event(), threading.Event()
    async with opened(path) as transport:
        first = asyncio.create_task(transport.write("put", inserting(1, begun=begun, go=go)))
        await started(begun)
        queued = asyncio.create_task(transport.write("put", inserting(2)))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        go.set()
        await first
        assert await transport.read("get", rows) == [1]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, sqlite3.IntegrityError])
async def test_b41_a_write_that_raises_is_rolled_back_whole(path, kind):
    def broken(connection):
        connection.execute("INSERT INTO t VALUES (1)")
        raise kind

    async with opened(path) as transport:
        with pytest.raises(kind):
            await transport.write("put", broken)
        with closing(sqlite3.connect(path, timeout=0)) as other, other:
            other.execute("INSERT INTO t VALUES (2)")
        await transport.write("put", inserting(3))
        assert await transport.read("get", rows) == [2, 3]


async def test_b41_a_store_cancelled_while_it_waits_for_the_lock_leaks_into_no_other_write(path):
    async with SqliteMemoryStore(path) as store:
        await store.store(MemoryItem(content="before"))
        first, second = MemoryItem(content="first", tags=["t"]), MemoryItem(content="second")
        async with writing_elsewhere(path):
            cancelled = asyncio.create_task(store.store(first))
            for _ in range(5):
                await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            writing = asyncio.create_task(store.store(second))
        await writing
        assert await store.retrieve(second.id) == second
        there = await store.retrieve(first.id)
        assert len(await store.search(MemoryQuery(tags=["t"]))) == (there is not None)


async def test_a_cancelled_read_is_interrupted_and_the_next_one_is_not(path):
    begun, ended = threading.Event(), threading.Event()

    def endless(connection):
        connection.set_progress_handler(begun.set, 1000)
        try:
            connection.execute(ENDLESS).fetchone()
        finally:
            connection.set_progress_handler(None, 0)
            ended.set()

    async with opened(path) as transport:
        for _ in range(3):
            begun.clear()
            ended.clear()
            reading = asyncio.create_task(transport.read("find", endless))
            await started(begun)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await started(ended)
            assert await asyncio.gather(*(transport.read("get", rows) for _ in range(20))) == [[]] * 20


async def test_close_waits_for_a_write_whose_caller_is_gone(path):
    begun, go = threading.Event(), threading.Event()
    async with opened(path) as transport:
        task = asyncio.create_task(transport.write("put", inserting(1, begun=begun, go=go)))
        await started(begun)
        task.cancel()
        closed = asyncio.create_task(transport.close())
        await asyncio.sleep(0)
        assert not closed.done()
        go.set()
        await closed
    with closing(sqlite3.connect(path)) as connection:
        assert rows(connection) == [1]


async def test_reads_run_beside_each_other_and_beside_a_write(path):
    meeting = threading.Barrier(READERS + 1)

    def meet(connection):
        seen = rows(connection)  # before the meeting, and so before the commit
        meeting.wait(SECONDS)
        return seen

    def insert_and_meet(connection):
        connection.execute("INSERT INTO t VALUES (1)")
        meeting.wait(SECONDS)

    async with opened(path) as transport:
        reads = [transport.read("get", meet) for _ in range(READERS)]
        seen = await asyncio.gather(transport.write("put", insert_and_meet), *reads)
        assert seen[1:] == [[]] * READERS  # not yet committed
        assert await transport.read("get", rows) == [1]


async def test_a_reader_cannot_write(path):
    async with opened(path) as transport:
        with pytest.raises(sqlite3.OperationalError) as refused:
            await transport.read("get", inserting(1))
        assert refused.value.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY


async def test_before_open_and_after_close_a_call_is_unavailable(path):
    transport = FileTransport(str(path))
    with pytest.raises(MemoryAdapterUnavailable):
        await transport.read("get", rows)
    await transport.close()
    async with opened(path) as transport:
        pass
    with pytest.raises(MemoryAdapterUnavailable):
        await transport.write("put", inserting(1))


async def test_b42_past_the_bounded_wait_a_write_is_unavailable_and_reads_go_on(path):
    async with SqliteMemoryStore(path, busy_timeout=0.05) as store:
        item = MemoryItem(content="before")
        await store.store(item)
        async with writing_elsewhere(path):
            with pytest.raises(MemoryAdapterUnavailable) as busy:
                await store.store(MemoryItem(id=item.id, content="after"))
            assert not busy.value.outcome_unknown
            assert isinstance(busy.value.__cause__, sqlite3.OperationalError)
            assert (await store.retrieve(item.id)).content == "before"
            assert len(await store.search(MemoryQuery())) == 1
        await store.store(MemoryItem(id=item.id, content="after"))
        assert (await store.retrieve(item.id)).content == "after"


async def test_b39_calls_that_time_out_leave_the_store_usable(path):
    async with SqliteMemoryStore(path) as store:
        item = MemoryItem()
        await store.store(item)
        async with writing_elsewhere(path):
            for _ in range(50):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await store.store(MemoryItem())
            assert await store.retrieve(item.id) == item
        await store.store(item)


async def test_twenty_stores_and_searches_at_once_all_succeed(path):
    async with SqliteMemoryStore(path) as store:
        items = [MemoryItem(content=f"n{n}", tags=["t"]) for n in range(20)]
        calls = [
            call for item in items for call in (store.store(item), store.search(MemoryQuery(tags=["t"])))
        ]
        await asyncio.gather(*calls)
        assert len(await store.search(MemoryQuery(tags=["t"]))) == 20


async def test_a_connection_whose_rollback_failed_is_not_used_again(path):
    async with opened(path) as transport:

        def left_open(connection):
            connection.execute("BEGIN")

        await transport.read("get", left_open)
        assert not await transport.read("get", lambda connection: connection.in_transaction)


async def test_a_locked_file_delays_the_setup_but_does_not_fail_it(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")  # not a WAL file yet: the switch finds it locked
        async with SqliteMemoryStore(path, busy_timeout=SECONDS) as store:
            storing = asyncio.create_task(store.store(MemoryItem()))
            for _ in range(5):
                await asyncio.sleep(0)
            other.execute("ROLLBACK")
            await storing
        async with SqliteMemoryStore(path.with_name("y.db"), busy_timeout=0.03) as late:
            with closing(sqlite3.connect(path.with_name("y.db"), isolation_level=None)) as lock:
                lock.execute("BEGIN EXCLUSIVE")
                with pytest.raises(MemoryAdapterUnavailable):
                    await late.store(MemoryItem())


async def test_the_writer_closes_after_the_readers_and_so_no_log_is_left(tmp_path, monkeypatch) -> None:
    closed: list[Pool] = []
    retire = Pool.retire

    async def recorded(pool: Pool) -> None:
        await retire(pool)
        closed.append(pool)

    monkeypatch.setattr(Pool, "retire", recorded)
    transport = FileTransport(str(tmp_path / "x.db"))
    await transport.open(lambda connection: None)
    await transport.read("get", lambda connection: None)
    readers, writer = transport._readers, transport._writer
    await transport.close()
    assert closed == [readers, writer]
    assert [found.name for found in tmp_path.iterdir()] == ["x.db"]
