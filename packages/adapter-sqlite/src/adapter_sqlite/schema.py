"""Tables, their versions, and how one version becomes the next.

Every name begins with `memory_`, so that the file can hold other tables too.

- `memory_schema`: the version of these tables.
- `memory_namespaces`: each namespace, how its items are indexed, and the counter of its writes.
- `memory_items`: each item as one exact document; `marker` tells ours from foreign rows.
- `memory_index`: tags, facets and terms alike, as an FTS5 table that keeps no text.
- `memory_levels`: how many items the index has for each of its words.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence

from adapter_core import TERMS_VERSION, MemoryAdapterError, namespace_token

from .transport import transaction

MARKER = "adapter-sqlite"
"""What the `marker` of a row that is ours says."""

SIGNATURE: Mapping[str, str] = {"layout": "2", "terms": str(TERMS_VERSION)}
"""How this release indexes items; a namespace remembers it."""

STEPS: Sequence[Sequence[str]] = (
    (
        """
        CREATE TABLE memory_namespaces (
            ns INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            indexed_as TEXT NOT NULL,
            revision INTEGER NOT NULL DEFAULT 0
        )
        """,
        # the document comes last but for the tokens: what a search checks is read before it
        """
        CREATE TABLE memory_items (
            item INTEGER PRIMARY KEY,
            ns INTEGER NOT NULL,
            id BLOB NOT NULL,
            created_at REAL NOT NULL,
            revision INTEGER NOT NULL,
            marker TEXT NOT NULL,
            indexed_as TEXT NOT NULL,
            document TEXT NOT NULL,
            tokens TEXT NOT NULL,
            UNIQUE (ns, id)
        )
        """,
        "CREATE INDEX memory_items_newest ON memory_items (ns, created_at DESC, id)",
        """
        CREATE TABLE memory_tokens (
            ns INTEGER NOT NULL,
            token TEXT NOT NULL,
            created_at REAL NOT NULL,
            id BLOB NOT NULL,
            item INTEGER NOT NULL,
            weight REAL NOT NULL,
            PRIMARY KEY (ns, token, created_at DESC, id)
        ) WITHOUT ROWID
        """,
    ),
    (
        # what a search checks comes before the document
        """
        CREATE TABLE memory_items_placed (
            place INTEGER PRIMARY KEY,
            ns INTEGER NOT NULL,
            id BLOB NOT NULL,
            created_at REAL NOT NULL,
            revision INTEGER NOT NULL,
            marker TEXT NOT NULL,
            indexed_as TEXT NOT NULL,
            tokens TEXT NOT NULL,
            document TEXT NOT NULL,
            UNIQUE (ns, id)
        )
        """,
        # places as `tokens` gives them; the tokens are written anew by `reindex`
        """
        INSERT INTO memory_items_placed
        SELECT (moment << 22) + row_number() OVER (PARTITION BY moment ORDER BY item) - 1,
            ns, id, created_at, revision, marker, indexed_as, '', document
        FROM (
            SELECT *, CASE
                WHEN created_at <= 0 THEN 0
                WHEN created_at >= 17179869183.984375 THEN 1099511627775
                ELSE CAST(created_at * 64 AS INTEGER)
            END AS moment FROM memory_items
        ) ORDER BY 1
        """,
        "DROP TABLE memory_tokens",
        "DROP TABLE memory_items",
        "ALTER TABLE memory_items_placed RENAME TO memory_items",
        # words of core's tokens whole, as they are; no text, no positions and no lengths kept
        """
        CREATE VIRTUAL TABLE memory_index USING fts5(
            tokens, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'"
        )
        """,
        "CREATE VIRTUAL TABLE memory_levels USING fts5vocab(memory_index, row)",
    ),
)
"""The statements that lead from each version to the next, from none on. Only ever added to."""

_FIND_FTS5 = "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
_FIND_TABLE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
_OUR_TABLES = ("memory_namespaces", "memory_items", "memory_index", "memory_levels")
_FIND_NAMESPACE = "SELECT count(*) FROM memory_namespaces WHERE name = ?"
_ADD_NAMESPACE = "INSERT OR IGNORE INTO memory_namespaces (name, indexed_as) VALUES (?, ?)"


def signature_text(signature: Mapping[str, str]) -> str:
    """Write how items are indexed, always in the same way."""
    return json.dumps(dict(signature), sort_keys=True, separators=(",", ":"))


def prepare(
    connection: sqlite3.Connection,
    namespace: str,
    signature: str,
    steps: Sequence[Sequence[str]] = STEPS,
) -> None:
    """Bring the tables to the newest version, and make the namespace; safe in a race.

    Args:
        connection: Outside a transaction.
        namespace: As the user gave it.
        signature: How a new namespace will be indexed.
        steps: The statements of each version.

    Raises:
        MemoryAdapterError: The tables are of a later version than these steps, or not ours, or
            SQLite lacks FTS5.
    """
    if not connection.execute(_FIND_FTS5).fetchone()[0]:
        raise MemoryAdapterError("this SQLite was built without FTS5, which is needed")
    name = namespace_token(namespace)
    if _is_ready(connection, name, steps):
        return  # without the write lock: every process start comes here
    with transaction(connection):
        version = _version(connection, steps)
        for statements in steps[version:]:
            for statement in statements:
                connection.execute(statement)
        if version < len(steps):
            connection.execute("UPDATE memory_schema SET version = ?", (len(steps),))
        connection.execute(_ADD_NAMESPACE, (name, signature))


def _is_ready(connection: sqlite3.Connection, name: str, steps: Sequence[Sequence[str]]) -> bool:
    with transaction(connection, "DEFERRED"):
        if not _has_table(connection, "memory_schema"):
            return False
        return _read_version(connection, steps) == len(steps) and bool(
            connection.execute(_FIND_NAMESPACE, (name,)).fetchone()[0]
        )


def _version(connection: sqlite3.Connection, steps: Sequence[Sequence[str]]) -> int:
    if _has_table(connection, "memory_schema"):
        return _read_version(connection, steps)
    if taken := [name for name in _OUR_TABLES if _has_table(connection, name)]:
        raise MemoryAdapterError(f"the file has a table of another program: {', '.join(taken)}")
    connection.execute("CREATE TABLE memory_schema (version INTEGER NOT NULL)")
    connection.execute("INSERT INTO memory_schema (version) VALUES (0)")
    return 0


def _read_version(connection: sqlite3.Connection, steps: Sequence[Sequence[str]]) -> int:
    rows = connection.execute("SELECT version FROM memory_schema").fetchall()
    if len(rows) != 1 or type(rows[0][0]) is not int:
        raise MemoryAdapterError("the table memory_schema is not as this adapter wrote it")
    version: int = rows[0][0]
    if version > len(steps):
        raise MemoryAdapterError(
            f"the tables are of version {version}, newer than version {len(steps)}, "
            "the latest that this release knows"
        )
    return version


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    return bool(connection.execute(_FIND_TABLE, (name,)).fetchone()[0])
