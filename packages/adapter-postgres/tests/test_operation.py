"""Connections that break, block, run out and are given up; and what the server promises."""

import asyncio
import ssl
import threading
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery, open_store
from adapter_core.testing import Proxy
from adapter_postgres import PostgresMemoryStore, PostgresSettings, client
from adapter_postgres.embedded import EmbeddedServer

BOUND = 20
"""Seconds within which anything here must have ended."""


def changed(settings, **values):
    return PostgresSettings(**{"schema": settings.schema, "pool_size": settings.pool_size, **values})


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


async def backends(admin, condition):
    """Give the server's processes for the tables of this test."""
    sql = f"SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1 AND {condition}"
    return [row[0] for row in await admin.run(sql, f"%{admin._names.schema}%")]


async def until(look):
    """Ask the server again until it says so."""
    async with asyncio.timeout(BOUND):
        while not (found := await look()):
            pass
    return found


async def waiting(admin):
    return await until(lambda: backends(admin, "wait_event_type = 'Lock'"))


@asynccontextmanager
async def role(server, admin, *settings):
    """Make a role with settings of its own; the address for it."""
    name = f"role_{admin._names.schema}"
    await admin.run(f"CREATE ROLE {name} SUPERUSER LOGIN PASSWORD 'word'")
    try:
        for setting in settings:
            await admin.run(f"ALTER ROLE {name} SET {setting}")
        yield server.url(user=name, password="word")
    finally:
        await admin.run(f"REASSIGN OWNED BY {name} TO postgres")
        await admin.run(f"DROP ROLE {name}")


async def is_unavailable(call, match=None):
    with pytest.raises(MemoryAdapterUnavailable, match=match) as raised:
        async with asyncio.timeout(BOUND):
            await call
    return raised.value


# Options and lifecycle


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://user:secret@host/db", "postgres+psycopg://user:secret@host", "mysql://secret@host",
        "postgresql:secret", "secret", "",
    ],
)  # fmt: skip
def test_another_url_is_refused_and_not_shown(url):
    with pytest.raises(MemoryAdapterError, match="begins with postgresql://") as raised:
        PostgresMemoryStore(url)
    assert "secret" not in str(raised.value)
    assert ("+driver" in str(raised.value)) == ("+" in url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
async def test_open_store_finds_the_adapter_by_both_schemes(server, settings, admin, scheme):
    url = server.url().replace("postgresql://", f"{scheme}://")
    async with open_store(url, settings=settings) as store:
        assert isinstance(store, PostgresMemoryStore)
        item = MemoryItem()
        await store.store(item)
        assert await store.retrieve(item.id) == item


@pytest.mark.parametrize("given", [None, 5, b"postgresql://", object()])
def test_what_is_no_url_and_no_pool_is_refused(given):
    with pytest.raises(MemoryAdapterError, match=r"URL or an asyncpg\.Pool"):
        PostgresMemoryStore(given)


@pytest.mark.parametrize(
    "values",
    [
        {"pool_size": 0}, {"pool_size": True}, {"pool_size": 1.5}, {"statement_cache": -1},
        {"connect_timeout": 0}, {"command_timeout": float("inf")}, {"acquire_timeout": "1"},
        {"durability": "none"},
    ],
)  # fmt: skip
def test_illegal_settings_are_refused(values):
    with pytest.raises(MemoryAdapterError, match=next(iter(values))):
        PostgresSettings(**values)
    with pytest.raises(MemoryAdapterError):
        PostgresMemoryStore("postgresql://host", settings=values)


async def test_a_url_that_the_client_cannot_read_is_an_error_that_does_not_show_it():
    urls = (
        "postgresql://user@host:secret/db",
        "postgresql://host/?sslmode=secret",
        "postgresql://127.0.0.1:99999/",
    )
    for url in urls:
        async with PostgresMemoryStore(url) as store:
            with pytest.raises(MemoryAdapterError, match="cannot read the URL") as raised:
                await store.retrieve(MemoryItem().id)
            assert "secret" not in f"{raised.value}{raised.value.__cause__}{store!r}"


async def test_a_server_whose_certificate_is_refused_was_not_reached(monkeypatch):
    async def refuse(*_, **__):
        raise ssl.SSLCertVerificationError("self-signed certificate")

    monkeypatch.setattr(asyncpg, "connect", refuse)
    async with PostgresMemoryStore("postgresql://u@host/db?sslmode=verify-full") as store:
        with pytest.raises(MemoryAdapterUnavailable, match="nothing was sent"):
            await store.search(MemoryQuery())


async def test_b39_after_close_and_on_another_loop(on_server):
    store = on_server()
    item = MemoryItem()
    await store.store(item)
    errors = []

    def elsewhere():
        try:
            asyncio.run(store.retrieve(item.id))
        except MemoryAdapterError as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join, BOUND)
    assert "event loop" in str(errors[0])
    await store.close()
    await store.close()
    with pytest.raises(MemoryAdapterUnavailable):
        await store.retrieve(item.id)


