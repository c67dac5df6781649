"""The driver: records and criteria as hashes and scripts of Redis, for one namespace."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from adapter_core import (
    Criteria,
    DeletingDriver,
    Durability,
    Hit,
    ItemFields,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    Record,
    ReindexingDriver,
    RevisingDriver,
    ScanningDriver,
    UnrepresentableItem,
    decode_value,
)

from . import hashes, server
from .answers import ServerUnfit, json_of, text_of
from .connections import ServerTransport
from .errors import code_of, is_unavailable
from .hashes import Document
from .index import Head, Index, order_of
from .settings import RedisSettings
from .transport import Call, Script, Session, Transport

MAX_VALUE = 500_000_000
"""Bytes of one field. Redis takes no value of more than 512 MB (`proto-max-bulk-len`)."""
MAX_REQUEST = 16_000_000
"""Bytes that one script of a batch is given at most; a larger batch is several of them."""
MAX_ITEMS = 1_000
"""Items that one script of a batch writes at most: the server does nothing else meanwhile."""

PUTS_AT_ONCE = 2
"""Into how many batches many `store` calls of one tick are cut, so that the server is not idle meanwhile."""

_NEVER = float("-inf")
_EMPTYING_ROUNDS = 100  # a writer that goes on while a namespace is dropped


class RedisDriver(
    DeletingDriver[Document], ScanningDriver[Document], RevisingDriver[Document], ReindexingDriver[Document]
):
    """One namespace of a server.

    Args:
        transport: The way to Redis.
        index: How items are found; it knows the namespace's keys.
        settings: How often the server's settings are looked at.
        durability: What an acknowledged write must survive.
        ttl: Seconds that an item stays; None: for ever.
        allow_eviction: Take a server that may evict items.
    """

    def __init__(
        self,
        transport: Transport,
        index: Index,
        settings: RedisSettings,
        *,
        durability: Durability,
        ttl: float | None,
        allow_eviction: bool,
    ) -> None:
        self._transport = transport
        # a pool of the caller's may raise where ours waits for a connection
        self.puts_at_once = (
            min(PUTS_AT_ONCE, settings.pool_size) if isinstance(transport, ServerTransport) else 1
        )
        self._index = index
        self._scripts = index.scripts
        self._signature = dict(index.signature)
        signed = json.dumps(self._signature, sort_keys=True, separators=(",", ":")).encode()
        self._durability: Durability = durability
        self._allow_eviction = allow_eviction
        self._lasts = b"" if ttl is None else b"%d" % max(1, round(ttl * 1000))
        watch = (b"" if allow_eviction else b"e") + (b"" if durability == "volatile" else b"a")
        self._calm: Head = (signed, watch, b"0")
        self._watchful: Head = (signed, watch, b"1")
        self._interval = settings.check_interval
        self._looked = _NEVER
        self._behind = b""
        self._pass: tuple[bytes, bool] | None = None
        self._clean_since = b""

    # Values and errors

    def pack(self, item: ItemFields) -> Document:
        document = hashes.pack(item)
        # a character is four bytes of UTF-8 at most
        if max(map(len, document)) > MAX_VALUE // 4:
            raise UnrepresentableItem("content", "it is larger than Redis takes as one value")
        return document

    def unpack(self, document: Document) -> ItemFields:
        return hashes.unpack(document)

    def is_unavailable(self, error: Exception) -> bool:
        if isinstance(error, OSError | MemoryError):
            return True
        if type(error).__module__.partition(".")[0] == "redis":
            from .client import is_broken  # noqa: PLC0415 - redis is loaded, or this were not its error

            if is_broken(error):
                return True
        return is_unavailable(code_of(error))

    # Lifecycle

    async def open(self) -> None:
        await self._transport.open(self._prepare)
        self._looked = time.monotonic()

    async def close(self) -> None:
        await self._transport.close()

    async def _prepare(self, session: Session) -> None:
        await server.check_server(session, durability=self._durability, allow_eviction=self._allow_eviction)
        await self._index.check(session)  # before a namespace is made that this server cannot serve
        (answer,) = await session.send(self._call(self._scripts.ready))
        if answer == b"!foreign":
            raise MemoryAdapterError("the key of the namespace is another program's")
        text_of(answer)
        await self._index.prepare(session)

    # The three verbs

    async def put(self, records: Sequence[Record[Document]]) -> Sequence[UUID]:
        head = await self._head()
        chunks = list(_chunks([self._written(record) for record in records]))
        if len(chunks) > 1:
            # what can be refused is refused before the first is written
            for chunk in chunks:
                ids = b" ".join(row[0] for row in chunk)
                await self._ask(self._scripts.check, ids, head=head)
        acknowledged: list[UUID] = []
        for chunk in chunks:
            arguments = [argument for row in chunk for argument in row]
            try:
                text = await self._ask(self._scripts.put, self._lasts, *arguments, head=head)
            except Exception as error:
                if acknowledged:
                    raise _in_part(f"{len(acknowledged)} items of a large batch are stored", error) from error
                raise
            acknowledged += map(UUID, text.split())
        return acknowledged

    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, Document]:
        return dict(await self._documents(self._scripts.get, ids))

    async def find(self, criteria: Criteria) -> Sequence[Hit[Document]]:
        head = await self._head()
        with _Watching(self):
            return await self._index.find(self._transport, criteria, head)

    async def _documents(self, script: Script, ids: Sequence[UUID]) -> list[tuple[UUID, Document]]:
        found = json_of(await self._raw(script, *[str(one).encode() for one in ids], head=await self._head()))
        if type(found) is not list or len(found) != len(ids):  # pyright: ignore[reportUnknownArgumentType]
            raise MemoryAdapterError("the server gave no answer of the script")
        return [(one, document) for one, document in zip(ids, found, strict=True) if document]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]

    # Deletion

    async def delete(self, item_id: UUID) -> bool:
        return await self._ask(self._scripts.delete, str(item_id).encode()) == "1"

    async def clear(self) -> int:
        gone, behind, last = 0, b"", b""
        while behind != b"-":
            try:
                text = await self._ask(self._scripts.clear, behind, last)
            except Exception as error:
                if gone:
                    raise _in_part(f"{gone} items are deleted", error) from error
                raise
            number, cursor, newest = text.split(" ")
            gone += int(number)
            behind, last = cursor.encode(), newest.encode()
        return gone

    async def drop_namespace(self) -> None:
        """Delete every item and the namespace's own keys. A foreign key stays."""
        for _ in range(_EMPTYING_ROUNDS):
            await self.clear()
            if await self._ask(self._scripts.forget) == "1":
                return await self._index.drop(self._transport)
        raise MemoryAdapterError("drop_namespace: others go on writing to the namespace")

    # Scan

    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[Document]]:
        bounds = (_bound(criteria.created_after), _bound(criteria.created_before))
        groups = [" ".join(group).encode() for group in criteria.facets]
        cursor = str(after) if after else ""
        hits: list[Hit[Document]] = []
        while len(hits) < size:
            arguments = (cursor.encode(), b"%d" % (size - len(hits)), *bounds, *groups)
            cursor, page = json_of(await self._raw(self._scripts.page, *arguments, head=await self._head()))
            hits += [Hit(UUID(item_id), document) for item_id, document in page or ()]
            if not cursor:
                break
        return hits

    # Revisions

    async def get_revision(self, item_id: UUID) -> tuple[Document, int] | None:
        for _, document in await self._documents(self._scripts.get_revision, (item_id,)):
            return document, _revision(document)
        return None

    async def replace(self, record: Record[Document], expected_revision: int) -> int | None:
        if not 0 <= expected_revision < 2**63:
            await self.get_revision(record.id)  # None is an answer of the server, so it is asked
            return None
        arguments = (self._lasts, b"%d" % expected_revision, *self._written(record))
        text = await self._ask(self._scripts.replace, *arguments)
        return int(text) if text else None

    # Reindexing

    @property
    def signature(self) -> Mapping[str, str]:
        return self._signature

    async def remembered(self) -> Mapping[str, str]:
        text = await self._ask(self._scripts.remembered, head=self._calm)
        try:
            remembered: Any = decode_value(text)
        except ValueError as error:
            raise MemoryAdapterError("what the namespace remembers is malformed") from error
        if type(remembered) is not dict:
            raise MemoryAdapterError("what the namespace remembers is malformed")
        return remembered  # pyright: ignore[reportUnknownVariableType]

    async def outdated(self, size: int) -> Sequence[tuple[Hit[Document], int]]:
        """Look on behind where the last look ended; a pass over all items that found none ends it."""
        while True:
            arguments = (self._behind, b"%d" % size)
            answer = await self._raw(self._scripts.outdated, *arguments, head=self._calm)
            newest, cursor, rows = json_of(answer)
            if not self._behind:
                self._pass = (newest.encode(), True)
            began, clean = self._pass or (b"", False)
            self._behind = cursor.encode()
            if rows:
                self._pass = (began, False)
                return [(Hit(UUID(one), document), _revision(document)) for one, document in rows]
            if not cursor and clean:
                self._clean_since = began
                return []

    async def reindex(self, records: Sequence[tuple[Record[Document], int]]) -> None:
        arguments: list[bytes] = []
        for record, revision in records:
            # what the facets were made of is gone from the hash; they are kept beside it
            kept = tuple(hashes.field_of(record.document, "facets").split())
            again = Record(record.id, record.created_at, record.document, record.tags, kept, record.terms)
            item_id, order, text = self._indexed(again)
            fields = _bytes(self._index.fields(again))
            arguments += (item_id, b"%d" % revision, order, text, b"%d" % len(fields), *fields)
        if arguments:
            await self._ask(self._scripts.reindex, *arguments, head=self._calm)

    async def adopt(self) -> bool:
        since, self._clean_since = self._clean_since, b""
        return await self._ask(self._scripts.adopt, since, head=self._calm) == "1"

    # What several of them share

    def _written(self, record: Record[Document]) -> tuple[bytes, ...]:
        """Give the arguments that a script is given for one item."""
        fields = [
            *_bytes(record.document),
            b"facets", " ".join(record.facets).encode(),
            *_bytes(self._index.fields(record)),
        ]  # fmt: skip
        return (*self._indexed(record), b"%d" % len(fields), *fields)

    def _indexed(self, record: Record[Document]) -> tuple[bytes, bytes, bytes]:
        text = self._index.text(record).encode()
        return str(record.id).encode(), order_of(record.created_at).encode(), text

    async def _head(self) -> Head:
        """Give the first arguments of a script: now and then it looks at the server's settings too."""
        now = time.monotonic()
        if now - self._looked < self._interval:
            return self._calm
        if self._durability == "power":
            # the one setting that a script cannot read
            given = await server.read_durability(self._transport, {"aof_enabled": "1"})
            server.check_durability(given, "power")
        self._looked = now
        return self._watchful

    async def _ask(self, script: Script, *arguments: bytes, head: Head | None = None) -> str:
        return text_of(await self._raw(script, *arguments, head=head or await self._head()))

    async def _raw(self, script: Script, *arguments: bytes, head: Head) -> Any:
        with _Watching(self):
            (answer,) = await self._transport.send(self._call(script, *arguments, head=head))
            if type(answer) is bytes and answer.startswith(b"!"):
                text_of(answer)
            return answer

    def _call(self, script: Script, *arguments: bytes, head: Head | None = None) -> Call:
        return Call(script.name, (*(head or self._calm), *arguments), script, self._index.space.base)

    def look_again(self) -> None:
        """Let the next call look at the server's settings."""
        self._looked = _NEVER


