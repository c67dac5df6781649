"""Faults that users of such stores have reported, each as a test with the case's id.

Those of one backend alone stand with its adapter.
"""

import asyncio
import math
import time
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from pydantic import BaseModel

from adapter_core import (
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    same_fields,
)


async def comes_back(store, item):
    """Store an item, and see that it comes back as declared; as it is, where that is declared."""
    declared = store.preview(item)
    if store.manifest.retrieve_fidelity == "full":
        assert same_fields(declared.retrieve, item)
    await store.store(item)
    assert same_fields(await store.retrieve(item.id), declared.retrieve)
    bound = {"created_after": declared.search.created_at}
    hits = await store.search(MemoryQuery(filters=bound, limit=100))
    (hit,) = [hit for hit in hits if hit.id == item.id]
    assert same_fields(hit, declared.search)


async def found(store, **query):
    return [hit.content for hit in await store.search(MemoryQuery(**{"limit": 100, **query}))]


async def test_b01_nul_characters_come_back_in_values_and_keys(make):
    store = await make()
    item = MemoryItem(content={"q": "weather \x00 in nyc"}, metadata={"k\x00": "v"}, tags=["\x00"])
    await comes_back(store, item)
    assert await found(store, text="a\x00b") == []
    assert await found(store, text="weather\x00nyc") == [item.content]
    assert await found(store, tags=["\x00"]) == [item.content]
    assert await found(await make(filters={"k\x00"}), filters={"k\x00": "v\x00"}) == []
    assert await found(await make(filters={"k\x00"}), filters={"k\x00": "v"}) == [item.content]


async def test_b02_a_literal_backslash_u0000_is_not_taken_for_a_nul(make):
    store = await make()
    for text in ("\\u0000", "\\\\u0000"):
        await comes_back(store, MemoryItem(content={"a": text}))


async def test_b03_lone_surrogates_come_back_and_can_be_asked_for(make):
    store = await make()
    item = MemoryItem(content={"t": "cut \ud83d"}, tags=["\udce9"])
    await comes_back(store, item)
    assert await found(store, tags=["\udce9"]) == [item.content]
    assert await found(store, text="\ud83d") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
async def test_b04_nan_and_infinity_are_refused_before_any_io(make, value):
    store = await make(filters={"score"})
    for fields in (
        {"metadata": {"score": value}},
        {"content": [value]},
        {"metadata": {"a": [{"b": value}]}},
    ):
        with pytest.raises(UnrepresentableItem):
            await store.store(MemoryItem(**fields))
    with pytest.raises(UnsupportedMemoryQuery):
        await store.search(MemoryQuery(filters={"score": value}))


async def test_b05_floats_stay_floats_with_value_and_sign(make):
    content = {"n": 2.561422288066971e16, "m": 1e22, "x": 1e308, "z": -0.0, "one": 1.0, "t": 5e-324}
    await comes_back(await make(), MemoryItem(content=content))


async def test_b06_big_integers_are_exact_and_a_neighbour_does_not_match(make):
    store = await make(filters={"b"})
    numbers = {"a": 9007199254740993, "b": 18446744073709551615, "c": 45232446983204764922041}
    await comes_back(store, MemoryItem(content="big", metadata=numbers))
    assert await found(store, filters={"b": 18446744073709551615}) == ["big"]
    assert await found(store, filters={"b": 18446744073709551614}) == []


@pytest.mark.parametrize(
    "moment", [1735689600.123456, 1512060373.222988, 0.0, -0.0, -1.5, 1e300, -1e300, 5e-324]
)
async def test_b07_created_at_comes_back_as_the_same_float_in_any_zone(make, monkeypatch, moment):
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        store = await make()
        first = MemoryItem(created_at=moment, content=1)
        await comes_back(store, first)
        await comes_back(store, MemoryItem(id=first.id, created_at=moment + 7.25, content=2))
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "fields",
    [{"metadata": {"m": {1: "int", "1": "str"}}}, {"content": {True: "a"}}, {"content": {None: 1}}],
)
async def test_b08_keys_that_are_no_strings_are_refused(make, fields):
    store = await make()
    with pytest.raises(UnrepresentableItem):
        await store.store(MemoryItem(**fields))
    assert await store.search(MemoryQuery()) == []


class Model(BaseModel):
    x: int = 1


