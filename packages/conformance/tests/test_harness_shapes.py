import asyncio
import inspect
from typing import ClassVar
from uuid import UUID

import pytest

import adapter_conformance.runner as runner_module
from adapter_conformance import (
    ALL_CASES,
    Case,
    MemoryAdapterHarness,
    StagingHarness,
    harness_entries,
    run_case,
    run_conformance,
)
from adapter_conformance._delegate import delegate
from adapter_core import (
    EXTENSIONS,
    DeclaresDurability,
    DeclaresProjection,
    ExternalMemoryStore,
    MemoryAdapterError,
    MemoryItem,
    MemoryQuery,
    extensions_of,
)
from adapter_template.harness import EVENTUAL, TemplateHarness

CASES = {case.id: case for case in ALL_CASES}
SECRET = "hunter2"


async def _run(case: str, harness, wrap=lambda store: store):
    return await run_case(CASES[case], harness, "template", "fake", wrap=wrap)


async def _ending(body, harness=None):
    case = Case("T01", "test", "a case of the test", body)
    return await run_case(case, harness or TemplateHarness(), "template", "fake")


# The five hooks of the seed


class FiveHooks:
    """A harness of nothing but the seed's five hooks."""

    def __init__(self, kind=TemplateHarness) -> None:
        self._whole = kind()

    async def make_store(self):
        return await self._whole.make_store()

    async def reset(self) -> None:
        await self._whole.reset()

    async def make_search_index_visible(self) -> None:
        await self._whole.make_search_index_visible()

    async def make_transport_unavailable(self) -> None:
        await self._whole.make_transport_unavailable()

    async def close(self) -> None:
        await self._whole.close()


NOT_STAGED = {
    "C05": "the harness has no hook plant_foreign_record",
    "C15": "the harness has no hook make_transport_available",
    "C16": "the harness has no hook refuse_writes",
    "X01": "the harness has no hook make_store_with",
    "X02": "the harness has no hook age_index",
    "X05": "the harness has no hook make_store_with",
    "X11": "the harness has no hook degrade",
    "X12": "the harness has no hook plant_malformed_record",
}


def test_the_seed_names_five_hooks() -> None:
    hooks = [name for name, _ in inspect.getmembers(MemoryAdapterHarness, inspect.iscoroutinefunction)]
    assert hooks == [
        "close",
        "make_search_index_visible",
        "make_store",
        "make_transport_unavailable",
        "reset",
    ]
    assert isinstance(FiveHooks(), MemoryAdapterHarness)


@pytest.mark.parametrize(
    ("kind", "adapter"), [(TemplateHarness, "template"), (*EVENTUAL, "template-eventual")]
)
async def test_five_hooks_run_everything_and_stage_what_they_can(kind, adapter) -> None:
    report = await run_conformance(FiveHooks(kind), adapter=adapter)
    assert {case.id: case.reason for case in report.cases if case.status != "passed"} == NOT_STAGED
    assert {case.status for case in report.cases} == {"passed", "not_staged"}
    assert report.score == "14/17, 3 not staged"
    assert (report.environment, report.engine, report.engine_version) == ("fake", "", "")
    assert not report.certified


async def test_five_hooks_that_say_where_they_run_are_certified_for_what_they_stage() -> None:
    harness = FiveHooks()
    harness.environment = "live"
    report = await run_conformance(harness, adapter="template")
    assert report.certified
    assert report.environment == "live"


async def test_the_reason_of_the_harness_is_reported_for_a_hook_that_it_lacks() -> None:
    harness = FiveHooks()
    harness.not_staged = {"plant_foreign_record": "the service takes no other clients"}
    result = await _run("C05", harness)
    assert (result.status, result.reason) == ("not_staged", "the service takes no other clients")


async def test_hooks_need_not_be_coroutines() -> None:
    class Plain(TemplateHarness):
        def reset(self) -> None:
            self.service.wipe()

    assert (await _run("C05", Plain())).status == "passed"


def test_every_hook_of_the_wide_harness_is_one_that_the_template_has_or_explains() -> None:
    hooks = {name for name, value in vars(StagingHarness).items() if callable(value) and name[0] != "_"}
    assert len(hooks) == 12
    missing = {hook for hook in hooks if not hasattr(TemplateHarness, hook)}
    assert missing == set(TemplateHarness.not_staged)


# Stores that are no AdapterStore


