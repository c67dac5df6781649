"""The commands of `fidelity`, one module each."""

from .check import check
from .compare import compare
from .ddl import ddl
from .preview import preview_file
from .run import run

__all__ = ["check", "compare", "ddl", "preview_file", "run"]
