"""What the index of the search engine sends and how it reads the answers, without a server."""

from uuid import UUID

import pytest

from adapter_core import Criteria, MemoryAdapterUnavailable, Record
from adapter_redis import query_engine
from adapter_redis.engine import BOUNDED, ORDER, TERMS, TOKENS
from adapter_redis.index import Space
from adapter_redis.query_engine import DEFAULT_WINDOW, MAX_CLAUSES, MAX_REPEATS, QueryEngineIndex, _query
from adapter_redis.testing import FakeServerError

SPACE = Space.of("memory", "default")
HEAD = (b"{}", b"e", b"0")
NO_INDEX = FakeServerError("ERR", "Unknown index name")
UNKNOWN_COMMAND = FakeServerError("ERR", "unknown command 'FT.INFO', with args beginning with: ")
FIELDS = [
    [b"identifier", b"created_at", b"attribute", b"created_at", b"type", b"NUMERIC"],
    [b"identifier", ORDER.encode(), b"attribute", b"o", b"type", b"TEXT", b"WEIGHT", b"1", b"SORTABLE"],
    [b"identifier", TOKENS.encode(), b"attribute", b"t", b"type", b"TAG", b"SEPARATOR", b" "],
    [b"identifier", TERMS.encode(), b"attribute", b"w", b"type", b"TEXT", b"WEIGHT", b"1", b"NOSTEM"],
]
OVER = [b"key_type", b"HASH", b"prefixes", [SPACE.items], b"default_score", b"1"]
OURS = [b"index_name", b"x", b"index_definition", OVER, b"attributes", FIELDS]
FULL = [*OURS, b"indexing", b"0"]
BUILT = {"FT.INFO": FULL, "FT.CONFIG": [[b"MAXSEARCHRESULTS", b"1000000"]], "building": b"", "built": b""}


@pytest.fixture
def index():
    return QueryEngineIndex(SPACE)


def commands(session):
    return [session.word(call) for call in session.calls]


# What is sent


def test_no_condition_asks_for_everything():
    assert _query(Criteria()) == ("*", [])


def test_each_group_is_a_clause_and_the_time_a_parameter():
    criteria = Criteria(
        tags=("ta", "tb"), facets=(("f1",), ("f2", "f3")), terms=("x", "y"), created_after=1.5
    )
    text = f"@t:{{f1}} @t:{{f2|f3}} @t:{{ta|tb}} @w:(x) @w:(y) {BOUNDED}"
    assert _query(criteria) == (text, [])
    assert _query(Criteria(created_before=2.0)) == (BOUNDED, [])


def test_what_is_more_than_the_engine_is_asked_is_left_to_the_script():
    facets = tuple((f"f{number}",) for number in range(MAX_CLAUSES))
    terms = tuple(f"w{number}" for number in range(MAX_CLAUSES))
    text, rest = _query(Criteria(facets=facets, terms=terms))
    half = MAX_CLAUSES // 2
    assert len(text.split()) == MAX_CLAUSES
    assert rest == [*facets[half:], *((term,) for term in terms[half:])]
    assert _query(Criteria(terms=terms))[1] == []


def test_an_item_carries_its_tokens_and_each_term_as_often_as_it_occurs(index):
    record = Record(UUID(int=1), 1.5, (), ("ta", "tb"), ("fa",), {"x": 2, "y": 1, "z": MAX_REPEATS + 9})
    fields = index.fields(record)
    pairs = dict(zip(fields[::2], fields[1::2], strict=True))
    assert pairs[TOKENS] == "ta tb fa"
    assert pairs[TERMS].split() == ["x", "x", "y", *["z"] * MAX_REPEATS]
    assert pairs[ORDER].endswith(UUID(int=1).hex)
    assert index.text(record) == ""


