# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Echo programs that wait in all the ways that programs wait in."""

from __future__ import annotations

import re

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


def test_epoll__asks_the_kernel_now_and_then(way: str, hosts: tuple[Side, Side]) -> None:
    """While streams are ready the kernel, which has nothing to tell, is asked by fewer system calls
    than there are waits; what it has after all is told nevertheless."""
    server, client = hosts
    if way == "supervisor" or not client.homad:
        pytest.skip("only the preload library asks")
    number, waits = port(), 1000
    process = server.start([SERVER, server.v4, number, "epoll"])
    assert process.line(PATIENCE) == "ready"
    program = f"""
import os, select, socket
s = socket.create_connection(({server.v4!r}, {number}))
e = select.epoll()
e.register(s, select.EPOLLOUT)
for i in range({waits}):
    assert e.poll(30) == [(s.fileno(), select.EPOLLOUT)]
r, w = os.pipe()
e.register(r, select.EPOLLIN)
e.poll(30)
os.write(w, b"x")
while (r, select.EPOLLIN) not in e.poll(30):
    pass
"""
    env = ["/usr/bin/env", f"LD_PRELOAD={PROGRAMS / 'libtcp_count_waits.so'}"]
    words = client.words(["/usr/bin/python3", "-c", program])
    done = client.space.run([*env, *words], check=False, timeout=PATIENCE)
    asked = re.findall(r"^asked (\d+)$", done.stderr, re.MULTILINE)
    assert done.returncode == 0 and asked, done.stderr
    assert int(asked[-1]) < waits / 2, done.stderr
    process.stop()
