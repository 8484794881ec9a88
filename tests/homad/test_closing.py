# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Descriptors that homad gets from applications, and whose close() takes long: with SO_LINGER the last one of a socket
waits for its peer, and that of a file of a file system for whoever serves that. Nobody else may wait for it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from attachtool import ATTACH, BIND, Client, request
from homad import Host, needs_homad, needs_root, two_hosts
from netns import Process, eventually
from streamtool import STREAM_LISTEN, STREAM_SHARE
from test_attach import attach_as
from test_tcp_hostile import SMALL, attached, bound, inside, listen_with
from test_tcp_passing import FOR_PASS, PASS_LISTENER, SO_COOKIE, stand_in

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

HOUR = struct.pack("ii", 1, 3600)  # struct linger


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(SMALL) as both:
        os.chmod(both[0].homad.socket, 0o777)
        yield both


@pytest.fixture(autouse=True)
def leaves_nothing(hosts: tuple[Host, Host]) -> Iterator[None]:
    had = hosts[0].homad.resources()
    yield
    hosts[0].homad.await_resources(had)
    hosts[0].homad.check()


def make_slow(sock: socket.socket) -> socket.socket:
    """Its last close() takes an hour from now on: it has bytes that the peer does not take."""
    sock.setblocking(False)
    try:
        while True:
            sock.send(bytes(65536))
    except BlockingIOError:
        sock.setblocking(True)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HOUR)
    return sock


@contextmanager
def stopped(host: Host) -> Iterator[None]:
    """homad's descriptors are the last ones when it goes on."""
    host.homad.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        host.homad.send_signal(signal.SIGCONT)


Deed = Callable[[Host, Client, Callable[[], socket.socket]], None]


def instead_of_a_listener(host: Host, client: Client, slow: Callable[[], socket.socket]) -> None:
    with stopped(host), slow() as sock:
        socket.send_fds(client.socket, [request(STREAM_LISTEN, 1)], [sock.fileno()])
    answer = client.answer()
    assert answer is not None and answer.error


def beside_another_one(host: Host, client: Client, slow: Callable[[], socket.socket]) -> None:
    with stopped(host), ExitStack() as stack:
        fds = [0, *(stack.enter_context(slow()).fileno() for _ in range(20))]
        socket.send_fds(client.socket, [request(STREAM_LISTEN, 1)], fds)
    answer = client.answer()
    assert answer is not None and answer.error


def never_read(host: Host, client: Client, slow: Callable[[], socket.socket]) -> None:
    with stopped(host), ExitStack() as stack:
        fds = [stack.enter_context(slow()).fileno() for _ in range(20)]
        socket.send_fds(client.socket, [request(STREAM_LISTEN, 1)], fds)
        client.close()


def in_a_connection_that_does_not_attach(
    host: Host, _: Client, slow: Callable[[], socket.socket]
) -> None:
    with stopped(host), Client(host.homad.socket) as other, slow() as sock:
        socket.send_fds(other.socket, [b"x"], [sock.fileno()])
        socket.send_fds(other.socket, [b"x"], [sock.fileno()])


def in_the_queue_of_what_a_ticket_is_for(
    host: Host, client: Client, slow: Callable[[], socket.socket]
) -> None:
    with inside(host), attached(host) as streams, closing(bound("127.0.0.1", 6012)) as listener:
        token = listen_with(streams.client, [listener.fileno()]).total
        stands, held = stand_in()
        cookie = int.from_bytes(stands.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), "little")
        what = request(STREAM_SHARE, FOR_PASS | PASS_LISTENER, ip=struct.pack("<QQ", token, cookie))
        socket.send_fds(streams.client.socket, [what], [held.fileno()])
        answer = streams.client.answer()
        assert answer is not None and not answer.error, answer
        held.close()
        taken, _ = stands.accept()
        with stopped(host), slow() as sock, taken, stands:
            socket.send_fds(taken, [b"x"], [sock.fileno()])


def a_listener_that_connects_afterwards(
    host: Host, _: Client, slow: Callable[[], socket.socket]
) -> None:
    with attached(host) as streams:
        sock = bound("127.0.0.1", 6013)
        assert not listen_with(streams.client, [sock.fileno()]).error
        sock.connect(slow.address)  # type: ignore[attr-defined]
        make_slow(sock).close()


DEEDS = [
    instead_of_a_listener,
    beside_another_one,
    never_read,
    in_a_connection_that_does_not_attach,
    in_the_queue_of_what_a_ticket_is_for,
    a_listener_that_connects_afterwards,
]


class Slow:
    """Makes such sockets. They end with it."""

    def __init__(self, stack: ExitStack) -> None:
        self.listener = stack.enter_context(closing(bound("127.0.0.1", 6010)))
        self.listener.listen()
        self.address = self.listener.getsockname()

    def __call__(self) -> socket.socket:
        return make_slow(socket.create_connection(self.address))


