"""Every requirement has a test, and the table of them is that of the tests at hand."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOOL = runpy.run_path(str(ROOT / "docs" / "authority.py"))


def test_every_requirement_has_a_test() -> None:
    assert TOOL["missing"]() == []


def test_every_test_names_a_requirement_that_is_listed() -> None:
    assert TOOL["unknown"]() == []


def test_the_table_is_not_stale() -> None:
    readme = TOOL["README"].read_text("utf-8")
    assert "<!-- generated: requirements -->" in readme
    assert TOOL["written"](readme) == readme, "run: python docs/authority.py"


def test_a_requirement_without_a_test_is_noticed() -> None:
    assert "R02" in TOOL["by_name"]()
    TOOL["NEEDED"].add("R999")
    assert TOOL["missing"]() == ["R999"]
    TOOL["NEEDED"].discard("R999")
