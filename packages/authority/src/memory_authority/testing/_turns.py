"""Cases about turns: whole, exact, paired, repaired on load, never mistaken for empty."""

# ruff: noqa: S101 - a test says in its name what must hold, and asserts it

import asyncio
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import ValidationError

from adapter_core import MemoryAdapterUnavailable, UnrepresentableItem, same_value
from memory_authority import (
    AssistantMessage,
    Message,
    SessionConflict,
    SessionMode,
    SessionNotFound,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Turn,
    UnpairedToolResult,
    UnreadableTranscript,
    UserMessage,
)

from .harness import Corruption, SessionStoreHarness
from .samples import ALICE, interrupted, opening, said, turns, with_tools

generated = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""As many examples as a database takes in a moment; always the same ones."""

MEGABYTE = 1_000_000


def same_messages(one: tuple[Message, ...], other: tuple[Message, ...]) -> bool:
    """Whether messages are equal, in the types of their contents too."""
    return one == other and all(
        same_value(mine.content, theirs.content) for mine, theirs in zip(one, other, strict=True)
    )


class TurnCases:
    """Cases about turns."""

    async def test_R02_a_turn_is_appended_whole_or_not_at_all(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, opening())
        before, rows = await store.load(ALICE, session.session_id), await harness.dump()
        failed = 0
        for statements in range(40):
            harness.fail_after(statements)
            try:
                await store.append(ALICE, session.session_id, with_tools("tools", "read", "write"))
            except MemoryAdapterUnavailable:
                failed += 1
                harness.fail_after(None)
                assert await store.load(ALICE, session.session_id) == before
                assert await harness.dump() == rows
            else:
                break
        harness.fail_after(None)
        assert failed >= 4
        assert (await store.load(ALICE, session.session_id)).session.turns == 2

    async def test_R02_a_cancelled_append_is_whole_or_absent(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        stored = 0
        for steps in range(60):
            task = asyncio.create_task(
                store.append(ALICE, session.session_id, with_tools(f"turn{steps}", "read", "write"))
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            found = await store.load(ALICE, session.session_id)
            assert found.session.turns - stored in {0, 1}
            assert [turn.stop - turn.start for turn in found.turns] == [5] * found.session.turns
            stored = found.session.turns

    @generated
    @given(turn=turns())
    async def test_R03_any_turn_comes_back_equal(self, harness: SessionStoreHarness, turn: Turn) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, turn)
        found = await store.load(ALICE, session.session_id)
        assert same_messages(found.messages, turn.messages)
        assert found.repairs == ()
        (info,) = found.turns
        assert (info.turn_id, info.origin, info.status) == (turn.turn_id, turn.origin, turn.status)
        assert (info.start, info.stop) == (0, len(turn.messages))

    async def test_R03_large_results_and_odd_arguments_come_back_verbatim(
        self, harness: SessionStoreHarness
    ) -> None:
        arguments = '{"a": 1, "a": 2, "b": 1e22, "c": "\\u0000\x00"'  # duplicate keys, unfinished
        calls = (
            ToolCall(call_id="", name="", arguments=arguments),
            ToolCall(call_id="call\x00" + "x" * 5_000, name="n\ud800", arguments=""),
        )
        turn = Turn.model_validate(
            {
                "turn_id": "large",
                "origin": "cron",
                "messages": [
                    UserMessage(content="\x00 \ud800 \U0001f600 \\u0000 'é\""),
                    AssistantMessage(content=None, tool_calls=calls, reasoning="because \x00"),
                    ToolMessage(call_id=calls[1].call_id, content="é\x00" * (MEGABYTE // 2)),
                    ToolMessage(call_id="", content={"-0.0": -0.0, "big": 2**80}, outcome="denied"),
                ],
            }
        )
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CODE)
        await store.append(ALICE, session.session_id, turn)
        found = await (await harness.make()).load(ALICE, session.session_id)
        assert same_messages(found.messages, turn.messages)

    async def test_R03_what_would_not_come_back_equal_is_refused(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        for content in (float("nan"), (1, 2), {1: "a"}, "\ud83d\ude00"):
            turn = Turn.model_validate(
                {"turn_id": "odd", "origin": "cron", "messages": [UserMessage(content=content)]}
            )
            with pytest.raises(UnrepresentableItem, match=r"messages\[0\]\.content"):
                await store.append(ALICE, session.session_id, turn)
        assert (await store.load(ALICE, session.session_id)).session == session

    async def test_R04_a_result_without_its_call_is_refused(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, with_tools("first", "read"))
        before = await store.load(ALICE, session.session_id)
        call = ToolCall(call_id="call_0", name="read", arguments="{}")
        result = ToolMessage(call_id="call_0", content="orphan")
        question, asked = UserMessage(content="?"), AssistantMessage(tool_calls=(call,))
        for messages in (
            (question, result),  # of an earlier turn's call
            (question, asked, ToolMessage(call_id="call_1", content="")),
            (question, asked, result, result),
            (question, asked, question, result),  # not right after its call
            (result, asked),
        ):
            turn = Turn.model_validate({"turn_id": "odd", "origin": "interactive", "messages": messages})
            with pytest.raises(UnpairedToolResult):
                await store.append(ALICE, session.session_id, turn)
        assert await store.load(ALICE, session.session_id) == before

    async def test_R05_T13_repeated_call_ids_keep_their_own_tools(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        one = await store.create(ALICE, SessionMode.CHAT)
        other = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, one.session_id, with_tools("1", "read"))
        await store.append(ALICE, one.session_id, with_tools("2", "write"))
        await store.append(ALICE, other.session_id, with_tools("1", "search"))
        tools = [
            call.name
            for session in (one, other)
            for message in (await store.load(ALICE, session.session_id)).messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        ]
        results = [
            message.content
            for session in (one, other)
            for message in (await store.load(ALICE, session.session_id)).messages
            if isinstance(message, ToolMessage)
        ]
        assert tools == ["read", "write", "search"]
        assert results == ["of read", "of write", "of search"]

    async def test_R06_results_in_any_order_pair_and_keep_their_order(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        turn = with_tools("parallel", "a", "b", "c")
        await store.append(ALICE, session.session_id, turn)
        found = await store.load(ALICE, session.session_id)
        results = [message for message in found.messages if isinstance(message, ToolMessage)]
        assert [(one.call_id, one.content) for one in results] == [
            ("call_2", "of c"),
            ("call_1", "of b"),
            ("call_0", "of a"),
        ]
        assert found.repairs == ()

    async def test_R07_an_unanswered_call_is_closed_on_load(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, interrupted("killed"))
        await store.append(ALICE, session.session_id, said("next"))
        rows = await harness.dump()
        found = await (await harness.make()).load(ALICE, session.session_id)
        made = found.messages[3]
        assert isinstance(made, ToolMessage)
        assert (made.call_id, made.outcome, made.synthesized) == ("call_1", "interrupted", True)
        assert [message.role for message in found.messages] == [
            *("user", "assistant", "tool", "tool"),
            *("user", "assistant"),
        ]
        assert found.repairs == ("turn 0: closed call 1 of message 1 as interrupted",)
        assert await store.load(ALICE, session.session_id) == found
        assert await harness.dump() == rows

    async def test_R07_a_result_whose_call_is_gone_is_dropped_on_load(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, with_tools("tools", "read"))
        await harness.corrupt_row(session.session_id, "call")
        rows = await harness.dump()
        found = await store.load(ALICE, session.session_id)
        assert [message.role for message in found.messages] == ["user", "assistant", "assistant"]
        assert found.repairs == ("turn 0: dropped message 2, a result without its call",)
        assert await store.load(ALICE, session.session_id) == found
        assert await harness.dump() == rows

    async def test_R07_a_synthesized_result_cannot_be_appended(self) -> None:
        made = ToolMessage(call_id="call_0", content="", outcome="interrupted", synthesized=True)
        with pytest.raises(ValidationError, match="never appended"):
            Turn.model_validate({"turn_id": "odd", "origin": "cron", "messages": [made]})

    async def test_R08_failed_and_cancelled_turns_are_kept_with_their_status(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, interrupted("failed"))
        await store.append(ALICE, session.session_id, said("stopped", status="cancelled"))
        found = await store.load(ALICE, session.session_id)
        assert [turn.status for turn in found.turns] == ["failed", "cancelled"]
        # the status is data beside the messages: the model is sent what was said, and paired calls
        assert [message.role for message in found.messages] == [
            *("user", "assistant", "tool", "tool"),
            *("user", "assistant"),
        ]

    async def test_R08_a_load_beside_an_append_sees_the_old_or_the_new_state(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        done = asyncio.Event()

        async def write() -> None:
            for number in range(20):
                await store.append(ALICE, session.session_id, with_tools(f"turn{number}", "a", "b"))
                await asyncio.sleep(0)
            done.set()

        async def read() -> int:
            seen = 0
            while not done.is_set():
                found = await store.load(ALICE, session.session_id)
                assert found.session.turns == len(found.turns) == found.session.version
                assert [turn.stop - turn.start for turn in found.turns] == [5] * len(found.turns)
                assert found.repairs == ()
                seen += 1
                await asyncio.sleep(0)
            return seen

        async with asyncio.timeout(60):
            _, *seen = await asyncio.gather(write(), read(), read())
        assert all(seen)

    async def test_R09_the_same_turn_again_changes_nothing(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        first = await store.append(ALICE, session.session_id, with_tools("turn", "a"), expected_version=0)
        rows = await harness.dump()
        again = await store.append(ALICE, session.session_id, with_tools("turn", "a"), expected_version=0)
        assert again == first
        await store.close(ALICE, session.session_id)
        assert (await store.append(ALICE, session.session_id, with_tools("turn", "a"))).turns == 1
        assert (await harness.dump())["authority_message"] == rows["authority_message"]

    async def test_R09_another_turn_of_the_same_id_is_refused(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, said("turn", "Hello"))
        rows = await harness.dump()
        for other in (
            said("turn", "Hello!"),
            said("turn", "Hello", status="failed"),
            with_tools("turn", "a"),
        ):
            with pytest.raises(SessionConflict, match="turn_id"):
                await store.append(ALICE, session.session_id, other)
        assert await harness.dump() == rows

    async def test_R09_a_turn_retried_by_many_tasks_is_there_once(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        infos = await asyncio.gather(
            *(store.append(ALICE, session.session_id, said("same")) for _ in range(10))
        )
        assert {info.turns for info in infos} == {1}
        assert len((await harness.dump())["authority_turn"]) == 1

    @pytest.mark.parametrize("what", ["content", "arguments", "message"])
    async def test_R11_unreadable_is_not_empty(self, harness: SessionStoreHarness, what: Corruption) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, with_tools("turn", "a"))
        await harness.corrupt_row(session.session_id, what)
        with pytest.raises(UnreadableTranscript) as caught:
            await store.load(ALICE, session.session_id)
        assert "no json" not in str(caught.value)

    async def test_R11_unavailable_is_not_empty(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        for call in (store.load(ALICE, session.session_id), store.list(ALICE), store.get(ALICE, uuid4())):
            harness.fail_after(0)
            with pytest.raises(MemoryAdapterUnavailable):
                await call
        assert await store.list(ALICE) == [session]

    async def test_R11_unknown_and_empty_are_told_apart(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        empty = await store.load(ALICE, session.session_id)
        assert (empty.session, empty.messages, empty.turns) == (session, (), ())
        with pytest.raises(SessionNotFound):
            await store.load(ALICE, uuid4())
        assert await store.get(ALICE, uuid4()) is None

    async def test_R03_leading_system_messages_come_back_in_place(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, opening())
        await store.append(ALICE, session.session_id, said("2"))
        await store.append(ALICE, session.session_id, said("3"))
        whole = await store.load(ALICE, session.session_id)
        assert same_messages(whole.messages[:4], opening().messages)
        part = await store.load(ALICE, session.session_id, last_turns=1)
        assert part.messages == (*whole.messages[:2], *whole.messages[-2:])
        assert [(turn.turn_id, turn.start, turn.stop) for turn in part.turns] == [("3", 2, 4)]
        none = await store.load(ALICE, session.session_id, last_turns=0)
        assert all(isinstance(message, SystemMessage) for message in none.messages)
        assert (len(none.messages), none.breadcrumb) == (2, None)
