"""A namespace that is dropped leaves no row, and no other namespace notices."""

import sqlite3
from contextlib import closing
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery
from adapter_sqlite import SqliteMemoryStore
from adapter_sqlite.testing import plant_foreign

TABLES = ("memory_namespaces", "memory_items", "memory_levels")


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


async def test_a_dropped_namespace_is_gone_and_the_others_are_as_they_were(on_file, path):
    kept = on_file(namespace="kept")
    await kept.store(MemoryItem(content="stays", tags=["t"]))
    before = rows(path)
    dropped = on_file(namespace="dropped")
    await dropped.store(MemoryItem(content="goes", tags=["t"]))
    await dropped.drop_namespace()
    assert rows(path) == before
    assert [hit.content for hit in await kept.search(MemoryQuery(tags=["t"]))] == ["stays"]


async def test_rows_of_others_keep_the_namespace(on_file, path):
    store = on_file()
    await store.store(MemoryItem(content="goes"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        plant_foreign(connection, "default", UUID(int=1))
    await store.drop_namespace()
    left = rows(path)
    assert [len(left[table]) for table in TABLES] == [1, 1, 0]
    assert await store.search(MemoryQuery()) == []


async def test_a_store_says_what_its_first_call_makes(on_file, path):
    store = on_file()
    said = " ".join(store.creates)
    assert not path.exists()
    await store.retrieve(UUID(int=1))
    for table in rows(path):
        assert table in said
    assert "memory" in str(SqliteMemoryStore(":memory:").creates)
