"""Writing the rows of one owner: keep, supersede, restore, forget."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from adapter_core import MemoryAdapterError, MemoryItem

from . import envelope
from .errors import ScopeViolation, WriteRejected
from .partition import Partition
from .records import MemoryKind, MemoryRecord

MAX_SOURCES = 100
"""How many further origins of one text are kept; the first ones are."""


class QuotaReached(WriteRejected):
    """The partition holds as many records as it may."""


class Keeper:
    """Writes the rows of one owner, one write at a time.

    Args:
        rows: The rows.
        quota: The most records of one kind; active and superseded ones count.
    """

    def __init__(self, rows: Partition, quota: int) -> None:
        self._rows = rows
        self._store = rows.store
        self._quota = quota
        self._counts: dict[MemoryKind, int] = {}
        # Writers of this process see each other; against others there are revisions.
        self._writing = asyncio.Lock()

    async def keep(self, record: MemoryRecord) -> MemoryRecord:
        """Store a record, or give the active one that says the same.

        Raises:
            QuotaReached: There is no room.
            WriteRejected: The quota could not be checked.
        """
        async with self._writing:
            there, free = await self._find(record, record.id)
            if there is not None:
                await self._add_source(there, record)
                return there
            if free != record.id:
                record = record.model_copy(update={"id": free})
            await self._check_quota(record.kind)
            # Counted first: of a write that fails or is cancelled nobody knows whether it was done.
            self._counts[record.kind] += 1
            await self._store.store(envelope.to_item(record))
            return record

    async def supersede(self, old: UUID, new: UUID) -> None:
        """Let `new` take the place of `old`."""
        if old == new:
            raise ScopeViolation("a record cannot supersede itself")
        async with self._writing:
            successor = await self._active(new)

            def change(record: MemoryRecord) -> MemoryRecord | None:
                if (record.scope, record.kind) != (successor.scope, successor.kind):
                    raise ScopeViolation("both records must be of one partition")
                if record.superseded_by == new:
                    return None
                return record.model_copy(update={"status": "superseded", "superseded_by": new})

            if not await self._rows.change(old, change):
                return
            try:
                await self._active(new)
            except (WriteRejected, ScopeViolation):
                # Another process superseded or forgot it meanwhile; the old one must not be lost with it.
                await self._rows.change(old, lambda record: _restored(record, by=new))
                raise

    async def restore(self, record_id: UUID) -> None:
        """Make a superseded record active again."""
        async with self._writing:
            record = await self._rows.own(record_id)
            if record.status != "superseded":
                return
            twin, _ = await self._find(record, _identity(record, 0))
            if twin is not None:
                raise WriteRejected("an active record says the same; supersede or forget that one first")
            await self._rows.change(record_id, _restored)

    async def forget(self, record_id: UUID, reason: str) -> bool:
        """Put a tombstone in the place of a record; give whether there was one."""
        gone: list[MemoryRecord] = []

        def bury(record: MemoryRecord) -> MemoryItem:
            gone.append(record)
            return envelope.to_tombstone(record, reason=reason, deleted_at=self._rows.clock())

        async with self._writing:
            try:
                await self._rows.change(record_id, bury)
            except WriteRejected:
                # what a failed call before this one may have left of it
                if await self._rows.holds_tombstone(record_id):
                    await self._delete_sources(record_id)
                return False
            record = gone[-1]
            await self._delete_sources(record_id)
            if record.kind in self._counts and record.scope.session == self._rows.scope.session:
                self._counts[record.kind] -= 1
            return True

    async def _active(self, record_id: UUID) -> MemoryRecord:
        record = await self._rows.own(record_id)
        if record.status != "active":
            raise WriteRejected("only an active record can supersede another")
        return record

    async def _find(self, record: MemoryRecord, first: UUID) -> tuple[MemoryRecord | None, UUID]:
        """Give the active record of the same text, and its id or the first id that is free.

        Ids go by generation, from 0 upwards. The rows before the free one were superseded, have expired
        or were forgotten, and stay what they are.

        Args:
            record: The text and its owner.
            first: The id of generation 0.
        """
        now = self._rows.clock()
        held = await self._store.retrieve(first)
        if held is None:
            return None, first
        ids, generations = [first], 1
        rows: Mapping[UUID, MemoryItem] = {first: held}
        while True:
            for id_ in ids:
                row = rows.get(id_)
                if row is None:
                    return None, id_
                there = envelope.to_record(row, now=now)
                if there is not None and there.status == "active":
                    return there, id_
            ids = [_identity(record, generation) for generation in range(generations, 3 * generations)]
            generations *= 3
            rows = await self._store.retrieve_many(ids)

    async def _add_source(self, there: MemoryRecord, again: MemoryRecord) -> None:
        if there.provenance == again.provenance:
            return
        if len(await self._rows.sources_of(there.id, limit=MAX_SOURCES)) < MAX_SOURCES:
            source = envelope.to_source(there, again.provenance, created_at=self._rows.clock())
            await self._store.store(source)

    async def _delete_sources(self, record_id: UUID) -> None:
        while rows := await self._rows.sources_of(record_id, limit=MAX_SOURCES):
            for row in rows:
                await self._store.delete(row.id)

    async def _check_quota(self, kind: MemoryKind) -> None:
        if self._counts.get(kind, self._quota) < self._quota:
            return
        try:
            self._counts[kind] = await self._rows.count(kind)
        except MemoryAdapterError as error:
            raise WriteRejected("the quota could not be checked") from error
        if self._counts[kind] >= self._quota:
            raise QuotaReached(f"the quota of {self._quota} records is reached")


def _identity(record: MemoryRecord, generation: int) -> UUID:
    return envelope.record_id(record.scope, record.kind, record.text, generation)


def _restored(record: MemoryRecord, *, by: UUID | None = None) -> MemoryRecord | None:
    if record.status != "superseded" or (by is not None and record.superseded_by != by):
        return None
    return record.model_copy(update={"status": "active", "superseded_by": None})
