"""Which index Postgres takes for a search, as the driver's own statements are planned."""

import pytest

from adapter_core import AnyOf, MemoryItem, MemoryQuery
from adapter_postgres import driver

SIZE = 6_000


@pytest.fixture
async def filled(on_server, admin):
    store = on_server(filters=["k", "rare"])
    items = [
        MemoryItem(
            content=f"word w{n}",
            tags=["common", f"tag{n % 1000}"],
            metadata={"k": n % 2, "rare": n % 500},
            created_at=float(n),
        )
        for n in range(SIZE)
    ]
    await store.store_many(items)
    await admin.run("VACUUM ANALYZE {items}")
    return store


async def plan(store, admin, **query):
    """Give the plan of a search, planned as Postgres plans a prepared statement for the fifth time."""
    transport = store._driver._transport
    sent = []
    run = transport.run

    async def watched(statement, *arguments):
        sent.append((statement, arguments))
        return await run(statement, *arguments)

    transport.run = watched
    await store.search(MemoryQuery(**query))
    transport.run = run
    ((statement, arguments),) = sent
    await admin.run("DEALLOCATE ALL")
    await admin._connection.run(f"PREPARE find AS {statement.sql}")
    values = ", ".join(map(literal, arguments))
    for _ in range(10):
        await admin._connection.run(f"EXECUTE find({values})")
    rows = await admin._connection.run(f"EXPLAIN EXECUTE find({values})")
    return "\n".join(row[0] for row in rows)


def literal(value):
    if isinstance(value, list):
        return "'{" + ",".join(value) + "}'"
    return f"'{value}'"


@pytest.mark.parametrize(
    "query",
    [
        {"tags": ["tag7"]},
        {"tags": ["common"], "filters": {"rare": 7}},
        {"tags": ["tag7", "tag8"], "filters": {"k": 1}},
        {"filters": {"rare": AnyOf(1, 2), "k": 0}},
        {"text": "w77", "tags": ["common"]},
    ],
)
async def test_rare_tokens_are_found_by_the_index_of_tokens(filled, admin, query):
    assert "memories_tokens" in await plan(filled, admin, **query)


@pytest.mark.parametrize(
    "query", [{}, {"tags": ["common"]}, {"filters": {"k": 1}, "tags": ["common", "tag7"]}]
)
async def test_what_matches_much_is_walked_newest_first_and_ends_at_the_limit(filled, admin, query):
    found = await plan(filled, admin, limit=10, **query)
    assert "Index Scan using memories_newest" in found
    assert "memories_tokens" not in found


async def test_in_a_small_table_too_what_few_items_have_is_found_by_the_index_of_tokens(on_server, admin):
    store = on_server(filters=["k"])
    items = [
        MemoryItem(
            content=" ".join(f"w{n * word % 997}" for word in range(60)),
            tags=[f"tag{n % 4}"],
            metadata={"k": n % 3},
            created_at=float(n),
        )
        for n in range(1000)
    ]
    await store.store_many(items)
    await admin.run("VACUUM ANALYZE {items}")
    found = await plan(store, admin, tags=["tag1"], filters={"k": 1}, limit=20)
    assert "memories_tokens" in found
    assert "memories_newest" not in found


async def test_the_first_large_batch_lets_postgres_count(on_server, admin):
    store = on_server()
    known = "SELECT reltuples FROM pg_class WHERE oid = '{items}'::regclass"
    await store.store_many([MemoryItem(tags=["t"]) for _ in range(3)])
    assert await admin.run(known) == [(-1,)]
    await store.store_many([MemoryItem(tags=["t"]) for _ in range(driver.MAX_ROWS + 1)])
    assert await admin.run(known) == [(driver.MAX_ROWS + 4,)]


async def plans(store, name):
    """Count the plans that one connection made for a statement: kept ones, and ones for a value."""
    connection = store._driver._transport._idle[-1]
    sql = getattr(store._driver._statements, name)
    sql = sql if name != "find" else sql(required=True, groups=0, terms=0)
    rows = await connection.run("SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements")
    return {row[0]: (row[1], row[2]) for row in rows}[sql.sql]


async def test_a_search_is_planned_with_its_values_every_time(filled):
    for n in range(20):
        await filled.search(MemoryQuery(tags=[f"tag{n}"]))
    assert await plans(filled, "find") == (0, 20)


async def test_an_identity_read_is_planned_once(filled):
    for item in await filled.search(MemoryQuery(limit=20)):
        await filled.retrieve(item.id)
    assert await plans(filled, "get_one") == (15, 5)
