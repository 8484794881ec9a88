# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs that make system calls themselves, under homa-run: static ones and those of Go. And what programs may
expect of TCP sockets, by the supervisor though the library would reach them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import goprograms
import pytest
import test_calls
from netns import Process, eventually, own_namespaces
from ways import PATIENCE, PROGRAMS, SUPERVISOR, Side, opened, port, two_sides

SERVER = PROGRAMS / "tcp_static_server"
CLIENT = PROGRAMS / "tcp_static_client"
ECHOES = ((1, 64), (4, 1_000_000), (32, 65536))

pytestmark = pytest.mark.skipif(not SUPERVISOR.exists(), reason=f"{SUPERVISOR} is not built")
needs_static = pytest.mark.skipif(
    not SERVER.exists(), reason="no static C library: apt install libc6-dev"
)


@pytest.fixture(scope="module", params=["supervisor"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["homad", "server", "client"])
def sides(request: pytest.FixtureRequest) -> Iterator[tuple[Side, Side]]:
    """homad at both ends, or the kernel's TCP at one."""
    with two_sides(request.param) as both:
        yield both


@pytest.fixture(scope="module")
def goecho(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return goprograms.build("goecho", tmp_path_factory.mktemp("go"))


def supervisors(number: int) -> list[int]:
    """Supervisors of programs of this test run with this port in their arguments. Other runs, at the same
    time, use the same ports in namespaces of their own."""
    found = []
    port_word = re.compile(rf"(?<!\d){number}(?!\d)".encode())
    namespaces = own_namespaces()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
            ours = os.readlink(entry / "exe") == str(SUPERVISOR)
            ours = ours and (entry / "ns" / "net").stat().st_ino in namespaces
        except (OSError, ValueError):
            continue
        if ours and port_word.search(words):
            found.append(int(entry.name))
    return found


def by_kernel(both: tuple[Side, Side]) -> tuple[int, int]:
    """Connections that kernels have accepted at the server, and opened at the client."""
    return opened(both[0])[1], opened(both[1])[0]


def check_ways(both: tuple[Side, Side], before: tuple[int, int], number: int) -> None:
    """So many connections: homad has carried them where it is, and the kernel where it is not."""
    for side, now, then in zip(both, by_kernel(both), before, strict=True):
        assert now - then == (0 if side.homad else number), (now, then)


# ---- static programs of C ----


@needs_static
@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("waits", ["threads", "fork", "poll", "epoll", "edge", "nested"])
def test_static__echo(waits: str, family: str, sides: tuple[Side, Side]) -> None:
    server, client = sides
    where = [server.address(family), port()]
    before = by_kernel(sides)
    serving = server.start([SERVER, *where, waits])
    assert serving.line(PATIENCE) == "ready"
    how = {"threads": "threads", "poll": "poll"}.get(waits, "epoll")
    for connections, size in ECHOES:
        assert client.run([CLIENT, *where, how, connections, size]).stdout == "ok\n"
    check_ways(sides, before, sum(connections for connections, _ in ECHOES))
    assert serving.running(), serving.stderr.rest(5)
    serving.stop(signal.SIGKILL)
    eventually(lambda: not supervisors(where[1]))


@needs_static
def test_static__within_a_host(sides: tuple[Side, Side]) -> None:
    """By homad if both are served, also over loopback; a client that is not reaches the server by the kernel."""
    side = sides[0]
    if not side.homad:
        pytest.skip("no homad on this host")
    for address in (side.v4, "127.0.0.1", "::1"):
        where = [address, port()]
        serving = side.start([SERVER, *where, "epoll"])
        assert serving.line(PATIENCE) == "ready"
        before = opened(side)[0]
        assert side.run([CLIENT, *where, "epoll", 4, 50000]).stdout == "ok\n"
        assert opened(side)[0] == before
        words = [str(word) for word in (CLIENT, *where, "epoll", 4, 50000)]
        assert side.space.run(words).stdout == "ok\n"
        assert opened(side)[0] == before + 4
        serving.stop(signal.SIGKILL)


# ---- programs of Go ----


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_go__echo(family: str, goecho: Path, sides: tuple[Side, Side]) -> None:
    """Each connection is half closed; names are those of the connection."""
    server, client = sides
    host = server.address(family)
    where = f"[{host}]:{port()}" if ":" in host else f"{host}:{port()}"
    before = by_kernel(sides)
    serving = server.start([goecho, "serve", where])
    assert serving.line(PATIENCE) == "ready"
    for connections, size in (*ECHOES, (200, 1000)):
        names, said = client.run([goecho, "echo", where, connections, size]).stdout.splitlines()
        mine, theirs = names.split()
        assert said == "ok" and theirs == where and mine.startswith(
            f"[{client.v6}]" if family == "v6" else client.v4
        )  # fmt: skip
    check_ways(sides, before, sum(connections for connections, _ in ECHOES) + 200)
    serving.stop(signal.SIGKILL)


def test_go__refused(goecho: Path, sides: tuple[Side, Side]) -> None:
    server, client = sides
    said = client.run([goecho, "dial", f"{server.v4}:{port()}"]).stdout
    assert said.endswith("connect: connection refused\n"), said


def test_go__http(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """97 answers of 300 kB on several connections that are kept."""
    gohttp = goprograms.build("gohttp", tmp_path)
    server, client = sides
    number = port()
    serving = server.start([gohttp, "serve", f"{server.v4}:{number}", 300000])
    before = by_kernel(sides)
    client.run([gohttp, "get", f"http://{server.v4}:{number}/", 300000])
    for side, now, then in zip(sides, by_kernel(sides), before, strict=True):
        assert (now == then) == bool(side.homad), (now, then)
    serving.stop(signal.SIGKILL)


# ---- ends that nobody has asked for ----


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Side, Side]]:
    with two_sides("homad") as hosts:
        yield hosts


def conversation(both: tuple[Side, Side], goecho: Path) -> tuple[int, Process, Process]:
    """A port, its server, and a client that has an open connection and waits for a byte."""
    server, client = both
    number = port()
    serving = server.start([goecho, "serve", f"{server.v4}:{number}"])
    assert serving.line(PATIENCE) == "ready"
    waits = f"import socket; s = socket.create_connection(('{server.v4}', {number})); s.sendall(b'x'); " \
            "assert s.recv(1) == b'x'; print('open', flush=True); print(s.recv(1), flush=True)"  # fmt: skip
    calling = client.start(["/usr/bin/python3", "-c", waits])
    assert calling.line(PATIENCE) == "open"
    return number, serving, calling


def test_killed__program(both: tuple[Side, Side], goecho: Path) -> None:
    """The peer hears of the end, the supervisor ends, and the port is free."""
    number, serving, calling = conversation(both, goecho)
    assert supervisors(number)
    serving.send_signal(signal.SIGKILL)
    assert calling.wait(PATIENCE)[:2] == (0, "b''\n")
    eventually(lambda: not supervisors(number))
    again = both[0].start([goecho, "serve", f"{both[0].v4}:{number}"])
    assert again.line(PATIENCE) == "ready"
    again.stop(signal.SIGKILL)


def test_killed__supervisor(both: tuple[Side, Side], goecho: Path) -> None:
    """The program is not left waiting: its calls fail, its connections end, and it can be ended."""
    number, serving, calling = conversation(both, goecho)
    (one,) = supervisors(number)
    os.kill(one, signal.SIGKILL)
    said, error = calling.wait(PATIENCE)[1:]
    told = error if error else said
    assert re.search(r"^b''$|ConnectionResetError", told, re.M), told
    status, _, error = serving.wait(PATIENCE)
    assert status == 1 and "goecho:" in error
    eventually(lambda: not supervisors(number))


@needs_static
def test_killed__supervisor_of_one_that_waits(both: tuple[Side, Side]) -> None:
    """accept() that waits fails with ENOSYS."""
    number = port()
    serving = both[0].start([SERVER, both[0].v4, number, "threads"])
    assert serving.line(PATIENCE) == "ready"
    (one,) = supervisors(number)
    os.kill(one, signal.SIGKILL)
    status, _, error = serving.wait(PATIENCE)
    assert status == 1 and "Function not implemented" in error


def test_killed__homad(goecho: Path) -> None:
    """Connections are reset; the server goes on with the kernel."""
    with two_sides("server") as hosts:
        server, client = hosts
        number, serving, calling = conversation(hosts, goecho)
        server.homad.kill()
        where = f"{server.v4}:{number}"
        again = client.run([goecho, "echo", where, 1, 1000]).stdout
        assert again.endswith("ok\n")
        assert serving.running()
        serving.stop(signal.SIGKILL)
        calling.stop(signal.SIGKILL)
        eventually(lambda: not supervisors(number))


# ---- which programs ----


def said_by(side: Side, *words: object) -> str:
    argv = side.words(words)
    argv.insert(argv.index("--tcp"), "-v")
    return side.space.run(argv, check=False).stderr


def test_which__programs_need_it(both: tuple[Side, Side], goecho: Path) -> None:
    server = both[0]
    assert "is reached by a supervisor: it is static" in said_by(
        server, goecho, "dial", "127.0.0.1:1"
    )
    assert "supervisor" not in said_by(server, "/usr/bin/true")


# ---- all calls ----

# Of the cases that expected.toml names, those whose two programs then wait for each other for ever.
ENDLESS = (
    "fork_connects",
    "linger_waits",
    "listener_is_no_connection",
    "measured",
    "name_while_opening",
    "name_while_waiting",
    "peek_waits",
    "receive_low_water",
    "receive_signalled",
    "refusal_told",
    "room_limited",
    "room_limited_fork",
    "room_limited_listener",
    "room_limited_open",
    "room_unsent",
    "send_time",
    "sets_exclusive",
    "sets_number",
    "sets_number_edge",
    "thread_learns",
    "urgent_apart",
    "urgent_far",
    "urgent_flags",
    "urgent_inline",
    "urgent_newer",
    "urgent_signal",
    "urgent_told",
)
# Cases that are not run.
NOT_RUN = dict.fromkeys(ENDLESS, "waits for ever") | {
    "connect_nonblocking_refused": "now and then POLLOUT comes a moment after POLLERR; "
    "test_supervisor_attacked.py asks without that",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.xfail(run=False, reason=NOT_RUN[case]))
        if case in NOT_RUN
        else case
        for case in test_calls.CASES
    ],
)
def test_case(case: str, hosts: tuple[Side, Side], tmp_path: Path) -> None:
    test_calls.test_calls(case, "v4", hosts, tmp_path)
