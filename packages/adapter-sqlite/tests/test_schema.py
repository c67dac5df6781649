"""Tables, versions and migrations."""

import json
import sqlite3
from contextlib import closing
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery, check_item, encode_document
from adapter_sqlite import SqliteMemoryStore, schema, tokens

NEXT = (
    "ALTER TABLE memory_items ADD COLUMN added TEXT NOT NULL DEFAULT 'old'",
    "UPDATE memory_items SET added = 'migrated'",
)
SIGNED = schema.signature_text(schema.SIGNATURE)


@pytest.fixture
def connection(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as found:
        yield found


def version(connection):
    return connection.execute("SELECT version FROM memory_schema").fetchall()


async def test_a_migration_runs_once_and_keeps_what_is_there(path, connection):
    item = MemoryItem(content="kept", tags=["t"])
    async with SqliteMemoryStore(path) as store:
        await store.store(item)
    current = len(schema.STEPS)
    assert version(connection) == [(current,)]
    for _ in range(2):
        schema.prepare(connection, "default", SIGNED, [*schema.STEPS, NEXT])
        assert version(connection) == [(current + 1,)]
    assert connection.execute("SELECT added FROM memory_items").fetchall() == [("migrated",)]
    connection.execute("UPDATE memory_schema SET version = ?", (current,))
    async with SqliteMemoryStore(path) as store:
        assert await store.search(MemoryQuery(tags=["t"])) == [item]


async def test_a_migration_that_fails_changes_nothing(path, connection):
    schema.prepare(connection, "default", SIGNED)
    before = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    with pytest.raises(sqlite3.OperationalError):
        schema.prepare(connection, "default", SIGNED, [*schema.STEPS, (*NEXT, "no statement")])
    assert version(connection) == [(len(schema.STEPS),)]
    assert connection.execute("SELECT sql FROM sqlite_master").fetchall() == before


async def test_tables_of_a_later_version_are_refused_with_both_versions(path, connection):
    schema.prepare(connection, "default", SIGNED, [*schema.STEPS, NEXT])
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match="version 3, newer than version 2"):
            await store.store(MemoryItem())


@pytest.mark.parametrize(
    "statement",
    ["UPDATE memory_schema SET version = 'one'", "DELETE FROM memory_schema"],
)
async def test_a_malformed_version_is_refused(path, connection, statement):
    schema.prepare(connection, "default", SIGNED)
    connection.execute(statement)
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match="memory_schema"):
            await store.store(MemoryItem())


async def test_tables_of_another_program_are_left_alone(path, connection):
    connection.execute("CREATE TABLE memory_items (theirs TEXT)")
    connection.execute("INSERT INTO memory_items VALUES ('kept')")
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match="another program: memory_items"):
            await store.store(MemoryItem())
    assert connection.execute("SELECT * FROM memory_items").fetchall() == [("kept",)]


async def test_a_file_may_hold_other_tables_and_a_user_version(path, connection):
    connection.execute("CREATE TABLE notes (text)")
    connection.execute("PRAGMA user_version = 7")
    async with SqliteMemoryStore(path) as store:
        await store.store(MemoryItem())
        await store.clear()
    assert connection.execute("PRAGMA user_version").fetchone() == (7,)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert all(name.startswith(("memory_", "sqlite_autoindex_memory_")) for name in names - {"notes"})


async def test_a_set_up_file_is_opened_without_the_write_lock(path, connection):
    async with SqliteMemoryStore(path) as store:
        await store.store(MemoryItem())
    connection.execute("BEGIN IMMEDIATE")
    async with SqliteMemoryStore(path, busy_timeout=0.01) as store:
        assert len(await store.search(MemoryQuery())) == 1
    connection.execute("ROLLBACK")


async def test_tables_that_were_made_anew_lead_no_store_into_another_namespace(path, connection):
    async with SqliteMemoryStore(path, namespace="first") as old:
        item = MemoryItem(content="first")
        await old.store(item)
        for table in ("schema", "namespaces", "items", "index", "levels"):
            connection.execute(f"DROP TABLE memory_{table}")
        async with SqliteMemoryStore(path, namespace="second") as other:
            await other.store(MemoryItem(id=item.id, content="second"))
            for call in (
                lambda: old.retrieve(item.id),
                lambda: old.search(MemoryQuery()),
                lambda: old.store(item),
                old.clear,
            ):
                with pytest.raises(MemoryAdapterError, match="the namespace is gone"):
                    await call()


async def test_a_namespace_remembers_how_it_is_indexed(path, connection):
    async with SqliteMemoryStore(path) as store:
        await store.store(MemoryItem())
    (text,) = connection.execute("SELECT indexed_as FROM memory_namespaces").fetchone()
    assert json.loads(text) == {"layout": "2", "terms": "1"}


async def test_a_file_of_the_first_layout_is_answered_once_it_was_reindexed(path, connection):
    times = (-1.5, 0.0, 0.001, 0.001, 1.7e9, 1.7e9 + 0.01, 1e300)
    items = [MemoryItem(content=f"walk w{n}", tags=["t"], created_at=at) for n, at in enumerate(times)]
    first = schema.signature_text({"layout": "1", "terms": "1"})
    schema.prepare(connection, "default", first, schema.STEPS[:1])
    for n, item in enumerate(items):
        key, document = item.id.bytes, encode_document(check_item(item))
        row = (key, item.created_at, n + 1, schema.MARKER, first, document, "tt wwalk")
        connection.execute("INSERT INTO memory_items VALUES (NULL, 1, ?, ?, ?, ?, ?, ?, ?)", row)
        token = ("tt", item.created_at, key, n + 1, 0.0)
        connection.execute("INSERT INTO memory_tokens VALUES (1, ?, ?, ?, ?, ?)", token)
    foreign = (UUID(int=1).bytes, 0.0, 0, "foreign", "{}", "foreign", "")
    connection.execute("INSERT INTO memory_items VALUES (NULL, 1, ?, ?, ?, ?, ?, ?, ?)", foreign)
    connection.execute("UPDATE memory_namespaces SET revision = 7")
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match=r"layout is 1, this store's is 2\): run reindex"):
            await store.search(MemoryQuery())
        assert await store.reindex() == len(items)
        expected = sorted(items, key=lambda item: (-item.created_at, item.id))
        assert await store.search(MemoryQuery()) == expected
        assert await store.search(MemoryQuery(text="walk", tags=["t"])) == expected
        assert await store.retrieve_revision(items[2].id) == (items[2], 3)
        assert await store.retrieve(UUID(int=1)) is None
        replaced = MemoryItem(id=items[0].id, content="run", created_at=2.0)
        await store.store(replaced)
        assert await store.search(MemoryQuery(text="run")) == [replaced]
        assert len(await store.search(MemoryQuery(text="walk"))) == len(items) - 1
    for place, at in connection.execute("SELECT place, created_at FROM memory_items"):
        assert tokens.first_place(at) <= place <= tokens.last_place(at)


async def test_without_fts5_the_first_call_says_what_is_missing(path, monkeypatch):
    monkeypatch.setattr(schema, "_FIND_FTS5", "SELECT 0")
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match="without FTS5"):
            await store.store(MemoryItem())


@pytest.mark.parametrize("text", ["{", "[]", '"text"'])
async def test_a_malformed_memory_of_the_index_is_an_error(path, connection, text):
    schema.prepare(connection, "default", text)
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterError, match="remembers"):
            await store.search(MemoryQuery())
