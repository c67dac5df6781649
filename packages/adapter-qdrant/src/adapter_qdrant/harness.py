"""Harnesses for the conformance kit: the fake, the client's own engine, and the base for any server.

They have the kit's hooks by shape and do not import it.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from uuid import UUID, uuid4

from adapter_core.testing import Engine, Environment, FaultHooks, Faults, ImmediateHarness, InjectedFaults

from . import staging, testing
from .embedding import Embedder
from .recording import FaultyTransport
from .settings import QdrantSettings
from .store import QdrantMemoryStore
from .transport import ClientTransport

_NAMESPACE = "default"
_TEXT_OPTIONS: Mapping[str, Any] = {
    "embedder": Embedder(lambda texts: [[1.0] for _ in texts], "an example", 1)  # only asked what it means
}


class QdrantFakeHarness(FaultHooks, ImmediateHarness):
    """The adapter over `FakeQdrant`, whose index waits until it is exposed."""

    adapter = "qdrant"
    environment: Environment = "fake"
    not_staged: Mapping[str, str] = {}
    text_options = _TEXT_OPTIONS

    def __init__(self) -> None:
        super().__init__()
        self._fake = testing.FakeQdrant()
        self.faults = self._fake.faults

    async def engine(self) -> Engine:
        return Engine("FakeQdrant", "1", "requests are interpreted; faults are injected")

    async def new_store(self, **options: Any) -> QdrantMemoryStore[Any]:
        return QdrantMemoryStore("http://fake", transport=self._fake.transport(), **options)

    async def make_search_index_visible(self) -> None:
        self._fake.expose()

    async def hold_search_index(self, hold: bool) -> None:
        self._fake.expose()
        await super().hold_search_index(hold)
        self._fake.expose()

    async def plant_foreign_record(self, item_id: UUID) -> None:
        self._fake.plant_foreign(_NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        self._fake.plant_malformed(_NAMESPACE, item_id)

    async def age_index(self) -> None:
        self._fake.age_index()

    async def degrade(self) -> None:
        """Another release takes the namespace over."""
        self._fake.age_index()
        self._fake.expose()

    async def reset(self) -> None:
        self._fake.reset()

    async def close(self) -> None:
        await self.close_stores()


class ClientHarness(InjectedFaults, ImmediateHarness):
    """The adapter over a real engine, in a collection of its own.

    Outages and refusals are injected at the transport; what is planted or taken away is real.
    A subclass gives the place of the engine.
    """

    adapter = "qdrant"
    environment: Environment = "live"
    not_staged: Mapping[str, str] = {
        "hold_search_index": "an engine's index cannot be held back from outside"
    }
    text_options = _TEXT_OPTIONS

    def __init__(self) -> None:
        super().__init__()
        self.faults = Faults()
        self._collection = f"conformance_{uuid4().hex[:12]}"
        self._admin: staging.Admin | None = None

    def place(self) -> Any:
        """Give what a transport is made with."""
        raise NotImplementedError

    def api_key(self) -> str | None:
        """Give the key of the server, if it has one."""
        return None

    async def engine(self) -> Engine:
        return Engine("Qdrant", await self.admin().version(), "outages and refusals are injected")

    def settings(self) -> QdrantSettings:
        """Give the settings of every store."""
        return QdrantSettings(collection=self._collection)

    def admin(self) -> staging.Admin:
        """Give what stages."""
        if self._admin is None:
            self._admin = staging.Admin(self.place(), self.settings(), self.api_key())
        return self._admin

    async def new_store(self, **options: Any) -> QdrantMemoryStore[Any]:
        settings: QdrantSettings = options.pop("settings", self.settings())
        inner = ClientTransport(self.place(), settings, self.api_key())
        transport = FaultyTransport(inner, self.faults)
        return QdrantMemoryStore("http://transport", transport=transport, settings=settings, **options)

    async def plant_foreign_record(self, item_id: UUID) -> None:
        await self.admin().plant_foreign(_NAMESPACE, item_id)

    async def plant_malformed_record(self, item_id: UUID) -> None:
        await self.admin().plant_malformed(_NAMESPACE, item_id)

    async def age_index(self) -> None:
        await self.admin().age_index()

    async def degrade(self) -> None:
        """Another release takes the namespace over."""
        await self.admin().age_index()

    async def reset(self) -> None:
        self.faults.reset()
        await self.admin().reset()

    async def close(self) -> None:
        await self.close_stores()
        admin, self._admin = self._admin, None
        if admin is not None:
            try:
                await admin.drop()
            finally:
                await admin.close()


class QdrantEmbeddedHarness(ClientHarness):
    """The adapter over the client's own engine, in the memory of this process."""

    environment: Environment = "embedded"

    def __init__(self) -> None:
        super().__init__()
        self._client: Any = None

    def place(self) -> Any:
        if self._client is None:
            from qdrant_client import AsyncQdrantClient  # noqa: PLC0415 - it takes seconds to load

            self._client = AsyncQdrantClient(":memory:")
        return self._client

    def settings(self) -> QdrantSettings:
        return QdrantSettings(collection=self._collection, durability="volatile")

    async def engine(self) -> Engine:
        return Engine(
            "qdrant-client local mode",
            version("qdrant-client"),
            "in process, handles share one client; no server: every search reads every point, indexes "
            "have no effect, nothing lags, no replicas; outages and refusals are injected",
        )

    async def close(self) -> None:
        await super().close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()


HARNESSES = (QdrantFakeHarness, QdrantEmbeddedHarness)
