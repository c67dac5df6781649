"""The documents of all adapters have the same sections."""

import re
from pathlib import Path

import pytest

READMES = {
    path.parent.name: path.read_text("utf-8")
    for path in sorted(Path(__file__).parents[2].glob("packages/adapter-*/README.md"))
}
HEADINGS = [
    "Connections", "Concurrency", "Closing", "Timeouts", "Retries", "Namespace", "Write conflicts",
    "What invalidates the manifest", "Projection and losses", "Text and order", "Filters",
    "Sizing and growth", "Scaling out",
]  # fmt: skip


@pytest.mark.parametrize("adapter", READMES)
def test_the_headings_are_the_same_in_every_adapter(adapter):
    assert re.findall(r"^## (.*)$", READMES[adapter], re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("adapter", READMES)
def test_no_section_is_empty(adapter, heading):
    section = READMES[adapter].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert section.strip()
