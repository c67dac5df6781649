"""Sessions in memory, for tests: the same rows and rules as on a database."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from adapter_core import MemoryAdapterUnavailable

from .errors import SessionConflict
from .rows import CallRow, MessageRow, SessionRow, TrimRow, TurnRow, encode_turn
from .rules import (
    appended,
    check_existing,
    check_key,
    check_limit,
    check_time,
    covers,
    created,
    hidden,
    is_repeated,
    not_found,
    owner_digest,
)
from .scope import Scope, SessionMode
from .sessions import ExpiryReport, SessionList
from .transcript import SessionInfo, Transcript, TrimReport, Turn
from .trimming import Limits, Size, cut, sizes_of
from .views import first_loaded, transcript, trim_report

Key = tuple[str, str, str, UUID]
Uuids = list[UUID]


@dataclass(frozen=True)
class Stored:
    """All rows of one session. A change makes another one, which takes its place as a whole."""

    row: SessionRow
    turns: tuple[TurnRow, ...] = ()
    messages: tuple[MessageRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    trims: tuple[TrimRow, ...] = ()


@dataclass
class MemoryTables:
    """What a database would hold; several stores may share it, as after a restart.

    Attributes:
        sessions: By owner and id.
        tombstones: Id, incarnation and owner of deleted sessions.
    """

    sessions: dict[Key, Stored] = field(default_factory=dict[Key, Stored])
    tombstones: set[tuple[UUID, UUID, str]] = field(default_factory=set[tuple[UUID, UUID, str]])


class InMemorySessionStore:
    """Sessions that end with the process. For tests; every rule of `SessionStore` holds.

    Args:
        tables: What it works on; tables of its own by default.
        clock: Gives the seconds since 1970 in UTC.
    """

    def __init__(self, tables: MemoryTables | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._tables = MemoryTables() if tables is None else tables
        self._clock = clock
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self) -> None:
        """See that the store is usable, as on a database."""
        self._step()

    async def migrate(self) -> None:
        """Do nothing: there are no tables to make."""
        self._step()

    async def aclose(self) -> None:
        """End the use of this store. Idempotent."""
        self._closed = True

    async def create(
        self,
        scope: Scope,
        mode: SessionMode,
        *,
        session_id: UUID | None = None,
        external_key: str | None = None,
    ) -> SessionInfo:
        """Create or resume a session; see `SessionStore`."""
        self._step()
        key = check_key(external_key)
        wanted = session_id or scope.session or uuid4()
        if not covers(scope, wanted):
            raise not_found()
        found = [
            one.row
            for one in self._of(scope)
            if one.row.session_id == wanted or (key is not None and one.row.external_key == key)
        ]
        if found:
            return check_existing(found, SessionMode(mode), session_id or scope.session, key).info
        row = created(scope, wanted, key, SessionMode(mode), self._clock())
        self._put(Stored(row))
        return row.info

    async def get(self, scope: Scope, session_id: UUID) -> SessionInfo | None:
        """Give the session, or None; see `SessionStore`."""
        found = self._find(scope, session_id)
        return None if found is None else found.row.info

    async def list(
        self, scope: Scope, *, limit: int = 50, before: float | None = None, include_closed: bool = False
    ) -> SessionList:
        """Give sessions, the most recently active first; see `SessionStore`."""
        self._step()
        check_limit("limit", limit)
        check_time("before", before)
        rows = [
            one.row
            for one in self._of(scope)
            if covers(scope, one.row.session_id)
            and (include_closed or one.row.state == "open")
            and (before is None or one.row.last_activity < before)
        ]
        rows.sort(key=lambda row: (-row.last_activity, row.session_id))
        return [row.info for row in rows[:limit]]

    async def append(
        self,
        scope: Scope,
        session_id: UUID,
        turn: Turn,
        *,
        expected_version: int | None = None,
        incarnation: UUID | None = None,
    ) -> SessionInfo:
        """Append a turn, whole or not at all; see `SessionStore`."""
        encoded = encode_turn(turn)
        found = self._find(scope, session_id)
        if found is None:
            if covers(scope, session_id) and incarnation is not None:
                self._refuse_buried(scope, session_id, incarnation)
            raise not_found()
        stored = next((one.digest for one in found.turns if one.turn_id == turn.turn_id), None)
        if is_repeated(found.row, stored, encoded, expected_version, incarnation):
            return found.row.info
        row, added = appended(found.row, encoded, self._clock())
        after = replace(found, turns=(*found.turns, added))
        self._step()
        messages = (one._replace(turn_no=added.turn_no) for one in encoded.messages)
        after = replace(after, messages=(*found.messages, *messages))
        self._step()
        calls = (one._replace(turn_no=added.turn_no) for one in encoded.calls)
        after = replace(after, calls=(*found.calls, *calls))
        self._step()
        self._put(replace(after, row=row))
        return row.info

    async def load(self, scope: Scope, session_id: UUID, *, last_turns: int | None = None) -> Transcript:
        """Give the transcript as it goes to the model; see `SessionStore`."""
        check_limit("last_turns", last_turns)
        found = self._existing(scope, session_id)
        first = first_loaded(found.row, last_turns)
        leading = [one for one in found.messages if one.turn_no == 0 and one.pos < found.row.leading_system]
        return transcript(
            found.row,
            first,
            found.turns[first:],
            [one for one in found.messages if one.turn_no >= first],
            [one for one in found.calls if one.turn_no >= first],
            leading if first > 0 else (),
            found.trims,
        )

    async def trim(
        self,
        scope: Scope,
        session_id: UUID,
        *,
        keep_turns: int | None = None,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        erase: bool = False,
        dry_run: bool = False,
    ) -> TrimReport:
        """Hide the oldest whole turns; see `SessionStore`."""
        limits = Limits(keep_turns, max_messages, max_tokens)
        found = self._existing(scope, session_id)
        row = found.row
        sizes = _sizes(row, found.turns[row.first_visible_turn :])
        decided = cut(sizes, Size(row.leading_system, row.leading_tokens), limits)
        dropped = sum(size.messages for size in sizes[: decided.turns])
        record = hidden(row, decided.turns, dropped, decided.reason, erased=erase)
        if not dry_run:
            self._hide(found, record)
        return trim_report(record)

    async def close(self, scope: Scope, session_id: UUID) -> bool:
        """Close the session; see `SessionStore`. The store itself is closed by `aclose`."""
        found = self._existing(scope, session_id)
        if found.row.state == "closed":
            return False
        row = found.row._replace(state="closed", version=found.row.version + 1, closed_at=self._clock())
        self._put(replace(found, row=row))
        return True

    async def delete(self, scope: Scope, session_id: UUID, *, incarnation: UUID | None = None) -> bool:
        """Delete the session; see `SessionStore`."""
        found = self._find(scope, session_id)
        if found is None or incarnation not in {None, found.row.incarnation}:
            return False
        self._step()
        del self._tables.sessions[_key(found.row)]
        self._tables.tombstones.add((session_id, found.row.incarnation, owner_digest(scope)))
        return True

    async def expire(self, scope: Scope, *, before: float, dry_run: bool = True) -> ExpiryReport:
        """Remove what is older than a time; see `SessionStore`."""
        check_time("before", before)
        gone: Uuids = []
        turns = 0
        for found in sorted(self._of(scope), key=lambda one: one.row.session_id):
            row = found.row
            if not covers(scope, row.session_id):
                continue
            if row.last_activity < before:
                gone.append(row.session_id)
                if not dry_run:
                    await self.delete(scope, row.session_id, incarnation=row.incarnation)
                continue
            older = [one for one in found.turns if one.created_at < before]
            turns += sum(1 for one in older if one.digest)
            if not dry_run:
                visible = [one for one in older if one.turn_no >= row.first_visible_turn]
                dropped = sum(size.messages for size in _sizes(row, visible))
                record = hidden(row, len(visible), dropped, "retention", erased=True)
                self._hide(found, record, stop=len(older))
        return ExpiryReport(before=before, sessions=tuple(gone), turns=turns, dry_run=dry_run)

    # Rows

    def _step(self) -> None:
        """Stand where a database would run a statement; a test can fail here."""
        if self._closed:
            raise MemoryAdapterUnavailable("the session store is closed")

    def _of(self, scope: Scope) -> Sequence[Stored]:
        owner = (scope.tenant, scope.principal, scope.agent)
        return [one for key, one in self._tables.sessions.items() if key[:3] == owner]

    def _find(self, scope: Scope, session_id: UUID) -> Stored | None:
        self._step()
        if not covers(scope, session_id):
            return None
        return self._tables.sessions.get((scope.tenant, scope.principal, scope.agent, session_id))

    def _existing(self, scope: Scope, session_id: UUID) -> Stored:
        found = self._find(scope, session_id)
        if found is None:
            raise not_found()
        return found

    def _refuse_buried(self, scope: Scope, session_id: UUID, incarnation: UUID) -> None:
        if (session_id, incarnation, owner_digest(scope)) in self._tables.tombstones:
            raise SessionConflict("the session was deleted")

    def _put(self, after: Stored) -> None:
        self._step()
        self._tables.sessions[_key(after.row)] = after

    def _hide(self, found: Stored, record: TrimRow, *, stop: int | None = None) -> None:
        row = found.row
        bound = record.to_turn if stop is None else stop
        erasing = record.erased and any(one.digest for one in found.turns[:bound])
        after = found
        if record.to_turn > record.from_turn:
            row = row._replace(first_visible_turn=record.to_turn, trims=row.trims + 1)
            after = replace(after, trims=(*after.trims, record))
        if erasing:
            after = _erased(after, bound)
        if after is not found:
            self._put(replace(after, row=row._replace(version=row.version + 1)))


def _key(row: SessionRow) -> Key:
    return (row.tenant, row.principal, row.agent, row.session_id)


def _sizes(row: SessionRow, turns: tuple[TurnRow, ...] | list[TurnRow]) -> list[Size]:
    return sizes_of(row, [(one.turn_no, one.messages, one.tokens) for one in turns])


def _erased(found: Stored, stop: int) -> Stored:
    """Give the session without what the turns before one hold; their rows stay."""
    leading = found.row.leading_system
    return replace(
        found,
        turns=tuple(one._replace(digest="") if one.turn_no < stop else one for one in found.turns),
        messages=tuple(
            one for one in found.messages if one.turn_no >= stop or (one.turn_no == 0 and one.pos < leading)
        ),
        calls=tuple(one for one in found.calls if one.turn_no >= stop),
        trims=tuple(one._replace(erased=True) if one.to_turn <= stop else one for one in found.trims),
    )
