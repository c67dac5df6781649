"""Run the inventory over a harness. A plain library: no pytest is needed."""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from adapter_core import DeclaresDurability, MemoryAdapterManifest, extensions_of

from ._case import Case
from ._run import CaseFailed, HarnessFault, NotStaged, Run, projection_of, text_meaning_of, told
from .harness import Environment, MemoryAdapterHarness
from .inventory import ALL_CASES, MATRIX, inventory_digest
from .report import CaseResult, ClaimSeen, ConformanceReport, LossNamed, Status

CASE_SECONDS = 240.0
"""How long one case may take before it fails: a hung adapter must not hang the run."""


async def run_conformance(
    harness: MemoryAdapterHarness,
    *,
    adapter: str | None = None,
    adapter_version: str = "",
    cases: Sequence[Case] = ALL_CASES,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    wrap: Callable[[Any], Any] = lambda store: store,
    progress: Callable[[Case], None] = lambda _: None,
) -> ConformanceReport:
    """Run the cases over one harness, and close it.

    Args:
        harness: Over a disposable namespace; it is emptied many times.
        adapter: The name that the manifest must have: that of the adapter's entry point. Without
            it the harness's attribute `adapter` is taken.
        adapter_version: The adapter's distribution and version, for the report.
        cases: Which cases; a report without the whole matrix is not certified. There may be
            further ones, with ids of their own.
        seed: Of everything that is drawn. The same seed draws the same.
        options: Constructor options of every store, such as `{"coalesce": False}`.
        wrap: Put around every store, to prove that the kit would notice a fault.
        progress: Called before each case.

    Returns:
        The report. It is the harness's fault and not the caller's when a hook fails: such a case
        ends as `error`.

    Raises:
        ValueError: A case has the id of one of the inventory, and is another.
    """
    ours = {case.id: case for case in ALL_CASES}
    for case in cases:
        if ours.get(case.id, case) != case:
            raise ValueError(f"{case.id} is a case of the inventory, which is final")
    name = adapter or str(getattr(harness, "adapter", "unknown"))
    environment: Environment = getattr(harness, "environment", "fake")
    results: list[CaseResult] = []
    try:
        facts = await _facts(harness, wrap)
        for case in cases:
            progress(case)
            results.append(
                await run_case(case, harness, name, environment, seed=seed, options=options, wrap=wrap)
            )
    finally:
        await harness.close()
    return ConformanceReport(
        adapter=name,
        adapter_version=adapter_version,
        environment=environment,
        kit_version=version("adapter-conformance"),
        inventory_digest=inventory_digest(),
        seed=seed,
        options={name: _told_option(value) for name, value in (options or {}).items()},
        date=datetime.now(UTC).date().isoformat(),
        cases=tuple(results),
        required=len(MATRIX),
        **facts,
    )


async def run_case(
    case: Case,
    harness: MemoryAdapterHarness,
    adapter: str,
    environment: Environment,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    wrap: Callable[[Any], Any] = lambda store: store,
) -> CaseResult:
    """Run one case over a harness that stays open, from an empty namespace."""
    run = Run(harness, adapter, environment, wrap, seed, options or {})
    status: Status = "passed"
    reason = ""
    limit: asyncio.Timeout | None = None
    begin = time.perf_counter()
    try:
        try:
            await run.hook("reset")()
            async with asyncio.timeout(CASE_SECONDS) as limit:
                await case.body(run)
        except BaseException:
            with suppress(Exception):  # what the case saw counts, not what closing says then
                await run.close()
            raise
        await run.close()
    except CaseFailed as failed:
        status, reason = "failed", failed.reason
    except NotStaged as missing:
        status, reason = "not_staged", str(missing)
    except HarnessFault as fault:
        status, reason = "error", str(fault)
    except Exception as error:  # noqa: BLE001 - what a store must not raise is a finding
        status, reason = "failed", f"raised {told(error)}"
        if limit is not None and limit.expired():
            reason = f"not finished within {CASE_SECONDS:.0f} s"
    return CaseResult(
        id=case.id,
        name=case.name,
        status=status,
        reason=reason,
        claims=tuple(ClaimSeen(field=c.field, declared=c.declared, observed=c.observed) for c in run.claims),
        notes=tuple(run.notes),
        figures=run.figures,
        seconds=round(time.perf_counter() - begin, 3),
    )


def not_run(adapter: str, environment: Environment, why: str) -> ConformanceReport:
    """Make the report of a run that could not be made: the row that says why."""
    return ConformanceReport(
        adapter=adapter,
        environment=environment,
        kit_version=version("adapter-conformance"),
        inventory_digest=inventory_digest(),
        seed=0,
        date=datetime.now(UTC).date().isoformat(),
        not_run=why,
        required=len(MATRIX),
    )


async def _facts(harness: MemoryAdapterHarness, wrap: Callable[[Any], Any]) -> dict[str, Any]:
    """Ask the adapter and the engine what they are."""
    engine_of: Callable[[], Awaitable[Any]] | None = getattr(harness, "engine", None)
    engine = await engine_of() if engine_of is not None else None
    store = wrap(await harness.make_store())
    try:
        facts = {**_store_facts(store), **_engine_facts(engine)}
    finally:
        await _closed(store)
    return {**facts, "text_meaning_with": await _text_meanings(harness)}


async def _text_meanings(harness: Any) -> dict[str, str]:
    """Ask what text means to a store with one of the options that the harness names."""
    found: dict[str, str] = {}
    for option, value in getattr(harness, "text_options", {}).items():
        store = await harness.make_store_with(**{option: value})
        found[option] = text_meaning_of(store)
        await _closed(store)
    return found


async def _closed(store: Any) -> None:
    close = getattr(store, "close", None)
    if close is not None:
        await close()


def _engine_facts(engine: Any) -> dict[str, Any]:
    if engine is None:
        return {}
    return {
        "engine": engine.name,
        "engine_version": engine.version,
        "engine_note": engine.note,
    }


def _store_facts(store: Any) -> dict[str, Any]:
    manifest = getattr(store, "manifest", None)
    if not isinstance(manifest, MemoryAdapterManifest):
        return {}
    text = json.dumps(_plain(manifest.model_dump()), sort_keys=True)
    return {
        "manifest": _plain(manifest.model_dump()),
        "manifest_digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "losses": tuple(
            LossNamed(
                name=loss.name,
                field=loss.field,
                operation=loss.operation,
                description=loss.description,
            )
            for loss in projection_of(store).losses
        ),
        "durability": store.durability if isinstance(store, DeclaresDurability) else "",
        "extensions": tuple(extensions_of(store)),
        "text_meaning": text_meaning_of(store),
    }


def _told_option(value: Any) -> str:
    """Show a switch or a number; a text may be a password."""
    return str(value) if value is None or isinstance(value, bool | int | float) else "given"


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: sorted(value) if isinstance(value, frozenset) else value  # pyright: ignore[reportUnknownArgumentType]
        for name, value in values.items()
    }
