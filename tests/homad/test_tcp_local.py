# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP between two applications of one host: by homad if it serves both ends, with what TCP promises, and
never for those whom the kernel would not let near it."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attachtool import METRICS
from homad import Host, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import snapshot
from streamtool import (
    ABORT,
    ACCEPTED,
    CLOSE,
    FAILED,
    HAS_END,
    HAS_ERROR,
    OPENED,
    SHUT,
    Stream,
    Streams,
    store_map,
)
from test_ops_tcp import Program, flows, unmodified
from test_tcp import KERNEL, serve, words
from test_tcp_hostile import await_end, inside

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

PORT = 5000
RULES = """
[protocol]
timeout_us = 20000000

[[tcp_rule]]
connect = [5003, 5003]
to = "127.0.0.0/8"
deny = true

[[tcp_rule]]
connect = [5004, 5004]
listen = [5004, 5004]
connections = 2

[[tcp_rule]]
connect = [5005, 5005]
listen = [5005, 5005]
send = "4 Mbit/s"

[[tcp_rule]]
listen = [1000, 9999]
connect = [1000, 9999]
"""


# Two threads, so that two programs are at home at different ones.
THREADS = """
[threads]
mode = "dedicated"
cores = [0, 1]
scale = false
"""


@pytest.fixture(scope="module", params=["one_thread", "two_threads"])
def hosts(request: pytest.FixtureRequest) -> Iterator[tuple[Host, Host]]:
    if request.param == "one_thread":
        with two_hosts(RULES) as both:
            yield both
        return
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core")
    with two_hosts(RULES + THREADS, queues=2) as both:
        yield both


@pytest.fixture
def host(hosts: tuple[Host, Host]) -> Iterator[Host]:
    """It has nothing more when a test ends than it had before."""
    had = hosts[0].homad.resources()
    yield hosts[0]
    hosts[0].homad.await_resources(had)
    hosts[0].homad.check()


def counted(host: Host, name: str) -> int:
    return int(snapshot(host.homad)["tcp"]["host"][name])


@contextmanager
def attached(host: Host) -> Iterator[Streams]:
    """A program of the host's network."""
    with inside(host):
        streams = Streams(host.homad.socket)
    try:
        yield streams
    finally:
        streams.client.close()


def await_kind(streams: Streams, kind: int) -> tuple[int, Stream | None]:
    while True:
        for found, error, stream, _ in streams.wait(20):
            if found == kind:
                return error, stream


def opened(
    client: Streams, server: Streams, address: str, port: int = PORT
) -> tuple[Stream, Stream]:
    """A connection, as seen from either end."""
    client.connect(address, port, 1)
    _, near = await_kind(client, OPENED)
    _, far = await_kind(server, ACCEPTED)
    assert near is not None and far is not None
    return near, far


@contextmanager
def both_ends(
    host: Host, address: str = "127.0.0.1", port: int = PORT
) -> Iterator[tuple[Stream, Stream]]:
    with attached(host) as server, attached(host) as client:
        with inside(host):
            server.listen(address, port)
        yield opened(client, server, address, port)


def refused(streams: Streams, address: str, port: int = PORT, source: str = "") -> int:
    streams.connect(address, port, 1, source)
    return await_kind(streams, FAILED)[0]


# -- either end


@pytest.mark.parametrize("address", ["own", "own-v6", "127.0.0.1", "127.0.0.9", "::1"])
@pytest.mark.parametrize(
    ("client", "server"),
    [("unmodified", "unmodified"), ("homad", "homad"), ("unmodified", "homad")],
)
def test_both_accelerated__no_packet_and_no_kernel(
    host: Host, client: str, server: str, address: str
) -> None:
    to = {"own": host.v4, "own-v6": host.v6}.get(address, address)
    before, sent = counted(host, "local_bytes"), counted(host, "local_opened")
    echo = serve(host, server, to)
    assert run_client(host, client, to, 300_000) == "echoed 300000"
    assert echo.wait()[0] == 0
    assert counted(host, "local_bytes") - before == 600_000
    assert counted(host, "local_opened") - sent == 1


def run_client(host: Host, way: str, address: str, size: int) -> str:
    return host.run(words(host, way, "send", address, PORT, size)).stdout.strip()


