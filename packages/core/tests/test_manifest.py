import pickle
from uuid import UUID

import pytest
from pydantic import ValidationError

from adapter_core import EXACT, ItemFields, ManifestRejected, Projection, require, unchanged

ALL = {"id", "created_at", "metadata", "content", "tags"}
NATIVE = {"retrieve_fidelity": "native_fields", "search_fidelity": "native_fields"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropped_item_fields": {"created_at"}}, "disjoint"),
        ({"native_item_fields": ALL - {"created_at"}}, "must be classified"),
        ({"native_item_fields": ALL - {"id"}, "dropped_item_fields": {"id"}}, "are required native"),
        (
            {"native_item_fields": ALL - {"content"}, "dropped_item_fields": {"content"}},
            "are required native",
        ),
        ({"native_item_fields": ALL - {"tags"}, "dropped_item_fields": {"tags"}}, "are required native"),
        (
            {"native_item_fields": ALL - {"metadata"}, "dropped_item_fields": {"metadata"}, **NATIVE},
            "preserved metadata must be a native field",
        ),
        (
            {
                "native_item_fields": ALL - {"created_at"},
                "dropped_item_fields": {"created_at"},
                "search_fidelity": "native_fields",
            },
            "full retrieve fidelity",
        ),
        ({"preserves_metadata": False, "search_fidelity": "lossy"}, "full retrieve fidelity"),
        (
            {
                "native_item_fields": ALL - {"created_at"},
                "dropped_item_fields": {"created_at"},
                "retrieve_fidelity": "native_fields",
            },
            "full search fidelity",
        ),
        ({"search_returns_tags": False}, "full search fidelity"),
        ({"preserves_metadata": False, "retrieve_fidelity": "lossy"}, "full search fidelity"),
        ({"adapter": ""}, "at least 1 character"),
        ({"search_consistency": "soon"}, "immediate"),
        ({"retrieve_fidelity": "almost"}, "native_fields"),
        ({"native_item_fields": ALL | {"score"}}, "Input should be"),
        ({"scores": True}, "Extra inputs"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(manifest, changes, message) -> None:
    with pytest.raises(ValidationError, match=message):
        manifest(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"search_consistency": "eventual"},
        {"search_fidelity": "native_fields", "search_returns_tags": False},
        {"retrieve_fidelity": "lossy", "search_fidelity": "lossy", "preserves_metadata": False},
        {
            "native_item_fields": ALL - {"metadata", "created_at"},
            "dropped_item_fields": {"metadata", "created_at"},
            "preserves_metadata": False,
            **NATIVE,
        },
    ],
)
def test_a_coherent_manifest_is_accepted(manifest, changes) -> None:
    assert manifest(**changes) == manifest(**changes)


@pytest.mark.parametrize("field", ["adapter", "supported_filters", "search_fidelity"])
def test_a_manifest_is_frozen(manifest, field) -> None:
    one = manifest()
    with pytest.raises(ValidationError):
        setattr(one, field, "x")
    assert type(one.supported_filters) is frozenset
    assert hash(one) == hash(manifest())


def test_a_requirement_that_is_met_says_nothing(manifest) -> None:
    require(
        manifest(),
        retrieve="full",
        search="full",
        consistency="immediate",
        filters=["kind", "created_after"],
        tags_in_search=True,
        metadata=True,
    )
    require(manifest())
    require(manifest(), retrieve="lossy", consistency="eventual", tags_in_search=False, metadata=False)


WEAK = {
    "search_consistency": "eventual",
    "retrieve_fidelity": "lossy",
    "search_fidelity": "lossy",
    "search_returns_tags": False,
    "preserves_metadata": False,
}


@pytest.mark.parametrize(
    ("wanted", "shortfall"),
    [
        ({"retrieve": "full"}, "retrieve fidelity is lossy, required full"),
        ({"retrieve": "native_fields"}, "retrieve fidelity is lossy, required native_fields"),
        ({"search": "full"}, "search fidelity is lossy, required full"),
        ({"consistency": "immediate"}, "search consistency is eventual, required immediate"),
        ({"filters": ["colour"]}, "filter colour is not supported"),
        ({"tags_in_search": True}, "search hits carry no tags"),
        ({"metadata": True}, "metadata is not preserved"),
    ],
)
def test_each_shortfall_is_named(manifest, wanted, shortfall) -> None:
    with pytest.raises(ManifestRejected) as caught:
        require(manifest(**WEAK), **wanted)
    assert caught.value.shortfalls == (shortfall,)
    assert str(caught.value) == f"manifest rejected: {shortfall}"


def test_native_fields_is_less_than_full_and_more_than_lossy(manifest) -> None:
    middle = manifest(**NATIVE)
    require(middle, retrieve="native_fields", search="lossy")
    with pytest.raises(ManifestRejected) as caught:
        require(middle, retrieve="full")
    assert caught.value.shortfalls == ("retrieve fidelity is native_fields, required full",)


def test_all_shortfalls_come_together_and_sorted(manifest) -> None:
    with pytest.raises(ManifestRejected) as caught:
        require(
            manifest(**WEAK),
            retrieve="full",
            search="native_fields",
            consistency="immediate",
            filters={"z", "a", "kind"},
            tags_in_search=True,
            metadata=True,
        )
    assert caught.value.shortfalls == (
        "filter a is not supported",
        "filter z is not supported",
        "metadata is not preserved",
        "retrieve fidelity is lossy, required full",
        "search consistency is eventual, required immediate",
        "search fidelity is lossy, required native_fields",
        "search hits carry no tags",
    )


def test_one_string_is_not_taken_for_a_collection_of_filters(manifest) -> None:
    with pytest.raises(TypeError):
        require(manifest(), filters="kind")


def test_a_manifest_survives_pickling_and_json(manifest) -> None:
    one = manifest()
    assert pickle.loads(pickle.dumps(one)) == one
    assert type(one).model_validate_json(one.model_dump_json()) == one


def test_the_exact_projection_changes_nothing() -> None:
    item = ItemFields(UUID(int=1), 0.0, {}, None, [])
    assert Projection() == EXACT
    assert EXACT.retrieve(item) is EXACT.search(item) is unchanged(item) is item
    assert EXACT.losses == ()
