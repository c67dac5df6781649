import asyncio
from dataclasses import replace
from types import MappingProxyType

import pytest

from adapter_conformance import ALL_CASES, harness_entries
from adapter_conformance import values as edge_values
from adapter_conformance._delegate import delegate
from adapter_conformance.broken import BROKEN, PROVING, BrokenStore, mutation_score, prove
from adapter_core import MemoryQuery, UnsupportedMemoryQuery
from adapter_template.harness import TemplateHarness

# Typed out, and never read from the catalogue: which case must notice, and what it must say.
NOTICED = {
    "manifest-made-anew": ("C01", "the manifest is another object after a call"),
    "manifest-invalid": ("C01", "the manifest does not validate"),
    "id-as-text": ("C02", "store gives str, not a UUID"),
    "created-at-rounded": ("C03", "retrieve changes created_at of the probe"),
    "spaces-stripped": ("C03", "retrieve changes content of the probe"),
    "retrieve-through-index": ("C03", "retrieve goes through the search index"),
    "similar-id": ("C04", "an unknown id retrieves the item of a similar one"),
    "foreign-coerced": ("C05", "a foreign record is given out as an item"),
    "foreign-acknowledged": ("C05", "store overwrites a foreign record"),
    "tuple-as-list": ("C06", "tuple in content: accepted"),
    "datetime-as-text": ("C06", "datetime in metadata: accepted"),
    "checked-late": ("C06", "a refused item reached the transport"),
    "tags-lower-case": ("C12", "retrieve changes tags of the probe"),
    "tags-distinct": ("C12", "retrieve changes tags of the probe"),
    "hits-without-tags": ("C12", "search_returns_tags: declared true, observed false"),
    "tags-any-case": ("C12", "tags=['Alpha-x'] finds"),
    "null-dropped": ("C13", "retrieve changes metadata of the probe"),
    "hits-null-dropped": ("C13", "search changes metadata of the probe"),
    "metadata-sorted": ("C13", "retrieve changes metadata of the probe"),
    "hits-of-own-class": ("C07", "a hit is a ScoredItem, not the item class"),
    "hits-with-score": ("C07", "a hit has further attributes"),
    "hits-of-kit-class": ("C07", "hits are not of the host's item class"),
    "hits-float-as-int": ("C07", "search changes content of the probe"),
    "limit-one-is-two": ("C08", "limit=1 gives 2 of 7 matches"),
    "limit-negative": ("C08", "limit=-1: accepted"),
    "limit-zero-asks": ("C08", "a limit that gives nothing reached the transport"),
    "ties-reversed": ("C09", "the empty query does not give the newest 20"),
    "blank-is-a-text": ("C09", "the empty query does not give the newest 20"),
    "unknown-filter-ignored": ("C10", "observed {created_after, created_before, never_declared"),
    "one-key-named": ("C10", "two unknown keys beside a known one: rejected"),
    "list-is-any-of": ("C10", "a list for"),
    "true-is-one": ("C11", "= True does not find exactly the items"),
    "first-alternative": ("C11", "AnyOf does not find the union"),
    "exclusive-bound": ("C11", "are not inclusive bounds"),
    "tags-after-limit": ("C11", "tags are applied after the limit"),
    "filters-after-limit": ("C11", "filters are applied after the limit"),
    "replace-seen-late": ("C14", "search_consistency: declared immediate, observed eventual"),
    "parts-of-words": ("X14", "finds"),
    "any-word": ("X14", "the text 'münchen zzz' finds"),
    "keys-are-text": ("X14", "a dict key is indexed as text"),
    "outage-is-empty": ("C15", "search in mid-life gives a result"),
    "outage-is-none": ("C15", "retrieve in mid-life gives a result"),
    "outage-acknowledged": ("C15", "store in mid-life gives a result"),
    "write-retried": ("C15", "store in mid-life sends 2 requests in an outage"),
    "native-error": ("C15", "retrieve in mid-life raises"),
    "outage-unexplained": ("C15", "search in mid-life hides the native error"),
    "never-recovers": ("C15", "does not work again after the outage"),
    "refusal-acknowledged": ("C16", "a refused write gives an identifier"),
    "native-refusal": ("C16", "a refused write raises RuntimeError"),
    "content-shown": ("C16", "the error of a refused write shows the content"),
    "identity-made-up": ("C16", "an acknowledgement without identity gives an identifier"),
    "refused-replace-shows": ("C16", "a refused replace changed the stored item"),
    "late-filter-blind": ("X01", "a filter key declared later does not find"),
    "other-index-is-empty": ("X02", "a namespace that is indexed in another way is used all the same"),
    "old-values-stay": ("X03", "a replaced item is found by what it was"),
    "old-text-stays": ("X03", "a replaced item is found by what it was"),
    "caller-keeps-hold": ("X04", "changing an item after store"),
    "live-items": ("X04", "changing what was handed out"),
    "live-hits": ("X04", "changing a hit changes what is found"),
    "shared-cache": ("X05", "an item of another namespace is retrieved"),
    "cancel-ignored": ("X06", "a cancelled store goes on"),
    "half-when-cancelled": ("X06", "a cancelled store left half an item"),
    "cached-after-close": ("X07", "retrieve works after close"),
    "limit-zero-after-close": ("X07", "search with limit 0 works after close"),
    "torn-replace": ("X08", "an item that nobody stored"),
    "set-up-race": ("X09", "stores that set up at once lose items"),
    "batch-first-wins": ("X10", "of the same id twice the first wins"),
    "batch-in-part": ("X10", "a batch with a bad item reached the transport"),
    "delete-says-yes": ("X10", "delete finds an item that is gone"),
    "clear-counts-nothing": ("X10", "clear does not count the items"),
    "scan-skips": ("X10", "a scan misses an item that was there"),
    "degraded-is-empty": ("X11", "search goes on although a capability went away"),
    "malformed-is-none": ("X12", "retrieve gives a result for a malformed record"),
    "malformed-is-empty": ("X12", "search gives a result for a malformed record"),
    "cause-lost": ("X12", "retrieve gives no cause"),
    "refused-search-is-empty": ("X12", "a refused search gives a result"),
}

