"""What the codes of the server's errors mean for a caller, by SQLSTATE."""

# by SQLSTATE, whole or its class: the service could not be asked, or did not answer
_UNAVAILABLE_CLASSES = frozenset(
    {
        "08",  # connection
        "28",  # authentication
        "53",  # disk full, out of memory, too many connections
        "57",  # cancelled, timed out, shutting down, starting up
        "58",  # an error of the system, such as a failed read
    }
)
_UNAVAILABLE = frozenset(
    {
        "25006",  # read-only
        "25P03",  # idle in a transaction for too long
        "25P04",  # a transaction took too long
        "3D000",  # the database is gone
        "3F000",  # the schema is gone
        "42P01",  # a table is gone
        "55P03",  # a lock was not given in time
        "XX001",  # damaged data
        "XX002",  # a damaged index
    }
)
# it may have come after the server had done what it was asked
_UNCERTAIN_CLASSES = frozenset({"08"})
_UNCERTAIN = frozenset(
    {
        "25P03",
        "25P04",
        "57P01",  # shutting down
        "57P02",  # crashed
        "57P04",  # the database was dropped
        "57P05",  # idle for too long
    }
)


def is_unavailable(state: str) -> bool:
    """Whether the service could not do what it does at other times."""
    return state in _UNAVAILABLE or state[:2] in _UNAVAILABLE_CLASSES


def is_refusal(state: str) -> bool:
    """Whether it is an answer, after which nothing was done, and not the end of the connection."""
    return state not in _UNCERTAIN and state[:2] not in _UNCERTAIN_CLASSES
