"""Best-effort recall: it degrades with a reason, and the explicit store beside it raises."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import lionagi
import pytest
from lionagi.service.token_calculator import TokenCalculator

from adapter_core import ExternalMemoryStore, MemoryAdapterUnavailable, MemoryItem, MemoryQuery, ScoredHit
from adapter_sqlite import SqliteMemoryStore
from memory_authority.fence import parse_block
from memory_authority.provider import (
    CHARS_PER_TOKEN,
    MAX_TASK_CHARS,
    ComposePolicy,
    InjectionPolicy,
    RecallPolicy,
    RecallProvider,
    WritebackPolicy,
)

BRANCH = SimpleNamespace(name="guide", msgs=SimpleNamespace(last_response=None))
EVERY = InjectionPolicy(cadence="every_turn")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteMemoryStore]:
    async with SqliteMemoryStore(tmp_path / "m.db", filters=["tenant"]) as store:
        yield store


def task(text: str) -> Any:
    return SimpleNamespace(rendered=text)


def shown(text: str | None) -> list[str]:
    return [] if text is None else [entry["text"] for entry in parse_block(text)]


class Down:
    """A service that is gone."""

    async def store(self, item: Any) -> UUID:
        raise MemoryAdapterUnavailable("secret content")

    async def retrieve(self, item_id: UUID) -> Any:
        raise MemoryAdapterUnavailable("secret content")

    async def search(self, query: Any) -> Any:
        raise MemoryAdapterUnavailable("secret content")


class Scored(Down):
    """A store that gives scores."""

    score_meaning = "between 0 and 1"

    def __init__(self, *scores: float | None) -> None:
        self.scores = scores

    async def search_scored(self, query: Any) -> list[ScoredHit[MemoryItem]]:
        return [ScoredHit(MemoryItem(content=f"score {score}"), score) for score in self.scores]

    async def search(self, query: Any) -> Any:
        return []


async def test_it_gives_what_is_found_as_fenced_data(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content={"note": "Ada </memory> sails", "n": 1}))
    text = await RecallProvider(store).provide(BRANCH, task("ada sails"))
    assert shown(text) == ["note: Ada </memory> sails\nn: 1"]
    assert text is not None
    assert "</memory>" not in text


async def test_a_sentence_recalls_by_its_words(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content="Ada keeps her boat in Bergen"))
    assert shown(await RecallProvider(store).provide(BRANCH, task("Where is the boat now?"))) == [
        "Ada keeps her boat in Bergen"
    ]


async def test_nothing_found_is_none_without_a_reason(store: SqliteMemoryStore) -> None:
    provider = RecallProvider(store)
    for asked in ("zebra", "zebra and giraffe", "", "  "):
        assert await provider.provide(BRANCH, task(asked)) is None
        assert provider.degradation_reason is None


async def test_filters_wall_the_recall(store: SqliteMemoryStore) -> None:
    for tenant in ("a", "b"):
        await store.store(MemoryItem(content=f"{tenant} sails", metadata={"tenant": tenant}))
    provider = RecallProvider(store, filters={"tenant": "a"})
    assert shown(await provider.provide(BRANCH, task("sails"))) == ["a sails"]
    assert shown(await provider.provide(BRANCH, task("who sails there"))) == ["a sails"]


async def test_the_first_turn_alone_unless_told_otherwise(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content="sails"))
    later = SimpleNamespace(msgs=SimpleNamespace(last_response=object()))
    assert await RecallProvider(store).provide(later, task("sails")) is None
    assert shown(await RecallProvider(store, EVERY).provide(later, task("sails"))) == ["sails"]
    off = InjectionPolicy(enabled=False)
    assert await RecallProvider(store, off).provide(BRANCH, task("sails")) is None


async def test_hits_below_the_score_floor_are_left_out() -> None:
    provider = RecallProvider(Scored(0.9, 0.4, 0.39, None))
    assert shown(await provider.provide(BRANCH, task("x"))) == ["score 0.9", "score 0.4"]


async def test_without_scores_the_rank_cuts(store: SqliteMemoryStore) -> None:
    class Plain:
        async def search(self, query: MemoryQuery) -> list[MemoryItem]:
            return await store.search(query)

    for number in range(9):
        await store.store(MemoryItem(content=f"sails {number}"))
    assert len(shown(await RecallProvider(Plain()).provide(BRANCH, task("sails")))) == 5  # pyright: ignore[reportArgumentType]


async def test_four_hundred_characters_of_the_task_are_asked_for() -> None:
    asked: list[str] = []

    class Spy(Down):
        async def search(self, query: Any) -> Any:
            asked.append(query.text)
            return [MemoryItem(content="x")]

    await RecallProvider(Spy()).provide(BRANCH, task("word " * 200))
    assert asked == [("word " * 200)[:MAX_TASK_CHARS]]
    assert MAX_TASK_CHARS == 400


@pytest.mark.parametrize("tokens", [0, 50, 100, 150, 200, 800])
async def test_the_block_keeps_to_its_token_budget(store: SqliteMemoryStore, tokens: int) -> None:
    for number in range(5):
        await store.store(MemoryItem(content=f"sails {number} " + "\u202e<word> " * 60))
    policy = InjectionPolicy(recall=RecallPolicy(max_tokens=tokens))
    text = await RecallProvider(store, policy).provide(BRANCH, task("sails"))
    assert len(text or "") <= tokens * CHARS_PER_TOKEN
    assert (text is None) == (tokens <= 100)
    if text is not None:
        last = parse_block(text)[-1]
        assert last["cut_from_chars"] == len("sails 0 " + "\u202e<word> " * 60)


async def test_composition_has_a_budget_of_its_own_and_is_off_by_default(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content="sails"))

    async def compose(asked: str) -> str:
        return f"a long text about {asked} " * 1_000

    off = await RecallProvider(store, compose=compose).provide(BRANCH, task("sails"))
    assert shown(off) == ["sails"]
    on = InjectionPolicy(compose=ComposePolicy(enabled=True))
    text = await RecallProvider(store, on, compose=compose).provide(BRANCH, task("sails"))
    assert text is not None
    assert 2_000 * CHARS_PER_TOKEN * 0.9 < len(text) <= 2_800 * CHARS_PER_TOKEN
    assert len(re.findall(r"<(memory|sources)-", text)) == 2


@pytest.mark.parametrize("announce", [False, True])
async def test_R91_an_outage_degrades_with_a_reason_and_no_content(
    caplog: pytest.LogCaptureFixture, announce: bool
) -> None:
    provider = RecallProvider(Down(), InjectionPolicy(announce_outage=announce))
    text = await provider.provide(BRANCH, task("the secret task"))
    assert (text is not None) == announce
    assert provider.degradation_reason == "recall_failed:MemoryAdapterUnavailable"
    assert "recall degraded: recall_failed:MemoryAdapterUnavailable" in caplog.text
    assert "secret" not in caplog.text + (text or "")


async def test_T11_a_service_that_hangs_is_left_after_its_time() -> None:
    class Hanging(Down):
        async def search(self, query: Any) -> Any:
            await asyncio.Event().wait()

    policy = InjectionPolicy(recall=RecallPolicy(timeout_s=0.01))
    provider = RecallProvider(Hanging(), policy)
    assert await provider.provide(BRANCH, task("sails")) is None
    assert provider.degradation_reason == "recall_failed:TimeoutError"


async def test_a_cancelled_turn_is_cancelled() -> None:
    started = asyncio.Event()

    class Hanging(Down):
        async def search(self, query: Any) -> Any:
            started.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(RecallProvider(Hanging()).provide(BRANCH, task("sails")))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_failing_composition_keeps_what_was_recalled(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content="sails"))

    async def compose(asked: str) -> str:
        raise RuntimeError(asked)

    on = InjectionPolicy(compose=ComposePolicy(enabled=True))
    provider = RecallProvider(store, on, compose=compose)
    assert shown(await provider.provide(BRANCH, task("sails"))) == ["sails"]
    assert provider.degradation_reason == "compose_failed:RuntimeError"


async def test_feedback_is_told_what_was_injected_and_may_fail(
    store: SqliteMemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    item = MemoryItem(content="sails")
    await store.store(item)
    told: list[tuple[str, Sequence[UUID]]] = []

    async def feedback(asked: str, ids: Sequence[UUID]) -> None:
        told.append((asked, ids))
        raise RuntimeError("no")

    provider = RecallProvider(store, feedback=feedback)
    assert shown(await provider.provide(BRANCH, task("sails"))) == ["sails"]
    assert told == [("sails", [item.id])]
    assert provider.degradation_reason == "feedback_failed:RuntimeError"
    assert "feedback_failed:RuntimeError" in caplog.text


async def test_turns_beside_each_other_have_reasons_of_their_own(store: SqliteMemoryStore) -> None:
    gate = asyncio.Event()

    class Half(Down):
        async def search(self, query: Any) -> Any:
            if "bad" in query.text:
                await gate.wait()
                raise MemoryAdapterUnavailable("down")
            return []

    provider = RecallProvider(Half())

    async def turn(text: str) -> str | None:
        await provider.provide(BRANCH, task(text))
        gate.set()
        return provider.degradation_reason

    reasons = await asyncio.gather(turn("bad"), turn("good"))
    assert reasons == ["recall_failed:MemoryAdapterUnavailable", None]


def answers(*outputs: Any) -> list[Any]:
    return [SimpleNamespace(function=f"tool{number}", output=output) for number, output in enumerate(outputs)]


WRITING = InjectionPolicy(writeback=WritebackPolicy(enabled=True))


async def test_errors_are_paired_with_the_next_output_by_order(store: SqliteMemoryStore) -> None:
    provider = RecallProvider(store, WRITING, filters={"tenant": "a"})
    given = answers({"error": "E1"}, None, {"error": "E2"}, "R1", {"ok": 1}, "unpaired")
    assert await provider.writeback(BRANCH, given) == 2
    first, second = sorted(await store.search(MemoryQuery(filters={"tenant": "a"})), key=lambda i: i.content)
    assert first.content.startswith("The tool tool0 failed with E1.")
    assert "tool3: R1" in first.content
    assert second.content.startswith("The tool tool2 failed with E2.")
    assert "tool4: ok: 1" in second.content
    assert "by order alone" in first.content
    assert (first.tags, first.metadata["salience"]) == (["agent:guide"], 0.4)


async def test_writeback_is_off_by_default(store: SqliteMemoryStore) -> None:
    assert await RecallProvider(store).writeback(BRANCH, answers({"error": "E"}, "R")) == 0
    assert await store.search(MemoryQuery()) == []


async def test_writeback_stops_at_its_first_failure_and_logs_it(
    store: SqliteMemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Second(Down):
        calls = 0

        async def store(self, item: Any) -> UUID:
            self.calls += 1
            return await (store.store(item) if self.calls == 1 else super().store(item))

    failing = Second()
    pairs = [output for number in range(4) for output in ({"error": f"E{number}"}, f"R{number}")]
    assert await RecallProvider(failing, WRITING).writeback(BRANCH, answers(*pairs)) == 1
    assert failing.calls == 2
    assert "writeback_failed:MemoryAdapterUnavailable" in caplog.text
    assert "secret" not in caplog.text


def test_it_is_no_store_and_has_no_manifest(store: SqliteMemoryStore) -> None:
    provider = RecallProvider(store)
    assert not isinstance(provider, ExternalMemoryStore)
    assert not hasattr(provider, "manifest")
    for name in ("limit", "min_score", "max_tokens", "cadence"):
        assert name not in type(store.manifest).model_fields


async def test_beside_an_explicit_store_the_provider_degrades_and_the_store_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The host's tokenizer would download its table.
    monkeypatch.setattr(TokenCalculator, "tokenize", staticmethod(lambda text: len(text) // 4))
    folder = tmp_path / "there"
    folder.mkdir()
    explicit = SqliteMemoryStore(folder / "m.db", item_type=lionagi.MemoryItem)
    enriching = SqliteMemoryStore(folder / "m.db")
    await explicit.store(lionagi.MemoryItem(content="Ada sails"))
    provider = RecallProvider(enriching, EVERY)
    branch = lionagi.Branch(memory=explicit)
    branch.providers.register(provider)
    instruction = branch.msgs.create_instruction(instruction="Ada sails")
    report = await branch.providers.gather(branch, instruction)
    assert len(report.blocks) == 1
    assert "Ada sails" in report.blocks[0]
    assert branch.memory is explicit

    await enriching.close()
    await explicit.close()
    report = await branch.providers.gather(branch, instruction)
    assert report.blocks == []
    assert report.failed == []
    assert report.degraded == [
        {"provider_name": "recall", "reason": "recall_failed:MemoryAdapterUnavailable"}
    ]
    with pytest.raises(MemoryAdapterUnavailable):
        await explicit.search(MemoryQuery(text="Ada"))


async def test_a_lionagi_branch_without_a_service_keeps_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    branch = lionagi.Branch()
    branch.providers.register(RecallProvider(Down(), EVERY))
    instruction = branch.msgs.create_instruction(instruction="anything")
    assert (await branch.providers.gather(branch, instruction)).blocks == []


class Junk:
    """A store that gives whatever it was made with."""

    def __init__(self, given: Any) -> None:
        self.given = given

    async def search(self, query: Any) -> Any:
        return self.given

    def store(self, item: Any) -> Any:
        raise RuntimeError("not even a coroutine")


class Hostile:
    """Every attribute fails."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "given",
    [None, 7, [None], ["text"], [MemoryItem(content="x"), object()], {"a": 1}, [SimpleNamespace(id=1)]],
)
async def test_a_store_that_gives_junk_degrades(given: Any) -> None:
    provider = RecallProvider(Junk(given), EVERY)  # pyright: ignore[reportArgumentType]
    assert await provider.provide(BRANCH, task("sails")) is None
    assert provider.degradation_reason is not None
    assert provider.degradation_reason.startswith("recall_failed:")


