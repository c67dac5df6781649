"""X07, X10, X14: lifecycle, the extensions that a store claims, and the words of a text search."""

import asyncio
from typing import Any

from adapter_core import (
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsBatch,
    SupportsDelete,
    SupportsRevisions,
    SupportsScan,
    SupportsScoredSearch,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
    same_fields,
)

from ._run import UNDECLARED, Calls, CaseFailed, NotStaged, Run, check, fields_of, projection_of


async def x07_lifecycle(run: Run) -> None:
    store = await run.store()
    if not hasattr(store, "close"):
        raise NotStaged("the store has no close")
    item = run.item()
    await store.store(item)
    await _of_one_loop(store, item)
    await store.close()
    await store.close()
    calls: Calls = {
        "store": lambda: store.store(run.item()),
        "retrieve": lambda: store.retrieve(item.id),
        "search": lambda: store.search(MemoryQuery()),
        "search with limit 0": lambda: store.search(MemoryQuery(limit=0)),
    }
    for verb, call in calls.items():
        try:
            await call()
        except MemoryAdapterUnavailable:
            pass
        else:
            raise CaseFailed(f"{verb} works after close")
    never_used = await run.store()
    await never_used.close()
    async with await run.store() as entered:
        check(await entered.retrieve(item.id) is not None, "closing one store closes another")
    if run.can("make_transport_unavailable") and run.can("make_transport_available"):
        in_outage = await run.store()
        await in_outage.retrieve(item.id)
        async with run.outage():
            try:
                await asyncio.wait_for(in_outage.close(), 30)
            except MemoryAdapterError:
                await in_outage.close()  # a failed close is raised once


async def _of_one_loop(store: Any, item: MemoryItem) -> None:
    """A store belongs to the event loop of its first call; another one gets a clear error."""

    def elsewhere() -> None:
        asyncio.run(store.retrieve(item.id))

    try:
        await asyncio.wait_for(asyncio.to_thread(elsewhere), 30)
    except MemoryAdapterError as error:
        check(error.__cause__ is None, "another event loop reaches the transport")
    except Exception as error:  # noqa: BLE001 - a native error that escapes is a finding
        raise CaseFailed(f"from another event loop a call raises {type(error).__name__}") from None
    else:
        raise CaseFailed("a call from another event loop is taken")


async def x10_extensions(run: Run) -> None:
    store = await run.store()
    claimed = 0
    for protocol, body in (
        (SupportsBatch, _batch),
        (SupportsDelete, _delete),
        (SupportsScan, _scan),
        (SupportsRevisions, _revisions),
        (SupportsScoredSearch, _scored),
    ):
        if isinstance(store, protocol):
            claimed += 1
            await run.hook("reset")()
            await body(run, await run.store())
    if not claimed:
        raise NotStaged("the store claims no extension")
    run.notes.append(f"{claimed} of 5 extension protocols claimed and proved")


async def _batch(run: Run, store: Any) -> None:
    items = [run.item(f"one of many {n}", tags=[f"b{n}"]) for n in range(25)]
    twice = items[3].model_copy(update={"content": "the last wins", "tags": ["last"]})
    ids = await store.store_many([*items, twice])
    check(ids == [*(item.id for item in items), items[3].id], "store_many gives other ids")
    got = await store.retrieve_many([items[0].id, items[3].id, items[0].id, run.uuid()])
    check(set(got) == {items[0].id, items[3].id}, "retrieve_many gives other ids")
    check(got[items[3].id].content == "the last wins", "of the same id twice the first wins")
    check(await run.ids(store, tags=["b3"]) == [], "the loser of a batch left a trace")
    before = len(run.calls())
    check(await store.store_many([]) == [] and await store.retrieve_many([]) == {}, "not empty")
    bad = run.item(metadata={"when": float("nan")})
    try:
        await store.store_many([run.item("beside a bad one", tags=["beside"]), bad])
    except UnrepresentableItem as error:
        check(error.path == "items[1].metadata.when", "the path does not name the bad item")
    else:
        raise CaseFailed("store_many takes an item that cannot come back equal")
    check(len(run.calls()) == before, "a batch with a bad item reached the transport")
    check(await run.ids(store, tags=["beside"]) == [], "a refused batch left an item")


async def _delete(run: Run, store: Any) -> None:
    items = [run.item(f"to go {n}", tags=["go"]) for n in range(4)]
    for item in items:
        await store.store(item)
    check(await store.delete(items[0].id) is True, "delete denies that the item was there")
    check(await store.delete(items[0].id) is False, "delete finds an item that is gone")
    check(await store.retrieve(items[0].id) is None, "a deleted item is retrieved")
    for query in ({}, {"tags": ["go"]}, {"text": "go"}):
        found = await run.ids(store, **query)
        check(set(found) == {item.id for item in items[1:]}, "a deleted item is found")
    if run.can("make_store_with"):
        other = await run.store(namespace="beside")
        await other.store(run.item("stays", id=items[1].id))
        check(await store.clear() == 3, "clear does not count the items")
        check(len(await run.ids(other)) == 1, "clear empties another namespace")
    else:
        check(await store.clear() == 3, "clear does not count the items")
    check(await run.ids(store) == [], "clear leaves an item")
    check(await store.clear() == 0, "clear of an empty namespace counts items")


