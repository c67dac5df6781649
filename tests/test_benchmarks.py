"""The benchmarks measure what they say: the same work, done in the same way, with the same answers."""

import asyncio
import io
import json
import math
import sqlite3
from pathlib import Path

import pytest
from rich.console import Console

from adapter_core import check_item, index_tokens
from benchmarks import backends, report
from benchmarks.backends import postgres, sqlite
from benchmarks.bars import BESIDE_RAW, OURS, verdicts
from benchmarks.measure import TASKS, Effort, Series, Turn, take_turns
from benchmarks.operations import FEW, READS, RETRIEVE, SEARCHES, STORE, Entrant
from benchmarks.run import ContendersDiffer, Plan, check, losing, run
from benchmarks.words import KINDS
from benchmarks.workload import FEW as MATCHES
from benchmarks.workload import Workload

SMALLEST = Plan(
    sizes=(40, 60),
    effort=Effort(rounds=1, calls=2, seconds=0.001, least=1),
    many=40,
    singles=4,
    many_rounds=1,
)


def ours_and_raw():
    return [sqlite.Ours(OURS, coalesce=True), sqlite.Raw()]


async def entrants(folder, workload, contenders):
    for contender in contenders:
        own = folder / contender.name
        own.mkdir()
        await contender.setup(own)
        await contender.store_many(list(workload.memories(0, workload.size)))
    return [Entrant(contender, workload) for contender in contenders]


async def test_every_row_and_every_bar_is_measured_and_shown(tmp_path: Path) -> None:
    results = await run(ours_and_raw, SMALLEST, tmp_path, lambda _: None)
    for size in SMALLEST.sizes:
        for operation in (STORE, *READS):
            for tasks in (1, TASKS):
                assert set(results.calls[size, operation, tasks]) == {"ours", "raw"}
    assert {operation for operation, _ in results.growth} == set(READS)
    assert set(results.many) == set(results.singles) == {"ours", "raw"}

    text = shown(results)
    in_calls, in_growth, in_bars = 2 * len(SMALLEST.sizes), 2, 2
    assert text.count(FEW.name) == in_calls + in_growth + in_bars
    held = list(verdicts(results))
    assert len(held) == len(BESIDE_RAW) * len(SMALLEST.sizes) + 2
    assert text.count(" ok ") + text.count(" miss ") == len(held)

    document = json.loads(json.dumps(report.as_json(results)))
    assert len(document["calls"]) == len(results.calls)
    assert all(len(rounds) == 1 for call in document["calls"] for rounds in call["seconds"].values())


async def test_ours_and_raw_find_the_same(tmp_path: Path) -> None:
    workload = Workload(400)
    both = await entrants(tmp_path, workload, ours_and_raw())
    await check(both)
    for operation in SEARCHES:
        for query in operation.queries(workload, 1, 10):
            ours, raw = [
                await getattr(one.contender, operation.method)(one.contender.native_query(query))
                for one in both
            ]
            assert [hit.model_dump() for hit in ours] == [hit.model_dump() for hit in raw]
            assert ours
    for one in both:
        await one.contender.close()


@pytest.mark.skipif(postgres.not_run_reason() is not None, reason=str(postgres.not_run_reason()))
async def test_ours_and_raw_find_the_same_on_postgres(tmp_path: Path) -> None:
    workload = Workload(400)
    both = await entrants(tmp_path, workload, [postgres.Ours(OURS, coalesce=True), postgres.Raw()])
    for one in both:
        await one.contender.store(workload.memory(workload.size))
        await one.contender.loaded()
    await check(both)
    queries = [(one, query) for one in SEARCHES for query in one.queries(workload, 1, 4)]
    for operation, query in queries:
        ours, raw = [await getattr(one.contender, operation.method)(query) for one in both]
        assert [hit.model_dump() for hit in ours] == [hit.model_dump() for hit in raw]
        assert ours
    for known in workload.known_ids(1, 4):
        ours, raw = [await one.contender.retrieve(known) for one in both]
        assert ours.model_dump() == raw.model_dump()
    for one in both:
        await one.contender.close()


async def test_contenders_that_differ_are_not_measured(tmp_path: Path) -> None:
    both = await entrants(tmp_path, Workload(40), ours_and_raw())
    await both[1].contender.store(Workload(80).memory(0).model_copy(update={"tags": [*KINDS]}))
    with pytest.raises(ContendersDiffer, match="ours: tag"):
        await check(both)
    for one in both:
        await one.contender.close()