@pytest.mark.parametrize("deed", DEEDS)
def test_a_socket_that_lingers(deed: Deed, hosts: tuple[Host, Host]) -> None:
    """An hour of waiting is none for others."""
    host = hosts[0]
    with inside(host), ExitStack() as stack:
        slow = Slow(stack)
        with Client(host.homad.socket) as client:
            client.attach()
            deed(host, client, slow)
        with Client(host.homad.socket) as other:
            other.attach()


# A file system of one file, whose close() is never answered, and whoever passes this file to homad.
NEVER_CLOSED = """
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
place, path, packet, count, talk = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
try:
    fuse = os.open("/dev/fuse", os.O_RDWR)
except OSError as error:
    print("no", error, flush=True)
    sys.exit(0)
# What is mounted is for this process.
if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
    print("no", os.strerror(ctypes.get_errno()), flush=True)
    sys.exit(0)
options = f"fd={fuse},rootmode=100644,user_id=0,group_id=0,allow_other".encode()
if libc.mount(b"never", place.encode(), b"fuse", 0, options):
    print("no", os.strerror(ctypes.get_errno()), flush=True)
    sys.exit(0)

def serve():
    file = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o100644, 1, 0, 0, 0, 4096, 0)
    answers = {
        26: struct.pack("<4I2H2I2HI7I", 7, 31, 65536, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8),
        3: struct.pack("<Q2I", 3600, 0, 0) + file,
        14: struct.pack("<Q2I", 1, 0, 0),
    }
    while True:
        what = os.read(fuse, 135168)
        _, op, number = struct.unpack_from("<IIQ", what)
        if op in (2, 25, 36, 42):
            continue
        body = answers.get(op)
        os.write(fuse, struct.pack("<IiQ", 16 + len(body or b""), 0 if body else -38, number) + (body or b""))

# This process serves, its child has the file: the end of this one is the end of the file system, and its child's
# close() returns then.
if not os.fork():
    file = os.open(place, os.O_RDONLY)
    os.close(fuse)
    os.setresuid(1001, 1001, 1001)
    exec(talk)
    os._exit(0)
serve()
"""


# Connections that do not attach pass it, one after the other.
STRANGERS = """
heard = 0
for _ in range(count):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(30)
    client.connect(path)
    try:
        socket.send_fds(client, [packet], [file])
        heard += client.recv(4096) != b""
    except ConnectionError:
        pass
print("heard", heard, flush=True)
"""

# An attachment passes it with each request, and says how many are answered until there are no more answers for two
# seconds; then how many are in the end.
ATTACHMENT = """
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(path)
client.send(bytes.fromhex(sys.argv[6]))
client.recv(4096)
for _ in range(count):
    socket.send_fds(client, [packet], [file])
heard = 0
for seconds in (2, 30):
    client.settimeout(seconds)
    try:
        while heard < count and client.recv(4096):
            heard += 1
    except (TimeoutError, ConnectionError):
        pass
    print("heard", heard, flush=True)
"""


def never_closed(host: Host, folder: Path, op: int, count: int, *talk: str) -> Process:
    """The program, which has said nothing yet."""
    place = folder / "file"
    place.touch()
    words = [
        sys.executable,
        "-c",
        NEVER_CLOSED,
        place,
        host.homad.socket,
        request(op, 1).hex(),
        count,
    ]
    return host.space.start([str(word) for word in (*words, *talk)])


def heard(program: Process) -> int:
    """How many requests were answered."""
    said = program.line(60)
    if said.startswith("no"):
        pytest.skip(f"no file system of a program's own here: {said}")
    return int(said.removeprefix("heard "))


def test_a_file_whose_close_is_never_answered(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """Others go on. The user is heard until some of these are there, and again when they have gone."""
    host, count = hosts[0], 60
    program = never_closed(host, tmp_path, STREAM_LISTEN, count, STRANGERS)
    try:
        assert 4 <= heard(program) < count - 20
        with Client(host.homad.socket) as other:
            other.attach()
    finally:
        program.stop()

    def is_heard() -> bool:
        try:
            client = attach_as(str(host.homad.socket), 1001)
        except (AssertionError, ConnectionError):  # homad has hung up
            return False
        assert client
        client.close()
        return True

    eventually(is_heard)


def test_an_attachment_that_passes_such_files(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """Its requests wait until the files have gone. It is not ended."""
    attach = request(ATTACH, 131072).hex()
    program = never_closed(hosts[0], tmp_path, BIND, 40, ATTACHMENT, attach)
    try:
        assert 4 <= heard(program) < 20
        program.send_signal(signal.SIGKILL)
        assert heard(program) == 40
    finally:
        program.stop()
