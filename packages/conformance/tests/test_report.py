import json

import pytest

from adapter_conformance import CaseResult, ConformanceReport, not_run
from adapter_conformance.document import reports_from_json, to_json
from adapter_conformance.session import Exit, Fault, Session

MATRIX = [f"C{number:02}" for number in range(1, 18)]


def report(environment="fake", adapter="one", **statuses):
    ids = [*MATRIX, "X01"]
    return ConformanceReport(
        adapter=adapter,
        environment=environment,
        kit_version="1",
        inventory_digest="d",
        seed=7,
        date="2026-01-02",
        cases=tuple(CaseResult(id=i, name="n", status=statuses.get(i, "passed"), seconds=0.5) for i in ids),
        required=17,
    )


def partial(status="passed"):
    return report().model_copy(update={"cases": report(C08=status).cases[7:8]})


def test_fake_is_certified_by_the_whole_matrix_only() -> None:
    assert report().certified
    assert report().score == "17/17"
    assert not report(C05="not_staged").certified


@pytest.mark.parametrize("environment", ["embedded", "live"])
def test_other_environments_are_certified_without_what_they_cannot_stage(environment) -> None:
    found = report(environment, C05="not_staged", C16="not_staged")
    assert found.certified
    assert found.score == "15/17, 2 not staged"


@pytest.mark.parametrize("status", ["failed", "error"])
@pytest.mark.parametrize("case", ["C08", "X01"])
@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_one_failure_is_not_certified_anywhere(environment, case, status) -> None:
    found = report(environment, **{case: status})
    assert not found.certified
    assert Session([found]).exit == Exit.FALSE


def test_nothing_staged_is_not_certified() -> None:
    nothing = report("live", **dict.fromkeys(MATRIX, "not_staged"))
    assert not nothing.certified
    assert Session([nothing]).exit == Exit.FALSE


def test_partial_run_is_never_certified_but_may_hold() -> None:
    assert not partial().certified
    assert Session([partial()]).exit == Exit.HOLDS
    assert Session([partial("failed")]).exit == Exit.FALSE
    assert Session([partial("not_staged")]).exit == Exit.UNREACHABLE


def test_not_run_is_neither_certified_nor_failed() -> None:
    missing = not_run("two", "embedded", "no wheel for this platform")
    assert not missing.certified
    assert missing.score == "not run: no wheel for this platform"
    assert Session([missing]).exit == Exit.UNREACHABLE
    assert Session([missing, report()]).exit == Exit.HOLDS
    assert Session([missing, report(C01="failed")]).exit == Exit.FALSE
    assert Session([]).exit == Exit.UNREACHABLE


def test_broken_harness_is_a_failure() -> None:
    assert Session([report()], [Fault("two", None, "ImportError: no")]).exit == Exit.FALSE
    assert str(Fault("two", "live", "no")) == "two live: no"


def test_document_round_trip() -> None:
    reports = [report(), report("embedded", C05="not_staged"), not_run("two", "live", "no server")]
    text = to_json(Session(reports, [Fault("three", None, "no")]))
    assert reports_from_json(text) == reports
    document = json.loads(text)
    assert document["schema_version"] == 1
    assert [one["score"] for one in document["reports"]] == [
        "17/17",
        "16/17, 1 not staged",
        "not run: no server",
    ]
    assert [one["certified"] for one in document["reports"]] == [True, True, False]
    assert document["errors"] == [{"adapter": "three", "environment": None, "reason": "no"}]


def test_report_round_trip() -> None:
    assert ConformanceReport.model_validate_json(report().model_dump_json()) == report()


@pytest.mark.parametrize(("name", "value"), [("certified", True), ("score", "17/17")])
def test_document_with_another_verdict_than_its_cases_is_refused(name, value) -> None:
    document = json.loads(to_json(Session([report(C02="failed")])))
    document["reports"][0][name] = value
    with pytest.raises(ValueError, match=f"one fake: {name} is not what the cases say"):
        reports_from_json(json.dumps(document))


def test_document_of_another_schema_is_refused() -> None:
    text = to_json(Session([report()])).replace('"schema_version": 1', '"schema_version": 2')
    with pytest.raises(ValueError, match="schema_version"):
        reports_from_json(text)


def test_document_is_ascii_json_whatever_a_reason_holds() -> None:
    cases = (CaseResult(id="C01", name="n", status="failed", reason="a\ud83d \U0001f600 é\x00", seconds=0),)
    text = to_json(Session([report().model_copy(update={"cases": cases})]))
    assert text.isascii()
    assert reports_from_json(text)[0].cases[0].reason == "a\\ud83d \U0001f600 é\x00"
