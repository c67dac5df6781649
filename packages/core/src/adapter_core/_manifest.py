"""The manifest: what an adapter says survives, and the check of it against a requirement."""

from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ._errors import ManifestRejected

MemoryItemField = Literal["id", "created_at", "metadata", "content", "tags"]
SearchConsistency = Literal["immediate", "eventual"]
Fidelity = Literal["full", "native_fields", "lossy"]

_STRENGTH: dict[Fidelity, int] = {"lossy": 0, "native_fields": 1, "full": 2}


class MemoryAdapterManifest(BaseModel):
    """What one adapter instance does to items and queries (ADR-0093, D1). Immutable.

    Attributes:
        adapter: The adapter's name, as its entry point gives it.
        native_item_fields: Item fields that the backend keeps.
        dropped_item_fields: Item fields that come back as a documented default.
        supported_filters: The legal keys of `MemoryQuery.filters`.
        search_consistency: `immediate`: found as soon as `store` returns. `eventual`: a search
            may miss it for a while; retrieval never does.
        retrieve_fidelity: What `retrieve` gives back. `full`: every field, same value and type.
            `native_fields`: every native field. `lossy`: some field is changed in a named way.
        search_fidelity: The same for search hits.
        search_returns_tags: Whether a hit carries the item's tags.
        preserves_metadata: Whether metadata comes back exactly.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    adapter: str = Field(min_length=1)
    native_item_fields: frozenset[MemoryItemField]
    dropped_item_fields: frozenset[MemoryItemField]
    supported_filters: frozenset[str]
    search_consistency: SearchConsistency
    retrieve_fidelity: Fidelity
    search_fidelity: Fidelity
    search_returns_tags: bool
    preserves_metadata: bool

    @model_validator(mode="after")
    def coherent_projection(self) -> "MemoryAdapterManifest":
        """Refuse a manifest whose fields contradict each other."""
        fields = frozenset(get_args(MemoryItemField))
        if self.native_item_fields & self.dropped_item_fields:
            raise ValueError("native and dropped item fields must be disjoint")
        if self.native_item_fields | self.dropped_item_fields != fields:
            raise ValueError("every MemoryItem field must be classified")
        if not {"id", "content", "tags"} <= self.native_item_fields:
            raise ValueError("id, content, and tags are required native fields")
        if self.preserves_metadata and "metadata" not in self.native_item_fields:
            raise ValueError("preserved metadata must be a native field")
        if self.retrieve_fidelity == "full" and (self.dropped_item_fields or not self.preserves_metadata):
            raise ValueError("full retrieve fidelity must preserve every item field")
        if self.search_fidelity == "full" and (
            self.dropped_item_fields or not self.search_returns_tags or not self.preserves_metadata
        ):
            raise ValueError("full search fidelity must preserve all fields and tags")
        return self


def require(
    manifest: MemoryAdapterManifest,
    *,
    retrieve: Fidelity | None = None,
    search: Fidelity | None = None,
    consistency: SearchConsistency | None = None,
    filters: Iterable[str] = (),
    tags_in_search: bool | None = None,
    metadata: bool | None = None,
) -> None:
    """Reject an adapter before its first use when its manifest falls short.

    Args:
        manifest: The manifest of the store at hand.
        retrieve: The least retrieve fidelity: lossy < native_fields < full.
        search: The least search fidelity.
        consistency: `immediate` rejects an eventual adapter; `eventual` accepts both.
        filters: Filter keys that must be supported.
        tags_in_search: True: search hits must carry tags.
        metadata: True: metadata must be preserved.

    Raises:
        ManifestRejected: With every shortfall, sorted.
        ValueError: A requirement is no fidelity or consistency.
    """
    if isinstance(filters, str):
        raise TypeError("filters takes a collection of keys, not one string")
    for name, value, known in (
        ("retrieve", retrieve, get_args(Fidelity)),
        ("search", search, get_args(Fidelity)),
        ("consistency", consistency, get_args(SearchConsistency)),
    ):
        if value is not None and value not in known:  # a slip must not be a requirement that always holds
            raise ValueError(f"{name} is one of {', '.join(known)}")
    shortfalls: list[str] = []
    fidelities: dict[str, tuple[Fidelity | None, Fidelity]] = {
        "retrieve": (retrieve, manifest.retrieve_fidelity),
        "search": (search, manifest.search_fidelity),
    }
    for verb, (wanted, declared) in fidelities.items():
        if wanted is not None and _STRENGTH[declared] < _STRENGTH[wanted]:
            shortfalls.append(f"{verb} fidelity is {declared}, required {wanted}")
    if consistency == "immediate" and manifest.search_consistency != "immediate":
        shortfalls.append("search consistency is eventual, required immediate")
    missing = sorted(set(filters) - manifest.supported_filters)
    shortfalls += [f"filter {key} is not supported" for key in missing]
    if tags_in_search and not manifest.search_returns_tags:
        shortfalls.append("search hits carry no tags")
    if metadata and not manifest.preserves_metadata:
        shortfalls.append("metadata is not preserved")
    if shortfalls:
        raise ManifestRejected(shortfalls)