async def test_close_leaves_no_connection(on_server, admin):
    store = on_server()
    await asyncio.gather(*(store.store(MemoryItem(content=n)) for n in range(5)))
    await asyncio.gather(*(store.search(MemoryQuery(text=str(n))) for n in range(5)))
    assert 1 < len(await backends(admin, "true")) <= 4
    await store.close()
    await until(lambda: no_backends(admin))


async def no_backends(admin):
    return not await backends(admin, "true")


async def test_a_pool_of_the_callers_is_used_and_left_open(server, settings, admin):
    async with asyncpg.create_pool(server.url(), min_size=1, max_size=2) as pool:
        for _ in range(2):
            async with PostgresMemoryStore(pool, settings=settings) as store:
                items = [MemoryItem(content=n, tags=["t"]) for n in range(5)]
                await asyncio.gather(*map(store.store, items))
                await store.store_many(items)
                assert await store.search(MemoryQuery(tags=["t"], limit=1)) == items[-1:]
                assert await store.clear() == 5
        assert await pool.fetchval("SELECT 1") == 1


async def test_b38_without_prepared_statements_no_session_state_is_needed(server, settings, admin):
    bare = changed(settings, statement_cache=0)
    async with PostgresMemoryStore(server.url(), settings=bare, filters=["k"]) as store:
        items = [MemoryItem(content=f"w{n}", tags=["t"], metadata={"k": n}) for n in range(20)]
        for _ in range(2):
            await asyncio.gather(*map(store.store, items))
            found = await asyncio.gather(*(store.search(MemoryQuery(filters={"k": n})) for n in range(20)))
            assert [hits[0].id for hits in found] == [item.id for item in items]


# What breaks


async def test_b43_a_wrong_password_is_unavailable_and_not_shown(server, settings, admin):
    async with PostgresMemoryStore(server.url(password="wrong word"), settings=settings) as store:
        for call in (store.retrieve(MemoryItem().id), store.search(MemoryQuery()), store.store(MemoryItem())):
            error = await is_unavailable(call)
            assert isinstance(error.__cause__, asyncpg.InvalidPasswordError)
            assert "wrong word" not in f"{error}{error.__cause__}{store!r}"


async def test_b43_a_database_that_is_not_there_is_unavailable(server, settings):
    async with PostgresMemoryStore(server.url("nowhere"), settings=settings) as store:
        await is_unavailable(store.retrieve(MemoryItem().id))


@pytest.mark.parametrize("table", ["{items}", "{namespaces}"])
async def test_b43_a_dropped_table_is_unavailable_with_its_cause(on_server, admin, table):
    store = on_server()
    item = MemoryItem(content="x")
    await store.store(item)
    await admin.run(f"DROP TABLE {table}")
    for call in (store.retrieve(item.id), store.search(MemoryQuery(text="x")), store.store(item)):
        error = await is_unavailable(call)
        assert isinstance(error.__cause__, asyncpg.UndefinedTableError)


