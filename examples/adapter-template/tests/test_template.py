import json
from uuid import UUID

import pytest

import adapter_template
from adapter_core import (
    AnyOf,
    ExternalMemoryStore,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsBatch,
    SupportsDelete,
    check_item,
    same_fields,
)
from adapter_template import TemplateMemoryStore, TemplateService
from adapter_template.service import Row

ONE, TWO = UUID(int=1), UUID(int=2)
NAMED = ("lossy", "dropping", "tagless", "eventual")


def item(number: int = 1, /, **fields) -> MemoryItem:
    return MemoryItem(**{"id": UUID(int=number), "created_at": 1735689600.123456, **fields})


@pytest.fixture(name="service")
def _service() -> TemplateService:
    return TemplateService()


@pytest.fixture(name="store")
def _store(service) -> TemplateMemoryStore:
    return TemplateMemoryStore(service, filters=["kind", "n"])


async def ids(store, **query) -> list[int]:
    return [hit.id.int for hit in await store.search(MemoryQuery(**query))]


def test_exports_are_pinned() -> None:
    assert sorted(adapter_template.__all__) == ["TemplateDriver", "TemplateMemoryStore", "TemplateService"]


async def test_what_goes_in_comes_out(store) -> None:
    given = item(metadata={"n": 1.0, "none": None}, content=["a", {"b": -0.0}], tags=["x", "x"])
    assert await store.store(given) == given.id
    got = await store.retrieve(given.id)
    assert type(got) is MemoryItem
    assert same_fields(got, given)
    assert same_fields((await store.search(MemoryQuery()))[0], given)
    assert await store.retrieve(TWO) is None


async def test_it_offers_what_it_keeps(store) -> None:
    assert isinstance(store, ExternalMemoryStore)
    assert isinstance(store, SupportsBatch)
    assert isinstance(store, SupportsDelete)
    assert store.durability == "volatile"


async def test_handles_share_the_service_and_namespaces_do_not_meet(service, store) -> None:
    await store.store(item())
    assert await TemplateMemoryStore(service).retrieve(ONE) is not None
    elsewhere = TemplateMemoryStore(service, namespace="default ")
    assert await elsewhere.retrieve(ONE) is None
    assert await elsewhere.search(MemoryQuery()) == []
    assert await elsewhere.clear() == 0


async def test_search_meets_every_group(store) -> None:
    await store.store(item(1, content="red fish", tags=["a"], metadata={"kind": "x", "n": 1}))
    await store.store(item(2, content="red bird", tags=["b"], metadata={"kind": "y", "n": True}))
    await store.store(item(3, content={"red": "bird"}, tags=["A"], metadata={"kind": ["x"], "n": None}))
    assert await ids(store, text="RED") == [1, 2]
    assert await ids(store, text="bird red") == [2]
    assert await ids(store, tags=["a", "b"]) == [1, 2]
    assert await ids(store, tags=["A"], text="bird") == [3]
    assert await ids(store, filters={"n": 1.0}) == [1]
    assert await ids(store, filters={"n": None}) == [3]
    assert await ids(store, filters={"kind": AnyOf("x", "y"), "n": AnyOf(True, None)}) == [2]
    assert await ids(store, filters={"kind": AnyOf()}) == []


async def test_order_is_newest_first_then_id(store) -> None:
    for number, created_at in ((3, 5.0), (1, 5.0), (2, 7.0), (4, -1.0)):
        await store.store(item(number, created_at=created_at))
    assert await ids(store) == [2, 1, 3, 4]
    assert await ids(store, limit=2) == [2, 1]
    assert await ids(store, limit=10**400) == [2, 1, 3, 4]
    assert await ids(store, filters={"created_after": 5, "created_before": 5}) == [1, 3]


async def test_a_replace_leaves_no_trace(store) -> None:
    await store.store(item(content="old", tags=["t"], metadata={"n": 1}))
    await store.store(item(content="new"))
    assert (
        await ids(store, text="old")
        == await ids(store, tags=["t"])
        == await ids(store, filters={"n": 1})
        == []
    )
    assert await ids(store, text="new") == [1]


