"""Cases about sessions and their owners: concurrency, incarnations, scope, life."""

# ruff: noqa: S101 - a test says in its name what must hold, and asserts it

import asyncio
from itertools import product
from uuid import UUID, uuid4

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable
from memory_authority import (
    ConversationHistory,
    Scope,
    SessionConflict,
    SessionInfo,
    SessionMode,
    SessionNotFound,
    SessionStore,
)

from .harness import SessionStoreHarness
from .samples import ALICE, opening, said, with_tools

TASKS = 50


async def refused(store: SessionStore, scope: Scope, session_id: UUID) -> list[str]:
    """Say how every operation answers for a session that this scope does not have."""
    answers: list[str] = []
    for call in (
        store.load(scope, session_id),
        store.append(scope, session_id, said("new")),
        store.append(scope, session_id, said("new"), incarnation=uuid4()),
        store.trim(scope, session_id, keep_turns=1),
        store.close(scope, session_id),
    ):
        with pytest.raises(MemoryAdapterError) as caught:
            await call
        assert caught.type is SessionNotFound
        answers.append(str(caught.value))
    answers.append(str(await store.get(scope, session_id)))
    answers.append(str(await store.delete(scope, session_id)))
    return answers


class OwnerCases:
    """Cases about sessions and their owners."""

    async def test_R10_fifty_tasks_append_without_a_gap(self, harness: SessionStoreHarness) -> None:
        one, other = await harness.make(), await harness.make()
        session = await one.create(ALICE, SessionMode.CHAT)
        async with asyncio.timeout(120):
            infos = await asyncio.gather(
                *(
                    (one, other)[number % 2].append(
                        ALICE, session.session_id, with_tools(f"turn{number}", "a")
                    )
                    for number in range(TASKS)
                )
            )
        assert sorted(info.turns for info in infos) == list(range(1, TASKS + 1))
        found = await one.load(ALICE, session.session_id)
        assert [turn.turn_no for turn in found.turns] == list(range(TASKS))
        assert {turn.turn_id for turn in found.turns} == {f"turn{number}" for number in range(TASKS)}
        assert (found.session.turns, found.session.version) == (TASKS, TASKS)

    async def test_R10_a_stale_version_is_refused(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        after = await store.append(ALICE, session.session_id, said("0"), expected_version=session.version)
        with pytest.raises(SessionConflict, match="version 1, not 0"):
            await store.append(ALICE, session.session_id, said("1"), expected_version=session.version)
        await store.append(ALICE, session.session_id, said("1"), expected_version=after.version)
        await store.trim(ALICE, session.session_id, keep_turns=1)
        with pytest.raises(SessionConflict):
            await store.append(ALICE, session.session_id, said("2"), expected_version=2)

    async def test_R10_of_many_who_saw_the_same_version_one_wins(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        outcomes = await asyncio.gather(
            *(
                store.append(ALICE, session.session_id, said(f"turn{number}"), expected_version=0)
                for number in range(10)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, SessionInfo) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, SessionConflict) for outcome in outcomes) == 9

    async def test_R16_deletion_leaves_no_row_but_a_tombstone(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT, external_key="thread")
        await store.append(ALICE, session.session_id, opening())
        await store.append(ALICE, session.session_id, with_tools("tools", "a", "b"))
        await store.trim(ALICE, session.session_id, keep_turns=1)
        assert await store.delete(ALICE, session.session_id)
        rows = await harness.dump()
        assert {table: len(found) for table, found in rows.items() if found} == {
            "authority_session_tombstone": 1
        }
        assert "alice" not in str(rows)
        assert not await store.delete(ALICE, session.session_id)

    async def test_R16_deletion_is_whole_or_does_not_happen(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.append(ALICE, session.session_id, with_tools("tools", "a"))
        rows = await harness.dump()
        failed = 0
        for statements in range(10):
            harness.fail_after(statements)
            try:
                assert await store.delete(ALICE, session.session_id)
            except MemoryAdapterUnavailable:
                failed += 1
                harness.fail_after(None)
                assert await harness.dump() == rows
            else:
                break
        harness.fail_after(None)
        assert failed >= 2
        assert await store.get(ALICE, session.session_id) is None

    async def test_R16_somebody_else_deletes_nothing(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        rows = await harness.dump()
        bob = ALICE.model_copy(update={"principal": "bob"})
        assert not await store.delete(bob, session.session_id)
        assert not await store.delete(bob, session.session_id, incarnation=session.incarnation)
        assert not await store.delete(ALICE, session.session_id, incarnation=uuid4())
        assert await harness.dump() == rows

    async def test_R17_T06_a_late_append_does_not_resurrect_a_session(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        history = ConversationHistory(store, ALICE, session.session_id)
        await history.resume()
        await store.delete(ALICE, session.session_id)
        with pytest.raises(SessionConflict, match="deleted"):
            await history.append_turn(said("late"))
        assert await store.get(ALICE, session.session_id) is None

    async def test_R17_T06_a_late_append_does_not_reach_the_next_session_of_the_id(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        history = ConversationHistory(store, ALICE, session.session_id)
        await history.resume()
        await store.delete(ALICE, session.session_id)
        anew = await store.create(ALICE, SessionMode.CHAT, session_id=session.session_id)
        assert anew.incarnation != session.incarnation
        with pytest.raises(SessionConflict, match="created anew"):
            await history.append_turn(said("late"))
        assert not await history.delete()
        assert await store.get(ALICE, session.session_id) == anew

    async def test_T06_a_stale_incarnation_says_nothing_to_another_owner(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        await store.delete(ALICE, session.session_id)
        bob = ALICE.model_copy(update={"principal": "bob"})
        with pytest.raises(SessionNotFound):
            await store.append(bob, session.session_id, said("0"), incarnation=session.incarnation)

    async def test_R18_a_closed_session_is_read_and_no_more(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT, external_key="thread")
        await store.append(ALICE, session.session_id, said("0"))
        assert await store.close(ALICE, session.session_id)
        assert not await store.close(ALICE, session.session_id)
        history = ConversationHistory(store, ALICE, session.session_id)
        assert (await history.read()).session.state == "closed"
        for attempt in (
            store.append(ALICE, session.session_id, said("1")),
            store.create(ALICE, SessionMode.CHAT, session_id=session.session_id),
            store.create(ALICE, SessionMode.CHAT, external_key="thread"),
            history.resume(),
        ):
            with pytest.raises(SessionConflict, match="closed"):
                await attempt
        assert await store.list(ALICE) == []
        assert [one.state for one in await store.list(ALICE, include_closed=True)] == ["closed"]

    async def test_R19_T04_only_the_exact_owner_reaches_a_session(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        scopes = [
            Scope(tenant=tenant, principal=principal, agent=agent)
            for tenant, principal, agent in product(("", "acme"), ("", "alice"), ("a", "b"))
        ]
        sessions = {scope: await store.create(scope, SessionMode.CHAT) for scope in scopes}
        for scope in scopes:
            await store.append(scope, sessions[scope].session_id, said("0"))
        unknown = await refused(store, scopes[0], uuid4())
        for asking, owner in product(scopes, scopes):
            if asking != owner:
                assert await refused(store, asking, sessions[owner].session_id) == unknown
        for scope in scopes:
            assert [one.session_id for one in await store.list(scope)] == [sessions[scope].session_id]
            assert (await store.load(scope, sessions[scope].session_id)).session.turns == 1

    async def test_R19_a_scope_bound_to_a_session_reaches_no_other(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        one = await store.create(ALICE, SessionMode.CHAT)
        other = await store.create(ALICE, SessionMode.CHAT)
        bound = ALICE.model_copy(update={"session": one.session_id})
        assert await store.get(bound, one.session_id) == one
        assert [found.session_id for found in await store.list(bound)] == [one.session_id]
        assert set(await refused(store, bound, other.session_id)) == set(await refused(store, bound, uuid4()))
        with pytest.raises(SessionNotFound):
            await store.create(bound, SessionMode.CHAT, session_id=other.session_id)
        harness.clock.pass_by(10)
        report = await store.expire(bound, before=harness.clock.now)
        assert report.sessions == (one.session_id,)

    async def test_R19_reading_other_agents_memory_opens_no_transcript(
        self, harness: SessionStoreHarness
    ) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CHAT)
        reader = Scope(agent="other", tenant="acme", principal="alice", read_agents=frozenset({"helper"}))
        assert reader.visible(ALICE)
        assert await store.get(reader, session.session_id) is None

    async def test_T04_an_id_that_another_owner_has_is_free(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        mine = await store.create(ALICE, SessionMode.CHAT, external_key="thread")
        bob = ALICE.model_copy(update={"tenant": "other"})
        theirs = await store.create(bob, SessionMode.CODE, session_id=mine.session_id, external_key="thread")
        assert (theirs.session_id, theirs.mode) == (mine.session_id, SessionMode.CODE)
        await store.append(ALICE, mine.session_id, said("0", "of alice"))
        assert (await store.load(bob, mine.session_id)).messages == ()
        assert await store.delete(bob, mine.session_id)
        assert (await store.load(ALICE, mine.session_id)).session.turns == 1

    async def test_R20_mode_id_and_key_never_change(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        session = await store.create(ALICE, SessionMode.CODE, external_key="thread")
        other = await store.create(ALICE, SessionMode.CODE, external_key="other")
        resumed = await store.create(ALICE, SessionMode.CODE, external_key="thread")
        assert (
            resumed == await store.create(ALICE, SessionMode.CODE, session_id=session.session_id) == session
        )
        for attempt in (
            store.create(ALICE, SessionMode.CHAT, session_id=session.session_id),
            store.create(ALICE, SessionMode.CHAT, external_key="thread"),
            store.create(ALICE, SessionMode.CODE, external_key="new", session_id=session.session_id),
            store.create(ALICE, SessionMode.CODE, external_key="thread", session_id=other.session_id),
            store.create(ALICE, SessionMode.CODE, external_key="thread", session_id=uuid4()),
        ):
            with pytest.raises(SessionConflict):
                await attempt
        assert await store.get(ALICE, session.session_id) == session

    async def test_R20_one_of_many_creations_of_a_key_makes_the_session(
        self, harness: SessionStoreHarness
    ) -> None:
        one, other = await harness.make(), await harness.make()
        infos = await asyncio.gather(
            *(
                (one, other)[number % 2].create(ALICE, SessionMode.CHANNEL, external_key="thread")
                for number in range(12)
            )
        )
        assert len({info.incarnation for info in infos}) == 1

    async def test_R19_lists_page_by_activity(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        made: list[UUID] = []
        for _ in range(5):
            made.append((await store.create(ALICE, SessionMode.CHAT)).session_id)
            harness.clock.pass_by(1)
        await store.append(ALICE, made[0], said("0"))
        newest = await store.list(ALICE, limit=2)
        assert [one.session_id for one in newest] == [made[0], made[4]]
        rest = await store.list(ALICE, before=newest[-1].last_activity)
        assert [one.session_id for one in rest] == [made[3], made[2], made[1]]
        assert await store.list(ALICE, limit=0) == []
        assert await store.list(ALICE, limit=2**64) == await store.list(ALICE)
        with pytest.raises(ValueError, match="limit"):
            await store.list(ALICE, limit=-1)

    @pytest.mark.parametrize(
        "value",
        [
            *("*", "%", "_", "''", "' OR 1=1 --", '"; DROP TABLE authority_session; --'),
            *("é", "\U0001f600", "${x}", ":my_agent", "\\", "a" * 256),
        ],
    )
    async def test_T16_a_scope_is_only_ever_compared(self, harness: SessionStoreHarness, value: str) -> None:
        store = await harness.make()
        plain = await store.create(ALICE, SessionMode.CHAT)
        odd = Scope(agent=value, tenant=value, principal=value)
        assert await store.list(odd) == []
        session = await store.create(odd, SessionMode.CHAT, external_key=value)
        assert session.scope.agent == value
        assert [one.session_id for one in await store.list(odd)] == [session.session_id]
        assert await store.get(odd, plain.session_id) is None
        assert [one.session_id for one in await store.list(ALICE)] == [plain.session_id]
        assert await store.delete(odd, session.session_id)

    async def test_R89_a_hundred_mixed_tasks_leave_all_in_order(self, harness: SessionStoreHarness) -> None:
        store = await harness.make()
        sessions = [await store.create(ALICE, SessionMode.CHAT) for _ in range(4)]

        async def work(number: int) -> None:
            session_id = sessions[number % 4].session_id
            match number % 5:
                case 0 | 1:
                    await store.append(ALICE, session_id, with_tools(f"turn{number}", "a"))
                case 2:
                    found = await store.load(ALICE, session_id)
                    assert found.repairs == ()
                case 3:
                    await store.trim(ALICE, session_id, keep_turns=3)
                case _:
                    assert len(await store.list(ALICE)) == 4

        async with asyncio.timeout(120):
            await asyncio.gather(*map(work, range(100)))
        for session in sessions:
            found = await store.load(ALICE, session.session_id)
            hidden = sum(trim.dropped_turns for trim in found.trims)
            assert found.session.turns == hidden + len(found.turns) == 10
            assert [turn.turn_no for turn in found.turns] == list(range(hidden, 10))
