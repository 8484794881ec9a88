# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What rules say about TCP holds whatever an application writes into its rings: who is refused, how many
bytes go by, how many connections there are. Bytes are counted, and set against the time that the test has
seen pass, which is never shorter than homad's."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from homad import Host, Process, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import tool
from streamtool import (
    ABORT,
    ACCEPTED,
    CLOSE,
    FAILED,
    HAS_END,
    OPENED,
    SHUT,
    Stream,
    Streams,
    load,
)
from test_tcp import words
from test_tcp_hostile import bound, inside, listen_with
from test_tcp_share import SINK

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

RATE = 500_000  # bytes a second: 4 Mbit/s
BURST = 16384
USUAL_SHIFT = 16
BUFFER = 1 << USUAL_SHIFT
CONFIG = """
[protocol]
timeout_us = 20000000
[[tcp_rule]]
user = 1003
connect = [5000, 5000]
limits = "rule"
connections = 3
[[tcp_rule]]
connect = [5003, 5003]
listen = [6003, 6003]
deny = true
[[tcp_rule]]
connect = [5000, 5000]
send = "4 Mbit/s"
[[tcp_rule]]
connect = [5001, 5001]
receive = "4 Mbit/s"
[[tcp_rule]]
connect = [6020, 6020]
listen = [6020, 6020]
receive = "4 Mbit/s"
[[tcp_rule]]
connect = [5014, 5014]
send = "64 kbit/s"
[[tcp_rule]]
connect = [5015, 5015]
receive = "64 kbit/s"
[[tcp_rule]]
connect = [5002, 5010]
listen = [6000, 6010]
congestion = "dctcp"
dscp = 46
connections = 4
[[tcp_rule]]
connect = [5011, 5011]
congestion = "constant"
rate = "50 Mbit/s"
[[tcp_rule]]
connect = [5012, 5012]
congestion = "timely"
[[tcp_rule]]
connect = [5013, 5013]
congestion = "dctcp-rate"
"""
# Sends without end to whoever connects.
SOURCE = """
import socketserver
class Source(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while True:
                self.request.sendall(bytes(262144))
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 100
with Server(("0.0.0.0", 5001), Source) as server:
    print("ready", flush=True)
    server.serve_forever()
"""
# Counts what one connection brings.
COUNT = """
import socket
with socket.create_server(("0.0.0.0", 5000)) as listener:
    print("ready", flush=True)
    one, _ = listener.accept()
    total = 0
    while data := one.recv(262144):
        total += len(data)
    print(total, flush=True)
"""
# Does so after it has ended its own direction.
COUNT_AFTER_END = COUNT.replace("total = 0", "one.shutdown(socket.SHUT_WR); total = 0")
# Counts what twelve connections bring.
COUNT_TWELVE = """
import socket
with socket.create_server(("0.0.0.0", 5000)) as listener:
    print("ready", flush=True)
    total = 0
    for one in [listener.accept()[0] for _ in range(12)]:
        while data := one.recv(262144):
            total += len(data)
    print(total, flush=True)
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(CONFIG) as both:
        for host in both:
            os.chmod(host.homad.socket, 0o777)
        yield both


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    if "hosts" not in request.fixturenames:
        yield
        return
    both = request.getfixturevalue("hosts")
    before = [host.homad.resources() for host in both]
    yield
    for host, had in zip(both, before, strict=True):
        host.homad.await_resources(had)
        host.homad.check()


@contextmanager
def running(host: Host, program: str) -> Iterator[Process]:
    server = host.start([sys.executable, "-c", program])
    assert server.line() == "ready"
    yield server
    server.stop(signal.SIGKILL)


@contextmanager
def attached(host: Host, uid: int = 0) -> Iterator[Streams]:
    os.seteuid(uid)
    try:
        streams = Streams(host.homad.socket)
    finally:
        os.seteuid(0)
    try:
        yield streams
    finally:
        streams.client.close()


def connecting(
    streams: Streams, host: Host, port: int, count: int = 1
) -> tuple[list[Stream], list[int]]:
    """Streams that opened, and the errors of those that did not."""
    opened: list[Stream] = []
    errors: list[int] = []
    for token in range(count):
        streams.connect(host.v4, port, token)
    while len(opened) + len(errors) < count:
        for kind, error, stream, _ in streams.wait(20):
            if kind == OPENED:
                assert stream is not None
                opened.append(stream)
            elif kind == FAILED:
                errors.append(error)
    return opened, errors


def write_all(streams: Streams, stream: Stream, data: bytes) -> None:
    """All of it, as its buffer grows or gets room."""
    while data:
        data = data[stream.write(data) :]
        if data:
            streams.wait(0.01)


class Acked:
    """Bytes of some streams that their peers have acknowledged."""

    def __init__(self, streams: list[Stream]) -> None:
        self._last = {stream: stream.word(24) for stream in streams}
        self.total = 0

    def look(self) -> int:
        for stream, last in self._last.items():
            now = stream.word(24)
            self.total += (now - last) & 0xFFFFFFFF
            self._last[stream] = now
        return self.total


# ---- deny ----


def test_deny__the_first_rule_that_matches_decides(hosts: tuple[Host, Host]) -> None:
    """A later one would take 5003 and 6003, too."""
    with attached(hosts[0]) as streams:
        assert connecting(streams, hosts[1], 5003) == ([], [errno.EACCES])
        assert connecting(streams, hosts[1], 5004) == ([], [errno.ECONNREFUSED])
        assert connecting(streams, hosts[1], 80) == ([], [errno.EOPNOTSUPP])
        with (
            inside(hosts[0]),
            closing(bound("0.0.0.0", 6003)) as denied,
            closing(bound("0.0.0.0", 6004)) as allowed,
        ):
            answer = listen_with(streams.client, [denied.fileno()])
            assert answer.error == -errno.EACCES and "denies" in answer.text, answer
            assert listen_with(streams.client, [allowed.fileno()]).error == 0


TRY = """
import errno, socket, sys
with socket.socket() as one:
    try:
        if sys.argv[1] == "listen":
            one.bind(("0.0.0.0", int(sys.argv[3])))
            one.listen()
        else:
            one.connect((sys.argv[2], int(sys.argv[3])))
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize(
    ("verb", "port", "result"),
    [
        ("connect", 5003, "EACCES"),
        ("listen", 6003, "EACCES"),
        ("connect", 80, "ECONNREFUSED"),
        ("listen", 80, "done"),
    ],
)
def test_deny__a_program_is_told_and_does_not_get_the_kernels(
    hosts: tuple[Host, Host], verb: str, port: int, result: str
) -> None:
    """What no rule names is the kernel's, as before."""
    program = [*words(hosts[0], "unmodified")[:-1], TRY, verb, hosts[1].v4, str(port)]
    assert hosts[0].run(program).stdout.strip() == result


