"""Servers for the harnesses of live services: given by URL, else in a container, else none.

A live harness class that has the attribute `container` is made with the URL of a server. The
attribute is a `adapter_core.testing.Container`, or None where only a URL will do.
"""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Self

from adapter_core import MemoryAdapterError
from adapter_core.testing import Container

from ._containers import NoContainer, Running, start
from ._signals import deferred, raised

START_SECONDS = 120.0
"""How long a service may take from the start of its container to its first answer."""

ATTEMPT_SECONDS = 15.0
"""How long one question to a server may take."""

_PAUSE_SECONDS = 0.2
_BROKEN = (AssertionError, AttributeError, ImportError, NameError, TypeError)


class NotRun(Exception):
    """Why a harness cannot run here, in a few words and without secrets."""


@dataclass(frozen=True)
class Server:
    """A server that answers.

    Attributes:
        url: May hold a password.
        image: Of its container, by name and digest; empty if the user gave the URL.
    """

    url: str
    image: str = ""

    def __repr__(self) -> str:
        return f"Server(image={self.image!r})"


def needs_server(harness: Any) -> bool:
    """Whether a harness class is made with the URL of a server."""
    return getattr(harness, "environment", "") == "live" and hasattr(harness, "container")


def variable(harness: Any, adapter: str, what: str) -> str:
    """Name the environment variable of a harness class, such as `ADAPTER_POSTGRES_URL`.

    Variants that run on one service share its variables by an attribute `service`.
    """
    service: str = getattr(harness, "service", adapter)
    return f"ADAPTER_{re.sub(r'[^A-Za-z0-9]', '_', service).upper()}_{what}"


class Servers:
    """The servers of one session: each is found or started once, and all are removed at the end.

    Args:
        environ: Where the URLs and images are given.
        start: Starts a container.
        tell: Told in one line when a container is started.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        start: Callable[[Container, str], Running] = start,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._environ = environ
        self._start = start
        self._tell = tell
        self._clock = clock
        self._pause = pause
        self._found: dict[tuple[str, str], Server | NotRun] = {}
        self._containers = ExitStack()
        self._signals = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove every container."""
        self._found.clear()
        with self._signals.pop_all(), deferred():
            self._containers.close()

    def server_for(self, adapter: str, harness: Any) -> Server:
        """Give the server of a harness class.

        Raises:
            NotRun: There is none.
        """
        url_variable = variable(harness, adapter, "URL")
        container: Container | None = harness.container
        given = self._environ.get(variable(harness, adapter, "IMAGE"))
        image = given or (container.image if container else "")
        if (url_variable, image) not in self._found:
            try:
                if url := self._environ.get(url_variable):
                    found: Server | NotRun = _given(harness, url, url_variable)
                elif container is None:
                    found = NotRun(f"{url_variable} is not given")
                else:
                    self._tell(f"{adapter} live: starting a container of {image}")
                    found = self._started(harness, container, image)
            except NotRun as why:
                found = why
            self._found[url_variable, image] = found
        server = self._found[url_variable, image]
        if isinstance(server, NotRun):
            raise NotRun(str(server))
        return server

    def _started(self, harness: Any, container: Container, image: str) -> Server:
        self._signals.enter_context(raised())
        try:
            running = self._start(container, image)
        except NoContainer as why:
            raise NotRun(str(why)) from why
        self._containers.callback(self._remove, running)
        deadline = self._clock() + START_SECONDS
        while True:
            try:
                _ask(harness, running.url)
            except NotRun as why:
                if ended := running.ended():
                    raise NotRun(f"the container of {image} is of no use: {ended}") from why
                if self._clock() > deadline:
                    raise NotRun(f"{image} did not answer within {START_SECONDS:.0f} s ({why})") from why
            else:
                return Server(running.url, running.image)
            self._pause(_PAUSE_SECONDS)

    def _remove(self, running: Running) -> None:
        try:
            running.remove()
        except Exception as error:  # noqa: BLE001 - the results are worth more
            self._tell(f"a container of {running.image} could not be removed: {_said(error)}")


def _given(harness: Any, url: str, url_variable: str) -> Server:
    try:
        _ask(harness, url)
    except NotRun as why:
        raise NotRun(f"the server of {url_variable} does not answer ({why})") from why
    return Server(url)


def _ask(harness: Any, url: str) -> None:
    """Ask a server for its version, on an event loop of its own; an error is told without secrets.

    Raises:
        NotRun: It gave none.
    """
    try:
        # With a factory the runner leaves the thread's current loop alone.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(_engine(harness, url))
    except _BROKEN:
        raise
    except Exception as error:
        raise NotRun(_said(error)) from error


def _said(error: BaseException) -> str:
    """Name an error; only the words of our own errors are known to hold no secret."""
    return str(error) if isinstance(error, MemoryAdapterError) else type(error).__name__


async def _engine(harness: Any, url: str) -> None:
    made = harness(url)
    engine: Callable[[], Awaitable[Any]] | None = getattr(made, "engine", None)
    try:
        if engine is not None:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                await engine()
    finally:
        # What the server said counts, not that nothing was there to be reclaimed.
        with suppress(Exception):
            await made.close()
