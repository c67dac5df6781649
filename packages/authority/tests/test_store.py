"""The stores on databases: life, tables and their versions, errors, logs."""

import asyncio
import inspect
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only

import memory_authority
from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable
from adapter_postgres import embedded
from memory_authority import (
    AuthorityError,
    InMemorySessionStore,
    PostgresSessionStore,
    SchemaMismatch,
    Scope,
    SessionMode,
    SessionNotFound,
    SessionStore,
    SqliteSessionStore,
    open_session_store,
    schema,
)
from memory_authority.sql_store import SqlSessionStore
from memory_authority.testing import PostgresHarness, SessionStoreHarness, SqliteHarness
from memory_authority.testing.harness import SqlHarness
from memory_authority.testing.samples import ALICE, opening, said, with_tools

NOWHERE = "postgresql://nobody:hunter2@127.0.0.1:1/none"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> SqlHarness:
    found: SqlHarness = request.getfixturevalue(request.param)
    return found


def test_R87_constructors_do_no_io(tmp_path: Path) -> None:
    PostgresSessionStore(NOWHERE)
    SqliteSessionStore(tmp_path / "none" / "sessions.db")
    open_session_store(f"sqlite:///{tmp_path / 'sessions.db'}")
    open_session_store(NOWHERE)
    assert list(tmp_path.iterdir()) == []


async def test_R87_open_and_close_are_explicit_and_closing_is_idempotent(
    harness: SessionStoreHarness,
) -> None:
    store: Any = await harness.make()
    await store.open()
    await store.aclose()
    await store.aclose()
    with pytest.raises(MemoryAdapterUnavailable, match="closed"):
        await store.get(ALICE, (await (await harness.make()).create(ALICE, SessionMode.CHAT)).session_id)


async def test_R87_leaving_the_context_closes(tmp_path: Path) -> None:
    async with SqliteSessionStore(tmp_path / "sessions.db") as store:
        await store.migrate()
    with pytest.raises(MemoryAdapterUnavailable, match="closed"):
        await store.list(ALICE)
    # the last connection has folded the log into the file
    assert [path.name for path in tmp_path.iterdir()] == ["sessions.db"]  # noqa: ASYNC240


def test_R87_there_is_no_state_beside_the_instances() -> None:
    stores = [InMemorySessionStore(), InMemorySessionStore()]
    made = asyncio.run(stores[0].create(ALICE, SessionMode.CHAT))
    assert asyncio.run(stores[1].get(ALICE, made.session_id)) is None


async def test_R87_an_engine_that_was_given_stays_open(postgres: PostgresHarness, postgres_url: str) -> None:
    await postgres.make()
    host = postgres_url.replace("postgresql://", "postgresql+asyncpg://").split("?", maxsplit=1)[0]
    engine = create_async_engine(
        host,
        connect_args={"server_settings": {"search_path": "authority_test"}, "ssl": False},
        hide_parameters=True,
    )
    try:
        async with PostgresSessionStore(engine) as store:
            made = await store.create(ALICE, SessionMode.CHAT)
        async with engine.connect() as connection:
            found = await connection.execute(text("SELECT count(*) FROM authority_session"))
            assert found.scalar_one() == 1
        assert made.mode is SessionMode.CHAT
    finally:
        await engine.dispose()


def test_R87_another_event_loop_is_refused(tmp_path: Path) -> None:
    store = SqliteSessionStore(tmp_path / "sessions.db")
    with asyncio.Runner() as first:
        first.run(store.migrate())
        with asyncio.Runner() as other, pytest.raises(AuthorityError, match="event loop"):
            other.run(store.list(ALICE))
        first.run(store.aclose())


def test_R87_a_database_in_memory_is_no_session_file() -> None:
    with pytest.raises(ValueError, match="InMemorySessionStore"):
        SqliteSessionStore(":memory:")


# R88


