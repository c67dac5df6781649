"""For tests: a double of the server with faults to switch on, and a recorder of calls.

fake = FakePostgres()
store = PostgresMemoryStore("postgresql://any", transport=fake.transport())
fake.faults.down = True
"""

import asyncio
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

from adapter_core import TERMS_VERSION, namespace_token
from adapter_core.testing import OPERATION_KINDS, Faults

from . import schema
from .recording import RecordingTransport
from .transport import Row, Statement, Transport, Work

T = TypeVar("T")

__all__ = ["AGED", "FakePostgres", "FakeRow", "FakeServerError", "RecordingTransport"]

AGED = schema.signature_text({**schema.SIGNATURE, "terms": str(TERMS_VERSION + 1)})
"""How a namespace is indexed whose term rules are of another version."""


class FakeServerError(Exception):
    """An error of the fake, with what the driver reads of an error of Postgres."""

    def __init__(self, sqlstate: str, text: str, column_name: str | None = None) -> None:
        self.sqlstate = sqlstate
        self.column_name = column_name
        super().__init__(text)


@dataclass(frozen=True)
class FakeRow:
    """A row of the table of items."""

    created_at: float
    revision: int
    marker: str
    indexed_as: str
    weights: tuple[float, ...]
    tokens: tuple[str, ...]
    document: str


Rows = dict[tuple[str, UUID], FakeRow]