async def test_b39_a_backend_killed_in_the_middle_is_unavailable_and_the_next_call_works(
    server, settings, admin, on_server
):
    store = on_server()
    await store.store(MemoryItem())
    async with blocked(server, settings, admin):
        writing = asyncio.create_task(store.store(MemoryItem(content="lost")))
        for pid in await waiting(admin):
            await admin.run("SELECT pg_terminate_backend($1)", pid)
        error = await is_unavailable(writing)
        assert error.outcome_unknown
    assert len(await store.search(MemoryQuery())) == 1


async def test_idle_backends_that_were_killed_are_replaced(on_server, admin):
    store = on_server()
    item = MemoryItem()
    await store.store(item)
    for pid in await backends(admin, "true"):
        await admin.run("SELECT pg_terminate_backend($1)", pid)
    await until(lambda: no_backends(admin))
    with suppress(MemoryAdapterUnavailable):  # the news may not have reached the client
        await store.retrieve(item.id)
    assert await store.retrieve(item.id) == item


async def test_a_restarted_and_a_crashed_server_are_met_again_with_what_they_acknowledged(server):
    own = EmbeddedServer()
    await asyncio.to_thread(own.start)
    try:
        async with PostgresMemoryStore(own.url()) as store:
            items = [MemoryItem(content=n) for n in range(3)]
            await store.store(items[0])
            await asyncio.to_thread(own.restart)
            await recovered(store, items[0])
            await store.store(items[1])
            await asyncio.to_thread(own.restart, crash=True)
            await recovered(store, items[1])
            await store.store(items[2])
            assert len(await store.search(MemoryQuery())) == 3
    finally:
        await asyncio.to_thread(own.stop)


async def recovered(store, item):
    with suppress(MemoryAdapterUnavailable):  # the connection that was open ended with the server
        await store.retrieve(item.id)
    assert await store.retrieve(item.id) == item


async def test_b39_an_exhausted_pool_is_unavailable_in_time_and_sends_nothing(
    server, settings, admin, on_server
):
    store = on_server(settings=changed(settings, pool_size=1, acquire_timeout=0.02))
    await store.store(MemoryItem())
    async with blocked(server, settings, admin):
        writing = asyncio.create_task(store.store(MemoryItem()))
        await waiting(admin)
        for _ in range(50):
            await is_unavailable(store.retrieve(MemoryItem().id), "stayed busy; nothing was sent")
    await writing
    assert len(await store.search(MemoryQuery())) == 2


async def test_b39_an_exhausted_pool_of_the_callers_is_unavailable_in_time(server, settings, admin):
    async with asyncpg.create_pool(server.url(), min_size=1, max_size=1) as pool:
        short = changed(settings, acquire_timeout=0.05)
        async with PostgresMemoryStore(pool, settings=short) as store:
            await store.store(MemoryItem())
            async with pool.acquire():
                await is_unavailable(store.retrieve(MemoryItem().id), "nothing was sent")
            assert len(await store.search(MemoryQuery())) == 1


async def test_a_statement_that_takes_too_long_is_unavailable_and_ends_on_the_server_too(
    server, settings, admin, on_server
):
    store = on_server(settings=changed(settings, pool_size=1, command_timeout=0.5))
    await store.store(MemoryItem())
    async with blocked(server, settings, admin):
        for _ in range(2):
            error = await is_unavailable(store.store(MemoryItem()))
            assert isinstance(error.__cause__, TimeoutError)
        await until(lambda: no_backends_waiting(admin))
    assert len(await store.search(MemoryQuery())) == 1


async def test_a_statement_on_a_pool_of_the_callers_takes_no_longer_either(server, settings, admin):
    short = changed(settings, command_timeout=0.3)
    async with asyncpg.create_pool(server.url(), min_size=1, max_size=1) as pool:
        async with PostgresMemoryStore(pool, settings=short) as store:
            await store.store(MemoryItem())
            async with blocked(server, settings, admin):
                error = await is_unavailable(store.store(MemoryItem()))
                assert isinstance(error.__cause__, TimeoutError)
                await until(lambda: no_backends_waiting(admin))
            assert len(await store.search(MemoryQuery())) == 1
        assert pool.get_idle_size() == 1


