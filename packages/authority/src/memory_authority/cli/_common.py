"""What all commands share: options, the scope, errors, JSON."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from uuid import UUID

import typer
from pydantic import BaseModel, ValidationError

from memory_authority.opening import sqlite_path
from memory_authority.scope import Scope

SCHEMA_VERSION = 1
"""Of the JSON documents; raised whenever a field changes its meaning."""

DEFAULT_URL = "sqlite:///memory-authority.db"

NO_FILE = "the database file is not there; name another one by --url or MEMORY_AUTHORITY_URL"

# Plain help and one-line errors: the same in a terminal, a log and a pipe.
PLAIN: dict[str, Any] = {
    "add_completion": False,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}

Url = Annotated[
    str,
    typer.Option(
        envvar="MEMORY_AUTHORITY_URL", help="sqlite:///PATH or postgresql://…; also from the environment."
    ),
]
Agent = Annotated[str, typer.Option(envvar="MEMORY_AUTHORITY_AGENT", help="Whose it is: the agent.")]
Tenant = Annotated[str, typer.Option(help="The tenant; none is its default plane.")]
Principal = Annotated[str, typer.Option(help="The principal; none is its default plane.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def scope_of(agent: str, tenant: str, principal: str, session: UUID | None = None) -> Scope:
    """Make the scope, or end as wrongly used."""
    try:
        return Scope(agent=agent, tenant=tenant, principal=principal, session=session)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        usage_error(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def is_missing(url: str) -> bool:
    """Whether the URL names a SQLite file that is not there."""
    return url.lower().startswith("sqlite:") and not Path(sqlite_path(url)).exists()


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless told not to; a no ends the command."""
    if not yes:
        typer.confirm(question, abort=True, err=True)


def fail(*messages: str) -> NoReturn:
    """End with the messages, one a line."""
    for message in messages:
        typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)


def usage_error(message: str) -> NoReturn:
    """End as wrongly used."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)


def report(found: BaseModel | dict[str, Any], done: str, *, dry_run: bool, as_json: bool) -> None:
    """Say what was done, or what would be."""
    if as_json:
        print_json({"dry_run": dry_run, "report": found})
    else:
        typer.echo(f"Dry run: {done}." if dry_run else f"{done[:1].upper()}{done[1:]}.")


def print_json(document: dict[str, Any]) -> None:
    """Print one document."""
    typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **document}, default=plain, indent=2))


def plain(value: Any) -> Any:
    """Give what JSON can hold."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(str(one) for one in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)


def moment(seconds: float) -> str:
    """Write a time, given in seconds since 1970 in UTC; as the number if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(seconds)
