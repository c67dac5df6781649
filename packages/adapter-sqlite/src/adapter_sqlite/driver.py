"""The driver: records and criteria as rows of SQLite, for one namespace."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from adapter_core import (
    Criteria,
    DeletingDriver,
    Hit,
    ItemFields,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    Record,
    ReindexingDriver,
    RevisingDriver,
    ScanningDriver,
    decode_document,
    encode_document,
    namespace_token,
)

from . import schema, search
from .transport import Transport, transaction

T = TypeVar("T")

_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)

_NAMESPACE = "SELECT ns, indexed_as FROM memory_namespaces WHERE name = ?"
_COUNT_UP = "UPDATE memory_namespaces SET revision = revision + ? WHERE ns = ? RETURNING revision"
_ADOPT = "UPDATE memory_namespaces SET indexed_as = ? WHERE ns = ?"
# one statement, so that a namespace that is gone is not taken for an unknown id
_GET = """
SELECT i.document, i.revision FROM memory_namespaces n
LEFT JOIN memory_items i ON i.ns = n.ns AND i.id = ? AND i.marker = ?
WHERE n.name = ?
"""
_OLD = """
SELECT item, marker, revision, created_at, tokens FROM memory_items WHERE ns = ? AND id = ?
"""
_INSERT = """
INSERT INTO memory_items (ns, id, created_at, revision, marker, indexed_as, document, tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING item
"""
_UPDATE = """
UPDATE memory_items SET created_at = ?, revision = ?, indexed_as = ?, document = ?, tokens = ?
WHERE item = ? RETURNING item
"""
_DELETE = "DELETE FROM memory_items WHERE item = ? RETURNING item"
_CLEAR = "DELETE FROM memory_items WHERE ns = ? AND marker = ?"
_CLEAR_TOKENS = "DELETE FROM memory_tokens WHERE ns = ?"
_FORGET = """
DELETE FROM memory_namespaces
WHERE ns = ? AND NOT EXISTS (SELECT 1 FROM memory_items WHERE ns = memory_namespaces.ns)
"""
_INDEX = """
INSERT OR REPLACE INTO memory_tokens (ns, token, created_at, id, item, weight)
VALUES (?, ?, ?, ?, ?, ?)
"""
_UNINDEX = """
DELETE FROM memory_tokens WHERE ns = ? AND token = ? AND created_at = ? AND id = ?
"""
_OUTDATED = """
SELECT item, id, document, revision FROM memory_items
WHERE ns = ? AND marker = ? AND indexed_as <> ? AND item > ? ORDER BY item LIMIT ?
"""


class _NotWritten(Exception):
    """SQLite skipped a row without an error, as a trigger with `RAISE(IGNORE)` makes it do."""


class _Old:
    """The row that an item has so far."""

    def __init__(self, row: tuple[int, str, int, float, str]) -> None:
        self.item, self.marker, self.revision, self.created_at, tokens = row
        self.tokens = tokens.split()

    @property
    def ours(self) -> bool:
        return self.marker == schema.MARKER


class SqliteDriver(DeletingDriver[str], ScanningDriver[str], RevisingDriver[str], ReindexingDriver[str]):
    """One namespace of a database.

    A namespace's number is looked up by each call and never kept: another process may have made
    the tables anew.

    Args:
        transport: The way to SQLite.
        namespace: As the user gave it.
    """

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = namespace_token(namespace)
        self._signed = schema.signature_text(schema.SIGNATURE)
        self._outdated_behind = 0

    # Values and errors

    def pack(self, item: ItemFields) -> str:
        return encode_document(item)

    def unpack(self, document: str) -> ItemFields:
        return decode_document(document)

    def is_unavailable(self, error: Exception) -> bool:
        if isinstance(error, sqlite3.Error):
            # the low byte is the kind, the rest says more
            return getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNAVAILABLE
        return isinstance(error, OSError | MemoryError)

    # Lifecycle

    async def open(self) -> None:
        await self._transport.open(
            lambda connection: schema.prepare(connection, self._namespace, self._signed)
        )

    async def close(self) -> None:
        await self._transport.close()

    # The three verbs

    async def put(self, records: Sequence[Record[str]]) -> Sequence[UUID]:
        try:
            return await self._transport.write("put", partial(self._put, records))
        except _NotWritten:
            return []  # the transaction was rolled back whole

    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, str]:
        return await self._transport.read("get", partial(self._get, ids))

    async def find(self, criteria: Criteria) -> Sequence[Hit[str]]:
        return await self._transport.read("find", partial(self._find, criteria))

    def _put(self, records: Sequence[Record[str]], connection: sqlite3.Connection) -> list[UUID]:
        ns = self._checked_namespace(connection)
        revision = self._count_up(connection, ns, len(records)) - len(records)
        for record in records:
            revision += 1
            old = _old(connection, ns, record.id)
            if old is not None and not old.ours:
                raise MemoryAdapterError(f"the record of {record.id} is not this adapter's")
            self._write(connection, ns, record, old, revision)
        return [record.id for record in records]

    def _get(self, ids: Sequence[UUID], connection: sqlite3.Connection) -> dict[UUID, str]:
        if len(ids) == 1:
            return self._get_each(ids, connection)
        with transaction(connection, "DEFERRED"):
            return self._get_each(ids, connection)

    def _get_each(self, ids: Sequence[UUID], connection: sqlite3.Connection) -> dict[UUID, str]:
        rows = ((item_id, self._row(connection, item_id)) for item_id in ids)
        return {item_id: row[0] for item_id, row in rows if row is not None}

    def _find(self, criteria: Criteria, connection: sqlite3.Connection) -> list[Hit[str]]:
        with transaction(connection, "DEFERRED"):
            ns = self._checked_namespace(connection)
            return _hits(search.find(connection, ns, schema.MARKER, criteria))

    # Deletion

    async def delete(self, item_id: UUID) -> bool:
        return await self._written("delete", partial(self._delete, item_id))

    async def clear(self) -> int:
        return await self._written("clear", self._clear)

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace too unless it has rows that are not ours."""
        await self._written("drop_namespace", self._drop_namespace)

    def _delete(self, item_id: UUID, connection: sqlite3.Connection) -> bool:
        ns, _ = self._namespace_row(connection)
        old = _old(connection, ns, item_id)
        if old is None or not old.ours:
            return False
        _wrote(connection.execute(_DELETE, (old.item,)))
        _unindex(connection, ns, item_id, old)
        return True

    def _clear(self, connection: sqlite3.Connection) -> int:
        ns, _ = self._namespace_row(connection)
        removed = connection.execute(_CLEAR, (ns, schema.MARKER)).rowcount
        connection.execute(_CLEAR_TOKENS, (ns,))
        return removed

    def _drop_namespace(self, connection: sqlite3.Connection) -> None:
        ns, _ = self._namespace_row(connection)
        self._clear(connection)
        connection.execute(_FORGET, (ns,))

    # Scan

    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[str]]:
        start = b"" if after is None else after.bytes
        return await self._transport.read("page", partial(self._page, criteria, start, size))

    def _page(
        self, criteria: Criteria, start: bytes, size: int, connection: sqlite3.Connection
    ) -> list[Hit[str]]:
        with transaction(connection, "DEFERRED"):
            ns = self._checked_namespace(connection)
            statement = search.page(ns, schema.MARKER, criteria, start, size)
            return _hits(connection.execute(statement.sql, statement.parameters).fetchall())

    # Revisions

    async def get_revision(self, item_id: UUID) -> tuple[str, int] | None:
        return await self._transport.read("get_revision", lambda connection: self._row(connection, item_id))

    async def replace(self, record: Record[str], expected_revision: int) -> int | None:
        return await self._written("replace", partial(self._replace, record, expected_revision))

    def _replace(self, record: Record[str], expected: int, connection: sqlite3.Connection) -> int | None:
        ns = self._checked_namespace(connection)
        old = _old(connection, ns, record.id)
        if old is None or not old.ours or old.revision != expected:
            return None
        revision = self._count_up(connection, ns, 1)
        self._write(connection, ns, record, old, revision)
        return revision

    # Reindexing

    @property
    def signature(self) -> Mapping[str, str]:
        return schema.SIGNATURE

    async def remembered(self) -> Mapping[str, str]:
        _, text = await self._transport.read("remembered", self._namespace_row)
        try:
            remembered: Any = json.loads(text)
        except ValueError as error:
            raise MemoryAdapterError("what the namespace remembers is malformed") from error
        if type(remembered) is not dict:
            raise MemoryAdapterError("what the namespace remembers is malformed")
        return remembered  # pyright: ignore[reportUnknownVariableType]

    async def outdated(self, size: int) -> Sequence[tuple[Hit[str], int]]:
        rows = await self._transport.read("outdated", partial(self._outdated, size))
        if rows:
            self._outdated_behind = rows[-1][0]
        return [(Hit(UUID(bytes=key), document), revision) for _, key, document, revision in rows]

    async def reindex(self, records: Sequence[tuple[Record[str], int]]) -> None:
        await self._written("reindex", partial(self._reindex, records))

    async def adopt(self) -> bool:
        return await self._written("adopt", self._adopt)

    def _outdated(self, size: int, connection: sqlite3.Connection) -> list[Any]:
        """Look behind where the last look ended, then from the start: a pass reads rows once."""
        ns, _ = self._namespace_row(connection)
        for start in sorted({self._outdated_behind, 0}, reverse=True):
            parameters = (ns, schema.MARKER, self._signed, start, size)
            if rows := connection.execute(_OUTDATED, parameters).fetchall():
                return rows
        return []

    def _reindex(self, records: Sequence[tuple[Record[str], int]], connection: sqlite3.Connection) -> None:
        ns, _ = self._namespace_row(connection)
        for record, revision in records:
            old = _old(connection, ns, record.id)
            if old is not None and old.ours and old.revision == revision:
                self._write(connection, ns, record, old, revision)

    def _adopt(self, connection: sqlite3.Connection) -> bool:
        ns, signed = self._namespace_row(connection)
        if signed == self._signed:
            return True
        if self._outdated(1, connection):
            return False
        connection.execute(_ADOPT, (self._signed, ns))
        return True

    # What several of them share

    async def _written(self, operation: str, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._transport.write(operation, work)
        except _NotWritten as error:
            raise MemoryAdapterError(f"{operation}: the database skipped a row") from error

    def _namespace_row(self, connection: sqlite3.Connection) -> tuple[int, str]:
        row = connection.execute(_NAMESPACE, (self._name,)).fetchone()
        if row is None:
            raise MemoryAdapterUnavailable("the namespace is gone from the database")
        return row[0], row[1]

    def _checked_namespace(self, connection: sqlite3.Connection) -> int:
        ns, signed = self._namespace_row(connection)
        if signed != self._signed:
            raise MemoryAdapterUnavailable(
                "the namespace has been indexed in another way since this store connected"
            )
        return ns

    def _row(self, connection: sqlite3.Connection, item_id: UUID) -> tuple[str, int] | None:
        parameters = (item_id.bytes, schema.MARKER, self._name)
        row = connection.execute(_GET, parameters).fetchone()
        if row is None:
            raise MemoryAdapterUnavailable("the namespace is gone from the database")
        return None if row[1] is None else (row[0], row[1])

    def _count_up(self, connection: sqlite3.Connection, ns: int, writes: int) -> int:
        (row,) = connection.execute(_COUNT_UP, (writes, ns)).fetchall()
        revision: int = row[0]
        return revision

    def _write(
        self,
        connection: sqlite3.Connection,
        ns: int,
        record: Record[str],
        old: _Old | None,
        revision: int,
    ) -> None:
        """Put the row and its tokens in the place of the old ones."""
        key, created_at = record.id.bytes, record.created_at
        weights = search.token_weights((*record.tags, *record.facets), record.terms)
        tokens = " ".join(weights)
        if old is None:
            new = (ns, key, created_at, revision, schema.MARKER, self._signed)
            cursor = connection.execute(_INSERT, (*new, record.document, tokens))
        else:
            _unindex(connection, ns, record.id, old)
            changed = (created_at, revision, self._signed, record.document, tokens)
            cursor = connection.execute(_UPDATE, (*changed, old.item))
        item = _wrote(cursor)
        rows = [(ns, token, created_at, key, item, weight) for token, weight in weights.items()]
        if rows and connection.executemany(_INDEX, rows).rowcount != len(rows):
            raise _NotWritten


def _old(connection: sqlite3.Connection, ns: int, item_id: UUID) -> _Old | None:
    row = connection.execute(_OLD, (ns, item_id.bytes)).fetchone()
    return None if row is None else _Old(row)


def _wrote(cursor: sqlite3.Cursor) -> int:
    """Give the row's number, which SQLite returns only if it wrote the row."""
    rows = cursor.fetchall()
    if len(rows) != 1:
        raise _NotWritten
    item: int = rows[0][0]
    return item


def _unindex(connection: sqlite3.Connection, ns: int, item_id: UUID, old: _Old) -> None:
    key = item_id.bytes
    rows = [(ns, token, old.created_at, key) for token in old.tokens]
    connection.executemany(_UNINDEX, rows)


def _hits(rows: Sequence[Any]) -> list[Hit[str]]:
    return [Hit(UUID(bytes=key), document, score) for key, document, score in rows]
