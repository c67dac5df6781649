"""A namespace that is dropped leaves no item, and no other namespace notices."""

import pytest

from adapter_core import MemoryAdapterUnavailable, MemoryItem, MemoryQuery

pytestmark = pytest.mark.needs("drop_namespace")


async def test_its_stores_are_unavailable_and_a_new_one_begins_anew(make):
    store, other = await make(), await make()
    item = MemoryItem(content="goes")
    await store.store(item)
    assert await other.retrieve(item.id) == item
    await store.drop_namespace()
    for call in (store.retrieve(item.id), other.store(item), store.drop_namespace()):
        with pytest.raises(MemoryAdapterUnavailable, match="gone"):
            await call
    new = await make()
    assert await new.search(MemoryQuery()) == []
    await new.store(item)
    assert await new.retrieve(item.id) == item


async def test_the_other_namespaces_are_as_they_were(make):
    kept, dropped = await make(namespace="kept"), await make(namespace="dropped")
    await kept.store(MemoryItem(content="stays", tags=["t"]))
    await dropped.store(MemoryItem(content="goes", tags=["t"]))
    await dropped.drop_namespace()
    assert [hit.content for hit in await kept.search(MemoryQuery(tags=["t"]))] == ["stays"]
