"""How the collection and the namespace are made, checked and remembered."""

import asyncio
import json

import pytest

from adapter_core import (
    TERMS_VERSION,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    namespace_token,
)
from adapter_qdrant import Embedder, QdrantSettings, points, schema
from adapter_qdrant.testing import foreign_point
from adapter_qdrant.transport import CollectionState, Point

NAME = namespace_token("default")


def embedder(dimension=2, name="even"):
    return Embedder(lambda texts: [[1.0] * dimension for _ in texts], name, dimension)


def operations(fake):
    return [call.operation for call in fake.faults.calls]


async def test_everything_that_a_condition_uses_is_indexed_before_the_first_point(fake, make):
    await make().store(MemoryItem())
    first_write = operations(fake).index("upsert")
    assert operations(fake)[:first_write].count("add_index") == len(points.FIELDS)
    assert fake.collection.indexes == frozenset(points.FIELDS)
    assert points.FIELDS["namespace"] == "tenant"


async def test_a_payload_holds_exact_texts_and_derived_tokens(fake, make):
    item = MemoryItem(created_at=1.5, content="tea", tags=["x y"], metadata={"k": 1})
    await make().store(item)
    payload = fake.points[points.point_id(NAME, item.id)].payload
    assert json.loads(payload["item"]) == {
        "id": str(item.id),
        "created_at": 1.5,
        "metadata": {"k": 1},
        "content": "tea",
        "tags": [],
    }
    assert payload["item_tags"] == '["x y"]'
    assert payload["namespace"] == NAME
    assert payload["record"] == points.ITEM
    assert payload["created_at"] == 1.5
    assert (payload["tags"], payload["facets"], payload["terms"]) == (["tx_20y"], ["fk_i1"], ["wtea"])
    assert payload.keys() == {*points.FIELDS, "item", "item_tags"}


async def test_the_collection_remembers_its_schema_and_each_namespace_its_index(fake, make):
    await make().retrieve(MemoryItem().id)
    await make(namespace="other", embedder=embedder()).retrieve(MemoryItem().id)
    assert fake.collection.metadata == {"adapter": "adapter-qdrant", "schema": 1}
    remembered = {
        point.payload["namespace"]: json.loads(point.payload["indexed_as"]) for point in fake.points.values()
    }
    common = {"layout": "1", "terms": str(TERMS_VERSION)}
    assert remembered == {
        NAME: {**common, "embedder": "none"},
        namespace_token("other"): {**common, "embedder": "even (2)"},
    }


async def test_a_second_store_makes_nothing(fake, make):
    await make().store(MemoryItem())
    before = len(fake.faults.calls)
    await make().retrieve(MemoryItem().id)
    assert operations(fake)[before:] == ["version", "describe", "retrieve", "retrieve", "retrieve"]


async def test_many_stores_that_begin_at_once_all_succeed(fake, make):
    stores = [make(namespace=f"n{n % 3}", embedder=embedder() if n % 3 else None) for n in range(24)]
    items = [MemoryItem(content="x") for _ in stores]
    await asyncio.gather(*(store.store(item) for store, item in zip(stores, items, strict=True)))
    fake.expose()
    for n in range(3):
        found = {hit.id for hit in await stores[n].search(MemoryQuery(limit=99))}
        assert found == {item.id for item in items[n::3]}


@pytest.mark.parametrize("version", ["1.18.9", "v1.16.0", "0.11.3", "", "nightly"])
async def test_a_server_that_is_too_old_is_refused(fake, make, version):
    fake.server_version = version
    with pytest.raises(MemoryAdapterError, match=r"Qdrant 1\.19 or newer is needed"):
        await make().store(MemoryItem())
    assert operations(fake) == ["version"]


