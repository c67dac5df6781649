"""Write the table of docs/lionagi.md: `nox -s lionagi`.

lionagi's own `InMemoryStore` runs through the cases of the conformance kit that need nothing but a
store. It knows neither our classes nor a manifest, so a wrapper speaks for it and claims the most
that it could.
"""

import asyncio
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import lionagi

from adapter_conformance import ALL_CASES, CaseResult, ConformanceReport, Engine, run_conformance
from adapter_conformance.render import Sheet, markdown_table
from adapter_core import ItemFields, MemoryAdapterManifest, MemoryItem, MemoryItemField, MemoryQuery

PAGE = Path(__file__).resolve().parent / "lionagi.md"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

# X15 draws its examples, other ones on another release of Python, and meets the same differences.
CASES = tuple(case for case in ALL_CASES if case.id != "X15")

FIELDS = ItemFields._fields

# A sentence for each case that fails; another one that begins to fail needs one too.
WANTED = {
    "C06": "What is not a JSON value is refused with its path, since not every database could give it back equal.",
    "C08": "A limit that is negative or no int is refused.",
    "C09": "Without a condition: the newest first, then by id.",
    "C10": "A filter key that was not declared is refused by name.",
    "C11": (
        "A filter compares numbers by value and all else by type and value: `1` finds `1.0`, `True` does not "
        "find `1`, and a missing key is not null."
    ),
    "X04": "Nothing is shared between what is stored, what was given and what is handed out.",
    "X14": "Every word of the text occurs in the content, in any order, each as a whole.",
}


class Speaker:
    """Translates items and queries, and adds a manifest; it decides nothing."""

    manifest = MemoryAdapterManifest(
        adapter="lionagi",
        native_item_fields=frozenset(get_args(MemoryItemField)),
        dropped_item_fields=frozenset(),
        supported_filters=frozenset({"topic", "rank", "owner"}),
        search_consistency="immediate",
        retrieve_fidelity="full",
        search_fidelity="full",
        search_returns_tags=True,
        preserves_metadata=True,
    )

    def __init__(self, harness: "InMemoryHarness") -> None:
        self._harness = harness

    async def store(self, item: Any) -> UUID:
        return await self._harness.store.store(_as(lionagi.MemoryItem, item))

    async def retrieve(self, item_id: UUID) -> Any:
        found = await self._harness.store.retrieve(item_id)
        return None if found is None else _as(MemoryItem, found)

    async def search(self, query: MemoryQuery) -> list[Any]:
        asked = {name: getattr(query, name) for name in ("text", "tags", "filters", "limit")}
        hits = await self._harness.store.search(lionagi.MemoryQuery(**asked))
        return [_as(MemoryItem, hit) for hit in hits]


def _as(kind: Any, item: Any) -> Any:
    return kind(**{name: getattr(item, name) for name in FIELDS})


class InMemoryHarness:
    """Stores that share one `InMemoryStore`."""

    adapter = "lionagi"
    environment = "embedded"
    not_staged = {  # noqa: RUF012 - never changed
        "make_transport_available": "it runs in process, so there is no outage",
        "refuse_writes": "it runs in process, so nothing refuses a write",
        "plant_foreign_record": "it takes its own item class only",
        "plant_malformed_record": "it keeps objects, not records",
        "make_store_with": "its constructor takes no options",
        "age_index": "it has no index",
        "degrade": "it has no capability that could go away",
    }

    def __init__(self) -> None:
        self.store = lionagi.InMemoryStore()

    async def engine(self) -> Engine:
        return Engine("lionagi InMemoryStore", version("lionagi"), "in process")

    async def make_store(self) -> Speaker:
        return Speaker(self)

    async def make_search_index_visible(self) -> None: ...

    async def make_transport_unavailable(self) -> None: ...

    async def reset(self) -> None:
        self.store = lionagi.InMemoryStore()

    async def close(self) -> None: ...


def ran() -> ConformanceReport:
    """Run the cases."""
    return asyncio.run(run_conformance(InMemoryHarness(), cases=CASES))


def table(report: ConformanceReport) -> str:
    """Give each case that failed, with what is wanted and what was seen."""
    rows = [(_name(case), WANTED[case.id], case.reason) for case in _with(report, "failed")]
    return markdown_table(Sheet("What differs", ("Case", "The contract wants", "Seen first"), rows)) + "\n"


def others(report: ConformanceReport) -> str:
    """Give the cases that passed, and those that could not be staged with the reason."""
    passed = ", ".join(map(_name, _with(report, "passed")))
    rows = [(_name(case), case.reason) for case in _with(report, "not_staged")]
    staged = markdown_table(Sheet("What could not be staged", ("Case", "Reason"), rows))
    return f"### What holds\n\n{passed}.\n\n{staged}\n"


def versions(report: ConformanceReport) -> str:
    """Say when and with what the table was made."""
    return (
        f"Seen on {report.date} with lionagi {report.engine_version}, "
        f"adapter-conformance {report.kit_version} and Python {sys.version.split()[0]}.\n"
    )


def _with(report: ConformanceReport, status: str) -> list[CaseResult]:
    return [case for case in report.cases if case.status == status]


def _name(case: CaseResult) -> str:
    title = next(one.title for one in ALL_CASES if one.id == case.id)
    return f"{case.id} {title}"


def written(page: str, parts: dict[str, str]) -> str:
    """Put the parts into the page."""
    return _PART.sub(lambda part: part[1] + parts[part[2]] + part[4], page)


def part(page: str, name: str) -> str:
    """Read one generated part of the page."""
    return next(found[3] for found in _PART.finditer(page) if found[2] == name)


if __name__ == "__main__":
    report = ran()
    parts = {"versions": versions(report), "table": table(report), "others": others(report)}
    PAGE.write_text(written(PAGE.read_text("utf-8"), parts), "utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
