"""Harnesses for the conformance kit: the fake, a server of our own, and the base for any server.

They have the kit's hooks by shape and do not import it.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit
from uuid import UUID, uuid4

from adapter_core import MemoryAdapterUnavailable
from adapter_core.testing import Engine, Environment, FaultHooks, ImmediateHarness, Proxy, TransportCall

from . import embedded, staging, testing
from .settings import PostgresSettings
from .store import PostgresMemoryStore
from .transport import ServerTransport

_NAMESPACE = "default"


class PostgresFakeHarness(FaultHooks, ImmediateHarness):
    """The adapter over `FakePostgres`."""

    adapter = "postgres"
    environment: Environment = "fake"
    not_staged: Mapping[str, str] = {}

    def __init__(self) -> None:
        super().__init__()
        self._fake = testing.FakePostgres()
        self.faults = self._fake.faults

    async def engine(self) -> Engine:
        return Engine("FakePostgres", "1", "statements are interpreted; faults are injected")

    async def new_store(self, **options: Any) -> PostgresMemoryStore[Any]:
        transport = self._fake.transport()
        return PostgresMemoryStore("postgresql://fake", transport=transport, **options)

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
    """The adapter over a real server, in a schema of its own. Every fault is a real one.

    The stores reach the server through a proxy, which an outage closes; what else happens is staged
    over another connection. A subclass gives the address.
    """

    adapter = "postgres"
    environment: Environment = "live"
    not_staged: Mapping[str, str] = {
        "hold_search_index": "the index is updated in the transaction of the write"
    }

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[TransportCall] = []
        self._proxy: Proxy | None = None
        self._admin: staging.Admin | None = None
        self._settings = PostgresSettings(schema=f"conformance_{uuid4().hex[:12]}", pool_size=4)

    async def url(self) -> str:
        """Give the address of the server, with a role that may create schemas and triggers."""
        raise NotImplementedError

    async def engine(self) -> Engine:
        admin = await self._connected()
        return Engine("PostgreSQL", await admin.version())

    async def new_store(self, **options: Any) -> PostgresMemoryStore[Any]:
        await self._connected()
        settings: PostgresSettings = options.pop("settings", self._settings)
        transport = testing.RecordingTransport(ServerTransport(await self._way(), settings), self._calls)
        return PostgresMemoryStore("postgresql://proxy", transport=transport, settings=settings, **options)

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
        await (await self._connected()).guard("RAISE EXCEPTION 'refused'", refuse)

    async def drop_identity(self, drop: bool) -> None:
        await (await self._connected()).guard("RETURN NULL", drop)

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
        """Connect for staging, make the tables, and start the proxy."""
        if self._admin is None:
            url = await self.url()
            _check_address(url)
            self._admin = await staging.Admin.connect(url, self._settings)
            parts = urlsplit(url)
            self._proxy = Proxy(parts.hostname or "localhost", parts.port or 5432)
            await self._proxy.accept()
        return self._admin

    async def _way(self) -> str:
        """Give the address with the proxy in the place of the server."""
        parts = urlsplit(await self.url())
        assert self._proxy is not None
        account, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{account}{at}127.0.0.1:{self._proxy.port}"))


def _check_address(url: str) -> None:
    """Refuse an address whose server the proxy would not stand before."""
    parts = urlsplit(url)
    if "," in parts.netloc or {"host", "hostaddr", "port", "service"} & parse_qs(parts.query).keys():
        raise MemoryAdapterUnavailable(
            "the harness needs an address of one server, with its host and port before the path"
        )


class PostgresEmbeddedHarness(ServerHarness):
    """The adapter over a server of our own."""

    environment: Environment = "embedded"

    @classmethod
    def not_run_reason(cls) -> str | None:
        """Say why this machine cannot run it; None if it can."""
        return embedded.not_run_reason()

    async def url(self) -> str:
        return embedded.shared_server().url()


HARNESSES = (PostgresFakeHarness, PostgresEmbeddedHarness)
