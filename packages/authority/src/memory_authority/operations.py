"""The operations of a session store on one connection, inside one transaction of its caller."""

import math
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Select

from . import statements as sql
from .errors import SessionConflict
from .rows import CallRow, EncodedTurn, MessageRow, SessionRow, TrimRow, TurnRow
from .rules import appended, check_existing, covers, created, hidden, is_repeated, not_found, owner_digest
from .scope import Scope, SessionMode
from .transcript import SessionInfo, Transcript, TrimReport
from .trimming import Limits, Size, cut, sizes_of
from .views import first_loaded, transcript, trim_report

_LONGEST_LIST = 2**63 - 1  # what the databases take


def create(
    connection: Connection,
    scope: Scope,
    mode: SessionMode,
    session_id: UUID | None,
    external_key: str | None,
    now: float,
) -> SessionInfo:
    """Create a session, or resume the one that is there."""
    wanted = session_id or scope.session or uuid4()
    if not covers(scope, wanted):
        raise not_found()
    row = created(scope, wanted, external_key, mode, now)
    made = connection.execute(sql.CREATE[connection.dialect.name], row._asdict())
    if made.rowcount == 1:
        return row.info
    given = _mine(scope, wanted) | {"my_key": external_key}
    found = [SessionRow(*values) for values in connection.execute(sql.EXISTING, given)]
    if not found:
        raise SessionConflict("the session was deleted meanwhile")
    return check_existing(found, mode, session_id or scope.session, external_key).info


def get(connection: Connection, scope: Scope, session_id: UUID) -> SessionInfo | None:
    """Give a session."""
    row = _read(connection, sql.GET, scope, session_id)
    return None if row is None else row.info


def list_sessions(
    connection: Connection, scope: Scope, limit: int, before: float | None, *, include_closed: bool
) -> list[SessionInfo]:
    """Give sessions, the most recently active first."""
    given = _mine(scope, scope.session) | {
        "limit": min(limit, _LONGEST_LIST),
        "before": math.inf if before is None else before,
    }
    if scope.session is None:
        statement = sql.LIST if include_closed else sql.LIST_OPEN
    else:
        statement = sql.LIST_ONE if include_closed else sql.LIST_OPEN_ONE
    return [SessionRow(*values).info for values in connection.execute(statement, given)]


def append(
    connection: Connection,
    scope: Scope,
    session_id: UUID,
    encoded: EncodedTurn,
    expected_version: int | None,
    incarnation: UUID | None,
    now: float,
) -> SessionInfo:
    """Append a turn; nothing of it is there until the caller commits."""
    mine = _mine(scope, session_id)
    row = _read(connection, sql.LOCK, scope, session_id)
    if row is None:
        _refuse_buried(connection, scope, session_id, incarnation)
        raise not_found()
    stored = connection.execute(sql.DIGEST, mine | {"turn_id": encoded.turn.turn_id}).scalar_one_or_none()
    if is_repeated(row, stored, encoded, expected_version, incarnation):
        return row.info
    after, turn = appended(row, encoded, now)
    of_turn = {"incarnation": row.incarnation, "turn_no": turn.turn_no}
    connection.execute(sql.ADD_TURN, turn._asdict() | of_turn)
    connection.execute(sql.ADD_MESSAGES, [message._asdict() | of_turn for message in encoded.messages])
    if encoded.calls:
        connection.execute(sql.ADD_CALLS, [call._asdict() | of_turn for call in encoded.calls])
    _update(connection, mine, after)
    return after.info


def load(connection: Connection, scope: Scope, session_id: UUID, last_turns: int | None) -> Transcript:
    """Read a transcript, from the end."""
    row = _read(connection, sql.GET, scope, session_id)
    if row is None:
        raise not_found()
    mine = _mine(scope, session_id)
    first = first_loaded(row, last_turns)
    part = mine | {"first": first, "stop": row.next_turn}
    turns: Sequence[TurnRow] = ()
    messages: Sequence[MessageRow] = ()
    calls: Sequence[CallRow] = ()
    leading: Sequence[MessageRow] = ()
    trims: Sequence[TrimRow] = ()
    if first < row.next_turn:
        turns = [TurnRow(*values) for values in connection.execute(sql.TURNS, part)]
        messages = [MessageRow(*values) for values in connection.execute(sql.MESSAGES, part)]
        calls = [CallRow(*values) for values in connection.execute(sql.CALLS, part)]
    if first > 0 and row.leading_system:
        found = connection.execute(sql.LEADING, mine | {"stop": row.leading_system})
        leading = [MessageRow(*values) for values in found]
    if row.trims:
        trims = [TrimRow(*values) for values in connection.execute(sql.TRIMS, mine)]
    return transcript(row, first, turns, messages, calls, leading, trims)


def trim(
    connection: Connection,
    scope: Scope,
    session_id: UUID,
    limits: Limits,
    now: float,
    *,
    erase: bool,
    dry_run: bool,
) -> TrimReport:
    """Hide the oldest turns, and erase all hidden ones if that is asked for."""
    row = _read(connection, sql.GET if dry_run else sql.LOCK, scope, session_id)
    if row is None:
        raise not_found()
    part = _mine(scope, session_id) | {"first": row.first_visible_turn, "stop": row.next_turn}
    sizes = sizes_of(row, [(no, count, size) for no, count, size in connection.execute(sql.SIZES, part)])
    found = cut(sizes, Size(row.leading_system, row.leading_tokens), limits)
    dropped = sum(size.messages for size in sizes[: found.turns])
    record = hidden(row, found.turns, dropped, found.reason, erased=erase)
    if not dry_run:
        _hide(connection, scope, row, record, now)
    return trim_report(record)


