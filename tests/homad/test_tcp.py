# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in homad: streams by hand (streamtool.py) beside the kernel's sockets, either end either way."""

from __future__ import annotations

import re
import signal
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from netns import ROOT, eventually
from homad import BUILD, Host, Process, needs_homad, needs_root, two_hosts
from streamtool import ARMED, BEGUN, COMMAND_HEAD, CONNECT, OPT_BEGUN, Streams, load, mapped, store

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

HOMA_RUN = ROOT / "lib" / "preload" / "homa-run"
LIBRARY = BUILD / "lib" / "preload" / "libhoma-preload.so"
TOOL = Path(__file__).parent / "streamtool.py"
RULES = """
[protocol]
timeout_us = 20000000

[[tcp_rule]]
listen = [1000, 9999]
connect = [1000, 9999]
"""
# The same programs with the kernel's sockets.
KERNEL = r"""
import socket, sys, threading
verb, address, port, number = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
if verb == "serve":
    listener = socket.create_server((address, port), family=family)
    print("ready", flush=True)
    for _ in range(number):
        one, _ = listener.accept()
        with one:
            while data := one.recv(65536):
                one.sendall(data)
    print("served", number)
else:
    with socket.create_connection((address, port), timeout=60) as one:
        data = bytes(i * 7 % 251 for i in range(65536)) * (number // 65536 + 1)
        data = data[:number]
        def send():
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
        threading.Thread(target=send).start()
        back = b""
        while more := one.recv(65536):
            back += more
        assert back == data, f"{len(back)} of {number} bytes came back"
        print("echoed", len(back))
"""


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        yield both


def test_connect__is_told_from_where_and_not_woken(hosts: tuple[Host, Host]) -> None:
    """BEGUN is in the ring when the command has been taken, and who sleeps sleeps on."""
    a, _ = hosts
    nobody = "10.9.0.77"
    a.space.ip("neigh", "add", nobody, "lladdr", "02:00:00:00:00:77", "dev", "eth0", "nud", "permanent")  # fmt: skip
    streams = Streams(a.homad.socket)
    with closing(streams.client):
        store(streams.memory, ARMED, 1)
        remote = struct.pack("<16sHH", mapped(nobody), 5000, 0)
        streams.command(CONNECT, token=1, value=OPT_BEGUN, remote=remote)
        eventually(lambda: load(streams.memory, COMMAND_HEAD) == 1)
        # All that a round has to tell is told before the next one takes a command.
        streams.command(CONNECT, token=2, remote=remote)
        eventually(lambda: load(streams.memory, COMMAND_HEAD) == 2)
        assert load(streams.memory, ARMED) == 1
        assert [(kind, token) for kind, _, _, token in streams.poll()] == [(BEGUN, 1)]


def words(host: Host, way: str, *rest: object) -> list[str]:
    if way == "unmodified":
        return [
            "env",
            f"HOMA_PRELOAD_LIB={LIBRARY}",
            str(HOMA_RUN),
            "--tcp",
            "--debug",
            sys.executable,
            "-c",
            KERNEL,
            *map(str, rest),
        ]
    tool = (
        [sys.executable, "-c", KERNEL]
        if way == "kernel"
        else [sys.executable, str(TOOL), str(host.homad.socket)]
    )
    return [*tool, *map(str, rest)]


def serve(host: Host, way: str, address: str, count: int = 1) -> Process:
    server = host.start(words(host, way, "serve", address, 5000, count))
    assert server.line() == "ready"
    return server


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize(
    ("client", "server"),
    [("homad", "kernel"), ("kernel", "homad"), ("homad", "homad"),
     ("unmodified", "kernel"), ("kernel", "unmodified"), ("unmodified", "unmodified")],
)  # fmt: skip
def test_echo__either_end_either_way(
    hosts: tuple[Host, Host], client: str, server: str, family: str
) -> None:
    a, b = hosts
    address = getattr(b, family)
    echo = serve(b, server, address)
    done = a.run(words(a, client, "send", address, 5000, 300_000))
    assert done.stdout.strip() == "echoed 300000"
    status, _, said = echo.wait()
    assert status == 0
    # Not silently by the kernel.
    if client == "unmodified":
        assert "connect() goes through homad" in done.stderr
    if server == "unmodified":
        assert "listen() through homad" in said