# ---- bytes ----


def test_send__two_users_stay_within_their_limits_and_get_them(hosts: tuple[Host, Host]) -> None:
    """Each with several connections, all buffers always full, and rung without end."""
    with (
        running(hosts[1], SINK),
        attached(hosts[0], 1001) as one,
        attached(hosts[0], 1002) as other,
    ):
        begun = time.monotonic()
        opened = {user: connecting(user, hosts[1], 5000, 4)[0] for user in (one, other)}
        acked = {user: Acked(streams) for user, streams in opened.items()}
        zeros = bytes(BUFFER)

        def pump() -> int:
            for user, streams in opened.items():
                for stream in streams:
                    stream.write(zeros)
                    stream.put(144, 0)
                    stream.ring()
                user.wait(0.002)
            return min(counter.look() for counter in acked.values())

        eventually(lambda: pump() > 800_000, 60)
        for counter in acked.values():
            took = time.monotonic() - begun
            assert counter.look() <= RATE * took + BURST, (counter.total, took)
        # No connection of a user has nothing.
        for streams in opened.values():
            assert all(stream.word(24) > 10_000 for stream in streams)


def test_send__more_connections_and_attachments_are_no_way_round_it(
    hosts: tuple[Host, Host],
) -> None:
    """New connections all the time, each with a buffer of bytes, then gone."""
    with running(hosts[1], SINK), ExitStack() as stack:
        begun = time.monotonic()
        users = [stack.enter_context(attached(hosts[0], 1001)) for _ in range(3)]
        total = 0
        for _ in range(6):
            for user in users:
                for stream in connecting(user, hosts[1], 5000, 8)[0]:
                    stream.write(bytes(BUFFER))
                    user.wait(0.001)
                    total += stream.word(24)
                    user.close_stream(stream, ABORT)
        assert total <= RATE * (time.monotonic() - begun) + BURST