async def test_raw_sends_the_statements_that_ours_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    connect = sqlite3.connect

    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(sent.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    workload = Workload(400)
    both = await entrants(tmp_path, workload, ours_and_raw())
    for operation in (STORE, *READS):
        statements = []
        for one in both:
            turn = one.turn(operation)
            await turn.call(turn.inputs(0, 1)[0])  # connects every thread
            sent.clear()
            await turn.call(turn.inputs(1, 1)[0])
            statements.append([" ".join(statement.split()) for statement in sent])
        assert statements[0] == statements[1]
        assert statements[0]
    for one in both:
        await one.contender.close()


async def test_raw_sends_to_qdrant_what_ours_sends_and_gives_the_same() -> None:
    pytest.importorskip("adapter_qdrant")
    from adapter_qdrant.stub import QdrantStub
    from benchmarks.backends import qdrant
    from benchmarks.qdrant_server import CannedEngine

    workload = Workload(40)
    both = []
    for contender in (qdrant.Ours(OURS, coalesce=True), qdrant.Raw()):
        stub = QdrantStub(CannedEngine())
        await stub.accept()
        await contender._open(stub.url)
        await contender.store_many(list(workload.memories(0, workload.size)))
        both.append((Entrant(contender, workload), stub))
    for operation in (STORE, *READS):
        sent, given = [], []
        for entrant, stub in both:
            stub.forget()
            turn = entrant.turn(operation)
            answer = await turn.call(turn.inputs(1, 1)[0])
            sent.append([(str(one), one.parameters, one.json()) for one in stub.requests])
            given.append([hit.model_dump() for hit in answer] if operation in SEARCHES else answer)
        assert sent[0] == sent[1]
        assert len(sent[0]) == (2 if operation is STORE else 1)
        if operation is not STORE:
            assert given[0] == given[1]
            assert given[0]
    for entrant, stub in both:
        await entrant.contender._shut()
        await stub.close()


@pytest.fixture(params=["redis", "redis_query_engine"])
async def on_redis(request, tmp_path):
    pytest.importorskip("adapter_redis")
    backend = backends.load(request.param)
    if reason := backend.not_run_reason():
        pytest.skip(reason)
    ours, _, raw, *_ = backend.contenders()
    workload = Workload(400)
    both = await entrants(tmp_path, workload, [ours, raw])
    # a look at the server's settings, now and then, is no part of a call
    ours._store._driver._looked = math.inf
    yield both
    for one in both:
        await one.contender.close()


async def test_ours_and_raw_find_the_same_on_redis(on_redis) -> None:
    workload = on_redis[0].workload
    for one in on_redis:
        await one.contender.store(workload.memory(workload.size))
    await check(on_redis)
    assert await losing(on_redis) == set()
    queries = [(one, query) for one in SEARCHES for query in one.queries(workload, 1, 4)]
    for operation, query in queries:
        ours, raw = [await getattr(one.contender, operation.method)(query) for one in on_redis]
        assert [hit.model_dump() for hit in ours] == [hit.model_dump() for hit in raw]
        assert ours
    for known in workload.known_ids(1, 4):
        ours, raw = [await one.contender.retrieve(known) for one in on_redis]
        assert ours.model_dump() == raw.model_dump()


async def test_raw_sends_to_redis_what_ours_sends(on_redis, monkeypatch: pytest.MonkeyPatch) -> None:
    from redis.asyncio.connection import AbstractConnection

    sent: list[bytes] = []
    send = AbstractConnection.send_packed_command

    async def recorded(connection, command, **options):
        sent.append(command if isinstance(command, bytes) else b"".join(command))
        await send(connection, command, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", recorded)
    # ours also looks at the server's settings now and then, and then a byte of its request is another
    monkeypatch.setattr(on_redis[0].contender._store._driver, "_interval", math.inf)
    for operation in (STORE, *READS):
        requests = []
        for one in on_redis:
            turn = one.turn(operation)
            await turn.call(turn.inputs(0, 1)[0])  # connects
            sent.clear()
            await turn.call(turn.inputs(1, 1)[0])
            requests.append([*sent])
        assert requests[0] == requests[1]
        assert len(requests[0]) == 1
    batches = []
    for one in on_redis:
        items = one.fresh(1_200)
        sent.clear()
        await one.contender.store_many(items)
        batches.append([*sent])
    assert batches[0] == batches[1]
    assert len(batches[0]) == 4  # both parts are checked before the first is written


async def test_a_contender_that_takes_much_longer_takes_part_in_the_first_rounds_only(monkeypatch) -> None:
    now = 0.0

    def call(seconds: float):
        async def take(_: object) -> None:
            nonlocal now
            now += seconds

        return Turn(take, lambda _number, count: [None] * count)

    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: now)
    effort = Effort(rounds=6, calls=8, seconds=1.0, least=2, slow_rounds=3)
    series = await take_turns({"quick": call(0.25), "slow": call(8.0)}, effort)
    assert [len(series[name].rounds) for name in ("quick", "slow")] == [6, 3]
    assert series["slow"].over(series["quick"]).median == 32.0


async def test_the_memory_of_a_server_is_measured_and_shown(tmp_path: Path) -> None:
    class Serving(sqlite.Ours):
        used = 1_000

        async def server_memory(self) -> int:
            return self.used

        async def store_many(self, items) -> None:
            items = [*items]
            self.used += 300 * len(items)
            await super().store_many(items)

    def contenders():
        return [Serving(OURS, coalesce=True), sqlite.Raw()]

    results = await run(contenders, SMALLEST, tmp_path, lambda _: None)
    assert results.memory == {(size, OURS): 300 for size in SMALLEST.sizes}
    assert "300 bytes" in shown(results)


async def test_a_peer_that_does_not_start_is_shown_as_not_run(tmp_path: Path) -> None:
    class Broken(Peer):
        async def setup(self, folder: Path) -> None:
            raise TypeError("the client is another one")

    results = await run(lambda: [*ours_and_raw(), Broken()], SMALLEST, tmp_path, lambda _: None)
    assert results.not_run == {"peer": "TypeError: the client is another one"}
    assert "not run: TypeError: the client is another one" in shown(results)
    assert all("peer" not in series for series in results.calls.values())


async def test_a_peer_that_loses_answers_of_many_tasks_gets_no_rate(tmp_path: Path) -> None:
    class Losing(Peer):
        under_way = 0

        async def retrieve(self, item_id):
            self.under_way += 1
            try:
                await asyncio.sleep(0)
                return await super().retrieve(item_id) if self.under_way < TASKS else None
            finally:
                self.under_way -= 1

    results = await run(lambda: [*ours_and_raw(), Losing()], SMALLEST, tmp_path, lambda _: None)
    size = SMALLEST.sizes[0]
    assert results.losing == {"peer"}
    assert "peer" in results.calls[size, RETRIEVE, 1]
    assert "peer" not in results.calls[size, RETRIEVE, TASKS]
    assert shown(results).count("loses answers") == len(SMALLEST.sizes)


class Peer(sqlite.Ours):
    role = "peer"

    def __init__(self) -> None:
        super().__init__("peer", coalesce=False)


def shown(results) -> str:
    console = Console(file=io.StringIO(), width=200, record=True)
    report.show(console, results)
    return console.export_text()


def test_a_name_stands_for_every_backend_of_its_service() -> None:
    assert backends.family("redis") == ["redis", "redis_query_engine"]
    assert backends.family("sqlite") == ["sqlite"]


def test_the_same_memories_are_made_each_time() -> None:
    one, other = Workload(100), Workload(100)
    assert one.memory(7).model_dump() == other.memory(7).model_dump()
    assert one.memory(7).model_dump() != one.memory(8).model_dump()
    assert one.few(3, 2)[1].model_dump() == other.few(3, 2)[1].model_dump()


@pytest.mark.parametrize("size", [1_000, 5_000])
def test_about_fifty_match_at_every_size(size: int) -> None:
    workload = Workload(size)
    (query,) = workload.few(0, 1)
    (tag,), customer = query.tags, query.filters["customer"]
    memories = list(workload.memories(0, size))
    found = [one for one in memories if tag in one.tags and one.metadata["customer"] == customer]
    assert MATCHES / 2 < len(found) < MATCHES * 2


def test_memories_are_as_large_as_they_are_said_to_be() -> None:
    memories = list(Workload(1_000).memories(0, 50))
    assert 190 < sum(len(memory.content) for memory in memories) / len(memories) < 210
    for memory in memories:
        tags, facets, _ = index_tokens(check_item(memory))
        assert (len(tags), len(facets)) == (3, 5)


def test_a_ratio_is_taken_within_each_round() -> None:
    ours, raw = Series([2.0, 30.0, 4.0]), Series([1.0, 10.0, 4.0])
    ratio = ours.over(raw)
    assert (ratio.least, ratio.median, ratio.most) == (1.0, 2.0, 3.0)
    assert ratio.inverse().median == 0.5