MARKER = "a content that no report may show"


async def _is_full(kind) -> bool:
    harness = kind()
    try:
        manifest = (await harness.make_store()).manifest
    finally:
        await harness.close()
    return (manifest.retrieve_fidelity, manifest.search_fidelity, manifest.search_consistency) == (
        "full",
        "full",
        "immediate",
    )


def _full_fakes():
    """The fakes of every installed adapter that is full and immediate."""
    return {
        entry.name: kind
        for entry in harness_entries()
        for kind in entry.load()
        if kind.environment == "fake" and asyncio.run(_is_full(kind))
    }


FAKES = _full_fakes()


@pytest.fixture(autouse=True)
def _marked(monkeypatch) -> None:
    monkeypatch.setitem(edge_values.CONTENTS, "marker", [MARKER, 1e22])
    monkeypatch.setitem(edge_values.METADATA, "marker", {"z": MARKER, "none": None})
    monkeypatch.setitem(edge_values.TAGS, "marker", [MARKER.title(), MARKER, MARKER])


def test_catalogue_and_table_name_the_same_stores_cases_and_reasons() -> None:
    assert {broken.name: (broken.case, broken.reason) for broken in BROKEN} == NOTICED
    assert len(BROKEN) == len(NOTICED) == 76


def test_every_case_that_judges_a_store_by_itself_has_a_broken_store() -> None:
    # C17 is proved by turning manifests, X15 may find anything
    assert {case.id for case in ALL_CASES} - {broken.case for broken in BROKEN} == {"C17", "X15"}


def test_only_the_generated_case_is_left_out() -> None:
    assert [case.id for case in ALL_CASES if case not in PROVING] == ["X15"]


def test_the_template_is_among_the_fakes() -> None:
    assert "template" in FAKES


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
@pytest.mark.parametrize("adapter", FAKES)
async def test_exactly_the_named_case_notices(adapter, broken) -> None:
    proof = await prove(FAKES[adapter], adapter, broken)
    if proof.outcome in ("not_staged", "not_applicable"):
        pytest.skip(f"{adapter} cannot show it: {proof.why}")
    case, reason = NOTICED[broken.name]
    assert [noticed for noticed, _ in proof.noticed_by] == [case]
    assert reason in proof.noticed_by[0][1]
    assert proof.outcome == "killed"
    assert not any(MARKER.casefold() in one.reason.casefold() for one in proof.results)


@pytest.mark.parametrize("adapter", FAKES)
async def test_a_store_without_a_fault_is_noticed_by_no_case(adapter) -> None:
    proof = await prove(FAKES[adapter], adapter, replace(BROKEN[0], wrap=lambda store: store))
    assert proof.outcome == "survived"
    assert proof.noticed_by == ()


async def _pages(inner, filters, after, page_size):
    while True:
        everything = await inner.search(MemoryQuery(filters=filters, limit=10**6))
        rest = sorted((one for one in everything if after is None or one.id > after), key=lambda one: one.id)
        for item in rest[:page_size]:
            yield item
        if len(rest) <= page_size:
            return
        after = rest[page_size - 1].id


def _scan(inner, *, filters=None, after=None, page_size=500):
    if unknown := set(filters or {}) - inner.manifest.supported_filters:
        raise UnsupportedMemoryQuery(unknown)
    return _pages(inner, filters, after, page_size)


class ScanningHarness(TemplateHarness):
    async def make_store_with(self, **options):
        return delegate(await super().make_store_with(**options), scan=_scan)


async def test_every_broken_store_can_be_shown_over_a_store_that_scans() -> None:
    chosen = [broken for broken in BROKEN if broken.needs]
    assert {broken.needs for broken in chosen} == {"store_many", "delete", "clear", "scan"}
    score = await mutation_score(ScanningHarness, "template", chosen)
    assert [proof.outcome for proof in score.proofs] == ["killed"] * 5
    assert str(score) == "5/5"


