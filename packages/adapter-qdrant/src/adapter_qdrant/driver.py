"""The driver: records and criteria as points of Qdrant, for one namespace."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from adapter_core import (
    Criteria,
    DeletingDriver,
    Hit,
    ItemFields,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    Record,
    ReindexingDriver,
    ScanningDriver,
    namespace_token,
)

from . import finding, points, schema
from .embedding import Embedder
from .points import Document
from .settings import QdrantSettings
from .transport import Filter, Found, Point, Search, Sparse, Transport

T = TypeVar("T")

MAX_REQUEST = 24_000_000
"""Characters of a request; a larger batch is several. A server takes 32 MiB unless told otherwise."""
MAX_POINTS = 10_000
"""Points of a request."""

READ = ("namespace", "record", "item", "item_tags")
"""What is read of an item."""
GUARD = schema.MARKER_FIELDS
"""What a write reads first, of the namespace and of the points that it will replace."""


class QdrantDriver(DeletingDriver[Document], ScanningDriver[Document], ReindexingDriver[Document]):
    """One namespace of a collection.

    Args:
        transport: The way to Qdrant.
        namespace: As the user gave it.
        settings: The collection, and what is asked of it.
        embedder: What makes vectors of texts; None: texts are compared by their terms.
    """

    def __init__(
        self, transport: Transport, namespace: str, settings: QdrantSettings, embedder: Embedder | None
    ) -> None:
        self._transport = transport
        self._name = namespace_token(namespace)
        self._marker_id = points.namespace_id(self._name)
        self._settings = settings
        self._embedder = embedder
        self._signature = schema.signature(embedder)
        self._signed = schema.signature_text(self._signature)

    # Values and errors

    def pack(self, item: ItemFields) -> Document:
        return points.packed(item, with_text=self._embedder is not None)

    def unpack(self, document: Document) -> ItemFields:
        return points.unpacked(document)

    def is_unavailable(self, error: Exception) -> bool:
        status: object = getattr(error, "status_code", None)
        if isinstance(status, int):
            return status >= 500 or status in (401, 403, 404, 408, 429)
        if isinstance(error, OSError | MemoryError | sqlite3.Error):  # the last is where a path keeps points
            return True
        if type(error).__module__.partition(".")[0] not in ("qdrant_client", "httpx", "grpc"):
            return False
        from .errors import is_broken  # noqa: PLC0415 - it is loaded, or this were not its error

        return is_broken(error)

    # Lifecycle

    async def open(self) -> None:
        await self._transport.open()
        try:
            await schema.prepare(self._transport, self._settings, self._embedder, self._name, self._signed)
        except BaseException:
            await asyncio.shield(self._transport.close())
            raise

    async def close(self) -> None:
        await self._transport.close()

    # The three verbs

    async def put(self, records: Sequence[Record[Document]]) -> Sequence[UUID]:
        dense = await self._embedded(records)
        written = [self._point(record, vector) for record, vector in zip(records, dense, strict=True)]
        done: list[Point] = []
        for chunk in _chunks(written):
            try:
                if not await self._put(chunk):
                    return []
            except Exception as error:
                if done:
                    raise MemoryAdapterUnavailable(
                        f"{len(done)} of {len(written)} items were stored", outcome_unknown=True
                    ) from error
                raise
            done += chunk
        return [record.id for record in records]

    async def _put(self, chunk: Sequence[Point]) -> bool:
        """Write points, unless one of them stands in the place of what is not ours."""
        await self._guard([point.id for point in chunk])
        ours = points.all_of(*points.items_of(self._name))
        acknowledgement = await self._transport.upsert(chunk, only_over=ours)
        schema.check_done(acknowledgement)
        return acknowledgement.operation is not None

    async def get(self, ids: Sequence[UUID]) -> Mapping[UUID, Document]:
        wanted = {points.point_id(self._name, item_id): item_id for item_id in ids}
        found = await self._transport.retrieve([*wanted, self._marker_id], READ)
        known = {
            wanted[one.id]: points.document_of(one.payload, with_tags=True)
            for one in found
            if one.id in wanted and points.is_item(one, self._name)
        }
        if not known:  # "there is none" is an answer only while the namespace is there
            self._check_there(found)
        return known

    async def find(self, criteria: Criteria) -> Sequence[Hit[Document]]:
        conditions = points.conditions(self._name, criteria, by_terms=self._embedder is None)
        if not criteria.terms:
            hits = await finding.newest(self._ask, conditions, criteria.limit, self._everything)
            return [Hit(hit.id, hit.document) for hit in hits]
        if self._embedder is not None:
            (vector,) = await self._embedder.vectors([criteria.text])
            using, corpus = points.dense_name(self._embedder.dimension), None
            asked: Sparse | Sequence[float] = vector
        else:
            using, corpus = points.TERMS_VECTOR, points.all_of(*points.items_of(self._name))
            asked = points.asked_vector(criteria.terms)
        condition = points.all_of(*conditions)
        if self._embedder is not None:
            condition = {**condition, "must_not": [points.is_empty("terms")]}
        hits = await finding.nearest(
            self._ask, condition, criteria.limit, vector=asked, using=using, corpus=corpus
        )
        return [Hit(hit.id, hit.document, hit.score) for hit in hits]

    async def _ask(self, search: Search) -> Sequence[Found]:
        """Search, and read in the same request how the namespace is indexed."""
        probe = Search(points.all_of(points.with_ids([self._marker_id])), 1, schema.MARKER_FIELDS)
        marker, hits = await self._transport.search([probe, search])
        if self._is_ours(marker):
            return hits
        # a search may lag behind; what is read by id does not
        self._check_marker(await self._transport.retrieve([self._marker_id], schema.MARKER_FIELDS))
        return hits

    async def _everything(self, condition: Filter) -> AsyncIterator[Found]:
        start: UUID | None = None
        while True:
            page, start = await self._transport.scroll(
                condition, finding.FIELDS, start=start, limit=finding.PAGE
            )
            for one in page:
                yield one
            if start is None:
                return

    # Deletion

    async def delete(self, item_id: UUID) -> bool:
        point = points.point_id(self._name, item_id)
        found = await self._before_write(self._transport.retrieve([point, self._marker_id], GUARD))
        self._check_there(found)
        if not any(points.is_item(one, self._name) for one in found):
            return False
        ours = points.all_of(points.with_ids([point]), *points.items_of(self._name))
        schema.check_done(await self._transport.delete(ours))
        return True

    async def clear(self) -> int:
        ours = points.all_of(*points.items_of(self._name))
        await self._before_write(self._look())
        # only told, and so not asked of several replicas; what is deleted is up to the condition
        count = await self._before_write(self._transport.count(ours))
        schema.check_done(await self._transport.delete(ours))
        return count

    async def drop_namespace(self) -> None:
        """Delete every item and the namespace's own point in one request."""
        await self._before_write(self._look())
        kinds = points.any_of("record", [points.ITEM, points.NAMESPACE])
        ours = points.all_of(points.equals("namespace", self._name), kinds)
        schema.check_done(await self._transport.delete(ours))

    # Scan

    async def page(self, criteria: Criteria, after: UUID | None, size: int) -> Sequence[Hit[Document]]:
        """Give the next items by ascending id of their points, which is no order of the items' own ids."""
        start = None if after is None else points.point_id(self._name, after)
        condition = points.all_of(*points.conditions(self._name, criteria, by_terms=True))
        hits: list[Hit[Document]] = []
        while len(hits) < size:
            limit = min(size - len(hits), finding.PAGE - 1) + 1
            page, following = await self._transport.scroll(condition, READ, start=start, limit=limit)
            hits += [
                self._listed(one)
                for one in page
                if after is None or one.id != points.point_id(self._name, after)
            ]
            if following is None:
                await self._look()  # "nothing more" is an answer only while the namespace is there
                break
            start = following
        return hits[:size]

    def _listed(self, found: Found) -> Hit[Document]:
        document = points.document_of(found.payload, with_tags=True)
        try:
            item_id, _ = points.head(document)
        except ValueError as error:
            raise MemoryAdapterError("the stored record of a listed item is malformed") from error
        if points.point_id(self._name, item_id) != found.id:  # the next page would begin elsewhere
            raise MemoryAdapterError("the stored record of a listed item is that of another item")
        return Hit(item_id, document)

    # Reindexing

    @property
    def signature(self) -> Mapping[str, str]:
        return self._signature

    async def remembered(self) -> Mapping[str, str]:
        known = await schema.remembered(self._transport, self._name)
        if known is None:
            raise _gone()
        return schema.read_signature(known)

    async def outdated(self, size: int) -> Sequence[tuple[Hit[Document], int]]:
        fields = (*READ, "stamp")
        page, _ = await self._transport.scroll(self._outdated(), fields, start=None, limit=size)
        found: list[tuple[Hit[Document], int]] = []
        for one in page:
            hit, stamp = self._listed(one), one.payload.get("stamp")
            if type(stamp) is not int:
                raise MemoryAdapterError("the stamp of a stored record is malformed")
            found.append((self._with_text(hit), stamp))
        return found

    async def reindex(self, records: Sequence[tuple[Record[Document], int]]) -> None:
        if not records:
            return
        dense = await self._embedded([record for record, _ in records])
        written = [self._point(record, vector) for (record, _), vector in zip(records, dense, strict=True)]
        # a stamp belongs to one content of one item: what was replaced meanwhile does not have it
        as_read = points.any_of("stamp", [stamp for _, stamp in records])
        condition = points.all_of(*points.items_of(self._name), as_read)
        for chunk in _chunks(written):
            schema.check_done(await self._transport.upsert(chunk, only_over=condition, mode="update_only"))

    async def adopt(self) -> bool:
        """Say first that the namespace is being indexed anew, which ends the writes of older stores."""
        known = await schema.remembered(self._transport, self._name)
        if known is None:
            raise _gone()
        # listed, since the client's count does not ask the replicas for what most of them have
        left, _ = await self._transport.scroll(self._outdated(), ("stamp",), start=None, limit=1)
        if left:
            if known != (self._signed, True):
                await self._remember(unfinished=True)
            return False
        if known != (self._signed, False):
            await self._remember(unfinished=False)
        return True

    async def _remember(self, *, unfinished: bool) -> None:
        marker = schema.marker(self._name, schema.Remembered(self._signed, unfinished))
        ours = points.all_of(
            points.equals("namespace", self._name), points.equals("record", points.NAMESPACE)
        )
        schema.check_done(await self._transport.upsert([marker], only_over=ours, mode="update_only"))

    def _outdated(self) -> Filter:
        return {
            "must": points.items_of(self._name),
            "must_not": [points.equals("indexed_as", self._signed)],
        }

    def _with_text(self, hit: Hit[Document]) -> Hit[Document]:
        if self._embedder is None:
            return hit
        try:
            text = points.packed(points.unpacked(hit.document), with_text=True).text
        except ValueError as error:
            raise MemoryAdapterError(f"the stored record of {hit.id} is malformed") from error
        return hit._replace(document=hit.document._replace(text=text))

    # What several of them share

    async def _embedded(self, records: Sequence[Record[Document]]) -> list[list[float] | None]:
        """Give the vector of each item that has a term, if there is an embedder."""
        texts = [record.document.text if record.terms else None for record in records]
        asked = [text for text in texts if text is not None]
        if self._embedder is None or not asked:
            return [None] * len(texts)
        vectors = iter(await self._embedder.vectors(asked))
        return [None if text is None else next(vectors) for text in texts]

    def _point(self, record: Record[Document], dense: Sequence[float] | None) -> Point:
        # written even when it is empty: a server may keep a vector that a write leaves out
        vectors: dict[str, Sparse | Sequence[float]] = {points.TERMS_VECTOR: points.term_vector(record.terms)}
        if dense is not None and self._embedder is not None:
            vectors[points.dense_name(self._embedder.dimension)] = dense
        payload = points.payload(self._name, self._signed, record)
        return Point(points.point_id(self._name, record.id), payload, vectors)

    async def _guard(self, ids: Iterable[UUID]) -> None:
        """See that the namespace is ours to write to, and that nothing foreign stands where we write.

        The write itself never replaces a foreign point; but it does not say so either.
        """
        wanted = list(ids)
        read = await self._before_write(self._transport.retrieve([self._marker_id, *wanted], GUARD))
        found = {one.id: one for one in read}
        marker = found.pop(self._marker_id, None)
        self._check_marker([] if marker is None else [marker])
        if not all(points.is_item(one, self._name) for one in found.values()):
            raise MemoryAdapterError("a record under this identity is not this adapter's")

    async def _before_write(self, reading: Awaitable[T]) -> T:
        """Wait for what a write reads first; where that fails, nothing was written."""
        try:
            return await reading
        except MemoryAdapterError:
            raise
        except Exception as error:
            if not self.is_unavailable(error):
                raise
            raise MemoryAdapterUnavailable(
                f"the backend is unavailable ({type(error).__name__}); nothing was written"
            ) from error

    async def _look(self) -> None:
        """See that the namespace is still there."""
        self._check_there(await self._transport.retrieve([self._marker_id], schema.MARKER_FIELDS))

    def _check_there(self, found: Iterable[Found]) -> None:
        if not any(schema.is_marker(one, self._name) for one in found):
            raise _gone()

    def _is_ours(self, found: Sequence[Found]) -> bool:
        return bool(found) and schema.read_marker(found[0], self._name) == (self._signed, False)

    def _check_marker(self, found: Sequence[Found]) -> None:
        if not found or schema.read_marker(found[0], self._name) is None:
            raise _gone()
        if not self._is_ours(found):
            raise MemoryAdapterUnavailable(
                "the namespace has been indexed in another way since this store connected"
            )


def _gone() -> MemoryAdapterUnavailable:
    return MemoryAdapterUnavailable("the namespace is gone from the collection")


def _chunks(written: Sequence[Point]) -> Iterator[list[Point]]:
    """Cut a batch where one request would be too large."""
    chunk: list[Point] = []
    size = 0
    for point in written:
        more = _size(point)
        if chunk and (len(chunk) == MAX_POINTS or size + more > MAX_REQUEST):
            yield chunk
            chunk, size = [], 0
        chunk.append(point)
        size += more
    if chunk:
        yield chunk


def _size(point: Point) -> int:
    """Estimate how many characters of a request a point takes."""
    size = 500
    for value in point.payload.values():
        if isinstance(value, str):
            size += len(value) + value.count('"') + value.count("\\")
        elif isinstance(value, list):
            size += sum(map(len, value)) + 3 * len(value)  # pyright: ignore[reportUnknownArgumentType]
    for vector in point.vectors.values():
        size += 25 * (len(vector.indices) if isinstance(vector, Sparse) else len(vector))
    return size
