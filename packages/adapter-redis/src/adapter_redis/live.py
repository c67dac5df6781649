"""The harnesses for a live server: one that the user gives by URL, or one in a container.

The kit finds the server, and makes the harness with its URL. There is one for each index.
"""

from typing import ClassVar

from adapter_core.testing import Container, Environment

from . import harness
from .harness import ServerHarness
from .store import IndexName


class RedisLiveHarness(ServerHarness):
    """The adapter over a server that runs elsewhere, with its search engine.

    Its outages are real: see `ServerHarness`.
    """

    environment: Environment = "live"
    index: ClassVar[IndexName] = "query-engine"
    container = Container(
        image="redis:8",
        port=6379,
        url="redis://:{password}@{host}:{port}/0",
        # redis:8 adds its search engine to this command by itself
        command="redis-server --appendonly yes --requirepass {password}",
    )

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def url(self) -> str:
        return self._url


class RedisKeyspaceLiveHarness(RedisLiveHarness):
    """The same with the index of sorted sets."""

    index: ClassVar[IndexName] = "keyspace"
    variant = "keyspace"


HARNESSES = (*harness.HARNESSES, RedisLiveHarness, RedisKeyspaceLiveHarness)
