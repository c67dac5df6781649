"""SQLite: our store, the raw client, and the peers that run without a service.

Raw is the `sqlite3` module of the standard library, used as one would without an adapter: the tables,
indexes and statements of our driver, one writing and one reading thread with a connection each, and
one hop to a thread for each call. It builds its parameters and its items with core's functions, so
what is left of the difference is the store itself.
"""

# The statements are those of the driver itself, so that they cannot drift apart.
# pyright: reportPrivateUsage=false

import asyncio
import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from adapter_core import (
    ItemFields,
    MemoryItem,
    MemoryQuery,
    check_item,
    decode_document,
    encode_document,
    facet_token,
    index_tokens,
    namespace_token,
    tag_token,
    term_token,
    terms,
)
from adapter_sqlite import FileTransport, SqliteMemoryStore, driver, schema, search, statements, tokens
from benchmarks.contender import Contender
from benchmarks.peers import peers
from benchmarks.workload import FILTERS

T = TypeVar("T")

FILE = "memories.db"
NAMESPACE = "default"
INDEXES = "tags, metadata, text, time"
DURABILITY = "power cut"


def contenders() -> list[Contender]:
    """Give all that are installed."""
    return [
        Ours("ours", coalesce=True),
        Ours("not coalescing", coalesce=False),
        Raw(),
        *peers(),
    ]


def versions() -> dict[str, str]:
    """Give the versions of what is measured and is no distribution."""
    return {"SQLite": sqlite3.sqlite_version}


class Ours(Contender):
    """The store of adapter-sqlite."""

    role = "ours"
    indexes = INDEXES
    durability = DURABILITY

    def __init__(self, name: str, *, coalesce: bool) -> None:
        self.name = name
        self.full_name = f"SqliteMemoryStore, coalesce={coalesce}"
        self._coalesce = coalesce

    async def setup(self, folder: Path) -> None:
        self._store = SqliteMemoryStore(
            folder / FILE, namespace=NAMESPACE, filters=FILTERS, coalesce=self._coalesce
        )

    async def close(self) -> None:
        await self._store.close()

    async def store(self, item: MemoryItem) -> None:
        await self._store.store(item)

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        await self._store.store_many(items)

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        return await self._store.retrieve(item_id)

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._store.search(query)

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._store.search(query)


class Raw(Contender):
    """The `sqlite3` module, for the calls and the queries of this benchmark and no others."""

    name = "raw"
    full_name = "sqlite3, one hop to a thread for each call"
    role = "raw"
    indexes = INDEXES
    durability = DURABILITY

    async def setup(self, folder: Path) -> None:
        self._writing, self._reading = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        # with the same settings, so that both keep a write equally well
        connections = FileTransport(str(folder / FILE), durability="power")
        self._writer, self._reader = connections._connect_writer(), connections._connect_reader()
        self._name = namespace_token(NAMESPACE)
        self._signed = schema.signature_text(schema.SIGNATURE)
        schema.prepare(self._writer, NAMESPACE, self._signed)

    async def close(self) -> None:
        self._writing.shutdown()
        self._reading.shutdown()
        self._reader.close()
        self._writer.close()

    async def store(self, item: MemoryItem) -> None:
        await self._write([_parameters(item)])

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        await self._write([_parameters(item) for item in items])

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        row = await self._read(lambda: self._get(item_id))
        return None if row[0] is None else _item(row[0])

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.tags
        (tag,) = query.tags
        ((key, value),) = query.filters.items()
        asked = facet_token(key, value), tag_token(tag)
        return await self._found(lambda: self._by_tokens(asked, query.limit))

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.text
        (term,) = terms(query.text, asked=True)
        token = term_token(term)
        return await self._found(lambda: self._by_term(token, query.limit))

    async def _write(self, rows: Sequence["_Parameters"]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writing, self._put, rows)

    async def _read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    async def _found(self, work: Callable[[], Sequence[Any]]) -> Sequence[MemoryItem]:
        return [_item(row[1]) for row in await self._read(work)]

    # On the threads

    def _put(self, rows: Sequence["_Parameters"]) -> None:
        connection = self._writer
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._put_all(rows, connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _put_all(self, rows: Sequence["_Parameters"], connection: sqlite3.Connection) -> None:
        counted = connection.execute(statements.COUNT_UP, (len(rows), self._name)).fetchall()
        ns, _, revision = counted[0]
        revision -= len(rows)
        for begin in range(0, len(rows), driver._INDEXED_AT_ONCE):
            indexed: list[tuple[int, str]] = []
            for key, created_at, document, levels in rows[begin : begin + driver._INDEXED_AT_ONCE]:
                revision += 1
                if connection.execute(statements.OLD, (ns, key)).fetchone() is not None:
                    raise ValueError("only new items are measured")
                bounds = tokens.first_place(created_at), tokens.last_place(created_at)
                taken = connection.execute(statements.TAKEN, bounds).fetchone()
                place = tokens.next_place(created_at, taken[0])
                new = (place, ns, key, created_at, revision, schema.MARKER, self._signed)
                connection.execute(statements.INSERT, (*new, tokens.write(levels), document)).fetchall()
                indexed.append((place, tokens.indexed(ns, levels)))
            indexed.sort()
            connection.executemany(statements.INDEX, indexed)

    def _get(self, item_id: UUID) -> Any:
        return self._reader.execute(statements.GET, (item_id.bytes, schema.MARKER, self._name)).fetchone()

    def _by_tokens(self, asked: tuple[str, str], limit: int) -> Sequence[Any]:
        self._reader.execute("BEGIN DEFERRED")
        ns = self._ns()
        matched = search.match(ns, [(token,) for token in asked])
        rows = search.newest(self._reader, self._bounds(limit) | {"match": matched}, limit)
        self._reader.execute("COMMIT")
        return rows

    def _by_term(self, term: str, limit: int) -> Sequence[Any]:
        self._reader.execute("BEGIN DEFERRED")
        ns = self._ns()
        matched = search.match(ns, [(term,)])
        rows = search.by_one_term(self._reader, ns, term, self._bounds(limit) | {"match": matched})
        self._reader.execute("COMMIT")
        return rows

    def _ns(self) -> int:
        ns: int = self._reader.execute(statements.NAMESPACE, (self._name,)).fetchone()[0]
        return ns

    def _bounds(self, limit: int) -> dict[str, Any]:
        return {
            "marker": schema.MARKER,
            "after": -math.inf,
            "before": math.inf,
            "first": tokens.first_place(-math.inf),
            "last": tokens.last_place(math.inf),
            "limit": limit,
        }


_Parameters = tuple[bytes, float, str, dict[str, int]]


def _parameters(item: MemoryItem) -> _Parameters:
    fields = check_item(item)
    tags, facets, counted = index_tokens(fields)
    levels = tokens.counted(tags, facets, counted)
    return fields.id.bytes, fields.created_at, encode_document(fields), levels


def _item(document: str) -> MemoryItem:
    fields: ItemFields = decode_document(document)
    return MemoryItem(
        id=fields.id,
        created_at=fields.created_at,
        metadata=fields.metadata,
        content=fields.content,
        tags=fields.tags,
    )
