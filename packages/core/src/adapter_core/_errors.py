"""The errors that a caller of a store may see.

    RuntimeError
    └── MemoryAdapterError            the operation failed; nothing was half done
        ├── UnsupportedMemoryQuery    the query asks for what the adapter does not offer
        ├── MemoryAdapterUnavailable  the backend could not be asked, or did not answer
        ├── UnrepresentableItem       the item cannot be stored exactly, so it is not stored
        └── ManifestRejected          the manifest falls short of what the caller requires

Native exceptions are the `__cause__` of these and never escape. No message holds an item's
content or a secret.
"""

from collections.abc import Iterable


class MemoryAdapterError(RuntimeError):
    """Base class for an explicit external MemoryStore operation failure."""


class UnsupportedMemoryQuery(MemoryAdapterError):
    """The query has keys or values that this adapter does not support; nothing was sent.

    Args:
        rejected_keys: Every rejected key: filter keys, or `limit`, `text`, `tags`, `filters`.
    """

    def __init__(self, rejected_keys: Iterable[str]) -> None:
        self.rejected_keys = tuple(sorted(set(rejected_keys)))
        super().__init__("unsupported memory query keys: " + ", ".join(self.rejected_keys))

    def __reduce__(self) -> tuple[type["UnsupportedMemoryQuery"], tuple[tuple[str, ...]]]:
        return type(self), (self.rejected_keys,)


class MemoryAdapterUnavailable(MemoryAdapterError):
    """Transport or service availability prevented an explicit operation.

    Args:
        message: What was prevented, and why.
        outcome_unknown: True when a write may have taken effect although no acknowledgement
            arrived. Retrieve the id, or store the same item again, to find out.
    """

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        self.outcome_unknown = outcome_unknown
        super().__init__(message)


class UnrepresentableItem(MemoryAdapterError):
    """The item holds something that would not come back equal; nothing was stored.

    Args:
        path: Where in the item, such as `metadata.when` or `content[3].k`.
        reason: Why it cannot be represented. Never the value itself.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"unrepresentable item: {path}: {reason}")

    def __reduce__(self) -> tuple[type["UnrepresentableItem"], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class ManifestRejected(MemoryAdapterError):
    """The manifest does not meet the caller's requirements.

    Args:
        shortfalls: One sentence for each requirement that is not met.
    """

    def __init__(self, shortfalls: Iterable[str]) -> None:
        self.shortfalls = tuple(sorted(set(shortfalls)))
        super().__init__("manifest rejected: " + "; ".join(self.shortfalls))

    def __reduce__(self) -> tuple[type["ManifestRejected"], tuple[tuple[str, ...]]]:
        return type(self), (self.shortfalls,)
