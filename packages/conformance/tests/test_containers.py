"""What is asked of testcontainers and Docker; both are stood for by small doubles."""

import signal
import sys
from threading import Event
from types import ModuleType, SimpleNamespace

import pytest

from adapter_conformance import _containers
from adapter_conformance._containers import NoContainer, start
from adapter_core.testing import Container

SERVICE = Container(
    image="public/stub:1",
    port=5432,
    url="stub://u:{password}@{host}:{port}/db",
    env={"STUB_PASSWORD": "{password}", "STUB_DB": "db"},
    command="serve --secret {password}",
)


class DockerException(Exception):
    pass


class ImageNotFound(DockerException):
    pass


class NotFound(DockerException):
    pass


class Engine:
    """Docker, with the images that it has and those that it could pull."""

    def __init__(self):
        self.images = {"public/stub:1": ["public/stub@sha256:abc"]}
        self.registry = {}
        self.pull_ends = Event()
        self.pull_ends.set()
        self.containers = {}
        self.start_error = None
        self.up = True
        self.host, self.mode = "localhost", "docker_host"
        self.settings = SimpleNamespace(ryuk_image="public/reaper:1", ryuk_disabled=True)
        self.state = "running"
        self.closed = False
        self.pulled = []

    def get(self, image):
        if image not in self.images:
            raise ImageNotFound(image)

    def pull(self, image):
        self.pulled.append(image)
        self.pull_ends.wait(timeout=10)
        if image not in self.registry:
            raise DockerException("registry says no")
        self.images[image] = self.registry[image]

    def remove_container(self, name, *, force, v):
        assert (force, v) == (True, True)
        if name not in self.containers:
            raise NotFound(name)
        del self.containers[name]

    def close(self):
        self.closed = True


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()

    class DockerContainer:
        def __init__(self, image, *, name, env, command):
            if not engine.up:
                raise DockerException("connection refused")
            self.image, self.name, self.env, self.command = image, name, env, command
            self.ports = {}

        def get_docker_client(self):
            images = SimpleNamespace(get=engine.get, pull=engine.pull)
            api = SimpleNamespace(remove_container=engine.remove_container)
            client = SimpleNamespace(images=images, api=api, close=engine.close)
            mode = SimpleNamespace(value=engine.mode)
            return SimpleNamespace(client=client, host=lambda: engine.host, get_connection_mode=lambda: mode)

        def start(self):
            engine.containers[self.name] = self
            if engine.start_error:
                raise engine.start_error

        def get_container_host_ip(self):
            return engine.host

        def get_exposed_port(self, port):
            assert port == 5432
            return 49152

        def get_wrapped_container(self):
            attrs = {"RepoDigests": engine.images[self.image]}
            image = SimpleNamespace(attrs=attrs, id="sha256:local")
            state = {"State": {"ExitCode": 3}}
            return SimpleNamespace(image=image, reload=lambda: None, status=engine.state, attrs=state)

    modules = {
        "testcontainers.core.container": {"DockerContainer": DockerContainer},
        "testcontainers.core.config": {"testcontainers_config": engine.settings},
        "docker.errors": {
            "DockerException": DockerException,
            "ImageNotFound": ImageNotFound,
            "NotFound": NotFound,
        },
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return engine


def reason(image=SERVICE.image):
    with pytest.raises(NoContainer) as caught:
        start(SERVICE, image)
    return str(caught.value)


def test_container_gets_one_drawn_password_wherever_it_is_named(engine) -> None:
    running = start(SERVICE, SERVICE.image)
    (container,) = engine.containers.values()
    password = container.env["STUB_PASSWORD"]
    assert len(password) == 32
    assert container.env["STUB_DB"] == "db"
    assert container.command == f"serve --secret {password}"
    assert running.url == f"stub://u:{password}@127.0.0.1:49152/db"
    assert start(SERVICE, SERVICE.image).url != running.url


def test_no_command_leaves_that_of_the_image(engine) -> None:
    start(Container(image="public/stub:1", port=5432, url=""), "public/stub:1")
    (container,) = engine.containers.values()
    assert container.command is None


@pytest.mark.parametrize(
    ("mode", "host", "bound"),
    [
        ("docker_host", "localhost", ("127.0.0.1",)),
        ("docker_host", "build.example", None),
        ("gateway_ip", "localhost", None),
    ],
)
def test_port_is_open_to_this_machine_alone_where_that_is_enough(engine, mode, host, bound) -> None:
    engine.mode, engine.host = mode, host
    start(SERVICE, SERVICE.image)
    (container,) = engine.containers.values()
    assert container.ports == {"5432": bound}


def test_image_is_named_with_its_digest_or_its_local_id(engine) -> None:
    engine.images["local/stub:2"] = []
    assert start(SERVICE, SERVICE.image).image == "public/stub:1 (sha256:abc)"
    assert start(SERVICE, "local/stub:2").image == "local/stub:2 (sha256:local)"
    assert engine.pulled == []


def test_image_that_is_not_here_is_pulled(engine) -> None:
    engine.registry["public/stub:3"] = ["public/stub@sha256:def"]
    assert start(SERVICE, "public/stub:3").image == "public/stub:3 (sha256:def)"


def test_image_that_cannot_be_pulled(engine) -> None:
    assert reason("public/stub:4") == "image public/stub:4 unavailable: it is not here and cannot be pulled"
    assert (engine.containers, engine.closed) == ({}, True)


def test_pull_that_hangs_is_given_up(engine, monkeypatch) -> None:
    monkeypatch.setattr(_containers, "PULL_SECONDS", 0.0)
    engine.pull_ends.clear()
    try:
        assert reason("public/stub:4") == "image public/stub:4 unavailable: not pulled within 0 s"
    finally:
        engine.pull_ends.set()


def test_image_of_the_reaper_is_fetched_within_the_same_bound(engine) -> None:
    engine.settings.ryuk_disabled = False
    assert reason().startswith("image public/reaper:1 unavailable: ")
    engine.registry["public/reaper:1"] = []
    start(SERVICE, SERVICE.image)


def test_no_engine_answers(engine) -> None:
    engine.up = False
    assert reason() == "no Docker engine answers"


def test_testcontainers_is_not_installed(engine, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "testcontainers.core.container", None)
    assert reason() == "testcontainers is not installed (adapter-conformance[live])"


def test_container_that_does_not_start_is_removed(engine) -> None:
    engine.start_error = DockerException("port is taken")
    assert reason() == "a container of public/stub:1 does not start (DockerException)"
    assert (engine.containers, engine.closed) == ({}, True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_container_is_removed_whatever_stops_the_start(engine, error) -> None:
    engine.start_error = error()
    with pytest.raises(error):
        start(SERVICE, SERVICE.image)
    assert engine.containers == {}


def test_interruption_while_it_is_made_waits_until_it_can_be_removed(engine) -> None:
    class Interrupts(dict):
        def __setitem__(self, name, container):
            signal.raise_signal(signal.SIGINT)
            super().__setitem__(name, container)

    engine.containers = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        start(SERVICE, SERVICE.image)
    assert engine.containers == {}


def test_removing_twice_does_no_harm(engine) -> None:
    running = start(SERVICE, SERVICE.image)
    running.remove()
    running.remove()
    assert engine.containers == {}


@pytest.mark.parametrize(
    ("state", "told"), [("running", ""), ("created", ""), ("exited", "it ended with exit code 3")]
)
def test_end_of_the_container_is_seen(engine, state, told) -> None:
    engine.state = state
    assert start(SERVICE, SERVICE.image).ended() == told
