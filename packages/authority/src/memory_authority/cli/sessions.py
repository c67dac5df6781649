"""The `memory-authority` command, for operators.

It ends with 0 if it was done, 1 if the session is not there or the database refused, and 2 if it is
used wrongly. Errors go to stderr and show no content.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar
from uuid import UUID

import typer
from pydantic import BaseModel, ValidationError

from adapter_core import MemoryAdapterError

from .errors import AuthorityError
from .opening import open_session_store, sqlite_path
from .scope import Scope
from .sessions import SessionStore
from .sql_store import SqlSessionStore
from .transcript import AssistantMessage, SessionInfo, ToolMessage, Transcript

SCHEMA_VERSION = 1
"""Of the JSON documents; raised whenever a field changes its meaning."""

DEFAULT_URL = "sqlite:///memory-authority.db"
DAY = 86_400.0

ResultT = TypeVar("ResultT")

# Plain help and one-line errors: the same in a terminal, a log and a pipe.
_PLAIN: dict[str, Any] = {
    "add_completion": False,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}
app = typer.Typer(name="memory-authority", **_PLAIN)
sessions = typer.Typer(help="Look at conversation history, and remove from it.", **_PLAIN)
app.add_typer(sessions, name="sessions")

_Url = Annotated[
    str,
    typer.Option(
        envvar="MEMORY_AUTHORITY_URL", help="sqlite:///PATH or postgresql://…; also from the environment."
    ),
]
_Agent = Annotated[str, typer.Option(envvar="MEMORY_AUTHORITY_AGENT", help="Whose sessions: the agent.")]
_Tenant = Annotated[str, typer.Option(help="The tenant; none is its default plane.")]
_Principal = Annotated[str, typer.Option(help="The principal; none is its default plane.")]
_Session = Annotated[UUID, typer.Argument(metavar="SESSION", help="The id of the session.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"memory-authority {version('memory-authority')}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version.")
]


@app.callback()
def _about(*, version: _Version = False) -> None:
    """Operate the conversation history of agents.

    Exit codes: 0 done, 1 not there or refused, 2 wrong usage.
    """


@app.command()
def migrate(*, url: _Url = DEFAULT_URL) -> None:
    """Make the tables, or bring older ones to this release's version. Nothing is dropped."""
    _run(url, lambda store: store.migrate(), create=True)
    typer.echo("The tables are up to date.")


