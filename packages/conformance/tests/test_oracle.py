import asyncio
from itertools import product
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings

from adapter_conformance import ALL_CASES, run_case
from adapter_conformance._delegate import delegate
from adapter_conformance.oracle import Oracle
from adapter_conformance.strategies import SCALARS, items, queries
from adapter_conformance.values import CONTENTS, FILTER_VALUES, METADATA, TAGS, TIMES, equal_scalars
from adapter_core import EXACT, AnyOf, MemoryItem, MemoryQuery, check_item, facet_token
from adapter_template.harness import LOSSY, TemplateHarness

ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)
KEYS = ("topic", "rank", "owner")


def _oracle(*chosen: MemoryItem, projection=EXACT) -> Oracle:
    oracle = Oracle(projection)
    for item in chosen:
        oracle.store(item)
    return oracle


def _found(oracle: Oracle, **query) -> list[int]:
    return [item_id.int for item_id in oracle.matches(MemoryQuery(**query))]


@pytest.mark.parametrize(
    ("asked", "stored", "matches"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1.0, 1, True),
        (0, -0.0, True),
        (2**64, float(2**64), True),
        (2**53 + 1, float(2**53), False),
        (1, True, False),
        (True, 1, False),
        (0, False, False),
        (True, True, True),
        (True, False, False),
        ("1", 1, False),
        ("1", "1", True),
        ("a", "A", False),
        ("é", "e\u0301", False),
        (None, None, True),
        (None, "", False),
        (None, 0, False),
        (None, False, False),
        ("", "", True),
        (1, [1], False),
        ("a", {"a": 1}, False),
    ],
    ids=ascii,
)
def test_filters_compare_value_and_type(asked, stored, matches) -> None:
    oracle = _oracle(MemoryItem(id=ONE, metadata={"k": stored}))
    assert _found(oracle, filters={"k": asked}) == ([1] if matches else [])


def test_null_matches_an_explicit_null_only() -> None:
    oracle = _oracle(MemoryItem(id=ONE, metadata={"k": None}), MemoryItem(id=TWO, metadata={"other": None}))
    assert _found(oracle, filters={"k": None}) == [1]


def test_any_of_is_one_of_several_and_empty_is_none() -> None:
    oracle = _oracle(*(MemoryItem(id=UUID(int=n), created_at=n, metadata={"k": n}) for n in (1, 2, 3)))
    assert _found(oracle, filters={"k": AnyOf(1, 3)}) == [3, 1]
    assert _found(oracle, filters={"k": AnyOf("1", True)}) == []
    assert _found(oracle, filters={"k": AnyOf()}) == []


def test_all_filters_must_hold() -> None:
    oracle = _oracle(
        MemoryItem(id=ONE, metadata={"a": 1, "b": 1}),
        MemoryItem(id=TWO, metadata={"a": 1, "b": 2}),
    )
    assert _found(oracle, filters={"a": 1, "b": 2}) == [2]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"created_after": 100.0}, [3, 2]),
        ({"created_after": 100}, [3, 2]),
        ({"created_before": 100.0}, [2, 1]),
        ({"created_after": 100.0, "created_before": 100.0}, [2]),
        ({"created_after": 100.5}, [3]),
        ({"created_after": 101, "created_before": 100}, []),
        ({"created_after": 10**400}, []),
        ({"created_before": 10**400}, [3, 2, 1]),
    ],
)
def test_time_bounds_are_inclusive(filters, expected) -> None:
    times = {ONE: 99.0, TWO: 100.0, THREE: 200.0}
    oracle = _oracle(*(MemoryItem(id=one, created_at=time) for one, time in times.items()))
    assert _found(oracle, filters=filters) == expected


async def test_times_are_those_that_the_projection_keeps() -> None:
    (kind,) = LOSSY
    projection = (await kind().make_store()).projection
    oracle = _oracle(MemoryItem(id=ONE, created_at=100.0004), projection=projection)
    assert _found(oracle, filters={"created_before": 100.0}) == [1]


def test_tags_are_any_of_and_whole() -> None:
    oracle = _oracle(
        MemoryItem(id=ONE, created_at=1, tags=["alpha", "beta"]),
        MemoryItem(id=TWO, created_at=2, tags=["Alpha", ""]),
        MemoryItem(id=THREE, created_at=3),
    )
    assert _found(oracle, tags=["alpha"]) == [1]
    assert _found(oracle, tags=["alpha", "Alpha"]) == [2, 1]
    assert _found(oracle, tags=["alph", "alpha "]) == []
    assert _found(oracle, tags=[""]) == [2]
    assert _found(oracle, tags=[]) == _found(oracle, tags=None) == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("quantum", True),
        ("QUANTUM leap", True),
        ("leap quantum", True),
        ("quantum nowhere", False),
        ("quant", False),
        ("key", False),
        ("deep", True),
        ("cafe", True),
        ("don't", True),
        ("用户", True),
        ("户用", False),
        ("", True),
        (" \t\n", True),
        ("!!!", False),
    ],
)
def test_every_term_of_a_text_must_occur_in_some_string(text, matches) -> None:
    item = MemoryItem(id=ONE, content=["Quantum leap", {"key": ["deep", 7, None]}, "Café don't", "用户身份"])
    assert _found(_oracle(item), text=text) == ([1] if matches else [])