@pytest.mark.parametrize("address", ["own", "127.0.0.1"])
@pytest.mark.parametrize(
    ("client", "server"), [("kernel", "unmodified"), ("unmodified", "kernel"), ("kernel", "kernel")]
)
def test_one_accelerated__the_kernels(host: Host, client: str, server: str, address: str) -> None:
    to = host.v4 if address == "own" else address
    before = counted(host, "local_opened")
    echo = serve(host, server, to)
    assert run_client(host, client, to, 100_000) == "echoed 100000"
    assert echo.wait()[0] == 0
    assert counted(host, "local_opened") == before


NAMES = """
import select, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family) as listener:
    listener.bind((sys.argv[1], 0))
    port = int(sys.argv[2])
    listener = socket.create_server((sys.argv[1], port), family=family)
    near = socket.socket(family)
    near.setblocking(False)
    assert near.connect_ex((sys.argv[1], port)) == 115
    far, name = listener.accept()
    assert select.select([], [near], [], 60)[1]
    assert near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert name == far.getpeername() == near.getsockname(), (name, far.getpeername(), near.getsockname())
    assert far.getsockname() == near.getpeername() == listener.getsockname(), far.getsockname()
    print(name[0])
"""


@pytest.mark.parametrize("address", ["own", "own-v6", "127.0.0.1", "127.0.0.9", "::1"])
def test_names__are_the_kernels(host: Host, address: str) -> None:
    """Programs trust 127.0.0.1: nobody may come from there who would not by the kernel."""
    to = {"own": host.v4, "own-v6": host.v6}.get(address, address)
    before = counted(host, "local_opened")
    ours = host.run([*unmodified(), sys.executable, "-c", NAMES, to, "5100"]).stdout
    assert counted(host, "local_opened") == before + 1
    assert ours == host.run([sys.executable, "-c", NAMES, to, "5101"]).stdout


# A connect() that does not wait; what select() and SO_ERROR say of it then.
CONNECTING = """
import errno, select, socket, sys
one = socket.socket()
one.setblocking(False)
said = one.connect_ex((sys.argv[1], int(sys.argv[2])))
select.select([], [one], [], 60)
error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
print(errno.errorcode[said], errno.errorcode.get(error, "open"))
"""


def test_connect__without_waiting(host: Host) -> None:
    program = [*unmodified(), sys.executable, "-c", CONNECTING]
    assert host.run([*program, "127.0.0.1", "5200"]).stdout.strip() == "EINPROGRESS ECONNREFUSED"
    for way in ("kernel", "unmodified"):
        echo = serve(host, way, "127.0.0.1")
        assert host.run([*program, "127.0.0.1", str(PORT)]).stdout.strip() == "EINPROGRESS open"
        assert echo.wait()[0] == 0


# -- whom it is for


def test_connect__nobody_listens_or_from_elsewhere(host: Host) -> None:
    with attached(host) as server, attached(host) as client:
        assert refused(client, "127.0.0.1") == errno.EOPNOTSUPP
        with inside(host):
            server.listen("127.0.0.1", PORT)
        # At another address of the host nobody does.
        assert refused(client, host.v4) == errno.EOPNOTSUPP
        assert refused(client, "127.0.0.1", source="10.9.0.99") == errno.EADDRNOTAVAIL
        assert refused(client, "127.0.0.1", source="::1") == errno.EADDRNOTAVAIL
        client.connect("127.0.0.1", PORT, 1, "127.0.0.77")
        _, near = await_kind(client, OPENED)
        assert near is not None and ends(near) == ("127.0.0.77", "127.0.0.1")


def ends(stream: Stream) -> tuple[str, str]:
    at = stream.at + 64
    raw = stream.owner.memory[at : at + 40]
    return socket.inet_ntoa(raw[12:16]), socket.inet_ntoa(raw[32:36])


def test_other_network_namespace__is_not_this_host(host: Host) -> None:
    """Its 127.0.0.1 is another. This process is of the machine's network, not of the host's."""
    outside = Streams(host.homad.socket)
    with attached(host) as server:
        with inside(host):
            server.listen("127.0.0.1", PORT)
            server.listen(host.v4, PORT)
        assert refused(outside, "127.0.0.1") == errno.EOPNOTSUPP
        assert refused(outside, host.v4) == errno.EOPNOTSUPP
    outside.client.close()


