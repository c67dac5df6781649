import itertools
import re
import signal
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from adapter_conformance import _containers, harness, live, session
from adapter_conformance._containers import NoContainer, Running
from adapter_conformance.cli import app
from adapter_conformance.document import reports_from_json
from adapter_conformance.inventory import MATRIX
from adapter_conformance.live import NotRun, Servers, needs_server, variable
from adapter_conformance.session import run_targets, target_of
from adapter_core import MemoryAdapterUnavailable
from adapter_core.testing import Container
from adapter_template.harness import TemplateHarness

IMAGE = "public/stub:1"
URL = "stub://u:sesame@127.0.0.1:1/db"

LIVE = """
from adapter_core.testing import Container
from adapter_template.harness import TemplateHarness

class Live(TemplateHarness):
    environment = "live"
    container = Container(image="public/stub:1", port=1, url="stub://{host}:{port}")

    def __init__(self, url):
        super().__init__()
        assert url

class Fake(TemplateHarness):
    pass

HARNESSES = (Fake, Live)
FAKES = (Fake,)
"""


class Live(TemplateHarness):
    environment = "live"
    service = "stub"
    container = Container(image=IMAGE, port=1, url="stub://{host}:{port}")
    error: Exception | None = None

    def __init__(self, url):
        super().__init__()
        self.url = url

    async def engine(self):
        if self.error:
            raise self.error
        return await super().engine()


class Silent(Live):
    error = OSError(f"cannot connect to {URL}")


class Docker:
    """Stands for `_containers.start`."""

    def __init__(self, why="", ended=""):
        self.why, self.ended = why, ended
        self.started, self.removed = [], []

    def __call__(self, container, image):
        self.started.append(image)
        if self.why:
            raise NoContainer(self.why)
        return Running(URL, f"{image} (sha256:1)", lambda: self.ended, lambda: self.removed.append(image))


def servers(docker, **environ):
    clock = itertools.count(step=live.START_SECONDS / 4)
    return Servers(environ=environ, start=docker, clock=lambda: next(clock), pause=lambda _: None)


def reason(found, of):
    with pytest.raises(NotRun) as caught:
        found.server_for("stub", of)
    assert "sesame" not in str(caught.value)
    return str(caught.value)


# The order of the providers


def test_variables_are_named_after_the_adapter_or_its_service() -> None:
    assert variable(object, "postgres", "URL") == "ADAPTER_POSTGRES_URL"
    assert variable(object, "my-store.2", "IMAGE") == "ADAPTER_MY_STORE_2_IMAGE"
    assert variable(Live, "stub-lossy", "URL") == "ADAPTER_STUB_URL"


def test_given_url_comes_first_and_starts_nothing() -> None:
    docker = Docker()
    found = servers(docker, ADAPTER_STUB_URL="stub://given", ADAPTER_STUB_IMAGE="other:2")
    server = found.server_for("stub", Live)
    assert (server.url, server.image, docker.started) == ("stub://given", "", [])


@pytest.mark.parametrize(
    ("environ", "image"),
    [
        ({}, IMAGE),
        ({"ADAPTER_STUB_URL": "", "ADAPTER_STUB_IMAGE": ""}, IMAGE),
        ({"ADAPTER_STUB_IMAGE": "other:2"}, "other:2"),
        ({"ADAPTER_OTHER_URL": "stub://given"}, IMAGE),
    ],
)
def test_container_comes_second_with_the_image_that_is_given(environ, image) -> None:
    docker = Docker()
    server = servers(docker, **environ).server_for("stub", Live)
    assert (server.url, server.image, docker.started) == (URL, f"{image} (sha256:1)", [image])
    assert "sesame" not in repr(server)


def test_harness_without_a_container_needs_a_url() -> None:
    class Hosted(Live):
        container = None

    docker = Docker()
    assert reason(servers(docker), Hosted) == "ADAPTER_STUB_URL is not given"
    assert servers(docker, ADAPTER_STUB_URL=URL).server_for("stub", Hosted).url == URL
    assert docker.started == []


def test_other_harnesses_are_made_without_a_server() -> None:
    class Old(TemplateHarness):
        environment = "live"

    assert needs_server(Live)
    assert not needs_server(Old)
    assert not needs_server(TemplateHarness)


# Why there is none


def test_server_of_the_url_that_does_not_answer_is_named_by_its_variable() -> None:
    found = servers(Docker(), ADAPTER_STUB_URL=URL)
    assert reason(found, Silent) == "the server of ADAPTER_STUB_URL does not answer (OSError)"


