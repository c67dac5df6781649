"""The store: its options, its manifest, its life."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

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

from . import server
from .connections import ClientTransport, ClusterTransport, ServerTransport
from .driver import RedisDriver
from .hashes import PROJECTION
from .index import Index, KeyspaceIndex, Space
from .settings import RedisSettings, check_seconds
from .transport import Transport

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.cluster import RedisCluster

IndexName = Literal["query-engine", "keyspace"]

_SCHEMES = ("redis", "rediss", "unix")
_DEFAULTS = RedisSettings()
_SETTINGS = frozenset(field.name for field in fields(RedisSettings))


class RedisOptions(StoreOptions, total=False):
    """The options of `RedisMemoryStore`, but for `item_type`."""

    index: IndexName
    durability: Durability
    ttl: float | None
    allow_eviction: bool
    settings: RedisSettings
    transport: Transport | None


class RedisMemoryStore(
    Batching[ItemT],
    Deleting[ItemT],
    Scanning[ItemT],
    Revising[ItemT],
    Scoring[ItemT],
    Reindexing[ItemT],
):
    """Memories in Redis as hashes that any client can read, found as soon as they are stored.

    Two things are lost, and declared: `created_at` is kept in milliseconds, and a value of metadata
    that is no str comes back as its JSON text. Filters compare the value that was stored.

    The constructor does no I/O and does not load the client library. The first call that needs the
    server connects; further connections are opened when calls overlap. `close` waits for what is under
    way and closes every connection but those of an injected client. A program that forgets it still
    ends, and nothing that was stored is lost.

    Several stores, tasks and processes may use one server at once.

    Args:
        url_or_client: `redis://`, `rediss://` or `unix://`, which goes to redis-py as it is, or an
            asyncio client of redis-py of the caller's, which stays open.
        namespace: Any string. Stores of other namespaces on the server see nothing of this one.
        filters: Top-level metadata keys that queries may filter by.
        item_type: Called with the five fields by keyword, to build what is handed out.
        coalesce: Send the `store` calls of one tick of the event loop as one request, and the
            `retrieve` calls too.
        index: `query-engine` uses the search engine of Redis 8 and Redis Stack; `keyspace` plain
            sorted sets, on any Redis or Valkey.
        durability: What an acknowledged write survives, at the least. A server that keeps less is
            refused: `crash` needs an append-only file, `power` also `appendfsync always`.
        ttl: Seconds after which an item goes; None: it stays.
        allow_eviction: Take a server whose `maxmemory-policy` may evict items.
        settings: How keys begin, sizes and timeouts.
        transport: Stands in the place of the server, as the fake in `adapter_redis.testing` does; the
            URL is not looked at then.

    Raises:
        MemoryAdapterError: An option is not legal. The message does not show the URL.
    """

    # Without item_type the items are MemoryItem, whatever class the caller expects.
    @overload
    def __init__(
        self: "RedisMemoryStore[MemoryItem]",
        url_or_client: "str | Redis | RedisCluster",
        **options: Unpack[RedisOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url_or_client: "str | Redis | RedisCluster",
        *,
        item_type: Callable[..., ItemT],
        **options: Unpack[RedisOptions],
    ) -> None: ...
    def __init__(  # noqa: PLR0913 - what decides about loss stands in the constructor, not in the settings
        self,
        url_or_client: "str | Redis | RedisCluster",
        *,
        namespace: str = "default",
        filters: Iterable[str] = (),
        item_type: Callable[..., ItemT] = DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
        index: IndexName = "query-engine",
        durability: Durability = "volatile",
        ttl: float | None = None,
        allow_eviction: bool = False,
        settings: RedisSettings = _DEFAULTS,
        transport: Transport | None = None,
    ) -> None:
        keys = check_filter_keys(filters)
        _check_options(namespace, settings, durability, ttl, allow_eviction)
        finder = _index(index)(Space.of(settings.prefix, namespace))
        self._durability: Durability = durability
        self._score_meaning = finder.score_meaning
        super().__init__(
            RedisDriver(
                transport or _transport(url_or_client, index, settings),
                finder,
                settings,
                durability=durability,
                ttl=ttl,
                allow_eviction=allow_eviction,
            ),
            manifest=_manifest(keys),
            projection=PROJECTION,
            item_type=item_type,
            coalesce=coalesce,
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Make the store that a URL names.

        Args:
            url: As redis-py reads it.
            options: Options of the constructor. What `RedisSettings` has may stand beside them.

        Raises:
            MemoryAdapterError: The URL says something else. The message does not show it.
        """
        settings = {name: options.pop(name) for name in _SETTINGS & options.keys()}
        if settings:
            options["settings"] = replace(options.get("settings", _DEFAULTS), **settings)
        return cls(url, **options)

    @property
    def durability(self) -> Durability:
        """What an acknowledged write survives, at the least."""
        return self._durability

    async def close(self) -> None:
        """Wait for the calls that are under way, then close every connection of our own. Idempotent.

        An injected client is left open.

        Raises:
            MemoryAdapterError: Something could not be released; the rest was. Raised once.
        """
        await super().close()
        await self._mapped(
            "close", self._driver.close
        )  # a first call that was cancelled may have left a connection

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace itself.

        For a namespace that is not used any more. Every store of it, this one too, is unavailable
        afterwards; a new one makes the namespace anew. A key that is not this adapter's stays.

        Raises:
            MemoryAdapterUnavailable: The server was not reached, or the namespace is gone already.
            MemoryAdapterError: Redis refused.
        """
        driver: RedisDriver = self._driver  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        await self._call("drop_namespace", driver.drop_namespace, write=True)


def _index(name: object) -> type[Index]:
    if name == "keyspace":
        return KeyspaceIndex
    if name == "query-engine":
        from .query_engine import QueryEngineIndex  # noqa: PLC0415 - only one of the two is used

        return QueryEngineIndex
    raise MemoryAdapterError('index is "query-engine" or "keyspace"')


def _manifest(filters: frozenset[str]) -> MemoryAdapterManifest:
    return MemoryAdapterManifest(
        adapter="redis",
        native_item_fields=frozenset({"id", "created_at", "metadata", "content", "tags"}),
        dropped_item_fields=frozenset(),
        supported_filters=filters | TIME_FILTERS,
        search_consistency="immediate",
        retrieve_fidelity="lossy",
        search_fidelity="lossy",
        search_returns_tags=True,
        preserves_metadata=False,
    )


def _check_options(
    namespace: object, settings: object, durability: object, ttl: object, allow_eviction: object
) -> None:
    if not isinstance(namespace, str):
        raise MemoryAdapterError("namespace must be a str")
    if not isinstance(settings, RedisSettings):
        raise MemoryAdapterError("settings must be RedisSettings")
    if not server.is_durability(durability):
        raise MemoryAdapterError('durability is "power", "crash" or "volatile"')
    if ttl is not None:
        check_seconds("ttl", ttl, above=0.0)
    if not isinstance(allow_eviction, bool):
        raise MemoryAdapterError("allow_eviction must be a bool")


def _transport(url_or_client: Any, index: IndexName, settings: RedisSettings) -> Transport:
    if isinstance(url_or_client, str):
        _check_url(url_or_client)
        return ServerTransport(url_or_client, settings)
    if "redis" in sys.modules:  # else nobody can have made a client
        from . import client  # noqa: PLC0415 - the client library is loaded already

        if client.is_client(url_or_client):
            return ClientTransport(url_or_client, settings)
        if client.is_cluster(url_or_client):
            if index == "query-engine":
                raise MemoryAdapterError('on a cluster, index="keyspace" is needed')
            return ClusterTransport(url_or_client, settings)
    raise MemoryAdapterError("a URL or an asyncio client of redis-py is needed")


def _check_url(url: str) -> None:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise MemoryAdapterError("the URL of a Redis store begins with redis://, rediss:// or unix://")
