"""`memory-authority memory`: look at curated memory, write to it on purpose, and remove from it."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, NoReturn, TypeVar
from uuid import UUID

import typer

from adapter_core import MemoryAdapterError, open_store
from memory_authority.curated import CuratedMemory
from memory_authority.errors import InsufficientAuthority
from memory_authority.gate import RESERVED_FILTERS
from memory_authority.records import MemoryKind, MemoryRecord, Provenance
from memory_authority.scope import Scope
from memory_authority.screening import PatternScreen

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
    plain,
    print_json,
    report,
    scope_of,
    usage_error,
)

ResultT = TypeVar("ResultT")

memory = typer.Typer(help="Look at curated memory, write to it on purpose, and remove from it.", **PLAIN)

_Record = Annotated[UUID, typer.Argument(metavar="RECORD", help="The id of the record.")]
_Namespace = Annotated[str, typer.Option(help="The namespace of the store.")]
_Session = Annotated[
    UUID | None, typer.Option(help="See what is bound to this session too, and write bound to it.")
]
_Refuse = Annotated[list[str] | None, typer.Option(help="A pattern that no text may hold; may be repeated.")]


@memory.command("list")
def list_records(
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    every: Annotated[bool, typer.Option("--all", help="Superseded and expired ones too.")] = False,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """List the records of an owner, in the order of the store."""

    async def listed(memory: CuratedMemory) -> list[MemoryRecord]:
        records = [record async for record in memory.export(raw=True)]
        return [record for record in records if every or record.status == "active"]

    scope = scope_of(agent, tenant, principal, session)
    found = _run(url, namespace, scope, listed)
    if as_json:
        print_json({"records": found})
        return
    for record in found:
        typer.echo(_line(record))
    if not found:
        typer.echo("No record.", err=True)


@memory.command()
def show(
    record: _Record,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Show a record and where it comes from, also one that was superseded."""

    async def shown(memory: CuratedMemory) -> tuple[MemoryRecord | None, tuple[Provenance, ...]]:
        return await memory.get(record), await memory.sources(record)

    scope = scope_of(agent, tenant, principal, session)
    found, sources = _run(url, namespace, scope, shown)
    if found is None:
        _fail_missing()
    if as_json:
        print_json({"record": found, "sources": sources})
        return
    typer.echo(_line(found))
    for source in sources:
        typer.echo(f"from: {source.model_dump_json(exclude_none=True, exclude_defaults=True)}")


