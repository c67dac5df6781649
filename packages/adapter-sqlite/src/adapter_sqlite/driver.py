"""The driver: records and criteria as rows of SQLite, for one namespace."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
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

from . import schema, search, statements, tokens
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

_INDEXED_AT_ONCE = 1000
"""How many records go into the index in one run, which is far less work than one by one."""

_Change = tuple[int, str, str]  # a place, and a statement and a text for the index


class _NotWritten(Exception):
    """SQLite skipped a row without an error, as a trigger with `RAISE(IGNORE)` makes it do."""


class _Old:
    """The row that an item has so far."""

    def __init__(self, row: tuple[int, str, int, float, str]) -> None:
        self.place, self.marker, self.revision, self.created_at, self.tokens = row

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
        self._outdated_behind = -1

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
        ns, revision = self._count_up(connection, len(records))
        revision -= len(records)
        for begin in range(0, len(records), _INDEXED_AT_ONCE):
            changes: list[_Change] = []
            for record in records[begin : begin + _INDEXED_AT_ONCE]:
                revision += 1
                old = _old(connection, ns, record.id)
                if old is not None and not old.ours:
                    raise MemoryAdapterError(f"the record of {record.id} is not this adapter's")
                changes += self._write(connection, ns, record, old, revision)
            _index(connection, changes)
        return [record.id for record in records]

    def _get(self, ids: Sequence[UUID], connection: sqlite3.Connection) -> dict[UUID, str]:
        if len(ids) == 1:
            row = self._row(connection, ids[0])
            return {} if row is None else {ids[0]: row[0]}
        found: dict[UUID, str] = {}
        with transaction(connection, "DEFERRED"):
            for begin in range(0, len(ids), statements.SLOTS):
                found |= self._get_some(ids[begin : begin + statements.SLOTS], connection)
        return found

    def _get_some(self, ids: Sequence[UUID], connection: sqlite3.Connection) -> dict[UUID, str]:
        wanted = {item_id.bytes: item_id for item_id in ids}
        slots = (*wanted, *[None] * (statements.SLOTS - len(wanted)))
        rows = connection.execute(statements.GET_MANY, (schema.MARKER, *slots, self._name)).fetchall()
        if not rows:
            raise MemoryAdapterUnavailable("the namespace is gone from the database")
        return {wanted[key]: document for key, document in rows if key is not None}

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
        _wrote(connection.execute(statements.DELETE, (old.place,)))
        _index(connection, _forgotten(ns, old))
        return True

    def _clear(self, connection: sqlite3.Connection) -> int:
        ns, _ = self._namespace_row(connection)
        ours = (ns, schema.MARKER)
        if connection.execute(statements.OTHERS, ours).fetchone()[0]:
            rows = connection.execute(statements.INDEXED, ours)
            forgotten = ((place, tokens.indexed(ns, tokens.read(text))) for place, text in rows)
            connection.executemany(statements.UNINDEX, forgotten)
        else:
            connection.execute(statements.UNINDEX_ALL)
        removed = connection.execute(statements.CLEAR, ours).rowcount
        if connection.execute(statements.LEFT, ours).fetchone()[0]:
            raise _NotWritten
        return removed

    def _drop_namespace(self, connection: sqlite3.Connection) -> None:
        ns, _ = self._namespace_row(connection)
        self._clear(connection)
        connection.execute(statements.FORGET, (ns,))

    # Scan

    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[str]]:
        start = b"" if after is None else after.bytes
        return await self._transport.read("page", partial(self._page, criteria, start, size))

    def _page(
        self, criteria: Criteria, start: bytes, size: int, connection: sqlite3.Connection
    ) -> list[Hit[str]]:
        with transaction(connection, "DEFERRED"):
            ns = self._checked_namespace(connection)
            return _hits(search.page(connection, ns, schema.MARKER, criteria, start, size))

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
        _, revision = self._count_up(connection, 1)
        _index(connection, self._write(connection, ns, record, old, revision))
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
        for start in sorted({self._outdated_behind, -1}, reverse=True):
            parameters = (ns, schema.MARKER, self._signed, start, size)
            if rows := connection.execute(statements.OUTDATED, parameters).fetchall():
                return rows
        return []

    def _reindex(self, records: Sequence[tuple[Record[str], int]], connection: sqlite3.Connection) -> None:
        ns, _ = self._namespace_row(connection)
        changes: list[_Change] = []
        for record, revision in records:
            old = _old(connection, ns, record.id)
            if old is not None and old.ours and old.revision == revision:
                changes += self._write(connection, ns, record, old, revision)
        _index(connection, changes)

    def _adopt(self, connection: sqlite3.Connection) -> bool:
        ns, signed = self._namespace_row(connection)
        if signed == self._signed:
            return True
        if self._outdated(1, connection):
            return False
        connection.execute(statements.ADOPT, (self._signed, ns))
        return True

    # What several of them share

    async def _written(self, operation: str, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._transport.write(operation, work)
        except _NotWritten as error:
            raise MemoryAdapterError(f"{operation}: the database skipped a row") from error

    def _namespace_row(self, connection: sqlite3.Connection) -> tuple[int, str]:
        row = connection.execute(statements.NAMESPACE, (self._name,)).fetchone()
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
        row = connection.execute(statements.GET, parameters).fetchone()
        if row is None:
            raise MemoryAdapterUnavailable("the namespace is gone from the database")
        return None if row[1] is None else (row[0], row[1])

    def _count_up(self, connection: sqlite3.Connection, writes: int) -> tuple[int, int]:
        """Count writes of the namespace; its number, and the revision of the last of them."""
        rows = connection.execute(statements.COUNT_UP, (writes, self._name)).fetchall()
        ns, signed, revision = rows[0] if rows else (0, "", 0)
        if signed != self._signed:
            self._checked_namespace(connection)
            raise _NotWritten
        return ns, revision

    def _write(
        self,
        connection: sqlite3.Connection,
        ns: int,
        record: Record[str],
        old: _Old | None,
        revision: int,
    ) -> list[_Change]:
        """Put the row in the place of the old one; the index is still to be changed."""
        created_at = record.created_at
        levels = tokens.counted(record.tags, record.facets, record.terms)
        if old is not None and tokens.moment(old.created_at) == tokens.moment(created_at):
            place = old.place
        else:
            bounds = tokens.first_place(created_at), tokens.last_place(created_at)
            place = tokens.next_place(created_at, connection.execute(statements.TAKEN, bounds).fetchone()[0])
        written = tokens.write(levels)
        changes = [] if old is None else _forgotten(ns, old)
        if old is None:
            new = (place, ns, record.id.bytes, created_at, revision, schema.MARKER, self._signed)
            cursor = connection.execute(statements.INSERT, (*new, written, record.document))
        else:
            changed = (place, created_at, revision, self._signed, written, record.document)
            cursor = connection.execute(statements.UPDATE, (*changed, old.place))
        _wrote(cursor)
        return [*changes, (place, statements.INDEX, tokens.indexed(ns, levels))]


def _old(connection: sqlite3.Connection, ns: int, item_id: UUID) -> _Old | None:
    row = connection.execute(statements.OLD, (ns, item_id.bytes)).fetchone()
    return None if row is None else _Old(row)


def _wrote(cursor: sqlite3.Cursor) -> None:
    """See that a row was written: only then SQLite returns it."""
    if len(cursor.fetchall()) != 1:
        raise _NotWritten


def _forgotten(ns: int, old: _Old) -> list[_Change]:
    if not old.tokens:
        return []  # an earlier layout wrote the row, and it is not in this index
    return [(old.place, statements.UNINDEX, tokens.indexed(ns, tokens.read(old.tokens)))]


def _index(connection: sqlite3.Connection, changes: list[_Change]) -> None:
    """Change the index by ascending place.

    FTS5 gathers changes in memory until a place is lower than the one before, or until another
    table is written: each time it begins a new segment.
    """
    changes.sort(key=itemgetter(0))
    for place, statement, text in changes:
        connection.execute(statement, (place, text))


def _hits(rows: Sequence[Any]) -> list[Hit[str]]:
    return [Hit(UUID(bytes=key), document, score) for key, document, score in rows]
