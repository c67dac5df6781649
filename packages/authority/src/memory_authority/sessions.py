"""The session store as a protocol, and the facade over one session that a runtime holds."""

from typing import Protocol, runtime_checkable
from uuid import UUID

from .errors import SessionConflict
from .rules import not_found
from .scope import Frozen, Scope, SessionMode
from .transcript import SessionInfo, Transcript, TrimReport, Turn

SessionList = list[SessionInfo]
"""What `SessionStore.list` gives; inside the class, `list` is the method."""


class ExpiryReport(Frozen):
    """What an expiry removed, or would remove.

    Attributes:
        before: Seconds since 1970 in UTC; what is older is expired.
        sessions: Sessions whose last activity is older; deleted as a whole.
        turns: Older turns of the other sessions; erased.
        dry_run: True: nothing was removed.
    """

    before: float
    sessions: tuple[UUID, ...]
    turns: int
    dry_run: bool


@runtime_checkable
class SessionStore(Protocol):
    """The one owner of conversation history. It is no memory store.

    Every operation carries a scope, and every query names the owner in it: agent, tenant and
    principal exactly, and the session too where the scope is bound to one. A session of another
    scope gives the same answer as one that does not exist.

    Every operation may raise `MemoryAdapterUnavailable` when the database could not be asked, and
    `AuthorityError` when it refused; then nothing was changed. A failed write whose
    `outcome_unknown` is true may have been done: append the same turn again to find out.
    """

    async def create(
        self,
        scope: Scope,
        mode: SessionMode,
        *,
        session_id: UUID | None = None,
        external_key: str | None = None,
    ) -> SessionInfo:
        """Create a session, or give the open one of this scope that has the id or external key.

        Args:
            scope: The owner. A scope that is bound to a session gives its id.
            mode: The surface; it never changes.
            session_id: Its id; a new one by default.
            external_key: The host's own name for it, such as a channel's thread.

        Raises:
            SessionConflict: It is there with another mode, id or key, or it is closed.
        """
        ...

    async def get(self, scope: Scope, session_id: UUID) -> SessionInfo | None:
        """Give the session, or None when this scope has none."""
        ...

    async def list(
        self, scope: Scope, *, limit: int = 50, before: float | None = None, include_closed: bool = False
    ) -> SessionList:
        """Give the sessions of the scope, the most recently active first, then by id.

        Args:
            scope: The owner.
            limit: The most sessions to give.
            before: Only those whose last activity is earlier, in seconds since 1970.
            include_closed: Closed ones too.
        """
        ...

    async def append(
        self,
        scope: Scope,
        session_id: UUID,
        turn: Turn,
        *,
        expected_version: int | None = None,
        incarnation: UUID | None = None,
    ) -> SessionInfo:
        """Append a turn, whole or not at all. The same turn again changes nothing.

        Args:
            scope: The owner.
            session_id: The session.
            turn: What is appended.
            expected_version: Refuse when the session is at another version.
            incarnation: Refuse when the session was deleted since, or created anew.

        Raises:
            SessionNotFound: This scope has no such session.
            SessionConflict: Version or incarnation differ, the session is closed, or another turn has
                this `turn_id`.
            UnpairedToolResult: A result does not answer a call of the message that it stands after.
            UnrepresentableItem: A content would not come back equal.
        """
        ...

    async def load(self, scope: Scope, session_id: UUID, *, last_turns: int | None = None) -> Transcript:
        """Give the transcript as it goes to the model: valid, with every repair listed.

        Args:
            scope: The owner.
            session_id: The session, open or closed.
            last_turns: Only so many of the newest turns, and the leading system messages.

        Raises:
            SessionNotFound: This scope has no such session.
            UnreadableTranscript: Stored rows do not decode, or are missing.
        """
        ...

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
        """Hide the oldest whole turns. The newest is kept whatever its size.

        The system messages that the first turn begins with stay in view and count. Of several limits
        the strictest decides. Tokens are estimated: 4 characters each, and 4 per message.

        Args:
            scope: The owner.
            session_id: The session.
            keep_turns: Keep so many of the newest turns.
            max_messages: Keep no more messages than this.
            max_tokens: Keep no more estimated tokens than this; at least 1.
            erase: Delete what hidden turns hold, also those hidden earlier.
            dry_run: Report only.

        Raises:
            SessionNotFound: This scope has no such session.
            ValueError: No limit is given, or one is out of range.
        """
        ...

    async def close(self, scope: Scope, session_id: UUID) -> bool:
        """Close the session for good; False when it was closed already.

        Raises:
            SessionNotFound: This scope has no such session.
        """
        ...

    async def delete(self, scope: Scope, session_id: UUID, *, incarnation: UUID | None = None) -> bool:
        """Delete the session with all its rows; False when this scope has none (of that incarnation).

        A tombstone stays: the id, the incarnation, the time, and a digest of the owner.
        """
        ...

    async def expire(self, scope: Scope, *, before: float, dry_run: bool = True) -> ExpiryReport:
        """Remove what is older than a time. Nothing else ever expires a transcript.

        Sessions without activity since are deleted. In the others, older turns are erased; the
        system messages that a session begins with stay. Each session is one transaction.

        Args:
            scope: The owner.
            before: Seconds since 1970 in UTC.
            dry_run: Report only; the default.
        """
        ...


