import math
import re
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter_core import (
    MAX_TOKEN_BYTES,
    ItemFields,
    facet_token,
    index_tokens,
    is_scalar,
    namespace_token,
    same_value,
    tag_token,
    term_token,
)
from adapter_core._terms import MAX_TERMS, content_terms
from adapter_core._tokens import term_tokens

steady = settings(derandomize=True, deadline=None, max_examples=300)

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=12) | st.text(
    "a_:\x00éE0 -.", max_size=60
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-300, 300),
    st.integers(),
    st.integers(-(10**200), 10**200),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-300, 300).map(float),
    texts,
)


def tokens(kind, key, value) -> str:
    if kind == "facet":
        return facet_token(key, value)
    return {"tag": tag_token, "term": term_token, "namespace": namespace_token}[kind](key)


tokened = st.one_of(
    st.tuples(st.sampled_from(["tag", "term", "namespace"]), texts, st.none()),
    st.tuples(st.just("facet"), texts, scalars),
)


def value_class(value) -> str:
    """Of which kind a filter takes a value to be: 1 and 1.0 are of one kind, True is of another."""
    return "number" if type(value) in (int, float) else type(value).__name__


def is_match(one, other) -> bool:
    return value_class(one) == value_class(other) and one == other


@steady
@given(tokened, tokened)
def test_two_things_have_one_token_only_if_a_search_takes_them_for_one(one, other) -> None:
    same = one[:2] == other[:2] and (one[0] != "facet" or is_match(one[2], other[2]))
    assert (tokens(*one) == tokens(*other)) == same


@steady
@given(texts, scalars, scalars)
@example("k", 1, 1.0)
@example("k", True, 1)
@example("k", -0.0, 0)
@example("k", 2**53, float(2**53))
@example("k", 2**53 + 1, float(2**53))
@example("k", 10**300, 1e300)
@example("k", int(1e300), 1e300)
def test_facets_are_equal_exactly_when_a_filter_matches(key, one, other) -> None:
    assert (facet_token(key, one) == facet_token(key, other)) == is_match(one, other)


@steady
@given(tokened)
def test_every_token_is_short_plain_ascii(one) -> None:
    token = tokens(*one)
    assert re.fullmatch("[a-z0-9_]+", token)
    assert len(token) <= MAX_TOKEN_BYTES == 100
    assert token[0] == {"tag": "t", "term": "w", "namespace": "n", "facet": "f"}[one[0]]


DISTINCT = [
    *[None, True, False, "", "None", "True", "true", "1", "1.0", "-0.0", "0", "null", "a", "A", "\uff41"],
    *[0, 1, -1, 255, -255, 0.5, -0.5, 1.5, 5e-324, -5e-324, 1.7976931348623157e308, 1e22 + 2**22],
    *[2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**40, 10**4299, 10**4299 + 1],
    *["é", "e\u0301", "\x00", "a\x00", " ", "a ", "\ud83d", "\udce9", "_", "__", "_61", "%", "*", "'", '"'],
    *["x" * 99, "x" * 100, "x" * 101, "x" * 1000, "X" * 1000, "_i1", "_h", "i1", "m1", "ff", "-ff"],
]


def test_facets_of_distinct_values_are_distinct() -> None:
    seen = {facet_token("k", value): value for value in DISTINCT}
    assert len(seen) == len(DISTINCT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (0.0, -0.0),
        (-255, -255.0),
        (10**22, 1e22),
        (2**53, 9007199254740992.0),
        (int(1.7976931348623157e308), 1.7976931348623157e308),
    ],
    ids=repr,
)
def test_equal_numbers_have_one_facet(one, other) -> None:
    assert facet_token("k", one) == facet_token("k", other)


AMBIGUOUS = [
    (("a:b", "c"), ("a", "b:c")),
    (("a_s", "b"), ("a", "_sb")),
    (("a", "_sb"), ("a_s", "b")),
    (("", "a"), ("a", "")),
    (("k_i1", None), ("k", 1)),
    (("k", "_n"), ("k_s", None)),
    (("a\x00", "b"), ("a", "\x00b")),
    (("K", 1), ("k", 1)),
    (("k_5f", 1), ("k_", 1)),
    (("é", 1), ("e\u0301", 1)),
    (("a=1", 2), ("a", "1=2")),
    (("x" * 90, "y" * 90), ("x" * 90 + "y", "y" * 89)),
]


