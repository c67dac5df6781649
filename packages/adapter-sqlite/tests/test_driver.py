"""Foreign rows, refused writes, revisions, deletion, scans and reindexing."""

import asyncio
import sqlite3
from contextlib import closing
from uuid import UUID

import pytest

from adapter_core import (
    AnyOf,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_sqlite import SqliteDriver, SqliteMemoryStore
from adapter_sqlite.testing import age_index, plant_foreign, plant_malformed, unavailable


@pytest.fixture
def beside(make, request):
    """Another connection to the database that `make` makes stores of."""
    if request.node.callspec.params["make"] == "fake":
        yield request.getfixturevalue("fake").connection
        return
    with closing(sqlite3.connect(request.getfixturevalue("path"), isolation_level=None)) as found:
        yield found


def count(connection, table="memory_tokens"):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t", f"t{n}"], **fields)


# Foreign and malformed rows


async def test_a_foreign_row_is_not_seen_and_not_touched(make, beside):
    store = make()
    foreign = UUID(int=1)
    plant_foreign(beside, "default", foreign)
    await store.store(words(2))
    assert await store.retrieve(foreign) is None
    assert await store.retrieve_revision(foreign) is None
    assert set(await store.retrieve_many([foreign, UUID(int=2)])) == {UUID(int=2)}
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2]
    assert [hit.id.int async for hit in store.scan()] == [2]
    assert await store.replace(words(1), expected_revision=0) is None
    assert await store.delete(foreign) is False
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store(words(1))
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store_many([words(3), words(1), words(4)])
    assert await store.clear() == 1
    assert count(beside, "memory_items") == 1
    assert count(beside) == 0


async def test_a_row_that_became_foreign_is_in_no_search_and_takes_no_place_of_a_hit(make, beside):
    store = make(filters=["k"])
    await store.store_many([words(n, metadata={"k": 1}, created_at=float(n)) for n in range(1, 21)])
    beside.execute("UPDATE memory_items SET marker = 'theirs' WHERE created_at > 10")
    for conditions in (
        {},
        {"tags": ["t"]},
        {"tags": ["t", "t1", "t20"]},
        {"tags": ["t", *(f"t{n}" for n in range(200))]},
        {"text": "common"},
        {"text": "common", "tags": ["t", "t20"]},
        {"filters": {"k": AnyOf(1, 2)}},
    ):
        hits = await store.search(MemoryQuery(limit=3, **conditions))
        assert [hit.id.int for hit in hits] == [10, 9, 8]
        assert len(await store.search(MemoryQuery(limit=50, **conditions))) == 10


async def test_a_malformed_document_is_an_error_that_shows_no_content(make, beside):
    store = make()
    await store.store(words(1))
    plant_malformed(beside, "default", UUID(int=1))
    for document in (None, b"\x00", 5, "[]", '{"id": "secret"}'):
        if document is not None:
            beside.execute("UPDATE memory_items SET document = ?", (document,))
        for call in (
            lambda: store.retrieve(UUID(int=1)),
            lambda: store.search(MemoryQuery(tags=["t"])),
            lambda: anext(store.scan()),
        ):
            with pytest.raises(MemoryAdapterError) as raised:
                await call()
            assert not isinstance(raised.value, MemoryAdapterUnavailable)
            assert "secret" not in f"{raised.value}{raised.value.__cause__}"


# Refused writes


@pytest.mark.parametrize("table", ["memory_items", "memory_tokens"])
@pytest.mark.parametrize("effect", ["IGNORE", "ABORT, 'no'"])
async def test_a_write_that_a_trigger_skips_or_refuses_is_an_error_and_nothing_is_stored(
    make, beside, table, effect
):
    store = make()
    before = words(1)
    await store.store(before)
    tokens = count(beside)
    for verb in ("INSERT", "UPDATE"):
        beside.execute(f"CREATE TRIGGER no_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE({effect}); END")
    _, revision = await store.retrieve_revision(before.id)
    changed = MemoryItem(id=before.id, content="changed", tags=["t"])
    for call in (
        lambda: store.store(words(2)),
        lambda: store.store(changed),
        lambda: store.store_many([words(3), words(4)]),
        lambda: store.replace(changed, expected_revision=revision),
    ):
        with pytest.raises(MemoryAdapterError) as raised:
            await call()
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
    assert [hit.content for hit in await store.search(MemoryQuery())] == [before.content]
    assert count(beside) == tokens
    beside.executescript("DROP TRIGGER no_INSERT; DROP TRIGGER no_UPDATE")
    await store.store(words(2))


