"""Write the generated parts of docs/foreign-stores.md: `nox -s foreign`.

Stores of other projects run through the cases of the kit that need nothing but a store. Each gets the
most favourable manifest that it could claim. With `--check` nothing is written, and a page that
would change is an error.
"""

import asyncio
import logging
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inputs import smallest
from langgraph_postgres import LangGraphPostgres
from langgraph_sqlite import LangGraphSqlite
from mem0_qdrant import Mem0Qdrant
from py_key_value import PyKeyValue
from shim import ForeignHarness
from wanted import WANTED

from adapter_conformance import ALL_CASES, CaseResult, ConformanceReport, run_conformance
from adapter_conformance.render import Sheet, markdown_table

PAGE = Path(__file__).resolve().parent.parent / "foreign-stores.md"
STORES: tuple[type[ForeignHarness], ...] = (LangGraphPostgres, LangGraphSqlite, Mem0Qdrant, PyKeyValue)
_PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_DATE = re.compile(r"(?<=Seen on )\d{4}-\d{2}-\d{2}")

# X15 draws its examples, other ones on another release of Python, and meets the same differences.
CASES = tuple(case for case in ALL_CASES if case.id != "X15")


@dataclass(frozen=True)
class Examined:
    """What the kit saw of one store."""

    store: type[ForeignHarness]
    report: ConformanceReport
    inputs: dict[str, tuple[str, str] | None]


async def examined(store: type[ForeignHarness]) -> Examined:
    """Run the cases, and look for the smallest input of each that fails."""
    report = await run_conformance(store(), adapter=store.adapter, cases=CASES)
    harness = store()
    try:
        inputs = {case.id: await smallest(harness, case.id) for case in _with(report, "failed", "error")}
    finally:
        await harness.close()
    return Examined(store, report, inputs)


def section(found: Examined) -> str:
    """Give what differs, what holds and what was not staged, of one store."""
    report = found.report
    rows = [(_name(case), WANTED[case.id], *_shown(found, case)) for case in _with(report, "failed", "error")]
    headers = ("Case", "The contract wants", "Smallest input", "What comes of it")
    table = markdown_table(Sheet(found.store.adapter, headers, rows)).partition("\n\n")[2]
    holds = ", ".join(map(_name, _with(report, "passed")))
    staged = "; ".join(f"{case.id}, {case.reason}" for case in _with(report, "not_staged"))
    used = ", ".join(f"{name} {version(name)}" for name in found.store.distributions)
    title = f"## {found.store.adapter}\n\nWith {used}.\n\n"
    return f"{title}{table}\n\nWhat holds: {holds}.\n\nNot staged: {staged}.\n\n"


def _shown(found: Examined, case: CaseResult) -> tuple[str, str]:
    small = found.inputs[case.id]
    if small is None:
        return "only a larger one: see the case", case.reason
    return f"`{small[0]}`", small[1]


def versions(date: str) -> str:
    """Say when and with what the page was made."""
    return (
        f"Seen on {date} with adapter-conformance {version('adapter-conformance')} "
        f"and Python {sys.version.split()[0]}.\n"
    )


def page(text: str, found: list[Examined], today: str) -> str:
    """Put the parts into the page. Its date is kept if nothing else changes."""
    old = _DATE.search(text)
    for date in (*([old[0]] if old else ()), today):
        parts = {"versions": versions(date), "stores": "\n" + "".join(map(section, found))}
        new = _PART.sub(lambda part: part[1] + parts[part[2]] + part[4], text)  # noqa: B023 - used at once
        if new == text:
            return text
    return new


def _with(report: ConformanceReport, *statuses: str) -> list[CaseResult]:
    return [case for case in report.cases if case.status in statuses]


def _name(case: CaseResult) -> str:
    title = next(one.title for one in ALL_CASES if one.id == case.id)
    return f"{case.id} {title}"


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """Let nothing out: a store that would reach another machine ends the run."""
    if event == "socket.getaddrinfo" and arguments[0] not in (None, "127.0.0.1", "localhost"):
        raise RuntimeError("the run may not ask for other machines")
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] != "127.0.0.1":
        raise RuntimeError("the run may not reach other machines")


def main() -> int:
    """Write or check the page."""
    sys.addaudithook(_loopback_only)
    logging.disable(logging.WARNING)  # the stores' own remarks
    text = PAGE.read_text("utf-8")
    found = [asyncio.run(examined(store)) for store in STORES]
    new = page(text, found, datetime.now(UTC).date().isoformat())
    if "--check" in sys.argv[1:]:
        sys.stdout.write(
            f"{PAGE.name} is {'as it must be' if new == text else 'stale: run nox -s foreign'}\n"
        )
        return int(new != text)
    PAGE.write_text(new, "utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
