"""Values: exact or refused.

An item is checked once, before any I/O, and written as one ASCII-escaped JSON text. That text is
what is read back. Python's own `json` is used because it is exact where faster ones are not: it
keeps big integers, negative zero and lone surrogates.
"""

# Values are of any type here, so their classes are too.
# pyright: reportUnknownVariableType=false

import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from ._errors import UnrepresentableItem
from ._items import ItemFields, ItemLike, MemoryItem

MAX_DEPTH = 200
"""How deep lists and dicts may nest."""

MAX_INT_DIGITS = 4300
"""How many digits an integer may have: Python's default limit for reading one from text."""

_MAX_INT_BITS = 2100  # any int of so few bits has fewer digits than the least limit of Python, 640
_FIELDS = frozenset(ItemFields._fields)
_JOINABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")

_encode: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _decode(text: str) -> Any:
    # what we wrote has no white space around it; `decode` looks for some each time
    value, end = _DECODER.raw_decode(text)
    return value if end == len(text) else _DECODER.decode(text)


def encode_document(item: ItemFields) -> str:
    """Write a checked item as one ASCII JSON object, exactly."""
    return _encode(
        {
            "id": str(item.id),
            "created_at": item.created_at,
            "metadata": item.metadata,
            "content": item.content,
            "tags": item.tags,
        }
    )


