"""The errors of the layer.

    MemoryAdapterError
    ├── MemoryAdapterUnavailable     the database could not be asked, or did not answer (of core)
    ├── UnrepresentableItem          a content that would not come back equal (of core)
    └── AuthorityError               the operation failed; nothing was half done
        ├── InsufficientAuthority    a store that may not be the authority; also a ManifestRejected
        ├── ScopeViolation           a caller reached beyond its scope
        ├── SessionNotFound          no such session in this scope, or it belongs to another
        ├── SessionConflict          version, incarnation, mode or payload is not as expected
        ├── UnpairedToolResult       a tool result that does not answer a call
        ├── UnreadableUrl            a URL that names no database of this layer
        ├── UnreadableTranscript     what is stored does not decode
        ├── SchemaMismatch           the tables are missing, older or newer than this code
        └── WriteRejected            provenance, bounds, quota, screen or an isolated mode

Native exceptions are the `__cause__` of these and never escape. No message holds a content or a
secret.
"""

from adapter_core import ManifestRejected, MemoryAdapterError


class AuthorityError(MemoryAdapterError):
    """Base class for a failure of this layer."""


class InsufficientAuthority(AuthorityError, ManifestRejected):
    """The store falls short of what the authority over curated memory needs.

    Args:
        shortfalls: One sentence for each requirement that is not met; kept sorted in `missing`.
    """

    @property
    def missing(self) -> tuple[str, ...]:
        """Every shortfall, sorted."""
        return self.shortfalls


class ScopeViolation(AuthorityError):
    """The operation reaches beyond the scope of its caller."""


class SessionNotFound(AuthorityError):
    """This scope has no such session. A session of another scope gives the same error."""


class SessionConflict(AuthorityError):
    """The session is not in the state that the caller expects; nothing was changed."""


class UnpairedToolResult(AuthorityError):
    """A tool result does not answer a call of the assistant message before it; nothing was stored."""


class UnreadableUrl(AuthorityError):
    """The URL names no database that this layer can use. The message does not show it."""


class UnreadableTranscript(AuthorityError):
    """Stored rows do not decode. It is never taken for an empty transcript."""


class SchemaMismatch(AuthorityError):
    """The tables are missing, or of another version than this code knows."""


class WriteRejected(AuthorityError):
    """A write to curated memory is refused; nothing was stored."""
