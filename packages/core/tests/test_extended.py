import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest

from adapter_core import (
    EXTENSIONS,
    AdapterStore,
    Batching,
    Criteria,
    Deleting,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryQuery,
    ScoredHit,
    SupportsBatch,
    SupportsDelete,
    SupportsReindex,
    SupportsRevisions,
    SupportsScan,
    SupportsScoredSearch,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    extensions_of,
    facet_token,
    same_fields,
)

ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.fixture(name="store")
def _store(every_store):
    return every_store


@pytest.fixture(name="driver")
def _driver(every_driver):
    return every_driver


# What a store claims


def test_a_store_claims_the_protocols_whose_methods_it_has(store, driver, manifest) -> None:
    assert extensions_of(store) == [
        "batch/1",
        "delete/1",
        "scan/1",
        "revisions/1",
        "scored-search/1",
        "reindex/1",
    ]
    assert extensions_of(AdapterStore(driver, manifest=manifest())) == []
    assert extensions_of(Batching(driver, manifest=manifest())) == ["batch/1"]
    assert extensions_of(object()) == []


def test_extensions_are_versioned() -> None:
    assert [(e.name, e.version, e.protocol) for e in EXTENSIONS] == [
        ("batch", 1, SupportsBatch),
        ("delete", 1, SupportsDelete),
        ("scan", 1, SupportsScan),
        ("revisions", 1, SupportsRevisions),
        ("scored-search", 1, SupportsScoredSearch),
        ("reindex", 1, SupportsReindex),
    ]


async def test_a_claim_that_the_driver_cannot_keep_is_the_authors_mistake(manifest, item) -> None:
    class Bare(Deleting):
        pass

    with pytest.raises(TypeError, match="DeletingDriver"):
        await Bare(SimpleNamespace(puts_at_once=1), manifest=manifest()).delete(ONE)


# Batch


async def test_a_batch_stores_all_in_one_request(store, driver, item) -> None:
    assert await store.store_many([item(2), item(1)]) == [TWO, ONE]
    assert driver.log.count("put") == 1
    assert sorted(driver.rows) == [ONE, TWO]


async def test_of_the_same_id_the_last_wins(store, driver, item) -> None:
    given = iter([item(1, content="a"), item(2), item(1, content="b")])
    assert await store.store_many(given) == [ONE, TWO, ONE]
    assert (await store.retrieve(ONE)).content == "b"
    assert [record.id for record in driver.asked[0]] == [ONE, TWO]


async def test_a_bad_item_in_a_batch_is_named_and_nothing_is_sent(store, driver, item) -> None:
    with pytest.raises(UnrepresentableItem) as caught:
        await store.store_many([item(1), item(2, metadata={"when": (1,)}), item(3, content={1})])
    assert caught.value.path == "items[1].metadata.when"
    assert caught.value.__suppress_context__
    assert driver.log == []


async def test_an_empty_batch_sends_nothing(store, driver) -> None:
    assert await store.store_many([]) == []
    assert await store.retrieve_many([]) == {}
    assert driver.log == []


async def test_an_empty_batch_does_not_hide_that_the_store_is_closed(store) -> None:
    await store.close()
    for call in (store.store_many([]), store.retrieve_many([])):
        with pytest.raises(MemoryAdapterUnavailable, match="closed"):
            await call


async def test_a_batch_that_is_acknowledged_in_part_is_an_error(store, driver, item) -> None:
    driver.acknowledge = lambda ids: list(ids)[:1]
    with pytest.raises(MemoryAdapterError, match="without the item's identity"):
        await store.store_many([item(1), item(2)])


async def test_many_are_read_in_one_request_and_unknown_ids_left_out(store, driver, item) -> None:
    await store.store_many([item(1, content="a"), item(2, content="b")])
    got = await store.retrieve_many(iter([TWO, THREE, ONE, TWO]))
    assert [(one, thing.content) for one, thing in got.items()] == [(TWO, "b"), (ONE, "a")]
    assert driver.log.count("get") == 1


@pytest.mark.parametrize("ids", [[ONE, "x"], [None], [[ONE]], "x"], ids=repr)
async def test_many_ids_are_checked_before_any_request(store, driver, ids) -> None:
    with pytest.raises(MemoryAdapterError, match="must be a UUID"):
        await store.retrieve_many(ids)
    assert driver.log == []


# Delete


async def test_delete_says_whether_it_was_there(store, item) -> None:
    await store.store(item())
    assert await store.delete(ONE) is True
    assert await store.delete(ONE) is False
    assert await store.retrieve(ONE) is None


async def test_clear_says_how_many_there_were(store, item) -> None:
    await store.store_many([item(1), item(2)])
    assert await store.clear() == 2
    assert await store.clear() == 0


