"""The generated parts of the README are those that the adapters declare now."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "docs" / "readme.py"))
README = (ROOT / "README.md").read_text("utf-8")


def test_the_profiles_are_not_stale() -> None:
    assert TOOL["part"](README, "profiles") == TOOL["profile_tables"](), "run: nox -s readme"


def test_the_output_shows_every_adapter_certified() -> None:
    output = TOOL["part"](README, "output")
    proof = output.split("Proof")[1].split("Named losses")[0]
    rows = [line.split() for line in proof.splitlines() if "fake" in line or "embedded" in line]
    assert {row[0] for row in rows} >= {"sqlite", "template"}
    assert all(row[-2] == "certified" for row in rows)
    # what an engine cannot stage, its fake does
    assert all("17/17" in row for row in rows if "fake" in row)
