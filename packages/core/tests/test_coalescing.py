import asyncio
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, same_fields
from adapter_core._coalescer import MAX_BATCH, MIN_PART

ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.fixture(name="refuse")
def _refuse(driver, refused):
    """Let the backend refuse every batch that has one of these ids."""

    def refuse(*numbers) -> None:
        put = driver.put

        async def picky(records):
            if any(record.id.int in numbers for record in records):
                await driver.enter("put")
                raise refused
            return await put(records)

        driver.put = picky

    return refuse


async def together(*calls):
    return await asyncio.gather(*calls, return_exceptions=True)


async def tick() -> None:
    """Let every task that is ready take one step."""
    await asyncio.sleep(0)


async def test_the_store_calls_of_one_tick_are_one_request(store, driver, item) -> None:
    items = [item(number, content=number) for number in range(1, 6)]
    assert await together(*map(store.store, items)) == [one.id for one in items]
    assert driver.log == ["open", "put"]
    assert [record.id for record in driver.asked[0]] == [one.id for one in items]


async def test_the_retrieve_calls_of_one_tick_are_one_request(store, driver, item) -> None:
    await together(store.store(item(1, content="a")), store.store(item(2, content="b")))
    del driver.log[:]
    got = await together(*map(store.retrieve, (TWO, THREE, ONE, TWO)))
    assert [one and one.content for one in got] == ["b", None, "a", "b"]
    assert driver.log == ["get"]
    assert got[0] is not got[3]
    assert same_fields(got[0], got[3])


async def test_calls_one_after_the_other_are_not_held_together(store, driver, item) -> None:
    await store.store(item(1))
    await store.store(item(2))
    assert driver.log == ["open", "put", "put"]


async def test_every_call_is_sent_alone_if_asked(make, driver, item) -> None:
    store = make(coalesce=False)
    await together(store.store(item(1)), store.store(item(2)), store.retrieve(ONE), store.retrieve(TWO))
    assert sorted(driver.log) == ["get", "get", "open", "put", "put"]


async def test_of_one_id_in_one_tick_the_last_wins(store, driver, item) -> None:
    got = await together(store.store(item(1, content="a")), store.store(item(1, content="b")))
    assert got == [ONE, ONE]
    assert (await store.retrieve(ONE)).content == "b"
    assert driver.log.count("put") == 1


async def test_a_large_tick_is_sent_in_several_batches(store, driver, item) -> None:
    items = [item(number) for number in range(2 * MAX_BATCH + 1)]
    assert await together(*map(store.store, items)) == [one.id for one in items]
    assert [len(records) for records in driver.asked] == [MAX_BATCH, MAX_BATCH, 1]


async def test_a_bad_item_is_its_callers_affair(store, driver, item) -> None:
    good, bad, other = await together(
        store.store(item(1)), store.store(item(2, content=(1,))), store.store(item(3))
    )
    assert (good, other) == (ONE, THREE)
    assert isinstance(bad, MemoryAdapterError)
    assert driver.log == ["open", "put"]


@pytest.mark.parametrize("bad", [{1}, {5}, {2, 4}, {1, 2, 3, 4, 5}], ids=repr)
async def test_a_refused_batch_is_split_until_each_caller_has_its_own_answer(
    store, driver, item, refuse, refused, bad
) -> None:
    refuse(*bad)
    items = [item(number) for number in range(1, 6)]
    for one, got in zip(items, await together(*map(store.store, items)), strict=True):
        if one.id.int in bad:
            assert type(got) is MemoryAdapterError
            assert got.__cause__ is refused
        else:
            assert got == one.id
    assert {one.int for one in driver.rows} == {1, 2, 3, 4, 5} - bad


async def test_after_an_outage_nothing_is_sent_again(store, driver, item, down) -> None:
    driver.errors["put"] = down
    errors = await together(*(store.store(item(number)) for number in (1, 2, 3)))
    assert [type(error) for error in errors] == [MemoryAdapterUnavailable] * 3
    assert [error.outcome_unknown for error in errors] == [True] * 3
    assert [error.__cause__ for error in errors] == [down] * 3
    assert len({id(error) for error in errors}) == 3
    assert driver.log == ["open", "put"]


async def test_a_failed_connection_fails_every_caller_of_the_tick(store, driver, item, down) -> None:
    driver.errors["open"] = down
    errors = await together(*(store.store(item(number)) for number in (1, 2)))
    assert [type(error) for error in errors] == [MemoryAdapterUnavailable] * 2
    assert [error.outcome_unknown for error in errors] == [False] * 2
    assert driver.log == ["open"]


async def test_a_malformed_record_is_the_affair_of_who_asked_for_it(store, driver, item, damage) -> None:
    await together(store.store(item(1)), store.store(item(2)))
    damage(driver, ONE, '"tags":[]', '"tags":')
    bad, good = await together(store.retrieve(ONE), store.retrieve(TWO))
    assert "malformed" in str(bad)
    assert good.id == TWO