class PlainStore:
    """Three verbs and a manifest that is an attribute of the instance."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.manifest = inner.manifest

    async def store(self, item):
        return await self._inner.store(item)

    async def retrieve(self, item_id):
        return await self._inner.retrieve(item_id)

    async def search(self, query):
        return await self._inner.search(query)


async def test_a_store_with_three_verbs_and_a_manifest_passes_the_matrix() -> None:
    report = await run_conformance(TemplateHarness(), wrap=PlainStore)
    assert report.certified
    assert {case.id: case.reason for case in report.cases if case.status != "passed"} == {
        "X02": "the service does not remember how it was indexed",
        "X07": "the store has no close",
        "X10": "the store claims no extension",
        "X11": "a dictionary has no capability that could go away",
    }
    assert (report.extensions, report.durability, report.losses) == ((), "", ())


async def test_the_report_has_the_meaning_of_text_as_it_is_and_with_each_option_that_changes_it() -> None:
    made = []

    class Harness(TemplateHarness):
        text_options: ClassVar[dict[str, str]] = {"mood": "glad"}

        async def make_store_with(self, *, mood=None, **options):
            store = await super().make_store_with(**options)
            made.append(delegate(store, text_meaning=f"by {mood}" if mood else None))
            return made[-1]

    report = await run_conformance(Harness(), cases=[CASES["C02"]])
    assert (report.text_meaning, report.text_meaning_with) == ("", {"mood": "by glad"})
    plain = await run_conformance(
        TemplateHarness(), cases=[CASES["C02"]], wrap=lambda store: delegate(store, text_meaning="by ear")
    )
    assert (plain.text_meaning, plain.text_meaning_with) == ("by ear", {})


@pytest.mark.parametrize("missing", ["store", "retrieve", "search", "manifest"])
async def test_a_store_that_lacks_a_part_of_the_surface_fails_c01(missing) -> None:
    class Partial:
        pass

    async def _make():
        inner = await TemplateHarness().make_store()
        partial = Partial()
        for name in {"store", "retrieve", "search", "manifest"} - {missing}:
            setattr(partial, name, getattr(inner, name))
        return partial

    class Harness(FiveHooks):
        async def make_store(self):
            return await _make()

    report = await run_conformance(Harness(), adapter="template", cases=[CASES["C01"]])
    assert report.cases[0].status == "failed"
    assert ("manifest" if missing == "manifest" else "three verbs") in report.cases[0].reason


# Faults of a harness are errors, not verdicts


@pytest.mark.parametrize("hook", ["reset", "plant_foreign_record"])
async def test_a_hook_that_raises_is_an_error_and_not_a_verdict(hook) -> None:
    class Faulty(TemplateHarness):
        pass

    async def _fail(*_) -> None:
        raise OSError(f"cannot log in with {SECRET}")

    setattr(Faulty, hook, _fail)
    report = await run_conformance(Faulty(), cases=[CASES["C05"]])
    (result,) = report.cases
    assert result.status == "error"
    assert result.reason.startswith(f"{hook} raised OSError (test_harness_shapes.py, line ")
    assert SECRET not in result.reason
    assert not report.certified


async def test_one_hook_that_raises_keeps_a_run_from_being_certified() -> None:
    class Faulty(TemplateHarness):
        async def plant_foreign_record(self, item_id) -> None:
            raise OSError

    report = await run_conformance(Faulty())
    assert report.score == "16/17, 1 errors"
    assert not report.certified


async def test_a_reset_that_leaves_items_is_an_error_of_the_harness() -> None:
    class Leaving(TemplateHarness):
        async def reset(self) -> None:
            """Do nothing."""

    result = await _run("C04", Leaving())
    assert (result.status, result.reason) == ("error", "reset leaves an item")


async def test_the_harness_and_all_its_stores_are_closed_after_a_run() -> None:
    made, closed = [], []

    class Remembering(TemplateHarness):
        async def make_store_with(self, **options):
            made.append(await super().make_store_with(**options))
            return made[-1]

        async def close(self) -> None:
            closed.append(self)
            await super().close()

    await run_conformance(Remembering(), cases=[CASES["C01"]])
    assert len(made) > 1
    assert len(closed) == 1
    for store in made:
        with pytest.raises(MemoryAdapterError, match="closed"):
            await store.retrieve(UUID(int=1))


# A reason is what was seen


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("C11", "items are not found by their tag, without bounds of time either"),
        ("X05", "an item is not found in its own namespace"),
    ],
)
async def test_what_is_not_found_at_all_is_said(case, reason) -> None:
    async def search(inner, query):
        return [] if query.tags or case == "X05" else await inner.search(query)

    assert (
        await _run(case, TemplateHarness(), lambda store: delegate(store, search=search))
    ).reason == reason


async def test_a_search_that_does_not_find_without_a_limit_either_is_not_about_the_limit() -> None:
    async def search(inner, query):
        return [] if query.text else await inner.search(query)

    result = await _run("C11", TemplateHarness(), lambda store: delegate(store, search=search))
    assert result.reason == "tags do not find exactly the items that meet them"


# How a case can end


async def test_an_error_that_escapes_is_named_with_its_cause_and_never_with_its_text() -> None:
    async def _body(run) -> None:
        raise RuntimeError(f"no {SECRET}") from KeyError(SECRET)

    result = await _ending(_body)
    assert result.status == "failed"
    assert result.reason.startswith("raised RuntimeError from KeyError (test_harness_shapes.py, line ")
    assert SECRET not in result.model_dump_json()


async def test_an_error_is_told_with_the_line_that_raised_its_cause() -> None:
    def fail() -> None:
        raise KeyError(SECRET)

    async def _body(run) -> None:
        try:
            fail()
        except KeyError as error:
            raise RuntimeError(SECRET) from error

    line = fail.__code__.co_firstlineno + 1
    assert (await _ending(_body)).reason == (
        f"raised RuntimeError from KeyError (test_harness_shapes.py, line {line})"
    )


@pytest.mark.parametrize("verb", ["store", "retrieve", "search"])
async def test_no_report_shows_what_a_native_error_says(verb, capsys) -> None:
    contents = set()

    async def _store(inner, item):
        contents.add(repr(item.content))
        if verb == "store":
            raise LookupError(f"{SECRET}: {item!r} {item.content!r}")
        return await inner.store(item)

    async def _read(inner, argument):
        raise LookupError(f"{SECRET}: {contents}")

    def _wrap(store):
        return delegate(store, **({"store": _store} | ({verb: _read} if verb != "store" else {})))

    report = await run_conformance(TemplateHarness(), wrap=_wrap)
    assert sum("raised LookupError" in case.reason for case in report.cases) > 5
    assert SECRET not in report.model_dump_json()
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


async def test_a_case_that_hangs_is_ended(monkeypatch) -> None:
    monkeypatch.setattr(runner_module, "CASE_SECONDS", 0.0)

    async def _body(_) -> None:
        await asyncio.Event().wait()

    result = await _ending(_body)
    assert (result.status, result.reason) == ("failed", "not finished within 0 s")


async def test_a_timeout_that_the_store_raises_is_not_taken_for_the_deadline() -> None:
    async def _body(_) -> None:
        raise TimeoutError

    result = await _ending(_body)
    assert result.reason.startswith("raised TimeoutError (")


class NotClosing(TemplateHarness):
    async def make_store_with(self, **options):
        async def _close(_) -> None:
            raise MemoryAdapterError("cannot close")

        return delegate(await super().make_store_with(**options), close=_close)


async def test_a_store_that_cannot_be_closed_is_a_failure() -> None:
    async def _body(run) -> None:
        await run.store()

    result = await _ending(_body, NotClosing())
    assert (result.status, result.reason[:25]) == ("failed", "raised MemoryAdapterError")


async def test_what_the_case_saw_is_not_hidden_by_a_store_that_cannot_be_closed() -> None:
    async def _body(run) -> None:
        assert await (await run.store()).retrieve(UUID(int=1)) is None
        raise ValueError

    assert (await _ending(_body, NotClosing())).reason.startswith("raised ValueError (")


# Delegates


async def test_a_delegate_satisfies_the_protocols_of_the_inner_store_and_no_more() -> None:
    inner = await TemplateHarness().make_store()
    once = delegate(inner)
    for outer in (once, delegate(once), delegate(delegate(once), manifest=inner.manifest)):
        assert isinstance(outer, ExternalMemoryStore)
        assert isinstance(outer, DeclaresProjection)
        assert isinstance(outer, DeclaresDurability)
        assert extensions_of(outer) == extensions_of(inner) == ["batch/1", "delete/1"]
        assert outer.manifest is inner.manifest
    without = [one.name for one in EXTENSIONS if not isinstance(once, one.protocol)]
    assert without == ["scan", "revisions", "scored-search", "reindex"]


async def test_a_delegate_replaces_a_method_a_value_and_a_property() -> None:
    inner = await TemplateHarness().make_store()

    async def _retrieve(given, item_id):
        assert given is inner
        return item_id

    looks = []

    def _durability(given) -> str:
        looks.append(given)
        return "crash"

    outer = delegate(inner, retrieve=_retrieve, manifest=None, durability=property(_durability))
    assert await outer.retrieve(3) == 3
    assert outer.manifest is None
    assert (outer.durability, outer.durability, looks) == ("crash", "crash", [inner, inner])
    item = MemoryItem()
    assert await outer.store(item) == item.id
    assert [hit.id for hit in await outer.search(MemoryQuery())] == [item.id]


async def test_a_method_called_store_can_be_replaced() -> None:
    async def _store(given, item):
        return "stored"

    outer = delegate(await TemplateHarness().make_store(), store=_store)
    assert await outer.store(MemoryItem()) == "stored"


# Entry points


def test_a_name_selects_its_variants_and_nothing_that_only_looks_alike(install) -> None:
    install("templated", "HARNESSES = ()\n")
    assert [entry.name for entry in harness_entries(["template"])] == [
        *("template", "template-dropping", "template-eventual", "template-lossy", "template-tagless"),
    ]
    assert [entry.name for entry in harness_entries(["template-lossy", "templated"])] == [
        *("template-lossy", "templated"),
    ]


def test_without_names_every_installed_harness_is_found(install) -> None:
    install("an-adapter", "HARNESSES = ()\n")
    names = [entry.name for entry in harness_entries()]
    assert names == sorted(names)
    assert {"an-adapter", "template"} <= set(names)


def test_an_unknown_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        LookupError, match=r"no harness for 'templat' is installed \(installed: .*template-lossy"
    ):
        harness_entries(["template", "templat"])
