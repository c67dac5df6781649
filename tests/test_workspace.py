"""Rules that hold for every distribution of the workspace."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = sorted(
    path.parent for top in ("packages", "examples") for path in ROOT.glob(f"{top}/*/pyproject.toml")
)
LONGEST_MODULE = 400

# Each is split, so that this file does not contain what it looks for.
FORBIDDEN = [
    *("pypi" + ".org", "python" + "hosted.org", "npmjs" + ".org", "npmjs" + ".com"),
    *("crates" + ".io", "proxy.golang" + ".org"),
    # Absolute paths below a home, and where a checkout of one machine may stand.
    *(rf"(?<![\w.~$}}])/{name}/" for name in ("root", "home", "Users", "work")),
    r"\.py" + "env/",
]
# Packages that another one brings along and whose types are part of its own interface.
BROUGHT_BY = {"pydantic_core": "pydantic", "typing_extensions": "pydantic"}


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def import_name(folder: Path) -> str:
    return next(folder.glob("src/*/py.typed")).parent.name


def requirements(folder: Path) -> list[str]:
    """Those of the distribution and of all its extras."""
    declared = project(folder)
    return [*chain(declared["dependencies"], *declared.get("optional-dependencies", {}).values())]


def names(lines: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", line).group().lower() for line in lines}


def each_folder() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def tracked() -> list[Path]:
    """Files of the repository; in a copy without one, all that no tool has written."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in ROOT.rglob("*") if not hidden(path.relative_to(ROOT))]
    else:
        found = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in found if path.is_file()]


def hidden(path: Path) -> bool:
    written = {".git", ".nox", ".venv", "venv", "__pycache__", "dist", "reports", "htmlcov"}
    return any(part in written or part.endswith(("_cache", ".egg-info")) for part in path.parts)


def imported(package: Path) -> Iterator[str]:
    """Top-level names of everything that a package imports, at whatever depth."""
    for module in package.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_the_four_distributions_are_found() -> None:
    found = {project(folder)["name"] for folder in FOLDERS}
    assert found >= {"adapter-core", "adapter-sqlite", "adapter-conformance", "adapter-template"}


@each_folder()
def test_folder_is_complete(folder: Path) -> None:
    package = folder / "src" / project(folder)["name"].replace("-", "_")
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()
    assert (folder / "README.md").is_file()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@each_folder()
def test_metadata_agrees(folder: Path) -> None:
    declared, core = project(folder), project(ROOT / "packages/core")
    for key in ("version", "license", "requires-python"):
        assert declared[key] == core[key]


@each_folder()
def test_modules_are_short(folder: Path) -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in folder.glob("src/**/*.py")}
    assert {path: count for path, count in lines.items() if count > LONGEST_MODULE} == {}


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("packages/core", {"pydantic"}),
        ("packages/adapter-sqlite", {"adapter-core"}),
        ("packages/conformance", {"adapter-core", "hypothesis", "pydantic", "rich", "typer"}),
        ("examples/adapter-template", {"adapter-core"}),
    ],
)
def test_dependencies_are_as_stated(folder: str, expected: set[str]) -> None:
    assert names(project(ROOT / folder)["dependencies"]) == expected


@each_folder()
def test_of_the_workspace_only_core_is_required(folder: Path) -> None:
    declared = project(folder)
    workspace = {project(other)["name"] for other in FOLDERS}
    within = [line for line in requirements(folder) if names([line]) & workspace]
    major, minor = declared["version"].split(".")[:2]
    core = f"adapter-core>={major}.{minor},<{major}.{int(minor) + 1}"
    assert within == ([] if declared["name"] == "adapter-core" else [core])


@each_folder()
def test_imports_are_declared(folder: Path) -> None:
    own = {import_name(folder), *sys.stdlib_module_names}
    foreign = {BROUGHT_BY.get(name, name) for name in set(imported(folder / "src")) - own}
    assert foreign <= {name.replace("-", "_") for name in names(requirements(folder))}


def test_constraints_pin_every_line() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+( ; .+)?", line)] == []
    assert len({name for pin in pins for name in names([pin])}) == len(pins)


def test_no_file_names_a_registry_or_a_machine() -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    found = {}
    for path in tracked():
        if hits := pattern.findall(path.read_text("utf-8", errors="ignore")):
            found[str(path.relative_to(ROOT))] = hits
    assert found == {}
