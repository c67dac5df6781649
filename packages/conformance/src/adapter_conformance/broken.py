"""The kit proves itself: a catalogue of broken stores, each of which exactly one case must notice.

A broken store passes everything on to a good one, and breaks one thing in one verb. It is killed
when the case that is named for it fails, for the named reason, and no other case does. That a
wrong manifest is noticed is proved by C17 in every run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ._broken_failures import FAILURES
from ._broken_items import ITEMS
from ._broken_searches import SEARCHES
from ._case import Case
from ._faults import BrokenStore
from .harness import Environment, MemoryAdapterHarness
from .inventory import ALL_CASES
from .report import CaseResult
from .runner import run_case

__all__ = ["BROKEN", "PROVING", "BrokenStore", "MutationScore", "Proof", "mutation_score", "prove"]

BROKEN: tuple[BrokenStore, ...] = (*ITEMS, *SEARCHES, *FAILURES)
"""The catalogue. Its faults show over a full and immediate adapter."""

PROVING: tuple[Case, ...] = tuple(case for case in ALL_CASES if case.id != "X15")
"""The cases that a broken store is put before: all that are deterministic.

X15, generated items and queries, is left out: it may come upon any of the faults.
"""

Outcome = Literal["killed", "survived", "not_staged"]


@dataclass(frozen=True)
class Proof:
    """What became of one broken store.

    Attributes:
        broken: The broken store.
        outcome: `killed`: exactly the named case failed, for the named reason. `not_staged`: this
            adapter or its harness cannot show the fault.
        results: How the cases that did not pass ended.
    """

    broken: BrokenStore
    outcome: Outcome
    results: tuple[CaseResult, ...] = ()

    @property
    def noticed_by(self) -> tuple[tuple[str, str], ...]:
        """Id and reason of each case that failed, or that its harness made impossible."""
        return tuple((one.id, one.reason) for one in self.results if one.status in ("failed", "error"))


@dataclass(frozen=True)
class MutationScore:
    """What became of a catalogue over one adapter."""

    adapter: str
    proofs: tuple[Proof, ...]

    @property
    def killed(self) -> int:
        """How many broken stores were noticed by exactly the case that is named for them."""
        return self._count("killed")

    @property
    def all(self) -> int:
        """How many could be shown."""
        return len(self.proofs) - self._count("not_staged")

    def __str__(self) -> str:
        """Give the score, as `68/68` or `68/68, 2 not staged`."""
        missing = self._count("not_staged")
        return f"{self.killed}/{self.all}" + (f", {missing} not staged" if missing else "")

    def _count(self, outcome: Outcome) -> int:
        return sum(proof.outcome == outcome for proof in self.proofs)


async def prove(
    harness_class: Callable[[], MemoryAdapterHarness],
    adapter: str,
    broken: BrokenStore,
    *,
    cases: Sequence[Case] = PROVING,
    seed: int = 0,
) -> Proof:
    """Put one broken store before the cases.

    Args:
        harness_class: Of a full and immediate adapter; its fake is meant.
        adapter: The name of the harness's entry point.
        broken: The fault.
        cases: Those that must notice, or must not.
        seed: Of everything that is drawn.
    """
    harness = harness_class()
    environment: Environment = getattr(harness, "environment", "fake")
    try:
        if broken.needs and not hasattr(await harness.make_store(), broken.needs):
            return Proof(broken, "not_staged")
        results = [
            await run_case(case, harness, adapter, environment, seed=seed, wrap=broken.wrap) for case in cases
        ]
    finally:
        await harness.close()
    return _judged(broken, tuple(one for one in results if one.status != "passed"))


def _judged(broken: BrokenStore, results: tuple[CaseResult, ...]) -> Proof:
    status = {one.id: one.status for one in results}
    noticed = [one for one in results if one.status in ("failed", "error")]
    outcome: Outcome = "survived"
    if not noticed and status.get(broken.case) == "not_staged":
        outcome = "not_staged"
    elif [(one.id, one.status) for one in noticed] == [(broken.case, "failed")]:
        outcome = "killed" if broken.reason in noticed[0].reason else "survived"
    return Proof(broken, outcome, results)


async def mutation_score(
    harness_class: Callable[[], MemoryAdapterHarness],
    adapter: str,
    catalogue: Sequence[BrokenStore] = BROKEN,
    *,
    cases: Sequence[Case] = PROVING,
    seed: int = 0,
) -> MutationScore:
    """Put every broken store of a catalogue before the cases, one after the other."""
    proofs = [await prove(harness_class, adapter, one, cases=cases, seed=seed) for one in catalogue]
    return MutationScore(adapter, tuple(proofs))