async def test_a_search_is_one_script_with_all_that_it_needs(index, scripted):
    session = scripted(find=b'[["00000000-0000-0000-0000-000000000001", "0.5", ["id", "x"]]]')
    criteria = Criteria(terms=("x",), created_after=-1.5, limit=3)
    (hit,) = await index.find(session, criteria, HEAD)
    assert (hit.id, hit.score, hit.document) == (UUID(int=1), 0.5, ["id", "x"])
    (call,) = session.calls
    assert call.key == SPACE.base
    query = f"@w:(x) {BOUNDED}".encode()
    assert call.arguments == (*HEAD, b"3", query, b"-1.5", b"inf", b"1", b"%d" % DEFAULT_WINDOW, b"")


async def test_what_did_not_fit_in_the_answer_is_asked_for_by_its_ids(index, scripted):
    ids = [str(UUID(int=number)) for number in (1, 2, 3)]
    first = f'[["{ids[0]}", "", ["a"]], ["{ids[1]}", ""], ["{ids[2]}", ""]]'
    session = scripted(find=(first.encode(), f'[["{ids[2]}", "", ["c"]]]'.encode()))
    hits = await index.find(session, Criteria(limit=9), HEAD)
    assert [(hit.id.int, hit.document, hit.score) for hit in hits] == [(1, ["a"], None), (3, ["c"], None)]
    assert session.calls[1].arguments[9] == f"{ids[1]} {ids[2]}".encode()


# Making the index


async def test_an_index_that_is_there_is_not_made_again(index, scripted):
    session = scripted(**BUILT)
    await index.prepare(session)
    assert commands(session) == ["FT.INFO", "FT.INFO", "built", "FT.CONFIG"]


async def test_a_missing_index_is_made_and_marked_as_half_built_before(index, scripted):
    session = scripted(**BUILT | {"FT.INFO": (NO_INDEX, FULL), "FT.CREATE": b"OK"})
    await index.prepare(session)
    assert commands(session) == ["FT.INFO", "building", "FT.CREATE", "FT.INFO", "built", "FT.CONFIG"]
    create = session.calls[2].arguments
    assert create[:7] == (b"FT.CREATE", SPACE.base + b":ft1", b"ON", b"HASH", b"PREFIX", b"1", SPACE.items)
    assert create[create.index(b"STOPWORDS") + 1] == b"0"
    assert create[-5:] == (TERMS.encode(), b"AS", b"w", b"TEXT", b"NOSTEM")


async def test_an_index_that_somebody_else_just_made_will_do(index, scripted):
    exists = FakeServerError("ERR", "Index already exists")
    session = scripted(**BUILT | {"FT.INFO": (NO_INDEX, FULL), "FT.CREATE": exists})
    await index.prepare(session)
    assert commands(session)[-2:] == ["built", "FT.CONFIG"]


def info(**said):
    """Give what the engine says of our index, in RESP3."""
    pairs = dict(zip(OURS[::2], OURS[1::2], strict=True))
    over = dict(zip(OVER[::2], OVER[1::2], strict=True))
    attributes = [dict(zip(field[:6:2], field[1:6:2], strict=True)) for field in FIELDS]
    return (
        pairs
        | {b"index_definition": over, b"attributes": attributes}
        | {name.encode(): one for name, one in said.items()}
    )


@pytest.mark.parametrize(
    "states",
    [[*OURS, b"indexing", b"1"], info(indexing=1), [*OURS, b"indexing", [b"1"]], info(indexing=[1])],
)
async def test_an_index_that_is_being_built_is_waited_for(index, scripted, monkeypatch, states):
    monkeypatch.setattr(query_engine, "_POLL", 0)
    session = scripted(**BUILT | {"FT.INFO": (states, states, states, FULL)})
    await index.prepare(session)
    assert commands(session) == [*["FT.INFO"] * 4, "built", "FT.CONFIG"]


@pytest.mark.parametrize("done", [FULL, info(indexing=0), info(indexing=b"0"), [*OURS, b"indexing", [0]]])
async def test_done_is_read_in_both_protocols(index, scripted, done):
    session = scripted(**BUILT | {"FT.INFO": done})
    await index.prepare(session)
    assert commands(session)[-2:] == ["built", "FT.CONFIG"]


