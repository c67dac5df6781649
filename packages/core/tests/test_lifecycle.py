import asyncio
from uuid import UUID

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, MemoryItem, MemoryQuery

ONE = UUID(int=1)
CALLS = {
    "store": lambda store: store.store(MemoryItem(id=ONE)),
    "retrieve": lambda store: store.retrieve(ONE),
    "search": lambda store: store.search(MemoryQuery()),
}


async def cancelled(task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def is_waiting(task) -> bool:
    """Whether a task still waits after it had every chance to go on."""
    for _ in range(10):
        await asyncio.wait([task], timeout=0)
    return not task.done()


# Connecting


async def test_the_constructor_asks_nothing_of_the_backend(store, driver) -> None:
    assert driver.log == []


@pytest.mark.parametrize("verb", CALLS)
async def test_the_first_call_connects_and_later_ones_do_not(store, driver, verb) -> None:
    await CALLS[verb](store)
    await CALLS[verb](store)
    assert driver.log.count("open") == 1
    assert driver.log[0] == "open"


async def test_concurrent_first_calls_connect_once(store, driver) -> None:
    gate = driver.hold("open")
    calls = asyncio.gather(
        *(call(store) for call in CALLS.values()), *(call(store) for call in CALLS.values())
    )
    await gate.entered.wait()
    assert await is_waiting(calls)
    assert driver.log == ["open"]
    gate.opened.set()
    await calls
    assert driver.log.count("open") == 1


@pytest.mark.parametrize("verb", CALLS)
async def test_a_failed_connection_is_unavailable_and_nothing_was_sent(store, driver, down, verb) -> None:
    driver.errors["open"] = down
    with pytest.raises(MemoryAdapterUnavailable, match=f"^{verb}: ") as caught:
        await CALLS[verb](store)
    assert caught.value.__cause__ is down
    assert caught.value.outcome_unknown is False
    assert "secret" not in str(caught.value)
    assert driver.log == ["open"]


async def test_the_call_after_a_failed_connection_connects_again(store, driver, down, refused) -> None:
    for error, kind in ((down, MemoryAdapterUnavailable), (refused, MemoryAdapterError)):
        driver.errors["open"] = error
        with pytest.raises(kind):
            await store.retrieve(ONE)
    driver.errors.clear()
    assert await store.retrieve(ONE) is None
    assert driver.log == ["open", "open", "open", "get"]


async def test_each_waiter_of_a_failed_connection_gets_an_error_of_its_own(store, driver, down) -> None:
    driver.errors["open"] = down
    got = await asyncio.gather(*(call(store) for call in CALLS.values()), return_exceptions=True)
    assert [type(error) for error in got] == [MemoryAdapterUnavailable] * 3
    assert len({id(error) for error in got}) == 3


async def test_a_cancelled_connection_is_made_by_the_next_call(store, driver) -> None:
    gate = driver.hold("open")
    first = asyncio.ensure_future(store.retrieve(ONE))
    await gate.entered.wait()
    second = asyncio.ensure_future(store.retrieve(ONE))
    assert await is_waiting(second)
    await cancelled(first)
    gate.opened.set()
    assert await second is None
    assert driver.log == ["open", "open", "get"]


@pytest.mark.parametrize(("verb", "method"), [("store", "put"), ("retrieve", "get"), ("search", "find")])
async def test_a_cancelled_call_leaves_the_store_usable(store, driver, verb, method) -> None:
    gate = driver.hold(method)
    call = asyncio.ensure_future(CALLS[verb](store))
    await gate.entered.wait()
    await cancelled(call)
    assert driver.rows == {}
    gate.opened.set()
    await CALLS[verb](store)
    await store.close()
    assert driver.log == ["open", method, method, "close"]


async def test_an_item_is_read_before_the_first_wait(store, driver, item) -> None:
    gate = driver.hold("open")
    given = item(content=["first"])
    call = asyncio.ensure_future(store.store(given))
    await gate.entered.wait()
    given.content.append("second")
    gate.opened.set()
    await call
    assert (await store.retrieve(ONE)).content == ["first"]


# Closing


async def test_closing_an_unused_store_asks_nothing_of_the_backend(store, driver) -> None:
    await store.close()
    assert driver.log == []
    assert repr(store) == "<AdapterStore closed>"


async def test_closing_twice_releases_once(store, driver) -> None:
    await store.retrieve(ONE)
    await store.close()
    await store.close()
    await asyncio.gather(store.close(), store.close())
    assert driver.log == ["open", "get", "close"]


@pytest.mark.parametrize("verb", CALLS)
async def test_a_closed_store_is_unavailable(store, driver, verb) -> None:
    await store.retrieve(ONE)
    await store.close()
    del driver.log[:]
    with pytest.raises(MemoryAdapterUnavailable, match="closed"):
        await CALLS[verb](store)
    assert driver.log == []


async def test_limit_zero_does_not_hide_that_the_store_is_closed(store) -> None:
    await store.close()
    with pytest.raises(MemoryAdapterUnavailable):
        await store.search(MemoryQuery(limit=0))


async def test_close_waits_for_the_calls_under_way_and_lets_no_new_one_in(store, driver) -> None:
    gate = driver.hold("put")
    call = asyncio.ensure_future(store.store(MemoryItem(id=ONE)))
    await gate.entered.wait()
    closings = [asyncio.ensure_future(store.close()) for _ in range(2)]
    assert await is_waiting(closings[0])
    with pytest.raises(MemoryAdapterUnavailable, match="closed"):
        await store.retrieve(ONE)
    assert driver.log == ["open", "put"]
    gate.opened.set()
    assert await call == ONE
    await asyncio.gather(*closings)
    assert driver.log == ["open", "put", "close"]


async def test_close_waits_for_a_connection_under_way(store, driver) -> None:
    gate = driver.hold("open")
    call = asyncio.ensure_future(store.retrieve(ONE))
    await gate.entered.wait()
    closing = asyncio.ensure_future(store.close())
    assert await is_waiting(closing)
    gate.opened.set()
    assert await call is None
    await closing
    assert driver.log == ["open", "get", "close"]


async def test_close_after_a_failed_connection_releases_nothing(store, driver, down) -> None:
    driver.errors["open"] = down
    with pytest.raises(MemoryAdapterUnavailable):
        await store.retrieve(ONE)
    await store.close()
    assert driver.log == ["open"]


async def test_a_failed_close_is_said_once(store, driver, down, refused) -> None:
    await store.retrieve(ONE)
    driver.errors["close"] = refused
    with pytest.raises(MemoryAdapterError, match=r"^close: ") as caught:
        await store.close()
    assert caught.value.__cause__ is refused
    await store.close()
    assert driver.log == ["open", "get", "close"]


async def test_a_close_cancelled_while_it_waits_can_be_repeated(store, driver) -> None:
    gate = driver.hold("get")
    call = asyncio.ensure_future(store.retrieve(ONE))
    await gate.entered.wait()
    closing = asyncio.ensure_future(store.close())
    assert await is_waiting(closing)
    await cancelled(closing)
    gate.opened.set()
    await call
    await store.close()
    assert driver.log == ["open", "get", "close"]


async def test_a_close_cancelled_while_it_releases_can_be_repeated(store, driver) -> None:
    await store.retrieve(ONE)
    gate = driver.hold("close")
    closing = asyncio.ensure_future(store.close())
    await gate.entered.wait()
    await cancelled(closing)
    gate.opened.set()
    await store.close()
    await store.close()
    assert driver.log == ["open", "get", "close", "close"]


async def test_a_block_closes_at_its_end(store, driver) -> None:
    async with store as inside:
        assert inside is store
        await store.retrieve(ONE)
    assert driver.log == ["open", "get", "close"]


async def test_a_block_closes_when_it_fails_and_keeps_the_failure(store, driver) -> None:
    async def block() -> None:
        async with store:
            await store.retrieve(ONE)
            raise KeyError

    with pytest.raises(KeyError):
        await block()
    assert driver.log == ["open", "get", "close"]


# Event loops


@pytest.mark.parametrize("verb", [*CALLS, "close"])
def test_another_event_loop_is_refused(store, driver, verb) -> None:
    async def call(name):
        await {**CALLS, "close": lambda store: store.close()}[name](store)

    asyncio.run(call("retrieve"))
    del driver.log[:]
    with pytest.raises(MemoryAdapterError, match="another event loop") as caught:
        asyncio.run(call(verb))
    assert type(caught.value) is MemoryAdapterError
    assert driver.log == []


def test_a_store_may_be_made_outside_of_any_loop(store) -> None:
    assert asyncio.run(store.retrieve(ONE)) is None
