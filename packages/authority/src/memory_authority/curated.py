"""Curated memory: what was remembered on purpose, by whom, for whom."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from adapter_core import (
    AnyOf,
    ExternalMemoryStore,
    MemoryQuery,
    terms,
)

from . import envelope
from ._text import text_of
from .consolidation import Consolidation, ConsolidationPolicy, bounds_of, propose
from .drafting import Drafts
from .errors import ScopeViolation, WriteRejected
from .gate import require_authoritative
from .isolation import check_derivation
from .keeping import Keeper, QuotaReached
from .matching import search_any_word
from .partition import MAX_FETCH, Partition
from .records import MemoryKind, MemoryRecord, Provenance, Recall
from .scope import Scope
from .screening import ContentScreen
from .transcript import SessionInfo, Turn

MAX_REASON_CHARS = 200
"""How long the reason for forgetting may be; it is kept in the tombstone."""
MAX_PROMOTED_TURNS = 20
"""How many turns one promotion may name (ADR-010: a promotion is bounded)."""
MAX_QUERY_CHARS = 2_000
"""How much of a query is asked for. A text of that length as a whole is found in no record."""
OVERFETCH = 4
"""By how much a recall asks for more when hits were withheld. An inherited default."""


class CuratedMemory:
    """The curated memory of one scope, over a store that may be an authority.

    Only deliberate writes exist: `remember`, `promote`, and `consolidate` under a named policy. All
    that is read is checked again for its owner, its state and by the screen, whatever the store
    filtered. The same text in the same partition (tenant, principal, agent, session, kind) is one
    record. An instance serves concurrent tasks of one event loop, and does not own the store.

    Args:
        store: Where the records stand. Its manifest must pass `require_authoritative`.
        scope: Who reads and writes. Further agents in `read_agents` are read, never written.
        screen: Looks at texts on the way in and out.
        quota: Records in one partition. Other processes that write to the partition at the same
            time can exceed it by what they write between two counts.
        read_only: Refuse every write.
        allow_volatile: Take a store that keeps nothing, for tests.
        clock: Gives seconds since 1970 in UTC.

    Raises:
        InsufficientAuthority: With every shortfall of the store, before its first use.
    """

    def __init__(
        self,
        store: ExternalMemoryStore[Any],
        scope: Scope,
        *,
        screen: ContentScreen | None = None,
        quota: int = 10_000,
        read_only: bool = False,
        allow_volatile: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = require_authoritative(store, allow_volatile=allow_volatile)
        self._scope = scope
        self._rows = Partition(self._store, scope, screen, clock)
        self._drafts = Drafts(scope, screen, clock)
        self._keeper = Keeper(self._rows, quota)
        self._read_only = read_only
        self._clock = clock

    @property
    def scope(self) -> Scope:
        """Who reads and writes here."""
        return self._scope

    # ---- writing -------------------------------------------------------------------------------

    async def remember(
        self,
        text: str,
        *,
        kind: MemoryKind,
        provenance: Provenance,
        subject: str | None = None,
        tags: Sequence[str] = (),
        expires_at: float | None = None,
    ) -> MemoryRecord:
        """Keep a text.

        A text that is there already adds no record: its provenance is kept as a further source of the
        record that is (see `sources`), which stays as it was.

        Args:
            text: What to remember, at most 8,000 characters.
            kind: What it is.
            provenance: Where it comes from.
            subject: The key it is about, such as `timezone`; sessions that state it differently win.
            tags: Labels.
            expires_at: Seconds since 1970 in UTC; hidden from then on.

        Raises:
            WriteRejected: Provenance, bounds, quota, screen, or a read-only instance.
            MemoryAdapterError: The store refused or failed; see the errors of core.
        """
        self._check_writable()
        return await self._keeper.keep(self._drafts.draft(text, kind, provenance, subject, tags, expires_at))

    async def promote(
        self,
        session: UUID,
        turn_ids: Sequence[str],
        text: str,
        *,
        kind: MemoryKind,
        actor_id: str,
        subject: str | None = None,
        tags: Sequence[str] = (),
    ) -> MemoryRecord:
        """Keep what an actor chose from turns that it names, from a session of any mode.

        Raises:
            WriteRejected: No turn or more than 20 are named, or no actor; or as for `remember`.
        """
        if not 0 < len(turn_ids) <= MAX_PROMOTED_TURNS:
            raise WriteRejected(f"a promotion names 1 to {MAX_PROMOTED_TURNS} turns")
        provenance = self._drafts.provenance(
            actor="promotion", actor_id=actor_id, method="promote", session=session, turn_ids=tuple(turn_ids)
        )
        return await self.remember(text, kind=kind, provenance=provenance, subject=subject, tags=tags)

    async def consolidate(
        self, session: SessionInfo, turn: Turn, policy: ConsolidationPolicy
    ) -> Consolidation:
        """Let a named, bounded policy take records out of one turn.

        The candidates are all checked before the first is kept. Those that pass are kept one after
        the other; repeating the call after a failure adds nothing twice.

        Raises:
            WriteRejected: The session is isolated; the policy failed, took too long, or gave something
                that cannot be kept. Nothing is kept then.
        """
        self._check_writable()
        limits = bounds_of(policy)
        provenance = self._drafts.provenance(
            actor="consolidation",
            actor_id=self._scope.agent,
            method="extract",
            session=session.session_id,
            turn_ids=(turn.turn_id,),
            policy=policy.name,
        )
        check_derivation(session.mode, provenance)
        self._check_owned_session(session)
        spoken = " ".join(text_of(message.content) for message in turn.messages)
        existing = await self._rows.akin(spoken[: limits.max_input_chars])
        kept, rejected, cut = await propose(policy, turn, existing, self._scope)
        drafts = [
            self._drafts.draft(c.text, c.kind, provenance, c.subject, c.tags, c.expires_at) for c in kept
        ]
        records: list[MemoryRecord] = []
        for draft in drafts:
            try:
                records.append(await self._keeper.keep(draft))
            except QuotaReached:
                rejected["quota"] += 1
        return Consolidation(records=tuple(records), rejected=dict(rejected), input_cut=cut)

    async def supersede(self, old: UUID, new: UUID) -> None:
        """Let one record take the place of another of the same partition; doing it again changes nothing.

        The old one leaves recall. It can still be read by id, and `restore` brings it back.

        Raises:
            ScopeViolation: They are one record, or of two partitions, or another agent's.
            WriteRejected: One of them does not exist here, or the new one is not active.
        """
        self._check_writable()
        await self._keeper.supersede(old, new)

    async def restore(self, record_id: UUID) -> None:
        """Take back that a record was superseded; an active one stays as it is.

        Raises:
            WriteRejected: It does not exist here, or its text was remembered again since.
            ScopeViolation: It is another agent's.
        """
        self._check_writable()
        await self._keeper.restore(record_id)

    async def forget(self, record_id: UUID, *, reason: str) -> bool:
        """Remove a record: in one write a tombstone without any content takes its place.

        Returns:
            Whether there was such a record.

        Raises:
            ScopeViolation: It is readable here, and another agent's.
            WriteRejected: No reason, or one longer than 200 characters; or a read-only instance.
        """
        self._check_writable()
        if not reason.strip() or len(reason) > MAX_REASON_CHARS:
            raise WriteRejected(f"a reason of 1 to {MAX_REASON_CHARS} characters is needed")
        return await self._keeper.forget(record_id, reason)

    async def revoke(
        self, *, reason: str, session: UUID | None = None, actor_id: str | None = None
    ) -> tuple[UUID, ...]:
        """Forget every record of this owner that came from a session, or from an actor, or from both.

        Returns:
            The ids of what was forgotten.

        Raises:
            WriteRejected: Neither is named; or as for `forget`.
        """
        if session is None and actor_id is None:
            raise WriteRejected("name a session or an actor")
        found = [
            record.id
            async for record in self.export(raw=True)
            if (session is None or record.provenance.session == session)
            and (actor_id is None or record.provenance.actor_id == actor_id)
        ]
        return tuple([one for one in found if await self.forget(one, reason=reason)])

    async def expire(self, *, dry_run: bool = True) -> tuple[UUID, ...]:
        """Forget what is past its expiry. It is hidden before that; nothing else deletes it.

        Args:
            dry_run: Only say which ones.
        """
        found = [record.id async for record in self.export(raw=True) if record.status == "expired"]
        if dry_run:
            return tuple(found)
        return tuple([one for one in found if await self.forget(one, reason="expired")])

    # ---- reading -------------------------------------------------------------------------------

    async def get(self, record_id: UUID) -> MemoryRecord | None:
        """Give a record by id, also one that was superseded; None when this scope has none."""
        item = await self._store.retrieve(record_id)
        record = None if item is None else envelope.to_record(item, now=self._clock())
        if record is None or not self._scope.visible(record.scope) or not self._rows.passes_screen(record):
            return None
        return record

    async def sources(self, record_id: UUID) -> tuple[Provenance, ...]:
        """Give every provenance of a record: its own, then those of the same text said again."""
        record = await self.get(record_id)
        if record is None:
            return ()
        rows = await self._rows.sources_of(record.id, limit=MAX_FETCH)
        origins = [envelope.to_origin(row) for row in rows]
        return (record.provenance, *(origin for origin in reversed(origins) if origin is not None))

    async def recall(self, query: str, *, limit: int = 5, agents: AbstractSet[str] | None = None) -> Recall:
        """Find active records.

        Records that hold every word of the query come first, in the store's order of relevance. If
        they are fewer than the limit, those that hold some of its longest words follow. A blank query
        gives the newest records.

        Args:
            query: Words, or a sentence; the first 2,000 characters count.
            limit: The most records to give.
            agents: Read the records of these agents only; those that this scope may not read are left
                out, and if none is left nothing matches.

        Raises:
            MemoryAdapterError: The authority failed. It is never answered with an empty recall.
        """
        query = query[:MAX_QUERY_CHARS]
        readable = {self._scope.agent, *self._scope.read_agents}
        asked = readable if agents is None else readable & agents
        if not asked:
            return Recall(records=())
        filters = self._rows.filters(asked)
        found: dict[UUID, MemoryRecord] = {}
        withheld: dict[UUID, str] = {}
        fetch = limit
        while True:
            hits = await self._store.search(MemoryQuery(text=query, filters=filters, limit=fetch))
            self._rows.sort_out(hits, asked, found, withheld)
            if len(found) >= limit or len(hits) < fetch or fetch >= MAX_FETCH:
                break
            fetch = min(fetch * OVERFETCH, MAX_FETCH)
        if len(found) < limit and len(terms(query, asked=True)) > 1:
            more = await search_any_word(self._store, query, filters=filters, limit=OVERFETCH * limit)
            self._rows.sort_out(more, asked, found, withheld)
        # a record that expired between two searches is among both
        reasons = Counter(reason for one, reason in withheld.items() if one not in found)
        return Recall(records=tuple(found.values())[:limit], withheld=reasons)

    async def export(self, *, raw: bool = False) -> AsyncIterator[MemoryRecord]:
        """Give every record of this owner, superseded and expired ones too. An export is one-way.

        Args:
            raw: Also what the screen withholds, for an operator. A model must never see that.
        """
        filters = {**self._rows.filters({self._scope.agent}), envelope.STATUS: AnyOf("active", "superseded")}
        async for item in self._store.scan(filters=filters):
            record = envelope.to_record(item, now=self._clock())
            if record is None or not self._scope.visible(record.scope):
                continue
            if raw or self._rows.passes_screen(record):
                yield record

    async def quarantine(self) -> AsyncIterator[UUID]:
        """Give the ids of rows that are nobody's: without attribution, or unreadable.

        It looks through the whole namespace of the store, for an operator. Such rows are never
        recalled.
        """
        async for item in self._store.scan():
            unattributed = envelope.scope_of(item) is None
            status = envelope.status_of(item)
            beside = status in {"tombstone", "source"}  # rows that are no records
            if unattributed or not (beside or envelope.to_record(item, now=0.0)):
                yield item.id

    # ---- inside ------------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if self._read_only:
            raise WriteRejected("this memory is read-only")

    def _check_owned_session(self, session: SessionInfo) -> None:
        mine, theirs = self._scope, session.scope
        if (mine.tenant, mine.principal, mine.agent) != (theirs.tenant, theirs.principal, theirs.agent):
            raise ScopeViolation("the session belongs to another scope")
