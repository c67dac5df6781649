import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from adapter_conformance import progress
from adapter_conformance.cli import app
from adapter_conformance.document import reports_from_json

TEMPLATES = ["template", "template-dropping", "template-eventual", "template-lossy", "template-tagless"]

HONEST = """
from adapter_template.harness import TemplateHarness

class Harness(TemplateHarness):
    options = {"namespace": "other"}

HARNESSES = (Harness,)
"""

LIAR = """
from adapter_template import TemplateMemoryStore
from adapter_template.harness import TemplateHarness

class Liar(TemplateMemoryStore):
    @property
    def manifest(self):
        return super().manifest.model_copy(update={"adapter": "liar", "retrieve_fidelity": "native_fields"})

class Harness(TemplateHarness):
    async def make_store_with(self, **options):
        return Liar(self.service, **options)

HARNESSES = (Harness,)
"""

NO_WHEEL = """
from adapter_template.harness import TemplateHarness

class Harness(TemplateHarness):
    environment = "embedded"

    def __init__(self):
        raise AssertionError("must not be made")

    @staticmethod
    def not_run_reason():
        return "no wheel for this platform"

HARNESSES = (Harness,)
"""

SECRETIVE = """
class H:
    async def engine(self):
        raise OSError("cannot connect to postgres://u:sesame@host")
    async def close(self): ...
HARNESSES = (H,)
"""

DYNAMIC = """class H:
    def __init__(self):
        name = "sesame"
        getattr(self, name)
HARNESSES = (H,)
"""

UNREACHABLE = """
from adapter_core import MemoryAdapterUnavailable
from adapter_template.harness import TemplateHarness

class Live(TemplateHarness):
    environment = "live"

    async def engine(self):
        raise MemoryAdapterUnavailable("connection refused")

class Fake(Live):
    environment = "fake"

HARNESSES = (Live,)
BOTH = (Live, Fake)
"""


def fidelity(*arguments, **environment):
    return CliRunner().invoke(app, list(arguments), env=environment, catch_exceptions=False)


def rows(text):
    return [[cell for cell in line.split("  ") if cell] for line in text.splitlines()]


def test_run_certifies_a_whole_run() -> None:
    found = fidelity("run", "template-tagless")
    assert found.exit_code == 0
    first, *others = (line.split() for line in found.stdout.splitlines())
    assert (first[0], first[1], first[-2], first[-1]) == ("template-tagless", "fake", "17/17", "certified")
    assert all(line[0].startswith("X") and line[2:4] == ["not", "staged"] for line in others)
    assert found.stderr == ""


