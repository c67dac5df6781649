"""The store: its options, its manifest, its projection, its life."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self, Unpack, overload
from urllib.parse import urlsplit
from uuid import UUID

from adapter_core import (
    DEFAULT_ITEM_TYPE,
    TIME_FILTERS,
    Batching,
    Deleting,
    Durability,
    ItemFields,
    ItemT,
    Loss,
    MemoryAdapterError,
    MemoryAdapterManifest,
    MemoryItem,
    Projection,
    Reindexing,
    Scanning,
    Scoring,
    StoreOptions,
    check_filter_keys,
)

from .driver import QdrantDriver
from .embedding import Embedder
from .settings import QdrantSettings
from .transport import ClientTransport, Transport

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

_MEMORY = ":memory:"
_PATH = "path:"
_SERVERS = ("http", "https")
_SCHEMES = {"qdrant+http": "http", "qdrant+https": "https"}
_PATH_SCHEME = "qdrant+path:"
_DEFAULTS = QdrantSettings()
_SETTINGS = frozenset(field.name for field in fields(QdrantSettings))

_BY_TERMS = (
    "The sum, over the asked terms, of the term's rarity among the items of the namespace and the "
    "term-frequency part of BM25 (k1 = 1.2, b = 0.75, usual length 100 terms), multiplied."
)
_NEAREST = (
    "The nearest by meaning come first: the cosine of the embedder's vectors. Text selects nothing, so every "
    "item that has a term and meets the other conditions is a hit."
)
_BY_MEANING = "The cosine of the angle between the embedder's vectors of the text and of the item: -1 to 1."


class QdrantOptions(StoreOptions, total=False):
    """The options of `QdrantMemoryStore`, but for `item_type`."""

    api_key: str | None
    embedder: Embedder | None
    settings: QdrantSettings
    transport: Transport | None


class QdrantMemoryStore(
    Batching[ItemT],
    Deleting[ItemT],
    Scanning[ItemT],
    Scoring[ItemT],
    Reindexing[ItemT],
):
    """Memories in a Qdrant collection: exact when retrieved, found a little after they were stored.

    The constructor does no I/O and does not load the client library. The first call that needs the
    server connects, and makes the collection, its indexes and the namespace if they are not there.
    `close` waits for what is under way and closes every connection but those of an injected client.

    Each item is kept as one exact JSON text, and its tags as another. A search hit carries the
    first alone: its `tags` are empty, whatever the item has.

    Several stores, tasks and processes may use one collection of a server at once. In `:memory:` and
    on a path the client itself is the engine: one store, one event loop.

    Args:
        url_or_client: `http://host:6333`, `https://…`, `path:DIR`, `:memory:`, or an
            `AsyncQdrantClient` of the caller's, which stays open.
        namespace: Any string. Stores of other namespaces in the collection see nothing of this one.
        filters: Top-level metadata keys that queries may filter by.
        item_type: Called with the five fields by keyword, to build what is handed out.
        coalesce: Send the `store` calls of one tick of the event loop as one write, and the
            `retrieve` calls as one read.
        api_key: Of the server. It is never shown.
        embedder: With one, `text` means "nearest by meaning", and selects nothing. Without one, every
            term of the text must occur, and BM25 ranks.
        settings: The collection, replication, sizes and timeouts.
        transport: Stands in the place of the server, as the fake in `adapter_qdrant.testing`
            does; the URL is not looked at then.

    Raises:
        MemoryAdapterError: An option is not legal. The message does not show the URL.
    """

    # Without item_type the items are MemoryItem, whatever class the caller expects.
    @overload
    def __init__(
        self: "QdrantMemoryStore[MemoryItem]",
        url_or_client: "str | AsyncQdrantClient",
        **options: Unpack[QdrantOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url_or_client: "str | AsyncQdrantClient",
        *,
        item_type: Callable[..., ItemT],
        **options: Unpack[QdrantOptions],
    ) -> None: ...
    def __init__(  # noqa: PLR0913 - all by name, and each with a default
        self,
        url_or_client: "str | AsyncQdrantClient",
        *,
        namespace: str = "default",
        filters: Iterable[str] = (),
        item_type: Callable[..., ItemT] = DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
        api_key: str | None = None,
        embedder: Embedder | None = None,
        settings: QdrantSettings = _DEFAULTS,
        transport: Transport | None = None,
    ) -> None:
        keys = check_filter_keys(filters)
        _check_options(namespace, api_key, embedder, settings)
        if transport is None:
            settings = _with_durability(url_or_client, settings)
            transport = ClientTransport(_place(url_or_client, api_key, settings), settings, api_key)
        self._settings = settings
        # a folder serves one client at a time
        is_path = isinstance(url_or_client, str) and url_or_client.startswith(_PATH)
        self._shared: dict[str, Any] = {"transport": transport} if is_path else {}
        self._score_meaning = _BY_TERMS if embedder is None else _BY_MEANING
        self._text_meaning = None if embedder is None else _NEAREST
        super().__init__(
            QdrantDriver(transport, namespace, settings, embedder),
            manifest=_manifest(keys),
            projection=_PROJECTION,
            item_type=item_type,
            coalesce=coalesce,
        )

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Make the store that a URL names.

        Args:
            url: `qdrant+http://host:6333`, `qdrant+https://…` or `qdrant+path:DIR`.
            options: Options of the constructor. What `QdrantSettings` has may stand beside them.

        Raises:
            MemoryAdapterError: The URL says something else. The message does not show it.
        """
        settings = {name: options.pop(name) for name in _SETTINGS & options.keys()}
        if settings:
            options["settings"] = replace(options.get("settings", _DEFAULTS), **settings)
        scheme, separator, rest = url.partition("://")
        if separator and scheme.lower() in _SCHEMES:
            return cls(f"{_SCHEMES[scheme.lower()]}://{rest}", **options)
        if url[: len(_PATH_SCHEME)].lower() == _PATH_SCHEME:
            return cls(_PATH + url[len(_PATH_SCHEME) :], **options)
        raise MemoryAdapterError("the URL begins with qdrant+http://, qdrant+https:// or qdrant+path:")

    @property
    def durability(self) -> Durability:
        """What an acknowledged write survives."""
        return self._settings.durability

    @property
    def text_meaning(self) -> str | None:
        """What the text of a query means with an embedder, in a sentence or two.

        None without one: every term must occur, as on the other adapters.
        """
        return self._text_meaning

    @property
    def creates(self) -> tuple[str, ...]:
        """What the first call makes if it is missing, for a reader."""
        return (
            f"the collection {self._settings.collection}, with its indexes",
            "in it a point that remembers how the namespace is indexed",
        )

    @property
    def shared(self) -> dict[str, Any]:
        """Options of the constructor with which other stores of this process can work beside this one.

        On a path that is the transport; elsewhere there are none.
        """
        return dict(self._shared)

    async def drop_namespace(self) -> None:
        """Delete every item, and the namespace itself.

        For a namespace that is not used any more: what another store writes at this moment may stay.
        Every store of it, this one too, is unavailable afterwards; a new one makes the namespace
        anew. A point that is not this adapter's stays.

        Raises:
            MemoryAdapterUnavailable: The server was not reached, or the namespace is gone already.
            MemoryAdapterError: Qdrant refused.
        """
        driver: QdrantDriver = self._driver  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        await self._call("drop_namespace", driver.drop_namespace, write=True)

    async def close(self) -> None:
        """Wait for the calls that are under way, then close every connection of our own. Idempotent.

        An injected client is left open.

        Raises:
            MemoryAdapterError: Something could not be released; the rest was. Raised once.
        """
        await super().close()


