"""Running the harnesses of several adapters, one after the other, and what it all comes to."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from importlib.metadata import EntryPoint
from typing import Any, cast

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from ._case import Case
from ._run import told
from .harness import ENVIRONMENTS, Environment, MemoryAdapterHarness, harness_entries
from .inventory import ALL_CASES
from .report import ConformanceReport
from .runner import not_run, run_conformance

ORDINARY: tuple[Environment, ...] = ("fake", "embedded")
"""The environments that need no service."""


class Exit(IntEnum):
    """How every command ends."""

    HOLDS = 0
    FALSE = 1
    USAGE = 2
    UNREACHABLE = 3


class BadHarness(Exception):
    """An entry point does not give harness classes; the adapter was not judged."""


@dataclass(frozen=True)
class Target:
    """One harness class of one adapter."""

    adapter: str
    environment: Environment
    make: Callable[[], MemoryAdapterHarness]
    version: str = ""

    def not_run_reason(self) -> str | None:
        """Ask the class, if it has the optional hook, why it cannot run on this machine."""
        ask: Any = getattr(self.make, "not_run_reason", None)
        return None if ask is None else ask()


@dataclass(frozen=True)
class Fault:
    """A harness that broke outside any case, so that there is no report."""

    adapter: str
    environment: Environment | None
    reason: str

    def __str__(self) -> str:
        where = f"{self.adapter} {self.environment}" if self.environment else self.adapter
        return printable(f"{where}: {self.reason}")


@dataclass(frozen=True)
class Session:
    """What several runs gave."""

    reports: list[ConformanceReport] = field(default_factory=list[ConformanceReport])
    faults: list[Fault] = field(default_factory=list[Fault])

    @property
    def exit(self) -> Exit:
        """How a command ends that ran them."""
        if self.faults or any(map(is_false, self.reports)):
            return Exit.FALSE
        return Exit.HOLDS if any(map(_judged, self.reports)) else Exit.UNREACHABLE


def is_partial(report: ConformanceReport) -> bool:
    """Whether cases were left out, so that the report can never be certified."""
    return not report.not_run and len(report.matrix) < report.required


def is_false(report: ConformanceReport) -> bool:
    """Whether a claim did not hold: a case failed, or a whole run is not certified."""
    if report.not_run:
        return False
    if any(case.status in ("failed", "error") for case in report.cases):
        return True
    return not report.certified and not is_partial(report)


def _judged(report: ConformanceReport) -> bool:
    return any(case.status != "not_staged" for case in report.cases)


def load(entry: EntryPoint) -> list[Target]:
    """Load the harness classes of an entry point.

    Raises:
        BadHarness: It cannot be imported, or is no sequence of harness classes.
    """
    try:
        made: Any = entry.load()
    except Exception as error:
        raise BadHarness(f"its harness cannot be loaded: {safely_told(error)}") from error
    try:
        classes: list[Any] = list(made)
    except TypeError:
        classes = []
    if not classes:
        raise BadHarness(f"{entry.value} is not a sequence of harness classes")
    version = f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
    return [target_of(entry.name, one, version) for one in classes]


def target_of(adapter: str, harness: Any, version: str = "") -> Target:
    """Make the target of a harness class.

    Raises:
        BadHarness: It is not a class, or has no known environment.
    """
    environment = getattr(harness, "environment", "fake")
    if not isinstance(harness, type) or environment not in ENVIRONMENTS:
        raise BadHarness(f"{harness!r} is not a harness class with a known environment")
    return Target(adapter, environment, cast("type[MemoryAdapterHarness]", harness), version)


def find_targets(
    names: Iterable[str] = (), environments: Collection[Environment] = ORDINARY
) -> tuple[list[Target], list[Fault]]:
    """Find the installed harnesses, and those that cannot be loaded.

    Args:
        names: Only these adapters and their variants; none: all.
        environments: Only these environments.

    Raises:
        LookupError: No harness is installed for one of the names.
    """
    targets: list[Target] = []
    faults: list[Fault] = []
    for entry in harness_entries(names):
        try:
            targets += load(entry)
        except BadHarness as bad:
            faults.append(Fault(entry.name, None, str(bad)))
    chosen = [target for target in targets if target.environment in environments]
    return sorted(chosen, key=lambda t: (t.adapter, ENVIRONMENTS.index(t.environment))), faults


def run_targets(
    targets: Iterable[Target],
    *,
    cases: Sequence[Case] = ALL_CASES,
    seed: int = 0,
    progress: Callable[[Target, Case], None] = lambda _target, _case: None,
) -> Session:
    """Run each harness on an event loop of its own; one that breaks does not stop the others."""
    session = Session()
    for target in targets:
        try:
            session.reports.append(asyncio.run(_run(target, cases, seed, progress)))
        except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
            session.faults.append(Fault(target.adapter, target.environment, safely_told(error)))
    return session


async def _run(
    target: Target, cases: Sequence[Case], seed: int, progress: Callable[[Target, Case], None]
) -> ConformanceReport:
    reason = target.not_run_reason()
    if reason is not None:
        return not_run(target.adapter, target.environment, reason)
    begun: list[Case] = []

    def begin(case: Case) -> None:
        begun.append(case)
        progress(target, case)

    try:
        return await run_conformance(
            target.make(),
            adapter=target.adapter,
            adapter_version=target.version,
            cases=cases,
            seed=seed,
            progress=begin,
        )
    except MemoryAdapterUnavailable as error:
        # A live service that never answered was not judged; a fake has no such excuse.
        if begun or target.environment != "live":
            raise
        return not_run(target.adapter, target.environment, safely_told(error))


def safely_told(error: BaseException) -> str:
    """Show an error on one line. Foreign errors go without their text: it may hold a password.

    When closing fails after something else did, both are named.
    """
    if isinstance(error, MemoryAdapterError | ImportError):
        text = f"{type(error).__name__}: {error}"
    else:
        text = told(error)
    before = None if error.__suppress_context__ else error.__context__
    return printable(f"{text}, after {told(before)}" if before else text)


def printable(text: str) -> str:
    """Put a text on one line, with escapes for what a terminal would obey or could not show."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
