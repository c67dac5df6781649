"""One run: bring in the data, check that all give the same, let them take turns."""

import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from adapter_core import (
    MemoryItem,
    check_item,
    decode_document,
    encode_document,
    index_tokens,
)

from .contender import Contender
from .measure import FULL, TASKS, Effort, Ratio, Series, Turn, take_turns
from .operations import FEW, READS, RETRIEVE, SEARCHES, STORE, STORE_MANY, Entrant, Operation
from .workload import Workload

Kind = Literal["latency", "rate"]
Tell = Callable[[str], None]
Contenders = Callable[[], Sequence[Contender]]

_LOADED_AT_ONCE = 1000
_CHECKED_QUERIES = 8
_MORE_THAN_MATCH = 1000


class ContendersDiffer(Exception):
    """Two contenders do not give the same, so their times say nothing."""


@dataclass(frozen=True)
class Plan:
    """What a run measures."""

    sizes: Sequence[int] = (1_000, 10_000, 100_000)
    effort: Effort = FULL
    many: int = 10_000
    singles: int = 500
    many_rounds: int = 7


@dataclass
class Results:
    """What a run has measured.

    Attributes:
        plan: What was to be measured.
        contenders: In the order of the columns.
        calls: By size, operation, number of tasks and contender.
        growth: By operation, contender and size; measured together, so that they compare.
        singles: Stores of one task into an empty store, by contender.
        many: The same for `store_many`: seconds per item.
        codec: Seconds of core's own work for one item, by what it is.
        memory: Bytes of server memory for one item, by size and contender.
        not_run: Why a peer takes no part, by its name.
        losing: Peers that do not give every one of many tasks its answer.
    """

    plan: Plan
    contenders: Sequence[Contender]
    calls: dict[tuple[int, Operation, int], dict[str, Series]] = field(
        default_factory=dict[tuple[int, Operation, int], dict[str, Series]]
    )
    growth: dict[tuple[Operation, str], dict[int, Series]] = field(
        default_factory=dict[tuple[Operation, str], dict[int, Series]]
    )
    singles: dict[str, Series] = field(default_factory=dict[str, Series])
    many: dict[str, Series] = field(default_factory=dict[str, Series])
    codec: dict[str, float] = field(default_factory=dict[str, float])
    memory: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    not_run: dict[str, str] = field(default_factory=dict[str, str])
    losing: set[str] = field(default_factory=set[str])

    @property
    def raw(self) -> str:
        """The name of the contender that all others are compared with."""
        return next(contender.name for contender in self.contenders if contender.role == "raw")

    def ratio(self, size: int, operation: Operation, tasks: int, name: str, kind: Kind) -> Ratio | None:
        """Give a contender's ratio to raw; None where one of them was not measured."""
        series = self.calls.get((size, operation, tasks), {})
        if name not in series or self.raw not in series:
            return None
        ratio = series[name].over(series[self.raw])
        return ratio if kind == "latency" else ratio.inverse()


async def run(contenders: Contenders, plan: Plan, folder: Path, tell: Tell) -> Results:
    """Measure all contenders of a backend.

    Args:
        contenders: Makes a new set of them.
        plan: What to measure.
        folder: Where their data goes.
        tell: Told what happens next.

    Raises:
        ContendersDiffer: Before anything is measured.
    """
    results = Results(plan, contenders())
    tell("the codec alone")
    results.codec = measure_codec(Workload(plan.sizes[0]), plan.effort)
    await _try_peers(results, folder / "tried")

    def able() -> Sequence[Contender]:
        return [one for one in contenders() if one.name not in results.not_run]

    async with AsyncExitStack() as stack:
        entrants: dict[int, list[Entrant]] = {}
        for size in plan.sizes:
            entrants[size] = await _enter(stack, able(), results, size, folder / str(size), tell)
            await check(entrants[size])
            results.losing |= await losing(entrants[size])
        gc.collect()
        gc.freeze()  # what was brought in is no garbage, and looking through it takes long
        for size in plan.sizes:
            for operation in READS:
                await _measure(results, entrants[size], operation, tell)
        if len(plan.sizes) > 1:
            await _measure_growth(results, entrants, tell)
        for size in plan.sizes:  # last, since they make the data grow
            await _measure(results, entrants[size], STORE, tell)
        gc.unfreeze()
    tell(f"store_many of {plan.many:,}")
    await _measure_many(results, able, folder / "many")
    return results


