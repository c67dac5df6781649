"""For harnesses: what happens to a real server, staged over a connection of an administrator."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from adapter_core import namespace_token

from . import client, schema
from .settings import PostgresSettings
from .testing import AGED
from .transport import Row, ServerTransport, Session

_GUARD = """
CREATE FUNCTION {schema}.guard() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN {effect}; END $$
"""
_GUARDED = """
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON {items} FOR EACH ROW EXECUTE FUNCTION {schema}.guard()
"""
_FOREIGN = """
INSERT INTO {items} VALUES ($1, $2, 0, 0, 'foreign', '', '{{}}', '{{}}', 'foreign')
ON CONFLICT (ns, id) DO UPDATE SET marker = 'foreign', document = 'foreign'
"""
_HAS_COLUMN = """
SELECT EXISTS (SELECT FROM information_schema.columns
WHERE table_schema = $1 AND table_name = $2 AND column_name = 'created_at_away')
"""


class Admin:
    """Stages faults in the tables of one schema.

    Args:
        connection: Of a role that may create schemas, functions and triggers.
        settings: Names of the tables.
    """

    def __init__(self, connection: client.Connection, settings: PostgresSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._names = schema.Names(settings.schema, settings.table)

    @classmethod
    async def connect(cls, url: str, settings: PostgresSettings) -> "Admin":
        """Connect, and make the tables if they are not there."""
        admin = cls(await client.connect(url, settings), settings)
        try:
            await admin.prepare(url)
        except BaseException:
            admin._connection.terminate()
            raise
        return admin

    async def prepare(self, url: str, namespace: str = "default") -> None:
        """Make the tables and the namespace if they are not there."""
        signature = schema.signature_text(schema.SIGNATURE)

        async def make(session: Session) -> None:
            await schema.Schema(self._names).prepare(session, namespace_token(namespace), signature)

        transport = ServerTransport(url, self._settings)
        await transport.open(make)
        await transport.close()

    async def run(self, sql: str, *arguments: Any) -> Sequence[Row]:
        """Run one statement, with the names of the tables put in."""
        return await self._connection.run(self._names.fill(sql), *arguments)

    async def version(self) -> str:
        """Give the version of the server."""
        ((version,),) = await self.run("SELECT current_setting('server_version')")
        return str(version).split(" ", maxsplit=1)[0]

    async def plant_foreign(self, namespace: str, item_id: UUID) -> None:
        """Put a row that is not the adapter's where the item with this id would be."""
        await self.run(_FOREIGN, namespace_token(namespace), item_id)

    async def plant_malformed(self, namespace: str, item_id: UUID) -> None:
        """Damage the document of a stored item."""
        sql = "UPDATE {items} SET document = chr(123) WHERE ns = $1 AND id = $2"
        await self.run(sql, namespace_token(namespace), item_id)

    async def guard(self, effect: str, on: bool) -> None:
        """Let a trigger do something in the place of every write, or end that."""
        await self.run("DROP TRIGGER IF EXISTS guard ON {items}")
        await self.run("DROP FUNCTION IF EXISTS {schema}.guard()")
        if on:
            await self.run(_GUARD.replace("{effect}", effect))
            await self.run(_GUARDED)

    async def refuse_queries(self, refuse: bool) -> None:
        """Take a column away that every search needs and no other read, or give it back."""
        ((away,),) = await self.run(_HAS_COLUMN, self._names.schema, self._names.table)
        if refuse and not away:
            await self.run("ALTER TABLE {items} RENAME COLUMN created_at TO created_at_away")
        elif away and not refuse:
            await self.run("ALTER TABLE {items} RENAME COLUMN created_at_away TO created_at")

    async def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        await self.run("UPDATE {namespaces} SET indexed_as = $1", AGED)
        await self.run("UPDATE {items} SET indexed_as = $1", AGED)

    async def reset(self) -> None:
        """Remove every item, foreign rows too, and end what is staged."""
        await self.guard("", False)
        await self.refuse_queries(False)
        await self.run("DELETE FROM {items}")
        ours = schema.signature_text(schema.SIGNATURE)
        await self.run("UPDATE {namespaces} SET indexed_as = $1", ours)

    async def drop(self) -> None:
        """Remove the schema with all that is in it."""
        await self.run("DROP SCHEMA IF EXISTS {schema} CASCADE")

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close(self._settings.connect_timeout)
