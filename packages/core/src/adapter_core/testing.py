"""What the deterministic fakes and the harnesses of adapters share. Not imported by `adapter_core`.

A fake stands where an adapter's transport stands. It keeps a log of what was sent, and has
switches that make it misbehave as a real service may.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ._store import AdapterStore

Environment = Literal["fake", "embedded", "live"]
"""Where a harness runs: on a double, on a real engine of our own, or on a service."""

CallKind = Literal["setup", "write", "identity", "search", "other"]


OPERATION_KINDS: Mapping[str, CallKind] = {
    "open": "setup",
    "remembered": "setup",
    "put": "write",
    "delete": "write",
    "clear": "write",
    "replace": "write",
    "reindex": "write",
    "adopt": "write",
    "forget": "write",
    "get": "identity",
    "get_revision": "identity",
    "find": "search",
}
"""The kind of each operation of a driver; the rest is `other`."""


class Engine(NamedTuple):
    """What stands behind an adapter in a harness's environment.

    Attributes:
        name: Such as `SQLite`.
        version: The real version, as the engine itself gives it.
        note: Anything that a reader must know, such as `faults are injected`.
    """

    name: str
    version: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TransportCall:
    """One request that reached the transport.

    Attributes:
        operation: The backend's own word for it.
        kind: `identity` for a read by id, `search` for a read through a search index.
        payload: All that was sent, as text.
    """

    operation: str
    kind: CallKind
    payload: str = ""


@dataclass
class Faults:
    """The switches of a fake, and its log.

    Attributes:
        down: Every request fails as it does when the service cannot be reached.
        refuse_writes: A write is refused by the service, and nothing is stored.
        refuse_queries: A search is refused by the service.
        drop_identity: A write is acknowledged without the identity, and nothing is stored.
        hold_index: Searches see the index as it was when this was switched on.
        calls: Every request that reached the transport, also those that failed.
    """

    down: bool = False
    refuse_writes: bool = False
    refuse_queries: bool = False
    drop_identity: bool = False
    hold_index: bool = False
    calls: list[TransportCall] = field(default_factory=list[TransportCall])

    def reset(self) -> None:
        """Turn every switch off, and forget the log."""
        self.down = self.refuse_writes = self.refuse_queries = False
        self.drop_identity = self.hold_index = False
        self.calls.clear()


class ImmediateHarness:
    """What the harnesses of an immediate adapter share: the stores that they made."""

    def __init__(self) -> None:
        self._stores: list[AdapterStore[Any]] = []

    async def make_store(self) -> AdapterStore[Any]:
        """Make a store with no option."""
        return await self.make_store_with()

    async def make_store_with(self, **options: Any) -> AdapterStore[Any]:
        """Make a store with constructor options."""
        self._stores.append(await self.new_store(**options))
        return self._stores[-1]

    async def make_search_index_visible(self) -> None:
        """Do nothing: the index is part of the write."""

    async def close_stores(self) -> None:
        """Close every store that was made."""
        for store in self._stores:
            await store.close()
        self._stores.clear()

    async def new_store(self, **options: Any) -> AdapterStore[Any]:
        """Make a store; a harness gives this."""
        raise NotImplementedError(f"{type(self).__name__} makes no stores: {sorted(options)}")


class InjectedFaults:
    """The hooks of a harness that only turn a switch at the transport, whatever stands behind it.

    Attributes:
        faults: The switches.
    """

    faults: Faults

    def transport_calls(self) -> Sequence[TransportCall]:
        """Give every request so far."""
        return self.faults.calls

    async def make_transport_unavailable(self) -> None:
        """Start an outage."""
        self.faults.down = True

    async def make_transport_available(self) -> None:
        """End the outage."""
        self.faults.down = False

    async def refuse_writes(self, refuse: bool) -> None:
        """Refuse every write, or end that."""
        self.faults.refuse_writes = refuse

    async def refuse_queries(self, refuse: bool) -> None:
        """Refuse every search, or end that."""
        self.faults.refuse_queries = refuse

    async def drop_identity(self, drop: bool) -> None:
        """Acknowledge writes without an identity and store nothing, or end that."""
        self.faults.drop_identity = drop


class FaultHooks(InjectedFaults):
    """The hooks of a harness that only turn a switch of its fake.

    A harness of a fake inherits them, and adds what else the kit stages.
    """

    async def hold_search_index(self, hold: bool) -> None:
        """Keep the search index as it is, or let it catch up."""
        self.faults.hold_index = hold


@dataclass(frozen=True)
class Container:
    """How to run the service of a live harness where the user gives none.

    `{password}` stands for a password that is drawn for each container, in every text; `{host}` and
    `{port}`, in `url` only, for where the service then answers.

    Attributes:
        image: A public image; the user can put another one in its place.
        port: Where the service listens in the container.
        url: What the harness is made with.
        env: Environment variables of the container.
        command: What the container runs; empty: the image's own command.
    """

    image: str
    port: int
    url: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    command: str = ""


class Proxy:
    """The way to a real server, which can be closed and opened again: an outage for a harness.

    It passes bytes between clients and one server, on a port of the loopback interface.

    Args:
        host: Where the server is.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self.port = 0

    async def accept(self) -> None:
        """Let clients through, on the same port each time. Idempotent."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Reset every connection, and refuse new ones. Idempotent."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def close(self) -> None:
        """End everything."""
        await self.refuse()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a stream server runs each client in a task
        self._pipes.add(task)
        writers = [writer]
        try:
            there, back = await asyncio.open_connection(*self._target)
            writers.append(back)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass(reader, back))
                group.create_task(_pass(there, writer))
        except (OSError, ExceptionGroup):
            pass  # either side is gone, and with it both
        except asyncio.CancelledError:
            pass  # an outage: the task ends here, as its last deed
        finally:
            self._pipes.discard(task)
            for one in writers:
                one.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one side ends."""
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    raise ConnectionResetError
