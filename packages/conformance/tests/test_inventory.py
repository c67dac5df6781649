import pytest

from adapter_conformance import (
    ALL_CASES,
    EXTRAS,
    INVENTORY_VERSION,
    MATRIX,
    Case,
    CaseResult,
    ConformanceReport,
    inventory_digest,
    run_conformance,
)
from adapter_template.harness import TemplateHarness

REQUIRED = {
    "C01": "surface",
    "C02": "identifier",
    "C03": "retrieval",
    "C04": "unknown-id",
    "C05": "foreign-kind",
    "C06": "write-fields",
    "C07": "typed-hits",
    "C08": "limit",
    "C09": "empty-query",
    "C10": "unsupported-filter",
    "C11": "supported-filter",
    "C12": "tags",
    "C13": "metadata",
    "C14": "consistency",
    "C15": "outage",
    "C16": "rejected-write",
    "C17": "accuracy",
}
OWN = {
    "X01": "late-filter",
    "X02": "index-signature",
    "X03": "no-trace",
    "X04": "aliasing",
    "X05": "namespaces",
    "X06": "cancellation",
    "X07": "lifecycle",
    "X08": "concurrent-replace",
    "X09": "setup-race",
    "X10": "extensions",
    "X11": "degraded",
    "X12": "malformed",
    "X14": "text",
    "X15": "generated",
}


async def _nothing(_) -> None:
    pass


def test_the_matrix_has_seventeen_cases_in_order() -> None:
    assert [(case.id, case.name) for case in MATRIX] == list(REQUIRED.items())
    assert len(MATRIX) == 17


def test_our_own_cases_come_after_the_matrix() -> None:
    assert [(case.id, case.name) for case in EXTRAS] == list(OWN.items())
    assert (*MATRIX, *EXTRAS) == ALL_CASES


def test_no_two_cases_share_a_name_or_a_body() -> None:
    assert len({case.name for case in ALL_CASES}) == len({case.body for case in ALL_CASES}) == 31


def test_label_joins_id_and_name() -> None:
    assert MATRIX[7].label == "C08-limit"


def test_digest_changes_when_a_case_is_added_renamed_or_taken_away() -> None:
    digests = {
        inventory_digest(),
        inventory_digest([*ALL_CASES, Case("X99", "another", "another", _nothing)]),
        inventory_digest([Case("C01", "renamed", "", _nothing), *ALL_CASES[1:]]),
        inventory_digest(ALL_CASES[:-1]),
    }
    assert len(digests) == 4


def test_digest_changes_with_the_version_of_the_inventory(monkeypatch) -> None:
    before = inventory_digest()
    monkeypatch.setattr("adapter_conformance.inventory.INVENTORY_VERSION", INVENTORY_VERSION + 1)
    assert inventory_digest() != before


# What certified means


def _result(case: str, status: str = "passed") -> CaseResult:
    return CaseResult(id=case, name="", status=status, seconds=0)


def _report(cases, environment: str = "fake") -> ConformanceReport:
    return ConformanceReport(
        adapter="a",
        environment=environment,
        kit_version="1",
        inventory_digest="",
        seed=0,
        date="",
        cases=tuple(cases),
        required=17,
    )


def _matrix(**other: str) -> list[CaseResult]:
    return [_result(case, other.get(case, "passed")) for case in REQUIRED]


@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_seventeen_of_seventeen_is_certified(environment) -> None:
    assert _report(_matrix(), environment).certified


@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_no_cases_are_no_pass(environment) -> None:
    assert not _report([], environment).certified
    assert _report([], environment).score == "0/17"


@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_cases_that_were_not_staged_are_never_counted(environment) -> None:
    nothing = _report([_result(case, "not_staged") for case in REQUIRED], environment)
    assert not nothing.certified
    assert nothing.score == "0/17, 17 not staged"


@pytest.mark.parametrize(("environment", "certified"), [("fake", False), ("embedded", True), ("live", True)])
def test_only_the_fake_must_stage_everything(environment, certified) -> None:
    report = _report(_matrix(C05="not_staged", C16="not_staged"), environment)
    assert report.certified is certified
    assert report.score == "15/17, 2 not staged"


@pytest.mark.parametrize("status", ["failed", "error"])
@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_a_failure_and_a_harness_fault_are_not_certified(environment, status) -> None:
    assert not _report(_matrix(C16=status), environment).certified
    beside = _report([*_matrix(), _result("X03", status)], environment)
    assert not beside.certified
    assert beside.score == "17/17, also failed: X03"


@pytest.mark.parametrize("environment", ["fake", "embedded", "live"])
def test_a_part_of_the_matrix_is_not_certified(environment) -> None:
    assert not _report(_matrix()[:-1], environment).certified
    assert not _report([*_matrix()[:-1], _result("X01")], environment).certified


def test_one_case_seventeen_times_is_not_certified() -> None:
    assert not _report([_result("C01")] * 17).certified


# What a run makes of its selection


async def test_a_run_of_some_cases_is_not_certified() -> None:
    report = await run_conformance(TemplateHarness(), cases=MATRIX[:3])
    assert [(case.id, case.status) for case in report.cases] == [
        *(("C01", "passed"), ("C02", "passed"), ("C03", "passed")),
    ]
    assert report.score == "3/17"
    assert not report.certified


async def test_a_case_of_the_inventory_cannot_be_replaced() -> None:
    easier = Case("C15", "outage", "transport outage", _nothing)
    with pytest.raises(ValueError, match="C15 is a case of the inventory, which is final"):
        await run_conformance(TemplateHarness(), cases=[*MATRIX[:14], easier])


async def test_an_adapter_may_add_a_case() -> None:
    added = Case("A01", "mine", "a case of mine", _nothing)
    report = await run_conformance(TemplateHarness(), cases=[*MATRIX, added])
    assert report.cases[-1].id == "A01"
    assert report.certified


async def test_two_runs_with_one_seed_give_equal_reports_but_for_the_seconds() -> None:
    def _comparable(report):
        document = report.model_dump(exclude={"date"})
        for case in document["cases"]:
            del case["seconds"]
        return document

    first = await run_conformance(TemplateHarness(), seed=7)
    second = await run_conformance(TemplateHarness(), seed=7)
    assert _comparable(first) == _comparable(second)
    assert first.seed == 7


async def test_another_seed_draws_other_queries() -> None:
    generated = [case for case in ALL_CASES if case.id == "X15"]
    notes = set()
    for seed in range(3):
        report = await run_conformance(TemplateHarness(), cases=generated, seed=seed)
        notes.add(report.cases[0].notes)
    assert len(notes) > 1