def test_loopback_listener__is_not_for_other_hosts(hosts: tuple[Host, Host], host: Host) -> None:
    """Not even beside one of the kernel's at an address that others reach."""
    echo = serve(host, "unmodified", "127.0.0.1")
    kernel = host.start([sys.executable, "-c", KERNEL, "serve", host.v4, str(PORT), "1"])
    assert kernel.line() == "ready"
    assert run_client(hosts[1], "kernel", host.v4, 100_000) == "echoed 100000"
    assert kernel.wait()[0] == 0
    assert run_client(host, "unmodified", "127.0.0.1", 1000) == "echoed 1000"
    assert echo.wait()[0] == 0


def test_rules__hold_here_too(host: Host) -> None:
    with attached(host) as server, attached(host) as client:
        assert refused(client, "127.0.0.1", 5003) == errno.EACCES
        with inside(host):
            server.listen("127.0.0.1", 5004)
        # Two for either end make one connection: both are of one user.
        opened(client, server, "127.0.0.1", 5004)
        assert refused(client, "127.0.0.1", 5004) == errno.ENOBUFS


def test_send_limit__is_not_passed_by(host: Host) -> None:
    """A burst, and 500,000 bytes in each second. homad counts from when the round began in which it saw
    the first write, which may be before that write; so this test counts from before the connection."""
    begun, got = time.monotonic(), 0
    with both_ends(host, port=5005) as (near, far):
        while got < 300_000:
            near.write(bytes(65536))
            far.owner.wait(0.02)
            assert not near.owner.evicted()
            got += len(far.take())
        assert got <= 16384 + 500_000 * (time.monotonic() - begun)


# -- what TCP promises


def test_half_close__bytes_go_on_the_other_way(host: Host) -> None:
    with both_ends(host) as (near, far):
        near.write(b"ask")
        near.command(SHUT)
        eventually(lambda: far.owner.poll() is not None and far.state & HAS_END)
        assert far.take() == b"ask"
        far.write(b"answer")
        far.command(SHUT)
        eventually(lambda: near.state & HAS_END)
        assert near.take() == b"answer"
        assert not (near.state | far.state) & HAS_ERROR


def test_window__who_does_not_read_gets_no_more(host: Host) -> None:
    with both_ends(host) as (near, far):
        sent = 0
        quiet = 0
        while quiet < 50:
            some = near.write(bytes(65536))
            sent, quiet = sent + some, 0 if some else quiet + 1
            near.owner.wait(0.02)
        # One buffer at either end at most, which have 1 MiB.
        assert 8192 <= sent <= 2 << 20
        got = 0
        while got < sent:
            got += len(far.take())
            far.owner.wait(0.02)
        assert got == sent and not far.state & HAS_END


def test_close_with_bytes_unread__is_a_reset(host: Host) -> None:
    with both_ends(host) as (near, far):
        near.write(b"unread")
        far.write(b"before")
        eventually(lambda: far.word(12) == 6 and near.word(12) == 6)
        far.owner.close_stream(far, CLOSE)
        eventually(lambda: near.state & HAS_ERROR)
        assert near.error == errno.ECONNRESET
        # What had come can be read.
        assert near.take() == b"before"


@pytest.mark.parametrize("unread", [False, True])
def test_kill__the_other_end_hears_of_it(host: Host, unread: bool) -> None:
    """As with the kernel: the end if it had read everything, else a reset; and what it had written first."""
    server = Program(host, "serve", "127.0.0.1", 1)
    assert server.line() == "ready"
    with attached(host) as client:
        client.connect("127.0.0.1", PORT, 1)
        _, near = await_kind(client, OPENED)
        assert near is not None and server.line() == "open"
        assert server.tell("send 3000") == "done"
        if unread:
            near.write(b"nobody reads this")
            eventually(lambda: near.word(24) == 17)
        os.kill(server.process.pid, signal.SIGKILL)
        eventually(lambda: near.state & (HAS_ERROR if unread else HAS_END))
        assert len(near.take()) == 3000
        assert near.error == (errno.ECONNRESET if unread else 0)
        # Who writes to nobody hears of that as well.
        if not unread:
            near.write(b"x")
            eventually(lambda: near.state & HAS_ERROR)
            assert near.error == errno.EPIPE
    server.end()


