"""Stores over the fake and over a server of our own, closed when the test ends."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from adapter_postgres import PostgresMemoryStore, PostgresSettings, client, embedded
from adapter_postgres.staging import Admin
from adapter_postgres.testing import FakePostgres

Make = Callable[..., PostgresMemoryStore[Any]]


@pytest.fixture
def fake() -> FakePostgres:
    return FakePostgres()


@pytest.fixture(scope="session")
def server() -> embedded.EmbeddedServer:
    """Give the server that all tests share; one that stops it makes its own."""
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    return embedded.shared_server()


@pytest.fixture
def settings() -> PostgresSettings:
    return PostgresSettings(schema=f"test_{uuid4().hex[:12]}", pool_size=4)


@pytest.fixture
async def admin(server: embedded.EmbeddedServer, settings: PostgresSettings) -> AsyncIterator[Admin]:
    """Connect beside the stores; nothing is made, and the schema is dropped at the end."""
    beside = Admin(await client.connect(server.url(), settings), settings)
    yield beside
    await beside.drop()
    await beside.close()


@pytest.fixture
async def on_server(
    server: embedded.EmbeddedServer, settings: PostgresSettings, admin: Admin
) -> AsyncIterator[Make]:
    made: list[PostgresMemoryStore[Any]] = []

    def make(**options: Any) -> PostgresMemoryStore[Any]:
        made.append(PostgresMemoryStore(server.url(), **{"settings": settings, **options}))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture
async def on_fake(fake: FakePostgres) -> AsyncIterator[Make]:
    made: list[PostgresMemoryStore[Any]] = []

    def make(**options: Any) -> PostgresMemoryStore[Any]:
        made.append(PostgresMemoryStore("postgresql://fake", transport=fake.transport(), **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture(params=["fake", "server"])
def make(request: pytest.FixtureRequest) -> Make:
    """Make stores that share one database."""
    found: Make = request.getfixturevalue(f"on_{request.param}")
    return found
