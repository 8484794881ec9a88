# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Streams and listeners of several attachments: tickets, who gets a connection, and who lies about it."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from attachtool import Answer, Client, request
from homad import Host, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import snapshot
from streamtool import (
    ACCEPT,
    ACCEPTED,
    CLOSE,
    FAILED,
    HAS_END,
    JOINED,
    LISTENING,
    NOTHING,
    OPENED,
    RETURN,
    RING,
    STREAM_JOIN,
    STREAM_SHARE,
    UNJOINED,
    WAITING,
    Stream,
    Streams,
)
from test_tcp import HOMA_RUN, LIBRARY, RULES
from test_tcp_hostile import attached, close, inside
from test_tcp_many import kernel_server

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

PORT = 5001
FOR_EXEC, FOR_LISTENERS, ALL_SEEN = 1, 2, 4  # bits of a request for a ticket


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


def said(streams: Streams, kind: int, seconds: float = 20) -> tuple[int, int, Stream | None, int]:
    """The next event of this kind; others wait."""
    while True:
        for event in streams.unread:
            if event[0] == kind:
                streams.unread.remove(event)
                return event
        found = streams.wait(seconds)
        assert found, f"no event {kind}"
        streams.unread += found


def share(streams: Streams, bits: int = 0) -> tuple[Answer, int]:
    """A ticket, and the end of the pipe that keeps it."""
    read, write = os.pipe()
    socket.send_fds(streams.client.socket, [request(STREAM_SHARE, bits)], [read])
    os.close(read)
    answer = streams.client.answer()
    assert answer is not None
    return answer, write


def join(streams: Streams, token: bytes, bits: int = 0) -> Answer:
    streams.client.send(request(STREAM_JOIN, bits, ip=token))
    answer = streams.client.answer()
    assert answer is not None
    return answer


def memory_refused(host: Host) -> int:
    return int(snapshot(host.homad)["homad"]["memory_refused"])


def kernel_client(host: Host, address: str) -> socket.socket:
    with inside(host):
        return socket.create_connection((address, PORT), timeout=20)


def accepted(streams: Streams, host: Host, address: str) -> tuple[Stream, socket.socket]:
    """A connection from the other host's kernel to `streams`, which listens."""
    peer = kernel_client(host, address)
    _, _, stream, _ = said(streams, ACCEPTED)
    assert stream is not None
    return stream, peer


