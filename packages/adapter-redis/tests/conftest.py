"""Stores over the fake and over a server of our own, closed when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
import redis.asyncio

from adapter_redis import RedisMemoryStore, RedisSettings, embedded
from adapter_redis.testing import FakeRedis
from adapter_redis.transport import Call

Make = Callable[..., RedisMemoryStore[Any]]


class ScriptedSession:
    """Answers each command by its first word, and a script by its name, with what was given for it.

    Args:
        answers: By word. Those of a tuple are given in turn, and the last again and again; an exception
            is raised.
    """

    def __init__(self, **answers: Any) -> None:
        self._answers = {
            word: list(given) if isinstance(given, tuple) else [given] for word, given in answers.items()
        }
        self.calls: list[Call] = []

    @staticmethod
    def word(call: Call) -> str:
        return call.name if call.script else call.arguments[0].decode()

    async def send(self, *calls: Call) -> Sequence[Any]:
        await asyncio.sleep(0)
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Any:
        self.calls.append(call)
        answers = self._answers[self.word(call)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def scripted() -> type[ScriptedSession]:
    return ScriptedSession


@pytest.fixture
def fake() -> FakeRedis:
    return FakeRedis()


@pytest.fixture(scope="session")
def server() -> embedded.EmbeddedServer:
    """Give the server that all tests share; one that stops it makes its own."""
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    return embedded.shared_server()


@pytest.fixture
def settings() -> RedisSettings:
    return RedisSettings(prefix=f"test-{uuid4().hex[:12]}", pool_size=4)


@pytest.fixture
async def beside(
    server: embedded.EmbeddedServer, settings: RedisSettings
) -> AsyncIterator["redis.asyncio.Redis"]:
    """Connect beside the stores; their keys are removed at the end."""
    client = redis.asyncio.Redis.from_url(server.url())
    yield client
    async for key in client.scan_iter(match=f"{settings.prefix}*", count=1000):
        await client.delete(key)
    await client.aclose()


@pytest.fixture
async def on_server(
    server: embedded.EmbeddedServer, settings: RedisSettings, beside: "redis.asyncio.Redis"
) -> AsyncIterator[Make]:
    made: list[RedisMemoryStore[Any]] = []

    def make(url: Any = None, **options: Any) -> RedisMemoryStore[Any]:
        options = {"settings": settings, "index": "keyspace", **options}
        made.append(RedisMemoryStore(url or server.url(), **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture
async def on_fake(fake: FakeRedis) -> AsyncIterator[Make]:
    made: list[RedisMemoryStore[Any]] = []

    def make(**options: Any) -> RedisMemoryStore[Any]:
        options = {"index": "keyspace", "transport": fake.transport(), **options}
        made.append(RedisMemoryStore("redis://fake", **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


@pytest.fixture(params=["fake", "server"])
def make(request: pytest.FixtureRequest) -> Make:
    """Make stores that share one server."""
    found: Make = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.fixture
def key(settings: RedisSettings) -> Callable[[str], str]:
    """Name the keys of the default namespace by what follows its own."""
    return lambda suffix="": f"{settings.prefix}:{{ndefault}}{suffix}"