class _Watching:
    """While the server is not what the store needs, every call looks whether that is over."""

    __slots__ = ("_driver",)

    def __init__(self, driver: RedisDriver) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ServerUnfit):
            self._driver.look_again()


def _bytes(texts: Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]


def _bound(created_at: float) -> bytes:
    """Give a bound as text; one that bounds nothing is empty."""
    return b"" if created_at in (float("inf"), float("-inf")) else repr(created_at).encode()


def _revision(document: Document) -> int:
    text = hashes.field_of(document, "revision")
    try:
        return int(text)
    except ValueError as error:
        raise MemoryAdapterError("a stored record is malformed: its revision is no number") from error


def _in_part(done: str, error: Exception) -> MemoryAdapterError:
    # a native message may hold values
    reason = error if isinstance(error, MemoryAdapterError) else type(error).__name__
    return MemoryAdapterUnavailable(f"{done}; as to the others: {reason}", outcome_unknown=True)


def _chunks(rows: Sequence[tuple[bytes, ...]]) -> Iterator[Sequence[tuple[bytes, ...]]]:
    """Cut a batch where one request would be too large."""
    chunk: list[tuple[bytes, ...]] = []
    size = 0
    for row in rows:
        more = sum(map(len, row))
        if chunk and (len(chunk) == MAX_ITEMS or size + more > MAX_REQUEST):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += more
    if chunk:
        yield chunk