@pytest.mark.parametrize(("one", "other"), AMBIGUOUS, ids=ascii)
def test_no_delimiter_can_shift_between_key_and_value(one, other) -> None:
    assert facet_token(*one) != facet_token(*other)


LITERALS = [
    (tag_token("work"), "twork"),
    (tag_token(""), "t"),
    (tag_token("Customer, priority"), "t_43ustomer_2c_20priority"),
    (tag_token("é"), "t_c3_a9"),
    (tag_token("\ud83d"), "t_ed_a0_bd"),
    (term_token("50"), "w50"),
    (namespace_token("default"), "ndefault"),
    (facet_token("kind", "fact"), "fkind_sfact"),
    (facet_token("n", 255), "fn_iff"),
    (facet_token("n", -255.0), "fn_i_mff"),
    (facet_token("n", -0.0), "fn_i0"),
    (facet_token("n", 0.5), "fn_r0x1_2e0000000000000p_2d1"),
    (facet_token("n", True), "fn_t"),
    (facet_token("n", False), "fn_u"),
    (facet_token("n", None), "fn_n"),
    (facet_token("n", ""), "fn_s"),
    (tag_token("a" * 99), "t" + "a" * 99),
    (tag_token("a" * 100), "t_h" + "b78f37fcb6b82b4a76496446d1d33e04c0996d6c9bd84f6f9754288620dd7069"),
]


@pytest.mark.parametrize(("token", "literal"), LITERALS, ids=[literal[:40] for _, literal in LITERALS])
def test_tokens_never_change(token, literal) -> None:
    # they are in the indexes of stored data
    assert token == literal


@pytest.mark.parametrize("make", [tag_token, term_token, namespace_token, lambda text: facet_token(text, 1)])
def test_a_long_token_becomes_its_hash_and_stays_distinct(make) -> None:
    one, other = make("é" * 500), make("é" * 501)
    assert re.fullmatch("[twnf]_h[0-9a-f]{64}", one)
    assert one != other
    assert one == make("é" * 500)
    assert make(one) != one


@pytest.mark.parametrize("value", [[], {}, (1,), b"x", 1j, object()], ids=lambda value: type(value).__name__)
def test_what_is_no_scalar_has_no_facet(value) -> None:
    assert not is_scalar(value)
    with pytest.raises(TypeError, match=type(value).__name__):
        facet_token("k", value)


def test_scalars_are_of_the_exact_types() -> None:
    assert all(map(is_scalar, [None, True, 1, 1.5, math.inf, "x"]))
    assert not is_scalar(type("Text", (str,), {})("x"))


def test_an_item_is_indexed_by_distinct_tags_top_level_scalars_and_counted_terms() -> None:
    item = ItemFields(
        id=None,
        created_at=0.0,
        metadata={"kind": "fact", "n": 1.0, "none": None, "list": ["x"], "dict": {"kind": "y"}, "empty": ""},
        content={"key": "tea, green tea", "more": ["Milk"]},
        tags=["b", "a", "b", "B", ""],
    )
    tags, facets, terms = index_tokens(item)
    assert tags == ("tb", "ta", "t_42", "t")
    assert facets == ("fkind_sfact", "fn_i1", "fnone_n", "fempty_s")
    assert dict(terms) == {"wtea": 2, "wgreen": 1, "wmilk": 1}
    assert same_value(item.metadata["n"], 1.0)


@pytest.mark.parametrize(
    "content",
    [
        *(
            None,
            7,
            True,
            "",
            "  \x00\x7f\r\n",
            [],
            {"key": "value"},
            {"a": "x", "b": ["X y", {"c": "x"}, 3, None]},
        ),
        *("one two One", "a+b c", ["plain", "c+d"], ["plain", "caf\u00e9"], ["a", "b", "a b"]),
        *(["a" * 99 + " a", "b"], "a" * 99, "a" * 100, "a" * 101, "b " + "c" * 300),
        *(
            " ".join(f"w{n}" for n in range(count)) + " w0 w0"
            for count in (MAX_TERMS - 2, MAX_TERMS, MAX_TERMS + 1)
        ),
    ],
    ids=lambda content: f"{len(ascii(content))}-{ascii(content)[:20]}",
)
def test_plain_contents_have_the_tokens_that_cutting_them_one_by_one_gives(content) -> None:
    _, _, terms = index_tokens(ItemFields(UUID(int=1), 0.0, {}, content, []))
    assert list(terms.items()) == list(term_tokens(content_terms(content)).items())