def _hide(connection: Connection, scope: Scope, row: SessionRow, record: TrimRow, now: float) -> None:
    mine = _mine(scope, row.session_id)
    dropped = record.to_turn > record.from_turn
    erased = record.erased and _erase(connection, mine, row, record.to_turn)
    after = row._replace(version=row.version + 1)
    if dropped:
        numbered = {"incarnation": row.incarnation, "trim_no": row.trims, "created_at": now}
        connection.execute(sql.ADD_TRIM, record._asdict() | numbered)
        after = after._replace(first_visible_turn=record.to_turn, trims=row.trims + 1)
    if dropped or erased:
        _update(connection, mine, after)


def _erase(connection: Connection, mine: dict[str, Any], row: SessionRow, stop: int) -> bool:
    """Delete what the turns before one hold; their rows stay, so that none comes back."""
    bounds = mine | {"stop": stop, "leading": row.leading_system}
    connection.execute(sql.ERASE_MESSAGES, bounds)
    connection.execute(sql.MARK_ERASED, bounds)
    return connection.execute(sql.ERASE_DIGESTS, bounds).rowcount > 0


def close(connection: Connection, scope: Scope, session_id: UUID, now: float) -> bool:
    """Close a session."""
    row = _read(connection, sql.LOCK, scope, session_id)
    if row is None:
        raise not_found()
    if row.state == "closed":
        return False
    after = row._replace(state="closed", version=row.version + 1, closed_at=now)
    _update(connection, _mine(scope, session_id), after)
    return True


def delete(
    connection: Connection, scope: Scope, session_id: UUID, incarnation: UUID | None, now: float
) -> bool:
    """Delete a session; the owner is checked by the statement that deletes."""
    if not covers(scope, session_id):
        return False
    statement = sql.DELETE if incarnation is None else sql.DELETE_INCARNATION
    given = _mine(scope, session_id) | {"my_incarnation": incarnation}
    gone = connection.execute(statement, given).scalar_one_or_none()
    if gone is None:
        return False
    buried = {"session_id": session_id, "incarnation": gone, "owner": owner_digest(scope), "deleted_at": now}
    connection.execute(sql.BURY, buried)
    return True


def started_before(connection: Connection, scope: Scope, before: float) -> list[UUID]:
    """Give the sessions that may hold turns from before a time."""
    statement = sql.STARTED_BEFORE if scope.session is None else sql.STARTED_BEFORE_ONE
    found = connection.execute(statement, _mine(scope, scope.session) | {"before": before})
    return sorted(SessionRow(*values).session_id for values in found)


def expire(
    connection: Connection, scope: Scope, session_id: UUID, before: float, now: float, *, dry_run: bool
) -> tuple[bool, int]:
    """Expire one session: whether it goes as a whole, or else how many of its turns do."""
    row = _read(connection, sql.GET if dry_run else sql.LOCK, scope, session_id)
    if row is None:
        return False, 0
    if row.last_activity < before:
        if not dry_run:
            delete(connection, scope, session_id, row.incarnation, now)
        return True, 0
    mine = _mine(scope, session_id)
    older = [
        (no, count, size) for no, count, size in connection.execute(sql.OLDER, mine | {"before": before})
    ]
    if older and not dry_run:
        visible = [one for one in older if one[0] >= row.first_visible_turn]
        dropped = sum(size.messages for size in sizes_of(row, visible))
        if visible:
            record = hidden(row, len(visible), dropped, "retention", erased=True)
            _hide(connection, scope, row, record, now)
        elif _erase(connection, mine, row, older[-1][0] + 1):
            _update(connection, mine, row._replace(version=row.version + 1))
    return False, len(older)


def _mine(scope: Scope, session_id: UUID | None) -> dict[str, Any]:
    return {
        "my_session": session_id,
        "my_tenant": scope.tenant,
        "my_principal": scope.principal,
        "my_agent": scope.agent,
    }


def _read(
    connection: Connection, statement: Select[Any], scope: Scope, session_id: UUID
) -> SessionRow | None:
    if not covers(scope, session_id):
        return None
    values = connection.execute(statement, _mine(scope, session_id)).one_or_none()
    return None if values is None else SessionRow(*values)


def _refuse_buried(connection: Connection, scope: Scope, session_id: UUID, incarnation: UUID | None) -> None:
    if incarnation is None or not covers(scope, session_id):
        return
    given = {
        "my_session": session_id,
        "my_incarnation": incarnation,
        "my_owner": owner_digest(scope),
    }
    if connection.execute(sql.IS_BURIED, given).scalar_one():
        raise SessionConflict("the session was deleted")


def _update(connection: Connection, mine: dict[str, Any], after: SessionRow) -> None:
    values: dict[str, Any] = {f"new_{name}": getattr(after, name) for name in sql.MUTABLE}
    changed = connection.execute(sql.UPDATE, mine | values)
    if changed.rowcount != 1:
        raise SessionConflict("the session was deleted meanwhile")