class ConversationHistory:
    """One session as a runtime holds it: bound to a scope, and to the incarnation that it resumed.

    Not for several tasks that resume at once; appends of several tasks wait for each other.

    Args:
        store: Where the transcript lives.
        scope: Who asks.
        session_id: The session; it must be there.
    """

    def __init__(self, store: SessionStore, scope: Scope, session_id: UUID) -> None:
        self._store = store
        self._scope = scope
        self._session_id = session_id
        self._incarnation: UUID | None = None

    @property
    def scope(self) -> Scope:
        """Who asks."""
        return self._scope

    @property
    def session_id(self) -> UUID:
        """The session."""
        return self._session_id

    async def resume(self) -> Transcript:
        """Load the transcript, and bind later appends to this incarnation of the session.

        Raises:
            SessionNotFound: This scope has no such session.
            SessionConflict: It is closed. `read` still gives what it holds.
        """
        found = await self.read()
        if found.session.state != "open":
            raise SessionConflict("a closed session cannot be resumed")
        self._incarnation = found.session.incarnation
        return found

    async def read(self, *, last_turns: int | None = None) -> Transcript:
        """Load the transcript, of a closed session too."""
        return await self._store.load(self._scope, self._session_id, last_turns=last_turns)

    async def info(self) -> SessionInfo:
        """Give the session as it is now.

        Raises:
            SessionNotFound: This scope has no such session.
        """
        found = await self._store.get(self._scope, self._session_id)
        if found is None:
            raise not_found()
        return found

    async def append_turn(self, turn: Turn) -> SessionInfo:
        """Append a turn to the incarnation that was resumed, or that the first append met.

        Raises:
            SessionConflict: The session was deleted since, is closed, or has another such turn.
        """
        if self._incarnation is None:
            self._incarnation = (await self.info()).incarnation
        return await self._store.append(self._scope, self._session_id, turn, incarnation=self._incarnation)

    async def trim(
        self,
        *,
        keep_turns: int | None = None,
        max_messages: int | None = None,
        max_tokens: int | None = None,
    ) -> TrimReport:
        """Hide the oldest whole turns; see `SessionStore.trim`."""
        return await self._store.trim(
            self._scope,
            self._session_id,
            keep_turns=keep_turns,
            max_messages=max_messages,
            max_tokens=max_tokens,
        )

    async def delete(self) -> bool:
        """Delete the session, if it is still the one that was resumed."""
        return await self._store.delete(self._scope, self._session_id, incarnation=self._incarnation)
