"""Curated memory and hostile or huge input: what is refused, what is bounded, what stays apart."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterUnavailable, MemoryItem
from adapter_sqlite import SqliteMemoryStore
from memory_authority import (
    RESERVED_FILTERS,
    AssistantMessage,
    Candidate,
    ConsolidationLimits,
    CuratedMemory,
    MemoryKind,
    MemoryRecord,
    PatternScreen,
    Provenance,
    Scope,
    SessionInfo,
    SessionMode,
    ToolCall,
    Turn,
    TurnOrigin,
    UserMessage,
    WriteRejected,
)
from memory_authority.consolidation import cut_turn
from memory_authority.curated import MAX_QUERY_CHARS
from memory_authority.drafting import MAX_SUBJECT_CHARS, MAX_TAG_CHARS, MAX_TAGS, MAX_TEXT_CHARS
from memory_authority.keeping import MAX_SOURCES

NOW = 1_700_000_000.0
SCOPE = Scope(agent="guide", tenant="acme", principal="ada")
FACT = MemoryKind.FACT
BY = Provenance(actor="user", actor_id="ada", method="said", recorded_at=datetime(2026, 1, 5, tzinfo=UTC))
TURN = Turn(turn_id="t", origin=TurnOrigin.INTERACTIVE, messages=(UserMessage(content="hi"),))
SESSION = SessionInfo(
    session_id=UUID(int=7),
    incarnation=UUID(int=8),
    scope=SCOPE,
    mode=SessionMode.CHAT,
    external_key=None,
    turns=1,
    version=1,
    state="open",
    created_at=NOW,
    last_activity=NOW,
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteMemoryStore]:
    async with SqliteMemoryStore(tmp_path / "memory.db", filters=RESERVED_FILTERS) as store:
        yield store


@pytest.fixture
def memory(store: SqliteMemoryStore) -> CuratedMemory:
    return CuratedMemory(store, SCOPE, clock=lambda: NOW)


async def remember(memory: CuratedMemory, text: str, **options: Any) -> MemoryRecord:
    return await memory.remember(text, **{"kind": FACT, "provenance": BY, **options})


async def rows(store: SqliteMemoryStore) -> int:
    return len([item async for item in store.scan()])


class Policy:
    """Gives what it was made with."""

    name = "facts"
    limits = ConsolidationLimits(timeout_s=5)

    def __init__(self, given: Sequence[Candidate]) -> None:
        self.given = given

    async def extract(self, turn: Turn, existing: Sequence[MemoryRecord]) -> Sequence[Candidate]:
        return self.given


@pytest.mark.parametrize(
    "options",
    [
        {"subject": "x" * (MAX_SUBJECT_CHARS + 1)},
        {"subject": 7},
        {"tags": ["x"] * (MAX_TAGS + 1)},
        {"tags": ["x" * (MAX_TAG_CHARS + 1)]},
        {"tags": None},
        {"tags": {"a"}},
        {"expires_at": float("nan")},
        {"expires_at": 10**400},
        {"provenance": BY.model_copy(update={"turn_ids": ("x" * 100,) * 1_000})},
        {"provenance": BY.model_copy(update={"actor_id": "\ud800"})},
    ],
)
async def test_R26_every_field_of_a_record_is_bounded(
    memory: CuratedMemory, store: SqliteMemoryStore, options: dict[str, Any]
) -> None:
    with pytest.raises(WriteRejected):
        await remember(memory, "Ada sails", **options)
    assert await rows(store) == 0


async def test_R37_a_screen_is_not_asked_about_a_text_that_is_too_long(store: SqliteMemoryStore) -> None:
    class Spy(PatternScreen):
        asked = 0

        def on_write(self, text: str) -> str:
            self.asked += 1
            return text * 2

    screen = Spy()
    memory = CuratedMemory(store, SCOPE, screen=screen)
    with pytest.raises(WriteRejected, match="at most 8000"):
        await remember(memory, "x" * (MAX_TEXT_CHARS + 1))
    assert screen.asked == 0
    with pytest.raises(WriteRejected, match="after the screen"):
        await remember(memory, "x" * MAX_TEXT_CHARS)
    assert await rows(store) == 0


async def test_R37_what_the_screen_leaves_nothing_of_is_refused(store: SqliteMemoryStore) -> None:
    class Eraser(PatternScreen):
        def on_write(self, text: str) -> str:
            return " " if text == "all of it" else ""

    for text in ("all of it", "else"):
        with pytest.raises(WriteRejected, match="no text"):
            await remember(CuratedMemory(store, SCOPE, screen=Eraser()), text)
    assert await rows(store) == 0


async def test_R37_T12_tags_are_screened_too(store: SqliteMemoryStore) -> None:
    screen = PatternScreen(redact=[r"sk-\w+"], refuse=["poison"])
    memory = CuratedMemory(store, SCOPE, screen=screen)
    kept = await remember(memory, "a key", tags=["of sk-abc"])
    assert kept.tags == ("of [redacted]",)
    with pytest.raises(WriteRejected):
        await remember(memory, "another", tags=["poison"])
    assert "sk-abc" not in str([item.model_dump() async for item in store.scan()])


async def test_R26_ten_thousand_candidates_are_counted_and_five_kept(
    memory: CuratedMemory, store: SqliteMemoryStore
) -> None:
    given = [Candidate(text=f"fact {number}", kind=FACT) for number in range(10_000)]
    report = await memory.consolidate(SESSION, TURN, Policy(given))
    assert (len(report.records), report.rejected) == (5, {"too_many": 9_995})
    assert await rows(store) == 5


async def test_R36_candidates_beyond_the_quota_are_counted(store: SqliteMemoryStore) -> None:
    memory = CuratedMemory(store, SCOPE, quota=2)
    first = await remember(memory, "fact 0")
    given = [Candidate(text=f"fact {number}", kind=FACT) for number in (1, 2, 0)]
    report = await memory.consolidate(SESSION, TURN, Policy(given))
    assert [record.text for record in report.records] == ["fact 1", "fact 0"]
    assert report.records[1] == first
    assert report.rejected == {"quota": 1}


async def test_R36_the_quota_of_a_session_is_its_own(store: SqliteMemoryStore) -> None:
    free = CuratedMemory(store, SCOPE, quota=1)
    bound = CuratedMemory(store, SCOPE.model_copy(update={"session": UUID(int=7)}), quota=1)
    of_all = await remember(free, "one")
    await remember(bound, "two")
    assert await bound.forget(of_all.id, reason="r")
    with pytest.raises(WriteRejected, match="quota"):
        await remember(bound, "three")
    await remember(CuratedMemory(store, SCOPE, quota=1), "four")


async def test_R36_a_write_of_unknown_outcome_counts_until_the_rows_are_counted(
    store: SqliteMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = CuratedMemory(store, SCOPE, quota=2)
    await remember(memory, "one")
    write = store.store

    async def done_and_lost(item: Any) -> Any:
        await write(item)
        raise MemoryAdapterUnavailable("no answer", outcome_unknown=True)

    monkeypatch.setattr(store, "store", done_and_lost)
    with pytest.raises(MemoryAdapterUnavailable):
        await remember(memory, "two")
    monkeypatch.undo()
    with pytest.raises(WriteRejected, match="quota"):
        await remember(memory, "three")

    async def not_done(item: Any) -> Any:
        raise MemoryAdapterUnavailable("down")

    memory = CuratedMemory(store, SCOPE, quota=3)
    monkeypatch.setattr(store, "store", not_done)
    with pytest.raises(MemoryAdapterUnavailable):
        await remember(memory, "three")
    monkeypatch.undo()
    await remember(memory, "three")


def test_R26_calls_and_reasoning_count_as_input() -> None:
    call = ToolCall(call_id="c", name="f", arguments="x" * 100)
    spoken = AssistantMessage(content="12345", reasoning="because", tool_calls=(call,))
    turn = Turn(turn_id="t", origin=TurnOrigin.INTERACTIVE, messages=(spoken,))
    shown, cut = cut_turn(turn, 20)
    [message] = shown.messages
    assert isinstance(message, AssistantMessage)
    assert (message.content, message.reasoning) == ("12345", "because")
    assert (message.tool_calls[0].arguments, cut) == ("x" * 8, 92)
    assert cut_turn(turn, 112) == (turn, 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the offset is -5", "the offset is 5"),
        ("a > b", "a < b"),
        ("run rm -rf", "run rm rf"),
        ("version 1.2", "version 1 2"),
        ("10² metres", "102 metres"),
        ("resume", "résumé"),
        ("!!!", "???"),
    ],
)
async def test_R29_texts_that_differ_in_a_symbol_are_two_records(
    memory: CuratedMemory, one: str, other: str
) -> None:
    assert (await remember(memory, one)).id != (await remember(memory, other)).id


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ada sails.", "  ada\tSAILS "), ("Größe", "GRÖSSE"), ("Ame\u0301lie", "am\xe9lie"), ("...", "... ")],
)
async def test_R29_case_spaces_and_a_last_full_stop_make_no_other_text(
    memory: CuratedMemory, one: str, other: str
) -> None:
    assert (await remember(memory, one)).id == (await remember(memory, other)).id


async def test_R29_the_origins_of_one_text_are_bounded(
    memory: CuratedMemory, store: SqliteMemoryStore
) -> None:
    for number in range(MAX_SOURCES + 5):
        by = BY.model_copy(update={"actor_id": str(number)})
        record = await remember(memory, "Ada sails", provenance=by)
    assert len(await memory.sources(record.id)) == 1 + MAX_SOURCES
    assert await memory.forget(record.id, reason="r")
    assert await rows(store) == 1


async def test_R29_a_text_forgotten_often_is_remembered_once_more(
    memory: CuratedMemory, store: SqliteMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids: set[UUID] = set()
    for _ in range(40):
        record = await remember(memory, "Ada sails")
        ids.add(record.id)
        await memory.forget(record.id, reason="r")
    assert len(ids) == 40
    reads: list[int] = []
    retrieve_many = store.retrieve_many

    async def counting(asked: Any) -> Any:
        reads.append(len(asked))
        return await retrieve_many(asked)

    monkeypatch.setattr(store, "retrieve_many", counting)
    assert (await remember(memory, "Ada sails")).id not in ids
    assert reads == [2, 6, 18, 54]


async def test_R30_restoring_makes_no_second_active_record_of_a_text(memory: CuratedMemory) -> None:
    old, new = await remember(memory, "timezone is UTC"), await remember(memory, "timezone is Oslo")
    await memory.supersede(old.id, new.id)
    again = await remember(memory, "timezone is UTC")
    with pytest.raises(WriteRejected, match="says the same"):
        await memory.restore(old.id)
    await memory.forget(again.id, reason="r")
    await memory.restore(old.id)
    there = await memory.get(old.id)
    assert there is not None
    assert there.status == "active"


async def test_R34_T14_an_attributed_row_of_an_unknown_status_is_reported(
    memory: CuratedMemory, store: SqliteMemoryStore
) -> None:
    row = await store.retrieve((await remember(memory, "Ada sails")).id)
    assert row is not None
    odd = MemoryItem(content="sails", metadata={**row.metadata, "memory.status": "conversation"})
    await store.store(odd)
    assert [found async for found in memory.quarantine()] == [odd.id]
    assert [record.text for record in (await memory.recall("sails")).records] == ["Ada sails"]


@pytest.mark.parametrize(
    "query",
    [
        "sails " + "x" * 1_000_000,
        "sails " * 100_000,
        "sails " + " ".join(f"w{number}" for number in range(10_000)),
        "sails \ud800 \x00",
        'sails" OR * NOT (',
    ],
)
async def test_T11_a_huge_or_odd_query_is_a_query(
    memory: CuratedMemory, store: SqliteMemoryStore, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    await remember(memory, "Ada sails")
    asked: list[str] = []
    search = store.search

    async def spy(given: Any) -> Any:
        asked.append(given.text)
        return await search(given)

    monkeypatch.setattr(store, "search", spy)
    found = (await memory.recall(query)).records
    assert len(asked) <= 1 + 8
    assert max(map(len, asked)) <= MAX_QUERY_CHARS
    assert [record.text for record in found] in (["Ada sails"], [])


async def test_R38_what_expires_in_the_middle_of_a_recall_is_told_once(store: SqliteMemoryStore) -> None:
    class Clock:
        now = NOW

        def __call__(self) -> float:
            self.now += 1
            return self.now

    memory = CuratedMemory(store, SCOPE)
    for number in range(4):
        await remember(memory, f"Ada sails {number}", expires_at=NOW + 4)
    clock = Clock()
    recall = await CuratedMemory(store, SCOPE, clock=clock).recall("where Ada sails", limit=5)
    told = len(recall.records) + sum(recall.withheld.values())
    assert (told, recall.withheld) == (4, {"expired": 4 - len(recall.records)})


async def test_R33_a_long_allowlist_is_read(store: SqliteMemoryStore) -> None:
    await remember(CuratedMemory(store, SCOPE.model_copy(update={"agent": "a999"})), "Ada sails")
    readers = frozenset(f"a{number}" for number in range(1_000))
    reader = CuratedMemory(store, SCOPE.model_copy(update={"read_agents": readers}))
    assert len((await reader.recall("sails")).records) == 1