def test_words_of_our_own_errors_are_kept() -> None:
    class Locked(Live):
        error = MemoryAdapterUnavailable("the password is wrong")

    found = servers(Docker(), ADAPTER_STUB_URL=URL)
    assert "does not answer (the password is wrong)" in reason(found, Locked)


def test_server_that_hangs_is_given_up(monkeypatch) -> None:
    class Hanging(Live):
        async def engine(self):
            await live.asyncio.Event().wait()

    monkeypatch.setattr(live, "ATTEMPT_SECONDS", 0.0)
    assert "does not answer (TimeoutError)" in reason(servers(Docker(), ADAPTER_STUB_URL=URL), Hanging)


def test_fault_of_the_harness_is_not_blamed_on_the_server(monkeypatch) -> None:
    class Broken(Live):
        error = AttributeError("no such method")

    docker = Docker()
    monkeypatch.setattr(session, "Servers", partial(Servers, environ={}, start=docker))
    found = run_targets([target_of("stub", Broken)])
    assert found.reports == []
    (fault,) = found.faults
    assert str(fault).startswith("stub live: AttributeError (test_live.py, line ")
    assert docker.removed == [IMAGE]


@pytest.mark.parametrize("why", ["no Docker engine answers", "image public/stub:1 unavailable: pull failed"])
def test_no_container_is_told_and_tried_once(why) -> None:
    docker = Docker(why)
    found = servers(docker)
    assert [reason(found, Live), reason(found, Live)] == [why, why]
    assert docker.started == [IMAGE]


def test_container_that_never_answers_is_given_up_and_removed() -> None:
    docker = Docker()
    with servers(docker) as found:
        assert reason(found, Silent) == "public/stub:1 did not answer within 120 s (OSError)"
    assert docker.removed == [IMAGE]


def test_container_that_ended_is_not_waited_for() -> None:
    docker = Docker(ended="it ended with exit code 1")
    found = reason(servers(docker), Silent)
    assert found == "the container of public/stub:1 is of no use: it ended with exit code 1"


def test_service_that_needs_a_while_is_asked_again() -> None:
    class Slow(Live):
        asked = 0

        async def engine(self):
            Slow.asked += 1
            if Slow.asked < 3:
                raise OSError
            return await TemplateHarness.engine(self)

    assert servers(Docker()).server_for("stub", Slow).url == URL
    assert Slow.asked == 3


def test_bounds_are_those_of_the_document() -> None:
    document = Path(__file__, "../../../../docs/live.md").resolve().read_text("utf-8")
    (sentence,) = [part for part in document.split("\n\n") if part.startswith("Nothing waits without end")]
    bounds = (_containers.PULL_SECONDS, live.START_SECONDS, live.ATTEMPT_SECONDS)
    assert re.findall(r"(\d+) s\b", sentence) == [f"{bound:.0f}" for bound in bounds]


# One container for all, and none at the end


def test_container_is_started_once_and_removed_at_the_end() -> None:
    class Variant(Live):
        pass

    docker = Docker()
    with servers(docker) as found:
        assert found.server_for("stub", Live) is found.server_for("stub-variant", Variant)
        assert docker.removed == []
    assert (docker.started, docker.removed) == ([IMAGE], [IMAGE])
    found.close()
    assert docker.removed == [IMAGE]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_container_is_removed_however_the_session_ends(ending, monkeypatch) -> None:
    docker = Docker()
    monkeypatch.setattr(session, "Servers", partial(Servers, environ={}, start=docker))

    def begin(*_):
        assert docker.removed == []
        raise ending

    try:
        run_targets([target_of("stub", Live)], progress=begin)
    except (KeyboardInterrupt, SystemExit):
        assert ending is not RuntimeError
    assert docker.removed == [IMAGE]


def test_container_that_cannot_be_removed_is_told_and_costs_no_results() -> None:
    def remove():
        raise OSError("sesame")

    told = []
    found = Servers(environ={}, start=lambda *_: Running(URL, IMAGE, str, remove), tell=told.append)
    with found:
        found.server_for("stub", Live)
    assert told == [
        "stub live: starting a container of public/stub:1",
        "a container of public/stub:1 could not be removed: OSError",
    ]


def test_signal_that_ends_the_program_removes_the_container_first() -> None:
    docker = Docker()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as caught, servers(docker) as found:  # noqa: PT012
        found.server_for("stub", Live)
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 128 + signal.SIGTERM
    assert docker.removed == [IMAGE]
    assert signal.getsignal(signal.SIGTERM) is before


def test_interruption_waits_for_the_removal() -> None:
    removed = []

    def remove():
        signal.raise_signal(signal.SIGINT)
        removed.append(IMAGE)

    found = Servers(environ={}, start=lambda *_: Running(URL, IMAGE, str, remove))
    found.server_for("stub", Live)
    with pytest.raises(KeyboardInterrupt):
        found.close()
    assert removed == [IMAGE]


