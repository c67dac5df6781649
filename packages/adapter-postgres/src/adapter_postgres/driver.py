"""The driver: records and criteria as rows of Postgres, for one namespace."""

import hashlib
import json
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
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
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    decode_document,
    encode_document,
    namespace_token,
    term_weights,
)

from . import schema, states
from .settings import PostgresSettings
from .statements import Statements, long_ones
from .transport import Row, Session, Statement, Transport

MAX_DOCUMENT = 500_000_000
"""Characters of an item's JSON text. Postgres takes no value, and no message, of more than 1 GB."""
MAX_REQUEST = 64_000_000
"""Characters that one statement of a batch carries at most; a larger batch is several of them."""
MAX_ROWS = 2_000
"""Items that one statement of a batch carries at most."""

PUTS_AT_ONCE = 2
"""Into how many batches many `store` calls of one tick are cut, each on a connection of its own."""

MAX_GROUPS = 32_000
"""Conditions of one search with several values each. asyncpg sends up to 32,767 arguments."""

MAX_ROW = 1_000_000_000
"""Characters of an item's JSON text and of its tokens together, which make one message."""

T = TypeVar("T")
# id, created_at, and as text: weights, tokens, document
_Row = tuple[UUID, float, str, str, str]

_NIL = UUID(int=0)
_LARGEST = 2**62
_NOT_NULL_VIOLATION = "23502"
_DIVISION_BY_ZERO = "22012"


