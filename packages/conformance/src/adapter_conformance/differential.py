"""The differential test: the same generated items and queries give the same sets on every adapter.

Each adapter is compared with the oracle over the items as its own projection keeps them. Adapters that
agree with it agree with each other; where all differ in the same way, the oracle is at fault.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import Field

from adapter_core import (
    TIME_FILTERS,
    MemoryAdapterUnavailable,
    MemoryItem,
    MemoryQuery,
    SupportsBatch,
)

from ._diverging import CALL_SECONDS, Divergence, Part, divergence, smallest
from ._run import Run, projection_of, text_meaning_of
from .corpus import Corpus
from .harness import Environment, MemoryAdapterHarness
from .live import NotRun, Servers
from .oracle import Oracle
from .report import labelled
from .session import Fault, Target, safely_told

_BATCH = 500


class Joined(Part):
    """How one adapter fared.

    Attributes:
        asked: How many queries it was asked.
        left_out: How many its declarations exclude, by the reason.
        agreed: How many gave what they must.
        smallest: The smallest query that did not.
        not_run: Why nothing was asked.
    """

    adapter: str
    variant: str = ""
    environment: Environment
    engine: str = ""
    asked: int = 0
    left_out: dict[str, int] = Field(default_factory=dict[str, int])
    agreed: int = 0
    smallest: Divergence | None = None
    not_run: str = ""
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """The adapter with its variant."""
        return labelled(self.adapter, self.variant)


class Vacuity(Part):
    """How much the queries prove: one that matches nothing or everything proves little.

    Attributes:
        telling: They tell the items apart.
        nothing: They match none.
        everything: They match all.
    """

    telling: int
    nothing: int
    everything: int

    @property
    def enough(self) -> bool:
        """Whether at least half of them tell items apart."""
        return self.telling >= self.nothing + self.everything


class Comparison(Part):
    """What the differential test found."""

    seed: int
    items: int
    replaced: int
    queries: int
    vacuity: Vacuity
    joined: tuple[Joined, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every adapter that ran agrees, and the queries prove something."""
        ran = [one for one in self.joined if not one.not_run]
        return bool(ran) and self.vacuity.enough and all(one.asked == one.agreed > 0 for one in ran)


