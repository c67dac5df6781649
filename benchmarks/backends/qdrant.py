"""Qdrant: our store and the raw client, over a server that looks nothing up.

No Qdrant is at hand where these benchmarks run, and one would not change what is compared: the same
requests, made by our store and by `AsyncQdrantClient` alone. So both speak to canned answers in
another process (see `qdrant_server`), and the times are those of the client and the wire. One of
ours goes by gRPC, to a server of its own that gives the same answers (`qdrant_grpc_server`); it
stands beside the same raw client by REST, and so beside ours.

Raw makes the calls of our driver with the same limits of connections, builds its points and its
items with the functions of core and of the adapter, and its conditions with the client's own models.
What is left of the difference is the store itself.
"""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
from qdrant_client import AsyncQdrantClient, models

from adapter_core import (
    ItemFields,
    MemoryItem,
    MemoryQuery,
    Record,
    check_item,
    facet_token,
    index_tokens,
    namespace_token,
    tag_token,
    term_token,
    terms,
)
from adapter_qdrant import QdrantMemoryStore, QdrantSettings, driver, finding, points, schema
from benchmarks.bars import QDRANT
from benchmarks.contender import Contender
from benchmarks.machine import installed
from benchmarks.workload import FILTERS

NAMESPACE = "default"
INDEXES = "tags, metadata, text, time"
DURABILITY = "none: answers are canned"
BARS = QDRANT
SIZES = (1_000,)
"""Nothing is looked up, so no other size differs."""

_GUARD = [*driver.GUARD]
_QUORUM = models.ReadConsistencyType.QUORUM


def contenders() -> list[Contender]:
    """Give all."""
    return [
        Ours("ours", coalesce=True),
        OursByGrpc("ours, gRPC", coalesce=True),
        Ours("not coalescing", coalesce=False),
        Raw(),
    ]


def versions() -> dict[str, str]:
    """Give the versions of the distributions."""
    return installed(("adapter-qdrant", "qdrant-client", "httpx", "grpcio"))


class CannedContender(Contender):
    """A contender with a server of its own."""

    indexes = INDEXES
    durability = DURABILITY
    server = "benchmarks.qdrant_server"

    async def setup(self, folder: Path) -> None:  # noqa: ARG002 - the server keeps no file
        command = (sys.executable, "-m", self.server)
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603, ASYNC220
        assert self._server.stdout is not None
        await self._open(self._server.stdout.readline().strip())

    async def close(self) -> None:
        try:
            await self._shut()
        finally:
            self._server.communicate()  # its input ends, and so does it

    async def _open(self, url: str) -> None:
        raise NotImplementedError

    async def _shut(self) -> None:
        raise NotImplementedError


class Ours(CannedContender):
    """The store of adapter-qdrant."""

    role = "ours"

    def __init__(self, name: str, *, coalesce: bool) -> None:
        self.name = name
        self.full_name = f"QdrantMemoryStore, coalesce={coalesce}"
        self._coalesce = coalesce

    async def _open(self, url: str) -> None:
        self._store = QdrantMemoryStore(url, namespace=NAMESPACE, filters=FILTERS, coalesce=self._coalesce)

    async def _shut(self) -> None:
        await self._store.close()

    async def store(self, item: MemoryItem) -> None:
        await self._store.store(item)

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        await self._store.store_many(items)

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        return await self._store.retrieve(item_id)

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._store.search(query)

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._store.search(query)


class OursByGrpc(Ours):
    """The same store, which goes by gRPC."""

    server = "benchmarks.qdrant_grpc_server"

    def __init__(self, name: str, *, coalesce: bool) -> None:
        super().__init__(name, coalesce=coalesce)
        self.full_name += ", grpc_port=…"

    async def _open(self, url: str) -> None:
        self._store = QdrantMemoryStore(
            url,
            namespace=NAMESPACE,
            filters=FILTERS,
            coalesce=self._coalesce,
            settings=QdrantSettings(grpc_port=urlsplit(url).port),
        )


