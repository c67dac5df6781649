"""`fidelity copy`: the items of one store into another, with every loss agreed to first."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from adapter_conformance._delegate import delegate
from adapter_conformance.cli import app
from adapter_conformance.copying import BATCH, Agreed, CopyFailed, Copying, Hindered
from adapter_conformance.corpus import drawn
from adapter_core import EXACT, MemoryItem, same_fields
from adapter_sqlite import SqliteMemoryStore
from adapter_sqlite.testing import plant_foreign
from adapter_template import TemplateMemoryStore, TemplateService
from adapter_template.harness import TemplateHarness

ITEMS = drawn(2 * BATCH + 50, 1).items
LOSS = "created-at-milliseconds"
CHANGED = [item for item in ITEMS if round(item.created_at, 3) != item.created_at]
BOUNDED = 120  # seconds, for a child that hangs

# Dies in the middle: the second batch is written and the process is gone before it is read again.
CHILD = """
import os, signal
from adapter_conformance.cli import main
from adapter_sqlite import SqliteMemoryStore

whole = SqliteMemoryStore.store_many
calls = 0

async def store_many(self, items):
    global calls
    calls += 1
    ids = await whole(self, items)
    if calls == 2:
        {ending}
    return ids

SqliteMemoryStore.store_many = store_many
main()
"""


def fidelity(*arguments):
    return CliRunner().invoke(app, ["copy", *map(str, arguments)], catch_exceptions=False)


async def filled(path, items, **options) -> None:
    async with SqliteMemoryStore(path, **options) as store:
        await store.store_many(items)


def fill(path, items, **options) -> None:
    asyncio.run(filled(path, items, **options))


def contents(path, **options) -> list[MemoryItem]:
    async def scanned():
        async with SqliteMemoryStore(path, **options) as store:
            return [item async for item in store.scan()]

    return asyncio.run(scanned())


def dump(path) -> dict[str, list[object]]:
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute(tables)]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def equal(found, expected) -> bool:
    ordered = sorted(expected, key=lambda item: item.id)
    return len(found) == len(ordered) and all(map(same_fields, found, ordered))


@pytest.fixture(name="source")
async def _source(tmp_path):
    await filled(tmp_path / "a.db", ITEMS)
    return tmp_path / "a.db"


@pytest.fixture(name="urls")
def _urls(source, tmp_path):
    return f"sqlite:///{source}", f"sqlite:///{tmp_path / 'b.db'}"


# Exact to exact


def test_everything_arrives_and_the_source_is_the_same(urls, source, tmp_path) -> None:
    before = dump(source)
    found = fidelity(*urls)
    assert found.exit_code == 0, found.output
    assert f": {len(ITEMS)} items" in found.stdout.splitlines()[0]
    assert found.stderr == f"Copied {len(ITEMS)} items and read them again; 0 were there already.\n"
    assert equal(contents(tmp_path / "b.db"), ITEMS)
    assert dump(source) == before


def test_again_it_writes_nothing(urls, tmp_path) -> None:
    fidelity(*urls)
    before = dump(tmp_path / "b.db")
    found = fidelity(*urls)
    assert found.exit_code == 0
    assert found.stderr == f"Copied 0 items and read them again; {len(ITEMS)} were there already.\n"
    assert dump(tmp_path / "b.db") == before


def test_killed_in_the_middle_and_started_again_it_ends_complete(urls, tmp_path) -> None:
    ending = "os.kill(os.getpid(), signal.SIGKILL)"
    command = [sys.executable, "-c", CHILD.format(ending=ending), "copy", *urls]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=BOUNDED, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(contents(tmp_path / "b.db")) == 2 * BATCH
    found = fidelity(*urls)
    assert found.exit_code == 0
    assert found.stderr == f"Copied 50 items and read them again; {2 * BATCH} were there already.\n"
    assert equal(contents(tmp_path / "b.db"), ITEMS)


def test_interrupted_it_says_how_far_it_came(urls, tmp_path) -> None:
    ending = "signal.signal(2, signal.default_int_handler); signal.raise_signal(signal.SIGINT)"
    command = [sys.executable, "-c", CHILD.format(ending=ending), "copy", *urls]
    stopped = subprocess.run(command, capture_output=True, text=True, timeout=BOUNDED, check=False)
    assert stopped.returncode == 130
    assert "Error: interrupted\n" in stopped.stderr
    assert "Not all is copied. The same command goes on.\n" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert fidelity(*urls).exit_code == 0
    assert equal(contents(tmp_path / "b.db"), ITEMS)


def test_namespaces_are_given_for_each_side(source, tmp_path) -> None:
    (one,) = drawn(1, 1, seed=9).items
    fill(source, [one], namespace="other")
    url = f"sqlite:///{source}"
    found = fidelity(url, url, "--from-option", "namespace=other", "--to-option", "namespace=third")
    assert found.exit_code == 0
    assert equal(contents(source, namespace="third"), [one])
    assert equal(contents(source), ITEMS)
    assert fidelity(url, f"sqlite:///{tmp_path / 'c.db'}", "-o", "namespace=other").exit_code == 0
    assert equal(contents(tmp_path / "c.db", namespace="other"), [one])


def test_a_dry_run_only_reports(urls, tmp_path) -> None:
    found = fidelity(*urls, "--dry-run")
    assert (found.exit_code, found.stderr) == (0, "")
    assert "kept exactly" in found.stdout
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        assert connection.execute("SELECT count(*) FROM memory_items").fetchone() == (0,)


def test_an_empty_source_is_said(tmp_path) -> None:
    fill(tmp_path / "a.db", ITEMS[:1], namespace="other")
    found = fidelity(f"sqlite:///{tmp_path / 'a.db'}", "template:///", "--dry-run")
    told = "Error: the source has no items; is this the right one?\nNothing was copied.\n"
    assert (found.exit_code, found.stdout, found.stderr) == (1, "", told)


# What is there already


def test_other_contents_under_an_id_are_not_replaced_unasked(urls, tmp_path) -> None:
    newer = [item.model_copy(update={"content": "written since"}) for item in ITEMS[:2]]
    fill(tmp_path / "b.db", newer)
    found = fidelity(*urls)
    assert found.exit_code == 1
    assert found.stderr == "Nothing was copied. To copy, add --overwrite\n"
    for item in newer:
        assert str(item.id) in found.stdout
    assert equal(contents(tmp_path / "b.db"), newer)
    assert fidelity(*urls, "--overwrite").exit_code == 0
    assert equal(contents(tmp_path / "b.db"), ITEMS)


def test_items_of_the_target_alone_stay(urls, tmp_path) -> None:
    (one,) = drawn(1, 1, seed=9).items
    fill(tmp_path / "b.db", [one])
    assert fidelity(*urls).exit_code == 0
    assert equal(contents(tmp_path / "b.db"), [*ITEMS, one])


def test_a_record_of_another_program_is_named_and_stays(urls, tmp_path) -> None:
    fill(tmp_path / "b.db", ITEMS[:1])
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection, connection:
        plant_foreign(connection, "default", ITEMS[1].id)
    found = fidelity(*urls, "--overwrite")
    assert found.exit_code == 1
    assert found.stderr.startswith(f"Error: the target refuses {ITEMS[1].id}: ")
    assert found.stderr.endswith("Not all is copied. The same command ends like this until that is mended.\n")


async def test_an_item_that_is_refused_in_a_batch_is_named(source) -> None:
    harness = TemplateHarness()
    taking = await harness.make_store()
    await harness.plant_foreign_record(ITEMS[5].id)
    async with SqliteMemoryStore(source) as giving:
        with pytest.raises(CopyFailed, match=f"refuses {ITEMS[5].id}: store: a record that is not ours"):
            await Copying(giving, taking, Agreed()).copy()
    await harness.close()


# Losses and refusals

LOSSY = ("template:///", "--to-option", "gap=lossy")


def test_a_loss_stops_the_copy_with_its_count_and_examples(urls) -> None:
    assert CHANGED
    found = fidelity(urls[0], *LOSSY)
    assert found.exit_code == 1
    assert found.stderr == f"Nothing was copied. To copy, add --accept-loss {LOSS}\n"
    rows = [line.split() for line in found.stdout.splitlines()]
    assert ["changed:", LOSS, str(len(CHANGED)), "--accept-loss", LOSS] in rows
    examples = [row for row in rows if row[:1] == [LOSS]]
    assert len(examples) == 3
    first = min(CHANGED, key=lambda item: item.id)
    times = [repr(first.created_at), *[repr(round(first.created_at, 3))] * 2]
    assert examples[0] == [LOSS, str(first.id), "created_at", *times]
    assert fidelity(urls[0], *LOSSY, "--limit", "0").stdout.count(LOSS) == 2


def test_accepted_it_is_copied(urls) -> None:
    found = fidelity(urls[0], *LOSSY, "--accept-loss", LOSS)
    assert found.exit_code == 0
    assert found.stderr == f"Copied {len(ITEMS)} items and read them again; 0 were there already.\n"


async def test_what_arrives_is_the_projection(source) -> None:
    service = TemplateService()
    async with SqliteMemoryStore(source) as giving, TemplateMemoryStore(service, gap="lossy") as taking:
        done = await Copying(giving, taking, Agreed(losses=[LOSS])).copy()
        assert (done.copied, done.losses[LOSS].count) == (len(ITEMS), len(CHANGED))
        for item in ITEMS:
            there = await taking.retrieve(item.id)
            assert same_fields(there, item.model_copy(update={"created_at": round(item.created_at, 3)}))
        again = await Copying(giving, taking, Agreed(losses=[LOSS])).copy()
        assert (again.copied, again.equal) == (0, len(ITEMS))


async def test_a_loss_that_shows_in_searches_alone_is_one_too(source) -> None:
    tagged = sum(bool(item.tags) for item in ITEMS)
    async with SqliteMemoryStore(source) as giving:
        taking = TemplateMemoryStore(TemplateService(), gap="tagless")
        found = await Copying(giving, taking, Agreed()).survey()
    assert {name: listing.count for name, listing in found.losses.items()} == {
        "search-hits-without-tags": tagged
    }
    assert found.exact == len(ITEMS) - tagged


async def test_a_change_that_no_loss_explains_is_undeclared(source) -> None:
    taking = TemplateMemoryStore(TemplateService(), gap="lossy")
    taking._projection = EXACT.__class__(taking.projection.retrieve, taking.projection.search)
    async with SqliteMemoryStore(source) as giving:
        copying = Copying(giving, taking, Agreed())
        found = await copying.survey()
    assert found.hindrances(Agreed()) == ["--accept-loss undeclared"]
    assert found.losses["undeclared"].shown[0].value.losses == ()


async def test_refused_items_are_counted_and_skipped_only_if_asked(source) -> None:
    class Picky:
        """A host's class that takes short contents only."""

        def __init__(self, *, id, created_at, metadata, content, tags):  # noqa: A002
            if type(content) is str and len(content) > 20:
                raise ValueError
            self.id, self.created_at, self.metadata = id, created_at, metadata
            self.content, self.tags = content, tags

    long = [item for item in ITEMS if type(item.content) is str and len(item.content) > 20]
    service = TemplateService()
    async with SqliteMemoryStore(source) as giving:
        taking = TemplateMemoryStore(service, item_type=Picky)
        found = await Copying(giving, taking, Agreed()).survey()
        assert found.refused.count == len(long) > 0
        assert found.refused.shown[0].path == "item_type"
        assert found.hindrances(Agreed()) == ["--skip-refused"]
        with pytest.raises(Hindered):
            await Copying(giving, taking, Agreed()).copy()
        done = await Copying(giving, taking, Agreed(skip_refused=True)).copy()
        assert done.copied == len(ITEMS) - len(long)
        assert await taking.retrieve(long[0].id) is None


