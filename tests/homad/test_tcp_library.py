# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""libhoma's TCP streams (homa/stream.h) through two homads: the two examples, against each other and the kernel's."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from homad import BUILD, Host, needs_homad, needs_root, two_hosts
from test_tcp import KERNEL, RULES

pytestmark = [needs_homad, needs_root]

SERVER = BUILD / "examples" / "stream-echo-server"
CLIENT = BUILD / "examples" / "stream-echo-client"


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        yield both


def at(address: str) -> str:
    return f"[{address}]:5000" if ":" in address else f"{address}:5000"


@pytest.mark.parametrize("size", [1, 3_000_000])
@pytest.mark.parametrize("family", ["v4", "v6"])
def test_stream__examples(hosts: tuple[Host, Host], family: str, size: int) -> None:
    a, b = hosts
    server = b.start([SERVER, "5000"])
    assert server.line() == "serving port 5000"
    done = a.run([CLIENT, at(getattr(b, family)), str(size)])
    assert done.stdout == f"{size} of {size} bytes came back\n"
    server.stop()


def test_stream__many_clients_of_one_server(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    server = b.start([SERVER, "5000"])
    assert server.line() == "serving port 5000"
    clients = [a.start([CLIENT, at(b.v4), str(100_000 + i)]) for i in range(12)]
    for i, client in enumerate(clients):
        assert client.line() == f"{100_000 + i} of {100_000 + i} bytes came back"
        assert client.wait()[0] == 0
    server.stop()


def test_stream__with_the_kernels_sockets(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    server = b.start([SERVER, "5000"])
    assert server.line() == "serving port 5000"
    done = a.run([sys.executable, "-c", KERNEL, "send", b.v4, "5000", "20000"])
    assert done.stdout == "echoed 20000\n"
    server.stop()
    server = b.start([sys.executable, "-c", KERNEL, "serve", b.v4, "6000", "1"])
    assert server.line() == "ready"
    assert a.run([CLIENT, f"{b.v4}:6000", "20000"]).stdout == "20000 of 20000 bytes came back\n"
    assert server.wait()[0] == 0


def test_stream__errors(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    for port, why in ((5000, "Connection refused"), (80, "Operation not supported")):
        refused = a.run([CLIENT, f"{b.v4}:{port}"], check=False)
        assert refused.returncode == 1
        assert why in refused.stderr


def test_stream__server_hears_of_homads_death(hosts: tuple[Host, Host]) -> None:
    b = hosts[1]
    server = b.start([SERVER, "5000"])
    assert server.line() == "serving port 5000"
    b.homad.kill()
    status = server.wait()[0]
    assert status == 1
