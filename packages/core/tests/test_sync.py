import os
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
)
from adapter_core.sync import SyncStore

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


@pytest.fixture(name="sync")
def _sync(every_store):
    with SyncStore(every_store) as store:
        yield store


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_the_three_verbs(sync) -> None:
    item = MemoryItem(id=ONE, content="likes tea")
    assert sync.store(item) == ONE
    assert sync.retrieve(ONE).content == "likes tea"
    assert sync.retrieve(TWO) is None
    assert [hit.id for hit in sync.search(MemoryQuery(text="tea"))] == [ONE]
    assert sync.manifest.adapter == "plain"


def test_the_extensions(sync) -> None:
    items = [MemoryItem(id=one, content="tea", metadata={"kind": str(one)}) for one in (TWO, ONE, THREE)]
    assert sync.store_many(items) == [TWO, ONE, THREE]
    assert set(sync.retrieve_many([ONE, UUID(int=9)])) == {ONE}
    assert [item.id for item in sync.scan(page_size=2)] == [ONE, TWO, THREE]
    assert [item.id for item in sync.scan(filters={"kind": str(TWO)}, page_size=1)] == [TWO]
    assert [item.id for item in sync.scan(after=ONE)] == [TWO, THREE]
    assert [hit.score for hit in sync.search_scored(MemoryQuery(text="tea", limit=1))] == [0.5]
    assert sync.score_meaning == "always a half"
    got, revision = sync.retrieve_revision(ONE)
    assert got.id == ONE
    assert sync.replace(got, expected_revision=revision) == revision + 1
    assert sync.replace(got, expected_revision=revision) is None
    assert sync.reindex() == 0
    assert sync.delete(ONE) is True
    assert sync.clear() == 2


def test_errors_are_those_of_the_store(sync) -> None:
    with pytest.raises(UnrepresentableItem, match=r"content\[0\]"):
        sync.store(MemoryItem(content=[float("nan")]))
    with pytest.raises(UnsupportedMemoryQuery):
        sync.search(MemoryQuery(filters={"unknown": 1}))
    with pytest.raises(UnsupportedMemoryQuery):
        sync.scan(filters={"unknown": 1})


def test_an_extension_that_the_store_lacks_is_refused_by_name(store) -> None:
    with SyncStore(store) as sync:
        for call in (
            sync.clear,
            sync.reindex,
            sync.scan,
            lambda: sync.store_many([]),
            lambda: sync.score_meaning,
        ):
            with pytest.raises(MemoryAdapterError, match="plain has no Supports"):
                call()


def test_nothing_starts_before_the_first_call(store, driver) -> None:
    sync = SyncStore(store)
    assert "adapter-core-sync" not in threads()
    sync.close()
    assert driver.log == []
    with pytest.raises(MemoryAdapterUnavailable):
        sync.retrieve(ONE)


def test_close_closes_the_store_and_ends_the_thread(store, driver) -> None:
    sync = SyncStore(store)
    sync.store(MemoryItem())
    assert "adapter-core-sync" in threads()
    sync.close()
    sync.close()
    assert driver.log == ["open", "put", "close"]
    assert "adapter-core-sync" not in threads()
    with pytest.raises(MemoryAdapterUnavailable):
        sync.store(MemoryItem())


def test_a_failed_close_still_ends_the_thread(store, driver, down) -> None:
    sync = SyncStore(store)
    sync.store(MemoryItem())
    driver.errors["close"] = down
    with pytest.raises(MemoryAdapterUnavailable):
        sync.close()
    sync.close()
    assert "adapter-core-sync" not in threads()


def test_many_threads_share_one_store(sync) -> None:
    items = [MemoryItem(content=f"number {number}") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(sync.store, items))
        found = list(pool.map(sync.retrieve, ids))
    assert [item.content for item in found] == [item.content for item in items]


def test_a_call_from_the_stores_own_thread_is_refused(manifest, driver) -> None:
    from adapter_core import AdapterStore

    def host_item(**fields):
        if sync is not None and driver.rows:
            with pytest.raises(MemoryAdapterError, match="own thread"):
                sync.retrieve(ONE)
        return MemoryItem(**fields)

    sync = None
    sync = SyncStore(AdapterStore(driver, manifest=manifest(), item_type=host_item))
    with sync:
        sync.store(MemoryItem(id=ONE))
        assert sync.retrieve(ONE).id == ONE


def test_an_abandoned_scan_does_not_hinder_close(sync) -> None:
    sync.store_many([MemoryItem() for _ in range(3)])
    assert next(iter(sync.scan(page_size=1))).content is None


def test_every_closer_waits_and_calls_get_an_answer_or_a_typed_error(make) -> None:
    for _ in range(30):
        sync = SyncStore(make())
        sync.store(MemoryItem(id=ONE))

        def call(sync=sync) -> object:
            try:
                return sync.retrieve(ONE)
            except MemoryAdapterUnavailable as error:
                return error

        with ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(call) for _ in range(3)]
            closers = [pool.submit(sync.close) for _ in range(3)]
            assert all(one.result(20) is None for one in closers)
            assert all(one.result(20) is not None for one in calls)
        assert "adapter-core-sync" not in threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # what is tested is that it is noticed
def test_a_store_of_the_parent_process_is_refused_in_a_forked_child(sync) -> None:
    sync.store(MemoryItem(id=ONE))
    child = os.fork()
    if not child:
        try:
            sync.retrieve(ONE)
        except MemoryAdapterError as error:
            sync.close()  # and this waits for nobody
            os._exit(7 if "forked" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
