# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A PostgreSQL server on one host, and what is asked of it from the other."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netns import Process, eventually
from ways import PATIENCE, Side, port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
# It does not run as root.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SETTINGS = ["fsync=off", "unix_socket_directories=", "max_connections=30", "shared_buffers=8MB"]


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """One that the server's user may reach; those of pytest are root's."""
    path = Path(tempfile.mkdtemp(prefix="homa-test-"))
    shutil.chown(path, 65534, 65534)
    yield path
    shutil.rmtree(path)


class Database:
    """A server, and what is asked of it from the other host."""

    def __init__(self, server: Side, client: Side, folder: Path) -> None:
        self.server, self.client = server, client
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
        command = f"{self.programs}/pgbench {self.where()} {words} postgres 2>&1"
        return self.client.run(["/bin/sh", "-ec", command]).stdout

    def right(self, transactions: int) -> None:
        """Each transaction counts once, in all tables."""
        assert self.ask("SELECT count(*) FROM pgbench_history") == str(transactions)
        sums = "(SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers)"
        accounts, tellers, deltas = self.ask(
            f"SELECT {sums}, (SELECT sum(delta) FROM pgbench_history)"
        ).split("|")
        assert accounts == tellers == deltas
