# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Many TCP connections through homad: ports of clients, short connections, thousands that are idle.

MANY=65000 has as many connections held instead of 4,000 (needs 2 GB of memory)."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import sys

import pytest
from homad import BUILD, Host, Process, needs_homad, needs_root, two_hosts
from netns import eventually
from test_ops_tcp import flows, unmodified
from test_tcp import RULES

pytestmark = [needs_homad, needs_root]

MANY = BUILD / "tests" / "homad" / "many"
PORT = 5000
# An echo server on the port of its argument that waits for its clients to close, or to be gone.
PATIENT = """
import resource, selectors, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
listener = socket.create_server(("", int(sys.argv[1])), backlog=1024)
listener.setblocking(False)
found = selectors.DefaultSelector()
found.register(listener, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in found.select():
        if key.fileobj is listener:
            one, _ = listener.accept()
            found.register(one, selectors.EVENT_READ)
        else:
            try:
                data = key.fileobj.recv(65536)
                if data:
                    key.fileobj.sendall(data)
                    continue
            except ConnectionError:
                pass
            found.unregister(key.fileobj)
            key.fileobj.close()
"""


def with_settings(**tcp: object) -> str:
    settings = "".join(f"{name} = {value}\n" for name, value in tcp.items())
    return RULES.replace("[protocol]", f"[tcp]\n{settings}[protocol]")


def kernel_server(host: Host) -> Process:
    server = host.start([sys.executable, "-c", PATIENT, str(PORT)])
    assert server.line() == "ready"
    return server


def churn(host: Host, to: str, count: int, at_once: int) -> tuple[int, int, int]:
    """How many were opened, and how many failed with which error."""
    done = host.run([MANY, "churn", to, PORT, count, at_once])
    found = re.fullmatch(r"churned (\d+) failed (\d+) error (\d+) rate \d+\n", done.stdout)
    assert found, done
    return int(found[1]), int(found[2]), int(found[3])


def test_ports__as_many_as_are_needed() -> None:
    """The kernel's server keeps what it has: 700 to one port, from 256 ports that homad begins with."""
    with two_hosts(with_settings()) as (a, b):
        server = kernel_server(b)
        client = a.start([MANY, "hold", b.v4, PORT, 700])
        assert client.line() == "held 700"
        client.stop()
        server.stop()


def test_ports__exhausted_and_free_again() -> None:
    with two_hosts(with_settings(ports=64)) as (a, b):
        server = kernel_server(b)
        client = a.start([MANY, "hold", b.v4, PORT, 60])
        assert client.line() == "held 60"
        opened, failed, error = churn(a, b.v4, 40, 20)
        assert opened + failed == 40 and failed and error == errno.EADDRNOTAVAIL
        # To another of the peer's ports there are as many again.
        other = a.run([MANY, "churn", b.v4, PORT + 1, 60, 60])
        assert f"error {errno.ECONNREFUSED} " in other.stdout
        client.stop()
        server.stop()


def test_ports__leave_descriptors_to_new_clients() -> None:
    """homad has a descriptor for each port. However many are wanted, programs can attach."""
    with two_hosts(with_settings()) as (a, b):
        resource.prlimit(a.homad.pid, resource.RLIMIT_NOFILE, (900, 900))
        server = kernel_server(b)
        opened, failed, error = churn(a, b.v4, 1500, 1000)
        assert opened + failed == 1500 and failed and error == errno.EADDRNOTAVAIL
        assert "fewer ports than tcp.ports" in a.homad.log()
        # Nobody listens there, which homad says to a program that has attached since.
        other = a.run([MANY, "churn", b.v4, PORT + 1, 10, 1])
        assert f"error {errno.ECONNREFUSED} " in other.stdout, other
        server.stop()


# Accepts connections and reads nothing of them.
DEAF = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
listener = socket.create_server(("", int(sys.argv[1])), backlog=1024)
print("ready", flush=True)
have = []
while True:
    have.append(listener.accept()[0])
    if len(have) == int(sys.argv[2]):
        print("all", flush=True)
"""
# Writes to each of its connections, and waits until each is reset.
RESET = """
import resource, selectors, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
to, port, count = sys.argv[1], *map(int, sys.argv[2:])
ends = [socket.create_connection((to, port)) for _ in range(count)]
found = selectors.DefaultSelector()
for end in ends:
    end.sendall(b"unread")
    found.register(end, selectors.EVENT_READ)
print("written", flush=True)
resets = 0
while resets < count and (news := found.select(60)):
    for key, _ in news:
        found.unregister(key.fileobj)
        try:
            key.fileobj.recv(1)
        except ConnectionResetError:
            resets += 1
print("resets", resets, flush=True)
"""


def unread(host: Host) -> int:
    return sum(flow.get("recv_q") == len("unread") for flow in flows(host))


@pytest.mark.parametrize("ends", ["program", "homad"])
def test_resets__all_peers_of_one_that_ends_hear(ends: str) -> None:
    """There are many connections with bytes that nobody has read. homad ends in order."""
    count = 500
    with two_hosts(with_settings()) as (a, b):
        server = a.start([*unmodified(), sys.executable, "-c", DEAF, str(PORT), str(count)])
        assert server.line() == "ready"
        client = b.start([sys.executable, "-c", RESET, a.v4, str(PORT), str(count)])
        assert server.line(60) == "all" and client.line(60) == "written"
        eventually(lambda: unread(a) == count, 60)
        if ends == "program":
            server.send_signal(signal.SIGKILL)
        else:
            a.homad.stop()
        assert client.line(90) == f"resets {count}"


def test_ports__follow_time_wait() -> None:
    """4,000 short connections from 1,024 ports: RFC 6191 says that a minute's wait is not needed."""
    with two_hosts(with_settings(ports=1024)) as (a, b):
        server = kernel_server(b)
        opened = 0
        while opened < 4000:
            some, failed, error = churn(a, b.v4, 500, 16)
            if failed:
                assert error == errno.EADDRNOTAVAIL
            opened += some
        server.stop()


def test_many__idle_connections() -> None:
    count = int(os.environ.get("MANY", "4000"))
    with two_hosts(with_settings(streams=65536, ports=60000)) as (a, b):
        server = b.start([MANY, "serve", PORT])
        assert server.line() == "serving 0"
        clients = []
        for _ in range(0, count, 16000):
            client = a.start([MANY, "hold", b.v4, PORT, min(count, 16000)])
            assert client.line(600) == f"held {min(count, 16000)}"
            clients.append(client)
        for client in clients:
            client.send_signal(signal.SIGUSR1)
            assert client.line(600) == f"again {min(count, 16000)}"
            client.stop()
        server.stop()
