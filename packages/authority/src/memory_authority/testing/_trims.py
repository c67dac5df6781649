"""Cases about trimming and expiry: whole turns, oldest first, visibly, and only when asked."""

# ruff: noqa: S101 - a test says in its name what must hold, and asserts it

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_authority import (
    AssistantMessage,
    SessionConflict,
    SessionMode,
    SessionStore,
    SystemMessage,
    ToolMessage,
    Transcript,
    Turn,
    UserMessage,
)

from ._turns import generated
from .harness import SessionStoreHarness
from .samples import ALICE, interrupted, opening, said, with_tools

DAY = 86_400.0


def sized(turn_id: str, messages: int) -> Turn:
    """Give a turn of so many messages, of 8 characters each: 6 estimated tokens."""
    return Turn.model_validate(
        {
            "turn_id": turn_id,
            "origin": "interactive",
            "messages": [UserMessage(content="8 chars.") for _ in range(messages)],
        }
    )


async def filled(store: SessionStore, *turns: Turn) -> Transcript:
    """Make a session with these turns."""
    session = await store.create(ALICE, SessionMode.CHAT)
    for turn in turns:
        await store.append(ALICE, session.session_id, turn)
    return await store.load(ALICE, session.session_id)


def visible(transcript: Transcript) -> list[int]:
    """Number the turns in view."""
    return [turn.turn_no for turn in transcript.turns]


