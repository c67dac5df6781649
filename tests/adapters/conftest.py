"""Each test here runs over every installed adapter, on its fake and embedded.

The adapters are found by the entry points of their harnesses, so a new one is tested without an
edit here. `needs` leaves out those that do not offer what a test is about. An eventual index
catches up before each search.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from adapter_conformance import harness_entries
from adapter_core import AdapterStore

Make = Callable[..., Awaitable[AdapterStore[Any]]]


class Kind(NamedTuple):
    """One harness class, and a store of the adapter's fake to ask what the adapter offers."""

    name: str
    harness: Any
    store: AdapterStore[Any]

    def offers(self, needed: Any) -> bool:
        """Whether the store has a protocol, the store or the harness has a method, or it is a fake."""
        if needed == "fake":
            return self.harness.environment == "fake"
        if isinstance(needed, str):
            return hasattr(self.store, needed) or hasattr(self.harness, needed)
        return isinstance(self.store, needed)


async def a_store(harness: Any) -> AdapterStore[Any]:
    store = await harness.make_store()
    await store.close()
    await harness.close()
    return store


@cache
def kinds() -> list[Kind]:
    found = []
    for entry in harness_entries():
        harnesses = [kind for kind in entry.load() if kind.environment != "live"]
        fake = next(kind for kind in harnesses if kind.environment == "fake")
        store = asyncio.run(a_store(fake()))
        if store.manifest.dropped_item_fields:
            continue  # the cases of the kit are for those; these compare every field
        found += [Kind(entry.name, kind, store) for kind in harnesses]
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(*what): the adapter has these protocols, or methods by name; 'fake': only fakes"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" not in metafunc.fixturenames:
        return
    needed = [what for mark in metafunc.definition.iter_markers("needs") for what in mark.args]
    chosen = [kind for kind in kinds() if all(map(kind.offers, needed))]
    ids = [f"{kind.name}-{kind.harness.environment}" for kind in chosen]
    metafunc.parametrize("kind", [kind.harness for kind in chosen], ids=ids)


@pytest.fixture
async def harness(kind: Any) -> AsyncIterator[Any]:
    """Give a harness, and close it with all that it made."""
    if reason := getattr(kind, "not_run_reason", lambda: None)():
        pytest.skip(reason)
    made = kind()
    yield made
    await made.close()


def settle_first(store: Any, harness: Any) -> None:
    """Let the index catch up before each search of a store."""
    search = store.search

    async def settled(query: Any) -> list[Any]:
        await harness.make_search_index_visible()
        return await search(query)

    store.search = settled


@pytest.fixture
async def make(harness: Any) -> AsyncIterator[Make]:
    """Make stores that share one database, and close them."""
    made: list[AdapterStore[Any]] = []

    async def make(**options: Any) -> AdapterStore[Any]:
        made.append(await harness.make_store_with(**options))
        if made[-1].manifest.search_consistency == "eventual":
            settle_first(made[-1], harness)
        return made[-1]

    yield make
    for store in made:
        await store.close()
