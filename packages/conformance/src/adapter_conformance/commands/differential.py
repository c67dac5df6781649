"""`fidelity differential`: the same items and queries give the same sets on every adapter."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import typer

from adapter_conformance.corpus import drawn
from adapter_conformance.differential import Comparison, Joined, compare_targets
from adapter_conformance.progress import LateProgress
from adapter_conformance.render import NOTHING, Sheet, console_for, markdown_list, markdown_table, print_parts
from adapter_conformance.session import Exit, Fault, find_targets

from ._common import Names, Options, Seed, Where, chosen_environments, parsed_options, usage_error

ITEMS, QUERIES = 2_000, 500

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""


def differential(
    names: Names = None,
    *,
    items: Annotated[int, typer.Option(min=1, help="How many generated items.")] = ITEMS,
    queries: Annotated[int, typer.Option(min=1, help="How many generated queries.")] = QUERIES,
    seed: Seed = 0,
    environment: Annotated[
        list[Where] | None,
        typer.Option(help="Only this environment; repeatable. Default: fake and embedded."),
    ] = None,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
    option: Options = None,
) -> None:
    """Store the same items everywhere and compare what the same queries find.

    An adapter that fails is shown with the smallest query that diverges, and the ids.
    """
    options = parsed_options(option)
    try:
        targets, faults = find_targets(names or (), chosen_environments(environment))
    except LookupError as error:
        usage_error(str(error))
    with LateProgress(len(targets)) as progress:
        comparison, broken = compare_targets(
            targets,
            drawn(items, queries, seed),
            options=options,
            progress=lambda target: progress.step(f"{target.label} {target.environment}"),
            tell=partial(typer.echo, err=True),
        )
    faults += broken
    for fault in faults:
        typer.echo(f"Error: {fault}", err=True)
    _print(comparison, faults, style)
    raise typer.Exit(_exit(comparison, faults))


def _exit(comparison: Comparison, faults: Sequence[Fault]) -> Exit:
    ran = [one for one in comparison.joined if not one.not_run]
    if faults or (ran and not comparison.holds):
        return Exit.FALSE
    return Exit.HOLDS if ran else Exit.UNREACHABLE


def _print(comparison: Comparison, faults: Sequence[Fault], style: str) -> None:
    if style == "json":
        typer.echo(json.dumps(_document(comparison, faults), indent=2))
        return
    sheet, lines = _sheet(comparison), _lines(comparison)
    if style == "markdown":
        typer.echo("\n\n".join([markdown_table(sheet), *([markdown_list("Notes", lines)] if lines else [])]))
    else:
        print_parts(console_for(), [sheet], {"Notes": lines} if lines else {})


def _document(comparison: Comparison, faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        **comparison.model_dump(mode="json"),
        "holds": comparison.holds and not faults,
        "errors": [str(fault) for fault in faults],
    }


def _sheet(comparison: Comparison) -> Sheet:
    title = (
        f"{comparison.items} items ({comparison.replaced} of them replaced), {comparison.queries} queries, "
        f"seed {comparison.seed}"
    )
    headers = ("Adapter", "Where", "Engine", "Asked", "Agreed", "Seconds")
    return Sheet(title, headers, [_row(one) for one in comparison.joined], folding=(2,))


def _row(one: Joined) -> tuple[str, ...]:
    if one.not_run:
        return (one.label, one.environment, NOTHING, "not run", NOTHING, NOTHING)
    counts = (str(one.asked), str(one.agreed), f"{one.seconds:.1f}")
    return (one.label, one.environment, one.engine or NOTHING, *counts)


def _lines(comparison: Comparison) -> list[tuple[str, str]]:
    vacuity = comparison.vacuity
    counted = f"{vacuity.telling} tell items apart, {vacuity.nothing} match nothing, {vacuity.everything} all"
    lines = [("queries", counted + ("" if vacuity.enough else ": too few prove anything"))]
    for one in comparison.joined:
        name = f"{one.label} {one.environment}"
        if one.not_run:
            lines.append((name, f"not run: {one.not_run}"))
        lines += [(name, f"{count} queries left out: {reason}") for reason, count in one.left_out.items()]
        if one.smallest is not None:
            lines.append((name, f"diverges: {one.smallest}"))
    return lines
