# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in homad with applications that break every rule (streamtool.py speaks abi/shm_stream.h by hand)."""

from __future__ import annotations

import array
import ctypes
import errno
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from tempfile import NamedTemporaryFile

import pytest
from attachtool import METRICS, Client, request
from homad import Host, Process, needs_homad, needs_root, two_hosts
from netns import eventually
from streamtool import (
    ABORT,
    BACKLOG,
    CAN_UNJOINED,
    CLOSE,
    COMMAND_TAIL,
    EVENT_HEAD,
    FAILED,
    OPENED,
    OPTIONS,
    RING,
    SHUT,
    STREAM_LISTEN,
    STREAMS,
    UNLISTEN,
    Stream,
    Streams,
    store,
    store_map,
)
from test_attach import attach_as
from test_tcp import RULES, TOOL, serve
from test_tcp_many import kernel_server

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

PORT = 5000
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
# Echoes to all who come, with the kernel's sockets.
ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data)
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1000
with Server(("0.0.0.0", 5000), Echo) as server:
    print("ready", flush=True)
    server.serve_forever()
"""
SMALL = RULES.replace("[protocol]", "[tcp]\nstreams = 64\n[protocol]")


@contextmanager
def inside(host: Host) -> Iterator[None]:
    """This thread's sockets are of the host's network while it lasts."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    theirs = os.open(f"/run/netns/{host.space.name}", os.O_RDONLY)
    assert not _libc.setns(theirs, CLONE_NEWNET)
    try:
        yield
    finally:
        assert not _libc.setns(own, CLONE_NEWNET)
        os.close(own)
        os.close(theirs)


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(SMALL) as both:
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


def listen_with(client: Client, fds: list[int], backlog: int = 16) -> object:
    socket.send_fds(client.socket, [request(STREAM_LISTEN, backlog)], fds)
    answer = client.answer()
    assert answer is not None
    return answer


def bound(address: str, port: int, reuse: bool = True) -> socket.socket:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    if reuse:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    return s


def await_end(streams: Streams) -> None:
    """homad hangs up on whoever breaks the rules."""
    streams.client.socket.settimeout(20)
    try:
        assert streams.client.socket.recv(4096) == b""
    except ConnectionError:
        pass


def close(streams: Streams) -> None:
    streams.client.close()


@contextmanager
def attached(host: Host, features: int = CAN_UNJOINED) -> Iterator[Streams]:
    streams = Streams(host.homad.socket, features)
    try:
        yield streams
    finally:
        close(streams)


def connected(streams: Streams, host: Host, port: int = PORT) -> Stream:
    streams.connect(host.v4, port, 7)
    kind, error, stream, token = streams.wait(20)[0]
    assert (kind, token) == (OPENED, 7), (kind, error, token)
    assert stream is not None
    return stream


def echo_on(host: Host) -> Process:
    server = host.start([sys.executable, "-c", ECHO])
    assert server.line() == "ready"
    return server


@pytest.fixture(scope="module")
def echo(hosts: tuple[Host, Host]) -> Iterator[None]:
    """An echo server of the kernel's on the second host."""
    server = echo_on(hosts[1])
    yield
    server.stop(signal.SIGKILL)


def works(hosts: tuple[Host, Host]) -> None:
    """Another application is still served."""
    done = hosts[0].run(
        [
            sys.executable,
            str(TOOL),
            str(hosts[0].homad.socket),
            "send",
            hosts[1].v4,
            str(PORT),
            "20000",
        ]
    )
    assert done.stdout.strip() == "echoed 20000"


# ---- descriptors ----


@pytest.mark.parametrize("count", [2, 3, 100])
def test_sockets_passed__too_many_are_not_kept(hosts: tuple[Host, Host], count: int) -> None:
    # Not all of homad's descriptors are counted: it opens more for ports when it begins.
    with Client(hosts[0].homad.socket) as client, NamedTemporaryFile() as passed:
        client.attach()
        for _ in range(20):
            socket.send_fds(client.socket, [request(METRICS)], [passed.fileno()] * count)
            answer = client.answer()
            assert answer is not None and answer.error == 0
            client.records(answer.total, 160)
        # Those of the last request may be open a moment longer than its answer takes.
        eventually(lambda: list(hosts[0].homad.fds().values()).count(passed.name) <= 2)


