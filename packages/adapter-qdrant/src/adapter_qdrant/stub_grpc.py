"""For tests: `stub` at the other end of gRPC, with the same engines, script and log.

    async with QdrantGrpcStub(LocalEngine()) as stub:
        store = QdrantMemoryStore(stub.url, settings=QdrantSettings(grpc_port=stub.grpc_port))

Each call is put into the words of the REST API, answered by the engine, and the answer is put into
a message. Between the client and the server of grpcio stands a relay that can refuse and reset
connections. A scripted answer is said by REST too: its `status` stands for a code, its `body` for a
message, and is sent as it is if it does not stand for one. Any `cut` resets the connection.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import from_json
from qdrant_client import grpc, models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_client.http.models import QueryResponse  # `models` has another one of this name

from .errors import grpcio
from .stub import HOST, QdrantStub, Request, Response, Scripted
from .stub_rules import plain

_Code: Any = grpcio.StatusCode
CODES: Mapping[int, Any] = {
    400: _Code.INVALID_ARGUMENT,
    401: _Code.UNAUTHENTICATED,
    403: _Code.PERMISSION_DENIED,
    404: _Code.NOT_FOUND,
    408: _Code.DEADLINE_EXCEEDED,
    409: _Code.ALREADY_EXISTS,
    413: _Code.OUT_OF_RANGE,
    422: _Code.INVALID_ARGUMENT,
    429: _Code.RESOURCE_EXHAUSTED,
    500: _Code.INTERNAL,
    502: _Code.UNKNOWN,
    503: _Code.UNAVAILABLE,
    504: _Code.ABORTED,
}
"""The code that stands for the number of an answer by REST."""

_ORDERINGS = {
    grpc.WriteOrderingType.Weak: "weak",
    grpc.WriteOrderingType.Medium: "medium",
    grpc.WriteOrderingType.Strong: "strong",
}


class _Method(NamedTuple):
    """A method of a service: its message, and both ways between it and the words of REST."""

    kind: Any
    asked: Callable[[Any], Request]
    told: Callable[[Any], Any]


class QdrantGrpcStub(QdrantStub):
    """The stub for gRPC; see `QdrantStub` for its arguments and attributes."""

    _server: Any = None
    _inner_port = 0

    @property
    def grpc_port(self) -> int:
        """Where it is; it is at no other port."""
        return self._port

    async def accept(self) -> None:
        if self._server is None:
            # what is too large is refused by the stub itself
            self._server = grpcio.aio.server(options=[("grpc.max_receive_message_length", -1)])
            self._server.add_generic_rpc_handlers([self._service(name) for name in _SERVICES])
            self._inner_port = self._server.add_insecure_port(f"{HOST}:0")
            await self._server.start()
        await super().accept()

    async def close(self) -> None:
        await self.refuse()
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)
        await super().close()

    def _service(self, name: str) -> Any:
        handlers = {
            method: grpcio.unary_unary_rpc_method_handler(self._handler(one))
            for method, one in _SERVICES[name].items()
        }
        return grpcio.method_handlers_generic_handler(f"qdrant.{name}", handlers)

    # Each connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a stream server runs each client in a task
        self._serving.add(task)
        there = None
        try:
            back, there = await asyncio.open_connection(HOST, self._inner_port)
            ends = [asyncio.ensure_future(_relay(*pair)) for pair in ((reader, there), (back, writer))]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the stub is about to: the task ends here
        finally:
            self._serving.discard(task)
            writer.transport.abort()
            if there is not None:
                there.transport.abort()

    def _handler(self, method: _Method) -> Callable[[bytes, Any], Any]:
        async def handle(data: bytes, context: Any) -> bytes:
            metadata = {str(key): str(value) for key, value in context.invocation_metadata()}
            request = method.asked(method.kind.FromString(data))
            request = Request(request.method, request.path, request.parameters, metadata, request.body)
            await self._note(self.requests, request)
            # a call that is broken off is done all the same, as by REST
            response, scripted = await asyncio.shield(self._done(request))
            if scripted.cut is not None:
                await self._cut()
            if response.status != 200:
                trailing = tuple(scripted.headers.items())
                await context.abort(CODES[response.status], response.body.decode(), trailing)
            return _message(method, response.body)

        return handle

    async def _done(self, request: Request) -> tuple[Response, Scripted]:
        scripted = self._next(request)
        if scripted.hold is not None:
            await scripted.hold.wait()
        response = await self._allowed(request) if scripted.status is None else Response(scripted.status, b"")
        if scripted.body is not None:
            response = Response(response.status, scripted.body)
        await self._note(self.answers, (request, response))
        return response, scripted

    async def _cut(self) -> None:
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


def _message(method: _Method, body: bytes) -> bytes:
    """Put an answer into a message, or leave what is none as it is."""
    try:
        message: bytes = method.told(from_json(body)).SerializeToString()
    except (ValueError, LookupError, TypeError):
        return body
    return message


# The words of REST


def _request(
    method: str, message: Any, operation: str, body: Any = None, parameters: Mapping[str, str] | None = None
) -> Request:
    path = f"/collections/{message.collection_name}{operation and '/'}{operation}"
    data = b"" if body is None else TypeAdapter(Any).dump_json(plain(body))
    return Request(method, path, parameters or {}, {}, data)


def _written(message: Any) -> dict[str, str]:
    found = {"wait": "true" if message.wait else "false"}
    if message.HasField("ordering"):
        found["ordering"] = _ORDERINGS[message.ordering.type]
    return found


def _read(message: Any) -> dict[str, str]:
    if not message.HasField("read_consistency"):
        return {}
    consistency = GrpcToRest.convert_read_consistency(message.read_consistency)
    return {"consistency": str(plain(consistency))}


def _optional(message: Any, name: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    return convert(getattr(message, name)) if message.HasField(name) else None


def _payload(fields: Any) -> Any:
    return GrpcToRest.convert_payload(fields)  # pyright: ignore[reportUnknownMemberType]


def _version(_message: Any) -> Request:
    return Request("GET", "/")


def _describe(message: Any) -> Request:
    return _request("GET", message, "")


def _exists(message: Any) -> Request:
    return _request("GET", message, "exists")


def _drop(message: Any) -> Request:
    return _request("DELETE", message, "")


def _create(message: Any) -> Request:
    body = models.CreateCollection(
        vectors=_optional(message, "vectors_config", GrpcToRest.convert_vectors_config),
        sparse_vectors=_optional(message, "sparse_vectors_config", GrpcToRest.convert_sparse_vector_config),
        metadata=_payload(message.metadata),
        shard_number=_optional(message, "shard_number"),
        replication_factor=_optional(message, "replication_factor"),
        write_consistency_factor=_optional(message, "write_consistency_factor"),
    )
    return _request("PUT", message, "", body)


def _index(message: Any) -> Request:
    schema = GrpcToRest.convert_payload_schema_params(message.field_index_params)
    body = models.CreateFieldIndex(field_name=message.field_name, field_schema=schema)
    return _request("PUT", message, "index", body, _written(message))


def _vector(message: Any) -> Request:
    dense = message.dense_config
    config = models.DenseVectorConfig(size=dense.size, distance=GrpcToRest.convert_distance(dense.distance))
    body = models.DenseVectorNameConfig(dense=config)
    return _request("PUT", message, f"vectors/{message.vector_name}", body, _written(message))


def _upsert(message: Any) -> Request:
    body = models.PointsList(
        points=[GrpcToRest.convert_point_struct(point) for point in message.points],
        update_filter=_optional(message, "update_filter", GrpcToRest.convert_filter),
        update_mode=_optional(message, "update_mode", GrpcToRest.convert_update_mode),
    )
    return _request("PUT", message, "points", body, _written(message))


def _delete(message: Any) -> Request:
    body = GrpcToRest.convert_points_selector(message.points)
    return _request("POST", message, "points/delete", body, _written(message))


def _set_payload(message: Any) -> Request:
    chosen: Any = GrpcToRest.convert_points_selector(message.points_selector)
    body = models.SetPayload(
        payload=_payload(message.payload),
        points=getattr(chosen, "points", None),
        filter=getattr(chosen, "filter", None),
    )
    return _request("POST", message, "points/payload", body, _written(message))


def _get(message: Any) -> Request:
    body = models.PointRequest(
        ids=[GrpcToRest.convert_point_id(one) for one in message.ids],
        with_payload=GrpcToRest.convert_with_payload_interface(message.with_payload),
    )
    return _request("POST", message, "points", body, _read(message))


def _search(message: Any) -> Request:
    searches = [GrpcToRest.convert_query_points(one) for one in message.query_points]
    body = models.QueryRequestBatch(searches=searches)
    return _request("POST", message, "points/query/batch", body, _read(message))


def _scroll(message: Any) -> Request:
    body = models.ScrollRequest(
        filter=_optional(message, "filter", GrpcToRest.convert_filter),
        limit=_optional(message, "limit"),
        offset=_optional(message, "offset", GrpcToRest.convert_point_id),
        with_payload=GrpcToRest.convert_with_payload_interface(message.with_payload),
    )
    return _request("POST", message, "points/scroll", body, _read(message))


def _count(message: Any) -> Request:
    body = models.CountRequest(
        filter=_optional(message, "filter", GrpcToRest.convert_filter), exact=message.exact
    )
    return _request("POST", message, "points/count", body, _read(message))


# The messages


def _of(kind: Any, answer: Any) -> Any:
    return TypeAdapter[Any](kind).validate_python(answer["result"])


def _told_version(answer: Any) -> Any:
    return grpc.HealthCheckReply(title=answer["title"], version=answer["version"])


def _told_update(answer: Any) -> Any:
    result = RestToGrpc.convert_update_result(_of(models.UpdateResult, answer))
    return grpc.PointsOperationResponse(result=result)


def _told_made(answer: Any) -> Any:
    return grpc.CollectionOperationResponse(result=bool(answer["result"]))


def _told_collection(answer: Any) -> Any:
    info = RestToGrpc.convert_collection_info(_of(models.CollectionInfo, answer))
    return grpc.GetCollectionInfoResponse(result=info)


def _told_existence(answer: Any) -> Any:
    return grpc.CollectionExistsResponse(result=grpc.CollectionExists(**answer["result"]))


def _told_points(answer: Any) -> Any:
    records = _of(list[models.Record], answer)
    return grpc.GetResponse(result=[RestToGrpc.convert_record(record) for record in records])


def _told_hits(answer: Any) -> Any:
    results = [
        grpc.BatchResult(result=[RestToGrpc.convert_scored_point(hit) for hit in found.points])
        for found in _of(list[QueryResponse], answer)
    ]
    return grpc.QueryBatchResponse(result=results)


def _told_page(answer: Any) -> Any:
    page = _of(models.ScrollResult, answer)
    following = page.next_page_offset
    return grpc.ScrollResponse(
        result=[RestToGrpc.convert_record(record) for record in page.points],
        next_page_offset=None if following is None else RestToGrpc.convert_extended_point_id(following),
    )


def _told_count(answer: Any) -> Any:
    return grpc.CountResponse(result=grpc.CountResult(count=_of(models.CountResult, answer).count))


_SERVICES: Mapping[str, Mapping[str, _Method]] = {
    "Qdrant": {
        "HealthCheck": _Method(grpc.HealthCheckRequest, _version, _told_version),
    },
    "Collections": {
        "Create": _Method(grpc.CreateCollection, _create, _told_made),
        "Get": _Method(grpc.GetCollectionInfoRequest, _describe, _told_collection),
        "CollectionExists": _Method(grpc.CollectionExistsRequest, _exists, _told_existence),
        "Delete": _Method(grpc.DeleteCollection, _drop, _told_made),
    },
    "Points": {
        "CreateFieldIndex": _Method(grpc.CreateFieldIndexCollection, _index, _told_update),
        "CreateVectorName": _Method(grpc.CreateVectorNameRequest, _vector, _told_update),
        "Upsert": _Method(grpc.UpsertPoints, _upsert, _told_update),
        "Delete": _Method(grpc.DeletePoints, _delete, _told_update),
        "SetPayload": _Method(grpc.SetPayloadPoints, _set_payload, _told_update),
        "Get": _Method(grpc.GetPoints, _get, _told_points),
        "QueryBatch": _Method(grpc.QueryBatchPoints, _search, _told_hits),
        "Scroll": _Method(grpc.ScrollPoints, _scroll, _told_page),
        "Count": _Method(grpc.CountPoints, _count, _told_count),
    },
}