def _untagged(item: ItemFields) -> ItemFields:
    return item._replace(tags=[])


_PROJECTION = Projection(
    search=_untagged,
    losses=(
        Loss(
            "search-hits-without-tags",
            "tags",
            "search",
            "A search hit carries no tags; retrieve has them. Tags select all the same.",
            ItemFields(UUID(int=1), 1735689600.5, {}, "a memory", ["a tag"]),
        ),
    ),
)


def _manifest(filters: frozenset[str]) -> MemoryAdapterManifest:
    return MemoryAdapterManifest(
        adapter="qdrant",
        native_item_fields=frozenset({"id", "created_at", "metadata", "content", "tags"}),
        dropped_item_fields=frozenset(),
        supported_filters=filters | TIME_FILTERS,
        search_consistency="eventual",
        retrieve_fidelity="full",
        search_fidelity="native_fields",
        search_returns_tags=False,
        preserves_metadata=True,
    )


def _check_options(namespace: object, api_key: object, embedder: object, settings: object) -> None:
    if not isinstance(namespace, str):
        raise MemoryAdapterError("namespace must be a str")
    if api_key is not None and (not isinstance(api_key, str) or not api_key):
        raise MemoryAdapterError("api_key must be a str that is not empty")
    if embedder is not None and not isinstance(embedder, Embedder):
        raise MemoryAdapterError("embedder must be an Embedder")
    if not isinstance(settings, QdrantSettings):
        raise MemoryAdapterError("settings must be QdrantSettings")


def _with_durability(url_or_client: Any, settings: QdrantSettings) -> QdrantSettings:
    """Take data that is only in this process for what it is."""
    if url_or_client == _MEMORY:
        return replace(settings, durability="volatile")
    return settings


def _place(url_or_client: Any, api_key: str | None, settings: QdrantSettings) -> Any:
    if isinstance(url_or_client, str):
        _check_url(url_or_client, api_key, settings.grpc_port)
        return url_or_client
    if "qdrant_client" in sys.modules:  # else nobody can have made a client
        from .client import is_client  # noqa: PLC0415 - the client library is loaded already

        if is_client(url_or_client):
            if api_key is not None:
                raise MemoryAdapterError("an injected client has its own api_key")
            if settings.grpc_port is not None:
                raise MemoryAdapterError("an injected client has its own grpc_port")
            return url_or_client
    raise MemoryAdapterError("a URL, path:DIR, :memory: or an AsyncQdrantClient is needed")


def _check_url(url: str, api_key: str | None, grpc_port: int | None) -> None:
    if url == _MEMORY or (url.startswith(_PATH) and url != _PATH):
        if api_key is not None:
            raise MemoryAdapterError("an api_key is for a server")
        if grpc_port is not None:
            raise MemoryAdapterError("a grpc_port is for a server")
        return
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SERVERS:
        raise MemoryAdapterError(
            "the URL of a Qdrant store begins with http:// or https://, or is path:DIR or :memory:"
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host:
        raise MemoryAdapterError("the URL of a Qdrant store needs a host and, if any, a port number")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise MemoryAdapterError("the URL of a Qdrant store holds no more than a host, a port and a path")
