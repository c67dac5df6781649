"""Four known gaps that the template can show, so that the conformance kit can be seen to find them.

Each is declared as an adapter with such a backend has to declare it. A full adapter needs none of
this: its manifest says `full`, and its projection is `EXACT`.
"""

from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from adapter_core import (
    EXACT,
    Fidelity,
    ItemFields,
    Loss,
    MemoryAdapterError,
    MemoryItemField,
    Projection,
    SearchConsistency,
    StoreOptions,
    decode_document,
    encode_document,
)

Gap = Literal["lossy", "dropping", "tagless", "eventual"]


class TemplateOptions(StoreOptions, total=False):
    """The options of the template's store, but for `item_type`. Without gaps: `StoreOptions`."""

    gap: Gap | None


@dataclass(frozen=True)
class Declared:
    """What the manifest and the projection say, where the template varies."""

    retrieve: Fidelity = "full"
    search: Fidelity = "full"
    dropped: frozenset[MemoryItemField] = frozenset()
    tags_in_search: bool = True
    consistency: SearchConsistency = "immediate"
    projection: Projection = EXACT

    @property
    def native(self) -> frozenset[MemoryItemField]:
        """Every field that is not dropped."""
        return frozenset(get_args(MemoryItemField)) - self.dropped


# What the driver does.


def kept(item: ItemFields, gap: Gap | None) -> ItemFields:
    """Give what the driver keeps of an item."""
    if gap == "lossy":
        return item._replace(created_at=round(item.created_at, 3))
    return item._replace(created_at=0.0) if gap == "dropping" else item


def shown(document: str, gap: Gap | None) -> str:
    """Give the document of a hit."""
    if gap != "tagless":
        return document
    return encode_document(decode_document(document)._replace(tags=[]))


# What is declared: the same, said a second time, so that the two can disagree.


def _to_milliseconds(item: ItemFields) -> ItemFields:
    return item._replace(created_at=round(item.created_at, 3))


def _undated(item: ItemFields) -> ItemFields:
    return item._replace(created_at=0.0)


def _untagged(item: ItemFields) -> ItemFields:
    return item._replace(tags=[])


_EXAMPLE = ItemFields(UUID(int=1), 1735689600.123456, {}, "a memory", ["a tag"])

_DECLARED: dict[Gap | None, Declared] = {
    None: Declared(),
    "lossy": Declared(
        retrieve="lossy",
        search="lossy",
        projection=Projection(
            retrieve=_to_milliseconds,
            search=_to_milliseconds,
            losses=(
                Loss(
                    "created-at-milliseconds",
                    "created_at",
                    "retrieve",
                    "Rounded to three decimals when stored; ranges and order compare the rounded value.",
                    _EXAMPLE,
                ),
            ),
        ),
    ),
    "dropping": Declared(
        retrieve="native_fields",
        search="native_fields",
        dropped=frozenset({"created_at"}),
        projection=Projection(
            retrieve=_undated,
            search=_undated,
            losses=(
                Loss(
                    "created-at-dropped",
                    "created_at",
                    "retrieve",
                    "Not kept: it is 0.0 when read, and for ranges and order.",
                    _EXAMPLE,
                ),
            ),
        ),
    ),
    "tagless": Declared(
        search="native_fields",
        tags_in_search=False,
        projection=Projection(
            search=_untagged,
            losses=(
                Loss(
                    "search-hits-without-tags",
                    "tags",
                    "search",
                    "The service gives no tags with a hit; retrieve has them.",
                    _EXAMPLE,
                ),
            ),
        ),
    ),
    "eventual": Declared(consistency="eventual"),
}


def declared_with(gap: Gap | None) -> Declared:
    """Give what is declared with a gap; None: a full adapter.

    Raises:
        MemoryAdapterError: There is no such gap.
    """
    if gap not in _DECLARED:
        raise MemoryAdapterError(f"no such gap; known: {', '.join(filter(None, _DECLARED))}")
    return _DECLARED[gap]
