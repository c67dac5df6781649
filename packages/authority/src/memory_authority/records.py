"""Curated memory as the caller sees it: records, their provenance, and what a recall gives."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from .scope import Frozen, Scope


class MemoryKind(StrEnum):
    """What a curated record is. Transcripts are no kind of it."""

    FACT = "fact"
    PREFERENCE = "preference"
    DECISION = "decision"
    CONVENTION = "convention"
    PROCEDURE = "procedure"


class Provenance(Frozen):
    """Where a record comes from.

    Attributes:
        actor: Who decided to keep it.
        actor_id: Which one.
        method: How it was obtained.
        recorded_at: When, with a zone.
        session: The session it was derived from.
        turn_ids: The turns it was derived from.
        source_ids: The records it was derived from.
        policy: The name of the consolidation policy.
    """

    actor: Literal["user", "agent", "operator", "consolidation", "promotion", "import"]
    actor_id: str
    method: str
    recorded_at: AwareDatetime
    session: UUID | None = None
    turn_ids: tuple[str, ...] = ()
    source_ids: tuple[UUID, ...] = ()
    policy: str | None = None


class MemoryRecord(Frozen):
    """One curated record, as the authority holds it.

    Attributes:
        id: Its identity.
        revision: Of the authority; grows with every write.
        text: What is remembered.
        kind: What it is.
        scope: Its owner.
        provenance: Where it comes from.
        subject: The key it is about, such as `timezone`; two records of one subject conflict.
        tags: Labels.
        status: Only `active` records are recalled.
        superseded_by: The record that took its place.
        expires_at: Seconds since 1970 in UTC; hidden from then on.
        created_at: Seconds since 1970 in UTC.
    """

    id: UUID
    revision: int
    text: str = Field(repr=False)
    kind: MemoryKind
    scope: Scope
    provenance: Provenance
    subject: str | None = None
    tags: tuple[str, ...] = ()
    status: Literal["active", "superseded", "expired"] = "active"
    superseded_by: UUID | None = None
    expires_at: float | None = None
    created_at: float = 0.0


class DerivedHit(Frozen):
    """What a connector gave: a reference to a record, or context of its own.

    Attributes:
        ref: The record it refers to.
        revision: The revision that the connector saw.
        text: The connector's own text. Never taken for a record's text.
        score: The connector's score; higher is better.
    """

    ref: UUID | None = None
    revision: int | None = None
    text: str | None = Field(default=None, repr=False)
    score: float | None = Field(default=None, allow_inf_nan=False)


class EnricherOutcome(Frozen):
    """How one connector did in one recall.

    Attributes:
        enricher: Its name.
        outcome: What happened.
        accepted: Hits that became records or derived context.
        rejected: Hits that did not, by reason.
    """

    enricher: str
    outcome: Literal[
        "ok",
        "empty",
        "skipped_enough",
        "skipped_capability",
        "skipped_cooldown",
        "timeout",
        "error",
        "malformed",
    ]
    accepted: int = 0
    rejected: Mapping[str, int] = Field(default_factory=dict)


class Recall(Frozen):
    """What a recall found, and how the connectors did.

    Attributes:
        records: Rows of the authority.
        derived: Context without a row behind it; untrusted, never stored.
        enrichment: One outcome for each connector.
        withheld: How many hits of the authority were not given, by reason.
    """

    records: tuple[MemoryRecord, ...]
    derived: tuple[DerivedHit, ...] = ()
    enrichment: tuple[EnricherOutcome, ...] = ()
    withheld: Mapping[str, int] = Field(default_factory=dict)
