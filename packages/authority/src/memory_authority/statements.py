"""The statements. Each one that reads, changes or deletes names the owner; inserts follow a locked read."""

from sqlalchemy import bindparam, delete, exists, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from .rows import CallRow, MessageRow, SessionRow, TrimRow, TurnRow
from .schema import call, message, session, tombstone, trim, turn

_OWNER = (
    session.c.tenant == bindparam("my_tenant"),
    session.c.principal == bindparam("my_principal"),
    session.c.agent == bindparam("my_agent"),
)
_MINE = (session.c.session_id == bindparam("my_session"), *_OWNER)
OWNED = select(session.c.incarnation).where(*_MINE).scalar_subquery()
"""The incarnation of the session, if it is the owner's."""

_SESSION = [session.c[name] for name in SessionRow._fields]
_TURN = [turn.c[name] for name in TurnRow._fields]
_MESSAGE = [message.c[name] for name in MessageRow._fields]
_CALL = [call.c[name] for name in CallRow._fields]
_TRIM = [trim.c[name] for name in TrimRow._fields]

MUTABLE = (
    *("state", "version", "next_turn", "first_visible_turn", "leading_system"),
    *("leading_tokens", "trims", "last_activity", "closed_at"),
)
"""What changes in a session; its owner, mode and keys never do."""

# sessions

GET = select(*_SESSION).where(*_MINE)
LOCK = GET.with_for_update()
EXISTING = select(*_SESSION).where(
    *_OWNER,
    or_(session.c.session_id == bindparam("my_session"), session.c.external_key == bindparam("my_key")),
)
LIST = (
    select(*_SESSION)
    .where(*_OWNER, session.c.last_activity < bindparam("before"))
    .order_by(session.c.last_activity.desc(), session.c.session_id)
    .limit(bindparam("limit"))
)
LIST_OPEN = LIST.where(session.c.state == "open")
LIST_ONE = LIST.where(session.c.session_id == bindparam("my_session"))
LIST_OPEN_ONE = LIST_OPEN.where(session.c.session_id == bindparam("my_session"))
STARTED_BEFORE = select(*_SESSION).where(*_OWNER, session.c.created_at < bindparam("before"))
STARTED_BEFORE_ONE = STARTED_BEFORE.where(session.c.session_id == bindparam("my_session"))
CREATE = {
    "sqlite": sqlite.insert(session).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(session).on_conflict_do_nothing(),
}
UPDATE = update(session).where(*_MINE).values({name: bindparam(f"new_{name}") for name in MUTABLE})
DELETE = delete(session).where(*_MINE).returning(session.c.incarnation)
DELETE_INCARNATION = (
    delete(session)
    .where(*_MINE, session.c.incarnation == bindparam("my_incarnation"))
    .returning(session.c.incarnation)
)
BURY = insert(tombstone)
IS_BURIED = select(
    exists().where(
        tombstone.c.session_id == bindparam("my_session"),
        tombstone.c.incarnation == bindparam("my_incarnation"),
        tombstone.c.owner == bindparam("my_owner"),
    )
)

# turns; both bounds stand there so that Postgres expects a few rows, and takes the index

DIGEST = select(turn.c.digest).where(turn.c.incarnation == OWNED, turn.c.turn_id == bindparam("turn_id"))
ADD_TURN = insert(turn)
TURNS = (
    select(*_TURN)
    .where(
        turn.c.incarnation == OWNED,
        turn.c.turn_no >= bindparam("first"),
        turn.c.turn_no < bindparam("stop"),
    )
    .order_by(turn.c.turn_no)
)
SIZES = (
    select(turn.c.turn_no, turn.c.messages, turn.c.tokens)
    .where(
        turn.c.incarnation == OWNED,
        turn.c.turn_no >= bindparam("first"),
        turn.c.turn_no < bindparam("stop"),
    )
    .order_by(turn.c.turn_no)
)
OLDER = (
    select(turn.c.turn_no, turn.c.messages, turn.c.tokens)
    .where(turn.c.incarnation == OWNED, turn.c.created_at < bindparam("before"), turn.c.digest != "")
    .order_by(turn.c.turn_no)
)

# messages and calls

ADD_MESSAGES = insert(message)
ADD_CALLS = insert(call)
MESSAGES = (
    select(*_MESSAGE)
    .where(
        message.c.incarnation == OWNED,
        message.c.turn_no >= bindparam("first"),
        message.c.turn_no < bindparam("stop"),
    )
    .order_by(message.c.turn_no, message.c.pos)
)
LEADING = (
    select(*_MESSAGE)
    .where(message.c.incarnation == OWNED, message.c.turn_no == 0, message.c.pos < bindparam("stop"))
    .order_by(message.c.pos)
)
CALLS = select(*_CALL).where(
    call.c.incarnation == OWNED,
    call.c.turn_no >= bindparam("first"),
    call.c.turn_no < bindparam("stop"),
)

# trims

ADD_TRIM = insert(trim)
TRIMS = select(*_TRIM).where(trim.c.incarnation == OWNED).order_by(trim.c.trim_no)
ERASE_MESSAGES = delete(message).where(
    message.c.incarnation == OWNED,
    message.c.turn_no < bindparam("stop"),
    or_(message.c.turn_no > 0, message.c.pos >= bindparam("leading")),
)
ERASE_DIGESTS = (
    update(turn)
    .where(turn.c.incarnation == OWNED, turn.c.turn_no < bindparam("stop"), turn.c.digest != "")
    .values(digest="")
)
MARK_ERASED = (
    update(trim).where(trim.c.incarnation == OWNED, trim.c.to_turn <= bindparam("stop")).values(erased=True)
)
