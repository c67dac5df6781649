"""The results that an adapter was released with: its wheel carries them, for where nothing can be run."""

from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

from .document import reports_from_json
from .harness import Environment, harness_entries
from .report import ConformanceReport
from .session import Fault, Session

RESULTS = "conformance.json"
"""The file in the adapter's package: what `fidelity run --output` wrote when the wheel was built."""


def add_released(session: Session, environments: Collection[Environment]) -> list[Fault]:
    """Put beside each run that could not be made the results that its adapter was released with.

    They count neither for nor against the adapter: nobody ran them here.

    Args:
        session: What ran; it is added to.
        environments: Those that were asked for.

    Returns:
        The adapters whose results file is damaged. They are in the session too.
    """
    known = {entry.name: entry for entry in harness_entries()}
    lacking = {(r.adapter, r.variant, r.environment) for r in session.reports if r.not_run}
    unloaded = {fault.adapter for fault in session.faults if fault.environment is None}
    found: list[ConformanceReport] = []
    damaged: list[Fault] = []
    for adapter in sorted({name for name, *_ in lacking} | unloaded):
        try:
            reports = list(released_with(known[adapter])) if adapter in known else []
        except (OSError, ValueError) as error:
            why = f"the results that it was released with cannot be read ({type(error).__name__})"
            damaged.append(Fault(adapter, None, why))
            continue
        found += [
            one
            for one in reports
            if (one.adapter, one.variant, one.environment) in lacking
            or (adapter in unloaded and one.environment in environments)
        ]
    session.reports.extend(found)
    session.faults.extend(damaged)
    return damaged


def released_with(entry: EntryPoint) -> Iterator[ConformanceReport]:
    """Read what an adapter's distribution carries; nothing is imported.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no results file of this schema.
    """
    if entry.dist is None:
        return
    path = Path(str(entry.dist.locate_file(entry.module.partition(".")[0])), RESULTS)
    if not path.is_file():
        return
    for report in reports_from_json(path.read_text("utf-8")):
        if report.adapter == entry.name and not report.not_run:
            yield report.model_copy(update={"released": True})
