"""What the server says of itself and what scripts answer, over a session that is scripted."""

import pytest

from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable
from adapter_redis import server
from adapter_redis.answers import ServerUnfit, json_of, text_of
from adapter_redis.testing import FakeServerError

NOPERM = FakeServerError("NOPERM", "this user has no permissions")
GOOD = b"# Server\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"


async def test_info_is_read_by_lines_and_what_is_no_pair_is_passed_over(scripted):
    info = await server.read_info(scripted(INFO=GOOD + b"no pair\r\nsome:a:b\r\n"))
    assert info["role"] == "master"
    assert info["some"] == "a:b"
    assert "no pair" not in info


async def test_an_account_without_info_is_told_what_does_without(scripted):
    with pytest.raises(MemoryAdapterError, match="allow_eviction=True") as raised:
        await server.read_info(scripted(INFO=NOPERM))
    assert not isinstance(raised.value, MemoryAdapterUnavailable)
    assert raised.value.__cause__ is NOPERM


@pytest.mark.parametrize(
    "error", [ConnectionResetError("gone"), FakeServerError("LOADING", ""), MemoryAdapterUnavailable("down")]
)
@pytest.mark.parametrize("command", ["INFO", "CONFIG"])
async def test_an_outage_while_asking_is_passed_on_as_it_is(scripted, error, command):
    session = scripted(**({"INFO": GOOD} | {command: error}))
    with pytest.raises(type(error)) as raised:
        await server.check_server(session, durability="crash", allow_eviction=False)
    assert raised.value is error


@pytest.mark.parametrize(
    ("aof", "answer", "durability"),
    [
        ("0", [b"appendfsync", b"always"], "volatile"),
        ("1", [b"appendfsync", b"no"], "crash"),
        ("1", [b"appendfsync", b"everysec"], "crash"),
        ("1", [b"appendfsync", b"always"], "power"),
        ("1", {b"appendfsync": b"always"}, "power"),
        ("1", {b"appendfsync": b"everysec"}, "crash"),
        ("1", [], "crash"),
        ("1", {}, "crash"),
        ("1", None, "crash"),
        ("1", NOPERM, "crash"),
        ("1", FakeServerError("ERR", "unknown command 'CONFIG'"), "crash"),
    ],
)
async def test_durability_is_what_the_settings_give_and_never_more(scripted, aof, answer, durability):
    assert await server.read_durability(scripted(CONFIG=answer), {"aof_enabled": aof}) == durability


async def test_a_server_that_is_asked_for_nothing_is_not_asked(scripted):
    session = scripted()
    await server.check_server(session, durability="volatile", allow_eviction=True)
    assert session.calls == []


@pytest.mark.parametrize(
    ("info", "durability", "match"),
    [
        (b"role:slave\r\nmaxmemory_policy:noeviction", "volatile", "replica"),
        (b"role:master\r\nmaxmemory_policy:allkeys-lru", "volatile", "allkeys-lru.*allow_eviction"),
        (b"role:master", "volatile", "not known"),
        (None, "volatile", "not known"),
        (b"role:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:0", "crash", "'volatile'.*'crash'"),
        (GOOD, "power", "'crash'.*'power'"),
    ],
)
async def test_a_server_that_is_less_than_needed_is_unfit(scripted, info, durability, match):
    session = scripted(INFO=info, CONFIG=[b"appendfsync", b"everysec"])
    with pytest.raises(ServerUnfit, match=match):
        await server.check_server(session, durability=durability, allow_eviction=False)


async def test_a_server_that_fits_is_taken(scripted):
    session = scripted(INFO=GOOD, CONFIG={b"appendfsync": b"always"})
    for durability in ("volatile", "crash", "power"):
        await server.check_server(session, durability=durability, allow_eviction=False)


@pytest.mark.parametrize("answer", [None, 1, "text", [b"a"], bytearray(b"a")])
def test_what_is_no_text_of_a_script_is_an_error(answer):
    for read in (text_of, json_of):
        with pytest.raises(MemoryAdapterError, match="no answer of the script"):
            read(answer)


@pytest.mark.parametrize(
    ("answer", "kind", "match"),
    [
        (b"!gone", MemoryAdapterUnavailable, "gone from the server"),
        (b"!signature", MemoryAdapterUnavailable, "indexed in another way"),
        (b"!damaged", MemoryAdapterUnavailable, "index is gone"),
        (b"!window", MemoryAdapterUnavailable, "MAXSEARCHRESULTS"),
        (b"!unindexed", MemoryAdapterUnavailable, "could not be made again"),
        (b"!building", MemoryAdapterUnavailable, "being built"),
        (b"!replica", ServerUnfit, "replica"),
        (b"!volatile", ServerUnfit, "append-only file is off"),
        (b"!evicting allkeys-lfu", ServerUnfit, "allkeys-lfu"),
        (b"!foreign", MemoryAdapterError, "not this adapter's"),
        (b"!\xff", MemoryAdapterUnavailable, "no answer of the script"),
    ],
)
def test_each_refusal_has_its_kind_and_its_words(answer, kind, match):
    with pytest.raises(MemoryAdapterError, match=match) as raised:
        text_of(answer)
    assert type(raised.value) is kind


@pytest.mark.parametrize("answer", [b"sesame\xff", b'{"sesame": '])
def test_a_damaged_answer_is_an_error_that_shows_nothing_of_it(answer):
    with pytest.raises(MemoryAdapterError) as raised:
        json_of(answer)
    assert type(raised.value) is MemoryAdapterError
    assert "sesame" not in f"{raised.value!r}"
    assert raised.value.__cause__ is raised.value.__context__ is None


def test_answers_are_read():
    assert text_of("é".encode()) == "é"
    assert json_of(b'[["a", 1]]') == [["a", 1]]
    assert json_of(b"{}") == {}
