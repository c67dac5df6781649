"""What every store decides in the same way, from rows that it has read."""

import hashlib
import json
import math
from collections.abc import Sequence
from uuid import UUID, uuid4

from .errors import SessionConflict, SessionNotFound
from .rows import EncodedTurn, SessionRow, TrimRow, TurnRow
from .scope import REFUSED, Scope, SessionMode
from .transcript import TrimReason

MAX_KEY_BYTES = 512
"""How long an external key may be, in UTF-8 bytes: it is part of an index entry."""


def not_found() -> SessionNotFound:
    """Give the one answer for a session that is not there and for one of another scope."""
    return SessionNotFound("no such session in this scope")


def covers(scope: Scope, session_id: UUID) -> bool:
    """Whether a scope that is bound to a session is bound to this one."""
    return scope.session is None or scope.session == session_id


def owner_digest(scope: Scope) -> str:
    """Name an owner in a tombstone without keeping who it was."""
    parts = json.dumps([scope.tenant, scope.principal, scope.agent])
    return hashlib.sha256(parts.encode()).hexdigest()


def check_key(key: str | None) -> str | None:
    """Refuse an external key that no index takes.

    Raises:
        ValueError: It is empty, too long, or has control characters or lone surrogates.
    """
    if key is None:
        return None
    if not key or REFUSED.search(key) or len(key.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"external_key has 1 to {MAX_KEY_BYTES} bytes and no control characters")
    return key


def check_limit(name: str, value: int | None) -> None:
    """Refuse a count that is no int, or negative.

    Raises:
        ValueError: It is.
    """
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"{name} is an int that is not negative")


def check_time(name: str, value: float | None) -> None:
    """Refuse a time that is no finite number.

    Raises:
        ValueError: It is.
    """
    if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
        raise ValueError(f"{name} is a finite number of seconds")


def check_existing(
    found: Sequence[SessionRow], mode: SessionMode, session_id: UUID | None, external_key: str | None
) -> SessionRow:
    """Resume a session that is there already, if it is the one that is meant.

    Args:
        found: The owner's sessions with that id or key.
        mode: What the caller takes it for.
        session_id: The id that was asked for.
        external_key: The key that was asked for.

    Raises:
        SessionConflict: It is another one, has another mode, or is closed.
    """
    row = found[0]
    if (
        len(found) > 1
        or session_id not in {None, row.session_id}
        or external_key not in {None, row.external_key}
    ):
        raise SessionConflict("the id or the external key belongs to another session of this scope")
    if row.mode != mode.value:
        raise SessionConflict("the mode of a session never changes")
    if row.state != "open":
        raise SessionConflict("a closed session cannot be resumed")
    return row


def created(
    scope: Scope, session_id: UUID, external_key: str | None, mode: SessionMode, now: float
) -> SessionRow:
    """Give a new session, of a new incarnation."""
    return SessionRow(
        incarnation=uuid4(),
        session_id=session_id,
        tenant=scope.tenant,
        principal=scope.principal,
        agent=scope.agent,
        external_key=external_key,
        mode=mode.value,
        state="open",
        version=0,
        next_turn=0,
        first_visible_turn=0,
        leading_system=0,
        leading_tokens=0,
        trims=0,
        created_at=now,
        last_activity=now,
    )


def is_repeated(
    row: SessionRow,
    stored_digest: str | None,
    encoded: EncodedTurn,
    expected_version: int | None,
    incarnation: UUID | None,
) -> bool:
    """Whether this turn is stored already; if not, whether it may be appended.

    Args:
        row: The session, locked.
        stored_digest: The digest of the turn with this id, empty if it was erased; None: there is none.
        encoded: What shall be appended.
        expected_version: The version that the caller has seen.
        incarnation: The incarnation that the caller means.

    Raises:
        SessionConflict: It may not.
    """
    if incarnation not in {None, row.incarnation}:
        raise SessionConflict("the session was deleted and created anew")
    if stored_digest is not None:
        if stored_digest == encoded.digest:
            return True
        if not stored_digest:
            raise SessionConflict("the turn was erased")
        raise SessionConflict("another turn has this turn_id")
    if row.state != "open":
        raise SessionConflict("the session is closed")
    if expected_version not in {None, row.version}:
        raise SessionConflict(f"the session is at version {row.version}, not {expected_version}")
    return False


def appended(row: SessionRow, encoded: EncodedTurn, now: float) -> tuple[SessionRow, TurnRow]:
    """Give the session after an append, and the turn's row. Time never runs backwards in a session."""
    leading = encoded.leading if row.next_turn == 0 else 0
    when = max(now, row.last_activity)
    turn = TurnRow(
        turn_no=row.next_turn,
        turn_id=encoded.turn.turn_id,
        origin=encoded.turn.origin.value,
        status=encoded.turn.status,
        digest=encoded.digest,
        messages=len(encoded.messages),
        tokens=sum(encoded.tokens[leading:]),
        created_at=when,
    )
    session = row._replace(
        version=row.version + 1,
        next_turn=row.next_turn + 1,
        leading_system=row.leading_system or leading,
        leading_tokens=row.leading_tokens or sum(encoded.tokens[:leading]),
        last_activity=when,
    )
    return session, turn


def hidden(row: SessionRow, turns: int, messages: int, reason: TrimReason, *, erased: bool) -> TrimRow:
    """Give the record of a trim that hides so many of the oldest turns in view."""
    stop = row.first_visible_turn + turns
    return TrimRow(row.first_visible_turn, stop, messages, row.next_turn - stop, reason, erased)
