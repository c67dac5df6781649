"""Which store may be the authority over curated memory."""

from typing import Protocol, cast, runtime_checkable

from adapter_core import (
    DeclaresDurability,
    ExternalMemoryStore,
    ManifestRejected,
    SupportsBatch,
    SupportsDelete,
    SupportsRevisions,
    SupportsScan,
    require,
)

from .errors import InsufficientAuthority

RESERVED_FILTERS = (
    "memory.kind",
    "memory.status",
    "scope.agent",
    "scope.principal",
    "scope.session",
    "scope.tenant",
)
"""The metadata keys that scope and status are kept under. The store must be able to filter by all."""

_EXTENSIONS: tuple[tuple[str, type], ...] = (
    ("batch", SupportsBatch),
    ("delete", SupportsDelete),
    ("scan", SupportsScan),
    ("revisions", SupportsRevisions),
)


@runtime_checkable
class AuthoritativeMemoryStore(
    ExternalMemoryStore,
    SupportsBatch,
    SupportsDelete,
    SupportsScan,
    SupportsRevisions,
    DeclaresDurability,
    Protocol,
):
    """The three verbs, and the extensions that an authority needs."""


def require_authoritative(
    store: ExternalMemoryStore, *, allow_volatile: bool = False
) -> AuthoritativeMemoryStore:
    """Refuse a store that may not be the authority, before its first use.

    It must give back every field exactly, from `retrieve` and from `search`, find an item as soon as
    it is stored, filter by scope and status, work in batches, delete, scan and compare revisions, and
    keep an acknowledged write when a process dies.

    Args:
        store: The store at hand. Only what it declares is looked at; no call is made.
        allow_volatile: Take one that keeps nothing, for tests.

    Returns:
        The same store.

    Raises:
        InsufficientAuthority: With every shortfall, sorted.
    """
    manifest = store.manifest
    shortfalls: list[str] = []
    try:
        require(
            manifest,
            retrieve="full",
            search="full",
            consistency="immediate",
            filters=RESERVED_FILTERS,
            tags_in_search=True,
            metadata=True,
        )
    except ManifestRejected as error:
        shortfalls += error.shortfalls
    shortfalls += [f"field {name} is dropped" for name in manifest.dropped_item_fields]
    shortfalls += [f"no {name} extension" for name, kind in _EXTENSIONS if not isinstance(store, kind)]
    if not isinstance(store, DeclaresDurability):
        shortfalls.append("durability is not declared")
    elif store.durability == "volatile" and not allow_volatile:
        shortfalls.append("durability is volatile, required crash or power")
    if shortfalls:
        raise InsufficientAuthority(shortfalls)
    return cast("AuthoritativeMemoryStore", store)
