import platform
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery
from adapter_template.harness import DROPPING, EVENTUAL, LOSSY, TAGLESS, TEMPLATE

ONE = UUID(int=1)
HARNESSES = {
    "template": TEMPLATE,
    "template-lossy": LOSSY,
    "template-dropping": DROPPING,
    "template-tagless": TAGLESS,
    "template-eventual": EVENTUAL,
}


@pytest.fixture(name="harness", params=sorted(HARNESSES))
async def _harness(request):
    (kind,) = HARNESSES[request.param]
    harness = kind()
    yield harness
    await harness.close()


async def test_stores_are_named_as_their_entry_point(request, harness) -> None:
    store = await harness.make_store()
    assert f"[{store.manifest.adapter}]" in request.node.name
    assert harness.adapter == store.manifest.adapter
    assert harness.environment == "fake"
    assert await harness.engine() == ("dict", platform.python_version(), "in process")


async def test_every_hook_is_there_or_has_a_reason(harness) -> None:
    hooks = {
        *("make_store", "reset", "make_search_index_visible", "make_transport_unavailable", "close"),
        *("engine", "make_store_with", "transport_calls", "make_transport_available"),
        *("plant_foreign_record", "plant_malformed_record", "refuse_writes", "refuse_queries"),
        *("drop_identity", "hold_search_index", "age_index", "degrade"),
    }
    assert {hook for hook in hooks if not hasattr(harness, hook)} == set(harness.not_staged)


async def test_outage_begins_and_ends(harness) -> None:
    store = await harness.make_store()
    await harness.make_transport_unavailable()
    with pytest.raises(MemoryAdapterUnavailable):
        await store.retrieve(ONE)
    await harness.make_transport_available()
    assert await store.retrieve(ONE) is None
    assert [call.operation for call in harness.transport_calls()] == ["connect", "connect", "read"]


async def test_switches_end(harness) -> None:
    store = await harness.make_store_with(filters=["k"])
    for switch, call in (
        (harness.refuse_writes, lambda: store.store(MemoryItem(id=ONE))),
        (harness.drop_identity, lambda: store.store(MemoryItem(id=ONE))),
        (harness.refuse_queries, lambda: store.search(MemoryQuery())),
    ):
        await switch(True)
        with pytest.raises(MemoryAdapterError):
            await call()
        await switch(False)
        await call()


async def test_a_held_index_catches_up_when_let_go(harness) -> None:
    store = await harness.make_store()
    await harness.hold_search_index(True)
    await store.store(MemoryItem(id=ONE))
    assert await store.search(MemoryQuery()) == []
    await harness.hold_search_index(False)
    assert len(await store.search(MemoryQuery())) == 1


async def test_what_was_written_can_be_made_visible(harness) -> None:
    store = await harness.make_store()
    await store.store(MemoryItem(id=ONE))
    await harness.make_search_index_visible()
    assert len(await store.search(MemoryQuery())) == 1


async def test_planted_records_are_foreign_or_malformed(harness) -> None:
    store = await harness.make_store()
    await harness.plant_foreign_record(ONE)
    assert await store.retrieve(ONE) is None
    await harness.reset()
    await store.store(MemoryItem(id=ONE))
    await harness.plant_malformed_record(ONE)
    for call in (store.retrieve(ONE), store.search(MemoryQuery())):
        with pytest.raises(MemoryAdapterError) as caught:
            await call
        assert isinstance(caught.value.__cause__, ValueError)


async def test_reset_empties_every_namespace_and_ends_what_is_staged(harness) -> None:
    here, there = await harness.make_store(), await harness.make_store_with(namespace="there")
    for store in (here, there):
        await store.store(MemoryItem(id=ONE))
    await harness.make_transport_unavailable()
    await harness.hold_search_index(True)
    await harness.reset()
    for store in (here, there):
        assert await store.retrieve(ONE) is None
        assert await store.search(MemoryQuery()) == []


async def test_close_forgets_the_data_and_can_be_repeated(harness) -> None:
    store = await harness.make_store()
    await store.store(MemoryItem(id=ONE))
    await harness.close()
    await harness.close()
    assert await store.retrieve(ONE) is None
