import os
import subprocess
import sys
from types import ModuleType

import adapter_core
import adapter_core.testing

PUBLIC = [
    "AdapterStore",
    "AnyOf",
    "Batching",
    "Criteria",
    "DEFAULT_ITEM_TYPE",
    "DeclaresDurability",
    "DeclaresProjection",
    "Deleting",
    "DeletingDriver",
    "Driver",
    "Durability",
    "EXACT",
    "EXTENSIONS",
    "Extension",
    "ExternalMemoryStore",
    "Fidelity",
    "Hit",
    "ItemFields",
    "ItemLike",
    "ItemT",
    "Loss",
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "MAX_TERMS",
    "MAX_TOKEN_BYTES",
    "ManifestRejected",
    "MemoryAdapterError",
    "MemoryAdapterManifest",
    "MemoryAdapterUnavailable",
    "MemoryItem",
    "MemoryItemField",
    "MemoryQuery",
    "MemoryStore",
    "Preview",
    "Projection",
    "QueryLike",
    "Record",
    "Reindexing",
    "ReindexingDriver",
    "Revising",
    "RevisingDriver",
    "Scanning",
    "SCORE_MEANING",
    "ScanningDriver",
    "ScoredHit",
    "Scoring",
    "SearchConsistency",
    "StoreOptions",
    "SupportsBatch",
    "SupportsDelete",
    "SupportsReindex",
    "SupportsRevisions",
    "SupportsScan",
    "SupportsScoredSearch",
    "TERMS_VERSION",
    "TIME_FILTERS",
    "UnrepresentableItem",
    "UnsupportedMemoryQuery",
    "check_filter_keys",
    "check_item",
    "content_strings",
    "decode_document",
    "decode_value",
    "encode_document",
    "encode_value",
    "extensions_of",
    "facet_token",
    "index_tokens",
    "is_scalar",
    "namespace_token",
    "open_store",
    "require",
    "same_fields",
    "same_value",
    "tag_token",
    "term_token",
    "term_weights",
    "terms",
    "unchanged",
]


def test_the_public_names_are_pinned() -> None:
    assert sorted(adapter_core.__all__) == sorted(PUBLIC)
    assert len(set(adapter_core.__all__)) == len(adapter_core.__all__)


def test_the_contents_page_is_complete() -> None:
    # a submodule becomes an attribute once somebody imports it
    importable = {name for name, value in vars(adapter_core).items() if not isinstance(value, ModuleType)}
    assert {name for name in importable if not name.startswith("_")} == set(PUBLIC)


def test_public_names_are_documented() -> None:
    undocumented = [
        name
        for name in PUBLIC
        if (callable(value := getattr(adapter_core, name)) and isinstance(value, type) and not value.__doc__)
    ]
    assert undocumented == []


def test_importing_core_loads_pydantic_and_the_standard_library_only() -> None:
    program = (
        "import sys; before = set(sys.modules); import adapter_core\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    # plugins that happen to be installed would be loaded by pydantic, not by core
    environment = {**os.environ, "PYDANTIC_DISABLE_PLUGINS": "__all__"}
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    loaded = {
        name
        for name in shown.stdout.split()
        if name not in sys.stdlib_module_names and not name.startswith("_sysconfigdata")
    }
    of_pydantic = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
    assert loaded - of_pydantic == {"adapter_core"}
    assert "pydantic" in loaded


def test_what_fakes_share_is_not_loaded_with_core() -> None:
    program = "import sys, adapter_core; print('adapter_core.testing' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


def test_a_fake_starts_without_faults() -> None:
    faults = adapter_core.testing.Faults()
    assert not any(
        (faults.down, faults.refuse_writes, faults.refuse_queries, faults.drop_identity, faults.hold_index)
    )
    assert faults.calls == []
    assert faults.calls is not adapter_core.testing.Faults().calls
    assert adapter_core.testing.TransportCall("GET", "identity").payload == ""
