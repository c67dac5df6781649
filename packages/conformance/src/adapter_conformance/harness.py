"""What an adapter's author writes: a harness that makes stores and stages what happens to them.

`MemoryAdapterHarness` is the shape of ADR-0093, D2. The further hooks are optional: a harness has
those that its environment can stage honestly, and gives a reason for each that it lacks. A hook
stages something; it never returns a verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from adapter_core import ExternalMemoryStore
from adapter_core.testing import Engine, Environment, TransportCall

ENVIRONMENTS: tuple[Environment, ...] = ("fake", "embedded", "live")

__all__ = [
    "ENVIRONMENTS",
    "HARNESSES",
    "Engine",
    "Environment",
    "MemoryAdapterHarness",
    "StagingHarness",
    "harness_entries",
]

HARNESSES = "adapter_conformance.harnesses"
"""Entry point group: the name is the adapter's, the value a sequence of harness classes."""


@runtime_checkable
class MemoryAdapterHarness(Protocol):
    """Makes stores over a disposable namespace, and stages what the seed's matrix needs.

    Every store that one harness makes sees the same namespace.
    """

    async def make_store(self) -> ExternalMemoryStore[Any]:
        """Make a new store over the harness's namespace."""
        ...

    async def reset(self) -> None:
        """Empty every namespace that the harness made, and end whatever is staged."""
        ...

    async def make_search_index_visible(self) -> None:
        """Let searches see all that was written; never called for an immediate adapter."""
        ...

    async def make_transport_unavailable(self) -> None:
        """Start an outage: no request is answered until `make_transport_available`."""
        ...

    async def close(self) -> None:
        """Reclaim all that the harness made. The kit has closed the stores before."""
        ...


class StagingHarness(MemoryAdapterHarness, Protocol):
    """The whole set of hooks. A fake has all; a live harness has what the service allows.

    A live class with the attribute `container` is made with the URL of a server: see `live`.

    Attributes:
        environment: Where it runs.
        not_staged: Why a hook is missing, by the hook's name.

    An adapter that works in several ways has a class for each, under its one entry point; each such
    class has a `variant`, a short name that is shown and selected as `adapter-variant`. Where an option of
    the store gives text another meaning, `text_options` has an example of its value by its name; reports
    show the `text_meaning` of a store that is made with it.
    """

    environment: Environment
    not_staged: Mapping[str, str]

    async def engine(self) -> Engine:
        """Say what stands behind the adapter, asking the engine for its version."""
        ...

    async def make_store_with(self, **options: Any) -> ExternalMemoryStore[Any]:
        """Make a store with constructor options: `namespace`, `filters`, `item_type`."""
        ...

    def transport_calls(self) -> Sequence[TransportCall]:
        """Give every request so far, also those that failed."""
        ...

    async def make_transport_available(self) -> None:
        """End the outage."""
        ...

    async def plant_foreign_record(self, item_id: UUID) -> None:
        """Put a record that is not the adapter's under the identity that the item would have."""
        ...

    async def plant_malformed_record(self, item_id: UUID) -> None:
        """Damage the stored record of an item; it keeps the adapter's marker."""
        ...

    async def refuse_writes(self, refuse: bool) -> None:
        """Make the service refuse every write, or end that."""
        ...

    async def refuse_queries(self, refuse: bool) -> None:
        """Make the service refuse every search, or end that."""
        ...

    async def drop_identity(self, drop: bool) -> None:
        """Make the service acknowledge writes without an identity and store nothing, or end that."""
        ...

    async def hold_search_index(self, hold: bool) -> None:
        """Keep the search index as it is while writes go on, or let it catch up."""
        ...

    async def age_index(self) -> None:
        """Let the namespace remember another version of the term rules."""
        ...

    async def degrade(self) -> None:
        """Take a capability away from a store that is alive; `reset` gives it back."""
        ...


def harness_entries(names: Iterable[str] = ()) -> list[EntryPoint]:
    """Find the installed harnesses by entry point, sorted by name.

    Args:
        names: Only these adapters; none: all. A name also selects its variants (`template`
            selects `template-lossy`), and a name of no entry point may be that of a variant
            within one (`redis-keyspace` selects `redis`).

    Raises:
        LookupError: No harness is installed for one of the names.
    """
    found = sorted(entry_points(group=HARNESSES), key=lambda entry: entry.name)
    chosen = set[str]()
    for name in names:
        mine = [e.name for e in found if selects(name, e.name)]
        mine = mine or [e.name for e in found if selects(e.name, name)]
        if not mine:
            raise not_installed(name, (entry.name for entry in found))
        chosen |= set(mine)
    return [e for e in found if not chosen or e.name in chosen]


def not_installed(name: str, known: Iterable[str]) -> LookupError:
    """Make the error for a name that selects nothing."""
    names = ", ".join(dict.fromkeys(known)) or "none"
    return LookupError(f"no harness for {name!r} is installed (installed: {names})")


def selects(name: str, entry: str) -> bool:
    """Whether a name stands for an entry point: its own, or that of a variant."""
    return entry == name or entry.startswith(f"{name}-")
