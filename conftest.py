"""Offer the Python blocks of the documents to pytest.

All blocks of one document share a namespace, an event loop and a fresh working directory.
"""

import ast
import asyncio
import inspect
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


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect documents, but not the Markdown that tests keep as data."""
    if "tests" in file_path.relative_to(ROOT).parts:
        return None
    return collect(file_path, parent)