@pytest.mark.parametrize("end", [CLOSE, SHUT])
def test_send__what_was_written_before_the_end_arrives(hosts: tuple[Host, Host], end: int) -> None:
    """The limit holds bytes when the application lets go, and they are not lost."""
    with running(hosts[1], COUNT) as server, attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], 5000)[0][0]
        write_all(streams, stream, bytes(BUFFER))
        stream.command(end)
        eventually(lambda: load(streams.memory, 192) == streams.command_tail)
        # What it writes behind its end is nobody's.
        stream.put(128 + 4, BUFFER + 100)
        assert server.line(30) == str(BUFFER)


def test_send__a_peer_that_has_ended_its_direction_gets_all(hosts: tuple[Host, Host]) -> None:
    """What the limit holds goes on into the half that is open, and ends with this side's end."""
    with running(hosts[1], COUNT_AFTER_END) as server, attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], 5000)[0][0]
        eventually(lambda: [streams.wait(0.1), stream.state & HAS_END][1])
        begun = time.monotonic()
        write_all(streams, stream, bytes(4 * BUFFER))
        stream.command(SHUT)
        assert server.line(60) == str(4 * BUFFER)
        # It was held.
        assert 4 * BUFFER <= RATE * (time.monotonic() - begun) + BURST


def test_send__an_application_that_ends_leaves_bytes_that_arrive(hosts: tuple[Host, Host]) -> None:
    with running(hosts[1], COUNT) as server:
        with attached(hosts[0]) as streams:
            stream = connecting(streams, hosts[1], 5000)[0][0]
            write_all(streams, stream, bytes(BUFFER))
        assert server.line(30) == str(BUFFER)


def test_receive__by_the_window(hosts: tuple[Host, Host]) -> None:
    """It takes all at once and says so; what comes beyond the limit fits into the buffers."""
    with running(hosts[1], SOURCE), attached(hosts[0]) as streams:
        begun = time.monotonic()
        opened = connecting(streams, hosts[1], 5001, 3)[0]
        got = 0

        def pump() -> bool:
            nonlocal got
            for stream in opened:
                got += len(stream.take())
                stream.put(144, 0)
                stream.ring()
            streams.wait(0.002)
            return got > 1_200_000

        eventually(pump, 60)
        assert got <= RATE * (time.monotonic() - begun) + BURST + len(opened) * BUFFER


def test_receive__a_limit_lets_no_buffer_grow_that_it_holds(hosts: tuple[Host, Host]) -> None:
    """The peer's answer to the SYN is late, so that an application takes much within a round trip."""
    peer = hosts[1].homad
    with attached(hosts[0]) as streams, attached(hosts[1]) as source:
        with inside(hosts[1]), closing(bound("0.0.0.0", 6020)) as listener:
            assert listen_with(source.client, [listener.fileno()]).error == 0
        peer.send_signal(signal.SIGSTOP)
        later = threading.Timer(0.3, peer.send_signal, [signal.SIGCONT])
        later.start()
        stream = connecting(streams, hosts[1], 6020)[0][0]
        later.join()
        sending = next(one for kind, _, one, _ in source.wait(20) if kind == ACCEPTED and one)
        got = 0

        def pump() -> bool:
            nonlocal got
            sending.write(bytes(BUFFER))
            got += len(stream.take())
            source.poll()
            streams.wait(0.002)
            return got > 400_000

        eventually(pump, 60)
        assert stream.map(16)[0] <= USUAL_SHIFT


