"""`fidelity preview`: what would become of the records of a file."""

import io
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapter_conformance import records
from adapter_conformance.cli import app
from adapter_conformance.preview import LONGEST_VALUE, differences, shown
from adapter_conformance.records import GivenRecord, UnreadableLine, read_records
from adapter_core import check_item, same_value

EXAMPLES = Path(__file__).parents[3] / "examples" / "memories.jsonl"
ID = "0b0c8a5e-4a39-4c0c-8a54-3b1f8f0f2a11"

TEXTUAL = """
from adapter_core import MemoryItem, Projection
from adapter_template import TemplateMemoryStore
from adapter_template.harness import TemplateHarness

def spoilt(item):
    texts = {key: value if type(value) is str else str(value) for key, value in item.metadata.items()}
    return item._replace(metadata=texts)

class Textual(TemplateMemoryStore):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._projection = Projection(retrieve=spoilt, search=spoilt)

class Foreign:
    '''A store that is not built on the portable one.'''
    projection = Projection(retrieve=spoilt, search=spoilt)

class Broken(TemplateMemoryStore):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._projection = Projection(retrieve=lambda item: item.metadata["sesame"])

class Harness(TemplateHarness):
    async def make_store_with(self, **options):
        return Textual(self.service, **options)

class Alien(TemplateHarness):
    async def make_store(self):
        return Foreign()

class Wrong(TemplateHarness):
    async def make_store_with(self, **options):
        return Broken(self.service, **options)

HARNESSES = (Harness, Harness)
ALIEN = (Alien,)
WRONG = (Wrong,)
"""

LIVE_ONLY = """
class Live:
    environment = "live"
    def __init__(self):
        raise AssertionError("must not be made")
HARNESSES = (Live,)
"""

UNMAKEABLE = """
class Harness:
    def __init__(self):
        raise OSError("sesame")
HARNESSES = (Harness,)
"""


def fidelity(*arguments):
    return CliRunner().invoke(app, ["preview", *map(str, arguments)], catch_exceptions=False)


