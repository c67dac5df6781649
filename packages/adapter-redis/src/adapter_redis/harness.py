"""Harnesses for the conformance kit: the fake, a server of our own, and the base for any server.

They have the kit's hooks by shape and do not import it.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import UUID, uuid4

from adapter_core import MemoryAdapterUnavailable
from adapter_core.testing import Engine, Environment, FaultHooks, ImmediateHarness, Proxy, TransportCall

from . import embedded, staging, testing
from .connections import ServerTransport
from .settings import RedisSettings
from .store import IndexName, RedisMemoryStore

_NAMESPACE = "default"


class RedisFakeHarness(FaultHooks, ImmediateHarness):
    """The adapter over `FakeRedis`."""

    adapter = "redis"
    environment: Environment = "fake"
    not_staged: Mapping[str, str] = {}

    def __init__(self) -> None:
        super().__init__()
        self._fake = testing.FakeRedis()
        self.faults = self._fake.faults

    async def engine(self) -> Engine:
        return Engine("FakeRedis", "1", "scripts are interpreted; faults are injected")

    async def new_store(self, **options: Any) -> RedisMemoryStore[Any]:
        transport = self._fake.transport()
        return RedisMemoryStore("redis://fake", index="keyspace", transport=transport, **options)

    async def plant_foreign_record(self, item_id: UUID) -> None:
        self._fake.plant_foreign(_NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        self._fake.plant_malformed(_NAMESPACE, item_id)

    async def age_index(self) -> None:
        self._fake.age_index()

    async def degrade(self) -> None:
        """Another release takes the namespace over."""
        self._fake.age_index()

    async def reset(self) -> None:
        self._fake.reset()

    async def close(self) -> None:
        await self.close_stores()


class ServerHarness(ImmediateHarness):
    """The adapter over a real server, under a prefix of its own. Every fault is a real one.

    The stores reach the server through a proxy, which an outage closes, and with an account whose
    rights are taken away; what else happens is staged over another connection. A subclass gives the
    address.
    """

    adapter = "redis"
    environment: Environment = "live"
    index: ClassVar[IndexName] = "keyspace"
    not_staged: Mapping[str, str] = {
        "drop_identity": "Redis acknowledges no write that it has not done",
        "hold_search_index": "the index is updated in the script of the write",
    }

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[TransportCall] = []
        self._proxy: Proxy | None = None
        self._admin: staging.Admin | None = None
        own = uuid4().hex[:12]
        self._settings = RedisSettings(prefix=f"conformance-{own}", pool_size=4)
        self._account, self._password = f"conformance-{own}", secrets.token_urlsafe(16)

    async def url(self) -> str:
        """Give the address of the server, with an account that may do anything."""
        raise NotImplementedError

    async def engine(self) -> Engine:
        info = await (await self._connected()).info()
        if version := info.get("valkey_version"):
            return Engine("Valkey", version)
        return Engine("Redis", info.get("redis_version", "unknown"))

    async def new_store(self, **options: Any) -> RedisMemoryStore[Any]:
        await self._connected()
        settings: RedisSettings = options.pop("settings", self._settings)
        transport = testing.RecordingTransport(ServerTransport(await self._way(), settings), self._calls)
        options.setdefault("index", self.index)
        return RedisMemoryStore("redis://proxy", transport=transport, settings=settings, **options)

    def transport_calls(self) -> Sequence[TransportCall]:
        return self._calls

    async def make_transport_unavailable(self) -> None:
        await self._connected()
        if self._proxy is not None:
            await self._proxy.refuse()

    async def make_transport_available(self) -> None:
        if self._proxy is not None:
            await self._proxy.accept()

    async def plant_foreign_record(self, item_id: UUID) -> None:
        await (await self._connected()).plant_foreign(_NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        await (await self._connected()).plant_malformed(_NAMESPACE, item_id)

    async def refuse_writes(self, refuse: bool) -> None:
        await (await self._connected()).refuse_writes(refuse)

    async def refuse_queries(self, refuse: bool) -> None:
        await (await self._connected()).refuse_queries(refuse)

    async def age_index(self) -> None:
        await (await self._connected()).age_index()

    async def degrade(self) -> None:
        """Another release takes the namespaces over."""
        await (await self._connected()).age_index()

    async def reset(self) -> None:
        await self.make_transport_available()
        await (await self._connected()).reset()

    async def close(self) -> None:
        await self.make_transport_available()
        await self.close_stores()
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.drop()
            await admin.close()
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.close()

    async def _connected(self) -> staging.Admin:
        """Connect for staging, make the account, and start the proxy."""
        if self._admin is None:
            url = await self.url()
            parts = urlsplit(url)
            if parts.scheme != "redis":
                raise MemoryAdapterUnavailable(
                    "the harness needs an address of one server, as redis://host:port"
                )
            admin = staging.Admin(url, self._settings, self._account, self._password)
            try:
                await admin.prepare()
            except BaseException:
                await admin.close()
                raise
            self._admin = admin
            self._proxy = Proxy(parts.hostname or "localhost", parts.port or 6379)
            await self._proxy.accept()
        return self._admin

    async def _way(self) -> str:
        """Give the address with the proxy in the place of the server, for the stores' account."""
        parts = urlsplit(await self.url())
        assert self._proxy is not None
        netloc = f"{self._account}:{quote(self._password)}@127.0.0.1:{self._proxy.port}"
        return urlunsplit(parts._replace(netloc=netloc))


class RedisEmbeddedHarness(ServerHarness):
    """The adapter over a Valkey server of our own, which has no search engine."""

    environment: Environment = "embedded"

    @classmethod
    def not_run_reason(cls) -> str | None:
        """Say why this machine cannot run it; None if it can."""
        return embedded.not_run_reason()

    async def url(self) -> str:
        return embedded.shared_server().url()


HARNESSES = (RedisFakeHarness, RedisEmbeddedHarness)
