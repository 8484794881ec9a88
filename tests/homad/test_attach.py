# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Attaching to homad, packet by packet: what one gets, and what bad manners cost."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from attachtool import (
    ATTACH,
    BIND,
    LISTEN,
    METRIC,
    METRICS,
    POOL,
    READY_FD,
    ROUTE,
    RPCS,
    SEGMENT,
    SHUTDOWN,
    Client,
    gone,
    request,
)
from homad import Host, needs_homad, needs_root, one_host
from netns import eventually

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

F_GET_SEALS = 1034
SEALED = 0x1 | 0x2 | 0x4  # seal, shrink, grow
FRESH_PER_USER = 128  # HOMAD_FRESH_PER_USER


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with one_host(config={"quota": {"send_max": "4 MiB"}}, arguments=["--udp-only"]) as host:
        yield host


@pytest.fixture(autouse=True)
def leaves_nothing(host: Host) -> Iterator[None]:
    before = host.homad.resources()
    yield
    host.homad.await_resources(before)
    host.homad.check()


def test_attach__memory_is_sealed_and_of_the_size_told(host: Host) -> None:
    with Client(host.homad.socket) as client:
        answer = client.attach(size=4 << 20)
        assert len(client.fds) == 5
        for fd, size in zip(client.fds, answer.sizes, strict=False):
            assert os.fstat(fd).st_size == size
            assert fcntl.fcntl(fd, F_GET_SEALS) & SEALED == SEALED
            # A part of it is there already; test_memory.py looks at the rest.
            assert 128 << 10 <= os.fstat(fd).st_blocks * 512 < size
            for cut in (0, 2 * size):
                with pytest.raises(OSError):
                    os.ftruncate(fd, cut)
        assert answer.sizes[2] == 4 << 20
        assert 32768 <= answer.port


def test_attach__wake_is_a_pipe_of_which_it_only_gets_the_end(host: Host) -> None:
    """Of an eventfd it could clear O_NONBLOCK, fill the counter, and stop homad for good."""
    with Client(host.homad.socket) as client:
        client.attach()
        wake = client.fds[3]
        assert client.ask(READY_FD).error == 0
        for fd in (wake, client.fds[5]):
            assert stat.S_ISFIFO(os.fstat(fd).st_mode)
            with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
                os.write(fd, b"x")


def test_requests__wrong_ones_are_answered_and_others_go_on(host: Host) -> None:
    with Client(host.homad.socket) as client:
        assert client.ask(BIND, port=99).error == -errno.ENOTCONN
        client.attach()
        wrong = [
            (request(0), errno.EOPNOTSUPP),
            (request(77), errno.EOPNOTSUPP),
            (request(65535), errno.EOPNOTSUPP),
            (request(ATTACH), errno.EISCONN),
            (request(BIND, port=0), errno.EINVAL),
            (request(BIND, port=40000), errno.EINVAL),
            (request(LISTEN, size=4), errno.EINVAL),
            (request(LISTEN, size=8, port=4000), errno.EINVAL),
            (request(LISTEN, size=1 << 32), errno.EINVAL),
            (request(LISTEN, size=1, port=40000), errno.EINVAL),
            (request(POOL, size=1), errno.EINVAL),
            (request(POOL, size=1 << 63), errno.EINVAL),
            (request(SEGMENT), errno.EINVAL),
            (request(SEGMENT, size=4097), errno.EINVAL),
            (request(SEGMENT, size=(1 << 64) - 4096), errno.EINVAL),
            (request(SEGMENT, size=8 << 20), errno.EDQUOT),
            (request(BIND, port=99)[:-1], errno.EINVAL),
            (request(BIND, port=99) + b"x", errno.EINVAL),
            (request(BIND, port=99) * 100, errno.EINVAL),
        ]
        for packet, error in wrong:
            client.send(packet)
            answer = client.answer()
            assert answer and answer.error == -error and len(answer.text) > 15, (packet, answer)
        assert client.ask(BIND, port=99).error == 0
        assert client.ask(SEGMENT, size=65536).segment == 1
        assert client.ask(POOL, size=1 << 20).sizes[2] == 1 << 20
        assert client.ask(SHUTDOWN).error == 0