class Expectations:
    """What each query of a corpus must find, for each way in which adapters keep the times."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._known: dict[tuple[float, ...], tuple[Oracle, list[list[UUID]]]] = {}

    def of(self, store: Any) -> tuple[Oracle, list[list[UUID]]]:
        """Give the oracle for a store, and the matches of every query."""
        oracle = Oracle(projection_of(store))
        times = tuple(map(oracle.time, self.corpus.items))
        if times not in self._known:
            for item in self.corpus.items:
                oracle.store(item)
            self._known[times] = oracle, [oracle.matches(query) for query in self.corpus.queries]
        return self._known[times]

    def vacuity(self) -> Vacuity:
        """Count what the queries prove on a store that loses nothing."""
        counts = [len(found) for found in self.of(None)[1]]
        nothing, everything = counts.count(0), counts.count(len(self.corpus.items))
        return Vacuity(telling=len(counts) - nothing - everything, nothing=nothing, everything=everything)


def compare_targets(
    targets: Iterable[Target],
    corpus: Corpus,
    *,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[Target], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Comparison, list[Fault]]:
    """Run the differential test over harness classes, each on an event loop of its own.

    Args:
        targets: From `session.find_targets`.
        corpus: From `corpus.drawn`.
        options: Constructor options of every store.
        progress: Called before each harness.
        tell: Told in one line what takes long, such as a container.

    Returns:
        The comparison, and the harnesses and stores that broke.
    """
    expected = Expectations(corpus)
    joined: list[Joined] = []
    faults: list[Fault] = []
    with Servers(tell=tell) as servers:
        for target in targets:
            progress(target)
            try:
                joined.append(_join(target, servers, expected, options))
            except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
                faults.append(Fault(target.label, target.environment, safely_told(error)))
    comparison = Comparison(
        seed=corpus.seed,
        items=len(corpus.items),
        replaced=len(corpus.earlier),
        queries=len(corpus.queries),
        vacuity=expected.vacuity(),
        joined=tuple(joined),
    )
    return comparison, faults


def _join(
    target: Target, servers: Servers, expected: Expectations, options: Mapping[str, Any] | None
) -> Joined:
    try:
        ready = target.ready(servers)
        found = asyncio.run(
            join(ready.make(), expected, adapter=target.adapter, variant=target.variant, options=options)
        )
    except NotRun as why:
        return Joined(
            adapter=target.adapter,
            variant=target.variant,
            environment=target.environment,
            not_run=str(why),
        )
    return found


async def join(
    harness: MemoryAdapterHarness,
    expected: Expectations,
    *,
    adapter: str | None = None,
    variant: str = "",
    options: Mapping[str, Any] | None = None,
    wrap: Callable[[Any], Any] = lambda store: store,
) -> Joined:
    """Let one adapter take part, and close its harness.

    Args:
        harness: Over a disposable namespace.
        expected: Of the corpus.
        adapter: Its name; without it the harness's attribute `adapter` is taken.
        variant: Which of its ways of working this is.
        options: Constructor options of the store.
        wrap: Put around the store, to prove that a fault is noticed.

    Raises:
        NotRun: A live service does not answer.
        MemoryAdapterError: The store failed.
        TimeoutError: A call took longer than `CALL_SECONDS`.
    """
    name = adapter or str(getattr(harness, "adapter", "unknown"))
    environment: Environment = getattr(harness, "environment", "fake")
    run = Run(harness, name, environment, wrap, expected.corpus.seed, options or {})
    begin = time.perf_counter()
    try:
        engine = await _engine(harness)
        await run.hook("reset")()
        store = await run.store()
        await _fill(store, expected.corpus)
        await run.settle(store)
        found = await _ask(store, expected)
        await run.close()
    except MemoryAdapterUnavailable as error:
        if environment == "live":
            raise NotRun(safely_told(error)) from error
        raise
    finally:
        await harness.close()
    seconds = round(time.perf_counter() - begin, 3)
    return Joined(
        adapter=name, variant=variant, environment=environment, engine=engine, seconds=seconds, **found
    )


async def _engine(harness: Any) -> str:
    ask = getattr(harness, "engine", None)
    if ask is None:
        return ""
    engine = await ask()
    return f"{engine.name} {engine.version}"


async def _fill(store: Any, corpus: Corpus) -> None:
    """Store the earlier versions one by one, then the items in batches if the store takes them."""
    for items in _batches(corpus.earlier):
        async with asyncio.timeout(CALL_SECONDS):
            await asyncio.gather(*map(store.store, items))
    many = isinstance(store, SupportsBatch)
    for items in _batches(corpus.items):
        async with asyncio.timeout(CALL_SECONDS):
            await (store.store_many(items) if many else asyncio.gather(*map(store.store, items)))


def _batches(items: Sequence[MemoryItem]) -> Iterator[Sequence[MemoryItem]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


async def _ask(store: Any, expected: Expectations) -> dict[str, Any]:
    oracle, matches = expected.of(store)
    left_out: dict[str, int] = {}
    diverging: list[MemoryQuery] = []
    asked = 0
    for query, wanted in zip(expected.corpus.queries, matches, strict=True):
        if reason := not_asked(store, query):
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        asked += 1
        if await divergence(store, query, wanted):
            diverging.append(query)
    found = await smallest(store, oracle, diverging) if diverging else None
    return {
        "asked": asked,
        "agreed": asked - len(diverging),
        "left_out": left_out,
        "smallest": found,
    }


def not_asked(store: Any, query: MemoryQuery) -> str:
    """Say why the store's declarations exclude a query; empty if they do not.

    A store whose text does not mean that every term occurs says so by an attribute `text_meaning`.
    """
    supported = store.manifest.supported_filters
    if not set(query.filters or ()) <= supported:
        times = set(query.filters) - supported <= TIME_FILTERS
        return "times are no filters" if times else "filters not supported"
    if (query.text or "").strip() and text_meaning_of(store):
        return "text means something else"
    return ""