def test_python_m_runs_the_command_and_writes_no_escapes() -> None:
    command = [sys.executable, "-m", "adapter_conformance", "run", "template", "--case", "C08"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0
    assert [line.split()[0] for line in found.stdout.splitlines()] == TEMPLATES
    assert "\x1b" not in found.stdout + found.stderr
    assert found.stderr == "A partial run is never certified: run all cases.\n"


def test_case_selects_and_the_run_is_partial() -> None:
    found = fidelity("run", "template-lossy", "--case", "c08", "--case", "X04")
    assert found.exit_code == 0
    assert "2/2 of the cases asked for  partial" in found.stdout
    assert "never certified" in found.stderr


def test_false_claim_is_named_with_both_values(install) -> None:
    install("liar", LIAR)
    found = fidelity("run", "liar")
    assert found.exit_code == 1
    assert "not certified" in found.stdout
    assert "manifest field retrieve_fidelity: declared native_fields, observed full" in found.stdout
    assert any(row and row[0] == "C03 retrieval" and row[1] == "failed" for row in rows(found.stdout))


def test_case_that_cannot_be_staged_has_its_reason() -> None:
    found = fidelity("run", "template-lossy", "--case", "X11")
    (line,) = [line for line in found.stdout.splitlines() if "X11" in line]
    assert "degraded  not staged  a dictionary has no capability that could go away" in line
    assert found.exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nobody"], "no harness for 'nobody' is installed (installed: "),
        (["compare", "nobody"], "no harness for 'nobody' is installed (installed: "),
        (["run", "template", "--case", "C99"], "no case C99 (known: C01 C02 "),
        (["run", "template", "--output", "no/such/folder.json"], "cannot write no/such/folder.json"),
        (["run", "--environment", "moon"], "'moon' is not one of"),
        (["run", "--format", "html"], "'html' is not one of"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_wrong_usage_ends_with_two_and_one_line(arguments, message) -> None:
    found = fidelity(*arguments)
    assert found.exit_code == 2
    assert found.stdout == ""
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line
    assert "Traceback" not in found.stderr


def test_harness_that_cannot_run_here_is_neither_passed_nor_failed(install) -> None:
    install("wheelless", NO_WHEEL)
    found = fidelity("run", "wheelless", "template-lossy", "--case", "C08")
    assert found.exit_code == 0
    assert "wheelless       embedded  not run: no wheel for this platform\n" in found.stdout
    assert fidelity("run", "wheelless").exit_code == 3
    compared = fidelity("compare", "wheelless")
    assert compared.exit_code == 3
    assert "not run: no wheel for this platform" in compared.stdout


def test_no_harness_for_the_environment_cannot_be_run() -> None:
    found = fidelity("run", "template", "--environment", "embedded")
    assert found.exit_code == 3
    assert found.stderr == "Nothing to run: no harness of template for embedded.\n"
    assert found.stdout == ""


def test_live_is_left_out_unless_it_is_asked_for(install) -> None:
    install("remote", UNREACHABLE)
    assert fidelity("run", "remote").stderr == "Nothing to run: no harness of remote for fake or embedded.\n"
    found = fidelity("run", "remote", "--environment", "live")
    assert found.exit_code == 3
    assert "not run: MemoryAdapterUnavailable: connection refused" in found.stdout


def test_fake_has_no_excuse_for_being_unreachable(install) -> None:
    install("remote", UNREACHABLE, "BOTH")
    found = fidelity("run", "remote")
    assert found.exit_code == 1
    assert found.stderr == "Error: remote fake: MemoryAdapterUnavailable: connection refused\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_driver", "its harness cannot be loaded: ModuleNotFoundError: "),
        ("HARNESSES = ()", "made_broken:HARNESSES is not a sequence of harness classes"),
        ("HARNESSES = 3", "made_broken:HARNESSES is not a sequence of harness classes"),
        ("HARNESSES = ['Harness']", "'Harness' is not a harness class with a known environment"),
        ("class H:\n    environment = 'moon'\nHARNESSES = (H,)", "with a known environment"),
        ("class H:\n    pass\nHARNESSES = (H,)", "AttributeError (runner.py, line "),
        ("class H:\n    pass\nHARNESSES = (H,)", "): H has no make_store"),
        ("class H:\n    def __init__(self):\n        self.servce\nHARNESSES = (H,)", "3): H has no servce"),
        ("class H:\n    def __init__(self):\n        Fake()\nHARNESSES = (H,)", "3): Fake is not defined"),
        (
            "class H:\n    async def make_store(self): ...\n    def close(self): ...\nHARNESSES = (H,)",
            "): object NoneType can't be used in 'await' expression",
        ),
        (DYNAMIC, "AttributeError (made_broken.py, line 4)"),
        ("class H:\n    engine = 3\nHARNESSES = (H,)", ", after TypeError (runner.py, line "),
        (SECRETIVE, "Error: broken fake: OSError (made_broken.py, line 4)"),
    ],
)
def test_broken_harness_is_one_line_and_stops_no_other(install, source, reason) -> None:
    install("broken", source)
    found = fidelity("run", "broken", "template-lossy", "--case", "C08")
    assert found.exit_code == 1
    line = found.stderr.splitlines()[0]
    assert line.startswith("Error: broken")
    assert reason in line
    assert "Traceback" not in found.stderr
    assert "sesame" not in found.output
    assert "template-lossy" in found.stdout


def test_json_on_stdout_and_in_a_file(tmp_path) -> None:
    file = tmp_path / "results.json"
    found = fidelity("run", "template-lossy", "--format", "json", "--seed", "5", "--output", str(file))
    assert found.exit_code == 0
    assert file.read_text("utf-8") == found.stdout
    (one,) = reports_from_json(found.stdout)
    assert (one.adapter, one.environment, one.seed, one.certified) == ("template-lossy", "fake", 5, True)
    document = json.loads(found.stdout)
    assert document["schema_version"] == 1
    assert (document["reports"][0]["score"], document["reports"][0]["certified"]) == ("17/17", True)


def test_broken_harness_is_in_the_document(install) -> None:
    install("broken", "import no_such_driver")
    document = json.loads(fidelity("compare", "broken", "--format", "json").stdout)
    assert document["reports"] == []
    assert [(e["adapter"], e["environment"]) for e in document["errors"]] == [("broken", None)]


def test_compare_shows_an_adapter_beside_its_proof() -> None:
    found = fidelity("compare", "template-lossy")
    assert found.exit_code == 0
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["template-lossy", "lossy", "lossy", "immediate", "yes", "exact"] in lines
    assert ["template-lossy", "-", "time", "volatile", "batch,", "delete"] in lines
    assert "created-at-milliseconds (created_at, retrieve)" in found.stdout
    assert "\x1b" not in found.stdout


