"""The kit proves itself: a catalogue of broken stores, each of which exactly one case must notice.

A broken store passes everything on to a good one, and breaks one thing in one verb. It is killed
when the case that is named for it fails, for the named reason, and no other case does. A wrong
manifest is a broken store too: it is killed when the case that judges the field names it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adapter_core import MemoryAdapterManifest

from ._broken_failures import FAILURES
from ._broken_items import ITEMS
from ._broken_searches import SEARCHES
from ._case import Case
from ._delegate import delegate
from ._faults import BrokenStore, Wrap
from ._run import KIT_FILTERS
from .claims import CLAIMS, Toggle, toggles
from .harness import Environment, MemoryAdapterHarness
from .inventory import ALL_CASES
from .report import CaseResult
from .runner import run_case

__all__ = [
    "BROKEN",
    "PROVING",
    "BrokenStore",
    "MutationScore",
    "Proof",
    "mutation_score",
    "prove",
    "prove_manifest",
]

BROKEN: tuple[BrokenStore, ...] = (*ITEMS, *SEARCHES, *FAILURES)
"""The catalogue. All of its faults show over a full and immediate adapter with every extension."""

PROVING: tuple[Case, ...] = tuple(case for case in ALL_CASES if case.id != "X15")
"""The cases that a broken store is put before: all that are deterministic.