class FakePostgres:
    """One database that many stores can use through `transport()`.

    It knows the adapter's statements by their names and does what their SQL says. Each call gives
    way to the event loop once before and once after its work, so that a cancellation can strike on
    either side of the commit.

    Attributes:
        faults: Switches that make it misbehave, and the log of calls.
        rows: The table of items, by namespace and id.
        namespaces: How each namespace is indexed, by its token.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.rows: Rows = {}
        self.namespaces: dict[str, str] = {}
        self._made = False
        self._revision = 0
        self._held: Rows | None = None

    def transport(self) -> Transport:
        """Make a transport for one store."""
        return RecordingTransport(_FakeTransport(self), self.faults.calls)

    # Staging

    def plant_foreign(self, namespace: str, item_id: UUID) -> None:
        """Put a row that is not the adapter's where the item with this id would be."""
        key = namespace_token(namespace), item_id
        old = self.rows.get(key, FakeRow(0.0, 0, "", "", (), (), ""))
        self.rows[key] = replace(old, marker="foreign", document="foreign")

    def plant_malformed(self, namespace: str, item_id: UUID) -> None:
        """Damage the document of a stored item."""
        key = namespace_token(namespace), item_id
        self.rows[key] = replace(self.rows[key], document="{")

    def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        self.namespaces = dict.fromkeys(self.namespaces, AGED)
        self.rows = {key: replace(row, indexed_as=AGED) for key, row in self.rows.items()}

    def reset(self) -> None:
        """Remove every item and every namespace, and end what is staged."""
        self.faults.reset()
        self.rows.clear()
        ours = schema.signature_text(schema.SIGNATURE)
        self.namespaces = dict.fromkeys(self.namespaces, ours)
        self._held = None

    # What the statements do

    def perform(self, statement: Statement, arguments: Sequence[Any]) -> Sequence[Row]:
        """Do what one statement says, as the faults allow; for the transports of this fake."""
        kind = OPERATION_KINDS.get(statement.name, "other")
        self._hold_or_release()
        if self.faults.down:
            raise ConnectionRefusedError("the fake is down")
        if kind == "write" and self.faults.refuse_writes:
            raise FakeServerError("P0001", "refused")
        if kind == "search" and self.faults.refuse_queries:
            raise FakeServerError("42703", "column does not exist")
        if statement.name in ("find", "page"):
            return self._find(statement, *arguments)
        does: Callable[..., Sequence[Row]] = getattr(self, f"_do_{statement.name}")
        return does(*arguments)

    def save(self) -> Callable[[], None]:
        """Note the state; calling the result goes back to it."""
        rows, namespaces, made = dict(self.rows), dict(self.namespaces), self._made

        def restore() -> None:
            self.rows, self.namespaces, self._made = rows, namespaces, made

        return restore

    def _hold_or_release(self) -> None:
        if not self.faults.hold_index:
            self._held = None
        elif self._held is None:
            self._held = dict(self.rows)

    def _do_server(self, _: str, __: str) -> Sequence[Row]:
        return [(180_000, self._made)]

    def _do_ready(self, _: str, __: str, name: str) -> Sequence[Row]:
        return [(len(schema.STEPS), name in self.namespaces, "p", False)]

    def _do_lock(self, _: int) -> Sequence[Row]:
        return [(None,)]

    def _do_lock_items(self) -> Sequence[Row]:
        return []

    def _do_unknown(self, _: str, __: str) -> Sequence[Row]:
        return [(False,)]

    def _do_schema(self, _: str) -> Sequence[Row]:
        return [(True,)]

    def _do_taken(self, _: str, __: Sequence[str]) -> Sequence[Row]:
        return [(None,)]

    def _do_make(self) -> Sequence[Row]:
        self._made = True
        return []

    def _do_add(self, name: str, signature: str) -> Sequence[Row]:
        self.namespaces.setdefault(name, signature)
        return []

    def _do_remembered(self, name: str) -> Sequence[Row]:
        return [(self.namespaces[name],)] if name in self.namespaces else []

    def _do_get(self, name: str, wanted: UUID | Sequence[UUID]) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        ids = [wanted] if isinstance(wanted, UUID) else wanted
        found = [(one, self._ours(name, one)) for one in ids]
        return [(one, row.document, row.revision) for one, row in found if row] or [(None, None, None)]

    _do_get_revision = _do_get

    def _do_put(self, name: str, signed: str, *columns: Any) -> Sequence[Row]:
        if isinstance(columns[0], UUID):
            return self._put_one(name, signed, columns)
        if name not in self.namespaces:
            return []
        if self.namespaces[name] != signed:
            return [(False, True, None, None)]
        if self.faults.drop_identity:
            raise FakeServerError("22012", "division by zero")
        ids = columns[0]
        if any((name, one) in self.rows and not self._ours(name, one) for one in ids):
            raise FakeServerError("23502", "null value in column", "marker")
        for item_id, created_at, weights, tokens, document in zip(*columns, strict=True):
            self._write(name, item_id, (created_at, signed, weights, tokens, document))
        return [(True, True, list(ids), 1)]

    def _put_one(self, name: str, signed: str, row: Sequence[Any]) -> Sequence[Row]:
        if self.namespaces.get(name) != signed or self.faults.drop_identity:
            return []
        self._do_put(name, signed, *([value] for value in row))
        return [(row[0], 1)]

    def _do_replace(self, name: str, signed: str, item_id: UUID, *written: Any) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        created_at, weights, tokens, document, expected = written
        old = self._ours(name, item_id)
        if self.namespaces[name] != signed:
            return [(False, True, None)]
        if self.faults.drop_identity or old is None or old.revision != expected:
            return [(True, True, None)]
        return [(True, True, self._write(name, item_id, (created_at, signed, weights, tokens, document)))]

    def _do_delete(self, name: str, item_id: UUID) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        there = self._ours(name, item_id) is not None
        if there:
            del self.rows[name, item_id]
        return [(True, True, int(there), int(there))]

    def _do_clear(self, name: str) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        doomed = [item_id for item_id, _ in self._all(self.rows, name)]
        for item_id in doomed:
            del self.rows[name, item_id]
        return [(True, True, len(doomed), 1)]

    def _do_outdated(self, name: str, signed: str, behind: UUID, first: bool, size: int) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        stale = [
            (item_id, row.document, row.revision)
            for item_id, row in self._all(self.rows, name)
            if row.indexed_as != signed and (item_id > behind or (first and item_id == behind))
        ]
        return sorted(stale)[:size] or [(None, None, None)]

    def _do_reindex(self, name: str, signed: str, *columns: Sequence[Any]) -> Sequence[Row]:
        done = 0
        for item_id, revision, weights, tokens in zip(*columns, strict=True):
            old = self._ours(name, item_id)
            if old is not None and old.revision == revision:
                new = replace(old, indexed_as=signed, weights=_reals(weights), tokens=tuple(tokens.split()))
                self.rows[name, item_id] = new
                done += 1
        return [(True, True, done, 1)]

    def _do_forget(self, name: str) -> Sequence[Row]:
        if any(held == name for held, _ in self.rows):
            return []
        return [] if self.namespaces.pop(name, None) is None else [(True,)]

    def _do_adopt(self, name: str, signed: str) -> Sequence[Row]:
        if any(row.indexed_as != signed for _, row in self._all(self.rows, name)):
            return []
        self.namespaces[name] = signed
        return [(True,)]

    def _find(self, statement: Statement, name: str, limit: int, *arguments: Any) -> Sequence[Row]:
        if name not in self.namespaces:
            return []
        after, before, _, *tokens = arguments
        required, groups, terms = statement.shape
        needed = set(tokens.pop(0)) if required else set[str]()
        any_of = [set(tokens.pop(0)) for _ in range(groups)]
        rows = self.rows if self._held is None else self._held
        hits = [
            (item_id, row)
            for item_id, row in self._all(rows, name)
            if after <= row.created_at <= before
            and needed <= set(row.tokens)
            and all(group & set(row.tokens) for group in any_of)
        ]
        if statement.name == "page":
            behind, first = tokens
            found = [hit for hit in hits if hit[0] > behind or (first and hit[0] == behind)]
            hits = sorted(found, key=lambda hit: hit[0])
        else:
            hits.sort(
                key=lambda hit: (-_score(hit[1], tokens[:1] if terms else ()), -hit[1].created_at, hit[0])
            )
        signed = self.namespaces[name]
        scored = bool(terms)
        given = [
            (signed, item_id, row.document, _score(row, tokens) if scored else None)
            for item_id, row in hits[:limit]
        ]
        return given or [(signed, None, None, None)]

    def _ours(self, name: str, item_id: UUID) -> FakeRow | None:
        row = self.rows.get((name, item_id))
        return row if row is not None and row.marker == schema.MARKER else None

    def _all(self, rows: Rows, name: str) -> Iterable[tuple[UUID, FakeRow]]:
        ours = schema.MARKER
        return [(key[1], row) for key, row in rows.items() if key[0] == name and row.marker == ours]

    def _write(self, name: str, item_id: UUID, values: tuple[float, str, str, str, str]) -> int:
        created_at, signed, weights, tokens, document = values
        self._revision += 1
        indexed = (_reals(weights), tuple(tokens.split()))
        self.rows[name, item_id] = FakeRow(
            created_at, self._revision, schema.MARKER, signed, *indexed, document
        )
        return self._revision


