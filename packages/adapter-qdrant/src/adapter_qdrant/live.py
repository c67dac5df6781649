"""The harness for a live server: one that the user gives by URL, or one in a container.

The kit finds the server, and makes the harness with its URL.
"""

import os
from typing import Any

from adapter_core.testing import Container, Environment

from . import harness
from .harness import ClientHarness

API_KEY = "ADAPTER_QDRANT_API_KEY"
"""The environment variable with the key of a server that the user gives."""


class QdrantLiveHarness(ClientHarness):
    """The adapter over a server that runs elsewhere."""

    environment: Environment = "live"
    container = Container(image="qdrant/qdrant:v1.20.0", port=6333, url="http://{host}:{port}")

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def place(self) -> Any:
        return self._url

    def api_key(self) -> str | None:
        return os.environ.get(API_KEY) or None


HARNESSES = (*harness.HARNESSES, QdrantLiveHarness)