@pytest.mark.parametrize("never", [[*OURS, b"indexing", b"1"], [*OURS, b"indexing", []], OURS, info()])
async def test_the_wait_for_what_is_not_said_to_be_built_is_bounded(index, scripted, monkeypatch, never):
    monkeypatch.setattr(query_engine, "BUILD_TIMEOUT", 0)
    session = scripted(
        **BUILT | {"FT.INFO": never, "FT.CREATE": FakeServerError("ERR", "Index already exists")}
    )
    with pytest.raises(MemoryAdapterUnavailable, match="still being built"):
        await index.prepare(session)
    assert "built" not in commands(session)


async def test_the_wait_ends_when_the_index_goes_away(index, scripted, monkeypatch):
    monkeypatch.setattr(query_engine, "_POLL", 0)
    session = scripted(**BUILT | {"FT.INFO": (info(indexing=1), info(indexing=1), NO_INDEX)})
    with pytest.raises(MemoryAdapterUnavailable, match="somebody dropped"):
        await index.prepare(session)
    assert commands(session) == ["FT.INFO"] * 3


def over(*said):
    return [b"index_definition", list(said), b"attributes", FIELDS, b"indexing", b"0"]


FOREIGN = [
    over(b"key_type", b"HASH", b"prefixes", [b"other:"]),
    over(b"key_type", b"HASH", b"prefixes", [b""]),
    over(b"key_type", b"HASH", b"prefixes", [SPACE.items, b"other:"]),
    over(b"key_type", b"JSON", b"prefixes", [SPACE.items]),
    over(b"key_type", b"HASH", b"prefixes", [SPACE.items], b"filter", b"@created_at<0"),
    [b"index_definition", OVER, b"attributes", FIELDS[:3], b"indexing", b"0"],
    [b"index_definition", OVER, b"indexing", b"0"],
    info(indexing=0, index_definition={b"key_type": b"HASH", b"prefixes": [b"other:"]}),
    [b"indexing", b"0"],
    {},
]


@pytest.mark.parametrize("said", FOREIGN, ids=repr)
async def test_an_index_of_our_name_that_is_not_over_our_items_is_refused_and_left(index, scripted, said):
    session = scripted(**BUILT | {"FT.INFO": said})
    for ask in (index.check, index.prepare):
        with pytest.raises(MemoryAdapterUnavailable, match="another program"):
            await ask(session)
    await index.drop(session)
    assert commands(session) == ["FT.INFO"] * 3


async def test_a_field_that_somebody_added_to_our_index_does_no_harm(index, scripted):
    more = [*FIELDS, [b"identifier", b"content", b"attribute", b"content", b"type", b"TEXT"]]
    said = [b"index_definition", OVER, b"attributes", more, b"indexing", b"0"]
    await index.prepare(scripted(**BUILT | {"FT.INFO": said}))


@pytest.mark.parametrize("command", ["FT.INFO", "FT.CREATE"])
async def test_a_server_without_the_engine_is_explained(index, scripted, command):
    session = scripted(**BUILT | {"FT.INFO": NO_INDEX, command: UNKNOWN_COMMAND})
    with pytest.raises(MemoryAdapterUnavailable, match='index="keyspace" works on any server') as raised:
        await index.prepare(session)
    assert raised.value.__cause__ is UNKNOWN_COMMAND


@pytest.mark.parametrize("error", [MemoryAdapterUnavailable("down"), FakeServerError("ERR", "other")])
@pytest.mark.parametrize("command", ["FT.INFO", "FT.CREATE"])
async def test_any_other_failure_is_passed_on_as_it_is(index, scripted, command, error):
    session = scripted(**BUILT | {"FT.INFO": NO_INDEX, command: error})
    with pytest.raises(type(error)) as raised:
        await index.prepare(session)
    assert raised.value is error


# The server's own limit


