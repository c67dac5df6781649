"""`fidelity require` and the fixture `require_store`: does a store keep what a project needs?"""

import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from adapter_conformance._delegate import delegate
from adapter_conformance.cli import app
from adapter_conformance.requirements import Requirement, declared_shortfalls
from adapter_template import TemplateMemoryStore, TemplateService

pytest_plugins = ["pytester"]

STORES = """
from adapter_core import MemoryAdapterError, MemoryAdapterUnavailable
from adapter_sqlite import SqliteMemoryStore

class Other(SqliteMemoryStore):
    @classmethod
    def from_url(cls, url, **options):
        return cls(":memory:", **options)

class Unfiltered(Other):
    '''It takes no filters at all.'''
    def __init__(self, path, *, namespace="default"):
        super().__init__(path, namespace=namespace)

class Careless(Other):
    '''Its service does not keep what it acknowledges, and it looks only when it writes.'''
    durability = "power"
    async def delete(self, item_id):
        raise MemoryAdapterUnavailable("fsync is off; nothing was done")

class Indexed(Other):
    async def retrieve(self, item_id):
        raise MemoryAdapterError("the namespace is indexed in another way: run reindex() first")
"""

EVERYTHING = (
    *("--retrieve", "full", "--search", "full", "--consistency", "immediate", "--filters", "a,b"),
    *("--filters", "created_after", "--tags-in-search", "--metadata", "--durability", "power"),
    *("--extensions", "scan,batch/1"),
)


