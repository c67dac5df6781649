"""X01 to X06, X08, X09, X11, X12 and X14: what the matrix does not ask and a user relies on."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsReindex,
    same_fields,
)

from ._run import Calls, CaseFailed, NotStaged, Run, check, fields_of, projection_of


async def x01_late_filter(run: Run) -> None:
    run.hook("make_store_with")
    early = await run.store(filters=())
    item = run.item(metadata={"late": "yes"})
    await early.store(item)
    await early.store(run.item(metadata={"late": "no"}))
    late = await run.store(filters=("late",))
    check(
        await run.ids(late, filters={"late": "yes"}) == [item.id],
        "a filter key declared later does not find the items that were there before",
    )


async def x02_index_signature(run: Run) -> None:
    age = run.hook("age_index")
    store = await run.store()
    item = run.item("words of old", tags=["t"])
    await store.store(item)
    await store.close()
    await age()
    late = await run.store()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: late.store(run.item()),
        lambda: late.retrieve(item.id),
        lambda: late.search(MemoryQuery()),
    ]
    for call in calls:
        try:
            await call()
        except MemoryAdapterError as error:
            check("terms" in str(error), "the refusal does not name the difference")
        else:
            raise CaseFailed("a namespace that is indexed in another way is used all the same")
    check(isinstance(late, SupportsReindex), "the store cannot reindex the namespace")
    check(await late.reindex() == 1, "reindex does not count the items")
    check(await run.ids(late, text="words") == [item.id], "not found after reindex")
    fresh = await run.store()
    check(await fresh.retrieve(item.id) is not None, "refused after reindex")


async def x03_no_trace(run: Run) -> None:
    store = await run.store()
    keys = run.filter_keys(store)[:1]
    old = run.item("zebra", tags=["old"], metadata=dict.fromkeys(keys, "old"), created_at=100.0)
    await store.store(old)
    await run.settle(store)
    queries: list[dict[str, Any]] = [{"text": "zebra"}, {"tags": ["old"]}]
    queries += [{"filters": {key: "old"}} for key in keys]
    # first in its place of time, which an index may keep, and then in another
    await store.store(MemoryItem(id=old.id, content="okapi", tags=["middle"], created_at=100.0))
    for query in queries:
        check(await run.ids(store, **query) == [], "a replaced item is found by what it was")
    await store.store(MemoryItem(id=old.id, content="yak", tags=["new"], created_at=200.0))
    queries += [{"text": "okapi"}, {"tags": ["middle"]}, {"filters": {"created_before": 150.0}}]
    if projection_of(store).retrieve(fields_of(old)).created_at != 100.0:
        queries.pop()  # a store that drops the time keeps no range to leave a trace in
    for query in queries:
        check(await run.ids(store, **query) == [], "a replaced item is found by what it was")
    check(await run.ids(store, text="yak", tags=["new"]) == [old.id], "a replace is not found")
    check(len(await run.ids(store)) == 1, "a replace leaves two items")


async def x04_aliasing(run: Run) -> None:
    store = await run.store()
    item = run.item({"list": [1]}, metadata={"m": {"k": [1]}}, tags=["t"])
    given = deepcopy(item)
    storing = asyncio.ensure_future(store.store(item))
    await asyncio.sleep(0)  # the call has begun; what the caller does now is too late
    item.content["list"].append(2)
    item.metadata["m"]["k"].append(2)
    item.tags.append("u")
    await storing
    expected = projection_of(store).retrieve(fields_of(given))
    first = await store.retrieve(item.id)
    check(same_fields(first, expected), "changing an item after store changes what is stored")
    found = (await run.search(store))[0]
    before = deepcopy(fields_of(found))
    for handed_out in (first, found):
        handed_out.content["list"].append(3)
        handed_out.metadata.clear()
        handed_out.tags.append("v")
    again = await store.retrieve(item.id)
    check(same_fields(again, expected), "changing what was handed out changes what is stored")
    hit = (await run.search(store))[0]
    check(same_fields(hit, before), "changing a hit changes what is found")


async def x05_namespaces(run: Run) -> None:
    run.hook("make_store_with")
    names = ("default", "Default", "default ", "default:a", "default*", "", "de\x00fault", "naïve")
    stores = [await run.store(namespace=name) for name in names]
    shared = run.uuid()
    for number, store in enumerate(stores):
        await store.store(run.item(f"number {number}", id=shared, tags=[f"n{number}", "all"]))
    for number, store in enumerate(stores):
        got = await store.retrieve(shared)
        check(got is not None, "an item is not retrieved in its own namespace")
        check(got.content == f"number {number}", "an item of another namespace is retrieved")
        for query in ({}, {"tags": ["all"]}, {"text": "number"}):
            found = [hit.content for hit in await run.search(store, **query)]
            check(found != [], "an item is not found in its own namespace")
            check(found == [f"number {number}"], "an item of another namespace is found")


async def x06_cancellation(run: Run) -> None:
    store = await run.store()
    before = run.item("before", tags=["t"])
    await store.store(before)
    for steps in range(6):
        item = run.item(f"cancelled after {steps} steps", tags=["t"])
        task = asyncio.ensure_future(store.store(item))
        for _ in range(steps):
            await asyncio.sleep(0)
        pending = task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        check(task.cancelled() or not pending, "a cancelled store goes on as if it were not")
        got = await store.retrieve(item.id)
        whole = projection_of(store).retrieve(fields_of(item))
        check(got is None or same_fields(got, whole), "a cancelled store left half an item")
        reads: list[Callable[[], Awaitable[Any]]] = [
            lambda: store.retrieve(before.id),
            lambda: store.search(MemoryQuery(tags=["t"])),
        ]
        for read in reads:
            reading = asyncio.ensure_future(read())
            for _ in range(steps):
                await asyncio.sleep(0)
            pending = reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            check(reading.cancelled() or not pending, "a cancelled read goes on as if it were not")
        after = await store.retrieve(before.id)
        check(
            after is not None and after.id == before.id,
            "after a cancelled call the next one gets another's answer",
        )


async def x08_concurrent_replace(run: Run) -> None:
    handles = [await run.store(), await run.store()]
    item_id = run.uuid()
    versions = [
        run.item(f"version {n} " * 20, id=item_id, tags=[f"v{n}"], metadata={"n": n}) for n in range(12)
    ]
    await asyncio.gather(*(handles[n % 2].store(version) for n, version in enumerate(versions)))
    got = await handles[0].retrieve(item_id)
    project = projection_of(handles[0]).retrieve
    winners = [v for v in versions if same_fields(project(fields_of(v)), got)]
    check(len(winners) == 1, "concurrent replaces left an item that nobody stored")
    found = {tag: await run.ids(handles[1], tags=[tag]) for tag in (v.tags[0] for v in versions)}
    traces = [tag for tag, ids in found.items() if ids]
    check(traces == winners[0].tags, "concurrent replaces left traces of the losers in the index")


async def x09_setup_race(run: Run) -> None:
    for race in range(3):
        await run.hook("reset")()
        fresh = {"namespace": f"race {race}"} if run.can("make_store_with") else {}
        stores = [await run.store(**fresh) for _ in range(12)]
        items = [run.item(f"racer {n}") for n in range(12)]
        await asyncio.gather(*(s.store(i) for s, i in zip(stores, items, strict=True)))
        found = set(await run.ids(stores[0], limit=100))
        check(found == {item.id for item in items}, "stores that set up at once lose items")


async def x11_degraded(run: Run) -> None:
    degrade = run.hook("degrade")
    store = await run.store()
    item = run.item("known", tags=["t"])
    await store.store(item)
    manifest = store.manifest
    await degrade()
    calls: Calls = {
        "store": lambda: store.store(run.item()),
        "search": lambda: store.search(MemoryQuery(tags=["t"])),
    }
    for verb, call in calls.items():
        try:
            await call()
        except MemoryAdapterUnavailable:
            pass
        except MemoryAdapterError as error:
            raise CaseFailed(f"{verb} raises {type(error).__name__} when degraded") from None
        else:
            raise CaseFailed(f"{verb} goes on although a capability went away")
    check(store.manifest == manifest, "the manifest changes when a capability goes away")


async def x12_malformed(run: Run) -> None:
    plant = run.hook("plant_malformed_record")
    store = await run.store()
    item = run.item("whole", tags=["t"])
    await store.store(item)
    await run.settle(store)
    await plant(item.id)
    calls: Calls = {
        "retrieve": lambda: store.retrieve(item.id),
        "search": lambda: store.search(MemoryQuery(tags=["t"])),
    }
    for verb, call in calls.items():
        try:
            await call()
        except MemoryAdapterUnavailable:
            raise CaseFailed(f"{verb} calls a malformed record unavailability") from None
        except MemoryAdapterError as error:
            check(error.__cause__ is not None, f"{verb} gives no cause")
            check("whole" not in f"{error}{error.__cause__}", f"{verb} shows the item's content")
        else:
            raise CaseFailed(f"{verb} gives a result for a malformed record")
    async with _queries_refused(run):
        try:
            await store.search(MemoryQuery(tags=["t"]))
        except MemoryAdapterError:
            pass
        else:
            raise CaseFailed("a refused search gives a result")


def _queries_refused(run: Run) -> Any:
    if not run.can("refuse_queries"):
        raise NotStaged(getattr(run.harness, "not_staged", {}).get("refuse_queries", "no hook"))
    return run.staged("refuse_queries")