class PostgresDriver(DeletingDriver[str], ScanningDriver[str], RevisingDriver[str], ReindexingDriver[str]):
    """One namespace of a database.

    Args:
        transport: The way to Postgres.
        namespace: As the user gave it.
        settings: Names of the tables, and the durability.
    """

    def __init__(self, transport: Transport, namespace: str, settings: PostgresSettings) -> None:
        names = schema.Names(settings.schema, settings.table)
        self._table = settings.schema, settings.table
        self._transport = transport
        self.puts_at_once = min(PUTS_AT_ONCE, settings.pool_size)
        self._name = namespace_token(namespace)
        self._mark = namespace_mark(self._name)
        self._signature = dict(schema.SIGNATURE)
        self._signed = schema.signature_text(self._signature)
        self._schema = schema.Schema(names)
        self._statements = Statements(names, settings.durability)
        self._outdated_behind: UUID | None = None

    # Values and errors

    def pack(self, item: ItemFields) -> str:
        document = encode_document(item)
        if len(document) > MAX_DOCUMENT:
            raise UnrepresentableItem("content", "its document is larger than Postgres takes in one request")
        return document

    def unpack(self, document: str) -> ItemFields:
        return decode_document(document)

    def is_unavailable(self, error: Exception) -> bool:
        state: object = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            return states.is_unavailable(state)
        if isinstance(error, OSError | MemoryError):
            return True
        if type(error).__module__.partition(".")[0] != "asyncpg":
            return False
        from .client import is_broken  # noqa: PLC0415 - asyncpg is loaded, or this were not its error

        return is_broken(error)

    # Lifecycle

    async def open(self) -> None:
        await self._transport.open(self._prepare)

    async def close(self) -> None:
        await self._transport.close()

    async def _prepare(self, session: Session) -> None:
        await self._schema.prepare(session, self._name, self._signed)

    # The three verbs

    async def put(self, records: Sequence[Record[str]]) -> Sequence[UUID]:
        # in one order, so that two batches that share items cannot wait for each other
        chunks = list(_chunks(map(self._row, sorted(records, key=_by_id))))
        try:
            if len(chunks) == 1:
                return await self._put(self._transport, chunks[0])

            async def put_all(session: Session) -> list[UUID]:
                ids = [one for chunk in chunks for one in await self._put(session, chunk)]
                await self._measure(session)
                return ids

            return await self._transport.transact("put", put_all)
        except Exception as error:
            state = getattr(error, "sqlstate", None)
            if state == _NOT_NULL_VIOLATION and getattr(error, "column_name", None) == "marker":
                raise MemoryAdapterError("a record under this identity is not this adapter's") from error
            if state == _DIVISION_BY_ZERO:
                return []  # a row was skipped, and the server undid the whole
            raise

    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, str]:
        one = len(ids) == 1
        statement = self._statements.get_one if one else self._statements.get
        return {row[0]: row[1] for row in await self._rows(statement, ids[0] if one else ids)}

    async def find(self, criteria: Criteria) -> Sequence[Hit[str]]:
        required, lists = self._tokens(criteria)
        terms = [self._mark + term for term in sorted(criteria.terms)]
        statement = self._statements.find(
            required=required, groups=len(lists) - required, terms=len(terms), many=long_ones(lists)
        )
        arguments = [*self._bounds(criteria, criteria.limit), *lists, *([terms] if terms else ())]
        return await self._hits(statement, arguments)

    async def _put(self, session: Session, rows: Sequence[_Row]) -> list[UUID]:
        if len(rows) == 1:
            written = await session.run(self._statements.put_one, self._name, self._signed, *rows[0])
            if written:
                return [written[0][0]]
            # nothing was, and the statement for many says why
        columns = [list(column) for column in zip(*rows, strict=True)]
        row = self._allowed(await session.run(self._statements.put, self._name, self._signed, *columns))
        ids: list[UUID] = row[2] or []
        return ids

    async def _measure(self, session: Session) -> None:
        """Let Postgres count tokens after the first large batch; later on it does so by itself.

        Where the role may not, the server says so in a warning and goes on.
        """
        rows = await session.run(self._statements.unknown, *self._table)
        if rows and rows[0][0]:
            await session.run(self._statements.analyze)

    async def _rows(self, statement: Statement, wanted: UUID | Sequence[UUID]) -> Sequence[Row]:
        rows = self._found(await self._transport.run(statement, self._name, wanted))
        return [row for row in rows if row[0] is not None]

    # Deletion

    async def delete(self, item_id: UUID) -> bool:
        statement = self._statements.delete
        row = self._allowed(await self._transport.run(statement, self._name, item_id))
        if row[2] != row[3]:
            raise MemoryAdapterError("delete: the database skipped the row")
        return bool(row[2])

    async def clear(self) -> int:
        row = self._allowed(await _whole("clear", self._transport.run(self._statements.clear, self._name)))
        removed: int = row[2]
        return removed

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace too unless it has rows that are not ours."""

        async def forget(session: Session) -> None:
            await session.run(self._statements.lock_alone)
            self._allowed(await session.run(self._statements.clear, self._name))
            await session.run(self._statements.forget, self._name)

        await _whole("drop_namespace", self._transport.transact("forget", forget))

    # Scan

    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[str]]:
        required, lists = self._tokens(criteria)
        groups = len(lists) - required
        statement = self._statements.page(required=required, groups=groups, many=long_ones(lists))
        arguments = [*self._bounds(criteria, size), *lists, after or _NIL, after is None]
        return await self._hits(statement, arguments)

    # Revisions

    async def get_revision(self, item_id: UUID) -> tuple[str, int] | None:
        rows = await self._rows(self._statements.get_revision, item_id)
        return (rows[0][1], rows[0][2]) if rows else None

    async def replace(self, record: Record[str], expected_revision: int) -> int | None:
        if not 0 <= expected_revision < 2**63:
            expected_revision = -1  # the revision of no write
        weights, tokens = self._indexed(record)
        written = (record.id, record.created_at, weights, tokens, record.document, expected_revision)
        statement = self._statements.replace
        row = self._allowed(await self._transport.run(statement, self._name, self._signed, *written))
        revision: int | None = row[2]
        if revision is None:
            now = await self.get_revision(record.id)
            if now is not None and now[1] == expected_revision:
                raise MemoryAdapterError("replace: the database skipped the row")
        return revision

    # Reindexing

    @property
    def signature(self) -> Mapping[str, str]:
        return self._signature

    async def remembered(self) -> Mapping[str, str]:
        rows = self._found(await self._transport.run(self._statements.remembered, self._name))
        try:
            remembered: Any = json.loads(rows[0][0])
        except ValueError as error:
            raise MemoryAdapterError("what the namespace remembers is malformed") from error
        if type(remembered) is not dict:
            raise MemoryAdapterError("what the namespace remembers is malformed")
        return remembered  # pyright: ignore[reportUnknownVariableType]

    async def outdated(self, size: int) -> Sequence[tuple[Hit[str], int]]:
        """Look behind where the last look ended, then from the start: a pass reads rows once."""
        statement = self._statements.outdated
        for behind in dict.fromkeys((self._outdated_behind, None)):
            arguments = (self._name, self._signed, behind or _NIL, behind is None, size)
            rows = self._found(await self._transport.run(statement, *arguments))
            if rows[0][0] is not None:
                self._outdated_behind = rows[-1][0]
                return [(Hit(row[0], row[1]), row[2]) for row in rows]
        return []

    async def reindex(self, records: Sequence[tuple[Record[str], int]]) -> None:
        ordered = sorted(records, key=lambda pair: pair[0].id)
        if not ordered:
            return
        rows = [(record.id, revision, *self._indexed(record)) for record, revision in ordered]
        columns = [list(column) for column in zip(*rows, strict=True)]
        statement = self._statements.reindex
        written = self._transport.run(statement, self._name, self._signed, *columns)
        self._allowed(await _whole("reindex", written))

    async def adopt(self) -> bool:
        arguments = (self._name, self._signed)

        async def adopt(session: Session) -> bool:
            rows = self._found(await session.run(self._statements.remembered, self._name))
            if rows[0][0] == self._signed:
                return True
            await session.run(self._statements.lock)
            return bool(await session.run(self._statements.adopt, *arguments))

        return await self._transport.transact("adopt", adopt)

    # What several of them share

    def _row(self, record: Record[str]) -> _Row:
        return record.id, record.created_at, *self._indexed(record), record.document

    def _indexed(self, record: Record[str]) -> tuple[str, str]:
        """Write the weights and the tokens of an item: the terms first, each in the place of its weight."""
        weights = term_weights(record.terms)
        texts = {weight: repr(weight) for weight in set(weights.values())}
        tokens = (*weights, *record.tags, *record.facets)
        marked = f" {self._mark}".join(("", *tokens))[1:]  # each token behind the mark
        written = " ".join(map(texts.__getitem__, weights.values()))
        if len(marked) + len(written) + len(record.document) > MAX_ROW:
            raise UnrepresentableItem("tags", "with its tokens it is larger than Postgres takes at once")
        return written, marked

    def _tokens(self, criteria: Criteria) -> tuple[bool, list[list[str]]]:
        """Give the lists of tokens: those that all must be there, and the groups of which one must be.

        The first result says whether there are any of the former.
        """
        required = list(criteria.terms)
        groups: list[list[str]] = []
        for group in (*criteria.facets, *((criteria.tags,) if criteria.tags else ())):
            if len(group) == 1:
                required.append(group[0])
            else:
                groups.append([self._mark + token for token in group])
        if len(groups) > MAX_GROUPS:
            raise UnsupportedMemoryQuery({"filters"})
        if not required:
            return False, groups
        return True, [[self._mark + token for token in dict.fromkeys(required)], *groups]

    def _bounds(self, criteria: Criteria, limit: int) -> tuple[Any, ...]:
        return self._name, min(limit, _LARGEST), criteria.created_after, criteria.created_before, True

    async def _hits(self, statement: Statement, arguments: Sequence[Any]) -> list[Hit[str]]:
        rows = self._found(await self._transport.run(statement, *arguments))
        if rows[0][0] != self._signed:
            raise _indexed_otherwise()
        return [Hit(row[1], row[2], row[3]) for row in rows if row[1] is not None]

    def _found(self, rows: Sequence[Row]) -> Sequence[Row]:
        if not rows:
            raise MemoryAdapterUnavailable("the namespace is gone from the database")
        return rows

    def _allowed(self, rows: Sequence[Row]) -> Row:
        """Give the outcome of a write, unless the statement itself has seen why it must not be."""
        row = self._found(rows)[0]
        if not row[0]:
            raise _indexed_otherwise()
        if not row[1]:
            raise MemoryAdapterUnavailable(
                "the server does not keep what it acknowledges, as this store's durability asks: "
                "synchronous_commit or fsync is off, or transactions are not read committed; nothing was done"
            )
        return row


def namespace_mark(name: str) -> str:
    """Give what the tokens of a namespace begin with in the index.

    It keeps the postings of namespaces apart, so that a search reads none of another. It need not be
    unique: every statement compares the namespace itself too.
    """
    return hashlib.sha256(name.encode("ascii")).hexdigest()[:4]


async def _whole(operation: str, call: Awaitable[T]) -> T:
    """Say of a statement that divided by zero what it has found; the server undid it as a whole."""
    try:
        return await call
    except Exception as error:
        if getattr(error, "sqlstate", None) != _DIVISION_BY_ZERO:
            raise
        raise MemoryAdapterError(f"{operation}: the database skipped a row; nothing was done") from error


def _indexed_otherwise() -> MemoryAdapterUnavailable:
    return MemoryAdapterUnavailable(
        "the namespace has been indexed in another way since this store connected"
    )


def _by_id(record: Record[str]) -> int:
    return record.id.int  # as Postgres orders them


def _chunks(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Cut a batch where one request would be too large."""
    chunk: list[_Row] = []
    size = 0
    for row in rows:
        more = sum(map(len, row[2:]))
        if chunk and (len(chunk) == MAX_ROWS or size + more > MAX_REQUEST):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += more
    if chunk:
        yield chunk
