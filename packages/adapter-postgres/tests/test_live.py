from urllib.parse import urlsplit

from adapter_core.testing import Container
from adapter_postgres import PostgresMemoryStore, harness, live


def test_the_live_harness_stands_behind_the_fake_and_the_embedded() -> None:
    *others, last = live.HARNESSES
    assert (tuple(others), last) == (harness.HARNESSES, live.PostgresLiveHarness)
    assert [one.environment for one in live.HARNESSES] == ["fake", "embedded", "live"]


def test_container_is_asked_for_the_password_that_the_url_has() -> None:
    container = live.PostgresLiveHarness.container
    assert isinstance(container, Container)
    assert container.env["POSTGRES_PASSWORD"] == "{password}"
    filled = container.url.replace("{password}", "secret").replace("{host}", "h").replace("{port}", "1")
    parts = urlsplit(filled)
    assert (parts.username, parts.password, parts.hostname, parts.port) == ("postgres", "secret", "h", 1)
    assert container.port == 5432
    PostgresMemoryStore(filled)


async def test_harness_keeps_the_url_that_it_is_made_with_to_itself() -> None:
    made = live.PostgresLiveHarness("postgresql://u:sesame@127.0.0.1:1/db")
    assert await made.url() == "postgresql://u:sesame@127.0.0.1:1/db"
    assert "sesame" not in repr(made)
    assert "hold_search_index" in made.not_staged
    await made.close()
