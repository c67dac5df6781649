"""Taking turns: every contender does a little work in each round, and only ratios count."""

import asyncio
import gc
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT")

TASKS = 32
"""How many tasks work at once where it is not one."""
_MUCH_LONGER = 4


@dataclass(frozen=True)
class Effort:
    """How much is done.

    Attributes:
        rounds: Turns of each contender that count, after those that warm up.
        calls: The most calls of one turn of one task; several tasks make four times as many.
        seconds: About how long one turn may last; slow contenders make fewer calls.
        least: The fewest calls of one turn of one task; several tasks make one call each.
        slow_rounds: Turns that count of a contender to which even the fewest calls take much longer
            than a turn may last.
    """

    # many short turns: what disturbs the machine for a moment then spoils few of the rounds
    rounds: int = 25
    calls: int = 96
    seconds: float = 0.1
    least: int = 5
    slow_rounds: int = 5


FULL, QUICK = Effort(), Effort(rounds=5, calls=64)


@dataclass(frozen=True)
class Turn:
    """What one contender does: a call, and the inputs of each turn.

    Attributes:
        call: What is timed, once for each input.
        inputs: Makes so many inputs for the turn of a number, before the clock starts.
    """

    call: Callable[[Any], Awaitable[Any]]
    inputs: Callable[[int, int], Sequence[Any]]


@dataclass
class Series:
    """Seconds per call of each round, of one contender.

    With one task a round is the median of its calls; with several it is the time that passed,
    divided by the calls, so that one through it is the rate.
    """

    rounds: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.rounds)

    def over(self, other: "Series") -> "Ratio":
        """How much longer a call takes than another one's: of each round, then the median."""
        # a slow one took no part in the last rounds
        ratios = [mine / theirs for mine, theirs in zip(self.rounds, other.rounds, strict=False)]
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))


@dataclass(frozen=True)
class Ratio:
    """The median over the rounds, and how far they lie apart."""

    median: float
    least: float
    most: float

    def inverse(self) -> "Ratio":
        """The same ratio the other way round: of rates instead of times."""
        return Ratio(1 / self.median, 1 / self.most, 1 / self.least)


@dataclass
class _Seat(Generic[KeyT]):
    key: KeyT
    turn: Turn
    calls: int
    rounds: int
    number: int = 0
    series: Series = field(default_factory=Series)

    async def take(self, tasks: int) -> float:
        inputs = self.turn.inputs(self.number, self.calls)
        self.number += 1
        gc.collect()  # so that nobody pays for what the one before left behind
        return await (_one(self.turn.call, inputs) if tasks == 1 else _many(self.turn.call, inputs, tasks))


async def take_turns(turns: Mapping[KeyT, Turn], effort: Effort, tasks: int = 1) -> dict[KeyT, Series]:
    """Let each contender take its turn in every round; another one begins each time.

    Args:
        turns: What each one does.
        effort: How much of it.
        tasks: How many tasks share the calls of a turn.
    """
    least = effort.least if tasks == 1 else tasks
    seats = [_Seat(key, turn, least, effort.rounds) for key, turn in turns.items()]
    for seat in seats:  # a first look, which also tells how much fits into a turn
        most = effort.calls if tasks == 1 else 4 * effort.calls
        seconds = await seat.take(tasks)
        fitting = min(most, round(effort.seconds / seconds))
        seat.calls = max(least, math.ceil(fitting / tasks) * tasks)
        if seconds * seat.calls > _MUCH_LONGER * effort.seconds:
            seat.rounds = min(effort.rounds, effort.slow_rounds)
    for seat in seats:
        await seat.take(tasks)
    for number in range(effort.rounds):
        start = number % len(seats)
        for seat in seats[start:] + seats[:start]:
            if number >= seat.rounds:
                continue
            seat.series.rounds.append(await seat.take(tasks))
    return {seat.key: seat.series for seat in seats}


async def _one(call: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any]) -> float:
    clock = time.perf_counter
    times: list[float] = []
    for one in inputs:
        begin = clock()
        await call(one)
        times.append(clock() - begin)
    return statistics.median(times)


async def _many(call: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any], tasks: int) -> float:
    async def work(share: Sequence[Any]) -> None:
        for one in share:
            await call(one)

    begin = time.perf_counter()
    await asyncio.gather(*(work(inputs[first::tasks]) for first in range(tasks)))
    return (time.perf_counter() - begin) / len(inputs)
