"""What the client is given is what it would have made of the same words itself, and what it fails with."""

import json
import sqlite3
from uuid import UUID

import grpc
import httpx
import pytest
from qdrant_client import grpc as messages
from qdrant_client import models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_client.http.exceptions import UnexpectedResponse

from adapter_core import Criteria, MemoryAdapterUnavailable
from adapter_qdrant import QdrantDriver, QdrantSettings, client, errors, finding, points, schema
from adapter_qdrant.stub_grpc import CODES
from adapter_qdrant.testing import FakeQdrant
from adapter_qdrant.transport import Point, Search, Sparse

CRITERIA = Criteria(("ta", "tb"), (("fa",), ("fb", "fc")), ("wx", "wy"), -1.5, 99.0, 10)
CONDITION = {
    "must": [*points.conditions("n", CRITERIA, by_terms=True), points.with_ids([UUID(int=1)])],
    "must_not": [points.is_empty("terms"), points.any_of("stamp", [1, 2])],
}
CORPUS = points.all_of(*points.items_of("n"))
SEARCHES = {
    "newest": Search(CONDITION, 5, finding.FIELDS, newest_by="created_at"),
    "terms": Search(CONDITION, 5, finding.FIELDS, 7, Sparse([1, 2**32 - 1], [1.0, 1.0]), "terms", CORPUS),
    "meaning": Search(CONDITION, 5, finding.FIELDS, 0, [0.5, 0.25], "dense-2"),
    "marker": Search(points.all_of(points.with_ids([UUID(int=1)])), 1, schema.MARKER_FIELDS),
}


def test_a_condition_is_read_as_the_client_reads_it():
    assert client._filter(CONDITION) == models.Filter.model_validate(CONDITION)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_sent_as_the_client_would_send_it(name):
    made = client._request(SEARCHES[name])
    sent = json.loads(made.model_dump_json(exclude_unset=True, exclude_none=True))
    checked = models.QueryRequest.model_validate(sent)
    assert json.loads(checked.model_dump_json(exclude_unset=True, exclude_none=True)) == sent
    assert sent["filter"] == json.loads(json.dumps(SEARCHES[name].condition))
    assert sent["with_payload"] == [*SEARCHES[name].fields]


def test_the_id_of_a_point_that_is_a_number_is_none_of_ours():
    assert client._point_id(7) == UUID(int=7)
    assert client._point_id(str(UUID(int=7, version=5))) == UUID(int=7, version=5)


# By gRPC


def sent(model):
    """What a server reads of a model: what it was given, and what it does not take for itself."""
    return json.loads(model.model_dump_json(exclude_defaults=True, exclude_none=True))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_the_same_by_grpc(name):
    made = client._request(SEARCHES[name])
    message = messages.QueryPoints.FromString(RestToGrpc.convert_query_request(made, "c").SerializeToString())
    read = GrpcToRest.convert_query_points(message)
    for one in (made, read):  # what is not said and what is said to be nothing are the same to a server
        for condition in (one.filter, getattr(getattr(one.params, "idf", None), "corpus", None)):
            if condition is not None:
                condition.must, condition.must_not = condition.must or None, condition.must_not or None
                condition.should = condition.should or None
        if one.params is not None:
            one.params.exact = one.params.indexed_only = None
    assert sent(read) == sent(made)


def test_a_point_is_the_same_by_grpc():
    payload = {
        "item": '{"a":"\\u0000\\ud800"}',
        "created_at": 1735689600.1234567,
        "stamp": 2**63 - 1,
        "tags": [],
        "terms": ["wx", "wy"],
        "unfinished": False,
        "whole": 5.0,
    }
    weights = [0.5, 0.25]
    point = Point(UUID(int=9), payload, {"terms": Sparse([0, 2**32 - 1], weights), "dense-2": weights})
    for one in (point, point._replace(vectors={}), point._replace(vectors={"terms": Sparse([], [])})):
        made = models.PointStruct(id=str(one.id), payload=dict(one.payload), vector=client._vectors(one))
        message = messages.PointStruct.FromString(RestToGrpc.convert_point_struct(made).SerializeToString())
        read = GrpcToRest.convert_point_struct(message)
        assert read == made
        assert {key: repr(read.payload[key]) for key in payload} == {
            key: repr(value) for key, value in payload.items()
        }


