"""What a run shows: tables, and the same as JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from .bars import SQLITE, Bars, verdicts
from .measure import TASKS, Ratio, Series
from .operations import READS, RETRIEVE, STORE
from .run import Kind, Results

ORDER = (STORE, *READS)
ABSENT = "-"
LACKS = "none"
LOSES = "loses answers"


def show(console: Console, results: Results, bars: Bars = SQLITE) -> None:
    """Print all tables of one run."""
    for table in tables(results, bars):
        console.print(table)
        console.print()


def tables(results: Results, bars: Bars = SQLITE) -> Iterable[Table]:
    """Make all tables of one run."""
    yield _contenders(results)
    for size in results.plan.sizes:
        yield _latencies(results, size)
        yield _rates(results, size)
    if results.growth:
        yield _growth(results)
    if results.memory:
        yield _memory(results)
    yield _many(results)
    yield _codec(results)
    yield _verdicts(results, bars)


def _contenders(results: Results) -> Table:
    table = _table("Who takes part", "column", "is", "a write survives", "it indexes", left=4)
    for contender in results.contenders:
        indexes = contender.indexes
        if reason := results.not_run.get(contender.name):
            indexes = f"not run: {reason}"
        table.add_row(contender.name, contender.full_name, contender.durability, indexes)
    return table


def _latencies(results: Results, size: int) -> Table:
    title = f"{size:,} memories, 1 task: time of a call, and its ratio to raw (higher is slower)"
    return _calls(results, title, size, 1, "latency", _time)


def _rates(results: Results, size: int) -> Table:
    title = f"{size:,} memories, {TASKS} tasks: calls per second, and the ratio to raw (higher is faster)"
    return _calls(results, title, size, TASKS, "rate", _rate)


def _calls(results: Results, title: str, size: int, tasks: int, kind: Kind, absolute: Any) -> Table:
    names = [contender.name for contender in results.contenders]
    lacks = {contender.name: contender.lacks for contender in results.contenders}
    table = _table(title, "", *names)
    for operation in ORDER:
        series = results.calls.get((size, operation, tasks))
        if series is None:
            continue
        row = [operation.name]
        for name in names:
            ratio = results.ratio(size, operation, tasks, name, kind)
            if ratio is None and operation is RETRIEVE and tasks > 1 and name in results.losing:
                row.append(LOSES)
            elif ratio is None:
                row.append(LACKS if operation.method in lacks[name] else ABSENT)
            elif name == results.raw:
                row.append(absolute(series[name].median))
            else:
                row.append(f"{absolute(series[name].median)}  {_bold(ratio)}")
        table.add_row(*row)
    return table


def _growth(results: Results) -> Table:
    sizes = results.plan.sizes
    columns = [f"{size:,}" for size in sizes]
    title = "Growth: time of a call of 1 task, and its ratio to that at the smallest size"
    table = _table(title, "", "contender", *columns, left=2)
    for (operation, name), series in results.growth.items():
        first = series[sizes[0]]
        cells = [f"{_time(series[size].median)}  {_bold(series[size].over(first))}" for size in sizes[1:]]
        table.add_row(operation.name, name, _time(first.median), *cells)
    return table


def _memory(results: Results) -> Table:
    sizes = results.plan.sizes
    columns = [f"{size:,} memories" for size in sizes]
    table = _table("Memory of the server for one item", "contender", *columns)
    for contender in results.contenders:
        used = [results.memory.get((size, contender.name)) for size in sizes]
        table.add_row(contender.name, *(ABSENT if one is None else f"{one:,.0f} bytes" for one in used))
    return table


def _many(results: Results) -> Table:
    title = f"store_many of {results.plan.many:,} into an empty store, beside single stores of 1 task"
    table = _table(title, "contender", "single, items/s", "store_many, items/s", "gain", "beside raw")
    raw = results.many[results.raw]
    for name, series in results.many.items():
        single = results.singles[name]
        beside = raw.over(series)
        table.add_row(
            name, _rate(single.median), _rate(series.median), _bold(single.over(series)), _bold(beside)
        )
    return table


def _codec(results: Results) -> Table:
    table = _table("Core's own work for one item, which is part of raw too", "", "time")
    for name, seconds in results.codec.items():
        table.add_row(name, _time(seconds))
    return table


def _verdicts(results: Results, bars: Bars) -> Table:
    columns = [f"{size:,}" for size in results.plan.sizes]
    table = _table(
        "The bars: the median of the rounds, and the least and the most", "ours", "bar", *columns, left=2
    )
    rows: dict[tuple[str, str], dict[int | None, str]] = {}
    for verdict in verdicts(results, bars):
        cell = f"{_spread(verdict.measured)} {'[green]ok[/]  ' if verdict.holds else '[bold red]miss[/]'}"
        rows.setdefault((verdict.what, verdict.bar), {})[verdict.size] = cell
    for (what, bar), cells in rows.items():
        if None in cells:
            table.add_row(what, bar, *([""] * (len(columns) - 1)), cells[None])
        else:
            table.add_row(what, bar, *(cells.get(size, ABSENT) for size in results.plan.sizes))
    return table


def _table(title: str, *columns: str, left: int = 1) -> Table:
    table = Table(title=title, title_justify="left")
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < left else "right")
    return table


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def _rate(seconds: float) -> str:
    return f"{1 / seconds:,.0f}/s"


def _bold(ratio: Ratio) -> str:
    return f"[bold]{ratio.median:.2f}[/]"


def _spread(ratio: Ratio) -> str:
    return f"{ratio.median:.2f} [dim]({ratio.least:.2f}-{ratio.most:.2f})[/]"


def as_json(results: Results, bars: Bars = SQLITE) -> Mapping[str, Any]:
    """Give all that was measured: seconds per call of each round, and the verdicts."""
    return {
        "contenders": [
            {
                "name": one.name,
                "is": one.full_name,
                "role": one.role,
                "indexes": one.indexes,
                "durability": one.durability,
            }
            for one in results.contenders
        ],
        "calls": [
            {"size": size, "operation": operation.name, "tasks": tasks, "seconds": _seconds(series)}
            for (size, operation, tasks), series in results.calls.items()
        ],
        "growth": [
            {"operation": operation.name, "contender": name, "seconds": _seconds(series)}
            for (operation, name), series in results.growth.items()
        ],
        "single_stores": _seconds(results.singles),
        "store_many": {"items": results.plan.many, "seconds": _seconds(results.many)},
        "codec": results.codec,
        "memory": [
            {"size": size, "contender": name, "bytes": used} for (size, name), used in results.memory.items()
        ],
        "not_run": results.not_run,
        "loses_answers": sorted(results.losing),
        "bars": [asdict(verdict) for verdict in verdicts(results, bars)],
    }


def _seconds(series: Mapping[Any, Series]) -> Mapping[str, list[float]]:
    return {str(key): one.rounds for key, one in series.items()}
