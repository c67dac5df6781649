"""What is measured: operations, and the turns in which a contender does them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adapter_core import MemoryQuery

from .contender import Contender
from .measure import Turn
from .workload import Workload


@dataclass(frozen=True)
class Operation:
    """One row of the tables.

    Attributes:
        name: Stands before the row.
        method: The method of the contender that is timed.
        queries: Makes the queries of a turn; None for what is no search.
    """

    name: str
    method: str
    queries: Callable[[Workload, int, int], Sequence[MemoryQuery]] | None = None


STORE = Operation("store", "store")
STORE_MANY = Operation("store_many", "store_many")
RETRIEVE = Operation("retrieve", "retrieve")
FEW = Operation("tag+filter, about 50 match", "search", Workload.few)
NEWEST = Operation("tag+filter, 3 % match", "search", Workload.newest)
RARE = Operation("text, rare word", "search_text", Workload.rare)
COMMON = Operation("text, common word", "search_text", Workload.common)

SEARCHES = (FEW, NEWEST, RARE, COMMON)
READS = (RETRIEVE, *SEARCHES)


class Entrant:
    """A contender that holds the memories of one workload, and those that it stores meanwhile."""

    def __init__(self, contender: Contender, workload: Workload) -> None:
        self.contender = contender
        self.workload = workload
        self._stored = workload.size

    def can(self, operation: Operation) -> bool:
        """Whether the contender has it."""
        return operation.method not in self.contender.lacks

    def turn(self, operation: Operation) -> Turn:
        """Give the turns of an operation."""
        return Turn(
            getattr(self.contender, operation.method),
            lambda number, count: self._inputs(operation, number, count),
        )

    def fresh(self, count: int) -> list[Any]:
        """Make memories that are not there yet, in the contender's own form."""
        begin, self._stored = self._stored, self._stored + count
        return [self.contender.native_item(item) for item in self.workload.memories(begin, count)]

    def _inputs(self, operation: Operation, number: int, count: int) -> Sequence[Any]:
        if operation.queries is not None:
            queries = operation.queries(self.workload, number, count)
            return [self.contender.native_query(query) for query in queries]
        if operation.method == "store":
            return self.fresh(count)
        return [self.contender.native_id(one) for one in self.workload.known_ids(number, count)]
