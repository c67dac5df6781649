"""Tables and lines of reports, for a terminal, a pipe or a Markdown file."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from adapter_core import TIME_FILTERS

from .report import CaseResult, ConformanceReport, LossNamed
from .session import is_partial, printable

NOTHING = "-"
_ENDLESS = 10_000
_LONG_REASON = 600
_STATUS = {"failed": "failed", "error": "error", "not_staged": "not staged"}
_COLOURS = {
    "certified": "green",
    "not certified": "red",
    "failed": "red",
    "error": "red",
    "not staged": "yellow",
    "partial": "yellow",
}


@dataclass(frozen=True)
class Sheet:
    """A table, before it is drawn. A header may break its line; a folding column may be squeezed."""

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    folding: tuple[int, ...] = ()


def console_for(stream: TextIO | None = None) -> Console:
    """Make the console for results. In a pipe lines are as long as they need to be."""
    file = stream or sys.stdout
    width = None if file.isatty() else _ENDLESS
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def verdict(report: ConformanceReport) -> str:
    """Say what the run comes to, in a word or two."""
    if report.not_run:
        return "not run"
    if is_partial(report):
        return "partial"
    return "certified" if report.certified else "not certified"


def engine_of(report: ConformanceReport) -> str:
    """Name the engine with its version."""
    return f"{report.engine} {report.engine_version}".strip() or NOTHING


def where(report: ConformanceReport) -> str:
    """Name the environment; a run that a wheel carries did not happen here."""
    return f"{report.environment}, released" if report.released else report.environment


# Profiles side by side


@dataclass(frozen=True)
class Profile:
    """What an adapter declares, under the name of its row."""

    name: str
    report: ConformanceReport

    @property
    def manifest(self) -> dict[str, object]:
        """The manifest's fields; empty if nothing was run."""
        return self.report.manifest or {}

    def names(self, field: str) -> list[str]:
        """Read a manifest field that is a set of names."""
        return [str(name) for name in cast("Sequence[object]", self.manifest.get(field, ()))]


def profiles(reports: Iterable[ConformanceReport]) -> list[Profile]:
    """Give one profile for each adapter, or more if it declares other things elsewhere."""
    found: dict[str, list[ConformanceReport]] = {}
    for report in reports:
        found.setdefault(report.label, []).append(report)
    return [profile for name, mine in found.items() for profile in _profiles_of(name, mine)]


def _profiles_of(name: str, reports: Sequence[ConformanceReport]) -> list[Profile]:
    distinct: list[ConformanceReport] = []
    for report in reports:
        if report.manifest is not None and not any(_same_profile(report, one) for one in distinct):
            distinct.append(report)
    if len(distinct) < 2:
        return [Profile(name, (distinct or list(reports))[0])]
    return [Profile(f"{name} ({report.environment})", report) for report in distinct]


def _same_profile(one: ConformanceReport, other: ConformanceReport) -> bool:
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("manifest", "losses", "durability", "extensions", "text_meaning", "text_meaning_with")
    )


def fidelity_sheet(found: Iterable[Profile]) -> Sheet:
    """What comes back, by adapter."""
    headers = ("Adapter", "Retrieve", "Search", "Consistency", "Tags\nin hits", "Metadata")
    return Sheet("Fidelity", headers, [_fidelity_row(profile) for profile in found])


def _fidelity_row(profile: Profile) -> tuple[str, ...]:
    manifest = profile.manifest
    if not manifest:
        return (profile.name, "not run", *[NOTHING] * 4)
    return (
        profile.name,
        str(manifest["retrieve_fidelity"]),
        str(manifest["search_fidelity"]),
        str(manifest["search_consistency"]),
        "yes" if manifest["search_returns_tags"] else "no",
        _metadata(profile),
    )


def _metadata(profile: Profile) -> str:
    if profile.manifest["preserves_metadata"]:
        return "exact"
    return "dropped" if "metadata" in profile.names("dropped_item_fields") else "changed"


def promises_sheet(found: Iterable[Profile]) -> Sheet:
    """What else is declared, by adapter."""
    headers = ("Adapter", "Dropped fields", "Filters", "Durability", "Extensions")
    rows = [
        (
            profile.name,
            _listed(profile.names("dropped_item_fields")),
            _filters(profile) if profile.manifest else NOTHING,
            profile.report.durability or NOTHING,
            _listed(name.removesuffix("/1") for name in profile.report.extensions),
        )
        for profile in found
    ]
    return Sheet("Promises", headers, rows, folding=(1, 2, 4))


