"""What a store can be told about its server, its tables and its connections."""

import math
import re
from dataclasses import dataclass
from typing import Any

from adapter_core import Durability, MemoryAdapterError

POOL_SIZE = 8
"""How many connections one store opens at most."""
STATEMENT_CACHE = 100
"""How many prepared statements one connection keeps."""
CONNECT_TIMEOUT = 10.0
"""Seconds to connect, with authentication."""
ACQUIRE_TIMEOUT = 10.0
"""Seconds to wait for a connection while all are busy."""
COMMAND_TIMEOUT = 60.0
"""Seconds that one statement may take, waiting for locks included."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 63  # Postgres cuts a longer one without a word
_LONGEST_TABLE = 48  # leaves room for what is appended to it
_LONGEST_TIMEOUT = 1_000_000.0


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Settings of a store; each has a default.

    Attributes:
        schema: The schema of the tables, made when it is missing.
        table: The name of the table of items, with which the names of the others begin.
        durability: What an acknowledged write survives. `power` needs a server with `fsync` and
            `synchronous_commit`, `crash` one with `synchronous_commit`; both are checked with each
            write. `volatile` turns `synchronous_commit` off for its own writes.
        pool_size: How many connections the store opens at most, when they are needed.
        statement_cache: How many prepared statements a connection keeps. 0 keeps no state on a
            connection at all, as a pgbouncer in transaction mode needs it.
        connect_timeout: Seconds to connect.
        acquire_timeout: Seconds to wait for a connection while all are busy.
        command_timeout: Seconds that one statement may take.

    Raises:
        MemoryAdapterError: A value is not legal.
    """

    schema: str = "public"
    table: str = "memories"
    durability: Durability = "power"
    pool_size: int = POOL_SIZE
    statement_cache: int = STATEMENT_CACHE
    connect_timeout: float = CONNECT_TIMEOUT
    acquire_timeout: float = ACQUIRE_TIMEOUT
    command_timeout: float = COMMAND_TIMEOUT

    def __post_init__(self) -> None:
        """Check the values."""
        _check_name("schema", self.schema, _LONGEST_NAME)
        _check_name("table", self.table, _LONGEST_TABLE)
        if self.durability not in ("power", "crash", "volatile"):
            raise MemoryAdapterError('durability is "power", "crash" or "volatile"')
        _check_count("pool_size", self.pool_size, 1)
        _check_count("statement_cache", self.statement_cache, 0)
        for option in ("connect_timeout", "acquire_timeout", "command_timeout"):
            _check_seconds(option, getattr(self, option))


def _check_name(option: str, name: Any, longest: int) -> None:
    if type(name) is not str or len(name) > longest or not _NAME.fullmatch(name):
        raise MemoryAdapterError(
            f"{option} must be a name of ASCII letters, digits and _, "
            f"that begins with no digit, of at most {longest} characters"
        )


def _check_count(option: str, value: Any, least: int) -> None:
    if type(value) is not int or value < least:
        raise MemoryAdapterError(f"{option} must be an int of at least {least}")


def _check_seconds(option: str, value: Any) -> None:
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 < value <= _LONGEST_TIMEOUT:
        raise MemoryAdapterError(f"{option} must be a number of seconds above 0")
