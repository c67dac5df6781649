"""Writers that meet: deletions, reindexing, and namespaces that are dropped."""

import asyncio
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore, client, schema

OTHER_RULES = {**schema.SIGNATURE, "terms": "99"}
BOUND = 20


@asynccontextmanager
async def role(server, admin, *rights):
    """Make a role with some rights; the address for it."""
    name = f"role_{admin._names.schema}"
    await admin.run(f"CREATE ROLE {name} LOGIN PASSWORD 'word'")
    try:
        for right in rights:
            await admin.run(f"GRANT {right} TO {name}")
        yield server.url(user=name, password="word")
    finally:
        await admin.run(f"DROP OWNED BY {name}")
        await admin.run(f"DROP ROLE {name}")


@pytest.fixture
def newer(monkeypatch):
    """Make a store as a release with other rules would."""

    def made(make, **options):
        with monkeypatch.context() as context:
            context.setattr(schema, "SIGNATURE", OTHER_RULES)
            return make(**options)

    return made


async def test_the_rules_of_a_store_are_those_of_its_making(on_fake, newer):
    store = newer(on_fake)
    assert store._driver.signature == OTHER_RULES
    assert store._driver._signed == schema.signature_text(OTHER_RULES)


async def test_an_old_store_that_replaces_a_reindexed_item_leaves_it_outdated(make, newer):
    old, item = make(), MemoryItem(content="hello")
    await old.store(item)
    new = newer(make)
    await new._open()
    stale = await new._driver.outdated(10)
    await new._driver.reindex([(new._reindexed(hit), revision) for hit, revision in stale])
    kept, revision = await old.retrieve_revision(item.id)
    kept.content = "changed"
    assert await old.replace(kept, expected_revision=revision)
    assert [hit.id for hit, _ in await new._driver.outdated(10)] == [item.id]
    assert not await new._driver.adopt()


async def test_deletions_that_race_with_writes_are_never_errors(on_server):
    stores = [on_server(coalesce=False) for _ in range(2)]
    item = MemoryItem(content="x")

    async def repeat(call, argument):
        for _ in range(150):
            await call(argument)

    await asyncio.gather(
        *(repeat(store.delete, item.id) for store in stores),
        *(repeat(store.store, item) for store in stores),
    )


async def test_reindexing_waits_in_the_order_in_which_batches_write(server, settings, on_server, admin):
    store = on_server()
    items = [MemoryItem(id=UUID(int=n)) for n in range(1, 101)]
    for item in items[::-1]:
        await store.store(item)
    await admin.run("ANALYZE {items}")
    await admin.age_index()
    # the highest id comes first in the table, and is not yet the reindex's when it waits for the lowest
    stale = await store._driver.outdated(200)
    holder = await client.connect(server.url(), settings)
    await holder.run("BEGIN")
    lock = admin._names.fill("SELECT FROM {items} WHERE id = $1 FOR UPDATE NOWAIT")
    await holder.run(lock, items[0].id)
    reindexing = asyncio.create_task(
        store._driver.reindex([(store._reindexed(hit), revision) for hit, revision in stale])
    )
    async with asyncio.timeout(BOUND):
        while not await admin.run(
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1",
            f"%{admin._names.schema}%",
        ):
            pass
    await holder.run(lock, items[-1].id)  # fails if the reindex has it already
    await holder.run("ROLLBACK")
    await holder.close(BOUND)
    await reindexing
    assert await store._driver.outdated(10) == []


async def test_a_drop_without_the_right_to_it_changes_nothing(server, settings, admin, on_server):
    await on_server().store(MemoryItem())
    rights = (
        "USAGE ON SCHEMA {schema}", "USAGE ON SEQUENCE {revision}", "SELECT ON {version}",
        "SELECT, INSERT, UPDATE ON {namespaces}", "SELECT, INSERT, UPDATE, DELETE ON {items}",
    )  # fmt: skip
    async with (
        role(server, admin, *rights) as url,
        PostgresMemoryStore(url, settings=settings) as store,
    ):
        with pytest.raises(MemoryAdapterError) as raised:
            await store.drop_namespace()
        assert isinstance(raised.value.__cause__, asyncpg.InsufficientPrivilegeError)
        assert len(await store.search(MemoryQuery())) == 1


async def test_no_writer_slips_into_a_drop(on_server, admin):
    store, other = on_server(), on_server()
    await store.store(MemoryItem())
    await other.store(MemoryItem())
    run = client.Connection.run
    late = []

    async def watched(self, sql, *arguments):
        rows = await run(self, sql, *arguments)
        if sql == store._driver._statements.clear.sql and not late:
            late.append(asyncio.create_task(other.store(MemoryItem(content="late"))))
            await asyncio.wait(late, timeout=0.2)
        return rows

    client.Connection.run = watched
    try:
        await store.drop_namespace()
    finally:
        client.Connection.run = run
    with pytest.raises(MemoryAdapterError, match="namespace is gone"):
        await late[0]
    assert await admin.run("SELECT count(*) FROM {items}") == [(0,)]
    assert await admin.run("SELECT count(*) FROM {namespaces}") == [(0,)]


async def test_drops_of_one_namespace_and_batches_never_deadlock(on_server):
    stores = [on_server(namespace=f"n{n % 2}") for n in range(4)]
    for store in stores:
        await store.store(MemoryItem())
    items = [MemoryItem(id=UUID(int=n)) for n in range(50)]
    outcomes = await asyncio.gather(
        *(store.drop_namespace() for store in stores),
        *(store.store_many(items) for store in stores),
        return_exceptions=True,
    )
    assert {str(outcome) for outcome in outcomes if isinstance(outcome, Exception)} <= {
        "the namespace is gone from the database"
    }
