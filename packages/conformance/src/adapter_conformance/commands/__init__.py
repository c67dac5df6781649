"""The commands of `fidelity`, one module each."""

from .check import check
from .compare import compare
from .copy import copy
from .ddl import ddl
from .diff import diff
from .differential import differential
from .preview import preview_file
from .proof import proof
from .require import require
from .run import run

__all__ = [
    "check",
    "compare",
    "copy",
    "ddl",
    "diff",
    "differential",
    "preview_file",
    "proof",
    "require",
    "run",
]
