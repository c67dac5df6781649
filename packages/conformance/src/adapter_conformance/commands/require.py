"""`fidelity require`: does a store keep what a project needs?"""

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

import typer

from adapter_conformance.requirements import Answer, Requirement, measured, opened
from adapter_conformance.session import Exit, printable
from adapter_conformance.url_harness import displayed
from adapter_core import EXTENSIONS, Durability, Fidelity, SearchConsistency

from ._common import Options, opening, parsed_options, usage_error

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""

_Names = list[str] | None


def require(  # noqa: PLR0913 - the options of a command are its parameters
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as sqlite:///memories.db.")],
    *,
    retrieve: Annotated[Fidelity | None, typer.Option(help="The least retrieve fidelity.")] = None,
    search: Annotated[Fidelity | None, typer.Option(help="The least search fidelity.")] = None,
    consistency: Annotated[
        SearchConsistency | None, typer.Option(help="immediate; or eventual, which accepts both.")
    ] = None,
    filters: Annotated[
        _Names, typer.Option(metavar="A,B", help="Metadata keys to filter by; repeatable.")
    ] = None,
    tags_in_search: Annotated[bool, typer.Option("--tags-in-search", help="Search hits carry tags.")] = False,
    metadata: Annotated[bool, typer.Option("--metadata", help="Metadata comes back exactly.")] = False,
    durability: Annotated[
        Durability | None, typer.Option(help="What an acknowledged write survives at least.")
    ] = None,
    extensions: Annotated[
        _Names, typer.Option(metavar="A,B", help="Extensions, such as scan; repeatable.")
    ] = None,
    option: Options = None,
    style: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")] = "text",
) -> None:
    """Check that a store keeps what a project needs, and list every shortfall.

    It opens the store with the filters, connects as the application would, and stores nothing.
    """
    requirement = Requirement(
        retrieve=retrieve,
        search=search,
        consistency=consistency,
        filters=_split(filters),
        tags_in_search=tags_in_search,
        metadata=metadata,
        durability=durability,
        extensions=_split(extensions),
    )
    if requirement == Requirement():
        usage_error("nothing is required; see --help")
    _check_extensions(requirement.extensions)
    answer = _answer(url, requirement, parsed_options(option))
    if answer.unreachable:
        typer.echo(f"Error: cannot connect to {displayed(url)}: {printable(answer.unreachable)}", err=True)
    _print(answer, displayed(url), style)
    if answer.shortfalls:
        raise typer.Exit(Exit.FALSE)
    raise typer.Exit(Exit.UNREACHABLE if answer.unreachable else Exit.HOLDS)


def _split(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name for one in given or () for name in one.split(",") if name)


def _check_extensions(names: Collection[str]) -> None:
    known = {one.name: f"{one.name}/{one.version}" for one in EXTENSIONS}
    if unknown := sorted(set(names) - {*known, *known.values()}):
        usage_error(f"no extension {printable(', '.join(unknown))} (known: {', '.join(known.values())})")


def _answer(url: str, requirement: Requirement, options: dict[str, Any]) -> Answer:
    with opening(url, options):
        store = opened(url, requirement, options)
    return asyncio.run(measured(store, requirement))


def _print(answer: Answer, place: str, style: str) -> None:
    if style == "json":
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "adapter": answer.adapter,
            "url": place,
            "met": not answer.shortfalls and not answer.unreachable,
            "shortfalls": answer.shortfalls,
            "unreachable": answer.unreachable,
        }
        typer.echo(json.dumps(document, indent=2))
        return
    name = printable(answer.adapter)
    if answer.shortfalls:
        count = len(answer.shortfalls)
        typer.echo(f"{name} at {place}: {count} shortfall{'' if count == 1 else 's'}")
        for line in answer.shortfalls:
            typer.echo(f"- {printable(line)}")
    elif not answer.unreachable:
        typer.echo(f"{name} at {place}: everything that is required")
