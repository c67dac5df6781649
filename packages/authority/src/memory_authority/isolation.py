"""What a session's mode and a turn's origin allow: the one place that decides it.

Every decision is an exhaustive match, so a new mode or origin fails the type check, and its test,
until somebody has classified it.
"""

from enum import StrEnum
from typing import assert_never

from .errors import WriteRejected
from .records import MemoryRecord, Provenance
from .scope import SessionMode, TurnOrigin

_DELIBERATE = frozenset({"user", "agent", "operator", "promotion"})


class Injection(StrEnum):
    """How much curated memory a turn may see."""

    ALL = "all"
    NOT_FROM_CONVERSATIONS = "not_from_conversations"
    NONE = "none"


def is_isolated(mode: SessionMode) -> bool:
    """Whether a session of this mode is kept apart from curated memory.

    ACP and code sessions are: nothing is recalled into them and nothing is consolidated out of
    them (ADR-010). The mode is the stored one, which never changes; no flag of a caller opens it.
    """
    match mode:
        case SessionMode.ACP | SessionMode.CODE:
            return True
        case SessionMode.CHAT | SessionMode.CHANNEL | SessionMode.GATEWAY:
            return False
        case _:
            assert_never(mode)


def injection(mode: SessionMode, origin: TurnOrigin) -> Injection:
    """Say what a turn of this origin may see in a session of this mode.

    A sub-turn gets nothing, since its parent was given it. A scheduled turn gets nothing that was
    derived from a conversation, since nobody is there to notice that it is stale.
    """
    if is_isolated(mode):
        return Injection.NONE
    match origin:
        case TurnOrigin.INTERACTIVE | TurnOrigin.CHANNEL | TurnOrigin.AGENT_DIRECT:
            return Injection.ALL
        case TurnOrigin.CRON | TurnOrigin.DAEMON:
            return Injection.NOT_FROM_CONVERSATIONS
        case TurnOrigin.SUB_TURN | TurnOrigin.MIGRATION:
            return Injection.NONE
        case _:
            assert_never(origin)


def is_from_conversation(record: MemoryRecord) -> bool:
    """Whether a record was derived from a conversation."""
    source = record.provenance
    return source.session is not None or bool(source.turn_ids) or source.actor == "consolidation"


def check_derivation(mode: SessionMode, provenance: Provenance) -> None:
    """Refuse a record that a policy derived from an isolated session.

    Raises:
        WriteRejected: The session is isolated and no actor named the turns. Promotion by one who
            does is the only way out of such a session.
    """
    if not is_isolated(mode):
        return
    named = provenance.session is not None and bool(provenance.turn_ids) and bool(provenance.actor_id)
    if provenance.actor not in _DELIBERATE or not named or provenance.policy is not None:
        raise WriteRejected(
            f"a session of mode {mode.value} is isolated: only an explicit actor who names its turns can"
            " promote something from it"
        )
