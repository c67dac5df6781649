"""docs/lionagi.md says what the installed lionagi does."""

import runpy
from pathlib import Path

import pytest
from lionagi import InMemoryStore, MemoryItem, MemoryQuery

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "docs" / "deviations.py"))
PAGE = (ROOT / "docs" / "lionagi.md").read_text("utf-8")


def test_the_tables_are_not_stale() -> None:
    report = TOOL["ran"]()
    assert [case for case in report.cases if case.status == "error"] == []
    for name in ("table", "others"):
        assert TOOL["part"](PAGE, name) == TOOL[name](report), "run: nox -s lionagi"


def test_every_case_of_the_kit_is_on_the_page() -> None:
    assert [case.id for case in TOOL["ALL_CASES"] if f"{case.id} {case.title}" not in PAGE] == []


def test_the_page_says_when_and_with_what_it_was_made() -> None:
    assert TOOL["part"](PAGE, "versions").startswith("Seen on 2")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (MemoryQuery(), ["first", "second"]),
        (MemoryQuery(text="'FIRST'"), ["first"]),
        (MemoryQuery(filters={"n": 1}), ["first"]),
        (MemoryQuery(filters={"n": None}), ["second"]),
    ],
    ids=["insertion order", "part of str(content)", "filters by ==", "missing is None"],
)
async def test_the_reference_store_does_what_the_page_says(query: MemoryQuery, found: list[str]) -> None:
    store = InMemoryStore()
    first = MemoryItem(content={"k": "first"}, metadata={"n": True}, created_at=1.0)
    second = MemoryItem(content={"k": "second"}, created_at=2.0)
    for item in (first, second):
        await store.store(item)
    assert [hit.content["k"] for hit in await store.search(query)] == found
    assert await store.retrieve(first.id) is first
