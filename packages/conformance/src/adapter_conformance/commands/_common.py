"""What the commands share: arguments, usage errors, and the run behind them."""

import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, NoReturn

import typer

from adapter_conformance._case import Case
from adapter_conformance.harness import Environment
from adapter_conformance.inventory import ALL_CASES
from adapter_conformance.progress import LateProgress
from adapter_conformance.report import ConformanceReport
from adapter_conformance.runner import not_run
from adapter_conformance.session import (
    ORDINARY,
    Exit,
    Session,
    find_targets,
    is_partial,
    no_live,
    printable,
    run_targets,
    safely_told,
)
from adapter_conformance.url_harness import displayed
from adapter_core import MemoryAdapterError


class Where(StrEnum):
    """The environments, as typer wants them."""

    FAKE = "fake"
    EMBEDDED = "embedded"
    LIVE = "live"


Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Adapters, each with its variants; none: all."),
]

Seed = Annotated[int, typer.Option(help="Of all that is drawn; the same seed draws the same.")]
CaseIds = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Only this case, such as C08; repeatable. Never certified."),
]


def usage_error(message: str) -> NoReturn:
    """End the command as wrongly used."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(Exit.USAGE)


Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="Constructor option of every store; the value is JSON, or else a text. Repeatable.",
    ),
]


def parsed_options(given: Sequence[str] | None) -> dict[str, Any]:
    """Read `key=value` options."""
    options: dict[str, Any] = {}
    for one in given or ():
        key, separator, value = one.partition("=")
        if not separator or not key.isidentifier():
            usage_error("an option is KEY=VALUE")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
        except RecursionError:
            usage_error(f"the option {key} is nested too deeply")
    return options


@contextmanager
def opening(url: str, options: Collection[str]) -> Generator[None]:
    """End the command as wrongly used if the adapter makes no store of this URL and these options."""
    try:
        yield
    except MemoryAdapterError as error:
        usage_error(f"{displayed(url)}: {printable(str(error))}")
    except TypeError:  # its text may show a value
        names = ", ".join(sorted(options)) or "none"
        usage_error(f"{displayed(url)}: the adapter does not take one of these options: {names}")
    except Exception as error:  # noqa: BLE001 - what a constructor must not raise
        told = safely_told(error)
        usage_error(f"{displayed(url)}: the adapter does not take this URL or these options: {told}")


def chosen_environments(given: Sequence[Where] | None) -> list[Environment]:
    """Give the environments that were asked for, or those that need no service."""
    return [where.value for where in given] if given else list(ORDINARY)


def chosen_cases(ids: Sequence[str] | None) -> Sequence[Case]:
    """Give the cases with these ids; none: all."""
    wanted = {one.upper() for one in ids or ()}
    unknown = sorted(wanted - {case.id for case in ALL_CASES})
    if unknown:
        known = " ".join(case.id for case in ALL_CASES)
        usage_error(f"no case {', '.join(unknown)} (known: {known})")
    return [case for case in ALL_CASES if not wanted or case.id in wanted]


def tell_if_partial(session: Session) -> None:
    """Say on stderr that cases were left out."""
    if any(map(is_partial, session.reports)):
        typer.echo("A partial run is never certified: run all cases.", err=True)


def run_named(
    names: Sequence[str] | None,
    environments: Sequence[Where] | None,
    *,
    cases: Sequence[Case] = ALL_CASES,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    ended: Callable[[ConformanceReport], None] = lambda _: None,
) -> Session:
    """Run the installed harnesses by name, with progress; faults are told on stderr."""
    chosen = chosen_environments(environments)
    try:
        targets, faults = find_targets(names or (), chosen)
    except LookupError as error:
        usage_error(str(error))
    with LateProgress(len(targets) * len(cases)) as progress:
        session = run_targets(
            targets,
            cases=cases,
            seed=seed,
            options=options,
            progress=progress,
            tell=partial(typer.echo, err=True),
            ended=ended,
        )
    session.faults[:0] = faults
    if "live" in chosen:
        without = no_live(names or (), session)
        session.reports.extend(not_run(name, "live", "it has no live harness") for name in without)
    for fault in session.faults:
        typer.echo(f"Error: {fault}", err=True)
    if not session.reports and not session.faults:
        wanted = ", ".join(names) if names else "any adapter"
        typer.echo(f"Nothing to run: no harness of {wanted} for {' or '.join(chosen)}.", err=True)
    return session
