"""Items as points: ids, payload, vectors, and the conditions that searches use.

A point holds the item twice over: `item` and `item_tags` are exact JSON texts, and all that is ever
read back; every other field is derived from them, and only compared.
"""

import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard
from uuid import UUID, uuid5

from adapter_core import (
    Criteria,
    ItemFields,
    Record,
    content_strings,
    decode_document,
    decode_value,
    encode_document,
    encode_value,
    term_weights,
)

from .transport import Filter, Found, IndexKind, Sparse

ITEM = "adapter-qdrant/item"
"""What `record` says of a point that is an item."""
NAMESPACE = "adapter-qdrant/namespace"
"""What `record` says of the point that remembers how a namespace is indexed."""

FIELDS: Mapping[str, IndexKind] = {
    "namespace": "tenant",
    "record": "keyword",
    "tags": "keyword",
    "facets": "keyword",
    "terms": "keyword",
    "created_at": "float",
    "indexed_as": "keyword",
    "stamp": "integer",
}
"""The payload fields that conditions and orders use, each of which is indexed."""

TERMS_VECTOR = "terms"
"""The name of the sparse vector that terms are ranked by."""

_SPACE = UUID("7d7a1a52-6f0b-5f43-9d5e-0c0a4f8f3a11")  # drawn once, for the ids of points
_HEAD = re.compile(r'\{"id":"([0-9a-f-]{36})","created_at":([^,]+),')


class Document(NamedTuple):
    """An item as a point holds it.

    Attributes:
        item: The item without its tags, as exact JSON.
        tags: Its tags, as exact JSON; None for a search hit, which carries none.
        text: What an embedder reads of it; None where there is none, or it is not needed.
    """

    item: str
    tags: str | None = None
    text: str | None = None

    def __repr__(self) -> str:
        """Show nothing of the contents."""
        return "Document()"


def packed(item: ItemFields, *, with_text: bool) -> Document:
    """Write a checked item as a point holds it."""
    text = "\n".join(content_strings(item.content)) if with_text else None
    return Document(encode_document(item._replace(tags=[])), encode_value(item.tags), text or None)


def unpacked(document: Document) -> ItemFields:
    """Read an item from a point, or from a hit, which has no tags.

    Raises:
        ValueError: It is malformed. The message does not show it.
    """
    fields = decode_document(document.item)
    if document.tags is None:
        return fields
    tags = decode_value(document.tags)
    if not is_list(tags) or not all(type(tag) is str for tag in tags):
        raise ValueError("not the tags of an item")
    return fields._replace(tags=tags)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return type(value) is list


def document_of(payload: Mapping[str, Any], *, with_tags: bool) -> Document:
    """Take the exact texts out of a payload; what is missing gives a document that cannot be read."""
    item, tags = payload.get("item"), payload.get("item_tags")
    return Document(
        item if isinstance(item, str) else "", (tags if isinstance(tags, str) else "") if with_tags else None
    )


def head(document: Document) -> tuple[UUID, float]:
    """Read the item's id and time without the rest.

    Raises:
        ValueError: It is malformed. The message does not show it.
    """
    found = _HEAD.match(document.item)
    if found is None:
        raise ValueError("not an item document")
    return UUID(found[1]), float(found[2])


# Ids


def point_id(namespace: str, item_id: UUID) -> UUID:
    """Give the id of the point that holds an item.

    Args:
        namespace: Its token.
        item_id: Any UUID. It always takes 36 characters, so no two pairs give the same text.
    """
    return uuid5(_SPACE, f"item {item_id} {namespace}")


def namespace_id(namespace: str) -> UUID:
    """Give the id of the point that remembers how a namespace is indexed."""
    return uuid5(_SPACE, f"namespace {namespace}")


def stamp(document: Document) -> int:
    """Number what a point holds: another text, another number, but for a chance of one in 2**63."""
    digest = hashlib.blake2b(document.item.encode("ascii"), digest_size=8)
    digest.update(b"\n" + (document.tags or "").encode("ascii"))
    return int.from_bytes(digest.digest(), "big") >> 1


# Payload and vectors


def payload(namespace: str, indexed_as: str, record: Record[Document]) -> dict[str, Any]:
    """Give the payload of an item's point."""
    return {
        "namespace": namespace,
        "record": ITEM,
        "item": record.document.item,
        "item_tags": record.document.tags,
        "created_at": record.created_at,
        "tags": list(record.tags),
        "facets": list(record.facets),
        "terms": list(record.terms),
        "indexed_as": indexed_as,
        "stamp": stamp(record.document),
    }


def term_vector(terms: Mapping[str, int]) -> Sparse:
    """Weigh the terms of an item; the server multiplies each weight by the term's rarity.

    Two terms that share an index are taken for one when hits are ranked, never when they are selected.
    """
    weights: dict[int, float] = {}
    for term, weight in term_weights(terms).items():
        index = term_index(term)
        weights[index] = weights.get(index, 0.0) + weight
    return Sparse(list(weights), list(weights.values()))


def asked_vector(terms: Iterable[str]) -> Sparse:
    """Ask for terms, each as much as the others."""
    indices = list(dict.fromkeys(map(term_index, terms)))
    return Sparse(indices, [1.0] * len(indices))


def term_index(term: str) -> int:
    """Give the place of a term in sparse vectors: 32 bits, the same everywhere and for ever."""
    return zlib.crc32(term.encode("ascii"))


def dense_name(dimension: int) -> str:
    """Give the name of the dense vectors of a dimension; a collection may have several."""
    return f"dense-{dimension}"


# Conditions


def equals(key: str, value: str | int) -> dict[str, Any]:
    """Say that a field has a value, or that its list contains it."""
    return {"key": key, "match": {"value": value}}


def any_of(key: str, values: Sequence[str] | Sequence[int]) -> dict[str, Any]:
    """Say that a field has one of some values."""
    return equals(key, values[0]) if len(values) == 1 else {"key": key, "match": {"any": list(values)}}


def is_empty(key: str) -> dict[str, Any]:
    """Say that a field has no value."""
    return {"is_empty": {"key": key}}


def between(after: float, before: float) -> list[dict[str, Any]]:
    """Say that `created_at` is within inclusive bounds; infinite ones say nothing."""
    bounds = {"gte": after, "lte": before}
    given = {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    return [{"key": "created_at", "range": given}] if given else []


def items_of(namespace: str) -> list[dict[str, Any]]:
    """Say that a point is an item of a namespace."""
    return [equals("namespace", namespace), equals("record", ITEM)]


def with_ids(ids: Sequence[UUID]) -> dict[str, Any]:
    """Say that a point has one of some ids."""
    return {"has_id": list(map(str, ids))}


def all_of(*conditions: Mapping[str, Any]) -> Filter:
    """Ask for all of some conditions."""
    return {"must": list(conditions)}


def conditions(namespace: str, criteria: Criteria, *, by_terms: bool) -> list[dict[str, Any]]:
    """Say what the criteria ask for, but for the order and the limit."""
    found = items_of(namespace)
    if criteria.tags:
        found.append(any_of("tags", criteria.tags))
    found += [any_of("facets", group) for group in criteria.facets]
    if by_terms:
        found += [equals("terms", term) for term in criteria.terms]
    found += between(criteria.created_after, criteria.created_before)
    return found


def is_item(found: Found, namespace: str) -> bool:
    """Whether a point is an item of a namespace; one under an item's id that is not is foreign."""
    return found.payload.get("record") == ITEM and found.payload.get("namespace") == namespace
