"""C01 to C06, C12 and C13: what the store is, and what becomes of an item."""

import asyncio
import datetime
import decimal
import enum
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pydantic

from adapter_core import (
    ExternalMemoryStore,
    ItemFields,
    ItemLike,
    MemoryAdapterError,
    MemoryAdapterManifest,
    MemoryItemField,
    MemoryStore,
    UnrepresentableItem,
    same_fields,
    same_value,
)

from ._fidelity import (
    PLAIN,
    check_fields,
    check_losses,
    dropped_of,
    observed_fidelity,
    round_trip,
)
from ._run import CaseFailed, HarnessFault, Run, check, fields_of, projection_of


async def c01_surface(run: Run) -> None:
    store = await run.store()
    check(isinstance(store, MemoryStore), "the store lacks one of the three verbs")
    check(isinstance(store, ExternalMemoryStore), "the store has no manifest")
    manifest: Any = store.manifest
    check(isinstance(manifest, MemoryAdapterManifest), "the manifest is of another class")
    try:
        MemoryAdapterManifest.model_validate(manifest.model_dump())
    except pydantic.ValidationError:
        raise CaseFailed("the manifest does not validate") from None
    await store.store(run.item())
    check(store.manifest is manifest, "the manifest is another object after a call")
    try:
        manifest.adapter = "another"
    except pydantic.ValidationError:
        pass
    else:
        raise CaseFailed("the manifest can be changed")
    run.claim(manifest, "adapter", run.adapter)
    run.settle_claims()


async def c02_identifier(run: Run) -> None:
    store = await run.store()
    item = run.item()
    for _ in range(2):  # the second time it replaces itself
        got = await store.store(item)
        check(isinstance(got, UUID), f"store gives {type(got).__name__}, not a UUID")
        check(got == item.id, "store gives another id than the item's")


async def c03_retrieval(run: Run) -> None:
    store = await run.store()
    trips = await round_trip(run, store, "retrieve")
    check_fields(trips, PLAIN, "retrieve")
    run.claim(store.manifest, "retrieve_fidelity", observed_fidelity(trips, "retrieve"))
    run.settle_claims()
    check_losses(run, store, "retrieve", PLAIN)
    before = len(run.calls())
    await store.retrieve(trips[0][0].id)
    if run.logs_calls:
        kinds = [call.kind for call in run.calls()[before:]]
        check("search" not in kinds, "retrieve goes through the search index")
        check(kinds.count("identity") == 1, "retrieve is not one read by identity")
    other = await run.store()
    again = await other.retrieve(trips[0][0].id)
    check(
        again is not None and same_fields(again, trips[0][1]),
        "a second handle on the namespace reads another item",
    )


async def c04_unknown(run: Run) -> None:
    store = await run.store()
    check(await store.retrieve(run.uuid()) is None, "an empty store retrieves something")
    item = run.item()
    await store.store(item)
    check(await store.retrieve(run.uuid()) is None, "an unknown id retrieves something")
    for bit in (0, 64, 127):  # the last bit, the middle, the first
        near = UUID(int=item.id.int ^ 1 << bit)
        check(await store.retrieve(near) is None, "an unknown id retrieves the item of a similar one")
    await run.hook("reset")()
    if await (await run.store()).retrieve(item.id) is not None:
        raise HarnessFault("reset leaves an item")


async def c05_foreign(run: Run) -> None:
    plant = run.hook("plant_foreign_record")
    store = await run.store()
    neighbour = run.item("a neighbour", tags=["t"])
    await store.store(neighbour)
    item = run.item("would overwrite", tags=["t"])
    await plant(item.id)
    check(await store.retrieve(item.id) is None, "a foreign record is given out as an item")
    check(await run.ids(store, limit=10) == [neighbour.id], "a foreign record is among the hits")
    try:
        await store.store(item)
    except MemoryAdapterError:
        pass
    else:
        raise CaseFailed("store overwrites a foreign record")
    check(await store.retrieve(item.id) is None, "a refused item can be retrieved")
    check(await run.ids(store, tags=["t"], limit=10) == [neighbour.id], "a refused item is found")
    beside = run.item("beside a refused one", tags=["u"])
    calls: list[Awaitable[Any]] = [store.store(item), store.store(beside)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    check(isinstance(outcomes[0], MemoryAdapterError), "one of two writes at once hides a refusal")
    check(not isinstance(outcomes[1], BaseException), "a write fails because of another of the same moment")
    check(await run.ids(store, tags=["u"]) == [beside.id], "a write beside a refused one is not found")


class _Colour(enum.IntEnum):
    RED = 1


class _Text(str):
    __slots__ = ()


class _Model(pydantic.BaseModel):
    a: int = 1


UNREPRESENTABLE: dict[str, tuple[Any, str]] = {
    "tuple": ((1, 2), ""),
    "set": ({1, 2}, ""),
    "bytes": (b"\x00\xff", ""),
    "datetime": (datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC), ""),
    "Decimal": (decimal.Decimal("1.10"), ""),
    "NaN": (float("nan"), ""),
    "infinity": ([0, float("-inf")], "[1]"),
    "NaN, deep": ({"a": [{"b": float("nan")}]}, ".a[0].b"),
    "int key": ({"m": {1: "int-one", "1": "str-one"}}, ".m"),
    "bool key": ({True: "a"}, ""),
    "null key": ({"k": {None: 1}}, ".k"),
    "model": (_Model(), ""),
    "IntEnum": (_Colour.RED, ""),
    "subclass of str": (_Text("x"), ""),
    "adjacent surrogates": (["\ud83d\ude00"], "[0]"),
    "too deep": (None, ""),
    "huge int": (10**4300, ""),
}