def test_echo__more_than_the_buffers_hold(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    echo = serve(b, "homad", b.v4)
    assert (
        a.run(words(a, "homad", "send", b.v4, 5000, 3_000_000)).stdout.strip() == "echoed 3000000"
    )
    assert echo.wait()[0] == 0


def test_connect__nobody_listens(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    assert a.run(words(a, "homad", "try", b.v4, 5000)).stdout.strip() == "ECONNREFUSED"


def test_connect__no_rule(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    assert a.run(words(a, "homad", "try", b.v4, 80)).stdout.strip() == "ENOTSUP"


def test_connect__from_an_address_of_the_programs_choice(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    a.space.ip("address", "add", "10.9.0.77/24", "dev", "eth0")
    echo = serve(b, "kernel", b.v4)
    # A homad hears of a new address a moment later.
    eventually(
        lambda: a.run(words(a, "homad", "try", b.v4, 5000, "10.9.0.77")).stdout.strip() == "opened"
    )
    assert (
        a.run(words(a, "homad", "try", b.v4, 5000, "10.9.0.78")).stdout.strip() == "EADDRNOTAVAIL"
    )
    assert a.run(words(a, "homad", "try", b.v4, 5000, a.v6)).stdout.strip() == "EADDRNOTAVAIL"
    echo.stop()


@pytest.mark.parametrize("group", ["224.0.0.1", "255.255.255.255", "ff02::1"])
def test_connect__no_host_has_that_address(hosts: tuple[Host, Host], group: str) -> None:
    a, _ = hosts
    assert a.run(words(a, "homad", "try", group, 5000)).stdout.strip() == "ENETUNREACH"


def test_other_ports__stay_the_kernels(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    server = b.start([sys.executable, "-c", KERNEL, "serve", b.v4, "500", "1"])
    assert server.line() == "ready"
    assert re.match(
        "echoed", a.run([sys.executable, "-c", KERNEL, "send", b.v4, "500", "100000"]).stdout
    )
    assert server.wait()[0] == 0


# One that waits in an epoll set for its listener and its connections.
EPOLL_SERVER = r"""
import selectors, socket, sys
ready = selectors.EpollSelector()
listener = socket.create_server((sys.argv[1], 5000))
ready.register(listener, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in ready.select():
        if key.fileobj is listener:
            ready.register(listener.accept()[0], selectors.EVENT_READ)
        else:
            data = key.fileobj.recv(65536)
            key.fileobj.sendall(data)
            if not data:
                ready.unregister(key.fileobj)
                key.fileobj.close()
"""


def processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def rests(pid: int) -> bool:
    """It used no processor time for half a second: it sleeps, and does not look again and again."""
    before = processor_time(pid)
    time.sleep(0.5)
    return processor_time(pid) == before


@pytest.mark.parametrize("server", ["accept", "epoll"])
def test_homad_ends__its_servers_go_on_with_the_kernel(
    hosts: tuple[Host, Host], server: str
) -> None:
    a, b = hosts
    if server == "accept":
        program = words(b, "unmodified", "serve", b.v4, 5000, 2)
    else:
        program = [*words(b, "unmodified")[:-1], EPOLL_SERVER, b.v4]
    echo = b.start(program)
    assert echo.line() == "ready"
    first = a.run(words(a, "kernel", "send", b.v4, 5000, 100_000))
    assert first.stdout.strip() == "echoed 100000"
    b.homad.kill()
    eventually(lambda: rests(echo.pid), 30)
    second = a.run(words(a, "kernel", "send", b.v4, 5000, 100_000))
    assert second.stdout.strip() == "echoed 100000"
    if server == "accept":
        assert echo.wait()[0] == 0
    else:
        eventually(lambda: rests(echo.pid), 30)
        echo.stop()


# It asks for 5,000 bytes at least, and 100 come first.
LOW_WATER = r"""
import socket, sys
listener = socket.create_server((sys.argv[1], 5000))
print("ready", flush=True)
one, _ = listener.accept()
one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 5000)
print(len(one.recv(65536)), flush=True)
"""


def test_low_water__is_waited_for_asleep(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    server = b.start([*words(b, "unmodified")[:-1], LOW_WATER, b.v4])
    assert server.line() == "ready"
    client = a.start([sys.executable, "-c", FIRST_AND_REST, b.v4])
    assert client.line() == "first"
    eventually(lambda: rests(server.pid), 30)
    client.send_signal(signal.SIGUSR1)
    assert server.line() == "5000"


FIRST_AND_REST = r"""
import signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
with socket.create_connection((sys.argv[1], 5000)) as one:
    one.sendall(bytes(100))
    print("first", flush=True)
    signal.sigwait({signal.SIGUSR1})
    one.sendall(bytes(4900))
    one.recv(1)
"""