async def test_R88_missing_tables_are_not_made_by_the_way(tmp_path: Path) -> None:
    async with SqliteSessionStore(tmp_path / "sessions.db") as store:
        for call in (store.open(), store.create(ALICE, SessionMode.CHAT), store.list(ALICE)):
            with pytest.raises(SchemaMismatch, match=r"missing: call migrate\(\)"):
                await call
        await store.migrate()
        assert await store.list(ALICE) == []


async def test_R88_older_tables_are_upgraded_explicitly_and_newer_ones_refused(
    database: SqlHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)

    def add_a_table(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE IF NOT EXISTS authority_later (n INTEGER)"))

    def later(call: Any) -> Any:
        return lambda connection: call(connection, [add_a_table])

    try:
        async with store.engine.begin() as connection:
            with pytest.raises(SchemaMismatch, match=r"version 1, older .* call migrate\(\)"):
                await connection.run_sync(later(schema.check))
            await connection.run_sync(later(schema.migrate))
            await connection.run_sync(later(schema.check))
            await connection.run_sync(later(schema.migrate))  # nothing left to do
        fresh = database._store(database.clock)
        for call in (fresh.open(), fresh.migrate(), fresh.get(ALICE, made.session_id)):
            with pytest.raises(SchemaMismatch, match="version 2, newer than version 1"):
                await call
        await fresh.aclose()
        async with store.engine.connect() as connection:
            assert (await connection.run_sync(schema.row_counts))["authority_session"] == 1
    finally:
        async with store.engine.begin() as connection:
            await connection.execute(text("UPDATE authority_schema SET version = 1"))


async def test_R88_many_stores_may_make_the_tables_at_once(tmp_path: Path, postgres_url: str) -> None:
    await _empty_schema(postgres_url, "authority_race")
    postgres = postgres_url.replace("authority_test", "authority_race")
    for make in (lambda: SqliteSessionStore(tmp_path / "race.db"), lambda: PostgresSessionStore(postgres)):
        stores: list[SqlSessionStore] = [make() for _ in range(6)]
        await asyncio.gather(*(store.migrate() for store in stores))
        await asyncio.gather(*(store.create(ALICE, SessionMode.CHAT) for store in stores))
        assert len(await stores[0].list(ALICE)) == 6
        for store in stores:
            await store.aclose()


async def _empty_schema(url: str, name: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    await connection.execute(f"CREATE SCHEMA {name}")
    await connection.close()


async def test_R88_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection, connection:
        connection.execute("CREATE TABLE authority_turn (mine TEXT)")
    async with SqliteSessionStore(tmp_path / "sessions.db") as store:
        with pytest.raises(SchemaMismatch, match="another program: authority_turn"):
            await store.migrate()
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection:
        assert connection.execute("SELECT sql FROM sqlite_master").fetchall() == [
            ("CREATE TABLE authority_turn (mine TEXT)",)
        ]


async def test_R88_sqlite_is_opened_as_documented(sqlite: SqliteHarness) -> None:
    store = await sqlite.make()
    async with store.engine.connect() as connection:
        found = {
            name: (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5_000}


# R19, R16


async def test_R19_every_statement_names_the_owner(database: SqlHarness) -> None:
    store = await database.make()
    statements: list[str] = []

    def keep(_: Any, __: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    event.listen(store.engine.sync_engine, "before_cursor_execute", keep)
    made = await store.create(ALICE, SessionMode.CHAT, external_key="key")
    await store.create(ALICE, SessionMode.CHAT, external_key="key")
    await store.append(ALICE, made.session_id, opening())
    await store.append(ALICE, made.session_id, with_tools("1", "a"))
    await store.load(ALICE, made.session_id, last_turns=1)
    await store.trim(ALICE, made.session_id, keep_turns=1, erase=True)
    await store.load(ALICE, made.session_id)
    await store.expire(ALICE, before=database.clock.now, dry_run=False)
    await store.list(ALICE)
    await store.close(ALICE, made.session_id)
    await store.delete(ALICE, made.session_id)
    with pytest.raises(SessionNotFound):
        await store.append(ALICE, made.session_id, said("2"), incarnation=made.session_id)
    reading = [one for one in statements if one.split()[0] in {"SELECT", "UPDATE", "DELETE"}]
    assert len(reading) > 20
    for statement in reading:
        where = statement.partition("WHERE")[2]
        if "tombstone" in statement:
            assert "owner" in where
        else:
            assert all(f"authority_session.{name} =" in where for name in ("tenant", "principal", "agent"))


async def test_R08_a_load_reads_one_moment(database: SqlHarness) -> None:
    store, other = await database.make(), await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)
    await store.append(ALICE, made.session_id, opening())
    await store.append(ALICE, made.session_id, said("1"))
    before = await store.load(ALICE, made.session_id)
    deleted: list[bool] = []

    def delete_meanwhile(_: Any, __: Any, statement: str, *rest: Any) -> None:
        if "FROM authority_turn" in statement and not deleted:
            deleted.append(await_only(other.delete(ALICE, made.session_id)))

    event.listen(store.engine.sync_engine, "before_cursor_execute", delete_meanwhile)
    assert await store.load(ALICE, made.session_id) == before
    assert deleted == [True]
    with pytest.raises(SessionNotFound):
        await store.load(ALICE, made.session_id)


async def test_R04_the_tables_refuse_a_result_without_its_call(database: SqlHarness) -> None:
    store = await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)
    await store.append(ALICE, made.session_id, with_tools("1", "a"))
    orphan = text(
        "INSERT INTO authority_message (incarnation, turn_no, pos, role, content, outcome, call_message,"
        " call_index) SELECT incarnation, 0, 9, 'tool', '1', 'ok', 1, :call FROM authority_session"
    )
    for call in (0, 7):  # a second result, and a result of no call
        with pytest.raises(DBAPIError):
            async with store.engine.begin() as connection:
                await connection.execute(orphan, {"call": call})


# R90


async def test_R90_an_unreachable_database_is_unavailable(tmp_path: Path) -> None:
    for store in (PostgresSessionStore(NOWHERE), SqliteSessionStore(tmp_path / "none" / "sessions.db")):
        with pytest.raises(MemoryAdapterUnavailable) as caught:
            await store.migrate()
        assert caught.value.__cause__ is not None
        assert not caught.value.outcome_unknown
        assert "hunter2" not in str(caught.value)
        await store.aclose()
    # aiosqlite does not wait for the thread of a connection that could not be made
    for thread in threading.enumerate():
        if "_connection_worker_thread" in thread.name:
            await asyncio.to_thread(thread.join, 10)


async def test_R90_a_failed_commit_says_that_the_outcome_is_unknown(database: SqlHarness) -> None:
    store = await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)

    def fail(_: Any) -> None:
        raise OperationalError(None, None, sqlite3.OperationalError("staged"))

    event.listen(store.engine.sync_engine, "commit", fail)
    with pytest.raises(MemoryAdapterUnavailable) as caught:
        await store.append(ALICE, made.session_id, said("0"))
    event.remove(store.engine.sync_engine, "commit", fail)
    assert caught.value.outcome_unknown
    assert isinstance(caught.value.__cause__, OperationalError)
    # the way to find out
    assert (await store.append(ALICE, made.session_id, said("0"))).turns == 1


async def test_R90_what_the_database_refuses_is_an_error_of_the_layer(database: SqlHarness) -> None:
    store = await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)
    async with store.engine.begin() as connection:
        await connection.execute(text("ALTER TABLE authority_turn RENAME COLUMN digest TO was_digest"))
    try:
        with pytest.raises(MemoryAdapterError) as caught:
            await store.append(ALICE, made.session_id, said("0", "hunter2"))
        assert isinstance(caught.value.__cause__, DBAPIError)
        assert "hunter2" not in f"{caught.value}{caught.value.__cause__}"
    finally:
        async with store.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE authority_turn RENAME COLUMN was_digest TO digest"))


