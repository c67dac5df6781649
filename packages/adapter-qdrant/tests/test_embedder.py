"""Text by meaning: what is embedded, what is found, and what of an embedder is refused."""

import asyncio
import math
import threading
import time

import numpy as np
import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery
from adapter_qdrant import Embedder, QdrantMemoryStore


def vowels(texts):
    return [[text.count(letter) + 0.01 for letter in "aeiou"] for text in texts]


async def vowels_later(texts):
    await asyncio.sleep(0)
    return vowels(texts)


def handed_on(texts):
    return vowels_later(texts)


class Callable:
    async def __call__(self, texts):
        return vowels(texts)


def embedder(embed=vowels, name="vowels", dimension=5):
    return Embedder(embed, name, dimension)


def made(content, **fields):
    return MemoryItem(content=content, **fields)


@pytest.mark.parametrize("embed", [vowels, vowels_later, Callable(), handed_on])
@pytest.mark.parametrize("there", ["fake", "local"])
async def test_text_finds_the_nearest_and_selects_nothing(fake, make, local, there, embed):
    store = make(embedder=embedder(embed)) if there == "fake" else await local(embedder=embedder(embed))
    await store.store_many([made("banana"), made("kiwi"), made("poodle", tags=["t"]), made(7), made("?!")])
    fake.expose()
    hits = await store.search_scored(MemoryQuery(text="papaya"))
    assert [hit.item.content for hit in hits] == ["banana", "poodle", "kiwi"]
    assert hits[0].score > 0.99
    assert "cosine" in store.score_meaning
    assert [hit.content for hit in await store.search(MemoryQuery(text="papaya", tags=["t"]))] == ["poodle"]
    assert [hit.content for hit in await store.search(MemoryQuery(text="papaya", limit=1))] == ["banana"]
    assert len(await store.search(MemoryQuery())) == 5


@pytest.mark.parametrize("there", ["fake", "local"])
async def test_an_item_that_loses_its_words_is_near_to_nothing(fake, make, local, there):
    store = make(embedder=embedder()) if there == "fake" else await local(embedder=embedder())
    item = made("banana")
    await store.store(item)
    await store.store(MemoryItem(id=item.id, content=None))
    fake.expose()
    assert await store.search(MemoryQuery(text="papaya")) == []


async def test_every_string_of_a_content_is_embedded_and_all_items_of_a_batch_at_once(make):
    asked = []

    def embed(texts):
        asked.append(list(texts))
        return vowels(texts)

    store = make(embedder=embedder(embed))
    await store.store_many([made({"k": ["one", {"x": "two"}]}), made(5), made("three")])
    assert asked == [["one\ntwo", "three"]]


async def test_b45_a_plain_function_does_not_hold_up_the_event_loop(make):
    threads = []

    def slow(texts):
        threads.append(threading.current_thread())
        time.sleep(0.2)
        return vowels(texts)

    store = make(embedder=embedder(slow))
    await store.store(made("banana"))
    searching = asyncio.ensure_future(store.search(MemoryQuery(text="papaya")))
    turns = 0
    while not searching.done():
        await asyncio.sleep(0.001)
        turns += 1
    await searching
    assert turns > 10
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: [[int(100 * number) for number in row] for row in rows],
        lambda rows: np.array(rows, dtype=np.float32),
        lambda rows: (tuple(row) for row in rows),
        lambda rows: [[1e300 * number for number in row] for row in rows],
        lambda rows: [[1e36 * number for number in row] for row in rows],
        lambda rows: [[1e-44 * number for number in row] for row in rows],
    ],
    ids=["ints", "array", "generator", "huge", "long in 32 bits", "short in 32 bits"],
)
async def test_numbers_of_any_kind_and_length_keep_their_direction(local, kind):
    store = await local(embedder=embedder(lambda texts: kind(vowels(texts))))
    await store.store_many([made("banana"), made("kiwi")])
    hits = await store.search_scored(MemoryQuery(text="papaya"))
    assert [hit.item.content for hit in hits] == ["banana", "kiwi"]
    assert hits[0].score > 0.99


@pytest.mark.parametrize("there", ["fake", "local"])
async def test_a_call_that_waits_for_an_embedder_can_be_cancelled(make, local, there):
    begun, waiting = asyncio.Event(), True

    async def slow(texts):
        begun.set()
        if waiting:
            await asyncio.Event().wait()
        return vowels(texts)

    store = make(embedder=embedder(slow)) if there == "fake" else await local(embedder=embedder(slow))
    item = made("banana")
    for call in (lambda: store.store(item), lambda: store.search(MemoryQuery(text="papaya"))):
        begun.clear()
        calling = asyncio.ensure_future(call())
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    waiting = False
    assert await store.retrieve(item.id) is None
    await store.store(item)
    assert await store.retrieve(item.id) == item


def test_what_text_means_is_said_with_an_embedder_alone():
    assert QdrantMemoryStore(":memory:").text_meaning is None
    said = QdrantMemoryStore(":memory:", embedder=embedder()).text_meaning
    assert "nearest by meaning" in said
    assert "selects nothing" in said


def failing(texts):
    raise RuntimeError(f"cannot embed {texts}")


@pytest.mark.parametrize(
    ("embed", "reason"),
    [
        (failing, r"failed \(RuntimeError\)"),
        (lambda texts: [[math.nan] * 5 for _ in texts], "not finite"),
        (lambda texts: [[math.inf] * 5 for _ in texts], "not finite"),
        (lambda texts: [[0.0] * 5 for _ in texts], "zeros"),
        (lambda texts: [[1.0] * 4 for _ in texts], "of 4 numbers; its dimension is 5"),
        (lambda texts: [[1.0] * 5 for _ in [*texts, 1]], "2 vectors for 1 texts"),
        (lambda _: None, "no vectors"),
        (lambda _: [["x"] * 5], "no vectors"),
        (lambda _: 5, "no vectors"),
        (lambda _: next(iter(())), r"failed \(RuntimeError\)"),  # lost by a thread's future
        (lambda texts: (1 / 0 for _ in texts), r"failed \(ZeroDivisionError\)"),
        (lambda texts: [[10**400] * 5 for _ in texts], "no vectors"),
        (lambda texts: ["12345" for _ in texts], "no vectors"),
        (lambda texts: [b"12345" for _ in texts], "no vectors"),
        (lambda _: [], "0 vectors for 1 texts"),
        (lambda _: np.ones(5), "no vectors"),
    ],
    ids=[
        "raises",
        "nan",
        "inf",
        "zeros",
        "short",
        "many",
        "none",
        "str",
        "int",
        "stop",
        "lazy",
        "large",
        "digits",
        "bytes",
        "empty",
        "flat",
    ],
)
async def test_b35_b45_what_is_no_vector_is_refused_and_nothing_is_stored(fake, make, embed, reason):
    good, bad = make(embedder=embedder()), make(embedder=embedder(embed))
    item = made("sesame banana")
    old = made("peach")
    await good.store(old)
    for call in (
        lambda: bad.store(item),
        lambda: bad.store_many([MemoryItem(id=old.id, content="sesame")]),
        lambda: bad.search(MemoryQuery(text="sesame")),
    ):
        with pytest.raises(MemoryAdapterError, match=reason) as caught:
            await call()
        assert type(caught.value) is MemoryAdapterError
        assert "sesame" not in str(caught.value)
    assert await good.retrieve(item.id) is None
    assert await good.retrieve(old.id) == old
    assert (await good.retrieve(old.id)).content == "peach"
    assert "sesame" not in "".join(call.payload for call in fake.faults.calls)
