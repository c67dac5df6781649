"""Faults of what a call stores, acknowledges and raises, and of the extensions."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from adapter_core import (
    ItemLike,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    QueryLike,
    UnrepresentableItem,
)

from ._faults import Inner, Wrap, on
from ._run import fields_of

# What is stored and acknowledged


async def id_as_text(inner: Inner, item: ItemLike) -> Any:
    return str(await inner.store(item))


async def lists_of_tuples(inner: Inner, item: ItemLike) -> UUID:
    content: Any = item.content
    if type(item.content) is tuple:
        return await inner.store(fields_of(item)._replace(content=list(content)))
    return await inner.store(item)


async def texts_of_times(inner: Inner, item: ItemLike) -> UUID:
    metadata = {
        key: value.isoformat() if hasattr(value, "isoformat") else value
        for key, value in item.metadata.items()
    }
    return await inner.store(fields_of(item)._replace(metadata=metadata))


async def checked_late(inner: Inner, item: ItemLike) -> UUID:
    """The item is looked at only after a first request was sent."""
    try:
        return await inner.store(item)
    except UnrepresentableItem:
        await inner.retrieve(uuid4())
        raise


async def cancel_ignored(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except asyncio.CancelledError:
        return item.id


async def half_when_cancelled(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except asyncio.CancelledError:
        await inner.store(fields_of(item)._replace(tags=[]))
        raise


async def through_the_index(inner: Inner, item_id: UUID) -> Any:
    await inner.search(MemoryQuery(limit=1))
    return await inner.retrieve(item_id)


# Errors taken for answers. `_is_down` and `_takes_writes` keep each to its one occasion.


async def _is_down(inner: Inner, error: MemoryAdapterError) -> bool:
    """Whether this is an outage, and neither a closed store nor a capability that went away."""
    if error.__cause__ is None:
        return False
    try:
        await inner.retrieve(uuid4())
    except MemoryAdapterUnavailable:
        return True
    return False


async def _takes_writes(inner: Any) -> bool:
    """Whether another item can be stored; it is deleted again."""
    try:
        await inner.delete(await inner.store(MemoryItem()))
    except MemoryAdapterError:
        return False
    return True


def nothing_found(_: QueryLike) -> list[Any]:
    return []


def nothing_there(_: UUID) -> None:
    return None


def id_of(item: ItemLike) -> UUID:
    return item.id


def outage_gives(verb: str, answer: Callable[[Any], Any]) -> Wrap:
    """An outage is taken for an answer, made of the argument."""

    async def fault(inner: Inner, argument: Any) -> Any:
        try:
            return await getattr(inner, verb)(argument)
        except MemoryAdapterUnavailable as error:
            if await _is_down(inner, error):
                return answer(argument)
            raise

    return on(verb, fault)


async def tried_again(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterUnavailable as error:
        if error.__cause__ is None:
            raise
        return await inner.store(item)


async def native_error(inner: Inner, item_id: UUID) -> Any:
    try:
        return await inner.retrieve(item_id)
    except MemoryAdapterUnavailable as error:
        raise error.__cause__ or error from None


async def outage_unexplained(inner: Inner, query: QueryLike) -> list[Any]:
    try:
        return await inner.search(query)
    except MemoryAdapterUnavailable as error:
        raise MemoryAdapterUnavailable(str(error)) from None


async def native_refusal(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterError as error:
        plain = type(error) is MemoryAdapterError and error.__cause__ is not None
        if plain and not await _takes_writes(inner):
            raise RuntimeError(str(error)) from None
        raise


async def content_shown(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterError as error:
        if type(error) is MemoryAdapterError:
            raise MemoryAdapterError(f"{error}: {item.content}") from error.__cause__
        raise


async def refusal_ignored(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterError as error:
        plain = type(error) is MemoryAdapterError and error.__cause__ is not None
        if plain and not await _takes_writes(inner):
            return item.id
        raise


async def identity_made_up(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterError as error:
        plain = type(error) is MemoryAdapterError and error.__cause__ is None
        if plain and not await _takes_writes(inner):
            await inner.retrieve(item.id)  # an index of another signature refuses this too
            return item.id
        raise


async def foreign_ignored(inner: Inner, item: ItemLike) -> UUID:
    try:
        return await inner.store(item)
    except MemoryAdapterError as error:
        if type(error) is MemoryAdapterError and await _takes_writes(inner):
            return item.id
        raise


async def foreign_coerced(inner: Any, item_id: UUID) -> Any:
    """Whether something foreign is there shows when it cannot be overwritten."""
    got = await inner.retrieve(item_id)
    if got is not None:
        return got
    coerced = MemoryItem(id=item_id)
    try:
        await inner.delete(await inner.store(coerced))
    except MemoryAdapterError:
        return coerced if await _takes_writes(inner) else None
    return None


def malformed_gives(verb: str, answer: Callable[[Any], Any]) -> Wrap:
    """A record that does not decode is taken for an answer."""

    async def fault(inner: Inner, argument: Any) -> Any:
        try:
            return await getattr(inner, verb)(argument)
        except MemoryAdapterError as error:
            if isinstance(error.__cause__, ValueError):
                return answer(argument)
            raise

    return on(verb, fault)


async def refused_search_is_empty(inner: Inner, query: QueryLike) -> list[Any]:
    try:
        return await inner.search(query)
    except MemoryAdapterError as error:
        plain = type(error) is MemoryAdapterError and error.__cause__ is not None
        if plain and not isinstance(error.__cause__, ValueError):
            return []
        raise


async def cause_lost(inner: Inner, item_id: UUID) -> Any:
    try:
        return await inner.retrieve(item_id)
    except MemoryAdapterError as error:
        if isinstance(error.__cause__, ValueError):
            raise MemoryAdapterError(str(error)) from None
        raise


# Extensions


async def first_wins(inner: Any, items: list[ItemLike]) -> list[UUID]:
    first: dict[UUID, ItemLike] = {}
    for item in items:
        first.setdefault(item.id, item)
    await inner.store_many(first.values())
    return [item.id for item in items]


async def rest_of_batch(inner: Any, items: list[ItemLike]) -> list[UUID]:
    """What can be stored of a refused batch is stored."""
    try:
        ids: list[UUID] = await inner.store_many(items)
    except UnrepresentableItem:
        await inner.store(items[0])
        raise
    return ids


async def delete_says_yes(inner: Any, item_id: UUID) -> bool:
    await inner.delete(item_id)
    return True


async def clear_counts_nothing(inner: Any) -> int:
    await inner.clear()
    return 0
