"""Tables, their versions, and how one version becomes the next.

The names of all begin with that of the table of items.

- `memories`: each item as one exact document; `marker` tells ours from foreign rows, `tokens` holds
  terms, tags and facets alike, and `weights` what each term adds to a score.
- `memories_namespaces`: each namespace, and how its items are indexed.
- `memories_revision`: the numbers of the writes, a sequence.
- `memories_version`: the version of these tables.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapter_core import TERMS_VERSION, MemoryAdapterError, MemoryAdapterUnavailable

from .transport import Session, Statement

MARKER = "adapter-postgres"
"""What the `marker` of a row that is ours says."""

SIGNATURE: Mapping[str, str] = {"layout": "1", "terms": str(TERMS_VERSION)}
"""How this release indexes items; a namespace remembers it."""

OLDEST_SERVER = 14
"""The first major version of Postgres that is taken."""

STEPS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE {namespaces} (
    name text COLLATE "C" PRIMARY KEY,
    indexed_as text COLLATE "C" NOT NULL
)""",
        "CREATE SEQUENCE {revision}",
        # the document comes last: what a search checks is read before it
        """CREATE TABLE {items} (
    ns text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    created_at double precision NOT NULL,
    revision bigint NOT NULL,
    marker text COLLATE "C" NOT NULL,
    indexed_as text COLLATE "C" NOT NULL,
    weights real[] NOT NULL,
    tokens text[] COLLATE "C" NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (ns, id)
) WITH (autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05)""",
        "CREATE INDEX {newest_index} ON {items} (ns, created_at DESC, id)",
        # a short list of pending entries: every search reads it from end to end
        """CREATE INDEX {tokens_index} ON {items} USING gin (tokens)
    WITH (gin_pending_list_limit = 256)""",
    ),
)
"""The statements that lead from each version to the next, from none on. Only ever added to."""


