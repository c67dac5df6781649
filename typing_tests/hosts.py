"""What a user of lionagi must see in the editor; checked by pyright and mypy, never run.

Each ignore stands where an error is wanted: an unneeded one is an error itself.
"""

from typing import assert_type
from uuid import UUID

from lionagi import Branch, MemoryItem, MemoryQuery, Session

from adapter_sqlite import SqliteMemoryStore
from adapter_template import TemplateMemoryStore, TemplateService


async def a_store_of_their_items_fits() -> None:
    """The item class is the one argument more that lionagi needs."""
    Branch(memory=SqliteMemoryStore("a.db", item_type=MemoryItem))
    Session(memory=SqliteMemoryStore("a.db", item_type=MemoryItem, filters=["topic"]))
    Branch(memory=TemplateMemoryStore(TemplateService(), item_type=MemoryItem))

    store = SqliteMemoryStore("a.db", item_type=MemoryItem)
    assert_type(store, SqliteMemoryStore[MemoryItem])
    assert_type(await store.retrieve(UUID(int=1)), MemoryItem | None)
    assert_type(await store.search(MemoryQuery(text="tea")), list[MemoryItem])
    assert_type(await store.store(MemoryItem(content="tea")), UUID)
    async with store as entered:
        Branch(memory=entered)


def a_store_of_other_items_does_not() -> None:
    """Neither in the call nor by a variable is the class taken from what lionagi expects."""
    Branch(memory=SqliteMemoryStore("a.db"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Session(memory=SqliteMemoryStore("a.db", filters=["topic"]))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Branch(memory=TemplateMemoryStore(TemplateService()))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    store = SqliteMemoryStore("a.db")
    Branch(memory=store)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
