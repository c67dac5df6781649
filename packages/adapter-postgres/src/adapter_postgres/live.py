"""The harness for a live server: one that the user gives by URL, or one in a container.

The kit finds the server, and makes the harness with its URL.
"""

from adapter_core.testing import Container, Environment

from . import harness
from .harness import ServerHarness


class PostgresLiveHarness(ServerHarness):
    """The adapter over a server that runs elsewhere. Its outages are real: see `ServerHarness`."""

    environment: Environment = "live"
    container = Container(
        image="pgvector/pgvector:pg18",
        port=5432,
        url="postgresql://postgres:{password}@{host}:{port}/postgres",
        env={"POSTGRES_PASSWORD": "{password}"},
        # the set-up race alone opens more than the usual hundred
        command="postgres -c max_connections=200",
    )

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def url(self) -> str:
        return self._url


HARNESSES = (*harness.HARNESSES, PostgresLiveHarness)
