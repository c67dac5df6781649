"""`fidelity diff`: which claims became weaker or stronger between two results files."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adapter_conformance.changes import Change, changes, inventories, worse
from adapter_conformance.document import BadResults, reports_from_json
from adapter_conformance.render import Sheet, console_for, markdown_table, print_sheets
from adapter_conformance.report import ConformanceReport
from adapter_conformance.session import Exit, printable

from ._common import usage_error

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""

LARGEST = 64 * 2**20
"""How many bytes a results file may have; a run over every adapter makes less than one in a hundred of it."""

_KINDS = ("weaker", "gone", "stronger", "new")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A results file, as `run --output` writes it.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another one.")],
    *,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
) -> None:
    """Say what became weaker, stronger, new or gone between two results files.

    It ends with 1 if anything became weaker, or is gone.
    """
    before, after = _read(old), _read(new)
    found = changes(before, after)
    found.sort(key=lambda change: _KINDS.index(change.kind))
    if inventories(before) != inventories(after):
        typer.echo("The two were made with different inventories of cases.", err=True)
    _print(found, style)
    raise typer.Exit(Exit.FALSE if worse(found) else Exit.HOLDS)


def _read(file: Path) -> list[ConformanceReport]:
    try:
        with file.open("rb") as stream:
            text = stream.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BadResults(f"it has more than {LARGEST} bytes")
        return reports_from_json(text.decode("utf-8-sig"))
    except OSError as error:
        usage_error(f"cannot read {printable(str(file))}: {error.strerror}")
    except ValueError as error:
        why = printable(str(error)) if isinstance(error, BadResults) else "it is not UTF-8"
        usage_error(f"{printable(str(file))} is no results file of this version of the kit: {why}")


def _print(found: list[Change], style: str) -> None:
    if style == "json":
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "worse": worse(found),
            "changes": [asdict(change) for change in found],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    if not found:
        typer.echo("Nothing changed.")
        return
    counts = {kind: sum(change.kind == kind for change in found) for kind in _KINDS}
    title = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    rows = [(c.kind, c.run, c.what, c.old, c.new) for c in found]
    sheet = Sheet(title, ("Change", "Run", "What", "Old", "New"), rows, folding=(2, 3, 4))
    if style == "markdown":
        typer.echo(markdown_table(sheet))
    else:
        print_sheets(console_for(), [sheet])
