"""Search against a simple model, its order and its plans."""

import asyncio
import math
import random
from uuid import UUID

import pytest

from adapter_core import (
    AnyOf,
    Criteria,
    MemoryAdapterError,
    MemoryItem,
    MemoryQuery,
    facet_token,
    tag_token,
    term_token,
    terms,
)
from adapter_sqlite import schema, search, tokens

WORDS = ("alpha", "beta", "gamma", "delta", "用户", "x1")


def item(draw):
    return MemoryItem(
        id=UUID(int=draw.getrandbits(128), version=4),
        created_at=float(draw.choice([-1.5, 0.0, 1.0, 2.0, 2.0, 3.25])),
        content=" ".join(draw.choices(WORDS, k=draw.randrange(6))),
        tags=draw.choices(["a", "b", "c", "d", ""], k=draw.randrange(4)),
        metadata={"k": draw.choice([1, 1.0, True, "1", None]), "n": draw.randrange(3)},
    )


def query(draw):
    filters = {}
    if draw.random() < 0.4:
        filters["k"] = draw.choice([1, True, "1", None, AnyOf("1", None)])
    if draw.random() < 0.3:
        filters["n"] = draw.choice([0, AnyOf(0, 2), AnyOf(*range(100))])
    if draw.random() < 0.2:
        filters |= {"created_after": draw.choice([-1.5, 1]), "created_before": draw.choice([2, 10**400])}
    tags = draw.choice([None, ["a"], ["a", "b"], ["", "c"], ["absent"], [*"abcd", *map(str, range(99))]])
    text = draw.choice([None, None, "alpha", "alpha beta", "用户 gamma", "absent", "x1 x1 delta beta alpha"])
    return MemoryQuery(text=text, tags=tags, filters=filters, limit=draw.choice([1, 3, 1000]))


def matches(one, asked):
    words = set(terms(one.content))
    if asked.text is not None and not words.issuperset(terms(asked.text, asked=True)):
        return False
    if asked.tags and not set(asked.tags) & set(one.tags):
        return False
    for key, value in asked.filters.items():
        if key == "created_after":
            good = one.created_at >= value
        elif key == "created_before":
            good = one.created_at <= value
        else:
            values = value.values if isinstance(value, AnyOf) else (value,)
            token = facet_token(key, one.metadata[key])
            good = token in {facet_token(key, alternative) for alternative in values}
        if not good:
            return False
    return True


@pytest.mark.parametrize("seed", range(4))
async def test_any_query_finds_what_a_simple_model_finds_in_the_same_order(make, seed):
    draw = random.Random(seed)
    store = make(filters=["k", "n"])
    items = [item(draw) for _ in range(80)]
    await store.store_many(items)
    for _ in range(120):
        asked = query(draw)
        expected = sorted(
            (one for one in items if matches(one, asked)), key=lambda one: (-one.created_at, one.id)
        )
        hits = await store.search_scored(asked)
        found = [hit.item.id for hit in hits]
        if asked.text is None:
            assert found == [one.id for one in expected][: asked.limit]
            assert all(hit.score is None for hit in hits)
        else:
            assert len(found) == min(asked.limit, len(expected))
            assert set(found) <= {one.id for one in expected}
            ranks = [(-hit.score, -hit.item.created_at, hit.item.id) for hit in hits]
            assert ranks == sorted(ranks)


def weight(count, length):
    return math.floor(100 * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 100))) / 100


async def test_the_score_is_the_documented_sum_and_depends_on_the_item_alone(make):
    store = make()
    content = "memory memory of a long walk"
    await store.store(MemoryItem(content=content))
    expected = {"memory": weight(2, 6), "memory walk": weight(2, 6) + weight(1, 6)}

    async def scores():
        return {
            text: next(
                hit.score
                for hit in await store.search_scored(MemoryQuery(text=text, limit=100))
                if hit.item.content == content
            )
            for text in expected
        }

    assert await scores() == pytest.approx(expected)
    before = await scores()
    await store.store_many([MemoryItem(content="walk") for _ in range(50)])
    assert await scores() == before
    assert tokens.counted(["t"], ["f"], {"wa": 1}) == {"t": 0, "f": 0, "wa": round(100 * weight(1, 1))}


async def test_the_more_often_and_the_shorter_the_better_then_the_newer(make):
    store = make()
    for n, content in enumerate(["walk", "walk walk", "walk " + "x " * 300, "walk"]):
        await store.store(MemoryItem(content=content, created_at=float(n), metadata={"n": n}))
    hits = await store.search(MemoryQuery(text="walk"))
    assert [hit.metadata["n"] for hit in hits] == [1, 3, 0, 2]