def test_other_thread_has_its_containers_removed_too() -> None:
    docker = Docker()

    def use():
        with servers(docker) as found:
            found.server_for("stub", Live)

    thread = Thread(target=use)
    thread.start()
    thread.join(timeout=10)
    assert docker.removed == [IMAGE]


def test_harness_that_cannot_name_its_engine_is_not_asked() -> None:
    class Mute(Live):
        engine = None

    assert servers(Docker(), ADAPTER_STUB_URL=URL).server_for("stub", Mute).url == URL


# Reports and the command


def test_report_has_the_image_and_the_cases_share_the_server(monkeypatch) -> None:
    docker = Docker()
    monkeypatch.setattr(session, "Servers", partial(Servers, environ={}, start=docker))
    (report,) = run_targets([target_of("template", Live)], cases=MATRIX[:4]).reports
    assert (report.environment, report.image) == ("live", f"{IMAGE} (sha256:1)")
    assert [case.status for case in report.cases] == ["passed"] * 4
    assert docker.started == [IMAGE]


def made(group):
    return [entry for entry in entry_points(group=group) if entry.value.startswith("made_")]


@pytest.fixture
def fidelity(install, monkeypatch):
    """Run the command over `other` and `template-live`, which have a live harness, and `plain`."""
    install("template-live", LIVE)
    install("plain", LIVE, "FAKES")
    install("other", LIVE)
    # Others may be installed beside them, whose services nobody asked for.
    monkeypatch.setattr(harness, "entry_points", made)

    def run(*arguments, docker=None, **environ):
        start = docker or Docker("no Docker engine answers")
        monkeypatch.setattr(session, "Servers", partial(Servers, environ=environ, start=start))
        return CliRunner().invoke(
            app, ["run", "--environment", "live", "--case", "C02", *arguments], catch_exceptions=False
        )

    return run


URLS = {"ADAPTER_TEMPLATE_LIVE_URL": "stub://one"}


def test_nothing_ran_is_three_and_a_line_each(fidelity) -> None:
    found = fidelity()
    assert found.exit_code == 3
    assert found.stdout.splitlines() == [
        "other          live  not run: no Docker engine answers",
        "template-live  live  not run: no Docker engine answers",
    ]


def test_nothing_need_run_where_nothing_is_required(fidelity) -> None:
    assert fidelity("--require", "none").exit_code == 0
    assert fidelity("other", "--require", "none").exit_code == 3


def test_one_of_them_is_enough_unless_all_are_required(fidelity) -> None:
    found = fidelity(**URLS)
    assert (found.exit_code, "Required" in found.stderr) == (0, False)
    found = fidelity("--require", "all", **URLS)
    assert found.exit_code == 3
    assert found.stderr.splitlines()[-1] == "Required, but not run: other live."
    assert fidelity("--require", "all", docker=Docker()).exit_code == 0


def test_backend_that_is_named_must_run(fidelity) -> None:
    assert fidelity("template-live", **URLS).exit_code == 0
    found = fidelity("template-live", "other", **URLS)
    assert found.exit_code == 3
    assert found.stderr.splitlines()[-1] == "Required, but not run: other live."


def test_backend_without_a_live_harness_that_is_named_did_not_run(fidelity) -> None:
    found = fidelity("template-live", "plain", **URLS)
    assert found.exit_code == 3
    assert "plain          live  not run: it has no live harness" in found.stdout
    assert fidelity("--require", "all", docker=Docker()).exit_code == 0


def test_false_claim_weighs_more_than_a_backend_that_is_missing(fidelity, install) -> None:
    install("broken", LIVE.replace("assert url", "self.reset = lambda: 1 / 0", 1))
    found = fidelity("broken", "other", ADAPTER_BROKEN_URL="stub://one")
    assert found.exit_code == 1
    assert "broken  live  dict" in found.stdout
    assert found.stderr.splitlines()[-1] == "Required, but not run: other live."


def test_start_of_a_container_is_told_beside_the_results(fidelity, tmp_path) -> None:
    file = tmp_path / "results.json"
    found = fidelity("other", "--output", str(file), docker=Docker())
    assert found.exit_code == 0
    assert found.stderr.splitlines()[0] == "other live: starting a container of public/stub:1"
    assert found.stderr.splitlines()[-1] == f"Results: {file}"
    assert f"image    {IMAGE} (sha256:1)" in found.stdout
    (report,) = reports_from_json(file.read_text("utf-8"))
    assert report.image == f"{IMAGE} (sha256:1)"
