"""What stays in the tables: foreign and malformed rows, refused writes, deletion and reindexing."""

import sqlite3
from contextlib import closing
from uuid import UUID

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_sqlite import SqliteDriver, SqliteMemoryStore, tokens
from adapter_sqlite.testing import age_index, plant_foreign, unavailable


@pytest.fixture
def beside(make, request):
    """Another connection to the database that `make` makes stores of."""
    if request.node.callspec.params["make"] == "fake":
        yield request.getfixturevalue("fake").connection
        return
    with closing(sqlite3.connect(request.getfixturevalue("path"), isolation_level=None)) as found:
        yield found


def count(connection, table="memory_items"):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def indexed(connection):
    """How many words the index has, over all items."""
    return connection.execute("SELECT coalesce(sum(doc), 0) FROM memory_levels").fetchone()[0]


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t", f"t{n}"], **fields)


# Foreign and malformed rows


async def test_what_is_refused_or_cleared_leaves_a_foreign_row_and_no_token(make, beside):
    store = make()
    plant_foreign(beside, "default", UUID(int=1))
    await store.store(words(2))
    for refused in (store.store(words(1)), store.store_many([words(3), words(1), words(4)])):
        with pytest.raises(MemoryAdapterError, match="not this adapter's"):
            await refused
    assert await store.clear() == 1
    assert count(beside) == 1
    assert indexed(beside) == 0


@pytest.mark.parametrize("document", [b"\x00", 5, "[]", '{"id": "secret"}'])
async def test_a_document_of_another_shape_is_an_error_that_shows_no_content(make, beside, document):
    store = make()
    await store.store(words(1))
    beside.execute("UPDATE memory_items SET document = ?", (document,))
    for call in (store.retrieve(UUID(int=1)), store.search(MemoryQuery(tags=["t"])), anext(store.scan())):
        with pytest.raises(MemoryAdapterError) as raised:
            await call
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
        assert "secret" not in f"{raised.value}{raised.value.__cause__}"


# Refused writes


@pytest.mark.parametrize("effect", ["IGNORE", "ABORT, 'no'"])
async def test_a_write_that_a_trigger_skips_or_refuses_leaves_rows_and_tokens_as_they_were(
    make, beside, effect
):
    store = make()
    await store.store(words(1))
    words_before = indexed(beside)
    for verb in ("INSERT", "UPDATE"):
        beside.execute(
            f"CREATE TRIGGER no_{verb} BEFORE {verb} ON memory_items BEGIN SELECT RAISE({effect}); END"
        )
    _, revision = await store.retrieve_revision(UUID(int=1))
    changed = MemoryItem(id=UUID(int=1), content="changed", tags=["t"])
    for refused in (
        store.store(words(2)),
        store.store(changed),
        store.store_many([words(3), words(4)]),
        store.replace(changed, expected_revision=revision),
    ):
        with pytest.raises(MemoryAdapterError) as raised:
            await refused
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
    assert [hit.content for hit in await store.search(MemoryQuery())] == ["common w1"]
    assert indexed(beside) == words_before
    beside.executescript("DROP TRIGGER no_INSERT; DROP TRIGGER no_UPDATE")
    await store.store(words(2))


async def test_a_deletion_that_a_trigger_skips_is_an_error(make, beside):
    store = make()
    await store.store(words(1))
    beside.execute("CREATE TRIGGER no BEFORE DELETE ON memory_items BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(MemoryAdapterError, match="skipped"):
        await store.delete(UUID(int=1))
    assert len(await store.search(MemoryQuery(text="common"))) == 1


async def test_what_a_trigger_keeps_from_being_emptied_is_an_error_and_all_stays(make, beside):
    store = make()
    await store.store_many([words(n, created_at=float(n)) for n in range(1, 5)])
    beside.execute(
        "CREATE TRIGGER no BEFORE DELETE ON memory_items WHEN OLD.created_at = 3 "
        "BEGIN SELECT RAISE(IGNORE); END"
    )
    for call in (store.clear, store.drop_namespace):
        with pytest.raises(MemoryAdapterError, match="skipped"):
            await call()
        assert len(await store.search(MemoryQuery(text="common"))) == 4
    beside.execute("DROP TRIGGER no")
    assert await store.clear() == 4


async def test_reindex_ends_where_a_trigger_skips_its_rows(make, beside):
    await make().store_many([words(n) for n in range(1, 5)])
    age_index(beside)
    beside.execute("CREATE TRIGGER no BEFORE UPDATE ON memory_items BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(MemoryAdapterError, match="skipped"):
        await make().reindex()
    beside.execute("DROP TRIGGER no")
    assert await make().reindex() == 4


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_LOCKED, True),
        (sqlite3.SQLITE_CANTOPEN, True),
        (sqlite3.SQLITE_IOERR_READ, True),
        (sqlite3.SQLITE_READONLY, True),
        (sqlite3.SQLITE_FULL, True),
        (sqlite3.SQLITE_ERROR, False),
        (sqlite3.SQLITE_CONSTRAINT, False),
        (sqlite3.SQLITE_CORRUPT, False),
        (sqlite3.SQLITE_NOTADB, False),
        (sqlite3.SQLITE_TOOBIG, False),
    ],
)
def test_native_errors_are_told_apart_by_their_code(fake, code, expected):
    driver = SqliteDriver(fake.transport(), "default")
    error = unavailable()
    error.sqlite_errorcode = code
    assert driver.is_unavailable(error) is expected


