"""The package's document says what the code does."""

import re
from pathlib import Path

from adapter_core import MAX_TERMS
from adapter_sqlite import BUSY_TIMEOUT, READERS, transport

TEXT = Path(__file__).parent.with_name("README.md").read_text("utf-8")


def section(heading):
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_number_in_timeouts_is_one_of_the_code():
    numbers = [
        float(number) for number in re.findall(r"\d+(?:\.\d+)?", section("Timeouts").replace("sqlite3", ""))
    ]
    assert numbers == [BUSY_TIMEOUT, transport._RETRY_PAUSE]


def test_other_values_are_those_of_the_code():
    assert f"up to {READERS} that read" in section("Connections")
    assert f"first {MAX_TERMS:,} distinct terms" in section("Text and order")
    assert "SQLite {}.{} or newer".format(*transport.OLDEST_SQLITE) in TEXT
