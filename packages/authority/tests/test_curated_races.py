"""Curated memory under concurrent writers: of one instance, of many, of two processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from adapter_core import MemoryAdapterUnavailable
from adapter_postgres import PostgresMemoryStore
from adapter_sqlite import SqliteMemoryStore
from memory_authority import (
    RESERVED_FILTERS,
    CuratedMemory,
    MemoryKind,
    MemoryRecord,
    Provenance,
    Scope,
    WriteRejected,
)

SCOPE = Scope(agent="guide", tenant="acme", principal="ada")
TASKS = 50


def by(name: str = "ada") -> Provenance:
    return Provenance(
        actor="user", actor_id=name, method="said so", recorded_at=datetime(2026, 1, 5, tzinfo=UTC)
    )


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    store: Any
    if request.param == "sqlite":
        store = SqliteMemoryStore(tmp_path / "memory.db", filters=RESERVED_FILTERS)
    else:
        url = request.getfixturevalue("server_url").split("&search_path")[0]
        store = PostgresMemoryStore(url, namespace=uuid4().hex, filters=RESERVED_FILTERS)
    async with store:
        yield store


@pytest.fixture(params=["one instance", "many instances"])
def memories(request: pytest.FixtureRequest, store: Any) -> list[CuratedMemory]:
    """Give as many memories as there are tasks: one many times, or many of one scope."""
    if request.param == "one instance":
        return [CuratedMemory(store, SCOPE)] * TASKS
    return [CuratedMemory(store, SCOPE) for _ in range(TASKS)]


async def remember(memory: CuratedMemory, text: str, **options: Any) -> MemoryRecord:
    return await memory.remember(text, **{"kind": MemoryKind.FACT, "provenance": by(), **options})


async def active(store: Any) -> list[MemoryRecord]:
    return [one async for one in CuratedMemory(store, SCOPE).export() if one.status == "active"]


async def test_R89_many_who_remember_one_text_make_one_record(
    store: Any, memories: list[CuratedMemory]
) -> None:
    records = await asyncio.gather(
        *(remember(memory, "Ada sails", provenance=by(str(number))) for number, memory in enumerate(memories))
    )
    assert len({record.id for record in records}) == 1
    assert len(await active(store)) == 1


async def test_R31_of_many_who_forget_a_record_one_did(store: Any, memories: list[CuratedMemory]) -> None:
    record = await remember(memories[0], "Ada sails")
    done = await asyncio.gather(*(memory.forget(record.id, reason="r") for memory in memories))
    assert sorted(done) == [False] * (TASKS - 1) + [True]
    assert await active(store) == []


async def test_R30_many_who_supersede_and_restore_one_record_leave_it_whole(
    store: Any, memories: list[CuratedMemory]
) -> None:
    old, new = await remember(memories[0], "timezone is UTC"), await remember(memories[0], "timezone is Oslo")
    await asyncio.gather(
        *(
            memory.supersede(old.id, new.id) if number % 2 else memory.restore(old.id)
            for number, memory in enumerate(memories)
        )
    )
    there = await memories[0].get(old.id)
    assert there is not None
    assert (there.status, there.superseded_by) in {("active", None), ("superseded", new.id)}
    assert there.model_copy(update={"status": "active", "superseded_by": None, "revision": 1}) == old


async def test_R30_two_records_that_supersede_each_other_are_not_both_lost(
    store: Any, memories: list[CuratedMemory]
) -> None:
    one, other = (
        await remember(memories[0], "timezone is UTC"),
        await remember(memories[0], "timezone is Oslo"),
    )
    ways = [(one.id, other.id), (other.id, one.id)]
    outcomes = await asyncio.gather(
        *(memory.supersede(*ways[number % 2]) for number, memory in enumerate(memories)),
        return_exceptions=True,
    )
    assert {type(outcome) for outcome in outcomes} <= {type(None), WriteRejected}
    assert len(await active(store)) >= 1


async def test_R30_a_successor_that_is_forgotten_meanwhile_takes_nobodys_place(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, beside = CuratedMemory(store, SCOPE), CuratedMemory(store, SCOPE)
    old, new = await remember(memory, "timezone is UTC"), await remember(memory, "timezone is Oslo")
    replace = store.replace

    async def replace_late(item: Any, **options: Any) -> Any:
        monkeypatch.undo()
        await beside.forget(new.id, reason="r")
        return await replace(item, **options)

    monkeypatch.setattr(store, "replace", replace_late)
    with pytest.raises(WriteRejected, match="no such record"):
        await memory.supersede(old.id, new.id)
    assert [record.id for record in await active(store)] == [old.id]


async def test_R89_mixed_operations_on_one_text_leave_one_active_record_at_most(
    store: Any, memories: list[CuratedMemory]
) -> None:
    async def work(memory: CuratedMemory, number: int) -> None:
        record = await remember(memory, "Ada sails", provenance=by(str(number)))
        if number % 3 == 0:
            await memory.forget(record.id, reason="r")
        elif number % 3 == 1:
            other = await remember(memory, f"Ada rows {number}")
            try:
                await memory.supersede(record.id, other.id)
            except WriteRejected as error:  # another task forgot it
                assert "no such record" in str(error)  # noqa: PT017

    await asyncio.gather(*(work(memory, number) for number, memory in enumerate(memories)))
    texts = [record.text for record in await active(store)]
    assert texts.count("Ada sails") <= 1
    assert len([text for text in texts if text.startswith("Ada rows")]) == len(range(1, TASKS, 3))


async def test_T06_a_late_forget_does_not_reach_the_next_record_of_the_text(store: Any) -> None:
    memory = CuratedMemory(store, SCOPE)
    first = await remember(memory, "Ada sails")
    await memory.forget(first.id, reason="r")
    second = await remember(memory, "Ada sails")
    assert not await memory.forget(first.id, reason="late")
    assert [record.id for record in await active(store)] == [second.id]


async def test_R31_forgetting_again_deletes_what_a_failed_call_left(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = CuratedMemory(store, SCOPE)
    record = await remember(memory, "Ada sails")
    await remember(memory, "Ada sails", provenance=by("bob"))

    async def fails(*_: Any) -> Any:
        raise MemoryAdapterUnavailable("down")

    monkeypatch.setattr(store, "delete", fails)
    with pytest.raises(MemoryAdapterUnavailable):
        await memory.forget(record.id, reason="r")
    monkeypatch.undo()
    assert await memory.get(record.id) is None
    assert len([row async for row in store.scan()]) == 2
    assert not await memory.forget(record.id, reason="r")
    [tombstone] = [row async for row in store.scan()]
    assert tombstone.id == record.id


WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from adapter_sqlite import SqliteMemoryStore
from memory_authority import RESERVED_FILTERS, CuratedMemory, MemoryKind, Provenance, Scope

async def main(path, name):
    scope = Scope(agent="guide", tenant="acme", principal="ada")
    by = Provenance(actor="user", actor_id=name, method="m", recorded_at=datetime(2026, 1, 5, tzinfo=UTC))
    async with SqliteMemoryStore(path, filters=RESERVED_FILTERS) as store:
        memory = CuratedMemory(store, scope)
        await memory.recall("anything")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(30):
            record = await memory.remember(f"fact {number}", kind=MemoryKind.FACT, provenance=by)
            if number % 3 == 0:
                await memory.forget(record.id, reason="r")
            print(record.id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_R89_two_processes_on_one_file_make_one_row_of_each_text(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    writers = [
        subprocess.Popen(  # noqa: ASYNC220 - the test has nothing else to do
            [sys.executable, "-W", "error", "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        answers = [writer.communicate("go\n", timeout=60) for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
    assert [error for _, error in answers] == ["", ""]
    async with SqliteMemoryStore(path, filters=RESERVED_FILTERS) as store:
        there = await active(store)
        found = await CuratedMemory(store, SCOPE).recall("fact", limit=100)
    kept = [f"fact {number}" for number in range(30) if number % 3]
    assert sorted(record.text for record in there if record.text in kept) == sorted(kept)
    assert {record.id for record in found.records} == {record.id for record in there}
    ids = [[UUID(line) for line in said.split()] for said, _ in answers]
    assert [one for number, one in enumerate(ids[0]) if number % 3] == [
        one for number, one in enumerate(ids[1]) if number % 3
    ]
