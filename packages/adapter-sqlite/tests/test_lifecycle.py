"""Options, connecting, closing, and what outlives the process."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import field_validator

from adapter_core import (
    AnyOf,
    DeclaresDurability,
    ExternalMemoryStore,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    UnrepresentableItem,
    extensions_of,
    open_store,
)
from adapter_sqlite import FileTransport, SqliteMemoryStore, tokens, transport

ABSENT = UUID(int=404)


def run_python(source, *arguments):
    command = [sys.executable, "-X", "dev", "-c", source, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"path": ""},
        {"path": "a\0b"},
        {"path": b"bytes.db"},
        {"path": None},
        {"path": "sqlite:///x.db"},
        {"namespace": None},
        {"filters": "one"},
        {"filters": ["created_after"]},
        {"filters": [1]},
        {"durability": "volatile"},
        {"durability": "eternal"},
        {"path": ":memory:", "durability": "power"},
        {"path": ":memory:", "durability": "crash"},
        {"busy_timeout": 0},
        {"busy_timeout": -1.0},
        {"busy_timeout": True},
        {"busy_timeout": float("nan")},
        {"busy_timeout": float("inf")},
        {"busy_timeout": 1e9},
        {"busy_timeout": "5"},
    ],
)
def test_an_illegal_option_is_refused_by_the_constructor(options):
    with pytest.raises(MemoryAdapterError):
        SqliteMemoryStore(**{"path": "x.db", **options})


def test_the_constructor_does_no_io(path):
    SqliteMemoryStore(path.parent / "absent" / "x.db")
    SqliteMemoryStore(path)
    assert list(path.parent.iterdir()) == []


def test_a_store_declares_what_it_keeps(path):
    store = SqliteMemoryStore(path, filters=["k"])
    assert isinstance(store, ExternalMemoryStore)
    assert isinstance(store, DeclaresDurability)
    assert extensions_of(store) == [
        "batch/1", "delete/1", "scan/1", "revisions/1", "scored-search/1", "reindex/1",
    ]  # fmt: skip
    assert store.manifest.adapter == "sqlite"
    assert store.manifest.supported_filters == {"k", "created_after", "created_before"}
    assert store.projection.losses == ()
    assert "k1 = 1.2" in store.score_meaning


@pytest.mark.parametrize(
    ("options", "durability"),
    [
        ({}, "power"),
        ({"durability": "power"}, "power"),
        ({"durability": "crash"}, "crash"),
        ({"path": ":memory:"}, "volatile"),
    ],
)
def test_durability_is_fixed_at_construction(path, options, durability):
    assert SqliteMemoryStore(**{"path": path, **options}).durability == durability


async def test_a_url_names_a_relative_or_an_absolute_path(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    item = MemoryItem(content="there")
    async with SqliteMemoryStore.from_url("sqlite:///a%20b%23.db", namespace="n") as store:
        await store.store(item)
    absolute = path.parent / "a b#.db"
    url = f"SQLITE:///{str(absolute).replace(' ', '%20').replace('#', '%23')}"
    async with SqliteMemoryStore.from_url(url, namespace="n") as store:
        assert await store.retrieve(item.id) == item
    assert SqliteMemoryStore.from_url("sqlite:///:memory:").durability == "volatile"


async def test_a_path_that_is_no_utf_8_may_stand_in_a_url(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    name = os.fsdecode(b"a\xff.db")
    async with SqliteMemoryStore.from_url(f"sqlite:///{name}") as store:
        await store.store(MemoryItem())
    assert path.with_name(name).exists()


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("sqlite://x.db", "three slashes"),
        ("sqlite://", "three slashes"),
        ("sqlite:///x.db?mode=ro", "no parameters"),
        ("sqlite:///x.db#part", "no fragment"),
        ("sqlite+aiosqlite:///x.db", r"\+driver"),
        ("postgresql:///secret", "sqlite:///"),
        ("x.db", "sqlite:///"),
        ("sqlite:///", "empty"),
        ("sqlite:///%00", "NUL"),
    ],
)
def test_any_other_url_is_refused_with_a_hint(url, word):
    with pytest.raises(MemoryAdapterError, match=word) as refused:
        SqliteMemoryStore.from_url(url)
    assert "secret" not in str(refused.value)


def test_open_store_finds_this_adapter_by_its_scheme():
    try:
        store = open_store("sqlite:///:memory:")
    except MemoryAdapterError as error:
        pytest.skip(f"not installed here: {error}")
    assert isinstance(store, SqliteMemoryStore)


# Connecting


async def test_a_missing_folder_is_unavailable_until_it_is_there(path):
    async with SqliteMemoryStore(path.parent / "later" / "x.db") as store:
        with pytest.raises(MemoryAdapterUnavailable, match="folder"):
            await store.retrieve(ABSENT)
        (path.parent / "later").mkdir()
        assert await store.retrieve(ABSENT) is None


@pytest.mark.parametrize(("durability", "number"), [("power", 2), ("crash", 1)])
async def test_every_connection_has_the_settings_that_were_asked_for(path, durability, number):
    def settings(connection):
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    file = FileTransport(str(path), durability=durability)
    await file.open(lambda _: None)
    full = int(durability == "power")
    for hop in (file.read, file.write):
        assert await hop("settings", settings) == ["wal", number, full, full]
    await file.close()


@pytest.mark.skipif(os.name != "posix", reason="there is no such virtual file system")
async def test_a_file_system_without_wal_is_unavailable(path, monkeypatch):
    def connect(self, mode):
        return sqlite3.connect(f"{path.as_uri()}?vfs=unix-dotfile", uri=True, isolation_level=None)

    monkeypatch.setattr(FileTransport, "_connect", connect)
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterUnavailable, match="WAL"):
            await store.retrieve(ABSENT)


async def test_a_setting_that_does_not_hold_is_unavailable(path, monkeypatch):
    monkeypatch.setitem(transport._SYNCHRONOUS, "power", ("NORMAL", 2))
    async with SqliteMemoryStore(path) as store:
        with pytest.raises(MemoryAdapterUnavailable, match="synchronous"):
            await store.retrieve(ABSENT)


async def test_an_old_sqlite_is_refused_with_both_versions(monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    async with SqliteMemoryStore(":memory:") as store:
        with pytest.raises(MemoryAdapterError, match=r"3\.35\.0 or newer"):
            await store.retrieve(ABSENT)


async def test_a_file_that_was_replaced_is_unavailable_until_it_is_back(on_file, path):
    store = on_file()
    item = MemoryItem(content="kept")
    await store.store(item)
    kept = path.with_name("kept.db")
    path.rename(kept)
    with pytest.raises(MemoryAdapterUnavailable) as moved:
        await store.retrieve(item.id)
    assert "moved or removed" in str(moved.value)
    path.touch()
    for call in (store.retrieve(item.id), store.store(item), store.search(MemoryQuery())):
        with pytest.raises(MemoryAdapterUnavailable, match="replaced"):
            await call
    kept.replace(path)
    assert await store.retrieve(item.id) == item


async def test_a_relative_path_stays_where_it_was_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with SqliteMemoryStore("x.db") as store:
        item = MemoryItem()
        await store.store(item)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert await store.retrieve(item.id) == item
    assert (tmp_path / "x.db").exists()


async def test_a_path_may_hold_what_a_uri_reserves(tmp_path):
    path = tmp_path / "a?mode=memory&b#c%20d.db"
    async with SqliteMemoryStore(path) as store:
        await store.store(MemoryItem())
        assert await store.search(MemoryQuery())
    assert path.exists()


async def test_memory_belongs_to_one_instance():
    async with SqliteMemoryStore(":memory:") as one, SqliteMemoryStore(":memory:") as other:
        item = MemoryItem()
        await one.store(item)
        assert await one.retrieve(item.id) == item
        assert await other.retrieve(item.id) is None


async def test_namespaces_are_walls_whatever_their_names(make):
    names = ["default", "", "a:b", "a", "A", "a\0", "\ud800", "\u00e4", "a\u0308", "x" * 500, "x" * 501]
    stores = [make(namespace=name) for name in names]
    for n, store in enumerate(stores):
        await store.store(MemoryItem(id=UUID(int=1), content=n, tags=["t"]))
    for n, store in enumerate(stores):
        (hit,) = await store.search(MemoryQuery(tags=["t"]))
        assert (await store.retrieve(UUID(int=1))).content == hit.content == n
    assert await stores[0].clear() == 1
    assert [len(await store.search(MemoryQuery())) for store in stores] == [0, *[1] * 10]


# Closing


class Watched(sqlite3.Connection):
    live = 0
    fails = False
    opened = threading.Event()

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        type(self).live += 1
        self.opened.set()

    def close(self):
        type(self).live -= 1
        super().close()
        if self.fails:
            raise sqlite3.OperationalError("no")


@pytest.fixture
def watched(monkeypatch):
    connect = sqlite3.connect

    class Fresh(Watched):
        opened = threading.Event()

    def watching(*args, **options):
        return connect(*args, **options, factory=Fresh)

    monkeypatch.setattr(transport.sqlite3, "connect", watching)
    return Fresh


async def test_close_closes_every_connection_and_may_be_repeated(path, watched):
    store = SqliteMemoryStore(path)
    await store.store(MemoryItem())
    await asyncio.gather(*(store.search(MemoryQuery()) for _ in range(10)))
    assert 2 <= watched.live <= 1 + transport.READERS
    await store.close()
    await store.close()
    assert watched.live == 0
    with pytest.raises(MemoryAdapterUnavailable):
        await store.retrieve(ABSENT)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]


async def test_a_failed_close_raises_once_and_releases_all(path, watched):
    store = SqliteMemoryStore(path)
    await store.store(MemoryItem())
    await store.search(MemoryQuery())
    watched.fails = True
    with pytest.raises(MemoryAdapterError):
        await store.close()
    assert watched.live == 0
    await store.close()


@pytest.mark.parametrize("fault", ["version", "folder", "not a database"])
async def test_a_failed_open_leaves_nothing_open(path, watched, fault):
    if fault == "version":
        with closing(sqlite3.Connection(path)) as other, other:
            other.execute("CREATE TABLE memory_schema (version)")
            other.execute("INSERT INTO memory_schema VALUES (99)")
    elif fault == "not a database":
        path.write_text("no database" * 100)
    else:
        path = path / "below" / "x.db"
    store = SqliteMemoryStore(path)
    for _ in range(3):
        with pytest.raises(MemoryAdapterError):
            await store.store(MemoryItem())
        assert watched.live == 0
    await store.close()


async def test_a_cancelled_open_leaves_nothing_open(path, watched):
    with closing(sqlite3.Connection(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN EXCLUSIVE")
        async with SqliteMemoryStore(path) as store:
            opening = asyncio.create_task(store.retrieve(ABSENT))
            assert await asyncio.to_thread(watched.opened.wait, 20)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            other.execute("ROLLBACK")
            for thread in threading.enumerate():
                if thread.name == "adapter-sqlite":
                    await asyncio.to_thread(thread.join, 20)
            assert watched.live == 0


async def test_closing_while_the_file_is_away_loses_nothing(path):
    store = SqliteMemoryStore(path)
    item = MemoryItem(content="kept")
    await store.store(item)
    away = path.parent.with_name("away")
    path.parent.rename(away)
    await store.close()
    away.rename(path.parent)
    async with SqliteMemoryStore(path) as again:
        assert await again.retrieve(item.id) == item


FORGETFUL = """
import asyncio, sys
from adapter_core import MemoryItem, MemoryQuery
from adapter_sqlite import SqliteMemoryStore

