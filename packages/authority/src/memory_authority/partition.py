"""The rows of one owner: how they are found, checked and changed."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from adapter_core import AnyOf, ItemLike, MemoryAdapterError, MemoryItem, MemoryQuery

from . import envelope
from .errors import ScopeViolation, WriteRejected
from .gate import AuthoritativeMemoryStore
from .matching import search_any_word
from .records import MemoryKind, MemoryRecord
from .scope import Scope
from .screening import ContentScreen

MAX_FETCH = 1_000
"""How many rows one search of this layer asks for at most."""
# Each failed attempt is the success of another writer.
_MAX_ATTEMPTS = 200
# How many records a policy is shown beside the turn.
_AKIN = 20


@dataclass(frozen=True)
class Partition:
    """The rows that one scope may read, and those that it may write."""

    store: AuthoritativeMemoryStore
    scope: Scope
    screen: ContentScreen | None
    clock: Callable[[], float]

    def filters(self, agents: Iterable[str]) -> dict[str, Any]:
        """Give the conditions that every search of this scope carries."""
        session = self.scope.session
        return {
            envelope.TENANT: self.scope.tenant,
            envelope.PRINCIPAL: self.scope.principal,
            envelope.AGENT: AnyOf(*sorted(agents)),
            envelope.SESSION: AnyOf(None) if session is None else AnyOf(None, str(session)),
            envelope.STATUS: "active",
        }

    def sort_out(
        self,
        hits: Sequence[ItemLike],
        agents: AbstractSet[str],
        found: dict[UUID, MemoryRecord],
        withheld: dict[UUID, str],
    ) -> None:
        """Check every hit again; a store that filters wrongly must not leak."""
        for hit in hits:
            record = envelope.to_record(hit, now=self.clock())
            if record is None:
                withheld[hit.id] = "quarantined"
            elif not self.scope.visible(record.scope) or record.scope.agent not in agents:
                withheld[hit.id] = "out_of_scope"
            elif record.status != "active":
                withheld[hit.id] = record.status
            elif not self.passes_screen(record):
                withheld[hit.id] = "screened"
            else:
                found.setdefault(record.id, record)

    def passes_screen(self, record: MemoryRecord) -> bool:
        """Whether the record may be shown to a model."""
        if self.screen is None:
            return True
        try:
            return self.screen.on_read(record)
        except Exception:  # noqa: BLE001 - the screen is the host's; what it cannot judge is withheld
            return False

    async def count(self, kind: MemoryKind) -> int:
        """Count the records of a partition, by looking at each."""
        filters = {
            **self.filters({self.scope.agent}),
            envelope.SESSION: None if self.scope.session is None else str(self.scope.session),
            envelope.KIND: kind.value,
            envelope.STATUS: AnyOf("active", "superseded"),
        }
        count = 0
        async for _ in self.store.scan(filters=filters):
            count += 1
        return count

    async def akin(self, text: str) -> list[MemoryRecord]:
        """Give this owner's active records that hold some words of a text."""
        agents = {self.scope.agent}
        hits = await search_any_word(self.store, text, filters=self.filters(agents), limit=_AKIN)
        found: dict[UUID, MemoryRecord] = {}
        self.sort_out(hits, agents, found, {})
        return list(found.values())

    async def own(self, record_id: UUID) -> MemoryRecord:
        """Give a record that this scope may write.

        Raises:
            WriteRejected: This scope has no such record.
            ScopeViolation: It is another agent's, which may only be read.
        """
        item = await self.store.retrieve(record_id)
        return self._checked_own(item)

    def _checked_own(self, item: ItemLike | None) -> MemoryRecord:
        record = None if item is None else envelope.to_record(item, now=self.clock())
        if record is None or not self.scope.visible(record.scope):
            raise WriteRejected("this scope has no such record")
        if record.scope.agent != self.scope.agent:
            raise ScopeViolation("another agent's record can be read here, not written")
        return record

    async def change(
        self, record_id: UUID, change: Callable[[MemoryRecord], MemoryRecord | MemoryItem | None]
    ) -> bool:
        """Change a record against its revision, until no other writer was in between."""
        for _ in range(_MAX_ATTEMPTS):
            held = await self.store.retrieve_revision(record_id)
            record = self._checked_own(None if held is None else held[0])
            changed = change(record)
            if held is None or changed is None:
                return False
            if isinstance(changed, MemoryRecord):
                changed = envelope.to_item(changed.model_copy(update={"revision": record.revision + 1}))
            if await self.store.replace(changed, expected_revision=held[1]) is not None:
                return True
        raise MemoryAdapterError(f"the record was changed by others {_MAX_ATTEMPTS} times in a row")

    async def holds_tombstone(self, record_id: UUID) -> bool:
        """Whether what is left of a record of this scope's agent stands there."""
        item = await self.store.retrieve(record_id)
        owner = None if item is None else envelope.scope_of(item)
        if item is None or owner is None or not self.scope.visible(owner):
            return False
        return owner.agent == self.scope.agent and envelope.status_of(item) == "tombstone"

    async def sources_of(self, record_id: UUID, *, limit: int) -> list[ItemLike]:
        """Give rows that say where else a record came from, the newest first."""
        filters = {
            envelope.TENANT: self.scope.tenant,
            envelope.PRINCIPAL: self.scope.principal,
            envelope.STATUS: "source",
        }
        query = MemoryQuery(tags=[envelope.source_tag(record_id)], filters=filters, limit=limit)
        return list(await self.store.search(query))