@dataclass(frozen=True)
class _Wider:
    """An item of a host that has one field more."""

    id: UUID
    created_at: float
    metadata: dict[str, Any]
    content: Any
    tags: list[str]
    owner: str


def _changing(**fields: Any) -> ItemFields:
    """A host's item class that changes what it is given."""
    return ItemFields(**fields)._replace(content=[fields["content"]])


def _refusing(**fields: Any) -> ItemFields:
    """A host's item class that does not take what it is given."""
    raise ValueError(f"{len(fields)} fields")


def _too_deep() -> Any:
    value: Any = 1
    for _ in range(201):
        value = [value]
    return value


async def c06_write_fields(run: Run) -> None:
    store = await run.store()
    await store.store(run.item())  # connected, so that only the bad items' requests are counted
    before = len(run.calls())
    for name, (value, path) in UNREPRESENTABLE.items():
        bad = _too_deep() if name == "too deep" else value
        for where in ("content", "metadata"):
            item = ItemFields(run.uuid(), 1.0, {}, None, [])
            if where == "content":
                item = item._replace(content=bad)
            else:
                item = item._replace(metadata={"when": bad})
            await _refused(store, item, f"{name} in {where}", where, path)
    wider = _Wider(run.uuid(), 1.0, {}, None, [], "somebody")
    await _refused(store, wider, "a further field", "owner", "")
    check(len(run.calls()) == before, "a refused item reached the transport")
    if run.can("make_store_with"):
        for item_type in (_changing, _refusing):
            hosted = await run.store(item_type=item_type)
            await _refused(
                hosted, run.item(), f"an item class that is {item_type.__name__[1:]}", "item_type", ""
            )
        check(len(run.calls()) == before, "an item that its class would change reached the transport")
    trips = await round_trip(run, store, "retrieve")
    dropped = frozenset(dropped_of(trips))
    every: frozenset[MemoryItemField] = frozenset(("id", "created_at", "metadata", "content", "tags"))
    run.claim(store.manifest, "native_item_fields", every - dropped)
    run.claim(store.manifest, "dropped_item_fields", dropped)
    run.settle_claims()
    project = projection_of(store).retrieve
    for name in dropped:
        default = getattr(trips[0][1], name)
        check(
            getattr(project(fields_of(trips[0][0])), name) == default,
            f"the default of the dropped field {name} is not the declared one",
        )


async def _refused(store: Any, item: ItemLike, what: str, where: str, path: str) -> None:
    prefix = "metadata.when" if where == "metadata" else where
    try:
        await store.store(item)
    except UnrepresentableItem as error:
        wanted = prefix + path
        if not error.path.startswith(wanted):
            raise CaseFailed(f"{what}: the path is {error.path}, not {wanted}") from None
    except MemoryAdapterError as error:
        raise CaseFailed(f"{what}: {type(error).__name__}, not UnrepresentableItem") from None
    else:
        raise CaseFailed(f"{what}: accepted, although it cannot come back equal")


async def c12_tags(run: Run) -> None:
    store = await run.store()
    check_fields(await round_trip(run, store, "retrieve"), ["tags"], "retrieve")
    trips = await round_trip(run, store, "search")
    tagged = [(given, back) for given, back, _ in trips if given.tags]
    returned = any(back.tags for _, back in tagged)
    run.claim(store.manifest, "search_returns_tags", returned)
    run.settle_claims()
    check_fields(trips, ["tags"], "search")
    check_losses(run, store, "search", ["tags"])
    await run.hook("reset")()
    await _tag_matching(run, store)


async def _tag_matching(run: Run, store: Any) -> None:
    """Any-of, whole tags, case and spaces as they are."""
    tags = [["alpha-x"], ["beta-x"], ["alpha-x", "beta-x"], ["Alpha-x"], ["customer,priority"], [""]]
    items = [run.item(tags=one) for one in tags]
    for item in items:
        await store.store(item)
    for asked, wanted in (
        (["alpha-x"], {0, 2}),
        (["alpha-x", "beta-x"], {0, 1, 2}),
        (["alpha-x", "alpha-x"], {0, 2}),
        (["Alpha-x"], {3}),
        (["ALPHA-X"], set[int]()),
        (["alpha"], set[int]()),
        (["alpha-x "], set[int]()),
        (["customer"], set[int]()),
        (["customer,priority"], {4}),
    ):
        found = set(await run.ids(store, tags=asked, limit=100))
        check(
            found == {items[position].id for position in wanted},
            f"tags={asked} finds {len(found)} items, not {len(wanted)}",
        )


async def c13_metadata(run: Run) -> None:
    store = await run.store()
    retrieved = await round_trip(run, store, "retrieve")
    check_fields(retrieved, ["metadata"], "retrieve")
    found = await round_trip(run, store, "search")
    check_fields(found, ["metadata"], "search")
    kept = all(same_value(given.metadata, back.metadata) for given, back, _ in (*retrieved, *found))
    run.claim(store.manifest, "preserves_metadata", kept)
    run.settle_claims()
    for operation in ("retrieve", "search"):
        check_losses(run, store, operation, ["metadata"])
