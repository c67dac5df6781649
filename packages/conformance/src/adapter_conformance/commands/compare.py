"""`fidelity compare`: the profiles of the installed adapters, side by side."""

import sys
from typing import Annotated, Literal

import typer

from adapter_conformance.document import to_json
from adapter_conformance.released import add_released
from adapter_conformance.render import console_for, markdown, print_comparison
from adapter_conformance.report import ConformanceReport
from adapter_conformance.session import printable

from ._common import Names, Where, chosen_environments, run_named


def compare(
    names: Names = None,
    *,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
    environment: Annotated[
        list[Where] | None,
        typer.Option(help="Only this environment; repeatable. Default: fake and embedded."),
    ] = None,
) -> None:
    """Show side by side what adapters keep, with the proof.

    Where a run cannot be made here, the results that the adapter was released with stand beside it.
    """
    session = run_named(names, environment, ended=_tell_ended)
    for fault in add_released(session, chosen_environments(environment)):
        typer.echo(f"Error: {fault}", err=True)
    if style == "json":
        typer.echo(to_json(session), nl=False)
    elif session.reports and style == "markdown":
        typer.echo(markdown(session.reports), nl=False)
    elif session.reports:
        print_comparison(console_for(), session.reports)
    raise typer.Exit(session.exit)


def _tell_ended(report: ConformanceReport) -> None:
    """Say that it goes on, where no progress is shown."""
    if not sys.stderr.isatty():
        typer.echo(f"{report.label} {report.environment}: {printable(report.score)}", err=True)