async def test_deletion_reaches_rows_and_index(store) -> None:
    await store.store_many([item(1), item(2), item(3)])
    assert await store.delete(ONE) is True
    assert await store.delete(ONE) is False
    assert await ids(store) == [2, 3]
    assert await store.clear() == 2
    assert await ids(store) == []


async def test_a_foreign_row_is_not_an_item_and_stays(service, store) -> None:
    table = store._driver._table
    service.plant(table, ONE, Row("foreign", "theirs"))
    assert await store.retrieve(ONE) is None
    assert await ids(store) == []
    with pytest.raises(MemoryAdapterError, match="not ours"):
        await store.store_many([item(2), item(1)])
    assert await store.retrieve(TWO) is None
    assert await store.delete(ONE) is False
    assert await store.clear() == 0
    assert (await service.read(table, [ONE]))[ONE].document == "theirs"


async def test_an_outage_is_unavailable_with_one_request_for_each_call(service, store) -> None:
    service.faults.down = True
    for handle in (store, TemplateMemoryStore(service)):
        for call in (handle.store(item()), handle.retrieve(ONE), handle.search(MemoryQuery())):
            before = len(service.faults.calls)
            with pytest.raises(MemoryAdapterUnavailable) as caught:
                await call
            assert isinstance(caught.value.__cause__, ConnectionError)
            assert len(service.faults.calls) == before + 1
    service.faults.down = False
    assert await store.retrieve(ONE) is None


@pytest.mark.parametrize("switch", ["refuse_writes", "drop_identity"])
async def test_a_write_that_failed_stored_nothing(service, store, switch) -> None:
    setattr(service.faults, switch, True)
    with pytest.raises(MemoryAdapterError) as caught:
        await store.store(item())
    assert type(caught.value) is MemoryAdapterError
    assert await store.retrieve(ONE) is None
    assert await ids(store) == []


async def test_a_refused_query_is_an_error(service, store) -> None:
    await store.store(item())
    service.faults.refuse_queries = True
    with pytest.raises(MemoryAdapterError):
        await store.search(MemoryQuery())
    assert await store.retrieve(ONE) is not None


async def test_a_held_index_stays_and_then_catches_up(service, store) -> None:
    await store.store(item(1, content="old"))
    service.faults.hold_index = True
    await store.store(item(1, content="new"))
    await store.store(item(2))
    assert (await store.retrieve(ONE)).content == "new"
    assert [hit.content for hit in await store.search(MemoryQuery())] == ["old"]
    service.faults.hold_index = False
    service.expose()
    assert [hit.content for hit in await store.search(MemoryQuery())] == ["new", None]


async def test_the_log_shows_the_kind_of_each_request(service, store) -> None:
    await store.store(item(metadata={"kind": "x"}))
    await store.retrieve(ONE)
    await store.search(MemoryQuery(filters={"kind": "x"}))
    assert [call.kind for call in service.faults.calls] == ["setup", "write", "identity", "search"]
    assert "fkind_sx" in service.faults.calls[-1].payload


async def test_no_error_shows_contents(service, store) -> None:
    service.plant(store._driver._table, ONE, Row("memory", '{"secret'))
    with pytest.raises(MemoryAdapterError) as caught:
        await store.retrieve(ONE)
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"


# The known gaps


