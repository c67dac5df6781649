"""The proxy that harnesses put before a real server: an outage, and its end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapter_core.testing import Proxy

SECONDS = 10


@pytest.fixture
async def server() -> AsyncIterator[int]:
    """Give the port of a server that answers each line with itself, and ends at a blank one."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := await reader.readline()).strip():
            writer.write(line)
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()


@pytest.fixture
async def proxy(server: int) -> AsyncIterator[Proxy]:
    made = Proxy("127.0.0.1", server)
    await made.accept()
    yield made
    await made.close()


async def asked(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], line: bytes = b"word\n"
) -> bytes:
    reader, writer = connection
    writer.write(line)
    async with asyncio.timeout(SECONDS):
        return await reader.readline()


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the other side ends the connection, in whichever way, and sends nothing more."""
    async with asyncio.timeout(SECONDS):
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True


async def test_bytes_pass_both_ways(proxy: Proxy) -> None:
    connection = await asyncio.open_connection("127.0.0.1", proxy.port)
    large = b"x" * 50_000 + b"\n"
    assert await asked(connection) == b"word\n"
    assert await asked(connection, large) == large
    connection[1].close()


async def test_an_outage_resets_what_is_open_and_refuses_what_is_new(proxy: Proxy) -> None:
    connection = await asyncio.open_connection("127.0.0.1", proxy.port)
    await asked(connection)
    await proxy.refuse()
    await proxy.refuse()
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ended(connection[0])
    connection[1].close()


async def test_after_an_outage_clients_reach_the_server_by_the_same_port(proxy: Proxy) -> None:
    port = proxy.port
    await proxy.refuse()
    await proxy.accept()
    await proxy.accept()
    assert proxy.port == port
    connection = await asyncio.open_connection("127.0.0.1", port)
    assert await asked(connection) == b"word\n"
    connection[1].close()


async def test_when_the_server_ends_a_connection_its_client_sees_the_end(proxy: Proxy) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"\n")
    assert await ended(reader)
    writer.close()


async def test_without_a_server_the_client_sees_the_end(server: int) -> None:
    nowhere = Proxy("127.0.0.1", server)
    await nowhere.accept()
    empty = Proxy("127.0.0.1", nowhere.port)
    await empty.accept()
    await nowhere.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", empty.port)
    assert await ended(reader)
    writer.close()
    await empty.close()
