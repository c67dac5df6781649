"""A memory store on Redis: lossy, with every loss declared, found as soon as it is stored."""

from .connections import ServerTransport
from .driver import RedisDriver
from .index import Index, KeyspaceIndex
from .settings import (
    ACQUIRE_TIMEOUT,
    CHECK_INTERVAL,
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    POOL_SIZE,
    RedisSettings,
)
from .store import RedisMemoryStore
from .transport import Transport

__all__ = [
    # the store
    "RedisMemoryStore",
    "RedisSettings",
    # what it is made of
    "Index",
    "KeyspaceIndex",
    "RedisDriver",
    "ServerTransport",
    "Transport",
    # values that the README explains
    "ACQUIRE_TIMEOUT",
    "CHECK_INTERVAL",
    "COMMAND_TIMEOUT",
    "CONNECT_TIMEOUT",
    "POOL_SIZE",
]
