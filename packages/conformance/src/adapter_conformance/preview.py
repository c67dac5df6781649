"""What installed adapters would do to the records of a file. Nothing is written, no service is asked.

A store is taken from each adapter's fake harness and is only asked for its check and its projection,
neither of which does any I/O.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from adapter_core import (
    AdapterStore,
    ItemFields,
    Preview,
    Projection,
    UnrepresentableItem,
    check_item,
    same_value,
)

from ._run import projection_of
from .records import GivenRecord, UnreadableLine, named
from .session import Fault, Target, safely_told

T = TypeVar("T")

LONGEST_VALUE = 48
"""How many characters of a value are shown."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_SPACES = re.compile("(?<= ) ")


@dataclass(frozen=True)
class Refusal:
    """Why a record would not be stored."""

    line: int
    id: str
    path: str
    reason: str
    adapters: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A value that would come back as another one. The values are JSON, shortened.

    Attributes:
        place: Such as `created_at` or `metadata.rank`.
        losses: The names of the losses that the adapter declares for it.
    """

    line: int
    id: str
    place: str
    given: str
    retrieve: str
    search: str
    losses: tuple[str, ...]
    adapters: tuple[str, ...]


class ChangedValue(NamedTuple):
    """What one adapter does to one value; another may do the same."""

    place: str
    given: str
    retrieve: str
    search: str
    losses: tuple[str, ...]


@dataclass
class Listing(Generic[T]):
    """The first few of something, and how many there were."""

    limit: int
    shown: list[T] = field(default_factory=list[T])
    count: int = 0

    def add(self, made: Callable[[], T]) -> None:
        """Count one, and make it if it is shown."""
        self.count += 1
        if len(self.shown) < self.limit:
            self.shown.append(made())

    @property
    def more(self) -> int:
        """How many are not shown."""
        return self.count - len(self.shown)


@dataclass
class Outcome:
    """How the records would fare with one adapter.

    Attributes:
        check: Says what would come back of an item, or raises `UnrepresentableItem`.
        projection: Names the losses.
    """

    adapter: str
    check: Callable[[ItemFields], Preview]
    projection: Projection
    exact: int = 0
    changed: int = 0
    refused: int = 0


@dataclass
class Previewed:
    """What becomes of all records."""

    outcomes: list[Outcome]
    unreadable: Listing[UnreadableLine]
    refusals: Listing[Refusal]
    changes: Listing[Change]
    records: int = 0
    faults: list[Fault] = field(default_factory=list[Fault])


def outcomes_of(targets: Iterable[Target]) -> tuple[list[Outcome], list[Fault]]:
    """Make a store of each fake harness, and close it again: it is only asked what it declares."""
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    for target in targets:
        if any(target.label == one.adapter for one in outcomes):
            continue
        try:
            store = asyncio.run(_store_of(target))
            outcomes.append(Outcome(target.label, check_of(store), projection_of(store)))
        except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
            faults.append(Fault(target.label, target.environment, safely_told(error)))
    return outcomes, faults


async def _store_of(target: Target) -> Any:
    harness = target.make()
    try:
        store = await harness.make_store()
        close = getattr(store, "close", None)
        if close is not None:
            await close()
    finally:
        await harness.close()
    return store


def check_of(store: Any) -> Callable[[ItemFields], Preview]:
    """Give what says what would come back of an item, or raises `UnrepresentableItem`."""
    if isinstance(store, AdapterStore):
        return store.preview
    projection = projection_of(store)

    def check(item: ItemFields) -> Preview:
        fields = check_item(item)
        return Preview(projection.retrieve(fields), projection.search(fields))

    return check


def preview(
    entries: Iterable[GivenRecord | UnreadableLine], outcomes: Sequence[Outcome], *, limit: int
) -> Previewed:
    """Find out what each adapter would do to each record.

    Args:
        entries: The records; read one at a time.
        outcomes: Of the adapters, to be counted up.
        limit: How many findings of each kind are kept; all are counted.
    """
    result = Previewed(list(outcomes), Listing(limit), Listing(limit), Listing(limit))
    for entry in entries:
        if isinstance(entry, UnreadableLine):
            _add_line(entry, result)
        else:
            result.records += 1
            _preview_one(entry, result)
    return result


def _add_line(line: UnreadableLine, result: Previewed) -> None:
    result.unreadable.add(lambda: line)


def _preview_one(record: GivenRecord, result: Previewed) -> None:
    """Add what all adapters do to one record; those that do the same are named together."""
    refusals: dict[tuple[str, str], list[str]] = {}
    changes: dict[ChangedValue, list[str]] = {}
    for outcome in list(result.outcomes):
        try:
            found = outcome.check(record.fields)
            changed = list(changed_values(record.fields, record.names, found, outcome.projection))
        except UnrepresentableItem as error:
            outcome.refused += 1
            refusals.setdefault((error.path, error.reason), []).append(outcome.adapter)
        except Exception as error:  # noqa: BLE001 - a projection is an author's code
            result.outcomes.remove(outcome)
            reason = f"line {record.line}: {safely_told(error)}"
            result.faults.append(Fault(outcome.adapter, None, reason))
        else:
            outcome.changed += bool(changed)
            outcome.exact += not changed
            for change in changed:
                changes.setdefault(change, []).append(outcome.adapter)
    for (path, reason), adapters in refusals.items():
        result.refusals.add(lambda: Refusal(record.line, record.id, path, reason, tuple(adapters)))  # noqa: B023
    for change, adapters in changes.items():
        result.changes.add(
            lambda: Change(record.line, record.id, **change._asdict(), adapters=tuple(adapters))  # noqa: B023
        )


def changed_values(
    item: ItemFields, names: Iterable[str], found: Preview, projection: Projection
) -> Iterator[ChangedValue]:
    """Give each value that changes: the place, the three values as text, and the losses.

    Args:
        item: What is given.
        names: The fields that are compared. In one that the record does not have nothing is lost.
        found: What would come back.
        projection: Names the losses.
    """
    for name in names:
        values = (getattr(one, name) for one in (item, found.retrieve, found.search))
        for place, given, retrieve, search in differences(name, *values):
            losses = losses_of(projection, name, kept=same_value(given, retrieve))
            yield ChangedValue(place, shown(given), shown(retrieve), shown(search), losses)


def losses_of(projection: Projection, name: str, *, kept: bool) -> tuple[str, ...]:
    """Name the losses that explain a change of a field.

    Args:
        projection: Names them.
        name: The field.
        kept: Whether `retrieve` gives the value back, so that only search hits lack it.
    """
    return tuple(
        dict.fromkeys(
            loss.name
            for loss in projection.losses
            # what was lost when it was stored is missing in a hit too
            if loss.field == name and (loss.operation == "search" or not kept)
        )
    )


def differences(place: str, given: Any, retrieve: Any, search: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Give the innermost places at which one of three values differs from the first."""
    if same_value(given, retrieve) and same_value(given, search):
        return
    parts = _parts(place, given, retrieve, search)
    if parts is None:
        yield place, given, retrieve, search
        return
    for inner, *values in parts:
        yield from differences(inner, *values)


def _parts(place: str, *values: Any) -> list[tuple[Any, ...]] | None:
    """Take values of the same shape apart."""
    first, *others = values
    if any(type(one) is not type(first) for one in others):
        return None
    if isinstance(first, dict):
        keys = list(cast("dict[str, Any]", first))
        if any(list(one) != keys for one in others):
            return None
        return [(_inner(place, key), *(one[key] for one in values)) for key in keys]
    if isinstance(first, list):
        if any(len(one) != len(values[0]) for one in others):
            return None
        return [(f"{place}[{index}]", *parts) for index, parts in enumerate(zip(*values, strict=True))]
    return None


def _inner(place: str, key: str) -> str:
    return f"{place}.{key}" if _KEY.fullmatch(key) else f"{place}[{named(key)}]"


def shown(value: Any) -> str:
    """Write a value as JSON, cut short and with escapes for what a terminal would obey."""
    text = ""
    for piece in _encoder.iterencode(value):
        text += piece
        if len(text) > LONGEST_VALUE:
            text = text[: LONGEST_VALUE - 1] + "…"
            break
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return _SPACES.sub(r"\\u0020", text)


_encoder = json.JSONEncoder(ensure_ascii=False)
