"""The one module that uses redis-py, so that only its calls are weakly typed.

A request is written to a connection and its answers are read from it here, not by the client's own
`execute_command`: that would send a write again after an error, if the caller's client is so set, and it
costs as much as the server. A connection is given back only when every answer was read from it; an
exchange that ends early, as by a cancellation, closes it, so that no answer is left for another call.
"""

# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from .errors import code_of, is_unavailable
from .settings import RedisSettings

_SHOWN = ", with args beginning"


class Connection:
    """One connection, which shows no more of a native error than what it is.

    Args:
        native: What redis-py made.
        seconds: How long one request may take.
    """

    def __init__(self, native: Any, seconds: float) -> None:
        self._native = native
        self._seconds = seconds
        self._running = False

    async def exchange(self, packed: bytes, count: int) -> list[Any]:
        """Write a request and read its answers; an error of the server is one of them."""
        self._running = True
        writer = getattr(self._native, "_writer", None)
        try:
            async with asyncio.timeout(self._seconds):
                answers = await self._exchange(packed, count)
        except BaseException:
            if writer is not None:
                # redis-py would still send what is left of the request, and that may come after a later write
                writer.transport.abort()
            # what is still to come on it would be taken for the answer to another request
            await self.drop()
            raise
        self._running = False
        return answers

    async def _exchange(self, packed: bytes, count: int) -> list[Any]:
        native = self._native
        await native.send_packed_command(packed, check_health=False)
        answers: list[Any] = []
        for _ in range(count):
            try:
                answers.append(await native.read_response(disable_decoding=True))
            except ResponseError as error:
                answers.append(error)
            except RedisConnectionError as error:
                # some answers of the server are of this class, and leave the connection as it was
                if not code_of(error) or not native.is_connected:
                    raise
                answers.append(error)
        return answers

    def is_at_rest(self) -> bool:
        """Whether it can serve another call: open, idle, nothing left to read."""
        if self._running or not self._native.is_connected:
            return False
        reader = getattr(self._native, "_reader", None)  # there is no public way that does not wait
        return not (reader is None or reader.at_eof() or getattr(reader, "_buffer", b""))

    async def drop(self) -> None:
        """Close the socket without waiting for the other side."""
        with suppress(RedisError, OSError):  # it was broken, and is gone now
            await self._native.disconnect(nowait=True)

    @property
    def native(self) -> Any:
        """What redis-py made."""
        return self._native


class Addressed:
    """Makes connections to the server that a URL names.

    Args:
        url: Read by the client's own parser.
        settings: Timeouts.

    Raises:
        MemoryAdapterError: The client cannot read the URL; its own message may show a part of it.
    """

    def __init__(self, url: str, settings: RedisSettings) -> None:
        try:
            self._pool: Any = redis.asyncio.ConnectionPool.from_url(
                url,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=settings.connect_timeout,
            )
        except (ValueError, TypeError, RedisError) as error:
            reason = type(error).__name__
        else:
            options: dict[str, Any] = self._pool.connection_kwargs
            # one timeout for the whole exchange, which is cheaper than redis-py's for each part
            self._seconds: float = options.get("socket_timeout") or settings.command_timeout
            options["socket_timeout"] = None
            self._connect_seconds: float = options.get("socket_connect_timeout") or settings.connect_timeout
            return
        raise MemoryAdapterError(f"the client cannot read the URL ({reason})")

    async def connect(self) -> Connection:
        """Open a connection; a failed or cancelled one leaves nothing open.

        Raises:
            MemoryAdapterUnavailable: The server was not reached, or took no connection.
        """
        try:
            native = self._pool.make_connection()
        except TypeError as error:
            raise MemoryAdapterError("the URL has a parameter that the client does not know") from error
        connection = Connection(native, self._seconds)
        try:
            async with asyncio.timeout(self._connect_seconds):
                await native.connect()
        except (RedisError, OSError) as error:
            await connection.drop()
            raise _not_connected(error) from error
        except BaseException:
            await connection.drop()
            raise
        return connection


class Pooled:
    """Borrows connections of a client of the caller's.

    Args:
        client: As the caller made it.
        seconds: How long one request may take, whatever the client's own settings say.
    """

    def __init__(self, client: Any, seconds: float) -> None:
        self._pool = client.connection_pool
        self._seconds = seconds

    async def take(self) -> Connection:
        """Borrow a connection.

        Raises:
            MemoryAdapterUnavailable: The pool gave none, or the server was not reached.
        """
        try:
            native = await self._pool.get_connection()
        except (RedisError, OSError) as error:
            raise _not_connected(error) from error
        except RuntimeError as error:
            raise MemoryAdapterError("the client belongs to another event loop; make one for each") from error
        return Connection(native, self._seconds)

    async def give_back(self, connection: Connection) -> None:
        """Let the pool have it back, open or closed."""
        await self._pool.release(connection.native)


def is_client(value: object) -> bool:
    """Whether this is an asyncio client of redis-py for one server."""
    return isinstance(value, redis.asyncio.Redis)


def is_cluster(value: object) -> bool:
    """Whether this is an asyncio client of redis-py for a cluster."""
    from redis.asyncio.cluster import RedisCluster  # noqa: PLC0415 - few need it, and it is large

    return isinstance(value, RedisCluster)


async def ask_cluster(client: Any, *command: bytes) -> Any:
    """Send one command to the node of a cluster that has the key; its error is the answer.

    A script is for the node of its key; what has no key is for one node, and the scripts look at their own.
    """
    try:
        if not command[0].startswith(b"EVAL"):
            await client.initialize()
            return await client.get_default_node().execute_command(*command, NEVER_DECODE=True)
        # the client picks the node by the name of the command, which it takes as a str
        return await client.execute_command(command[0].decode(), *command[1:], NEVER_DECODE=True)
    except ResponseError as error:
        return error


def pack(commands: Sequence[Sequence[bytes]]) -> bytes:
    """Write commands as the server reads them."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for argument in command:
            parts.append(b"$%d\r\n" % len(argument))
            parts.append(argument)
            parts.append(b"\r\n")
    return b"".join(parts)


def checked(answer: Any) -> Any:
    """Give an answer, or raise the error that it is.

    Raises:
        MemoryAdapterUnavailable: The server says that it cannot now; nothing was done.
    """
    if not isinstance(answer, RedisError):
        return answer
    _hide_values(answer)
    if is_unavailable(code_of(answer)) or isinstance(answer, RedisConnectionError):
        raise MemoryAdapterUnavailable(
            f"the backend is unavailable ({code_of(answer) or type(answer).__name__}); nothing was done"
        ) from answer
    raise answer


def is_broken(error: Exception) -> bool:
    """Whether an error of the client itself means that the server was not asked or did not answer."""
    return isinstance(error, RedisConnectionError | RedisTimeoutError)


def _not_connected(error: Exception) -> MemoryAdapterUnavailable:
    name = type(error).__name__
    return MemoryAdapterUnavailable(f"no connection to the backend ({name}); nothing was sent")


def _hide_values(error: RedisError) -> None:
    """Take away what shows arguments: the server quotes them beside a command that it does not know."""
    if error.args and isinstance(error.args[0], str):
        error.args = (error.args[0].partition(_SHOWN)[0], *error.args[1:])