def test_requests__hopeless_ones_end_the_connection(host: Host) -> None:
    garbage = [b"GET / HTTP/1.1\r\n\r\n", b"x"]
    for packet in (*garbage, request(ATTACH, magic=1), request(ATTACH, version=0x900)):
        with Client(host.homad.socket) as client:
            client.send(packet)
            answer = client.answer()
            assert answer and answer.error == -errno.EPROTO and answer.version == 1, answer
            assert gone(client)


def test_requests__descriptors_that_come_along_are_closed(host: Host) -> None:
    with Client(host.homad.socket) as client:
        client.attach()
        before = len(host.homad.fds())
        for _ in range(50):
            socket.send_fds(client.socket, [request(BIND, port=99)], [0, 1, 2])
            answer = client.answer()
            assert answer and answer.error == 0
        # What is neither a socket nor a pipe is closed by a thread of its own, after the answer.
        eventually(lambda: len(host.homad.fds()) <= before)


def test_pools__are_exchanged_only_so_often(host: Host) -> None:
    """Each costs homad the clearing of its pages."""
    with Client(host.homad.socket) as client:
        client.attach()
        maps = host.homad.maps()
        answers = [client.ask(POOL, size=131072).error for _ in range(20)]
        assert answers[0] == 0 and answers[-1] == -errno.EBUSY
        eventually(lambda: host.homad.maps() == maps)


def test_rpcs__of_a_user_are_shared_by_its_handles() -> None:
    quota = {"rpcs": 1000, "user_rpcs": 4096}
    with one_host(config={"quota": quota}, arguments=["--udp-only"]) as host:
        for _ in range(2):
            clients = [Client(host.homad.socket) for _ in range(15)]
            shares = [client.attach(131072).max_rpcs for client in clients]
            for client in clients:
                client.close()
            # From a part of all to what one can work with, and all of it comes back.
            assert shares[0] == 512 and shares == sorted(shares, reverse=True)
            assert sum(shares) <= 4096 and shares[-1] >= 64
            eventually(lambda: host.homad.maps() == 0)


def attach_as(path: str, uid: int) -> Client | None:
    """An attachment of that user, NULL if it is refused."""
    os.seteuid(uid)
    try:
        client = Client(path)
    finally:
        os.seteuid(0)
    answer = client.ask(ATTACH, size=131072)
    if answer.error:
        assert answer.error == -errno.EDQUOT and len(answer.text) > 15, answer
        client.close()
        return None
    return client


def test_handles__two_greedy_users_leave_some_to_others_and_to_root() -> None:
    """A user gets as many as are left; of 32 two are kept for root."""
    with one_host(config={"quota": {"total_attachments": 32}}, arguments=["--udp-only"]) as host:
        os.chmod(host.homad.socket, 0o777)
        open_ones: list[Client] = []
        counts = []
        for uid in (1001, 1002, 1003):
            mine = 0
            while client := attach_as(str(host.homad.socket), uid):
                open_ones.append(client)
                mine += 1
            counts.append(mine)
        assert counts == [15, 8, 4], counts
        for _ in range(32 - sum(counts)):
            root = attach_as(str(host.homad.socket), 0)
            assert root
            open_ones.append(root)
        for client in open_ones:
            client.close()
        eventually(lambda: host.homad.maps() == 0)


def test_who_does_not_read__waits_alone(host: Host) -> None:
    with Client(host.homad.socket) as deaf:
        deaf.attach()
        deaf.socket.setblocking(False)
        sent = 0
        try:
            while sent < 100000:
                deaf.send(request(METRICS if sent % 2 else RPCS))
                sent += 1
        except BlockingIOError:
            pass
        assert sent < 100000
        for _ in range(5):
            with Client(host.homad.socket) as other:
                other.attach()
                assert other.ask(METRICS).total > 50
        # And all of its answers are there when it reads.
        deaf.socket.settimeout(30)
        for i in range(sent):
            answer = deaf.answer()
            assert answer and answer.error == 0 and answer.op == (METRICS if i % 2 else RPCS)
            deaf.records(answer.total, METRIC.size)


def test_who_asks_too_often__is_served_at_a_rate(host: Host) -> None:
    busy = [Client(host.homad.socket) for _ in range(20)]
    try:
        for client in busy:
            client.attach(131072)
        begin = time.monotonic()
        for i in range(8000):
            assert busy[i % 20].ask(BIND, port=100 + i % 20).error == 0
        # A burst of 4,096, then 4,000 a second, of all of a user's connections; nothing is lost.
        assert time.monotonic() - begin > 0.9
        # A new connection has no burst of its own, and is served.
        with Client(host.homad.socket) as new:
            new.attach(131072)
        # Also who goes away while it waits is noticed.
        for _ in range(100):
            busy[0].send(request(BIND, port=100))
    finally:
        for client in busy:
            client.close()


