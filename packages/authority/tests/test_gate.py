"""Which stores may be the authority: the real manifests, and every single shortfall."""

import pickle
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from adapter_core import (
    AdapterStore,
    ExternalMemoryStore,
    ManifestRejected,
    MemoryAdapterManifest,
    open_store,
)
from adapter_postgres import PostgresMemoryStore
from adapter_sqlite import SqliteMemoryStore
from adapter_template import TemplateMemoryStore, TemplateService
from memory_authority import (
    RESERVED_FILTERS,
    AuthoritativeMemoryStore,
    AuthorityError,
    CuratedMemory,
    InsufficientAuthority,
    Scope,
    require_authoritative,
)

NO_EXTENSIONS = ("no revisions extension", "no scan extension")
VOLATILE = "durability is volatile, required crash or power"
# How each adapter that is no authority falls short.
REFUSED = {
    "redis": (
        VOLATILE,
        "metadata is not preserved",
        "retrieve fidelity is lossy, required full",
        "search fidelity is lossy, required full",
    ),
    "qdrant+http": (
        "no revisions extension",
        "search consistency is eventual, required immediate",
        "search fidelity is native_fields, required full",
        "search hits carry no tags",
    ),
}


def shortfalls(store: ExternalMemoryStore, **options: bool) -> tuple[str, ...]:
    with pytest.raises(InsufficientAuthority) as caught:
        require_authoritative(store, **options)
    assert caught.value.missing == tuple(sorted(caught.value.missing))
    return caught.value.missing


def test_R23_sqlite_and_postgres_pass(tmp_path: Path) -> None:
    for store in (
        SqliteMemoryStore(tmp_path / "memory.db", filters=RESERVED_FILTERS),
        SqliteMemoryStore(tmp_path / "memory.db", filters=RESERVED_FILTERS, durability="crash"),
        PostgresMemoryStore("postgresql://nobody@127.0.0.1:1/none", filters=RESERVED_FILTERS),
    ):
        assert require_authoritative(store) is store
        assert isinstance(store, AuthoritativeMemoryStore)
    assert not (tmp_path / "memory.db").exists()


def test_R23_a_filter_that_is_not_declared_is_named(tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db", filters=["scope.tenant", "memory.kind"])
    assert shortfalls(store) == (
        "filter memory.status is not supported",
        "filter scope.agent is not supported",
        "filter scope.principal is not supported",
        "filter scope.session is not supported",
    )


def test_R23_a_volatile_store_is_taken_for_tests_alone() -> None:
    store = SqliteMemoryStore(":memory:", filters=RESERVED_FILTERS)
    assert shortfalls(store) == (VOLATILE,)
    assert require_authoritative(store, allow_volatile=True) is store


@pytest.mark.parametrize(
    ("gap", "named"),
    [
        (None, set()),
        ("lossy", {"retrieve fidelity is lossy, required full"}),
        ("eventual", {"search consistency is eventual, required immediate"}),
    ],
)
def test_R23_every_shortfall_is_named_at_once(gap: Any, named: set[str]) -> None:
    store = TemplateMemoryStore(TemplateService(), filters=RESERVED_FILTERS, gap=gap)
    found = shortfalls(store)
    assert {*NO_EXTENSIONS, VOLATILE, *named} <= set(found)
    if gap is None:
        assert set(found) == {*NO_EXTENSIONS, VOLATILE}


@pytest.mark.parametrize("scheme", sorted(REFUSED))
def test_R23_weaker_adapters_are_refused(scheme: str) -> None:
    (entry, *_) = [*entry_points(group="adapter_core.stores", name=scheme), None]
    if entry is None:
        pytest.skip(f"no adapter for {scheme}: is installed")
    url = {"redis": "redis://127.0.0.1:1/0", "qdrant+http": "qdrant+http://127.0.0.1:1"}[scheme]
    store: AdapterStore[Any] = open_store(url, filters=RESERVED_FILTERS)
    assert shortfalls(store) == REFUSED[scheme]
    with pytest.raises(InsufficientAuthority) as caught:
        CuratedMemory(store, Scope(agent="guide"))
    assert caught.value.missing == REFUSED[scheme]


class Declared:
    """A store of which only the declaration is looked at."""

    durability = "power"

    def __init__(self, **changes: Any) -> None:
        self.calls = 0
        every = frozenset({"id", "created_at", "metadata", "content", "tags"})
        self.manifest = MemoryAdapterManifest(
            **{
                "adapter": "declared",
                "native_item_fields": every,
                "dropped_item_fields": frozenset(),
                "supported_filters": frozenset(RESERVED_FILTERS),
                "search_consistency": "immediate",
                "retrieve_fidelity": "full",
                "search_fidelity": "full",
                "search_returns_tags": True,
                "preserves_metadata": True,
                **changes,
            }
        )

    async def _call(self, *_: Any, **__: Any) -> Any:
        self.calls += 1

    store = retrieve = search = store_many = retrieve_many = delete = clear = _call
    scan = retrieve_revision = replace = _call


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"search_consistency": "eventual"}, ("search consistency is eventual, required immediate",)),
        ({"retrieve_fidelity": "lossy"}, ("retrieve fidelity is lossy, required full",)),
        ({"search_fidelity": "native_fields"}, ("search fidelity is native_fields, required full",)),
        (
            {"search_fidelity": "native_fields", "search_returns_tags": False},
            ("search fidelity is native_fields, required full", "search hits carry no tags"),
        ),
        (
            {
                "native_item_fields": frozenset({"id", "metadata", "content", "tags"}),
                "dropped_item_fields": frozenset({"created_at"}),
                "retrieve_fidelity": "native_fields",
                "search_fidelity": "native_fields",
            },
            (
                "field created_at is dropped",
                "retrieve fidelity is native_fields, required full",
                "search fidelity is native_fields, required full",
            ),
        ),
    ],
)
def test_R23_each_shortfall_of_a_manifest_is_refused(changes: dict[str, Any], named: tuple[str, ...]) -> None:
    assert shortfalls(Declared(**changes)) == named


@pytest.mark.parametrize(
    ("without", "named"),
    [
        ("store_many", "no batch extension"),
        ("clear", "no delete extension"),
        ("scan", "no scan extension"),
        ("replace", "no revisions extension"),
        ("durability", "durability is not declared"),
    ],
)
def test_R23_each_missing_extension_is_refused(without: str, named: str) -> None:
    bare = type("Bare", (), {name: value for name, value in vars(Declared).items() if name != without})
    assert shortfalls(bare()) == (named,)


def test_R23_the_gate_calls_nothing_and_its_error_is_a_rejected_manifest() -> None:
    store = Declared(search_consistency="eventual")
    with pytest.raises(ManifestRejected) as caught:
        require_authoritative(store)
    assert store.calls == 0
    assert isinstance(caught.value, AuthorityError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.missing) == (InsufficientAuthority, caught.value.missing)
    assert require_authoritative(Declared()).manifest.adapter == "declared"
