"""What the signals that end a program do while there are containers."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

# By name: not every platform has all of them.
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def raised() -> Generator[None]:
    """Let every signal that ends the program raise, as Ctrl-C does, so that clean-up is done."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _handled([one for one in _ENDING if one is not signal.SIGINT], leave):
        yield


@contextmanager
def deferred() -> Generator[None]:
    """Hold the signals that end the program back until the end of the block."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    try:
        with _handled(_ENDING, note):
            yield
    finally:
        if came:
            signal.raise_signal(came[0])


@contextmanager
def _handled(signals: list[int], handler: Callable[[int, FrameType | None], None]) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = {one: signal.signal(one, handler) for one in signals}
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, signal.SIG_DFL if old is None else old)
