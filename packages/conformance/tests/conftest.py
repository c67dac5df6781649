import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install an adapter's harnesses: a module, and a distribution that names it by entry point."""

    def install(name: str, source: str, harnesses: str = "HARNESSES") -> None:
        module = f"made_{name.replace('-', '_')}"
        home = tmp_path / "site"
        (home / f"{module}.dist-info").mkdir(parents=True)
        (home / f"{module}.py").write_text(source, "utf-8")
        (home / f"{module}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", "utf-8"
        )
        (home / f"{module}.dist-info" / "entry_points.txt").write_text(
            f"[adapter_conformance.harnesses]\n{name} = {module}:{harnesses}\n", "utf-8"
        )
        monkeypatch.syspath_prepend(home)
        monkeypatch.setenv("PYTHONPATH", str(home))
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install
