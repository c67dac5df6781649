"""`fidelity check`: a user's own store, in namespaces that are thrown away."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from adapter_conformance import MATRIX, run_conformance
from adapter_conformance.cli import app
from adapter_conformance.commands.check import MOST_ITEMS, MOST_WRITES
from adapter_conformance.document import reports_from_json
from adapter_conformance.url_harness import UrlHarness, displayed
from adapter_core import MemoryItem, MemoryQuery
from adapter_sqlite import SqliteDriver, SqliteMemoryStore

TABLES = ("memory_namespaces", "memory_items", "memory_levels")
BOUNDED = 120  # seconds, for a child that hangs
NOT_STAGED = "not staged against a user's own store"

# The child takes SIGINT also where the parent of this process ignored it.
CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from adapter_conformance.cli import main
main()
"""

STORES = """
from adapter_core import AdapterStore, MemoryAdapterUnavailable
from adapter_sqlite import SqliteDriver, SqliteMemoryStore
from adapter_sqlite.transport import FileTransport

def renamed(store, **changes):
    return store.manifest.model_copy(update={"adapter": "other", **changes})

class Other(SqliteMemoryStore):
    changes = {}
    def __init__(self, path, *, password="", **options):
        if password == "refuse":
            raise ValueError("sesame")
        super().__init__(path, **options)
        self._manifest = renamed(self, **self.changes)
    @classmethod
    def from_url(cls, url, **options):
        return cls(url.partition("://")[2].partition("@")[2], **options)

class Liar(Other):
    changes = {"retrieve_fidelity": "lossy"}

class Late(Other):
    '''Two searches after a write still miss everything.'''
    changes = {"search_consistency": "eventual"}
    behind = {}
    async def store(self, item):
        self.behind[self._driver._namespace] = 2
        return await super().store(item)
    async def search(self, query):
        found = await super().search(query)
        name = self._driver._namespace
        if query.limit and self.behind.get(name):
            self.behind[name] -= 1
            return []
        return found

class Unlisted(Late):
    scan = None

class Away(Other):
    '''The service goes away at the thirtieth write.'''
    writes = 0
    async def _put(self, records):
        Away.writes += 1
        if Away.writes > 30:
            raise MemoryAdapterUnavailable("store: gone")
        return await super()._put(records)
    async def drop_namespace(self):
        raise MemoryAdapterUnavailable("drop: gone")

class Bare(AdapterStore):
    '''Three verbs, and no deletion.'''
    def __init__(self, path, *, namespace="default", filters=(), **options):
        whole = SqliteMemoryStore(path, filters=filters)
        driver = SqliteDriver(FileTransport(path), namespace)
        super().__init__(driver, manifest=renamed(whole), **options)
    from_url = classmethod(Other.from_url.__func__)
"""


@pytest.fixture(name="provide")
def _provide(tmp_path, monkeypatch):
    """Install one of the stores above under the scheme `other`."""

    def provide(name) -> None:
        home = tmp_path / "site"
        info = home / "made_other.dist-info"
        info.mkdir(parents=True)
        (home / "made_other.py").write_text(STORES, "utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-other\nVersion: 1.5\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[adapter_core.stores]\nother = made_other:{name}\n", "utf-8")
        monkeypatch.syspath_prepend(home)
        monkeypatch.delitem(sys.modules, "made_other", raising=False)

    return provide


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "new.db"


@pytest.fixture(name="url")
def _url(path) -> str:
    return f"sqlite:///{path}"


def fidelity(*arguments):
    return CliRunner().invoke(app, ["check", *arguments], catch_exceptions=False)


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def names(path) -> list[str]:
    return [row[1] for row in rows(path)["memory_namespaces"]]


def chosen(*cases) -> list[str]:
    return [word for case in cases for word in ("--case", case)]


def left_behind(found) -> list[str]:
    lines = found.stderr.partition("Left behind, namespaces:\n")[2].splitlines()
    return [json.loads(line.removeprefix("- ")) for line in lines if line.startswith("- ")]


async def fill(path) -> None:
    for namespace in ("default", "fidelity-check", "other"):
        async with SqliteMemoryStore(path, namespace=namespace) as store:
            await store.store(MemoryItem(content={"n": -0.0, "big": 10**40}, tags=["t"], metadata={"k": 1.0}))


# A whole check