@pytest.mark.parametrize(
    "value",
    [datetime(2025, 1, 1, tzinfo=UTC), b"\x00\xff", Decimal("1.10"), {1, 2}, (1, 2), Model()],
)
async def test_b09_values_that_are_not_json_are_refused_with_their_path(make, value):
    store = await make()
    with pytest.raises(UnrepresentableItem) as one:
        await store.store(MemoryItem(content=value))
    with pytest.raises(UnrepresentableItem) as other:
        await store.store(MemoryItem(metadata={"when": [value]}))
    assert (one.value.path, other.value.path) == ("content", "metadata.when[0]")
    assert await store.search(MemoryQuery()) == []


async def test_b10_falsy_values_and_any_key_come_back_on_every_way(make):
    store = await make()
    metadata = {"n": 0, "f": False, "s": "", "none": None, "l": [], "d": {}, "category": "hobbies"}
    item = MemoryItem(metadata=metadata | {"bucket_id": 7})
    await comes_back(store, item)
    await comes_back(store, item.model_copy(update={"content": "other"}))


async def test_b11_metadata_keys_do_not_overwrite_fields(make):
    store = await make(filters={"content"})
    taken = {"id": "42", "content": "lol", "tags": "x", "created_at": 0, "_id": 1, "$": 1}
    item = MemoryItem(content="real", tags=["t"], metadata=taken | {"__vector_score": 9})
    await comes_back(store, item)
    assert await found(store, filters={"content": "lol"}) == ["real"]
    assert await found(store, filters={"content": "real"}) == []


async def test_b12_storing_an_id_again_replaces_everything(make):
    store = await make(filters={"k"})
    first = MemoryItem(content="v1", tags=["a"], metadata={"k": 1})
    second = MemoryItem(id=first.id, content="v2")
    assert await store.store(first) == await store.store(second) == first.id
    assert same_fields(await store.retrieve(first.id), store.preview(second).retrieve)
    assert await found(store) == ["v2"]
    assert await found(store, tags=["a"]) == []
    assert await found(store, filters={"k": 1}) == []
    assert await found(store, text="v1") == []
    assert await found(store, text="v2") == ["v2"]


async def test_b12_ten_stores_of_one_id_at_once_leave_one_whole(make):
    store = await make(filters={"n"})
    key = UUID(int=5)
    items = [
        MemoryItem(id=key, created_at=float(n), content=f"w{n}", tags=[f"t{n}"], metadata={"n": n})
        for n in range(10)
    ]
    await asyncio.gather(*map(store.store, items))
    (hit,) = await store.search(MemoryQuery())
    n = int(hit.metadata["n"])
    assert same_fields(hit, store.preview(items[n]).search)
    for other in range(10):
        for query in ({"text": f"w{other}"}, {"tags": [f"t{other}"]}, {"filters": {"n": other}}):
            assert len(await found(store, **query)) == (other == n)


async def test_b13_tags_are_whole_and_keep_count_order_and_spaces(make):
    store = await make()
    tags = ["customer,priority", "a|b", "x;y", " lead", "{curly}", "dup", "dup", ""]
    await comes_back(store, MemoryItem(content="tagged", tags=tags))
    for tag in tags:
        assert await found(store, tags=[tag]) == ["tagged"]
    for part in ("customer", "priority", "lead", "a", "CURLY", "Dup", " "):
        assert await found(store, tags=[part]) == []


async def test_b15_no_value_reaches_a_query_language(make):
    key = "user_id:{*} | @x"
    values = [
        "550e8400-e29b-41d4-a716-446655440000", "openai/gpt-4o", "gemma:latest", "a|b", "\\\\",
        "x} | @user_id:{bob", "*", "a b", "$1.50", "naïve",
    ]  # fmt: skip
    store = await make(filters={key})
    for value in values:
        await store.store(MemoryItem(content=f"<{value}>", tags=[value], metadata={key: value}))
    for value in values:
        assert await found(store, tags=[value]) == [f"<{value}>"]
        assert await found(store, filters={key: value}) == [f"<{value}>"]
    assert await found(store, text="don't (or) -x @tag:{y}") == []
    assert await found(store, text="@user_id:{bob}") == ["<x} | @user_id:{bob>"]


async def test_b17_tags_are_any_of(make):
    store = await make()
    for tags in (["alpha"], ["beta"], ["alpha", "beta"], ["gamma"]):
        await store.store(MemoryItem(content="+".join(tags), tags=tags))
    expected = {"alpha", "beta", "alpha+beta"}
    assert set(await found(store, tags=["alpha", "beta"])) == expected
    assert sorted(await found(store, tags=["alpha", "alpha"])) == ["alpha", "alpha+beta"]
    assert len(await found(store, tags=[])) == 4
    many = ["alpha", "beta", *map(str, range(100))]
    assert sorted(await found(store, tags=many)) == sorted(expected)


