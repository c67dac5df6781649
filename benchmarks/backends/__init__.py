"""The backends that are measured: one module each, found by its name.

A module defines `contenders() -> list[Contender]`, one of them with the role `raw`, and
`versions() -> dict[str, str]`.
"""

import importlib
import pkgutil
from types import ModuleType


def names() -> list[str]:
    """Name the backends."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> ModuleType:
    """Import the module of a backend."""
    return importlib.import_module(f"{__name__}.{name}")