async def main():
    store = SqliteMemoryStore(sys.argv[1])
    await store.store(MemoryItem(content="kept"))
    await store.search(MemoryQuery())

asyncio.run(main())
print("end")
"""


async def test_a_program_that_forgets_close_ends_and_keeps_its_items(path):
    ended = await asyncio.to_thread(run_python, FORGETFUL, path)
    assert (ended.returncode, ended.stdout.strip()) == (0, "end")
    async with SqliteMemoryStore(path) as store:
        assert [hit.content for hit in await store.search(MemoryQuery())] == ["kept"]


def test_importing_the_package_brings_no_other_backend_and_no_test_tool():
    source = "import sys, adapter_sqlite; print(*sys.modules)"
    loaded = run_python(source).stdout.split()
    assert "adapter_sqlite" in loaded
    for name in ("asyncpg", "redis", "qdrant_client", "pytest", "hypothesis", "adapter_core.testing"):
        assert name not in loaded


# The death of a process

VICTIM = """
import asyncio, sys
from uuid import UUID
from adapter_core import MemoryItem
from adapter_sqlite import SqliteMemoryStore

async def main(path, start, durability):
    store = SqliteMemoryStore(path, durability=durability)
    async def one(n):
        text = " ".join(f"w{n}x{k}" for k in range(20))
        await store.store(MemoryItem(id=UUID(int=n), content=text, tags=[f"t{n}"]))
        print(n, flush=True)
    n = int(start)
    while True:
        await asyncio.gather(*(one(n + k) for k in range(4)))
        n += 4

