import pytest

from adapter_conformance import ALL_CASES, MATRIX, run_case, run_conformance
from adapter_conformance._delegate import delegate
from adapter_conformance._run import CaseFailed, NotStaged, Run
from adapter_conformance._toggles import c17_accuracy
from adapter_conformance.claims import CLAIMS, Claim, _toggle, toggles
from adapter_core import MemoryAdapterManifest, MemoryQuery
from adapter_template.harness import DROPPING, EVENTUAL, LOSSY, TAGLESS, TEMPLATE, TemplateHarness

FIELDS = {
    "adapter": "C01",
    "native_item_fields": "C06",
    "dropped_item_fields": "C06",
    "supported_filters": "C10",
    "search_consistency": "C14",
    "retrieve_fidelity": "C03",
    "search_fidelity": "C07",
    "search_returns_tags": "C12",
    "preserves_metadata": "C13",
}
VARIANTS = {
    "template": TEMPLATE,
    "template-lossy": LOSSY,
    "template-dropping": DROPPING,
    "template-tagless": TAGLESS,
    "template-eventual": EVENTUAL,
}
CASES = {case.id: case for case in ALL_CASES}


def _harness(variant: str) -> TemplateHarness:
    (kind,) = VARIANTS[variant]
    return kind()


async def _manifest(variant: str, **options) -> MemoryAdapterManifest:
    return (await _harness(variant).make_store_with(**options)).manifest


async def _run(case: str, harness, adapter: str, wrap=lambda store: store):
    return await run_case(CASES[case], harness, adapter, "fake", wrap=wrap)


def test_every_manifest_field_has_its_case() -> None:
    assert {field: claim.case for field, claim in CLAIMS.items()} == FIELDS
    assert set(MemoryAdapterManifest.model_fields) == set(FIELDS)


def test_every_claim_says_what_must_be_seen_either_way() -> None:
    assert all(len(set(claim.bodies.values())) >= 2 for claim in CLAIMS.values())


def test_a_claim_with_one_body_is_an_error_of_the_kit() -> None:
    with pytest.raises(ValueError, match="the contrary"):
        Claim("C01", {"true": "seen"})


@pytest.mark.parametrize("variant", VARIANTS)
async def test_every_field_is_turned(variant) -> None:
    turned = list(toggles(await _manifest(variant, filters=("topic",))))
    assert {toggle.field for toggle in turned} == set(FIELDS)
    for toggle in turned:
        assert toggle.manifest is not None
        own = await _manifest(variant, filters=("topic",))
        assert getattr(toggle.manifest, toggle.field) != getattr(own, toggle.field)


async def test_every_filter_key_is_taken_away_and_an_unknown_one_added() -> None:
    turned = toggles(await _manifest("template", filters=("topic",)))
    shown = [toggle.value for toggle in turned if toggle.field == "supported_filters"]
    assert shown == [
        "{created_after, created_before, never_declared, topic}",
        "{created_before, topic}",
        "{created_after, topic}",
        "{created_after, created_before}",
    ]


async def test_a_change_takes_along_no_more_than_it_must() -> None:
    turned = toggles(await _manifest("template"))
    (toggle,) = (one for one in turned if (one.field, one.value) == ("search_returns_tags", "False"))
    given = (await _manifest("template")).model_dump()
    changed = {name for name, value in toggle.manifest.model_dump().items() if value != given[name]}
    assert changed == {"search_returns_tags", "search_fidelity"}


async def test_a_change_that_the_validator_always_refuses_has_no_manifest() -> None:
    toggle = _toggle(await _manifest("template"), "native_item_fields", frozenset({"id"}))
    assert toggle.manifest is None
    assert toggle.value == "{id}"


@pytest.mark.parametrize("variant", VARIANTS)
async def test_every_wrong_manifest_fails_the_named_case_which_names_the_field(variant) -> None:
    harness = _harness(variant)
    own = await _manifest(variant, filters=("topic", "rank", "owner"))
    for toggle in toggles(own):

        def _lying(store, toggle=toggle):
            return delegate(store, manifest=toggle.manifest)

        result = await _run(FIELDS[toggle.field], harness, variant, _lying)
        assert result.status == "failed", toggle
        assert f"{toggle.field}: declared " in result.reason, toggle


@pytest.mark.parametrize("variant", VARIANTS)
async def test_each_variant_is_certified_with_its_own_manifest(variant) -> None:
    report = await run_conformance(_harness(variant), adapter=variant)
    assert [(one.id, one.reason) for one in report.cases if one.status in ("failed", "error")] == []
    assert report.score == "17/17"
    assert report.certified
    assert report.false_claims == ()


