"""The package's document says what the code does."""

import re
from pathlib import Path

from adapter_core import MAX_TERMS
from adapter_qdrant import MAX_REQUEST, POOL_SIZE, REQUEST_TIMEOUT, QdrantSettings, finding, schema
from adapter_qdrant.store import _PROJECTION

TEXT = Path(__file__).parent.with_name("README.md").read_text("utf-8")


def section(heading):
    found = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return " ".join(found.split())


def test_every_number_in_timeouts_is_one_of_the_code():
    assert re.findall(r"\d+(?:\.\d+)?", section("Timeouts")) == [str(REQUEST_TIMEOUT)]
    assert QdrantSettings().timeout == REQUEST_TIMEOUT


def test_other_values_are_those_of_the_code():
    assert f"up to {POOL_SIZE} connections" in section("Connections")
    assert QdrantSettings().pool_size == POOL_SIZE
    assert "Qdrant {}.{} or newer is needed".format(*schema.OLDEST_SERVER) in TEXT
    assert f"larger than {MAX_REQUEST:,} characters" in section("Write conflicts")
    assert f"first {MAX_TERMS:,} distinct terms" in section("Text and order")
    assert f"beyond {finding.PAGE:,} is read in pages" in section("Sizing and growth")
    assert f'{{"adapter": "{schema.ADAPTER}", "schema": {schema.VERSION}}}' in section("Connections")
    for loss in _PROJECTION.losses:
        assert f"| `{loss.name}` | `{loss.field}` | `{loss.operation}` |" in section("Projection and losses")