async def test_a_loss_that_came_after_the_survey_stops_before_its_batch(tmp_path) -> None:
    (one,) = drawn(1, 1).items
    exact = one.model_copy(update={"created_at": 1.0})
    await filled(tmp_path / "a.db", [exact])
    async with SqliteMemoryStore(tmp_path / "a.db") as giving:
        taking = TemplateMemoryStore(TemplateService(), gap="lossy")
        copying = Copying(giving, taking, Agreed())
        assert (await copying.survey()).hindrances(Agreed()) == []
        await giving.store(exact.model_copy(update={"created_at": 1.0004}))
        with pytest.raises(Hindered):
            await copying.copy()
        assert await taking.retrieve(one.id) is None


async def test_an_item_that_does_not_come_back_as_declared_ends_the_copy(source) -> None:
    async def lost(store, items):
        return [item.id for item in items]  # acknowledged, and not there

    async with SqliteMemoryStore(source) as giving:
        taking = delegate(TemplateMemoryStore(TemplateService()), store_many=lost)
        with pytest.raises(CopyFailed, match="does not come back"):
            await Copying(giving, taking, Agreed()).copy()


async def test_a_target_without_batches_is_written_one_by_one(source) -> None:
    class Bare:
        projection = EXACT

        def __init__(self) -> None:
            self.kept = {}

        async def store(self, item):
            self.kept[item.id] = item
            return item.id

        async def retrieve(self, item_id):
            return self.kept.get(item_id)

    taking = Bare()
    async with SqliteMemoryStore(source) as giving:
        done = await Copying(giving, taking, Agreed()).copy()
    assert done.copied == len(taking.kept) == len(ITEMS)


