"""A server for the benchmark of the Qdrant store: it speaks Qdrant's REST API, and looks nothing up.

`python -m benchmarks.qdrant_server` prints its port, and ends with its standard input. It runs in a
process of its own, so that its work is not done by the interpreter that is measured. It keeps what
is written, finds it by id, and answers every search with the last points that were written. So the
times are those of the client and of the wire; of a Qdrant they say nothing.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic_core import from_json

from adapter_qdrant.stub import QdrantStub, Request, Response, failure, success

VERSION = "1.20.0"
"""What the server says it is: the client's own version."""

_DONE = success({"operation_id": 1, "status": "completed"})


class CannedEngine:
    """One collection, and answers that cost next to nothing."""

    def __init__(self) -> None:
        self._made: dict[str, Any] | None = None
        self._indexes: dict[str, Any] = {}
        self._points: dict[str, dict[str, Any]] = {}
        self._routes: Mapping[tuple[str, str], Callable[[Any], bytes]] = {
            ("PUT", ""): self._create,
            ("GET", ""): self._describe,
            ("PUT", "index"): self._index,
            ("PUT", "points"): self._write,
            ("POST", "points"): self._read,
            ("POST", "points/query/batch"): self._search,
            ("POST", "points/count"): self._count,
        }

    async def answer(self, request: Request) -> Response:
        if request.path == "/":
            return Response(200, json.dumps({"title": "canned answers", "version": VERSION}).encode())
        if self._made is None and request.method != "PUT":
            return Response(404, failure("Not found: Collection doesn't exist!"))
        route = self._routes[request.method, request.operation]
        return Response(200, route(from_json(request.body) if request.body else None))

    async def close(self) -> None:
        pass

    def _create(self, body: Any) -> bytes:
        self._made = body
        return success(result=True)

    def _describe(self, _body: None) -> bytes:
        assert self._made is not None
        made: dict[str, Any] = self._made
        vectors = {name: made[name] for name in ("vectors", "sparse_vectors") if made.get(name)}
        return success(
            {
                "status": "green",
                "optimizer_status": "ok",
                "segments_count": 1,
                "config": {
                    "params": vectors,
                    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
                    "optimizer_config": OPTIMIZER,
                    "metadata": self._made.get("metadata"),
                },
                "payload_schema": self._indexes,
            }
        )

    def _index(self, body: Any) -> bytes:
        schema = body["field_schema"]
        self._indexes[body["field_name"]] = {"data_type": schema["type"], "params": schema, "points": 0}
        return _DONE

    def _write(self, body: Any) -> bytes:
        for point in body["points"]:
            self._points[point["id"]] = point["payload"]
        return _DONE

    def _read(self, body: Any) -> bytes:
        known = (one for one in body["ids"] if one in self._points)
        return success([self._found(one, body["with_payload"]) for one in known])

    def _search(self, body: Any) -> bytes:
        return success([{"points": self._hits(search)} for search in body["searches"]])

    def _hits(self, search: Any) -> Sequence[Any]:
        (first, *_) = search["filter"]["must"]
        if ids := first.get("has_id"):
            chosen = [one for one in ids if one in self._points]
        else:
            newest = (one for one in reversed(self._points) if "item" in self._points[one])
            chosen = [*islice(newest, search["limit"])]
        return [
            {
                **self._found(one, search["with_payload"]),
                "version": 1,
                "score": float(len(chosen) - place),
                "order_value": self._points[one].get("created_at"),
            }
            for place, one in enumerate(chosen)
        ]

    def _found(self, point: str, fields: Sequence[str]) -> dict[str, Any]:
        payload = self._points[point]
        return {"id": point, "payload": {name: payload[name] for name in fields if name in payload}}

    def _count(self, _body: Any) -> bytes:
        return success({"count": len(self._points)})


OPTIMIZER: Mapping[str, Any] = {
    "deleted_threshold": 0.2,
    "vacuum_min_vector_number": 1000,
    "default_segment_number": 0,
    "flush_interval_sec": 5,
}


async def _serve() -> None:
    async with QdrantStub(CannedEngine(), log=False) as stub:
        sys.stdout.write(f"{stub.url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
