"""What the contenders on Postgres share: one server for all, and a database for each."""

from abc import abstractmethod
from pathlib import Path
from uuid import uuid4

import asyncpg

from adapter_postgres import embedded

from .contender import Contender

DURABILITY = "power cut"
"""The server's own default: `fsync` and `synchronous_commit` are on."""

CONNECTIONS = 8
"""How many connections each contender has at most, where it can be told."""


class ServerContender(Contender):
    """A contender with a database of its own on the server that this process starts.

    The server keeps its files in a temporary folder of its own, and not in the one that it is given.
    """

    durability = DURABILITY

    async def setup(self, folder: Path) -> None:  # noqa: ARG002 - the server has its own
        self._database = f"bench_{uuid4().hex}"
        await _run(f'CREATE DATABASE "{self._database}"')
        await self._open(embedded.shared_server().url(self._database))

    async def close(self) -> None:
        try:
            await self._shut()
        finally:
            await _run(f'DROP DATABASE "{self._database}" WITH (FORCE)')

    async def loaded(self) -> None:
        """Do what the server would do by itself at a moment that nobody can choose.

        It counts what the plans depend on, and empties the pending list of a GIN, which every search
        reads: its length is chance.
        """
        await _run("VACUUM (ANALYZE)", self._database)

    @abstractmethod
    async def _open(self, url: str) -> None:
        """Open on an empty database."""

    @abstractmethod
    async def _shut(self) -> None:
        """Close every connection."""


async def server_version() -> str:
    """Give the version of the server."""
    connection = await asyncpg.connect(embedded.shared_server().url())
    try:
        version: str = connection.get_settings().server_version
    finally:
        await connection.close()
    return version


async def _run(sql: str, database: str = "postgres") -> None:
    connection = await asyncpg.connect(embedded.shared_server().url(database))
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
