"""What the commands share: arguments, usage errors, and the run behind them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NoReturn

import typer

from adapter_conformance._case import Case
from adapter_conformance.harness import Environment
from adapter_conformance.inventory import ALL_CASES
from adapter_conformance.progress import LateProgress
from adapter_conformance.session import ORDINARY, Exit, Session, find_targets, run_targets


class Where(StrEnum):
    """The environments, as typer wants them."""

    FAKE = "fake"
    EMBEDDED = "embedded"
    LIVE = "live"


Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Adapters, each with its variants; none: all."),
]


def usage_error(message: str) -> NoReturn:
    """End the command as wrongly used."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(Exit.USAGE)


def chosen_environments(given: Sequence[Where] | None) -> list[Environment]:
    """Give the environments that were asked for, or those that need no service."""
    return [where.value for where in given] if given else list(ORDINARY)


def run_named(
    names: Sequence[str] | None,
    environments: Sequence[Where] | None,
    *,
    cases: Sequence[Case] = ALL_CASES,
    seed: int = 0,
) -> Session:
    """Run the installed harnesses by name, with progress; faults are told on stderr."""
    chosen = chosen_environments(environments)
    try:
        targets, faults = find_targets(names or (), chosen)
    except LookupError as error:
        usage_error(str(error))
    with LateProgress(len(targets) * len(cases)) as progress:
        session = run_targets(targets, cases=cases, seed=seed, progress=progress)
    session.faults[:0] = faults
    for fault in session.faults:
        typer.echo(f"Error: {fault}", err=True)
    if not targets and not faults:
        wanted = ", ".join(names) if names else "any adapter"
        typer.echo(f"Nothing to run: no harness of {wanted} for {' or '.join(chosen)}.", err=True)
    return session
