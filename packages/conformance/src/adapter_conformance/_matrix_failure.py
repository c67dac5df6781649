"""C15 and C16: an outage is an error, and so is a write that did not happen."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    UnsupportedMemoryQuery,
    same_fields,
)

from ._run import CaseFailed, Run, check, fields_of, projection_of


def _verbs(store: Any, item: MemoryItem, known: MemoryItem) -> dict[str, Callable[[], Awaitable[Any]]]:
    return {
        "store": lambda: store.store(item),
        "retrieve": lambda: store.retrieve(known.id),
        "search": lambda: store.search(MemoryQuery(tags=["t"])),
        "search for nothing possible": lambda: store.search(MemoryQuery(text="!!!")),
    }


async def c15_outage(run: Run) -> None:
    known, item = run.item("known", tags=["t"]), run.item("in the outage", tags=["t"])
    store = await run.store()
    await store.store(known)
    check(await store.retrieve(known.id) is not None, "the control call fails before the outage")
    for verb in _verbs(store, item, known):
        fresh = await run.store()
        async with run.outage():
            await _unavailable(run, store, verb, item, known, "in mid-life")
            await _unavailable(run, fresh, verb, item, known, "on the first call")
        for handle in (store, fresh):
            await _works_again(handle, verb, known)
    await _tick_in_outage(run, store)
    got = await store.retrieve(item.id)
    check(got is None, "an item of a failed store was stored although the service was down")
    await store.store(item)
    check(
        set(await run.ids(store, tags=["t"])) == {known.id, item.id},
        "search does not work again after the outage",
    )


async def _tick_in_outage(run: Run, store: Any) -> None:
    """Writes of one moment may go as one request; none of them is sent a second time."""
    items = [run.item("at once", tags=["at once"]) for _ in range(4)]
    before = len(run.calls())
    async with run.outage():
        outcomes = await asyncio.gather(*map(store.store, items), return_exceptions=True)
    check(
        all(isinstance(one, MemoryAdapterUnavailable) for one in outcomes),
        "one of several writes at once gives a result while the service is down",
    )
    sent = len(run.calls()) - before
    check(sent <= len(items), f"{len(items)} writes at once send {sent} requests in an outage")


async def _works_again(store: Any, verb: str, known: MemoryItem) -> None:
    try:
        got = await store.retrieve(known.id)
    except MemoryAdapterError:
        got = None
    check(got is not None, f"{verb}: the store does not work again after the outage")


async def _unavailable(
    run: Run, store: Any, verb: str, item: MemoryItem, known: MemoryItem, when: str
) -> None:
    before = len(run.calls())
    try:
        await _verbs(store, item, known)[verb]()
    except MemoryAdapterUnavailable as error:
        check(error.__cause__ is not None, f"{verb} {when} hides the native error")
    except Exception as error:  # noqa: BLE001 - a native error that escapes is a finding
        raise CaseFailed(f"{verb} {when} raises {type(error).__name__}") from None
    else:
        raise CaseFailed(f"{verb} {when} gives a result while the service is down")
    if run.logs_calls:
        sent = len(run.calls()) - before
        check(sent == 1, f"{verb} {when} sends {sent} requests in an outage, not one")


async def c16_rejected_write(run: Run) -> None:
    store = await run.store()
    old = run.item("the old words", tags=["t"])
    await store.store(old)
    async with run.staged("refuse_writes"):
        item = run.item("not to be shown", tags=["t"])
        error = await _write_fails(store, item, "a refused write")
        check(error.__cause__ is not None, "a refused write hides the native error")
        check(await store.retrieve(item.id) is None, "a refused write can be retrieved")
        replaced = old.model_copy(update={"content": "not to be shown either", "tags": ["t", "u"]})
        await _write_fails(store, replaced, "a refused replace")
    await _only_the_old(run, store, old)
    async with run.staged("drop_identity"):
        what = "an acknowledgement without identity"
        item = run.item("not to be shown", tags=["t"])
        await _write_fails(store, item, what)
        check(await store.retrieve(item.id) is None, f"{what} can be retrieved")
    await _only_the_old(run, store, old)


async def _only_the_old(run: Run, store: Any, old: MemoryItem) -> None:
    check(await run.ids(store, limit=10) == [old.id], "a refused write left something behind")
    got = await store.retrieve(old.id)
    expected = projection_of(store).retrieve(fields_of(old))
    check(got is not None and same_fields(got, expected), "a refused replace changed the stored item")
    check(await run.ids(store, tags=["u"]) == [], "a refused replace left a tag in the index")


async def _write_fails(store: Any, item: MemoryItem, what: str) -> MemoryAdapterError:
    try:
        await store.store(item)
    except MemoryAdapterError as error:
        wrong_kinds = (MemoryAdapterUnavailable, UnsupportedMemoryQuery)
        check(not isinstance(error, wrong_kinds), f"{what} raises {type(error).__name__}")
        check(item.content not in f"{error!r}{error}", f"the error of {what} shows the content")
        return error
    except Exception as error:  # noqa: BLE001 - a native error that escapes is a finding
        raise CaseFailed(f"{what} raises {type(error).__name__}") from None
    raise CaseFailed(f"{what} gives an identifier")