@pytest.mark.parametrize(
    ("answer", "window"),
    [
        ([[b"MAXSEARCHRESULTS", b"7"]], b"7"),
        ([b"MAXSEARCHRESULTS", b"7"], b"7"),
        ({b"MAXSEARCHRESULTS": b"7"}, b"7"),
        ({b"MAXSEARCHRESULTS": [b"7"]}, b"7"),
        ([[b"MAXSEARCHRESULTS", b"unlimited"]], b"1000000000"),
        ([[b"MAXSEARCHRESULTS", b"0"]], b"10000"),
        ([[b"MAXSEARCHRESULTS", b"-1"]], b"10000"),
        ([], b"10000"),
        (None, b"10000"),
        (FakeServerError("NOPERM", "this user has no permissions"), b"10000"),
    ],
)
async def test_the_window_is_what_the_server_tells(index, scripted, answer, window):
    session = scripted(**BUILT | {"FT.CONFIG": answer, "find": b"[]"})
    await index.prepare(session)
    await index.find(session, Criteria(), HEAD)
    assert session.calls[-1].arguments[8] == window


async def test_an_outage_while_the_window_is_asked_for_is_passed_on(index, scripted):
    down = MemoryAdapterUnavailable("down")
    with pytest.raises(MemoryAdapterUnavailable) as raised:
        await index.prepare(scripted(**BUILT | {"FT.CONFIG": down}))
    assert raised.value is down


async def test_a_window_that_is_another_one_now_is_read_and_the_search_goes_on(index, scripted):
    session = scripted(
        **BUILT
        | {
            "FT.CONFIG": ([[b"MAXSEARCHRESULTS", b"9"]], [[b"MAXSEARCHRESULTS", b"7"]]),
            "find": (b"[]", b"!window", b"[]"),
        }
    )
    await index.prepare(session)
    await index.find(session, Criteria(), HEAD)
    await index.find(session, Criteria(), HEAD)
    windows = [call.arguments[8] for call in session.calls if call.name == "find"]
    assert windows == [b"9", b"9", b"7"]


# An index that goes away


@pytest.mark.parametrize("why", [b"!unindexed", b"!building"])
async def test_a_search_without_its_index_makes_it_and_asks_once_more(index, scripted, why):
    session = scripted(**BUILT | {"FT.INFO": (NO_INDEX, FULL), "FT.CREATE": b"OK", "find": (why, b"{}")})
    assert await index.find(session, Criteria(), HEAD) == []
    assert commands(session).count("find") == 2
    assert commands(session).count("FT.CREATE") == 1


@pytest.mark.parametrize("why", [b"!unindexed", b"!building", b"!window"])
async def test_what_goes_wrong_again_is_unavailable(index, scripted, why):
    session = scripted(**BUILT | {"find": why})
    with pytest.raises(MemoryAdapterUnavailable, match=r"search index|MAXSEARCHRESULTS"):
        await index.find(session, Criteria(), HEAD)
    assert commands(session).count("find") == 2


@pytest.mark.parametrize("answer", [b"OK", NO_INDEX, FakeServerError("ERR", "no such index")])
async def test_dropping_tolerates_an_index_that_is_gone(index, scripted, answer):
    session = scripted(**{"FT.INFO": FULL, "FT.DROPINDEX": answer})
    await index.drop(session)
    assert session.calls[1].arguments == (b"FT.DROPINDEX", SPACE.base + b":ft1")


async def test_an_index_that_is_gone_is_not_dropped(index, scripted):
    session = scripted(**{"FT.INFO": NO_INDEX})
    await index.drop(session)
    assert commands(session) == ["FT.INFO"]


@pytest.mark.parametrize("error", [MemoryAdapterUnavailable("down"), FakeServerError("ERR", "other")])
async def test_another_failure_to_drop_is_passed_on(index, scripted, error):
    with pytest.raises(type(error)) as raised:
        await index.drop(scripted(**{"FT.INFO": FULL, "FT.DROPINDEX": error}))
    assert raised.value is error