asyncio.run(main(*sys.argv[1:]))
"""


def killed_in_mid_write(path: Path, start: int, acknowledged: int, durability: str) -> list[int]:
    """Start a writer, kill it once it has reported so many items, and give all it reported."""
    command = [sys.executable, "-c", VICTIM, str(path), str(start), durability]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(acknowledged)]
        victim.kill()
        assert all(line.endswith("\n") for line in lines)
        lines += victim.stdout.readlines()
    return [int(line) for line in lines if line.endswith("\n")]


async def test_every_acknowledged_item_outlives_kill_9_and_none_is_half(path):
    reported: list[int] = []
    for turn in range(20):
        durability = ("power", "crash")[turn % 2]
        start = turn * 10_000 + 1
        reported += await asyncio.to_thread(killed_in_mid_write, path, start, 3 + 2 * turn, durability)
    async with SqliteMemoryStore(path) as store:
        there = await store.retrieve_many(map(UUID, map("{:032x}".format, reported)))
        assert len(there) == len(reported) >= 20
        async for item in store.scan():
            n = item.id.int
            for query in (
                MemoryQuery(tags=[f"t{n}"]),
                MemoryQuery(text=f"w{n}x0 w{n}x19"),
                MemoryQuery(text=item.content),
            ):
                assert [hit.id.int for hit in await store.search(query)] == [n]
    with closing(sqlite3.connect(path)) as connection:
        listed = [tokens.read(row[0]) for row in connection.execute("SELECT tokens FROM memory_items")]
        (words,) = connection.execute("SELECT sum(doc) FROM memory_levels").fetchone()
        assert words == sum(len(tokens.indexed(1, levels).split()) for levels in listed)
        connection.execute("INSERT INTO memory_index (memory_index) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_what_is_queued_when_the_store_closes_is_dropped_and_nothing_is_left_waiting(path, monkeypatch):
    store = SqliteMemoryStore(path)
    await store.store(MemoryItem())
    waiting = threading.Event()
    begin = transport.transaction

    def announced(connection, *rest):
        waiting.set()
        return begin(connection, *rest)

    monkeypatch.setattr(transport, "transaction", announced)
    with closing(sqlite3.Connection(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        async def abandoned():
            pair = [asyncio.create_task(store.store(MemoryItem())) for _ in range(2)]
            for _ in range(5):
                await asyncio.sleep(0)
            return pair

        begun = await abandoned()
        # the writer's thread has taken the first pair, and waits for the other connection
        await asyncio.get_running_loop().run_in_executor(None, waiting.wait, 20)
        queued = await abandoned()
        for task in (*begun, *queued):
            task.cancel()
        await asyncio.gather(*begun, *queued, return_exceptions=True)
        closing_store = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        other.execute("ROLLBACK")
        await asyncio.wait_for(closing_store, 20)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        # the pair that had begun is whole, the one that was still queued is absent
        assert other.execute("SELECT count(*) FROM memory_items").fetchone() == (3,)


async def test_close_does_not_need_the_loops_default_executor(path):
    store = SqliteMemoryStore(path)
    await store.store(MemoryItem())
    await asyncio.get_running_loop().shutdown_default_executor()
    await store.close()
    assert "adapter-sqlite" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}


async def test_an_item_class_that_changes_what_it_is_given_is_refused_and_the_item_is_as_it_was(path):
    class Stamps(MemoryItem):
        @field_validator("metadata", mode="before")
        @classmethod
        def stamp(cls, value):
            value["stamped"] = True
            return value

    item = MemoryItem(metadata={"k": 1})
    async with SqliteMemoryStore(path, item_type=Stamps) as store:
        with pytest.raises(UnrepresentableItem):
            await store.store(item)
        assert item.metadata == {"k": 1}


async def test_more_than_a_thousand_alternatives_in_one_query_are_answered(path):
    keys = [f"k{number}" for number in range(1500)]
    async with SqliteMemoryStore(path, filters=keys) as store:
        item = MemoryItem(metadata=dict.fromkeys(keys, 1))
        await store.store(item)
        await store.store(MemoryItem(metadata={**dict.fromkeys(keys, 1), "k700": 3}))
        found = await store.search(MemoryQuery(filters=dict.fromkeys(keys, AnyOf(1, 2))))
        assert [hit.id for hit in found] == [item.id]