@memory.command()
def remember(  # noqa: PLR0913 - each one is an option
    text: Annotated[str, typer.Argument(help="What to remember.")],
    *,
    kind: Annotated[MemoryKind, typer.Option(help="What it is.")],
    by: Annotated[str, typer.Option(help="Who decides so; kept as provenance.")],
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    subject: Annotated[str | None, typer.Option(help="The key that it is about, such as timezone.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    expires: Annotated[
        datetime | None, typer.Option(help="When it is hidden, in UTC.", metavar="YYYY-MM-DD[THH:MM:SS]")
    ] = None,
    redact: Annotated[
        list[str] | None, typer.Option(help="A pattern that is replaced by [redacted]; may be repeated.")
    ] = None,
    refuse: _Refuse = None,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Keep a text; one that is there already is kept once, with a further source."""
    scope = scope_of(agent, tenant, principal, session)
    provenance = Provenance(
        actor="operator", actor_id=by, method="memory-authority", recorded_at=datetime.now(UTC)
    )
    until = None if expires is None else expires.replace(tzinfo=UTC).timestamp()

    def kept(memory: CuratedMemory) -> Awaitable[MemoryRecord]:
        return memory.remember(
            text, kind=kind, provenance=provenance, subject=subject, tags=tag or (), expires_at=until
        )

    screen = _screen(redact, refuse)
    found = _run(url, namespace, scope, kept, screen=screen, create=True)
    if as_json:
        print_json({"record": found})
    else:
        typer.echo(_line(found))


@memory.command()
def supersede(
    old: Annotated[UUID, typer.Argument(metavar="OLD", help="The record that leaves recall.")],
    new: Annotated[UUID, typer.Argument(metavar="NEW", help="The record that takes its place.")],
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Let one record take the place of another; `restore` takes that back."""
    scope = scope_of(agent, tenant, principal, session)
    _run(url, namespace, scope, lambda memory: memory.supersede(old, new))
    typer.echo("Superseded.")


@memory.command()
def restore(
    record: _Record,
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Take back that a record was superseded."""
    scope = scope_of(agent, tenant, principal, session)
    _run(url, namespace, scope, lambda memory: memory.restore(record))
    typer.echo("Active.")


@memory.command()
def forget(  # noqa: PLR0913 - each one is an option
    record: _Record,
    *,
    reason: Annotated[str, typer.Option(help="Why; it is kept, so do not quote the text.")],
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Remove a record for good; a tombstone without its text stays."""
    scope = scope_of(agent, tenant, principal, session)
    found = _run(url, namespace, scope, lambda memory: memory.get(record))
    if found is None:
        _fail_missing()
    if not dry_run:
        confirm(f"The {found.kind.value} {record} is forgotten. Go on?", yes=yes)
        if not _run(url, namespace, scope, lambda memory: memory.forget(record, reason=reason)):
            fail("the record is gone already")
    report({"forgotten": [record]}, f"the record {record} forgotten", dry_run=dry_run, as_json=as_json)


@memory.command()
def expire(  # noqa: PLR0913 - each one is an option
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Forget what is past its expiry; it is hidden already."""
    scope = scope_of(agent, tenant, principal, session)
    found = _run(url, namespace, scope, lambda memory: memory.expire())
    if not dry_run:
        confirm(f"{len(found)} records are forgotten. Go on?", yes=yes)
        found = _run(url, namespace, scope, lambda memory: memory.expire(dry_run=False))
    report({"forgotten": found}, f"{len(found)} records forgotten", dry_run=dry_run, as_json=as_json)


@memory.command()
def export(
    *,
    agent: Agent,
    tenant: Tenant = "",
    principal: Principal = "",
    session: _Session = None,
    refuse: _Refuse = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Also what --refuse holds back. Not for a model.")
    ] = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """Print every record of an owner, superseded and expired ones too: one JSON object a line."""

    async def exported(memory: CuratedMemory) -> None:
        async for record in memory.export(raw=raw):
            typer.echo(json.dumps(record.model_dump(), default=plain))

    scope = scope_of(agent, tenant, principal, session)
    _run(url, namespace, scope, exported, screen=_screen(None, refuse))


@memory.command()
def quarantine(
    *,
    agent: Agent,
    as_json: AsJson = False,
    namespace: _Namespace = "default",
    url: Url = DEFAULT_URL,
) -> None:
    """List the rows of the whole namespace that are nobody's; they are never recalled."""

    async def listed(memory: CuratedMemory) -> list[UUID]:
        return [row async for row in memory.quarantine()]

    found = _run(url, namespace, scope_of(agent, "", ""), listed)
    if as_json:
        print_json({"rows": found})
        return
    for row in found:
        typer.echo(str(row))


def _run(
    url: str,
    namespace: str,
    scope: Scope,
    call: Callable[[CuratedMemory], Awaitable[ResultT]],
    *,
    screen: PatternScreen | None = None,
    create: bool = False,
) -> ResultT:
    async def within() -> ResultT:
        async with store:
            return await call(memory)

    try:
        store = open_store(url, namespace=namespace, filters=RESERVED_FILTERS)
    except MemoryAdapterError as error:
        usage_error(str(error))
    except Exception as error:  # noqa: BLE001 - its text may show a part of the URL
        usage_error(f"the adapter does not take this URL ({type(error).__name__})")
    try:
        memory = CuratedMemory(store, scope, screen=screen)
        if not create and is_missing(url):
            fail(NO_FILE)  # the first call would make it
        return asyncio.run(within())
    except InsufficientAuthority as error:
        fail("the store may not be the authority over memory:", *error.missing)
    except MemoryAdapterError as error:
        fail(str(error))


def _screen(redact: list[str] | None, refuse: list[str] | None) -> PatternScreen:
    try:
        return PatternScreen(redact=redact or (), refuse=refuse or ())
    except re.error:
        usage_error("a pattern does not compile")


def _fail_missing() -> NoReturn:
    fail("no such record in this scope")


def _line(record: MemoryRecord) -> str:
    subject = "" if record.subject is None else f"  {record.subject!a}"
    made = moment(record.created_at)
    kind = f"{record.kind.value:<10}  {record.status:<10}"
    return f"{record.id}  {kind}  {made}{subject}  {json.dumps(record.text)}"
