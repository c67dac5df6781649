"""`memory-authority sessions`: look at conversation history, and remove from it."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from adapter_core import MemoryAdapterError
from memory_authority.errors import UnreadableUrl
from memory_authority.opening import open_session_store
from memory_authority.sessions import SessionStore
from memory_authority.sql_store import SqlSessionStore
from memory_authority.transcript import AssistantMessage, SessionInfo, ToolMessage, Transcript

from ._common import (
    DEFAULT_URL,
    NO_FILE,
    PLAIN,
    Agent,
    AsJson,
    DryRun,
    Principal,
    Tenant,
    Url,
    Yes,
    confirm,
    fail,
    is_missing,
    moment,
    print_json,
    report,
    scope_of,
    usage_error,
)

DAY = 86_400.0

ResultT = TypeVar("ResultT")

sessions = typer.Typer(help="Look at conversation history, and remove from it.", **PLAIN)

_Session = Annotated[UUID, typer.Argument(metavar="SESSION", help="The id of the session.")]


@sessions.command("list")
def list_sessions(
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    limit: Annotated[int, typer.Option(min=0, help="The most sessions to list.")] = 50,
    closed: Annotated[bool, typer.Option("--closed", help="List closed ones too.")] = False,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """List the sessions of an owner, the most recently active first."""
    scope = scope_of(agent, tenant, principal)
    found = run(url, lambda store: store.list(scope, limit=limit, include_closed=closed))
    if as_json:
        print_json({"sessions": found})
        return
    for info in found:
        typer.echo(_line(info))
    if not found:
        typer.echo("No session.", err=True)


@sessions.command()
def show(
    session: _Session,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    last: Annotated[int | None, typer.Option(min=0, help="Only so many of the newest turns.")] = None,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show a transcript as it would go to the model, with its trims and repairs."""
    scope = scope_of(agent, tenant, principal)
    found = run(url, lambda store: store.load(scope, session, last_turns=last))
    if as_json:
        print_json({"transcript": found})
    else:
        _print_transcript(found)


@sessions.command()
def trim(  # noqa: PLR0913 - each one is an option
    session: _Session,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    keep_turns: Annotated[int | None, typer.Option(min=0, help="Keep so many of the newest turns.")] = None,
    max_messages: Annotated[int | None, typer.Option(min=0, help="Keep no more messages.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Keep no more estimated tokens.")] = None,
    erase: Annotated[bool, typer.Option("--erase", help="Delete what hidden turns hold.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Hide the oldest whole turns of a session; the newest one always stays."""
    scope = scope_of(agent, tenant, principal)
    if keep_turns is max_messages is max_tokens is None:
        usage_error("say what to keep: --keep-turns, --max-messages or --max-tokens")

    def trimmed(store: SessionStore, *, dry: bool) -> Awaitable[Any]:
        return store.trim(
            *(scope, session),
            keep_turns=keep_turns,
            max_messages=max_messages,
            max_tokens=max_tokens,
            erase=erase,
            dry_run=dry,
        )

    found = run(url, lambda store: trimmed(store, dry=True))
    what = f"{found.dropped_turns} turns with {found.dropped_messages} messages"
    end = " and what hidden turns hold is deleted" if erase else ""
    if not dry_run:
        confirm(f"{what} are hidden{end}. Go on?", yes=yes)
        found = run(url, lambda store: trimmed(store, dry=False))
    report(found, f"{what} hidden{end}, {found.kept_turns} kept", dry_run=dry_run, as_json=as_json)


@sessions.command()
def close(
    session: _Session,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Close a session for good: it can be read, and neither appended to nor resumed."""
    scope = scope_of(agent, tenant, principal)
    changed = run(url, lambda store: store.close(scope, session))
    if as_json:
        print_json({"closed": changed})
    else:
        typer.echo("Closed." if changed else "It was closed already.")


@sessions.command()
def delete(
    session: _Session,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete a session with all its turns."""
    scope = scope_of(agent, tenant, principal)
    info = run(url, lambda store: store.get(scope, session))
    if info is None:
        fail("no such session in this scope")
    found = info
    if not dry_run:
        confirm(f"The session and its {found.turns} turns are deleted. Go on?", yes=yes)
        # of this incarnation: what was created meanwhile is not what was asked about
        if not run(url, lambda store: store.delete(scope, session, incarnation=found.incarnation)):
            fail("the session is gone already")
    report(found, f"the session and its {found.turns} turns deleted", dry_run=dry_run, as_json=as_json)


@sessions.command()
def expire(
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    days: Annotated[float, typer.Option("--older-than-days", min=0, max=1e6, help="How old is too old.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete sessions without activity since, and erase older turns of the others."""
    scope = scope_of(agent, tenant, principal)
    before = time.time() - days * DAY
    found = run(url, lambda store: store.expire(scope, before=before))
    if not dry_run:
        what = f"{len(found.sessions)} sessions are deleted, {found.turns} turns of others erased"
        confirm(f"{what}. Go on?", yes=yes)
        found = run(url, lambda store: store.expire(scope, before=before, dry_run=False))
    done = f"{len(found.sessions)} sessions deleted, {found.turns} turns of others erased"
    report(found, done, dry_run=dry_run, as_json=as_json)


def run(url: str, call: Callable[[SqlSessionStore], Awaitable[ResultT]], *, create: bool = False) -> ResultT:
    """Open the store and make one call; an error ends the command."""

    async def within() -> ResultT:
        async with open_session_store(url) as store:
            return await call(store)

    try:
        if not create and is_missing(url):
            fail(NO_FILE)  # opening it would make it
        return asyncio.run(within())
    except UnreadableUrl as error:
        usage_error(str(error))
    except MemoryAdapterError as error:
        fail(str(error))


# Printing


def _line(info: SessionInfo) -> str:
    active = moment(info.last_activity)
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
