import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from adapter_core import (
    AnyOf,
    Criteria,
    DeclaresProjection,
    ExternalMemoryStore,
    ItemFields,
    Loss,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    MemoryStore,
    Projection,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    check_item,
    encode_document,
    extensions_of,
    same_fields,
)

ONE, TWO = UUID(int=1), UUID(int=2)


def said(error) -> str:
    """All that an error and those behind it say."""
    text, seen = "", []
    while error is not None and error not in seen:
        seen.append(error)
        text += f"{error}\n{error!r}\n"
        error = error.__cause__ or error.__context__
    return text


# The three verbs


async def test_what_is_stored_can_be_retrieved_and_found(store, item) -> None:
    given = item(
        content=["tea", {"b": -0.0, "a": None}], metadata={"kind": "fact", "n": 1.0}, tags=["t", "t"]
    )
    assert await store.store(given) == given.id
    got = await store.retrieve(given.id)
    assert type(got) is MemoryItem
    assert same_fields(got, given)
    (hit,) = await store.search(MemoryQuery(text="tea", tags=["t"], filters={"kind": "fact"}))
    assert same_fields(hit, given)


async def test_an_unknown_id_is_none(store, item) -> None:
    assert await store.retrieve(ONE) is None
    await store.store(item(2))
    assert await store.retrieve(ONE) is None


async def test_a_record_carries_the_document_and_the_tokens(store, driver, item) -> None:
    given = item(content="green tea", metadata={"kind": "fact"}, tags=["a", "a"])
    await store.store(given)
    ((record,),) = driver.asked
    assert (record.id, record.created_at) == (given.id, given.created_at)
    assert record.document == encode_document(check_item(given))
    assert (record.tags, record.facets, dict(record.terms)) == (
        ("ta",),
        ("fkind_sfact",),
        {"wgreen": 1, "wtea": 1},
    )


async def test_range_and_order_compare_what_will_come_back(make, driver, item) -> None:
    def rounded(fields):
        return fields._replace(created_at=round(fields.created_at))

    await make(projection=Projection(retrieve=rounded)).store(item(created_at=1.6))
    assert driver.rows[ONE].created_at == 2.0


async def test_any_object_with_the_attributes_can_be_stored_and_asked(store) -> None:
    thing = SimpleNamespace(id=ONE, created_at=1.0, metadata={"kind": "x"}, content="c", tags=["t"], more=1)
    await store.store(thing)
    asked = SimpleNamespace(text="c", tags=("t",), filters={"kind": "x"}, limit=5, more=1)
    assert [hit.id for hit in await store.search(asked)] == [ONE]


async def test_hits_keep_the_order_of_the_backend(store, item) -> None:
    for number, created_at in ((3, 5.0), (1, 5.0), (2, 7.0)):
        await store.store(item(number, created_at=created_at))
    assert [hit.id.int for hit in await store.search(MemoryQuery())] == [2, 1, 3]
    assert [hit.id.int for hit in await store.search(MemoryQuery(limit=2))] == [2, 1]


def test_the_store_says_what_it_is(store) -> None:
    assert isinstance(store, MemoryStore)
    assert isinstance(store, ExternalMemoryStore)
    assert isinstance(store, DeclaresProjection)
    assert store.manifest is store.manifest
    assert store.manifest.adapter == "plain"
    assert store.projection == Projection()
    assert extensions_of(store) == []
    assert repr(store) == "<AdapterStore open>"


def test_a_loss_compares_by_value() -> None:
    example = ItemFields(ONE, 0.5, {}, None, [])
    loss = Loss("seconds", "created_at", "retrieve", "Whole seconds.", example)
    assert loss == Loss("seconds", "created_at", "retrieve", "Whole seconds.", example)


