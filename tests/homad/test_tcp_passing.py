# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tickets for one stream or listener, which go through UNIX sockets (HOMA_CTL_FOR_PASS), and who lies about them."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing

import pytest
from attachtool import Answer, request
from homad import Host, needs_homad, needs_root, two_hosts
from streamtool import STREAM_SHARE, STREAM_TAKE, UNLISTEN, UNLISTENED, Streams
from test_tcp import RULES
from test_tcp_fork import PORT, accepted, said
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
    streams: Streams, name: int, bits: int = 0, cookie: int = 0
) -> tuple[Answer, socket.socket]:
    """A ticket for what `streams` names so, and the socket that stands for it."""
    stands, held = stand_in()
    own = int.from_bytes(stands.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), "little")
    what = struct.pack("<QQ", name, cookie or own)
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