def document(*arguments):
    found = fidelity(*arguments, "--format", "json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def read(*lines):
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return list(read_records(io.BytesIO(data)))


def one(line) -> GivenRecord:
    (entry,) = read(line)
    assert isinstance(entry, GivenRecord), entry
    return entry


@pytest.fixture(name="file")
def _file(tmp_path):
    """Write lines to a file."""

    def file(*lines):
        path = tmp_path / "mine.jsonl"
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        return path

    return file


# The examples


def test_the_examples_show_a_refusal_with_its_path_and_a_loss() -> None:
    found = document(EXAMPLES, "--limit", "1000")
    assert (found["records"], found["unreadable"]) == (50, [])
    assert {(one["line"], one["path"].partition("[0][0]")[0]) for one in found["refused"]} == {
        (14, "content.values[2]"),
        (15, "content.result"),
        (16, "metadata.days_left"),
        (25, "content.tree"),
        (32, "tags[1]"),
    }
    counts = {entry.pop("adapter"): entry for entry in found["adapters"]}
    assert counts["sqlite"] == counts["template"] == {"exact": 45, "changed": 0, "refused": 5}
    lossy = [entry for entry in found["changed"] if "template-lossy" in entry["adapters"]]
    assert {entry["place"] for entry in lossy} == {"created_at"}
    assert {tuple(entry["losses"]) for entry in lossy} == {("created-at-milliseconds",)}
    assert len(lossy) == counts["template-lossy"]["changed"] > 20
    assert found["not_shown"] == {"unreadable": 0, "refused": 0, "changed": 0}


def test_the_examples_hold_the_awkward_values() -> None:
    text = EXAMPLES.read_text("utf-8")
    for escape in ("NaN", "Infinity", "1e400", "\\u0000", "\\ud83d", "-0.0", "\u200d"):
        assert escape in text
    with EXAMPLES.open("rb") as stream:
        items = [entry.fields for entry in read_records(stream)]
    assert len(items) == len({item.id for item in items}) == 50
    contents = [value for item in items for value in every(item.content)]
    for value in (9007199254740993, 340282366920938463463374607431768211457, -0.0, 1, 1.0, 1e22, 5e-324):
        assert any(same_value(value, other) for other in contents), value
    metadata = [value for item in items for value in item.metadata.values()]
    for value in (0, False, "", None, [], {}):
        assert any(same_value(value, other) for other in metadata), value
    assert any("" in item.tags for item in items)
    assert any(len(set(item.tags)) < len(item.tags) for item in items)
    assert any({"id", "content", "tags", "created_at"} <= item.metadata.keys() for item in items)


def every(value):
    yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from every(inner)


def test_tables_begin_with_the_summary() -> None:
    found = fidelity(EXAMPLES, "sqlite", "template-lossy", "--limit", "2")
    assert (found.exit_code, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == "memories.jsonl: 50 records"
    assert lines[1].split() == ["Adapter", "Exact", "Changed", "Refused"]
    assert "template-lossy  4      41       5" in lines
    assert "Refused (3 more not shown)" in lines
    assert any("content.values[2]  NaN and infinity are not JSON  all" in line for line in lines)
    assert "Changed (39 more not shown)" in lines
    assert (
        "1767259817.318207  1767259817.318  1767259817.318  created-at-milliseconds  template-lossy"
        in found.stdout
    )
    assert "\x1b" not in found.stdout


def test_markdown() -> None:
    found = fidelity(EXAMPLES, "template-tagless", "--format", "markdown")
    assert "### memories.jsonl: 50 records" in found.stdout
    assert (
        '| 2 | 4c9a763b… | tags | ["preference", "food"] | ["preference", "food"] | [] '
        "| search-hits-without-tags | template-tagless |"
    ) in found.stdout


def test_nothing_is_written_and_nothing_is_connected(file, tmp_path, monkeypatch) -> None:
    import adapter_sqlite.transport

    def connect(*arguments, **options):
        raise AssertionError("connected")

    path = file('{"content": "tea"}')
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(adapter_sqlite.transport.FileTransport, "open", connect)
    monkeypatch.chdir(tmp_path)
    assert fidelity(path).exit_code == 0
    assert sorted(tmp_path.iterdir()) == before


# Records


def test_a_record_becomes_the_item_it_says() -> None:
    entry = one(f'{{"id": "{ID}", "created_at": 5, "metadata": {{"n": 1.0}}, "content": [1], "tags": ["t"]}}')
    assert (entry.line, entry.id) == (1, ID)
    assert entry.names == ("id", "created_at", "metadata", "content", "tags")
    assert str(entry.fields.id) == ID
    for got, wanted in zip(entry.fields[1:], (5.0, {"n": 1.0}, [1], ["t"]), strict=True):
        assert same_value(got, wanted)


def test_all_fields_are_optional_and_the_same_in_every_run() -> None:
    assert one("{}") == one("{}")
    assert one("{}").names == ()
    check_item(one("{}").fields)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("2025-01-01T00:00:00.123456+00:00", 1735689600.123456),
        ("2025-01-01T00:00:00.123456", 1735689600.123456),
        ("2025-01-01T01:00:00+01:00", 1735689600.0),
        ("1735689600.5", 1735689600.5),
    ],
)
def test_a_time_as_text_is_read_as_the_item_class_reads_it(given, seconds) -> None:
    assert one(json.dumps({"created_at": given})).fields.created_at == seconds


def test_exact_numbers_stay_exact() -> None:
    entry = one('{"content": [9007199254740993, -0.0, 1e22, 1, 1.0, 1e400, -Infinity], "created_at": 1e3}')
    wanted = [9007199254740993, -0.0, 1e22, 1, 1.0, float("inf"), float("-inf")]
    assert same_value(entry.fields.content, wanted)
    assert entry.fields.created_at == 1000.0


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('{"content": NaN}', "content"),
        ('{"content": [0, {"k": -Infinity}]}', "content[1].k"),
        ('{"metadata": {"n": 1e999}}', "metadata.n"),
        (f'{{"content": {"9" * 4301}}}', "content"),
        (f'{{"content": [-{"9" * 9000}]}}', "content[0]"),
        ('{"tags": ["a", 1]}', "tags[1]"),
        ('{"tags": "a"}', "tags"),
        ('{"metadata": []}', "metadata"),
        ('{"created_at": NaN}', "created_at"),
        ('{"created_at": "nan"}', "created_at"),
        ('{"created_at": 9007199254740993}', "created_at"),
        (f'{{"created_at": 1{"0" * 400}}}', "created_at"),
        ('{"created_at": true}', "created_at"),
        ('{"created_at": null}', "created_at"),
        ('{"id": null}', "id"),
        ('{"id": 7}', "id"),
        ('{"content": ' + "[" * 201 + "]" * 201 + "}", "content"),
    ],
)
def test_what_a_store_would_refuse_is_refused_with_its_path(file, line, path) -> None:
    found = document(file(line), "sqlite")
    (refusal,) = found["refused"]
    assert (refusal["line"], refusal["path"].partition("[0][0]")[0]) == (1, path)
    assert refusal["reason"]
    assert found["adapters"] == [{"adapter": "sqlite", "exact": 0, "changed": 0, "refused": 1}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes, column 2"),
        ('{"content": 1} {}', "not JSON: Extra data, column 16"),
        ('{"content": "a\x01"}', "not JSON: Invalid control character at, column 15"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"text": 1}', 'unknown key "text" (known: id, created_at, metadata, content, tags)'),
        ('{"content": 1, "content": 2}', 'the key "content" occurs twice in one object'),
        ('{"metadata": {"a": {"\\u001b": 1, "\\u001b": 1}}}', 'the key "\\u001b" occurs twice in one object'),
        ('{"id": "42"}', "id is not a UUID"),
        ('{"created_at": "yesterday"}', "created_at is not a time in ISO 8601"),
        ('{"content": "\ud83d"}', "not UTF-8 at byte 14"),
        ("[" * 200_000, "nested too deeply to be read"),
    ],
)
def test_an_unreadable_line_has_its_number_and_the_reason(line, reason) -> None:
    first, bad, last = read("{}", line, "{}")
    assert bad == UnreadableLine(2, reason)
    assert (first.line, last.line) == (1, 3)