async def test_a_timeout_of_ours_and_one_of_the_caller_are_told_apart(server, settings, admin, on_server):
    store = on_server(settings=changed(settings, pool_size=1, command_timeout=0.5))
    await store.store(MemoryItem())
    async with blocked(server, settings, admin):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await store.store(MemoryItem())
        await until(lambda: no_backends_waiting(admin))
        await is_unavailable(store.store(MemoryItem()))
        assert asyncio.current_task().cancelling() == 0
    assert len(await store.search(MemoryQuery())) == 1


async def test_no_timer_is_left_when_a_store_is_closed(on_server):
    loop = asyncio.get_running_loop()
    store = on_server()
    await asyncio.gather(*(store.search(MemoryQuery()) for _ in range(20)))
    await store.close()
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []


async def no_backends_waiting(admin):
    return not await backends(admin, "wait_event_type = 'Lock'")


async def test_the_servers_own_timeout_is_unavailable(server, settings, admin):
    async with (
        role(server, admin, "statement_timeout = '100ms'") as url,
        PostgresMemoryStore(url, settings=settings) as store,
    ):
        await store.store(MemoryItem())
        async with blocked(server, settings, admin):
            error = await is_unavailable(store.store(MemoryItem()))
            assert isinstance(error.__cause__, asyncpg.QueryCanceledError)
        await store.store(MemoryItem())


async def test_a_read_only_server_is_unavailable_for_writes_alone(server, settings, admin, on_server):
    item = MemoryItem()
    await on_server().store(item)
    async with (
        role(server, admin, "default_transaction_read_only = on") as url,
        PostgresMemoryStore(url, settings=settings) as store,
        PostgresMemoryStore(url, settings=settings, namespace="new") as new,
    ):
        assert await store.retrieve(item.id) == item
        assert await store.search(MemoryQuery()) == [item]
        for call in (store.store(item), store.delete(item.id), store.clear(), new.retrieve(item.id)):
            await is_unavailable(call)


# Cancellation


async def test_a_cancelled_write_is_absent_and_its_connection_is_replaced(server, settings, admin, on_server):
    store = on_server(settings=changed(settings, pool_size=1))
    await store.store(MemoryItem(content="before"))
    async with blocked(server, settings, admin):
        writing = asyncio.create_task(store.store(MemoryItem(content="cancelled")))
        await waiting(admin)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert [hit.content for hit in await store.search(MemoryQuery())] == ["before"]
        await until(lambda: no_backends_waiting(admin))
    await store.store(MemoryItem(content="after"))
    assert len(await store.search(MemoryQuery())) == 2
    assert len(await backends(admin, "true")) == 1


async def test_a_cancelled_batch_of_several_statements_leaves_nothing(
    server, settings, admin, on_server, monkeypatch
):
    monkeypatch.setattr("adapter_postgres.driver.MAX_ROWS", 2)
    store = on_server()
    await store.clear()
    # every other row waits, and so the second statement of the transaction
    items = sorted((MemoryItem() for _ in range(4)), key=lambda item: item.id)
    await store.store(items[3])
    holder = await client.connect(server.url(), settings)
    await holder.run("BEGIN")
    await holder.run(admin._names.fill("SELECT FROM {items} FOR UPDATE"))
    writing = asyncio.create_task(store.store_many(items))
    await waiting(admin)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await holder.run("ROLLBACK")
    await holder.close(BOUND)
    assert [hit.id for hit in await store.search(MemoryQuery())] == [items[3].id]


