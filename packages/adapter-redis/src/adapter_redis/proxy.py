"""A TCP proxy for tests: the way to a server, which can be closed and opened again."""

import asyncio
from contextlib import suppress


class Proxy:
    """Passes bytes between clients and one server, on a port of the loopback interface.

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
