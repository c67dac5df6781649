"""A harness over the user's own store: all that it makes is in throw-away namespaces.

It stages no fault: the service belongs to somebody. What needs one is reported as not staged.
"""

import asyncio
import os
import re
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes
from uuid import uuid4

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsDelete,
    SupportsScan,
    open_store,
    same_fields,
)

from ._run import CONVERGENCE_SECONDS, fields_of, projection_of
from .harness import Engine, Environment
from .session import printable

PREFIX = "fidelity-check"
"""How every throw-away namespace begins."""

RESERVED = frozenset({"namespace", "item_type", "filters"})
"""Options that the kit sets itself."""

_LOCAL = ("sqlite:///", "qdrant+path:")  # and then a file or a folder
_PARAMETERS = re.compile("[?#]")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d*)?")
_PAUSE_SECONDS = 0.05  # between two looks at an index that lags: the service has others to serve
_EVERYTHING = 2**31
_STAGED = "not staged against a user's own store"
_HOOKS = (
    "make_transport_unavailable",
    "make_transport_available",
    "plant_foreign_record",
    "plant_malformed_record",
    "refuse_writes",
    "refuse_queries",
    "drop_identity",
    "hold_search_index",
    "age_index",
    "degrade",
)


class UrlHarness:
    """Stores over one URL. Call `begin` before each case.

    Args:
        url: As for `open_store`.
        options: Of the adapter's constructor, none of `RESERVED`.

    Attributes:
        prefix: How the names of the namespaces begin; no other run has the same.
        empties: Whether the store can delete what the run stores.

    Raises:
        MemoryAdapterError: No adapter takes this URL or these options.
        TypeError: The constructor has no such option.
    """

    environment: Environment = "live"
    make_transport_unavailable: Any = None
    not_staged: Mapping[str, str] = {
        **dict.fromkeys(_HOOKS, _STAGED),
        "make_search_index_visible": "the store has no scan, which would tell what its index must show",
        "reset": "the store cannot delete, so a case cannot empty its namespace half way",
    }

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._options = dict(options or {})
        self.prefix = f"{PREFIX}-{uuid4().hex[:16]}"
        self._made: list[str] = []
        self._used = set[str]()  # may hold items, or have a store that is open
        self._finished = set[str]()  # of those, the ones whose stores are closed
        self._round = 0
        self._closed = False
        self._shared: dict[str, Any] = {}
        self._probe = self._open("default")
        self._shared.update(getattr(self._probe, "shared", {}))
        self.empties = isinstance(self._probe, SupportsDelete)
        self.reset: Any = self._empty_used if self.empties else self._next_round
        self.make_search_index_visible: Any = (
            self._wait_for_index if isinstance(self._probe, SupportsScan) else None
        )

    @property
    def adapter(self) -> str:
        """The name that the manifest gives."""
        name: str = self._probe.manifest.adapter
        return name

    @property
    def left(self) -> list[str]:
        """The namespaces that were made and are not removed."""
        return list(self._made)

    @property
    def drops(self) -> bool:
        """Whether the store can forget a namespace, and not only empty it."""
        return hasattr(self._probe, "drop_namespace")

    @property
    def creates(self) -> list[str]:
        """What may appear beside the namespaces, as the adapter says it; empty if it does not say."""
        return list(getattr(self._probe, "creates", ()))

    def begin(self) -> None:
        """Begin a case: the stores of the one before are closed.

        Raises:
            asyncio.CancelledError: The run was cancelled, and the case before took that for its own.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        self._finished |= self._used
        if not self.empties:
            self.reset = self._next_round

    async def engine(self) -> Engine:
        """Connect for the first time, and name the place.

        Raises:
            MemoryAdapterUnavailable: Nothing can be run; nothing was made that is known of.
        """
        await self._probe.close()
        try:
            await self._reach()
        except MemoryAdapterError as error:
            self._made.clear()
            if isinstance(error, MemoryAdapterUnavailable):
                raise
            raise MemoryAdapterUnavailable(str(error)) from error
        note = ", handles share one connection" if self._shared else ""
        return Engine(displayed(self._url), "", f"in namespaces {self.prefix}-*{note}")

    async def make_store(self) -> Any:
        """Make a store with the user's options."""
        return await self.make_store_with()

    async def make_store_with(self, **options: Any) -> Any:
        """Make a store with the user's options and some of the kit's."""
        if self._closed:
            raise MemoryAdapterUnavailable("the check has ended")
        name = self._name(options.pop("namespace", "default"))
        if name not in self._made:
            self._made.append(name)
        self._used.add(name)
        self._finished.discard(name)
        return self._open(name, **options)

    async def close(self) -> None:
        """Remove all that was made; what could not be is in `left`. Raises nothing."""
        self._closed = True
        try:
            for name in self.left if self.empties else ():
                await self._remove(name)
                self._made.remove(name)
        except Exception:  # noqa: BLE001 - the verdict stands; what is left is told
            return  # a service that is away would make every further attempt wait

    # Hooks that depend on the store

    async def _empty_used(self) -> None:
        if self._closed:
            raise MemoryAdapterUnavailable("the check has ended")
        for name in sorted(self._used):
            async with self._open(name) as store:
                await store.clear()
        self._used -= self._finished
        self._finished.clear()

    async def _next_round(self) -> None:
        """Go on in namespaces that are new. A second time in one case its stores would be left behind."""
        self._round += 1
        self.reset = None

    async def _wait_for_index(self) -> None:
        deadline = time.monotonic() + CONVERGENCE_SECONDS
        for name in sorted(self._used):
            async with self._open(name) as store:
                while not await _caught_up(store):
                    if time.monotonic() > deadline:
                        raise MemoryAdapterUnavailable("the search index does not catch up")
                    await asyncio.sleep(_PAUSE_SECONDS)

    # Stores

    def _name(self, namespace: str) -> str:
        return f"{self.prefix}-{self._round}-{namespace}"

    def _open(self, name: str, **options: Any) -> Any:
        return open_store(self._url, **{**self._options, **self._shared, **options, "namespace": name})

    async def _reach(self) -> None:
        async with await self.make_store() as store:
            await store.retrieve(uuid4())
            if getattr(store, "durability", "") != "volatile":
                return
            item = MemoryItem()
            await store.store(item)
            async with await self.make_store() as other:
                if await other.retrieve(item.id) is None:
                    raise MemoryAdapterUnavailable("each store over this URL has data of its own")

    async def _remove(self, name: str) -> None:
        async with self._open(name) as store:
            await (store.drop_namespace() if self.drops else store.clear())