def test_other_errors_are_told_apart_by_their_class(fake):
    driver = SqliteDriver(fake.transport(), "default")
    assert driver.is_unavailable(OSError())
    assert driver.is_unavailable(MemoryError())
    assert not driver.is_unavailable(sqlite3.ProgrammingError())
    assert not driver.is_unavailable(ValueError())


async def test_a_read_only_database_is_unavailable_for_writes_alone(fake, on_fake):
    store = on_fake()
    await store.store(words(1))
    fake.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(MemoryAdapterUnavailable):
        await store.store(words(2))
    assert len(await store.search(MemoryQuery())) == 1


async def test_a_full_disk_is_unavailable_and_stores_nothing_half(fake, on_fake):
    store = on_fake()
    await store.store(words(1))
    pages = fake.connection.execute("PRAGMA page_count").fetchone()[0]
    fake.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(MemoryAdapterUnavailable):
        await store.store_many([words(2), MemoryItem(content="long " * 10_000, tags=["t"])])
    assert [hit.id.int for hit in await store.search(MemoryQuery(tags=["t"]))] == [1]
    fake.connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    await store.store(words(2))


# Replacing and deleting


async def test_no_index_keeps_a_trace_of_what_was_replaced_or_deleted(make, beside):
    store = make()
    for n in range(1, 4):
        await store.store(words(n, metadata={"k": n}, created_at=1.0))
    await store.store(MemoryItem(id=UUID(int=1), created_at=2.0))
    assert await store.search(MemoryQuery(tags=["t1"])) == []
    assert await store.delete(UUID(int=2)) is True
    assert await store.delete(UUID(int=2)) is False
    assert await store.search(MemoryQuery(text="w2")) == []
    (listed,) = beside.execute("SELECT tokens FROM memory_items WHERE tokens LIKE '%w3%'").fetchone()
    # the other item has nothing but the token of every item
    assert indexed(beside) == len(tokens.indexed(1, tokens.read(listed)).split()) + 1
    assert await store.clear() == 2
    assert (indexed(beside), count(beside)) == (0, 0)


async def test_clearing_a_namespace_leaves_the_index_of_the_others(make, beside):
    await make(namespace="kept").store(words(1))
    before = indexed(beside)
    store = make(namespace="cleared")
    await store.store_many([words(n) for n in range(1, 9)])
    assert await store.clear() == 8
    assert indexed(beside) == before
    assert len(await make(namespace="kept").search(MemoryQuery(text="common", tags=["t"]))) == 1


async def test_an_item_that_moves_in_time_is_found_at_its_new_place_alone(make):
    store = make()
    for n in range(3):
        await store.store(words(n, created_at=float(n)))
    await store.store(words(0, created_at=9.0))
    await store.store(words(2, created_at=2.001))
    for query in (MemoryQuery(), MemoryQuery(tags=["t"]), MemoryQuery(text="common")):
        assert [hit.id.int for hit in await store.search(query)] == [0, 2, 1]
    assert await store.search(MemoryQuery(filters={"created_before": 0.5})) == []


# Reindexing


async def test_reindexing_writes_tokens_that_are_gone(make, beside):
    await make().store_many([words(n) for n in range(450)])
    age_index(beside)
    beside.execute("INSERT INTO memory_index (memory_index) VALUES ('delete-all')")
    beside.execute("UPDATE memory_items SET tokens = ''")
    store = make()
    assert await store.reindex() == 450
    assert len(await store.search(MemoryQuery(text="common", tags=["t"], limit=999))) == 450
    assert len(await store.search(MemoryQuery(tags=["t77"]))) == 1


async def test_reindexing_leaves_a_row_that_another_connection_changed(make, beside):
    store = make()
    await store.store_many([words(n) for n in range(4)])
    driver = store._driver
    age_index(beside)
    stale = await driver.outdated(4)
    assert [(hit.id.int, revision) for hit, revision in stale] == [(n, n + 1) for n in range(4)]
    beside.execute("UPDATE memory_items SET revision = 99 WHERE id = ?", (UUID(int=2).bytes,))
    beside.execute("DELETE FROM memory_items WHERE id = ?", (UUID(int=3).bytes,))
    await driver.reindex([(store._reindexed(hit), revision) for hit, revision in stale])
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [2]


def test_no_repr_shows_an_address_or_a_content(path):
    store = SqliteMemoryStore(path)
    assert str(path) not in repr(store)
