# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Echo programs that wait in all the ways that programs wait in."""

from __future__ import annotations

import pytest
from ways import ACCELERATED, PATIENCE, PROGRAMS, Side, port

SERVER = PROGRAMS / "tcp_echo_server"
CLIENT = PROGRAMS / "tcp_echo_client"

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason=f"{SERVER} is not built")


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize(
    "waits", ["threads", "fork", "poll", "select", "epoll", "edge", "oneshot", "nested"]
)
def test_server__waits_in_all_ways(waits: str, family: str, hosts: tuple[Side, Side]) -> None:
    """One connection, then clients of three kinds with 16 each."""
    server, client = hosts
    address = [server.address(family), port()]
    process = server.start([SERVER, *address, waits])
    assert process.line(PATIENCE) == "ready"
    for how, connections, size in (("threads", 1, 64), ("threads", 16, 100000), ("poll", 16, 100000), ("epoll", 16, 100000)):  # fmt: skip
        assert client.run([CLIENT, *address, how, connections, size]).stdout == "ok\n"
    assert process.running(), process.stderr.rest(5)
    process.stop()


def test_way__is_the_one_that_is_named(way: str, hosts: tuple[Side, Side]) -> None:
    """Falling back to the kernel is silent, so look: it knows of a connection where it serves it,
    and of none where homad does."""
    server, client = hosts
    number = port()
    process = server.start([SERVER, server.v4, number, "epoll"])
    assert process.line(PATIENCE) == "ready"
    program = f"import socket, sys; s = socket.create_connection(('{server.v4}', {number})); s.sendall(b'x'); " \
              "s.recv(1); print('open', flush=True); s.recv(1)"  # fmt: skip
    other = client.start(["/usr/bin/python3", "-c", program])
    assert other.line(PATIENCE) == "open"
    wanted = [0 if fast else 1 for fast in ACCELERATED[way]]
    assert [server.established(number), client.established(number)] == wanted
    process.stop()
    other.wait(PATIENCE)


def test_server__on_the_same_host(hosts: tuple[Side, Side]) -> None:
    """By the host's own address, and by loopback, which is the kernel's in every way."""
    server, _ = hosts
    for address in (server.v4, "127.0.0.1", "::1"):
        where = [address, port()]
        process = server.start([SERVER, *where, "epoll"])
        assert process.line(PATIENCE) == "ready"
        assert server.run([CLIENT, *where, "epoll", 4, 50000]).stdout == "ok\n"
        process.stop()