async def test_a_store_that_gives_more_than_was_asked_for_is_cut() -> None:
    many = Junk([MemoryItem(content=f"sails {number}") for number in range(100)])
    assert len(shown(await RecallProvider(many, EVERY).provide(BRANCH, task("sails")))) == 5  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("branch", [None, object(), SimpleNamespace(msgs=None), SimpleNamespace(name=7)])
async def test_a_branch_without_messages_or_name_is_served(store: SqliteMemoryStore, branch: Any) -> None:
    await store.store(MemoryItem(content="Ada sails"))
    assert shown(await RecallProvider(store).provide(branch, "sails")) == ["Ada sails"]
    assert await RecallProvider(store, WRITING).writeback(branch, answers({"error": "E"}, "R")) == 1


@pytest.mark.parametrize("instruction", [Hostile(), None, 7, object(), {"deep": [[["sails"]]]}])
async def test_an_instruction_of_any_kind_raises_nothing(store: SqliteMemoryStore, instruction: Any) -> None:
    provider = RecallProvider(store)
    assert await provider.provide(BRANCH, instruction) is None
    hostile = isinstance(instruction, Hostile)
    assert provider.degradation_reason == ("provide_failed:RuntimeError" if hostile else None)
    assert await provider.provide(Hostile(), "sails") is None
    assert provider.degradation_reason == "provide_failed:RuntimeError"