@pytest.mark.parametrize("mode", list(models.UpdateMode))
def test_a_mode_of_writing_is_the_same_by_grpc(mode):
    assert GrpcToRest.convert_update_mode(RestToGrpc.convert_update_mode(mode)) is mode


@pytest.mark.parametrize("kind", client._INDEXES)
def test_an_index_is_the_same_by_grpc(kind):
    wanted = client._INDEXES[kind]
    assert (
        GrpcToRest.convert_payload_schema_params(RestToGrpc.convert_payload_schema_params(wanted)) == wanted
    )


# what an answer with each code means: `done` nothing was, `bad` the request was, `open` nobody knows
MEANINGS = {
    "UNAUTHENTICATED": "done", "PERMISSION_DENIED": "done", "NOT_FOUND": "done", "RESOURCE_EXHAUSTED": "done",
    "UNIMPLEMENTED": "done", "INVALID_ARGUMENT": "bad", "ALREADY_EXISTS": "bad", "OUT_OF_RANGE": "bad",
    "UNAVAILABLE": "open", "DEADLINE_EXCEEDED": "open", "INTERNAL": "open", "UNKNOWN": "open",
    "ABORTED": "open", "CANCELLED": "open", "DATA_LOSS": "open", "FAILED_PRECONDITION": "open",
}  # fmt: skip


@pytest.mark.parametrize("name", [code.name for code in grpc.StatusCode if code.name != "OK"])
def test_each_code_means_what_it_should_and_no_word_of_the_server_is_kept(name):
    metadata = grpc.aio.Metadata(("api-key", "sesame"))
    error = grpc.aio.AioRpcError(grpc.StatusCode[name], metadata, metadata, "sesame", "sesame")
    safe = errors.safe(error)
    assert "sesame" not in f"{safe!r}{safe}{safe.__cause__!r}{vars(safe)}{vars(safe.__cause__ or safe)}"
    if MEANINGS[name] == "done":
        assert isinstance(safe, MemoryAdapterUnavailable)
        assert name in str(safe)
        assert isinstance(safe, errors.CollectionGone) == (name == "NOT_FOUND")
    else:
        assert type(safe) is type(error)
        assert errors.is_broken(safe) == (MEANINGS[name] == "open")
    assert errors.is_conflict(error) == (name in ("ALREADY_EXISTS", "INVALID_ARGUMENT"))


def test_a_full_disk_below_a_path_is_unavailable():
    driver = QdrantDriver(FakeQdrant().transport(), "n", QdrantSettings(), None)
    assert driver.is_unavailable(sqlite3.OperationalError("database or disk is full"))


@pytest.mark.parametrize("status", CODES)
def test_a_code_means_what_the_answer_by_rest_means_that_it_stands_for(status):
    answer = UnexpectedResponse(status, "sesame", b"sesame", httpx.Headers({"sesame": "sesame"}))
    driver = QdrantDriver(FakeQdrant().transport(), "n", QdrantSettings(), None)
    by_rest, by_grpc = [errors.safe(one) for one in (answer, grpc.aio.AioRpcError(CODES[status], None, None))]
    for meaning in (
        lambda one: type(one) if isinstance(one, MemoryAdapterUnavailable) else None,
        driver.is_unavailable,
        errors.is_conflict,
    ):
        if (status, meaning) != (422, errors.is_conflict):  # there is no code of its own for a bad value
            assert meaning(by_rest) == meaning(by_grpc)


@pytest.mark.parametrize(("url", "is_secure"), [("http://h:1", False), ("https://h:1", True)])
def test_a_client_for_grpc_has_the_ways_and_limits_of_one_for_rest(url, is_secure):
    made = client._made(url, QdrantSettings(grpc_port=7, timeout=9), None)._client
    assert (made._prefer_grpc, made._grpc_port, made._https, made._timeout) == (True, 7, is_secure, 9)
    assert made._grpc_options["grpc.enable_retries"] == 0
    assert not client._made(url, QdrantSettings(), None)._client._prefer_grpc
