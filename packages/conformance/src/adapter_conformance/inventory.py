"""The inventory: every case, in order. Ids are stable and appear in every report."""

import hashlib
from collections.abc import Iterable

from ._case import Case
from ._extras import (
    x01_late_filter,
    x02_index_signature,
    x03_no_trace,
    x04_aliasing,
    x05_namespaces,
    x06_cancellation,
    x08_concurrent_replace,
    x09_setup_race,
    x11_degraded,
    x12_malformed,
)
from ._extras_claims import x07_lifecycle, x10_extensions, x14_text
from ._generated import x15_generated
from ._matrix_failure import c15_outage, c16_rejected_write
from ._matrix_items import (
    c01_surface,
    c02_identifier,
    c03_retrieval,
    c04_unknown,
    c05_foreign,
    c06_write_fields,
    c12_tags,
    c13_metadata,
)
from ._matrix_search import (
    c07_typed_hits,
    c08_limit,
    c09_empty_query,
    c10_unsupported_filter,
    c11_supported_filter,
    c14_consistency,
)
from ._toggles import c17_accuracy

INVENTORY_VERSION = 2
"""Raised whenever a case is added or changes what it asks."""

_JUDGED = (
    Case("C01", "surface", "structural surface", c01_surface),
    Case("C02", "identifier", "store identifier", c02_identifier),
    Case("C03", "retrieval", "direct retrieval", c03_retrieval),
    Case("C04", "unknown-id", "unknown id", c04_unknown),
    Case("C05", "foreign-kind", "wrong native kind", c05_foreign),
    Case("C06", "write-fields", "dropped write field", c06_write_fields),
    Case("C07", "typed-hits", "typed search", c07_typed_hits),
    Case("C08", "limit", "limit", c08_limit),
    Case("C09", "empty-query", "empty query", c09_empty_query),
    Case("C10", "unsupported-filter", "unsupported filter", c10_unsupported_filter),
    Case("C11", "supported-filter", "supported filter", c11_supported_filter),
    Case("C12", "tags", "tag projection", c12_tags),
    Case("C13", "metadata", "metadata projection", c13_metadata),
    Case("C14", "consistency", "consistency", c14_consistency),
    Case("C15", "outage", "transport outage", c15_outage),
    Case("C16", "rejected-write", "rejected write", c16_rejected_write),
)

MATRIX = (
    *_JUDGED,
    Case(
        "C17",
        "accuracy",
        "manifest accuracy",
        c17_accuracy({case.id: case.body for case in _JUDGED}),
    ),
)
"""The seventeen required cases."""

EXTRAS = (
    Case("X01", "late-filter", "a filter key declared later", x01_late_filter),
    Case("X02", "index-signature", "another way of indexing", x02_index_signature),
    Case("X03", "no-trace", "replace leaves no trace", x03_no_trace),
    Case("X04", "aliasing", "aliasing", x04_aliasing),
    Case("X05", "namespaces", "two namespaces", x05_namespaces),
    Case("X06", "cancellation", "cancellation in mid-call", x06_cancellation),
    Case("X07", "lifecycle", "use after close", x07_lifecycle),
    Case("X08", "concurrent-replace", "concurrent replaces", x08_concurrent_replace),
    Case("X09", "setup-race", "set-up race", x09_setup_race),
    Case("X10", "extensions", "claimed extensions", x10_extensions),
    Case("X11", "degraded", "a capability goes away", x11_degraded),
    Case("X12", "malformed", "malformed payload", x12_malformed),
    Case("X14", "text", "the words of a text", x14_text),
    Case("X15", "generated", "generated items and queries", x15_generated),
)
"""Cases of our own: required of the adapters here, offered to others. X13, survival of kill -9,
needs processes of its own and stands in the adapters' tests."""

ALL_CASES = (*MATRIX, *EXTRAS)


def inventory_digest(cases: Iterable[Case] = ALL_CASES) -> str:
    """Give a digest of the version, ids and names, so that two reports can be compared."""
    text = f"{INVENTORY_VERSION}\n" + "\n".join(case.label for case in cases)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
