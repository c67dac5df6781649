"""The real transports: connections of our own, or those of a client of the caller's."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adapter_core import MemoryAdapterUnavailable

from .errors import code_of
from .settings import RedisSettings
from .transport import Call, Work

if TYPE_CHECKING:
    from .client import Addressed, Connection


class _Leasing(ABC):
    """What both transports share: each request borrows a connection for its duration."""

    @abstractmethod
    async def take(self) -> "Connection":
        """Borrow a connection that is at rest."""

    @abstractmethod
    async def give_back(self, connection: "Connection") -> None:
        """Let a connection go, in whatever state it is."""

    async def open(self, setup: Work) -> None:
        """Run the set-up."""
        await setup(self)

    async def send(self, *calls: Call) -> Sequence[Any]:
        """Send commands as one request; see `Session`."""
        from . import client  # noqa: PLC0415 - the client library is loaded when it is first used

        connection = await self.take()
        try:
            packed = client.pack([_known(call) for call in calls])
            answers = await connection.exchange(packed, len(calls))
            unknown = [
                at
                for at, call in enumerate(calls)
                if call.script and isinstance(answers[at], Exception) and code_of(answers[at]) == "NOSCRIPT"
            ]
            if unknown:
                # the server has not run them: it says that it has no such script
                packed = client.pack([_whole(calls[at]) for at in unknown])
                for at, answer in zip(unknown, await connection.exchange(packed, len(unknown)), strict=True):
                    answers[at] = answer
        finally:
            await self.give_back(connection)
        return [client.checked(answer) for answer in answers]


class ServerTransport(_Leasing):
    """Connections of our own to a server, opened when they are needed and kept until the end.

    A connection whose call was cancelled or timed out is closed; the next call opens another one.

    Args:
        url: `redis://`, `rediss://` or `unix://`, for the client's own parser.
        settings: Sizes and timeouts.
    """

    def __init__(self, url: str, settings: RedisSettings) -> None:
        self._url = url
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.pool_size)
        self._idle: list[Connection] = []
        self._address: Addressed | None = None

    async def open(self, setup: Work) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        try:
            await setup(self)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close every connection. Idempotent."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.drop()

    async def take(self) -> "Connection":
        if self._slots.locked():
            await self._wait_for_slot()
        else:
            await self._slots.acquire()
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_at_rest():
                    return connection
                await connection.drop()
            return await self._addressed().connect()
        except BaseException:
            self._slots.release()
            raise

    async def give_back(self, connection: "Connection") -> None:
        """Keep a connection, unless it may be in the middle of something."""
        self._slots.release()
        if connection.is_at_rest():
            self._idle.append(connection)

    async def _wait_for_slot(self) -> None:
        try:
            async with asyncio.timeout(self._settings.acquire_timeout):
                await self._slots.acquire()
        except TimeoutError as error:
            raise MemoryAdapterUnavailable("every connection stayed busy; nothing was sent") from error

    def _addressed(self) -> "Addressed":
        if self._address is None:
            from .client import Addressed  # noqa: PLC0415 - the client library is loaded when it is first used

            self._address = Addressed(self._url, self._settings)
        return self._address


class ClientTransport(_Leasing):
    """An asyncio client of the caller's, which stays open.

    Args:
        client: As the caller made it; whether it decodes answers makes no difference.
        settings: Timeouts.
    """

    def __init__(self, client: Any, settings: RedisSettings) -> None:
        from .client import Pooled  # noqa: PLC0415 - the client library is loaded already

        self._pool = Pooled(client, settings.command_timeout)
        self._settings = settings

    async def close(self) -> None:
        """Leave the client to its owner."""

    async def take(self) -> "Connection":
        try:
            async with asyncio.timeout(self._settings.acquire_timeout):
                return await self._pool.take()
        except TimeoutError as error:
            raise MemoryAdapterUnavailable(
                "the client gave no connection in time; nothing was sent"
            ) from error

    async def give_back(self, connection: "Connection") -> None:
        await self._pool.give_back(connection)


class ClusterTransport:
    """An asyncio client of the caller's for a cluster, which stays open and finds the node itself.

    Args:
        client: As the caller made it.
        settings: Timeouts.
    """

    def __init__(self, client: Any, settings: RedisSettings) -> None:
        self._client = client
        self._settings = settings

    async def open(self, setup: Work) -> None:
        """Run the set-up."""
        await setup(self)

    async def close(self) -> None:
        """Leave the client to its owner."""

    async def send(self, *calls: Call) -> Sequence[Any]:
        """Send commands one after the other; see `Session`."""
        from . import client  # noqa: PLC0415 - the client library is loaded already

        answers: list[Any] = []
        async with asyncio.timeout(self._settings.command_timeout):
            for call in calls:
                answer = await client.ask_cluster(self._client, *_known(call))
                if call.script and isinstance(answer, Exception) and code_of(answer) == "NOSCRIPT":
                    answer = await client.ask_cluster(self._client, *_whole(call))
                answers.append(answer)
        return [client.checked(answer) for answer in answers]


def _known(call: Call) -> Sequence[bytes]:
    """Give a command; a script by its digest."""
    if call.script is None:
        return call.arguments
    return (b"EVALSHA", call.script.digest, b"1", call.key, *call.arguments)


def _whole(call: Call) -> Sequence[bytes]:
    """Give the command that brings its script along."""
    source = call.script.source if call.script else b""
    return (b"EVAL", source, b"1", call.key, *call.arguments)