async def test_R90_a_locked_file_is_unavailable_and_nothing_is_done(tmp_path: Path) -> None:
    async with SqliteSessionStore(tmp_path / "sessions.db", busy_timeout=0.01) as store:
        await store.migrate()
        made = await store.create(ALICE, SessionMode.CHAT)
        with closing(sqlite3.connect(tmp_path / "sessions.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(MemoryAdapterUnavailable, match="nothing was done"):
                await store.append(ALICE, made.session_id, said("0"))
            assert (await store.load(ALICE, made.session_id)).session == made
            other.rollback()
        await store.append(ALICE, made.session_id, said("0"))


async def test_R90_a_server_that_crashed_is_unavailable_and_then_has_what_it_acknowledged() -> None:
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    server = embedded.EmbeddedServer()
    await asyncio.to_thread(server.start)
    try:
        async with PostgresSessionStore(server.url()) as store:
            await store.migrate()
            made = await store.create(ALICE, SessionMode.CHAT)
            await store.append(ALICE, made.session_id, said("0"))
            await asyncio.to_thread(server.restart, crash=True)
            with pytest.raises(MemoryAdapterUnavailable) as caught:
                await store.append(ALICE, made.session_id, said("1"))
            assert not caught.value.outcome_unknown
            assert (await store.append(ALICE, made.session_id, said("1"))).turns == 2
            assert len((await store.load(ALICE, made.session_id)).turns) == 2
    finally:
        await asyncio.to_thread(server.stop)


# R91, T12


async def test_R91_T12_nothing_that_was_said_is_logged_or_shown(
    database: SqlHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "aiosqlite"):
        caplog.set_level(logging.INFO, name)
    store = await database.make()
    made = await store.create(ALICE, SessionMode.CHAT)
    turn = with_tools("1", "hunter2-tool")
    await store.append(ALICE, made.session_id, said("0", "hunter2-text"))
    await store.append(ALICE, made.session_id, turn)
    shown = [repr(turn), repr(await store.load(ALICE, made.session_id)), repr(store)]
    with pytest.raises(MemoryAdapterError) as caught:
        await store.append(ALICE, made.session_id, said("0", "hunter2-other"))
    await database.corrupt_row(made.session_id, "content")
    with pytest.raises(AuthorityError) as unreadable:
        await store.load(ALICE, made.session_id)
    shown += [str(caught.value), str(unreadable.value)]
    assert "hunter2-text" not in caplog.text + "".join(shown)
    assert "hunter2-other" not in caplog.text + "".join(shown)
    assert "hunter2-tool" not in caplog.text
    assert "INSERT INTO authority_message" in caplog.text  # the log was on


@pytest.mark.parametrize("value", ["a\x00b", "\n", "\x7f", "\x9b", "\ud800", "a" * 257, "é" * 129])
def test_T16_a_scope_that_no_index_takes_is_refused(value: str) -> None:
    for dimension in ("agent", "tenant", "principal"):
        with pytest.raises(ValueError, match=r"refused|longer than") as caught:
            Scope(**{"agent": "a", dimension: value})
        assert repr(value)[1:-1] not in str(caught.value)


async def test_T16_an_external_key_that_no_index_takes_is_refused(harness: SessionStoreHarness) -> None:
    store = await harness.make()
    for key in ("", "a\x00", "\ud800", "é" * 257):
        with pytest.raises(ValueError, match="external_key"):
            await store.create(ALICE, SessionMode.CHAT, external_key=key)
    assert await store.list(ALICE) == []


def test_every_store_has_the_whole_protocol() -> None:
    def shape(kind: type) -> dict[str, inspect.Signature]:
        return {
            name: inspect.signature(value)
            for name, value in vars(kind).items()
            if inspect.iscoroutinefunction(value) and not name.startswith("_")
        }

    wanted = shape(SessionStore)
    assert len(wanted) == 9
    for kind in (InMemorySessionStore, SqlSessionStore):
        assert wanted == {name: shape(kind)[name] for name in wanted}


def test_what_is_exported_is_there_and_sorted() -> None:
    assert len(memory_authority.__all__) == len(set(memory_authority.__all__))
    for name in memory_authority.__all__:
        assert getattr(memory_authority, name) is not None
