"""C07 to C11 and C14: what a search accepts, finds and gives back."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from adapter_core import (
    TIME_FILTERS,
    AnyOf,
    ItemFields,
    MemoryAdapterError,
    MemoryItem,
    MemoryQuery,
    QueryLike,
    UnsupportedMemoryQuery,
    facet_token,
    same_fields,
)

from ._fidelity import PLAIN, check_fields, check_losses, observed_fidelity, round_trip
from ._run import KIT_FILTERS, UNDECLARED, CaseFailed, Run, check, fields_of, projection_of
from .values import BAD_FILTER_VALUES, FILTER_VALUES, equal_scalars

LAG_SAMPLES = 100
"""How many writes the lag of a search index is measured on."""

LAG_SECONDS = 60.0
"""How long that may take; then there are fewer."""


@dataclass(frozen=True)
class HostItem:
    """An item class of a host framework, which knows nothing of this project."""

    id: UUID
    created_at: float
    metadata: dict[str, Any]
    content: Any
    tags: list[str]


@dataclass(frozen=True)
class HostQuery:
    """A query class of a host framework, which checks nothing by itself."""

    text: Any = None
    tags: Any = None
    filters: Any = None
    limit: Any = 20


async def c07_typed_hits(run: Run) -> None:
    store = await run.store()
    trips = await round_trip(run, store, "search")
    for _, hit, _ in trips:
        check(type(hit) is MemoryItem, f"a hit is a {type(hit).__name__}, not the item class")
        check(list(hit.__dict__) == list(ItemFields._fields), "a hit has further attributes")
    check_fields(trips, PLAIN, "search")
    run.claim(store.manifest, "search_fidelity", observed_fidelity(trips, "search"))
    run.settle_claims()
    check_losses(run, store, "search", PLAIN)
    if run.can("make_store_with"):
        hosted = await run.store(item_type=HostItem)
        hits = await run.search(hosted, limit=1)
        check(bool(hits) and type(hits[0]) is HostItem, "hits are not of the host's item class")
        got = await hosted.retrieve(trips[0][0].id)
        check(type(got) is HostItem, "retrieve does not give the host's item class")


async def c08_limit(run: Run) -> None:
    store = await run.store()
    items = [run.item(f"memory {n}", tags=["t"]) for n in range(7)]
    for item in items:
        await store.store(item)
    for limit in (1, 3, 7, 8, 2**63):
        for query in ({}, {"tags": ["t"]}, {"text": "memory"}):
            found = await run.ids(store, limit=limit, **query)
            check(
                len(found) == len(set(found)) == min(limit, 7),
                f"limit={limit} gives {len(found)} of 7 matches",
            )
    before = len(run.calls())
    check(await store.search(MemoryQuery(limit=0)) == [], "limit=0 gives hits")
    for bad in (-1, -100, True, 2.5, None, "3"):
        await _rejected(store, MemoryQuery(limit=bad), ("limit",), f"limit={bad!r}")
    check(len(run.calls()) == before, "a limit that gives nothing reached the transport")


async def c09_empty_query(run: Run) -> None:
    store = await run.store()
    times = [100.0, 300.0, 200.0, 200.0, 200.0, -1.5, 0.0, 99.96]
    items = [run.item(f"memory {n}", created_at=time) for n, time in enumerate(times)]
    items += [run.item("filler", created_at=-100.0 - n) for n in range(20)]
    for item in items:
        await store.store(item)
    project = projection_of(store).retrieve
    newest_first = [
        item.id for item in sorted(items, key=lambda one: (-project(fields_of(one)).created_at, one.id))
    ]
    empty: list[dict[str, Any]] = [
        {},
        {"text": None},
        {"text": ""},
        {"text": " \t\n"},
        {"tags": []},
        {"tags": None},
        {"filters": {}},
        {"filters": None},
    ]
    for query in empty:
        found = await run.ids(store, **query)
        check(
            found == newest_first[:20],
            "the empty query does not give the newest 20, newest first, then by id",
        )
        found = await run.ids(store, limit=100, **query)
        check(found == newest_first, "the empty query does not list everything")


async def c10_unsupported_filter(run: Run) -> None:
    store = await run.store()
    await store.store(run.item(metadata=dict.fromkeys((*run.filter_keys(store), UNDECLARED), "v")))
    await _claim_filters(run, store)
    before = len(run.calls())
    await _rejected(store, MemoryQuery(filters={UNDECLARED: "v"}), (UNDECLARED,), "an unknown key")
    many = {f"{UNDECLARED}_{n}": "v" for n in (2, 1)}
    wanted = tuple(sorted(many))
    mixed = {**many, **dict.fromkeys(run.filter_keys(store)[:1], "v")}
    await _rejected(store, MemoryQuery(filters=mixed), wanted, "two unknown keys beside a known one")
    for key in ("$or", "author' = 'alice' OR '1'='1' --", "user_id:{*} | @x", "content", "id", ""):
        if key not in store.manifest.supported_filters:
            await _rejected(store, MemoryQuery(filters={key: 1}), (key,), f"the key {key!r}")
    for key in (*run.filter_keys(store)[:1], *sorted(TIME_FILTERS)):
        for value in BAD_FILTER_VALUES:
            bad = MemoryQuery(filters={key: value})
            if key in store.manifest.supported_filters:
                await _rejected(store, bad, (key,), f"a {type(value).__name__} for {key}")
    for name, wrong in (("text", 5), ("tags", "alpha"), ("tags", [1]), ("filters", [("k", 1)])):
        asked = HostQuery(**{name: wrong})
        await _rejected(store, asked, (name,), f"a host's query with a {type(wrong).__name__} for {name}")
    check(len(run.calls()) == before, "a refused query reached the transport")


async def _claim_filters(run: Run, store: Any) -> None:
    """See which keys are really accepted, declared or not; those that the kit named must be."""
    named = frozenset(KIT_FILTERS) | TIME_FILTERS
    declared = store.manifest.supported_filters
    accepted: set[str] = set()
    for key in sorted(declared | named | {UNDECLARED}):
        try:
            await store.search(MemoryQuery(filters={key: 1}))
            accepted.add(key)
        except UnsupportedMemoryQuery as error:
            check(error.rejected_keys == (key,), f"the refusal of {key} names other keys")
    run.claim(store.manifest, "supported_filters", frozenset(accepted))
    run.settle_claims()
    if run.can("make_store_with"):  # then the keys were named at construction, and are all there are
        run.claim(store.manifest, "supported_filters", named)
        run.settle_claims()


async def _rejected(store: Any, query: QueryLike, keys: tuple[str, ...], what: str) -> None:
    try:
        await store.search(query)
    except UnsupportedMemoryQuery as error:
        if error.rejected_keys != keys:
            raise CaseFailed(f"{what}: rejected {error.rejected_keys}, not {keys}") from None
    except MemoryAdapterError as error:
        raise CaseFailed(f"{what}: {type(error).__name__}, not UnsupportedMemoryQuery") from None
    else:
        raise CaseFailed(f"{what}: accepted")


async def c11_supported_filter(run: Run) -> None:
    store = await run.store()
    for key in run.filter_keys(store):
        await _typed_equality(run, store, key)
    if store.manifest.supported_filters >= TIME_FILTERS:
        await _time_ranges(run, store)
    await _before_top_k(run, store)
    if run.environment == "fake" and run.logs_calls:
        for key in run.filter_keys(store):
            before = len(run.calls())
            await store.search(MemoryQuery(filters={key: "Reaches it"}))
            sent = [call.payload for call in run.calls()[before:] if call.kind == "search"]
            check(
                any(facet_token(key, "Reaches it") in payload for payload in sent),
                f"the filter {key} is not in the payload of transport_calls() as its facet token",
            )


async def _typed_equality(run: Run, store: Any, key: str) -> None:
    items = [run.item(metadata={key: value}) for value in FILTER_VALUES]
    others = [{}, {key: [1]}, {key: {"a": 1}}, {f"{key}s": "1"}, {key.upper(): "1"}]
    for item in (*items, *(run.item(metadata=one) for one in others)):
        await store.store(item)

    async def found(value: Any) -> set[UUID]:
        return set(await run.ids(store, filters={key: value}, limit=1000))

    for asked in (*FILTER_VALUES, "never stored", 2**64 + 1, 10**40 + 1):
        wanted = {
            item.id for item, value in zip(items, FILTER_VALUES, strict=True) if equal_scalars(asked, value)
        }
        check(
            await found(asked) == wanted,
            f"{key} = {asked!r} does not find exactly the items with that value and type",
        )
    check(await found(AnyOf()) == set(), "AnyOf() finds something")
    both = await found("1") | await found(True)
    check(await found(AnyOf("1", True)) == both, "AnyOf does not find the union of its values")


async def _time_ranges(run: Run, store: Any) -> None:
    tag = "time-range"
    project = projection_of(store).retrieve
    items = [run.item(tags=[tag], created_at=time) for time in (99.96, 100.0, 100.25, 200.0, -5.5)]
    for item in items:
        await store.store(item)
    stored = {item.id: project(fields_of(item)).created_at for item in items}
    for after, before in (
        (100.0, None),
        (100, 100),
        (None, 99.99),
        (-5.5, 100.25),
        (300, None),
        (101, 100),
        (10**400, None),
        (None, 10**400),
        *((bound, bound) for bound in sorted(set(stored.values()))),
    ):
        bounds = {"created_after": after, "created_before": before}
        filters = {key: value for key, value in bounds.items() if value is not None}
        wanted = {
            item
            for item, time in stored.items()
            if (after is None or time >= after) and (before is None or time <= before)
        }
        found = set(await run.ids(store, tags=[tag], filters=filters, limit=100))
        if found != wanted:
            unbounded = set(await run.ids(store, tags=[tag], limit=100))
            check(
                unbounded == stored.keys(), "items are not found by their tag, without bounds of time either"
            )
            raise CaseFailed("created_after and created_before are not inclusive bounds")


async def _before_top_k(run: Run, store: Any) -> None:
    """Conditions are met before the limit, not by thinning out the first few."""
    keys = run.filter_keys(store)

    def made(where: str, content: str, begin: float, count: int) -> list[MemoryItem]:
        metadata = dict.fromkeys(keys, where)
        return [
            run.item(content, tags=[where, "both"], metadata=metadata, created_at=begin + n)
            for n in range(count)
        ]

    near = made("near", "quantum " * 5, 2e9, 30)
    far = made("far", "quantum and much else", 1e9, 5)
    for item in (*near, *far):
        await store.store(item)
    queries: list[tuple[str, dict[str, Any]]] = [
        ("tags", {"text": "quantum", "tags": ["far"]}),
        ("terms", {"text": "much else", "tags": ["both"]}),
    ]
    for key in keys:
        queries += [
            ("filters", {"tags": ["both"], "filters": {key: "far"}}),
            ("filters", {"text": "quantum", "filters": {key: "far"}}),
        ]
    time = projection_of(store).retrieve(fields_of(far[0])).created_at
    if store.manifest.supported_filters >= TIME_FILTERS and time == 1e9:
        queries.append(("times", {"text": "quantum", "filters": {"created_before": 1.5e9}}))
    wanted = {item.id for item in far}
    for group, query in queries:
        if set(await run.ids(store, limit=5, **query)) != wanted:
            unlimited = set(await run.ids(store, limit=1000, **query))
            check(unlimited == wanted, f"{group} do not find exactly the items that meet them")
            raise CaseFailed(f"{group} are applied after the limit")


async def c14_consistency(run: Run) -> None:
    store = await run.store()
    eventual = store.manifest.search_consistency == "eventual"
    if not eventual:
        await _found_at_once(run, store)
    elif run.environment == "fake":
        await _missed_then_found(run, store)
    else:
        await _lag(run, store)


async def _found_at_once(run: Run, store: Any) -> None:
    other = await run.store()
    for handle in (store, other):
        item = run.item("first words", tags=["at-once"])
        for content in ("first words", "second words"):  # a replace is a write like any other
            item = item.model_copy(update={"content": content})
            await store.store(item)
            hits = await handle.search(MemoryQuery(tags=["at-once"], limit=10))
            current = [hit.content for hit in hits if hit.id == item.id]
            missed = current != [content]
            run.claim(store.manifest, "search_consistency", "eventual" if missed else "immediate")
            run.settle_claims()


async def _missed_then_found(run: Run, store: Any) -> None:
    expose = run.hook("make_search_index_visible")
    item = run.item("first words", tags=["lag"])

    async def found() -> list[Any]:
        hits = await store.search(MemoryQuery(tags=["lag"], limit=10))
        return [hit.content for hit in hits if hit.id == item.id]

    await store.store(item)
    missed = await found() == []
    run.claim(store.manifest, "search_consistency", "eventual" if missed else "immediate")
    run.settle_claims()
    await _current(store, item)
    await expose()
    check(await found() == ["first words"], "not found after the index was exposed")
    item = item.model_copy(update={"content": "second words"})
    await store.store(item)
    await _current(store, item)
    await expose()
    check(await found() == ["second words"], "a replace is not found after the index was exposed")
    run.notes.append("missed while the index was held back, found after it was exposed")


async def _lag(run: Run, store: Any) -> None:
    """Where the lag cannot be controlled it is measured and reported, not judged."""
    lags: list[float] = []
    begin = monotonic()
    while len(lags) < LAG_SAMPLES and (not lags or monotonic() - begin < LAG_SECONDS):
        item = run.item("some words", tags=[f"lag {len(lags)}"])
        await store.store(item)
        if not lags:
            await _current(store, item)
        lags.append(await _lag_of(run, store, item))
    low, high = percentile(lags, 50), percentile(lags, 99)
    run.figures |= {"lag_samples": len(lags), "lag_p50_seconds": low, "lag_p99_seconds": high}
    run.notes.append(f"search lag p50 {low:.3f} s, p99 {high:.3f} s, of {len(lags)} writes")
    other = run.item("some words", tags=["lag"])
    for content in ("some words", "other words"):  # a replace is a write like any other
        await store.store(other.model_copy(update={"content": content}))
    await _current(store, other.model_copy(update={"content": "other words"}))


async def _lag_of(run: Run, store: Any, item: MemoryItem) -> float:
    async def found() -> bool:
        hits = await store.search(MemoryQuery(tags=item.tags, limit=10))
        return any(hit.id == item.id for hit in hits)

    lag = await run.poll(found)
    if lag is None:
        raise CaseFailed("never found: the search index does not converge")
    return lag


def percentile(values: Sequence[float], percent: int) -> float:
    """Give the smallest of the values that `percent` of them do not exceed (nearest rank)."""
    rank = -(-percent * len(values) // 100)
    return round(sorted(values)[max(rank, 1) - 1], 6)


async def _current(store: Any, item: MemoryItem) -> None:
    got = await store.retrieve(item.id)
    expected = projection_of(store).retrieve(fields_of(item))
    check(
        got is not None and same_fields(got, expected),
        "retrieve is not current while the search index lags",
    )
