"""What became weaker, stronger, new or gone between two results files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from .report import CaseResult, ConformanceReport

Kind = Literal["weaker", "stronger", "new", "gone"]

_ORDERS: Mapping[str, Sequence[object]] = {
    "retrieve_fidelity": ("lossy", "native_fields", "full"),
    "search_fidelity": ("lossy", "native_fields", "full"),
    "search_consistency": ("eventual", "immediate"),
    "search_returns_tags": (False, True),
    "preserves_metadata": (False, True),
}
_DURABILITIES = ("", "volatile", "crash", "power")
_STATUSES = ("failed", "error", "not_staged", "passed")


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        run: Such as `redis-keyspace live`.
        kind: `weaker`: less is promised, or less of it proved. `gone`: a run that is not there any more.
        what: The manifest field, the case or another part of the report.
        old: What it was.
        new: What it is.
    """

    run: str
    kind: Kind
    what: str
    old: str
    new: str


def changes(old: Sequence[ConformanceReport], new: Sequence[ConformanceReport]) -> list[Change]:
    """Compare the reports of two results files, run by run.

    A run that could not be made is taken as one that is not there.
    """
    before, after = _by_run(old), _by_run(new)
    found: list[Change] = []
    for run in sorted({*before, *after}):
        if run not in after:
            found.append(Change(run, "gone", "run", before[run].score, _absent(run, new)))
        elif run not in before:
            found.append(Change(run, "new", "run", "-", after[run].score))
        else:
            found += _between(run, before[run], after[run])
    return found


def worse(found: Iterable[Change]) -> bool:
    """Whether less is promised or proved than before."""
    return any(change.kind in ("weaker", "gone") for change in found)


def _by_run(reports: Iterable[ConformanceReport]) -> dict[str, ConformanceReport]:
    return {_run(report): report for report in reports if not report.not_run}


def _run(report: ConformanceReport) -> str:
    return f"{report.label} {report.environment}"


def _absent(run: str, reports: Iterable[ConformanceReport]) -> str:
    return next((report.score for report in reports if _run(report) == run), "-")


def _between(run: str, old: ConformanceReport, new: ConformanceReport) -> Iterator[Change]:
    for what, before, after, kind in (
        *_manifests(old.manifest or {}, new.manifest or {}),
        *_ranked("durability", old.durability, new.durability, _DURABILITIES),
        *_sets("extension", old.extensions, new.extensions, more="stronger"),
        *_sets("loss", _losses(old), _losses(new), more="weaker"),
        *_ranked("certified", old.certified, new.certified, (False, True)),
        *_cases(old, new),
    ):
        yield Change(run, kind, what, before, after)


_Found = tuple[str, str, str, Kind]


def _manifests(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Found]:
    for field, order in _ORDERS.items():
        yield from _ranked(field, old.get(field), new.get(field), order)
    for field, more in (("supported_filters", "stronger"), ("dropped_item_fields", "weaker")):
        kind = cast("Kind", more)
        yield from _sets(field, old.get(field) or (), new.get(field) or (), more=kind)


def _ranked(what: str, old: Any, new: Any, order: Sequence[object]) -> Iterator[_Found]:
    """Compare two values of which one is the stronger; one that is not known is weaker than all."""
    before, after = (order.index(one) if one in order else -1 for one in (old, new))
    if before != after:
        yield what, _shown(old), _shown(new), "weaker" if after < before else "stronger"


def _sets(what: str, old: Iterable[str], new: Iterable[str], *, more: Kind) -> Iterator[_Found]:
    """Compare two sets of names, of which more are stronger or weaker."""
    before, after = set(old), set(new)
    less: Kind = "weaker" if more == "stronger" else "stronger"
    for name in sorted(before - after):
        yield f"{what} {name}", "yes", "no", less
    for name in sorted(after - before):
        yield f"{what} {name}", "no", "yes", more


def _losses(report: ConformanceReport) -> list[str]:
    return [f"{loss.name} ({loss.field}, {loss.operation})" for loss in report.losses]


def _cases(old: ConformanceReport, new: ConformanceReport) -> Iterator[_Found]:
    before, after = ({case.id: case for case in report.cases} for report in (old, new))
    for case_id in sorted({*before, *after}):
        yield from _case(before.get(case_id), after.get(case_id))


def _case(old: CaseResult | None, new: CaseResult | None) -> Iterator[_Found]:
    known = cast("CaseResult", old or new)
    what = f"{known.id} {known.name}"
    if old is None:
        yield what, "-", _status(new), "new"
    elif new is None:
        yield what, _status(old), "-", "gone"
    elif _rank(old) != _rank(new):
        yield what, _status(old), _status(new), "weaker" if _rank(new) < _rank(old) else "stronger"


def _rank(case: CaseResult) -> int:
    # a case that failed and one whose harness broke prove the same
    return max(_STATUSES.index(case.status), 1)


def _status(case: CaseResult | None) -> str:
    return "-" if case is None else case.status.replace("_", " ")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value else "-"


def inventories(reports: Iterable[ConformanceReport]) -> list[str]:
    """Give the digests of the inventories that the runs were made with."""
    return sorted({report.inventory_digest for report in reports if report.cases})
