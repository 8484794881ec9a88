# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What programs may expect of TCP sockets: each case of programs/tcp_calls.c, over IPv4 and IPv6."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from netns import Process
from ways import PATIENCE, PROGRAMS, Side, port

HERE = Path(__file__).resolve().parent
CASES = re.findall(
    r"TCP_CASE\((\w+)\)", "".join(p.read_text() for p in sorted((HERE / "programs").glob("*.c")))
)
CALLS = PROGRAMS / "tcp_calls"

pytestmark = pytest.mark.skipif(not CALLS.exists(), reason=f"{CALLS} is not built")


def ended(end: Process) -> object:
    """How it ended and what it said, also if its children live on."""
    try:
        return end.wait(PATIENCE)
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("case", CASES)
def test_calls(case: str, family: str, hosts: tuple[Side, Side], tmp_path: Path) -> None:
    server, client = hosts
    address = (server.address(family), port(), tmp_path / "sync")
    # What ends.c has to know: the buffers of a supervised server do not heed SO_RCVBUF.
    takes = ["env", "TCP_TAKES_ALL=1"] if server.by == "supervisor" else []
    serving = server.start([*takes, CALLS, case, "--server", *address])
    assert serving.line(PATIENCE) == "ready", server.log()
    # What exec.c has to know: homad resets what a program has that cannot go on with it.
    resets = ["env", "TCP_RESET=1"] if server.homad and server.by != "supervisor" else []
    calling = client.start([*resets, CALLS, case, "--client", *address])
    said = [ended(end) for end in (calling, serving)]
    assert said == [(0, "ok\n", "")] * 2, f"client, server: {said}{client.log()}{server.log()}"


def test_list__is_what_is_run(hosts: tuple[Side, Side]) -> None:
    """The program knows the cases that its files name, and expected.toml names no others."""
    known = hosts[0].run([CALLS, "--list"]).stdout.split()
    assert sorted(known) == sorted(CASES)
    functions = set(
        re.findall(r"def (test_\w+)", "".join(p.read_text() for p in HERE.glob("test_*.py")))
    )
    expected = tomllib.loads((HERE / "expected.toml").read_text())
    named = {name for table in expected.values() for name in table}
    assert named <= set(CASES) | functions