@pytest.mark.parametrize("first", [True, False], ids=["the first", "another"])
async def test_a_call_cancelled_in_its_tick_is_not_sent_and_the_others_are(
    store, driver, item, first
) -> None:
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2, 3)]
    await tick()  # all have begun, and none is sent
    assert driver.log == []
    calls[0 if first else 2].cancel()
    got = await together(*calls)
    assert sum(isinstance(one, asyncio.CancelledError) for one in got) == 1
    assert sorted(driver.rows) == ([TWO, THREE] if first else [ONE, TWO])


async def test_a_lone_call_cancelled_in_its_tick_is_not_sent(store, driver, item) -> None:
    call = asyncio.ensure_future(store.store(item()))
    await tick()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert driver.log == []
    assert await store.store(item()) == ONE


async def test_calls_that_are_all_cancelled_send_nothing(store, driver, item) -> None:
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2, 3)]
    await tick()
    for call in calls:
        call.cancel()
    assert [type(error) for error in await together(*calls)] == [asyncio.CancelledError] * 3
    await store.close()
    assert driver.log == []


async def test_a_call_cancelled_on_its_way_is_done_whole_with_the_others(store, driver, item) -> None:
    gate = driver.hold("put")
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2)]
    await gate.entered.wait()
    calls[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls[0]
    gate.opened.set()
    assert await calls[1] == TWO
    assert sorted(driver.rows) == [ONE, TWO]


async def test_a_call_cancelled_on_its_way_gets_no_error_of_the_batch(store, driver, item, down) -> None:
    gate = driver.hold("put")
    driver.errors["put"] = down
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2)]
    await gate.entered.wait()
    calls[0].cancel()
    gate.opened.set()
    got = await together(*calls)
    assert [type(one) for one in got] == [asyncio.CancelledError, MemoryAdapterUnavailable]


async def test_close_waits_for_a_batch(store, driver, item) -> None:
    gate = driver.hold("put")
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2)]
    await gate.entered.wait()
    closing = asyncio.ensure_future(store.close())
    await asyncio.wait([closing], timeout=0)
    assert "close" not in driver.log
    gate.opened.set()
    assert await together(*calls) == [ONE, TWO]
    await closing
    assert driver.log == ["open", "put", "close"]


async def test_a_batch_that_is_cancelled_leaves_no_caller_waiting(store, driver, item) -> None:
    driver.errors["put"] = asyncio.CancelledError()
    got = await together(*(store.store(item(number)) for number in (1, 2)))
    assert [type(one) for one in got] == [asyncio.CancelledError] * 2


def _by_batch(driver) -> list[list[int]]:
    return [[record.id.int for record in records] for records in driver.asked]


async def test_a_driver_that_takes_two_puts_at_once_gets_the_halves_of_a_tick(make, driver, item) -> None:
    driver.puts_at_once = 2
    store = make()
    gate = driver.hold("put")
    calls = [asyncio.ensure_future(store.store(item(number))) for number in range(2 * MIN_PART + 1)]
    await gate.entered.wait()
    await tick()
    assert driver.log.count("put") == 2  # before one is answered
    gate.opened.set()
    assert [one.int for one in await together(*calls)] == list(range(2 * MIN_PART + 1))
    assert _by_batch(driver) == [[*range(MIN_PART + 1)], [*range(MIN_PART + 1, 2 * MIN_PART + 1)]]


async def test_what_is_on_its_way_counts_as_one_of_the_parts(make, driver, item) -> None:
    driver.puts_at_once = 2
    store = make()
    gate = driver.hold("put")
    calls = [asyncio.ensure_future(store.store(item(number))) for number in (1, 2)]
    await gate.entered.wait()
    calls += [asyncio.ensure_future(store.store(item(number))) for number in range(10, 10 + 2 * MIN_PART)]
    await tick()
    gate.opened.set()
    await together(*calls)
    assert [len(batch) for batch in _by_batch(driver)] == [2, 2 * MIN_PART]


async def test_a_tick_of_few_calls_is_not_cut(make, driver, item) -> None:
    driver.puts_at_once = 2
    await together(*map(make().store, map(item, range(2 * MIN_PART - 1))))
    assert driver.log.count("put") == 1


async def test_of_one_id_twice_in_a_tick_of_several_batches_the_last_wins(make, driver, item) -> None:
    gate = driver.hold("put")
    store = make()
    items = [item(number, content="a") for number in range(MAX_BATCH + 1)]
    stored = asyncio.ensure_future(together(*map(store.store, [*items, item(0, content="b")])))
    await gate.entered.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert driver.log.count("put") == 1  # the second batch waits for the first
    gate.opened.set()
    await stored
    assert driver.log.count("put") == 2
    assert (await store.retrieve(UUID(int=0))).content == "b"


async def test_a_tick_with_one_id_twice_is_not_cut(make, driver, item) -> None:
    driver.puts_at_once = 2
    store = make()
    items = [item(number, content="a") for number in range(2 * MIN_PART)]
    await together(*map(store.store, [*items, item(0, content="b")]))
    assert driver.log.count("put") == 1
    assert (await store.retrieve(UUID(int=0))).content == "b"
