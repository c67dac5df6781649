"""How a curated record stands in an authority: one `MemoryItem`, its scope in reserved metadata keys.

    content            the text
    tags               the labels of the record
    scope.tenant …     who owns it, and memory.kind, memory.status: what a search filters by
    authority          all the rest: schema, revision, subject, provenance, expiry, successor

A row without attribution, or with an envelope that does not decode, is nobody's: it is never
recalled, and `CuratedMemory.quarantine` lists it.
"""

import hashlib
import json
from typing import Any, Literal, cast
from uuid import UUID, uuid5

from pydantic import ValidationError

from adapter_core import ItemLike, MemoryItem

from ._text import same_text
from .records import MemoryKind, MemoryRecord, Provenance
from .scope import Scope

SCHEMA = 1
"""Raised when the envelope changes."""

TENANT, PRINCIPAL, AGENT, SESSION = "scope.tenant", "scope.principal", "scope.agent", "scope.session"
KIND, STATUS = "memory.kind", "memory.status"

# Rows beside the records themselves: what is left of a forgotten one, and further origins of one.
RowStatus = Literal["active", "superseded", "tombstone", "source"]
_RECORDS = UUID("5e0c1c54-6f3b-4d5a-9d0e-2c8f5f1f7a10")


def record_id(scope: Scope, kind: MemoryKind, text: str, generation: int) -> UUID:
    """Give the identity of a text in its partition, so that the same text is the same row.

    Args:
        scope: Its owner.
        kind: What it is.
        text: What is remembered; case, spaces and a full stop at the end make no difference.
        generation: Counts up past rows that were superseded or forgotten.
    """
    session = None if scope.session is None else str(scope.session)
    key = [scope.tenant, scope.principal, scope.agent, session, kind.value, same_text(text), generation]
    return uuid5(_RECORDS, hashlib.sha256(json.dumps(key).encode()).hexdigest())


def scope_metadata(scope: Scope, kind: MemoryKind, status: RowStatus) -> dict[str, Any]:
    """Give the reserved keys of a row."""
    return {
        TENANT: scope.tenant,
        PRINCIPAL: scope.principal,
        AGENT: scope.agent,
        SESSION: None if scope.session is None else str(scope.session),
        KIND: kind.value,
        STATUS: status,
    }


def to_item(record: MemoryRecord) -> MemoryItem:
    """Give the row of a record."""
    status: RowStatus = "superseded" if record.status == "superseded" else "active"
    return MemoryItem(
        id=record.id,
        created_at=record.created_at,
        metadata={
            **scope_metadata(record.scope, record.kind, status),
            "authority": {
                "schema": SCHEMA,
                "revision": record.revision,
                "subject": record.subject,
                "provenance": record.provenance.model_dump(mode="json"),
                "superseded_by": None if record.superseded_by is None else str(record.superseded_by),
                "expires_at": record.expires_at,
            },
        },
        content=record.text,
        tags=list(record.tags),
    )


def to_tombstone(record: MemoryRecord, *, reason: str, deleted_at: float) -> MemoryItem:
    """Give what takes the place of a forgotten record: that it was, and nothing of what it said."""
    return MemoryItem(
        id=record.id,
        created_at=record.created_at,
        metadata={
            **scope_metadata(record.scope, record.kind, "tombstone"),
            "authority": {
                "schema": SCHEMA,
                "revision": record.revision + 1,
                "reason": reason,
                "deleted_at": deleted_at,
            },
        },
    )


def source_tag(id_of_record: UUID) -> str:
    """Give the tag that ties further origins to their record."""
    return f"authority:source:{id_of_record}"


def to_source(record: MemoryRecord, provenance: Provenance, *, created_at: float) -> MemoryItem:
    """Give a row that says where else a record came from; the record itself stays as it is."""
    origin = provenance.model_dump(mode="json")
    return MemoryItem(
        id=uuid5(record.id, json.dumps(origin, sort_keys=True)),
        created_at=created_at,
        metadata={
            **scope_metadata(record.scope, record.kind, "source"),
            "authority": {"schema": SCHEMA, "provenance": origin},
        },
        tags=[source_tag(record.id)],
    )


def status_of(item: ItemLike) -> str | None:
    """Give the status of a row; None for one that is not of this layer."""
    status = item.metadata.get(STATUS)
    return status if isinstance(status, str) else None


def scope_of(item: ItemLike) -> Scope | None:
    """Give the owner of a row; None when it has none."""
    values = item.metadata
    if not isinstance(values.get(AGENT), str):
        return None
    try:
        return Scope.model_validate(
            {
                "tenant": values.get(TENANT),
                "principal": values.get(PRINCIPAL),
                "agent": values.get(AGENT),
                "session": values.get(SESSION),
            }
        )
    except ValidationError:
        return None


def to_record(item: ItemLike, *, now: float) -> MemoryRecord | None:
    """Read a row.

    Args:
        item: The row.
        now: Seconds since 1970 in UTC; a record past its expiry has the status `expired`.

    Returns:
        The record, or None for a row that is no record or is not attributed.
    """
    scope, status = scope_of(item), status_of(item)
    rest = item.metadata.get("authority")
    if scope is None or status not in {"active", "superseded"} or not isinstance(rest, dict):
        return None
    fields = cast("dict[str, Any]", rest)
    if fields.get("schema") != SCHEMA:
        return None
    try:
        record = MemoryRecord.model_validate(
            {
                "id": item.id,
                "revision": fields["revision"],
                "text": item.content,
                "kind": item.metadata.get(KIND),
                "scope": scope,
                "provenance": fields["provenance"],
                "subject": fields["subject"],
                "tags": item.tags,
                "status": status,
                "superseded_by": fields["superseded_by"],
                "expires_at": fields["expires_at"],
                "created_at": item.created_at,
            }
        )
    except (KeyError, ValidationError):
        return None
    return record.model_copy(update={"status": "expired"}) if _is_past(record, now) else record


def to_origin(item: ItemLike) -> Provenance | None:
    """Read a row that `to_source` made; None for any other."""
    rest = item.metadata.get("authority")
    if status_of(item) != "source" or not isinstance(rest, dict):
        return None
    try:
        return Provenance.model_validate(cast("dict[str, Any]", rest).get("provenance"))
    except ValidationError:
        return None


def _is_past(record: MemoryRecord, now: float) -> bool:
    return record.status == "active" and record.expires_at is not None and record.expires_at <= now
