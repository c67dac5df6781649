"""Running the harnesses of several adapters, one after the other, and what it all comes to."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, Literal, cast

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

from ._case import Case
from ._installed import installed_drivers
from ._run import told
from .harness import (
    ENVIRONMENTS,
    Environment,
    MemoryAdapterHarness,
    harness_entries,
    not_installed,
    selects,
)
from .inventory import ALL_CASES
from .live import NotRun, Servers, needs_server
from .report import ConformanceReport, labelled
from .runner import not_run, run_conformance

ORDINARY: tuple[Environment, ...] = ("fake", "embedded")
"""The environments that need no service."""


Require = Literal["none", "any", "all"]
"""How many of the runs must judge something."""


class Exit(IntEnum):
    """How every command ends."""

    HOLDS = 0
    FALSE = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


class BadHarness(Exception):
    """An entry point does not give harness classes; the adapter was not judged."""


@dataclass(frozen=True)
class Target:
    """One harness class of one adapter.

    Attributes:
        variant: Of the class; empty if it names none.
        drivers: The client libraries that its adapter requires, with their versions.
        image: Of the container in which its server runs, by name and digest.
    """

    adapter: str
    environment: Environment
    make: Callable[..., MemoryAdapterHarness]
    version: str = ""
    variant: str = ""
    drivers: tuple[str, ...] = ()
    image: str = ""

    @property
    def label(self) -> str:
        """The adapter with its variant, such as `redis-keyspace`."""
        return labelled(self.adapter, self.variant)

    def ready(self, servers: Servers) -> "Target":
        """Make sure that it can run here, and bind a live one to its server.

        Raises:
            NotRun: Its class says that it cannot run on this machine, or there is no server.
        """
        ask: Any = getattr(self.make, "not_run_reason", None)
        reason: str | None = None if ask is None else ask()
        if reason is not None:
            raise NotRun(reason)
        if not needs_server(self.make):
            return self
        server = servers.server_for(self.adapter, self.make)
        return replace(self, make=partial(self.make, server.url), image=server.image)


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


def no_live(names: Iterable[str], session: Session) -> list[str]:
    """Give the names that stand for no live harness at all, neither theirs nor that of a variant."""
    known = [report.label for report in session.reports if report.environment == "live"]
    known += [fault.adapter for fault in session.faults]
    return [name for name in names if not any(selects(name, one) for one in known)]


def missing(session: Session, *, named: bool, require: Require) -> list[str]:
    """Give the runs that were required and did not happen, such as `postgres live`.

    Args:
        session: What ran.
        named: Whether the adapters were asked for by name; in a live run they then must run.
        require: `all`: each of them must run, in every environment that was asked for.
    """
    return [
        f"{report.label} {report.environment}"
        for report in session.reports
        if not (report.released or _judged(report))
        and (require == "all" or (named and report.environment == "live"))
    ]


def exit_of(session: Session, lacking: Collection[str], require: Require) -> Exit:
    """Say how a command ends: a false claim comes first, then what is missing."""
    if session.exit is Exit.FALSE:
        return Exit.FALSE
    if lacking:
        return Exit.UNREACHABLE
    return Exit.HOLDS if require == "none" else session.exit


def is_partial(report: ConformanceReport) -> bool:
    """Whether cases were left out, so that the report can never be certified."""
    return not report.not_run and len(report.matrix) < report.required


def is_false(report: ConformanceReport) -> bool:
    """Whether a claim did not hold: a case failed, or a whole run is not certified."""
    if report.not_run or report.released:
        return False
    if any(case.status in ("failed", "error") for case in report.cases):
        return True
    return not report.certified and not is_partial(report)


def _judged(report: ConformanceReport) -> bool:
    return not report.released and any(case.status != "not_staged" for case in report.cases)


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
    drivers = installed_drivers(entry.dist)
    return [replace(target_of(entry.name, one, version), drivers=drivers) for one in classes]


def target_of(adapter: str, harness: Any, version: str = "") -> Target:
    """Make the target of a harness class.

    Raises:
        BadHarness: It is not a class, or has no known environment.
    """
    environment = getattr(harness, "environment", "fake")
    if not isinstance(harness, type) or environment not in ENVIRONMENTS:
        raise BadHarness(f"{harness!r} is not a harness class with a known environment")
    kind = cast("type[MemoryAdapterHarness]", harness)
    return Target(adapter, environment, kind, version, variant=getattr(kind, "variant", ""))


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
    wanted = list(names)
    targets: list[Target] = []
    faults: list[Fault] = []
    for entry in harness_entries(wanted):
        try:
            targets += load(entry)
        except BadHarness as bad:
            faults.append(Fault(entry.name, None, str(bad)))
    known = [target.label for target in targets]
    for name in wanted:
        if not any(selects(name, one) for one in (*known, *(fault.adapter for fault in faults))):
            raise not_installed(name, known)
    chosen = [
        target
        for target in targets
        if target.environment in environments
        and (not wanted or any(selects(n, target.label) for n in wanted))
    ]
    return sorted(chosen, key=lambda t: (t.label, ENVIRONMENTS.index(t.environment))), faults


def run_targets(
    targets: Iterable[Target],
    *,
    cases: Sequence[Case] = ALL_CASES,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[Target, Case], None] = lambda _target, _case: None,
    tell: Callable[[str], None] = lambda _: None,
    ended: Callable[[ConformanceReport], None] = lambda _: None,
) -> Session:
    """Run each harness on an event loop of its own; one that breaks does not stop the others.

    Args:
        targets: From `find_targets`.
        cases: Which cases.
        seed: Of all that is drawn.
        options: Constructor options of every store.
        progress: Called before each case.
        tell: Told in one line what takes long before the first case, such as a container.
        ended: Called with each report as soon as it is there.
    """
    session = Session()
    with Servers(tell=tell) as servers:
        for target in targets:
            try:
                report = _report(target, servers, cases, seed, options, progress)
            except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
                session.faults.append(Fault(target.label, target.environment, safely_told(error)))
            else:
                session.reports.append(report)
                ended(report)
    return session


def _report(
    target: Target,
    servers: Servers,
    cases: Sequence[Case],
    seed: int,
    options: Mapping[str, Any] | None,
    progress: Callable[[Target, Case], None],
) -> ConformanceReport:
    facts = {"variant": target.variant, "drivers": target.drivers, "adapter_version": target.version}
    try:
        ready = target.ready(servers)
    except NotRun as why:
        return not_run(target.adapter, target.environment, str(why)).model_copy(update=facts)
    report = asyncio.run(_run(ready, cases, seed, options, progress))
    return report.model_copy(update={**facts, "image": ready.image})


async def _run(
    target: Target,
    cases: Sequence[Case],
    seed: int,
    options: Mapping[str, Any] | None,
    progress: Callable[[Target, Case], None],
) -> ConformanceReport:
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
            options=options,
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
