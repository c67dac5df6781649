"""For tests: a loopback server that speaks the part of Qdrant's REST API that the adapter uses.

    async with QdrantStub(LocalEngine()) as stub:
        store = QdrantMemoryStore(stub.url)
        stub.script(Scripted(status=503, body=failure("no"), on="PUT"))

It stands at the other end of the wire, so that a store is run with the real client and every byte
between them. It is no Qdrant: what answers is an engine in this process (`stub_engine`), and a run
against it says nothing about a server. Answers can be scripted in the engine's place.
"""

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, unquote, urlsplit

HOST = "127.0.0.1"
MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""The server's own default for `service.max_request_size_mb`."""

_HEAD_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # linger for no time: the peer sees a reset, and no clean end
_READS = ("count", "facet", "query", "query/batch", "scroll")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came.

    Attributes:
        method: `GET`, `PUT` and so on.
        path: Decoded, without the parameters.
        parameters: Those of the query string.
        headers: By lower-case name.
        body: As it was sent.
    """

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def __str__(self) -> str:
        """Write what `Scripted.on` is looked for in, such as `PUT /collections/c/points`."""
        return f"{self.method} {self.path}"

    def json(self) -> Any:
        """Parse the body."""
        return json.loads(self.body)

    @property
    def operation(self) -> str:
        """The path behind the collection's name, such as `points/query`; empty for the collection."""
        return "/".join(self.path.split("/")[3:])

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        last = self.operation.removeprefix("points/")
        return self.method == "GET" or (self.method == "POST" and (last == "points" or last in _READS))


@dataclass(frozen=True, slots=True)
class Response:
    """One answer, as it is sent."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Engine(Protocol):
    """What answers."""

    async def answer(self, request: Request) -> Response:
        """Do what the request asks for."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """What happens to one request.

    Attributes:
        on: Found in the request's text, such as `PUT` or `points/query`; empty: any request.
        status: Of the answer; None: the engine is asked, so that the request is done.
        body: Of the answer, where it is not the engine's.
        hold: Waited for before anything is done.
        cut: After so many bytes of the answer the connection is reset, a negative number counting
            from its end; None: not at all.
        headers: Further ones.
    """

    on: str = ""
    status: int | None = None
    body: bytes | None = None
    hold: asyncio.Event | None = None
    cut: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def success(result: Any) -> bytes:
    """Write the body of an answer as the server does."""
    return json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()


def failure(message: str) -> bytes:
    """Write the body of a refusal as the server does."""
    return json.dumps({"status": {"error": message}, "time": 0.0}).encode()


class QdrantStub:
    """A server on a port of the loopback interface, for one event loop.

    Args:
        engine: What answers; `stub_engine.LocalEngine` is the client's local mode.
        api_key: What a request must have in its header `api-key`; None: nothing.
        read_only_key: Another key, with which nothing may be changed.
        log: Whether `requests` and `answers` are kept.

    Attributes:
        requests: All that came, in order.
        answers: What was answered to them, in order; one that was not sent is not there.
        url: Where it is.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        api_key: str | None = None,
        read_only_key: str | None = None,
        log: bool = True,
    ) -> None:
        self._engine = engine
        self._api_key = api_key
        self._read_only_key = read_only_key
        self._log = log
        self._script: deque[Scripted] = deque()
        self._listener: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._port = 0
        self._came = asyncio.Condition()
        self.requests: list[Request] = []
        self.answers: list[tuple[Request, Response]] = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    @property
    def grpc_port(self) -> int | None:
        """Where it speaks gRPC instead; None: nowhere."""
        return None

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._serving)

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def accept(self) -> None:
        """Listen, on the same port each time. Idempotent."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, HOST, self._port, limit=_HEAD_BYTES)
            self._port = self._listener.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """End every connection, and refuse new ones. Idempotent."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def close(self) -> None:
        """End everything."""
        await self.refuse()
        await self._engine.close()

    def script(self, *scripted: Scripted) -> None:
        """Say what happens to the next requests; each is used once, by the first that it is for."""
        self._script.extend(scripted)

    @property
    def unused(self) -> int:
        """How many scripted answers nobody has asked for yet."""
        return len(self._script)

    def forget(self) -> None:
        """Empty the log and the script."""
        self.requests.clear()
        self.answers.clear()
        self._script.clear()

    def sent(self, on: str = "") -> list[Request]:
        """Give the requests in whose text something is found."""
        return [request for request in self.requests if on in str(request)]

    async def asked(self, count: int, on: str = "") -> None:
        """Wait until so many such requests have come."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.sent(on)) >= count)

    async def answered(self, count: int, on: str = "") -> None:
        """Wait until so many such requests have their answer."""
        async with self._came:
            await self._came.wait_for(lambda: sum(on in str(one) for one, _ in self.answers) >= count)

    async def left(self) -> None:
        """Wait until every connection that is open has ended."""
        await asyncio.gather(*self._serving)

    async def ask(self, request: Request) -> Response:
        """Ask the engine itself, past the wire, the log and the script."""
        return await self._engine.answer(request)

    # Each connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a stream server runs each client in a task
        self._serving.add(task)
        try:
            while (request := await _read(reader)) is not None:
                await self._note(self.requests, request)
                if not await self._respond(request, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the stub is about to: the task ends here
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection goes on."""
        scripted = self._next(request)
        if scripted.hold is not None:
            await scripted.hold.wait()
        if scripted.status is None:
            response = await self._allowed(request)
        else:
            response = Response(scripted.status, b"")
        if scripted.body is not None:
            response = Response(response.status, scripted.body)
        await self._note(self.answers, (request, response))
        data = _encoded(response, scripted.headers)
        writer.write(data if scripted.cut is None else data[: scripted.cut])
        await writer.drain()
        if scripted.cut is not None:
            _reset(writer)
        return scripted.cut is None

    async def _note(self, log: list[Any], entry: Any) -> None:
        if self._log:
            log.append(entry)
            async with self._came:
                self._came.notify_all()

    def _next(self, request: Request) -> Scripted:
        for scripted in self._script:
            if scripted.on in str(request):
                self._script.remove(scripted)
                return scripted
        return Scripted()

    async def _allowed(self, request: Request) -> Response:
        """Ask the engine, if the key and the size let the request through."""
        key = request.headers.get("api-key")
        if self._api_key is not None and key != self._api_key and request.path != "/":
            if key is None:
                return _plain(401, "Must provide an API key or an Authorization bearer token")
            if key != self._read_only_key:
                return _plain(401, "Invalid API key or JWT")
            if not request.reads:
                return Response(403, failure("Forbidden: Write access is required"))
        if (size := len(request.body)) > MAX_REQUEST_BYTES:
            said = f"JSON payload ({size} bytes) is larger than allowed (limit: {MAX_REQUEST_BYTES} bytes)."
            return Response(400, failure(f"Payload error: {said}"))
        return await self._engine.answer(request)


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8")


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """Read one request; None when the client has ended the connection."""
    with suppress(asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        named = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in named}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Request(method, unquote(parts.path), parameters, headers, body)
    return None


def _encoded(response: Response, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"content-type: {response.content_type}",
        f"content-length: {len(response.body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body


def _reset(writer: asyncio.StreamWriter) -> None:
    peer: socket.socket = writer.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
