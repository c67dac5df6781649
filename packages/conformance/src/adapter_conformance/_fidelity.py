"""What the fidelity cases share: probes, and the comparison with the declared projection."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Literal

from adapter_core import ItemFields, MemoryItem, MemoryItemField, same_value

from ._run import CaseFailed, Run, changed_fields, check, fields_of, projection_of
from .values import CONTENTS, METADATA, TAGS, TIMES

Operation = Literal["retrieve", "search"]

PLAIN: tuple[MemoryItemField, ...] = ("id", "created_at", "content")
"""The fields whose fidelity C03 and C07 judge; tags belong to C12 and metadata to C13."""


def probes(run: Run, store: Any) -> list[MemoryItem]:
    """Make one item for each edge value, and one for the example of each declared loss."""
    items = [run.item(content) for content in deepcopy(CONTENTS).values()]
    items += [run.item("metadata", metadata=one) for one in deepcopy(METADATA).values()]
    items += [run.item("tags", tags=list(tags)) for tags in TAGS.values()]
    items += [run.item("time", created_at=time) for time in TIMES.values()]
    examples = [deepcopy(loss.example) for loss in projection_of(store).losses]
    return items + [MemoryItem(**example._asdict()) for example in examples]


async def round_trip(run: Run, store: Any, operation: Operation) -> list[tuple[MemoryItem, Any, ItemFields]]:
    """Store the probes and read them back: what was given, what came back, what was declared."""
    given = probes(run, store)
    for item in given:
        await store.store(item)
    project = getattr(projection_of(store), operation)
    if operation == "retrieve":
        got = [await store.retrieve(item.id) for item in given]
    else:
        hits = {hit.id: hit for hit in await run.search(store, limit=10 * len(given))}
        got = [hits.get(item.id) for item in given]
    result: list[tuple[MemoryItem, Any, ItemFields]] = []
    for item, back in zip(given, got, strict=True):
        check(back is not None, f"{operation} does not give back an item that was stored")
        result.append((item, back, project(fields_of(item))))
    return result


def check_fields(
    trips: Sequence[tuple[MemoryItem, Any, ItemFields]],
    names: Sequence[MemoryItemField],
    operation: Operation,
) -> None:
    """Every named field equals the declared projection, in value and in type."""
    for given, back, declared in trips:
        for name in names:
            if not same_value(getattr(back, name), getattr(declared, name)):
                raise CaseFailed(
                    f"{operation} changes {name} of the probe {_probe_name(given)!r} "
                    "in a way that the projection does not declare"
                )


def check_losses(run: Run, store: Any, operation: Operation, names: Sequence[str]) -> None:
    """Every change that the projection makes to the named fields is a named loss or a dropped field.

    And every named loss changes its own example.
    """
    projection = projection_of(store)
    project: Callable[[ItemFields], ItemFields] = getattr(projection, operation)
    named = {loss.field for loss in projection.losses if loss.operation == operation}
    if operation == "search":  # a loss of the stored item shows in a hit too
        named |= {loss.field for loss in projection.losses}
    named |= store.manifest.dropped_item_fields
    for given in probes(run, store):
        for name in changed_fields(given, project(fields_of(given))):
            if name in names:
                check(name in named, f"the projection changes {name} and no loss names it")
    for loss in projection.losses:
        if loss.operation == operation and loss.field in names:
            changed = changed_fields(loss.example, project(loss.example))
            check(loss.field in changed, f"the loss {loss.name} does not change its own example")


def observed_fidelity(trips: Sequence[tuple[MemoryItem, Any, ItemFields]], operation: Operation) -> str:
    """Classify what was seen: full, native_fields or lossy.

    A change of tags or metadata that the projection does not declare is judged by C12 and C13.
    """
    changed: set[str] = set()
    for given, back, declared in trips:
        for name in changed_fields(given, back):
            if name in PLAIN or same_value(getattr(back, name), getattr(declared, name)):
                changed.add(name)
    allowed = dropped_of(trips)
    if operation == "search" and all(back.tags == [] for _, back, _ in trips):
        allowed = allowed | {"tags"}
    if not changed:
        return "full"
    return "native_fields" if changed <= allowed else "lossy"


def dropped_of(trips: Sequence[tuple[MemoryItem, Any, ItemFields]]) -> set[str]:
    """Name the fields that came back with one and the same value whatever was given."""
    dropped: set[str] = set()
    for name in ("created_at", "metadata"):
        first = getattr(trips[0][1], name)
        constant = all(same_value(getattr(back, name), first) for _, back, _ in trips)
        if constant and any(name in changed_fields(given, back) for given, back, _ in trips):
            dropped.add(name)
    return dropped


def _probe_name(given: MemoryItem) -> str:
    """Name a probe by its place in the tables, never by its contents."""
    for table, field in ((CONTENTS, "content"), (METADATA, "metadata"), (TAGS, "tags")):
        for name, value in table.items():
            if same_value(value, getattr(given, field)) and value:
                return f"{field}: {name}"
    return "time" if given.content == "time" else "example of a loss"