def _filters(profile: Profile) -> str:
    keys = set(profile.names("supported_filters"))
    if keys >= TIME_FILTERS:
        return _listed(["time", *sorted(keys - TIME_FILTERS)])
    return _listed(sorted(keys))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or NOTHING


def proof_sheet(reports: Iterable[ConformanceReport]) -> Sheet:
    """What the runs proved, by adapter and environment."""
    headers = ("Adapter", "Where", "Engine", "Score", "Verdict", "Date")
    rows = [
        (
            report.label,
            where(report),
            engine_of(report),
            report.score,
            NOTHING if report.not_run else verdict(report),
            report.date,
        )
        for report in reports
    ]
    return Sheet("Proof", headers, rows, folding=(2, 3))


def loss_lines(found: Iterable[Profile]) -> list[tuple[str, str]]:
    """Give the named losses as pairs: the adapter, and what happens."""
    lines: list[tuple[str, str]] = []
    for profile in found:
        by_name: dict[str, list[LossNamed]] = {}
        for loss in profile.report.losses:
            by_name.setdefault(loss.name, []).append(loss)
        lines += [(profile.name, _loss(losses)) for losses in by_name.values()]
    return lines


def _loss(losses: Sequence[LossNamed]) -> str:
    fields = ", ".join(dict.fromkeys(loss.field for loss in losses))
    verbs = " and ".join(dict.fromkeys(loss.operation for loss in losses))
    told = " ".join(dict.fromkeys(loss.description for loss in losses))
    return f"{losses[0].name} ({fields}, {verbs}): {told}"


def text_lines(found: Iterable[Profile]) -> list[tuple[str, str]]:
    """Give what a query's text means, where it is not that every term occurs."""
    lines: list[tuple[str, str]] = []
    for profile in found:
        meanings = {"": profile.report.text_meaning, **profile.report.text_meaning_with}
        lines += [
            (f"{profile.name} with {option}" if option else profile.name, meaning)
            for option, meaning in meanings.items()
            if meaning
        ]
    return lines


def notes(reports: Iterable[ConformanceReport]) -> list[tuple[str, str]]:
    """Give what there is to say about the engines as pairs: the run, and the note or the image."""
    said = [(r, ", ".join(filter(None, (r.engine_note, r.image)))) for r in reports]
    return [(f"{r.label} {where(r)}", note) for r, note in said if note]


def _released(reports: Iterable[ConformanceReport]) -> list[tuple[str, str]]:
    return [
        (f"{r.label} {r.environment}", f"these are the results that {r.adapter_version} was released with")
        for r in reports
        if r.released
    ]


def _parts(reports: Sequence[ConformanceReport]) -> tuple[list[Sheet], dict[str, list[tuple[str, str]]]]:
    """Give the tables and the lists of a comparison, in the order in which they are read."""
    found = profiles(reports)
    sheets = [fidelity_sheet(found), promises_sheet(found), proof_sheet(reports)]
    lists = {
        "Named losses": loss_lines(found),
        "Text means something else": text_lines(found),
        "Engines": notes(reports),
        "Not run here, but before the release": _released(reports),
    }
    return sheets, {title: lines for title, lines in lists.items() if lines}


def print_comparison(console: Console, reports: Sequence[ConformanceReport]) -> None:
    """Print the profiles side by side, then what proved them."""
    print_parts(console, *_parts(reports))


