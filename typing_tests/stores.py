"""What a user's editor must accept and refuse; checked by pyright and mypy, never run.

Each `type: ignore` stands where an error is wanted: an unneeded one is an error itself.
"""

from dataclasses import dataclass
from typing import Any, Protocol, assert_type
from uuid import UUID

from adapter_core import (
    DeclaresDurability,
    ExternalMemoryStore,
    ItemLike,
    MemoryItem,
    MemoryQuery,
    MemoryStore,
    ScoredHit,
    SupportsBatch,
    SupportsDelete,
    SupportsReindex,
    SupportsRevisions,
    SupportsScan,
    SupportsScoredSearch,
    open_store,
)
from adapter_sqlite import SqliteMemoryStore


@dataclass
class HostItem:
    """A host framework's own item class."""

    id: UUID
    created_at: float
    metadata: dict[str, Any]
    content: Any
    tags: list[str]


class HostStore(Protocol):
    """What the host asks of a store: its own item class, in and out."""

    async def store(self, item: HostItem) -> UUID: ...
    async def retrieve(self, item_id: UUID) -> HostItem | None: ...
    async def search(self, query: MemoryQuery) -> list[HostItem]: ...


async def results_are_of_the_item_class() -> None:
    """The default class without a word, the host's where it is given."""
    default = SqliteMemoryStore("a.db", filters=["topic"])
    assert_type(default, SqliteMemoryStore[MemoryItem])
    assert_type(await default.retrieve(UUID(int=1)), MemoryItem | None)
    assert_type(await default.search(MemoryQuery()), list[MemoryItem])

    hosted = SqliteMemoryStore("a.db", item_type=HostItem)
    assert_type(hosted, SqliteMemoryStore[HostItem])
    assert_type(await hosted.retrieve(UUID(int=1)), HostItem | None)
    assert_type(await hosted.search_scored(MemoryQuery()), list[ScoredHit[HostItem]])
    assert_type(await hosted.retrieve_many([UUID(int=1)]), dict[UUID, HostItem])
    async with hosted as entered:
        assert_type(entered, SqliteMemoryStore[HostItem])
    async for item in hosted.scan():
        assert_type(item, HostItem)


def a_store_is_what_it_claims(store: SqliteMemoryStore[MemoryItem]) -> None:
    """Every protocol that the adapter has, it has for the type checker too."""
    plain: MemoryStore = store
    external: ExternalMemoryStore = store
    batch: SupportsBatch = store
    delete: SupportsDelete = store
    scan: SupportsScan = store
    revisions: SupportsRevisions = store
    scored: SupportsScoredSearch = store
    reindex: SupportsReindex = store
    durable: DeclaresDurability = store
    print(plain, external, batch, delete, scan, revisions, scored, reindex, durable)


def a_wrong_pairing_shows() -> None:
    """A host that wants its own class does not take a store of another."""
    right: HostStore = SqliteMemoryStore("a.db", item_type=HostItem)
    wrong: HostStore = SqliteMemoryStore("a.db")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(right, wrong)


async def any_item_goes_in(store: SqliteMemoryStore[MemoryItem], item: HostItem) -> None:
    """The five attributes are enough."""
    like: ItemLike = item
    assert_type(await store.store(like), UUID)
    assert_type(await store.store(MemoryItem()), UUID)
    await store.store("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def a_url_gives_a_store() -> None:
    """The adapter is found at run time, so its items are of any class."""
    external: ExternalMemoryStore[Any] = open_store("sqlite:///a.db")
    print(external)