def test_ticket__holds_what_its_owner_has(hosts: tuple[Host, Host]) -> None:
    """The first one closes, the second one has not come: nothing ends. It comes, and goes: that is the end."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        stream, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            answer, pipe = share(first)
            assert (answer.error, answer.total) == (0, 2)
            first.close_stream(stream)
            close(first)
            peer.settimeout(0.3)
            with pytest.raises(TimeoutError):
                peer.recv(1)
            assert join(second, answer.ip).total == 2
            os.close(pipe)
            kinds = {said(second, LISTENING)[0], said(second, JOINED)[0]}
            assert kinds == {LISTENING, JOINED}
            close(second)
            peer.settimeout(20)
            assert peer.recv(1) == b""


def test_ticket__is_void_when_the_pipe_ends(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        stream, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            answer, pipe = share(first)
            first.close_stream(stream)
            os.close(pipe)
            peer.settimeout(20)
            assert peer.recv(1) == b""
            assert join(second, answer.ip).error == -errno.EINVAL


def test_ticket__once_and_only_with_its_number(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as first, attached(hosts[0]) as second, attached(hosts[0]) as third:
        answer, pipe = share(first)
        assert (answer.error, answer.total) == (0, 0)
        wrong = bytes([answer.ip[0] ^ 1]) + answer.ip[1:]
        assert join(second, wrong).error == -errno.EINVAL
        assert join(second, bytes(16)).error == -errno.EINVAL
        assert join(second, answer.ip).error == 0
        assert join(third, answer.ip).error == -errno.EINVAL
        os.close(pipe)


def test_ticket__not_for_another_user(hosts: tuple[Host, Host]) -> None:
    """Also if he knows its number."""
    with attached(hosts[0]) as first:
        answer, pipe = share(first)
        os.seteuid(12345)
        try:
            other = Streams(hosts[0].homad.socket)
        finally:
            os.seteuid(0)
        assert join(other, answer.ip).error == -errno.EINVAL
        close(other)
        os.close(pipe)


def test_ticket__not_without_streams_or_a_pipe(hosts: tuple[Host, Host]) -> None:
    with Client(hosts[0].homad.socket) as client:
        client.attach()
        assert client.ask(STREAM_JOIN).error == -errno.EINVAL
        assert client.ask(STREAM_SHARE).error == -errno.EINVAL
    with attached(hosts[0]) as streams:
        assert streams.client.ask(STREAM_SHARE).error == -errno.EINVAL


def test_ticket__a_user_has_so_many(hosts: tuple[Host, Host]) -> None:
    with attached(hosts[0]) as streams:
        pipes = []
        for _ in range(256):
            answer, pipe = share(streams)
            pipes.append(pipe)
            assert answer.error == 0, answer
        answer, pipe = share(streams)
        assert answer.error == -errno.EDQUOT
        for end in [*pipes, pipe]:
            os.close(end)
        eventually(lambda: retried(streams))


def retried(streams: Streams) -> bool:
    answer, pipe = share(streams)
    os.close(pipe)
    return answer.error == 0


def test_ticket_for_exec__comes_with_the_memory(hosts: tuple[Host, Host]) -> None:
    """Once, and of those alone whose streams are in it; without the bit there is none."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second, attached(hosts[0]) as third:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        stream, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            answer, pipe = share(first, FOR_EXEC)
            had = len(second.client.fds)
            assert join(second, answer.ip, FOR_EXEC).total == 2
            given = second.client.fds[had:]
            assert [os.fstat(fd).st_size for fd in given] == [len(first.memory)]
            assert join(third, answer.ip, FOR_EXEC).error == -errno.EINVAL
            os.close(pipe)
            answer, pipe = share(first, FOR_EXEC)
            had = len(third.client.fds)
            assert join(third, answer.ip).total == 2
            assert len(third.client.fds) == had
            os.close(pipe)
            first.close_stream(stream)


def test_ticket_for_exec__is_void_after_a_time(hosts: tuple[Host, Host]) -> None:
    """Who runs instead keeps the pipe, and never comes: the peer hears of it by a reset."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        _, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            answer, pipe = share(first, FOR_EXEC)
            close(first)
            peer.settimeout(90)
            with pytest.raises(ConnectionResetError):
                peer.recv(1)
            assert join(second, answer.ip, FOR_EXEC).error == -errno.EINVAL
            os.close(pipe)


def test_ticket__waits_for_what_was_not_seen(hosts: tuple[Host, Host]) -> None:
    """A connection that came between: it goes back to its listener before there is a ticket for all."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        with closing(kernel_client(hosts[1], hosts[0].v4)) as peer:
            eventually(lambda: share(first, ALL_SEEN)[0].error == -errno.EAGAIN)
            listeners, kept = share(first, FOR_LISTENERS)
            assert (listeners.error, listeners.total) == (0, 1)
            _, _, stream, _ = said(first, ACCEPTED)
            assert stream is not None
            stream.command(RETURN)
            answer, pipe = share(first, ALL_SEEN)
            while answer.error == -errno.EAGAIN:
                os.close(pipe)
                answer, pipe = share(first, ALL_SEEN)
            assert (answer.error, answer.total) == (0, 1)
            assert join(second, answer.ip).total == 1
            said(second, LISTENING)
            second.command(ACCEPT, second.listening)
            assert said(second, ACCEPTED)[2] is not None
            os.close(kept)
            os.close(pipe)
            assert peer.fileno() >= 0