def test_compare_says_in_a_pipe_what_has_ended(install) -> None:
    install("wheelless", NO_WHEEL)
    found = fidelity("compare", "template-lossy", "wheelless")
    lines = ["template-lossy fake: 17/17", "wheelless embedded: not run: no wheel for this platform"]
    assert found.stderr.splitlines() == lines


def test_compare_as_markdown() -> None:
    found = fidelity("compare", "template-lossy", "--format", "markdown", "--environment", "fake")
    assert "| template-lossy | lossy | lossy | immediate | yes | exact |" in found.stdout
    assert "| template-lossy | fake | dict " in found.stdout


def test_compare_fails_on_a_false_claim(install) -> None:
    install("liar", LIAR)
    found = fidelity("compare", "liar", "--format", "markdown")
    assert found.exit_code == 1
    assert "| not certified |" in found.stdout


def test_a_name_selects_its_variants() -> None:
    found = json.loads(fidelity("run", "template", "--case", "C02", "--format", "json").stdout)
    assert [one["adapter"] for one in found["reports"]] == TEMPLATES


def test_no_arguments_show_the_commands() -> None:
    found = fidelity("--help")
    assert found.exit_code == 0
    text = " ".join(found.stdout.split())
    for word in ("compare", "run", "Exit codes", "130 interrupted", "--version"):
        assert word in text


def test_the_version_is_that_of_the_kit() -> None:
    found = fidelity("--version")
    assert (found.exit_code, found.stdout) == (0, f"adapter-conformance {version('adapter-conformance')}\n")


def test_progress_shows_only_to_somebody_who_waits(monkeypatch, capsys) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    with progress.LateProgress(1) as bar:
        assert not bar._timer.is_alive()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.LateProgress(1) as bar:
        bar._timer.join()
        assert bar._bar.live.is_started
    assert not bar._bar.live.is_started
    assert capsys.readouterr().out == ""


def test_kit_needs_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import adapter_conformance.cli, adapter_conformance"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_options_reach_every_store_and_the_report():
    found = fidelity("run", "template", "--case", "C02", "-o", "coalesce=false", "--format", "json")
    assert [report["options"] for report in json.loads(found.stdout)["reports"]] == [
        {"coalesce": "False"} for _ in range(5)
    ]


def test_an_option_that_the_adapter_does_not_know_is_a_harness_error():
    found = fidelity("run", "template", "--case", "C02", "-o", "no_such_option=1")
    assert found.exit_code == 1
    assert "unexpected keyword argument 'no_such_option'" in found.stdout


def test_an_option_without_a_value_is_wrong_usage():
    assert fidelity("run", "template", "-o", "coalesce").exit_code == 2


def test_ddl_prints_what_an_administrator_runs():
    found = fidelity("ddl", "postgres", "-o", "schema=memory", "-o", "table=items")
    assert found.exit_code == 0
    assert 'CREATE TABLE "memory"."items"' in found.stdout


@pytest.mark.parametrize(
    "arguments",
    [["template"], ["nobody"], ["postgres", "-o", "schema=a b"], ["postgres", "-o", "colour=red"]],
)
def test_ddl_that_cannot_be_written_is_wrong_usage(arguments):
    found = fidelity("ddl", *arguments)
    assert (found.exit_code, found.stdout) == (2, "")


def test_ddl_of_an_adapter_that_cannot_be_imported_is_wrong_usage(tmp_path, monkeypatch):
    (tmp_path / "made.dist-info").mkdir()
    (tmp_path / "made.dist-info" / "METADATA").write_text("Name: made\nVersion: 1.0\n")
    (tmp_path / "made.dist-info" / "entry_points.txt").write_text(
        "[adapter_core.stores]\nmade = no_such:Store\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = fidelity("ddl", "made")
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("Error: the adapter made cannot be imported: ModuleNotFoundError: ")


CONTRADICTORY = """
from adapter_core import MemoryAdapterManifest
from adapter_template.harness import TemplateHarness

class Harness(TemplateHarness):
    async def make_store_with(self, **options):
        store = await super().make_store_with(**options)
        MemoryAdapterManifest(**{**store.manifest.model_dump(), "preserves_metadata": False})
        return store

HARNESSES = (Harness,)
"""


def test_a_contradictory_manifest_is_told_by_its_rule(install):
    install("contradictory", CONTRADICTORY)
    found = fidelity("run", "contradictory")
    assert found.exit_code == 1
    assert "full retrieve fidelity must preserve every item field" in found.stderr
