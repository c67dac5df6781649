"""The bars of this project: what a store may cost beside the raw client, and how far it must lead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .measure import TASKS, Ratio
from .operations import COMMON, FEW, NEWEST, RARE, READS, RETRIEVE, SEARCHES, STORE, Operation
from .peers import LangGraphSqlite
from .postgres_peers import LangGraph, PyKeyValue
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


@dataclass(frozen=True)
class Growth:
    """How many times longer a search may take at the largest size than at the smallest.

    Attributes:
        operation: The search.
        limit: How many times.
        inclusive: Whether it may be just as many.
    """

    operation: Operation
    limit: float
    inclusive: bool = False

    def holds(self, grown: float) -> bool:
        """Whether so many times is not too long."""
        return grown < self.limit or (self.inclusive and grown == self.limit)

    def __str__(self) -> str:
        """Write it as the tables show it."""
        return f"{'at most' if self.inclusive else 'less than'} {self.limit}"


@dataclass(frozen=True)
class Bars:
    """All that must hold on one backend.

    Attributes:
        beside_raw: Beside the raw client.
        growth: From the smallest size to the largest.
        leaders: The peers that ours is ahead of, in all that they have but for `may_trail`.
        may_trail: Operations and numbers of tasks where a peer that keeps no search index may lead.
        many_over_singles: How many times the rate of single stores `store_many` has at least.
    """

    beside_raw: Sequence[Bar]
    growth: Sequence[Growth]
    leaders: Sequence[str]
    may_trail: Sequence[tuple[Operation, int]]
    many_over_singles: float


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

SQLITE = Bars(
    beside_raw=BESIDE_RAW,
    growth=(Growth(FEW, GROWTH_OF_FEW),),
    leaders=(LEADER,),
    may_trail=MAY_TRAIL,
    many_over_singles=MANY_OVER_SINGLES,
)
POSTGRES = Bars(
    beside_raw=(
        Bar(STORE, 1, "latency", 1.2),
        Bar(RETRIEVE, 1, "latency", 1.4),
        Bar(FEW, 1, "latency", 1.15),
        Bar(NEWEST, 1, "latency", 1.15),
        Bar(RARE, 1, "latency", 1.15),
        Bar(COMMON, 1, "latency", 1.15),
        Bar(STORE, TASKS, "rate", 2.0),
        Bar(RETRIEVE, TASKS, "rate", 1.6),
    ),
    growth=(Growth(FEW, 2.0), Growth(NEWEST, 20.0, inclusive=True)),
    leaders=(LangGraph.name, PyKeyValue.name),
    may_trail=((STORE, TASKS),),  # neither keeps a search index
    many_over_singles=3.5,
)
QDRANT = Bars(
    beside_raw=(
        *(Bar(operation, 1, "latency", 1.15) for operation in (STORE, *READS)),
        Bar(STORE, TASKS, "rate", 2.0),
        Bar(RETRIEVE, TASKS, "rate", 2.0),
    ),
    growth=(),  # answers are canned
    leaders=(),
    may_trail=(),
    many_over_singles=3.0,
)
_BESIDE_REDIS = (
    Bar(STORE, 1, "latency", 1.25),
    Bar(RETRIEVE, 1, "latency", 1.25),
    *(Bar(operation, 1, "latency", 1.1) for operation in SEARCHES),
    Bar(STORE, TASKS, "rate", 1.3),
    Bar(RETRIEVE, TASKS, "rate", 2.0),
)
REDIS = Bars(
    beside_raw=_BESIDE_REDIS,
    growth=(),
    leaders=(PyKeyValue.name,),
    may_trail=(),
    many_over_singles=2.5,
)
REDIS_QUERY_ENGINE = replace(REDIS, leaders=(LangGraph.name, PyKeyValue.name))


@dataclass(frozen=True)
class Verdict:
    """A bar and what was measured."""

    what: str
    bar: str
    size: int | None
    measured: Ratio
    holds: bool


def verdicts(results: Results, bars: Bars = SQLITE) -> Iterator[Verdict]:
    """Hold what was measured against each bar; what was not measured is left out."""
    for size in results.plan.sizes:
        for bar in bars.beside_raw:
            if ratio := results.ratio(size, bar.operation, bar.tasks, OURS, bar.kind):
                yield _verdict(bar, size, ratio)
    yield from _own(results, bars)
    for leader in bars.leaders:
        yield from _beside_leader(results, leader, bars.may_trail)


def _verdict(bar: Bar, size: int, ratio: Ratio) -> Verdict:
    what = f"{bar.operation.name}, {_tasks(bar.tasks)}: {bar.kind} beside raw"
    if bar.kind == "latency":
        return Verdict(what, f"at most {bar.limit}", size, ratio, ratio.median <= bar.limit)
    return Verdict(what, f"at least {bar.limit}", size, ratio, ratio.median >= bar.limit)


def _own(results: Results, bars: Bars) -> Iterator[Verdict]:
    if OURS in results.many:
        gain = results.singles[OURS].over(results.many[OURS])
        what = f"store_many of {results.plan.many:,}: rate beside single stores"
        least_gain = bars.many_over_singles
        yield Verdict(what, f"at least {least_gain}", None, gain, gain.median >= least_gain)
    for bar in bars.growth:
        if by_size := results.growth.get((bar.operation, OURS)):
            least, *_, most = results.plan.sizes
            grown = by_size[most].over(by_size[least])
            what = f"{bar.operation.name}: growth from {least:,} to {most:,}"
            yield Verdict(what, str(bar), None, grown, bar.holds(grown.median))


def _beside_leader(
    results: Results, leader: str, may_trail: Sequence[tuple[Operation, int]]
) -> Iterator[Verdict]:
    for size in results.plan.sizes:
        for operation in (STORE, *READS):
            for tasks in (1, TASKS):
                series = results.calls.get((size, operation, tasks), {})
                if leader in series and OURS in series and (operation, tasks) not in may_trail:
                    lead = series[leader].over(series[OURS])
                    what = f"{operation.name}, {_tasks(tasks)}: rate beside {leader}"
                    yield Verdict(what, "at least 1", size, lead, lead.median >= 1)


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
