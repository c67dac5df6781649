"""A namespace that is dropped leaves no row, and no other namespace notices."""

import pytest

from adapter_core import MemoryAdapterUnavailable, MemoryItem, MemoryQuery, open_store


async def test_its_stores_are_unavailable_and_a_new_one_begins_anew(make):
    store, other = make(), make()
    item = MemoryItem(content="goes")
    await store.store(item)
    assert await other.retrieve(item.id) == item
    await store.drop_namespace()
    for call in (store.retrieve(item.id), other.store(item), store.drop_namespace()):
        with pytest.raises(MemoryAdapterUnavailable):
            await call
    new = make()
    assert await new.search(MemoryQuery()) == []
    await new.store(item)
    assert await new.retrieve(item.id) == item


async def test_the_other_namespaces_are_as_they_were(make):
    kept, dropped = make(namespace="kept"), make(namespace="dropped")
    await kept.store(MemoryItem(content="stays", tags=["t"]))
    await dropped.store(MemoryItem(content="goes", tags=["t"]))
    await dropped.drop_namespace()
    assert [hit.content for hit in await kept.search(MemoryQuery(tags=["t"]))] == ["stays"]


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
