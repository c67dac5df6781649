"""The same generated items and queries give the same sets on every installed adapter.

At a reduced size; `nox -s differential` runs the whole of it.
"""

import pytest

from adapter_conformance.corpus import drawn
from adapter_conformance.differential import Expectations, compare_targets
from adapter_conformance.session import Target, find_targets

CORPUS = drawn(items=200, queries=60)
TARGETS, _ = find_targets()


def test_the_queries_tell_items_apart():
    assert Expectations(CORPUS).vacuity().enough


@pytest.mark.parametrize(
    "target", [pytest.param(target, id=f"{target.label}-{target.environment}") for target in TARGETS]
)
def test_the_same_queries_find_the_same_items(target: Target):
    comparison, faults = compare_targets([target], CORPUS)
    assert [str(fault) for fault in faults] == []
    (joined,) = comparison.joined
    if joined.not_run:
        pytest.skip(f"not run: {joined.not_run}")
    assert str(joined.smallest or "") == ""
    assert joined.agreed == joined.asked > 0