def test_blank_lines_and_a_byte_order_mark_are_passed_over() -> None:
    entries = read('\ufeff{"content": 1}\r', "", "  \r", '{"content": 2}')
    assert [(entry.line, entry.fields.content) for entry in entries] == [(1, 1), (4, 2)]


def test_a_line_that_is_too_long_is_passed_over(monkeypatch) -> None:
    monkeypatch.setattr(records, "LONGEST_LINE", 20)
    entries = read('{"content": 1}', '{"content": "' + "x" * 90 + '"}', '{"content": 2}', "x" * 21)
    assert [entry.line for entry in entries] == [1, 2, 3, 4]
    assert entries[1] == UnreadableLine(2, "longer than 20 bytes")
    assert entries[2].fields.content == 2
    assert entries[3] == UnreadableLine(4, "longer than 20 bytes")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no file without an end")
def test_a_line_without_an_end_is_wrong_usage(monkeypatch) -> None:
    monkeypatch.setattr(records, "LONGEST_LINE", 20)
    monkeypatch.setattr(records, "LONGEST_SKIPPED", 100)
    found = fidelity("/dev/zero", "template")
    message = "Error: cannot read /dev/zero: a line of it is longer than 100 bytes\n"
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", message)


def test_unreadable_lines_are_findings_beside_the_others(file) -> None:
    found = fidelity(file('{"content": 1}', "{oops", '{"content": 2}'), "sqlite")
    assert found.exit_code == 0
    assert found.stdout.startswith("mine.jsonl: 2 records, 1 unreadable\n")
    assert "2     not JSON: Expecting property name" in found.stdout


# How a command ends


@pytest.mark.parametrize("lines", [[""], ["", "  ", ""]])
def test_a_file_without_a_line_is_wrong_usage(file, lines) -> None:
    found = fidelity(file(*lines))
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert line.endswith("mine.jsonl has no line that is a record")


@pytest.mark.parametrize("lines", [["["], ["\x7fELF"], ['[{"content": 1}]']])
def test_a_file_without_a_record_is_wrong_usage(file, lines) -> None:
    found = fidelity(file(*lines))
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert "mine.jsonl has no line that is a record (line 1: not" in line


def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path) -> None:
    for path, why in ((tmp_path / "none.jsonl", "No such file"), (tmp_path, "Is a directory")):
        found = fidelity(path)
        assert (found.exit_code, found.stdout) == (2, "")
        (line,) = found.stderr.splitlines()
        assert line.startswith("Error: cannot read ")
        assert why in line


def test_an_unknown_adapter_is_wrong_usage(file) -> None:
    found = fidelity(file("{}"), "nobody")
    assert found.exit_code == 2
    assert "no harness for 'nobody' is installed" in found.stderr


def test_an_adapter_without_a_fake_has_nothing_to_show(file, install) -> None:
    install("remote", LIVE_ONLY)
    found = fidelity(file("{}"), "remote")
    assert found.exit_code == 3
    assert found.stderr == "Nothing to show: no fake harness of remote.\n"


