"""The store behind pgbouncer in transaction mode, where each statement may meet another server process.

It needs the program `pgbouncer` on the PATH, and the embedded server.
"""

import asyncio
import os
import pwd
import secrets
import select
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from adapter_core import MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore, PostgresSettings, embedded

SERVER_CONNECTIONS = 2
CALLS = 20
START_SECONDS = 10.0

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {size}
log_connections = 0
log_disconnections = 0
"""


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def pooled_url() -> Iterator[str]:
    """Start pgbouncer before the embedded server, and give the address through it."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("there is no pgbouncer on the PATH")
    if reason := embedded.not_run_reason():
        pytest.skip(reason)
    server = urlsplit(embedded.shared_server().url())
    folder = Path(tempfile.mkdtemp(prefix="adapter-postgres-pgbouncer-"))
    try:
        port = free_port()
        users = folder / "users"
        users.write_text(f'"{server.username}" "{server.password}"\n')
        text = CONFIGURATION.format(server=server.port, port=port, users=users, size=SERVER_CONNECTIONS)
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(text)
        account = {}
        if os.geteuid() == 0:  # which pgbouncer refuses to run as
            nobody = pwd.getpwnam("nobody")
            account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path in (folder, users, configuration):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        process = subprocess.Popen([program, configuration], stderr=subprocess.PIPE, **account)
        try:
            wait_until_up(process)
            credentials = f"{server.username}:{server.password}"
            yield f"postgresql://{credentials}@127.0.0.1:{port}{server.path}"
        finally:
            process.terminate()
            process.communicate(timeout=START_SECONDS)
    finally:
        shutil.rmtree(folder)


def wait_until_up(process: subprocess.Popen[bytes]) -> None:
    """Read the log until it says that the port is open."""
    log = b""
    while select.select([process.stderr], [], [], START_SECONDS)[0]:
        # past the buffer of the file, of which select knows nothing
        said = os.read(process.stderr.fileno(), 4096)
        log += said
        if b"process up" in log:
            return
        if not said:
            break
    pytest.fail(f"pgbouncer does not start: {log.decode()}")


@pytest.mark.parametrize("coalesce", [True, False])
async def test_concurrent_calls_share_two_server_connections(pooled_url, coalesce) -> None:
    settings = PostgresSettings(schema=f"pooled_{secrets.token_hex(6)}", pool_size=CALLS, statement_cache=0)
    items = [MemoryItem(content=f"number {n}", tags=[f"n{n}"], metadata={"n": n}) for n in range(CALLS)]
    async with PostgresMemoryStore(pooled_url, filters=["n"], coalesce=coalesce, settings=settings) as store:
        for _ in range(2):  # the second time each statement has been seen by each server process
            stored = await asyncio.gather(*map(store.store, items))
            assert stored == [item.id for item in items]
            found = await asyncio.gather(
                *(store.search(MemoryQuery(tags=[f"n{n}"], filters={"n": n})) for n in range(CALLS))
            )
            assert [[hit.content for hit in hits] for hits in found] == [[item.content] for item in items]
        got = await asyncio.gather(*(store.retrieve(item.id) for item in items))
        assert [one.metadata for one in got] == [item.metadata for item in items]