@pytest.mark.parametrize("gap", NAMED)
def test_manifest_and_projection_tell_the_gap(gap) -> None:
    store = TemplateMemoryStore(TemplateService(), gap=gap)
    manifest = store.manifest
    changed = {
        name: value
        for name, value in manifest
        if value != getattr(TemplateMemoryStore(TemplateService()).manifest, name)
    }
    assert changed.pop("adapter") == f"template-{gap}"
    every = {"id", "metadata", "content", "tags"}
    native = {"retrieve_fidelity": "native_fields", "search_fidelity": "native_fields"}
    assert (
        changed
        == {
            "lossy": {"retrieve_fidelity": "lossy", "search_fidelity": "lossy"},
            "dropping": {"native_item_fields": every, "dropped_item_fields": {"created_at"}, **native},
            "tagless": {"search_fidelity": "native_fields", "search_returns_tags": False},
            "eventual": {"search_consistency": "eventual"},
        }[gap]
    )
    losses = {
        "lossy": ["created-at-milliseconds"],
        "dropping": ["created-at-dropped"],
        "tagless": ["search-hits-without-tags"],
        "eventual": [],
    }
    assert [loss.name for loss in store.projection.losses] == losses[gap]


@pytest.mark.parametrize("gap", NAMED)
async def test_what_comes_back_is_the_declared_projection(service, gap) -> None:
    store = TemplateMemoryStore(service, gap=gap)
    given = item(tags=["t"], content="x", metadata={"n": 1})
    await store.store(given)
    service.expose()
    fields = check_item(given)
    assert same_fields(await store.retrieve(ONE), store.projection.retrieve(fields))
    assert same_fields((await store.search(MemoryQuery()))[0], store.projection.search(fields))
    for loss in store.projection.losses:
        project = getattr(store.projection, loss.operation)
        assert getattr(project(loss.example), loss.field) != getattr(loss.example, loss.field)


async def test_lossy_compares_the_rounded_time(service) -> None:
    store = TemplateMemoryStore(service, gap="lossy")
    await store.store(item(1, created_at=1.0004))
    await store.store(item(2, created_at=1.0))
    assert (await store.retrieve(ONE)).created_at == 1.0
    assert await ids(store) == [1, 2]
    assert await ids(store, filters={"created_after": 1.0003}) == []


async def test_dropping_reads_time_as_zero(service) -> None:
    store = TemplateMemoryStore(service, gap="dropping")
    await store.store(item(1))
    assert (await store.retrieve(ONE)).created_at == 0.0
    assert await ids(store, filters={"created_before": 0}) == [1]


async def test_tagless_hits_carry_no_tags_and_tags_still_match(service) -> None:
    store = TemplateMemoryStore(service, gap="tagless")
    await store.store(item(1, tags=["t"]))
    assert [hit.tags for hit in await store.search(MemoryQuery(tags=["t"]))] == [[]]
    assert (await store.retrieve(ONE)).tags == ["t"]


async def test_eventual_finds_items_as_they_were_indexed(service) -> None:
    store = TemplateMemoryStore(service, gap="eventual")
    await store.store(item(1, content="old"))
    assert await ids(store) == []
    service.expose()
    await store.store(item(1, content="new"))
    assert (await store.retrieve(ONE)).content == "new"
    assert [hit.content for hit in await store.search(MemoryQuery())] == ["old"]
    service.expose()
    assert await ids(store, text="old") == []
    await store.delete(ONE)
    assert await store.retrieve(ONE) is None
    assert await ids(store) == [1]
    service.expose()
    assert await ids(store) == []


def test_an_unknown_gap_is_refused() -> None:
    with pytest.raises(MemoryAdapterError, match="lossy, dropping, tagless, eventual"):
        TemplateMemoryStore(TemplateService(), gap="leaky")


async def test_a_url_makes_a_store_over_its_own_service() -> None:
    store = TemplateMemoryStore.from_url("template:///", filters=["k"])
    await store.store(item(metadata={"k": 1}))
    assert await ids(store, filters={"k": 1}) == [1]
    with pytest.raises(MemoryAdapterError):
        TemplateMemoryStore.from_url("template:///name")


async def test_documents_are_json_that_any_client_can_read(service, store) -> None:
    await store.store(item(content="ü"))
    rows = await service.read(store._driver._table, [ONE])
    assert json.loads(rows[ONE].document)["content"] == "ü"
