"""The portable store: all that is the same for every backend."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

from ._coalescer import Coalescer
from ._codec import check_item, decode_document, encode_document, same_fields
from ._driver import Driver, ReindexingDriver
from ._errors import MemoryAdapterError, MemoryAdapterUnavailable, UnrepresentableItem
from ._items import ItemFields, ItemLike, MemoryItem, QueryLike
from ._manifest import MemoryAdapterManifest
from ._projection import EXACT, Preview, Projection
from ._protocols import ItemT
from ._records import Criteria, Hit, Record, check_query, index_tokens

T = TypeVar("T")

DEFAULT_ITEM_TYPE: Any = MemoryItem
"""`MemoryItem`, typed so that it fits as the default of a generic `item_type` parameter."""

_ANYTHING = Criteria(limit=1)


class AdapterStore(Generic[ItemT]):
    """The three verbs over a driver: the base of every adapter's store.

    An instance serves concurrent tasks of one event loop. The constructor does no I/O; the first
    call that needs the backend connects. No call is retried, and there is no fallback.

    Args:
        driver: The backend.
        manifest: What this instance says survives.
        projection: The same as code.
        item_type: Called with the five fields by keyword, to build what is handed out.
        coalesce: Send the `store` calls of one tick of the event loop as one batch, and the
            `retrieve` calls too. Each caller still gets its own result or its own error.
    """

    def __init__(
        self,
        driver: Driver[Any],
        *,
        manifest: MemoryAdapterManifest,
        projection: Projection = EXACT,
        item_type: Callable[..., ItemT] = DEFAULT_ITEM_TYPE,
        coalesce: bool = True,
    ) -> None:
        if not callable(item_type):
            raise MemoryAdapterError("item_type must be callable")
        if not isinstance(coalesce, bool):
            raise MemoryAdapterError("coalesce must be a bool")
        self._driver = driver
        self._manifest = manifest
        self._projection = projection
        self._item_type = item_type
        self._puts = Coalescer(self._put, coalesce=coalesce, at_once=driver.puts_at_once, key=_id_of)
        self._gets = Coalescer(self._get, coalesce=coalesce)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting = asyncio.Lock()
        self._connected = False
        self._ready = False
        self._closed = False
        self._active = 0
        self._idle = asyncio.Event()

    @property
    def manifest(self) -> MemoryAdapterManifest:
        """What survives in this store; one frozen object for its whole life."""
        return self._manifest

    @property
    def projection(self) -> Projection:
        """What a stored item looks like when it comes back, as code."""
        return self._projection

    def __repr__(self) -> str:
        """Name the adapter; no address, since that may hold a secret."""
        return f"<{type(self).__name__} {'closed' if self._closed else 'open'}>"

    def preview(self, item: ItemLike) -> Preview:
        """Check an item as `store` does, and say what would come back. No I/O; nothing is stored.

        Returns:
            The item as `retrieve` and as a search hit would give it. What is unchanged is shared
            with the item.

        Raises:
            UnrepresentableItem: `store` would refuse it.
        """
        fields, expected = self._checked(item)
        self._driver.pack(fields)
        return Preview(expected, self._projection.search(fields))

    # The three verbs

    async def store(self, item: ItemLike) -> UUID:
        """Store an item, or replace the one that has its id as a whole.

        Args:
            item: Any object with the five attributes. It is read before the first await.

        Returns:
            The item's id. The item can be retrieved as soon as this returns.

        Raises:
            UnrepresentableItem: It would not come back as declared. Nothing was sent.
            MemoryAdapterUnavailable: The backend was not reached or did not answer.
            MemoryAdapterError: The backend refused the write, or a record that is not ours has
                this id. Nothing was stored.
        """
        record = self._record(item)
        self._begin()
        try:
            await self._puts.call(record)
        finally:
            self._leave()
        return record.id

    async def retrieve(self, item_id: UUID) -> ItemT | None:
        """Give the item with this id, read by identity; None when there is none.

        Raises:
            MemoryAdapterUnavailable: The backend was not reached or did not answer.
            MemoryAdapterError: The stored record is malformed.
        """
        check_id(item_id)
        self._begin()
        try:
            document = await self._gets.call(item_id)
        finally:
            self._leave()
        return None if document is None else self._item(item_id, document)

    async def search(self, query: QueryLike) -> list[ItemT]:
        """Give the items that meet every condition of the query, up to its limit.

        Args:
            query: Any object with the four attributes of `MemoryQuery`.

        Raises:
            UnsupportedMemoryQuery: Naming every rejected key. Nothing was sent.
            MemoryAdapterUnavailable: The backend was not reached or did not answer.
        """
        item = self._item
        return [item(item_id, document) for item_id, document, _ in await self._find(query)]

    # Lifecycle

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for the calls that are under way, then release what was opened. Idempotent.

        An injected client is left open.

        Raises:
            MemoryAdapterError: Something could not be released; the rest was. Raised once.
        """
        self._check_loop()
        self._closed = True
        if self._active:
            await self._idle.wait()
        await self._puts.drain()
        await self._gets.drain()
        async with self._connecting:
            if self._connected:
                self._connected = False
                try:
                    await self._mapped("close", self._driver.close)
                except asyncio.CancelledError:
                    self._connected = True  # so that it can be repeated
                    raise

    # What the verbs and the extensions share

    def _record(self, item: ItemLike) -> Record[Any]:
        """Check and encode an item, before any I/O."""
        fields, expected = self._checked(item)
        tags, facets, terms = index_tokens(fields)
        return Record(fields.id, expected.created_at, self._driver.pack(fields), tags, facets, terms)

    def _checked(self, item: ItemLike) -> tuple[ItemFields, ItemFields]:
        """Check an item; its fields, and what `retrieve` will give back."""
        fields = check_item(item)
        expected = self._projection.retrieve(fields)
        self._check_item_type(expected)
        return fields, expected

    def _check_item_type(self, expected: ItemFields) -> None:
        """Refuse an item that the host's class would change or refuse when it comes back."""
        if self._item_type is DEFAULT_ITEM_TYPE:
            return  # it keeps every checked item as it is
        # of a copy: a class may change what it is given, and the caller's item is not its to change
        try:
            built = self._built(decode_document(encode_document(expected)))
        except _Refused as refusal:
            reason = str(refusal)
        else:
            if same_fields(built, expected):
                return
            reason = "the item class changes the fields it is given"
        raise UnrepresentableItem("item_type", reason)

    def _built(self, fields: ItemFields) -> ItemT:
        """Build what is handed out.

        Raises:
            _Refused: The item class refuses. Its own error is not chained: it tends to show the values.
        """
        item_id, created_at, metadata, content, tags = fields
        try:
            return self._item_type(
                id=item_id, created_at=created_at, metadata=metadata, content=content, tags=tags
            )
        except Exception as error:  # noqa: BLE001 - a host's class may raise anything; the callers map it
            reason = f"the item class refuses it ({type(error).__name__})"
        raise _Refused(reason)

    def _item(self, item_id: UUID, document: Any) -> ItemT:
        """Decode what the driver read into a fresh item."""
        try:
            fields = self._driver.unpack(document)
            if fields[0] == item_id:
                return self._built(fields)
            reason = " is that of another item"
        except _Refused as refusal:
            reason = f": {refusal}"
        except ValueError as error:
            raise MemoryAdapterError(f"the stored record of {item_id} is malformed") from error
        raise MemoryAdapterError(f"the stored record of {item_id}{reason}")

    async def _put(self, records: Sequence[Record[Any]]) -> Sequence[None]:
        """Write a batch as a whole; of the same id twice, the last wins."""
        latest = {record.id: record for record in records}
        acknowledged = await self._answered(
            "store", lambda: self._driver.put(list(latest.values())), write=True
        )
        if set(acknowledged) != set(latest):
            raise MemoryAdapterError("store: the backend acknowledged the write without the item's identity")
        return [None] * len(records)

    async def _get(self, ids: Sequence[UUID]) -> Sequence[Any]:
        """Read a batch; None for an id that is not there."""
        wanted = dict.fromkeys(ids)
        found = await self._answered("retrieve", lambda: self._driver.get(list(wanted)))
        if not wanted.keys() >= found.keys():
            raise MemoryAdapterError("retrieve: the backend gave a record that was not asked for")
        return [found.get(item_id) for item_id in ids]

    async def _find(self, query: QueryLike) -> Sequence[Hit[Any]]:
        self._check_usable()
        checked = check_query(query, self._manifest.supported_filters)
        if checked.criteria.limit == 0:
            return []
        if not checked.satisfiable:
            # [] is an answer of the backend, so it is asked whether it answers at all
            await self._call("search", lambda: self._driver.find(_ANYTHING))
            return []
        return await self._call("search", lambda: self._driver.find(checked.criteria))

    async def _call(self, verb: str, operation: Callable[[], Awaitable[T]], *, write: bool = False) -> T:
        """Run one operation of the driver as a call of its own."""
        self._begin()
        try:
            return await self._answered(verb, operation, write=write)
        finally:
            self._leave()

    async def _counted(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call that `close` waits for; none begins on a closed store."""
        try:
            self._begin()
        except MemoryAdapterError:
            call.close()
            raise
        try:
            return await call
        finally:
            self._leave()

    async def _answered(self, verb: str, operation: Callable[[], Awaitable[T]], *, write: bool = False) -> T:
        """Connect if need be and run one operation of the driver: the only way to the backend."""
        if not self._ready:
            await self._mapped(verb, self._connect)
            self._ready = True
        try:
            return await operation()
        except MemoryAdapterError:
            raise
        except Exception as error:
            raise self._as_ours(verb, error, write=write) from error

    def _begin(self) -> None:
        self._check_usable()
        self._active += 1

    def _leave(self) -> None:
        self._active -= 1
        if self._closed and not self._active:
            self._idle.set()

    async def _connect(self) -> None:
        await self._open()
        if isinstance(self._driver, ReindexingDriver):
            ours, theirs = self._driver.signature, await self._driver.remembered()
            if differences := [
                f"{key} is {theirs.get(key, 'not set')}, this store's is {ours.get(key, 'not set')}"
                for key in sorted({*ours, *theirs})
                if ours.get(key) != theirs.get(key)
            ]:
                raise MemoryAdapterError(
                    f"the namespace is indexed in another way ({'; '.join(differences)}): run reindex() first"
                )

    async def _open(self) -> None:
        async with self._connecting:
            if not self._connected:
                await self._driver.open()
                self._connected = True

    async def _mapped(self, verb: str, operation: Callable[[], Awaitable[T]], *, write: bool = False) -> T:
        """Map native errors, once and for every adapter; the native one is the cause."""
        try:
            return await operation()
        except MemoryAdapterError:
            raise
        except Exception as error:
            raise self._as_ours(verb, error, write=write) from error

    def _as_ours(self, verb: str, error: Exception, *, write: bool) -> MemoryAdapterError:
        # a native message may hold values or a password, so only its type is shown
        name = type(error).__name__
        if not self._driver.is_unavailable(error):
            return MemoryAdapterError(f"{verb}: the backend refused ({name})")
        outcome = "; it is unknown whether the item was stored" if write else ""
        return MemoryAdapterUnavailable(
            f"{verb}: the backend is unavailable ({name}){outcome}", outcome_unknown=write
        )

    def _check_usable(self) -> None:
        self._check_loop()
        if self._closed:
            raise MemoryAdapterUnavailable("the store is closed")

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise MemoryAdapterError("the store belongs to another event loop; make one for each")


def _id_of(record: Record[Any]) -> UUID:
    return record.id


class _Refused(Exception):
    """The item class does not take what it is given."""


def check_id(item_id: object) -> None:
    """Refuse an id that is no UUID."""
    if not isinstance(item_id, UUID):
        raise MemoryAdapterError(f"an id must be a UUID, not {type(item_id).__name__}")
