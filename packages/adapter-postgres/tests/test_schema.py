"""Tables, names, versions, migrations, races and rights."""

import asyncio
from uuid import uuid4

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    namespace_token,
)
from adapter_postgres import PostgresMemoryStore, PostgresSettings, ddl, schema
from adapter_postgres.transport import ServerTransport

NEXT = (
    "ALTER TABLE {items} ADD COLUMN added text NOT NULL DEFAULT 'old'",
    "UPDATE {items} SET added = 'migrated'",
)
SIGNED = schema.signature_text(schema.SIGNATURE)


@pytest.fixture
def prepare(server, settings):
    """Bring the tables to the version of some steps."""

    async def run(*more):
        names = schema.Names(settings.schema, settings.table)
        made = schema.Schema(names, [*schema.STEPS, *more])
        transport = ServerTransport(server.url(), settings)
        await transport.open(lambda session: made.prepare(session, namespace_token("default"), SIGNED))
        await transport.close()

    return run


async def version(admin):
    return [row[0] for row in await admin.run("SELECT version FROM {version}")]


async def test_b37_twenty_fresh_stores_set_up_one_database_at_once(on_server, admin):
    for _ in range(5):
        stores = [on_server() for _ in range(20)]
        items = [MemoryItem(content=n) for n in range(20)]
        await asyncio.gather(*(s.store(item) for s, item in zip(stores, items, strict=True)))
        assert len(await stores[0].search(MemoryQuery())) == 20
        await asyncio.gather(*(store.close() for store in stores))
        assert await version(admin) == [len(schema.STEPS)]
        await admin.drop()


async def test_a_migration_runs_once_and_keeps_what_is_there(on_server, admin, prepare):
    item = MemoryItem(content="kept", tags=["t"])
    store = on_server()
    await store.store(item)
    for _ in range(2):
        await asyncio.gather(*(prepare(NEXT) for _ in range(5)))
        assert await version(admin) == [2]
    assert [row[0] for row in await admin.run("SELECT added FROM {items}")] == ["migrated"]
    await admin.run("UPDATE {version} SET version = 1")
    assert await on_server().search(MemoryQuery(tags=["t"])) == [item]


async def test_a_migration_that_fails_changes_nothing(admin, prepare):
    await prepare()
    columns = "SELECT count(*) FROM information_schema.columns WHERE table_schema = $1"
    before = await admin.run(columns, admin._names.schema)
    with pytest.raises(Exception, match="syntax"):
        await prepare((*NEXT, "no statement"))
    assert await version(admin) == [1]
    assert await admin.run(columns, admin._names.schema) == before


async def test_tables_of_a_later_version_are_refused_with_both_versions(on_server, prepare):
    await prepare(NEXT)
    with pytest.raises(MemoryAdapterError, match="version 2, newer than version 1"):
        await on_server().store(MemoryItem())


async def test_a_malformed_version_is_refused(on_server, admin, prepare):
    await prepare()
    await admin.run("DELETE FROM {version}")
    with pytest.raises(MemoryAdapterError, match="memories_version"):
        await on_server().store(MemoryItem())


@pytest.mark.parametrize("suffix", ["", "_namespaces", "_revision"])
async def test_tables_of_another_program_are_left_alone(on_server, admin, suffix):
    await admin.run("CREATE SCHEMA {schema}")
    await admin.run(f"CREATE TABLE {admin._names.of(suffix)} AS SELECT 'kept' AS theirs")
    with pytest.raises(MemoryAdapterError, match="another program"):
        await on_server().store(MemoryItem())
    assert [row[0] for row in await admin.run(f"SELECT theirs FROM {admin._names.of(suffix)}")] == ["kept"]


async def test_an_unlogged_table_is_refused(on_server, admin, prepare):
    await prepare()
    await admin.run("ALTER TABLE {items} SET UNLOGGED")
    with pytest.raises(MemoryAdapterUnavailable, match="unlogged"):
        await on_server().retrieve(uuid4())


async def test_a_namespace_that_is_gone_is_unavailable_and_not_empty(on_server, admin):
    store = on_server()
    item = MemoryItem()
    await store.store(item)
    await admin.run("DELETE FROM {namespaces}")
    for call in (
        lambda: store.retrieve(item.id),
        lambda: store.search(MemoryQuery()),
        lambda: store.store(item),
        lambda: store.delete(item.id),
        store.clear,
        lambda: anext(store.scan()),
    ):
        with pytest.raises(MemoryAdapterUnavailable, match="gone"):
            await call()


# Rights


async def test_a_role_that_can_create_nothing_works_on_the_tables_of_the_administrator(
    server, admin, settings, request
):
    role = f"role_{settings.schema}"
    for statement in ddl(schema=settings.schema).split(";\n"):
        if statement.strip():
            await admin.run(statement.replace("{", "{{").replace("}", "}}"))
    await admin.run(f"CREATE ROLE {role} LOGIN PASSWORD 'word'")
    await admin.run(f"GRANT USAGE ON SCHEMA {{schema}} TO {role}")
    await admin.run(f"GRANT USAGE ON SEQUENCE {{revision}} TO {role}")
    await admin.run(f"GRANT SELECT ON {{version}} TO {role}")
    await admin.run(f"GRANT SELECT, INSERT, UPDATE ON {{namespaces}} TO {role}")
    await admin.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {{items}} TO {role}")
    try:
        url = server.url(user=role, password="word")
        async with PostgresMemoryStore(url, settings=settings, filters=["k"]) as store:
            item = MemoryItem(content="words", tags=["t"], metadata={"k": 1})
            await store.store(item)
            assert await store.search(MemoryQuery(text="words", tags=["t"], filters={"k": 1})) == [item]
            _, revision = await store.retrieve_revision(item.id)
            assert await store.replace(item, expected_revision=revision) > revision
            await admin.age_index()
        async with PostgresMemoryStore(url, settings=settings) as store:
            assert await store.reindex() == 1
            assert await store.delete(item.id)
            assert await store.clear() == 0
        elsewhere = PostgresSettings(schema=f"{settings.schema}_x")
        async with PostgresMemoryStore(url, settings=elsewhere) as store:
            with pytest.raises(MemoryAdapterError) as raised:
                await store.store(item)
            assert not isinstance(raised.value, MemoryAdapterUnavailable)
    finally:
        await admin.run(f"DROP OWNED BY {role}")
        await admin.run(f"DROP ROLE {role}")


def test_the_ddl_names_what_was_asked_for():
    text = PostgresMemoryStore.ddl(schema="mine", table="facts")
    assert '"mine"."facts_version"' in text
    assert "memories" not in text
    assert "CREATE SCHEMA" not in ddl()


# Names


@pytest.mark.parametrize("name", ['a"b', "a b", "", "1a", "a.b", "é", "a;DROP", "x" * 64, None, b"a"])
def test_b23_illegal_names_are_refused_at_construction(name):
    for option in ("schema", "table"):
        with pytest.raises(MemoryAdapterError, match=option):
            PostgresSettings(**{option: name})
        with pytest.raises(MemoryAdapterError, match=option):
            ddl(**{option: name})


async def test_names_are_quoted_and_keep_their_case(on_server, settings, admin):
    for table in ("Select", "T" * 48, "_1"):
        store = on_server(settings=PostgresSettings(schema=settings.schema, table=table))
        item = MemoryItem(tags=["t"])
        await store.store(item)
        assert await store.search(MemoryQuery(tags=["t"])) == [item]
