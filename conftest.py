"""Offer the Python blocks of the documents to pytest, and leave engines out where that is asked for.

All blocks of one document share a namespace, an event loop and a fresh working directory.
"""

import ast
import asyncio
import inspect
import re
from contextlib import ExitStack, chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import pad
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parent
STACK = "__document_stack"
RUNNER = "__document_runner"

# What a test asks for that needs a real engine: fixtures, values of `make`, and modules.
ENGINES = frozenset({"engine", "on_engine", "on_file", "on_server", "path", "server"})
MADE_OF_ENGINES = frozenset({"file", "server"})
OVER_ENGINES = frozenset({"test_embedded.py", "test_live.py", "test_pgbouncer.py", "test_wire.py"})


def evaluate(example: Example) -> None:
    """Run one block; `await` may stand at its top level."""
    __tracebackhide__ = True
    source = pad(example.parsed, example.line + example.parsed.line_offset)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, example.path, "exec", flags=flags, dont_inherit=True)
    result = eval(code, example.namespace)  # noqa: S307 - the documents are ours
    if inspect.iscoroutine(result):
        example.namespace[RUNNER].run(result)


class PythonBlocks(PythonCodeBlockParser):
    """Blocks marked `python`: prompts are doctests, the rest is a program."""

    def __init__(self) -> None:
        super().__init__()
        self.codeblock_parser = CodeBlockParser("python", evaluate)


def enter(namespace: dict[str, Any]) -> None:
    stack = ExitStack()
    # Windows cannot remove a directory that is the current one, so chdir unwinds first.
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory())))
    namespace[RUNNER] = stack.enter_context(asyncio.Runner())
    namespace[STACK] = stack
    namespace["__name__"] = "__main__"


def leave(namespace: dict[str, Any]) -> None:
    namespace[STACK].close()


collect = Sybil(
    path=str(ROOT),
    parsers=[PythonBlocks(), SkipParser()],
    patterns=["*.md"],
    excludes=["CHANGELOG.md"],
    setup=enter,
    teardown=leave,
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run do without engines and services."""
    parser.addoption("--fakes-alone", action="store_true", help="leave out tests over an engine or a service")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need an engine, if that is asked for."""
    if not config.getoption("--fakes-alone"):
        return
    left_out = [item for item in items if needs_engine(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def needs_engine(item: pytest.Item) -> bool:
    """Whether a test runs over an engine or a service."""
    spec = getattr(item, "callspec", None)
    made = spec.params.get("make") if spec else None
    where = {"embedded", "live"} & set(re.split(r"[^a-z]+", spec.id)) if spec else set[str]()
    asked = ENGINES & set(getattr(item, "fixturenames", ()))
    return bool(where or asked) or made in MADE_OF_ENGINES or item.path.name in OVER_ENGINES


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect documents, but not the Markdown that tests keep as data."""
    if "tests" in file_path.relative_to(ROOT).parts:
        return None
    return collect(file_path, parent)