async def test_an_id_to_delete_is_checked(store, driver) -> None:
    with pytest.raises(MemoryAdapterError, match="must be a UUID"):
        await store.delete("x")
    assert driver.log == []


@pytest.mark.parametrize("verb", ["delete", "clear"])
async def test_the_outcome_of_a_deletion_in_an_outage_is_unknown(store, driver, down, verb) -> None:
    driver.errors[verb] = down
    with pytest.raises(MemoryAdapterUnavailable) as caught:
        await (store.delete(ONE) if verb == "delete" else store.clear())
    assert caught.value.outcome_unknown is True


# Scan


async def scanned(store, **options) -> list[int]:
    return [item.id.int async for item in store.scan(**options)]


@pytest.mark.parametrize("page_size", [1, 2, 3, 5, 6, 500])
async def test_a_scan_gives_every_item_once_by_id_in_pages(store, driver, item, page_size) -> None:
    await store.store_many([item(number) for number in (5, 3, 1, 4, 2)])
    assert await scanned(store, page_size=page_size) == [1, 2, 3, 4, 5]
    assert driver.log.count("page") == 5 // page_size + 1


async def test_a_scan_asks_for_500_items_at_a_time(store, driver) -> None:
    assert await scanned(store) == []
    assert driver.asked[-1][1:] == (None, 500)


async def test_a_scan_goes_on_behind_an_id(store, item) -> None:
    await store.store_many([item(number) for number in (1, 2, 3)])
    assert await scanned(store, after=ONE) == [2, 3]
    assert await scanned(store, after=THREE) == []


async def test_a_scan_is_filtered_in_the_backend(store, driver, item) -> None:
    await store.store_many([item(1, metadata={"kind": "a"}), item(2, metadata={"kind": "b"})])
    assert await scanned(store, filters={"kind": "b"}) == [2]
    assert driver.asked[-1][0].facets == ((facet_token("kind", "b"),),)


async def test_a_scan_for_nothing_possible_asks_whether_the_backend_answers(
    store, driver, item, down
) -> None:
    await store.store(item())
    impossible = {"created_after": 2, "created_before": 1}
    assert await scanned(store, filters=impossible) == []
    assert driver.asked[-1] == (Criteria(), None, 1)
    driver.errors["page"] = down
    with pytest.raises(MemoryAdapterUnavailable):
        await scanned(store, filters=impossible)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"page_size": 0}, MemoryAdapterError),
        ({"page_size": True}, MemoryAdapterError),
        ({"page_size": 2.0}, MemoryAdapterError),
        ({"after": "x"}, MemoryAdapterError),
        ({"filters": {"z": 1, "a": 1}}, UnsupportedMemoryQuery),
    ],
    ids=repr,
)
async def test_a_bad_scan_is_refused_at_once(store, driver, options, error) -> None:
    with pytest.raises(error):
        store.scan(**options)
    assert driver.log == []


async def test_items_that_stay_come_once_while_others_are_written(store, item) -> None:
    await store.store_many([item(number) for number in (10, 20, 30)])
    got = []
    async for one in store.scan(page_size=1):
        got.append(one.id.int)
        await store.store(item(one.id.int - 5))  # behind the scan
        await store.store(item(one.id.int, content="again"))
    assert got == [10, 20, 30]


async def test_a_store_closed_in_the_middle_ends_the_scan_with_an_error(store, item) -> None:
    await store.store_many([item(1), item(2)])
    scan = store.scan(page_size=1)
    assert (await anext(scan)).id == ONE
    await store.close()
    with pytest.raises(MemoryAdapterUnavailable):
        await anext(scan)
    with pytest.raises(MemoryAdapterUnavailable):
        store.scan()


# Revisions


async def test_an_item_is_replaced_only_over_the_revision_it_was_made_from(store, item) -> None:
    await store.store(item(content="a"))
    got, revision = await store.retrieve_revision(ONE)
    assert same_fields(got, item(content="a"))
    newer = await store.replace(item(content="b"), expected_revision=revision)
    assert newer > revision
    assert await store.replace(item(content="c"), expected_revision=revision) is None
    assert (await store.retrieve_revision(ONE))[0].content == "b"
    await store.store(item(content="d"))
    assert await store.replace(item(content="e"), expected_revision=newer) is None


async def test_what_is_not_there_has_no_revision(store, item) -> None:
    assert await store.retrieve_revision(ONE) is None
    assert await store.replace(item(), expected_revision=1) is None


async def test_a_bad_replacement_is_refused_before_any_request(store, driver, item) -> None:
    for revision in (True, "1", 1.0, None):
        with pytest.raises(MemoryAdapterError, match="must be an int"):
            await store.replace(item(), expected_revision=revision)
    with pytest.raises(UnrepresentableItem):
        await store.replace(item(content=(1,)), expected_revision=1)
    with pytest.raises(MemoryAdapterError, match="must be a UUID"):
        await store.retrieve_revision("x")
    assert driver.log == []


