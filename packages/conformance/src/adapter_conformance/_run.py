"""What a case works with: a run over one harness, and the ways in which a case can end."""

import inspect
import random
import re
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from pydantic import ValidationError

from adapter_core import (
    EXACT,
    TIME_FILTERS,
    ItemFields,
    ItemLike,
    MemoryAdapterManifest,
    MemoryItem,
    MemoryQuery,
    Projection,
    same_fields,
    same_value,
)
from adapter_core.testing import TransportCall

from .harness import Environment, MemoryAdapterHarness

KIT_FILTERS = ("topic", "rank", "owner")
"""The metadata keys that the kit declares as filters where a harness lets it."""

UNDECLARED = "never_declared"
"""A metadata key that no store under test declares as a filter."""

CONVERGENCE_SECONDS = 30.0
"""How long an eventual index of a real engine may take before the kit gives up."""


@dataclass(frozen=True)
class Drift:
    """A manifest field whose declared value is not the one that was seen."""

    field: str
    declared: str
    observed: str

    def __str__(self) -> str:
        return f"{self.field}: declared {self.declared}, observed {self.observed}"


Calls = dict[str, Callable[[], Awaitable[Any]]]
"""Calls of a store by the name that a failure gives them."""


class CaseFailed(Exception):
    """What was seen contradicts the contract or the manifest."""

    def __init__(self, reason: str, drift: Sequence[Drift] = ()) -> None:
        self.reason = reason
        self.drift = tuple(drift)
        super().__init__(reason)


class NotStaged(Exception):
    """This environment cannot stage what the case needs; never a pass."""


class HarnessFault(Exception):
    """A hook of the harness failed: the run says nothing about the adapter."""


def check(condition: bool, reason: str) -> None:
    """Fail the case unless the condition holds."""
    if not condition:
        raise CaseFailed(reason)


