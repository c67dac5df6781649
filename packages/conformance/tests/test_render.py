import io

import pytest

from adapter_conformance import CaseResult, ClaimSeen, ConformanceReport, LossNamed, not_run
from adapter_conformance.render import (
    console_for,
    fidelity_sheet,
    loss_lines,
    markdown,
    print_comparison,
    print_verdicts,
    profiles,
    promises_sheet,
    proof_sheet,
    text_lines,
)

TIMES = ["created_after", "created_before"]
MATRIX = [f"C{number:02}" for number in range(1, 18)]


def manifest(**changes):
    every = ["content", "created_at", "id", "metadata", "tags"]
    return {
        "adapter": "one",
        "native_item_fields": every,
        "dropped_item_fields": [],
        "supported_filters": TIMES,
        "search_consistency": "immediate",
        "retrieve_fidelity": "full",
        "search_fidelity": "full",
        "search_returns_tags": True,
        "preserves_metadata": True,
        **changes,
    }


def case(name, status="passed", reason="", **more):
    return CaseResult(id=name, name="limit", status=status, reason=reason, seconds=0, **more)


def report(adapter="one", environment="fake", declared=None, cases=(), **more):
    others = {one.id: one for one in cases}
    return ConformanceReport(
        adapter=adapter,
        environment=environment,
        kit_version="1",
        inventory_digest="d",
        seed=0,
        date="2026-01-02",
        required=17,
        manifest=manifest(**(declared or {})),
        **{
            "engine": "Engine",
            "engine_version": "1.2",
            "cases": tuple(others.get(i) or case(i) for i in MATRIX),
            **more,
        },
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(show, reports, stream=None):
    stream = stream or io.StringIO()
    show(console_for(stream), reports)
    return stream.getvalue()


def row(sheet):
    (only,) = sheet.rows
    return dict(zip((header.replace("\n", " ") for header in sheet.headers), only, strict=True))


def test_profile_of_a_full_adapter() -> None:
    found = profiles([report(durability="power", extensions=("batch/1", "scan/2"))])
    assert row(fidelity_sheet(found)) == {
        "Adapter": "one",
        "Retrieve": "full",
        "Search": "full",
        "Consistency": "immediate",
        "Tags in hits": "yes",
        "Metadata": "exact",
    }
    assert row(promises_sheet(found)) == {
        "Adapter": "one",
        "Dropped fields": "-",
        "Filters": "time",
        "Durability": "power",
        "Extensions": "batch, scan/2",
    }


def test_profile_of_a_lossy_adapter() -> None:
    declared = {
        "retrieve_fidelity": "native_fields",
        "search_fidelity": "lossy",
        "search_consistency": "eventual",
        "search_returns_tags": False,
        "preserves_metadata": False,
        "dropped_item_fields": ["created_at", "metadata"],
    }
    found = profiles([report(declared=declared)])
    assert list(row(fidelity_sheet(found)).values())[1:] == [
        "native_fields",
        "lossy",
        "eventual",
        "no",
        "dropped",
    ]
    assert row(promises_sheet(found))["Dropped fields"] == "created_at, metadata"


def test_another_meaning_of_text_is_told_with_the_option_that_gives_it() -> None:
    told = report(text_meaning="by mood", text_meaning_with={"embedder": "by meaning", "other": ""})
    assert text_lines(profiles([told, report("two")])) == [
        ("one", "by mood"),
        ("one with embedder", "by meaning"),
    ]
    shown = printed(print_comparison, [told])
    assert "Text means something else\n  one                by mood\n  one with embedder  by meaning" in shown
    assert "- one with embedder: by meaning" in markdown([told])
    assert "Text means" not in printed(print_comparison, [report()])


def test_adapter_has_a_row_for_each_meaning_of_text() -> None:
    found = profiles([report(), report(environment="embedded", text_meaning="by mood")])
    assert [profile.name for profile in found] == ["one (fake)", "one (embedded)"]


@pytest.mark.parametrize(
    ("keys", "shown"),
    [(TIMES, "time"), ([*TIMES, "kind"], "time, kind"), (["created_after"], "created_after"), ([], "-")],
)
def test_filters_beyond_the_times_are_named(keys, shown) -> None:
    found = profiles([report(declared={"supported_filters": keys})])
    assert row(promises_sheet(found))["Filters"] == shown


def test_metadata_that_is_native_but_not_preserved_is_changed() -> None:
    found = profiles([report(declared={"preserves_metadata": False})])
    assert row(fidelity_sheet(found))["Metadata"] == "changed"


def test_adapter_has_one_row_unless_it_declares_other_things_elsewhere() -> None:
    same = profiles([report(), report(environment="embedded")])
    assert [profile.name for profile in same] == ["one"]
    other = profiles([report(), report(environment="embedded", durability="power")])
    assert [profile.name for profile in other] == ["one (fake)", "one (embedded)"]


def test_proof_has_a_row_for_each_environment() -> None:
    staged = [case("C05", "not_staged"), case("C16", "not_staged")]
    sheet = proof_sheet(
        [report(), report(environment="embedded", cases=staged), report(cases=[case("C08", "failed")])]
    )
    assert [tuple(one) for one in sheet.rows] == [
        ("one", "fake", "Engine 1.2", "17/17", "certified", "2026-01-02"),
        ("one", "embedded", "Engine 1.2", "15/17, 2 not staged", "certified", "2026-01-02"),
        ("one", "fake", "Engine 1.2", "16/17, 1 failed", "not certified", "2026-01-02"),
    ]


def test_adapter_that_was_not_run_has_its_rows() -> None:
    missing = not_run("two", "embedded", "no wheel for this platform")
    assert fidelity_sheet(profiles([missing])).rows == [("two", "not run", "-", "-", "-", "-")]
    assert promises_sheet(profiles([missing])).rows == [("two", "-", "-", "-", "-")]
    shown = row(proof_sheet([missing]))
    assert (shown["Engine"], shown["Score"], shown["Verdict"]) == (
        "-",
        "not run: no wheel for this platform",
        "-",
    )
    text = printed(print_verdicts, [missing, report()])
    assert "two  embedded  not run: no wheel for this platform\n" in text


def test_one_loss_of_two_verbs_is_told_once() -> None:
    losses = [
        LossNamed(name="ms", field="created_at", operation=verb, description="Rounded.")
        for verb in ("retrieve", "search")
    ]
    found = profiles([report(losses=losses)])
    assert loss_lines(found) == [("one", "ms (created_at, retrieve and search): Rounded.")]


def test_piped_table_keeps_each_row_on_its_line() -> None:
    why = "no wheel " * 40
    text = printed(print_comparison, [report(), not_run("two", "live", why.strip())])
    assert "\x1b" not in text
    assert any(why.strip() in line for line in text.splitlines())
    titles = [line for line in text.splitlines() if line in ("Fidelity", "Promises", "Proof")]
    assert titles == ["Fidelity", "Promises", "Proof"]
    assert "Named losses" not in text


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_table_fits_and_cuts_no_name(monkeypatch, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    many = ("batch/1", "delete/1", "scan/1", "revisions/1", "scored-search/1", "reindex/1")
    staged = [case("C05", "not_staged"), case("C16", "not_staged")]
    reports = [
        report("template-dropping", "embedded", cases=staged, extensions=many, engine="PostgreSQL"),
        report(declared={"retrieve_fidelity": "native_fields", "search_fidelity": "native_fields"}),
    ]
    lines = printed(print_comparison, reports, Terminal()).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for cell in ("template-dropping", "native_fields", "scored-search", "2026-01-02", "certified"):
        assert cell in text


@pytest.mark.parametrize("colour", [True, False])
def test_no_color_is_honoured(monkeypatch, colour) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "")
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    text = printed(print_verdicts, [report()], Terminal())
    assert ("\x1b[32m" in text) is colour
    assert "certified" in text


def test_cells_are_never_taken_for_markup() -> None:
    text = printed(print_verdicts, [report(cases=[case("C08", "failed", "got [red]1[/red] :smile:")])])
    assert "got [red]1[/red] :smile:" in text


def test_markdown_has_the_cells_and_no_broken_row() -> None:
    losses = [LossNamed(name="ms", field="created_at", operation="search", description="a|b\nc")]
    text = markdown([report(losses=losses, engine_note="faults are injected")])
    assert "| Adapter | Retrieve | Search | Consistency | Tags in hits | Metadata |\n| --- |" in text
    assert "| one | full | full | immediate | yes | exact |" in text
    assert "| one | fake | Engine 1.2 | 17/17 | certified | 2026-01-02 |" in text
    assert "- one: ms (created_at, search): a\\|b c\n" in text
    assert "- one fake: faults are injected\n" in text
    assert text.startswith("### Fidelity\n")


def test_verdicts_stand_in_columns() -> None:
    text = printed(print_verdicts, [report(), report("second", "embedded")])
    assert [line.rstrip() for line in text.splitlines()] == [
        "one     fake      Engine 1.2  17/17  certified",
        "second  embedded  Engine 1.2  17/17  certified",
    ]


def test_each_case_that_did_not_pass_has_its_reason_and_the_false_claims() -> None:
    claims = (
        ClaimSeen(field="search_fidelity", declared="full", observed="lossy"),
        ClaimSeen(field="adapter", declared="one", observed="one"),
    )
    cases = [
        case("C07", "failed", "a hit\nchanged", claims=claims),
        case("C08", "error", "reset raised"),
        case("C09", "not_staged", "no hook"),
    ]
    lines = [line.split() for line in printed(print_verdicts, [report(cases=cases)]).splitlines()]
    assert lines[1:] == [
        ["C07", "limit", "failed", "a", "hit", "changed"],
        ["manifest", "field", "search_fidelity:", "declared", "full,", "observed", "lossy"],
        ["C08", "limit", "error", "reset", "raised"],
        ["C09", "limit", "not", "staged", "no", "hook"],
    ]


def test_partial_run_says_so() -> None:
    text = printed(print_verdicts, [report(cases=()).model_copy(update={"cases": (case("X01"),)})])
    assert "1/1 of the cases asked for  partial" in text


def test_very_long_reason_is_cut() -> None:
    text = printed(print_verdicts, [report(cases=[case("C07", "failed", "long " * 10_000)])])
    assert len(text) < 2_000
    assert " ..." in text


def test_reason_cannot_command_the_terminal() -> None:
    text = printed(print_verdicts, [report(cases=[case("C07", "failed", "a\x1b[2J\x00 \ud83d é\nb")])])
    assert r"a\x1b[2J\x00 \ud83d é b" in text


def test_piped_lines_end_where_their_text_ends() -> None:
    text = printed(print_comparison, [report(), report("a-longer-name")])
    assert all(line == line.rstrip() for line in text.splitlines())