@pytest.mark.parametrize("version", ["1.19.0", "1.20.3-dev", "v2.0.0"])
async def test_a_server_that_is_new_enough_is_taken(fake, make, version):
    fake.server_version = version
    await make().store(MemoryItem())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"metadata": {}}, "is not this adapter's"),
        ({"metadata": {"adapter": "another"}}, "is not this adapter's"),
        ({"metadata": {"adapter": "adapter-qdrant"}}, "not as this adapter wrote it"),
        ({"metadata": {"adapter": "adapter-qdrant", "schema": True}}, "not as this adapter wrote it"),
        ({"metadata": {"adapter": "adapter-qdrant", "schema": 2}}, "newer than version 1"),
        ({"sparse": frozenset()}, "no sparse vector terms"),
        ({"replicas": 3, "required_writes": 1}, "write_consistency_factor of 2 is needed"),
    ],
    ids=str,
)
async def test_a_collection_that_is_not_as_we_make_it_is_refused_and_left_alone(fake, make, changed, reason):
    metadata = {"adapter": "adapter-qdrant", "schema": 1}
    state = CollectionState(metadata, frozenset(), {}, frozenset({"terms"}), 1, 1)
    fake.collection = state._replace(**changed)
    for _ in range(2):
        with pytest.raises(MemoryAdapterError, match=reason):
            await make().store(MemoryItem())
    assert fake.collection == state._replace(**changed)
    assert not fake.points


@pytest.mark.parametrize(
    ("replicas", "required", "consistency"),
    [(3, 2, "quorum"), (3, 3, 1), (2, 2, "quorum"), (3, 1, "all"), (1, 1, "quorum")],
)
async def test_a_collection_whose_replicas_fit_is_taken(fake, make, replicas, required, consistency):
    await make().store(MemoryItem())
    fake.collection = fake.collection._replace(replicas=replicas, required_writes=required)
    await make(settings=QdrantSettings(read_consistency=consistency)).store(MemoryItem())


@pytest.mark.parametrize(("replicas", "given", "required"), [(None, None, None), (3, None, 2), (3, 3, 3)])
def test_a_new_collection_asks_for_a_majority_unless_told_otherwise(replicas, given, required):
    settings = QdrantSettings(replication_factor=replicas, write_consistency_factor=given)
    assert settings.required_writes == required


async def test_a_point_of_another_program_in_the_place_of_the_namespace_is_left_alone(fake, make):
    await make(namespace="other").store(MemoryItem())
    theirs = Point(points.namespace_id(NAME), {"note": "theirs"}, {})
    fake.points[theirs.id] = theirs
    with pytest.raises(MemoryAdapterError, match="stands in the place of the namespace"):
        await make().store(MemoryItem())
    assert fake.points[theirs.id] == theirs


@pytest.mark.parametrize("text", ["[]", "{", '"x"'])
async def test_what_a_namespace_remembers_may_be_malformed(fake, make, text):
    store = make()
    await store.store(MemoryItem())
    marker = schema.marker(NAME, schema.Remembered(text, unfinished=False))
    fake.points[marker.id] = marker
    with pytest.raises(MemoryAdapterError, match="malformed"):
        await make().store(MemoryItem())
    for call in (lambda: store.store(MemoryItem()), lambda: store.search(MemoryQuery())):
        fake.expose()
        with pytest.raises(MemoryAdapterUnavailable):
            await call()


async def test_a_dropped_collection_makes_the_store_unavailable_and_a_new_store_begins_anew(fake, make):
    store, item = make(), MemoryItem()
    await store.store(item)
    fake.drop()
    for call in (store.store(item), store.retrieve(item.id), store.search(MemoryQuery()), store.clear()):
        with pytest.raises(MemoryAdapterUnavailable):
            await call
    await make().store(item)
    assert await store.retrieve(item.id) == item


async def test_a_namespace_that_is_gone_makes_writes_and_searches_unavailable(fake, make):
    store = make()
    await store.store(MemoryItem())
    fake.expose()
    fake.points.clear()
    fake.expose()
    for call in (
        store.store(MemoryItem()),
        store.search(MemoryQuery()),
        store.retrieve(MemoryItem().id),
        store.retrieve_many([MemoryItem().id]),
        store.delete(MemoryItem().id),
        store.clear(),
        anext(store.scan()),
        store.drop_namespace(),
    ):
        with pytest.raises(MemoryAdapterUnavailable, match="the namespace is gone"):
            await call