def test_limits__of_one_user_are_not_anothers(hosts: tuple[Host, Host]) -> None:
    """Who is not limited goes as fast as ever while another is held: more than the limit in the same time."""
    with (
        running(hosts[1], SINK),
        attached(hosts[0], 1001) as slow,
        attached(hosts[0], 1003) as fast,
    ):
        held = connecting(slow, hosts[1], 5000)[0][0]
        free = connecting(fast, hosts[1], 5000)[0][0]
        both = Acked([held]), Acked([free])
        begun = time.monotonic()

        def pump() -> bool:
            held.write(bytes(BUFFER))
            free.write(bytes(BUFFER))
            fast.wait(0.002)
            slow.poll()
            return both[1].look() > 5_000_000

        eventually(pump, 60)
        assert both[0].look() <= RATE * (time.monotonic() - begun) + 2 * BURST


# ---- connections ----


def test_connections__no_more_than_the_rule_says(hosts: tuple[Host, Host]) -> None:
    with (
        running(hosts[1], SINK),
        attached(hosts[0], 1003) as one,
        attached(hosts[0], 1003) as other,
    ):
        opened, errors = connecting(one, hosts[1], 5000, 5)
        assert len(opened) == 3 and errors == [errno.ENOBUFS] * 2
        # Another attachment of the same rule, until one is closed.
        assert connecting(other, hosts[1], 5000) == ([], [errno.ENOBUFS])
        one.close_stream(opened.pop(), ABORT)
        assert eventually(lambda: connecting(other, hosts[1], 5000)[0])


def test_connections__those_that_come_beyond_are_reset(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as streams, ExitStack() as stack:
        with inside(hosts[0]):
            streams.listen(hosts[0].v4, 6000)
        ones, ended = [], 0
        with inside(hosts[1]):
            for _ in range(6):
                try:
                    ones.append(
                        stack.enter_context(socket.create_connection((hosts[0].v4, 6000), 20))
                    )
                except ConnectionResetError:
                    ended += 1
        accepted: list[Stream] = []

        def four() -> bool:
            accepted.extend(
                stream for kind, _, stream, _ in streams.wait(1) if kind == ACCEPTED and stream
            )
            return len(accepted) == 4

        eventually(four)
        for one in ones:
            one.settimeout(1)
            try:
                one.recv(1)
            except ConnectionResetError:
                ended += 1
            except TimeoutError:
                pass
        assert (ended, len(accepted)) == (2, 4)


# ---- how they are treated ----


def test_treatment__dscp_and_congestion_control_of_the_rule(hosts: tuple[Host, Host]) -> None:
    """Each packet of the connection has the rule's DSCP, and DCTCP asks for ECN, which others do not."""
    with inside(hosts[1]), ExitStack() as stack:
        tap = stack.enter_context(
            closing(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)))
        )
        tap.bind(("eth0", 0x0800))
        tap.settimeout(20)
        for port in (5002, 5000):
            stack.enter_context(socket.create_server((hosts[1].v4, port)))
        with attached(hosts[0]) as streams:
            seen: dict[int, list[tuple[int, int]]] = {5002: [], 5000: []}
            for port, heard in seen.items():
                stream = connecting(streams, hosts[1], port)[0][0]
                stream.write(bytes(10))
                while not heard or not heard[-1][1] & 8:
                    packet = tap.recv(2048)
                    if packet[9] == 6 and packet[12:16] == socket.inet_aton(hosts[0].v4):
                        if struct.unpack_from("!H", packet, 22)[0] == port:
                            heard.append((packet[1], packet[33]))
            assert all(tos >> 2 == 46 for tos, _ in seen[5002]), seen
            assert all(tos == 0 for tos, _ in seen[5000]), seen
            assert (
                seen[5002][0][1] == 0xC2 and seen[5000][0][1] == 0x02
            )  # SYN, with and without ECE and CWR
            assert seen[5002][-1][0] & 3 == 2  # ECT(0)