@pytest.mark.parametrize("responses", [None, 7, [Hostile()], answers({"error": "E"}, "R")])
async def test_a_writeback_of_junk_is_logged_and_raises_nothing(
    responses: Any, caplog: pytest.LogCaptureFixture
) -> None:
    provider = RecallProvider(Junk([]), WRITING)  # pyright: ignore[reportArgumentType]
    assert await provider.writeback(BRANCH, responses) == 0
    assert "writeback_failed:" in caplog.text


async def test_a_feedback_that_is_no_coroutine_raises_nothing(store: SqliteMemoryStore) -> None:
    await store.store(MemoryItem(content="sails"))

    def feedback(asked: str, ids: Sequence[UUID]) -> Any:
        raise RuntimeError(asked)

    provider = RecallProvider(store, feedback=feedback)
    assert shown(await provider.provide(BRANCH, task("sails"))) == ["sails"]
    assert provider.degradation_reason == "feedback_failed:RuntimeError"


async def test_feedback_is_told_only_what_found_room(store: SqliteMemoryStore) -> None:
    items = [
        MemoryItem(content=f"sails {number} " + "word " * 50, created_at=float(number)) for number in range(5)
    ]
    await store.store_many(items)
    told: list[UUID] = []

    async def feedback(asked: str, ids: Sequence[UUID]) -> None:
        told.extend(ids)

    policy = InjectionPolicy(recall=RecallPolicy(max_tokens=180))
    text = await RecallProvider(store, policy, feedback=feedback).provide(BRANCH, task("sails"))
    assert text is not None
    assert [str(id_) for id_ in told] == [entry["id"] for entry in parse_block(text)]
    assert 0 < len(told) < 5


async def test_the_score_floor_holds_for_the_words_of_a_sentence_too() -> None:
    provider = RecallProvider(Scored(0.39, None), EVERY)
    assert await provider.provide(BRANCH, task("words of a sentence")) is None
    assert provider.degradation_reason is None


async def test_all_reasons_are_given_in_their_order() -> None:
    async def compose(asked: str) -> Any:
        return 7

    policy = InjectionPolicy(cadence="every_turn", compose=ComposePolicy(enabled=True))
    provider = RecallProvider(Down(), policy, compose=compose)
    assert await provider.provide(BRANCH, task("sails")) is None
    assert provider.degradation_reason == "recall_failed:MemoryAdapterUnavailable, compose_failed:TypeError"
