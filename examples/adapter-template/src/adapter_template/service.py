"""What the template stands on: a dictionary that answers like a service, and fails on command.

Here the backend and its fake are one. In an adapter of yours the client library takes this place,
and a file like this one remains as the deterministic fake that the conformance kit runs against.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from adapter_core.testing import CallKind, Faults, TransportCall


class ServiceRefused(Exception):
    """The service understood the request and refuses it."""


class ForeignRow(ServiceRefused):
    """The row under this key is of another kind than the one that would replace it."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the service keeps under one key: opaque text, and what a search can compare."""

    kind: str
    document: str
    created_at: float = 0.0
    tokens: frozenset[str] = frozenset()


class TemplateService:
    """Tables of rows. Every handle that is given this object sees the same data.

    A search reads an index and not the tables. A write is queued for the index, and reaches it
    when the writer asks for that (`refresh`), or else with the next `expose`; until then a search
    finds rows as they were when they were indexed, replaced and deleted ones too.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self._tables: dict[str, dict[UUID, Row]] = {}
        self._index: dict[str, dict[UUID, Row]] = {}
        self._queue: list[tuple[str, UUID, Row | None]] = []

    async def connect(self, table: str) -> None:
        """Make the table if there is none."""
        await self._request("connect", "setup", table)
        self._rows(table)

    async def write(self, table: str, rows: Mapping[UUID, Row], *, refresh: bool) -> list[UUID]:
        """Insert or replace all the rows or none; the keys written."""
        await self._request("write", "write", table, rows)
        kept = self._rows(table)
        if any(key in kept and kept[key].kind != row.kind for key, row in rows.items()):
            raise ForeignRow
        if self.faults.drop_identity:
            return []
        for key, row in rows.items():
            self._change(table, key, row, refresh=refresh)
        return list(rows)

    async def read(self, table: str, keys: Sequence[UUID]) -> dict[UUID, Row]:
        """Give the rows that are there, by key."""
        await self._request("read", "identity", table, keys)
        kept = self._rows(table)
        return {key: kept[key] for key in keys if key in kept}

    async def search(
        self, table: str, kind: str, groups: Sequence[Sequence[str]], times: tuple[float, float], limit: int
    ) -> list[tuple[UUID, Row]]:
        """Give rows of one kind and time that have a token of each group: newest first, then by key."""
        await self._request("search", "search", table, kind, groups, times, limit)
        found = [
            (key, row)
            for key, row in self._index.get(table, {}).items()
            if row.kind == kind
            and times[0] <= row.created_at <= times[1]
            and not any(row.tokens.isdisjoint(group) for group in groups)
        ]
        return sorted(found, key=lambda entry: (-entry[1].created_at, entry[0]))[:limit]

    async def delete(
        self, table: str, kind: str, keys: Sequence[UUID] | None = None, *, refresh: bool
    ) -> int:
        """Delete rows of one kind by key, or all of them; how many there were."""
        await self._request("delete", "write", table, kind, keys)
        kept = self._rows(table)
        doomed = [key for key, row in kept.items() if row.kind == kind and (keys is None or key in keys)]
        for key in doomed:
            self._change(table, key, None, refresh=refresh)
        return len(doomed)

    # Not of the service: what a harness stages

    def expose(self) -> None:
        """Let the index catch up with the tables, unless it is held."""
        if self.faults.hold_index:
            return
        for table, key, row in self._queue:
            _put_or_pop(self._index.setdefault(table, {}), key, row)
        self._queue.clear()

    def plant(self, table: str, key: UUID, row: Row) -> None:
        """Put a row behind the adapter's back."""
        self._change(table, key, row, refresh=True)

    def damage(self, table: str, key: UUID) -> None:
        """Cut a row's document short; what searches compare stays."""
        self.plant(table, key, replace(self._rows(table)[key], document="{"))

    def wipe(self) -> None:
        """Forget all data, faults and calls."""
        self.faults.reset()
        for part in (self._tables, self._index, self._queue):
            part.clear()

    def _change(self, table: str, key: UUID, row: Row | None, *, refresh: bool) -> None:
        _put_or_pop(self._rows(table), key, row)
        self._queue.append((table, key, row))
        if refresh:
            self.expose()

    def _rows(self, table: str) -> dict[UUID, Row]:
        return self._tables.setdefault(table, {})

    async def _request(self, operation: str, kind: CallKind, *payload: object) -> None:
        self.faults.calls.append(TransportCall(operation, kind, repr(payload)))
        await asyncio.sleep(0)  # other tasks run while a request is under way
        if self.faults.down:
            raise ConnectionError("the service is down")
        if (kind == "write" and self.faults.refuse_writes) or (
            kind == "search" and self.faults.refuse_queries
        ):
            raise ServiceRefused


def _put_or_pop(rows: dict[UUID, Row], key: UUID, row: Row | None) -> None:
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row
