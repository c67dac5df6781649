"""The ways to Qdrant that the benchmark compares lead to the same."""

from pathlib import Path

import pytest

from benchmarks.operations import SEARCHES, Entrant
from benchmarks.run import check, losing
from benchmarks.workload import Workload

pytest.importorskip("adapter_qdrant")


async def test_ours_by_grpc_gives_what_raw_gives_by_rest(tmp_path: Path) -> None:
    from benchmarks.backends import qdrant

    workload = Workload(40)
    by_name = {contender.name: contender for contender in qdrant.contenders()}
    both = [by_name["ours, gRPC"], by_name["raw"]]
    for contender in both:
        await contender.setup(tmp_path)
        await contender.store_many(list(workload.memories(0, workload.size)))
        await contender.store(workload.memory(workload.size))
    entered = [Entrant(contender, workload) for contender in both]
    await check(entered)
    assert await losing(entered) == set()
    for operation in SEARCHES:
        (query,) = operation.queries(workload, 1, 1)
        ours, raw = [await getattr(one, operation.method)(query) for one in both]
        assert [hit.model_dump() for hit in ours] == [hit.model_dump() for hit in raw]
        assert ours
    for known in workload.known_ids(1, 4):
        ours, raw = [await one.retrieve(known) for one in both]
        assert ours.model_dump() == raw.model_dump()
    for contender in both:
        await contender.close()
