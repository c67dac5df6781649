"""The one module that uses qdrant_client, with `errors`; it is loaded when a store connects."""

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from . import errors
from .settings import QdrantSettings
from .transport import (
    Acknowledgement,
    CollectionState,
    Filter,
    Found,
    IndexKind,
    NewCollection,
    Point,
    Search,
    Sparse,
    UpdateMode,
)

T = TypeVar("T")

MEMORY = ":memory:"
PATH = "path:"

_CHANNEL: Mapping[str, Any] = {
    "grpc.enable_retries": 0,
    # an outage is over when the server is back; by itself a channel waits up to two minutes longer
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
}
_INDEXES: Mapping[IndexKind, Any] = {
    "keyword": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "float": models.FloatIndexParams(type=models.FloatIndexType.FLOAT),
    "integer": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=False),
}


class Client:
    """One collection through `AsyncQdrantClient`.

    Args:
        place: A URL, `:memory:`, or `path:` and a folder; or a client of the caller's, which stays open.
        settings: The collection, and how it is spoken to.
        api_key: Of the server; None: none.

    Raises:
        MemoryAdapterUnavailable: The folder is in use, or cannot be.
        MemoryAdapterError: The client cannot read the URL.
    """

    def __init__(self, place: str | AsyncQdrantClient, settings: QdrantSettings, api_key: str | None) -> None:
        self._is_ours = isinstance(place, str)
        self._client = _made(place, settings, api_key) if isinstance(place, str) else place
        inner: Any = getattr(self._client, "_client", None)
        self.is_local = isinstance(inner, AsyncQdrantLocal)
        self.is_volatile = self.is_local and inner.location == MEMORY
        self.replicated = False
        self._name = settings.collection
        self._settings = settings
        consistency = settings.read_consistency
        # always asked for: a shard of one replica answers as it would without, and a collection may get
        # further replicas while a store is open
        self._consistency = (
            consistency if isinstance(consistency, int) else models.ReadConsistencyType(consistency)
        )
        # not asked for where there is one replica, which would do the writes of a shard one by one
        self._ordering = models.WriteOrdering(settings.write_ordering)

    @property
    def native(self) -> AsyncQdrantClient:
        """The client itself, for what the adapter does not do."""
        return self._client

    async def close(self) -> None:
        if self._is_ours:
            await self._client.close()

    # Set-up

    async def version(self) -> str:
        return (await self._asked(self._client.info())).version

    async def describe(self) -> CollectionState | None:
        try:
            info = await self._asked(self._client.get_collection(self._name))
        except MemoryAdapterUnavailable as error:
            if isinstance(error, errors.CollectionGone):
                return None
            raise
        params = info.config.params
        vectors = params.vectors
        dense = vectors if isinstance(vectors, dict) else {} if vectors is None else {"": vectors}
        return CollectionState(
            metadata=info.config.metadata or {},
            # an index has no effect here
            indexes=None if self.is_local else frozenset(info.payload_schema),
            dense={name: vector.size for name, vector in dense.items()},
            sparse=frozenset(params.sparse_vectors or ()),
            replicas=params.replication_factor or 1,
            required_writes=params.write_consistency_factor or 1,
        )

    async def create(self, collection: NewCollection) -> None:
        await self._made_already(
            self._client.create_collection(
                self._name,
                vectors_config={name: _vector(size) for name, size in collection.dense.items()},
                sparse_vectors_config={
                    name: models.SparseVectorParams(modifier=models.Modifier.IDF)
                    for name in collection.sparse
                },
                metadata=dict(collection.metadata),
                shard_number=self._settings.shard_number,
                replication_factor=self._settings.replication_factor,
                write_consistency_factor=self._settings.required_writes,
            )
        )

    async def add_index(self, field: str, kind: IndexKind) -> None:
        await self._asked(self._client.create_payload_index(self._name, field, _INDEXES[kind], wait=True))

    async def add_vector(self, name: str, size: int) -> None:
        wanted = models.DenseVectorConfig(size=size, distance=models.Distance.COSINE)
        config = models.DenseVectorNameConfig(dense=wanted)
        await self._made_already(self._client.create_vector_name(self._name, name, config))

    async def _made_already(self, making: Awaitable[Any]) -> None:
        """Make something, unless another store has made it meanwhile."""
        try:
            await self._asked(making)
        except Exception as error:
            # the set-up looks afterwards whether it is there
            is_there = isinstance(error, ValueError) if self.is_local else errors.is_conflict(error)
            if not is_there:
                raise

    # Points

    async def upsert(self, points: Sequence[Point], only_over: Filter, mode: UpdateMode) -> Acknowledgement:
        written = [
            models.PointStruct(id=str(point.id), payload=dict(point.payload), vector=_vectors(point))
            for point in points
        ]
        return await self._acknowledged(
            self._client.upsert(
                self._name,
                written,
                wait=True,
                ordering=self._ordering if self.replicated else None,
                update_filter=_filter(only_over),
                update_mode=None if mode == "upsert" else models.UpdateMode(mode),
            )
        )

    async def delete(self, condition: Filter) -> Acknowledgement:
        return await self._acknowledged(
            self._client.delete(
                self._name,
                models.FilterSelector(filter=_filter(condition)),
                wait=True,
                ordering=self._ordering if self.replicated else None,
            )
        )

    async def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        records = await self._asked(
            self._client.retrieve(
                self._name, list(map(str, ids)), with_payload=list(fields), consistency=self._consistency
            )
        )
        return [_found(record) for record in records]

    async def search(self, searches: Sequence[Search]) -> Sequence[Sequence[Found]]:
        requests = [_request(search) for search in searches]
        answers = await self._asked(
            self._client.query_batch_points(self._name, requests, consistency=self._consistency)
        )
        return [
            [_found(hit, hit.score, _number(hit.order_value)) for hit in answer.points] for answer in answers
        ]

    async def scroll(
        self, condition: Filter, fields: Sequence[str], start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        records, following = await self._asked(
            self._client.scroll(
                self._name,
                _filter(condition),
                limit=limit,
                offset=None if start is None else str(start),
                with_payload=list(fields),
                consistency=self._consistency,
            )
        )
        return [_found(record) for record in records], None if following is None else _point_id(following)

    async def count(self, condition: Filter) -> int:
        return (
            await self._asked(self._client.count(self._name, count_filter=_filter(condition), exact=True))
        ).count

    # Answers and errors

    async def _acknowledged(self, writing: Awaitable[models.UpdateResult]) -> Acknowledgement:
        result = await self._asked(writing)
        return Acknowledgement(result.operation_id, str(result.status))

    async def _asked(self, request: Awaitable[T]) -> T:
        """Wait for an answer, and raise an error that shows nothing of what was sent or read."""
        try:
            return await request
        except errors.FAILURES as error:
            failure = errors.local(error) if self.is_local else errors.safe(error)
        # raised outside the handler, whose error would still be shown as the context
        raise failure


def is_client(value: object) -> bool:
    """Whether this is an asynchronous client."""
    return isinstance(value, AsyncQdrantClient)


def _made(place: str, settings: QdrantSettings, api_key: str | None) -> AsyncQdrantClient:
    # the client would make the parents too
    if place.startswith(PATH) and not Path(place.removeprefix(PATH)).absolute().parent.is_dir():
        raise MemoryAdapterUnavailable("the folder cannot be used: the one that holds it is missing")
    try:
        if place == MEMORY:
            return AsyncQdrantClient(MEMORY)
        if place.startswith(PATH):
            return AsyncQdrantClient(path=place.removeprefix(PATH))
        # the client keeps no connection to this machine alive unless it is told to
        limits = httpx.Limits(
            max_connections=settings.pool_size, max_keepalive_connections=settings.pool_size
        )
        return AsyncQdrantClient(
            url=place,
            api_key=api_key,
            timeout=settings.timeout,
            check_compatibility=False,  # it would ask from a thread of its own; the set-up asks itself
            limits=limits,
            **({} if settings.grpc_port is None else _by_grpc(settings.grpc_port)),
        )
    except RuntimeError as error:
        raise MemoryAdapterUnavailable("the folder is in use by another client") from error
    except OSError as error:
        raise MemoryAdapterUnavailable(f"the folder cannot be used ({type(error).__name__})") from error
    except ValueError as error:
        reason = type(error).__name__
    raise MemoryAdapterError(f"the client cannot read the URL ({reason})")


def _by_grpc(port: int) -> dict[str, Any]:
    # the client's channels share one connection, whatever their number
    return {"prefer_grpc": True, "grpc_port": port, "grpc_options": dict(_CHANNEL)}


def _vector(size: int) -> models.VectorParams:
    return models.VectorParams(size=size, distance=models.Distance.COSINE)


def _vectors(point: Point) -> dict[str, Any]:
    return {
        name: models.SparseVector(indices=list(vector.indices), values=list(vector.values))
        if isinstance(vector, Sparse)
        else list(vector)
        for name, vector in point.vectors.items()
    }


def _filter(condition: Filter) -> models.Filter:
    """Build a filter of the kinds that `points` makes; the client's own reading of one is slow."""
    must, must_not = condition.get("must"), condition.get("must_not")
    return models.Filter(
        must=None if must is None else list(map(_condition, must)),
        must_not=None if must_not is None else list(map(_condition, must_not)),
    )


def _condition(part: Mapping[str, Any]) -> models.Condition:
    if "has_id" in part:
        return models.HasIdCondition(has_id=part["has_id"])
    if "is_empty" in part:
        return models.IsEmptyCondition(is_empty=models.PayloadField(**part["is_empty"]))
    if "range" in part:
        return models.FieldCondition(key=part["key"], range=models.Range(**part["range"]))
    match = part["match"]
    wanted = models.MatchAny(any=match["any"]) if "any" in match else models.MatchValue(**match)
    return models.FieldCondition(key=part["key"], match=wanted)


def _request(search: Search) -> models.QueryRequest:
    """Build a search without having the client compare each part with every kind of query it knows."""
    query: Any = None
    if search.vector is not None:
        query = models.NearestQuery.model_construct(nearest=_query_vector(search.vector))
    elif search.newest_by is not None:
        order = models.OrderBy(key=search.newest_by, direction=models.Direction.DESC)
        query = models.OrderByQuery(order_by=order)
    params = None
    if search.corpus is not None:
        corpus = models.IdfCorpusParams(corpus=_filter(search.corpus))
        params = models.SearchParams.model_construct(idf=corpus)
    return models.QueryRequest.model_construct(
        query=query,
        using=search.using,
        filter=_filter(search.condition),
        params=params,
        limit=search.limit,
        offset=search.offset or None,
        with_payload=list(search.fields),
    )


def _query_vector(vector: Sparse | Sequence[float]) -> models.SparseVector | list[float]:
    if isinstance(vector, Sparse):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return list(vector)


def _found(record: Any, score: float | None = None, order: float | None = None) -> Found:
    return Found(_point_id(record.id), record.payload or {}, score, order)


def _point_id(value: Any) -> UUID:
    """Read the id of a point; one that is a number is not ours, and gives an id that ours never have."""
    return UUID(str(value)) if not isinstance(value, int) else UUID(int=value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