@dataclass
class Run:
    """One case over one harness.

    Attributes:
        harness: Makes the stores and stages what happens.
        adapter: The name of the harness's entry point.
        environment: Where it runs.
        wrap: Put around every store: the identity, or a broken store of the self-proof.
        seed: Of everything that the kit draws.
        options: Constructor options of every store under test.
        notes: What the report should say beside the verdict.
        figures: What was measured, by name with its unit.
        drift: Declared against observed, as the case found it.
    """

    harness: MemoryAdapterHarness
    adapter: str
    environment: Environment
    wrap: Callable[[Any], Any] = lambda store: store
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])
    figures: dict[str, float] = field(default_factory=dict[str, float])
    claims: list[Drift] = field(default_factory=list[Drift])
    _stores: list[Any] = field(init=False, default_factory=list[Any])
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    # Stores and hooks

    async def store(self, **options: Any) -> Any:
        """Make a store under test; it has the kit's filters if the harness takes options."""
        options = {**self.options, **options}
        if options or self.can("make_store_with"):
            made = await self.hook("make_store_with")(**{"filters": KIT_FILTERS, **options})
        else:
            made = await self.hook("make_store")()
        store = self.wrap(made)
        self._stores.append(store)
        return store

    def can(self, hook: str) -> bool:
        """Whether the harness has this hook."""
        return callable(getattr(self.harness, hook, None))

    def hook(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Give a hook of the harness, or end the case as not staged, with the reason."""
        hook = getattr(self.harness, name, None)
        if not callable(hook):
            reasons = getattr(self.harness, "not_staged", {})
            raise NotStaged(reasons.get(name, f"the harness has no hook {name}"))

        async def call(*args: Any, **options: Any) -> Any:
            try:
                result = hook(*args, **options)
                return await result if inspect.isawaitable(result) else result
            except Exception as error:
                raise HarnessFault(f"{name} raised {told(error)}") from error

        return call

    @asynccontextmanager
    async def staged(self, name: str) -> AsyncGenerator[None]:
        """Switch a hook that takes a bool on, and off at the end."""
        hook = self.hook(name)
        await hook(True)
        try:
            yield
        finally:
            await hook(False)

    @asynccontextmanager
    async def outage(self) -> AsyncGenerator[None]:
        """Make the transport unavailable, and available at the end."""
        end = self.hook("make_transport_available")
        await self.hook("make_transport_unavailable")()
        try:
            yield
        finally:
            await end()

    async def close(self) -> None:
        """Close every store that the case made; a store need not have `close`."""
        stores, self._stores = self._stores, []
        for store in stores:
            close = getattr(store, "close", None)
            if close is not None:
                await close()

    # What is sent and what is found

    def calls(self) -> list[TransportCall]:
        """Give the requests so far; none where the harness keeps no log."""
        log: Callable[[], Sequence[TransportCall]] | None = getattr(self.harness, "transport_calls", None)
        return list(log()) if log is not None else []

    @property
    def logs_calls(self) -> bool:
        """Whether the harness sees the requests of the adapter."""
        return self.can("transport_calls")

    async def settle(self, store: Any) -> None:
        """Let an eventual index catch up; an immediate one is never helped."""
        if store.manifest.search_consistency == "eventual":
            await self.hook("make_search_index_visible")()

    async def search(self, store: Any, **query: Any) -> list[Any]:
        """Search after the index was given the time that the manifest asks for."""
        await self.settle(store)
        hits: list[Any] = await store.search(MemoryQuery(**query))
        return hits

    async def ids(self, store: Any, **query: Any) -> list[UUID]:
        """Search, and give the ids of the hits in their order."""
        return [hit.id for hit in await self.search(store, **query)]

    async def poll(self, condition: Callable[[], Awaitable[bool]]) -> float | None:
        """Ask again until the condition holds; the seconds it took, or None past the deadline."""
        begin = time.monotonic()
        while time.monotonic() - begin < CONVERGENCE_SECONDS:
            if await condition():
                return time.monotonic() - begin
        return None

    # Data

    def uuid(self) -> UUID:
        """Draw an id."""
        return UUID(int=self._random.getrandbits(128), version=4)

    def item(self, content: Any = "a memory", /, **fields: Any) -> MemoryItem:
        """Make an item whose id and time are drawn from the run's seed."""
        fields.setdefault("id", self.uuid())
        fields.setdefault("created_at", 1_700_000_000.0 + self._random.randrange(10**6) / 8)
        return MemoryItem(content=content, **fields)

    def filter_keys(self, store: Any) -> list[str]:
        """Give the metadata keys that the store declares as filters."""
        return sorted(store.manifest.supported_filters - TIME_FILTERS)

    # Verdicts

    def claim(self, manifest: MemoryAdapterManifest, name: str, observed: Any) -> None:
        """Note what was seen of a manifest field; `settle_claims` judges."""
        declared = getattr(manifest, name)
        self.claims.append(Drift(name, _shown(declared), _shown(observed)))

    def settle_claims(self) -> None:
        """Fail the case if a field was seen to differ from what is declared."""
        drift = [claim for claim in self.claims if claim.declared != claim.observed]
        if drift:
            raise CaseFailed("; ".join(map(str, drift)), drift)


def told(error: BaseException) -> str:
    """Name an error, its cause and the line that raised the first of them: an adapter's own, for most.

    Its text stays out of reports: a native message tends to hold values or a password.
    """
    first = error.__cause__ if error.__cause__ and error.__cause__.__traceback__ else error
    steps = traceback.extract_tb(first.__traceback__)
    place = f" ({Path(steps[-1].filename).name}, line {steps[-1].lineno})" if steps else ""
    cause = f" from {type(error.__cause__).__name__}" if error.__cause__ else ""
    return f"{type(error).__name__}{cause}{place}{_harmless(error)}"


_WRONG_CALLS = (
    "unexpected keyword argument",
    "required positional argument",
    "abstract class",
    "can't be used in 'await' expression",
)


def _harmless(error: BaseException) -> str:
    """Give the text of an error where it can only speak of the author's own code."""
    if isinstance(error, ValidationError) and error.title == MemoryAdapterManifest.__name__:
        return ": " + "; ".join(one["msg"] for one in error.errors(include_input=False, include_url=False))
    if isinstance(error, TypeError) and any(words in str(error) for words in _WRONG_CALLS):
        return f": {error}"
    if isinstance(error, AttributeError) and _is_written(error):
        return f": {type(error.obj).__name__} has no {error.name}"
    if isinstance(error, NameError) and _is_written(error):
        return f": {error.name} is not defined"
    return ""


def _is_written(error: AttributeError | NameError) -> bool:
    """Whether the name that is missing stands in the line that failed, and not in somebody's data."""
    steps = traceback.extract_tb(error.__traceback__)
    return bool(error.name and steps and re.search(rf"\b{re.escape(error.name)}\b", steps[-1].line or ""))


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        names = cast("frozenset[str]", value)
        return "{" + ", ".join(sorted(names)) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def projection_of(store: Any) -> Projection:
    """Give the declared projection; a store without one claims that nothing changes."""
    projection = getattr(store, "projection", None)
    return projection if isinstance(projection, Projection) else EXACT


def text_meaning_of(store: Any) -> str:
    """Give what text means instead of "every term occurs"; empty for a store that does not say so."""
    return str(getattr(store, "text_meaning", None) or "")


def fields_of(item: ItemLike) -> ItemFields:
    """Read the five fields of any item."""
    return ItemFields(item.id, item.created_at, item.metadata, item.content, item.tags)


def changed_fields(given: ItemLike, got: ItemLike) -> list[str]:
    """Name the fields that came back with another value or type."""
    if same_fields(given, got):
        return []
    return [name for name in ItemFields._fields if not same_value(getattr(given, name), getattr(got, name))]
