"""Stores on the fake, and on the client's own engine."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from adapter_qdrant import QdrantMemoryStore
from adapter_qdrant.harness import QdrantEmbeddedHarness
from adapter_qdrant.testing import FakeQdrant

Make = Callable[..., QdrantMemoryStore[Any]]


@pytest.fixture
def fake() -> FakeQdrant:
    return FakeQdrant()


@pytest.fixture
async def make(fake: FakeQdrant) -> AsyncIterator[Make]:
    """Make stores on one fake, and close them."""
    made: list[QdrantMemoryStore[Any]] = []

    def make(**options: Any) -> QdrantMemoryStore[Any]:
        made.append(QdrantMemoryStore("http://fake", transport=fake.transport(), **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture
async def local() -> AsyncIterator[Any]:
    """Make stores on one engine of the client's own, and close them."""
    harness = QdrantEmbeddedHarness()
    yield harness.make_store_with
    await harness.close()
