import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from adapter_core import (
    AdapterStore,
    Batching,
    Deleting,
    DeletingDriver,
    Driver,
    Hit,
    MemoryAdapterManifest,
    MemoryItem,
    Reindexing,
    ReindexingDriver,
    Revising,
    RevisingDriver,
    Scanning,
    ScanningDriver,
    Scoring,
    decode_document,
    encode_document,
)

FULL = {
    "adapter": "plain",
    "native_item_fields": {"id", "created_at", "metadata", "content", "tags"},
    "dropped_item_fields": set(),
    "supported_filters": {"kind", "created_after", "created_before"},
    "search_consistency": "immediate",
    "retrieve_fidelity": "full",
    "search_fidelity": "full",
    "search_returns_tags": True,
    "preserves_metadata": True,
}


class Gate:
    """Where a call of the driver waits: the test knows that it came, and lets it go on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def passed(self) -> None:
        self.entered.set()
        await self.opened.wait()


class Down(Exception):
    """A native error that means unavailable."""


class Refused(Exception):
    """A native error that means no."""


class PlainDriver(Driver[str]):
    """A dictionary, with a log of what it was asked, and errors and gates for each method."""

    def __init__(self) -> None:
        self.rows = {}
        self.log = []
        self.asked = []
        self.errors = {}
        self.gates = {}
        self.acknowledge = list

    def hold(self, method) -> Gate:
        return self.gates.setdefault(method, Gate())

    async def enter(self, method) -> None:
        self.log.append(method)
        if gate := self.gates.get(method):
            await gate.passed()
        if error := self.errors.get(method):
            raise error

    def pack(self, item) -> str:
        return encode_document(item)

    def unpack(self, document):
        return decode_document(document)

    def is_unavailable(self, error) -> bool:
        return isinstance(error, Down)

    async def open(self) -> None:
        await self.enter("open")

    async def close(self) -> None:
        await self.enter("close")

    async def put(self, records):
        await self.enter("put")
        self.asked.append(records)
        self.rows.update({record.id: record for record in records})
        return self.acknowledge(record.id for record in records)

    async def get(self, ids):
        await self.enter("get")
        return {one: self.rows[one].document for one in ids if one in self.rows}

    async def find(self, criteria):
        await self.enter("find")
        self.asked.append(criteria)
        found = [row for row in self.rows.values() if matches(row, criteria)]
        found.sort(key=lambda row: (-row.created_at, row.id))
        return [Hit(row.id, row.document, 0.5 if criteria.terms else None) for row in found][: criteria.limit]


class EveryDriver(
    DeletingDriver[str],
    ScanningDriver[str],
    RevisingDriver[str],
    ReindexingDriver[str],
    PlainDriver,
):
    """The same with every extension."""

    @property
    def signature(self):
        return {"layout": "1", "terms": "1"}

    def __init__(self) -> None:
        super().__init__()
        self.revisions = {}
        self.memory = dict(self.signature)
        self.stale = set()

    async def put(self, records):
        got = await super().put(records)
        for record in records:
            self.revisions[record.id] = self.revisions.get(record.id, 0) + 1
        return got

    async def delete(self, item_id) -> bool:
        await self.enter("delete")
        return self.rows.pop(item_id, None) is not None

    async def clear(self) -> int:
        await self.enter("clear")
        count = len(self.rows)
        self.rows.clear()
        return count

    async def page(self, criteria, after, size):
        await self.enter("page")
        self.asked.append((criteria, after, size))
        rows = sorted(self.rows.values(), key=lambda row: row.id)
        rows = [row for row in rows if (after is None or row.id > after) and matches(row, criteria)]
        return [Hit(row.id, row.document) for row in rows[:size]]

    async def get_revision(self, item_id):
        await self.enter("get_revision")
        row = self.rows.get(item_id)
        return None if row is None else (row.document, self.revisions[item_id])

    async def replace(self, record, expected_revision):
        await self.enter("replace")
        if record.id not in self.rows or self.revisions[record.id] != expected_revision:
            return None
        await PlainDriver.put(self, [record])
        self.revisions[record.id] += 1
        return self.revisions[record.id]

    async def remembered(self):
        await self.enter("remembered")
        return self.memory

    async def outdated(self, size):
        await self.enter("outdated")
        return [(Hit(one, self.rows[one].document), self.revisions[one]) for one in sorted(self.stale)[:size]]

    async def reindex(self, records) -> None:
        await self.enter("reindex")
        for record, revision in records:
            if self.revisions[record.id] == revision:
                self.rows[record.id] = record
            self.stale.discard(record.id)

    async def adopt(self) -> bool:
        await self.enter("adopt")
        if self.stale:
            return False
        self.memory = dict(self.signature)
        return True


class EveryStore(Batching, Deleting, Scanning, Revising, Scoring, Reindexing, AdapterStore):
    """A store that claims every extension."""

    _score_meaning = "always a half"


def matches(row, criteria) -> bool:
    return (
        (not criteria.tags or not set(criteria.tags).isdisjoint(row.tags))
        and all(not set(group).isdisjoint(row.facets) for group in criteria.facets)
        and all(term in row.terms for term in criteria.terms)
        and criteria.created_after <= row.created_at <= criteria.created_before
    )


@pytest.fixture(name="manifest")
def _manifest():
    """Make a full manifest, with changes."""
    return lambda **changes: MemoryAdapterManifest(**{**FULL, **changes})


@pytest.fixture(name="driver")
def _driver():
    return PlainDriver()


@pytest.fixture(name="make")
def _make(driver, manifest):
    """Make a store over the driver."""
    return lambda **options: AdapterStore(driver, **{"manifest": manifest(), **options})


@pytest.fixture(name="store")
def _store(make):
    return make()


@pytest.fixture(name="every_driver")
def _every_driver():
    return EveryDriver()


@pytest.fixture(name="every_store")
def _every_store(every_driver, manifest):
    return EveryStore(every_driver, manifest=manifest())


@pytest.fixture(name="down")
def _down():
    return Down("no route to secret-host")


@pytest.fixture(name="refused")
def _refused():
    return Refused("secret value out of range")


@pytest.fixture(name="damage")
def _damage():
    """Replace a part of a stored document."""

    def damage(driver, item_id, old, new) -> None:
        row = driver.rows[item_id]
        assert old in row.document
        driver.rows[item_id] = replace(row, document=row.document.replace(old, new))

    return damage


@pytest.fixture(name="item")
def _item():
    """Make an item with a small id."""

    def item(number=1, /, **fields):
        return MemoryItem(**{"id": UUID(int=number), "created_at": 1735689600.123456, **fields})

    return item


@pytest.fixture(name="nested")
def _nested():
    """Nest a value in so many lists and dicts."""

    def nested(levels, value=None):
        for level in range(levels):
            value = {"k": value} if level % 2 else [value]
        return value

    return nested
