"""Random operations of several owners on one store, against a model of who may see what."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from adapter_postgres import PostgresMemoryStore
from adapter_sqlite import SqliteMemoryStore
from memory_authority import (
    RESERVED_FILTERS,
    AuthorityError,
    MemoryKind,
    Provenance,
    Scope,
    ScopeViolation,
    WriteRejected,
)
from memory_authority.curated import CuratedMemory

SESSION = UUID(int=5)
SCOPES = [
    Scope(tenant="a", principal="p", agent="guide"),
    Scope(tenant="a", principal="p", agent="scribe", read_agents=frozenset({"guide"})),
    Scope(tenant="a", principal="p", agent="guide", session=SESSION),
    Scope(tenant="a", principal="q", agent="guide"),
    Scope(tenant="b", principal="p", agent="guide"),
    Scope(tenant="b", principal="p", agent="scribe", read_agents=frozenset({"guide", "spy"})),
    Scope(tenant="", principal="", agent="guide"),
]
WORDS = ["sails", "rows", "swims", "東京", "C++", "größe"]
TEXTS = [f"{who} {word} {often}" for who in ("ada", "bob") for word in WORDS for often in ("often", "never")]
KINDS = [MemoryKind.FACT, MemoryKind.PREFERENCE]
BY = Provenance(actor="user", actor_id="ada", method="said", recorded_at=datetime(2026, 1, 1, tzinfo=UTC))


@dataclass
class Row:
    """One record, as the model knows it."""

    owner: Scope
    kind: MemoryKind
    text: str
    expires_at: float | None
    superseded_by: UUID | None = None


@dataclass
class Model:
    """Who may see and write what, written down a second time and plainly."""

    rows: dict[UUID, Row] = field(default_factory=dict)
    ever: list[UUID] = field(default_factory=list)
    now: float = 1_000.0

    def readable(self, scope: Scope, row: Row) -> bool:
        owner = row.owner
        if (owner.tenant, owner.principal) != (scope.tenant, scope.principal):
            return False
        if owner.session is not None and owner.session != scope.session:
            return False
        return owner.agent == scope.agent or owner.agent in scope.read_agents

    def refusal(self, scope: Scope, id_: UUID) -> type[AuthorityError] | None:
        row = self.rows.get(id_)
        if row is None or not self.readable(scope, row):
            return WriteRejected
        return None if row.owner.agent == scope.agent else ScopeViolation

    def is_active(self, row: Row) -> bool:
        return row.superseded_by is None and (row.expires_at is None or row.expires_at > self.now)

    def same(self, scope: Scope, kind: MemoryKind, text: str) -> set[UUID]:
        return {
            id_
            for id_, row in self.rows.items()
            if (row.owner, row.kind, row.text) == (bare(scope), kind, text) and self.is_active(row)
        }

    def recalled(self, scope: Scope, word: str) -> set[UUID]:
        return {
            id_
            for id_, row in self.rows.items()
            if self.readable(scope, row) and self.is_active(row) and word in row.text
        }


def bare(scope: Scope) -> Scope:
    return scope.model_copy(update={"read_agents": frozenset()})


class Run:
    """One seeded run."""

    def __init__(self, store: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()
        self.memories = [CuratedMemory(store, scope, clock=lambda: self.model.now) for scope in SCOPES]
        self.counts: Counter[str] = Counter()
        self.leaks = 0

    async def step(self) -> None:
        memory = self.random.choice(self.memories)
        steps = [self.remember] * 4 + [self.recall] * 4 + [self.get] * 3 + [self.forget, self.supersede]
        step = self.random.choice([*steps, self.supersede, self.restore, self.export, self.wait])
        self.counts[step.__name__] += 1
        await step(memory)

    def seen(self, memory: CuratedMemory, ids: set[UUID], expected: set[UUID]) -> None:
        scope = memory.scope
        self.leaks += sum(
            id_ not in self.model.rows or not self.model.readable(scope, self.model.rows[id_]) for id_ in ids
        )
        assert ids == expected

    def any_id(self) -> UUID:
        # every id that ever was, also those of other owners and of what was forgotten
        return self.random.choice(self.model.ever) if self.model.ever else uuid4()

    async def remember(self, memory: CuratedMemory) -> None:
        text, kind = self.random.choice(TEXTS), self.random.choice(KINDS)
        expires = self.random.choice([None, None, self.model.now + self.random.randint(1, 50)])
        there = self.model.same(memory.scope, kind, text)
        record = await memory.remember(text.upper(), kind=kind, provenance=BY, expires_at=expires)
        if there:
            assert {record.id} == there
            return
        assert record.id not in self.model.ever
        self.model.rows[record.id] = Row(bare(memory.scope), kind, text, expires)
        self.model.ever.append(record.id)

    async def recall(self, memory: CuratedMemory) -> None:
        word = self.random.choice(WORDS)
        found = await memory.recall(word, limit=900)
        self.seen(memory, {record.id for record in found.records}, self.model.recalled(memory.scope, word))
        assert "out_of_scope" not in found.withheld

    async def get(self, memory: CuratedMemory) -> None:
        id_ = self.any_id()
        row = self.model.rows.get(id_)
        record = await memory.get(id_)
        expected = {id_} if row is not None and self.model.readable(memory.scope, row) else set[UUID]()
        self.seen(memory, set() if record is None else {record.id}, expected)

    async def forget(self, memory: CuratedMemory) -> None:
        id_ = self.any_id()
        refusal = self.model.refusal(memory.scope, id_)
        if refusal is ScopeViolation:
            with pytest.raises(ScopeViolation):
                await memory.forget(id_, reason="r")
            return
        assert await memory.forget(id_, reason="r") == (refusal is None)
        if refusal is None:
            del self.model.rows[id_]

    async def supersede(self, memory: CuratedMemory) -> None:
        old, new = self.any_id(), self.any_id()
        refusal: type[AuthorityError] | None = ScopeViolation if old == new else None
        refusal = refusal or self.model.refusal(memory.scope, new)
        if refusal is None and not self.model.is_active(self.model.rows[new]):
            refusal = WriteRejected
        refusal = refusal or self.model.refusal(memory.scope, old)
        if refusal is None:
            mine, other = self.model.rows[old], self.model.rows[new]
            refusal = ScopeViolation if (mine.owner, mine.kind) != (other.owner, other.kind) else None
        if refusal is not None:
            with pytest.raises(refusal):
                await memory.supersede(old, new)
            return
        await memory.supersede(old, new)
        self.model.rows[old].superseded_by = new

    async def restore(self, memory: CuratedMemory) -> None:
        id_ = self.any_id()
        refusal = self.model.refusal(memory.scope, id_)
        if refusal is None and (row := self.model.rows[id_]).superseded_by is not None:
            # an active record says the same by now
            refusal = WriteRejected if self.model.same(row.owner, row.kind, row.text) else None
        if refusal is not None:
            with pytest.raises(refusal):
                await memory.restore(id_)
            return
        await memory.restore(id_)
        self.model.rows[id_].superseded_by = None

    async def export(self, memory: CuratedMemory) -> None:
        mine = {
            id_
            for id_, row in self.model.rows.items()
            if self.model.readable(memory.scope, row) and row.owner.agent == memory.scope.agent
        }
        self.seen(memory, {record.id async for record in memory.export()}, mine)

    async def wait(self, memory: CuratedMemory) -> None:
        self.model.now += self.random.randint(1, 5)


@pytest.fixture(params=[("sqlite", 5_000), ("postgres", 2_000)], ids=lambda given: given[0])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Any, int]]:
    name, operations = request.param
    store: Any
    if name == "sqlite":
        store = SqliteMemoryStore(tmp_path / "m.db", filters=RESERVED_FILTERS)
    else:
        url = request.getfixturevalue("server_url").split("&search_path")[0]
        store = PostgresMemoryStore(url, namespace=uuid4().hex, filters=RESERVED_FILTERS)
    async with store:
        yield store, operations


async def test_T04_random_operations_of_several_owners_leak_nothing(
    backend: tuple[Any, int], record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    store, operations = backend
    run = Run(store, seed=20_260_105)
    for _ in range(operations):
        await run.step()
    record_property("operations", dict(run.counts))
    with capsys.disabled():
        counts = ", ".join(f"{count} {step}" for step, count in sorted(run.counts.items()))
        print(f"\n{store.manifest.adapter}: {run.counts.total()} operations ({counts}), {run.leaks} leaks")  # noqa: T201
    assert run.counts.total() == operations
    assert min(run.counts.values()) >= operations // 50
    assert run.leaks == 0
