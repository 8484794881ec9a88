# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Our TCP engine and Linux's on the two ends of a TUN device: bytes both ways, each looked at,
many connections, loss, both directions of opening. The engine's own host is tests/pkt/tun_host.c."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from netns import Namespace, Net, Process

_CLONE_NEWNET = 0x40000000
BUILD = Path(os.environ.get("HOMA_BUILD", "build"))
PATTERN = bytes(range(251))
PATIENCE = 120  # s, for a machine that is busy
PORT = 7000


@dataclass(frozen=True)
class Link:
    """A namespace with a TUN device: the kernel has `kernel`, our host `ours`."""

    space: Namespace
    kernel: str
    ours: str
    family: socket.AddressFamily

    def socket(self) -> socket.socket:
        """A socket of the kernel in that namespace."""
        made: list[socket.socket] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/run/netns/{self.space.name}").open() as there:
                if libc.setns(there.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.socket(self.family, socket.SOCK_STREAM))

        # A thread of its own: the namespace is the thread's.
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        made[0].settimeout(PATIENCE)
        return made[0]

    def host(self, mode: str, connections: int, size: int, loss: int = 0) -> Process:
        """tests/pkt/tun_host.c in the namespace, ready."""
        words = ["tun0", self.ours, mode, self.kernel, PORT, connections, size, loss, 11]
        process = self.space.start([str(BUILD / "tests/pkt/tcp_tun"), *map(str, words)])
        assert process.line(PATIENCE) == "ready"
        return process


@pytest.fixture(params=["v4", "v6"])
def link(request: pytest.FixtureRequest) -> Iterator[Link]:
    if not Path("/dev/net/tun").exists():
        pytest.skip("this machine has no TUN devices")
    v6 = request.param == "v6"
    kernel, ours = ("fd00::1", "fd00::2") if v6 else ("10.77.0.1", "10.77.0.2")
    with Net() as net:
        space = net.namespace("tcp")
        space.device = "tun0"
        space.ip("tuntap", "add", "dev", "tun0", "mode", "tun")
        space.address(f"{kernel}/{64 if v6 else 24}")
        space.ip("link", "set", "tun0", "up")
        yield Link(space, kernel, ours, socket.AF_INET6 if v6 else socket.AF_INET)


def result(host: Process) -> str:
    """What it said at the end; it has found nothing wrong."""
    status, out, err = host.wait(PATIENCE)
    assert (status, err) == (0, "")
    return out.strip()


def pattern(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def converse(sock: socket.socket, size: int, good: list[bool]) -> None:
    """Sends the pattern and reads the peer's to its end, both at once."""
    with sock:
        sender = threading.Thread(
            target=lambda: (sock.sendall(pattern(size)), sock.shutdown(socket.SHUT_WR))
        )
        sender.start()
        got = bytearray()
        while piece := sock.recv(1 << 18):
            got += piece
        sender.join()
        good.append(bytes(got) == pattern(size))


def together(
    link: Link, connections: int, size: int, accepted: list[socket.socket] | None = None
) -> None:
    """All connections at once, the kernel's ends in this process."""
    good: list[bool] = []

    def client() -> None:
        sock = link.socket()
        sock.connect((link.ours, PORT))
        converse(sock, size, good)

    if accepted is None:
        threads = [threading.Thread(target=client) for _ in range(connections)]
    else:
        threads = [threading.Thread(target=converse, args=(s, size, good)) for s in accepted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * connections


@pytest.mark.parametrize(("connections", "size"), [(1, 0), (1, 1), (1, 20_000_000), (50, 100_000)])
def test_linux_connects__all_bytes_both_ways(link: Link, connections: int, size: int) -> None:
    host = link.host("serve", connections, size)
    together(link, connections, size)
    assert result(host).startswith(f"{connections} connections, {connections * size} bytes in")


@pytest.mark.parametrize(("connections", "size"), [(1, 20_000_000), (50, 100_000)])
def test_linux_is_connected_to__all_bytes_both_ways(
    link: Link, connections: int, size: int
) -> None:
    with link.socket() as listener:
        listener.bind((link.kernel, PORT))
        listener.listen(connections)
        host = link.host("connect", connections, size)
        together(link, connections, size, [listener.accept()[0] for _ in range(connections)])
        assert result(host).startswith(f"{connections} connections, {connections * size} bytes in")


@pytest.mark.parametrize("loss", [10, 50])
def test_loss__all_bytes_both_ways(link: Link, loss: int) -> None:
    host = link.host("serve", 4, 300_000, loss)
    together(link, 4, 300_000)
    connections, _, again = result(host).split(", ")
    assert connections == "4 connections"
    assert int(again.split()[0]) > 0


def test_nobody_listens__refused(link: Link) -> None:
    status, _, err = link.host("connect", 1, 1).wait(PATIENCE)
    assert status == 1
    assert "Connection refused" in err
