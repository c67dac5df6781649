from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from adapter_core import MemoryAdapterError, _registry, open_store


class Recorder:
    """Stands where a store class stands."""

    @classmethod
    def from_url(cls, url, **options):
        return url, options


@pytest.fixture(name="installed", autouse=True)
def _installed(monkeypatch):
    """Two adapters are installed, one of which cannot be loaded."""

    def entry_points(*, group):
        assert group == "adapter_core.stores"
        names = ("qdrant+path", "sqlite", "sqlite")
        return [
            EntryPoint("broken", "no_such_module:Store", group),
            *(SimpleNamespace(name=name, load=lambda: Recorder) for name in names),
        ]

    monkeypatch.setattr(_registry, "entry_points", entry_points)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///relative.db",
        "sqlite:////absolute.db",
        "sqlite:///:memory:",
        "SQLite:///x",
        "qdrant+path:some/folder",
    ],
)
def test_the_scheme_finds_the_adapter_and_the_rest_is_its_own(url) -> None:
    assert open_store(url, filters=["k"]) == (url, {"filters": ["k"]})


def test_an_unknown_scheme_names_what_is_installed() -> None:
    with pytest.raises(
        MemoryAdapterError,
        match=r"no adapter for mysql: is installed \(installed: broken, qdrant\+path, sqlite\)",
    ):
        open_store("mysql://user:secret@host/secret")


def test_nothing_installed_is_said(monkeypatch) -> None:
    monkeypatch.setattr(_registry, "entry_points", lambda *, group: [])
    with pytest.raises(MemoryAdapterError, match="installed: none"):
        open_store("sqlite:///x")


@pytest.mark.parametrize(
    "url", ["", "secret", "/secret/file.db", "user@host:secret", ":secret", "1secret:x", "se cret://x"]
)
def test_what_has_no_scheme_is_refused_without_showing_it(url) -> None:
    with pytest.raises(MemoryAdapterError, match="begins with a scheme") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_an_unknown_url_is_not_shown() -> None:
    with pytest.raises(MemoryAdapterError) as caught:
        open_store("mysql://user:secret@host/secret")
    assert "secret" not in str(caught.value)
