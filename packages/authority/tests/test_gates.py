"""Negative controls: with a step of the layer taken out, named tests fail."""

from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adapter_sqlite import SqliteMemoryStore
from memory_authority import RESERVED_FILTERS, ContextAssembler, CuratedMemory, Scope, SessionMode, isolation

FAILED = (AssertionError, pytest.fail.Exception)


def load(name: str) -> ModuleType:
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ASSEMBLY, CURATED = load("test_assembly"), load("test_curated")


async def outcome(test: Callable[..., Awaitable[None] | None], *arguments: Any) -> str:
    try:
        running = test(*arguments)
        if running is not None:
            await running
    except FAILED:
        return "red"
    return "green"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("test_R63_a_record_that_the_session_contradicts_is_withheld", ["timezone=Oslo"]),
        ("test_R63_a_record_that_the_input_contradicts_is_withheld", ["timezone=Oslo"]),
        ("test_R63_a_tool_result_of_the_session_governs_too", []),
        ("test_R64_what_the_conversation_holds_already_is_not_repeated", ["session"]),
    ],
)
async def test_G02_without_the_precedence_step_its_tests_fail(
    monkeypatch: pytest.MonkeyPatch, name: str, arguments: list[Any], is_there: bool
) -> None:
    if not is_there:
        monkeypatch.setattr(ContextAssembler, "_conflict", lambda *_: None)
    assert await outcome(getattr(ASSEMBLY, name), *arguments) == ("green" if is_there else "red")


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("mode", [SessionMode.ACP, SessionMode.CODE])
@pytest.mark.parametrize(
    ("name", "further"),
    [
        ("test_R70_an_isolated_session_neither_asks_nor_shows_memory", [ASSEMBLY.TurnOrigin.INTERACTIVE]),
        ("test_R71_a_flag_does_not_open_an_isolated_session", []),
        ("test_R73_only_an_actor_who_names_turns_promotes_from_an_isolated_session", []),
    ],
)
async def test_G02_without_the_mode_check_its_tests_fail(
    monkeypatch: pytest.MonkeyPatch, name: str, further: list[Any], mode: SessionMode, is_there: bool
) -> None:
    if not is_there:
        monkeypatch.setattr(isolation, "is_isolated", lambda mode: False)
    assert await outcome(getattr(ASSEMBLY, name), mode, *further) == ("green" if is_there else "red")


@pytest.mark.parametrize("is_there", [True, False])
async def test_G02_without_the_check_after_the_store_its_test_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    if not is_there:
        monkeypatch.setattr(Scope, "visible", lambda *_: True)
    async with SqliteMemoryStore(tmp_path / "memory.db", filters=RESERVED_FILTERS) as store:
        memory = CuratedMemory(store, CURATED.SCOPE)
        test = CURATED.test_R35_a_store_that_ignores_filters_leaks_nothing
        assert await outcome(test, store, memory) == ("green" if is_there else "red")
