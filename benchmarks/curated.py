"""What curated memory costs beside the calls of its store that it cannot do without."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from adapter_core import AnyOf, MemoryItem, MemoryQuery
from memory_authority import CuratedMemory, MemoryKind, MemoryRecord, Provenance, Scope, envelope

from . import measure
from .measure import Effort, take_turns

RECALL, SENTENCE, REMEMBER = "recall", "recall by a sentence", "remember"
OVER_STORE = 1.3
RECORDS = 2_000
LIMIT = 5
SCOPE = Scope(agent="bench", tenant="acme", principal="alice")
FACT = MemoryKind.FACT
BY = Provenance(
    actor="user", actor_id="alice", method="said so", recorded_at=datetime(2026, 1, 5, tzinfo=UTC)
)
FILTERS = {
    envelope.TENANT: SCOPE.tenant,
    envelope.PRINCIPAL: SCOPE.principal,
    envelope.AGENT: AnyOf(SCOPE.agent),
    envelope.SESSION: AnyOf(None),
    envelope.STATUS: "active",
}


def a_record(text: str, created_at: float) -> MemoryRecord:
    """Give a record as the layer would make it."""
    return MemoryRecord(
        id=envelope.record_id(SCOPE, FACT, text, 0),
        revision=1,
        text=text,
        kind=FACT,
        scope=SCOPE,
        provenance=BY,
        created_at=created_at,
    )


def a_text(number: int) -> str:
    """Give a text of about 100 characters; one in a hundred has the same two words."""
    return f"Alice likes thing{number} of group{number % 100}, and that it is well. " + "It stays so. " * 4


async def measured(store: Any, effort: Effort) -> dict[str, Any]:
    """Measure on a store that may be an authority."""
    memory = CuratedMemory(store, SCOPE, quota=10**9)
    for start in range(0, RECORDS, 500):
        numbers = range(start, start + 500)
        await store.store_many([envelope.to_item(a_record(a_text(n), float(n))) for n in numbers])

    async def search_and_read(query: str) -> None:
        hits = await store.search(MemoryQuery(text=query, filters=FILTERS, limit=LIMIT))
        assert len(await store.retrieve_many([hit.id for hit in hits])) == LIMIT

    async def recall(query: str) -> None:
        assert len((await memory.recall(query, limit=LIMIT)).records) == LIMIT

    async def write(item: MemoryItem) -> None:
        assert await store.retrieve_revision(item.id) is None
        await store.store(item)

    async def remember(text: str) -> None:
        await memory.remember(text, kind=FACT, provenance=BY)

    beside = measure.Turn(search_and_read, lambda number, count: _queries("{}", number, count))
    sentence = "What was it again that Alice likes so much, of {}?"
    turns = {
        RECALL: {
            "ours": measure.Turn(recall, lambda number, count: _queries("{}", number, count)),
            "raw": beside,
        },
        SENTENCE: {
            "ours": measure.Turn(recall, lambda number, count: _queries(sentence, number, count)),
            "raw": beside,
        },
        REMEMBER: {
            "ours": measure.Turn(remember, lambda number, count: _texts("a", number, count)),
            "raw": measure.Turn(
                write,
                lambda number, count: [
                    envelope.to_item(a_record(text, 0.0)) for text in _texts("b", number, count)
                ],
            ),
        },
    }
    return {what: await take_turns(contenders, effort) for what, contenders in turns.items()}


def _queries(sentence: str, number: int, count: int) -> Sequence[str]:
    return [sentence.format(f"group{(number + index) % 100}") for index in range(count)]


def _texts(prefix: str, number: int, count: int) -> Sequence[str]:
    return [f"{prefix} {number} {index}: {a_text(index)}" for index in range(count)]
