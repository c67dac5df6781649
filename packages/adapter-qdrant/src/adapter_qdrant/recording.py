"""A transport that logs what is sent through it and fails on command, for tests."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from adapter_core.testing import CallKind, Faults, TransportCall

from .transport import (
    Acknowledgement,
    CollectionState,
    Filter,
    Found,
    IndexKind,
    NewCollection,
    Point,
    Search,
    Transport,
    UpdateMode,
)

_KINDS: Mapping[str, CallKind] = {
    "version": "setup",
    "describe": "setup",
    "create": "setup",
    "add_index": "setup",
    "add_vector": "setup",
    "upsert": "write",
    "delete": "write",
    "retrieve": "identity",
    "search": "search",
}


class FakeServerError(Exception):
    """An error of the fake, with what the driver reads of an error of the client."""

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code
        super().__init__(f"the fake answered {status_code}")


class FaultyTransport:
    """Hands every request on to another transport, logs it, and fails as the faults say.

    Args:
        inner: The transport that does the work.
        faults: Switches, and the log of requests.
    """

    def __init__(self, inner: Transport, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def is_volatile(self) -> bool:
        return await self._inner.is_volatile()

    async def version(self) -> str:
        self._ask("version")
        return await self._inner.version()

    async def describe(self) -> CollectionState | None:
        self._ask("describe")
        return await self._inner.describe()

    async def create(self, collection: NewCollection) -> None:
        self._ask("create", collection)
        await self._inner.create(collection)

    async def add_index(self, field: str, kind: IndexKind) -> None:
        self._ask("add_index", field, kind)
        await self._inner.add_index(field, kind)

    async def add_vector(self, name: str, size: int) -> None:
        self._ask("add_vector", name, size)
        await self._inner.add_vector(name, size)

    async def upsert(
        self, points: Sequence[Point], *, only_over: Filter, mode: UpdateMode = "upsert"
    ) -> Acknowledgement:
        self._ask("upsert", points, only_over, mode)
        if self._faults.drop_identity:
            return Acknowledgement(None, "completed")
        return await self._inner.upsert(points, only_over=only_over, mode=mode)

    async def delete(self, condition: Filter) -> Acknowledgement:
        self._ask("delete", condition)
        return await self._inner.delete(condition)

    async def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        self._ask("retrieve", ids, fields)
        return await self._inner.retrieve(ids, fields)

    async def search(self, searches: Sequence[Search]) -> Sequence[Sequence[Found]]:
        self._ask("search", searches)
        return await self._inner.search(searches)

    async def scroll(
        self, condition: Filter, fields: Sequence[str], *, start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        self._ask("scroll", condition, fields, start, limit)
        return await self._inner.scroll(condition, fields, start=start, limit=limit)

    async def count(self, condition: Filter) -> int:
        self._ask("count", condition)
        return await self._inner.count(condition)

    def _ask(self, operation: str, *sent: object) -> None:
        kind = _KINDS.get(operation, "other")
        self._faults.calls.append(TransportCall(operation, kind, "\n".join(map(str, sent))))
        if self._faults.down:
            raise ConnectionRefusedError("the service is down")
        if (kind == "write" and self._faults.refuse_writes) or (
            kind == "search" and self._faults.refuse_queries
        ):
            raise FakeServerError(400)
