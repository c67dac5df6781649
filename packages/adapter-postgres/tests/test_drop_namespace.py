"""A namespace that is dropped leaves no row, and what a URL says of its tables."""

from adapter_core import MemoryItem, open_store


async def test_a_dropped_namespace_leaves_no_row(on_server, admin, settings):
    store = on_server(namespace="dropped")
    await store.store(MemoryItem(content="goes"))
    await store.drop_namespace()
    schema, table = settings.schema, settings.table
    for name in (table, f"{table}_namespaces"):
        assert await admin.run(f'SELECT count(*) FROM "{schema}"."{name}"') == [(0,)]


async def test_a_url_takes_the_settings_beside_the_options(server, settings):
    async with open_store(server.url(), schema=settings.schema, table="others", durability="crash") as store:
        assert store.durability == "crash"
        assert f"the schema {settings.schema}" in store.creates