def test_terms_do_not_join_over_two_strings() -> None:
    oracle = _oracle(MemoryItem(id=ONE, content=["用", "户"]))
    assert _found(oracle, text="用户") == []


def test_groups_combine_with_and() -> None:
    oracle = _oracle(
        MemoryItem(id=ONE, content="word", tags=["t"], metadata={"k": 1}),
        MemoryItem(id=TWO, content="word", tags=["t"], metadata={"k": 2}),
        MemoryItem(id=THREE, content="other", tags=["t"], metadata={"k": 1}),
    )
    assert _found(oracle, text="word", tags=["t"], filters={"k": 1}) == [1]
    assert _found(oracle, text="word", tags=["u"], filters={"k": 1}) == []


def test_order_is_newest_first_then_by_id_and_a_replace_moves_an_item() -> None:
    oracle = _oracle(
        MemoryItem(id=TWO, created_at=5),
        MemoryItem(id=ONE, created_at=5),
        MemoryItem(id=THREE, created_at=9),
    )
    assert _found(oracle) == [3, 1, 2]
    oracle.store(MemoryItem(id=TWO, created_at=10, content="anew"))
    assert _found(oracle) == [2, 3, 1]


def test_the_oracle_and_the_tokens_agree_on_which_scalars_are_equal() -> None:
    for one, other in product((*FILTER_VALUES, *SCALARS), repeat=2):
        same_token = facet_token("k", one) == facet_token("k", other)
        assert equal_scalars(one, other) is same_token, (one, other)


# Edge values and strategies


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_every_edge_content_is_one_that_a_store_must_take(content) -> None:
    check_item(MemoryItem(content=content))


def test_every_edge_value_of_the_other_fields_is_one_that_a_store_must_take() -> None:
    for metadata in METADATA.values():
        check_item(MemoryItem(metadata=metadata))
    for tags in TAGS.values():
        check_item(MemoryItem(tags=tags))
    for time in TIMES.values():
        check_item(MemoryItem(created_at=time))


PLAIN = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=list(HealthCheck),
)


@PLAIN
@given(items(KEYS))
def test_every_generated_item_is_one_that_a_store_must_take(item) -> None:
    check_item(item)


@PLAIN
@given(queries(KEYS))
def test_every_generated_query_is_one_that_a_store_must_take(query) -> None:
    async def _ask() -> None:
        store = await TemplateHarness().make_store_with(filters=KEYS)
        assert await store.search(query) == []

    asyncio.run(_ask())


@PLAIN
@given(queries((), time_filters=False))
def test_no_filter_is_generated_for_a_store_that_has_none(query) -> None:
    assert not query.filters


# The generated case


async def _generated(wrap):
    (case,) = (case for case in ALL_CASES if case.id == "X15")
    return await run_case(case, TemplateHarness(), "template", "fake", wrap=wrap)


async def test_the_generated_case_compares_every_item_with_the_projection() -> None:
    async def _retrieve(inner, item_id):
        got = await inner.retrieve(item_id)
        return got and got.model_copy(update={"tags": [tag for tag in got.tags if tag]})

    result = await _generated(lambda store: delegate(store, retrieve=_retrieve))
    assert (result.status, result.reason) == (
        "failed",
        "a generated item does not come back as the projection declares",
    )


async def test_the_generated_case_compares_every_search_with_the_oracle() -> None:
    async def _search(inner, query):
        return (await inner.search(query))[1:]

    result = await _generated(lambda store: delegate(store, search=_search))
    assert result.status == "failed"
    assert result.reason.startswith("a generated query finds ")


async def test_the_generated_case_sees_an_item_that_is_given_twice() -> None:
    async def _search(inner, query):
        hits = await inner.search(query)
        return hits + hits[:1]

    result = await _generated(lambda store: delegate(store, search=_search))
    assert (result.status, result.reason) == ("failed", "a search gives an item twice")


async def test_the_generated_case_sees_another_order() -> None:
    async def _search(inner, query):
        hits = await inner.search(query)
        return hits if query.text else hits[::-1]

    result = await _generated(lambda store: delegate(store, search=_search))
    assert (result.status, result.reason) == (
        "failed",
        "a search without text is not newest first, then by id",
    )
