"""The bounds on time and on number, without a server."""

import asyncio

import pytest

from adapter_postgres.limits import Gate, Watch

BOUND = 20
LONG, SHORT = 1000.0, 0.001


async def tick():
    await asyncio.sleep(0)


async def test_a_watch_ends_what_takes_too_long_once_and_in_order():
    ended, all_ended = [], asyncio.Event()

    def end(what):
        ended.append(what)
        if len(ended) == 3:
            all_ended.set()

    watch = Watch(SHORT, end)
    for what in "abcd":
        watch.begin(what)
    watch.leave("b")
    await asyncio.wait_for(all_ended.wait(), BOUND)
    assert ended == ["a", "c", "d"]
    watch.begin("e")  # and it goes on watching
    all_ended.clear()
    ended.remove("a")
    await asyncio.wait_for(all_ended.wait(), BOUND)
    assert ended == ["c", "d", "e"]


async def test_a_watch_has_one_timer_whatever_it_watches_and_leaves_none():
    loop = asyncio.get_running_loop()
    watch = Watch(LONG, lambda what: None)
    before = len(loop._scheduled)
    for what in range(100):
        watch.begin(what)
    assert len(loop._scheduled) == before + 1
    watch.stop()
    assert watch._timer is not None  # some are watched
    for what in range(100):
        watch.leave(what)
    timer = watch._timer
    watch.stop()
    assert timer.cancelled()
    assert watch._timer is None


async def test_a_gate_lets_in_as_many_as_there_are_places_then_in_the_order_of_asking():
    gate, entered = Gate(2, LONG), []

    async def enter(name):
        await gate.enter()
        entered.append(name)

    tasks = [asyncio.create_task(enter(name)) for name in "abcd"]
    await tick()
    assert entered == ["a", "b"]
    gate.leave()
    late = asyncio.create_task(enter("e"))  # does not get past those who wait
    await tick()
    await tick()
    assert entered == ["a", "b", "c"]
    gate.leave()
    gate.leave()
    await asyncio.wait_for(asyncio.gather(*tasks, late), BOUND)
    assert entered == ["a", "b", "c", "d", "e"]


async def test_who_waits_too_long_at_a_gate_takes_no_place():
    gate = Gate(1, SHORT)
    await gate.enter()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(BOUND):
                await gate.enter()
    assert not gate._line
    gate.leave()
    await asyncio.wait_for(gate.enter(), BOUND)
    assert gate._free == 0


@pytest.mark.parametrize("late", [False, True], ids=["in line", "with a place given"])
async def test_who_is_cancelled_at_a_gate_takes_no_place(late):
    gate = Gate(1, LONG)
    await gate.enter()
    waiting = asyncio.create_task(gate.enter())
    await tick()
    if late:
        gate.leave()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    if not late:
        gate.leave()
    assert gate._free == 1
    assert not gate._line


async def test_a_place_that_becomes_free_when_a_wait_has_just_ended_goes_to_the_next():
    gate = Gate(1, SHORT)
    await gate.enter()
    first = asyncio.create_task(gate.enter())
    await tick()
    gate._line[0].set_exception(TimeoutError())  # as the timer does
    second = asyncio.create_task(gate.enter())
    gate.leave()
    with pytest.raises(TimeoutError):
        await first
    await asyncio.wait_for(second, BOUND)
    gate.leave()
    assert gate._free == 1
