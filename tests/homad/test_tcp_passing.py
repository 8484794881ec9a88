# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tickets for one stream or listener, which go through UNIX sockets (HOMA_CTL_FOR_PASS), and who lies about them."""

from __future__ import annotations

import errno
import os
import resource
import select
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from attachtool import Answer, request
from homad import Host, needs_homad, needs_root, two_hosts
from netns import eventually
from streamtool import (
    STREAM_SHARE,
    STREAM_TAKE,
    STREAMS,
    UNLISTEN,
    UNLISTENED,
    Streams,
)
from test_attach import attach_as
from test_tcp import RULES
from test_tcp_fork import PORT, accepted, join, said, share
from test_tcp_hostile import attached, close, inside

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

FOR_PASS, PASS_LISTENER = 8, 16  # bits of a request for a ticket
TAKEN_LISTENER, TAKEN_BEFORE = 1, 2  # of an answer to STREAM_TAKE
SO_COOKIE = 57


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        os.chmod(both[0].homad.socket, 0o777)
        yield both


@pytest.fixture(autouse=True)
def leaves_nothing(hosts: tuple[Host, Host]) -> Iterator[None]:
    had = hosts[0].homad.resources()
    yield
    hosts[0].homad.await_resources(had)
    hosts[0].homad.check()


def stand_in() -> tuple[socket.socket, socket.socket]:
    """A socket that stands for a stream, and the end of the connection that waits there."""
    stands, held = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    stands.bind(b"")
    stands.listen(1)
    held.connect(stands.getsockname())
    return stands, held


def passed(
    streams: Streams, name: int, bits: int = 0, cookie: int | None = None
) -> tuple[Answer, socket.socket]:
    """A ticket for what `streams` names so, and the socket that stands for it."""
    stands, held = stand_in()
    own = int.from_bytes(stands.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), "little")
    what = struct.pack("<QQ", name, own if cookie is None else cookie)
    with held:
        socket.send_fds(
            streams.client.socket,
            [request(STREAM_SHARE, FOR_PASS | bits, ip=what)],
            [held.fileno()],
        )
        answer = streams.client.answer()
    assert answer is not None
    return answer, stands


def take(streams: Streams, *shown: int) -> Answer:
    if shown:
        socket.send_fds(streams.client.socket, [request(STREAM_TAKE)], list(shown))
    else:
        streams.client.send(request(STREAM_TAKE))
    answer = streams.client.answer()
    assert answer is not None
    return answer