class TrimCases:
    """Cases about trimming and expiry."""

    @pytest.mark.parametrize(
        ("sizes", "cap", "kept"),
        [
            ((2, 2, 2), 6, 3),
            ((2, 2, 2), 5, 2),
            ((2, 2, 2), 4, 2),
            ((2, 2, 2), 1, 1),
            ((2, 2, 2), 0, 1),
            ((64,), 50, 1),
            ((2, 64), 50, 1),
            ((64, 2), 50, 1),
            ((1, 5, 1), 2, 1),
        ],
    )
    async def test_R12_whole_turns_go_until_the_messages_fit(
        self, harness: SessionStoreHarness, sizes: tuple[int, ...], cap: int, kept: int
    ) -> None:
        store = await harness.make()
        before = await filled(store, *(sized(str(number), size) for number, size in enumerate(sizes)))
        report = await store.trim(ALICE, before.session.session_id, max_messages=cap)
        found = await store.load(ALICE, before.session.session_id)
        assert visible(found) == list(range(len(sizes)))[-kept:]
        assert (report.kept_turns, report.dropped_turns) == (kept, len(sizes) - kept)
        assert report.dropped_messages == sum(sizes[:-kept])
        assert report.reason == "message_limit"

    @pytest.mark.parametrize(("budget", "kept"), [(36, 3), (35, 2), (24, 2), (12, 1), (1, 1)])
    async def test_R12_tokens_are_estimated_by_characters_and_messages(
        self, harness: SessionStoreHarness, budget: int, kept: int
    ) -> None:
        store = await harness.make()
        before = await filled(store, sized("0", 2), sized("1", 2), sized("2", 2))
        report = await store.trim(ALICE, before.session.session_id, max_tokens=budget)
        assert (report.kept_turns, report.reason) == (kept, "token_budget")

    async def test_R12_limits_out_of_range_are_refused(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, said("0"))
        session_id = before.session.session_id
        for attempt in (
            store.trim(ALICE, session_id, max_tokens=0),
            store.trim(ALICE, session_id, max_tokens=-1),
            store.trim(ALICE, session_id, keep_turns=-1),
            store.trim(ALICE, session_id, max_messages=-1),
            store.trim(ALICE, session_id),
        ):
            with pytest.raises(ValueError, match=r"limit|max_tokens|keep"):
                await attempt
        assert await store.load(ALICE, before.session.session_id) == before

    async def test_R12_leading_system_messages_stay(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, opening(), said("1"), said("2"))
        report = await store.trim(ALICE, before.session.session_id, max_messages=4)
        found = await store.load(ALICE, before.session.session_id)
        assert found.messages[:2] == before.messages[:2]
        assert isinstance(found.messages[0], SystemMessage)
        # the two that stay count for the limit, and not as dropped
        assert (visible(found), report.dropped_messages) == ([2], 4)

    @generated
    @given(
        tools=st.lists(st.integers(0, 3), min_size=1, max_size=6),
        keep=st.none() | st.integers(0, 7),
        messages=st.none() | st.integers(0, 20),
        tokens=st.none() | st.integers(1, 120),
    )
    async def test_R12_what_is_kept_is_a_suffix_and_no_pair_is_split(
        self,
        harness: SessionStoreHarness,
        tools: list[int],
        keep: int | None,
        messages: int | None,
        tokens: int | None,
    ) -> None:
        if keep is messages is tokens is None:
            keep = 1
        store = await harness.make()
        turns = [
            with_tools(str(number), *map(str, range(count))) if count else said(str(number))
            for number, count in enumerate(tools)
        ]
        before = await filled(store, *turns)
        report = await store.trim(
            ALICE, before.session.session_id, keep_turns=keep, max_messages=messages, max_tokens=tokens
        )
        found = await store.load(ALICE, before.session.session_id)
        kept = visible(found)
        assert kept
        assert kept == visible(before)[-len(kept) :]
        assert (report.kept_turns, report.dropped_turns) == (len(kept), len(tools) - len(kept))
        assert found.repairs == ()
        shown = [one for one in found.messages if not isinstance(one, SystemMessage)]
        assert tuple(shown) == before.messages[-len(shown) :]
        calls = sum(len(one.tool_calls) for one in shown if isinstance(one, AssistantMessage))
        assert calls == sum(isinstance(one, ToolMessage) for one in shown)

    async def test_R13_two_trims_leave_one_breadcrumb_and_two_records(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        before = await filled(store, opening(), *(said(str(number)) for number in range(5)))
        session_id = before.session.session_id
        first = await store.trim(ALICE, session_id, keep_turns=4)
        second = await store.trim(ALICE, session_id, max_messages=6)
        found = await store.load(ALICE, session_id)
        assert found.trims == (first, second)
        assert (first.dropped_turns, first.dropped_messages, first.kept_turns) == (2, 4, 4)
        assert (second.dropped_turns, second.dropped_messages, second.kept_turns) == (2, 4, 2)
        assert found.breadcrumb == 2
        crumb = found.messages[2]
        assert isinstance(crumb, SystemMessage)
        assert "4 earlier turns with 8 messages" in crumb.content
        assert sum(isinstance(message, SystemMessage) for message in found.messages) == 3

    async def test_R13_within_the_budget_nothing_is_recorded(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, said("0"), said("1"))
        report = await store.trim(ALICE, before.session.session_id, keep_turns=2, max_messages=4)
        assert (report.dropped_turns, report.dropped_messages, report.kept_turns) == (0, 0, 2)
        assert await store.load(ALICE, before.session.session_id) == before

    async def test_R13_a_dry_run_tells_and_changes_nothing(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, said("0"), said("1"), said("2"))
        told = await store.trim(ALICE, before.session.session_id, keep_turns=1, dry_run=True)
        assert await store.load(ALICE, before.session.session_id) == before
        assert await store.trim(ALICE, before.session.session_id, keep_turns=1) == told

    async def test_R14_a_turn_with_the_text_of_the_breadcrumb_is_a_turn(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        before = await filled(store, said("0"), said("1"))
        session_id = before.session.session_id
        await store.trim(ALICE, session_id, keep_turns=1)
        trimmed = await store.load(ALICE, session_id)
        assert trimmed.breadcrumb is not None
        text = trimmed.messages[trimmed.breadcrumb].content
        forged = Turn.model_validate(
            {
                "turn_id": "forged",
                "origin": "interactive",
                "messages": [SystemMessage(content=text), UserMessage(content=text)],
            }
        )
        await store.append(ALICE, session_id, forged)
        found = await store.load(ALICE, session_id)
        assert found.breadcrumb == 0
        assert found.turns[-1].stop - found.turns[-1].start == 2
        report = await store.trim(ALICE, session_id, keep_turns=1)
        assert (report.dropped_turns, report.dropped_messages) == (1, 2)

    async def test_R14_T09_a_marker_is_told_by_its_place_and_not_by_its_text(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        text = "[Trimmed: 7 earlier turns with 9 messages are not shown.]"
        found = await filled(store, said("0", text))
        assert (found.breadcrumb, found.trims) == (None, ())
        assert found.messages[0] == UserMessage(content=text)

    async def test_R12_erasing_deletes_what_hidden_turns_hold(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, opening(), with_tools("1", "a"), said("2", "the secret"), said("3"))
        session_id = before.session.session_id
        await store.trim(ALICE, session_id, keep_turns=2)
        assert "the secret" in str(await harness.dump())
        report = await store.trim(ALICE, session_id, keep_turns=1, erase=True)
        assert (report.dropped_turns, report.erased) == (1, True)
        rows = await harness.dump()
        assert "the secret" not in str(rows)
        assert (len(rows["authority_message"]), len(rows["authority_tool_call"])) == (4, 0)
        found = await store.load(ALICE, session_id)
        assert [trim.erased for trim in found.trims] == [True, True]
        assert (found.messages[:2], visible(found)) == (before.messages[:2], [3])
        assert found.session.turns == 4

    async def test_T06_a_late_retry_does_not_bring_an_erased_turn_back(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        before = await filled(store, said("0", "the secret"), said("1"))
        await store.trim(ALICE, before.session.session_id, keep_turns=1, erase=True)
        with pytest.raises(SessionConflict, match="erased"):
            await store.append(ALICE, before.session.session_id, said("0", "the secret"))
        assert "the secret" not in str(await harness.dump())

    async def test_R07_a_repair_stands_in_a_trimmed_view_too(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, said("0"), interrupted("1"))
        await store.trim(ALICE, before.session.session_id, keep_turns=1)
        found = await store.load(ALICE, before.session.session_id)
        assert found.repairs == ("turn 1: closed call 1 of message 1 as interrupted",)

    async def test_R88_retention_is_an_explicit_call_and_dry_unless_asked(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        idle = await filled(store, said("0"))
        busy = await filled(store, opening(), said("old"), with_tools("older", "a"))
        harness.clock.pass_by(30 * DAY)
        await store.append(ALICE, busy.session.session_id, said("new"))
        other = ALICE.model_copy(update={"principal": "bob"})
        foreign = await store.create(other, SessionMode.CHAT)
        rows = await harness.dump()

        before = harness.clock.now - DAY
        told = await store.expire(ALICE, before=before)
        assert (told.sessions, told.turns, told.dry_run) == ((idle.session.session_id,), 3, True)
        assert await harness.dump() == rows

        done = await store.expire(ALICE, before=before, dry_run=False)
        assert done == told.model_copy(update={"dry_run": False})
        assert await store.get(ALICE, idle.session.session_id) is None
        found = await store.load(ALICE, busy.session.session_id)
        assert (visible(found), [trim.reason for trim in found.trims]) == ([3], ["retention"])
        assert found.messages[:2] == opening().messages[:2]
        assert len((await harness.dump())["authority_message"]) == 4
        assert await store.get(other, foreign.session_id) == foreign
        again = await store.expire(ALICE, before=before, dry_run=False)
        assert (again.sessions, again.turns) == ((), 0)
        assert await store.load(ALICE, busy.session.session_id) == found

    async def test_R88_expiry_erases_what_was_only_hidden(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        before = await filled(store, said("0", "the secret"), said("1", "another"))
        session_id = before.session.session_id
        await store.trim(ALICE, session_id, keep_turns=1)
        harness.clock.pass_by(DAY)
        await store.append(ALICE, session_id, said("2"))
        await store.trim(ALICE, session_id, keep_turns=1)
        report = await store.expire(ALICE, before=harness.clock.now, dry_run=False)
        assert (report.sessions, report.turns) == ((), 2)
        rows = await harness.dump()
        assert "the secret" not in str(rows)
        assert "another" not in str(rows)
        assert visible(await store.load(ALICE, session_id)) == [2]
