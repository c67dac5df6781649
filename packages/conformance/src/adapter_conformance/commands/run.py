"""`fidelity run`: the verdict on each adapter, with every reason."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from adapter_conformance.document import to_json
from adapter_conformance.render import console_for, print_verdicts
from adapter_conformance.session import Require, exit_of, missing

from ._common import (
    CaseIds,
    Names,
    Options,
    Seed,
    Where,
    chosen_cases,
    parsed_options,
    run_named,
    tell_if_partial,
    usage_error,
)


def run(
    names: Names = None,
    *,
    environment: Annotated[
        list[Where] | None,
        typer.Option(help="Only this environment; repeatable. Default: fake and embedded."),
    ] = None,
    seed: Seed = 0,
    case: CaseIds = None,
    style: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    option: Options = None,
    require: Annotated[
        Require,
        typer.Option(
            help="What must have run: none, any, or all. A backend named for a live run always must."
        ),
    ] = "any",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the JSON document there too.")
    ] = None,
) -> None:
    """Say for each adapter whether its claims hold, and why not."""
    cases = chosen_cases(case)
    _check_output(output)
    session = run_named(names, environment, cases=cases, seed=seed, options=parsed_options(option))
    document = to_json(session)
    _write(output, document)
    if style == "json":
        typer.echo(document, nl=False)
    elif session.reports:
        print_verdicts(console_for(), session.reports)
    tell_if_partial(session)
    lacking = missing(session, named=bool(names), require=require)
    if lacking:
        typer.echo(f"Required, but not run: {', '.join(lacking)}.", err=True)
    if output is not None:
        typer.echo(f"Results: {output}", err=True)
    raise typer.Exit(exit_of(session, lacking, require))


def _check_output(output: Path | None) -> None:
    """Find out before a long run that the file cannot be written."""
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        usage_error(f"cannot write {output}: it is a directory, or is in none")


def _write(output: Path | None, document: str) -> None:
    if output is None:
        return
    try:
        output.write_text(document, "utf-8")
    except OSError as error:
        usage_error(f"cannot write {output}: {error.strerror}")
