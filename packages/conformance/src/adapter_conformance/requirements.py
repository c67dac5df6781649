"""What a project requires of a store, checked on the store itself."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from adapter_core import (
    TIME_FILTERS,
    AdapterStore,
    DeclaresDurability,
    Durability,
    Fidelity,
    ManifestRejected,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryQuery,
    SearchConsistency,
    SupportsDelete,
    extensions_of,
    open_store,
    require,
)

DURABILITIES: tuple[Durability, ...] = ("volatile", "crash", "power")
"""From what survives nothing to what survives a power cut."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The least that will do. What is None, False or empty is not required.

    Attributes:
        retrieve: The least retrieve fidelity.
        search: The least search fidelity.
        consistency: `immediate`, or `eventual`, which accepts both.
        filters: Metadata keys that queries filter by. The store is opened with them.
        tags_in_search: Search hits carry tags.
        metadata: Metadata comes back exactly.
        durability: What an acknowledged write survives at least.
        extensions: Names such as `scan`, or with a version as `scan/1`.
    """

    retrieve: Fidelity | None = None
    search: Fidelity | None = None
    consistency: SearchConsistency | None = None
    filters: Collection[str] = ()
    tags_in_search: bool = False
    metadata: bool = False
    durability: Durability | None = None
    extensions: Collection[str] = ()

    def __post_init__(self) -> None:
        """Refuse what no store could be measured by: it must not be a requirement that always holds."""
        if isinstance(self.filters, str) or isinstance(self.extensions, str):
            raise TypeError("filters and extensions take a collection of names, not one string")
        if self.durability is not None and self.durability not in DURABILITIES:
            raise ValueError(f"durability is one of {', '.join(DURABILITIES)}")


@dataclass(frozen=True)
class Answer:
    """What became of a requirement.

    Attributes:
        adapter: The name that the manifest gives.
        shortfalls: One sentence for each thing that is not met, sorted.
        unreachable: Why the service could not be asked; then only the declaration was looked at.
    """

    adapter: str
    shortfalls: tuple[str, ...]
    unreachable: str = ""


async def ask(url: str, requirement: Requirement, options: Mapping[str, Any] | None = None) -> Answer:
    """Open the store that a URL names, connect, and measure it by a requirement.

    It connects as the application would: what the first call makes, such as tables, is made. Nothing
    is stored.

    Args:
        url: As for `open_store`.
        requirement: The least that will do.
        options: Of the adapter's constructor. The required filters are added to its `filters`.

    Raises:
        MemoryAdapterError: No adapter takes the URL, or the options.
        TypeError: The constructor has no such option.
        ValueError: The requirement names no fidelity or consistency.
    """
    return await measured(opened(url, requirement, options or {}), requirement)


async def measured(store: AdapterStore[Any], requirement: Requirement) -> Answer:
    """Connect a store, measure it by a requirement and close it."""
    declared = declared_shortfalls(store, requirement)
    name = store.manifest.adapter
    try:
        async with store:
            seen = await _connected(store, requirement)
    except MemoryAdapterUnavailable as error:
        return Answer(name, tuple(declared), str(error))
    except MemoryAdapterError as error:
        seen = [f"it cannot be used: {error}"]
    return Answer(name, tuple(sorted([*declared, *seen])))


def opened(url: str, requirement: Requirement, options: Mapping[str, Any]) -> AdapterStore[Any]:
    """Make the store with the required filters too, or without where it does not take them. No I/O.

    Raises:
        MemoryAdapterError: No adapter takes the URL, or the options.
        TypeError: The constructor has no such option.
    """
    given = options.get("filters", ())
    if not isinstance(given, list | tuple):
        raise MemoryAdapterError('filters must be a list of names, such as filters=["topic"]')
    keys = dict.fromkeys([*cast("Sequence[Any]", given), *requirement.filters])
    filters = [key for key in keys if key not in TIME_FILTERS]
    if filters:
        with suppress(MemoryAdapterError, TypeError):
            return open_store(url, **{**options, "filters": filters})
    return open_store(url, **options)


def declared_shortfalls(store: Any, requirement: Requirement) -> list[str]:
    """Give every shortfall of what a store declares, sorted. No I/O."""
    found: list[str] = []
    try:
        require(
            store.manifest,
            retrieve=requirement.retrieve,
            search=requirement.search,
            consistency=requirement.consistency,
            filters=requirement.filters,
            tags_in_search=requirement.tags_in_search,
            metadata=requirement.metadata,
        )
    except ManifestRejected as rejected:
        found += rejected.shortfalls
    if wanted := requirement.durability:
        declared = store.durability if isinstance(store, DeclaresDurability) else None
        if declared is None or DURABILITIES.index(declared) < DURABILITIES.index(wanted):
            found.append(f"durability is {declared or 'not declared'}, required {wanted}")
    offered = extensions_of(store)
    found += [
        f"extension {name} is not offered"
        for name in requirement.extensions
        if name not in {*offered, *(one.partition("/")[0] for one in offered)}
    ]
    return sorted(found)


async def _connected(store: Any, requirement: Requirement) -> list[str]:
    """Connect, and give what the service itself does not keep of the declaration."""
    await store.retrieve(uuid4())
    keys = store.manifest.supported_filters.intersection(requirement.filters) - TIME_FILTERS
    await store.search(MemoryQuery(filters=dict.fromkeys(sorted(keys)), limit=1))
    if requirement.durability is None or not isinstance(store, SupportsDelete):
        return []
    try:
        # a write that changes nothing: an adapter may look at the service's settings only when it writes
        await store.delete(uuid4())
    except MemoryAdapterUnavailable as error:
        return [f"durability {requirement.durability} is not kept: {error}"]
    return []
