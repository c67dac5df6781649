"""The session suite, on every backend."""

from memory_authority.testing import SessionStoreSuite


class TestSessions(SessionStoreSuite):
    """All cases."""
