"""What the client is given is what it would have made of the same words itself."""

import json
from uuid import UUID

import pytest
from qdrant_client import models

from adapter_core import Criteria
from adapter_qdrant import client, finding, points, schema
from adapter_qdrant.transport import Search, Sparse

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
