"""Faults that users of SQLite have reported, each as a test with the case's id."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from uuid import UUID

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
)
from adapter_sqlite import SqliteMemoryStore


async def found(store, **query):
    return [hit.content for hit in await store.search(MemoryQuery(**{"limit": 100, **query}))]


async def test_b37_twelve_stores_set_up_one_file_at_once(path):
    for _ in range(5):
        stores = [SqliteMemoryStore(path) for _ in range(12)]
        items = [MemoryItem(content=n) for n in range(12)]
        await asyncio.gather(*(s.store(item) for s, item in zip(stores, items, strict=True)))
        assert len(await stores[0].search(MemoryQuery())) == 12
        await asyncio.gather(*(store.close() for store in stores))
        with closing(sqlite3.connect(path)) as connection:
            for table in ("schema", "namespaces", "items", "index", "levels"):
                connection.execute(f"DROP TABLE memory_{table}")


async def test_b41_a_write_that_cannot_be_encoded_holds_no_lock(on_file, path):
    store = on_file()
    await store.store(MemoryItem(content="before"))
    with pytest.raises(UnrepresentableItem):
        await store.store(MemoryItem(content=object()))
    with closing(sqlite3.connect(path, timeout=0.5)) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    await asyncio.gather(*(store.store(MemoryItem(content=n)) for n in range(20)))
    assert len(await found(store)) == 21


async def test_b43_a_database_that_is_gone_is_unavailable_and_never_empty(on_file, path):
    store = on_file()
    item = MemoryItem(content="x", tags=["t"])
    await store.store(item)
    away = path.parent.with_name("away")
    path.parent.rename(away)
    for call in (
        lambda: store.retrieve(item.id),
        lambda: store.search(MemoryQuery(text="x")),
        lambda: store.search(MemoryQuery()),
        lambda: store.store(item),
        lambda: store.delete(item.id),
    ):
        with pytest.raises(MemoryAdapterUnavailable):
            await call()
    away.rename(path.parent)
    assert await found(store, text="x") == ["x"]


@pytest.mark.parametrize("table", ["memory_items", "memory_index", "memory_namespaces"])
async def test_b43_a_dropped_table_is_an_error_with_its_cause(on_file, path, table):
    store = on_file()
    item = MemoryItem(content="x")
    await store.store(item)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {table}")
    calls = [lambda: store.search(MemoryQuery(text="x")), lambda: store.store(item)]
    if table != "memory_index":
        calls.append(lambda: store.retrieve(item.id))
    for call in calls:
        with pytest.raises(MemoryAdapterError) as raised:
            await call()
        assert isinstance(raised.value.__cause__, sqlite3.OperationalError)


async def test_b43_a_file_that_is_no_database_is_an_error(path):
    path.write_bytes(b"no database at all" * 500)
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError) as raised:
            await store.retrieve(UUID(int=1))
        assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)


STARTER = """
import asyncio, sys
from adapter_core import MemoryItem
from adapter_sqlite import SqliteMemoryStore

async def main(path):
    async with SqliteMemoryStore(path, busy_timeout=30) as store:
        await store.store(MemoryItem())

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(sys.argv[1]))
"""


def set_up_together(path, count):
    """Let processes set a file up at the same moment; their exit codes."""
    command = [sys.executable, "-c", STARTER, path]
    starters = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for starter in starters:
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        starter.stdin.write("go\n")
        starter.stdin.flush()
    for starter in starters:
        starter.communicate(timeout=60)
    return [starter.returncode for starter in starters]


async def test_b37_five_processes_set_up_one_file_at_once(path):
    assert await asyncio.to_thread(set_up_together, path, 5) == [0] * 5
    async with SqliteMemoryStore(path) as store:
        assert len(await store.search(MemoryQuery())) == 5


WRITER = """
import asyncio, sys
from adapter_core import MemoryItem
from adapter_sqlite import SqliteMemoryStore

async def main(path, name):
    async with SqliteMemoryStore(path, durability="crash", busy_timeout=30) as store:
        for n in range(500):
            await store.store(MemoryItem(content=f"{name} {n}", tags=[name]))

asyncio.run(main(*sys.argv[1:]))
"""


def start_writer(path, name):
    return subprocess.Popen([sys.executable, "-c", WRITER, path, name], env=os.environ)


async def test_b42_two_processes_store_while_a_third_searches(path):
    writers = [start_writer(path, name) for name in ("one", "two")]
    async with SqliteMemoryStore(path, durability="crash", busy_timeout=30) as store:
        while any(writer.poll() is None for writer in writers):
            hits = await store.search(MemoryQuery(tags=["one", "two"], limit=50))
            assert all(hit.tags[0] in hit.content for hit in hits)
        assert [writer.wait(60) for writer in writers] == [0, 0]
        assert len(await store.search(MemoryQuery(limit=2000))) == 1000
        assert len(await store.search(MemoryQuery(text="one", limit=2000))) == 500
