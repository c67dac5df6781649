"""Memory adapters with declared fidelity: the contract, and the portable store over a driver."""

from ._codec import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    check_item,
    decode_document,
    decode_value,
    encode_document,
    encode_value,
    same_fields,
    same_value,
)
from ._driver import (
    DeletingDriver,
    Driver,
    ReindexingDriver,
    RevisingDriver,
    ScanningDriver,
)
from ._errors import (
    ManifestRejected,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
)
from ._extended import Batching, Deleting, Reindexing, Revising, Scanning, Scoring
from ._extensions import (
    EXTENSIONS,
    DeclaresDurability,
    DeclaresProjection,
    Durability,
    Extension,
    ScoredHit,
    SupportsBatch,
    SupportsDelete,
    SupportsReindex,
    SupportsRevisions,
    SupportsScan,
    SupportsScoredSearch,
    extensions_of,
)
from ._items import AnyOf, ItemFields, ItemLike, MemoryItem, MemoryQuery, QueryLike
from ._manifest import (
    Fidelity,
    MemoryAdapterManifest,
    MemoryItemField,
    SearchConsistency,
    require,
)
from ._projection import EXACT, Loss, Preview, Projection, unchanged
from ._protocols import ExternalMemoryStore, ItemT, MemoryStore, StoreOptions
from ._records import TIME_FILTERS, Criteria, Hit, Record, check_filter_keys, index_tokens
from ._registry import open_store
from ._relevance import SCORE_MEANING, term_weights
from ._store import DEFAULT_ITEM_TYPE, AdapterStore
from ._terms import MAX_TERMS, TERMS_VERSION, content_strings, terms
from ._tokens import (
    MAX_TOKEN_BYTES,
    facet_token,
    is_scalar,
    namespace_token,
    tag_token,
    term_token,
)

__all__ = [
    # items and queries
    "AnyOf",
    "ItemLike",
    "MemoryItem",
    "MemoryQuery",
    "QueryLike",
    # stores
    "ExternalMemoryStore",
    "MemoryStore",
    "open_store",
    # fidelity
    "Durability",
    "Fidelity",
    "Loss",
    "MemoryAdapterManifest",
    "MemoryItemField",
    "Preview",
    "Projection",
    "SearchConsistency",
    "require",
    # errors
    "ManifestRejected",
    "MemoryAdapterError",
    "MemoryAdapterUnavailable",
    "UnrepresentableItem",
    "UnsupportedMemoryQuery",
    # extensions
    "EXTENSIONS",
    "DeclaresDurability",
    "DeclaresProjection",
    "Extension",
    "ScoredHit",
    "SupportsBatch",
    "SupportsDelete",
    "SupportsReindex",
    "SupportsRevisions",
    "SupportsScan",
    "SupportsScoredSearch",
    "extensions_of",
    # for authors of adapters
    "AdapterStore",
    "Batching",
    "Criteria",
    "DEFAULT_ITEM_TYPE",
    "Deleting",
    "DeletingDriver",
    "Driver",
    "EXACT",
    "Hit",
    "ItemFields",
    "ItemT",
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "MAX_TERMS",
    "MAX_TOKEN_BYTES",
    "Record",
    "Reindexing",
    "ReindexingDriver",
    "Revising",
    "RevisingDriver",
    "Scanning",
    "ScanningDriver",
    "SCORE_MEANING",
    "Scoring",
    "StoreOptions",
    "TERMS_VERSION",
    "TIME_FILTERS",
    "check_filter_keys",
    "check_item",
    "content_strings",
    "decode_document",
    "decode_value",
    "encode_document",
    "encode_value",
    "facet_token",
    "index_tokens",
    "is_scalar",
    "namespace_token",
    "same_fields",
    "same_value",
    "tag_token",
    "term_token",
    "term_weights",
    "terms",
    "unchanged",
]
