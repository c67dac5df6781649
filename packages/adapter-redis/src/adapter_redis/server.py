"""What the adapter asks the server about itself: whether it keeps what it is given."""

from collections.abc import Mapping
from typing import Any

from adapter_core import Durability, MemoryAdapterError

from .answers import ServerUnfit, evicting
from .errors import code_of
from .transport import Call, Session

_RANK: Mapping[Durability, int] = {"volatile": 0, "crash": 1, "power": 2}

INFO = Call("info", (b"INFO",))
APPENDFSYNC = Call("config", (b"CONFIG", b"GET", b"appendfsync"))


async def read_info(session: Session) -> Mapping[str, str]:
    """Read what the server says of itself.

    Raises:
        MemoryAdapterError: It does not say it to this account.
    """
    try:
        (answer,) = await session.send(INFO)
    except MemoryAdapterError:
        raise
    except Exception as error:
        if code_of(error) != "NOPERM":
            raise
        raise MemoryAdapterError(
            "the account may not run INFO, so nobody knows whether the server evicts or keeps what is "
            "stored; a store with allow_eviction=True and durability='volatile' does without"
        ) from error
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value for name, colon, value in pairs if colon}


async def read_durability(session: Session, info: Mapping[str, str]) -> Durability:
    """Say what an acknowledged write survives on this server.

    Without an append-only file: nothing. With one, a write has left the process before it is
    acknowledged (but for a gap of `everysec` that the README names), and with `appendfsync always` it is
    on the disk. A server that does not show
    `appendfsync`, as managed ones do not, is taken for one that does not sync at once.
    """
    if info.get("aof_enabled") != "1":
        return "volatile"
    try:
        (answer,) = await session.send(APPENDFSYNC)
    except MemoryAdapterError:
        raise
    except Exception as error:
        if code_of(error) not in ("NOPERM", "ERR"):
            raise
        return "crash"
    return "power" if _value(answer) == b"always" else "crash"


async def check_server(session: Session, *, durability: Durability, allow_eviction: bool) -> None:
    """See that the server is what the store needs.

    Raises:
        MemoryAdapterUnavailable: It is not.
        MemoryAdapterError: It does not say.
    """
    if allow_eviction and durability == "volatile":
        return  # nothing is asked of it
    info = await read_info(session)
    if info.get("role", "master") != "master":
        raise ServerUnfit("the server is a replica, which may lag behind and takes no writes")
    policy = info.get("maxmemory_policy", "not known")
    if not allow_eviction and policy != "noeviction":
        raise ServerUnfit(evicting(policy))
    if durability != "volatile":
        check_durability(await read_durability(session, info), durability)


def check_durability(given: Durability, wanted: Durability) -> None:
    """Refuse a server that keeps less than the store declares.

    Raises:
        MemoryAdapterUnavailable: It does.
    """
    if _RANK[given] < _RANK[wanted]:
        raise ServerUnfit(
            f"the server keeps what it acknowledges only as {given!r}, and this store's durability is "
            f"{wanted!r}: see its appendonly and appendfsync"
        )


def is_durability(value: object) -> bool:
    """Whether this is the name of a durability."""
    return isinstance(value, str) and value in _RANK


def _value(answer: Any) -> Any:
    """Give the one value of a `CONFIG GET`: a map in RESP3, a list in RESP2."""
    values: list[Any] = list(answer.values()) if isinstance(answer, dict) else list(answer or ())[1:]  # pyright: ignore[reportUnknownArgumentType]
    return values[0] if len(values) == 1 else None