def test_listener__who_asks_gets_it(hosts: tuple[Host, Host]) -> None:
    """A connection goes to one of two; with its bytes, which came before it was taken."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        answer, pipe = share(first)
        assert join(second, answer.ip).total == 1
        os.close(pipe)
        theirs = said(second, LISTENING)
        assert theirs[3] == number
        with closing(kernel_client(hosts[1], hosts[0].v4)) as peer:
            peer.sendall(b"early")
            said(first, WAITING)
            said(second, WAITING)
            second.command(ACCEPT, second.listening)
            _, _, stream, _ = said(second, ACCEPTED)
            assert stream is not None
            first.command(ACCEPT, number)
            assert said(first, NOTHING)[3] == number
            got = stream.take()
            while len(got) < 5:
                second.wait()
                got += stream.take()
            assert got == b"early"
            stream.write(b"late")
            assert peer.recv(10) == b"late"
            peer.shutdown(socket.SHUT_WR)
            eventually(lambda: bool(stream.state & HAS_END))


def test_listener__all_hear_when_none_is_left(hosts: tuple[Host, Host]) -> None:
    """Of two connections one is left, and nobody hears of that; then none, and both do, who took it after that."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            number = first.listen("0.0.0.0", PORT)
        answer, pipe = share(first)
        assert join(second, answer.ip).total == 1
        os.close(pipe)
        said(second, LISTENING)
        with closing(kernel_client(hosts[1], hosts[0].v4)):
            said(first, WAITING)
            said(second, WAITING)
            with closing(kernel_client(hosts[1], hosts[0].v4)):
                first.command(ACCEPT, number)
                assert said(first, ACCEPTED)[2] is not None
                first.command(ACCEPT, number)
                assert said(first, ACCEPTED)[2] is not None
                assert said(first, NOTHING)[3] == number
                assert said(second, NOTHING)[3] == second.listening
                assert not [event for event in first.unread + second.unread if event[0] == NOTHING]
        with closing(kernel_client(hosts[1], hosts[0].v4)):
            said(first, WAITING)
            said(second, WAITING)


def test_listener__goes_on_with_who_is_left(hosts: tuple[Host, Host]) -> None:
    """Its first holder ends, with a connection that nobody had taken yet."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        answer, pipe = share(first)
        join(second, answer.ip)
        os.close(pipe)
        said(second, LISTENING)
        with closing(kernel_client(hosts[1], hosts[0].v4)) as peer:
            peer.sendall(b"kept")
            said(first, WAITING)
            close(first)
            second.command(ACCEPT, second.listening)
            _, _, stream, _ = said(second, ACCEPTED)
            assert stream is not None
            eventually(lambda: stream.word(12) == 4)
            assert stream.take() == b"kept"


def test_listeners__as_many_as_there_are(hosts: tuple[Host, Host]) -> None:
    """The child gets each of 70, by the names that the parent has for them, and the last one works."""
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            numbers = [first.listen("0.0.0.0", PORT - i) for i in reversed(range(70))]
        answer, pipe = share(first)
        assert (answer.error, answer.total) == (0, 70)
        assert join(second, answer.ip).total == 70
        os.close(pipe)
        assert sorted(said(second, LISTENING)[3] for _ in range(70)) == numbers
        with closing(kernel_client(hosts[1], hosts[0].v4)):
            said(second, WAITING)
            second.command(ACCEPT, second.listening)
            assert said(second, ACCEPTED)[2] is not None


def test_ticket__is_on_its_users_account() -> None:
    """Who has no memory left, as all is in connections, hears why he gets none."""
    small = RULES.replace("[protocol]", '[quota]\nuser_memory = "16 MiB"\n[protocol]')
    with two_hosts(small) as (host, other), attached(host) as streams:
        server = kernel_server(other)
        failed = False
        for token in range(2500):
            streams.connect(other.v4, 5000, token)
            failed = any(event[0] == FAILED for event in streams.wait(20))
            if failed:
                break
        assert failed
        answer, pipe = share(streams)
        assert answer.error == -errno.EDQUOT and "shared memory" in answer.text, answer
        os.close(pipe)
        server.stop(signal.SIGKILL)


def fill(streams: Streams, address: str) -> None:
    """Open connections until the user has no memory for another one."""
    for token in range(2500):
        streams.connect(address, 5000, token)
        if any(event[0] == FAILED for event in streams.wait(20)):
            return
    pytest.fail("2,500 connections have found memory")


def test_ticket__without_memory_says_how_much_is_missing() -> None:
    """A child whose user has no memory left joins what it has room for, and does not wait for the rest."""
    small = RULES.replace("[protocol]", '[quota]\nuser_memory = "16 MiB"\n[protocol]')
    with (
        two_hosts(small) as (host, other),
        attached(host) as first,
        attached(host) as second,
        attached(host) as third,
    ):
        server = kernel_server(other)
        for token in range(50):
            first.connect(other.v4, 5000, token)
            said(first, OPENED)
        answer, pipe = share(first)
        assert (answer.error, answer.total) == (0, 50)
        fill(third, other.v4)
        assert join(second, answer.ip).total == 50
        os.close(pipe)
        missing = said(second, UNJOINED)[3]
        assert 0 < missing < 50
        for _ in range(50 - missing):
            said(second, JOINED)
        server.stop(signal.SIGKILL)


def test_ticket__without_memory_an_older_library_joins_the_rest_later() -> None:
    """A child that does not know the event hears nothing of it, and joins all when there is memory."""
    small = RULES.replace("[protocol]", '[quota]\nuser_memory = "16 MiB"\n[protocol]')
    with (
        two_hosts(small) as (host, other),
        attached(host) as first,
        attached(host, 0) as second,
        attached(host) as third,
    ):
        server = kernel_server(other)
        for token in range(50):
            first.connect(other.v4, 5000, token)
            said(first, OPENED)
        answer, pipe = share(first)
        fill(third, other.v4)
        refused = memory_refused(host)
        assert join(second, answer.ip).total == 50
        os.close(pipe)
        # The first refusal is followed by others: homad asks again by itself.
        eventually(lambda: memory_refused(host) >= refused + 2)
        second.unread += second.poll()
        assert 0 < len(second.unread) < 50
        assert {event[0] for event in second.unread} == {JOINED}
        close(third)
        for _ in range(50):
            said(second, JOINED)
        assert not second.evicted()
        server.stop(signal.SIGKILL)


def attachments(host: Host) -> int:
    return len(snapshot(host.homad)["apps"])


# Forks while its user has no memory left, and says how many of its connections work in the child.
FORKS = """
import os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
opened = [socket.create_connection((sys.argv[1], 5000)) for _ in range(50)]
def works(one):
    try:
        one.send(b"x")
        return one.recv(1) == b"x"
    except OSError:
        return False
