"""The store: its options, its manifest, its life."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, Self, Unpack, cast, overload
from urllib.parse import unquote_to_bytes

from adapter_core import (
    DEFAULT_ITEM_TYPE,
    TIME_FILTERS,
    Batching,
    Deleting,
    Durability,
    ItemT,
    MemoryAdapterError,
    MemoryAdapterManifest,
    MemoryItem,
    Reindexing,
    Revising,
    Scanning,
    Scoring,
    StoreOptions,
    check_filter_keys,
)

from .driver import SqliteDriver
from .tokens import SCORE_MEANING
from .transport import BUSY_TIMEOUT, MEMORY, FileTransport, Transport

_LONGEST_TIMEOUT = 1_000_000.0  # SQLite counts milliseconds in an int


class SqliteOptions(StoreOptions, total=False):
    """The options of `SqliteMemoryStore`, but for `item_type`."""

    durability: Literal["power", "crash"] | None
    busy_timeout: float
    transport: Transport | None


class SqliteMemoryStore(
    Batching[ItemT],
    Deleting[ItemT],
    Scanning[ItemT],
    Revising[ItemT],
    Scoring[ItemT],
    Reindexing[ItemT],
):
    """Memories in one SQLite file, found as soon as they are stored, exact in every field.

    The constructor does no I/O. The first call that needs the file opens it, makes the tables if
    they are not there, and starts the threads: one that writes and up to four that read. `close`
    waits for what is under way and closes every connection. A program that forgets it still ends,
    and nothing that was stored is lost.

    Each item is kept as one ASCII JSON text, which is all that is ever read back: SQLite's own
    numbers are 64 bits wide and have no negative zero.

    Several stores, tasks and processes may use one file at once. Their writes wait for each other.

    Args:
        path: The database file, made when it is missing; its folder must be there. `:memory:` is
            a database that belongs to this instance alone and ends with it.
        namespace: Any string. Stores of other namespaces in the file see nothing of this one.
        filters: Top-level metadata keys that queries may filter by.
        item_type: Called with the five fields by keyword, to build what is handed out.
        coalesce: Send the `store` calls of one tick of the event loop as one transaction, and the
            `retrieve` calls as one read. Each caller gets its own result or error.
        durability: What an acknowledged write survives: `power` (a power cut; the default) or
            `crash` (the death of any process, but not a power cut). Not for `:memory:`.
        busy_timeout: Seconds to wait while another connection writes.
        transport: Stands in the place of the file, as the fake in `adapter_sqlite.testing` does;
            the path is not looked at then.

    Raises:
        MemoryAdapterError: An option is not legal.
    """

    _score_meaning = SCORE_MEANING

    # Without item_type the items are MemoryItem, whatever class the caller expects.
    @overload
    def __init__(
        self: "SqliteMemoryStore[MemoryItem]",
        path: str | os.PathLike[str],
        **options: Unpack[SqliteOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        item_type: Callable[..., ItemT],
        **options: Unpack[SqliteOptions],
    ) -> None: ...
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        namespace: str = "default",
        filters: Iterable[str] = (),
        item_type: Callable[..., ItemT] = DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
        durability: Literal["power", "crash"] | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        transport: Transport | None = None,
    ) -> None:
        file = _checked_path(path)
        in_memory = file == MEMORY and transport is None
        _check_options(namespace, durability, busy_timeout, in_memory=in_memory)
        keys = check_filter_keys(filters)
        if transport is None:
            transport = FileTransport(file, durability=durability or "power", busy_timeout=busy_timeout)
        self._durability: Durability = "volatile" if in_memory else durability or "power"
        super().__init__(
            SqliteDriver(transport, namespace),
            manifest=_manifest(keys),
            item_type=item_type,
            coalesce=coalesce,
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Make the store that a URL names.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite:///:memory:`. The
                path is percent-decoded.
            options: Options of the constructor.

        Raises:
            MemoryAdapterError: The URL says something else. The message does not show it.
        """
        return cls(_path_of(url), **options)

    @property
    def durability(self) -> Durability:
        """What an acknowledged write survives."""
        return self._durability

    @property
    def creates(self) -> tuple[str, ...]:
        """What the first call makes if it is missing, for a reader."""
        if self._durability == "volatile":
            return ("a database in memory, of this store alone",)
        return (
            "the database file, with -wal and -shm beside it while it is open",
            "in it the tables memory_schema, memory_namespaces, memory_items, memory_index and memory_levels",
        )

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace itself.

        For a namespace that is not used any more. Every store of it, this one too, is unavailable
        afterwards; a new one makes the namespace anew, and its revisions begin again. A namespace
        with rows that are not this adapter's is only emptied.

        Raises:
            MemoryAdapterUnavailable: The file was not reached, or the namespace is gone already.
            MemoryAdapterError: SQLite refused. Nothing was deleted.
        """
        driver = cast("SqliteDriver", self._driver)
        await self._call("drop_namespace", driver.drop_namespace, write=True)


def _manifest(filters: frozenset[str]) -> MemoryAdapterManifest:
    return MemoryAdapterManifest(
        adapter="sqlite",
        native_item_fields=frozenset({"id", "created_at", "metadata", "content", "tags"}),
        dropped_item_fields=frozenset(),
        supported_filters=filters | TIME_FILTERS,
        search_consistency="immediate",
        retrieve_fidelity="full",
        search_fidelity="full",
        search_returns_tags=True,
        preserves_metadata=True,
    )


def _checked_path(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    try:
        given = os.fspath(path)
    except TypeError:
        given = b""
    if not isinstance(given, str):
        raise MemoryAdapterError("path must be a str or a path of str")
    if not given:
        raise MemoryAdapterError("path is empty; for a database in memory write :memory:")
    if "\0" in given:
        raise MemoryAdapterError("path has a NUL character")
    if given.lower().startswith("sqlite:"):
        raise MemoryAdapterError("path is a URL; use from_url or adapter_core.open_store")
    return given


def _check_options(namespace: object, durability: object, busy_timeout: object, *, in_memory: bool) -> None:
    if not isinstance(namespace, str):
        raise MemoryAdapterError("namespace must be a str")
    if durability not in (None, "power", "crash"):
        raise MemoryAdapterError('durability is "power", "crash" or None')
    if in_memory and durability is not None:
        raise MemoryAdapterError("a database in memory is volatile: leave durability out")
    if (
        isinstance(busy_timeout, bool)
        or not isinstance(busy_timeout, int | float)
        or not 0 < busy_timeout <= _LONGEST_TIMEOUT
    ):
        raise MemoryAdapterError("busy_timeout must be a number of seconds above 0")


def _path_of(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() != "sqlite":
        hint = "; leave the +driver part out" if scheme.lower().startswith("sqlite+") else ""
        raise MemoryAdapterError(f"the URL of a SQLite store begins with sqlite:///{hint}")
    if "?" in rest or "#" in rest:
        raise MemoryAdapterError(
            "a SQLite URL takes no parameters and no fragment; in a name, write %3F and %23"
        )
    if not rest.startswith("/"):
        raise MemoryAdapterError(
            "a SQLite URL has no host: write three slashes before a relative path, "
            "four before an absolute one"
        )
    return os.fsdecode(unquote_to_bytes(os.fsencode(rest[1:])))