def test_many_resets_at_once__all_are_heard(host: Host) -> None:
    """More than the engine keeps of words that belong to no connection."""
    count = 120
    with attached(host) as client:
        with attached(host) as server:
            with inside(host):
                server.listen("127.0.0.1", PORT, 128)
            ends = [opened(client, server, "127.0.0.1") for _ in range(count)]
            for near, _ in ends:
                near.write(b"x")
            eventually(lambda: all(far.word(12) for _, far in ends))
        eventually(lambda: all(near.state & HAS_ERROR for near, _ in ends))
        assert {near.error for near, _ in ends} == {errno.ECONNRESET}
        for near, _ in ends:
            client.close_stream(near, ABORT)


def test_listener_ends__who_was_not_accepted_hears_of_it(host: Host) -> None:
    """Slots end first: 16 at the begin, so most of these wait in the listener's queue."""
    with attached(host) as client:
        with attached(host) as server:
            with inside(host):
                server.listen("127.0.0.1", PORT, 128)
            for token in range(120):
                client.connect("127.0.0.1", PORT, token)
            near: list[Stream] = []
            while len(near) < 120:
                near += [
                    stream for kind, _, stream, _ in client.wait(20) if kind == OPENED and stream
                ]
        eventually(lambda: all(stream.state & (HAS_ERROR | HAS_END) for stream in near))


# -- who lies, who ends


def test_hostile_sender__harms_itself(host: Host) -> None:
    with attached(host) as server:
        with inside(host):
            server.listen("127.0.0.1", PORT)
        with attached(host) as client:
            near, far = opened(client, server, "127.0.0.1")
            near.write(b"true")
            eventually(lambda: far.word(12) == 4)
            # A position beyond its buffer, and a map of memory that it does not have.
            near.put(128 + 4, 1 << 30)
            near.ring()
            await_end(client)
        eventually(lambda: far.state & HAS_ERROR)
        assert (far.take(), far.error) == (b"true", errno.ECONNRESET)
        with attached(host) as client:
            near, far = opened(client, server, "127.0.0.1")
            store_map(near.owner.memory, near.at + 128 + 8, 20, 0)
            near.put(128 + 4, 100)
            near.ring()
            await_end(client)
        eventually(lambda: far.state & HAS_ERROR)
        # Who takes more than has come.
        with attached(host) as client:
            near, far = opened(client, server, "127.0.0.1")
            near.put(128, 5)
            near.ring()
            await_end(client)
        eventually(lambda: far.state & HAS_ERROR)
        with attached(host) as client:
            near, far = opened(client, server, "127.0.0.1")
            near.write(b"fine")
            eventually(lambda: far.word(12) == 4)
            assert server.client.ask(METRICS).error == 0


def test_ss__shows_both_ends_and_one_listener(host: Host) -> None:
    with both_ends(host) as (near, far):
        near.write(bytes(1000))
        eventually(lambda: far.word(12) == 1000)
        seen = flows(host)
        assert sorted(flow["state"] for flow in seen) == ["established", "established", "listen"]
        asked, served = sorted(
            (f for f in seen if f["state"] != "listen"), key=lambda f: f["local_port"] == PORT
        )
        assert (asked["local"], asked["local_port"]) == (served["peer"], served["peer_port"])
        assert (asked["peer"], asked["peer_port"], served["recv_q"]) == ("127.0.0.1", PORT, 1000)
        assert (asked["bytes_acked"], served["bytes_received"]) == (1000, 1000)


def test_homad_ends__both_ends_are_reset() -> None:
    with two_hosts(RULES) as (host, _):
        server = Program(host, "serve", "127.0.0.1", 1)
        assert server.line() == "ready"
        client = Program(host, "connect", "127.0.0.1", 1)
        assert client.line() == "open" and server.line() == "open"
        assert counted(host, "local_opened") == 1
        host.homad.kill()
        for program in (client, server):
            program.say("read 1")
            _, _, said = program.process.wait()
            assert "ConnectionResetError" in said
            program.end()
