"""A server for the benchmark of the Qdrant store by gRPC: like `qdrant_server`, it looks nothing up.

`python -m benchmarks.qdrant_grpc_server` prints its URL, and ends with its standard input. It gives
the answers of `qdrant_server`, so that two ways to a server are compared and not two servers.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from qdrant_client import grpc

from adapter_qdrant.errors import grpcio
from adapter_qdrant.stub import HOST
from benchmarks.qdrant_server import OPTIMIZER, VERSION

_DONE = grpc.PointsOperationResponse(
    result=grpc.UpdateResult(operation_id=1, status=grpc.UpdateStatus.Completed)
)


class CannedService:
    """One collection, and answers that cost next to nothing."""

    def __init__(self) -> None:
        self._made: Any = None
        self._indexes: dict[str, Any] = {}
        self._points: dict[str, Mapping[str, Any]] = {}

    def handlers(self) -> Sequence[Any]:
        """Give what a server of grpcio is made of."""
        points = {
            "CreateFieldIndex": (self._index, grpc.CreateFieldIndexCollection),
            "Upsert": (self._write, grpc.UpsertPoints),
            "Get": (self._read, grpc.GetPoints),
            "QueryBatch": (self._search, grpc.QueryBatchPoints),
            "Count": (self._count, grpc.CountPoints),
        }
        collections = {
            "Create": (self._create, grpc.CreateCollection),
            "Get": (self._describe, grpc.GetCollectionInfoRequest),
        }
        health = {"HealthCheck": (self._version, grpc.HealthCheckRequest)}
        services: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
            "Points": points,
            "Collections": collections,
            "Qdrant": health,
        }
        return [_service(name, methods) for name, methods in services.items()]

    async def _version(self, _request: Any, _context: Any) -> Any:
        return grpc.HealthCheckReply(title="canned answers", version=VERSION)

    async def _create(self, request: Any, _context: Any) -> Any:
        self._made = request
        return grpc.CollectionOperationResponse(result=True)

    async def _describe(self, _request: Any, context: Any) -> Any:
        made = self._made
        if made is None:
            return await context.abort(grpcio.StatusCode.NOT_FOUND, "Not found: Collection doesn't exist!")
        params = grpc.CollectionParams(
            vectors_config=made.vectors_config, sparse_vectors_config=made.sparse_vectors_config
        )
        info = grpc.CollectionInfo(
            status=grpc.CollectionStatus.Green,
            optimizer_status=grpc.OptimizerStatus(ok=True),
            config=grpc.CollectionConfig(
                params=params,
                hnsw_config=grpc.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=10_000),
                optimizer_config=grpc.OptimizersConfigDiff(**OPTIMIZER),
                wal_config=grpc.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
                metadata=made.metadata,
            ),
            payload_schema=self._indexes,
        )
        return grpc.GetCollectionInfoResponse(result=info)

    async def _index(self, request: Any, _context: Any) -> Any:
        self._indexes[request.field_name] = grpc.PayloadSchemaInfo(data_type=grpc.PayloadSchemaType.Keyword)
        return _DONE

    async def _write(self, request: Any, _context: Any) -> Any:
        for point in request.points:
            self._points[point.id.uuid] = {name: point.payload[name] for name in point.payload}
        return _DONE

    async def _read(self, request: Any, _context: Any) -> Any:
        wanted = request.with_payload.include.fields
        known = (one.uuid for one in request.ids if one.uuid in self._points)
        found = [grpc.RetrievedPoint(id=_id(one), payload=self._found(one, wanted)) for one in known]
        return grpc.GetResponse(result=found)

    async def _search(self, request: Any, _context: Any) -> Any:
        return grpc.QueryBatchResponse(
            result=[grpc.BatchResult(result=self._hits(search)) for search in request.query_points]
        )

    def _hits(self, search: Any) -> Sequence[Any]:
        first = search.filter.must[0]
        if first.HasField("has_id"):
            chosen = [one.uuid for one in first.has_id.has_id if one.uuid in self._points]
        else:
            newest = (one for one in reversed(self._points) if "item" in self._points[one])
            chosen = [*islice(newest, search.limit)]
        return [
            grpc.ScoredPoint(
                id=_id(one),
                payload=self._found(one, search.with_payload.include.fields),
                version=1,
                score=float(len(chosen) - place),
                order_value=self._order(one),
            )
            for place, one in enumerate(chosen)
        ]

    def _order(self, point: str) -> Any:
        value = self._points[point].get("created_at")
        return None if value is None else grpc.OrderValue(float=value.double_value)

    def _found(self, point: str, wanted: Sequence[str]) -> Mapping[str, Any]:
        payload = self._points[point]
        return {name: payload[name] for name in wanted if name in payload}

    async def _count(self, _request: Any, _context: Any) -> Any:
        return grpc.CountResponse(result=grpc.CountResult(count=len(self._points)))


def _id(point: str) -> Any:
    return grpc.PointId(uuid=point)


def _serialized(answer: Any) -> bytes:
    message: bytes = answer.SerializeToString()
    return message


def _service(name: str, methods: Mapping[str, tuple[Any, Any]]) -> Any:
    handlers = {
        method: grpcio.unary_unary_rpc_method_handler(
            call,
            request_deserializer=kind.FromString,
            response_serializer=_serialized,
        )
        for method, (call, kind) in methods.items()
    }
    return grpcio.method_handlers_generic_handler(f"qdrant.{name}", handlers)


async def _serve() -> None:
    server = grpcio.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers(CannedService().handlers())
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    sys.stdout.write(f"http://{HOST}:{port}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve())