# Nothing bad reaches the backend


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"content": (1, 2)}, "content"),
        ({"metadata": {"when": math.nan}}, "metadata.when"),
        ({"created_at": 1}, "created_at"),
        ({"tags": ["a", 5]}, "tags[1]"),
        ({"id": "x"}, "id"),
    ],
    ids=repr,
)
async def test_a_bad_item_is_refused_before_any_request(store, driver, changed, path) -> None:
    fields = ItemFields(ONE, 0.0, {}, None, [])._replace(**changed)
    with pytest.raises(UnrepresentableItem) as caught:
        await store.store(fields)
    assert caught.value.path == path
    assert driver.log == []


@pytest.mark.parametrize("item_id", ["x", None, 1, str(ONE), [ONE]], ids=repr)
async def test_an_id_that_is_no_uuid_is_refused_before_any_request(store, driver, item_id) -> None:
    with pytest.raises(MemoryAdapterError, match="must be a UUID"):
        await store.retrieve(item_id)
    assert driver.log == []


async def test_a_bad_query_is_refused_before_any_request(store, driver) -> None:
    with pytest.raises(UnsupportedMemoryQuery) as caught:
        await store.search(MemoryQuery(filters={"z": 1, "kind": ["secret"], "a": 1}, limit=True))
    assert caught.value.rejected_keys == ("a", "kind", "limit", "z")
    assert "secret" not in said(caught.value)
    assert driver.log == []


async def test_limit_zero_gives_nothing_and_sends_nothing(store, driver) -> None:
    assert await store.search(MemoryQuery(limit=0)) == []
    assert await store.search(MemoryQuery(text="!!!", limit=0)) == []
    with pytest.raises(UnsupportedMemoryQuery):
        await store.search(MemoryQuery(limit=0, filters={"colour": 1}))
    assert driver.log == []


IMPOSSIBLE = [
    {"text": "!!!"},
    {"filters": {"kind": AnyOf()}},
    {"filters": {"created_after": 2, "created_before": 1}},
    {"filters": {"created_after": 10**400}},
]


@pytest.mark.parametrize("query", IMPOSSIBLE, ids=repr)
async def test_nothing_possible_is_an_answer_only_if_the_backend_answers(
    store, driver, item, down, query
) -> None:
    await store.store(item())
    assert await store.search(MemoryQuery(**query)) == []
    assert driver.asked[-1] == Criteria(limit=1)
    driver.errors["find"] = down
    with pytest.raises(MemoryAdapterUnavailable):
        await store.search(MemoryQuery(**query))


# Errors of the backend

