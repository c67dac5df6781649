"""Refused writes, native errors, batches and scores."""

import asyncio
from uuid import UUID

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
    same_fields,
)
from adapter_postgres import driver
from adapter_postgres.testing import FakeServerError


def words(n, **fields):
    return MemoryItem(id=UUID(int=n), content=f"common w{n}", tags=["t", f"t{n}"], **fields)


@pytest.fixture
async def beside(request):
    """What stages faults in the database that `make` makes stores of."""
    if request.node.callspec.params["make"] == "fake":
        return Fake(request.getfixturevalue("fake"))
    return request.getfixturevalue("admin")


class Fake:
    """What the administrator does, on the fake."""

    def __init__(self, fake):
        self.fake = fake

    async def plant_foreign(self, namespace, item_id):
        self.fake.plant_foreign(namespace, item_id)


# Refused writes


async def test_a_trigger_that_skips_one_row_of_a_batch_undoes_the_batch(on_server, admin):
    store = on_server()
    await store.store(words(1))
    await admin.guard("IF NEW.created_at = 3 THEN RETURN NULL; END IF; RETURN NEW", True)
    with pytest.raises(MemoryAdapterError, match="without the item's identity"):
        await store.store_many([words(n, created_at=float(n)) for n in range(2, 6)])
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [1]


async def test_a_deletion_that_a_trigger_skips_is_an_error(on_server, admin):
    store = on_server()
    await store.store(words(1))
    await admin.guard("RETURN NULL", True)
    await admin.run(
        "CREATE TRIGGER no BEFORE DELETE ON {items} FOR EACH ROW EXECUTE FUNCTION {schema}.guard()"
    )
    with pytest.raises(MemoryAdapterError, match="skipped"):
        await store.delete(UUID(int=1))
    await admin.run("DROP TRIGGER no ON {items}")


async def test_no_error_shows_the_row_that_a_constraint_refused(on_server, admin):
    store = on_server()
    await store.store(words(1))
    await admin.run("ALTER TABLE {items} ADD CONSTRAINT small CHECK (length(document) < 300)")
    with pytest.raises(MemoryAdapterError) as raised:
        await store.store(MemoryItem(content="secret " * 100))
    cause = raised.value.__cause__
    assert "secret" not in f"{raised.value}{raised.value!r}{cause}{cause!r}{vars(cause)}"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("08006", True),  # connection failure
        ("28P01", True),  # wrong password
        ("53100", True),  # disk full
        ("53200", True),  # out of memory
        ("53300", True),  # too many connections
        ("57014", True),  # statement timeout
        ("57P01", True),  # shutting down
        ("57P03", True),  # starting up
        ("58030", True),  # input or output
        ("25006", True),  # read-only
        ("55P03", True),  # lock timeout
        ("42P01", True),  # a table is gone
        ("XX001", True),  # damaged data
        ("40001", False),  # serialization: nothing was stored
        ("40P01", False),  # deadlock: nothing was stored
        ("42501", False),  # a missing right
        ("23514", False),  # a constraint
        ("54000", False),  # a limit
        ("P0001", False),  # a trigger
    ],
)
async def test_native_errors_are_told_apart_by_their_state(on_fake, state, expected):
    assert on_fake()._driver.is_unavailable(FakeServerError(state, "")) is expected


async def test_other_errors_are_told_apart_by_their_class(on_fake):
    import asyncpg

    unavailable = on_fake()._driver.is_unavailable
    for error in (
        OSError(),
        TimeoutError(),
        MemoryError(),
        asyncpg.InterfaceError(""),
        asyncpg.InternalClientError(),
    ):
        assert unavailable(error)
    for error in (ValueError(), asyncpg.DataError(""), asyncpg.ClientConfigurationError("")):
        assert not unavailable(error)


# Batches


async def test_a_large_batch_is_several_statements_in_one_transaction(make, monkeypatch):
    monkeypatch.setattr(driver, "MAX_ROWS", 3)
    store = make()
    items = [words(n) for n in range(10)]
    assert await store.store_many(items) == [item.id for item in items]
    assert len(await store.search(MemoryQuery(limit=50))) == 10


async def test_a_large_batch_is_stored_whole_or_not_at_all(make, beside, monkeypatch):
    monkeypatch.setattr(driver, "MAX_REQUEST", 1000)
    store = make()
    await store.store(words(0))
    await beside.plant_foreign("default", UUID(int=9))
    with pytest.raises(MemoryAdapterError, match="not this adapter's"):
        await store.store_many([words(n) for n in range(1, 10)])
    assert [hit.id.int for hit in await store.search(MemoryQuery(limit=50))] == [0]


async def test_batches_that_share_items_in_another_order_wait_and_never_deadlock(on_server):
    stores = [on_server() for _ in range(4)]
    items = [words(n) for n in range(60)]
    await asyncio.gather(
        *(store.store_many(items[::order]) for store in stores for order in (1, -1)),
        *(store.clear() for store in stores),
    )
    await stores[0].store_many(items)
    assert len(await stores[0].search(MemoryQuery(limit=100))) == 60


async def test_big_items_of_one_tick_are_stored(on_server):
    store = on_server()
    items = [MemoryItem(content=chr(97 + n) * 5_000_000) for n in range(8)]
    await asyncio.gather(*map(store.store, items))
    for item in items:
        assert same_fields(await store.retrieve(item.id), item)


async def test_what_no_request_can_hold_is_refused_before_any_io(on_fake, fake, monkeypatch):
    monkeypatch.setattr(driver, "MAX_DOCUMENT", 1000)
    with pytest.raises(UnrepresentableItem):
        await on_fake().store(MemoryItem(content="x" * 1000))
    assert fake.faults.calls == []


async def test_what_no_request_can_hold_with_its_tokens_is_refused_before_any_io(on_fake, fake, monkeypatch):
    store = on_fake()
    await store.retrieve(UUID(int=1))
    calls = len(fake.faults.calls)
    monkeypatch.setattr(driver, "MAX_ROW", 1000)
    item = MemoryItem(tags=["-" * 20 + str(n) for n in range(10)])  # three characters for each of them
    with pytest.raises(UnrepresentableItem):
        await store.store_many([words(1), item])
    with pytest.raises(UnrepresentableItem):
        await store.replace(item, expected_revision=1)
    assert len(fake.faults.calls) == calls


async def test_a_namespace_whose_token_reads_null_is_like_any_other(make):
    store = make(namespace="ull")
    await store.store(words(1))
    assert len(await store.search(MemoryQuery(tags=["t"]))) == 1


async def test_scores_add_up_for_any_number_of_terms(make):
    store = make()
    terms = [f"x{n}" for n in range(12)]
    for n in (1, 2, 3):
        await store.store(MemoryItem(id=UUID(int=n), content=" ".join(terms * n), created_at=0.0))
    for asked in (1, 2, 8, 9, 12):
        hits = await store.search_scored(MemoryQuery(text=" ".join(terms[:asked])))
        assert [hit.item.id.int for hit in hits] == [3, 2, 1]
        one = (await store.search_scored(MemoryQuery(text="x0")))[0].score
        assert hits[0].score == pytest.approx(asked * one)
