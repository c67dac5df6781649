"""The live harness without a live server: here it runs over a stub, which certifies nothing."""

import asyncio
import json
import os
import sys
import traceback
from dataclasses import replace
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from adapter_conformance import ALL_CASES, run_case
from adapter_conformance.live import Servers
from adapter_core import MemoryAdapterUnavailable, MemoryItem
from adapter_core.testing import Container
from adapter_qdrant import QdrantMemoryStore, harness, live
from adapter_qdrant.stub import QdrantStub, Request
from adapter_qdrant.stub_engine import LocalEngine
from adapter_qdrant.stub_grpc import QdrantGrpcStub

KEY = "sesame-key"
INSECURE = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
BOUND = 300
"""Seconds after which a wait has failed; a run of the kit is one of them."""


def test_the_live_harness_stands_behind_the_fake_and_the_embedded():
    *others, last = live.HARNESSES
    assert (tuple(others), last) == (harness.HARNESSES, live.QdrantLiveHarness)
    assert [one.environment for one in live.HARNESSES] == ["fake", "embedded", "live"]


def test_the_container_has_an_explicit_image_and_a_url_that_the_store_takes():
    container = live.QdrantLiveHarness.container
    assert isinstance(container, Container)
    name, _, tag = container.image.partition(":")
    assert name == "qdrant/qdrant"
    assert tag.removeprefix("v").replace(".", "").isdigit()  # no moving tag
    filled = container.url.replace("{host}", "h").replace("{port}", "1")
    parts = urlsplit(filled)
    assert (parts.scheme, parts.hostname, parts.port) == ("http", "h", 1)
    QdrantMemoryStore(filled)


async def kit(*arguments, **environment):
    """Run the command as a user does; its exit code and all that it prints."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("ADAPTER_QDRANT_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "adapter_conformance", "run", "--environment", "live", *arguments),
        env={**given, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), BOUND)
    except TimeoutError:
        process.kill()
        raise
    return process.returncode, printed.decode()


# Over the stub, by the URL that a user gives

CASES = ("C03", "C05", "C08", "C15", "C16", "X02", "X03", "X07", "X12")
"""One of each kind; a run of chosen cases certifies nothing, which is right for a stub."""


async def test_the_suite_runs_by_url_over_the_wire_and_leaves_no_collection(tmp_path):
    results = tmp_path / "results.json"
    chosen = [f"--case={case}" for case in CASES]
    async with QdrantStub(LocalEngine(), log=False) as stub:
        code, printed = await kit("qdrant", f"--output={results}", *chosen, ADAPTER_QDRANT_URL=stub.url)
        assert code == 0, printed
        left = await stub.ask(Request("GET", "/collections"))
        assert json.loads(left.body)["result"] == {"collections": []}
    (report,) = json.loads(results.read_text("utf-8"))["reports"]
    assert (report["environment"], report["certified"]) == ("live", False)
    assert report["engine_version"].endswith("-stub")  # nobody can take it for a server
    assert {case["id"]: case["status"] for case in report["cases"]} == dict.fromkeys(CASES, "passed")


async def test_the_cases_pass_by_grpc_too_and_leave_no_collection():
    async with QdrantGrpcStub(LocalEngine(), log=False) as stub:

        class ByGrpc(live.QdrantLiveHarness):
            def settings(self):
                return replace(super().settings(), grpc_port=stub.grpc_port)

        for case in (one for one in ALL_CASES if one.id in CASES):
            made = ByGrpc(stub.url)
            result = await run_case(case, made, "qdrant", "live")
            await made.close()
            assert (case.id, result.status, result.reason) == (case.id, "passed", result.reason)
        left = await stub.ask(Request("GET", "/collections"))
        assert json.loads(left.body)["result"] == {"collections": []}


@INSECURE
@pytest.mark.parametrize("key", [KEY, "another-key"])
async def test_the_key_of_a_server_comes_from_the_environment_and_is_not_shown(monkeypatch, key):
    monkeypatch.setenv("ADAPTER_QDRANT_API_KEY", key)
    async with QdrantStub(LocalEngine(), api_key=KEY) as stub:
        servers = Servers(environ={"ADAPTER_QDRANT_URL": stub.url})
        found = await asyncio.to_thread(servers.server_for, "qdrant", live.QdrantLiveHarness)
        made = live.QdrantLiveHarness(found.url)
        store = await made.make_store()
        if key == KEY:
            item = MemoryItem(content="word")
            await store.store(item)
            assert await store.retrieve(item.id) == item
        else:
            with pytest.raises(MemoryAdapterUnavailable, match="401") as raised:
                await store.retrieve(uuid4())
            assert key not in "".join(traceback.format_exception(raised.value))
        assert key not in f"{made!r}{store!r}"
        await made.close()


# Without a server


async def test_a_url_where_nothing_answers_is_not_run_and_says_so_in_one_line():
    async with QdrantStub(LocalEngine()) as stub:
        await stub.refuse()
        code, printed = await kit("qdrant", ADAPTER_QDRANT_URL=stub.url)
    assert code == 3
    (line,) = [line for line in printed.splitlines() if "live  not run:" in line]
    assert "ADAPTER_QDRANT_URL does not answer" in line


async def test_without_a_container_engine_qdrant_by_name_is_not_run_and_says_so_in_one_line():
    nowhere = {"DOCKER_HOST": "tcp://127.0.0.1:9", "TESTCONTAINERS_RYUK_DISABLED": "true"}
    code, printed = await kit("qdrant", **nowhere)
    assert code == 3
    assert len([line for line in printed.splitlines() if "live  not run:" in line]) == 1
    assert "Traceback" not in printed