async def test_the_outcome_of_a_replacement_in_an_outage_is_unknown(store, driver, item, down) -> None:
    driver.errors["replace"] = down
    with pytest.raises(MemoryAdapterUnavailable) as caught:
        await store.replace(item(), expected_revision=1)
    assert caught.value.outcome_unknown is True


# Scored search


async def test_scores_stand_beside_the_items(store, item) -> None:
    await store.store(item(content="secret tea"))
    (hit,) = await store.search_scored(MemoryQuery(text="tea"))
    assert same_fields(hit.item, item(content="secret tea"))
    assert hit.score == 0.5
    assert [hit.score for hit in await store.search_scored(MemoryQuery())] == [None]
    assert await store.search_scored(MemoryQuery(limit=0)) == []
    assert store.score_meaning == "always a half"
    assert repr(hit) == "ScoredHit(score=0.5)"
    assert hit == ScoredHit(hit.item, 0.5)


# Reindex


async def test_a_namespace_that_is_indexed_in_another_way_is_refused(store, driver, item) -> None:
    driver.memory = {"layout": "0", "embedder": "e5"}
    for call in (store.store(item()), store.retrieve(ONE), store.search(MemoryQuery()), store.clear()):
        with pytest.raises(MemoryAdapterError) as caught:
            await call
        assert str(caught.value) == (
            "the namespace is indexed in another way (embedder is e5, this store's is not set; "
            "layout is 0, this store's is 1; terms is not set, this store's is 1): run reindex() first"
        )
    assert {"put", "get", "find", "clear"}.isdisjoint(driver.log)
    assert driver.log.count("open") == 1


async def test_reindexing_makes_the_tokens_anew_and_opens_the_namespace(
    store, driver, item, manifest
) -> None:
    await store.store_many([item(number, content="tea", tags=["t"]) for number in range(1, 4)])
    whole = dict(driver.rows)
    for one, row in whole.items():
        driver.rows[one] = type(row)(row.id, 0.0, row.document, (), (), {})
    driver.memory, driver.stale = {"layout": "0"}, set(whole)
    again = type(store)(driver, manifest=manifest())
    assert await again.reindex() == 3
    assert driver.rows == whole
    assert [hit.id for hit in await again.search(MemoryQuery(text="tea", tags=["t"]))] == [ONE, TWO, THREE]
    assert await again.reindex() == 0


async def test_the_namespace_is_asked_once_how_it_is_indexed(store, driver) -> None:
    await store.retrieve(ONE)
    await store.retrieve(ONE)
    assert driver.log == ["open", "remembered", "get", "get"]


async def test_reindexing_connects_and_lets_a_new_namespace_take_the_signature(store, driver) -> None:
    assert await store.reindex() == 0
    assert driver.log == ["open", "remembered", "adopt"]


async def test_the_outcome_of_reindexing_in_an_outage_is_unknown_once_it_writes(
    store, driver, item, down
) -> None:
    await store.store(item())
    driver.stale = {ONE}
    for method, unknown in (("outdated", False), ("reindex", True)):
        driver.errors = {method: down}
        with pytest.raises(MemoryAdapterUnavailable) as caught:
            await store.reindex()
        assert caught.value.outcome_unknown is unknown


async def test_reindexing_works_in_pages_and_goes_on_where_it_was_stopped(store, driver, item, down) -> None:
    await store.store_many([item(number) for number in range(450)])
    driver.stale = set(driver.rows)
    driver.errors["adopt"] = down
    with pytest.raises(MemoryAdapterUnavailable):
        await store.reindex()
    driver.errors.clear()
    assert await store.reindex() == 450
    assert driver.log.count("reindex") == 3
    assert driver.stale == set()


async def test_a_malformed_record_stops_reindexing_and_shows_nothing(store, driver, item, damage) -> None:
    await store.store(item(content="secret"))
    damage(driver, ONE, '"tags":[]', '"tags":')
    driver.stale = {ONE}
    with pytest.raises(MemoryAdapterError, match="malformed") as caught:
        await store.reindex()
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"


async def test_close_waits_for_reindexing(store, driver, item) -> None:
    await store.store(item())
    driver.stale = {ONE}
    gate = driver.hold("outdated")
    work = asyncio.ensure_future(store.reindex())
    await gate.entered.wait()
    closing = asyncio.ensure_future(store.close())
    await asyncio.wait([closing], timeout=0)
    assert "close" not in driver.log
    gate.opened.set()
    assert await work == 1
    await closing
    assert driver.log[-1] == "close"
    with pytest.raises(MemoryAdapterUnavailable):
        await store.reindex()
