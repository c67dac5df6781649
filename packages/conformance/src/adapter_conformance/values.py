"""Edge values, chosen by the fault that each one uncovers."""

from typing import Any, cast

from adapter_core import AnyOf


def _nested(depth: int) -> Any:
    value: Any = "the bottom"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


CONTENTS: dict[str, Any] = {
    "null": None,
    "empty text": "",
    "empty list": [],
    "empty dict": {},
    "falsy values": [0, False, "", None, [], {}],
    "one, as four types": [1, 1.0, True, "1"],
    "negative zero": {"z": -0.0, "one": 1.0},
    "big floats": [1e22, 2.561422288066971e16, 1e308, 5e-324],
    "big integers": [2**53 + 1, 2**63, -(2**63) - 1, 10**40],
    "NUL": {"q": "weather \x00 in nyc", "k\x00": "v"},
    "written escapes": ["\\u0000", "\\\\u0000", "\\n"],
    "lone surrogates": ["cut \ud83d", "\udce9"],
    "composed and decomposed": ["é", "e\u0301"],
    "spaces kept": [" lead", "trail ", "\t\n"],
    "looks like JSON": ['{"a": 1}', "null", "[1, 2"],
    "key order": {"b": 1, "a": 2, "B": 3},
    "deep": _nested(64),
    "emoji": "😀 party 👩\u200d👩\u200d👧",
}

METADATA: dict[str, dict[str, Any]] = {
    "falsy values": {"n": 0, "f": False, "s": "", "none": None, "l": [], "d": {}},
    "reserved names": {
        "id": "42",
        "content": "lol",
        "tags": "x",
        "created_at": 0,
        "_id": 1,
        "$": 1,
        "__vector_score": 9,
    },
    "numbers": {"a": 2**53 + 1, "b": 2**63, "c": 10**40, "d": -0.0, "e": 1e22, "f": 5e-324},
    "types": {"i": 1, "f": 1.0, "b": True, "s": "1"},
    "nested": {"m": {"k": [1, {"z": None}]}},
    "odd keys": {"": 1, "a:b": "c", "a": "b:c", "K": 1, "k": 2, "k\x00": 3, "é": 4},
    "order": {"z": 1, "y": 2, "x": 3},
}

TAGS: dict[str, list[str]] = {
    "none": [],
    "kept as they are": ["customer,priority", "a|b", "x;y", " lead", "{curly}", "dup", "dup", ""],
    "case": ["Alpha", "alpha"],
    "unicode": ["é", "e\u0301", "😀", "\udce9", "nul\x00"],
    "order": ["z", "a", "m"],
}

TIMES: dict[str, float] = {
    "microseconds": 1735689600.123456,
    "more digits": 1512060373.2229881,
    "zero": 0.0,
    "before 1970": -1.5,
    "far": 253402300800.5,
}

FILTER_VALUES: tuple[Any, ...] = (
    True,
    1,
    1.0,
    "1",
    "true",
    0,
    False,
    0.75,
    None,
    "",
    "O'Brien",
    "x} | @user_id:{bob",
    "*",
    "a b",
    "550e8400-e29b-41d4-a716-446655440000",
    "naïve",
    "\x00",
    2**64,
    2**64 - 1,
    10**40,
    -0.0,
)
"""Scalars that are stored under one key each, and asked for in turn."""

BAD_FILTER_VALUES: tuple[Any, ...] = (
    [1, 2],
    [],
    {},
    {"$gte": 10},
    (1,),
    float("nan"),
    float("inf"),
    b"x",
    AnyOf(cast("int", [1])),  # what a caller without a type checker may write
)


def equal_scalars(one: Any, other: Any) -> bool:
    """Whether a filter on the one value matches the other: typed, numbers by value."""
    numbers = (int, float)
    if type(one) in numbers and type(other) in numbers:
        return bool(one == other)
    return type(one) is type(other) and bool(one == other)
