import enum
import math
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType, SimpleNamespace
from uuid import UUID

import pytest

from adapter_core import (
    TIME_FILTERS,
    AnyOf,
    Criteria,
    Hit,
    MemoryAdapterError,
    MemoryQuery,
    Record,
    UnsupportedMemoryQuery,
    check_filter_keys,
    facet_token,
    tag_token,
    term_token,
)
from adapter_core._records import check_query

SUPPORTED = frozenset({"kind", "n", *TIME_FILTERS})


def check(**query):
    given = {"text": None, "tags": None, "filters": None, "limit": 20, **query}
    return check_query(SimpleNamespace(**given), SUPPORTED)


def rejected(**query) -> tuple[str, ...]:
    with pytest.raises(UnsupportedMemoryQuery) as caught:
        check(**query)
    return caught.value.rejected_keys


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


def test_an_empty_query_has_no_condition() -> None:
    for query in ({}, {"text": ""}, {"text": " \n\u3000"}, {"tags": []}, {"filters": {}}):
        checked = check(**query)
        assert checked.criteria == Criteria(limit=20)
        assert checked.satisfiable
    assert Criteria() == Criteria(limit=1)


def test_our_own_query_class_is_read_alike() -> None:
    query = MemoryQuery(text="tea", tags=["t"], filters={"n": 1}, limit=3)
    checked = check_query(query, SUPPORTED)
    assert checked.criteria == Criteria(
        tags=(tag_token("t"),),
        facets=((facet_token("n", 1),),),
        terms=(term_token("tea"),),
        limit=3,
        text="tea",
    )


def test_the_text_is_kept_as_it_was_asked_and_never_shown() -> None:
    checked = check(text=" Two  Words ")
    assert checked.criteria.text == " Two  Words "
    assert "Two" not in repr(checked.criteria)
    assert {check(text=blank).criteria.text for blank in (None, "", " \n")} == {""}


# limit


@pytest.mark.parametrize(
    "limit", [True, False, -1, 1.0, 2.5, "5", None, [], Colour.RED, Decimal(5)], ids=repr
)
def test_a_limit_that_is_no_natural_number_is_rejected(limit) -> None:
    assert rejected(limit=limit) == ("limit",)


def test_limit_zero_does_not_excuse_a_bad_key() -> None:
    assert rejected(limit=0, filters={"colour": 1}) == ("colour",)


@pytest.mark.parametrize("limit", [1, 10**6, 2**63, 10**30])
def test_a_large_limit_is_kept(limit) -> None:
    assert check(limit=limit).criteria.limit == limit


# tags


@pytest.mark.parametrize("tags", [["b", "a", "b"], ("b", "a"), ["b", "a"]], ids=repr)
def test_tags_are_one_group_of_distinct_tokens(tags) -> None:
    assert check(tags=tags).criteria.tags == (tag_token("b"), tag_token("a"))


def test_sets_of_tags_will_do() -> None:
    assert set(check(tags={"b", "a"}).criteria.tags) == {tag_token("b"), tag_token("a")}
    assert check(tags=frozenset()).criteria.tags == ()


def test_every_string_is_a_tag_even_the_empty_one() -> None:
    assert check(tags=[""]).criteria.tags == (tag_token(""),)
    assert check(tags=["\udce9", "\x00", "a,b"]).satisfiable


@pytest.mark.parametrize(
    "tags", ["work", "", b"work", 5, {"t": 1}, [1], ["a", None], iter(["a"])], ids=lambda t: ascii(t)[:12]
)
def test_what_is_no_collection_of_tags_is_rejected(tags) -> None:
    assert rejected(tags=tags) == ("tags",)


# text


def test_text_is_asked_for_by_its_distinct_terms() -> None:
    assert check(text="Tea, green tea").criteria.terms == (term_token("tea"), term_token("green"))
    assert check(text="用户验").criteria.terms == (term_token("用户"), term_token("户验"))


@pytest.mark.parametrize("text", ["*", "!!!", "\ud83d", "\u200b", "\x00"], ids=ascii)
def test_a_text_without_a_term_finds_nothing(text) -> None:
    checked = check(text=text)
    assert not checked.satisfiable
    assert checked.criteria.terms == ()


@pytest.mark.parametrize("text", [5, b"tea", ["tea"], True], ids=repr)
def test_what_is_no_text_is_rejected(text) -> None:
    assert rejected(text=text) == ("text",)


# filters


def test_each_filter_is_a_group_of_its_own() -> None:
    checked = check(filters={"kind": "fact", "n": AnyOf(1, 2, 1.0)})
    assert checked.criteria.facets == (
        (facet_token("kind", "fact"),),
        (facet_token("n", 1), facet_token("n", 2)),
    )


@pytest.mark.parametrize(
    "value", [None, True, False, 0, 1, 1.0, -0.0, 2**63, 10**40, 1e22, "", "1", "\ud83d"], ids=ascii
)
def test_any_scalar_can_be_asked_for(value) -> None:
    checked = check(filters={"kind": value})
    assert checked.criteria.facets == ((facet_token("kind", value),),)
    assert checked.satisfiable


def test_any_of_nothing_finds_nothing() -> None:
    checked = check(filters={"kind": AnyOf(), "n": 1})
    assert not checked.satisfiable


