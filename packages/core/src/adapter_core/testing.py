"""What the deterministic fakes and the harnesses of adapters share. Not imported by `adapter_core`.

A fake stands where an adapter's transport stands. It keeps a log of what was sent, and has
switches that make it misbehave as a real service may.
"""

from dataclasses import dataclass, field
from typing import Literal

CallKind = Literal["setup", "write", "identity", "search", "other"]


@dataclass(frozen=True, slots=True)
class TransportCall:
    """One request that reached the transport.

    Attributes:
        operation: The backend's own word for it.
        kind: `identity` for a read by id, `search` for a read through a search index.
        payload: All that was sent, as text.
    """

    operation: str
    kind: CallKind
    payload: str = ""


@dataclass
class Faults:
    """The switches of a fake, and its log.

    Attributes:
        down: Every request fails as it does when the service cannot be reached.
        refuse_writes: A write is refused by the service, and nothing is stored.
        refuse_queries: A search is refused by the service.
        drop_identity: A write is acknowledged without the identity, and nothing is stored.
        hold_index: Searches see the index as it was when this was switched on.
        calls: Every request that reached the transport, also those that failed.
    """

    down: bool = False
    refuse_writes: bool = False
    refuse_queries: bool = False
    drop_identity: bool = False
    hold_index: bool = False
    calls: list[TransportCall] = field(default_factory=list[TransportCall])