@dataclass(frozen=True)
class Names:
    """The quoted names of what the adapter has in a database.

    Args:
        schema: A checked name.
        table: A checked name.
    """

    schema: str
    table: str

    def fill(self, sql: str) -> str:
        """Put the names into a statement."""
        return sql.format(
            schema=f'"{self.schema}"',
            items=self.of(),
            namespaces=self.of("_namespaces"),
            revision=self.of("_revision"),
            version=self.of("_version"),
            newest_index=f'"{self.table}_newest"',
            tokens_index=f'"{self.table}_tokens"',
            marker=MARKER,
            relation=_RELATION,
        )

    def of(self, suffix: str = "") -> str:
        """Give the name of one table."""
        return f'"{self.schema}"."{self.table}{suffix}"'

    @property
    def lock(self) -> int:
        """Give the key of the advisory lock under which the tables are made."""
        digest = hashlib.sha256(f"{MARKER} {self.of()}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def signature_text(signature: Mapping[str, str]) -> str:
    """Write how items are indexed, always in the same way."""
    return json.dumps(dict(signature), sort_keys=True, separators=(",", ":"))


_RIGHTS = """-- The role of the store needs USAGE on the schema {schema} and on the sequence {revision},
-- SELECT on {version}, SELECT, INSERT and UPDATE on {namespaces},
-- and SELECT, INSERT, UPDATE and DELETE on {items}. It adds the row of its namespace itself.
-- For drop_namespace it also needs DELETE on {namespaces}.
"""
# the catalogue's tables are read, and not functions that look a name up: those may answer from what
# the session knew before it waited for the lock
_RELATION = "pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = $1"
_SERVER = """SELECT current_setting('server_version_num')::int,
    EXISTS (SELECT FROM {relation} AND c.relname = $2)"""
_READY = """SELECT v.version, EXISTS (SELECT FROM {namespaces} WHERE name = $3),
    (SELECT c.relpersistence::text FROM {relation} AND c.relname = $2),
    (SELECT row_security_active(c.oid) FROM {relation} AND c.relname = $2)
FROM {version} v"""
_TAKEN = "SELECT array_agg(c.relname::text) FROM {relation} AND c.relname = ANY($2::text[])"
_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"
_ADD = "INSERT INTO {namespaces} (name, indexed_as) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_BEGIN = ("CREATE TABLE {version} (version integer NOT NULL)", "INSERT INTO {version} VALUES (0)")
_END = "UPDATE {version} SET version = "


class Schema:
    """The tables of one store.

    Args:
        names: What they are called.
        steps: The statements of each version.
    """

    def __init__(self, names: Names, steps: Sequence[Sequence[str]] = STEPS) -> None:
        self._names = names
        self._steps = steps
        self._server = Statement("server", names.fill(_SERVER))
        self._ready = Statement("ready", names.fill(_READY))
        self._lock = Statement("lock", "SELECT pg_advisory_xact_lock($1)")
        self._taken = Statement("taken", names.fill(_TAKEN))
        self._found_schema = Statement("schema", _SCHEMA)
        self._add = Statement("add", names.fill(_ADD))

    def ddl(self) -> str:
        """Write all that makes the newest version, for an administrator to run."""
        names = self._names
        statements = [f'CREATE SCHEMA IF NOT EXISTS "{names.schema}"'] if names.schema != "public" else []
        statements += self._statements(0, fresh=True)
        return (
            self._names.fill(_RIGHTS)
            + "BEGIN;\n"
            + "".join(f"{statement};\n" for statement in statements)
            + "COMMIT;\n"
        )

    async def prepare(self, session: Session, name: str, signature: str) -> None:
        """Bring the tables to the newest version, and make the namespace; safe in a race.

        Args:
            session: Connects to the server; each statement is a transaction of its own.
            name: The namespace's token.
            signature: How a new namespace will be indexed.

        Raises:
            MemoryAdapterError: The tables are of a later version than these steps, or not ours.
        """
        if await self._look(session, name) == (len(self._steps), True):
            return  # without a lock and without a right to create: every start comes here

        async def make(locked: Session) -> None:
            await locked.run(self._lock, self._names.lock)
            version, _ = await self._look(locked, name)
            if version is None:
                await self._check_free(locked)
            if version != len(self._steps):
                for sql in self._statements(version or 0, fresh=version is None):
                    await locked.run(Statement("make", sql))
            await locked.run(self._add, name, signature)

        await session.transact("prepare", make)

    def _statements(self, version: int, *, fresh: bool) -> list[str]:
        statements: list[str] = [*_BEGIN] if fresh else []
        for step in self._steps[version:]:
            statements += step
        # not one parameter: the same text is what an administrator runs
        return [self._names.fill(sql) for sql in (*statements, f"{_END}{len(self._steps)}")]

    async def _look(self, session: Session, name: str) -> tuple[int | None, bool]:
        """Give the version of the tables, None if there are none, and whether the namespace is there."""
        ((number, found),) = await session.run(
            self._server, self._names.schema, f"{self._names.table}_version"
        )
        if number < OLDEST_SERVER * 10_000:
            raise MemoryAdapterError(f"Postgres {OLDEST_SERVER} or newer is needed")
        if not found:
            return None, False
        rows = await session.run(self._ready, self._names.schema, self._names.table, name)
        if len(rows) != 1:
            raise MemoryAdapterError(f"the table {self._names.table}_version is not as this adapter wrote it")
        version, known, persistence, hides_rows = rows[0]
        if version > len(self._steps):
            raise MemoryAdapterError(
                f"the tables are of version {version}, newer than version {len(self._steps)}, "
                "the latest that this release knows"
            )
        if persistence == "u":
            raise MemoryAdapterUnavailable("the table of items is unlogged: a crash of the server empties it")
        if hides_rows:
            raise MemoryAdapterError(
                "row-level security is active for this role: a row that it hides would count as missing"
            )
        return version, known

    async def _check_free(self, session: Session) -> None:
        """Make the schema if need be, and see that nobody else has tables of these names."""
        names = self._names
        if not (await session.run(self._found_schema, names.schema))[0][0]:
            await session.run(Statement("make", f'CREATE SCHEMA "{names.schema}"'))
        ours = [names.table + suffix for suffix in ("", "_namespaces", "_revision")]
        ((taken,),) = await session.run(self._taken, names.schema, ours)
        if taken:
            raise MemoryAdapterError(
                f"the database has a table of another program: {', '.join(sorted(taken))}"
            )