async def test_a_text_of_very_many_terms_and_filters_is_answered(make):
    keys = [f"k{n}" for n in range(40)]
    store = make(filters=keys)
    numbered = [f"n{n}" for n in range(2000)]
    full = MemoryItem(content=" ".join(numbered), metadata=dict.fromkeys(keys, 1))
    lacking = MemoryItem(content=" ".join(numbered[:-1]), metadata=dict.fromkeys(keys[:-1], 1))
    await store.store_many([full, lacking])
    (hit,) = await store.search_scored(MemoryQuery(text=full.content))
    assert hit.item == full
    assert hit.score == pytest.approx(2000 * weight(1, 2000))
    assert len(await store.search(MemoryQuery(text=lacking.content))) == 2
    assert await store.search(MemoryQuery(filters=dict.fromkeys(keys, 1))) == [full]
    assert len(await store.search(MemoryQuery(filters=dict.fromkeys(keys[:-1], 1)))) == 2


async def test_any_of_very_many_values_is_answered(make):
    store = make(filters=["k"])
    await store.store_many([MemoryItem(content=n, metadata={"k": n}) for n in range(5)])
    await store.store_many([MemoryItem(metadata={"k": n}) for n in range(100_000, 100_400)])
    await store.store_many([MemoryItem(metadata={"k": -1}, tags=["t"]) for _ in range(300)])
    await store.store(MemoryItem(content=9, metadata={"k": 9}, tags=["t"]))
    many = AnyOf(*range(2, 30_000))
    hits = await store.search(MemoryQuery(filters={"k": many}))
    assert sorted(hit.content for hit in hits) == [2, 3, 4, 9]
    wide = AnyOf(*range(2, 30_000), *range(100_000, 100_400))
    hits = await store.search(MemoryQuery(filters={"k": wide}, tags=["t"]))
    assert [hit.content for hit in hits] == [9]


async def test_a_key_that_is_declared_later_finds_older_items(make):
    await make().store(MemoryItem(content="old", metadata={"k": 1}))
    assert len(await make(filters=["k"]).search(MemoryQuery(filters={"k": 1}))) == 1


async def test_bounds_are_inclusive_and_exact(make):
    store = make()
    await store.store(MemoryItem(created_at=0.1))
    for key, near, far in (
        ("created_after", 0.1, math.nextafter(0.1, 1)),
        ("created_before", 0.1, math.nextafter(0.1, 0)),
    ):
        assert len(await store.search(MemoryQuery(filters={key: near}))) == 1
        assert await store.search(MemoryQuery(filters={key: far})) == []
    assert len(await store.search(MemoryQuery(filters={"created_after": -(10**400)}))) == 1
    assert await store.search(MemoryQuery(filters={"created_after": 10**400})) == []


async def test_what_is_searched_reaches_sqlite_as_tokens_within_one_call(fake, on_fake):
    store = on_fake(filters=["k"])
    await store.store(MemoryItem(content="word", tags=["a tag"], metadata={"k": "v"}))
    del fake.faults.calls[:]
    await store.search(MemoryQuery(text="word", tags=["a tag"], filters={"k": "v"}))
    (call,) = fake.faults.calls
    assert (call.operation, call.kind) == ("find", "search")
    for token in (tag_token("a tag"), facet_token("k", "v"), term_token("word")):
        assert token in call.payload


# Plans


@pytest.fixture
async def filled(fake, on_fake):
    """A database of 400 items."""
    items = [
        MemoryItem(content=f"w{n % 3} w", tags=[f"t{n % 5}", "t"], metadata={"k": n % 2}) for n in range(400)
    ]
    await on_fake().store_many(items)
    return fake.connection, 1


def traced(filled, criteria):
    """The SELECTs that a search runs, values filled in."""
    connection, ns = filled
    statements = []
    connection.set_trace_callback(statements.append)
    search.find(connection, ns, schema.MARKER, criteria)
    connection.set_trace_callback(None)
    # SQLite writes infinity in a way that it does not read, and tells what FTS5 itself runs
    return [s.replace("Inf", "9e999") for s in statements if not s.startswith("--")]


def explained(filled, criteria):
    """The plan of each SELECT that a search runs."""
    connection, _ = filled
    queries = [f"EXPLAIN QUERY PLAN {statement}" for statement in traced(filled, criteria)]
    return [[row[3] for row in connection.execute(query)] for query in queries]


TAGS = tuple(tag_token(f"t{n}") for n in range(5))
FACET = ((facet_token("k", 1),),)


@pytest.mark.parametrize(
    "criteria",
    [
        Criteria(limit=20),
        Criteria(tags=TAGS[:1], limit=20),
        Criteria(tags=TAGS[:1], facets=FACET, limit=20, created_after=1.0),
        Criteria(tags=TAGS, limit=20),
        Criteria(tags=TAGS, facets=FACET, limit=20),
        Criteria(tags=tuple(tag_token(str(n)) for n in range(search.ALTERNATIVES + 1)), limit=20),
    ],
)
def test_without_text_a_search_reads_the_index_backwards_and_sorts_nothing(filled, criteria):
    ((walked, looked_up, *_),) = explained(filled, criteria)
    assert walked.startswith("SCAN f VIRTUAL TABLE")
    assert looked_up == "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)"
    assert not [step for step in explained(filled, criteria)[0] if "TEMP B-TREE" in step]


