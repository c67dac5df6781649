"""Write the table of requirements and their tests into the README of `packages/authority`.

`python docs/authority.py` writes it anew. A test names the requirements and threats that it shows at
the beginning of its name, as in `test_R05_T13_repeated_call_ids_keep_their_own_tools`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "packages" / "authority"
README = PACKAGE / "README.md"
PLACES = ("src/memory_authority/testing", "tests")

REQUIREMENTS = {
    1: "One owner: a turn is written to the session store and nowhere else",
    2: "A turn is appended whole or not at all",
    3: "Messages come back exactly",
    4: "A result without its call is refused",
    5: "Calls and results pair by message and call id",
    6: "Results of parallel calls pair in any order",
    7: "Loading repairs what history cannot avoid, and says so",
    8: "Failed and cancelled turns are kept, with their status",
    9: "A retried append changes nothing",
    10: "Concurrent writers serialise; versions compare and set",
    11: "Unreadable is not empty, and unknown is not empty",
    12: "Trim keeps whole turns, the newest always",
    13: "Trim is visible: report, record, one breadcrumb",
    14: "The breadcrumb is data, not text",
    15: "Transcripts and memory do not change each other",
    16: "Deletion is whole, and checks the owner",
    17: "A late write resurrects nothing",
    18: "A closed session is read and no more",
    19: "Scope is in every query; existence is not disclosed",
    20: "Mode and owner never change",
    21: "What was said is not recalled elsewhere",
    22: "The memory block is never stored",
    23: "A store that is not good enough is refused, with every shortfall",
    24: "Every write to memory is deliberate",
    25: "Provenance is required and survives",
    26: "Consolidation is bounded",
    27: "A failing extraction writes nothing",
    28: "Consolidation stays inside one partition",
    29: "Exact duplicates add no row",
    30: "Superseding is reversible and by id",
    31: "Forgetting removes the row and leaves a tombstone without content",
    32: "Only the own agent's records are written",
    33: "An empty allowlist matches nothing",
    34: "Rows without attribution are quarantined",
    35: "Results are checked again after the backend",
    36: "Quotas and read-only partitions fail closed",
    37: "Texts are screened on write and on read",
    38: "Expiry hides at once and deletes only when asked",
    39: "A writer sees its own write at once",
    43: "A failing authority raises, and is never an empty recall",
    62: "The order of the parts is fixed, the input last",
    63: "Input and session take precedence over memory",
    64: "Conflict detection is pluggable and fails closed",
    65: "Memory is handed over as fenced data",
    66: "Input can neither fake nor suppress the block",
    67: "Assembly is bounded, and the same on a retry",
    68: "What is no knowledge stays out",
    69: "The origin decides",
    70: "ACP and code sessions get no memory",
    71: "Isolation follows the stored mode",
    72: "Deliberate sources stay possible",
    73: "Promotion from an isolated session needs an explicit actor",
    74: "A digest covers the block, for caches",
    87: "No I/O in constructors; explicit, idempotent closing; no global state",
    88: "Tables are versioned and changed explicitly, transcripts expired explicitly",
    89: "One instance serves concurrent tasks",
    90: "Typed errors chain native ones",
    91: "Nothing that was said is logged",
}
THREATS = {
    1: "Memory poisoned through conversation",
    3: "Injection through recalled text",
    4: "Leaks across tenants, principals, agents",
    6: "Resurrection by late work",
    8: "Bypass of isolation",
    9: "Spoofed markers",
    11: "Hangs, huge output, floods",
    12: "Secrets in logs",
    13: "Confused identifiers",
    14: "Unattributed rows taken for shared ones",
    15: "Recursive growth",
    16: "Injection through scope",
}
# Every one must have a test.
NEEDED = {f"R{n:02}" for n in REQUIREMENTS} | {f"T{n:02}" for n in THREATS}

_NAMED = re.compile(r"test((?:_[RTG]\d\d)+)_")
_PART = re.compile(r"(<!-- generated: requirements -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def tests() -> Iterator[tuple[str, str]]:
    """Give each test with each requirement or threat that it names."""
    for place in PLACES:
        for path in sorted((PACKAGE / place).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                if found := _NAMED.match(node.name):
                    for name in found[1].split("_")[1:]:
                        yield name, node.name


def by_name() -> dict[str, list[str]]:
    """Give the tests of each requirement and threat."""
    found: dict[str, set[str]] = {}
    for name, test in tests():
        found.setdefault(name, set()).add(test)
    return {name: sorted(shown) for name, shown in sorted(found.items())}


def missing() -> list[str]:
    """Give the requirements and threats that must have a test and have none."""
    return sorted(NEEDED - by_name().keys())


def unknown() -> list[str]:
    """Give the tests of a requirement or threat that the table does not list."""
    listed = {f"R{n:02}" for n in REQUIREMENTS} | {f"T{n:02}" for n in THREATS}
    return sorted({test for name, test in tests() if name[0] != "G" and name not in listed})


def table() -> str:
    """Give the table as Markdown."""
    found = by_name()
    lines = ["| | What must hold | Shown by |", "|---|---|---|"]
    for letter, sentences in (("R", REQUIREMENTS), ("T", THREATS)):
        for number, sentence in sentences.items():
            name = f"{letter}{number:02}"
            if name in found or name in NEEDED:
                shown = "<br>".join(f"`{test}`" for test in found.get(name, ())) or "**no test**"
                lines.append(f"| {letter}{number} | {sentence} | {shown} |")
    return "\n".join(lines) + "\n"


def written(readme: str) -> str:
    """Put the table into the document."""
    return _PART.sub(lambda part: part[1] + "\n" + table() + "\n" + part[3], readme)


if __name__ == "__main__":
    README.write_text(written(README.read_text("utf-8")), "utf-8")
    if lacking := missing():
        sys.exit(f"no test for {', '.join(lacking)}")
    sys.stdout.write(f"{README.name} written\n")