async def test_b18_an_undeclared_filter_key_is_refused_and_never_dropped(make):
    store = await make(filters={"tenant_id"})
    for tenant in ("acme", "globex"):
        await store.store(MemoryItem(content=tenant, metadata={"tenant_id": tenant}))
    assert await found(store, filters={"tenant_id": "acme"}) == ["acme"]
    with pytest.raises(UnsupportedMemoryQuery) as refused:
        await store.search(MemoryQuery(filters={"never_stored": 1, "also": 2, "tenant_id": "acme"}))
    assert refused.value.rejected_keys == ("also", "never_stored")


async def test_b19_none_matches_an_explicit_null_only(make):
    store = await make(filters={"x", "user_id", "agent_id"})
    for name, metadata in {
        "null": {"x": None},
        "missing": {},
        "blank": {"x": ""},
        "list": {"x": []},
        "agent": {"agent_id": "a1"},
    }.items():
        await store.store(MemoryItem(content=name, metadata=metadata))
    assert await found(store, filters={"x": None}) == ["null"]
    assert len(await found(store, filters={})) == 5
    assert await found(store, filters={"user_id": None, "agent_id": "a1"}) == []


async def test_b20_filter_values_are_compared_with_their_type(make):
    store = await make(filters={"k"})
    values = [True, 1, 1.0, "1", "true", 0, False, 0.75, -0.0]
    for value in values:
        await store.store(MemoryItem(content=repr(value), metadata={"k": value}))
    numbers = {"1": {"1", "1.0"}, "1.0": {"1", "1.0"}, "0": {"0", "-0.0"}, "-0.0": {"0", "-0.0"}}
    for value in values:
        expected = numbers.get(repr(value), {repr(value)})
        assert set(await found(store, filters={"k": value})) == expected


@pytest.mark.parametrize("value", [[1, 2], [], {}, {"a": 1}, {"$gte": 10}, {"$bogus": 1}])
async def test_b21_b24_a_list_or_dict_as_filter_value_is_refused(make, value):
    store = await make(filters={"k"})
    with pytest.raises(UnsupportedMemoryQuery) as refused:
        await store.search(MemoryQuery(filters={"k": value}))
    assert refused.value.rejected_keys == ("k",)


async def test_b21_a_string_finds_the_string_and_not_a_list_of_it(make):
    store = await make(filters={"k"})
    for position, value in enumerate([[1, 2], {"a": 1}, "x", ["x"]]):
        await store.store(MemoryItem(content=position, metadata={"k": value}))
    assert await found(store, filters={"k": "x"}) == [2]


@pytest.mark.parametrize("table", ["memories", "memory_items"])
async def test_b22_b23_keys_and_values_never_become_sql(make, table):
    crafted = ["author' = 'alice' OR '1'='1' --", "x') OR 1=1 --", f'"; DROP TABLE {table};--']
    tag = f"'); DROP TABLE {table};--"
    store = await make(filters={"name", *crafted}, namespace=tag)
    await store.store(MemoryItem(content="o", metadata={"name": "O'Brien"}, tags=[tag]))
    for key in crafted:
        assert await found(store, filters={key: "zzz"}) == []
    assert await found(store, filters={"name": "O'Brien"}) == ["o"]
    assert await found(store, tags=[tag]) == ["o"]
    assert await found(store, text=f"'; DROP TABLE {table};--") == []
    assert await found(store) == ["o"]


async def test_b24_stored_values_of_mixed_types_break_no_search(make):
    store = await make(filters={"n"})
    for value in (9, 10, 100, "unknown", {"deep": 1}, [9]):
        await store.store(MemoryItem(content=value, metadata={"n": value}))
    await store.store(MemoryItem(content="missing"))
    assert await found(store, filters={"n": 9}) == [9]
    with pytest.raises(UnsupportedMemoryQuery):
        await store.search(MemoryQuery(filters={"$or": [{"n": 9}]}))


@pytest.mark.parametrize("query", [{}, {"tags": ["t"]}, {"text": "word"}, {"tags": ["t", "u"]}])
async def test_b26_limits(make, query):
    store = await make()
    await store.store_many([MemoryItem(content=f"word {n}", tags=["t"]) for n in range(5)])
    for limit, count in ((0, 0), (1, 1), (4, 4), (5, 5), (2**63, 5), (2**200, 5)):
        assert len(await store.search(MemoryQuery(limit=limit, **query))) == count
    for limit in (-1, -100, True, 2.5, None):
        with pytest.raises(UnsupportedMemoryQuery) as refused:
            await store.search(MemoryQuery(limit=limit, **query))
        assert refused.value.rejected_keys == ("limit",)


