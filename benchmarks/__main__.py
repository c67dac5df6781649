"""`python -m benchmarks [NAME ...]`: measure backends and print the tables."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from . import backends, machine, report
from .measure import FULL, QUICK
from .run import ContendersDiffer, Plan, Results, run

_WIDTH = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 whatever the times are, 1 if the contenders do not give the same."""
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    chosen = chain.from_iterable(map(backends.family, options.names or backends.names()))
    names = list(dict.fromkeys(chosen))
    measured: dict[str, Any] = {}
    for name in names:
        if reason := backends.not_run_reason(name):
            console.print(f"{name}: not run: {reason}")
            continue
        with TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
            versions: dict[str, str] = machine.versions() | backends.load(name).versions()
            load, flush = machine.load(), machine.flush_seconds(Path(folder))
            console.rule(name)
            console.print(", ".join(f"{what} {version}" for what, version in versions.items()))
            console.print(f"{load}; one flush to the disk takes {flush * 1e6:,.0f} µs\n")
            try:
                results = _run(name, _plan(options, backends.sizes(name)), Path(folder))
            except ContendersDiffer as error:
                console.print(f"[bold red]{error}[/]")
                return 1
        bars = backends.bars(name)
        report.show(console, results, bars)
        console.print(f"At the end: {machine.load()}")
        about: dict[str, Any] = {"versions": versions, "machine": load, "flush": flush}
        measured[name] = {**about, "at_the_end": machine.load(), **report.as_json(results, bars)}
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), "utf-8")
    return 0


def _run(name: str, plan: Plan, folder: Path) -> Results:
    with Console(stderr=True).status("") as status:
        return asyncio.run(run(backends.load(name).contenders, plan, folder, status.update))


def _plan(options: argparse.Namespace, own: Sequence[int] | None) -> Plan:
    sizes = options.sizes or own
    if options.quick:
        return Plan(sizes=sizes or (1_000,), effort=QUICK, many=1_000, singles=100, many_rounds=5)
    return Plan(sizes=sizes or Plan.sizes, effort=FULL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", choices=[[], *backends.names()], help="backends; default all"
    )
    parser.add_argument("--quick", action="store_true", help="1,000 memories, few calls")
    parser.add_argument("--sizes", type=int, nargs="+", help="how many memories, ascending")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all that was measured")
    parser.add_argument("--folder", type=Path, help="where the data goes; default: the temporary folder")
    return parser


if __name__ == "__main__":
    sys.exit(main())
