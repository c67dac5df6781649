"""What a store can be told about its server, its keys and its connections."""

import math
import re
from dataclasses import dataclass
from typing import Any

from adapter_core import MemoryAdapterError

POOL_SIZE = 8
"""How many connections one store opens at most."""
CONNECT_TIMEOUT = 10.0
"""Seconds to connect, with authentication."""
ACQUIRE_TIMEOUT = 10.0
"""Seconds to wait for a connection while all are busy."""
COMMAND_TIMEOUT = 30.0
"""Seconds that one request may take."""
CHECK_INTERVAL = 1.0
"""Seconds after which a call also looks whether the server still keeps what it is given."""

_PREFIX = re.compile(r"[A-Za-z0-9_.:-]+")
_LONGEST_PREFIX = 100
_LONGEST_TIMEOUT = 1_000_000.0


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Settings of a store; each has a default.

    Attributes:
        prefix: How every key begins, in front of the namespace.
        pool_size: How many connections the store opens at most, when they are needed.
        connect_timeout: Seconds to connect.
        acquire_timeout: Seconds to wait for a connection while all are busy.
        command_timeout: Seconds that one request may take.
        check_interval: Seconds after which a call also looks at the server's settings.

    Raises:
        MemoryAdapterError: A value is not legal.
    """

    prefix: str = "memory"
    pool_size: int = POOL_SIZE
    connect_timeout: float = CONNECT_TIMEOUT
    acquire_timeout: float = ACQUIRE_TIMEOUT
    command_timeout: float = COMMAND_TIMEOUT
    check_interval: float = CHECK_INTERVAL

    def __post_init__(self) -> None:
        """Check the values."""
        prefix: Any = self.prefix
        if type(prefix) is not str or len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix):
            raise MemoryAdapterError(
                "prefix must be of ASCII letters, digits and _ . : -, "
                f"at least one and at most {_LONGEST_PREFIX} of them"
            )
        if type(self.pool_size) is not int or self.pool_size < 1:
            raise MemoryAdapterError("pool_size must be an int of at least 1")
        for option in ("connect_timeout", "acquire_timeout", "command_timeout"):
            check_seconds(option, getattr(self, option), above=0.0)
        check_seconds("check_interval", self.check_interval, above=-1.0)


def check_seconds(option: str, value: Any, *, above: float) -> None:
    """Refuse what is no finite number of seconds in range.

    Raises:
        MemoryAdapterError: Naming the option.
    """
    legal = type(value) in (int, float) and math.isfinite(value) and above < value <= _LONGEST_TIMEOUT
    if not legal or value < 0:
        least = "above 0" if above == 0 else "of at least 0"
        raise MemoryAdapterError(f"{option} must be a number of seconds {least}")
