"""`fidelity check`: the matrix in throw-away namespaces of the user's own store."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import typer

from adapter_conformance._case import Case
from adapter_conformance.document import to_json
from adapter_conformance.progress import LateProgress
from adapter_conformance.render import console_for, print_verdicts
from adapter_conformance.session import Exit, Session, Target, printable, run_targets
from adapter_conformance.url_harness import RESERVED, UrlHarness, displayed, version_of

from ._common import (
    CaseIds,
    Options,
    Seed,
    chosen_cases,
    opening,
    parsed_options,
    tell_if_partial,
    usage_error,
)

TOO_HEAVY = {"X09": "it sets up twelve stores at once"}
"""Cases that are left out unless they are asked for by id."""

MOST_WRITES = 3_000
MOST_ITEMS = 250
"""Bounds of what a whole check writes, and of what is stored at a time; a test counts."""


def check(
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as sqlite:///memories.db.")],
    *,
    option: Options = None,
    seed: Seed = 0,
    case: CaseIds = None,
    style: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
) -> None:
    """Check your own store, in namespaces that are thrown away.

    Says first what it makes there. Nothing else in the store is read or changed. It cleans up at the end, also
    after Ctrl-C (exit code 130).
    """
    cases = [one for one in chosen_cases(case) if case or one.id not in TOO_HEAVY]
    options = parsed_options(option)
    if reserved := sorted(RESERVED & options.keys()):
        usage_error(f"set by the check itself: {', '.join(reserved)}")
    with opening(url, options):
        harness = UrlHarness(url, options)
    for line in _plan(harness, url, whole=not case):
        typer.echo(line, err=True)
    try:
        session = _run(harness, url, cases, seed)
    except KeyboardInterrupt:
        _tell_cleaned(harness, interrupted=True)
        raise typer.Exit(Exit.INTERRUPTED) from None
    _tell(session, harness, url, style)
    raise typer.Exit(Exit.FALSE if harness.empties and harness.left else session.exit)


# Before


def _plan(harness: UrlHarness, url: str, *, whole: bool) -> Iterator[str]:
    """Say what will be made, how much of it, and what becomes of it."""
    yield f"Checks {printable(harness.adapter)} at {displayed(url)}. What it makes there:"
    for line in harness.creates or [
        "what the adapter needs, if it is missing: a file, or tables and indexes"
    ]:
        yield f"- {printable(line)}"
    yield f"- up to 20 namespaces, each named {harness.prefix}-..."
    yield (
        f"- at most {MOST_WRITES} small writes, one after the other but for twelve at once, "
        f"and {MOST_ITEMS} items at a time"
    )
    if harness.empties:
        yield "It removes its namespaces at the end, also after Ctrl-C. It touches nothing else."
    else:
        yield "This store cannot delete: its namespaces stay behind, and are named at the end."
    if whole:
        yield from (f"Left out: {name}, since {why}." for name, why in TOO_HEAVY.items())


# The run


def _run(harness: UrlHarness, url: str, cases: Sequence[Case], seed: int) -> Session:
    begun = False
    with LateProgress(len(cases)) as progress:

        def begin(target: Target, case: Case) -> None:
            nonlocal begun
            harness.begin()
            if not begun:
                typer.echo("Connected. Running the cases.", err=True)
            begun = True
            progress(target, case)

        target = Target(harness.adapter, harness.environment, lambda: harness, version_of(url))
        return run_targets([target], cases=cases, seed=seed, progress=begin)


# After


def _tell(session: Session, harness: UrlHarness, url: str, style: str) -> None:
    for fault in session.faults:
        typer.echo(f"Error: {fault}", err=True)
    reached = [report for report in session.reports if not report.not_run]
    for report in session.reports:
        if report.not_run:
            why = printable(report.not_run).removeprefix("MemoryAdapterUnavailable: ")
            typer.echo(f"Error: cannot check {displayed(url)}: {why}", err=True)
    if reached:
        _tell_cleaned(harness, interrupted=False)
    if style == "json":
        typer.echo(to_json(session), nl=False)
    elif reached:
        print_verdicts(console_for(), reached)
    tell_if_partial(session)


def _tell_cleaned(harness: UrlHarness, *, interrupted: bool) -> None:
    begin = "Interrupted. " if interrupted else ""
    if harness.left:
        typer.echo(f"{begin}Left behind, namespaces:", err=True)
        for name in harness.left:
            typer.echo(f"- {json.dumps(name)}", err=True)
    elif harness.drops:
        typer.echo(f"{begin}Removed its namespaces.", err=True)
    else:
        typer.echo(f"{begin}Emptied its namespaces; their names may remain.", err=True)
