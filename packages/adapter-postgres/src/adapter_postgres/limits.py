"""Bounds on time and on number that cost a call next to nothing."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Watch(Generic[T]):
    """Ends what takes too long.

    All that it watches may take equally long, so that what began first is due first, and one timer of
    the event loop serves for all. It is not set anew for each: it looks when the first that it was set
    for is due, and then waits for the one that is due next.

    Args:
        seconds: How long each may take.
        end: Called, once, with what took longer.
    """

    def __init__(self, seconds: float, end: Callable[[T], object]) -> None:
        self._seconds = seconds
        self._end = end
        self._due: dict[T, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, what: T) -> None:
        """Watch something from now on."""
        loop = asyncio.get_running_loop()
        self._due[what] = due = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(due, self._look)

    def leave(self, what: T) -> None:
        """Watch it no longer, if it is still watched."""
        self._due.pop(what, None)

    def stop(self) -> None:
        """Leave no timer behind; nothing is watched at the moment."""
        if self._timer is not None and not self._due:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for what, due in list(self._due.items()):
            if due > now:
                self._timer = loop.call_at(due, self._look)
                return
            del self._due[what]
            self._end(what)


class Gate:
    """Lets so many in at once; the others wait in line, and not for ever.

    Args:
        places: How many.
        seconds: How long one may wait.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self._free = places
        self._line: deque[asyncio.Future[None]] = deque()
        self._watch: Watch[asyncio.Future[None]] = Watch(seconds, _time_out)

    async def enter(self) -> None:
        """Take a place, in the order of asking.

        Raises:
            TimeoutError: None became free in time.
        """
        if self._free:  # then nobody stands in line
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._line.append(waiter)
        self._watch.begin(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self._line:
                self._line.remove(waiter)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave()  # the caller was cancelled when it had just been given a place
            raise
        finally:
            self._watch.leave(waiter)

    def leave(self) -> None:
        """Give a place back: to the first in line."""
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

    def stop(self) -> None:
        """Leave no timer behind."""
        self._watch.stop()


def _time_out(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
