"""Copying the items of one store into another, with every loss named before and checked after.

A copy keeps no notes of its own. What is in the target already, as the target's projection declares it,
is not written again; so a copy that was broken off is started again and goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from adapter_core import (
    ItemFields,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    Preview,
    SupportsBatch,
    SupportsScan,
    UnrepresentableItem,
    same_fields,
    same_value,
)

from ._run import fields_of, projection_of
from .preview import ChangedValue, Listing, changed_values, check_of, losses_of

BATCH = 200
"""How many items are read, written and read again at a time."""

UNDECLARED = "undeclared"
"""The name of a change that no loss of the target's projection explains."""


class CopyFailed(MemoryAdapterError):
    """The target refuses an item, or does not give it back as it declares. The message has the id."""


class Hindered(Exception):
    """Something was not agreed to: see `Tally.hindrances`. The batch was not written."""


class Example(NamedTuple):
    """A value of an item that a loss changes."""

    id: str
    value: ChangedValue


class Refused(NamedTuple):
    """An item that the target does not take, and why."""

    id: str
    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What the user agreed to.

    Attributes:
        losses: Names of losses that may occur.
        skip_refused: Items that the target refuses are left out.
        overwrite: Items of the target that have other contents are replaced.
    """

    losses: Collection[str] = ()
    skip_refused: bool = False
    overwrite: bool = False


@dataclass
class Tally:
    """What was found of the source's items, and what was done.

    Attributes:
        limit: How many examples of each kind are kept; all are counted.
        items: All that were read.
        exact: Those that the target gives back as they are.
        losses: By the name of the loss: the records that it changes.
        refused: Those that the target does not take.
        equal: Those that are in the target already, as it declares.
        differing: Ids of those whose place in the target has other contents.
        copied: Those that were written, and read again.
    """

    limit: int
    items: int = 0
    exact: int = 0
    losses: dict[str, Listing[Example]] = field(default_factory=dict[str, Listing[Example]])
    refused: Listing[Refused] = field(init=False)
    equal: int = 0
    differing: Listing[str] = field(init=False)
    copied: int = 0

    def __post_init__(self) -> None:
        self.refused = Listing(self.limit)
        self.differing = Listing(self.limit)

    def hindrances(self, agreed: Agreed) -> list[str]:
        """Give what would have to be agreed to, as options of the command."""
        needed = [f"--accept-loss {name}" for name in sorted(set(self.losses) - set(agreed.losses))]
        needed += ["--skip-refused"] if self.refused.count and not agreed.skip_refused else []
        needed += ["--overwrite"] if self.differing.count and not agreed.overwrite else []
        return needed


class Copying:
    """A copy from one store into another.

    Args:
        source: It is scanned and nothing else.
        target: Nobody else should write the same items meanwhile.
        agreed: What may happen.
        limit: How many examples of each kind are kept.

    Raises:
        TypeError: The source has no `scan`.
    """

    def __init__(self, source: Any, target: Any, agreed: Agreed, *, limit: int = 3) -> None:
        if not _offers(source, SupportsScan):
            raise TypeError("the source cannot list its items: it has no scan")
        self._source = source
        self._target = target
        self._agreed = agreed
        self._check = check_of(target)
        self._projection = projection_of(target)
        self.found = Tally(limit)
        self.done = Tally(limit)

    async def survey(self, progress: Callable[[Tally], None] = lambda _: None) -> Tally:
        """Read everything, write nothing, and say what would happen."""
        async for batch in self._batches():
            await self._judge(batch, self.found)
            progress(self.found)
        return self.found

    async def copy(self, progress: Callable[[Tally], None] = lambda _: None) -> Tally:
        """Write what is not there yet, and read each item again.

        Raises:
            Hindered: The source has changed since the survey, and something was not agreed to.
            CopyFailed: An item is refused, or does not come back as declared.
            MemoryAdapterError: One of the stores failed. A copy that is started again goes on.
        """
        async for batch in self._batches():
            wanted = await self._judge(batch, self.done)
            if self.done.hindrances(self._agreed):
                raise Hindered
            await self._write(wanted)
            self.done.copied += len(wanted)
            progress(self.done)
        return self.done

    async def _batches(self) -> AsyncIterator[list[ItemFields]]:
        batch: list[ItemFields] = []
        async for item in self._source.scan(page_size=BATCH):
            batch.append(fields_of(item))
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _judge(
        self, batch: Sequence[ItemFields], tally: Tally
    ) -> dict[UUID, tuple[ItemFields, ItemFields]]:
        """Count a batch; by id, the items that are to be written, each with what must come back."""
        wanted: dict[UUID, tuple[ItemFields, ItemFields]] = {}
        for item in batch:
            tally.items += 1
            try:
                preview = self._check(item)
            except UnrepresentableItem as error:
                refused = Refused(str(item.id), error.path, error.reason)
                tally.refused.add(lambda: refused)  # noqa: B023 - called at once
            else:
                self._count_losses(item, preview, tally)
                wanted[item.id] = (item, preview.retrieve)
        for item_id, there in (await _retrieved(self._target, list(wanted))).items():
            if same_fields(there, wanted[item_id][1]):
                tally.equal += 1
                del wanted[item_id]
            else:
                tally.differing.add(lambda: str(item_id))  # noqa: B023 - called at once
        return wanted

    def _count_losses(self, item: ItemFields, preview: Preview, tally: Tally) -> None:
        occurring: dict[str, str] = {}
        for name in ItemFields._fields:
            given, retrieved = getattr(item, name), getattr(preview.retrieve, name)
            kept = same_value(given, retrieved)
            if kept and same_value(given, getattr(preview.search, name)):
                continue
            for loss in losses_of(self._projection, name, kept=kept) or (UNDECLARED,):
                occurring.setdefault(loss, name)
        tally.exact += not occurring
        for loss, name in occurring.items():
            listing = tally.losses.setdefault(loss, Listing(tally.limit))
            listing.add(lambda: self._example(item, name, preview))  # noqa: B023 - called at once

    def _example(self, item: ItemFields, name: str, preview: Preview) -> Example:
        value = next(changed_values(item, [name], preview, self._projection))
        return Example(str(item.id), value)

    async def _write(self, wanted: Mapping[UUID, tuple[ItemFields, ItemFields]]) -> None:
        if not wanted:
            return
        await _stored(self._target, [item for item, _ in wanted.values()])
        there = await _retrieved(self._target, list(wanted))
        for item_id, (_, expected) in wanted.items():
            if item_id not in there or not same_fields(there[item_id], expected):
                raise CopyFailed(f"{item_id} does not come back from the target as the target declares")


def _offers(store: object, extension: type) -> bool:
    return isinstance(store, extension)


async def _stored(store: Any, items: Sequence[ItemFields]) -> None:
    if _offers(store, SupportsBatch):
        try:
            await store.store_many(items)
        except MemoryAdapterUnavailable:
            raise
        except MemoryAdapterError:  # it need not name the item: one by one, that shows
            pass
        else:
            return
    for item in items:
        try:
            await store.store(item)
        except MemoryAdapterUnavailable:
            raise
        except MemoryAdapterError as error:
            raise CopyFailed(f"the target refuses {item.id}: {error}") from error


async def _retrieved(store: Any, ids: Sequence[UUID]) -> Mapping[UUID, Any]:
    if _offers(store, SupportsBatch):
        many: Mapping[UUID, Any] = await store.retrieve_many(ids) if ids else {}
        return many
    found = await asyncio.gather(*(store.retrieve(item_id) for item_id in ids))
    return {one: item for one, item in zip(ids, found, strict=True) if item is not None}
