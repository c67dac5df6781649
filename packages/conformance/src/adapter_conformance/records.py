"""The records of a user's file of JSON lines, as items and without a store.

A line is an object with some of the keys `id`, `created_at`, `metadata`, `content` and `tags`. What the
values are is not judged here: that is for a store's check, which names the path of what it refuses.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from uuid import UUID

from pydantic import ValidationError

from adapter_core import MAX_INT_DIGITS, ItemFields, MemoryItem

from .session import printable

LONGEST_LINE = 64 * 2**20
"""How many bytes a line may have."""

LONGEST_SKIPPED = 2**30
"""How many bytes of a longer one are passed over: more than any store takes in a document."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXPECTED = {"id": "id is not a UUID", "created_at": "created_at is not a time in ISO 8601"}


@dataclass(frozen=True)
class GivenRecord:
    """One record of the file.

    Attributes:
        line: Where it stands, from 1.
        id: The id as it was given; empty if there was none.
        fields: The item that it makes. Its values are not checked.
        names: The fields that were given. The others have defaults.
    """

    line: int
    id: str
    fields: ItemFields
    names: tuple[str, ...]


@dataclass(frozen=True)
class UnreadableLine:
    """A line that makes no item, and why."""

    line: int
    reason: str


class RepeatedKey(ValueError):
    """A key occurs twice in one JSON object."""


class EndlessLine(Exception):
    """A line goes on and on; what follows it was not read."""


class _Unreadable(Exception):
    pass


def read_records(stream: BinaryIO) -> Iterator[GivenRecord | UnreadableLine]:
    """Read the records of JSON lines, one line at a time. Blank lines are passed over.

    Raises:
        EndlessLine: There is no end of a line within `LONGEST_SKIPPED` bytes.
    """
    for number, line in enumerate(_lines(stream), start=1):
        if line is None:
            yield UnreadableLine(number, f"longer than {LONGEST_LINE} bytes")
            continue
        text = line.removeprefix(_BYTE_ORDER_MARK if number == 1 else b"").strip()
        if not text:
            continue
        try:
            yield _record(number, _object(text))
        except _Unreadable as bad:
            yield UnreadableLine(number, str(bad))


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Give each line, and None for one that is too long."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        passed = len(line)
        while line and not line.endswith(b"\n"):
            if passed > LONGEST_SKIPPED:
                raise EndlessLine(f"a line of it is longer than {LONGEST_SKIPPED} bytes")
            line = stream.readline(LONGEST_LINE)
            passed += len(line)
        yield None


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = _decoded(line.decode("utf-8"))
    except RepeatedKey as error:
        raise _Unreadable(str(error)) from None
    except UnicodeDecodeError as error:
        raise _Unreadable(f"not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise _Unreadable(f"not JSON: {error.msg}, column {error.colno}") from None
    except RecursionError:
        raise _Unreadable("nested too deeply to be read") from None
    if not isinstance(found, dict):
        raise _Unreadable("not a JSON object")
    return cast("dict[str, Any]", found)


def _decoded(text: str) -> Any:
    try:
        return _decode(text)
    except (json.JSONDecodeError, RepeatedKey):
        raise
    except ValueError:  # of int(): it has too many digits
        return _decode_any_int(text)


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, for `object_pairs_hook`; json would keep the last of a key in silence.

    Raises:
        RepeatedKey: Naming the first key that occurs twice, shortened.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                raise RepeatedKey(f"the key {named(key)} occurs twice in one object")
            seen.add(key)
    return made


def _any_int(text: str) -> int:
    """Read an integer; in place of one that is too long stands another that no store takes."""
    try:
        number = int(text)
    except ValueError:
        number = pow(10, MAX_INT_DIGITS)
    return number


_decode: Callable[[str], Any] = json.JSONDecoder(object_pairs_hook=unrepeated).decode
_decode_any_int: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=unrepeated, parse_int=_any_int
).decode


def _record(line: int, given: dict[str, Any]) -> GivenRecord:
    if unknown := [key for key in given if key not in ItemFields._fields]:
        known = ", ".join(ItemFields._fields)
        raise _Unreadable(f"unknown key {', '.join(map(named, unknown[:3]))} (known: {known})")
    # a record without them gets both when it is stored; here they are the same in every run
    values: dict[str, Any] = {"id": UUID(int=line), "created_at": 0.0, "metadata": {}, "content": None}
    values |= {"tags": list[str](), **given, **_from_text(given)}
    if type(values["created_at"]) is int:
        values["created_at"] = _exact_float(values["created_at"])
    text = given["id"] if isinstance(given.get("id"), str) else ""
    return GivenRecord(line, text, ItemFields(**values), tuple(given))


def _from_text(given: dict[str, Any]) -> dict[str, Any]:
    """Read an id and a time that are given as text, as `MemoryItem` does."""
    texts = {name: given[name] for name in _EXPECTED if isinstance(given.get(name), str)}
    if not texts:
        return {}
    try:
        item = MemoryItem(**texts)
    except ValidationError as error:
        raise _Unreadable(_EXPECTED[str(error.errors()[0]["loc"][0])]) from None
    return {name: getattr(item, name) for name in texts}


def _exact_float(number: int) -> int | float:
    """Give an integer as the float that equals it; else as it is, which no store takes."""
    try:
        return float(number) if float(number) == number else number
    except OverflowError:
        return number


def named(key: str, most: int = 40) -> str:
    """Show a key of the user's, shortened."""
    return printable(json.dumps(key if len(key) <= most else key[:most] + "…", ensure_ascii=False))
