import pickle

import pytest

from adapter_core import (
    ManifestRejected,
    MemoryAdapterError,
    MemoryAdapterUnavailable,
    UnrepresentableItem,
    UnsupportedMemoryQuery,
)

EXAMPLES = [
    MemoryAdapterError("it failed"),
    UnsupportedMemoryQuery(["b", "a"]),
    MemoryAdapterUnavailable("down", outcome_unknown=True),
    UnrepresentableItem("metadata.when", "a reason"),
    ManifestRejected(["z", "a"]),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_facts(error) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_is_a_memory_adapter_error(error) -> None:
    assert isinstance(error, MemoryAdapterError)
    assert isinstance(error, RuntimeError)


def test_rejected_keys_are_sorted_and_named_once() -> None:
    error = UnsupportedMemoryQuery(iter(["z", "a", "z", "limit"]))
    assert error.rejected_keys == ("a", "limit", "z")
    assert str(error) == "unsupported memory query keys: a, limit, z"


def test_shortfalls_are_sorted_and_named_once() -> None:
    error = ManifestRejected(["b", "a", "b"])
    assert error.shortfalls == ("a", "b")
    assert str(error) == "manifest rejected: a; b"


def test_unrepresentable_names_path_and_reason() -> None:
    error = UnrepresentableItem("content[3].k", "no")
    assert (error.path, error.reason) == ("content[3].k", "no")
    assert str(error) == "unrepresentable item: content[3].k: no"


def test_the_outcome_is_known_unless_said_otherwise() -> None:
    assert MemoryAdapterUnavailable("down").outcome_unknown is False
    assert MemoryAdapterUnavailable("down", outcome_unknown=True).outcome_unknown is True
