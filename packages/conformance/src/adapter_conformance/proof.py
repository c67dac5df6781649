"""The self-proof over adapters: the catalogue of broken stores, and the manifest turned field by field."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from .broken import BROKEN, PROVING, BrokenStore, MutationScore, Proof, mutation_score, prove_manifest
from .harness import Environment, MemoryAdapterHarness
from .report import CaseResult
from .runner import run_case
from .session import Exit, Fault, Target, safely_told

__all__ = [
    "LEAST",
    "PROOF_SCHEMA_VERSION",
    "AdapterProof",
    "Proved",
    "proof_document",
    "prove_adapter",
    "prove_targets",
]

LEAST = 40
"""How many broken stores must be shown over an adapter for its proof to count."""

PROOF_SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""


@dataclass(frozen=True)
class AdapterProof:
    """What the kit noticed of all that can be wrong with one adapter.

    Attributes:
        adapter: The entry point's name.
        version: The adapter's distribution and version; empty if it is not known.
        unbroken: The cases that fail with no fault at all; the proof is worth nothing then.
        broken: What became of the broken stores.
        manifests: What became of the wrong manifests.
    """

    adapter: str
    version: str
    unbroken: tuple[CaseResult, ...]
    broken: MutationScore
    manifests: MutationScore

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """Every broken store and every wrong manifest."""
        return (*self.broken.proofs, *self.manifests.proofs)

    @property
    def total(self) -> MutationScore:
        """The mutation score of the adapter, over all of them."""
        return MutationScore(self.adapter, self.proofs)

    def shortfalls(self, least: int = LEAST) -> list[str]:
        """Say why it is no proof; empty: it is one."""
        found = [f"{one.id} fails without a fault: {one.reason}" for one in self.unbroken]
        found += [f"{one.broken.name} survives" for one in self.proofs if one.outcome == "survived"]
        if self.broken.killed < least:
            found.append(f"{self.broken.killed} broken stores are killed, fewer than {least}")
        return found


async def prove_adapter(
    harness_class: Callable[[], MemoryAdapterHarness],
    adapter: str,
    *,
    version: str = "",
    catalogue: Sequence[BrokenStore] = BROKEN,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> AdapterProof:
    """Prove the kit over one adapter.

    Args:
        harness_class: Its fake: the one that can stage everything.
        adapter: The name of the harness's entry point.
        version: The adapter's distribution and version, for the document.
        catalogue: The broken stores.
        seed: Of everything that is drawn.
        progress: Told the name of each broken store before it is tried.
    """
    return AdapterProof(
        adapter,
        version,
        await _failing(harness_class, adapter, seed),
        await mutation_score(harness_class, adapter, catalogue, seed=seed, progress=progress),
        await prove_manifest(harness_class, adapter, seed=seed),
    )


async def _failing(
    harness_class: Callable[[], MemoryAdapterHarness], adapter: str, seed: int
) -> tuple[CaseResult, ...]:
    harness = harness_class()
    environment: Environment = getattr(harness, "environment", "fake")
    try:
        results = [await run_case(case, harness, adapter, environment, seed=seed) for case in PROVING]
    finally:
        await harness.close()
    return tuple(one for one in results if one.status in ("failed", "error"))


@dataclass(frozen=True)
class Proved:
    """What the self-proof over several adapters gave."""

    adapters: list[AdapterProof] = field(default_factory=list[AdapterProof])
    faults: list[Fault] = field(default_factory=list[Fault])

    @property
    def exit(self) -> Exit:
        """How a command ends that made it."""
        if self.faults or any(one.shortfalls() for one in self.adapters):
            return Exit.FALSE
        return Exit.HOLDS if self.adapters else Exit.UNREACHABLE


def prove_targets(
    targets: Iterable[Target],
    *,
    seed: int = 0,
    progress: Callable[[Target, str], None] = lambda _target, _name: None,
) -> Proved:
    """Prove the kit over each fake, on an event loop of its own; one that breaks stops no other."""
    proved = Proved()
    for target in targets:

        def begin(name: str, target: Target = target) -> None:
            progress(target, name)

        try:
            made = asyncio.run(
                prove_adapter(target.make, target.adapter, version=target.version, seed=seed, progress=begin)
            )
            proved.adapters.append(replace(made, adapter=target.label))
        except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
            proved.faults.append(Fault(target.adapter, target.environment, safely_told(error)))
    return proved


def proof_document(proved: Proved) -> dict[str, Any]:
    """Give the results as a JSON document."""
    return {
        "schema_version": PROOF_SCHEMA_VERSION,
        "kit_version": version("adapter-conformance"),
        "adapters": [
            {
                "adapter": one.adapter,
                "adapter_version": one.version,
                "score": str(one.total),
                "killed": one.total.killed,
                "all": one.total.all,
                "holds": not one.shortfalls(),
                "shortfalls": one.shortfalls(),
                "mutants": [_mutant(proof) for proof in one.proofs],
            }
            for one in proved.adapters
        ],
        "errors": [
            {"adapter": fault.adapter, "environment": fault.environment, "reason": fault.reason}
            for fault in proved.faults
        ],
    }


def _mutant(proof: Proof) -> dict[str, Any]:
    return {
        "name": proof.broken.name,
        "verb": proof.broken.verb,
        "fault": proof.broken.fault,
        "case": proof.broken.case,
        "outcome": proof.outcome,
        "reason": proof.reason,
        "noticed_by": [{"case": case, "reason": reason} for case, reason in proof.noticed_by],
    }