def decode_document(document: str) -> ItemFields:
    """Read what `encode_document` wrote.

    Raises:
        ValueError: The text is not such a document. The message does not show it.
    """
    try:
        raw = _decode(document)
        fields = ItemFields(UUID(raw["id"]), raw["created_at"], raw["metadata"], raw["content"], raw["tags"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = type(error).__name__
    else:
        if (
            type(fields.created_at) is float
            and math.isfinite(fields.created_at)
            and type(fields.metadata) is dict
            and type(fields.tags) is list
        ):
            return fields
        reason = "wrong types"
    # raised outside the handler: json's error holds the document, and with it the contents
    raise ValueError(f"not an item document ({reason})")


def encode_value(value: Any) -> str:
    """Write one checked JSON value as ASCII JSON text, exactly."""
    return _encode(value)


def decode_value(text: str) -> Any:
    """Read what `encode_value` wrote.

    Raises:
        ValueError: The text is not JSON. The message does not show it.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError) as error:
        reason = type(error).__name__
    raise ValueError(f"not a JSON value ({reason})")


def check_item(item: ItemLike) -> ItemFields:
    """Read the five attributes of an item, and refuse what would not come back equal.

    `content` and the values of `metadata` hold None, bool, int (to 4,300 digits), finite float,
    str, list, and dict with str keys, of exactly these types, nested to 200 levels.

    Args:
        item: Any object with the five attributes. A pydantic model or a dataclass has no fields
            beyond them: they would be lost.

    Returns:
        The same values. Nothing is coerced or copied.

    Raises:
        UnrepresentableItem: With the path of the first value that is refused.
    """
    fields = _fields(item)
    _check_no_further_field(item)
    if type(fields.id) is not UUID:
        raise UnrepresentableItem("id", f"a UUID is needed, not {_kind(fields.id)}")
    if type(fields.created_at) is not float or not math.isfinite(fields.created_at):
        raise UnrepresentableItem("created_at", "a finite float is needed")
    if type(fields.tags) is not list:
        raise UnrepresentableItem("tags", f"a list is needed, not {_kind(fields.tags)}")
    _check_tags(fields.tags)
    if type(fields.metadata) is not dict:
        raise UnrepresentableItem("metadata", f"a dict is needed, not {_kind(fields.metadata)}")
    # metadata's own dict is not one of the levels of the values in it
    _check_value(fields.metadata, "metadata", MAX_DEPTH + 1)
    _check_value(fields.content, "content", MAX_DEPTH)
    return fields


def _check_tags(tags: list[Any]) -> None:
    for position, tag in enumerate(tags):
        if type(tag) is not str:
            raise UnrepresentableItem(f"tags[{position}]", f"a str is needed, not {_kind(tag)}")
        if not tag.isascii():
            _check_text(tag, _Path(position, _Path("tags", None)).text)


def _fields(item: Any) -> ItemFields:
    try:
        return ItemFields(item.id, item.created_at, item.metadata, item.content, item.tags)
    except Exception:  # noqa: BLE001, S110 - a property may raise anything; the one that does is named below
        pass
    # outside the handler: the native error may show contents
    return ItemFields(*(_attribute(item, name) for name in ItemFields._fields))


def _attribute(item: Any, name: str) -> Any:
    try:
        return getattr(item, name)
    except AttributeError:
        reason = f"{_kind(item)} has no such attribute"
    except Exception as error:  # noqa: BLE001 - a property may raise anything, contents in its text
        reason = f"it cannot be read ({type(error).__name__})"
    raise UnrepresentableItem(name, reason)


def _check_no_further_field(item: Any) -> None:
    """Refuse a pydantic model, dataclass or named tuple that has more than an item can hold."""
    kind: Any = type(item)
    if kind is MemoryItem or kind is ItemFields:
        return
    declared: Any = (
        getattr(kind, "__pydantic_fields__", None)
        or getattr(kind, "__dataclass_fields__", None)
        or getattr(kind, "_fields", ())
    )
    extra: Any = getattr(item, "__pydantic_extra__", None) or ()
    further = {*declared, *extra} - _FIELDS
    if further:
        raise UnrepresentableItem(min(further), "an item has five fields, and this is a further one")


class _Path:
    """Where a container stands: a chain to the root, written out only when something is refused."""

    __slots__ = ("key", "parent")

    def __init__(self, key: Any, parent: "_Path | None") -> None:
        self.key = key
        self.parent = parent

    def text(self) -> str:
        keys: list[Any] = []
        step: _Path | None = self
        while step is not None:
            keys.append(step.key)
            step = step.parent
        root, *rest = reversed(keys)
        return str(root) + "".join(_step(key) for key in rest)


def _step(key: Any) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    shown = ascii(key[:40])
    return f"[{shown}]" if len(key) <= 40 else f"[{shown}…]"


def _check_value(root: Any, name: str, depth_left: int) -> None:
    """Walk a value without recursion, so that a deep one is refused and not a stack overflow."""
    kind: type[Any] = type(root)
    if kind is not dict and kind is not list:
        _check_scalar(root, kind, name, None)
        return
    pending: list[tuple[Any, _Path, int]] = [(root, _Path(name, None), depth_left)]
    while pending:
        container, path, left = pending.pop()
        if left <= 0:
            raise UnrepresentableItem(_clip(path.text()), f"nested deeper than {MAX_DEPTH} levels")
        entries: Any
        kind = type(container)
        if kind is dict:
            _check_keys(container, path)
            entries = container.items()
        else:
            entries = enumerate(container)
        for key, value in entries:
            kind = type(value)
            if kind is dict or kind is list:
                pending.append((value, _Path(key, path), left - 1))
            elif kind is not str or not value.isascii():
                _check_scalar(value, kind, key, path)


def _check_keys(container: dict[Any, Any], path: _Path) -> None:
    for key in container:
        if type(key) is not str:
            raise UnrepresentableItem(_clip(path.text()), f"dict keys must be str, not {_kind(key)}")
        if not key.isascii():
            _check_text(key, path.text)


def _check_scalar(value: Any, kind: type[Any], key: Any, parent: _Path | None) -> None:
    if value is None or kind is bool:
        return
    if kind is float:
        if math.isfinite(value):
            return
        reason = "NaN and infinity are not JSON"
    elif kind is int:
        if value.bit_length() <= _MAX_INT_BITS or abs(value) < 10 ** _int_digits():
            return
        reason = f"an int of more than {_int_digits()} digits"
    elif kind is str:
        _check_text(value, lambda: _Path(key, parent).text())
        return
    else:
        reason = f"{_kind(value)} is not a JSON type, and nothing is coerced"
    raise UnrepresentableItem(_clip(_Path(key, parent).text()), reason)


def _int_digits() -> int:
    """Give how many digits can be written and read: a process may allow fewer than Python does."""
    return min(MAX_INT_DIGITS, sys.get_int_max_str_digits() or MAX_INT_DIGITS)


def _check_text(text: str, path: Callable[[], str]) -> None:
    if _JOINABLE.search(text):
        raise UnrepresentableItem(_clip(path()), "a high surrogate next to a low one: JSON would join them")


def _clip(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:120]}…{path[-60:]}"


def _kind(value: Any) -> str:
    kind: type[Any] = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def same_value(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal in value and in type, dict order and sign of zero too.

    `1` is not `1.0`, `True` is not `1`, `-0.0` is not `0.0`.
    """
    if one is other:
        return True
    kind: type[Any] = type(one)
    if kind is not type(other):
        return False
    if kind is float:
        return bool(one == other) and math.copysign(1.0, one) == math.copysign(1.0, other)
    if kind is list:
        return len(one) == len(other) and all(map(same_value, one, other))
    if kind is dict:
        return list(one) == list(other) and all(map(same_value, one.values(), other.values()))
    return bool(one == other)


def same_fields(one: ItemLike, other: ItemLike) -> bool:
    """Whether two items have exactly the same five fields. One that lacks a field has not."""
    return all(
        same_value(getattr(one, name, object()), getattr(other, name, object()))  # equal to nothing else
        for name in ItemFields._fields
    )
