"""Foreign rows, refused writes, batches, revisions, deletion, scans and reindexing."""

import asyncio
from uuid import UUID

import pytest

from adapter_core import (
    AnyOf,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
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
    """The hooks of the administrator, on the fake."""

    def __init__(self, fake):
        self.fake = fake

    async def plant_foreign(self, namespace, item_id):
        self.fake.plant_foreign(namespace, item_id)

    async def plant_malformed(self, namespace, item_id):
        self.fake.plant_malformed(namespace, item_id)

    async def age_index(self):
        self.fake.age_index()


async def test_a_foreign_row_is_not_seen_and_not_touched(make, beside):
    store = make()
    foreign = UUID(int=1)
    await store.store(words(2))
    await beside.plant_foreign("default", foreign)
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
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2]
    assert await store.clear() == 1


async def test_a_coalesced_neighbour_of_a_foreign_row_is_stored(make, beside):
    store = make()
    await store.store(words(9))
    await beside.plant_foreign("default", UUID(int=3))
    outcomes = await asyncio.gather(*(store.store(words(n)) for n in range(6)), return_exceptions=True)
    assert [isinstance(one, UUID) for one in outcomes] == [True, True, True, False, True, True]
    assert isinstance(outcomes[3], MemoryAdapterError)


async def test_a_row_that_became_foreign_is_in_no_search_and_takes_no_place_of_a_hit(on_server, admin):
    store = on_server(filters=["k"])
    await store.store_many([words(n, metadata={"k": 1}, created_at=float(n)) for n in range(1, 21)])
    await admin.run("UPDATE {items} SET marker = 'theirs' WHERE created_at > 10")
    for conditions in (
        {},
        {"tags": ["t"]},
        {"tags": ["t", "t1", "t20"]},
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
    await beside.plant_malformed("default", UUID(int=1))
    for call in (
        lambda: store.retrieve(UUID(int=1)),
        lambda: store.search(MemoryQuery(tags=["t"])),
        lambda: anext(store.scan()),
    ):
        with pytest.raises(MemoryAdapterError, match="malformed") as raised:
            await call()
        assert not isinstance(raised.value, MemoryAdapterUnavailable)


# Refused writes


@pytest.mark.parametrize("effect", ["RETURN NULL", "RAISE EXCEPTION 'no'"])
async def test_a_write_that_a_trigger_skips_or_refuses_is_an_error_and_nothing_is_stored(
    on_server, admin, effect
):
    store = on_server()
    before = words(1)
    await store.store(before)
    _, revision = await store.retrieve_revision(before.id)
    await admin.guard(effect, True)
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
    await admin.guard("", False)
    await store.store(words(2))


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


# Replacing and deleting


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
    await beside.age_index()
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
    await beside.age_index()
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


async def test_reindexing_leaves_newer_writes_alone(make, beside):
    await make().store_many([words(n) for n in range(10)])
    await beside.age_index()
    store = make()
    driver = store._driver
    await driver.open()
    stale = await driver.outdated(4)
    assert [hit.id.int for hit, _ in stale] == [0, 1, 2, 3]
    records = [(store._reindexed(hit), revision + (hit.id.int == 2)) for hit, revision in stale]
    await driver.reindex(records)
    assert await driver.adopt() is False
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [4, 5, 6, 7, 8, 9]
    assert [hit.id.int for hit, _ in await driver.outdated(100)] == [2, 4, 5, 6, 7, 8, 9]
    await driver.close()
    assert await store.reindex() == 7


async def test_stores_reindex_at_once_while_others_write(on_server, admin):
    await on_server().store_many([words(n) for n in range(300)])
    await admin.age_index()
    stores = [on_server() for _ in range(3)]
    assert sum(await asyncio.gather(*(store.reindex() for store in stores))) >= 300
    for store in stores:
        assert len(await store.search(MemoryQuery(text="common", limit=999))) == 300


async def test_an_empty_namespace_is_simply_adopted(make, beside):
    await make().clear()
    await beside.age_index()
    store = make()
    assert await store.reindex() == 0
    await store.store(words(1))