async def _caught_up(store: Any) -> bool:
    """Whether a search shows exactly what a scan gives."""
    project = projection_of(store).search
    there = {item.id: project(fields_of(item)) async for item in store.scan()}
    found = {hit.id: hit for hit in await store.search(MemoryQuery(limit=_EVERYTHING))}
    return there.keys() == found.keys() and all(same_fields(found[key], there[key]) for key in there)


def version_of(url: str) -> str:
    """Give the distribution and version of the adapter for a URL."""
    scheme = url.partition(":")[0].lower()
    for entry in entry_points(group="adapter_core.stores", name=scheme):
        if entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return ""


def is_missing(url: str) -> bool:
    """Whether a URL names a file or folder that is not there. The first call of its store would make it."""
    begin = next((one for one in _LOCAL if url.lower().startswith(one)), None)
    path = url[len(begin) :] if begin else ":memory:"
    spellings = (path, os.fsdecode(unquote_to_bytes(os.fsencode(path))))
    return path != ":memory:" and not any(Path(one).exists() for one in spellings)


def displayed(url: str) -> str:
    """Show a URL without what may be a secret: user, password, parameters and fragment.

    Where it cannot be told what is a password, only the scheme is shown.
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        return printable(url)
    place = _PARAMETERS.split(rest)[0]
    _, sign, after = place.rpartition("@")
    host = after if sign else after.removeprefix("//") if after.startswith("//") else ""
    if "@" in rest[len(place) :] or not _HOST.fullmatch(host.partition("/")[0]):
        return f"{scheme}:…"
    return printable(f"{scheme}:…@{after}" if sign else f"{scheme}:{place}")
