"""The command: what it prints, what it removes, and how it ends."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memory_authority import SessionInfo, SessionMode, SqliteSessionStore
from memory_authority.cli import app
from memory_authority.cli._common import NO_FILE
from memory_authority.testing.samples import ALICE, interrupted, opening, said

OWNER = ["--agent", "helper", "--tenant", "acme", "--principal", "alice"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sessions.db'}"


@pytest.fixture
async def session(tmp_path: Path) -> SessionInfo:
    """Make a session of three turns."""
    async with SqliteSessionStore(tmp_path / "sessions.db", clock=lambda: 1_000.0) as store:
        await store.migrate()
        made = await store.create(ALICE, SessionMode.CHAT, external_key="thread")
        await store.append(ALICE, made.session_id, opening())
        await store.append(ALICE, made.session_id, interrupted("1"))
        return await store.append(ALICE, made.session_id, said("2", "surrogate \ud800"))


def run(url: str, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *arguments, *OWNER, "--url", url], input=answer)


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["schema_version"] == 1
    return found


def test_migrate_makes_the_tables_once(url: str) -> None:
    for _ in range(2):
        result = CliRunner().invoke(app, ["migrate", "--url", url])
        assert (result.exit_code, result.stdout) == (0, "The tables are up to date.\n")


def test_list_gives_one_line_for_each_session(url: str, session: SessionInfo) -> None:
    result = run(url, "list")
    assert result.stdout == (
        f"{session.session_id}  chat     open         3 turns  1970-01-01T00:16:40+00:00  'thread'\n"
    )
    assert document(run(url, "list", "--json"))["sessions"][0]["session_id"] == str(session.session_id)


def test_the_owner_and_the_url_may_come_from_the_environment(url: str, session: SessionInfo) -> None:
    environment = {"MEMORY_AUTHORITY_URL": url, "MEMORY_AUTHORITY_AGENT": "helper"}
    arguments = ["sessions", "list", "--tenant", "acme", "--principal", "alice"]
    result = CliRunner().invoke(app, arguments, env=environment)
    assert str(session.session_id) in result.stdout


def test_show_gives_the_transcript_with_its_repairs(url: str, session: SessionInfo) -> None:
    result = run(url, "show", str(session.session_id))
    lines = result.stdout.splitlines()
    assert 'system: "Be brief."' in lines
    assert "-- turn 1 '1' interactive failed" in lines
    assert 'tool (synthesized): "The call was interrupted; its result is not known."' in lines
    assert lines[-1] == "repair: turn 1: closed call 1 of message 1 as interrupted"
    found = document(run(url, "show", str(session.session_id), "--last", "1", "--json"))["transcript"]
    assert [turn["turn_id"] for turn in found["turns"]] == ["2"]
    assert found["messages"][2]["content"] == "surrogate \ud800"


def test_a_session_of_somebody_else_is_not_found(url: str, session: SessionInfo) -> None:
    arguments = ["sessions", "show", str(session.session_id), "--agent", "helper", "--url", url]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: no such session in this scope\n"


def test_trim_tells_before_it_hides(url: str, session: SessionInfo) -> None:
    trim = ["trim", str(session.session_id), "--keep-turns", "1"]
    dry = run(url, *trim, "--dry-run")
    assert dry.stdout == "Dry run: 2 turns with 5 messages hidden, 1 kept.\n"
    refused = run(url, *trim, answer="n\n")
    assert refused.exit_code == 1
    assert document(run(url, "show", str(session.session_id), "--json"))["transcript"]["trims"] == []
    done = document(run(url, *trim, "--yes", "--json"))
    assert (done["dry_run"], done["report"]["dropped_turns"]) == (False, 2)
    shown = run(url, "show", str(session.session_id)).stdout
    assert "system (breadcrumb): " in shown


def test_trim_needs_to_know_what_to_keep(url: str, session: SessionInfo) -> None:
    result = run(url, "trim", str(session.session_id))
    assert (result.exit_code, result.stdout) == (2, "")


def test_close_says_whether_it_changed_anything(url: str, session: SessionInfo) -> None:
    assert document(run(url, "close", str(session.session_id), "--json"))["closed"] is True
    assert run(url, "close", str(session.session_id)).stdout == "It was closed already.\n"
    assert run(url, "list").stdout == ""
    assert "closed" in run(url, "list", "--closed").stdout


def test_delete_asks_first(url: str, session: SessionInfo) -> None:
    delete = ["delete", str(session.session_id)]
    assert run(url, *delete, "--dry-run").stdout == "Dry run: the session and its 3 turns deleted.\n"
    assert run(url, *delete, answer="n\n").exit_code == 1
    assert run(url, *delete, answer="y\n").exit_code == 0
    again = run(url, *delete, "--yes")
    assert (again.exit_code, again.stderr) == (1, "Error: no such session in this scope\n")


def test_expire_asks_first(url: str, session: SessionInfo) -> None:
    expire = ["expire", "--older-than-days", "1"]
    dry = document(run(url, *expire, "--dry-run", "--json"))
    assert dry["report"]["sessions"] == [str(session.session_id)]
    assert run(url, *expire, answer="n\n").exit_code == 1
    assert run(url, *expire, "--yes").stdout == "1 sessions deleted, 0 turns of others erased.\n"
    assert run(url, "list").stdout == ""


@pytest.mark.parametrize("days", ["nan", "inf", "1e308", "-1"])
def test_a_number_of_days_that_no_calendar_has_is_wrong_usage(url: str, days: str) -> None:
    result = run(url, "expire", "--older-than-days", days)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    result = run(f"sqlite:///{tmp_path / 'none.db'}", "list")
    assert (result.exit_code, result.stderr) == (1, f"Error: {NO_FILE}\n")
    assert not (tmp_path / "none.db").exists()


def test_missing_tables_say_what_to_do(tmp_path: Path, url: str) -> None:
    sqlite3.connect(tmp_path / "sessions.db").close()
    (tmp_path / "sessions.db").touch()
    result = run(url, "list")
    assert (result.exit_code, result.stderr) == (1, "Error: the tables are missing: call migrate() once\n")


@pytest.mark.parametrize(
    "wrong",
    [
        "mysql://u:hunter2@host/db",
        "sqlite:///:memory:",
        "nonsense",
        "sqlite://",
        "postgresql://[hunter2",
        "postgresql://u@host:hunter2/db",
        "postgresql://host/db?sslmode=hunter2",
    ],
)
@pytest.mark.parametrize("command", [["migrate"], ["sessions", "list", *OWNER]])
def test_a_url_that_is_none_is_wrong_usage_and_not_shown(wrong: str, command: list[str]) -> None:
    if wrong.startswith("postgresql:"):
        pytest.importorskip("asyncpg")
    result = CliRunner().invoke(app, [*command, "--url", wrong])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert "hunter2" not in result.output


def test_a_server_that_does_not_answer_is_no_wrong_usage() -> None:
    pytest.importorskip("asyncpg")
    result = run("postgresql://u:hunter2@127.0.0.1:1/db", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: the database is unavailable (")


def test_a_path_in_a_url_is_percent_decoded(tmp_path: Path) -> None:
    url = f"SQLite:///{tmp_path}/a%20b.db"
    assert CliRunner().invoke(app, ["migrate", "--url", url]).exit_code == 0
    assert (tmp_path / "a b.db").exists()
    assert run(url, "list").exit_code == 0


def test_a_scope_that_is_none_is_wrong_usage(url: str, session: SessionInfo) -> None:
    result = CliRunner().invoke(app, ["sessions", "list", "--agent", "a\x00b", "--url", url])
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: agent: Value error, control characters and lone surrogates are refused\n",
    )