class Raw(CannedContender):
    """`AsyncQdrantClient`, for the calls and the queries of this benchmark and no others."""

    name = "raw"
    full_name = "AsyncQdrantClient, REST"
    role = "raw"

    async def _open(self, url: str) -> None:
        settings = QdrantSettings()
        # the collection is made as ours is
        async with QdrantMemoryStore(url, namespace=NAMESPACE) as store:
            await store.retrieve(UUID(int=0))
        limits = httpx.Limits(
            max_connections=settings.pool_size, max_keepalive_connections=settings.pool_size
        )
        self._client = AsyncQdrantClient(
            url=url, timeout=settings.timeout, check_compatibility=False, limits=limits
        )
        self._collection = settings.collection
        self._space = namespace_token(NAMESPACE)
        self._marker = points.namespace_id(self._space)
        self._signed = schema.signature_text(schema.signature(None))

    async def _shut(self) -> None:
        await self._client.close()

    async def store(self, item: MemoryItem) -> None:
        await self._put([self._point(item)])

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        await self._put([self._point(item) for item in items])

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        point = str(points.point_id(self._space, item_id))
        wanted = [point, str(self._marker)]
        found = await self._client.retrieve(
            self._collection, wanted, with_payload=[*driver.READ], consistency=_QUORUM
        )
        known = {record.id: record.payload or {} for record in found}
        assert str(self._marker) in known
        return _item(known[point], tags=True) if point in known else None

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.tags
        (tag,) = query.tags
        ((key, value),) = query.filters.items()
        order = models.OrderBy(key="created_at", direction=models.Direction.DESC)
        conditions = [_equals("tags", tag_token(tag)), _equals("facets", facet_token(key, value))]
        return await self._found(models.OrderByQuery(order_by=order), conditions, query.limit)

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        assert query.text
        tokens = [term_token(term) for term in terms(query.text, asked=True)]
        vector = points.asked_vector(tokens)
        nearest = models.NearestQuery(
            nearest=models.SparseVector(indices=[*vector.indices], values=[*vector.values])
        )
        corpus = models.Filter(must=self._ours())
        return await self._found(
            nearest,
            [_equals("terms", token) for token in tokens],
            query.limit,
            using=points.TERMS_VECTOR,
            params=models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus)),
        )

    async def _found(
        self, query: Any, conditions: Sequence[Any], limit: int, **options: Any
    ) -> Sequence[MemoryItem]:
        probe = models.QueryRequest(
            filter=models.Filter(must=[models.HasIdCondition(has_id=[str(self._marker)])]),
            limit=1,
            with_payload=_GUARD,
        )
        search = models.QueryRequest(
            query=query,
            filter=models.Filter(must=[*self._ours(), *conditions]),
            limit=limit + 1,
            with_payload=[*finding.FIELDS],
            **options,
        )
        marker, answer = await self._client.query_batch_points(
            self._collection, [probe, search], consistency=_QUORUM
        )
        self._check(marker.points[0])
        return [_item(hit.payload or {}, tags=False) for hit in answer.points[:limit]]

    async def _put(self, written: Sequence[models.PointStruct]) -> None:
        for begin in range(0, len(written), driver.MAX_POINTS):
            chunk = written[begin : begin + driver.MAX_POINTS]
            wanted = [str(self._marker), *(str(point.id) for point in chunk)]
            marker, *others = await self._client.retrieve(
                self._collection, wanted, with_payload=_GUARD, consistency=_QUORUM
            )
            self._check(marker)
            assert not others, "only new items are measured"
            result = await self._client.upsert(
                self._collection, chunk, wait=True, update_filter=models.Filter(must=self._ours())
            )
            if result.status is not models.UpdateStatus.COMPLETED:
                raise ValueError("not written")

    def _check(self, marker: Any) -> None:
        if marker.payload["indexed_as"] != self._signed or marker.payload["unfinished"]:
            raise ValueError("indexed in another way")

    def _point(self, item: MemoryItem) -> models.PointStruct:
        fields = check_item(item)
        document = points.packed(fields, with_text=False)
        record = Record(fields.id, fields.created_at, document, *index_tokens(fields))
        vector = points.term_vector(record.terms)
        weights = models.SparseVector(indices=[*vector.indices], values=[*vector.values])
        return models.PointStruct(
            id=str(points.point_id(self._space, fields.id)),
            payload=dict(points.payload(self._space, self._signed, record)),
            vector={points.TERMS_VECTOR: weights},
        )

    def _ours(self) -> list[Any]:
        return [_equals("namespace", self._space), _equals("record", points.ITEM)]


def _equals(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _item(payload: Any, *, tags: bool) -> MemoryItem:
    fields: ItemFields = points.unpacked(points.document_of(payload, with_tags=tags))
    return MemoryItem(
        id=fields.id,
        created_at=fields.created_at,
        metadata=fields.metadata,
        content=fields.content,
        tags=fields.tags,
    )