@sessions.command("list")
def list_sessions(
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    limit: Annotated[int, typer.Option(min=0, help="The most sessions to list.")] = 50,
    closed: Annotated[bool, typer.Option("--closed", help="List closed ones too.")] = False,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """List the sessions of an owner, the most recently active first."""
    scope = _scope(agent, tenant, principal)
    found = _run(url, lambda store: store.list(scope, limit=limit, include_closed=closed))
    if as_json:
        _print_json({"sessions": found})
        return
    for info in found:
        typer.echo(_line(info))
    if not found:
        typer.echo("No session.", err=True)


@sessions.command()
def show(
    session: _Session,
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    last: Annotated[int | None, typer.Option(min=0, help="Only so many of the newest turns.")] = None,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """Show a transcript as it would go to the model, with its trims and repairs."""
    scope = _scope(agent, tenant, principal)
    found = _run(url, lambda store: store.load(scope, session, last_turns=last))
    if as_json:
        _print_json({"transcript": found})
    else:
        _print_transcript(found)


@sessions.command()
def trim(  # noqa: PLR0913 - each one is an option
    session: _Session,
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    keep_turns: Annotated[int | None, typer.Option(min=0, help="Keep so many of the newest turns.")] = None,
    max_messages: Annotated[int | None, typer.Option(min=0, help="Keep no more messages.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Keep no more estimated tokens.")] = None,
    erase: Annotated[bool, typer.Option("--erase", help="Delete what hidden turns hold.")] = False,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """Hide the oldest whole turns of a session; the newest one always stays."""
    scope = _scope(agent, tenant, principal)
    if keep_turns is max_messages is max_tokens is None:
        _usage_error("say what to keep: --keep-turns, --max-messages or --max-tokens")

    def run(store: SessionStore, *, dry: bool) -> Awaitable[Any]:
        return store.trim(
            *(scope, session),
            keep_turns=keep_turns,
            max_messages=max_messages,
            max_tokens=max_tokens,
            erase=erase,
            dry_run=dry,
        )

    report = _run(url, lambda store: run(store, dry=True))
    what = f"{report.dropped_turns} turns with {report.dropped_messages} messages"
    end = " and what hidden turns hold is deleted" if erase else ""
    if not dry_run:
        _confirm(f"{what} are hidden{end}. Go on?", yes=yes)
        report = _run(url, lambda store: run(store, dry=False))
    _report(report, f"{what} hidden{end}, {report.kept_turns} kept", dry_run=dry_run, as_json=as_json)


@sessions.command()
def close(
    session: _Session,
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """Close a session for good: it can be read, and neither appended to nor resumed."""
    scope = _scope(agent, tenant, principal)
    changed = _run(url, lambda store: store.close(scope, session))
    if as_json:
        _print_json({"closed": changed})
    else:
        typer.echo("Closed." if changed else "It was closed already.")


@sessions.command()
def delete(
    session: _Session,
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """Delete a session with all its turns."""
    scope = _scope(agent, tenant, principal)
    info = _run(url, lambda store: store.get(scope, session))
    if info is None:
        _fail("no such session in this scope")
    found = info
    if not dry_run:
        _confirm(f"The session and its {found.turns} turns are deleted. Go on?", yes=yes)
        # of this incarnation: what was created meanwhile is not what was asked about
        if not _run(url, lambda store: store.delete(scope, session, incarnation=found.incarnation)):
            _fail("the session is gone already")
    _report(found, f"the session and its {found.turns} turns deleted", dry_run=dry_run, as_json=as_json)


@sessions.command()
def expire(
    *,
    agent: _Agent,
    tenant: _Tenant = "",
    principal: _Principal = "",
    days: Annotated[float, typer.Option("--older-than-days", min=0, help="How old is too old.")],
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
) -> None:
    """Delete sessions without activity since, and erase older turns of the others."""
    scope = _scope(agent, tenant, principal)
    before = time.time() - days * DAY
    report = _run(url, lambda store: store.expire(scope, before=before))
    if not dry_run:
        what = f"{len(report.sessions)} sessions are deleted, {report.turns} turns of others erased"
        _confirm(f"{what}. Go on?", yes=yes)
        report = _run(url, lambda store: store.expire(scope, before=before, dry_run=False))
    done = f"{len(report.sessions)} sessions deleted, {report.turns} turns of others erased"
    _report(report, done, dry_run=dry_run, as_json=as_json)


def _run(url: str, call: Callable[[SqlSessionStore], Awaitable[ResultT]], *, create: bool = False) -> ResultT:
    async def within() -> ResultT:
        async with open_session_store(url) as store:
            return await call(store)

    try:
        if not create and url.startswith("sqlite:") and not Path(sqlite_path(url)).exists():
            raise AuthorityError("there is no such file")  # opening it would make it
        return asyncio.run(within())
    except MemoryAdapterError as error:
        _fail(str(error))


def _scope(agent: str, tenant: str, principal: str) -> Scope:
    try:
        return Scope(agent=agent, tenant=tenant, principal=principal)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        _usage_error(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _confirm(question: str, *, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _fail(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)


def _usage_error(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)


# Printing


def _report(report: BaseModel, done: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        _print_json({"dry_run": dry_run, "report": report})
    else:
        typer.echo(f"Dry run: {done}." if dry_run else f"{done[:1].upper()}{done[1:]}.")


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **document}, default=_plain, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, frozenset):
        return sorted(str(one) for one in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)


def _line(info: SessionInfo) -> str:
    active = datetime.fromtimestamp(info.last_activity, UTC).isoformat(timespec="seconds")
    key = "" if info.external_key is None else f"  {info.external_key!a}"
    return f"{info.session_id}  {info.mode.value:<7}  {info.state:<6}  {info.turns:>6} turns  {active}{key}"


def _print_transcript(found: Transcript) -> None:
    typer.echo(_line(found.session))
    starts = {turn.start: turn for turn in found.turns}
    for position, message in enumerate(found.messages):
        if turn := starts.get(position):
            typer.echo(f"-- turn {turn.turn_no} {turn.turn_id!a} {turn.origin.value} {turn.status}")
        mark = " (synthesized)" if isinstance(message, ToolMessage) and message.synthesized else ""
        mark = " (breadcrumb)" if position == found.breadcrumb else mark
        typer.echo(f"{message.role}{mark}: {json.dumps(message.content)}")
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                typer.echo(f"  call {call.call_id!a} {call.name!a} {json.dumps(call.arguments)}")
    for repair in found.repairs:
        typer.echo(f"repair: {repair}")


def main() -> None:
    """Run the command."""
    app()
