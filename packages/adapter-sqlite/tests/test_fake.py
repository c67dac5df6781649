"""The fake and the recorder that are shipped for tests, and the harnesses."""

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_sqlite import FileTransport, SqliteMemoryStore
from adapter_sqlite.harness import HARNESSES, SqliteEmbeddedHarness, SqliteFakeHarness
from adapter_sqlite.testing import FakeSqlite, RecordingTransport


async def test_a_store_on_the_fake_declares_what_one_on_a_file_does(on_fake, path):
    fake, real = on_fake(filters=["k"]), SqliteMemoryStore(path, filters=["k"])
    assert fake.manifest == real.manifest
    assert fake.durability == real.durability == "power"
    assert fake.score_meaning == real.score_meaning


async def test_while_it_is_down_every_call_sends_once_and_is_unavailable(fake, on_fake):
    fake.faults.down = True
    store = on_fake()
    for _ in range(2):
        del fake.faults.calls[:]
        with pytest.raises(MemoryAdapterUnavailable):
            await store.store(MemoryItem())
        assert len(fake.faults.calls) == 1
    fake.faults.down = False
    await store.store(MemoryItem())


async def test_refusals_store_nothing_and_end(fake, on_fake):
    store = on_fake()
    faults = fake.faults
    for switch in ("refuse_writes", "drop_identity"):
        setattr(faults, switch, True)
        with pytest.raises(MemoryAdapterError) as raised:
            await store.store(MemoryItem())
        assert not isinstance(raised.value, MemoryAdapterUnavailable)
        setattr(faults, switch, False)
        assert await store.search(MemoryQuery()) == []
    faults.refuse_queries = True
    with pytest.raises(MemoryAdapterError):
        await store.search(MemoryQuery())
    faults.refuse_queries = False
    await store.store(MemoryItem())
    assert len(await store.search(MemoryQuery())) == 1


async def test_the_recorder_changes_nothing_and_sees_the_sql(path):
    calls = []
    transport = RecordingTransport(FileTransport(str(path)), calls)
    async with SqliteMemoryStore(path, transport=transport) as store:
        item = MemoryItem(tags=["seen"])
        await store.store(item)
        assert await store.search(MemoryQuery(tags=["seen"])) == [item]
        assert [call.operation for call in calls] == ["open", "remembered", "put", "find"]
        assert '"1tseen"' in calls[-1].payload


def test_the_fake_is_closed_by_its_context():
    with FakeSqlite() as fake:
        fake.faults.hold_index = True
        fake.perform("open", lambda _: None)


# Harnesses


@pytest.mark.parametrize("harness", HARNESSES)
async def test_the_engine_is_known_by_name_and_version(harness):
    made = harness()
    engine = await made.engine()
    assert engine.name == "SQLite"
    assert engine.version.count(".") == 2
    await made.close()


def test_the_harnesses_say_where_they_run():
    assert [harness.environment for harness in HARNESSES] == ["fake", "embedded"]
    assert SqliteFakeHarness.adapter == SqliteEmbeddedHarness.adapter == "sqlite"
