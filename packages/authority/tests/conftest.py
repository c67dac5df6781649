"""The backends of the session suite; each test has an empty database."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from adapter_postgres import embedded
from memory_authority.testing import (
    InMemoryHarness,
    PostgresHarness,
    SessionStoreHarness,
    SqliteHarness,
)

SCHEMA = "authority_test"


@pytest.fixture(scope="session")
def server_url() -> str:
    """Give a server of our own, with a schema for the tables."""
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    return embedded.shared_server().url() + f"&search_path={SCHEMA}"


@pytest.fixture
async def postgres_url(server_url: str) -> str:
    """Give the address of a schema that is there."""
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    await connection.close()
    return server_url


@pytest.fixture
async def memory() -> AsyncIterator[InMemoryHarness]:
    harness = InMemoryHarness()
    yield harness
    await harness.close()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    harness = SqliteHarness(tmp_path / "sessions.db")
    yield harness
    await harness.close()


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[PostgresHarness]:
    harness = PostgresHarness(postgres_url)
    await harness.reset()
    yield harness
    await harness.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def harness(request: pytest.FixtureRequest) -> SessionStoreHarness:
    found: SessionStoreHarness = request.getfixturevalue(request.param)
    return found
