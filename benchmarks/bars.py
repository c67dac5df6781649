"""The bars of this project: what a store may cost beside the raw client, and how far it must lead."""

from collections.abc import Iterator
from dataclasses import dataclass

from .measure import TASKS, Ratio
from .operations import COMMON, FEW, NEWEST, RARE, READS, RETRIEVE, STORE, Operation
from .peers import LangGraphSqlite
from .run import Kind, Results

OURS = "ours"
"""The contender that the bars are for: the store as its constructor makes it by default."""


@dataclass(frozen=True)
class Bar:
    """One thing that must hold.

    Attributes:
        operation: What is done.
        tasks: By how many tasks at once.
        kind: `latency`: ours over the other's time. `rate`: ours over the other's calls per second.
        limit: The most for a latency, the least for a rate.
    """

    operation: Operation
    tasks: int
    kind: Kind
    limit: float


BESIDE_RAW = (
    Bar(STORE, 1, "latency", 1.25),
    Bar(RETRIEVE, 1, "latency", 1.25),
    Bar(FEW, 1, "latency", 1.25),
    Bar(NEWEST, 1, "latency", 1.25),
    Bar(RARE, 1, "latency", 1.25),
    Bar(COMMON, 1, "latency", 1.25),
    Bar(STORE, TASKS, "rate", 2.5),
    Bar(RETRIEVE, TASKS, "rate", 2.3),
)
MANY_OVER_SINGLES = 3.5
"""How many times the rate of single stores `store_many` has at least."""
GROWTH_OF_FEW = 2.0
"""How many times longer a search with about 50 matches takes at the largest size: less than this."""

LEADER = LangGraphSqlite.name
"""The peer that ours is ahead of, in all but these."""
MAY_TRAIL = ((STORE, TASKS),)
# Nor is `store_many` held against it: many stores at once are one batch to it, without an index.


@dataclass(frozen=True)
class Verdict:
    """A bar and what was measured."""

    what: str
    bar: str
    size: int | None
    measured: Ratio
    holds: bool


def verdicts(results: Results) -> Iterator[Verdict]:
    """Hold what was measured against each bar; what was not measured is left out."""
    for size in results.plan.sizes:
        for bar in BESIDE_RAW:
            if ratio := results.ratio(size, bar.operation, bar.tasks, OURS, bar.kind):
                yield _verdict(bar, size, ratio)
    yield from _own(results)
    yield from _beside_leader(results)


def _verdict(bar: Bar, size: int, ratio: Ratio) -> Verdict:
    what = f"{bar.operation.name}, {_tasks(bar.tasks)}: {bar.kind} beside raw"
    if bar.kind == "latency":
        return Verdict(what, f"at most {bar.limit}", size, ratio, ratio.median <= bar.limit)
    return Verdict(what, f"at least {bar.limit}", size, ratio, ratio.median >= bar.limit)


def _own(results: Results) -> Iterator[Verdict]:
    if OURS in results.many:
        gain = results.singles[OURS].over(results.many[OURS])
        what = f"store_many of {results.plan.many:,}: rate beside single stores"
        yield Verdict(what, f"at least {MANY_OVER_SINGLES}", None, gain, gain.median >= MANY_OVER_SINGLES)
    if by_size := results.growth.get((FEW, OURS)):
        least, *_, most = results.plan.sizes
        grown = by_size[most].over(by_size[least])
        what = f"{FEW.name}: growth from {least:,} to {most:,}"
        yield Verdict(what, f"less than {GROWTH_OF_FEW}", None, grown, grown.median < GROWTH_OF_FEW)


def _beside_leader(results: Results) -> Iterator[Verdict]:
    for size in results.plan.sizes:
        for operation in (STORE, *READS):
            for tasks in (1, TASKS):
                series = results.calls.get((size, operation, tasks), {})
                if LEADER in series and OURS in series and (operation, tasks) not in MAY_TRAIL:
                    lead = series[LEADER].over(series[OURS])
                    what = f"{operation.name}, {_tasks(tasks)}: rate beside {LEADER}"
                    yield Verdict(what, "at least 1", size, lead, lead.median >= 1)


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