def measure_codec(workload: Workload, effort: Effort) -> dict[str, float]:
    """Time what core does with an item on its way in and on its way out."""
    items = list(workload.memories(0, 200))
    documents = [encode_document(check_item(item)) for item in items]
    steps: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "check, encode and cut into tokens": (_in, items),
        "decode and build": (_out, documents),
    }
    return {
        name: statistics.median(_seconds(step, inputs) for _ in range(effort.rounds + 1))
        for name, (step, inputs) in steps.items()
    }


async def check(entrants: Sequence[Entrant]) -> None:
    """See that all know the same memories, and that ours and raw find the same in the same order.

    A peer has an order of its own; of it the set is compared where all matches are given.

    Raises:
        ContendersDiffer: Naming the contender and what it was asked.
    """
    raw = next(entrant for entrant in entrants if entrant.contender.role == "raw")
    others = [entrant for entrant in entrants if entrant is not raw]
    for entrant in entrants:
        for known in entrant.workload.known_ids(0, _CHECKED_QUERIES):
            if await entrant.contender.retrieve(entrant.contender.native_id(known)) is None:
                raise ContendersDiffer(f"{entrant.contender.name}: {RETRIEVE.name} gives nothing")
    for operation in SEARCHES:
        assert operation.queries is not None
        for query in operation.queries(raw.workload, 0, _CHECKED_QUERIES):
            everything = query.model_copy(update={"limit": _MORE_THAN_MATCH})
            for other in filter(lambda other: other.can(operation), others):
                if other.contender.role == "ours":
                    same = await _ask(other, operation, query) == await _ask(raw, operation, query)
                elif operation is FEW:
                    theirs, ours = [await _ask(one, operation, everything) for one in (other, raw)]
                    same = set(theirs) == set(ours)
                else:
                    same = True
                if not same:
                    raise ContendersDiffer(f"{other.contender.name}: {operation.name} finds other memories")


async def losing(entrants: Sequence[Entrant]) -> set[str]:
    """Name the peers that do not give every one of many tasks its answer; their rate says nothing.

    Raises:
        ContendersDiffer: One of them is no peer.
    """
    found: set[str] = set()
    for entrant in entrants:
        contender = entrant.contender
        known = [contender.native_id(one) for one in entrant.workload.known_ids(0, TASKS)]
        if None in await asyncio.gather(*map(contender.retrieve, known)):
            found.add(contender.name)
            if contender.role != "peer":
                raise ContendersDiffer(f"{contender.name}: {RETRIEVE.name} by many tasks loses answers")
    return found


async def _try_peers(results: Results, folder: Path) -> None:
    """Leave out the peers that do not work with what is installed."""
    for position, peer in enumerate(one for one in results.contenders if one.role == "peer"):
        own = folder / str(position)
        own.mkdir(parents=True)
        try:
            await peer.setup(own)
        except Exception as error:  # noqa: BLE001 - another project's; whatever it is, it is shown
            results.not_run[peer.name] = f"{type(error).__name__}: {error}"
        else:
            await peer.close()


async def _ask(entrant: Entrant, operation: Operation, query: Any) -> Sequence[Any]:
    contender = entrant.contender
    hits = await getattr(contender, operation.method)(contender.native_query(query))
    return contender.ids(hits)


