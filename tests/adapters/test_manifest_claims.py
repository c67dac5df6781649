"""A manifest that an adapter itself believes, and that is wrong in one field, is found out by name.

The kit's own toggle case puts a wrong manifest in front of a good store. Here the store is built
with it, as after a slip in the adapter's source.
"""

import asyncio
from functools import wraps

import pytest

from adapter_conformance import ALL_CASES, harness_entries, run_conformance
from adapter_conformance._run import KIT_FILTERS
from adapter_conformance.claims import CLAIMS, toggles
from adapter_core import TIME_FILTERS, AdapterStore

FAKES = [
    (entry.name, harness)
    for entry in harness_entries()
    for harness in entry.load()
    if harness.environment == "fake"
]
JUDGES = {claim.case for claim in CLAIMS.values()}


def declared_by(adapter, harness, manifest=None, monkeypatch=None):
    """Run the judging cases, with another manifest in every store that has the kit's filters."""
    if manifest is not None:
        build = AdapterStore.__init__

        @wraps(build)
        def lie(self, driver, **options):
            if options["manifest"].supported_filters == TIME_FILTERS | set(KIT_FILTERS):
                options["manifest"] = manifest
            build(self, driver, **options)

        monkeypatch.setattr(AdapterStore, "__init__", lie)
    cases = [case for case in ALL_CASES if case.id in JUDGES]
    return asyncio.run(run_conformance(harness(), adapter=adapter, cases=cases))


@pytest.mark.parametrize(("adapter", "harness"), FAKES, ids=[name for name, _ in FAKES])
def test_every_wrong_field_is_named(adapter, harness, monkeypatch):
    right = declared_by(adapter, harness)
    assert not right.false_claims
    store = asyncio.run(harness().make_store_with(filters=KIT_FILTERS))
    unnoticed = []
    for toggle in toggles(store.manifest):
        if toggle.manifest is None:
            continue
        with monkeypatch.context() as patch:
            report = declared_by(adapter, harness, toggle.manifest, patch)
        if toggle.field not in {claim.field for claim in report.false_claims}:
            unnoticed.append((toggle.field, toggle.value))
    assert not unnoticed
