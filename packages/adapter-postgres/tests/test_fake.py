"""The fake that is shipped for tests, and the harnesses."""

import subprocess
import sys

from adapter_postgres import PostgresMemoryStore, harness
from adapter_postgres.harness import HARNESSES, PostgresEmbeddedHarness


def test_importing_the_package_does_not_load_the_client_library():
    code = (
        "import sys, adapter_postgres as a; a.PostgresMemoryStore('postgresql://host'); "
        "sys.exit('asyncpg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


async def test_a_store_on_the_fake_declares_what_one_on_a_server_does(on_fake):
    fake, real = on_fake(filters=["k"]), PostgresMemoryStore("postgresql://host", filters=["k"])
    assert fake.manifest == real.manifest
    assert fake.durability == real.durability == "power"
    assert fake.score_meaning == real.score_meaning


def test_the_harnesses_say_where_they_run():
    assert [one.environment for one in HARNESSES][:2] == ["fake", "embedded"]
    assert {one.adapter for one in HARNESSES} == {"postgres"}


def test_without_an_engine_the_harness_says_why(monkeypatch):
    monkeypatch.setattr(harness.embedded, "_installed", lambda: None)
    assert PostgresEmbeddedHarness.not_run_reason() == "no wheel for this platform"