class _FakeTransport:
    """The way of one store to a `FakePostgres`."""

    def __init__(self, service: FakePostgres) -> None:
        self._service = service

    async def open(self, setup: Work[None]) -> None:
        await self.transact("open", setup)

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        await asyncio.sleep(0)
        rows = self._service.perform(statement, arguments)
        await asyncio.sleep(0)
        return rows

    async def transact(self, operation: str, work: Work[T]) -> T:  # noqa: ARG002 - for recorders
        await asyncio.sleep(0)
        restore = self._service.save()
        try:
            result = await work(_Direct(self._service))  # which gives way to nobody
        except BaseException:
            restore()
            raise
        await asyncio.sleep(0)
        return result

    async def close(self) -> None:
        pass  # the database belongs to the service


class _Direct:
    """A session within a transaction of the fake."""

    def __init__(self, service: FakePostgres) -> None:
        self._service = service

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        return self._service.perform(statement, arguments)

    async def transact(self, operation: str, work: Work[T]) -> T:  # noqa: ARG002 - for recorders
        return await work(self)


def _reals(weights: str) -> tuple[float, ...]:
    """Read weights as a column of `real` keeps them."""
    return tuple(struct.unpack("f", struct.pack("f", float(weight)))[0] for weight in weights.split())


def _score(row: FakeRow, asked: Sequence[Sequence[str]]) -> float:
    """Add up the weights of the asked terms, if there are any."""
    return sum((row.weights[row.tokens.index(term)] for terms in asked[:1] for term in terms), 0.0)