# The document, and how it ends


def test_the_document_has_all_of_it(urls) -> None:
    document = json.loads(fidelity(urls[0], *LOSSY, "--format", "json", "--limit", "1").stdout)
    assert (document["schema_version"], document["items"]) == (1, len(ITEMS))
    (loss,) = document["losses"]
    assert (loss["name"], loss["items"], len(loss["examples"])) == (LOSS, len(CHANGED), 1)
    assert (document["needed"], document["copied"], document["complete"]) == (
        [f"--accept-loss {LOSS}"],
        None,
        False,
    )
    document = json.loads(fidelity(*urls, "--format", "json").stdout)
    assert (document["copied"], document["complete"], document["error"]) == (len(ITEMS), True, "")


def test_a_source_is_found_as_its_adapter_finds_it(source, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    source.rename("a b%.db")
    assert fidelity("sqlite:///a%20b%25.db", "template:///").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["template:///", "sqlite:///:memory:"], "the source cannot list its items: it has no scan"),
        (["sqlite:///a.db", "sqlite:///a.db"], "FROM and TO are the same store"),
        (["sqlite:///a.db", "nothing://b"], "no adapter for nothing: is installed"),
        (
            ["sqlite:///a.db", "template:///", "--to-option", "colour=red"],
            "does not take one of these options: colour",
        ),
        (["sqlite:///none%20such.db", "template:///"], "Error: sqlite:///none%20such.db is not there\n"),
        (["SQLITE:///none.db", "template:///"], "SQLITE:///none.db is not there"),
        (["qdrant+path:none", "template:///"], "Error: qdrant+path:none is not there\n"),
        (["nonsense", "template:///"], "Error: nonsense: a store URL begins with a scheme and a colon\n"),
        (["sqlite:///\udcff.db", "template:///"], "is not there"),
        (
            ["sqlite:///a.db", *LOSSY, "--accept-loss", "hope"],
            f"has no loss hope (known: {LOSS}, undeclared)",
        ),
    ],
)
def test_wrong_usage_ends_with_two(arguments, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = fidelity(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_does_not_answer_ends_with_three(urls) -> None:
    found = fidelity(urls[0], "postgresql://me:sesame@127.0.0.1:1/x")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr.startswith("Error: no connection to the backend")
    assert found.stderr.endswith("\nNothing was copied.\n")
    assert "sesame" not in found.output


def test_markdown_is_a_table(urls) -> None:
    found = fidelity(urls[0], *LOSSY, "--format", "markdown")
    assert f"| changed: {LOSS} | {len(CHANGED)} | --accept-loss {LOSS} |" in found.stdout