def test_process__its_end_counts_even_if_a_child_keeps_the_connection(host: Host) -> None:
    before = host.homad.resources()
    said, say = os.pipe()
    parent = os.fork()
    if parent == 0:
        client = Client(host.homad.socket)
        client.attach()
        child = os.fork()
        if child:
            os.write(say, f"{child}\n".encode())
        signal.pause()
        os._exit(0)
    os.close(say)
    child = int(os.read(said, 32))
    os.close(said)
    try:
        assert host.homad.resources() > before
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        host.homad.await_resources(before)
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def test_connections__without_attaching_are_few(host: Host) -> None:
    before = len(host.homad.fds())
    idle = [Client(host.homad.socket) for _ in range(3 * FRESH_PER_USER)]
    try:
        # Each has a descriptor for itself and one for its process.
        eventually(lambda: len(host.homad.fds()) <= before + 2 * FRESH_PER_USER)
        with Client(host.homad.socket) as client:
            client.attach()
        assert gone(idle[0])
        idle[-1].attach()
    finally:
        for client in idle:
            client.close()


def test_connections__many_at_once_are_all_served(host: Host) -> None:
    clients = [Client(host.homad.socket) for _ in range(FRESH_PER_USER)]
    try:
        for client in clients:
            client.send(request(ATTACH, size=131072))
        # Those whose request is there are not pushed out by newer ones.
        idle = [Client(host.homad.socket) for _ in range(FRESH_PER_USER)]
        for client in clients:
            answer = client.answer()
            assert answer and answer.error == 0
        for client in idle:
            client.close()
    finally:
        for client in clients:
            client.close()


def test_descriptors__when_they_are_used_up_some_are_turned_away() -> None:
    with one_host(arguments=["--udp-only"], prefix=["prlimit", "--nofile=100:100"]) as host:
        before = host.homad.resources()
        clients: list[Client] = []
        refused = 0
        try:
            for _ in range(60):
                client = Client(host.homad.socket)
                clients.append(client)
                try:
                    client.send(request(ATTACH))
                    answer = client.answer()
                except ConnectionError:
                    answer = None
                refused += answer is None or answer.error != 0
            assert 5 < len(clients) - refused < 30 and refused
            # Who is in stays in.
            assert clients[0].ask(BIND, port=99).error == 0
        finally:
            for client in clients:
                client.close()
        host.homad.await_resources(before)
        with Client(host.homad.socket) as client:
            client.attach()
        assert "descriptor" in host.homad.log()


def v4(address: str) -> bytes:
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def test_route__is_asked_for_by_a_thread_of_its_own(host: Host) -> None:
    """Many at once are each answered; who asks for more before the answer gets that, too."""
    names = {
        task.read_text().strip() for task in Path(f"/proc/{host.homad.pid}/task").glob("*/comm")
    }
    assert "homad-routes" in names
    clients = [Client(host.homad.socket) for _ in range(40)]
    try:
        for client in clients:
            client.attach()
        for i, client in enumerate(clients):
            client.send(request(ROUTE, ip=v4(f"127.0.0.{i + 1}")))
            client.send(request(ROUTE, ip=v4("203.0.113.1")))
            client.send(request(SHUTDOWN))
        for client in clients:
            reached, nowhere, ended = (client.answer() for _ in range(3))
            assert reached and (reached.op, reached.error) == (ROUTE, 0)
            assert nowhere and (nowhere.op, nowhere.error) == (ROUTE, -errno.ENETUNREACH)
            assert nowhere.text == os.strerror(errno.ENETUNREACH)
            assert ended and (ended.op, ended.error) == (SHUTDOWN, 0)
    finally:
        for client in clients:
            client.close()


def test_route__of_a_client_that_goes(host: Host) -> None:
    """The answer finds nobody, and nothing is left of the question (leaves_nothing)."""
    for i in range(100):
        with Client(host.homad.socket) as client:
            client.attach()
            client.send(request(ROUTE, ip=v4(f"127.1.0.{i}")))
