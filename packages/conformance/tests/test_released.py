"""The results that a wheel carries, and what a results file says of a run."""

import json
from importlib.metadata import Distribution

import pytest
from typer.testing import CliRunner

from adapter_conformance import ALL_CASES, run_conformance
from adapter_conformance._installed import installed_drivers
from adapter_conformance._matrix_search import percentile
from adapter_conformance.cli import app
from adapter_conformance.document import reports_from_json
from adapter_conformance.session import Session, find_targets, run_targets
from adapter_template.harness import EVENTUAL, TemplateHarness

AWAY = """
from adapter_template.harness import LOSSY

class Harness(LOSSY[0]):
    environment = "embedded"
    variant = "fast"

    @staticmethod
    def not_run_reason():
        return "no wheel for this platform"

HARNESSES = (Harness,)
"""


def fidelity(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture(name="carry")
def _carry(tmp_path):
    """Put results into the package of an adapter that `install` has installed."""

    def carry(name, text=None, **fields) -> None:
        package = tmp_path / "site" / f"made_{name}"
        package.mkdir()
        (package / "conformance.json").write_text(text if text is not None else results(name, fields))

    return carry


def results(name, fields) -> str:
    """The document of a run of the lossy template, as that of another adapter."""
    document = json.loads(fidelity("run", "template-lossy", "--case", "C08", "--format", "json").stdout)
    (report,) = document["reports"]
    about = {"adapter": name, "environment": "embedded", "variant": "fast", "adapter_version": f"{name} 1.0"}
    report |= {"engine": "Engine", "engine_version": "7", **about, **fields}
    return json.dumps(document)


def test_where_nothing_can_run_the_released_results_are_shown_as_such(install, carry) -> None:
    install("away", AWAY)
    carry("away")
    found = fidelity("compare", "away")
    assert found.exit_code == 3  # nobody ran anything here
    lines = [line.split("  ") for line in found.stdout.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["away-fast", "lossy", "lossy", "immediate", "yes", "exact"] in cells
    assert any(
        row[:3] == ["away-fast", "embedded", "-"] and "not run: no wheel" in row[3]
        for row in cells
        if len(row) > 3
    )
    assert any(row[:3] == ["away-fast", "embedded, released", "Engine 7"] for row in cells)
    assert ["away-fast embedded", "these are the results that away 1.0 was released with"] in cells
    (absent, released) = json.loads(fidelity("compare", "away", "--format", "json").stdout)["reports"]
    assert (absent["released"], released["released"]) == (False, True)
    assert "embedded, released" in fidelity("compare", "away", "--format", "markdown").stdout


def test_they_count_neither_for_nor_against(install, carry) -> None:
    install("away", AWAY)
    case = {"id": "C08", "name": "limit", "status": "failed", "reason": "", "seconds": 0.0}
    carry("away", cases=[case], score="0/17, 1 failed", certified=False)
    assert fidelity("compare", "away").exit_code == 3
    assert fidelity("compare", "away", "template-lossy").exit_code == 0
    assert fidelity("run", "away").exit_code == 3


def test_results_of_another_run_are_not_shown(install, carry) -> None:
    install("away", AWAY)
    carry("away", variant="slow")
    assert "released" not in fidelity("compare", "away").stdout


def test_a_run_that_was_made_needs_no_released_results(install, carry) -> None:
    install("away", AWAY.replace('return "no wheel for this platform"', "return None"))
    carry("away")
    assert "released" not in fidelity("compare", "away").stdout


def test_an_adapter_that_cannot_be_loaded_shows_what_it_was_released_with(install, carry) -> None:
    install("away", "import no_such_driver")
    carry("away")
    found = fidelity("compare", "away")
    assert found.exit_code == 1
    assert "its harness cannot be loaded" in found.stderr
    assert "embedded, released" in found.stdout
    assert "released" not in fidelity("compare", "away", "--environment", "live").stdout


@pytest.mark.parametrize("text", ["", "{}", '{"schema_version": 9, "reports": []}'])
def test_damaged_results_are_one_line(install, carry, text) -> None:
    install("away", AWAY)
    carry("away", text=text)
    found = fidelity("compare", "away")
    assert found.exit_code == 1
    *_, line = found.stderr.splitlines()
    assert line.startswith("Error: away: the results that it was released with cannot be read (")


# What a report says


def test_a_report_names_the_drivers_with_their_versions() -> None:
    targets, _ = find_targets(["postgres"], ["fake"])
    (report,) = run_targets(targets, cases=ALL_CASES[1:2]).reports
    (driver,) = report.drivers
    assert driver == f"asyncpg {Distribution.from_name('asyncpg').version}"
    assert report.adapter_version.startswith("adapter-postgres ")


def test_only_what_is_required_and_installed_is_a_driver() -> None:
    class Made(Distribution):
        @property
        def requires(self):
            lines = ["adapter-core>=0.1", "pydantic>=2 ; python_version > '3'", "no-such-driver"]
            return [*lines, "pytest>=8 ; extra == 'embedded'"]

        def read_text(self, filename):
            return None

        def locate_file(self, path):
            return path

    assert installed_drivers(Made()) == (f"pydantic {Distribution.from_name('pydantic').version}",)
    assert installed_drivers(None) == ()


async def test_the_lag_of_an_eventual_engine_is_measured() -> None:
    class Engine(EVENTUAL[0]):
        environment = "embedded"

        async def make_store_with(self, **options):
            store = await super().make_store_with(**options)
            whole = store.search

            async def search(query):
                found = await whole(query)
                self.service.expose()  # the next one finds it
                return found

            store.search = search
            return store

    (case,) = [case for case in ALL_CASES if case.id == "C14"]
    report = await run_conformance(Engine(), cases=[case])
    (result,) = report.cases
    assert result.status == "passed"
    assert result.figures["lag_samples"] == 100
    assert 0 < result.figures["lag_p50_seconds"] <= result.figures["lag_p99_seconds"] < 30
    assert result.notes[0].startswith("search lag p50 0.0")
    assert reports_from_json(json.dumps({"schema_version": 1, "reports": [document(report)]})) == [report]


def document(report):
    return {**report.model_dump(mode="json"), "score": report.score, "certified": report.certified}


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([1.0], 50, 1.0),
        ([1.0], 99, 1.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        (range(1, 101), 99, 99),
        (range(1, 101), 50, 50),
    ],
)
def test_percentiles_are_values_that_were_seen(values, percent, expected) -> None:
    assert percentile(list(values), percent) == expected


# Variants within one entry point

TWO = """
from adapter_template.harness import TemplateHarness

class One(TemplateHarness):
    adapter = "two"
    variant = "one"

class Other(One):
    variant = "other"
    environment = "embedded"

class Plain(TemplateHarness):
    adapter = "two"

HARNESSES = (Plain, One, Other)
"""


def test_variants_are_named_and_selected_by_their_label(install) -> None:
    install("two", TWO)
    labels = lambda *names: [(t.label, t.environment) for t in find_targets(names)[0]]  # noqa: E731
    assert labels("two") == [("two", "fake"), ("two-one", "fake"), ("two-other", "embedded")]
    assert labels("two-one") == [("two-one", "fake")]
    assert labels("two-other", "template-lossy") == [("template-lossy", "fake"), ("two-other", "embedded")]
    with pytest.raises(LookupError, match="no harness for 'two-third'"):
        find_targets(["two-third"])


def test_variants_have_rows_of_their_own_in_every_command(install) -> None:
    install("two", TWO)
    ran = fidelity("run", "two", "--case", "C08")
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["two", "two-one", "two-other"]
    compared = fidelity("compare", "two-one", "two-other", "--format", "json").stdout
    assert [(r["adapter"], r["variant"]) for r in json.loads(compared)["reports"]] == [
        ("two", "one"),
        ("two", "other"),
    ]


def test_a_session_tells_a_variant_that_broke_by_its_label(install) -> None:
    install(
        "two",
        TWO.replace(
            "class Plain", "class Bad(One):\n    def __init__(self):\n        raise OSError\n\nclass Plain"
        ).replace("Other)", "Bad)"),
    )
    targets, _ = find_targets(["two-one"])
    session: Session = run_targets(targets, cases=ALL_CASES[1:2])
    assert [str(fault).partition(" ")[0] for fault in session.faults] == ["two-one"]
    assert TemplateHarness.adapter == "template"
