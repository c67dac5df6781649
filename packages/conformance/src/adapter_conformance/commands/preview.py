"""`fidelity preview`: what the installed adapters would do to the records of a file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adapter_conformance.preview import Change, Listing, Outcome, Previewed, Refusal, outcomes_of, preview
from adapter_conformance.records import EndlessLine, UnreadableLine, read_records
from adapter_conformance.render import Sheet, console_for, markdown_table, print_sheets
from adapter_conformance.session import Exit, Fault, find_targets, printable

from ._common import Names, usage_error

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""

_NONE = "-"
_REFUSED = ("Line", "Id", "Where", "Why", "Adapters")
_CHANGED = ("Line", "Id", "Where", "Given", "Retrieve", "Search", "Loss", "Adapters")


def preview_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines, each an item.")],
    names: Names = None,
    *,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
    limit: Annotated[int, typer.Option(min=0, help="The most findings of each kind to print.")] = 50,
) -> None:
    """Show what adapters would give back of your records, or why they would refuse them.

    Nothing is written, and no service is needed. A record is an object with some of the keys id,
    created_at, metadata, content and tags. What is refused or changed is a finding, no failure.
    """
    outcomes, faults = _outcomes(names)
    found = _previewed(file, outcomes, limit)
    for fault in (*faults, *found.faults):
        typer.echo(f"Error: {fault}", err=True)
    title = f"{printable(file.name)}: {_counted(found)}"
    if style == "json":
        typer.echo(json.dumps(_document(found), indent=2))
    elif style == "markdown":
        typer.echo("\n\n".join(map(markdown_table, _sheets(found, title))))
    else:
        print_sheets(console_for(), _sheets(found, title))
    if faults or found.faults:
        raise typer.Exit(Exit.FALSE)


def _outcomes(names: Sequence[str] | None) -> tuple[list[Outcome], list[Fault]]:
    try:
        targets, faults = find_targets(names or (), ["fake"])
    except LookupError as error:
        usage_error(str(error))
    outcomes, broken = outcomes_of(targets)
    faults += broken
    if not outcomes and not faults:
        wanted = ", ".join(names) if names else "any adapter"
        typer.echo(f"Nothing to show: no fake harness of {wanted}.", err=True)
        raise typer.Exit(Exit.UNREACHABLE)
    return outcomes, faults


def _previewed(file: Path, outcomes: Sequence[Outcome], limit: int) -> Previewed:
    try:
        with file.open("rb") as stream:
            found = preview(read_records(stream), outcomes, limit=limit)
    except OSError as error:
        usage_error(f"cannot read {printable(str(file))}: {error.strerror}")
    except EndlessLine as error:
        usage_error(f"cannot read {printable(str(file))}: {error}")
    if not found.records:
        why = "".join(f" (line {one.line}: {one.reason})" for one in found.unreadable.shown[:1])
        usage_error(f"{printable(str(file))} has no line that is a record{why}")
    return found


def _counted(found: Previewed) -> str:
    text = f"{found.records} record{'' if found.records == 1 else 's'}"
    return text + (f", {found.unreadable.count} unreadable" if found.unreadable.count else "")


# Tables


def _sheets(found: Previewed, title: str) -> Iterator[Sheet]:
    summary = [(o.adapter, str(o.exact), str(o.changed), str(o.refused)) for o in found.outcomes]
    yield Sheet(title, ("Adapter", "Exact", "Changed", "Refused"), summary)
    every = [outcome.adapter for outcome in found.outcomes]
    if found.unreadable.count:
        rows = [(str(one.line), one.reason) for one in found.unreadable.shown]
        yield Sheet(f"Unreadable{_more(found.unreadable.more)}", ("Line", "Why"), rows, folding=(1,))
    if found.refusals.count:
        refused = [_refused(one, every) for one in found.refusals.shown]
        yield Sheet(f"Refused{_more(found.refusals.more)}", _REFUSED, refused, folding=(2, 3, 4))
    if found.changes.count:
        changed = [_changed(one, every) for one in found.changes.shown]
        yield Sheet(f"Changed{_more(found.changes.more)}", _CHANGED, changed, folding=(2, 3, 4, 5, 6, 7))


def _more(count: int) -> str:
    return f" ({count} more not shown)" if count else ""


def _refused(one: Refusal, every: Sequence[str]) -> tuple[str, ...]:
    place = _short(one.path, 44, 20)
    return (str(one.line), _id(one.id), place, one.reason, _adapters(one.adapters, every))


def _changed(one: Change, every: Sequence[str]) -> tuple[str, ...]:
    values = (_short(one.place, 44, 20), one.given, one.retrieve, one.search)
    losses = ", ".join(one.losses) or _NONE
    return (str(one.line), _id(one.id), *values, losses, _adapters(one.adapters, every))


def _id(given: str) -> str:
    return _short(given, 8, 0) or _NONE


def _short(text: str, begin: int, end: int) -> str:
    """Keep the beginning and the end; the document has all of it."""
    if len(text) <= begin + end + 1:
        return text
    return f"{text[:begin]}…{text[len(text) - end :]}"


def _adapters(adapters: Sequence[str], every: Sequence[str]) -> str:
    return "all" if len(every) > 1 and list(adapters) == every else ", ".join(adapters)


# The document


def _document(found: Previewed) -> dict[str, Any]:
    lists: dict[str, Listing[Any]] = {
        "unreadable": found.unreadable,
        "refused": found.refusals,
        "changed": found.changes,
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "records": found.records,
        "adapters": [
            {"adapter": o.adapter, "exact": o.exact, "changed": o.changed, "refused": o.refused}
            for o in found.outcomes
        ],
        **{name: [_plain(one) for one in listing.shown] for name, listing in lists.items()},
        "not_shown": {name: listing.more for name, listing in lists.items()},
    }


def _plain(finding: UnreadableLine | Refusal | Change) -> dict[str, Any]:
    return asdict(finding)
