"""A progress bar on stderr, for runs that take a while and somebody who watches."""

import sys
from threading import Lock, Timer
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ._case import Case
from .session import Target

PATIENCE_SECONDS = 2.0
"""A run that is shorter shows no bar."""


class LateProgress:
    """Call it before each case; the bar appears when the run has taken a while, and goes at the end."""

    def __init__(self, total: int | None) -> None:
        self._watched = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("", total=total)
        self._timer = Timer(PATIENCE_SECONDS, self._show)
        self._timer.daemon = True
        self._lock = Lock()
        self._ended = False
        self._begun = 0

    def __enter__(self) -> Self:
        if self._watched:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            # A bar that was never shown would still end its line.
            if self._bar.live.is_started:
                self._bar.stop()

    def __call__(self, target: Target, case: Case) -> None:
        """Show that a case begins."""
        self.step(f"{target.label} {target.environment} {case.label}")

    def step(self, text: str, *, begun: int | None = None, total: int | None = None) -> None:
        """Show that the next step begins; or how many have begun, and of how many."""
        self._begun = self._begun if begun is None else begun
        self._bar.update(self._task, description=text, completed=self._begun, total=total)
        self._begun += 1

    def _show(self) -> None:
        with self._lock:
            if not self._ended:
                self._bar.start()
