"""docs/foreign-stores.md says what the installed stores do."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from adapter_conformance import ALL_CASES
from adapter_postgres import embedded

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "docs" / "foreign"
PAGE = (ROOT / "docs" / "foreign-stores.md").read_text("utf-8")
STORES = {
    "LangGraph AsyncPostgresStore": ("langgraph_base", "langgraph_postgres"),
    "LangGraph AsyncSqliteStore": ("langgraph_base", "langgraph_sqlite"),
    "mem0 Qdrant vector store": ("mem0_qdrant",),
    "py-key-value MemoryStore": ("py_key_value",),
}


def _lacking() -> str:
    needed = ("langgraph.store.postgres", "langgraph.store.sqlite", "mem0", "psycopg", "key_value")
    missing = [name for name in needed if find_spec(name.partition(".")[0]) is None]
    return f"not installed: {', '.join(missing)}" if missing else embedded.not_run_reason() or ""


def test_the_page_is_not_stale() -> None:
    if reason := _lacking():
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _code_lines(module: str) -> int:
    """Count the lines that are neither blank nor comment nor the text of a docstring."""
    source = (TOOL / f"{module}.py").read_text("utf-8")
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts |= set(range(node.lineno, node.lineno + str(node.value.value).count("\n") + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(line.split("#")[0].strip()) and number not in texts for number, line in lines)


@pytest.mark.parametrize("modules", STORES.values(), ids=STORES)
def test_each_shim_has_at_most_forty_lines(modules: tuple[str, ...]) -> None:
    assert sum(map(_code_lines, modules)) <= 40


@pytest.mark.parametrize("store", STORES)
def test_each_store_has_a_section_with_every_case(store: str) -> None:
    section = PAGE.partition(f"## {store}\n")[2].partition("\n## ")[0]
    assert "With " in section
    assert [case.id for case in ALL_CASES if case.id != "X15" and case.id not in section] == []


def test_every_difference_has_its_smallest_input() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith(("| C", "| X"))]
    differing = [row for row in rows if not row[0].startswith("| Case")]
    assert len(differing) >= 30
    assert [row[0] for row in differing if not row[2].startswith("`")] == []
