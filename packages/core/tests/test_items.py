import pickle
import time
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from adapter_core import (
    AnyOf,
    ItemFields,
    ItemLike,
    MemoryItem,
    MemoryQuery,
    QueryLike,
    check_item,
    same_fields,
)

NEW_YEAR = 1735689600.0


def test_defaults_are_a_new_id_now_and_empty() -> None:
    before = time.time()
    one, other = MemoryItem(), MemoryItem()
    assert one.id != other.id
    assert one.id.version == 4
    assert before <= one.created_at <= time.time()
    assert (one.metadata, one.content, one.tags) == ({}, None, [])
    assert one.metadata is not other.metadata
    assert one.tags is not other.tags


@pytest.mark.parametrize("field", ["id", "created_at"])
def test_identity_is_frozen(field) -> None:
    one = MemoryItem()
    with pytest.raises(ValidationError):
        setattr(one, field, getattr(MemoryItem(), field))


def test_the_rest_can_be_changed() -> None:
    one = MemoryItem(content="a")
    one.content, one.tags, one.metadata = "b", ["t"], {"k": 1}
    assert check_item(one)[2:] == ({"k": 1}, "b", ["t"])


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        (NEW_YEAR, NEW_YEAR),
        (1735689600, NEW_YEAR),
        ("1735689600.123456", 1735689600.123456),
        (datetime(2025, 1, 1), NEW_YEAR),  # noqa: DTZ001 - a naive one is the case
        (datetime(2025, 1, 1, tzinfo=UTC), NEW_YEAR),
        (datetime(2025, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), NEW_YEAR),
        ("2025-01-01", NEW_YEAR),
        ("2025-01-01T00:00:00", NEW_YEAR),
        ("2025-01-01T00:00:00Z", NEW_YEAR),
        ("2024-12-31T19:00:00-05:00", NEW_YEAR),
        ("2025-01-01T00:00:00.123456", 1735689600.123456),
        ("1969-12-31T23:59:58.500", -1.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu"])
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the process's zone cannot be changed here")
def test_time_is_utc_in_every_zone(monkeypatch, zone, moment, seconds) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        got = MemoryItem(created_at=moment).created_at
    finally:
        monkeypatch.undo()
        time.tzset()
    assert type(got) is float
    assert got == seconds


@pytest.mark.parametrize("moment", ["yesterday", "", None, [], b"2025-01-01"], ids=repr)
def test_what_is_no_time_is_refused(moment) -> None:
    with pytest.raises(ValidationError):
        MemoryItem(created_at=moment)


@pytest.mark.parametrize("kind", [MemoryItem, MemoryQuery])
def test_extra_fields_are_refused_without_showing_them(kind) -> None:
    with pytest.raises(ValidationError) as caught:
        kind(score="a secret")
    assert "secret" not in str(caught.value)


def test_equality_and_hash_go_by_id() -> None:
    one, same, other = MemoryItem(id=UUID(int=1), content="a"), MemoryItem(id=UUID(int=1)), MemoryItem()
    assert one == same
    assert one != other
    assert len({one, same, other}) == 2
    assert one != UUID(int=1)
    assert one != SimpleNamespace(id=UUID(int=1))


SECRETIVE = [
    MemoryItem(content="a secret", tags=["secret"], metadata={"secret": "secret"}),
    MemoryQuery(text="secret", tags=["secret"], filters={"secret": "secret"}),
    AnyOf("secret"),
    ItemFields(UUID(int=1), 0.0, {"secret": 1}, "secret", ["secret"]),
]


@pytest.mark.parametrize("value", SECRETIVE, ids=lambda value: type(value).__name__)
def test_no_text_form_shows_contents(value) -> None:
    for text in (repr(value), str(value), f"{value}", repr([value])):
        assert "secret" not in text


def test_text_forms_name_the_thing() -> None:
    one = MemoryItem(id=UUID(int=1), created_at=2.0)
    assert repr(one) == f"MemoryItem(id={UUID(int=1)!r}, created_at=2.0)"
    assert repr(MemoryQuery(limit=3)) == "MemoryQuery(limit=3)"
    assert repr(AnyOf(1, 2)) == "AnyOf(<2 values>)"


def test_items_and_queries_can_be_pickled() -> None:
    one = MemoryItem(content=["\ud83d", -0.0], tags=["t"], metadata={"k": None})
    assert check_item(pickle.loads(pickle.dumps(one))) == check_item(one)
    query = MemoryQuery(text="a", tags=["t"], filters={"k": AnyOf(1, "x")}, limit=7)
    again = pickle.loads(pickle.dumps(query))
    assert (again.text, again.tags, again.filters, again.limit) == ("a", ["t"], {"k": AnyOf(1, "x")}, 7)


def test_query_defaults() -> None:
    query = MemoryQuery()
    assert (query.text, query.tags, query.filters, query.limit) == (None, None, {}, 20)


@pytest.mark.parametrize("limit", [True, -1, "5", 2.5, None, 10**30], ids=repr)
def test_a_query_keeps_its_limit_as_given(limit) -> None:
    assert MemoryQuery(limit=limit).limit is limit


def test_a_query_keeps_its_filters_as_given() -> None:
    filters = {"when": datetime(2025, 1, 1, tzinfo=UTC), 1: (2,), "x": True}
    assert MemoryQuery(filters=filters).filters is filters
    assert MemoryQuery(filters=None).filters is None


def test_any_of_compares_by_its_values() -> None:
    assert AnyOf(1, "a") == AnyOf(1, "a")
    assert hash(AnyOf(1, "a")) == hash(AnyOf(1, "a"))
    assert AnyOf(1, "a") != AnyOf("a", 1)
    assert AnyOf(1) != (1,)
    assert AnyOf().values == ()


def test_any_object_with_the_attributes_will_do() -> None:
    item = SimpleNamespace(id=UUID(int=1), created_at=0.0, metadata={}, content=None, tags=[])
    assert isinstance(item, ItemLike)
    assert isinstance(MemoryItem(), ItemLike)
    assert isinstance(ItemFields(UUID(int=1), 0.0, {}, None, []), ItemLike)
    assert isinstance(SimpleNamespace(text=None, tags=None, filters=None, limit=1), QueryLike)
    assert isinstance(MemoryQuery(), QueryLike)
    assert not isinstance(MemoryQuery(), ItemLike)


texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)


@settings(derandomize=True, deadline=None)
@given(
    st.builds(
        ItemFields,
        st.uuids(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.dictionaries(texts, st.integers() | texts | st.lists(texts, max_size=2), max_size=3),
        st.dictionaries(texts, st.floats(allow_nan=False) | texts, max_size=3),
        st.lists(texts, max_size=3),
    )
)
def test_our_own_class_keeps_every_field_as_it_is(fields) -> None:
    # the store relies on this, and builds no other class without a check
    assert same_fields(MemoryItem(**fields._asdict()), fields)
