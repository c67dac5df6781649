import enum
import math
import re
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import ClassVar, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from adapter_core import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    ItemFields,
    MemoryItem,
    UnrepresentableItem,
    check_item,
    decode_document,
    decode_value,
    encode_document,
    encode_value,
    same_fields,
    same_value,
)

steady = settings(derandomize=True, deadline=None, max_examples=150)

ID = UUID(int=7)


def fields(**changed) -> ItemFields:
    return ItemFields(ID, 0.0, {}, None, [])._replace(**changed)


def refused(**changed) -> UnrepresentableItem:
    with pytest.raises(UnrepresentableItem) as caught:
        check_item(fields(**changed))
    return caught.value


# What goes in comes out

JOINED = re.compile("[\ud800-\udbff][\udc00-\udfff]")

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=20).map(
    lambda text: JOINED.sub("x", text)
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**60), 10**60),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
items = st.builds(
    ItemFields,
    st.uuids(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dictionaries(texts, values, max_size=4),
    values,
    st.lists(texts, max_size=4),
)


@steady
@given(items)
def test_every_accepted_item_comes_back_equal(item) -> None:
    document = encode_document(check_item(item))
    assert document.isascii()
    back = decode_document(document)
    assert type(back) is ItemFields
    assert same_fields(back, item)


EXACT_VALUES = {
    "NUL": "a\x00b",
    "lone high surrogate": "cut \ud83d",
    "lone low surrogate": "\udce9",
    "surrogates in the wrong order": "\ude00\ud83d",
    "surrogates apart": "\ud83d \ude00",
    "literal backslash-u0000": "\\u0000 and \\\\u0000",
    "emoji": "👩‍👩‍👧 😀",
    "separators": "\u2028\u2029\x85\r\n\t",
    "JSON-looking": '{"a": 1}',
    "2**53+1": 2**53 + 1,
    "2**63": 2**63,
    "-2**63-1": -(2**63) - 1,
    "10**40": 10**40,
    "longest int": 10**4300 - 1,
    "longest negative int": -(10**4300 - 1),
    "10**4299": 10**4299,
    "one": 1,
    "one as float": 1.0,
    "true": True,
    "negative zero": -0.0,
    "zero": 0.0,
    "1e22": 1e22,
    "1e16": 1e16,
    "smallest float": 5e-324,
    "largest float": 1.7976931348623157e308,
    "0.1": 0.1,
    "empties": ["", [], {}, None],
    "dict order": {"b": 1, "a": 2, "": 3, "B": 4},
    "odd keys": {"\x00": 1, "\ud83d": 2, "a.b": 3, "$": 4, "id": 5, "é": 6, "e\u0301": 7},
    "5 MB": "é" * 5_000_000,
}


@pytest.mark.parametrize("name", EXACT_VALUES)
def test_hard_values_come_back_equal_in_content_and_metadata(name) -> None:
    value = EXACT_VALUES[name]
    item = MemoryItem(id=ID, content=value, metadata={"k": value, "deep": [{"k": value}]})
    back = decode_document(encode_document(check_item(item)))
    assert same_fields(back, item)
    assert same_value(decode_value(encode_value(value)), value)


@pytest.mark.parametrize("time", [1735689600.123456, 1512060373.222988, 0.0, -0.0, -1.5, 5e-324, 1e300])
def test_time_comes_back_equal(time) -> None:
    assert same_value(decode_document(encode_document(fields(created_at=time))).created_at, time)


def test_tags_come_back_in_order_with_duplicates() -> None:
    tags = ["b", "a", "b", "", " ", "a,b", "é", "e\u0301", "\udce9", "\x00"]
    assert decode_document(encode_document(check_item(fields(tags=tags)))).tags == tags


def test_what_is_read_back_shares_nothing_with_what_was_given() -> None:
    item = fields(metadata={"k": [1]}, content={"k": [1]}, tags=["t"])
    back = decode_document(encode_document(item))
    back.metadata["k"].append(2)
    back.content["k"].append(2)
    back.tags.append("u")
    assert item == fields(metadata={"k": [1]}, content={"k": [1]}, tags=["t"])


def test_check_gives_the_same_values_and_copies_nothing() -> None:
    item = MemoryItem(metadata={"k": [1]}, content={"k": [1]}, tags=["t"])
    checked = check_item(item)
    assert all(getattr(checked, name) is getattr(item, name) for name in ItemFields._fields)


# Depth


@pytest.mark.parametrize("where", ["content", "metadata"])
def test_two_hundred_levels_are_accepted_and_come_back(nested, where) -> None:
    value = nested(MAX_DEPTH, "deep")
    item = fields(**{where: value if where == "content" else {"k": value}})
    assert MAX_DEPTH == 200
    assert same_fields(decode_document(encode_document(check_item(item))), item)


@pytest.mark.parametrize("where", ["content", "metadata"])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
def test_deeper_is_refused_with_its_path(nested, where, levels) -> None:
    value = nested(levels)
    error = refused(**{where: value if where == "content" else {"k": value}})
    assert error.path.startswith("content" if where == "content" else "metadata.k")
    assert len(error.path) < 200
    assert "200 levels" in error.reason


def test_an_empty_container_is_a_level(nested) -> None:
    check_item(fields(content=nested(MAX_DEPTH - 1, [])))
    refused(content=nested(MAX_DEPTH, []))
    refused(content=nested(MAX_DEPTH, {}))


def test_a_value_that_holds_itself_is_refused() -> None:
    loop = []
    loop += [loop, loop]
    assert refused(content=loop).path.startswith("content[1][1]")


# Everything else is refused, with its path


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Real(float):
    pass


class Model(BaseModel):
    a: int = 1


BAD_VALUES = {
    "tuple": ((1, 2), "tuple"),
    "named tuple": (fields(), "ItemFields"),
    "set": ({1}, "set"),
    "frozenset": (frozenset(), "frozenset"),
    "bytes": (b"secret", "bytes"),
    "bytearray": (bytearray(b"x"), "bytearray"),
    "datetime": (datetime(2025, 1, 1, tzinfo=UTC), "datetime.datetime"),
    "Decimal": (Decimal("1.10"), "decimal.Decimal"),
    "UUID": (ID, "uuid.UUID"),
    "complex": (1j, "complex"),
    "NaN": (math.nan, "NaN"),
    "infinity": (math.inf, "infinity"),
    "negative infinity": (-math.inf, "infinity"),
    "model": (Model(), "Model"),
    "IntEnum": (Colour.RED, "Colour"),
    "str subclass": (Text("secret"), "Text"),
    "int subclass": (Whole(1), "Whole"),
    "float subclass": (Real(1.5), "Real"),
    "dict subclass": (OrderedDict(a=1), "OrderedDict"),
    "range": (range(3), "range"),
    "object": (object(), "object"),
    "function": (len, "builtin"),
    "adjacent surrogates": ("secret\ud83d\ude00", "surrogate"),
    "int of 4,301 digits": (10**MAX_INT_DIGITS, "4300 digits"),
    "negative int of 4,301 digits": (-(10**MAX_INT_DIGITS), "4300 digits"),
    "enormous int": (1 << 100_000, "4300 digits"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_bad_value_is_refused_with_path_and_kind_and_without_itself(name) -> None:
    value, word = BAD_VALUES[name]
    for changed, path in (
        ({"content": value}, "content"),
        ({"content": [0, {"k": [value]}]}, "content[1].k[0]"),
        ({"metadata": {"when": value}}, "metadata.when"),
        ({"metadata": {"a b": [[value]]}}, "metadata['a b'][0][0]"),
    ):
        error = refused(**changed)
        assert error.path == path
        assert word in error.reason
        assert "secret" not in str(error)
        assert error.__cause__ is None


@pytest.mark.parametrize("key", [1, True, None, 1.5, (1,), b"k", Text("k"), Colour.RED], ids=repr)
def test_a_key_that_is_no_str_is_refused_with_its_dict(key) -> None:
    assert refused(content={"a": [{key: 1}]}).path == "content.a[0]"
    assert refused(metadata={key: 1}).path == "metadata"
    assert "keys must be str" in refused(metadata={key: 1}).reason


def test_adjacent_surrogates_are_refused_in_keys_and_tags_too() -> None:
    pair = "\ud83d\ude00"
    assert refused(content=[{pair: 1}]).path == "content[0]"
    assert refused(metadata={pair: 1}).path == "metadata"
    assert refused(metadata={"k": {pair: 1}}).path == "metadata.k"
    assert refused(tags=["t", pair]).path == "tags[1]"


@pytest.mark.parametrize(
    ("changed", "path", "word"),
    [
        ({"id": str(ID)}, "id", "UUID"),
        ({"id": None}, "id", "UUID"),
        ({"id": 7}, "id", "UUID"),
        ({"created_at": 1}, "created_at", "finite float"),
        ({"created_at": True}, "created_at", "finite float"),
        ({"created_at": None}, "created_at", "finite float"),
        ({"created_at": math.nan}, "created_at", "finite float"),
        ({"created_at": -math.inf}, "created_at", "finite float"),
        ({"created_at": Real(1.5)}, "created_at", "finite float"),
        ({"created_at": datetime(2025, 1, 1, tzinfo=UTC)}, "created_at", "finite float"),
        ({"tags": ("a",)}, "tags", "tuple"),
        ({"tags": None}, "tags", "NoneType"),
        ({"tags": "abc"}, "tags", "str"),
        ({"tags": ["a", 1]}, "tags[1]", "int"),
        ({"tags": ["a", None]}, "tags[1]", "NoneType"),
        ({"tags": [Text("a")]}, "tags[0]", "Text"),
        ({"metadata": None}, "metadata", "NoneType"),
        ({"metadata": [("k", 1)]}, "metadata", "list"),
        ({"metadata": OrderedDict(k=1)}, "metadata", "OrderedDict"),
    ],
    ids=repr,
)
def test_a_field_of_another_type_is_refused(changed, path, word) -> None:
    error = refused(**changed)
    assert error.path == path
    assert word in error.reason


@pytest.mark.parametrize("name", ItemFields._fields)
def test_an_item_without_a_field_is_refused(name) -> None:
    attributes = fields()._asdict()
    del attributes[name]
    with pytest.raises(UnrepresentableItem) as caught:
        check_item(SimpleNamespace(**attributes))
    assert caught.value.path == name
    assert caught.value.__context__ is None


def test_an_attribute_that_cannot_be_read_is_refused_without_its_text() -> None:
    class Broken:
        id = UUID(int=1)
        created_at = 1.0
        content = None
        tags: ClassVar[list[str]] = []

        @property
        def metadata(self):
            raise ValueError("secret")

    with pytest.raises(UnrepresentableItem) as caught:
        check_item(Broken())
    assert caught.value.path == "metadata"
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_named_tuple_with_a_further_field_is_refused() -> None:
    six = NamedTuple("six", [*((name, object) for name in ItemFields._fields), ("score", float)])
    with pytest.raises(UnrepresentableItem) as caught:
        check_item(six(*fields(), 0.5))
    assert caught.value.path == "score"


def test_fields_that_come_as_extras_of_a_model_are_fields() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    given = fields()
    assert check_item(Open(**given._asdict())) == given


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_document_with_what_is_no_json_number_is_malformed(value) -> None:
    document = encode_document(fields())
    damaged = document.replace('"created_at":', f'"created_at":{value},"was":')
    with pytest.raises(ValueError, match="not an item document"):
        decode_document(damaged)


class Scored(MemoryItem):
    score: float = 0.5


class Open(MemoryItem):
    model_config = ConfigDict(extra="allow")


@dataclass
class ScoredFields:
    score: float
    id: UUID = ID
    created_at: float = 0.0
    metadata: dict[str, object] | None = None
    content: object = None
    tags: list[str] | None = None


@pytest.mark.parametrize(
    "item",
    [Scored(), Open(score=0.5), ScoredFields(0.5, metadata={}, tags=[])],
    ids=lambda one: type(one).__name__,
)
def test_a_field_beyond_the_five_is_refused_since_it_would_be_lost(item) -> None:
    with pytest.raises(UnrepresentableItem) as caught:
        check_item(item)
    assert caught.value.path == "score"


def test_a_class_of_the_five_fields_is_accepted_whatever_else_it_can_do() -> None:
    class Host(MemoryItem):
        @property
        def words(self) -> list[str]:
            return str(self.content).split()

    assert check_item(Host(id=ID, content="two words")).content == "two words"
    assert check_item(Open(id=ID)).id == ID


def test_odd_keys_in_a_path_are_shortened_and_plain_ascii() -> None:
    error = refused(content={"k\x00\ud83d" + "y" * 500: {"z" * 41: [1, b""]}})
    assert error.path == "content['k\\x00\\ud83d" + "y" * 37 + "'…]['" + "z" * 40 + "'…][1]"
    assert len(refused(content={"é" * 40: {"é" * 40: b""}}).path) <= 200


plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
keys = plain | st.text(max_size=4)
# a dict with a bad key is itself what is pointed at
bad = st.sampled_from(
    [value for value, _ in BAD_VALUES.values()]
    + [{"k": 1, bad_key: 2} for bad_key in (1, None, "\ud83d\ude00")]
)


@st.composite
def spoilt(draw):
    """Hide one bad value among good ones; give it with the path that must be reported."""
    value = draw(bad)
    path = ""
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            before, after = draw(st.lists(values, max_size=3)), draw(st.lists(values, max_size=3))
            path = f"[{len(before)}]{path}"
            value = [*before, value, *after]
        else:
            key = draw(keys)
            others = draw(
                st.dictionaries(keys.filter(lambda other, key=key: other != key), values, max_size=3)
            )
            entries = draw(st.permutations([(key, value), *others.items()]))
            is_plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key)
            path = (f".{key}" if is_plain else f"[{key!a}]") + path
            value = dict(entries)
    return value, path


@steady
@given(spoilt())
def test_the_path_points_at_the_bad_value_wherever_it_is(found) -> None:
    value, path = found
    assert refused(content=value).path == f"content{path}"
    assert refused(metadata={"k": value}).path == f"metadata.k{path}"


# Reading what is damaged


DAMAGED = {
    "empty": "",
    "null": "null",
    "list": "[]",
    "text": '"secret"',
    "cut": "{secret",
    "empty object": "{}",
    "id is no UUID": '{"id": "secret", "created_at": 0.0, "metadata": {}, "content": null, "tags": []}',
    "id is a number": '{"id": 7, "created_at": 0.0, "metadata": {}, "content": null, "tags": []}',
    "time is an int": f'{{"id": "{ID}", "created_at": 0, "metadata": {{}}, "content": null, "tags": []}}',
    "metadata is a list": f'{{"id": "{ID}", "created_at": 0.0, "metadata": [], "content": 1, "tags": []}}',
    "tags is a text": f'{{"id": "{ID}", "created_at": 0.0, "metadata": {{}}, "content": 1, "tags": "secret"}}',
    "no content": f'{{"id": "{ID}", "created_at": 0.0, "metadata": {{}}, "tags": []}}',
    "too deep": "[" * 100_000,
    "too many digits": '{"id": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("document", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_document_is_a_value_error_that_shows_nothing(document) -> None:
    with pytest.raises(ValueError, match="not an item document") as caught:
        decode_document(document)
    assert type(caught.value) is ValueError
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "text", ["", "secret", "[1,", "[" * 100_000], ids=["empty", "word", "cut", "too deep"]
)
def test_a_damaged_value_is_a_value_error_that_shows_nothing(text) -> None:
    with pytest.raises(ValueError, match="not a JSON value") as caught:
        decode_value(text)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


# Equality in value and type

DIFFERENT = [
    (1, 1.0),
    (1, True),
    (0, False),
    (0.0, -0.0),
    (0, None),
    ("1", 1),
    ("", None),
    ([], {}),
    ([1], [1, 2]),
    ([1], [1.0]),
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ([[-0.0]], [[0.0]]),
    ("é", "e\u0301"),
    (2**53, 2**53 + 1),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_values_that_differ_are_told_apart(one, other) -> None:
    assert not same_value(one, other)
    assert not same_value(other, one)
    assert not same_value({"k": [one]}, {"k": [other]})


@steady
@given(values)
def test_a_value_is_the_same_as_its_exact_copy(value) -> None:
    assert same_value(decode_value(encode_value(value)), value)


def test_fields_are_compared_one_by_one() -> None:
    item = fields(metadata={"k": 1}, content="c", tags=["t"])
    assert same_fields(item, SimpleNamespace(**item._asdict()))
    for changed in (
        {"id": UUID(int=8)},
        {"created_at": -0.0},
        {"metadata": {"k": 1.0}},
        {"content": "C"},
        {"tags": ["t", "t"]},
    ):
        assert not same_fields(item, item._replace(**changed))


@pytest.mark.parametrize("name", ItemFields._fields)
def test_what_lacks_a_field_is_not_the_same(name) -> None:
    attributes = fields()._asdict()
    del attributes[name]
    assert not same_fields(fields(), SimpleNamespace(**attributes))
    assert not same_fields(SimpleNamespace(**attributes), fields())