def fidelity(*arguments):
    return CliRunner().invoke(app, ["require", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(name="provide")
def _provide(tmp_path, monkeypatch):
    """Install one of the stores above under the scheme `other`."""

    def provide(name) -> None:
        home = tmp_path / "site"
        (home / "made_stores.dist-info").mkdir(parents=True)
        (home / "made_stores.py").write_text(STORES, "utf-8")
        (home / "made_stores.dist-info" / "METADATA").write_text("Name: made_stores\nVersion: 1.0\n")
        (home / "made_stores.dist-info" / "entry_points.txt").write_text(
            f"[adapter_core.stores]\nother = made_stores:{name}\n"
        )
        monkeypatch.syspath_prepend(home)

    return provide


def test_a_store_that_keeps_everything_ends_with_zero(tmp_path) -> None:
    path = tmp_path / "mine.db"
    found = fidelity(f"sqlite:///{path}", *EVERYTHING)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.endswith("mine.db: everything that is required\n")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM memory_items").fetchone() == (0,)


def test_every_shortfall_is_listed_sorted() -> None:
    found = fidelity("template:///", *EVERYTHING, "-o", "gap=lossy")
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "template-lossy at template:///: 4 shortfalls",
        "- durability is volatile, required power",
        "- extension scan is not offered",
        "- retrieve fidelity is lossy, required full",
        "- search fidelity is lossy, required full",
    ]


def test_the_document_says_the_same() -> None:
    found = fidelity("template:///", "--search", "full", "-o", "gap=tagless", "--format", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout) == {
        "schema_version": 1,
        "adapter": "template-tagless",
        "url": "template:///",
        "met": False,
        "shortfalls": ["search fidelity is native_fields, required full"],
        "unreachable": "",
    }


GONE = "postgresql://me:sesame@127.0.0.1:1/x?password=sesame"


def test_a_store_that_does_not_answer_ends_with_three() -> None:
    found = fidelity(GONE, "--retrieve", "full")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr.startswith("Error: cannot connect to postgresql:…@127.0.0.1:1/x: ")
    assert "sesame" not in found.output


def test_what_is_declared_too_little_counts_before_what_cannot_be_asked() -> None:
    found = fidelity("redis://:sesame@127.0.0.1:1/0", "--retrieve", "full")
    assert found.exit_code == 1
    assert "- retrieve fidelity is lossy, required full" in found.stdout
    assert "cannot connect" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sqlite:///x.db"], "nothing is required"),
        (["nothing://x", "--metadata"], "no adapter for nothing: is installed"),
        (["sqlite:///:memory:", "--retrieve", "perfect"], "'perfect' is not one of"),
        (
            ["sqlite:///:memory:", "--metadata", "-o", "colour=red"],
            "does not take one of these options: colour",
        ),
        (
            ["template:///", "--extensions", "scna,scan/1,batch"],
            "no extension scna (known: batch/1, delete/1, ",
        ),
        (["template:///", "--extensions", "scan/2"], "no extension scan/2 (known: "),
        (["sqlite:///:memory:", "--metadata", "-o", "colour"], "an option is KEY=VALUE"),
        (["template:///", "--metadata", "-o", "filters=topic"], "filters must be a list of names"),
        (["template:///", "--metadata", "-o", "filters=[1]"], "Error: template:///: "),
        (["template:///", "--metadata", "-o", "gap=" + "[" * 100_000], "the option gap is nested too deeply"),
    ],
)
def test_wrong_usage_ends_with_two(arguments, message) -> None:
    found = fidelity(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in found.stderr


def test_whatever_a_constructor_raises_is_wrong_usage_and_not_shown(monkeypatch) -> None:
    def refuse(*_, **__):
        raise RuntimeError("hunter2")

    monkeypatch.setattr(TemplateMemoryStore, "from_url", refuse)
    found = fidelity("template:///", "--metadata")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "does not take this URL or these options: RuntimeError" in found.stderr
    assert "hunter2" not in found.output


def test_filters_that_the_adapter_cannot_take_are_shortfalls(provide) -> None:
    provide("Unfiltered")
    found = fidelity("other://x", "--filters", "b,a,created_before")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[1:] == ["- filter a is not supported", "- filter b is not supported"]


def test_durability_that_the_service_does_not_keep_is_a_shortfall(provide) -> None:
    provide("Careless")
    found = fidelity("other://x", "--durability", "crash")
    assert found.exit_code == 1
    assert "- durability crash is not kept: fsync is off; nothing was done" in found.stdout
    assert fidelity("other://x", "--metadata").exit_code == 0


def test_a_namespace_that_cannot_be_used_is_a_shortfall(provide) -> None:
    provide("Indexed")
    found = fidelity("other://x", "--metadata")
    assert found.exit_code == 1
    assert "- it cannot be used: the namespace is indexed in another way" in found.stdout


@pytest.mark.parametrize(
    ("declared", "required", "short"),
    [
        ("power", "power", False),
        ("power", "volatile", False),
        ("crash", "power", True),
        ("volatile", "crash", True),
        ("volatile", "volatile", False),
    ],
)
def test_durabilities_have_an_order(declared, required, short) -> None:
    store = delegate(TemplateMemoryStore(TemplateService()), durability=declared)
    found = declared_shortfalls(store, Requirement(durability=required))
    assert found == ([f"durability is {declared}, required {required}"] if short else [])


def test_a_requirement_that_could_not_fail_is_refused() -> None:
    with pytest.raises(TypeError):
        Requirement(filters="topic")
    with pytest.raises(ValueError, match="durability is one of"):
        Requirement(durability="forever")


# The fixture

TESTS = """
import asyncio

def test_enough(require_store):
    require_store("sqlite:///:memory:", retrieve="full", filters=["topic"], extensions=["scan"])

def test_too_little(require_store):
    require_store("template:///", options={"gap": "lossy"}, retrieve="full", durability="crash")

def test_away(require_store):
    require_store("postgresql://me:sesame@127.0.0.1:1/x", retrieve="full")

def test_within_a_loop(require_store):
    async def inside():
        require_store("sqlite:///:memory:", metadata=True)
    asyncio.run(inside())
"""


def test_the_fixture_fails_with_every_shortfall(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_needs=TESTS)
    found = pytester.runpytest_subprocess("-W", "error", "-p", "adapter_conformance.plugin", "test_needs.py")
    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(
        [
            "template-lossy: not what is required",
            "durability is volatile, required crash",
            "retrieve fidelity is lossy, required full",
        ]
    )
    found.stdout.fnmatch_lines(["it could not be asked: *"])
    found.stdout.no_fnmatch_line("*plugin.py*")