async def test_b28_conditions_are_met_before_the_limit(make):
    store = await make(filters={"owner"})
    bobs = [MemoryItem(content="near near near", metadata={"owner": "bob"}) for _ in range(400)]
    await store.store_many(bobs)
    for n in range(5):
        item = MemoryItem(content="near", metadata={"owner": "alice"}, tags=["t"], created_at=float(n))
        await store.store(item)
    query = MemoryQuery(text="near", filters={"owner": "alice"}, tags=["t"], limit=5)
    hits = await store.search(query)
    assert [hit.metadata["owner"] for hit in hits] == ["alice"] * 5


async def test_b27_more_hits_than_a_servers_default_page_are_given(make):
    store = await make()
    await store.store_many([MemoryItem(content=f"word {n}", tags=["t"]) for n in range(11)])
    for conditions in ({}, {"tags": ["t"]}, {"text": "word"}):
        for limit in (11, 20_000):
            assert len(await found(store, limit=limit, **conditions)) == 11
    assert await found(store, text="word 7", limit=20_000) == ["word 7"]


@pytest.mark.parametrize(
    "text",
    [
        "don't", "memory:safe", 'say "hi', "foo AND", "(python", "multi-agent", "20.04", "GB/s",
        "C++", "OR", "NEAR(", "^x", "t:Rust", "-foo", "a OR b", "%_x", "$1.50",
    ],
)  # fmt: skip
async def test_b29_text_has_no_grammar(make, text):
    store = await make()
    await store.store(MemoryItem(content=f"before {text} after"))
    await store.store(MemoryItem(content="something else entirely"))
    assert await found(store, text=text) == [f"before {text} after"]


async def test_b30_words_of_every_script_are_found(make):
    store = await make()
    contents = [
        "用户身份验证 设备清单", "重跑gen-itgc后50条", "München café", "Сергей", "😀 party",
    ]  # fmt: skip
    for content in contents:
        await store.store(MemoryItem(content=content))
    for text, expected in {
        "用户": contents[0],
        "设备": contents[0],
        "备": contents[0],
        "itgc": contents[1],
        "MUNCHEN": contents[2],
        "cafe\u0301": contents[2],
        "сергей": contents[3],
        "😀": contents[4],
    }.items():
        assert await found(store, text=text) == [expected]
    assert await found(store, text="Müller") == []
    assert await found(store, text="户设") == []


@pytest.mark.parametrize("text", ["- " * 33, "a:*", "<->", "!", "&", "((", "\\'"])
async def test_b32_operators_of_text_search_are_no_operators(make, text):
    store = await make()
    await store.store(MemoryItem(content="finalized a"))
    await found(store, text=text)
    for words in ("-finalized", '"finalized', "finalized <-> a", "finalized:a"):
        assert await found(store, text=words) == ([] if "<" in words else ["finalized a"])
    assert await found(store, text="cats or finalized") == []


@pytest.mark.parametrize("tags", [None, ["t"]])
async def test_b31_blank_text_is_no_condition_and_text_without_a_term_finds_nothing(make, tags):
    store = await make()
    await store.store(MemoryItem(content="the old", tags=["t"], created_at=1.0))
    await store.store(MemoryItem(content="a new", tags=["t"], created_at=2.0))
    for blank in (None, "", "   ", "\n"):
        assert await found(store, text=blank, tags=tags) == ["a new", "the old"]
    for no_term in ("*", "!!!", "the of"):
        assert await found(store, text=no_term, tags=tags) == []
    assert await found(store, text="the", tags=tags) == ["the old"]


async def test_b33_long_text_is_stored_whole_and_found_by_its_first_terms(make):
    store = await make()
    content = " ".join(f"w{n}" for n in range(200_000))
    await comes_back(store, MemoryItem(content=content))
    assert await found(store, text="w0 w19999") == [content]
    assert await found(store, text="w20000") == []
    word = "x" * 20_000
    await comes_back(store, MemoryItem(content=word))
    assert await found(store, text=word) == [word]


async def test_b48_equal_times_are_ordered_by_id(make):
    store = await make()
    moments = [100.0, 100.0, 100.0, 99.96, 100.1]
    for n, moment in enumerate(moments):
        await store.store(MemoryItem(id=UUID(int=9 - n), content=n, created_at=moment, tags=["t"]))
    assert await found(store) == await found(store, tags=["t"]) == [4, 2, 1, 0, 3]
    assert await found(store, tags=["t", "u"], limit=3) == [4, 2, 1]
