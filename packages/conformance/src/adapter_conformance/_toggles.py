"""C17: turning any field of the manifest against the behaviour makes a named case fail."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from adapter_core import MemoryAdapterManifest

from ._delegate import delegate
from ._run import CaseFailed, HarnessFault, NotStaged, Run, check, told
from .claims import CLAIMS, Toggle, toggles

Body = Callable[[Run], Awaitable[None]]


def c17_accuracy(judges: Mapping[str, Body]) -> Body:
    """Make the case from the bodies that judge the fields, by case id."""

    async def body(run: Run) -> None:
        manifest: MemoryAdapterManifest = (await run.store()).manifest
        check(set(CLAIMS) == set(type(manifest).model_fields), "a manifest field has no claim")
        killed = refused = 0
        unable: set[str] = set()
        for toggle in toggles(manifest):
            case = CLAIMS[toggle.field].case
            if toggle.manifest is None:
                refused += 1  # the validator's refusal is the proof
            elif _judged(run, toggle) and case not in unable:
                try:
                    await _must_fail(run, toggle, judges[case])
                    killed += 1
                except CaseFailed:
                    if await _passes(run, judges[case]):
                        raise
                    unable.add(case)  # it fails with the right manifest too, and is reported itself
        run.notes.append(f"{killed} wrong manifests noticed, {refused} refused by the validator")
        if unable:
            raise NotStaged(f"{', '.join(sorted(unable))} fails with the manifest as it is")

    return body


async def _passes(run: Run, judge: Body) -> bool:
    """Whether the judge passes with the manifest as it is."""
    trial = replace(run)
    trial.notes, trial.claims = [], []
    await run.hook("reset")()
    try:
        await _judge(judge, trial)
    except CaseFailed:
        return False
    finally:
        await trial.close()
    return True


async def _judge(judge: Body, trial: Run) -> None:
    """Run a judge; what a store must not raise is a failure, as it is outside this case."""
    try:
        await judge(trial)
    except (CaseFailed, NotStaged, HarnessFault):
        raise
    except Exception as error:  # noqa: BLE001 - see above
        raise CaseFailed(f"raised {told(error)}") from None


def _judged(run: Run, toggle: Toggle) -> bool:
    """Whether this environment can tell: that a miss can happen is proved on the fake alone."""
    return toggle.field != "search_consistency" or run.environment == "fake"


async def _must_fail(run: Run, toggle: Toggle, judge: Body) -> None:
    wrong = toggle.manifest

    def lying(store: Any) -> Any:
        return delegate(run.wrap(store), manifest=wrong)

    trial = replace(run, wrap=lying)
    trial.notes, trial.claims = [], []
    await run.hook("reset")()
    try:
        await _judge(judge, trial)
    except CaseFailed as failed:
        named = {drift.field for drift in failed.drift}
        if toggle.field in named:
            return
        raise CaseFailed(
            f"with {toggle.field}={toggle.value} the failure does not name it: {failed.reason}"
        ) from None
    except NotStaged as missing:
        raise NotStaged(f"{toggle.field}={toggle.value}: {missing}") from None
    finally:
        await trial.close()
    raise CaseFailed(f"a manifest with {toggle.field}={toggle.value} goes unnoticed")
