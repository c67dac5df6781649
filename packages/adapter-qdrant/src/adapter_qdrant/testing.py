"""For tests: a double of the server with faults to switch on, and the same faults before a real one.

fake = FakeQdrant()
store = QdrantMemoryStore("http://any", transport=fake.transport())
await store.store(item)
await store.search(query)  # finds nothing yet
fake.expose()
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from adapter_core import TERMS_VERSION, namespace_token
from adapter_core.testing import Faults

from . import points, schema
from .evaluation import meets, scored, shown
from .recording import FakeServerError, FaultyTransport
from .transport import (
    Acknowledgement,
    CollectionState,
    Filter,
    Found,
    IndexKind,
    NewCollection,
    Point,
    Search,
    Sparse,
    Transport,
    UpdateMode,
)

T = TypeVar("T")

__all__ = ["AGED", "FakeQdrant", "FakeServerError", "FaultyTransport", "foreign_point"]

AGED = schema.signature_text({**schema.signature(None), "terms": str(TERMS_VERSION + 1)})
"""How a namespace is indexed whose term rules are of another version."""


class FakeQdrant:
    """One collection that many stores can use through `transport()`.

    A search by `search` sees points as they were when the index was last exposed; to read by id, to
    list and to count sees them as they are. Each request gives way to the event loop once before
    and once after its work, so that a cancellation can strike on either side of it.

    Attributes:
        faults: Switches that make it misbehave, and the log of requests.
        points: By their ids.
        collection: What it was made with, and its indexes; None: there is none.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.points: dict[UUID, Point] = {}
        self.collection: CollectionState | None = None
        self.server_version = "1.20.0"
        self._index: dict[UUID, Point] = {}
        self._operations = 0

    def transport(self) -> Transport:
        """Make a transport for one store."""
        return FaultyTransport(_FakeTransport(self), self.faults)

    # Staging

    def expose(self) -> None:
        """Let searches see every point as it is, unless the index is held."""
        if not self.faults.hold_index:
            self._index = dict(self.points)

    def plant_foreign(self, namespace: str, item_id: UUID) -> None:
        """Put a point that is not the adapter's where the item with this id would be."""
        planted = foreign_point(namespace, item_id)
        self.points[planted.id] = self._index[planted.id] = planted

    def plant_malformed(self, namespace: str, item_id: UUID) -> None:
        """Damage the stored text of an item."""
        one = points.point_id(namespace_token(namespace), item_id)
        damaged = _with_payload(self.points[one], {"item": "{"})
        self.points[one] = self._index[one] = damaged

    def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        self.points = {
            one: _with_payload(point, {"indexed_as": AGED}) if "indexed_as" in point.payload else point
            for one, point in self.points.items()
        }

    def drop(self) -> None:
        """Delete the collection behind the stores' backs."""
        self.collection = None
        self.points.clear()
        self._index.clear()

    def reset(self) -> None:
        """Remove every item, and end what is staged."""
        self.faults.reset()
        ours = schema.signature_text(schema.signature(None))
        kept = [point for point in self.points.values() if point.payload.get("record") == points.NAMESPACE]
        self.points = {
            point.id: _with_payload(point, {"indexed_as": ours, "unfinished": False}) for point in kept
        }
        self.expose()

    # What the requests do

    def describe(self) -> CollectionState | None:
        """Describe the collection."""
        return self.collection

    def create(self, collection: NewCollection) -> None:
        """Make the collection, unless it is there."""
        if self.collection is None:
            self.collection = CollectionState(
                collection.metadata, frozenset(), collection.dense, frozenset(collection.sparse), 1, 1
            )

    def add_index(self, field: str) -> None:
        """Index a payload field."""
        state = self._there()
        self.collection = state._replace(indexes=(state.indexes or frozenset()) | {field})

    def add_vector(self, name: str, size: int) -> None:
        """Let points have a dense vector of this name."""
        state = self._there()
        self.collection = state._replace(dense={name: size, **state.dense})

    def upsert(self, written: Sequence[Point], only_over: Filter, mode: UpdateMode) -> Acknowledgement:
        """Write points as the mode and the condition say."""
        state = self._there()
        for point in written:
            for name, vector in point.vectors.items():
                known = name in state.sparse if isinstance(vector, Sparse) else name in state.dense
                if not known or (not isinstance(vector, Sparse) and len(vector) != state.dense[name]):
                    raise FakeServerError(400)
        for point in written:
            old = self.points.get(point.id)
            if old is None:
                if mode == "update_only":
                    continue
            elif mode == "insert_only" or not meets(old, self._indexed(only_over)):
                continue
            self.points[point.id] = point
        return self._done()

    def delete(self, condition: Filter) -> Acknowledgement:
        """Delete the points that meet a condition."""
        for point in self._matching(self.points, condition):
            del self.points[point.id]
        return self._done()

    def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        """Read points by id."""
        self._there()
        return [shown(self.points[one], fields) for one in ids if one in self.points]

    def search(self, search: Search) -> Sequence[Found]:
        """Search the index as it was last exposed."""
        state = self._there()
        hits = self._matching(self._index, search.condition)
        end = search.offset + search.limit
        if search.vector is not None:
            if search.using not in state.sparse and search.using not in state.dense:
                raise FakeServerError(400)
            corpus = self._matching(self._index, search.corpus) if search.corpus else self._index.values()
            pairs = scored(hits, search.vector, str(search.using), list(corpus))
            pairs.sort(key=lambda pair: (-pair[1], pair[0].id))
            return [shown(point, search.fields, score=score) for point, score in pairs[search.offset : end]]
        if search.newest_by is not None:
            key = search.newest_by
            self._check_index(key)
            # equal ones in an order of no meaning, as Qdrant has it
            hits = sorted(hits, key=lambda point: (-point.payload[key], point.id))
            return [
                shown(point, search.fields, order=point.payload[key]) for point in hits[search.offset : end]
            ]
        return [shown(point, search.fields) for point in hits[search.offset : end]]

    def scroll(
        self, condition: Filter, fields: Sequence[str], start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        """List points by id."""
        found = [
            point for point in self._matching(self.points, condition) if start is None or point.id >= start
        ]
        following = found[limit].id if len(found) > limit else None
        return [shown(point, fields) for point in found[:limit]], following

    def count(self, condition: Filter) -> int:
        """Count points."""
        return len(self._matching(self.points, condition))

    def _matching(self, among: Mapping[UUID, Point], condition: Filter) -> list[Point]:
        self._there()
        condition = self._indexed(condition)
        return sorted((point for point in among.values() if meets(point, condition)), key=_id)

    def _indexed(self, condition: Filter) -> Filter:
        """Refuse a condition on a field without an index, as strict mode does."""
        for part in (*condition.get("must", ()), *condition.get("must_not", ())):
            self._check_index(part.get("key") or part.get("is_empty", {}).get("key"))
        return condition

    def _check_index(self, field: str | None) -> None:
        if field is not None and field not in (self._there().indexes or ()):
            raise FakeServerError(400)

    def _there(self) -> CollectionState:
        if self.collection is None:
            raise FakeServerError(404)
        return self.collection

    def _done(self) -> Acknowledgement:
        self._operations += 1
        return Acknowledgement(self._operations, "completed")


class _FakeTransport:
    """The way of one store to a `FakeQdrant`."""

    def __init__(self, service: FakeQdrant) -> None:
        self._service = service

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def is_volatile(self) -> bool:
        return False  # it stands for a server

    async def version(self) -> str:
        return await _answered(lambda: self._service.server_version)

    async def describe(self) -> CollectionState | None:
        return await _answered(self._service.describe)

    async def create(self, collection: NewCollection) -> None:
        await _answered(lambda: self._service.create(collection))

    async def add_index(self, field: str, kind: IndexKind) -> None:  # noqa: ARG002 - any index will do
        await _answered(lambda: self._service.add_index(field))

    async def add_vector(self, name: str, size: int) -> None:
        await _answered(lambda: self._service.add_vector(name, size))

    async def upsert(
        self, points: Sequence[Point], *, only_over: Filter, mode: UpdateMode = "upsert"
    ) -> Acknowledgement:
        return await _answered(lambda: self._service.upsert(points, only_over, mode))

    async def delete(self, condition: Filter) -> Acknowledgement:
        return await _answered(lambda: self._service.delete(condition))

    async def retrieve(self, ids: Sequence[UUID], fields: Sequence[str]) -> Sequence[Found]:
        return await _answered(lambda: self._service.retrieve(ids, fields))

    async def search(self, searches: Sequence[Search]) -> Sequence[Sequence[Found]]:
        return await _answered(lambda: [self._service.search(one) for one in searches])

    async def scroll(
        self, condition: Filter, fields: Sequence[str], *, start: UUID | None, limit: int
    ) -> tuple[Sequence[Found], UUID | None]:
        return await _answered(lambda: self._service.scroll(condition, fields, start, limit))

    async def count(self, condition: Filter) -> int:
        return await _answered(lambda: self._service.count(condition))


async def _answered(work: Callable[[], T]) -> T:
    await asyncio.sleep(0)
    answer = work()
    await asyncio.sleep(0)
    return answer


def foreign_point(namespace: str, item_id: UUID) -> Point:
    """Give a point of another program under the id that an item's point would have."""
    return Point(
        points.point_id(namespace_token(namespace), item_id), {"item": "foreign", "note": "theirs"}, {}
    )


def _with_payload(point: Point, changed: Mapping[str, Any]) -> Point:
    return point._replace(payload={**point.payload, **changed})


def _id(point: Point) -> UUID:
    return point.id
