"""The differential test: the same items and queries on several stores, and what it would notice."""

import asyncio
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from adapter_conformance._delegate import delegate
from adapter_conformance._diverging import shown
from adapter_conformance.cli import app
from adapter_conformance.corpus import WHOLE, drawn
from adapter_conformance.differential import Expectations, Vacuity, join, not_asked
from adapter_core import EXACT, AnyOf, MemoryQuery, check_item
from adapter_template.harness import DROPPING, EVENTUAL, LOSSY, TAGLESS, TemplateHarness

CORPUS = drawn(200, 60)

LOWER = """
from adapter_template import TemplateMemoryStore
from adapter_template.harness import TemplateHarness

class Lower(TemplateMemoryStore):
    async def search(self, query):
        tags = [tag.lower() for tag in query.tags or ()]
        return await super().search(query.model_copy(update={"tags": tags}))

class Harness(TemplateHarness):
    variant = "lower"
    async def make_store_with(self, **options):
        return Lower(self.service, **options)

class Exact(TemplateHarness):
    variant = "exact"

class Away(TemplateHarness):
    environment = "embedded"
    @staticmethod
    def not_run_reason():
        return "no wheel for this platform"

HARNESSES = (Harness, Exact)
AWAY = (Away,)
"""


def fidelity(*arguments):
    return CliRunner().invoke(app, ["differential", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module", name="expected")
def _expected() -> Expectations:
    return Expectations(CORPUS)


def joined(expected, harness=TemplateHarness, **options):
    return asyncio.run(join(harness(), expected, **options))


# What is generated


def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    assert drawn(200, 60) == CORPUS
    assert [item.model_dump() for item in drawn(200, 60).items] == [i.model_dump() for i in CORPUS.items]
    assert drawn(200, 60, seed=1).queries != CORPUS.queries


def test_every_item_can_be_stored_and_has_an_id_of_its_own() -> None:
    corpus = drawn(2_000, 1)
    for item in (*corpus.earlier, *corpus.items):
        check_item(item)
    assert len({item.id for item in corpus.items}) == 2_000
    assert {item.id for item in corpus.earlier} < {item.id for item in corpus.items}
    assert len(corpus.earlier) == 200


def test_the_full_size_covers_what_stores_get_wrong() -> None:
    corpus = drawn(2_000, 500)
    tags = {tag for item in corpus.items for tag in item.tags}
    assert {"a", "A", "", " a", "a,b", "é", "e\u0301", "t\x00", "\ud83d"} <= tags
    values = [value for query in corpus.queries for value in (query.filters or {}).values()]
    kinds = {type(value) for value in values}
    assert {bool, int, float, str, type(None), AnyOf} <= kinds
    keys = {key for query in corpus.queries for key in query.filters or {}}
    assert keys == {"topic", "rank", "owner", "created_after", "created_before"}
    texts = " ".join(query.text for query in corpus.queries if query.text)
    assert {"用户", "😀", "한국", "∑"} <= {*texts.split(), *texts}
    assert {query.limit for query in corpus.queries} == {1, 3, 20, WHOLE}


def test_most_queries_tell_items_apart_in_every_group() -> None:
    expected = Expectations(drawn(2_000, 500))
    vacuity = expected.vacuity()
    assert vacuity.enough
    assert vacuity.telling + vacuity.nothing + vacuity.everything == 500
    _, matches = expected.of(None)
    for group in ("text", "tags", "filters"):
        alone = [
            len(found)
            for query, found in zip(expected.corpus.queries, matches, strict=True)
            if [name for name in ("text", "tags", "filters") if getattr(query, name)] == [group]
        ]
        assert sum(0 < count < 2_000 for count in alone) > len(alone) / 2


@pytest.mark.parametrize(("items", "queries"), [(0, 1), (1, 0)])
def test_an_empty_corpus_is_refused(items, queries) -> None:
    with pytest.raises(ValueError, match="at least one"):
        drawn(items, queries)


def test_vacuity_counts_against_the_queries() -> None:
    assert Vacuity(telling=5, nothing=3, everything=2).enough
    assert not Vacuity(telling=4, nothing=3, everything=2).enough


# Who agrees


@pytest.mark.parametrize("harness", [TemplateHarness, *LOSSY, *DROPPING, *TAGLESS, *EVENTUAL])
def test_every_adapter_agrees_with_what_its_projection_keeps(expected, harness) -> None:
    found = joined(expected, harness)
    assert (found.asked, found.agreed, found.smallest) == (60, 60, None)
    assert (found.adapter, found.left_out) == (harness.adapter, {})


def test_an_eventual_index_that_is_not_exposed_diverges(expected, monkeypatch) -> None:
    async def nothing(self) -> None: ...

    monkeypatch.setattr(EVENTUAL[0], "make_search_index_visible", nothing)
    found = joined(expected, EVENTUAL[0])
    assert found.agreed < found.asked
    assert found.smallest.found == 0 < found.smallest.expected


def test_the_projection_is_applied_first() -> None:
    """An item that was rounded up is not before the bound any more."""
    (kind,) = LOSSY
    corpus = drawn(1, 1)
    item = corpus.items[0].model_copy(update={"created_at": 100.0006})
    query = MemoryQuery(filters={"created_before": 100.0007}, limit=WHOLE)
    expected = Expectations(replace(corpus, earlier=(), items=(item,), queries=(query,)))
    assert joined(expected, kind).agreed == 1
    denied = joined(expected, kind, wrap=broken(projection=EXACT))
    assert (denied.agreed, denied.smallest.found, denied.smallest.expected) == (0, 0, 1)


def broken(**methods):
    return lambda store: delegate(store, **methods)


def asked_with(change):
    async def search(store, query):
        return await store.search(change(query))

    return broken(search=search)


BROKEN = {
    "tags ignored": (asked_with(lambda q: q.model_copy(update={"tags": None})), "tags="),
    "tags lower-cased": (
        asked_with(lambda q: q.model_copy(update={"tags": [t.lower() for t in q.tags or ()]})),
        "tags=",
    ),
    "text ignored": (asked_with(lambda q: q.model_copy(update={"text": None})), "text="),
    "filters ignored": (asked_with(lambda q: q.model_copy(update={"filters": {}})), "filters="),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_is_shown_with_the_smallest_query_and_the_ids(expected, name) -> None:
    wrap, group = BROKEN[name]
    found = joined(expected, wrap=wrap)
    assert found.agreed < found.asked == 60
    smallest = found.smallest
    assert smallest.query.startswith(group)
    assert " text=" not in smallest.query
    assert " filters=" not in smallest.query
    assert smallest.missing or smallest.surplus
    ids = {str(item.id) for item in CORPUS.items}
    assert {*smallest.missing, *smallest.surplus} <= ids


def test_an_item_given_twice_and_a_wrong_order_diverge(expected) -> None:
    async def twice(store, query):
        hits = await store.search(query)
        return [*hits, *hits[:1]]

    async def backwards(store, query):
        return (await store.search(query))[::-1]

    assert joined(expected, wrap=broken(search=twice)).smallest.surplus == ()
    assert "order is wrong" in str(joined(expected, wrap=broken(search=backwards)).smallest)


def test_old_versions_that_are_still_found_diverge(expected) -> None:
    """Every tenth item is stored twice; a store that keeps the tokens of the first is noticed."""
    old = {item.id: item for item in CORPUS.earlier}

    async def search(store, query):
        hits = await store.search(query)
        stale = [one for one in old.values() if set(one.tags) & set(query.tags or ())]
        seen = {hit.id for hit in hits}
        return [*hits, *(one for one in stale if one.id not in seen)]

    assert joined(expected, wrap=broken(search=search)).smallest.surplus


# What is left out by declaration


async def test_a_store_whose_text_means_something_else_is_not_asked_by_text(expected) -> None:
    store = await TemplateHarness().make_store()
    nearest = delegate(store, text_meaning="nearest by meaning")
    assert not_asked(nearest, MemoryQuery(text="word")) == "text means something else"
    assert not_asked(nearest, MemoryQuery(text=" ", tags=["t"])) == ""
    assert not_asked(store, MemoryQuery(text="word")) == ""
    assert not_asked(store, MemoryQuery(filters={"topic": 1})) == "filters not supported"
    assert not_asked(store, MemoryQuery(filters={"created_after": 1})) == ""


def test_what_is_left_out_is_counted_and_the_rest_is_asked(expected) -> None:
    texts = sum(bool((query.text or "").strip()) for query in CORPUS.queries)
    found = joined(expected, wrap=broken(text_meaning="nearest by meaning"))
    assert found.left_out == {"text means something else": texts}
    assert found.asked == found.agreed == 60 - texts > 0


def test_a_query_is_shown_in_ascii() -> None:
    query = MemoryQuery(text="用", tags=["\x1b"], filters={"k": AnyOf(1, "é"), "n": None}, limit=WHOLE)
    assert shown(query) == "text='\\u7528' tags=['\\x1b'] filters={'k': AnyOf(1, '\\xe9'), 'n': None}"
    assert shown(MemoryQuery(limit=3)) == "limit=3"


# The command

SMALL = ("--items", "100", "--queries", "80")


def test_the_command_ends_with_zero_if_all_agree() -> None:
    found = fidelity("template", "sqlite", *SMALL, "--environment", "fake")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("100 items (10 of them replaced), 80 queries, seed 0\n")
    assert "tell items apart" in found.stdout
    assert found.stderr == ""


def test_a_variant_that_diverges_is_named_and_ends_with_one(install) -> None:
    install("two", LOWER)
    found = fidelity("two", *SMALL)
    assert found.exit_code == 1
    lines = found.stdout.splitlines()
    assert any(line.startswith("two-exact  fake") and " 80     80 " in line for line in lines)
    assert any("two-lower fake" in line and "diverges: tags=[" in line for line in lines)
    assert fidelity("two-exact", *SMALL).exit_code == 0
    assert fidelity("two-nobody", *SMALL).exit_code == 2


def test_the_document_has_all_of_it(install) -> None:
    install("two", LOWER)
    document = json.loads(fidelity("two", *SMALL, "--format", "json", "--seed", "3").stdout)
    assert (document["schema_version"], document["seed"], document["holds"]) == (1, 3, False)
    assert [(one["variant"], one["smallest"] is None) for one in document["joined"]] == [
        ("exact", True),
        ("lower", False),
    ]


def test_queries_that_prove_nothing_do_not_pass() -> None:
    found = fidelity("template-lossy", "--items", "1", "--queries", "20")
    assert found.exit_code == 1
    assert "too few prove anything" in found.stdout


def test_where_nothing_can_run_it_ends_with_three(install) -> None:
    install("away", LOWER, "AWAY")
    found = fidelity("away", *SMALL)
    assert found.exit_code == 3
    assert "not run: no wheel for this platform" in found.stdout


def test_a_store_that_fails_is_an_error_and_stops_no_other() -> None:
    found = fidelity("template-lossy", *SMALL, "-o", "no_such_option=1")
    assert found.exit_code == 1
    assert found.stderr.startswith("Error: template-lossy fake: HarnessFault")
    assert fidelity("nobody").exit_code == 2