BAD_FILTER_VALUES = {
    "list": ["a"],
    "empty list": [],
    "dict": {"$gt": 1},
    "tuple": (1,),
    "set": {1},
    "bytes": b"a",
    "datetime": datetime(2025, 1, 1, tzinfo=UTC),
    "Decimal": Decimal(1),
    "NaN": math.nan,
    "infinity": math.inf,
    "IntEnum": Colour.RED,
    "str subclass": Text("a"),
    "UUID": UUID(int=1),
    "AnyOf of a list": AnyOf("a", ["b"]),
    "AnyOf of NaN": AnyOf(1, math.nan),
    "AnyOf of AnyOf": AnyOf(AnyOf(1)),
}


@pytest.mark.parametrize("value", BAD_FILTER_VALUES.values(), ids=BAD_FILTER_VALUES)
def test_another_filter_value_is_rejected_by_its_key(value) -> None:
    assert rejected(filters={"kind": value, "n": 1}) == ("kind",)


@pytest.mark.parametrize("filters", ["kind", [("kind", 1)], {"kind"}, 5, True], ids=repr)
def test_what_is_no_mapping_of_filters_is_rejected(filters) -> None:
    assert rejected(filters=filters) == ("filters",)


def test_any_mapping_will_do() -> None:
    assert check(filters=MappingProxyType({"n": 1})).criteria.facets == ((facet_token("n", 1),),)


def test_a_key_that_is_no_str_is_rejected_by_its_type() -> None:
    assert rejected(filters={1: "a", None: "b", "n": 1}) == ("<NoneType key>", "<int key>")


def test_a_key_of_a_subclass_is_not_the_key() -> None:
    assert rejected(filters={Text("kind"): "a"}) == ("kind",)


@pytest.mark.parametrize(
    "key", ["colour", "KIND", " kind", "", "metadata.kind", "$or", "id", "limit", "created_at"]
)
def test_a_key_that_was_not_named_is_rejected(key) -> None:
    assert rejected(filters={key: 1}) == (key,)


def test_every_rejected_key_is_named_and_sorted() -> None:
    assert rejected(
        text=5,
        tags="work",
        limit=-1,
        filters={
            "zebra": 1,
            "kind": ["a"],
            "created_before": "2025",
            "created_after": math.nan,
            "alpha": {},
            "n": 1,
            7: 1,
        },
    ) == ("<int key>", "alpha", "created_after", "created_before", "kind", "limit", "tags", "text", "zebra")


# times


@pytest.mark.parametrize("key", sorted(TIME_FILTERS))
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "5",
        "2025-01-01",
        datetime(2025, 1, 1, tzinfo=UTC),
        math.nan,
        math.inf,
        -math.inf,
        AnyOf(1),
        [1],
    ],
    ids=repr,
)
def test_a_time_that_is_no_finite_number_is_rejected(key, value) -> None:
    assert rejected(filters={key: value}) == (key,)


@pytest.mark.parametrize("value", [0, -1, 1735689600, 1735689600.123456, -1.5, 5e-324, 2**53], ids=repr)
def test_a_time_is_kept_exactly(value) -> None:
    criteria = check(filters={"created_after": value, "created_before": value}).criteria
    assert criteria.created_after == criteria.created_before == value
    assert type(criteria.created_after) is type(criteria.created_before) is float
    assert criteria.facets == ()


def test_an_int_between_two_floats_moves_inwards() -> None:
    between = 2**53 + 1
    assert check(filters={"created_after": between}).criteria.created_after == 2**53 + 2
    assert check(filters={"created_before": between}).criteria.created_before == 2**53
    assert not check(filters={"created_after": between, "created_before": between}).satisfiable
    assert check(filters={"created_after": -between}).criteria.created_after == -(2**53)
    assert check(filters={"created_before": -between}).criteria.created_before == -(2**53) - 2


@pytest.mark.parametrize("huge", [10**400, 2**1024, int(1.7976931348623157e308) + 1])
def test_a_bound_beyond_every_float_admits_all_or_nothing(huge) -> None:
    assert not check(filters={"created_after": huge}).satisfiable
    assert not check(filters={"created_before": -huge}).satisfiable
    for admits_all in ({"created_after": -huge}, {"created_before": huge}):
        checked = check(filters=admits_all)
        assert checked.satisfiable
        assert checked.criteria.created_after < -1e308
        assert checked.criteria.created_before > 1e308


def test_a_range_turned_round_finds_nothing() -> None:
    assert not check(filters={"created_after": 2, "created_before": 1}).satisfiable
    assert check(filters={"created_after": 2, "created_before": 2}).satisfiable


# the keys that a constructor names


def test_filter_keys_are_any_metadata_keys() -> None:
    assert check_filter_keys([]) == frozenset()
    assert check_filter_keys(iter(["a", "id", "", "é", "a"])) == {"a", "id", "", "é"}


@pytest.mark.parametrize(
    ("filters", "word"),
    [
        ("kind", "not one string"),
        ([1], "must be a str"),
        ([Text("kind")], "must be a str"),
        (["kind", "created_before", "created_after"], "created_after, created_before"),
    ],
    ids=repr,
)
def test_other_filter_keys_are_refused(filters, word) -> None:
    with pytest.raises(MemoryAdapterError, match=word):
        check_filter_keys(filters)


def test_no_text_form_shows_what_is_searched_or_stored() -> None:
    criteria = check(text="secret", tags=["secret"], filters={"kind": "secret"}).criteria
    record = Record(UUID(int=1), 0.0, "secret", ("tsecret",), ("fsecret",), {"wsecret": 1})
    for value in (criteria, record, Hit(UUID(int=1), "secret", 0.5)):
        assert "secret" not in repr(value)
    assert repr(criteria) == "Criteria(tags=<1>, facets=<1>, terms=<1>, limit=20)"
