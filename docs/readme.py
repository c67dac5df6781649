"""Write the generated parts of the README: `nox -s readme`.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. The profiles come from the
manifests alone, so a test can check that they are not stale; the output of a command carries the
date and the engine versions of the run that made it.
"""

import io
import re
import sys
from pathlib import Path

from adapter_conformance.render import (
    console_for,
    fidelity_sheet,
    loss_lines,
    markdown_list,
    markdown_table,
    print_comparison,
    profiles,
    promises_sheet,
)
from adapter_conformance.session import find_targets, run_targets

README = Path(__file__).resolve().parent.parent / "README.md"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def profile_tables() -> str:
    """Give the profiles of the installed adapters as Markdown; no case is run."""
    targets, _ = find_targets(environments=["fake"])
    found = profiles(run_targets(targets, cases=()).reports)
    tables = [markdown_table(fidelity_sheet(found)), markdown_table(promises_sheet(found))]
    return "\n\n".join([*tables, markdown_list("Named losses", loss_lines(found))]) + "\n"


def comparison() -> str:
    """Give what `fidelity compare` prints into a pipe."""
    stream = io.StringIO()
    targets, _ = find_targets()
    print_comparison(console_for(stream), run_targets(targets).reports)
    return "```text\n" + stream.getvalue() + "```\n"


def written(readme: str, parts: dict[str, str]) -> str:
    """Put the parts into a document."""
    return _PART.sub(lambda part: part[1] + parts.get(part[2], part[3]) + part[4], readme)


def part(readme: str, name: str) -> str:
    """Read one generated part of a document."""
    return next(found[3] for found in _PART.finditer(readme) if found[2] == name)


if __name__ == "__main__":
    text = written(README.read_text("utf-8"), {"profiles": profile_tables(), "output": comparison()})
    README.write_text(text, "utf-8")
    sys.stdout.write(f"{README.name} written\n")
