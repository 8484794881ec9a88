# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""PostgreSQL, whose postmaster forks a server for each connection and closes its own copy of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from netns import Process, eventually
from test_programs import sh
from ways import ACCELERATED, PATIENCE, Side, opened, port

Hosts = tuple[Side, Side]

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
# It does not run as root.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SETTINGS = ["fsync=off", "unix_socket_directories=", "max_connections=30", "shared_buffers=8MB"]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="not installed: postgresql")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the server's user may reach; those of pytest are root's."""
    path = Path(tempfile.mkdtemp(prefix="homa-test-"))
    shutil.chown(path, 65534, 65534)
    yield path
    shutil.rmtree(path)


class Database:
    """A server, and what is asked of it from the other host."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.server, self.client = hosts
        self.number = port()
        self.programs = PROGRAMS[-1].parent
        data = folder / "data"
        made = [
            *NOBODY,
            str(self.programs / "initdb"),
            "-A",
            "trust",
            "-U",
            "test",
            "-N",
            "-D",
            str(data),
        ]
        done = self.server.space.run(made, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (data / "pg_hba.conf").write_text("host all all 10.9.0.0/16 trust\n")
        words = [word for setting in SETTINGS for word in ("-c", setting)]
        where = ["-D", data, "-h", self.server.v4, "-p", self.number]
        self.process: Process = self.server.start(
            [*NOBODY, self.programs / "postgres", *where, *words]
        )
        eventually(lambda: self.ask("SELECT 1", check=False) == "1", PATIENCE)

    def where(self) -> str:
        return f"-h {self.server.v4} -p {self.number} -U test"

    def ask(self, query: str, *, check: bool = True) -> str:
        command = [str(self.programs / "psql"), *self.where().split(), "-AtXc", query, "postgres"]
        done = self.client.space.run(self.client.words(command), check=False, timeout=PATIENCE)
        if check:
            assert done.returncode == 0, done.stderr + self.client.log() + self.server.log()
        return done.stdout.strip()

    def bench(self, words: str) -> str:
        return self.client.run(
            sh(f"{self.programs}/pgbench {self.where()} {words} postgres 2>&1")
        ).stdout

    def right(self, transactions: int) -> None:
        """Each transaction counts once, in all tables."""
        assert self.ask("SELECT count(*) FROM pgbench_history") == str(transactions)
        sums = "(SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers)"
        accounts, tellers, deltas = self.ask(
            f"SELECT {sums}, (SELECT sum(delta) FROM pgbench_history)"
        ).split("|")
        assert accounts == tellers == deltas


@pytest.fixture
def database(hosts: Hosts, folder: Path) -> Iterator[Database]:
    database = Database(hosts, folder)
    yield database
    database.process.stop()


def test_pgbench(database: Database, way: str) -> None:
    """8 clients at once, then a new connection for each transaction; with homad the kernel accepts none."""
    database.bench("-q -i -s 1")
    before = opened(database.server)[1]
    assert "actually processed: 400/400" in database.bench("-n -c 8 -j 2 -t 50")
    database.right(400)
    assert "actually processed: 40/40" in database.bench("-n -C -c 4 -j 2 -t 10")
    database.right(440)
    assert (opened(database.server)[1] == before) == ACCELERATED[way][0]


def test_pgbench__a_server_process_is_killed(database: Database) -> None:
    """Its connection ends, PostgreSQL starts its servers anew, and goes on."""
    database.bench("-q -i -s 1")
    kill = "COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'"
    assert database.ask(kill, check=False) == ""
    eventually(lambda: database.ask("SELECT 2", check=False) == "2", PATIENCE)
    assert "actually processed: 100/100" in database.bench("-n -c 4 -j 2 -t 25")
    database.right(100)
