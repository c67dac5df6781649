"""What is known of a write that failed, and connections that are given up while they are made."""

import asyncio
import gc
from contextlib import asynccontextmanager, nullcontext

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem
from adapter_core.testing import Proxy
from adapter_postgres import PostgresMemoryStore, client, states
from adapter_postgres.harness import ServerHarness

BOUND = 20


async def refused(call):
    with pytest.raises(MemoryAdapterUnavailable) as raised:
        async with asyncio.timeout(BOUND):
            await call
    return raised.value


@asynccontextmanager
async def blocked(server, settings, admin):
    """Keep every write waiting, until the end."""
    holder = await client.connect(server.url(), settings)
    await holder.run("BEGIN")
    await holder.run(admin._names.fill("LOCK TABLE {items} IN SHARE MODE"))
    try:
        yield
    finally:
        await holder.run("ROLLBACK")
        await holder.close(BOUND)


@pytest.mark.parametrize(
    ("setting", "way"),
    [
        ("default_transaction_read_only=on", nullcontext),
        ("lock_timeout=50", blocked),
        ("statement_timeout=50", blocked),
    ],
)
async def test_what_the_server_refused_was_not_done(server, settings, on_server, admin, setting, way):
    await on_server().store(MemoryItem())
    context = way(server, settings, admin) if way is blocked else way()
    async with context, PostgresMemoryStore(f"{server.url()}&{setting}", settings=settings) as store:
        for call in (store.store(MemoryItem()), store.clear(), store.drop_namespace()):
            error = await refused(call)
            assert not error.outcome_unknown
            assert states.is_unavailable(error.__cause__.sqlstate)


async def test_a_write_to_a_table_that_is_gone_was_not_done(on_server, admin):
    store = on_server()
    await store.store(MemoryItem())
    await admin.run("DROP TABLE {items}")
    assert not (await refused(store.store(MemoryItem()))).outcome_unknown


async def test_without_a_connection_nothing_was_written(server, settings, admin):
    proxy = Proxy("127.0.0.1", server.port)
    await proxy.accept()
    url = server.url().replace(f":{server.port}/", f":{proxy.port}/")
    async with PostgresMemoryStore(url, settings=settings) as store:
        await store.store(MemoryItem())
        await proxy.refuse()
        await refused(store.store(MemoryItem()))  # the connection that was open may break in the middle
        error = await refused(store.store(MemoryItem()))
        assert isinstance(error.__cause__, OSError)
        assert not error.outcome_unknown
    await proxy.close()


@pytest.mark.parametrize(
    ("state", "expected"),
    [("25006", True), ("53100", True), ("57014", True), ("55P03", True), ("42P01", True), ("28P01", True),
     ("08006", False), ("57P01", False), ("57P02", False), ("25P04", False)],
)  # fmt: skip
def test_answers_are_told_from_the_end_of_a_connection(state, expected):
    assert states.is_unavailable(state)
    assert states.is_refusal(state) is expected


class WithoutTls:
    """Answers the request for TLS with no, and then says nothing."""

    async def __aenter__(self):
        self.left = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"postgresql://u:p@127.0.0.1:{self._server.sockets[0].getsockname()[1]}/db"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        await reader.read(1000)
        writer.write(b"N")
        while await reader.read(1000):
            pass
        self.left.set()
        writer.close()


def test_a_connect_that_is_cancelled_at_any_moment_leaves_no_error_behind(server, settings):
    url = server.url().replace("sslmode=disable", "sslmode=prefer")
    left = []

    async def cancelled(steps):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context["message"]))
        async with PostgresMemoryStore(url, settings=settings) as store:
            call = asyncio.create_task(store.retrieve(MemoryItem().id))
            for _ in range(steps):
                await asyncio.sleep(0.0002)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        gc.collect()

    for steps in range(60):
        asyncio.run(cancelled(steps))
    assert left == []


async def test_close_does_not_wait_long_for_a_connect_that_was_cancelled(monkeypatch):
    monkeypatch.setattr("adapter_postgres.transport.CLOSE_TIMEOUT", 0.1)
    async with WithoutTls() as silent:
        async with PostgresMemoryStore(silent.url) as store:
            call = asyncio.create_task(store.retrieve(MemoryItem().id))
            await asyncio.sleep(0.05)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await asyncio.wait_for(silent.left.wait(), 1)


def test_the_ddl_has_no_other_options():
    with pytest.raises(MemoryAdapterError, match="not x"):
        PostgresMemoryStore.ddl(x="1")


@pytest.mark.parametrize(
    "url", ["postgresql:///db?host=elsewhere", "postgresql://a,b/db", "postgresql://a/db?port=1"]
)
async def test_a_harness_refuses_an_address_that_its_proxy_cannot_stand_before(url):
    class Harness(ServerHarness):
        async def url(self):
            return url

    with pytest.raises(MemoryAdapterUnavailable, match="address of one server"):
        await Harness().engine()