def print_parts(
    console: Console, sheets: Iterable[Sheet], lists: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Print tables one below the other, then lists of pairs, each under its title."""
    parts: list[tuple[str, RenderableType]] = [(sheet.title, drawn(sheet)) for sheet in sheets]
    parts += [(title, _grid(lines)) for title, lines in lists.items()]
    _print_parts(console, parts)


def print_sheets(console: Console, sheets: Iterable[Sheet]) -> None:
    """Print tables one below the other, each under its title."""
    _print_parts(console, [(sheet.title, drawn(sheet)) for sheet in sheets])


def _print_parts(console: Console, parts: Iterable[tuple[str, RenderableType]]) -> None:
    for index, (title, body) in enumerate(parts):
        console.print(Text(f"\n{title}" if index else title, "bold"))
        _put(console, body)


def _cell(text: str) -> Text:
    return Text(text, _COLOURS.get(text.rstrip(), ""))


def _put(console: Console, body: RenderableType) -> None:
    """Print a table; in a pipe its lines end where the text ends."""
    if console.is_terminal:
        console.print(body)
        return
    with console.capture() as drawing:
        console.print(body, crop=False)
    for line in drawing.get().splitlines():
        console.out(line.rstrip(), highlight=False)


def drawn(sheet: Sheet) -> Table:
    """Draw a sheet for a terminal."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, header in enumerate(sheet.headers):
        table.add_column(header, overflow="fold", no_wrap=index not in sheet.folding)
    for row in sheet.rows:
        table.add_row(*(_cell(printable(cell)) for cell in row))
    return table


def markdown(reports: Sequence[ConformanceReport]) -> str:
    """Write the comparison as Markdown."""
    sheets, lists = _parts(reports)
    parts = [markdown_table(sheet) for sheet in sheets]
    parts += [markdown_list(title, lines) for title, lines in lists.items()]
    return "\n\n".join(parts) + "\n"


def markdown_list(title: str, lines: Iterable[tuple[str, str]]) -> str:
    """Write pairs as a Markdown list under a heading."""
    return "\n".join((f"### {title}", "", *(f"- {_escaped(a)}: {_escaped(b)}" for a, b in lines)))


def markdown_table(sheet: Sheet) -> str:
    """Write a sheet as a Markdown table under a heading."""
    rows = [sheet.headers, tuple("---" for _ in sheet.headers), *sheet.rows]
    body = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    return "\n".join((f"### {sheet.title}", "", *body))


def _escaped(cell: str) -> str:
    return printable(cell).replace("|", "\\|").replace("<", "&lt;")


# Verdicts, with what stands against them


def print_verdicts(console: Console, reports: Sequence[ConformanceReport]) -> None:
    """Print a line for each run, and below it every case that did not pass, with the reason."""
    lines = [_verdict_line(report) for report in reports]
    # The reason why nothing was run ends its line, and widens no column.
    columns = zip_longest(*(line[:2] if len(line) == 3 else line for line in lines), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    for report, line in zip(reports, lines, strict=True):
        wide = [*widths[:2], 0] if report.not_run else widths
        padded = [cell.ljust(width) for cell, width in zip(line, wide, strict=True)]
        console.print(Text("  ").join(map(_cell, padded)), soft_wrap=report.not_run != "")
        against = [("image", "", report.image)] if report.image else []
        against += [row for case in report.cases for row in _case_rows(case)]
        if against:
            _put(console, _grid(against))


def _verdict_line(report: ConformanceReport) -> tuple[str, ...]:
    """Give the cells of a run: five, or three if nothing was run."""
    cells: tuple[str, ...]
    if report.not_run:
        cells = (report.label, report.environment, report.score)
    else:
        cells = (report.label, report.environment, engine_of(report), _score(report), verdict(report))
    return tuple(map(printable, cells))


def _score(report: ConformanceReport) -> str:
    if not is_partial(report):
        return report.score
    passed = sum(case.status == "passed" for case in report.cases)
    return f"{passed}/{len(report.cases)} of the cases asked for"


def _case_rows(case: CaseResult) -> list[tuple[str, str, str]]:
    """Give the rows of a case that did not pass: the reason, then every false claim."""
    if case.status == "passed":
        return []
    rows = [(f"{case.id} {case.name}", _STATUS[case.status], shortened(case.reason))]
    rows += [("", "", line) for line in false_claims(case)]
    return rows


def false_claims(case: CaseResult) -> list[str]:
    """Give a line for each manifest field that was seen to differ from its declaration."""
    return [
        f"manifest field {claim.field}: declared {claim.declared}, observed {claim.observed}"
        for claim in case.claims
        if claim.declared != claim.observed
    ]


def shortened(reason: str) -> str:
    """Put a reason on one line and cut a very long one; the JSON document has all of it."""
    line = printable(reason)
    return line if len(line) <= _LONG_REASON else line[:_LONG_REASON] + " ..."


def _grid(rows: Iterable[tuple[str, ...]]) -> RenderableType:
    """Lay rows out in columns, of which the last folds below itself."""
    table = Table.grid(padding=(0, 2, 0, 0))
    made = [("", *row) for row in rows]
    for index in range(len(made[0])):
        last = index == len(made[0]) - 1
        table.add_column(overflow="fold", no_wrap=not last)
    for row in made:
        table.add_row(*(_cell(printable(cell)) for cell in row))
    return table
