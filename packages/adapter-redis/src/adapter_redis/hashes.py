"""Items as native hashes, which any client of Redis can read.

A hash has `id`, `created_at`, `content`, `tags`, and a field `metadata.KEY` for each top-level key of
metadata. `content` and `tags` are JSON. A value of metadata that is a str is the field as it is; any
other value is there as its JSON text, and comes back as that text (the loss `metadata-values-as-text`).
`keys` keeps the order of two or more keys, since a hash of Redis has none.

Text is UTF-8. Two kinds of str are written as `json:` and their JSON instead: one that UTF-8 cannot
express (a lone surrogate), and one that itself begins with `json:`.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from adapter_core import ItemFields, Loss, Projection, decode_value, encode_value

Document = Sequence[str]
"""An item's hash as Redis lists it: the name of a field, its value, the next name, and so on."""

_METADATA = "metadata."
_ESCAPE = "json:"

_write: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def pack(item: ItemFields) -> Document:
    """Write a checked item as the fields of its hash."""
    metadata = item.metadata
    fields = [
        "id", str(item.id),
        "created_at", repr(stored_time(item.created_at)),
        "content", json_text(item.content),
        "tags", json_text(item.tags),
    ]  # fmt: skip
    for key, value in metadata.items():
        fields.append(_METADATA + _text(key))
        fields.append(_text(value if type(value) is str else json_text(value)))
    if len(metadata) > 1:
        fields += ("keys", json_text(list(metadata)))
    return fields


def unpack(document: Document) -> ItemFields:
    """Read what is in a hash.

    Raises:
        ValueError: It is no item. The message does not show it.
    """
    fields = dict(zip(document[::2], document[1::2], strict=True))
    try:
        item = ItemFields(
            UUID(fields["id"]),
            float(fields["created_at"]),
            _metadata(fields),
            decode_value(fields["content"]),
            decode_value(fields["tags"]),
        )
    except KeyError as error:
        reason = f"no {error.args[0]}"
    except ValueError as error:
        reason = type(error).__name__
    else:
        if math.isfinite(item.created_at) and _is_texts(item.tags):
            return item
        reason = "wrong types"
    # raised outside the handler: a native message may hold the text
    raise ValueError(f"not the hash of an item ({reason})")


def json_text(value: Any) -> str:
    """Write a checked value as JSON that people can read, exactly."""
    text = _write(value)
    return text if text.isascii() or _is_utf8(text) else encode_value(value)


def stored_time(created_at: float) -> float:
    """Give `created_at` as it is kept: in milliseconds."""
    return round(created_at, 3)


def field_of(document: Document, name: str) -> str:
    """Give the value of one field; empty if it is not there."""
    for position in range(0, len(document), 2):
        if document[position] == name:
            return document[position + 1]
    return ""


def _metadata(fields: dict[str, str]) -> dict[str, Any]:
    cut = len(_METADATA)
    found = {
        _plain(name[cut:]): _plain(value) for name, value in fields.items() if name.startswith(_METADATA)
    }
    if len(found) < 2:
        return found
    order: Any = decode_value(fields.get("keys", "[]"))
    if not _is_texts(order):
        raise ValueError("keys")
    # what another client added comes last
    return {key: found[key] for key in dict.fromkeys((*order, *sorted(found))) if key in found}


def _text(value: str) -> str:
    if value.startswith(_ESCAPE) or not (value.isascii() or _is_utf8(value)):
        return _ESCAPE + encode_value(value)
    return value


def _plain(text: str) -> str:
    if not text.startswith(_ESCAPE):
        return text
    value: Any = decode_value(text[len(_ESCAPE) :])
    if type(value) is not str:
        raise ValueError("escape")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(one) is str for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


# What is declared: the same, said a second time, so that the two can disagree.


def _as_it_comes_back(item: ItemFields) -> ItemFields:
    metadata = {
        key: value if type(value) is str else json_text(value) for key, value in item.metadata.items()
    }
    return item._replace(created_at=round(item.created_at, 3), metadata=metadata)


PROJECTION = Projection(
    retrieve=_as_it_comes_back,
    search=_as_it_comes_back,
    losses=(
        Loss(
            "created-at-milliseconds",
            "created_at",
            "retrieve",
            "Rounded to three decimals when stored; ranges and order compare the rounded value.",
            ItemFields(UUID(int=1), 1735689600.123456, {}, "a memory", ["a tag"]),
        ),
        Loss(
            "metadata-values-as-text",
            "metadata",
            "retrieve",
            "A value of metadata that is no str comes back as its JSON text; filters compare the value itself.",
            ItemFields(UUID(int=2), 1735689600.0, {"score": 0.5, "read": True}, "a memory", []),
        ),
    ),
)
"""What Redis does to an item."""