async def _scan(run: Run, store: Any) -> None:
    keys = run.filter_keys(store)[:1]
    items = [run.item(f"number {n}", metadata=dict.fromkeys(keys, n % 3)) for n in range(25)]
    for item in items:
        await store.store(item)
    await run.settle(store)
    seen: list[Any] = []
    async for item in store.scan(page_size=4):
        seen.append(item)
        if len(seen) == 5:  # writes while the scan is under way
            await store.store(items[0].model_copy(update={"created_at": 5.0e9}))
            await store.store(items[-1].model_copy(update={"created_at": -5.0}))
            await store.store(run.item("a late one"))
            await run.settle(store)
    ids = [item.id for item in seen]
    check(len(ids) == len(set(ids)), "a scan gives an item twice")
    check({item.id for item in items} <= set(ids), "a scan misses an item that was there")
    again = [item.id async for item in store.scan(after=ids[9], page_size=7)]
    behind = [one for one in again if one in ids]
    check(behind == ids[10:], "a scan cannot be resumed: its order is another, or it misses an item")
    for key in keys:
        some = {item.id async for item in store.scan(filters={key: 1}, page_size=2)}
        wanted = {item.id for item in items[1:-1] if item.metadata[key] == 1}
        check(wanted <= some <= {item.id for item in items}, "a scan ignores its filter")
    try:
        store.scan(filters={UNDECLARED: 1})
    except UnsupportedMemoryQuery:
        pass
    else:
        raise CaseFailed("a scan takes an unknown filter")


async def _revisions(run: Run, store: Any) -> None:
    item = run.item("first")
    check(await store.retrieve_revision(item.id) is None, "an unknown id has a revision")
    check(await store.replace(item, expected_revision=0) is None, "replace makes a new item")
    check(await store.retrieve(item.id) is None, "a stale replace stores")
    await store.store(item)
    got, first = await store.retrieve_revision(item.id)
    check(same_fields(got, projection_of(store).retrieve(fields_of(item))), "another item")
    second = await store.replace(item.model_copy(update={"content": "second"}), expected_revision=first)
    check(second is not None and second != first, "replace does not raise the revision")
    stale = await store.replace(item.model_copy(update={"content": "stale"}), expected_revision=first)
    check(stale is None, "a stale revision is accepted")
    check((await store.retrieve(item.id)).content == "second", "a stale replace stores")
    await store.store(item)
    check((await store.retrieve_revision(item.id))[1] not in (first, second), "store keeps it")
    _, current = await store.retrieve_revision(item.id)
    racers = [item.model_copy(update={"content": f"racer {n}"}) for n in range(8)]
    numbers = await asyncio.gather(*(store.replace(one, expected_revision=current) for one in racers))
    check(sum(number is not None for number in numbers) == 1, "a race has not one winner")
    deleting: Any = store
    if isinstance(deleting, SupportsDelete):
        _, old = await store.retrieve_revision(item.id)
        await deleting.delete(item.id)
        await store.store(item)
        stale = await store.replace(item, expected_revision=old)
        check(stale is None, "a revision of a deleted item is accepted")


async def _scored(run: Run, store: Any) -> None:
    for n in range(6):
        await store.store(run.item("needle " * (n + 1) + "hay " * 5))
    await run.settle(store)
    query = MemoryQuery(text="needle", limit=4)
    hits = await store.search_scored(query)
    plain = await store.search(query)
    check([h.item.id for h in hits] == [h.id for h in plain], "search_scored has other hits")
    scores = [hit.score for hit in hits]
    check(all(type(score) is float for score in scores), "a text hit has no score")
    check(scores == sorted(scores, reverse=True), "hits are not in the order of their scores")
    check(bool(store.score_meaning.strip()), "the score has no meaning")


TEXTS: dict[str, tuple[str, ...]] = {
    "don't stop": ("don't", "DON'T", "don t"),
    "C++ and C#": ("C++", "c+"),
    "München café": ("münchen", "Munchen", "CAFÉ", "cafe"),
    "用户身份验证 设备清单": ("用户", "设备", "用"),
    "重跑gen-itgc后50条": ("itgc", "重跑", "50"),
    "Сергей пришёл": ("сергей", "пришел"),
    "😀 party": ("😀", "party 😀"),
    "foo AND bar OR NEAR(baz": ("foo AND", "OR", "NEAR(", "-foo", "foo:bar", '"foo', "foo*"),
    "costs $1.75 (20.04)": ("$1.75", "20.04", "(costs", "costs)"),
    "Straße ﬁn": ("strasse", "FIN"),
    "x\x00y": ("x\x00y", "y"),
}
"""Contents, and texts that must find exactly the item with that content."""

NOWHERE = ("!!!", "*", "\ud83d", "...", "münchen zzz", "户用", "fo", "sto")
"""Texts that find nothing: no term, a term that is not there, a part of a word."""


async def x14_text(run: Run) -> None:
    store = await run.store()
    items = {content: run.item({"k": [content]}, tags=["t"]) for content in TEXTS}
    for item in items.values():
        await store.store(item)
    for content, texts in TEXTS.items():
        for text in texts:
            found = await run.ids(store, text=text)
            check(
                found == [items[content].id],
                f"the text {text!r} finds {len(found)} items, not exactly its own",
            )
    for text in NOWHERE:
        for tags in ([], ["t"]):
            found = await run.ids(store, text=text, tags=tags)
            check(found == [], f"the text {text!r} finds {len(found)} items")
    two = MemoryItem(id=run.uuid(), content=["left", {"key": "right"}])
    await store.store(two)
    check(await run.ids(store, text="right left") == [two.id], "not every string is indexed")
    check(await run.ids(store, text="key") == [], "a dict key is indexed as text")
