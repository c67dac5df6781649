"""A memory store in one SQLite file: no service, no driver beyond the standard library."""

from .driver import SqliteDriver
from .store import SqliteMemoryStore
from .transport import BUSY_TIMEOUT, READERS, FileTransport, Transport

__all__ = [
    # the store
    "SqliteMemoryStore",
    # what it is made of
    "FileTransport",
    "SqliteDriver",
    "Transport",
    # values that the README explains
    "BUSY_TIMEOUT",
    "READERS",
]
