"""The Python blocks of a document are run by its reader more than once, and all in one folder."""

import ast
import asyncio
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/lionagi.md",
    "packages/adapter-sqlite/README.md",
    "packages/authority/README.md",
    "packages/core/README.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(document: str) -> None:
    namespace = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in BLOCK.findall((ROOT / document).read_text("utf-8")):
            code = compile(block, document, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            found = eval(code, namespace)
            if inspect.iscoroutine(found):
                runner.run(found)


def test_documents_can_be_run_again_in_one_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for document in [*DOCUMENTS, *DOCUMENTS]:
        run(document)
