"""Items as hashes: readable where they can be, and never two items for one hash."""

import math
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter_core import ItemFields, MemoryItem, same_fields
from adapter_redis import hashes

ITEM = ItemFields(
    UUID(int=7),
    1735689600.123456,
    {"user": "ada", "city": "Zürich", "score": 0.5, "read": True, "of": None, "more": {"é": [1]}},
    {"text": "Wir trafen uns in Zürich."},
    ["places", "a,b", ""],
)


def fields_of(item):
    packed = hashes.pack(item)
    return dict(zip(packed[::2], packed[1::2], strict=True))


def test_the_hash_is_readable():
    assert fields_of(ITEM) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "created_at": "1735689600.123",
        "content": '{"text":"Wir trafen uns in Zürich."}',
        "tags": '["places","a,b",""]',
        "metadata.user": "ada",
        "metadata.city": "Zürich",
        "metadata.score": "0.5",
        "metadata.read": "true",
        "metadata.of": "null",
        "metadata.more": '{"é":[1]}',
        "keys": '["user","city","score","read","of","more"]',
    }


def test_what_comes_back_is_the_projection():
    assert same_fields(hashes.unpack(hashes.pack(ITEM)), hashes.PROJECTION.retrieve(ITEM))


@pytest.mark.parametrize("loss", hashes.PROJECTION.losses, ids=lambda loss: loss.name)
def test_every_loss_happens_to_its_example(loss):
    came = hashes.unpack(hashes.pack(loss.example))
    assert getattr(came, loss.field) != getattr(loss.example, loss.field)
    assert same_fields(came, hashes.PROJECTION.retrieve(loss.example))


@pytest.mark.parametrize(
    "text", ["", "json:", 'json:"x"', "\x00", "\ud800", "a\udfff", "😀", "json:\udc00", "1", "null", '"x"']
)
def test_awkward_text_is_exact_in_keys_values_tags_and_content(text):
    item = ItemFields(UUID(int=1), 1.0, {text: text, "other": text}, [text, {text: text}], [text])
    packed = hashes.pack(item)
    assert all(part.encode().decode() == part for part in packed)  # any client can read it
    assert same_fields(hashes.unpack(packed), item)


texts = st.text(st.characters(exclude_categories=()), max_size=6).filter(
    lambda text: not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(texts | st.sampled_from(["json:a", "id", "keys"]), texts, max_size=5), st.lists(texts))
def test_any_text_comes_back_and_keys_keep_their_order(metadata, tags):
    item = ItemFields(UUID(int=1), 1.0, metadata, None, tags)
    packed = hashes.pack(item)
    pairs = sorted(zip(packed[::2], packed[1::2], strict=True))  # as a hash has no order
    assert same_fields(hashes.unpack([part for pair in pairs for part in pair]), item)


@pytest.mark.parametrize(
    "created_at", [0.0, -0.0, -1.5, 1e22, 5e-324, 1.7976931348623157e308, 1e15 + 0.3, 2.0005]
)
def test_times_are_those_of_the_projection(created_at):
    item = ITEM._replace(created_at=created_at)
    came, said = hashes.unpack(hashes.pack(item)), hashes.PROJECTION.retrieve(item)
    assert came.created_at == said.created_at
    assert math.copysign(1, came.created_at) == math.copysign(1, said.created_at)
    assert abs(said.created_at - created_at) <= 0.0005 + abs(created_at) * 1e-15


def test_what_another_client_added_comes_last_and_what_it_took_is_gone():
    packed = {**fields_of(ITEM), "metadata.new": "x", "metadata.aaa": "y"}
    del packed["metadata.score"]
    came = hashes.unpack([part for pair in packed.items() for part in pair])
    assert list(came.metadata) == ["user", "city", "read", "of", "more", "aaa", "new"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "7"), ("id", None), ("created_at", "soon"), ("created_at", "nan"), ("created_at", "inf"),
        ("content", "{"), ("content", None), ("tags", "{}"), ("tags", "[1]"), ("keys", "{}"), ("keys", "x"),
        ("metadata.user", "json:1"), ("metadata.user", "json:x"),
    ],
)  # fmt: skip
def test_a_hash_that_is_no_item_is_refused_without_its_text(name, value):
    packed = {**fields_of(ITEM), name: value}
    if value is None:
        del packed[name]
    with pytest.raises(ValueError, match="not the hash of an item") as raised:
        hashes.unpack([part for pair in packed.items() for part in pair])
    assert "Zürich" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


async def test_any_client_reads_the_item(on_server, beside, settings):
    item = MemoryItem(content="We met.", tags=["places"], metadata={"user": "ada"}, created_at=5.25)
    await on_server().store(item)
    found = await beside.hgetall(f"{settings.prefix}:{{ndefault}}:item:{item.id}")
    shown = {name.decode(): value.decode() for name, value in found.items()}
    assert int(shown.pop("revision")) > 0
    assert shown == {
        "adapter": "adapter-redis",
        "id": str(item.id),
        "created_at": "5.25",
        "content": '"We met."',
        "tags": '["places"]',
        "metadata.user": "ada",
        "facets": "fuser_sada",
        "indexed": '{"index":"keyspace","layout":"1","terms":"1"}',
    }
