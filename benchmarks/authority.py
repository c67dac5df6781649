"""`python -m benchmarks.authority [sqlite postgres]`: what a session store costs beside SQLAlchemy.

`raw` sends the statements of an append and of a load by hand, on an engine with the same settings. It
writes and reads JSON inside the timing; it validates nothing, pairs nothing and hashes nothing.

Curated memory stands beside the calls of its own store: a search and one batch read, and a read of the
revision with a write.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from uuid import UUID, uuid4

from rich.console import Console
from rich.table import Table
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from adapter_postgres import PostgresMemoryStore, embedded
from adapter_sqlite import SqliteMemoryStore
from memory_authority import (
    RESERVED_FILTERS,
    AssistantMessage,
    Message,
    PostgresSessionStore,
    Scope,
    SessionMode,
    SqliteSessionStore,
    ToolCall,
    ToolMessage,
    Turn,
    TurnOrigin,
    UserMessage,
    engines,
)
from memory_authority.rows import encode_turn
from memory_authority.schema import call, message, session, turn
from memory_authority.sql_store import SqlSessionStore

from . import curated, machine, measure
from .measure import FULL, QUICK, Effort, Series, take_turns

APPEND, LOAD, LAST = "append a turn", "load a turn", "load the last 20 turns"
OVER_RAW = 1.4
GROWTH = 2.0
SHORT, LONG = 100, 10_000
SCOPE = Scope(agent="bench", tenant="acme", principal="alice")
RESULT = "All is well. " * 80


def a_turn(number: int) -> Turn:
    """Give a turn of five messages, with two calls and results of about 1,000 characters."""
    calls = tuple(
        ToolCall(call_id=f"call_{index}", name="search", arguments=f'{{"query": "thing {number}"}}')
        for index in range(2)
    )
    messages: tuple[Message, ...] = (
        UserMessage(content=f"What about thing {number}?"),
        AssistantMessage(tool_calls=calls),
        *(ToolMessage(call_id=one.call_id, content=RESULT) for one in calls),
        AssistantMessage(content=f"Thing {number} is well."),
    )
    return Turn(turn_id=f"turn{number}", origin=TurnOrigin.INTERACTIVE, messages=messages)


class Raw:
    """The statements by hand.

    Args:
        reading: The engine for reads.
        writing: The engine for writes.
        incarnation: The session.
    """

    MINE = (
        session.c.session_id == bindparam("session"),
        session.c.tenant == bindparam("my_tenant"),
        session.c.principal == bindparam("my_principal"),
        session.c.agent == bindparam("my_agent"),
    )
    SESSION = select(session).where(*MINE)
    LOCK = SESSION.with_for_update()
    KNOWN = select(turn.c.digest).where(
        turn.c.incarnation == bindparam("incarnation"), turn.c.turn_id == bindparam("turn_id")
    )
    GROWN = (
        update(session)
        .where(session.c.incarnation == bindparam("of"))
        .values(
            version=bindparam("next"),
            next_turn=bindparam("next"),
            last_activity=bindparam("now"),
        )
    )
    PART: ClassVar = {
        table.name: select(table)
        .where(
            table.c.incarnation == bindparam("incarnation"),
            table.c.turn_no >= bindparam("first"),
            table.c.turn_no < bindparam("stop"),
        )
        .order_by(*table.primary_key.columns)
        for table in (turn, message, call)
    }

    def __init__(self, reading: AsyncEngine, writing: AsyncEngine, session_id: UUID) -> None:
        self._reading = reading
        self._writing = writing
        self._mine = {
            "session": session_id,
            "my_tenant": SCOPE.tenant,
            "my_principal": SCOPE.principal,
            "my_agent": SCOPE.agent,
        }

    async def append(self, given: Turn) -> None:
        """Append a turn."""
        async with self._writing.begin() as connection:
            row = (await connection.execute(self.LOCK, self._mine)).one()
            key = {"incarnation": row.incarnation, "turn_id": given.turn_id}
            assert (await connection.execute(self.KNOWN, key)).scalar_one_or_none() is None
            now = time.time()
            key = {"incarnation": row.incarnation, "turn_no": row.next_turn}
            await connection.execute(
                insert(turn),
                {
                    **key,
                    "turn_id": given.turn_id,
                    "origin": given.origin.value,
                    "status": given.status,
                    "digest": "-",
                    "messages": len(given.messages),
                    "tokens": 0,
                    "created_at": now,
                },
            )
            messages, calls = _rows(given, key)
            await connection.execute(insert(message), messages)
            await connection.execute(insert(call), calls)
            grown = {"of": row.incarnation, "next": row.next_turn + 1, "now": now}
            await connection.execute(self.GROWN, grown)

    async def load(self, last_turns: int) -> int:
        """Load the newest turns as dicts; give how many messages there are."""
        async with self._reading.begin() as connection:
            row = (await connection.execute(self.SESSION, self._mine)).one()
            part = {
                "incarnation": row.incarnation,
                "first": max(0, row.next_turn - last_turns),
                "stop": row.next_turn,
            }
            turns, messages, calls = [
                [dict(one) for one in (await connection.execute(self.PART[table.name], part)).mappings()]
                for table in (turn, message, call)
            ]
        assert len(turns) == min(last_turns, row.next_turn)
        asked: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for one in calls:
            for name in ("call_id", "name", "arguments"):
                one[name] = json.loads(one[name])
            asked.setdefault((one["turn_no"], one["message_pos"]), []).append(one)
        for one in messages:
            one["content"] = json.loads(one["content"])
            one["tool_calls"] = asked.get((one["turn_no"], one["pos"]), [])
        return len(messages)


def _rows(given: Turn, key: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    open_calls: dict[str, tuple[int, int]] = {}
    for pos, one in enumerate(given.messages):
        row: dict[str, Any] = {
            **key,
            "pos": pos,
            "role": one.role,
            "content": json.dumps(one.content),
            "reasoning": None,
            "outcome": None,
            "call_message": None,
            "call_index": None,
        }
        if isinstance(one, ToolMessage):
            row["call_message"], row["call_index"] = open_calls[one.call_id]
            row["outcome"] = one.outcome
        if isinstance(one, AssistantMessage):
            for index, asked in enumerate(one.tool_calls):
                open_calls[asked.call_id] = pos, index
                texts = {name: json.dumps(getattr(asked, name)) for name in ("call_id", "name", "arguments")}
                calls.append({**key, "message_pos": pos, "call_index": index, **texts})
        messages.append(row)
    return messages, calls


async def fill(store: SqlSessionStore, session_id: UUID, turns: int) -> None:
    """Put so many turns into a session, in one transaction."""
    row = await store.get(SCOPE, session_id)
    assert row is not None
    rows: dict[str, list[dict[str, Any]]] = {"turn": [], "message": [], "call": []}
    for number in range(turns):
        encoded = encode_turn(a_turn(number))
        key = {"incarnation": row.incarnation, "turn_no": number}
        about = {
            "turn_id": f"turn{number}",
            "origin": "interactive",
            "status": "complete",
            "digest": encoded.digest,
            "messages": len(encoded.messages),
            "tokens": sum(encoded.tokens),
            "created_at": 0.0,
        }
        rows["turn"].append(key | about)
        rows["message"] += [one._asdict() | key for one in encoded.messages]
        rows["call"] += [one._asdict() | key for one in encoded.calls]
    async with store.engine.begin() as connection:
        for table, name in ((turn, "turn"), (message, "message"), (call, "call")):
            await connection.execute(insert(table), rows[name])
        grown = {"of": row.incarnation, "next": turns, "now": row.last_activity}
        await connection.execute(Raw.GROWN, grown)
    if store.engine.dialect.name == "postgresql":
        async with store.engine.connect() as connection:
            committing = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await committing.exec_driver_sql("ANALYZE")


async def measured(
    store: SqlSessionStore, reading: AsyncEngine, writing: AsyncEngine, effort: Effort
) -> dict[str, Any]:
    """Measure everything on one database."""
    await store.migrate()
    one, ours, theirs = [
        (await store.create(SCOPE, SessionMode.CHAT, session_id=uuid4())).session_id for _ in range(3)
    ]
    await store.append(SCOPE, one, a_turn(0))
    raw_one, raw_theirs = Raw(reading, writing, one), Raw(reading, writing, theirs)
    assert await raw_one.load(20) == len((await store.load(SCOPE, one)).messages)

    append = {
        "ours": measure.Turn(lambda given: store.append(SCOPE, ours, given), _turns("a")),
        "raw": measure.Turn(raw_theirs.append, _turns("b")),
    }
    load = {
        "ours": measure.Turn(lambda _: store.load(SCOPE, one, last_turns=20), _nothing),
        "raw": measure.Turn(lambda _: raw_one.load(20), _nothing),
    }
    found: dict[str, Any] = {APPEND: await take_turns(append, effort), LOAD: await take_turns(load, effort)}
    sizes: dict[int, UUID] = {}
    for size in (SHORT, LONG):
        sizes[size] = (await store.create(SCOPE, SessionMode.CHAT)).session_id
        await fill(store, sizes[size], size)
    growth = {
        size: measure.Turn(_load_last(store, session_id), _nothing) for size, session_id in sizes.items()
    }
    found[LAST] = await take_turns(growth, effort)
    return found


def _turns(prefix: str) -> Callable[[int, int], Sequence[Turn]]:
    return lambda number, count: [
        a_turn(number * 1_000 + index).model_copy(update={"turn_id": f"{prefix}{number}-{index}"})
        for index in range(count)
    ]


def _nothing(_: int, count: int) -> Sequence[None]:
    return [None] * count


def _load_last(store: SqlSessionStore, session_id: UUID) -> Callable[[Any], Awaitable[Any]]:
    return lambda _: store.load(SCOPE, session_id, last_turns=20)


async def on_sqlite(folder: Path, effort: Effort) -> dict[str, Any]:
    """Measure on a file; the raw statements have an engine of their own on it."""
    path = folder / "sessions.db"
    engine = engines.sqlite_engine(path, engines.BUSY_TIMEOUT, engines.POOL_SIZE)
    writing = engine.execution_options(**{engines.BEGIN: "IMMEDIATE"})
    try:
        async with SqliteSessionStore(path) as store:
            found = await measured(store, engine, writing, effort)
    finally:
        await engine.dispose()
    async with SqliteMemoryStore(folder / "memory.db", filters=RESERVED_FILTERS) as memory:
        return found | await curated.measured(memory, effort)


async def on_postgres(_: Path, effort: Effort) -> dict[str, Any]:
    """Measure on an embedded server; the raw statements have a pool of their own."""
    url = embedded.shared_server().url()
    engine = engines.postgres_engine(url, engines.POOL_SIZE)
    reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    try:
        async with PostgresSessionStore(url) as store:
            found = await measured(store, reading, engine, effort)
    finally:
        await engine.dispose()
    namespace = uuid4().hex
    async with PostgresMemoryStore(url, namespace=namespace, filters=RESERVED_FILTERS) as memory:
        return found | await curated.measured(memory, effort)


BACKENDS = {"sqlite": on_sqlite, "postgres": on_postgres}


def show(console: Console, name: str, found: dict[str, dict[Any, Series]]) -> None:
    """Print the medians, the ratios, and whether they hold."""
    table = Table("", "ours (µs)", "beside", "(µs)", "ratio", "range", "bar", title=name)
    rows: list[tuple[str, Any, Any, float | None]] = [
        (APPEND, "ours", "raw", OVER_RAW),
        (LOAD, "ours", "raw", OVER_RAW),
        (LAST, LONG, SHORT, GROWTH),
        (curated.RECALL, "ours", "raw", curated.OVER_STORE),
        (curated.SENTENCE, "ours", "raw", None),  # several searches by its nature, see the README
        (curated.REMEMBER, "ours", "raw", curated.OVER_STORE),
    ]
    for what, mine, other, bar in rows:
        ratio = found[what][mine].over(found[what][other])
        label = f"{other:,} turns" if isinstance(other, int) else other
        holds = "none" if bar is None else f"at most {bar}: {'holds' if ratio.median <= bar else 'MISSED'}"
        table.add_row(
            f"{what}, of {mine:,}" if isinstance(mine, int) else what,
            f"{found[what][mine].median * 1e6:,.0f}",
            str(label),
            f"{found[what][other].median * 1e6:,.0f}",
            f"{ratio.median:.2f}",
            f"{ratio.least:.2f}-{ratio.most:.2f}",
            holds,
        )
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 whatever the times are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authority", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BACKENDS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="few calls: a look, no result")
    parser.add_argument("--folder", type=Path, help="the data goes to this disk")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - BACKENDS.keys()):
        parser.error(f"no backend {', '.join(unknown)}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    versions = machine.versions() | machine.installed(("memory-authority", "sqlalchemy", "asyncpg"))
    console.print(", ".join(f"{what} {version}" for what, version in versions.items()))
    for name in options.names or BACKENDS:
        if name == "postgres" and (reason := embedded.not_run_reason()):
            console.print(f"{name}: not run: {reason}")
            continue
        with TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
            flush = machine.flush_seconds(Path(folder))
            console.print(f"{machine.load()}; one flush to the disk takes {flush * 1e6:,.0f} µs")
            show(console, name, asyncio.run(BACKENDS[name](Path(folder), QUICK if options.quick else FULL)))
    console.print(f"At the end: {machine.load()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
