"""The package's document says what the code does."""

import re
from pathlib import Path

from adapter_core import MAX_TERMS
from adapter_postgres import (
    ACQUIRE_TIMEOUT,
    CLOSE_TIMEOUT,
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    POOL_SIZE,
    PostgresSettings,
    driver,
    schema,
    settings,
)

TEXT = Path(__file__).parent.with_name("README.md").read_text("utf-8")


def section(heading):
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_number_in_timeouts_is_one_of_the_code():
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", section("Timeouts"))]
    assert numbers == [CONNECT_TIMEOUT, ACQUIRE_TIMEOUT, COMMAND_TIMEOUT, CLOSE_TIMEOUT]
    own = PostgresSettings()
    assert numbers[:3] == [own.connect_timeout, own.acquire_timeout, own.command_timeout]


def test_other_values_are_those_of_the_code():
    assert f"up to {POOL_SIZE} connections" in section("Connections")
    assert PostgresSettings().pool_size == POOL_SIZE
    assert f"up to {settings.STATEMENT_CACHE}\nprepared statements" in section("Connections")
    assert f"Postgres {schema.OLDEST_SERVER} or newer" in TEXT
    assert f"{driver.MAX_DOCUMENT:,} characters" in section("Projection and losses")
    assert f"first {MAX_TERMS:,} distinct terms" in section("Text and order")
    assert f"than {driver.MAX_ROWS:,} items" in section("Sizing and growth")
    assert "gin_pending_list_limit = 256" in schema.STEPS[0][-1]
