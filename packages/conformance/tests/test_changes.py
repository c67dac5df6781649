"""`fidelity diff`: what became weaker, stronger, new or gone."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapter_conformance import CaseResult, ConformanceReport, LossNamed, not_run
from adapter_conformance.changes import Change, changes, inventories, worse
from adapter_conformance.cli import app
from adapter_conformance.document import to_json
from adapter_conformance.session import Session

MATRIX = [f"C{number:02}" for number in range(1, 18)]
MANIFEST = {
    "adapter": "one",
    "native_item_fields": ["content", "created_at", "id", "metadata", "tags"],
    "dropped_item_fields": [],
    "supported_filters": ["created_after", "created_before", "topic"],
    "search_consistency": "immediate",
    "retrieve_fidelity": "full",
    "search_fidelity": "full",
    "search_returns_tags": True,
    "preserves_metadata": True,
}
LOSS = LossNamed(name="rounded", field="created_at", operation="retrieve", description="It is rounded.")


def report(*, without=(), cases=None, manifest=None, **fields):
    statuses = cases or {}
    return ConformanceReport(
        **{
            "adapter": "one",
            "environment": "fake",
            "kit_version": "1",
            "inventory_digest": "d",
            "seed": 0,
            "date": "2026-01-02",
            "durability": "power",
            "extensions": ("batch/1", "scan/1"),
            **fields,
        },
        manifest={**MANIFEST, **(manifest or {})},
        cases=tuple(
            CaseResult(id=one, name="n", status=statuses.get(one, "passed"), seconds=0.0)
            for one in MATRIX
            if one not in without
        ),
        required=17,
    )


def between(old, new):
    return [(c.kind, c.what, c.old, c.new) for c in changes([old], [new])]


def test_the_same_twice_is_no_change() -> None:
    assert changes([report()], [report(date="2027-01-01", seed=9)]) == []


@pytest.mark.parametrize(
    ("field", "weak", "strong"),
    [
        ("retrieve_fidelity", "native_fields", "full"),
        ("retrieve_fidelity", "lossy", "native_fields"),
        ("search_fidelity", "lossy", "full"),
        ("search_consistency", "eventual", "immediate"),
        ("search_returns_tags", False, True),
        ("preserves_metadata", False, True),
    ],
)
def test_a_manifest_field_is_weaker_one_way_and_stronger_the_other(field, weak, strong) -> None:
    told = {True: "yes", False: "no"}
    low, high = report(manifest={field: weak}), report(manifest={field: strong})
    words = told.get(strong, strong), told.get(weak, weak)
    assert between(high, low) == [("weaker", field, *words)]
    assert between(low, high) == [("stronger", field, *reversed(words))]


@pytest.mark.parametrize(
    ("less", "more", "what"),
    [
        ({"manifest": {"supported_filters": []}}, {"manifest": {"supported_filters": ["topic"]}}, "topic"),
        ({"manifest": {"dropped_item_fields": ["metadata"]}}, {}, "dropped_item_fields metadata"),
        ({"extensions": ("batch/1",)}, {}, "extension scan/1"),
        ({"losses": (LOSS,)}, {}, "loss rounded (created_at, retrieve)"),
        ({"durability": "crash"}, {}, "durability"),
        ({"durability": ""}, {"durability": "volatile"}, "durability"),
    ],
)
def test_less_is_weaker_and_more_is_stronger(less, more, what) -> None:
    (down,), (up,) = between(report(**more), report(**less)), between(report(**less), report(**more))
    assert (down[0], up[0]) == ("weaker", "stronger")
    assert what in down[1]
    assert down[1] == up[1]


@pytest.mark.parametrize("status", ["failed", "error"])
def test_a_case_that_passed_and_fails_is_weaker_and_so_is_the_verdict(status) -> None:
    found = between(report(), report(cases={"C08": status}))
    assert found == [("weaker", "certified", "yes", "no"), ("weaker", "C08 n", "passed", status)]
    assert [one[0] for one in between(report(cases={"C08": status}), report())] == ["stronger"] * 2


def test_a_case_that_is_not_staged_any_more_is_weaker() -> None:
    old, new = report(environment="live"), report(environment="live", cases={"C05": "not_staged"})
    assert between(old, new) == [("weaker", "C05 n", "passed", "not staged")]


def test_a_failure_and_a_broken_harness_prove_the_same() -> None:
    assert between(report(cases={"C08": "failed"}), report(cases={"C08": "error"})) == []


def test_cases_come_and_go() -> None:
    whole, part = report(environment="live"), report(environment="live", without=["C17"])
    assert ("gone", "C17 n", "passed", "-") in between(whole, part)
    assert ("new", "C17 n", "-", "passed") in between(part, whole)


def test_runs_are_told_apart_by_adapter_variant_and_environment() -> None:
    old = [report(), report(variant="keyspace"), report(environment="embedded")]
    new = [report(), report(environment="embedded"), report(environment="live")]
    assert changes(old, new) == [
        Change("one live", "new", "run", "-", "17/17"),
        Change("one-keyspace fake", "gone", "run", "17/17", "-"),
    ]


def test_a_run_that_could_not_be_made_is_gone_with_its_reason() -> None:
    away = not_run("one", "fake", "no wheel")
    (change,) = changes([report()], [away])
    assert (change.kind, change.old, change.new) == ("gone", "17/17", "not run: no wheel")
    assert changes([away], [away]) == []
    assert [one.kind for one in changes([away], [report()])] == ["new"]


def test_only_weaker_and_gone_are_worse() -> None:
    kinds = {kind: worse([Change("r", kind, "w", "", "")]) for kind in ("weaker", "gone", "stronger", "new")}
    assert kinds == {"weaker": True, "gone": True, "stronger": False, "new": False}
    assert not worse([])


def test_inventories_are_those_of_runs_that_happened() -> None:
    assert inventories([report(inventory_digest="b"), report(), not_run("one", "live", "why")]) == ["b", "d"]


# The command


@pytest.fixture(name="file")
def _file(tmp_path):
    def file(name, *reports):
        path = tmp_path / name
        path.write_text(to_json(Session(list(reports))), "utf-8")
        return str(path)

    return file


def fidelity(*arguments):
    return CliRunner().invoke(app, ["diff", *arguments], catch_exceptions=False)


def test_what_is_weaker_ends_with_one(file) -> None:
    old, new = file("old", report()), file("new", report(cases={"C08": "failed"}, durability="crash"))
    found = fidelity(old, new)
    assert found.exit_code == 1
    assert found.stdout.startswith("3 weaker\n")
    assert ["weaker", "one", "fake", "durability", "power", "crash"] in [
        line.split() for line in found.stdout.splitlines()
    ]
    back = fidelity(new, old)
    assert (back.exit_code, back.stdout.splitlines()[0]) == (0, "3 stronger")


def test_nothing_changed_is_said(file) -> None:
    found = fidelity(file("old", report()), file("new", report()))
    assert (found.exit_code, found.stdout, found.stderr) == (0, "Nothing changed.\n", "")


def test_another_inventory_is_noted(file) -> None:
    found = fidelity(file("old", report()), file("new", report(inventory_digest="e")))
    assert found.exit_code == 0
    assert found.stderr == "The two were made with different inventories of cases.\n"


def test_json_and_markdown(file) -> None:
    old, new = file("old", report()), file("new", report(durability="crash"))
    assert json.loads(fidelity(old, new, "--format", "json").stdout) == {
        "schema_version": 1,
        "worse": True,
        "changes": [
            {"run": "one fake", "kind": "weaker", "what": "durability", "old": "power", "new": "crash"}
        ],
    }
    assert (
        "| weaker | one fake | durability | power | crash |"
        in fidelity(old, new, "--format", "markdown").stdout
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"\xff", "it is not UTF-8"),
        (b"[]", "it has no schema_version"),
        (b'{"reports": []}', "it has no schema_version"),
        (b'{"schema_version": 2, "reports": []}', "its schema_version is not 1"),
        (
            b'{"schema_version": 1, "reports": [], "reports": []}',
            'the key "reports" occurs twice in one object',
        ),
        (b'{"schema_version": 1, "reports": [{"a": 1, "a": 2}]}', 'the key "a" occurs twice in one object'),
        (b'{"schema_version": 1, "reports": [{"adapter": "sesame"}]}', "its reports are not of this schema"),
    ],
)
def test_what_is_no_results_file_is_wrong_usage(file, tmp_path, text, why) -> None:
    (tmp_path / "bad").write_bytes(text)
    found = fidelity(file("old", report()), str(tmp_path / "bad"))
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.endswith(f"bad is no results file of this version of the kit: {why}\n")
    assert "sesame" not in found.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no file without an end")
def test_a_file_without_an_end_is_wrong_usage(file) -> None:
    found = fidelity(file("old", report()), "/dev/zero")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "it has more than 67108864 bytes" in found.stderr


def test_a_byte_order_mark_is_passed_over(file, tmp_path) -> None:
    old = file("old", report())
    (tmp_path / "new").write_bytes(b"\xef\xbb\xbf" + Path(old).read_bytes())
    found = fidelity(old, str(tmp_path / "new"))
    assert (found.exit_code, found.stdout) == (0, "Nothing changed.\n")


def test_a_file_that_is_not_there_is_wrong_usage(file, tmp_path) -> None:
    found = fidelity(str(tmp_path / "none"), file("new", report()))
    assert found.exit_code == 2
    assert "No such file" in found.stderr


def test_a_real_run_can_be_compared_with_itself(tmp_path) -> None:
    path = str(tmp_path / "results.json")
    runner = CliRunner()
    runner.invoke(app, ["run", "template-lossy", "--case", "C08", "--output", path], catch_exceptions=False)
    assert fidelity(path, path).exit_code == 0