@pytest.mark.parametrize(
    "criteria",
    [
        Criteria(terms=(term_token("w"),), limit=5),
        Criteria(terms=(term_token("w"), term_token("w1")), tags=TAGS[:2], facets=FACET, limit=5),
        Criteria(terms=tuple(term_token(f"w{n}") for n in range(search.MATCHED + 1)), limit=5),
    ],
)
def test_a_search_by_text_finds_every_row_by_an_index(filled, criteria):
    for steps in explained(filled, criteria):
        scanned = [step for step in steps if step.startswith("SCAN")]
        assert not [step for step in scanned if step.startswith(("SCAN i", "SCAN h"))]


def test_of_a_common_term_the_items_below_the_last_hit_are_not_read(filled):
    connection, ns = filled
    (before,) = connection.execute("SELECT count(*) FROM memory_items WHERE place >= 0").fetchone()
    *_, last = traced(filled, Criteria(terms=(term_token("w"),), limit=5))
    assert f"MATCH '\"{ns}ww_k" in last
    assert before == 400


def test_an_item_is_found_in_order_wherever_its_time_lies():
    times = [-1e308, -1.0, -0.0, 0.0, 1e-9, 0.02, 1.0, 1.7e9, 1.7e9 + 1 / 64, 2.0**34, 1e12, 1e308]
    moments = [tokens.moment(time) for time in times]
    assert moments == sorted(moments)
    assert moments[0] == tokens.moment(-math.inf) == 0
    assert moments[-1] == tokens.moment(math.inf) == tokens.LAST_MOMENT
    assert tokens.last_place(math.inf) < 2**63
    assert tokens.last_place(1.0) < tokens.first_place(1.0 + 1 / 64)


def test_a_moment_that_is_full_is_refused():
    last = tokens.last_place(1.0)
    assert tokens.next_place(1.0, None) == tokens.first_place(1.0)
    assert tokens.next_place(1.0, last - 1) == last
    with pytest.raises(MemoryAdapterError, match="of one moment"):
        tokens.next_place(1.0, last)


async def test_a_common_term_gives_the_best_and_of_these_the_newest(make):
    draw = random.Random(7)
    store = make()
    items = [
        MemoryItem(
            id=UUID(int=draw.getrandbits(128), version=4),
            created_at=float(draw.choice([1.0, 1.001, 2.0, 3.0])),
            content=" ".join(["walk"] * draw.randrange(1, 4) + ["x"] * draw.randrange(4)),
        )
        for _ in range(200)
    ]
    await store.store_many(items)

    def rank(one):
        words = one.content.split()
        return -weight(words.count("walk"), len(words)), -one.created_at, one.id

    expected = sorted(items, key=rank)
    for limit in (1, 2, 20, 57, 199, 200, 201):
        hits = await store.search_scored(MemoryQuery(text="walk", limit=limit))
        assert [hit.item for hit in hits] == expected[:limit]
        assert [hit.score for hit in hits] == [-rank(one)[0] for one in expected[:limit]]


async def test_rows_that_are_no_longer_ours_take_the_place_of_no_hit(fake, on_fake):
    store = on_fake()
    await store.store_many([MemoryItem(content="walk", created_at=float(n)) for n in range(9)])
    fake.connection.execute("UPDATE memory_items SET marker = 'foreign' WHERE created_at >= 6")
    for query in (MemoryQuery(text="walk", limit=3), MemoryQuery(limit=3)):
        assert [hit.created_at for hit in await store.search(query)] == [5.0, 4.0, 3.0]


async def test_the_words_of_another_namespace_are_not_found(make):
    await make(namespace="1").store(MemoryItem(content="walk", tags=["t"]))
    other = make(namespace="2")
    await other.store(MemoryItem(content="1wwalk 1ttag 1n"))
    assert await other.search(MemoryQuery(text="walk")) == []
    assert await other.search(MemoryQuery(tags=["t"])) == []
    assert len(await other.search(MemoryQuery())) == 1


async def test_searches_of_one_tick_run_beside_each_other(on_file):
    store = on_file()
    await store.store_many([MemoryItem(content=f"w{n}", tags=[f"t{n}"]) for n in range(50)])
    queries = [MemoryQuery(tags=[f"t{n}"]) for n in range(50)]
    found = await asyncio.gather(*map(store.search, queries))
    assert [[hit.content for hit in hits] for hits in found] == [[f"w{n}"] for n in range(50)]
