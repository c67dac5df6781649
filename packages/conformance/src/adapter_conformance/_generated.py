"""X15: generated items and queries, against the declared projection and the oracle."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from adapter_core import TIME_FILTERS, MemoryItem, MemoryQuery, same_fields

from ._run import CaseFailed, Run, check, fields_of, projection_of
from .oracle import Oracle
from .strategies import items, queries

EXAMPLES = 25
ITEMS_PER_EXAMPLE = 12
QUERIES_PER_EXAMPLE = 8


async def x15_generated(run: Run) -> None:
    store = await run.store()
    keys = tuple(run.filter_keys(store))
    loop = asyncio.get_running_loop()
    vacuous = telling = 0

    async def example(chosen: list[MemoryItem], asked: list[MemoryQuery]) -> None:
        nonlocal vacuous, telling
        await run.hook("reset")()
        oracle = await _round_trips(store, chosen)
        await run.settle(store)
        for query in asked:
            matches = oracle.matches(query)
            found = [hit.id for hit in await store.search(query)]
            check(len(found) == len(set(found)), "a search gives an item twice")
            check(
                set(found) == set(matches),
                f"a generated query finds {len(found)} items, the oracle {len(matches)}",
            )
            if not (query.text or "").strip():
                check(found == matches, "a search without text is not newest first, then by id")
            if 0 < len(matches) < len(oracle.items):
                telling += 1
            else:
                vacuous += 1

    def wait(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    @seeded(run.seed)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),  # a smaller example is of no use: none is shown
        suppress_health_check=(
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ),
        print_blob=False,
        report_multiple_bugs=False,
    )
    @given(
        st.lists(items(keys), min_size=ITEMS_PER_EXAMPLE, max_size=ITEMS_PER_EXAMPLE),
        st.lists(
            queries(keys, time_filters=store.manifest.supported_filters >= TIME_FILTERS),
            min_size=QUERIES_PER_EXAMPLE,
            max_size=QUERIES_PER_EXAMPLE,
        ),
    )
    def generated(chosen: list[MemoryItem], asked: list[MemoryQuery]) -> None:
        wait(example(chosen, asked))

    try:
        await asyncio.to_thread(generated)
    except CaseFailed as failed:
        # hypothesis notes the example on the error; only the reason is reported
        raise CaseFailed(failed.reason, failed.drift) from None
    run.notes.append(f"{telling} generated queries told items apart, {vacuous} proved little")
    check(telling >= EXAMPLES, "too few generated queries tell items apart")


async def _round_trips(store: Any, chosen: list[MemoryItem]) -> Oracle:
    projection = projection_of(store)
    oracle = Oracle(projection)
    for item in chosen:
        await store.store(item)
        oracle.store(item)
    for item_id, stored in oracle.items.items():
        got = await store.retrieve(item_id)
        declared = projection.retrieve(fields_of(stored))
        check(
            got is not None and same_fields(got, declared),
            "a generated item does not come back as the projection declares",
        )
    return oracle
