"""The store through the real client and over the wire; at the other end a stub, not a Qdrant.

By REST and by gRPC: what is asked and what comes of each answer are the same.
"""

import asyncio
import gc
import json
import logging
import subprocess
import sys
import traceback
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import uuid4

import grpc
import pytest
from qdrant_client import AsyncQdrantClient

from adapter_core import (
    AnyOf,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
)
from adapter_qdrant import Embedder, QdrantMemoryStore, QdrantSettings
from adapter_qdrant.stub import QdrantStub, Request, Scripted, failure, success
from adapter_qdrant.stub_engine import LocalEngine
from adapter_qdrant.stub_grpc import QdrantGrpcStub

BOUND = 20
"""Seconds after which a wait has failed."""
GUARD = "POST /collections/memories/points"
WRITE = "PUT /collections/memories/points"
SEARCH = "POST /collections/memories/points/query/batch"
DELETE = "POST /collections/memories/points/delete"
QUOTED = "what-the-server-quotes"
KEY = "sesame-key"


async def first_of(pages):
    async for item in pages:
        return item
    return None


async def delete_known(store):
    return await store.delete(store.known)


READS = {
    "retrieve": lambda store: store.retrieve(uuid4()),
    "retrieve_many": lambda store: store.retrieve_many([uuid4()]),
    "search": lambda store: store.search(MemoryQuery(tags=["t"])),
    "search_text": lambda store: store.search(MemoryQuery(text="word")),
    "search_scored": lambda store: store.search_scored(MemoryQuery(text="word")),
    "scan": lambda store: first_of(store.scan()),
}
# the request that changes something, and the call that sends it
WRITES = {
    "store": (WRITE, lambda store: store.store(MemoryItem(content="word"))),
    "store_many": (WRITE, lambda store: store.store_many([MemoryItem(content="word")])),
    "delete": (DELETE, delete_known),
    "clear": (DELETE, lambda store: store.clear()),
}


STUBS = {"rest": QdrantStub, "grpc": QdrantGrpcStub}
by_rest = pytest.mark.parametrize("kind", ["rest"], indirect=True)
by_grpc = pytest.mark.parametrize("kind", ["grpc"], indirect=True)


@pytest.fixture(params=STUBS)
def kind(request):
    return STUBS[request.param]


@pytest.fixture
async def stub(kind):
    async with kind(LocalEngine()) as stub:
        yield stub


def store_on(stub, *, settings=None, **options):
    settings = replace(settings or QdrantSettings(), grpc_port=stub.grpc_port)
    return QdrantMemoryStore(stub.url, settings=settings, **options)


@pytest.fixture
async def on_stub(stub):
    """Make stores that are set up, over a log that is empty."""
    async with AsyncExitStack() as stack:

        async def make(**options):
            store = await stack.enter_async_context(store_on(stub, **options))
            store.known = await store.store(MemoryItem(content="known word", tags=["t"]))
            stub.forget()
            return store

        yield make


def quick(**values):
    return QdrantSettings(timeout=1, **values)


def requests(stub):
    return list(map(str, stub.requests))