VERBS = {
    "store": ("put", lambda store: store.store(MemoryItem(id=ONE, content="secret"))),
    "retrieve": ("get", lambda store: store.retrieve(ONE)),
    "search": ("find", lambda store: store.search(MemoryQuery(text="secret"))),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_an_outage_is_unavailable_after_one_request(store, driver, down, verb) -> None:
    method, call = VERBS[verb]
    driver.errors[method] = down
    with pytest.raises(MemoryAdapterUnavailable, match=f"^{verb}: .*unavailable") as caught:
        await call(store)
    assert caught.value.__cause__ is down
    assert "secret" not in str(caught.value)
    assert caught.value.outcome_unknown is (verb == "store")
    assert ("unknown" in str(caught.value)) is (verb == "store")
    assert driver.log == ["open", method]


@pytest.mark.parametrize("verb", VERBS)
async def test_a_refusal_is_an_error_after_one_request(store, driver, refused, verb) -> None:
    method, call = VERBS[verb]
    driver.errors[method] = refused
    with pytest.raises(MemoryAdapterError, match=f"^{verb}: the backend refused") as caught:
        await call(store)
    assert type(caught.value) is MemoryAdapterError
    assert caught.value.__cause__ is refused
    assert "secret" not in str(caught.value)
    assert driver.log == ["open", method]


@pytest.mark.parametrize("verb", VERBS)
async def test_an_error_of_the_driver_passes_as_it_is(store, driver, verb) -> None:
    method, call = VERBS[verb]
    driver.errors[method] = MemoryAdapterError("a record that is not ours has this id")
    with pytest.raises(MemoryAdapterError) as caught:
        await call(store)
    assert caught.value is driver.errors[method]
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("verb", VERBS)
async def test_it_works_again_after_an_outage(store, driver, down, verb) -> None:
    method, call = VERBS[verb]
    driver.errors[method] = down
    with pytest.raises(MemoryAdapterUnavailable):
        await call(store)
    driver.errors.clear()
    await call(store)
    assert driver.log.count("open") == 1


@pytest.mark.parametrize("acknowledged", [[], [TWO], [ONE, TWO], [str(ONE)]], ids=repr)
async def test_an_acknowledgement_without_the_id_is_a_failed_write(store, driver, item, acknowledged) -> None:
    driver.acknowledge = lambda ids: acknowledged
    with pytest.raises(MemoryAdapterError, match="without the item's identity"):
        await store.store(item())


# What is stored is damaged


async def read_both(store):
    for call in (store.retrieve(ONE), store.search(MemoryQuery())):
        with pytest.raises(MemoryAdapterError) as caught:
            await call
        yield caught.value


async def test_a_record_that_was_not_asked_for_is_an_error(store, driver, item, monkeypatch) -> None:
    async def get(ids):
        return {str(one): "x" for one in ids}

    await store.store(item())
    monkeypatch.setattr(driver, "get", get)
    with pytest.raises(MemoryAdapterError, match="not asked for"):
        await store.retrieve(ONE)


async def test_a_malformed_record_is_an_error_that_shows_nothing(store, driver, item, damage) -> None:
    await store.store(item(content="secret"))
    damage(driver, ONE, '"tags":[]', '"tags":')
    async for error in read_both(store):
        assert str(ONE) in str(error)
        assert "malformed" in str(error)
        assert isinstance(error.__cause__, ValueError)
        assert "secret" not in said(error)


async def test_the_record_of_another_item_is_an_error(store, driver, item, damage) -> None:
    await store.store(item(content="secret"))
    damage(driver, ONE, str(ONE), str(TWO))
    async for error in read_both(store):
        assert "another item" in str(error)
        assert "secret" not in said(error)


async def test_a_record_that_our_class_refuses_is_an_error(store, driver, item, damage) -> None:
    await store.store(item(content="secret", tags=["t"]))
    damage(driver, ONE, '"tags":["t"]', '"tags":[5]')
    async for error in read_both(store):
        assert "ValidationError" in str(error)
        assert "secret" not in said(error)


# A host's own item class


@dataclass
class HostItem:
    id: Any = None
    created_at: Any = None
    metadata: Any = None
    content: Any = None
    tags: Any = None
    more: list[str] = field(default_factory=list)


class ShoutingItem(HostItem):
    def __init__(self, **fields) -> None:
        super().__init__(**fields)
        self.tags = [tag.upper() for tag in self.tags]


class PickyItem(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: UUID
    created_at: float
    metadata: dict[str, Any]
    content: Any
    tags: list[str]

    @field_validator("metadata")
    @classmethod
    def without_reserved_key(cls, value):
        if "lion_class" in value:
            raise ValueError(f"reserved: {value}")
        return value


async def test_hits_are_of_the_hosts_class(make, item) -> None:
    store = make(item_type=HostItem)
    await store.store(item(content="c", tags=["t"]))
    got = await store.retrieve(ONE)
    assert type(got) is HostItem
    assert got == HostItem(ONE, 1735689600.123456, {}, "c", ["t"])
    assert [type(hit) for hit in await store.search(MemoryQuery())] == [HostItem]


@pytest.mark.parametrize("options", [{"item_type": "MemoryItem"}, {"coalesce": "maybe"}, {"coalesce": 0}])
def test_an_option_of_another_type_is_refused(make, options) -> None:
    with pytest.raises(MemoryAdapterError, match=f"^{next(iter(options))} must be"):
        make(**options)


async def test_an_item_is_not_stored_if_what_the_hosts_class_makes_lacks_a_field(make, driver, item) -> None:
    store = make(item_type=dict)
    with pytest.raises(UnrepresentableItem, match="changes the fields"):
        await store.store(item())
    assert driver.log == []


async def test_an_item_that_the_hosts_class_changes_is_not_stored(make, driver, item) -> None:
    store = make(item_type=ShoutingItem)
    with pytest.raises(UnrepresentableItem, match="changes the fields") as caught:
        await store.store(item(tags=["secret"]))
    assert caught.value.path == "item_type"
    assert "secret" not in said(caught.value)
    assert driver.log == []
    await store.store(item(tags=["LOUD"]))


async def test_an_item_that_the_hosts_class_refuses_is_not_stored(make, driver, item) -> None:
    store = make(item_type=PickyItem)
    with pytest.raises(UnrepresentableItem, match="ValidationError") as caught:
        await store.store(item(metadata={"lion_class": "secret"}))
    assert "secret" not in said(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert driver.log == []


async def test_the_hosts_class_is_asked_for_what_would_come_back(make, item) -> None:
    def untagged(fields):
        return fields._replace(tags=[])

    store = make(item_type=ShoutingItem, projection=Projection(retrieve=untagged, search=untagged))
    await store.store(item(tags=["quiet"]))  # the class would change the tags, but never sees them


def test_a_preview_says_what_would_come_back_and_reaches_no_driver(make, driver, item) -> None:
    def rounded(fields):
        return fields._replace(created_at=round(fields.created_at, 3))

    def untagged(fields):
        return rounded(fields)._replace(tags=[])

    store = make(projection=Projection(retrieve=rounded, search=untagged))
    found = store.preview(item(content=["tea"], metadata={"n": 1.0}, tags=["t"]))
    assert found.retrieve == ItemFields(ONE, 1735689600.123, {"n": 1.0}, ["tea"], ["t"])
    assert found.search == ItemFields(ONE, 1735689600.123, {"n": 1.0}, ["tea"], [])
    assert driver.log == []


def test_a_preview_refuses_what_store_refuses(make, driver, item) -> None:
    with pytest.raises(UnrepresentableItem) as caught:
        make().preview(item(metadata={"when": math.nan}))
    assert caught.value.path == "metadata.when"
    with pytest.raises(UnrepresentableItem) as caught:
        make(item_type=PickyItem).preview(item(metadata={"lion_class": "x"}))
    assert caught.value.path == "item_type"
    assert driver.log == []


async def test_a_record_that_the_hosts_class_refuses_on_the_way_back_is_an_error(make, item) -> None:
    await make().store(item(metadata={"lion_class": "secret"}))
    async for error in read_both(make(item_type=PickyItem)):
        assert type(error) is MemoryAdapterError
        assert "ValidationError" in str(error)
        assert "secret" not in said(error)
        assert error.__cause__ is error.__context__ is None


# Nothing is shared


async def test_a_change_after_store_changes_nothing_stored(store, item) -> None:
    given = item(content={"k": [1]}, metadata={"kind": ["x"]}, tags=["t"])
    await store.store(given)
    given.content["k"].append(2)
    given.metadata["kind"].append("y")
    given.tags.append("u")
    assert same_fields(
        await store.retrieve(ONE), item(content={"k": [1]}, metadata={"kind": ["x"]}, tags=["t"])
    )


async def test_a_change_of_a_hit_changes_nothing_stored(store, item) -> None:
    given = item(content={"k": [1]}, metadata={"kind": ["x"]}, tags=["t"])
    await store.store(given)
    for got in (await store.retrieve(ONE), *await store.search(MemoryQuery())):
        got.content["k"].append(2)
        got.metadata["kind"].append("y")
        got.tags.append("u")
    assert same_fields(await store.retrieve(ONE), given)
    assert same_fields((await store.search(MemoryQuery()))[0], given)
