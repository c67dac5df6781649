"""For tests: what answers behind `stub`, the client's local mode under the rules of a server.

Local mode takes what a server refuses. What the documents of Qdrant say of the REST API is added
here: 404 for a collection that is not there and 409 for one that is, 400 for a body that does not
parse, 422 for a limit of 0, an index that `order_by` needs, strict mode as Qdrant Cloud has it (a
filter needs an index of a fitting kind), an update without `wait` that is only acknowledged, the
words that `ordering` and `consistency` may be. Where the server promises no order, this one takes
one that nobody can rely on.

Not imitated: shards and replicas, so `ordering` and `consistency` change nothing; a search index
that lags behind; optimisers, snapshots, aliases; limits and rates of strict mode; precision of an
approximate index; the exact words of messages. Each request is done at once, in one thread.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from pydantic import BaseModel
from qdrant_client import AsyncQdrantClient, models

from .stub import Request, Response, failure, success
from .stub_rules import (
    FACTORS,
    RANGES,
    Refused,
    check_id,
    check_parameters,
    checked_limit,
    fields,
    listed,
    parsed,
    plain,
    unreliably_tied,
    updated,
)


class _Route(NamedTuple):
    body: Any
    call: "Callable[[LocalEngine, str, Any, Request], Awaitable[Any]]"


class LocalEngine:
    """The client's local mode, asked in the words of the REST API.

    Args:
        strict: Whether collections refuse a filter without an index, as on Qdrant Cloud; a
            collection's own `strict_mode_config` comes first.
        server_version: What the server says it is; the default is the client's own version, and
            that it is a stub, so that no report on it can be taken for one on a server.
    """

    def __init__(self, *, strict: bool = True, server_version: str | None = None) -> None:
        self._client = AsyncQdrantClient(":memory:")
        self._strict = strict
        self._version = server_version or f"{version('qdrant-client')}-stub"
        self._indexes: dict[str, dict[str, dict[str, Any]]] = {}
        self._modes: dict[str, models.StrictModeConfig] = {}
        self._factors: dict[str, dict[str, int]] = {}

    async def close(self) -> None:
        await self._client.close()

    async def answer(self, request: Request) -> Response:
        try:
            result = await self._result(request)
        except Refused as refusal:
            return Response(refusal.status, failure(str(refusal)))
        except ValueError as error:  # local mode's word for a bad request
            return Response(400, failure(f"Wrong input: {error}"))
        return Response(200, result if isinstance(result, bytes) else success(plain(result)))

    async def _result(self, request: Request) -> Any:
        if request.path == "/":
            info = models.VersionInfo(title="a stub of Qdrant", version=self._version)
            return info.model_dump_json().encode()
        if (request.method, request.path) == ("GET", "/collections"):
            return await self._client.get_collections()
        if (request.method, request.path) == ("GET", "/cluster"):
            return {"status": "disabled"}
        first, _, _ = request.operation.partition("/")
        word = first if first in ("index", "vectors") else request.operation
        route = _ROUTES.get((request.method, word))
        if route is None:
            raise Refused(404, "")
        check_parameters(request.parameters)
        body = None if route.body is None else parsed(route.body, request.body)
        name = request.path.split("/")[2]
        if route.call not in (LocalEngine.create, LocalEngine.drop, LocalEngine.exists):
            await self._need(name)
        return await route.call(self, name, body, request)

    async def _need(self, name: str) -> None:
        if not await self._client.collection_exists(name):
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")

    # Collections

    async def exists(self, name: str, _body: None, _request: Request) -> Any:
        return {"exists": await self._client.collection_exists(name)}

    async def create(self, name: str, body: models.CreateCollection, _request: Request) -> Any:
        if await self._client.collection_exists(name):
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        self._indexes[name] = {}
        self._modes[name] = body.strict_mode_config or models.StrictModeConfig()
        self._factors[name] = {
            factor: given for factor in FACTORS if (given := getattr(body, factor)) is not None
        }
        return await self._client.create_collection(
            name,
            vectors_config=body.vectors,
            sparse_vectors_config=body.sparse_vectors,
            metadata=body.metadata,
        )

    async def update(self, name: str, body: models.UpdateCollection, _request: Request) -> Any:
        if body.strict_mode_config is not None:
            changed = body.strict_mode_config.model_dump(exclude_none=True)
            self._modes[name] = self._modes[name].model_copy(update=changed)
        await self._client.update_collection(
            name, sparse_vectors_config=body.sparse_vectors, metadata=body.metadata
        )
        return True

    async def drop(self, name: str, _body: None, _request: Request) -> Any:
        self._indexes.pop(name, None)
        return await self._client.delete_collection(name)

    async def describe(self, name: str, _body: None, _request: Request) -> Any:
        info: dict[str, Any] = plain(await self._client.get_collection(name))
        info["payload_schema"] = {
            field: {"data_type": schema["type"], "params": schema, "points": 0}
            for field, schema in self._indexes[name].items()
        }
        info["config"]["params"] |= self._factors[name]
        info["config"]["strict_mode_config"] = {
            "enabled": self._strict,
            **self._modes[name].model_dump(mode="json", exclude_none=True),
        }
        return info

    async def cluster(self, name: str, _body: None, _request: Request) -> Any:
        count = (await self._client.count(name)).count
        shard = {"shard_id": 0, "points_count": count, "state": "Active"}
        return {
            "peer_id": 1,
            "shard_count": 1,
            "local_shards": [shard],
            "remote_shards": [],
            "shard_transfers": [],
        }

    async def index(self, name: str, body: models.CreateFieldIndex, request: Request) -> Any:
        schema = body.field_schema
        if schema is None:
            raise Refused(400, "Bad request: no `field_schema`")
        value = plain(schema)
        self._indexes[name][body.field_name] = {"type": value} if isinstance(value, str) else value
        return updated(request)

    async def unindex(self, name: str, _body: None, request: Request) -> Any:
        self._indexes[name].pop(request.operation.removeprefix("index/"), None)
        return updated(request)

    async def add_vector(self, name: str, body: models.VectorNameConfig, request: Request) -> Any:
        vector = request.operation.removeprefix("vectors/")
        params = (await self._client.get_collection(name)).config.params
        if vector in {*plain(params.vectors or {}), *(params.sparse_vectors or {})}:
            raise Refused(409, f"Wrong input: Vector `{vector}` already exists!")
        await self._client.create_vector_name(name, vector, body)
        return updated(request)

    # Writes

    async def upsert(self, name: str, body: Any, request: Request) -> Any:
        self._check_filter(name, body.update_filter)
        await self._client.upsert(
            name,
            points=body.batch if isinstance(body, models.PointsBatch) else body.points,
            update_filter=body.update_filter,
            update_mode=body.update_mode,
        )
        return updated(request)

    async def delete(self, name: str, body: Any, request: Request) -> Any:
        self._check_filter(name, getattr(body, "filter", None))
        await self._client.delete(name, points_selector=body)
        return updated(request)

    async def set_payload(self, name: str, body: models.SetPayload, request: Request) -> Any:
        operation: Any = models.SetPayloadOperation(set_payload=body)
        return (await self._write(name, [operation], request))[0]

    async def overwrite_payload(self, name: str, body: models.SetPayload, request: Request) -> Any:
        operation: Any = models.OverwritePayloadOperation(overwrite_payload=body)
        return (await self._write(name, [operation], request))[0]

    async def vectors(self, name: str, body: models.UpdateVectors, request: Request) -> Any:
        operation: Any = models.UpdateVectorsOperation(update_vectors=body)
        return (await self._write(name, [operation], request))[0]

    async def batch(self, name: str, body: models.UpdateOperations, request: Request) -> Any:
        return await self._write(name, body.operations, request)

    async def _write(self, name: str, operations: Sequence[Any], request: Request) -> list[Any]:
        for operation in operations:
            for part in dict(operation).values():
                self._check_filter(name, getattr(part, "filter", None))
                self._check_filter(name, getattr(part, "update_filter", None))
        await self._client.batch_update_points(name, update_operations=operations)
        return [updated(request) for _ in operations]

    # Reads

    async def retrieve(self, name: str, body: models.PointRequest, _request: Request) -> Any:
        for one in body.ids:
            check_id(one)
        found = await self._client.retrieve(
            name,
            ids=body.ids,
            with_payload=True if body.with_payload is None else body.with_payload,
            with_vectors=body.with_vector or False,
        )
        return found[::-1]

    async def scroll(self, name: str, body: models.ScrollRequest, _request: Request) -> Any:
        limit = checked_limit(body.limit)
        self._check_filter(name, body.filter)
        ordered = body.order_by is not None
        if ordered:
            self._check_order(name, body.order_by)
            if body.offset is not None:
                raise Refused(400, "Wrong input: Cannot use an `offset` when using `order_by`.")
        points, following = await self._client.scroll(
            name,
            scroll_filter=body.filter,
            limit=10**9 if ordered else limit,
            order_by=body.order_by,
            offset=body.offset,
            with_payload=True if body.with_payload is None else body.with_payload,
            with_vectors=body.with_vector or False,
        )
        if ordered:
            points = unreliably_tied(points)[:limit]
        return {"points": plain(points), "next_page_offset": following}

    async def query(self, name: str, body: models.QueryRequest, _request: Request) -> Any:
        return await self._query(name, body)

    async def queries(self, name: str, body: models.QueryRequestBatch, _request: Request) -> Any:
        return [await self._query(name, one) for one in body.searches]

    async def _query(self, name: str, body: models.QueryRequest) -> Any:
        limit = checked_limit(body.limit)
        self._check_query(name, body)
        if isinstance(body.query, models.OrderByQuery):
            self._check_order(name, body.query.order_by)
        params = body.params
        return await self._client.query_points(
            name,
            query=body.query,
            prefetch=body.prefetch,
            using=body.using,
            query_filter=body.filter,
            # the rest is for indexes that local mode has not, and it warns
            search_params=params if params is not None and getattr(params, "idf", None) else None,
            score_threshold=body.score_threshold,
            limit=limit,
            offset=body.offset,
            with_payload=body.with_payload or False,
            with_vectors=body.with_vector or False,
        )

    async def count(self, name: str, body: models.CountRequest, _request: Request) -> Any:
        self._check_filter(name, body.filter)
        return await self._client.count(name, count_filter=body.filter)

    async def facet(self, name: str, body: models.FacetRequest, _request: Request) -> Any:
        self._check_filter(name, body.filter)
        self._check_index(name, body.key, ("keyword", "uuid", "integer", "bool"), facet=True)
        return await self._client.facet(
            name, key=body.key, facet_filter=body.filter, limit=checked_limit(body.limit)
        )

    # Strict mode and indexes

    def _check_query(self, name: str, body: Any) -> None:
        self._check_filter(name, body.filter)
        if (idf := getattr(body.params, "idf", None)) is not None:
            self._check_filter(name, idf.corpus)
        for prefetch in listed(body.prefetch):
            self._check_query(name, prefetch)

    def _check_filter(self, name: str, condition: BaseModel | None) -> None:
        mode = self._modes[name]
        enabled = self._strict if mode.enabled is None else mode.enabled
        if condition is None or not enabled or mode.unindexed_filtering_retrieve:
            return
        for key, kinds in fields(condition.model_dump(mode="json", exclude_none=True)):
            self._check_index(name, key, kinds)

    def _check_index(self, name: str, key: str, kinds: Sequence[str], *, facet: bool = False) -> None:
        known = self._indexes[name].get(key, {}).get("type")
        if known is None or (kinds and known not in kinds):
            if facet:
                raise Refused(400, f"Bad request: No appropriate index for faceting: `{key}`.")
            raise Refused(
                400,
                f'Bad request: Index required but not found for "{key}" of one of the following types: '
                f"[{', '.join(kinds)}]. Help: Create an index for this key or use a different filter.",
            )

    def _check_order(self, name: str, order: Any) -> None:
        key = order if isinstance(order, str) else order.key
        if self._indexes[name].get(key, {}).get("type") not in RANGES:
            raise Refused(400, f"Bad request: No range index for `order_by` key: `{key}`.")


_ROUTES: Mapping[tuple[str, str], _Route] = {
    ("GET", "exists"): _Route(None, LocalEngine.exists),
    ("PUT", ""): _Route(models.CreateCollection, LocalEngine.create),
    ("PATCH", ""): _Route(models.UpdateCollection, LocalEngine.update),
    ("DELETE", ""): _Route(None, LocalEngine.drop),
    ("GET", ""): _Route(None, LocalEngine.describe),
    ("GET", "cluster"): _Route(None, LocalEngine.cluster),
    ("PUT", "index"): _Route(models.CreateFieldIndex, LocalEngine.index),
    ("DELETE", "index"): _Route(None, LocalEngine.unindex),
    ("PUT", "vectors"): _Route(models.VectorNameConfig, LocalEngine.add_vector),
    ("PUT", "points"): _Route(models.PointsBatch | models.PointsList, LocalEngine.upsert),
    ("POST", "points/delete"): _Route(models.PointIdsList | models.FilterSelector, LocalEngine.delete),
    ("POST", "points/payload"): _Route(models.SetPayload, LocalEngine.set_payload),
    ("PUT", "points/payload"): _Route(models.SetPayload, LocalEngine.overwrite_payload),
    ("PUT", "points/vectors"): _Route(models.UpdateVectors, LocalEngine.vectors),
    ("POST", "points/batch"): _Route(models.UpdateOperations, LocalEngine.batch),
    ("POST", "points"): _Route(models.PointRequest, LocalEngine.retrieve),
    ("POST", "points/scroll"): _Route(models.ScrollRequest, LocalEngine.scroll),
    ("POST", "points/query"): _Route(models.QueryRequest, LocalEngine.query),
    ("POST", "points/query/batch"): _Route(models.QueryRequestBatch, LocalEngine.queries),
    ("POST", "points/count"): _Route(models.CountRequest, LocalEngine.count),
    ("POST", "facet"): _Route(models.FacetRequest, LocalEngine.facet),
}
