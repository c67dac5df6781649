"""`fidelity compare`: the profiles of the installed adapters, side by side."""

from typing import Annotated, Literal

import typer

from adapter_conformance.document import to_json
from adapter_conformance.released import add_released
from adapter_conformance.render import console_for, markdown, print_comparison

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
    session = run_named(names, environment)
    for fault in add_released(session, chosen_environments(environment)):
        typer.echo(f"Error: {fault}", err=True)
    if style == "json":
        typer.echo(to_json(session), nl=False)
    elif session.reports and style == "markdown":
        typer.echo(markdown(session.reports), nl=False)
    elif session.reports:
        print_comparison(console_for(), session.reports)
    raise typer.Exit(session.exit)