def test_sockets_passed__with_an_empty_request(hosts: tuple[Host, Host]) -> None:
    before = len(hosts[0].homad.fds())
    for _ in range(30):
        with Client(hosts[0].homad.socket) as client:
            rights = array.array("i", [0])
            client.socket.sendmsg([b""], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            assert client.socket.recv(4096) == b""
    eventually(lambda: len(hosts[0].homad.fds()) <= before)


# ---- listening ----


def test_listen__a_connection_of_anothers_port_proves_nothing(hosts: tuple[Host, Host]) -> None:
    """An accepted socket has its listener's port, also when it has ended, and is not the port's owner."""
    with (
        inside(hosts[0]),
        closing(bound("127.0.0.1", 6000)) as listener,
        attached(hosts[0]) as streams,
    ):
        listener.listen()
        with closing(socket.create_connection(("127.0.0.1", 6000))) as other:
            one, _ = listener.accept()
            assert listen_with(streams.client, [one.fileno()]).error == -errno.EINVAL
            # The peer's reset: in state CLOSE, but its name is as it was.
            other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(lambda: one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x07")
        assert one.getsockname()[1] == 6000
        assert listen_with(streams.client, [one.fileno()]).error == -errno.EINVAL
        one.close()


@pytest.mark.parametrize(
    "kind", ["listens", "connected", "udp", "unix", "file", "none", "other network", "not bound"]
)
def test_listen__what_is_no_bound_socket(hosts: tuple[Host, Host], kind: str) -> None:
    with ExitStack() as stack, attached(hosts[0]) as streams:
        with inside(hosts[1] if kind == "other network" else hosts[0]):
            s = stack.enter_context(closing(bound("127.0.0.1", 6001)))
        if kind == "listens":
            s.listen()
        elif kind == "connected":
            with inside(hosts[0]):
                target = stack.enter_context(closing(bound("127.0.0.1", 6002)))
            target.listen()
            s.connect(("127.0.0.1", 6002))
        elif kind == "udp":
            s = stack.enter_context(closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
        elif kind == "unix":
            s = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
        elif kind == "not bound":
            with inside(hosts[0]):
                s = stack.enter_context(closing(socket.socket()))
        fds = [] if kind == "none" else [0] if kind == "file" else [s.fileno()]
        answer = listen_with(streams.client, fds)
        assert answer.error == -errno.EINVAL, answer
        assert len(answer.text) > 15


def test_listen__no_other_user_gets_a_part_of_the_port(hosts: tuple[Host, Host]) -> None:
    """The kernel lets anybody bind 10.9.0.1:P beside 0.0.0.0:P as long as neither listens there."""
    with inside(hosts[0]), ExitStack() as stack:
        first, second = (
            attach_as(str(hosts[0].homad.socket), 1001),
            attach_as(str(hosts[0].homad.socket), 1002),
        )
        assert first and second
        for client in (first, second):
            stack.enter_context(closing(client))
            assert client.ask(STREAMS).error == 0
        anywhere = stack.enter_context(closing(bound("0.0.0.0", 6003)))
        assert listen_with(first, [anywhere.fileno()]).error == 0
        here = stack.enter_context(closing(bound(hosts[0].v4, 6003)))
        assert listen_with(second, [here.fileno()]).error == -errno.EADDRINUSE
        assert listen_with(first, [here.fileno()]).error == -errno.EADDRINUSE
        six = stack.enter_context(closing(bound("::", 6004)))
        assert listen_with(first, [six.fileno()]).error == 0
        four = stack.enter_context(closing(bound(hosts[0].v4, 6005)))
        assert listen_with(second, [four.fileno()]).error == 0


def test_listen__reuseport_is_for_sockets_of_one_user(hosts: tuple[Host, Host]) -> None:
    """Who sets SO_REUSEPORT after bind() shares no port with another user, nor with one that did not."""
    with inside(hosts[0]), ExitStack() as stack:
        first, second = (
            attach_as(str(hosts[0].homad.socket), 1001),
            attach_as(str(hosts[0].homad.socket), 1002),
        )
        assert first and second
        for client in (first, second):
            stack.enter_context(closing(client))
            assert client.ask(STREAMS).error == 0
        sockets = [stack.enter_context(closing(bound("0.0.0.0", 6006))) for _ in range(4)]
        for s in sockets[1:]:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own, other, mate, plain = *sockets[1:], sockets[0]
        assert listen_with(first, [own.fileno()]).error == 0
        assert listen_with(second, [other.fileno()]).error == -errno.EADDRINUSE
        assert listen_with(first, [plain.fileno()]).error == -errno.EADDRINUSE
        assert listen_with(first, [mate.fileno()]).error == 0


def test_listen__not_more_sockets_than_a_user_may_leave(hosts: tuple[Host, Host]) -> None:
    before = len(hosts[0].homad.fds())
    taken = 0
    with inside(hosts[0]), attached(hosts[0]) as streams:
        for port in range(2000, 2600):
            with closing(bound("127.0.0.1", port)) as s:
                answer = listen_with(streams.client, [s.fileno()])
            if answer.error:
                assert answer.error == -errno.EDQUOT and "listen" in answer.text, answer
                break
            taken += 1
        assert 64 <= taken <= 512
        assert len(hosts[0].homad.fds()) <= before + taken + 16


# ---- commands ----

Deed = Callable[[Streams, Stream], None]


def put_tail(streams: Streams, value: int) -> None:
    store(streams.memory, COMMAND_TAIL, value)
    os.write(streams.kick_fd, struct.pack("<Q", 1))


def twice(op: int) -> Deed:
    def deed(_: Streams, stream: Stream) -> None:
        stream.command(op)
        stream.command(op)

    return deed


def map_of(shift: int, origin: int = 0, written: int = 1) -> Deed:
    def deed(_: Streams, stream: Stream) -> None:
        store_map(stream.owner.memory, stream.at + 128 + 8, shift, origin)
        stream.put(128 + 4, stream.end + written)
        stream.ring()

    return deed


WRONG: dict[str, Deed] = {
    "a slot beyond the last": lambda s, _: s.command(RING, slot=s.num_slots, generation=1),
    "the last number there is": lambda s, _: s.command(CLOSE, slot=0xFFFFFFFF, generation=1),
    "a slot without a stream": lambda s, _: s.command(RING, slot=s.num_slots - 1, generation=1),
    "the next generation": lambda s, one: s.command(RING, one.slot, one.generation + 1),
    "generation 0": lambda s, one: s.command(ABORT, one.slot, 0),
    "closed twice": twice(CLOSE),
    "reset twice": twice(ABORT),
    "a listener that is none": lambda s, _: s.command(UNLISTEN, slot=1),
    "listener 0": lambda s, _: s.command(UNLISTEN, slot=0),
    "a backlog of none": lambda s, _: s.command(BACKLOG, slot=1, value=5),
    "command 0": lambda s, one: s.command(0, one.slot, one.generation),
    "command 65535": lambda s, one: s.command(65535, one.slot, one.generation),
    "a tail beyond the ring": lambda s, _: put_tail(s, s.command_tail + s.entries + 1),
    "a tail behind the head": lambda s, _: put_tail(s, s.command_tail - 1),
    "more taken than came": lambda _, one: (one.put(128, one.read + 1), one.ring())[1],
    "taken backwards": lambda _, one: (one.put(128, one.read - 1), one.ring())[1],
    "more written than there is room": map_of(12, 0, (1 << 12) + 1),
    "written backwards": map_of(12, 0, -1),
    "a map of 2^11 bytes": map_of(11),
    "a map of 2^13 bytes, which has no memory": map_of(13),
    "a map of 2^31 bytes": map_of(31),
    "a map of 2^32 bytes": map_of(32),
    "a map of 2^46 bytes": map_of(46),
    "a map of all ones": map_of(0xFFFFFFFF, 0xFFFFFFFF),
}


@pytest.mark.parametrize("deed", WRONG)
def test_commands__an_impossible_one_ends_the_attachment(
    hosts: tuple[Host, Host], echo: None, deed: str
) -> None:
    with attached(hosts[0]) as streams:
        WRONG[deed](streams, connected(streams, hosts[1]))
        await_end(streams)
        hosts[0].homad.check()


HARMLESS: dict[str, Deed] = {
    "any origin": map_of(12, 0xFFFFFFFF, 100),
    "a map of 4 KB with 1 KB": map_of(12, 77, 1000),
    "shut twice": twice(SHUT),
    "all options and more": lambda _, one: one.command(OPTIONS, 0xFFFFFFFF),
    "rung for nothing": lambda _, one: [one.command(RING) for _ in range(100)] and None,
    "an event head that cannot be": lambda s, _: store(s.memory, EVENT_HEAD, 0x80000000),
    "its words overwritten": lambda s, one: (
        [one.put(i, 0xFFFFFFFF) for i in range(0, 128, 4)] and None
    ),
    "the head of the area overwritten": lambda s, _: s.memory.__setitem__(
        slice(0, 64), b"\xff" * 64
    ),
    "the rules overwritten": lambda s, _: s.memory.__setitem__(
        slice(384, 384 + 1536), b"\xff" * 1536
    ),
}


@pytest.mark.parametrize("deed", HARMLESS)
def test_commands__a_strange_one_is_the_applications_own_loss(
    hosts: tuple[Host, Host], echo: None, deed: str
) -> None:
    with attached(hosts[0]) as streams:
        HARMLESS[deed](streams, connected(streams, hosts[1]))
        works(hosts)


def test_commands__written_behind_the_end(hosts: tuple[Host, Host], echo: None) -> None:
    """Bytes that are written after SHUT go nowhere, and the map of them changes nothing for homad."""
    with attached(hosts[0]) as streams:
        stream = connected(streams, hosts[1])
        stream.write(bytes(10000))
        stream.command(SHUT)
        for i in range(50):
            map_of(12 + i % 3, i * 977, 50 + i)(streams, stream)
            stream.end += 50 + i
            time.sleep(0.001)
        works(hosts)


def test_connect__a_flood_that_reads_no_events(hosts: tuple[Host, Host], echo: None) -> None:
    with attached(hosts[0]) as streams:
        for i in range(3 * streams.entries):
            streams.connect("10.9.0.2", 80, i)  # no rule
            if i % 64 == 63:
                time.sleep(0.002)
        works(hosts)


@pytest.mark.parametrize(
    "address", ["224.0.0.1", "255.255.255.255", "0.0.0.0", "127.0.0.1", "::", "::1", "ff02::1"]
)
def test_connect__what_is_no_host(hosts: tuple[Host, Host], address: str) -> None:
    with attached(hosts[0]) as streams:
        streams.connect(address, PORT, 9)
        kind, error, _, token = streams.wait(20)[0]
        assert (kind, token) == (FAILED, 9) and error, errno.errorcode.get(error)


def test_connect__nobody_answers_and_others_go_on(hosts: tuple[Host, Host], echo: None) -> None:
    with attached(hosts[0]) as streams:
        for i in range(8):
            streams.connect("10.9.0.77", PORT, 100 + i)
        assert connected(streams, hosts[1])
        works(hosts)


# ---- memory ----


def test_quota__connections_fail_and_nobody_spins() -> None:
    """A user without room for more slots hears so; closing one makes room, and homad rests meanwhile."""
    config = RULES.replace("[protocol]", '[quota]\nuser_memory = "16 MiB"\n[protocol]')
    with two_hosts(config) as hosts:
        server = kernel_server(hosts[1])
        with attached(hosts[0]) as streams:
            streams.connect(hosts[1].v4, PORT, 0)
            open_ones, failed, token = [], 0, 0
            while not failed and token < 2500:
                events = streams.wait(20)
                assert events, f"no word of connection {token}, with {len(open_ones)} open"
                for kind, error, stream, _ in events:
                    if kind == OPENED:
                        open_ones.append(stream)
                    elif kind == FAILED:
                        assert error == errno.ENOBUFS, errno.errorcode[error]
                        failed += 1
                token += 1
                streams.connect(hosts[1].v4, PORT, token)
            assert failed and 16 <= len(open_ones) < 2200, len(open_ones)
            streams.wait(20)
            before = hosts[0].homad.switches()
            time.sleep(0.5)
            assert hosts[0].homad.switches() - before < 500
            streams.close_stream(open_ones.pop(), ABORT)
            streams.poll()
            streams.connect(hosts[1].v4, PORT, 9999)
            assert eventually(
                lambda: [e for e in streams.poll() if e[0] == OPENED and e[3] == 9999]
            )
        server.stop(signal.SIGKILL)


def test_accept__many_at_once_that_send_at_once(hosts: tuple[Host, Host]) -> None:
    """The slots for them come a few at a time, and none of them is reset because its bytes came first."""
    count = 60
    server = serve(hosts[0], "homad", hosts[0].v4, count)
    with inside(hosts[1]), ExitStack() as stack:
        ones = []
        for _ in range(count):
            s = stack.enter_context(closing(socket.socket()))
            s.setblocking(False)
            assert s.connect_ex((hosts[0].v4, PORT)) in (0, errno.EINPROGRESS)
            ones.append(s)
        for s in ones:
            s.settimeout(30)
            eventually(
                lambda s=s: (
                    s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and s.send(b"x" * 1000)
                )
            )
        for s in ones:
            got = b""
            while len(got) < 1000:
                more = s.recv(2000)
                assert more
                got += more
            s.shutdown(socket.SHUT_WR)
    assert server.wait()[0] == 0


def test_time_wait__does_not_keep_memory_from_new_connections() -> None:
    """The end that closes first remembers a connection for a minute; with 64 in all, 200 in a row."""
    config = RULES.replace("[protocol]", "[tcp]\nconnections = 64\n[protocol]")
    with two_hosts(config) as hosts:
        server = echo_on(hosts[1])
        with attached(hosts[0]) as streams:
            for i in range(200):

                def opened(token: int = i) -> Stream | None:
                    """None: the peer has not closed any yet."""
                    streams.connect(hosts[1].v4, PORT, token)
                    kind, error, stream, _ = streams.wait(20)[0]
                    if kind != OPENED:
                        assert error == errno.ENOMEM, errno.errorcode[error]
                    return stream

                stream = eventually(opened, 20)
                assert isinstance(stream, Stream)
                streams.close_stream(stream)
        server.stop(signal.SIGKILL)


# ---- ends ----


@pytest.mark.parametrize(
    "moment", ["attached", "connecting", "open", "sending", "listening", "unread"]
)
def test_kill__in_every_moment(hosts: tuple[Host, Host], echo: None, moment: str) -> None:
    for _ in range(5):
        with inside(hosts[0]):
            pid = os.fork()
            if not pid:
                try:
                    streams = Streams(hosts[0].homad.socket)
                    if moment == "connecting":
                        for i in range(30):
                            streams.connect(hosts[1].v4, PORT, i)
                    elif moment == "listening":
                        streams.listen(hosts[0].v4, 7000)
                    elif moment != "attached":
                        stream = connected(streams, hosts[1])
                        if moment != "open":
                            stream.write(bytes(16000))
                        if moment == "unread":
                            time.sleep(0.1)
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
    works(hosts)


def test_homad_killed__peers_hear_a_reset() -> None:
    with two_hosts(RULES) as hosts:
        server = echo_on(hosts[1])
        with attached(hosts[0]) as streams:
            connected(streams, hosts[1])
            hosts[0].homad.kill()
            await_end(streams)
        hosts[0].homad.start()
        with attached(hosts[0]) as streams:
            assert streams.num_slots
        server.stop(signal.SIGKILL)