async def test_a_dropped_namespace_leaves_what_is_not_ours_and_the_other_namespaces(fake, make):
    store, other = make(), make(namespace="other")
    await asyncio.gather(store.store(MemoryItem()), other.store(MemoryItem()))
    planted = foreign_point("default", MemoryItem().id)
    fake.points[planted.id] = planted
    before = len(fake.faults.calls)
    await store.drop_namespace()
    assert operations(fake)[before:] == ["retrieve", "delete"]
    assert {point.payload.get("namespace") for point in fake.points.values()} == {
        None,
        namespace_token("other"),
    }
    assert store.creates[0] == "the collection memories, with its indexes"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (None, embedder(), r"embedder is none, this store's is even \(2\)"),
        (embedder(), None, r"embedder is even \(2\), this store's is none"),
        (embedder(2), embedder(3), r"embedder is even \(2\), this store's is even \(3\)"),
        (embedder(2), embedder(2, "odd"), r"embedder is even \(2\), this store's is odd \(2\)"),
    ],
)
async def test_another_embedder_is_refused_until_the_namespace_was_reindexed(
    fake, make, before, after, reason
):
    old = make(embedder=before)
    items = [MemoryItem(content=f"word {n}", created_at=float(n)) for n in range(5)]
    await old.store_many(items)
    new = make(embedder=after)
    for call in (lambda: new.store(items[0]), lambda: new.search(MemoryQuery(text="word"))):
        with pytest.raises(MemoryAdapterError, match=reason):
            await call()
    assert await new.reindex() == 5
    assert await new.reindex() == 0
    fake.expose()
    assert {hit.id for hit in await new.search(MemoryQuery(text="word"))} == {item.id for item in items}
    for call in (lambda: old.store(items[0]), lambda: old.search(MemoryQuery())):
        with pytest.raises(MemoryAdapterUnavailable, match="indexed in another way"):
            await call()


async def test_a_dense_vector_of_another_size_is_refused_with_both_sizes(fake, make):
    await make().store(MemoryItem())
    fake.collection = fake.collection._replace(dense={"dense-3": 4})
    with pytest.raises(MemoryAdapterError, match="has 4 numbers, those of the embedder have 3"):
        await make(namespace="n", embedder=embedder(3)).store(MemoryItem())


async def test_data_in_this_process_is_refused_where_it_must_last(local):
    store = await local(settings=QdrantSettings(durability="crash"))
    with pytest.raises(MemoryAdapterUnavailable, match="only in this process"):
        await store.store(MemoryItem())


async def test_reindexing_goes_on_where_it_stopped_and_leaves_newer_writes_alone(fake, make):
    old = make()
    items = [MemoryItem(content=f"old {n}") for n in range(6)]
    await old.store_many(items)
    fake.age_index()
    first, second = make(), make()
    driver = first._driver
    await driver.open()
    assert await driver.adopt() is False
    stale = await driver.outdated(4)
    replaced, deleted = stale[0][0].id, stale[1][0].id
    newer = MemoryItem(id=replaced, content="newer")
    record = second._record(newer)
    point = driver._point(record, None)
    fake.points[point.id] = point._replace(payload={**point.payload, "indexed_as": "older rules"})
    del fake.points[points.point_id(NAME, deleted)]
    await driver.reindex([(first._reindexed(hit), stamp) for hit, stamp in stale])
    assert await driver.adopt() is False
    with pytest.raises(MemoryAdapterError, match="reindex is unfinished"):
        await make().store(newer)
    assert await second.reindex() == 3
    fake.expose()
    kept = {item.id for item in items} - {deleted}
    assert {hit.id for hit in await second.search(MemoryQuery(limit=99))} == kept
    assert (await second.retrieve(replaced)).content == "newer"
    assert await second.retrieve(deleted) is None


async def test_stores_of_one_release_reindex_at_once(fake, make):
    await make().store_many([MemoryItem(content=f"word {n}") for n in range(300)])
    fake.age_index()
    stores = [make() for _ in range(3)]
    assert sum(await asyncio.gather(*(store.reindex() for store in stores))) >= 300
    fake.expose()
    for store in stores:
        assert len(await store.search(MemoryQuery(text="word", limit=999))) == 300


async def test_reindexing_one_namespace_changes_nothing_of_another(fake, make):
    here, there = make(), make(namespace="there")
    for store in (here, there):
        await store.store(MemoryItem(content="word"))
    theirs = {one: point for one, point in fake.points.items() if point.payload["namespace"] != NAME}
    await make(embedder=embedder()).reindex()
    assert {one: fake.points[one] for one in theirs} == theirs
    await there.store(MemoryItem())


async def test_an_empty_namespace_is_simply_adopted(fake, make):
    await make().clear()
    fake.age_index()
    assert await make().reindex() == 0
    await make().store(MemoryItem())