async def _enter(
    stack: AsyncExitStack,
    contenders: Sequence[Contender],
    results: Results,
    size: int,
    folder: Path,
    tell: Tell,
) -> list[Entrant]:
    """Open all contenders and bring the memories in; of these only what a contender keeps stays here."""
    tell(f"bringing in {size:,} memories")
    workload = Workload(size)
    for position, contender in enumerate(contenders):
        own = folder / str(position)
        own.mkdir(parents=True)
        await contender.setup(own)
        stack.push_async_callback(contender.close)
    empty = [await contender.server_memory() for contender in contenders]
    for begin in range(0, size, _LOADED_AT_ONCE):
        memories = list(workload.memories(begin, min(_LOADED_AT_ONCE, size - begin)))
        for contender in contenders:
            await contender.store_many([contender.native_item(item) for item in memories])
    for contender in contenders:
        await contender.loaded()
    for contender, before in zip(contenders, empty, strict=True):
        after = await contender.server_memory()
        if before is not None and after is not None:
            results.memory[size, contender.name] = (after - before) / size
    return [Entrant(contender, workload) for contender in contenders]


async def _measure(results: Results, entrants: Sequence[Entrant], operation: Operation, tell: Tell) -> None:
    size = entrants[0].workload.size
    for tasks in (1, TASKS):
        tell(f"{size:,} memories: {operation.name}, tasks: {tasks}")
        fit = [
            entrant
            for entrant in entrants
            if entrant.can(operation)
            and not (operation is RETRIEVE and tasks > 1 and entrant.contender.name in results.losing)
        ]
        turns = {entrant.contender.name: entrant.turn(operation) for entrant in fit}
        results.calls[size, operation, tasks] = await take_turns(turns, results.plan.effort, tasks)


async def _measure_growth(results: Results, entrants: dict[int, list[Entrant]], tell: Tell) -> None:
    """Let the sizes of one contender take turns."""
    for operation in READS:
        tell(f"growth: {operation.name}")
        turns: dict[tuple[str, int], Turn] = {
            (entrant.contender.name, size): entrant.turn(operation)
            for size, all_of_size in entrants.items()
            for entrant in all_of_size
            if entrant.contender.role != "peer"
        }
        for (name, size), series in (await take_turns(turns, results.plan.effort)).items():
            results.growth.setdefault((operation, name), {})[size] = series


async def _measure_many(results: Results, contenders: Contenders, folder: Path) -> None:
    """Compare `store_many` with single stores of one task, each round in an empty store."""
    plan = results.plan
    for number in range(plan.many_rounds + 1):
        having = [one for one in contenders() if STORE_MANY.method not in one.lacks]
        start = number % len(having)
        for position, contender in enumerate(having[start:] + having[:start]):
            own = folder / f"{number}-{position}"
            own.mkdir(parents=True)
            await contender.setup(own)
            try:
                entrant = Entrant(contender, Workload(plan.many))
                singles, many = await _time_many(entrant, plan)
            finally:
                await contender.close()
            if number:  # the first round warms up
                results.singles.setdefault(contender.name, Series()).rounds.append(singles)
                results.many.setdefault(contender.name, Series()).rounds.append(many)


async def _time_many(entrant: Entrant, plan: Plan) -> tuple[float, float]:
    store, store_many = entrant.contender.store, entrant.contender.store_many
    first, *singles = entrant.fresh(plan.singles + 1)
    many = entrant.fresh(plan.many)
    await store(first)  # connects
    gc.collect()
    begin = time.perf_counter()
    for item in singles:
        await store(item)
    middle = time.perf_counter()
    await store_many(many)
    end = time.perf_counter()
    return (middle - begin) / plan.singles, (end - middle) / plan.many


def _seconds(step: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    begin = time.perf_counter()
    for one in inputs:
        step(one)
    return (time.perf_counter() - begin) / len(inputs)


def _in(item: MemoryItem) -> object:
    fields = check_item(item)
    return encode_document(fields), index_tokens(fields)


def _out(document: str) -> MemoryItem:
    return MemoryItem(**decode_document(document)._asdict())
