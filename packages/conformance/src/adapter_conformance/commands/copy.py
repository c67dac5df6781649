"""`fidelity copy`: the items of one store into another, with every loss agreed to first."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from adapter_conformance.copying import UNDECLARED, Agreed, Copying, Hindered, Tally
from adapter_conformance.preview import Listing
from adapter_conformance.progress import LateProgress
from adapter_conformance.render import NOTHING, Sheet, console_for, markdown_table, print_sheets
from adapter_conformance.session import Exit, printable
from adapter_conformance.url_harness import displayed, is_missing
from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable, open_store

from ._common import opening, parsed_options, usage_error

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""

_Pairs = list[str] | None


@dataclass
class _Outcome:
    """How a copy ended, whatever ended it.

    Attributes:
        copying: None if the stores could not be made.
        read: Whether the source was read to its end.
        needed: What would have to be agreed to.
        began: Whether anything could have been written.
        error: What broke.
        exit: How the command ends.
    """

    copying: Copying | None = None
    read: bool = False
    needed: tuple[str, ...] = ()
    began: bool = False
    error: str = ""
    exit: Exit = Exit.HOLDS


def copy(  # noqa: PLR0913 - the options of a command are its parameters
    source: Annotated[str, typer.Argument(metavar="FROM", help="Such as sqlite:///memories.db.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Another store.")],
    *,
    accept_loss: Annotated[
        _Pairs, typer.Option(metavar="NAME", help="A loss that may occur; repeatable.")
    ] = None,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Leave out what the target refuses.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace items of the target that have other contents.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report.")] = False,
    option: Annotated[
        _Pairs, typer.Option("--option", "-o", metavar="KEY=VALUE", help="Of both stores; repeatable.")
    ] = None,
    from_option: Annotated[
        _Pairs, typer.Option(metavar="KEY=VALUE", help="Of the source, such as namespace=mine.")
    ] = None,
    to_option: Annotated[_Pairs, typer.Option(metavar="KEY=VALUE", help="Of the target.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="The most examples of each kind to print.")] = 3,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
) -> None:
    """Copy the items of one store into another.

    First it reports what the target would change or refuse. It copies if nothing is lost, or if each
    loss is accepted. Started again, it goes on; the source is only read, and must be there.
    """
    agreed = Agreed(losses=tuple(accept_loss or ()), skip_refused=skip_refused, overwrite=overwrite)
    shared = parsed_options(option)
    ours, theirs = {**shared, **parsed_options(from_option)}, {**shared, **parsed_options(to_option)}
    if (source, ours) == (target, theirs):
        usage_error("FROM and TO are the same store")
    outcome = _Outcome()
    try:
        asyncio.run(_run((source, ours), (target, theirs), agreed, outcome, limit=limit, dry=dry_run))
    except KeyboardInterrupt:
        outcome.error, outcome.exit = "interrupted", Exit.INTERRUPTED
    _tell(outcome, f"{displayed(source)} to {displayed(target)}", style)
    raise typer.Exit(outcome.exit)


# The copy


async def _run(
    source: tuple[str, Mapping[str, Any]],
    target: tuple[str, Mapping[str, Any]],
    agreed: Agreed,
    outcome: _Outcome,
    *,
    limit: int,
    dry: bool,
) -> None:
    giving, taking = _opened(*source), _opened(*target)
    try:
        outcome.copying = copying = Copying(giving, taking, agreed, limit=limit)
    except TypeError as error:
        usage_error(str(error))
    _check_names(agreed, taking)
    if is_missing(source[0]):  # opening it would make it
        usage_error(f"{displayed(source[0])} is not there")
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(giving)
            await stack.enter_async_context(taking)
            await _copied(copying, agreed, outcome, dry=dry)
    except MemoryAdapterUnavailable as error:
        outcome.error, outcome.exit = str(error), Exit.UNREACHABLE
    except MemoryAdapterError as error:
        outcome.error, outcome.exit = str(error), Exit.FALSE


async def _copied(copying: Copying, agreed: Agreed, outcome: _Outcome, *, dry: bool) -> None:
    with LateProgress(None) as progress:
        await copying.survey(lambda tally: progress.step("reading", begun=tally.items))
        outcome.read = True
        if not copying.found.items:  # a mistyped source looks just like this
            outcome.error, outcome.exit = "the source has no items; is this the right one?", Exit.FALSE
            return
        outcome.needed = tuple(copying.found.hindrances(agreed))
        if not outcome.needed and not dry:
            total = copying.found.items
            outcome.began = True
            try:
                await copying.copy(lambda tally: progress.step("copying", begun=tally.items, total=total))
            except Hindered:
                outcome.needed = tuple(copying.done.hindrances(agreed))
                outcome.error = "the source or the target has changed since they were first read"
    if outcome.needed:
        outcome.exit = Exit.FALSE


def _opened(url: str, options: Mapping[str, Any]) -> Any:
    with opening(url, options):
        return open_store(url, **options)


def _check_names(agreed: Agreed, target: Any) -> None:
    known = [*dict.fromkeys(loss.name for loss in target.projection.losses), UNDECLARED]
    if unknown := sorted(set(agreed.losses) - set(known)):
        usage_error(
            f"the target has no loss {', '.join(map(printable, unknown))} (known: {', '.join(known)})"
        )


# What is said


def _tell(outcome: _Outcome, way: str, style: str) -> None:
    if outcome.copying is None:
        return
    found, done = outcome.copying.found, outcome.copying.done
    if style == "json":
        typer.echo(json.dumps(_document(outcome, found, done), indent=2))
    elif outcome.read and found.items:
        sheets = list(_sheets(found, way))
        if style == "markdown":
            typer.echo("\n\n".join(map(markdown_table, sheets)))
        else:
            print_sheets(console_for(), sheets)
    if outcome.error:
        typer.echo(f"Error: {printable(outcome.error)}", err=True)
    for line in _last(outcome, found, done):
        typer.echo(line, err=True)


def _last(outcome: _Outcome, found: Tally, done: Tally) -> Iterator[str]:
    if outcome.began:
        skipped = f", {done.refused.count} skipped" if done.refused.count else ""
        yield f"Copied {done.copied} items and read them again; {done.equal} were there already{skipped}."
        if outcome.exit in (Exit.UNREACHABLE, Exit.INTERRUPTED):
            yield "Not all is copied. The same command goes on."
        elif outcome.error:
            yield "Not all is copied. The same command ends like this until that is mended."
    elif outcome.error:
        yield "Nothing was copied."
    if outcome.needed:
        yield f"{'Stopped' if outcome.began else 'Nothing was copied'}. To copy, add {' '.join(outcome.needed)}"


def _sheets(found: Tally, way: str) -> Iterator[Sheet]:
    counts = [("kept exactly", found.exact, NOTHING)]
    counts += [(f"changed: {n}", one.count, f"--accept-loss {n}") for n, one in sorted(found.losses.items())]
    counts += [("refused", found.refused.count, "--skip-refused")]
    counts += [("there already, equal", found.equal, NOTHING)]
    counts += [("there already, other contents", found.differing.count, "--overwrite")]
    rows = [(what, str(count), needs if count else NOTHING) for what, count, needs in counts]
    yield Sheet(f"{way}: {found.items} items", ("In the target", "Items", "Needs"), rows)
    examples = [
        (name, one.id, value.place, value.given, value.retrieve, value.search)
        for name, listing in sorted(found.losses.items())
        for one in listing.shown
        for value in [one.value]
    ]
    if examples:
        headers = ("Loss", "Id", "Where", "Given", "Retrieve", "Search")
        yield Sheet("Changed, for example", headers, examples, folding=(2, 3, 4, 5))
    if found.refused.shown:
        shown = found.refused.shown
        yield Sheet(f"Refused{_more(found.refused)}", ("Id", "Where", "Why"), shown, folding=(1, 2))
    if found.differing.shown:
        ids = [(one,) for one in found.differing.shown]
        yield Sheet(f"There already, other contents{_more(found.differing)}", ("Id",), ids)


def _more(listing: Listing[Any]) -> str:
    return f" ({listing.more} more not shown)" if listing.more else ""


def _document(outcome: _Outcome, found: Tally, done: Tally) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "items": found.items,
        "exact": found.exact,
        "losses": [_loss(name, listing) for name, listing in sorted(found.losses.items())],
        "refused": {"items": found.refused.count, "examples": [r._asdict() for r in found.refused.shown]},
        "equal": found.equal,
        "differing": {"items": found.differing.count, "examples": found.differing.shown},
        "needed": outcome.needed,
        "copied": done.copied if outcome.began else None,
        "complete": outcome.exit is Exit.HOLDS and outcome.began,
        "error": outcome.error,
    }


def _loss(name: str, listing: Listing[Any]) -> dict[str, Any]:
    examples: Sequence[dict[str, Any]] = [
        {"id": one.id, **one.value._asdict(), "losses": list(one.value.losses)} for one in listing.shown
    ]
    return {"name": name, "items": listing.count, "examples": examples}
