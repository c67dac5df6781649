"""The tables of conversation history: one schema for SQLite and Postgres, and its versions.

Every name begins with `authority_`, so that a database can hold other tables too.

- `authority_schema`: the version of the tables of each component.
- `authority_session`: one row for each session. Its key is the incarnation, not the id: a late write
  cannot meet a session that was deleted and created anew, and two owners may use one id.
- `authority_turn`: numbers without gaps. An erased turn keeps its row without a digest, so that a late
  retry cannot bring it back.
- `authority_message`, `authority_tool_call`: what was said. A result refers to its call by a foreign key
  and a call has at most one, so neither an orphan nor a second result can be stored.
- `authority_trim`: what left the loaded view, and why.
- `authority_session_tombstone`: that a session was deleted; nothing of it, and its owner as a digest.

Contents, arguments, reasoning, call ids and tool names are ASCII JSON text: Postgres takes no NUL in
a text, and lone surrogates are no UTF-8.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    bindparam,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from .errors import SchemaMismatch
from .scope import SessionMode, TurnOrigin

COMPONENT = "sessions"
"""What `authority_schema` calls these tables."""

metadata = MetaData()


def _one_of(column: str, values: Sequence[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _of_session() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["incarnation"], ["authority_session.incarnation"], ondelete="CASCADE")


versions = Table(
    "authority_schema",
    metadata,
    Column("component", String, primary_key=True),
    Column("version", Integer, nullable=False),
)

session = Table(
    "authority_session",
    metadata,
    Column("incarnation", Uuid, primary_key=True),
    Column("session_id", Uuid, nullable=False),
    Column("tenant", String, nullable=False),
    Column("principal", String, nullable=False),
    Column("agent", String, nullable=False),
    Column("external_key", String),
    Column("mode", String, nullable=False),
    Column("state", String, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("next_turn", BigInteger, nullable=False),
    Column("first_visible_turn", BigInteger, nullable=False),
    Column("leading_system", Integer, nullable=False),
    Column("leading_tokens", BigInteger, nullable=False),
    Column("trims", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("last_activity", Double, nullable=False),
    Column("closed_at", Double),
    UniqueConstraint("tenant", "principal", "agent", "session_id"),
    UniqueConstraint("tenant", "principal", "agent", "external_key"),
    _one_of("mode", [mode.value for mode in SessionMode]),
    _one_of("state", ["open", "closed"]),
)
Index(
    "authority_session_by_activity",
    session.c.tenant,
    session.c.principal,
    session.c.agent,
    session.c.last_activity.desc(),
)

turn = Table(
    "authority_turn",
    metadata,
    Column("incarnation", Uuid, nullable=False),
    Column("turn_no", BigInteger, nullable=False),
    Column("turn_id", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("status", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("incarnation", "turn_no"),
    UniqueConstraint("incarnation", "turn_id"),
    _of_session(),
    _one_of("origin", [origin.value for origin in TurnOrigin]),
    _one_of("status", ["complete", "failed", "cancelled"]),
    sqlite_with_rowid=False,
)

# use_alter: the two tables refer to each other; SQLite has it inline, Postgres adds it afterwards
message = Table(
    "authority_message",
    metadata,
    Column("incarnation", Uuid, nullable=False),
    Column("turn_no", BigInteger, nullable=False),
    Column("pos", Integer, nullable=False),
    Column("role", String, nullable=False),
    Column("content", Text, nullable=False),
    Column("reasoning", Text),
    Column("outcome", String),
    Column("call_message", Integer),
    Column("call_index", Integer),
    PrimaryKeyConstraint("incarnation", "turn_no", "pos"),
    ForeignKeyConstraint(
        ["incarnation", "turn_no"],
        ["authority_turn.incarnation", "authority_turn.turn_no"],
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(
        ["incarnation", "turn_no", "call_message", "call_index"],
        [f"authority_tool_call.{name}" for name in ("incarnation", "turn_no", "message_pos", "call_index")],
        name="authority_result_of_call",
        ondelete="CASCADE",
        deferrable=True,
        initially="DEFERRED",
        use_alter=True,
    ),
    _one_of("role", ["system", "user", "assistant", "tool"]),
    _one_of("outcome", ["ok", "error", "denied", "interrupted"]),
    CheckConstraint("(role = 'tool') = (call_message IS NOT NULL)", name="result_of_a_message"),
    CheckConstraint("(role = 'tool') = (call_index IS NOT NULL)", name="result_of_a_call"),
    CheckConstraint("(role = 'tool') = (outcome IS NOT NULL)", name="result_with_outcome"),
)
Index(
    "authority_one_result_per_call",
    message.c.incarnation,
    message.c.turn_no,
    message.c.call_message,
    message.c.call_index,
    unique=True,
    sqlite_where=message.c.call_index.is_not(None),
    postgresql_where=message.c.call_index.is_not(None),
)

call = Table(
    "authority_tool_call",
    metadata,
    Column("incarnation", Uuid, nullable=False),
    Column("turn_no", BigInteger, nullable=False),
    Column("message_pos", Integer, nullable=False),
    Column("call_index", Integer, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    PrimaryKeyConstraint("incarnation", "turn_no", "message_pos", "call_index"),
    ForeignKeyConstraint(
        ["incarnation", "turn_no", "message_pos"],
        [f"authority_message.{name}" for name in ("incarnation", "turn_no", "pos")],
        ondelete="CASCADE",
    ),
)

trim = Table(
    "authority_trim",
    metadata,
    Column("incarnation", Uuid, nullable=False),
    Column("trim_no", Integer, nullable=False),
    Column("from_turn", BigInteger, nullable=False),
    Column("to_turn", BigInteger, nullable=False),
    Column("dropped_messages", BigInteger, nullable=False),
    Column("kept_turns", BigInteger, nullable=False),
    Column("reason", String, nullable=False),
    Column("erased", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("incarnation", "trim_no"),
    _of_session(),
    CheckConstraint("to_turn > from_turn", name="something_dropped"),
    _one_of("reason", ["token_budget", "message_limit", "explicit", "retention"]),
    sqlite_with_rowid=False,
)

tombstone = Table(
    "authority_session_tombstone",
    metadata,
    Column("session_id", Uuid, nullable=False),
    Column("incarnation", Uuid, nullable=False),
    Column("owner", String, nullable=False),
    Column("deleted_at", Double, nullable=False),
    PrimaryKeyConstraint("session_id", "incarnation"),
)

TABLES = (session, turn, message, call, trim, tombstone)
"""The tables of the component, without the one of the versions."""

Step = Callable[[Connection], None]
STEPS: Sequence[Step] = ()
"""The first step leads from version 1 to 2, and so on. Only ever added to; none drops anything."""

# the same for every process that makes or upgrades these tables
_LOCK = "SELECT pg_advisory_xact_lock(7046029254386353131)"
_VERSION = select(versions.c.version).where(versions.c.component == COMPONENT)


def read_version(connection: Connection, steps: Sequence[Step] = STEPS) -> int | None:
    """Give the version of the tables, or None when there are none.

    Raises:
        SchemaMismatch: It is newer than this release knows.
    """
    if not inspect(connection).has_table(versions.name):
        return None
    version: int | None = connection.execute(_VERSION).scalar_one_or_none()
    if version is not None and version > 1 + len(steps):
        raise SchemaMismatch(
            f"the tables are of version {version}, newer than version {1 + len(steps)}, "
            "the latest that this release knows"
        )
    return version


def check(connection: Connection, steps: Sequence[Step] = STEPS) -> None:
    """Refuse tables that are missing or of another version.

    Raises:
        SchemaMismatch: What to do about it is said.
    """
    version = read_version(connection, steps)
    if version is None:
        raise SchemaMismatch("the tables are missing: call migrate() once")
    if version <= len(steps):
        raise SchemaMismatch(f"the tables are of version {version}, older than this release: call migrate()")


def migrate(connection: Connection, steps: Sequence[Step] = STEPS) -> None:
    """Make the tables, or bring older ones to the newest version, inside the caller's transaction.

    Safe in a race, and nothing is ever dropped.

    Raises:
        SchemaMismatch: The tables are newer, or tables of another program have their names.
    """
    if read_version(connection, steps) == 1 + len(steps):
        return  # no lock, and no right to change tables is needed
    if connection.dialect.name == "postgresql":
        connection.execute(text(_LOCK))
    version = read_version(connection, steps)
    if version is None:
        _create(connection)
        connection.execute(insert(versions), {"component": COMPONENT, "version": 1 + len(steps)})
        return
    for step in steps[version - 1 :]:
        step(connection)
    changed = update(versions).where(versions.c.component == COMPONENT).values(version=bindparam("reached"))
    connection.execute(changed, {"reached": 1 + len(steps)})


def _create(connection: Connection) -> None:
    taken = [table.name for table in TABLES if inspect(connection).has_table(table.name)]
    if taken:
        raise SchemaMismatch(f"the database has a table of another program: {', '.join(taken)}")
    # of a copy: making tables marks the metadata, and the next database would lack a foreign key
    fresh = MetaData()
    for table in metadata.tables.values():
        table.to_metadata(fresh)
    fresh.create_all(connection)  # of the tables only that of the versions can be there already


def row_counts(connection: Connection) -> dict[str, int]:
    """Count the rows of every table, for a test or an operator."""
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in TABLES
    }