class Silent:
    """A server that takes connections and says nothing."""

    async def __aenter__(self):
        self.met, self.left = asyncio.Event(), asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"postgresql://u:p@127.0.0.1:{self._server.sockets[0].getsockname()[1]}/db?sslmode=disable"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        self.met.set()
        while await reader.read(1000):
            pass
        self.left.set()
        writer.close()


async def test_a_cancelled_connect_leaves_no_connection(monkeypatch):
    monkeypatch.setattr("adapter_postgres.transport.CLOSE_TIMEOUT", 0.1)
    async with Silent() as silent, PostgresMemoryStore(silent.url) as store:
        call = asyncio.create_task(store.retrieve(MemoryItem().id))
        await asyncio.wait_for(silent.met.wait(), BOUND)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(silent.left.wait(), BOUND)


async def test_a_server_that_says_nothing_is_unavailable_in_time():
    settings = PostgresSettings(connect_timeout=0.1)
    async with Silent() as silent, PostgresMemoryStore(silent.url, settings=settings) as store:
        error = await is_unavailable(store.retrieve(MemoryItem().id))
        assert isinstance(error.__cause__, TimeoutError)
        await asyncio.wait_for(silent.left.wait(), BOUND)


async def test_an_outage_and_its_end_are_met_on_every_verb(server, settings, admin):
    proxy = Proxy("127.0.0.1", server.port)
    await proxy.accept()
    url = server.url().replace(f":{server.port}/", f":{proxy.port}/")
    async with PostgresMemoryStore(url, settings=settings) as store:
        item = MemoryItem()
        await store.store(item)
        await proxy.refuse()
        for call in (store.retrieve(item.id), store.search(MemoryQuery()), store.store(item), store.clear()):
            await is_unavailable(call)
        await proxy.accept()
        assert await store.retrieve(item.id) == item
    await proxy.close()


# Durability


async def test_a_store_reads_what_others_have_committed_whatever_the_default_is(server, settings, admin):
    async with (
        role(server, admin, "default_transaction_isolation = 'repeatable read'") as url,
        PostgresMemoryStore(url, settings=settings) as store,
    ):
        await store.store(MemoryItem(tags=["t"]))
        await store.store_many([MemoryItem(tags=["t"]) for _ in range(3)])
        assert len(await store.search(MemoryQuery(tags=["t"]))) == 4


async def test_a_pool_whose_transactions_see_an_old_state_is_refused_for_writes(server, settings, admin):
    async with (
        role(server, admin, "default_transaction_isolation = 'repeatable read'") as url,
        asyncpg.create_pool(url, min_size=1, max_size=2) as pool,
        PostgresMemoryStore(pool, settings=settings) as store,
    ):
        for call in (store.store(MemoryItem()), store.clear()):
            error = await is_unavailable(call, "transactions are not read committed; nothing was done")
            assert not error.outcome_unknown
        assert await store.search(MemoryQuery()) == []


@pytest.mark.parametrize("durability", ["power", "crash"])
async def test_a_server_that_keeps_less_than_is_declared_is_unavailable_for_writes(
    server, settings, admin, durability
):
    strict = changed(settings, durability=durability)
    async with (
        role(server, admin, "synchronous_commit = off") as url,
        PostgresMemoryStore(url, settings=strict) as store,
    ):
        item = MemoryItem()
        for call in (store.store(item), store.delete(item.id), store.clear()):
            error = await is_unavailable(call, "synchronous_commit or fsync is off, .*; nothing was done")
            assert not error.outcome_unknown
        assert await store.search(MemoryQuery()) == []


async def test_a_volatile_store_turns_the_setting_off_for_its_own_writes_alone(server, settings, admin):
    relaxed = changed(settings, durability="volatile", pool_size=1)
    async with PostgresMemoryStore(server.url(), settings=relaxed) as store:
        assert store.durability == "volatile"
        item = MemoryItem()
        await store.store(item)
        assert await store.retrieve(item.id) == item
        connection = store._driver._transport._idle[0]
        ((setting,),) = await connection.run("SELECT current_setting('synchronous_commit')")
        assert setting == "on"
