"""A memory store on Postgres: full fidelity, found as soon as it is stored."""

from .driver import PostgresDriver
from .settings import (
    ACQUIRE_TIMEOUT,
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    POOL_SIZE,
    PostgresSettings,
)
from .store import PostgresMemoryStore, ddl
from .transport import CLOSE_TIMEOUT, ServerTransport, Transport

__all__ = [
    # the store
    "PostgresMemoryStore",
    "PostgresSettings",
    "ddl",
    # what it is made of
    "PostgresDriver",
    "ServerTransport",
    "Transport",
    # values that the README explains
    "ACQUIRE_TIMEOUT",
    "CLOSE_TIMEOUT",
    "COMMAND_TIMEOUT",
    "CONNECT_TIMEOUT",
    "POOL_SIZE",
]
