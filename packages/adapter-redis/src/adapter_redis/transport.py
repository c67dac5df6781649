"""The way to Redis: a narrow protocol, and what is sent over it."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Script(NamedTuple):
    """One of the adapter's scripts, which the server runs as a whole and alone.

    Attributes:
        name: For those who record or interpret it.
        source: Lua.
        digest: The SHA-1 of the source in hexadecimal: how the server calls a script that it knows.
    """

    name: str
    source: bytes
    digest: bytes

    @classmethod
    def of(cls, name: str, source: str) -> "Script":
        """Make a script of its source."""
        code = source.encode()
        # how Redis names scripts; no security rests on it
        digest = hashlib.sha1(code, usedforsecurity=False).hexdigest()
        return cls(name, code, digest.encode())


class Call(NamedTuple):
    """One command.

    Attributes:
        name: The operation that it is part of, for those who record or interpret it.
        arguments: What is sent: the whole command, or what a script is given.
        script: The script to run, if it is one.
        key: The one key that a script names. All others are in the same slot of a cluster.
    """

    name: str
    arguments: Sequence[bytes]
    script: Script | None = None
    key: bytes = b""


class Session(Protocol):
    """Something that sends commands."""

    async def send(self, *calls: Call) -> Sequence[Any]:
        """Send commands as one request, and give the answers, in bytes, lists and numbers.

        A script that the server does not know is sent in full; it has done nothing before.

        Raises:
            MemoryAdapterUnavailable: The server was not reached, or says that it cannot now.
            Exception: A native error. Of several commands, those beside the failed one are done.
        """
        ...


Work = Callable[[Session], Awaitable[None]]


class Transport(Session, Protocol):
    """What the driver needs of Redis."""

    async def open(self, setup: Work) -> None:
        """Connect and run the set-up. After a failure or a cancellation nothing is left open."""
        ...

    async def close(self) -> None:
        """Close every connection. It may be called again."""
        ...
