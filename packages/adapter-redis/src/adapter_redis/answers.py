"""What the scripts answer: plain text, JSON, or a reason why nothing was done."""

import json
from typing import Any

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable

_REASONS = {
    "building": "the search index is being built",
    "damaged": "a key of the namespace's index is gone or was changed; nothing was done; try reindex()",
    "gone": "the namespace is gone from the server: it was emptied, or another server took over",
    "replica": "the server is a replica now, and may lag behind; nothing was done",
    "signature": "the namespace has been indexed in another way since this store connected",
    "unindexed": "the search index is gone or lacks items, and could not be made again",
    "window": "the search matches more items than the server gives (MAXSEARCHRESULTS, MAXAGGREGATERESULTS)",
    "volatile": "the append-only file is off, which this store's durability needs; nothing was done",
}


class ServerUnfit(MemoryAdapterUnavailable):
    """The server is not, or no longer, what the store needs."""


def text_of(answer: Any) -> str:
    """Give what a script answered as text.

    Raises:
        ServerUnfit: Its settings are not what the store needs.
        MemoryAdapterUnavailable: The namespace is not as the store left it.
        MemoryAdapterError: A record is not ours, or there was no answer that can be read.
    """
    if type(answer) is not bytes:
        raise MemoryAdapterError("the server gave no answer of the script")
    if answer.startswith(b"!"):
        raise _refusal(answer[1:].decode("ascii", "replace"))
    try:
        return answer.decode()
    except UnicodeDecodeError:
        pass  # its text holds what was stored
    raise MemoryAdapterError("a stored record is malformed: it is no UTF-8")


def json_of(answer: Any) -> Any:
    """Give what a script answered as JSON; an empty list of Lua is an empty dict."""
    text = text_of(answer)
    try:
        return json.loads(text)
    except ValueError:
        pass  # its text holds what was stored
    raise MemoryAdapterError("the server gave no answer of the script")


def _refusal(why: str) -> MemoryAdapterError:
    word, _, detail = why.partition(" ")
    if word == "foreign":
        return MemoryAdapterError("a record under this identity is not this adapter's")
    if word == "evicting":
        return ServerUnfit(evicting(detail))
    kind = ServerUnfit if word in ("replica", "volatile") else MemoryAdapterUnavailable
    return kind(_REASONS.get(word, "the server gave no answer of the script"))


def evicting(policy: str) -> str:
    """Say that a server evicts."""
    return (
        f"the server may evict what is stored (maxmemory-policy is {policy}, not noeviction); "
        "allow_eviction=True accepts that"
    )
