"""`fidelity run`: the verdict on each adapter, with every reason."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from adapter_conformance._case import Case
from adapter_conformance.document import to_json
from adapter_conformance.inventory import ALL_CASES
from adapter_conformance.render import console_for, print_verdicts
from adapter_conformance.session import is_partial

from ._common import Names, Where, run_named, usage_error


def run(
    names: Names = None,
    *,
    environment: Annotated[
        list[Where] | None,
        typer.Option(help="Only this environment; repeatable. Default: fake and embedded."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all that is drawn; the same seed draws the same.")] = 0,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this case, such as C08; repeatable. Never certified."),
    ] = None,
    style: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON document there too.")
    ] = None,
) -> None:
    """Say for each adapter whether its claims hold, and why not."""
    cases = _cases(case)
    _check_output(output)
    session = run_named(names, environment, cases=cases, seed=seed)
    document = to_json(session)
    _write(output, document)
    if style == "json":
        typer.echo(document, nl=False)
    elif session.reports:
        print_verdicts(console_for(), session.reports)
    if any(map(is_partial, session.reports)):
        typer.echo("A partial run is never certified: run all cases.", err=True)
    raise typer.Exit(session.exit)


def _cases(ids: Sequence[str] | None) -> Sequence[Case]:
    wanted = {one.upper() for one in ids or ()}
    unknown = sorted(wanted - {case.id for case in ALL_CASES})
    if unknown:
        known = " ".join(case.id for case in ALL_CASES)
        usage_error(f"no case {', '.join(unknown)} (known: {known})")
    return [case for case in ALL_CASES if not wanted or case.id in wanted]


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