def shown(error):
    """All that a log would show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__cause__)


async def fails(call, kind=MemoryAdapterUnavailable, match=None):
    with pytest.raises(kind, match=match) as raised:
        await asyncio.wait_for(call, BOUND)
    assert type(raised.value) is kind or kind is not MemoryAdapterError
    return raised.value


def channels(store):
    """What a store goes by gRPC on; nothing if it does not."""
    return store._driver._transport._client.native._client._grpc_channel_pool


async def parted(store):
    """Wait until what goes by gRPC has seen that its connection has ended."""
    for channel in channels(store):
        await asyncio.wait_for(channel.wait_for_state_change(grpc.ChannelConnectivity.READY), BOUND)


async def reached(store):
    """Wait until what goes by gRPC is connected again, which it tries by itself now and then."""
    for channel in channels(store):
        await asyncio.wait_for(channel.channel_ready(), BOUND)


# What is sent


async def test_a_retrieval_is_one_request_and_never_a_search(stub, on_stub):
    store = await on_stub()
    assert (await store.retrieve(store.known)).content == "known word"
    assert await store.retrieve(uuid4()) is None
    assert requests(stub) == [GUARD, GUARD]


@pytest.mark.parametrize(
    "query",
    [
        MemoryQuery(), MemoryQuery(tags=["t"]), MemoryQuery(text="known"), MemoryQuery(filters={"k": 1}),
        MemoryQuery(text="known word", tags=["t", "u"], filters={"k": AnyOf(1, 2), "created_after": 0}),
    ],
)  # fmt: skip
async def test_a_search_is_one_request_whatever_it_asks_for(stub, on_stub, query):
    store = await on_stub(filters=["k"])
    await store.search(query)
    assert requests(stub) == [SEARCH]


async def test_a_store_is_one_look_at_what_it_replaces_and_one_write(stub, on_stub):
    store = await on_stub()
    await store.store(MemoryItem())
    assert requests(stub) == [GUARD, WRITE]


async def test_stores_of_one_tick_are_one_write_and_retrievals_one_read(stub, on_stub):
    store = await on_stub()
    ids = await asyncio.gather(*(store.store(MemoryItem(content=n)) for n in range(20)))
    assert requests(stub) == [GUARD, WRITE]
    assert len(stub.requests[1].json()["points"]) == 20
    stub.forget()
    found = await asyncio.gather(*map(store.retrieve, ids))
    assert [item.content for item in found] == list(range(20))
    assert requests(stub) == [GUARD]


@pytest.mark.parametrize(("items", "writes"), [(1, 1), (10, 1), (11, 2), (25, 3)])
async def test_many_items_are_as_few_writes_as_they_fit_in(stub, on_stub, monkeypatch, items, writes):
    monkeypatch.setattr("adapter_qdrant.driver.MAX_POINTS", 10)
    store = await on_stub()
    await store.store_many(MemoryItem(content=n) for n in range(items))
    assert requests(stub) == [GUARD, WRITE] * writes
    sizes = [len(one.json()["points"]) for one in stub.sent("PUT")]
    assert sum(sizes) == items
    assert max(sizes) <= 10


async def test_a_batch_that_is_larger_than_a_request_may_be_is_several(stub, on_stub):
    store = await on_stub()
    items = [MemoryItem(content='"' * 6_000_000) for _ in range(3)]
    await store.store_many(items)
    assert len(stub.sent("PUT")) == 3
    assert await store.retrieve(items[2].id) == items[2]


async def test_no_search_reads_tags(stub, on_stub):
    store = await on_stub()
    item = MemoryItem(content="word", tags=["not-on-the-wire"])
    await store.store(item)
    stub.forget()
    hits = [
        *await store.search(MemoryQuery(tags=["not-on-the-wire"])),
        *await store.search(MemoryQuery(text="word", tags=["not-on-the-wire"])),
        *[scored.item for scored in await store.search_scored(MemoryQuery(text="word"))],
    ]
    assert {hit.id for hit in hits} >= {item.id}
    assert all(hit.tags == [] for hit in hits)
    asked = [one for request in stub.requests for one in request.json()["searches"]]
    assert [one["with_payload"] for one in asked if one["filter"]["must"][0].get("key")] == [["item"]] * 3
    assert not any(b"not-on-the-wire" in answer.body for _, answer in stub.answers)
    assert await store.retrieve(item.id) == item  # the tags are there


async def test_every_write_waits_until_it_is_applied(stub):
    embedder = Embedder(lambda texts: [[1.0, 2.0] for _ in texts], "e", 2)
    async with store_on(stub) as store:
        await store.store(MemoryItem())
    async with store_on(stub, namespace="meant", embedder=embedder) as store:
        item = MemoryItem(content="word")
        await store.store(item)
        await store.store_many([item])
        await store.delete(item.id)
        await store.clear()
    writes = [one for one in stub.requests if not one.reads and one.operation]
    assert {one.operation.partition("/")[0] for one in writes} == {"index", "points", "vectors"}
    assert {one.parameters.get("wait") for one in writes} == {"true"}


@pytest.mark.parametrize("replicas", [None, 3])
async def test_reads_ask_a_quorum_and_writes_to_several_replicas_are_ordered(stub, on_stub, replicas):
    store = await on_stub(settings=QdrantSettings(replication_factor=replicas))
    for call in (*READS.values(), *(call for _, call in WRITES.values()), type(store).reindex):
        await call(store)
    ordering = None if replicas is None else "strong"
    for request in stub.sent("/points"):
        if request.operation == "points/count":
            continue  # the client has no such option there
        asked, expected = ("consistency", "quorum") if request.reads else ("ordering", ordering)
        assert request.parameters.get(asked) == expected, str(request)


async def test_a_reindex_counts_nothing_and_sees_what_is_left_by_a_quorum(stub, on_stub):
    store = await on_stub()
    assert await store.reindex() == 0
    assert not stub.sent("points/count")
    assert {one.parameters["consistency"] for one in stub.requests if one.reads} == {"quorum"}


async def test_a_collection_that_gets_more_replicas_later_is_read_by_a_quorum(stub, on_stub):
    store = await on_stub(settings=QdrantSettings(read_consistency=2))
    await store.retrieve(uuid4())
    assert stub.requests[-1].parameters == {"consistency": "2"}


async def test_a_new_collection_asks_that_a_majority_applies_each_write(stub):
    async with store_on(stub, settings=QdrantSettings(replication_factor=3)) as store:
        await store.retrieve(uuid4())
    (made,) = [one for one in stub.sent("PUT") if not one.operation]
    assert made.json()["replication_factor"] == 3
    assert made.json()["write_consistency_factor"] == 2


# Set-up


async def test_twenty_stores_that_set_up_at_once_all_keep_their_item(stub):
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(store_on(stub)) for _ in range(20)]
        items = [MemoryItem(content=n) for n in range(20)]
        await asyncio.gather(*(store.store(item) for store, item in zip(stores, items, strict=True)))
        found = await stores[0].search(MemoryQuery(limit=50))
        assert {item.id for item in found} == {item.id for item in items}
    writes = [str(one) for one in stub.requests if not one.reads]
    first_item = writes.index(WRITE)
    indexed = {one.json()["field_name"] for one in stub.sent("/index")}
    assert {"namespace", "record", "tags", "facets", "terms", "created_at"} <= indexed
    assert first_item > 0
    assert set(await indexed_fields(stub)) == indexed


async def indexed_fields(stub):
    answer = await stub.ask(Request("GET", "/collections/memories"))
    return json.loads(answer.body)["result"]["payload_schema"]


@pytest.mark.parametrize("step", ["GET /", "PUT /collections/memories", "index", "POST", "PUT"])
async def test_a_set_up_that_was_broken_off_goes_on_with_the_next_call(stub, step):
    async with store_on(stub) as store:
        stub.script(Scripted(on=step, status=503, body=failure("busy")))
        await fails(store.store(MemoryItem()))
        assert stub.unused == 0
        item = MemoryItem(content="after")
        await store.store(item)
        assert await store.search(MemoryQuery()) == [item]


async def test_a_server_that_is_too_old_is_refused(kind):
    async with kind(LocalEngine(server_version="1.15.5")) as stub, store_on(stub) as store:
        await fails(store.store(MemoryItem()), MemoryAdapterError, r"1\.15\.5")
        assert not any(not one.reads for one in stub.requests)


async def test_strict_mode_lets_every_call_through(stub, on_stub):
    embedder = Embedder(lambda texts: [[1.0, float(len(text))] for text in texts], "e", 2)
    for options in ({}, {"namespace": "meant", "embedder": embedder}):
        store = await on_stub(filters=["k"], **options)
        query = MemoryQuery(text="word", tags=["t"], filters={"k": 1, "created_after": 0.0})
        item = MemoryItem(content="a word", tags=["t"], metadata={"k": 1})
        await store.store(item)
        assert [hit.id for hit in await store.search(query)] == [item.id]
        assert {one.id async for one in store.scan(filters={"k": 1})} == {item.id}
        assert await store.delete(item.id)
        assert await store.reindex() == 0
        assert await store.clear() == 1
        assert {answer.status for _, answer in stub.answers} == {200}


# Answers that are no success


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 500, 502, 503, 504])
async def test_an_answer_that_the_server_cannot_serve_is_unavailable_on_every_verb(stub, on_stub, status):
    store = await on_stub()
    for read in READS.values():
        stub.script(Scripted(status=status, body=failure(QUOTED)))
        error = await fails(read(store))
        assert QUOTED not in shown(error)
        assert not error.outcome_unknown
    for on, write in WRITES.values():
        stub.forget()
        stub.script(Scripted(on=on, status=status, body=failure(QUOTED)))
        error = await fails(write(store))
        assert QUOTED not in shown(error)
        assert error.outcome_unknown == (status >= 500 or status == 408)
        assert len([one for one in stub.requests if not one.reads]) == 1  # no retry
    assert stub.unused == 0
    assert await store.retrieve(store.known) is not None


@pytest.mark.parametrize("script", [Scripted(status=503), Scripted(status=200, body=b"{"), Scripted(cut=0)])
async def test_a_write_whose_first_read_fails_has_written_nothing(stub, on_stub, script):
    store = await on_stub()
    for _, write in WRITES.values():
        stub.forget()
        stub.script(script)
        error = await fails(write(store), match="nothing was written")
        assert not error.outcome_unknown
        assert all(one.reads for one in stub.requests)
        if script.cut is not None:
            await parted(store)


@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_an_answer_that_refuses_is_an_error_and_nothing_is_stored(stub, on_stub, status):
    store = await on_stub()
    for read in READS.values():
        stub.script(Scripted(status=status, body=failure(QUOTED)))
        assert QUOTED not in shown(await fails(read(store), MemoryAdapterError))
    for on, write in WRITES.values():
        stub.forget()
        stub.script(Scripted(on=on, status=status, body=failure(QUOTED)))
        assert QUOTED not in shown(await fails(write(store), MemoryAdapterError))
        assert len([one for one in stub.requests if not one.reads]) == 1
    assert [hit.id for hit in await store.search(MemoryQuery())] == [store.known]


@pytest.mark.parametrize("when", ["1", "Wed, 21 Oct 2026 07:28:00 GMT"])
async def test_a_server_that_says_when_to_come_back_is_not_asked_again_by_itself(stub, on_stub, when):
    store = await on_stub()
    for on, call in ((WRITE, lambda: store.store(MemoryItem())), ("", lambda: store.retrieve(uuid4()))):
        stub.forget()
        stub.script(Scripted(on=on, status=429, body=failure(QUOTED), headers={"retry-after": when}))
        error = await fails(call(), match="overloaded|RESOURCE_EXHAUSTED")
        assert QUOTED not in shown(error)
        assert not error.outcome_unknown
        assert requests(stub) == ([GUARD, WRITE] if on else [GUARD])


async def test_an_error_page_of_a_proxy_is_unavailable(stub, on_stub):
    store = await on_stub()
    stub.script(Scripted(status=502, body=b"<html>bad gateway</html>"))
    await fails(store.retrieve(uuid4()))


# Answers that cannot be read

UNREADABLE = [
    b"",
    b"{no json " + QUOTED.encode(),
    b"<html>" + QUOTED.encode(),
    b"null",
    b"[]",
    b'{"status": "ok", "time": 0.0}',
    success(None),
    success(QUOTED),
    success({"status": QUOTED}),
    success([{"payload": {"item": QUOTED}}]),
]


@by_rest
@pytest.mark.parametrize("body", UNREADABLE)
async def test_an_answer_that_cannot_be_read_is_an_error_and_never_an_empty_result(stub, on_stub, body):
    store = await on_stub()
    for read in READS.values():
        stub.script(Scripted(status=200, body=body))
        with pytest.raises(MemoryAdapterError) as raised:
            await read(store)
        assert QUOTED not in shown(raised.value)
    for on, write in WRITES.values():
        stub.script(Scripted(on=on, body=body))
        error = await fails(write(store))
        assert error.outcome_unknown
        assert QUOTED not in shown(error)
        store.known = await store.store(MemoryItem())
    assert stub.unused == 0


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
async def test_a_write_that_may_be_applied_later_is_an_error_of_unknown_outcome(stub, on_stub, status):
    store = await on_stub()
    for on, write in WRITES.values():
        stub.script(Scripted(on=on, status=200, body=success({"operation_id": 3, "status": status})))
        error = await fails(write(store))
        assert error.outcome_unknown
    assert stub.unused == 0


async def test_an_acknowledgement_without_a_number_is_a_failed_write(stub, on_stub):
    store = await on_stub()
    stub.script(Scripted(on=WRITE, status=200, body=success({"status": "completed"})))
    await fails(store.store(MemoryItem()), MemoryAdapterError)
    assert len(stub.sent("PUT")) == 1


@pytest.mark.parametrize(
    "payload",
    [{}, {"item": 7, "item_tags": "[]"}, {"item": "{", "item_tags": "[]"}, {"item": QUOTED}],
)
async def test_a_record_of_ours_that_does_not_decode_is_an_error(stub, on_stub, payload):
    store = await on_stub()
    await store.retrieve(store.known)
    known, _ = stub.requests[-1].json()["ids"]  # and the namespace's own point
    marked = {"namespace": "ndefault", "record": "adapter-qdrant/item", **payload}
    stub.script(Scripted(status=200, body=success([{"id": known, "payload": marked}])))
    error = await fails(store.retrieve(store.known), MemoryAdapterError, "malformed")
    assert QUOTED not in shown(error)


# Connections that break


@pytest.mark.parametrize("cut", [0, 30, -3])
async def test_a_connection_that_is_reset_in_an_answer_is_unavailable_on_every_verb(stub, on_stub, cut):
    store = await on_stub()
    for read in READS.values():
        stub.script(Scripted(cut=cut))
        error = await fails(read(store))
        assert not error.outcome_unknown
        assert len(stub.requests) == 1  # no retry
        stub.forget()
        await parted(store)
    assert await store.retrieve(store.known) is not None


@pytest.mark.parametrize("cut", [0, 30, -3])
async def test_a_lost_acknowledgement_is_an_unknown_outcome_and_a_second_store_leaves_one(stub, on_stub, cut):
    store = await on_stub()
    item = MemoryItem(content="once")
    stub.script(Scripted(on=WRITE, cut=cut))
    error = await fails(store.store(item))
    assert error.outcome_unknown
    assert "unknown" in str(error)
    assert requests(stub) == [GUARD, WRITE]  # no retry
    await parted(store)
    assert await store.retrieve(item.id) == item
    await store.store(item)
    assert len(await store.search(MemoryQuery(text="once"))) == 1


async def test_a_write_that_the_server_never_did_leaves_nothing(stub, on_stub):
    store = await on_stub()
    item = MemoryItem()
    stub.script(Scripted(on=WRITE, status=200, cut=0))
    assert (await fails(store.store(item))).outcome_unknown
    await parted(store)
    assert await store.retrieve(item.id) is None


async def test_a_server_that_says_nothing_is_unavailable_in_time_on_every_verb(stub, on_stub):
    store = await on_stub(settings=quick(), coalesce=False)
    held = asyncio.Event()
    calls = [read(store) for read in READS.values()]
    stub.script(*(Scripted(hold=held) for _ in calls))
    reading = asyncio.gather(*calls, return_exceptions=True)
    await asyncio.wait_for(stub.asked(len(calls)), BOUND)
    writes = list(WRITES.values())
    stub.script(*(Scripted(on=on, hold=held) for on, _ in writes))
    errors = await asyncio.gather(*(write(store) for _, write in writes), return_exceptions=True)
    assert [type(error) for error in errors] == [MemoryAdapterUnavailable] * len(writes)
    assert all(error.outcome_unknown for error in errors)
    read_errors = await asyncio.wait_for(reading, BOUND)
    assert [type(error) for error in read_errors] == [MemoryAdapterUnavailable] * len(calls)
    held.set()
    assert await store.retrieve(uuid4()) is None


async def test_a_server_that_says_nothing_when_asked_to_connect_is_unavailable_in_time(stub):
    held = asyncio.Event()
    stub.script(Scripted(hold=held))
    async with store_on(stub, settings=quick()) as store:
        error = await fails(store.store(MemoryItem()))
        assert not error.outcome_unknown
        assert len(stub.requests) == 1
        await store.store(MemoryItem())
    held.set()


async def test_an_outage_and_its_end_are_met_on_every_verb(stub, on_stub):
    store = await on_stub()
    await stub.refuse()
    for call in (*READS.values(), *(call for _, call in WRITES.values())):
        error = await fails(call(store))
        assert not error.outcome_unknown  # no connection: nothing was sent
    await stub.accept()
    await reached(store)
    assert await store.retrieve(store.known) is not None
    await store.store(MemoryItem())


async def test_a_server_that_is_not_there_yet_is_met_by_a_later_call(stub):
    async with store_on(stub) as store:
        await stub.refuse()
        for _ in range(2):
            error = await fails(store.store(MemoryItem()), match="nothing was sent|AioRpcError")
            assert not error.outcome_unknown
        await stub.accept()
        await store.store(MemoryItem())


async def test_a_restarted_server_is_met_again_although_connections_were_kept(stub, on_stub):
    store = await on_stub()
    await asyncio.gather(*(store.search(MemoryQuery()) for _ in range(5)))
    assert 1 <= stub.connections <= 16
    await stub.refuse()
    await parted(store)
    await stub.accept()
    assert await store.retrieve(store.known) is not None


async def test_close_leaves_no_connection(stub, on_stub):
    store = await on_stub()
    await asyncio.gather(*(store.search(MemoryQuery()) for _ in range(5)))
    assert stub.connections
    await store.close()
    await asyncio.wait_for(stub.left(), BOUND)
    assert not stub.connections


async def test_close_leaves_no_connection_after_calls_that_failed(stub, on_stub):
    store = await on_stub()
    gc.disable()
    try:
        for headers in ({}, {"retry-after": "1"}):
            for status in (404, 429, 503):
                stub.script(Scripted(status=status, body=failure(QUOTED), headers=headers))
                await fails(store.retrieve(uuid4()))
        await store.close()
        await asyncio.wait_for(stub.left(), BOUND)
    finally:
        gc.enable()


@by_rest
async def test_more_calls_than_connections_wait_for_one_another(stub, on_stub):
    store = await on_stub(settings=QdrantSettings(pool_size=2))
    held = asyncio.Event()
    stub.script(Scripted(hold=held), Scripted(hold=held))
    calls = asyncio.gather(*(store.search(MemoryQuery()) for _ in range(6)))
    await asyncio.wait_for(stub.asked(2), BOUND)
    assert stub.connections == 2
    held.set()
    assert [len(hits) for hits in await asyncio.wait_for(calls, BOUND)] == [1] * 6
    assert stub.connections == 2


# Cancellation


async def test_a_cancelled_read_leaves_the_client_usable(stub, on_stub):
    store = await on_stub()
    held = asyncio.Event()
    for read in READS.values():
        stub.forget()
        stub.script(Scripted(hold=held))
        call = asyncio.create_task(read(store))
        await asyncio.wait_for(stub.asked(1), BOUND)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await store.retrieve(store.known) is not None
    held.set()


async def test_a_cancelled_write_is_whole_and_leaves_the_client_usable(stub, on_stub):
    store = await on_stub()
    held = asyncio.Event()
    item = MemoryItem(content="cancelled word", tags=["t"])
    stub.script(Scripted(on=WRITE, hold=held))
    call = asyncio.create_task(store.store(item))
    await asyncio.wait_for(stub.asked(1, WRITE), BOUND)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await store.retrieve(item.id) is None  # not done yet, and the client goes on
    held.set()
    await asyncio.wait_for(stub.answered(1, WRITE), BOUND)
    assert await store.retrieve(item.id) == item  # the server does what it was sent


async def test_a_cancelled_set_up_is_done_by_the_next_call(stub):
    held = asyncio.Event()
    stub.script(Scripted(on="index", hold=held))
    async with store_on(stub) as store:
        call = asyncio.create_task(store.store(MemoryItem()))
        await asyncio.wait_for(stub.asked(1, "index"), BOUND)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        held.set()
        item = MemoryItem()
        await store.store(item)
        assert await store.search(MemoryQuery()) == [item]


# By gRPC alone

GARBLED = [b"\xff\xff" + QUOTED.encode(), b"no message " + QUOTED.encode()]


@by_grpc
@pytest.mark.parametrize("body", GARBLED)
async def test_a_message_that_cannot_be_read_is_an_error_and_never_an_empty_result(
    stub, on_stub, body, caplog
):
    store = await on_stub()
    for read in READS.values():
        stub.script(Scripted(body=body))
        error = await fails(read(store))
        assert QUOTED not in shown(error)
    for on, write in WRITES.values():
        stub.script(Scripted(on=on, body=body))
        error = await fails(write(store))
        assert error.outcome_unknown
        assert QUOTED not in shown(error)
        store.known = await store.store(MemoryItem())
    assert stub.unused == 0
    assert QUOTED not in caplog.text


@by_grpc
async def test_an_empty_message_is_no_acknowledgement(stub, on_stub):
    store = await on_stub()
    for on, write in WRITES.values():
        stub.script(Scripted(on=on, body=b""))
        assert (await fails(write(store))).outcome_unknown
        store.known = await store.store(MemoryItem())
    assert stub.unused == 0


@by_grpc
async def test_all_calls_of_a_store_share_one_connection(stub, on_stub):
    store = await on_stub()
    await asyncio.gather(*(store.search(MemoryQuery()) for _ in range(40)))
    assert stub.connections == 1


@by_grpc
async def test_an_injected_client_may_prefer_grpc(stub):
    client = AsyncQdrantClient(
        url=stub.url, grpc_port=stub.grpc_port, prefer_grpc=True, check_compatibility=False, timeout=1
    )
    held = asyncio.Event()
    async with QdrantMemoryStore(client) as store:
        item = MemoryItem(content="word", tags=["t"])
        await store.store(item)
        assert await store.retrieve(item.id) == item
        stub.script(Scripted(on=WRITE, hold=held))
        assert (await fails(store.store(item))).outcome_unknown
        held.set()
        stub.script(Scripted(on=WRITE, status=400, body=failure(QUOTED)))
        assert QUOTED not in shown(await fails(store.store(item), MemoryAdapterError))
    await client.close()
    async with QdrantMemoryStore(client) as store:
        await fails(store.retrieve(item.id))


# Keys

INSECURE = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")


@INSECURE
async def test_the_key_is_sent_and_never_shown(kind, caplog):
    caplog.set_level(logging.DEBUG)
    async with kind(LocalEngine(), api_key=KEY) as stub:
        async with store_on(stub, api_key=KEY) as store:
            item = MemoryItem(content="word")
            await store.store(item)
            assert await store.search(MemoryQuery()) == [item]
            assert {one.headers.get("api-key") for one in stub.requests} == {KEY}
            texts = [repr(store), repr(vars(store)), repr(store._driver)]
            stub.script(Scripted(status=500), Scripted(status=400), Scripted(cut=0), Scripted(status=200))
            for _ in range(4):
                with pytest.raises(MemoryAdapterError) as raised:
                    await store.retrieve(item.id)
                texts.append(shown(raised.value))
        assert not any(KEY in text for text in (*texts, caplog.text))


@INSECURE
@pytest.mark.parametrize("key", [None, "another-key"])
async def test_a_missing_and_a_wrong_key_are_unavailable_and_not_shown(kind, key):
    async with (
        kind(LocalEngine(), api_key=KEY) as stub,
        store_on(stub, api_key=key) as store,
    ):
        for call in (READS["retrieve"], READS["search"], WRITES["store"][1], WRITES["clear"][1]):
            error = await fails(call(store), match="401|UNAUTHENTICATED")
            assert not error.outcome_unknown
            assert key is None or key not in shown(error)


@INSECURE
async def test_a_key_that_may_only_read_reads_and_is_refused_its_writes(kind):
    async with kind(LocalEngine(), api_key=KEY, read_only_key="reader") as stub:
        async with store_on(stub, api_key=KEY) as store:
            item = MemoryItem(content="word")
            await store.store(item)
        async with store_on(stub, api_key="reader") as store:
            assert await store.retrieve(item.id) == item
            assert await store.search(MemoryQuery(text="word")) == [item]
            store.known = item.id
            for _, call in WRITES.values():
                assert not (await fails(call(store), match="403|PERMISSION_DENIED")).outcome_unknown


@pytest.mark.filterwarnings("always:Api key is used with an insecure connection:UserWarning")
async def test_a_store_warns_of_an_insecure_connection_as_often_as_one_client_does(kind, recwarn):
    async with kind(LocalEngine(), api_key=KEY) as stub:
        await AsyncQdrantClient(url=stub.url, api_key=KEY, check_compatibility=False).close()
        alone = len(recwarn)
        async with store_on(stub, api_key=KEY) as store:
            await asyncio.gather(*(store.store(MemoryItem()) for _ in range(5)))
            await store.search(MemoryQuery())
    assert (alone, len(recwarn)) == (1, 2)


# Values


async def test_items_cross_the_wire_exactly(stub, on_stub):
    store = await on_stub()
    content = [
        "\x00",
        "\ud800",
        "\\u0000",
        "é",
        "e\u0301",
        "\U0001f600",
        1.0,
        1e22,
        -0.0,
        2**70,
        {"b": 1, "a": []},
    ]
    item = MemoryItem(content=content, tags=["", "T", "t", "a|b"], metadata={"$": None, "": True})
    await store.store(item)
    found = await store.retrieve(item.id)
    assert repr(found) == repr(item)
    (hit,) = await store.search(MemoryQuery(tags=["a|b"]))
    assert repr(hit) == repr(item.model_copy(update={"tags": []}))


async def test_equally_old_items_come_by_id_wherever_the_limit_cuts(stub, on_stub):
    store = await on_stub()
    items = sorted((MemoryItem(created_at=5.0, tags=["old"]) for _ in range(7)), key=lambda item: item.id)
    await store.store_many(items)
    for limit in range(1, 8):
        hits = await store.search(MemoryQuery(tags=["old"], limit=limit))
        assert [hit.id for hit in hits] == [item.id for item in items[:limit]]


def test_neither_the_stub_nor_the_client_is_loaded_with_the_package():
    code = (
        "import adapter_qdrant, sys; print([m for m in sys.modules if 'stub' in m or 'qdrant_client' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
