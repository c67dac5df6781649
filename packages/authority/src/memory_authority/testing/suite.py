"""The suite: all cases of a session store, named by the requirement that they show."""

from ._owners import OwnerCases
from ._trims import TrimCases
from ._turns import TurnCases


class SessionStoreSuite(TurnCases, TrimCases, OwnerCases):
    """Subclass it in a test module, beside a fixture `harness`."""
