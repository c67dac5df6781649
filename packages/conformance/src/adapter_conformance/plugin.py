"""The pytest plugin: each case over each harness becomes one item, such as `C08-limit[sqlite-fake]`.

It does nothing but for modules that say so:

    from adapter_conformance.plugin import conformance_tests

    conformance = conformance_tests("sqlite")

The fixture `require_store` measures a store of one's own by what a project needs.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from ._case import Case
from .harness import Environment, MemoryAdapterHarness
from .inventory import ALL_CASES
from .live import NotRun, Servers
from .report import CaseResult
from .requirements import Answer, Requirement, ask
from .runner import run_case
from .session import ORDINARY, BadHarness, Target, find_targets, printable, safely_told, target_of

__all__ = ["ConformanceTests", "conformance_tests", "require_store"]

_SERVERS = pytest.StashKey[Servers]()
"""Of live services; they are removed when pytest ends."""


class ConformanceTests:
    """What `conformance_tests` gives: a test module that has one gets an item for each case."""

    def __init__(
        self, harnesses: Sequence[str | type[Any]], environments: Sequence[Environment], seed: int
    ) -> None:
        self._harnesses = harnesses
        self._environments = environments
        self._seed = seed

    def items(self, parent: pytest.Collector) -> Iterator["ConformanceItem"]:
        """Make the items, for every harness all of them before those of the next."""
        for target in self._targets():
            # Asked once and not while collecting: it may look for an engine, or start a service.
            ready = cache(partial(_ready, target, parent.config))
            for case in ALL_CASES:
                name = f"{case.label}[{target.label}-{target.environment}]"
                yield ConformanceItem.from_parent(  # pyright: ignore[reportUnknownMemberType]
                    parent, name=name, case=case, target=target, seed=self._seed, ready=ready
                )

    def _targets(self) -> list[Target]:
        names = [one for one in self._harnesses if isinstance(one, str)]
        classes = [one for one in self._harnesses if not isinstance(one, str)]
        found, faults = find_targets(names, self._environments) if names else ([], [])
        if faults:
            raise BadHarness("; ".join(map(str, faults)))
        found += [target_of(str(getattr(one, "adapter", "unknown")), one) for one in classes]
        if not found:
            raise BadHarness(f"no harness runs in {' or '.join(self._environments)}")
        return found


def conformance_tests(
    *harnesses: str | type[Any], environments: Sequence[Environment] = ORDINARY, seed: int = 0
) -> ConformanceTests:
    """Make the tests of adapters; keep the result in a variable of a test module.

    Args:
        harnesses: The names of installed adapters, each with its variants, or harness classes.
        environments: Where named adapters are run; `live` only if it is asked for here.
        seed: Of all that is drawn.
    """
    if not harnesses:
        raise TypeError("conformance_tests needs the name of an adapter or a harness class")
    return ConformanceTests(harnesses, environments, seed)


class CaseDidNotPass(Exception):
    """Ends an item; pytest shows the reason and no traceback."""

    def __init__(self, result: CaseResult) -> None:
        self.result = result
        super().__init__(result.reason)


class ConformanceItem(pytest.Item):
    """One case over one harness."""

    def __init__(
        self,
        *,
        case: Case,
        target: Target,
        seed: int,
        ready: Callable[[], Target | NotRun],
        **options: Any,
    ) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]
        self.case = case
        self.target = target
        self.seed = seed
        self.ready = ready

    def runtest(self) -> None:
        """Run the case on an event loop and over a harness of its own."""
        ready = self.ready()
        if isinstance(ready, NotRun):
            pytest.skip(f"not run: {ready}")
        # With a factory the runner leaves the thread's current loop alone.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            result = runner.run(_result(self.case, ready, self.seed))
        if result.status == "not_staged":
            pytest.skip(f"not staged: {result.reason}")
        if result.status != "passed":
            raise CaseDidNotPass(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show why the case did not pass, and each false claim."""
        if isinstance(excinfo.value, CaseDidNotPass):
            return _told(self, excinfo.value.result)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Give the item's place: its module, and its name for the heading."""
        return self.path, None, self.name


def _ready(target: Target, config: pytest.Config) -> Target | NotRun:
    servers = config.stash.setdefault(_SERVERS, Servers())
    try:
        return target.ready(servers)
    except NotRun as why:
        return why


async def _result(case: Case, target: Target, seed: int) -> CaseResult:
    harness: MemoryAdapterHarness | None = None
    try:
        harness = target.make()
        result = await run_case(case, harness, target.adapter, target.environment, seed=seed)
        closing, harness = harness, None
        await closing.close()
    except Exception as error:  # noqa: BLE001 - an author's code, whatever it raises is shown
        return CaseResult(id=case.id, name=case.name, status="error", reason=safely_told(error), seconds=0.0)
    finally:
        if harness is not None:  # interrupted
            await harness.close()
    return result


def _told(item: ConformanceItem, result: CaseResult) -> str:
    where = f"{item.target.label} on {item.target.environment}"
    if result.status == "error":
        return f"{where}: the harness failed, not the adapter: {printable(result.reason)}"
    claims = [c for c in result.claims if c.declared != c.observed]
    lines = [f"{where} fails {result.id}, {item.case.title}: {result.reason}"]
    lines += [f"manifest field {c.field}: declared {c.declared}, observed {c.observed}" for c in claims]
    lines += [f"note: {note}" for note in result.notes]
    return "\n".join(map(printable, lines))


@pytest.fixture(scope="session")
def require_store() -> Callable[..., None]:
    """Give a function that fails the test unless a store keeps what the project needs.

    It takes the URL, the constructor's `options`, and the attributes of `Requirement` by name:

        def test_the_memory_is_exact(require_store):
            require_store("sqlite:///memories.db", retrieve="full", filters=["topic"], durability="power")
    """
    return _require_store


def _require_store(url: str, *, options: Mapping[str, Any] | None = None, **required: Any) -> None:
    requirement = Requirement(**required)

    def answered() -> Answer:
        return asyncio.run(ask(url, requirement, options))

    with ThreadPoolExecutor(1) as pool:  # the thread of the test may have a loop that runs
        answer = pool.submit(answered).result()
    lines = list(answer.shortfalls)
    lines += [f"it could not be asked: {answer.unreachable}"] if answer.unreachable else []
    if lines:
        pytest.fail("\n".join([f"{answer.adapter}: not what is required", *lines]), pytrace=False)


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[ConformanceItem] | None:
    """Turn what `conformance_tests` gave into items."""
    if not isinstance(obj, ConformanceTests):
        return None
    try:
        return list(obj.items(collector))
    except (LookupError, BadHarness) as error:
        raise collector.CollectError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the containers."""
    if _SERVERS in config.stash:
        config.stash[_SERVERS].close()
