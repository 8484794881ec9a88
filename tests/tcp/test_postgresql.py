# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""PostgreSQL, whose postmaster forks a server for each connection and closes its own copy of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from netns import eventually
from postgres import PROGRAMS, Database, folder_of_nobody
from ways import ACCELERATED, PATIENCE, Side, opened

Hosts = tuple[Side, Side]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="not installed: postgresql")


@pytest.fixture
def database(hosts: Hosts) -> Iterator[Database]:
    with folder_of_nobody() as folder:
        database = Database(*hosts, folder)
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
