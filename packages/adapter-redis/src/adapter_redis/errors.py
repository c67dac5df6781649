"""What the codes of the server's errors mean for a caller: the first word of its answer."""

import re

# The service could not do what it does at other times; nothing was done.
_UNAVAILABLE = frozenset(
    {
        "BUSY",  # another script runs for too long
        "CLUSTERDOWN",
        "LOADING",  # it reads its data after a start
        "MASTERDOWN",  # a replica without its master
        "MISCONF",  # it cannot write its data to disk
        "MOVED",  # the slot is on another node
        "ASK",
        "NOAUTH",
        "NOREPLICAS",
        "OOM",
        "READONLY",
        "TRYAGAIN",
        "UNKILLABLE",
        "WRONGPASS",
    }
)

# What redis-py makes of a code; not every version also keeps the code itself.
_CLASSES = {
    "AskError": "ASK",
    "AuthenticationError": "WRONGPASS",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "NoScriptError": "NOSCRIPT",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}
_WORD = re.compile(r"[A-Z]+")
# How servers before Redis 7 report what a command of a script answered.
_IN_SCRIPT = re.compile(r"^(?:ERR )?Error running script.*?: -([A-Z]+) ", re.DOTALL)


def code_of(error: BaseException) -> str:
    """Give the code of a server's error, such as `OOM`; empty if it has none.

    Args:
        error: An error of the client library for an answer of the server, or of the fake.
    """
    text = str(error)
    if found := _IN_SCRIPT.match(text):
        return found.group(1)
    code: object = getattr(error, "status_code", None) or _CLASSES.get(type(error).__name__)
    if isinstance(code, str):
        return code
    word = _WORD.match(text)
    return word.group() if word else ""


def is_unavailable(code: str) -> bool:
    """Whether the service could not do what it does at other times."""
    return code in _UNAVAILABLE
