"""One service in a container, by testcontainers. The only module that speaks to Docker."""

import secrets
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import Any

from adapter_core.testing import Container

from ._signals import deferred

PULL_SECONDS = 300.0
"""How long the download of one image may take."""

_LOCAL = ("localhost", "127.0.0.1")


class NoContainer(Exception):
    """Why there is no container, in a few words and without secrets."""


@dataclass(frozen=True)
class Running:
    """A container that runs; its service may not answer yet.

    Attributes:
        url: Where it will answer, with the password.
        image: The image by name and digest.
        ended: Says how the container ended, if it has ended.
        remove: Removes it; once more does no harm.
    """

    url: str
    image: str
    ended: Callable[[], str]
    remove: Callable[[], None]


def start(container: Container, image: str) -> Running:
    """Start a container, and leave nothing behind if that fails or is interrupted.

    Raises:
        NoContainer: Docker does not answer, the image cannot be had, or it does not start.
    """
    try:
        # By name: both are optional, and Docker's client has no types.
        library, config = (import_module(f"testcontainers.core.{name}") for name in ("container", "config"))
        errors: Any = import_module("docker.errors")
    except ImportError as error:
        raise NoContainer("testcontainers is not installed (adapter-conformance[live])") from error
    settings: Any = config.testcontainers_config
    password = secrets.token_hex(16)
    # Named, so that one which was made and did not start can be found and removed.
    name = f"adapter-live-{secrets.token_hex(6)}"
    try:
        made: Any = library.DockerContainer(
            image,
            name=name,
            env={key: value.replace("{password}", password) for key, value in container.env.items()},
            command=container.command.replace("{password}", password) or None,
        )
    except (errors.DockerException, OSError) as error:
        raise NoContainer("no Docker engine answers") from error
    client: Any = made.get_docker_client()
    # On this machine nobody else needs to reach the service.
    local = client.get_connection_mode().value == "docker_host" and client.host() in _LOCAL
    made.ports[str(container.port)] = ("127.0.0.1",) if local else None

    def remove() -> None:
        with closing(client.client), suppress(errors.NotFound):
            client.client.api.remove_container(name, force=True, v=True)

    with _removed_on_failure(remove):
        # Fetched here and not by testcontainers, which would wait without end.
        if not settings.ryuk_disabled:
            _fetch(client.client, settings.ryuk_image, errors)
        _fetch(client.client, made.image, errors)
        try:
            # Interrupted, the engine would make the container after nobody waits for it.
            with deferred():
                made.start()
            host, port = made.get_container_host_ip(), made.get_exposed_port(container.port)
        except (errors.DockerException, OSError, RuntimeError, StopIteration) as error:
            raise NoContainer(f"a container of {image} does not start ({type(error).__name__})") from error
        inside: Any = made.get_wrapped_container()
        where = container.url.replace("{host}", "127.0.0.1" if host in _LOCAL else host)
        return Running(
            url=where.replace("{port}", str(port)).replace("{password}", password),
            image=_with_digest(made.image, inside.image),
            ended=lambda: _end(inside),
            remove=remove,
        )


@contextmanager
def _removed_on_failure(remove: Callable[[], None]) -> Generator[None]:
    try:
        yield
    except BaseException:
        remove()
        raise


def _fetch(client: Any, image: str, errors: Any) -> None:
    """Pull an image that is not here, within a time that is bounded."""
    with suppress(errors.ImageNotFound):
        client.images.get(image)
        return
    failures: list[BaseException] = []

    def pull() -> None:
        try:
            client.images.pull(image)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no image
            failures.append(error)

    # The client offers no limit; a daemon does not hold up the end of the program.
    thread = Thread(target=pull, daemon=True)
    thread.start()
    thread.join(PULL_SECONDS)
    if thread.is_alive():
        raise NoContainer(f"image {image} unavailable: not pulled within {PULL_SECONDS:.0f} s")
    if failures:
        raise NoContainer(f"image {image} unavailable: it is not here and cannot be pulled") from failures[0]


def _with_digest(name: str, image: Any) -> str:
    """Name an image with the registry's digest, or its local id if it never was in a registry."""
    digests: list[str] = image.attrs.get("RepoDigests") or []
    return f"{name} ({digests[0].partition('@')[2] if digests else image.id})"


def _end(container: Any) -> str:
    container.reload()
    if container.status in ("created", "running", "restarting"):
        return ""
    return f"it ended with exit code {container.attrs['State']['ExitCode']}"
