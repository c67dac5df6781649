"""The package's document says what the code does."""

import re
from pathlib import Path
from uuid import UUID

from adapter_core import MAX_TERMS, ItemFields
from adapter_redis import (
    ACQUIRE_TIMEOUT,
    CHECK_INTERVAL,
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    POOL_SIZE,
    RedisSettings,
    driver,
    hashes,
    library,
    query_engine,
    scripts,
)

TEXT = Path(__file__).parent.with_name("README.md").read_text("utf-8")


def section(heading):
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_number_in_timeouts_is_one_of_the_code():
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", section("Timeouts"))]
    assert numbers == [CONNECT_TIMEOUT, ACQUIRE_TIMEOUT, COMMAND_TIMEOUT, query_engine.BUILD_TIMEOUT]
    own = RedisSettings()
    assert numbers[:3] == [own.connect_timeout, own.acquire_timeout, own.command_timeout]


def test_other_values_are_those_of_the_code():
    assert f"up to {POOL_SIZE} connections" in section("Connections")
    assert RedisSettings().pool_size == POOL_SIZE
    assert f"once in {CHECK_INTERVAL} second" in section("What invalidates the manifest")
    assert f"{driver.MAX_ITEMS:,} items or {driver.MAX_REQUEST:,} bytes" in section("Write conflicts")
    assert f"{driver.MAX_VALUE // 4:,} characters" in section("Projection and losses")
    assert f"{scripts.ANSWER_ITEMS:,} items or {scripts.ANSWER_BYTES:,} bytes" in section("Sizing and growth")
    assert f"up to {library.PURGED_AT_ONCE} expired" in section("Filters")
    assert f"{scripts.CLEARED_AT_ONCE} items at a time" in section("Namespace")
    assert f"first {MAX_TERMS:,} distinct terms" in section("Text and order")
    assert f"taken for {query_engine.DEFAULT_WINDOW:,}." in section("Connections")
    order = " ".join(section("Text and order").split())
    assert f"the first {query_engine.MAX_CLAUSES} terms of a text" in order
    assert f"counts a term {query_engine.MAX_REPEATS} times at most" in order
    half = query_engine.MAX_CLAUSES // 2
    assert f"take the place of one, down to {half}." in order
    sizing = " ".join(section("Sizing and growth").split())
    assert f"asked {query_engine.MAX_CLAUSES} conditions at most, {half} of them" in sizing


def test_every_module_is_in_the_table_and_no_other():
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)))
    there = {path.stem for path in Path(hashes.__file__).parent.glob("*.py")} - {"__init__"}
    assert sorted(named) == sorted(there)


def test_every_loss_is_named_and_no_other():
    named = re.findall(r"^- `([a-z-]+)`:", section("Projection and losses"), re.MULTILINE)
    assert named == [loss.name for loss in hashes.PROJECTION.losses]


def test_the_hash_that_is_shown_is_an_item():
    shown = section("Projection and losses").partition("HGETALL")[2].partition("```")[0].splitlines()[1:]
    fields = dict(re.split(r"\s+", line, maxsplit=1) for line in shown)
    item = hashes.unpack([part for pair in fields.items() for part in pair])
    stored = ItemFields(
        UUID(fields["id"]),
        1735689600.123456,
        {"user": "ada", "score": 0.5},
        "We met at the harbour.",
        ["places"],
    )
    assert item == hashes.PROJECTION.retrieve(stored)
    packed = hashes.pack(stored)
    pairs = dict(zip(packed[::2], packed[1::2], strict=True))
    assert pairs.items() <= fields.items()
    assert fields.keys() - pairs.keys() == {"adapter", "revision", "indexed", "facets"}
