"""The backends that are measured: one module each, found by its name.

A module defines `contenders() -> list[Contender]`, one of them with the role `raw`, and
`versions() -> dict[str, str]`. It may define `BARS`, `SIZES` where other numbers of memories say
nothing, and `not_run_reason() -> str | None` where something may be missing that it measures.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from types import ModuleType

from benchmarks.bars import SQLITE, Bars


def names() -> list[str]:
    """Name the backends."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def family(name: str) -> list[str]:
    """Name what stands for a service: its backend, and those whose names go on behind it."""
    return [one for one in names() if one == name or one.startswith(f"{name}_")]


def load(name: str) -> ModuleType:
    """Import the module of a backend."""
    return importlib.import_module(f"{__name__}.{name}")


def bars(name: str) -> Bars:
    """Give what must hold on a backend."""
    return getattr(load(name), "BARS", SQLITE)


def sizes(name: str) -> Sequence[int] | None:
    """Give the numbers of memories that say something on a backend; None: all do."""
    return getattr(load(name), "SIZES", None)


def not_run_reason(name: str) -> str | None:
    """Say why a backend cannot be measured here; None if it can."""
    reason = getattr(load(name), "not_run_reason", None)
    return reason() if reason else None