def test_passed_stream__is_held_while_its_socket_lives(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as first, attached(hosts[0]) as second, attached(hosts[0]) as third:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        stream, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            name = stream.generation << 32 | stream.slot
            answer, stands = passed(first, name)
            assert answer.error == 0
            first.close_stream(stream)
            taken = take(second, stands.fileno())
            assert (taken.error, taken.flags) == (0, 0)
            again = take(second, stands.fileno())
            assert (again.flags, again.total) == (TAKEN_BEFORE, taken.total)
            assert take(third, stands.fileno()).error == 0
            close(second)
            close(third)
            peer.settimeout(0.3)
            with pytest.raises(TimeoutError):
                peer.recv(1)
            stands.close()
            peer.settimeout(20)
            assert peer.recv(1) == b""


def test_passing__what_one_has_not_and_too_much(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        for name, bits in (
            (0, 0),
            (1 << 32, 0),
            (2**64 - 1, 0),
            (5, PASS_LISTENER),
            (2**63, PASS_LISTENER),
        ):
            answer, stands = passed(first, name, bits)
            assert answer.error == -errno.ENOENT
            assert take(second, stands.fileno()).error == -errno.ENOENT
            stands.close()
        assert take(second).error == -errno.ENOENT
        assert take(second, 0).error == -errno.ENOENT
        with socket.socket() as nothing:
            assert take(second, nothing.fileno()).error == -errno.ENOENT
        kept = []
        for _ in range(256):
            answer, stands = passed(first, number, PASS_LISTENER)
            assert answer.error == 0
            kept.append(stands)
        assert passed(first, number, PASS_LISTENER)[0].error == -errno.EDQUOT
        for stands in kept:
            taken = take(second, stands.fileno())
            assert taken.error == 0 and taken.flags & TAKEN_LISTENER
            stands.close()
        assert taken.flags & TAKEN_BEFORE


def test_listener__is_taken_and_left_often(hosts: tuple[Host, Host]) -> None:
    """The memory for it is used again."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        answer, stands = passed(first, number, PASS_LISTENER)
        assert answer.error == 0
        for _ in range(100):
            taken = take(second, stands.fileno())
            assert taken.flags == TAKEN_LISTENER
            second.command(UNLISTEN, taken.total)
            said(second, UNLISTENED)
        stands.close()


# ---- who lies ----


def test_passing__a_ticket_without_a_socket_is_none(hosts: tuple[Host, Host]) -> None:
    """SO_COOKIE is never 0; as a ticket for a child it would have no room for what the child has."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        for _ in range(64):
            answer, stands = passed(first, number, PASS_LISTENER, cookie=0)
            if not answer.error:
                join(second, answer.ip)
            stands.close()
            assert answer.error == -errno.EINVAL and "SO_COOKIE" in answer.text, answer
        assert not first.evicted()
        assert not second.evicted()


def test_passing__is_not_joined(hosts: tuple[Host, Host]) -> None:
    """Nor if who passes says that it is for a child, or for a program."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        for bits in range(8):
            answer, stands = passed(first, number, PASS_LISTENER | bits)
            if not answer.error:
                assert join(second, answer.ip).error == -errno.EINVAL
                assert join(second, answer.ip, 1).error == -errno.EINVAL
                assert take(second, stands.fileno()).error == 0
            stands.close()


@pytest.mark.parametrize("kind", ["memory", "file", "tcp", "udp", "unix", "pipe", "epoll"])
@pytest.mark.parametrize("bits", [0, FOR_PASS])
def test_ticket__comes_with_a_pipe_or_a_socket(
    hosts: tuple[Host, Host], bits: int, kind: str
) -> None:
    """Anything else may never tell that nobody is left, or make homad wait when it closes that."""
    with attached(hosts[0]) as streams:
        with inside(hosts[0]):
            number = streams.listen("0.0.0.0", PORT)
        more: list[int] = []
        if kind == "memory":
            fd = os.memfd_create("x")
        elif kind == "file":
            fd = os.open("/dev/zero", os.O_RDONLY)
        elif kind == "pipe":
            fd, write = os.pipe()
            more.append(write)
        elif kind == "epoll":
            with select.epoll() as epoll:
                fd = os.dup(epoll.fileno())
        elif kind == "unix":
            fd, other = (s.detach() for s in socket.socketpair())
            more.append(other)
        else:
            way = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
            fd = socket.socket(socket.AF_INET, way).detach()
        what = struct.pack("<QQ", number, 1 << 40)
        packet = request(STREAM_SHARE, bits and bits | PASS_LISTENER, ip=what)
        socket.send_fds(streams.client.socket, [packet], [fd])
        answer = streams.client.answer()
        assert answer is not None
        if kind == ("unix" if bits else "pipe"):
            assert answer.error == 0, answer
        else:
            needed = "UNIX socket" if bits else "pipe"
            assert answer.error == -errno.EINVAL and needed in answer.text, answer
        for one in (fd, *more):
            os.close(one)


def listens() -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.bind(b"")
    one.listen()
    return one


# What has no other end that could be closed, or none that says so.
NEVER_ENDS: dict[str, Callable[[], list[socket.socket]]] = {
    "datagrams": lambda: [*socket.socketpair(type=socket.SOCK_DGRAM)],
    "datagrams of nobody": lambda: [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)],
    "packets": lambda: [*socket.socketpair(type=socket.SOCK_SEQPACKET)],
    "listens": lambda: [listens()],
    "alone": lambda: [socket.socket(socket.AF_UNIX)],
}


def ticket(streams: Streams, number: int, bits: int, fd: int) -> Answer:
    """A ticket for listener `number` that is valid as long as `fd` says."""
    what = struct.pack("<QQ", number, 1 << 40) if bits else bytes(16)
    packet = request(STREAM_SHARE, bits and bits | PASS_LISTENER, ip=what)
    socket.send_fds(streams.client.socket, [packet], [fd])
    answer = streams.client.answer()
    assert answer is not None
    return answer


@pytest.mark.parametrize("kind", NEVER_ENDS)
def test_ticket__would_be_valid_for_ever(hosts: tuple[Host, Host], kind: str) -> None:
    with attached(hosts[0]) as streams, ExitStack() as stack:
        with inside(hosts[0]):
            number = streams.listen("0.0.0.0", PORT)
        for one in NEVER_ENDS[kind]():
            stack.enter_context(one)
            assert ticket(streams, number, FOR_PASS, one.fileno()).error == -errno.EINVAL


@pytest.mark.parametrize("mode", [os.O_RDWR, os.O_WRONLY])
def test_ticket__by_a_pipe_to_which_homad_could_write(hosts: tuple[Host, Host], mode: int) -> None:
    """The pipe would have a writer as long as homad waits for the end of its writers."""
    with attached(hosts[0]) as streams:
        with inside(hosts[0]):
            streams.listen("0.0.0.0", PORT)
        ends = os.pipe()
        again = os.open(f"/proc/self/fd/{ends[0]}", mode)
        assert ticket(streams, 0, 0, again).error == -errno.EINVAL
        for fd in (*ends, again):
            os.close(fd)


@pytest.mark.parametrize(
    "way", ["both ends", "its other end waits in its queue", "in each other's"]
)
def test_ticket__that_keeps_its_socket_open_is_void(hosts: tuple[Host, Host], way: str) -> None:
    """When all who could show the ticket have gone, homad has neither tickets nor sockets (leaves_nothing)."""
    with attached(hosts[0]) as streams:
        with inside(hosts[0]):
            number = streams.listen("0.0.0.0", PORT)
        had = len(hosts[0].homad.fds())
        one, other = socket.socketpair()
        third, fourth = socket.socketpair()
        with one, other, third, fourth:
            assert ticket(streams, number, FOR_PASS, one.fileno()).error == 0
            if way == "both ends":
                assert ticket(streams, number, FOR_PASS, other.fileno()).error == 0
            elif way == "in each other's":
                assert ticket(streams, number, FOR_PASS, third.fileno()).error == 0
                socket.send_fds(other, [b"x"], [fourth.fileno()])
                socket.send_fds(fourth, [b"x"], [other.fileno()])
            else:
                socket.send_fds(other, [b"x"], [other.fileno()])
        eventually(lambda: len(hosts[0].homad.fds()) <= had)


def test_passing__leaves_tickets_for_children(hosts: tuple[Host, Host]) -> None:
    """Who passes as many as he may can still fork; and the other way round."""
    with attached(hosts[0]) as streams:
        with inside(hosts[0]):
            number = streams.listen("0.0.0.0", PORT)
        kept = []
        for _ in range(256):
            answer, stands = passed(streams, number, PASS_LISTENER)
            assert answer.error == 0
            kept.append(stands)
        answer, stands = passed(streams, number, PASS_LISTENER)
        assert answer.error == -errno.EDQUOT and "on their way" in answer.text, answer
        stands.close()
        pipes = []
        for _ in range(256):
            answer, pipe = share(streams)
            pipes.append(pipe)
            assert answer.error == 0, answer
        answer, pipe = share(streams)
        assert answer.error == -errno.EDQUOT and "children" in answer.text, answer
        for one in (*pipes, pipe):
            os.close(one)
        for stands in kept:
            stands.close()


def test_take__what_another_user_passes_is_nothing(hosts: tuple[Host, Host]) -> None:
    """homad looks at no tickets but those of who asks, however many others have."""
    with attached(hosts[0]) as first:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        answer, stands = passed(first, number, PASS_LISTENER)
        assert answer.error == 0
        other = attach_as(str(hosts[0].homad.socket), 1001)
        assert other
        with closing(other):
            assert other.ask(STREAMS).error == 0
            socket.send_fds(other.socket, [request(STREAM_TAKE)], [stands.fileno()])
            refused = other.answer()
            assert refused is not None
            assert refused.error == -errno.ENOENT and "of this user" in refused.text, refused
        stands.close()


def test_take__says_why_not() -> None:
    """Not that there is no memory, if there is none of something else."""
    with two_hosts(RULES) as (host, _), attached(host) as first, attached(host) as second:
        with inside(host):
            number = first.listen("0.0.0.0", PORT)
        answer, stands = passed(first, number, PASS_LISTENER)
        assert answer.error == 0
        soft, hard = resource.prlimit(host.homad.pid, resource.RLIMIT_NOFILE)
        # The socket that comes with the request gets a descriptor, and then there is none left.
        had = host.homad.fds()
        free = next(i for i in range(1 + len(had)) if str(i) not in had)
        resource.prlimit(host.homad.pid, resource.RLIMIT_NOFILE, (free + 1, hard))
        refused = take(second, stands.fileno())
        resource.prlimit(host.homad.pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert refused.error == -errno.EMFILE, refused
        assert "Too many open files" in refused.text, refused
        assert take(second, stands.fileno()).error == 0
        stands.close()