@pytest.mark.parametrize(
    ("port", "control", "ecn"),
    [(5011, "constant", False), (5012, "timely", False), (5013, "dctcp-rate", True)],
)
def test_treatment__control_by_rate(
    hosts: tuple[Host, Host], port: int, control: str, ecn: bool
) -> None:
    """`homa ss` tells which one it is; DCTCP by rate asks for ECN, as by window."""
    with inside(hosts[1]):
        server = socket.create_server((hosts[1].v4, port))
    with closing(server), attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], port)[0][0]
        stream.write(bytes(BUFFER))
        flow = flow_to(hosts[0], port)
        assert (flow["congestion"], "ecn" in flow["options"]) == (control, ecn)
        eventually(lambda: flow_to(hosts[0], port)["bytes_acked"] > 0)


# ---- what homa ss tells ----


def flow_to(host: Host, port: int) -> dict:
    """The connection of `host`'s homad to that port."""
    found = json.loads(tool(host.homad, "ss", "--tcp", "--json").stdout)["tcp"]
    (one,) = [flow for flow in found if flow.get("peer_port") == port]
    return one


def test_ss__rule_limit_and_who_waits(hosts: tuple[Host, Host]) -> None:
    """What fits into the buffer takes 8 s at this rate, which is longer than looking."""
    with running(hosts[1], SINK.replace("5000", "5014")), attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], 5014)[0][0]
        quiet = flow_to(hosts[0], 5014)
        assert (quiet["rule"], quiet["dscp"], quiet["limited"]) == (6, 0, [])
        assert quiet["send_limit"] == 8000 and "receive_limit" not in quiet

        def waits() -> bool:
            stream.write(bytes(BUFFER))
            streams.wait(0.002)
            return flow_to(hosts[0], 5014)["limited"] == ["send"]

        eventually(waits, 60)
        said = tool(hosts[0].homad, "ss", "-td").stdout.split()
        assert "rule:6" in said
        assert {"send-limit:64.0kbit/s", "send-limit:64.0kbit/s,waits"} & set(said), said


def test_ss__window_that_waits(hosts: tuple[Host, Host]) -> None:
    """A program reads all that comes, which is far more at first than its rule allows."""
    with running(hosts[1], SOURCE.replace("5001", "5015")), attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], 5015)[0][0]

        def waits() -> bool:
            stream.take()
            streams.wait(0.002)
            flow = flow_to(hosts[0], 5015)
            assert (flow["rule"], flow["receive_limit"], "send_limit" in flow) == (7, 8000, False)
            return flow["limited"] == ["receive"]

        eventually(waits, 60)


# ---- reload ----


def test_reload__holds_for_what_is_open() -> None:
    with two_hosts(CONFIG) as hosts, running(hosts[1], SINK), attached(hosts[0]) as streams:
        stream = connecting(streams, hosts[1], 5000)[0][0]
        acked = Acked([stream])

        def pump() -> int:
            stream.write(bytes(BUFFER))
            streams.wait(0.002)
            return acked.look()

        eventually(lambda: pump() > 200_000)
        changed = CONFIG.replace('send = "4 Mbit/s"', 'send = "4 Gbit/s"').replace(
            "[5003, 5003]", "[5000, 5003]"
        )
        hosts[0].homad.configure(changed)
        hosts[0].homad.send_signal(signal.SIGHUP)
        eventually(lambda: connecting(streams, hosts[1], 5002)[1] == [errno.EACCES])
        # 40 MB would take 80 seconds; and what is open is not ended although its port is denied now.
        eventually(lambda: pump() > 40_000_000, 60)
        assert connecting(streams, hosts[1], 5000) == ([], [errno.EACCES])


def test_reload__holds_for_what_a_program_has_left() -> None:
    """It has ended, and its bytes go at the new rate. At the old one they would take 90 seconds."""
    slow = CONFIG.replace('send = "4 Mbit/s"', 'send = "64 kbit/s"')
    with two_hosts(slow) as hosts, running(hosts[1], COUNT_TWELVE) as server:
        with attached(hosts[0]) as streams:
            for stream in connecting(streams, hosts[1], 5000, 12)[0]:
                write_all(streams, stream, bytes(BUFFER))
        hosts[0].homad.configure(slow.replace("64 kbit/s", "4 Gbit/s"))
        hosts[0].homad.send_signal(signal.SIGHUP)
        assert server.line(40) == str(12 * BUFFER)
