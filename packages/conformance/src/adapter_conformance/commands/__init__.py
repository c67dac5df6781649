"""The commands of `fidelity`, one module each."""

from .compare import compare
from .run import run

__all__ = ["compare", "run"]
