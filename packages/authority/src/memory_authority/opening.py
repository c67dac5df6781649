"""Find the session store for a URL."""

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from .errors import AuthorityError, UnreadableUrl
from .sql_store import PostgresSessionStore, SqliteSessionStore

if TYPE_CHECKING:
    from .sql_store import SqlSessionStore


def open_session_store(url: str) -> "SqlSessionStore":
    """Make the session store that a URL names. Like a constructor, it does no I/O.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://…` as asyncpg reads it.

    Raises:
        UnreadableUrl: It is none of these. What asyncpg cannot read is found when it connects.
        AuthorityError: asyncpg is not installed.
    """
    if url.startswith(("postgresql://", "postgres://")):
        try:
            return PostgresSessionStore(url)
        except ImportError as error:
            raise AuthorityError("asyncpg is not installed: install memory-authority[postgres]") from error
    return SqliteSessionStore(sqlite_path(url))


def sqlite_path(url: str) -> str:
    """Give the path that a `sqlite:///` URL names, percent-decoded.

    Raises:
        UnreadableUrl: It names none.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None  # the error shows the URL, which may hold a password
    is_sqlite = parsed is not None and parsed.drivername.lower() == "sqlite"
    if parsed is None or not is_sqlite or parsed.host or parsed.query or not parsed.database:
        raise UnreadableUrl("a session store URL is sqlite:///PATH or postgresql://…")
    if parsed.database == ":memory:":
        raise UnreadableUrl("a file is needed: sessions in memory end with the process")
    return os.fsdecode(unquote_to_bytes(os.fsencode(parsed.database)))