X15, generated items and queries, is left out: it may come upon any of the faults.
"""

Outcome = Literal["killed", "survived", "not_applicable", "not_staged"]

_NOT_SHOWN: tuple[Outcome, ...] = ("not_applicable", "not_staged")

MakeHarness = Callable[[], MemoryAdapterHarness]


@dataclass(frozen=True)
class Proof:
    """What became of one broken store.

    Attributes:
        broken: The broken store.
        outcome: `killed`: exactly the named case failed, for the named reason. `not_applicable`:
            the fault cannot be told from what the adapter declares. `not_staged`: its harness
            cannot stage the named case.
        results: How the cases that did not pass ended.
        why: Why it is not applicable or not staged.
    """

    broken: BrokenStore
    outcome: Outcome
    results: tuple[CaseResult, ...] = ()
    why: str = ""

    @property
    def noticed_by(self) -> tuple[tuple[str, str], ...]:
        """Id and reason of each case that failed, or that its harness made impossible."""
        return tuple((one.id, one.reason) for one in self.results if one.status in ("failed", "error"))

    @property
    def reason(self) -> str:
        """Say in a sentence why the outcome is what it is."""
        if self.outcome == "killed" and self.noticed_by:
            return self.noticed_by[0][1]
        if self.outcome == "survived":
            seen = "; ".join(f"{case}: {reason}" for case, reason in self.noticed_by)
            return f"wanted {self.broken.reason!r}, seen {seen or 'nothing'}"
        return self.why


@dataclass(frozen=True)
class MutationScore:
    """What became of a catalogue over one adapter."""

    adapter: str
    proofs: tuple[Proof, ...]

    @property
    def killed(self) -> int:
        """How many broken stores were noticed by exactly the case that is named for them."""
        return self.count("killed")

    @property
    def all(self) -> int:
        """How many could be shown."""
        return self.killed + self.count("survived")

    def __str__(self) -> str:
        """Give the score, as `68/68` or `68/68, 2 not staged`."""
        text = f"{self.killed}/{self.all}"
        for outcome in _NOT_SHOWN:
            missing = self.count(outcome)
            text += f", {missing} {outcome.replace('_', ' ')}" if missing else ""
        return text

    def count(self, outcome: Outcome) -> int:
        """Count the broken stores with this outcome."""
        return sum(proof.outcome == outcome for proof in self.proofs)


async def prove(
    harness_class: MakeHarness,
    adapter: str,
    broken: BrokenStore,
    *,
    cases: Sequence[Case] = PROVING,
    seed: int = 0,
) -> Proof:
    """Put one broken store before the cases.

    Args:
        harness_class: Of the adapter that the fault is put around; its fake is meant.
        adapter: The name of the harness's entry point.
        broken: The fault.
        cases: Those that must notice, or must not.
        seed: Of everything that is drawn.
    """
    harness = harness_class()
    environment: Environment = getattr(harness, "environment", "fake")
    try:
        good: Any = await harness.make_store()
        if why := broken.not_applicable(good):
            return Proof(broken, "not_applicable", why=why)
        expected = broken.reason_for(good.manifest)
        results = [
            await run_case(case, harness, adapter, environment, seed=seed, wrap=broken.wrap) for case in cases
        ]
    finally:
        await harness.close()
    return _judged(broken, expected, tuple(one for one in results if one.status != "passed"))


def _judged(broken: BrokenStore, expected: str, results: tuple[CaseResult, ...]) -> Proof:
    noticed = [one for one in results if one.status in ("failed", "error")]
    staged = {one.id: one.reason for one in results if one.status == "not_staged"}
    if not noticed and broken.case in staged:
        return Proof(broken, "not_staged", results, staged[broken.case])
    alone = [(one.id, one.status) for one in noticed] == [(broken.case, "failed")]
    killed = alone and expected in noticed[0].reason
    return Proof(broken, "killed" if killed else "survived", results)


async def mutation_score(
    harness_class: MakeHarness,
    adapter: str,
    catalogue: Sequence[BrokenStore] = BROKEN,
    *,
    cases: Sequence[Case] = PROVING,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> MutationScore:
    """Put every broken store of a catalogue before the cases, one after the other.

    Args:
        harness_class: Of the adapter that the faults are put around; its fake is meant.
        adapter: The name of the harness's entry point.
        catalogue: The broken stores.
        cases: Those that must notice, or must not.
        seed: Of everything that is drawn.
        progress: Told the name of each broken store before it is tried.
    """
    proofs: list[Proof] = []
    for broken in catalogue:
        progress(broken.name)
        proofs.append(await prove(harness_class, adapter, broken, cases=cases, seed=seed))
    return MutationScore(adapter, tuple(proofs))


# Wrong manifests


async def prove_manifest(harness_class: MakeHarness, adapter: str, *, seed: int = 0) -> MutationScore:
    """Turn every field of the adapter's manifest to each other value that it may have.

    A wrong manifest is put before the one case that judges its field, which must name the field.
    Where the validator refuses every manifest with the value, its refusal is the kill.
    """
    harness = harness_class()
    try:
        made: Any = getattr(harness, "make_store_with", None)
        store: Any = await (made(filters=KIT_FILTERS) if made else harness.make_store())
        manifest: MemoryAdapterManifest = store.manifest
    finally:
        await harness.close()
    proofs = [
        await _prove_toggle(harness_class, adapter, toggle, broken, seed)
        for toggle, broken in _wrong_manifests(manifest)
    ]
    return MutationScore(adapter, tuple(proofs))


async def _prove_toggle(
    harness_class: MakeHarness, adapter: str, toggle: Toggle, broken: BrokenStore, seed: int
) -> Proof:
    if toggle.manifest is None:
        return Proof(broken, "killed", why=f"the validator refuses it: {toggle.refusal}")
    judge = [case for case in ALL_CASES if case.id == broken.case]
    return await prove(harness_class, adapter, broken, cases=judge, seed=seed)


def _wrong_manifests(manifest: MemoryAdapterManifest) -> Iterator[tuple[Toggle, BrokenStore]]:
    for toggle in toggles(manifest):
        yield (
            toggle,
            BrokenStore(
                f"{toggle.field}={toggle.value}",
                "manifest",
                f"declares {toggle.field} as {toggle.value}",
                CLAIMS[toggle.field].case,
                f"{toggle.field}: declared ",
                _declaring(toggle.manifest),
            ),
        )


def _declaring(manifest: MemoryAdapterManifest | None) -> Wrap:
    return lambda store: delegate(store, manifest=manifest)
