"""The conformance suite of session stores: `pip install memory-authority[testing]`.

Subclass `SessionStoreSuite` in a test module and give a pytest fixture `harness` that yields a
`SessionStoreHarness` and closes it. pytest must run async tests (pytest-asyncio, mode `auto`).
"""

from .harness import (
    Corruption,
    InMemoryHarness,
    ManualClock,
    PostgresHarness,
    SessionStoreHarness,
    SqliteHarness,
)
from .suite import SessionStoreSuite

__all__ = [
    "Corruption",
    "InMemoryHarness",
    "ManualClock",
    "PostgresHarness",
    "SessionStoreHarness",
    "SessionStoreSuite",
    "SqliteHarness",
]