def test_what_is_made_is_said_before_it_is_made(url, path, monkeypatch) -> None:
    seen = []
    opened = SqliteDriver.open

    async def opening(self) -> None:
        seen.append((self._namespace, path.exists()))
        await opened(self)

    monkeypatch.setattr(SqliteDriver, "open", opening)
    said = fidelity(url, "--case", "C04", "--case", "X05").stderr.splitlines()
    assert said[0] == f"Checks sqlite at {url}. What it makes there:"
    assert said[1].startswith("- the database file")
    assert "memory_namespaces" in said[2]
    prefix = said[3].split()[-1].removesuffix("...")
    assert seen[0] == (f"{prefix}0-default", False)
    assert {namespace.startswith(prefix) for namespace, _ in seen} == {True}
    assert len({namespace for namespace, _ in seen}) == 8
    assert said[-3:] == [
        "Connected. Running the cases.",
        "Removed its namespaces.",
        "A partial run is never certified: run all cases.",
    ]


def test_other_namespaces_keep_every_byte(url, path) -> None:
    asyncio.run(fill(path))
    before = rows(path)
    assert fidelity(url, *chosen("C04", "C11", "X04", "X05", "X10")).exit_code == 0
    assert rows(path) == before
    assert len(before["memory_items"]) == 3


async def test_two_checks_at_once_do_not_disturb_each_other(url, path) -> None:
    await fill(path)
    before = rows(path)
    harnesses = [UrlHarness(url), UrlHarness(url)]
    assert harnesses[0].prefix != harnesses[1].prefix
    cases = [case for case in MATRIX if case.id != "C17"]
    runs = [run_conformance(one, adapter=one.adapter, cases=cases) for one in harnesses]
    for report in await asyncio.gather(*runs):
        assert {case.status for case in report.cases} == {"passed", "not_staged"}
    assert [one.left for one in harnesses] == [[], []]
    assert rows(path) == before


def test_a_new_file_is_certified_within_the_load_that_is_said(url, path, monkeypatch) -> None:
    kept: dict[str, set] = {}
    counts = {"writes": 0, "most": 0}
    put, clear = SqliteDriver.put, SqliteDriver.clear

    async def putting(self, records):
        counts["writes"] += len(records)
        kept.setdefault(self._namespace, set()).update(record.id for record in records)
        counts["most"] = max(counts["most"], sum(map(len, kept.values())))
        return await put(self, records)

    async def clearing(self):
        kept.pop(self._namespace, None)
        return await clear(self)

    monkeypatch.setattr(SqliteDriver, "put", putting)
    monkeypatch.setattr(SqliteDriver, "clear", clearing)
    found = fidelity(url)
    assert found.exit_code == 0, found.output
    first, *others = found.stdout.splitlines()
    assert first == f"sqlite  live  {url}  14/17, 3 not staged  certified"
    assert [line.split()[0] for line in others] == ["C05", "C15", "C16", "X02", "X11", "X12"]
    assert all(line.endswith(f"not staged  {NOT_STAGED}") for line in others)
    assert rows(path) == {table: [] for table in TABLES}
    assert f"- at most {MOST_WRITES} small writes, " in found.stderr
    assert f" and {MOST_ITEMS} items at a time\n" in found.stderr
    assert 500 < counts["writes"] <= MOST_WRITES
    assert 50 < counts["most"] <= MOST_ITEMS
    assert "Left out: X09, since it sets up twelve stores at once.\n" in found.stderr


def test_what_is_left_out_runs_when_it_is_asked_for(url, path) -> None:
    found = fidelity(url, "--case", "X09")
    assert found.exit_code == 0
    assert "1/1 of the cases asked for" in found.stdout
    assert "Left out" not in found.stderr
    assert names(path) == []


def test_json_is_alone_on_stdout(url) -> None:
    found = fidelity(url, "--format", "json", "--seed", "5", "--case", "C04")
    (report,) = reports_from_json(found.stdout)
    assert (report.adapter, report.environment, report.seed, report.engine) == ("sqlite", "live", 5, url)
    assert report.adapter_version.startswith("adapter-sqlite ")


def test_nothing_but_the_file_appears_in_the_folder(tmp_path) -> None:
    command = [sys.executable, "-m", "adapter_conformance", "check", "sqlite:///new.db", "--case", "X15"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=BOUNDED)
    assert [found.name for found in tmp_path.iterdir()] == ["new.db"]