WITH_ANOTHER = {
    ("template", "template-lossy"): {"retrieve_fidelity", "search_fidelity"},
    ("template", "template-dropping"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_fidelity"),
    },
    ("template", "template-tagless"): {"search_fidelity", "search_returns_tags"},
    ("template", "template-eventual"): {"search_consistency"},
    ("template-lossy", "template"): {"retrieve_fidelity", "search_fidelity"},
    ("template-lossy", "template-dropping"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_fidelity"),
    },
    ("template-lossy", "template-tagless"): {
        *("retrieve_fidelity", "search_fidelity", "search_returns_tags"),
    },
    ("template-lossy", "template-eventual"): {
        *("retrieve_fidelity", "search_fidelity", "search_consistency"),
    },
    ("template-dropping", "template"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_fidelity"),
    },
    ("template-dropping", "template-lossy"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_fidelity"),
    },
    # a hit of either is native_fields, and that claim is true
    ("template-dropping", "template-tagless"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_returns_tags"),
    },
    ("template-dropping", "template-eventual"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_fidelity"),
        "search_consistency",
    },
    ("template-tagless", "template"): {"search_fidelity", "search_returns_tags"},
    ("template-tagless", "template-lossy"): {
        *("retrieve_fidelity", "search_fidelity", "search_returns_tags"),
    },
    ("template-tagless", "template-dropping"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_returns_tags"),
    },
    ("template-tagless", "template-eventual"): {
        *("search_fidelity", "search_returns_tags", "search_consistency"),
    },
    ("template-eventual", "template"): {"search_consistency"},
    # declared immediate, nothing is found in time, so that nothing is seen of the hits
    ("template-eventual", "template-lossy"): {"retrieve_fidelity", "search_consistency"},
    ("template-eventual", "template-dropping"): {
        *("native_item_fields", "dropped_item_fields", "retrieve_fidelity", "search_consistency"),
    },
    ("template-eventual", "template-tagless"): {"search_consistency"},
}
"""Which fields are named when a variant, its name kept, carries the manifest of another."""


def test_every_variant_is_paired_with_every_other() -> None:
    assert set(WITH_ANOTHER) == {(one, other) for one in VARIANTS for other in VARIANTS if one != other}


@pytest.mark.parametrize(("variant", "other"), WITH_ANOTHER)
async def test_each_variant_is_refused_with_the_manifest_of_another(variant, other) -> None:
    manifest = await _manifest(other, filters=("topic", "rank", "owner"))
    manifest = manifest.model_copy(update={"adapter": variant})

    def _lying(store):
        return delegate(store, manifest=manifest)

    report = await run_conformance(_harness(variant), adapter=variant, cases=MATRIX, wrap=_lying)
    assert not report.certified
    assert {claim.field for claim in report.false_claims} == WITH_ANOTHER[variant, other]
    for field in WITH_ANOTHER[variant, other]:
        (judge,) = (case for case in report.cases if case.id == FIELDS[field])
        assert judge.status == "failed"
        assert f"{field}: declared " in judge.reason


# Consistency


async def test_an_eventual_index_that_is_held_back_is_seen_to_miss_and_then_to_hit() -> None:
    result = await _run("C14", _harness("template-eventual"), "template-eventual")
    assert result.status == "passed"
    assert result.notes == ("missed while the index was held back, found after it was exposed",)


class HeldBack(TemplateHarness):
    """A full store that says it is immediate, over a service that lags all the time."""

    async def reset(self) -> None:
        await super().reset()
        await self.hold_search_index(True)


async def test_an_immediate_store_whose_index_lags_fails_and_names_the_claim() -> None:
    result = await _run("C14", HeldBack(), "template")
    assert result.status == "failed"
    assert result.reason == "search_consistency: declared immediate, observed eventual"


async def test_an_eventual_store_that_retrieves_through_the_index_fails() -> None:
    async def _retrieve(inner, item_id):
        hits = await inner.search(MemoryQuery(limit=100))
        return next((hit for hit in hits if hit.id == item_id), None)

    def _wrap(store):
        return delegate(store, retrieve=_retrieve)

    result = await _run("C14", _harness("template-eventual"), "template-eventual", _wrap)
    assert (result.status, result.reason) == (
        "failed",
        "retrieve is not current while the search index lags",
    )


async def test_an_eventual_store_whose_replace_never_shows_fails() -> None:
    first = {}

    async def _search(inner, query):
        hits = await inner.search(query)
        return [first.setdefault(hit.id, hit) for hit in hits]

    def _wrap(store):
        return delegate(store, search=_search)

    result = await _run("C14", _harness("template-eventual"), "template-eventual", _wrap)
    assert (result.status, result.reason) == (
        "failed",
        "a replace is not found after the index was exposed",
    )


# C17 itself


def _c17_run() -> Run:
    return Run(TemplateHarness(), "template", "fake")


async def test_c17_fails_when_a_wrong_manifest_goes_unnoticed() -> None:
    async def _blind(_) -> None:
        pass

    with pytest.raises(CaseFailed, match="adapter=template-of-another goes unnoticed"):
        await c17_accuracy(dict.fromkeys(CASES, _blind))(_c17_run())


async def test_c17_fails_when_the_failure_does_not_name_the_field() -> None:
    async def _vague(run) -> None:
        if (await run.store()).manifest.adapter != "template":
            raise CaseFailed("something is wrong")

    with pytest.raises(CaseFailed, match="the failure does not name it: something is wrong"):
        await c17_accuracy(dict.fromkeys(CASES, _vague))(_c17_run())


async def test_c17_proves_nothing_with_a_case_that_fails_anyway() -> None:
    async def _failing(_) -> None:
        raise CaseFailed("the store is broken")

    judges = {case: CASES[case].body for case in FIELDS.values()} | {"C03": _failing}
    with pytest.raises(NotStaged, match="C03 fails with the manifest as it is"):
        await c17_accuracy(judges)(_c17_run())


async def test_c17_still_fails_for_the_fields_whose_cases_can_tell() -> None:
    async def _failing(_) -> None:
        raise CaseFailed("the store is broken")

    async def _blind(_) -> None:
        pass

    judges = {case: CASES[case].body for case in FIELDS.values()} | {"C03": _failing, "C13": _blind}
    with pytest.raises(CaseFailed, match="preserves_metadata=False goes unnoticed"):
        await c17_accuracy(judges)(_c17_run())


async def test_c17_counts_what_it_proved() -> None:
    result = await _run("C17", TemplateHarness(), "template")
    assert result.notes == ("20 wrong manifests noticed, 0 refused by the validator",)
