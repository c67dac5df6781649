"""The store: its options, its manifest, its life."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from adapter_core import (
    DEFAULT_ITEM_TYPE,
    SCORE_MEANING,
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

from . import schema
from .driver import PostgresDriver
from .settings import PostgresSettings
from .transport import PoolTransport, ServerTransport, Transport

if TYPE_CHECKING:
    from asyncpg import Pool

_SCHEMES = ("postgresql", "postgres")
_DEFAULTS = PostgresSettings()
_SETTINGS = frozenset(field.name for field in fields(PostgresSettings))


class PostgresOptions(StoreOptions, total=False):
    """The options of `PostgresMemoryStore`, but for `item_type`."""

    settings: PostgresSettings
    transport: Transport | None


class PostgresMemoryStore(
    Batching[ItemT],
    Deleting[ItemT],
    Scanning[ItemT],
    Revising[ItemT],
    Scoring[ItemT],
    Reindexing[ItemT],
):
    """Memories in a Postgres database, found as soon as they are stored, exact in every field.

    The constructor does no I/O and does not load the client library. The first call that needs the
    server connects, and makes the tables if they are not there; further connections are opened when
    calls overlap. `close` waits for what is under way and closes every connection but those of an
    injected pool. A program that forgets it still ends, and nothing that was stored is lost.

    Each item is kept as one ASCII JSON text, which is all that is ever read back: `jsonb` has other
    numbers, no negative zero, no NUL and no order of keys.

    Several stores, tasks and processes may use one database at once.

    Args:
        url_or_pool: `postgresql://user:password@host/database`, which goes to asyncpg as it is, or
            an `asyncpg.Pool` of the caller's, which stays open.
        namespace: Any string. Stores of other namespaces in the database see nothing of this one.
        filters: Top-level metadata keys that queries may filter by.
        item_type: Called with the five fields by keyword, to build what is handed out.
        coalesce: Send the `store` calls of one tick of the event loop as one statement, and the
            `retrieve` calls too.
        settings: Names of the tables, durability, sizes and timeouts.
        transport: Stands in the place of the server, as the fake in `adapter_postgres.testing`
            does; the URL is not looked at then.

    Raises:
        MemoryAdapterError: An option is not legal. The message does not show the URL.
    """

    _score_meaning = SCORE_MEANING

    # Without item_type the items are MemoryItem, whatever class the caller expects.
    @overload
    def __init__(
        self: "PostgresMemoryStore[MemoryItem]",
        url_or_pool: "str | Pool",
        **options: Unpack[PostgresOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url_or_pool: "str | Pool",
        *,
        item_type: Callable[..., ItemT],
        **options: Unpack[PostgresOptions],
    ) -> None: ...
    def __init__(
        self,
        url_or_pool: "str | Pool",
        *,
        namespace: str = "default",
        filters: Iterable[str] = (),
        item_type: Callable[..., ItemT] = DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
        settings: PostgresSettings = _DEFAULTS,
        transport: Transport | None = None,
    ) -> None:
        keys = check_filter_keys(filters)
        _check_options(namespace, settings)
        self._settings = settings
        super().__init__(
            PostgresDriver(transport or _transport(url_or_pool, settings), namespace, settings),
            manifest=_manifest(keys),
            item_type=item_type,
            coalesce=coalesce,
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Make the store that a URL names.

        Args:
            url: A libpq URI.
            options: Options of the constructor. What `PostgresSettings` has may stand beside them.

        Raises:
            MemoryAdapterError: The URL says something else. The message does not show it.
        """
        settings = {name: options.pop(name) for name in _SETTINGS & options.keys()}
        if settings:
            options["settings"] = replace(options.get("settings", _DEFAULTS), **settings)
        return cls(url, **options)

    @classmethod
    def ddl(cls, **options: Any) -> str:
        """Write what an administrator runs for a store whose role may create nothing.

        Args:
            options: `schema` and `table`, as `PostgresSettings` has them.

        Raises:
            MemoryAdapterError: There is no such option, or a name is not legal.
        """
        if unknown := sorted(options.keys() - {"schema", "table"}):
            raise MemoryAdapterError(f"the DDL has the options schema and table, not {', '.join(unknown)}")
        return ddl(**options)

    @property
    def durability(self) -> Durability:
        """What an acknowledged write survives."""
        return self._settings.durability

    @property
    def creates(self) -> tuple[str, ...]:
        """What the first call makes if it is missing, for a reader."""
        table = self._settings.table
        tables = f"the tables {table}, {table}_namespaces and {table}_version"
        return (
            f"the schema {self._settings.schema}",
            f"in it {tables}, and the sequence {table}_revision",
        )

    async def close(self) -> None:
        """Wait for the calls that are under way, then close every connection of our own. Idempotent.

        An injected pool is left open.

        Raises:
            MemoryAdapterError: Something could not be released; the rest was. Raised once.
        """
        await super().close()
        await self._mapped(
            "close", self._driver.close
        )  # a first call that was cancelled may still be connecting

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace itself.

        For a namespace that is not used any more. Every store of it, this one too, is unavailable
        afterwards; a new one makes the namespace anew. A namespace with rows that are not this
        adapter's is only emptied. All is one transaction, which waits for the writers of these tables
        and lets none begin. The role needs DELETE on the table of the namespaces for it.

        Raises:
            MemoryAdapterUnavailable: The server was not reached, or the namespace is gone already.
            MemoryAdapterError: Postgres refused.
        """
        driver: PostgresDriver = self._driver  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        await self._call("drop_namespace", driver.drop_namespace, write=True)


def ddl(*, schema: str = _DEFAULTS.schema, table: str = _DEFAULTS.table) -> str:
    """Write what an administrator runs for a store whose role may create nothing.

    That role needs the rights that the text names in its comment. It adds the row of its namespace
    itself.

    Args:
        schema: The schema of the tables.
        table: The name of the table of items.

    Raises:
        MemoryAdapterError: A name is not legal.
    """
    checked = PostgresSettings(schema=schema, table=table)
    return _schema(checked).ddl()


def _schema(settings: PostgresSettings) -> schema.Schema:
    return schema.Schema(schema.Names(settings.schema, settings.table))


def _manifest(filters: frozenset[str]) -> MemoryAdapterManifest:
    return MemoryAdapterManifest(
        adapter="postgres",
        native_item_fields=frozenset({"id", "created_at", "metadata", "content", "tags"}),
        dropped_item_fields=frozenset(),
        supported_filters=filters | TIME_FILTERS,
        search_consistency="immediate",
        retrieve_fidelity="full",
        search_fidelity="full",
        search_returns_tags=True,
        preserves_metadata=True,
    )


def _check_options(namespace: object, settings: object) -> None:
    if not isinstance(namespace, str):
        raise MemoryAdapterError("namespace must be a str")
    if not isinstance(settings, PostgresSettings):
        raise MemoryAdapterError("settings must be PostgresSettings")


def _transport(url_or_pool: Any, settings: PostgresSettings) -> Transport:
    if isinstance(url_or_pool, str):
        _check_url(url_or_pool)
        return ServerTransport(url_or_pool, settings)
    if "asyncpg" in sys.modules:  # else nobody can have made a pool
        from .client import is_pool  # noqa: PLC0415 - the client library is loaded already

        if is_pool(url_or_pool):
            return PoolTransport(url_or_pool, settings)
    raise MemoryAdapterError("a URL or an asyncpg.Pool is needed")


def _check_url(url: str) -> None:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        hint = "; leave the +driver part out" if scheme.lower().partition("+")[0] in _SCHEMES else ""
        raise MemoryAdapterError(f"the URL of a Postgres store begins with postgresql://{hint}")