# How it ends otherwise


def test_an_unreachable_store_is_one_clear_line_and_three() -> None:
    found = fidelity("sqlite:////nonexistent/x.db")
    assert (found.exit_code, found.stdout) == (3, "")
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("Error")]
    assert (
        line
        == "Error: cannot check sqlite:////nonexistent/x.db: the folder of the database file is not there"
    )
    assert found.stderr.splitlines()[-1] == line
    document = json.loads(fidelity("sqlite:////nonexistent/x.db", "--format", "json").stdout)
    assert "not run" in document["reports"][0]["score"]


def test_a_file_of_another_program_is_refused_and_left_alone(url, path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE memory_items (mine TEXT)")
    found = fidelity(url)
    assert found.exit_code == 3
    assert "the file has a table of another program: memory_items" in found.stderr.splitlines()[-1]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("memory_items",)]


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "template:///"])
def test_stores_that_share_nothing_cannot_be_checked(url) -> None:
    found = fidelity(url)
    assert found.exit_code == 3
    assert found.stderr.endswith(f"cannot check {url}: each store over this URL has data of its own\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope://x"], "no adapter for nope: is installed (installed: "),
        (["memories.db"], "a store URL begins with a scheme and a colon"),
        (["sqlite:///x.db?password=sesame"], "a SQLite URL takes no parameters"),
        (["sqlite:///x.db", "-o", "sesame"], "an option is KEY=VALUE"),
        (["sqlite:///x.db", "-o", "password=sesame"], "does not take one of these options: password"),
        (["sqlite:///x.db", "-o", "durability=sesame"], 'durability is "power", "crash" or None'),
        (["sqlite:///x.db", "-o", "busy_timeout=0"], "busy_timeout must be a number of seconds above 0"),
        (["sqlite:///x.db", "-o", "namespace=sesame"], "set by the check itself: namespace"),
        (["sqlite:///x.db", "-o", "filters=[]", "-o", "item_type=1"], "itself: filters, item_type"),
        (["sqlite:///x.db", "--case", "C99"], "no case C99"),
        ([], "Missing argument 'URL'"),
    ],
)
def test_wrong_usage_ends_with_two_and_one_line(arguments, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = fidelity(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line
    assert "sesame" not in found.output
    assert list(tmp_path.iterdir()) == []


def test_options_reach_the_constructor(url) -> None:
    found = fidelity(
        url, "-o", "durability=crash", "-o", "busy_timeout=9.5", "--case", "C04", "--format", "json"
    )
    assert found.exit_code == 0
    assert json.loads(found.stdout)["reports"][0]["durability"] == "crash"


def test_a_false_claim_ends_with_one_and_is_cleaned_up(provide, path) -> None:
    provide("Liar")
    found = fidelity(f"other://ann:sesame@{path}", "--case", "C03")
    assert found.exit_code == 1
    assert "manifest field retrieve_fidelity: declared lossy, observed full" in found.stdout
    assert f"other  live  other:…@{path}" in found.stdout
    assert "sesame" not in found.output
    assert rows(path) == {table: [] for table in TABLES}


def test_a_constructor_that_raises_is_wrong_usage_without_its_text(provide, path) -> None:
    provide("Other")
    found = fidelity(f"other://u:sesame@{path}", "-o", "password=refuse")
    assert found.exit_code == 2
    assert "ValueError (made_other.py, line " in found.stderr
    assert "sesame" not in found.output


def test_an_eventual_index_is_waited_for(provide, path) -> None:
    provide("Late")
    found = fidelity(f"other://@{path}", *chosen("C08", "C14", "X03", "X10", "X14"))
    assert found.exit_code == 0, found.output
    assert "5/5 of the cases asked for" in found.stdout
    assert names(path) == []


def test_an_eventual_index_that_cannot_be_compared_is_not_staged(provide, path) -> None:
    provide("Unlisted")
    found = fidelity(f"other://@{path}", "--case", "C08", "--case", "C04")
    assert found.exit_code == 0
    assert "not staged  the store has no scan, which would tell what its index must show" in found.stdout


def test_a_store_without_deletion_names_what_it_leaves(provide, path) -> None:
    provide("Bare")
    found = fidelity(f"other://@{path}", *chosen("C02", "C04", "X05", "X08"))
    assert found.exit_code == 0, found.output
    assert "This store cannot delete: its namespaces stay behind, and are named at the end.\n" in found.stderr
    (line,) = [line for line in found.stdout.splitlines() if "C04 unknown-id" in line]
    assert line.endswith("not staged  the store cannot delete, so a case cannot empty its namespace half way")
    told = left_behind(found)
    assert len(told) == len(names(path)) == 12


def test_a_service_that_goes_away_is_told_with_what_is_left(provide, path) -> None:
    provide("Away")
    found = fidelity(f"other://@{path}", *chosen("C08", "C09", "C10"))
    assert found.exit_code == 1
    (left,) = left_behind(found)
    assert left.startswith("fidelity-check-")
    assert any(line.split()[:3] == ["C09", "empty-query", "failed"] for line in found.stdout.splitlines())


# Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child")
@pytest.mark.parametrize("arguments", [[], ["--case", "X15"]])
def test_after_an_interrupt_nothing_is_left(url, path, arguments) -> None:
    asyncio.run(fill(path))
    before = rows(path)
    command = [sys.executable, "-c", CHILD, "check", url, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            for line in child.stderr:
                if line.startswith("Connected."):
                    break
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=BOUNDED)
        finally:
            child.kill()
    assert (child.returncode, out, err) == (130, "", "Interrupted. Removed its namespaces.\n")
    assert rows(path) == before


def test_an_interrupt_tells_what_could_not_be_removed(provide, path, monkeypatch) -> None:
    provide("Away")

    async def interrupted(self, records):
        raise KeyboardInterrupt

    import made_other

    monkeypatch.setattr(made_other.Away, "_put", interrupted)
    found = fidelity(f"other://@{path}")
    assert found.exit_code == 130
    assert 'Interrupted. Left behind, namespaces:\n- "fidelity-check-' in found.stderr


async def test_a_cancellation_that_a_case_swallowed_ends_the_run(url) -> None:
    harness = UrlHarness(url)

    async def case() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            harness.begin()

    running = asyncio.ensure_future(case())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    harness.begin()  # another task is not concerned
    await harness.close()


# The harness


async def test_its_namespaces_are_walls_with_the_names_that_the_kit_chose(url) -> None:
    harness = UrlHarness(url)
    one, other = await harness.make_store(), await harness.make_store_with(namespace="other")
    item = MemoryItem(content="here")
    await one.store(item)
    assert await other.retrieve(item.id) is None
    again = await harness.make_store_with(namespace="default")
    assert await again.retrieve(item.id) == item
    await harness.reset()
    assert await again.search(MemoryQuery()) == []
    await one.store(item)
    await harness.reset()  # within one case every store may still write
    assert await again.search(MemoryQuery()) == []
    for store in (one, other, again):
        await store.close()
    await harness.close()
    await harness.close()
    assert harness.left == []


async def test_after_close_it_makes_nothing(url, path) -> None:
    harness = UrlHarness(url)
    await harness.close()
    for hook in (harness.make_store, harness.reset):
        with pytest.raises(RuntimeError, match="ended"):
            await hook()
    assert not path.exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("sqlite:////data/a%20b.db", "sqlite:////data/a%20b.db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://u:sesame@host:5432/db", "postgresql:…@host:5432/db"),
        ("postgresql://u:ses@me@host/db", "postgresql:…@host/db"),
        ("postgresql://u:sesame@host/db?password=sesame", "postgresql:…@host/db"),
        ("postgresql:///db?password=sesame&user=a@b", "postgresql:…"),
        ("postgresql://u:sesa?me@host/db", "postgresql:…"),
        ("postgresql://u:sesa#me@host/db", "postgresql:…"),
        ("postgresql://u:sesa/me@host/db", "postgresql:…@host/db"),
        ("redis://:sesame", "redis:…"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("rediss://h/0#sesame", "rediss://h/0"),
        ("qdrant+http://host:6333", "qdrant+http://host:6333"),
        ("qdrant+path:data/q", "qdrant+path:data/q"),
        ("unix:///run/r.sock?password=sesame", "unix:///run/r.sock"),
        ("sqlite:///\x1b[31m.db", "sqlite:///\\x1b[31m.db"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_secret(url, shown) -> None:
    assert displayed(url) == shown