def test_a_harness_that_breaks_is_one_line_and_stops_no_other(file, install) -> None:
    install("broken", UNMAKEABLE)
    found = fidelity(file("{}"), "broken", "sqlite")
    assert found.exit_code == 1
    assert found.stderr.startswith("Error: broken fake: OSError (made_broken.py, line 4)\n")
    assert "sesame" not in found.output
    assert "sqlite   1      0        0" in found.stdout


def test_a_projection_that_breaks_is_told_with_its_line(file, install) -> None:
    install("wrong", TEXTUAL, "WRONG")
    found = fidelity(file("{}", '{"content": 1}'), "wrong", "sqlite")
    assert found.exit_code == 1
    assert found.stderr.startswith("Error: wrong: line 1: KeyError (made_wrong.py, line ")
    assert found.stdout.splitlines()[-1].split() == ["sqlite", "2", "0", "0"]


# What changes


@pytest.mark.parametrize("harnesses", ["HARNESSES", "ALIEN"])
def test_a_change_names_the_innermost_place(file, install, harnesses) -> None:
    install("textual", TEXTUAL, harnesses)
    metadata = '"metadata": {"s": "kept", "n": 1, "odd key": [2]}'
    found = document(file(f'{{{metadata}, "content": NaN}}', f"{{{metadata}}}"), "textual")
    assert found["adapters"] == [{"adapter": "textual", "exact": 0, "changed": 1, "refused": 1}]
    assert [(c["line"], c["place"], c["given"], c["retrieve"], c["search"]) for c in found["changed"]] == [
        (2, "metadata.n", "1", '"1"', '"1"'),
        (2, 'metadata["odd key"]', "[2]", '"[2]"', '"[2]"'),
    ]
    assert {tuple(c["losses"]) for c in found["changed"]} == {()}


def test_a_field_that_was_not_given_is_not_compared(file) -> None:
    found = document(file('{"content": "no time, no tags"}'), "template")
    assert {entry["changed"] for entry in found["adapters"]} == {0}


def test_findings_are_counted_beyond_the_limit(file) -> None:
    lines = ['{"created_at": 0.0001}', '{"content": NaN}', "{"] * 70
    path = file(*lines)
    found = document(path, "template-lossy")
    assert [len(found[name]) for name in ("unreadable", "refused", "changed")] == [50, 50, 50]
    assert found["not_shown"] == {"unreadable": 20, "refused": 20, "changed": 20}
    none = document(path, "template-lossy", "--limit", "0")
    assert none["changed"] == []
    assert none["not_shown"]["changed"] == 70
    assert fidelity(path, "--limit", "-1").exit_code == 2


def test_values_are_shortened_and_hold_nothing_that_a_terminal_obeys() -> None:
    assert shown("a\x1b[31m\u202eb\x00\n\ud83d  c") == '"a\\u001b[31m\\u202eb\\u0000\\n\\ud83d \\u0020c"'
    assert shown(["x" * 500]) == '["' + "x" * (LONGEST_VALUE - 3) + "…"
    assert len(shown(list(range(10**4)))) == LONGEST_VALUE
    assert shown({"é": [1, 1.0, None, True, -0.0]}) == '{"é": [1, 1.0, null, true, -0.0]}'


def test_differences_are_the_innermost_ones() -> None:
    given = {"a": [1, {"b": 2}], "c": 3}
    assert list(differences("m", given, given, {"a": [1, {"b": 2}], "c": 3})) == []
    assert list(differences("m", given, {"a": [1, {"b": 2.0}], "c": 3}, given)) == [("m.a[1].b", 2, 2.0, 2)]
    other = {"c": 3, "a": [1, {"b": 2}]}  # the order of keys is part of the value
    assert list(differences("m", given, given, other)) == [("m", given, given, other)]
    assert list(differences("t", ["x"], ["x"], [])) == [("t", ["x"], ["x"], [])]


def test_a_name_of_the_users_is_printed_safely(tmp_path) -> None:
    path = tmp_path / "a\x1b[31m.jsonl"
    path.write_text("{}")
    assert "\x1b" not in fidelity(path, "sqlite").output
    path.write_text("oops")
    assert "\x1b" not in fidelity(path, "sqlite").output


def test_the_digit_limit_of_the_process_does_not_matter(file, monkeypatch) -> None:
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(700)
        (refusal,) = document(file(f'{{"content": {"9" * 800}}}'), "sqlite")["refused"]
    finally:
        sys.set_int_max_str_digits(limit)
    assert refusal["path"] == "content"
