"""The commands of `fidelity`, one module each."""

from .check import check
from .compare import compare
from .preview import preview_file
from .run import run

__all__ = ["check", "compare", "preview_file", "run"]
