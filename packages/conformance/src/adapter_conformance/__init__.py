"""The conformance kit: it proves every word of an adapter's manifest, and that it would notice a lie."""

from ._case import Case
from .harness import (
    HARNESSES,
    Engine,
    Environment,
    MemoryAdapterHarness,
    StagingHarness,
    harness_entries,
)
from .inventory import ALL_CASES, EXTRAS, INVENTORY_VERSION, MATRIX, inventory_digest
from .report import CaseResult, ClaimSeen, ConformanceReport, LossNamed
from .runner import not_run, run_case, run_conformance

__all__ = [
    "ALL_CASES",
    "EXTRAS",
    "HARNESSES",
    "INVENTORY_VERSION",
    "MATRIX",
    "Case",
    "CaseResult",
    "ClaimSeen",
    "ConformanceReport",
    "Engine",
    "Environment",
    "LossNamed",
    "MemoryAdapterHarness",
    "StagingHarness",
    "harness_entries",
    "inventory_digest",
    "not_run",
    "run_case",
    "run_conformance",
]