async def test_a_deletion_that_a_trigger_skips_is_an_error(make, beside):
    store = make()
    await store.store(words(1))
    beside.execute("CREATE TRIGGER no BEFORE DELETE ON memory_items BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(MemoryAdapterError, match="skipped"):
        await store.delete(UUID(int=1))
    assert len(await store.search(MemoryQuery(text="common"))) == 1


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
    remaining = {row[0] for row in beside.execute("SELECT DISTINCT id FROM memory_tokens")}
    assert remaining == {UUID(int=3).bytes}
    assert await store.clear() == 2
    assert (count(beside), count(beside, "memory_items")) == (0, 0)


async def test_a_revision_is_never_used_again_not_even_after_a_deletion(make):
    store = make()
    seen = []
    for _ in range(3):
        await store.store(words(1))
        _, first = await store.retrieve_revision(UUID(int=1))
        second = await store.replace(words(1), expected_revision=first)
        seen += [first, second]
        await store.delete(UUID(int=1))
        assert await store.retrieve_revision(UUID(int=1)) is None
        assert await store.replace(words(1), expected_revision=second) is None
    await store.store_many([words(1), words(2)])
    seen += [(await store.retrieve_revision(UUID(int=n)))[1] for n in (1, 2)]
    await store.clear()
    await store.store(words(1))
    seen.append((await store.retrieve_revision(UUID(int=1)))[1])
    assert seen == sorted(set(seen))


async def test_a_stale_revision_of_any_size_stores_nothing(make):
    store = make()
    await store.store(words(1))
    for stale in (-1, 0, 2**63, 10**30):
        changed = MemoryItem(id=UUID(int=1), content="changed")
        assert await store.replace(changed, expected_revision=stale) is None
    assert (await store.retrieve(UUID(int=1))).content == "common w1"


async def test_of_many_replacements_of_one_revision_one_wins(make):
    store = make()
    await store.store(words(1))
    _, revision = await store.retrieve_revision(UUID(int=1))
    items = [MemoryItem(id=UUID(int=1), content=n) for n in range(10)]
    outcomes = await asyncio.gather(*(store.replace(item, expected_revision=revision) for item in items))
    (winner,) = [n for n, outcome in enumerate(outcomes) if outcome is not None]
    assert (await store.retrieve(UUID(int=1))).content == winner


# Scans


async def test_a_scan_gives_what_stays_exactly_once_while_others_write(make):
    store = make(filters=["k"])
    await store.store_many([words(n, metadata={"k": n % 2}) for n in range(0, 100, 2)])
    seen = []
    async for item in store.scan(page_size=7):
        seen.append(item.id.int)
        await store.store(words(37 * len(seen) % 100 | 1))  # ahead and behind
        await store.store(words(item.id.int, created_at=5.0))
        if len(seen) == 10:
            await store.delete(UUID(int=98))
    assert [n for n in seen if n % 2 == 0] == list(range(0, 98, 2))
    assert seen == sorted(set(seen))


async def test_a_scan_meets_its_filters_and_goes_on_behind_an_id(make):
    store = make(filters=["k"])
    await store.store_many([words(n, metadata={"k": n % 3}, created_at=float(n)) for n in range(30)])
    filters = {"k": AnyOf(0, 1), "created_after": 10, "created_before": 20}
    expected = [n for n in range(10, 21) if n % 3 < 2]
    seen = [item.id.int async for item in store.scan(filters=filters, page_size=2)]
    assert seen == expected
    after = UUID(int=expected[3])
    assert [i.id.int async for i in store.scan(filters=filters, after=after)] == expected[4:]
    assert [i async for i in store.scan(filters={"k": AnyOf()})] == []
    assert len([i async for i in store.scan(page_size=2**80)]) == 30


# Reindexing


async def test_a_namespace_of_other_rules_is_refused_until_it_was_reindexed(make, beside):
    before = make()
    await before.store_many([words(n) for n in range(450)])
    age_index(beside)
    beside.execute("DELETE FROM memory_tokens")
    store = make()
    for call in (
        lambda: store.search(MemoryQuery(tags=["t"])),
        lambda: store.store(words(1)),
        lambda: store.retrieve(UUID(int=1)),
    ):
        with pytest.raises(MemoryAdapterError, match="terms is 2, this store's is 1"):
            await call()
    assert await store.reindex() == 450
    assert len(await store.search(MemoryQuery(text="common", tags=["t"], limit=999))) == 450
    assert await store.reindex() == 0
    assert len(await before.search(MemoryQuery(tags=["t77"]))) == 1


async def test_a_namespace_that_another_release_took_over_is_unavailable(make, beside):
    store = make()
    await store.store(words(1))
    age_index(beside)
    for call in (
        lambda: store.search(MemoryQuery()),
        lambda: store.store(words(2)),
        lambda: store.replace(words(1), expected_revision=1),
        lambda: anext(store.scan()),
    ):
        with pytest.raises(MemoryAdapterUnavailable, match="indexed in another way"):
            await call()
    assert await store.retrieve(UUID(int=1)) == words(1)
    assert await store.delete(UUID(int=1))


async def test_reindexing_goes_on_where_it_stopped_and_leaves_newer_writes_alone(make, beside):
    await make().store_many([words(n) for n in range(10)])
    age_index(beside)
    driver = make()._driver
    await driver.open()
    stale = await driver.outdated(4)
    assert [(hit.id.int, revision) for hit, revision in stale] == [(n, n + 1) for n in range(4)]
    beside.execute("UPDATE memory_items SET revision = 99 WHERE id = ?", (UUID(int=2).bytes,))
    beside.execute("DELETE FROM memory_items WHERE id = ?", (UUID(int=3).bytes,))
    store = make()
    records = [(store._reindexed(hit), revision) for hit, revision in stale]
    await driver.reindex(records)
    assert await driver.adopt() is False
    left = [hit.id.int for hit, _ in await driver.outdated(100)]
    assert left == [4, 5, 6, 7, 8, 9]
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [2, 4, 5, 6, 7, 8, 9]
    await driver.close()
    assert await store.reindex() == 7
    assert len(await store.search(MemoryQuery(limit=99))) == 9


async def test_stores_of_one_release_reindex_at_once(make, beside):
    await make().store_many([words(n) for n in range(300)])
    age_index(beside)
    stores = [make() for _ in range(3)]
    assert sum(await asyncio.gather(*(store.reindex() for store in stores))) >= 300
    for store in stores:
        assert len(await store.search(MemoryQuery(text="common", limit=999))) == 300


async def test_an_empty_namespace_is_simply_adopted(make, beside):
    await make().clear()
    age_index(beside)
    store = make()
    assert await store.reindex() == 0
    await store.store(words(1))


def test_no_repr_shows_an_address_or_a_content(path):
    store = SqliteMemoryStore(path)
    assert str(path) not in repr(store)
