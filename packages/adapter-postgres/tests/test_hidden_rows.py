"""What an administrator's rules hide or skip is an error, and never an answer."""

from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore, client
from adapter_postgres.driver import MAX_ROWS

SKIP_THREE = "IF OLD.created_at = 3 THEN RETURN NULL; END IF; RETURN OLD"


def items(count):
    return [MemoryItem(id=UUID(int=n), created_at=float(n), content=f"w{n}") for n in range(1, count + 1)]


@pytest.fixture
async def role(server, settings, admin):
    """A role that row-level security is for; it may do all else."""
    await admin.prepare(server.url())
    name = f"r_{settings.schema}"
    await admin.run(f"CREATE ROLE {name} LOGIN PASSWORD 'pass'")
    await admin.run(f"GRANT USAGE ON SCHEMA {{schema}} TO {name}")
    await admin.run(f"GRANT ALL ON ALL TABLES IN SCHEMA {{schema}} TO {name}")
    await admin.run(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {{schema}} TO {name}")
    yield name
    await admin.run(f"DROP OWNED BY {name}")
    await admin.run(f"DROP ROLE {name}")


async def test_row_level_security_is_refused_on_connecting(server, settings, admin, role):
    await admin.run("ALTER TABLE {items} ENABLE ROW LEVEL SECURITY")
    async with PostgresMemoryStore(server.url(user=role, password="pass"), settings=settings) as store:
        for call in (lambda: store.retrieve(UUID(int=1)), lambda: store.search(MemoryQuery()), store.clear):
            with pytest.raises(MemoryAdapterError, match="row-level security"):
                await call()


async def test_row_level_security_that_comes_later_is_no_empty_answer(
    server, settings, admin, on_server, role
):
    await on_server().store_many(items(2))
    async with PostgresMemoryStore(server.url(user=role, password="pass"), settings=settings) as store:
        assert len(await store.search(MemoryQuery())) == 2
        await admin.run("ALTER TABLE {items} ENABLE ROW LEVEL SECURITY")
        for call in (lambda: store.retrieve(UUID(int=1)), lambda: store.search(MemoryQuery()), store.clear):
            with pytest.raises(MemoryAdapterError):
                await call()
    assert len(await on_server().search(MemoryQuery())) == 2  # the owner sees all


async def test_what_a_trigger_keeps_from_being_emptied_is_an_error_and_all_stays(on_server, admin):
    store = on_server()
    await store.store_many(items(4))
    await admin.guard(SKIP_THREE, True)
    await admin.run(
        "CREATE TRIGGER no BEFORE DELETE ON {items} FOR EACH ROW EXECUTE FUNCTION {schema}.guard()"
    )
    for call in (store.clear, store.drop_namespace):
        with pytest.raises(MemoryAdapterError, match="skipped a row; nothing was done"):
            await call()
        assert len(await store.search(MemoryQuery())) == 4
    await admin.run("DROP TRIGGER no ON {items}")
    assert await store.clear() == 4


async def test_reindex_ends_where_a_trigger_skips_its_rows(on_server, admin):
    await on_server().store_many(items(4))
    await admin.age_index()
    await admin.guard("RETURN NULL", True)
    store = on_server()
    with pytest.raises(MemoryAdapterError, match="reindex: the database skipped a row"):
        await store.reindex()
    await admin.guard("", False)
    assert await store.reindex() == 4


@pytest.mark.parametrize("change", ["NEW.id = gen_random_uuid()", "NEW.ns = 'nelsewhere'"])
@pytest.mark.parametrize("count", [1, 3])
async def test_a_trigger_that_changes_the_identity_leaves_nothing(on_server, admin, change, count):
    store = on_server()
    await store.clear()
    await admin.guard(f"{change}; RETURN NEW", True)
    with pytest.raises(MemoryAdapterError, match="without the item's identity"):
        await store.store_many(items(count))
    assert [tuple(row) for row in await admin.run("SELECT count(*) FROM {items}")] == [(0,)]


async def test_a_large_first_batch_does_not_wait_for_a_vacuum(server, settings, on_server, admin):
    store = on_server()
    await store.clear()
    other = await client.connect(server.url(), settings)
    await other.run("BEGIN")
    await other.run(admin._names.fill("LOCK TABLE {items} IN SHARE UPDATE EXCLUSIVE MODE"))
    try:
        assert len(await store.store_many(items(MAX_ROWS + 1))) == MAX_ROWS + 1
    finally:
        await other.run("ROLLBACK")
        await other.close(5)


async def test_settings_of_the_role_do_not_make_searches_incomplete(server, settings, admin, role):
    await admin.run(f"ALTER ROLE {role} SET gin_fuzzy_search_limit = 5")
    connection = await client.connect(server.url(user=role, password="pass"), settings)
    try:
        assert [tuple(row) for row in await connection.run("SHOW gin_fuzzy_search_limit")] == [("0",)]
    finally:
        await connection.close(5)