def _named(name: str) -> BrokenStore:
    (broken,) = (broken for broken in BROKEN if broken.name == name)
    return broken


async def test_score_counts_what_was_killed_of_what_could_be_shown() -> None:
    id_as_text = _named("id-as-text")
    catalogue = [
        id_as_text,
        replace(id_as_text, reason="another reason"),
        replace(id_as_text, case="C03"),
        _named("scan-skips"),
        _named("other-index-is-empty"),
    ]
    score = await mutation_score(TemplateHarness, "template", catalogue)
    outcomes = ["killed", "survived", "survived", "not_applicable", "not_staged"]
    assert [proof.outcome for proof in score.proofs] == outcomes
    assert (score.adapter, score.killed, score.all) == ("template", 1, 3)
    assert str(score) == "1/3, 1 not applicable, 1 not staged"


async def test_a_fault_that_two_cases_notice_survives() -> None:
    def _blind(store):
        async def search(inner, query):
            await inner.search(query)
            return []

        return delegate(store, search=search)

    proof = await prove(TemplateHarness, "template", replace(_named("blank-is-a-text"), wrap=_blind))
    assert len(proof.noticed_by) > 1
    assert "C09" in dict(proof.noticed_by)
    assert proof.outcome == "survived"


async def test_a_broken_store_whose_case_the_harness_cannot_stage_is_not_staged() -> None:
    class NoForeignRecords(TemplateHarness):
        plant_foreign_record = None
        not_staged = MappingProxyType({"plant_foreign_record": "no foreign records here"})

    proof = await prove(NoForeignRecords, "template", _named("foreign-acknowledged"))
    assert proof.outcome == "not_staged"
    assert ("C05", "no foreign records here") in [(one.id, one.reason) for one in proof.results]


# Faults that a variant declares. Typed out: the rule must leave out these and no others.
DECLARED = {
    "template": {},
    "template-lossy": {"created-at-rounded": "it is declared: created-at-milliseconds"},
    "template-dropping": {"created-at-rounded": "it is declared: created-at-dropped"},
    "template-tagless": {"hits-without-tags": "it is declared: search-hits-without-tags"},
    "template-eventual": {},
}
NO_SCAN = {"scan-skips": "the store has no scan"}


def _variant(name: str):
    (entry,) = (entry for entry in harness_entries(["template"]) if entry.name == name)
    (kind,) = entry.load()
    return kind


def test_every_variant_of_the_template_is_pinned() -> None:
    assert {entry.name for entry in harness_entries(["template"])} == set(DECLARED)


@pytest.mark.parametrize("variant", DECLARED)
async def test_what_a_variant_declares_is_not_applicable_and_nothing_else(variant) -> None:
    store = await _variant(variant)().make_store()
    found = {broken.name: why for broken in BROKEN if (why := broken.not_applicable(store))}
    assert found == DECLARED[variant] | NO_SCAN


@pytest.mark.parametrize("adapter", FAKES)
async def test_over_a_full_adapter_every_fault_is_one(adapter) -> None:
    harness = FAKES[adapter]()
    try:
        store = await harness.make_store()
        found = {broken.name for broken in BROKEN if broken.not_applicable(store)}
    finally:
        await harness.close()
    assert found <= {broken.name for broken in BROKEN if broken.needs}


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        *((variant, name) for variant in DECLARED if variant != "template" for name in ("shared-cache",)),
        ("template-dropping", "exclusive-bound"),
        ("template-dropping", "caller-keeps-hold"),
        ("template-tagless", "tags-after-limit"),
        ("template-tagless", "replace-seen-late"),
        ("template-lossy", "metadata-sorted"),
    ],
)
async def test_a_fault_that_a_variant_does_not_declare_is_noticed_by_the_named_case(variant, name) -> None:
    proof = await prove(_variant(variant), variant, _named(name))
    case, reason = NOTICED[name]
    assert proof.outcome == "killed"
    assert [noticed for noticed, _ in proof.noticed_by] == [case]
    assert reason in proof.reason


async def test_a_late_replace_over_an_eventual_store_is_noticed_once_the_index_is_exposed() -> None:
    proof = await prove(_variant("template-eventual"), "template-eventual", _named("replace-seen-late"))
    assert proof.outcome == "killed"
    assert proof.noticed_by == (("C14", "a replace is not found after the index was exposed"),)


async def test_a_fault_that_the_manifest_calls_full_is_never_explained_by_a_loss() -> None:
    harness = _variant("template-lossy")()
    lossy = await harness.make_store()
    full = await TemplateHarness().make_store()
    lying = delegate(lossy, manifest=full.manifest)
    assert _named("created-at-rounded").not_applicable(lossy)
    assert not _named("created-at-rounded").not_applicable(lying)


async def test_the_reason_of_a_survivor_says_what_was_wanted_and_what_was_seen() -> None:
    proof = await prove(TemplateHarness, "template", replace(_named("id-as-text"), reason="wanted words"))
    assert proof.reason == "wanted 'wanted words', seen C02: store gives str, not a UUID"