print("open", flush=True)
signal.sigwait([signal.SIGUSR1])
child = os.fork()
# At once, whatever PYTHONUNBUFFERED says: the other process writes to the same pipe.
os.write(1, b"%d\\n" % sum(map(works, opened)))
if not child:
    os._exit(0)
"""


def test_fork__without_memory_goes_on() -> None:
    """fork() returns, though the child attaches with the last memory and has room for a part only."""
    small = RULES.replace("[protocol]", '[quota]\nuser_memory = "16 MiB"\n[protocol]')
    with two_hosts(small) as (host, other), attached(host) as spare, attached(host) as third:
        server = kernel_server(other)
        run = ["env", f"HOMA_PRELOAD_LIB={LIBRARY}", str(HOMA_RUN), "--tcp"]
        program = host.start([*run, sys.executable, "-c", FORKS, other.v4])
        assert program.line() == "open"
        fill(third, other.v4)
        # The child attaches with what this one gives back.
        eventually(lambda: attachments(host) == 3)
        close(spare)
        eventually(lambda: attachments(host) == 2)
        program.send_signal(signal.SIGUSR1)
        told = sorted(int(program.line()) for _ in range(2))
        assert told[1] == 50
        assert told[0] < 50
        server.stop(signal.SIGKILL)


@pytest.mark.parametrize("what", ["accept", "return", "return twice", "close twice", "generation"])
def test_lies__end_the_attachment(hosts: tuple[Host, Host], what: str) -> None:
    with attached(hosts[0]) as first, attached(hosts[0]) as second:
        with inside(hosts[0]):
            first.listen("0.0.0.0", PORT)
        stream, peer = accepted(first, hosts[1], hosts[0].v4)
        with closing(peer):
            answer, pipe = share(first)
            join(second, answer.ip)
            os.close(pipe)
            _, _, alias, _ = said(second, JOINED)
            assert alias is not None
            liar = second
            if what == "accept":
                second.command(ACCEPT, 77)
            elif what == "generation":
                second.command(RING, alias.slot, alias.generation + 1)
            elif what == "close twice":
                second.command(CLOSE, alias.slot, alias.generation)
                second.command(CLOSE, alias.slot, alias.generation)
            else:
                liar = first
                if what == "return twice":
                    close(second)
                stream.command(RETURN)
                stream.command(RETURN)
            # What it shares with the other one keeps its memory, and its connection with homad.
            eventually(liar.evicted)
