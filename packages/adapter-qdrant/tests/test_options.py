"""What the constructor and `open_store` take, and what they refuse before any I/O."""

import subprocess
import sys

import pytest
from qdrant_client import AsyncQdrantClient

from adapter_core import MemoryAdapterError, SupportsRevisions, open_store
from adapter_qdrant import Embedder, QdrantMemoryStore, QdrantSettings


def test_neither_the_package_nor_a_store_on_the_fake_loads_the_client():
    program = """
import asyncio, sys
from adapter_core import MemoryItem, open_store
from adapter_qdrant import QdrantMemoryStore
from adapter_qdrant.testing import FakeQdrant

open_store("qdrant+http://localhost:6333", api_key="k")
QdrantMemoryStore(":memory:")
asyncio.run(QdrantMemoryStore("http://x", transport=FakeQdrant().transport()).store(MemoryItem()))
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"qdrant_client", "httpx", "numpy", "grpc", "redis", "asyncpg"}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:6333", "https://cluster.example", "http://[::1]:6333/prefix", "path:here", ":memory:",
    ],
)  # fmt: skip
def test_these_places_are_taken(url):
    assert QdrantMemoryStore(url).manifest.adapter == "qdrant"


@pytest.mark.parametrize(
    "url",
    [
        "", "localhost:6333", "qdrant://x", "grpc://x", "http://", "http://:6333", "http://x:port", "path:",
        "http://x:99999", "http://me:sesame@x", "http://x?api-key=sesame", "http://x#sesame", "memory", None, 7,
    ],
)  # fmt: skip
def test_other_places_are_refused_without_showing_them(url):
    with pytest.raises(MemoryAdapterError) as caught:
        QdrantMemoryStore(url)
    assert "sesame" not in f"{caught.value!r}"


def test_a_url_finds_the_store_and_its_settings():
    store = open_store(
        "qdrant+https://cluster.example:6333", api_key="sesame", collection="agents", replication_factor=3
    )
    assert isinstance(store, QdrantMemoryStore)
    assert store._settings == QdrantSettings(collection="agents", replication_factor=3)
    assert store._driver._transport._place == "https://cluster.example:6333"
    assert open_store("qdrant+path:some/where")._driver._transport._place == "path:some/where"
    for url in ("qdrant+http:localhost", "qdrant+path:"):
        with pytest.raises(MemoryAdapterError):
            open_store(url)


def test_a_key_is_never_shown():
    store = QdrantMemoryStore("http://localhost", api_key="sesame")
    assert "sesame" not in f"{store!r}{store._driver!r}{store._driver._transport!r}{store._settings!r}"


@pytest.mark.parametrize(
    "options",
    [
        {"collection": ""}, {"collection": "a/b"}, {"collection": "x" * 201}, {"durability": "power"},
        {"timeout": 0}, {"timeout": 1.5}, {"pool_size": True}, {"shard_number": 0}, {"replication_factor": -1},
        {"write_consistency_factor": 0}, {"read_consistency": "most"}, {"read_consistency": 0},
        {"write_ordering": "strict"}, {"grpc_port": 0}, {"grpc_port": 65_536}, {"grpc_port": "6334"},
        {"grpc_port": True},
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_are_not_legal_are_refused(options):
    with pytest.raises(MemoryAdapterError, match=next(iter(options))):
        QdrantSettings(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"namespace": 1}, {"api_key": ""}, {"api_key": 5}, {"embedder": len}, {"settings": {}}, {"filters": "k"},
        {"filters": ["created_after"]},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_are_not_legal_are_refused(options):
    with pytest.raises(MemoryAdapterError):
        QdrantMemoryStore("http://localhost", **options)


def test_a_key_is_for_a_server_of_our_own_connection():
    for place in (":memory:", "path:here"):
        with pytest.raises(MemoryAdapterError, match="api_key"):
            QdrantMemoryStore(place, api_key="sesame")


def test_a_grpc_port_is_for_a_server_of_our_own_connection():
    settings = QdrantSettings(grpc_port=6334)
    for place in (":memory:", "path:here", AsyncQdrantClient(":memory:")):
        with pytest.raises(MemoryAdapterError, match="grpc_port"):
            QdrantMemoryStore(place, settings=settings)
    assert open_store("qdrant+http://localhost", grpc_port=6334)._settings == settings


@pytest.mark.parametrize(
    "values", [(None, "n", 3), (len, "", 3), (len, 3, 3), (len, "n", 0), (len, "n", True), (len, "n", 65_537)]
)
def test_an_embedder_that_is_not_legal_is_refused(values):
    with pytest.raises(MemoryAdapterError):
        Embedder(*values)


def test_what_is_in_this_process_is_volatile():
    assert QdrantMemoryStore(":memory:").durability == "volatile"
    assert QdrantMemoryStore("path:x").durability == "crash"
    assert QdrantMemoryStore("http://x").durability == "crash"


def test_the_manifest_says_what_is_lost():
    manifest = QdrantMemoryStore("http://x", filters=["k"]).manifest
    assert manifest.retrieve_fidelity == "full"
    assert manifest.search_fidelity == "native_fields"
    assert manifest.search_consistency == "eventual"
    assert manifest.search_returns_tags is False
    assert manifest.preserves_metadata
    assert not isinstance(QdrantMemoryStore("http://x"), SupportsRevisions)
