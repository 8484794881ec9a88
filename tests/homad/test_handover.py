# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A handle goes from one process to another, with its port and its open RPCs: nothing is lost, nothing runs
twice, every byte is checked by the programs (heir.c), and homad has nothing of it in the end."""

from __future__ import annotations

import array
import errno
import fcntl
import mmap
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attachtool import ATTACH, EXPORT, IMPORT, TAKE, CAN_HANDOVER, Client, gone, request
from homad import PATIENT, PROGRAMS, Host, needs_homad, needs_root, one_host, two_hosts
from netns import eventually
from ops_tools import snapshot, tool
from test_cores import dedicated

pytestmark = [needs_homad, needs_root]

HEIR = PROGRAMS / "heir"
PORT = 4000
LONG = {**PATIENT, "quota": {"handover_s": 600}, "log": {"level": "debug"}}
SHORT = {**LONG, "quota": {"handover_s": 1}}


class Heir:
    """A program with a handle, wherever that is now."""

    def __init__(self, host: Host, *words: object) -> None:
        self.host, self.file = host, host.homad.folder / f"story-{words[0]}"
        self.how = str(words[1])
        self.process = host.start([HEIR, words[0], words[1], self.file, *words[2:]])
        self.pid = self.process.pid

    def expect(self, line: str) -> None:
        assert self.process.line(120) == line

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def hand_over(self, kill: bool = False) -> None:
        """To the next process, which goes on."""
        self.signal(signal.SIGUSR1)
        if self.how == "leave":
            self.expect("exported")
            if kill:
                self.process.stop(signal.SIGKILL)
            self.process = self.host.start([HEIR, "resume", self.file])
        word, pid = self.process.line(120).split()
        assert word == "resumed"
        self.pid = int(pid)

    def go_on(self) -> None:
        self.signal(signal.SIGUSR2)

    def succeeds(self, count: int, failed: int = 0) -> None:
        status, out, err = self.process.wait(120)
        assert status == 0, err
        assert out.splitlines()[-1] == f"done {count} failed {failed}"


@contextmanager
def nothing_left(*hosts: Host) -> Iterator[None]:
    before = [host.homad.resources() for host in hosts]
    yield
    for host, resources in zip(hosts, before, strict=True):
        eventually(lambda host=host: not snapshot(host.homad)["apps"], 60)
        host.homad.await_resources(resources)


def server(host: Host, how: str, hold: int) -> Heir:
    heir = Heir(host, "server", how, PORT, hold)
    heir.expect("serving")
    return heir


def client(host: Host, how: str, to: Host, count: int, length: int, first: int = 0) -> Heir:
    heir = Heir(host, "client", how, host.address(to, PORT), count, length, first)
    heir.expect("ready")
    return heir


def open_rpcs(host: Host) -> int:
    return int(snapshot(host.homad)["homad"]["rpcs"])


@pytest.mark.sanitized
@pytest.mark.parametrize("how", ["exec", "fork", "leave"])
@pytest.mark.parametrize("way", ["local", "afxdp", "udp"])
@pytest.mark.parametrize("length", [100, 3000, 200_000])
def test_server_and_client__go_on_in_another_process(how: str, way: str, length: int) -> None:
    """Twice each, with requests that the server holds, and with responses that the client has not taken."""
    arguments = ["--udp-only"] if way == "udp" else []
    with two_hosts(LONG, arguments) as (a, b), nothing_left(a, b):
        served = server(a, how, 30)
        asks = client(a if way == "local" else b, how, a, 40, length)
        served.expect("ready")
        for _ in range(2):
            served.hand_over()
            asks.hand_over()
        served.go_on()
        # Some responses arrive while nobody has the client's handle.
        asks.hand_over()
        asks.go_on()
        asks.succeeds(40)
        # The port and the next requests are the heir's.
        again = client(b, "exec", a, 20, length, 40)
        again.go_on()
        again.succeeds(20)
        os.kill(served.pid, signal.SIGKILL)


@pytest.mark.sanitized
def test_requests_that_come_while_nobody_has_the_server__wait() -> None:
    with two_hosts(LONG) as (a, b), nothing_left(a, b):
        served = server(a, "leave", 0)
        served.signal(signal.SIGUSR1)
        served.expect("exported")
        served.process.stop(signal.SIGKILL)
        asks = client(a, "exec", a, 40, 3000)
        assert "heir" in tool(a.homad, "ss").stdout
        assert [app["pid"] for app in snapshot(a.homad)["apps"] if app["port"] == PORT] == [0]
        served.process = a.start([HEIR, "resume", served.file])
        assert served.process.line(60).startswith("resumed")
        asks.go_on()
        asks.succeeds(40)
        assert snapshot(a.homad)["homad"]["handed_over"] == 1
        served.process.stop(signal.SIGKILL)


@pytest.mark.sanitized
@pytest.mark.parametrize("who", ["server", "client"])
def test_killed_between__nothing_is_lost(who: str) -> None:
    with two_hosts(LONG) as (a, b), nothing_left(a, b):
        served = server(a, "leave", 30)
        asks = client(b, "leave", a, 40, 50_000)
        served.expect("ready")
        (served if who == "server" else asks).hand_over(kill=True)
        served.go_on()
        asks.go_on()
        asks.succeeds(40)
        served.process.stop(signal.SIGKILL)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_at_two_fast_path_threads() -> None:
    with dedicated({"scale": False}) as (a, b):
        served, asks = server(a, "exec", 30), client(b, "exec", a, 40, 20_000)
        served.expect("ready")
        served.hand_over()
        asks.hand_over()
        served.go_on()
        asks.go_on()
        asks.succeeds(40)


@pytest.mark.sanitized
def test_time_is_over__it_ends_as_by_close() -> None:
    with one_host(SHORT) as host, nothing_left(host):
        served = server(host, "leave", 30)
        asks = client(host, "exec", host, 30, 1000)
        served.expect("ready")
        served.signal(signal.SIGUSR1)
        served.expect("exported")
        host.homad.await_log("nobody took over")
        asks.go_on()
        asks.succeeds(30, failed=30)
        late = host.run([HEIR, "resume", served.file], check=False)
        assert (
            late.returncode and "nothing of user 0 is handed over under this token" in late.stderr
        )
        assert snapshot(host.homad)["homad"]["handovers_expired"] == 1
        served.process.stop(signal.SIGKILL)


def test_homad_restarts_between__a_clear_error() -> None:
    with one_host(LONG) as host:
        served = server(host, "leave", 1)
        served.signal(signal.SIGUSR1)
        served.expect("exported")
        host.homad.kill()
        host.homad.start()
        late = host.run([HEIR, "resume", served.file], check=False)
        assert late.returncode and "homad was started again since" in late.stderr
        served.process.stop(signal.SIGKILL)


def test_imported_and_homad_restarts__it_attaches_again() -> None:
    """An imported handle is one like any other: it has its port again, and can be handed over again."""
    with one_host(LONG) as host:
        served = server(host, "leave", 0)
        served.hand_over(kill=True)
        host.homad.kill()
        host.homad.start()
        eventually(lambda: [app["port"] for app in snapshot(host.homad)["apps"]] == [PORT], 60)
        served.hand_over(kill=True)
        asks = client(host, "exec", host, 40, 1000)
        asks.go_on()
        asks.succeeds(40)


@pytest.mark.sanitized
@pytest.mark.parametrize("direct", [True, False])
def test_rules_of_the_calls(direct: bool) -> None:
    """What is in use, what is no token, what goes along, a hundred times; see handed.c."""
    with one_host({**LONG, "network": {"direct": direct}}) as host, nothing_left(host):
        assert host.run([PROGRAMS / "handed"], timeout=300).stdout == "ok\n"


# ---- who may not ----


def token_of(heir: Heir) -> bytes:
    return bytes.fromhex(heir.file.read_bytes()[:32].decode())


def exported(host: Host, hold: int = 0) -> Heir:
    heir = server(host, "leave", hold)
    heir.signal(signal.SIGUSR1)
    heir.expect("exported")
    return heir


def show(connection: Client, op: int, token: bytes = bytes(16)) -> int:
    """Ask, and give homad's error as a positive number."""
    connection.send(request(op, ip=token))
    answer = connection.answer()
    assert answer is not None
    assert bool(answer.text) == bool(answer.error)
    return -answer.error


@pytest.mark.sanitized
def test_another_user_and_a_wrong_token__are_refused() -> None:
    with one_host(LONG) as host, nothing_left(host):
        heir = exported(host)
        token = token_of(heir)
        heir.file.chmod(0o644)
        other = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
        done = host.run([*other, HEIR, "resume", heir.file], check=False)
        assert done.returncode and "nothing of user 4711 is handed over" in done.stderr
        with Client(host.homad.socket) as thief:
            for wrong in (bytes(16), token[:15] + bytes([token[15] ^ 1]), token[::-1]):
                assert show(thief, IMPORT, wrong) == errno.ENOENT
            assert show(thief, TAKE) == errno.ENOENT
            assert show(thief, EXPORT) == errno.ENOTCONN
        heir.process.stop(signal.SIGKILL)
        heir.process = host.start([HEIR, "resume", heir.file])
        assert heir.process.line(60).startswith("resumed")
        heir.process.stop(signal.SIGKILL)


@pytest.mark.sanitized
def test_two_want_it__one_gets_it() -> None:
    with one_host(LONG) as host, nothing_left(host):
        heir = exported(host)
        token = token_of(heir)
        with Client(host.homad.socket) as first, Client(host.homad.socket) as second:
            assert show(first, IMPORT, token) == 0
            assert show(first, IMPORT, token) == errno.EISCONN
            assert show(second, IMPORT, token) == errno.EBUSY
            # Who ends before he has taken it leaves it to another one.
            first.close()
            eventually(lambda: show(second, IMPORT, token) == 0, 30)
            assert show(second, TAKE) == 0
            with Client(host.homad.socket) as third:
                assert show(third, IMPORT, token) == errno.ENOENT
            assert show(second, TAKE) == errno.ENOENT
        # And it ends with him, as any attachment.
        eventually(lambda: not snapshot(host.homad)["apps"], 60)
        heir.process.stop(signal.SIGKILL)


def memfd(size: int, seals: int = 0x2 | 0x4) -> int:
    fd = os.memfd_create("state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, 1033, seals)
    return fd


def export(connection: Client, fd: int) -> int:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd >= 0 else []
    connection.socket.sendmsg([request(EXPORT)], rights)
    answer = connection.answer()
    assert answer is not None
    connection.token = answer.ip
    return -answer.error


def attached(host: Host, features: int = CAN_HANDOVER) -> Client:
    connection = Client(host.homad.socket)
    connection.send(request(ATTACH, 1 << 17, features=features))
    answer = connection.answer()
    assert answer is not None and not answer.error, answer
    return connection


@pytest.mark.sanitized
def test_hostile__files_that_are_none_and_too_many() -> None:
    with one_host(LONG) as host, nothing_left(host):
        with attached(host, 0) as plain:
            assert export(plain, memfd(4096)) == errno.EOPNOTSUPP
        with attached(host) as one, socket.socket() as tcp:
            padded = memfd(100, 0)
            os.posix_fallocate(padded, 0, 100)
            for fd in (-1, memfd(0), memfd(4096, 0), memfd((32 << 20) + 1), os.open("/dev/zero", 2),
                       tcp.fileno()):  # fmt: skip
                assert export(one, fd) == errno.EINVAL
            # It is as it was, and can be.
            assert export(one, memfd(4096)) == 0
            assert gone(one)
            # A file that no library wrote: the next process is told, and nothing happens to homad.
            path = host.homad.folder / "story-none"
            path.write_bytes(one.token.hex().encode() + bytes(1 << 20))
            done = host.run([HEIR, "resume", path], check=False)
            assert done.returncode and "cannot be read" in done.stderr, done.stderr
            with Client(host.homad.socket) as taker:
                assert show(taker, IMPORT, one.token) == 0
                assert show(taker, TAKE) == 0
        many = [attached(host) for _ in range(65)]
        for connection in many[:64]:
            assert export(connection, memfd(4096)) == 0
        assert export(many[64], memfd(4096)) == errno.EDQUOT
        for connection in many:
            if connection is not many[64]:
                with Client(host.homad.socket) as taker:
                    assert show(taker, IMPORT, connection.token) == 0
                    assert show(taker, TAKE) == 0
            connection.close()


@pytest.mark.sanitized
def test_quota__what_waits_counts_as_any_other() -> None:
    with (
        one_host({**LONG, "quota": {"attachments": 4, "handover_s": 600}}) as host,
        nothing_left(host),
    ):
        waiting = [attached(host) for _ in range(4)]
        assert all(export(one, memfd(4096)) == 0 for one in waiting)
        with Client(host.homad.socket) as fifth:
            assert fifth.ask(ATTACH).error == -errno.EDQUOT
        with Client(host.homad.socket) as taker:
            assert show(taker, IMPORT, waiting[0].token) == 0
            assert show(taker, TAKE) == 0
            with Client(host.homad.socket) as fifth:
                assert fifth.ask(ATTACH).error == -errno.EDQUOT
        with Client(host.homad.socket) as fifth:
            eventually(lambda: fifth.ask(ATTACH).error == 0, 30)
        for one in waiting[1:]:
            with Client(host.homad.socket) as taker:
                assert show(taker, IMPORT, one.token) == 0
                assert show(taker, TAKE) == 0
            one.close()
        waiting[0].close()


@pytest.mark.sanitized
def test_time_is_over_before_it_was_taken__it_ends() -> None:
    with one_host(SHORT) as host, nothing_left(host):
        with attached(host) as one, Client(host.homad.socket) as taker:
            assert export(one, memfd(4096)) == 0
            assert show(taker, IMPORT, one.token) == 0
            host.homad.await_log("nobody took over")
            assert show(taker, TAKE) == errno.ENOENT
            assert show(taker, IMPORT, one.token) == errno.ENOENT
            # The connection is good for another handle.
            assert taker.ask(ATTACH).error == 0


@pytest.mark.sanitized
@pytest.mark.parametrize("when", ["waits", "is about to be taken", "was taken"])
def test_hostile__the_former_process_writes_on(when: str) -> None:
    """It has the memory still, and spoils a ring: the attachment ends wherever it is."""
    release_tail = 192 + 8 * 128
    with one_host(LONG) as host, nothing_left(host):
        with attached(host) as one, Client(host.homad.socket) as taker:
            assert export(one, memfd(4096)) == 0
            if when != "waits":
                assert show(taker, IMPORT, one.token) == 0
            if when == "was taken":
                assert show(taker, TAKE) == 0
            with mmap.mmap(one.fds[0], 4096) as header:
                header[release_tail : release_tail + 4] = struct.pack("<I", 1 << 30)
            os.write(one.fds[4], struct.pack("<Q", 1))
            host.homad.await_log("impossible tail")
            eventually(lambda: not snapshot(host.homad)["apps"], 60)
            if when == "was taken":
                assert gone(taker)
            else:
                assert show(taker, TAKE) == errno.ENOENT
                assert show(taker, IMPORT, one.token) == errno.ENOENT


def test_too_many_that_can_be_handed_over__are_refused() -> None:
    with one_host(LONG) as host, nothing_left(host):
        many = [attached(host) for _ in range(128)]
        with Client(host.homad.socket) as another:
            another.send(request(ATTACH, 1 << 17, features=CAN_HANDOVER))
            answer = another.answer()
            assert answer is not None and answer.error == -errno.EDQUOT
            assert "can be handed over" in answer.text
            # Others can be had.
            assert another.ask(ATTACH, 1 << 17).error == 0
        for connection in many:
            connection.close()


def test_few_descriptors__those_who_attach_have_the_last() -> None:
    """What homad keeps for hand-overs takes none of the last quarter; such handles work, but stay where they are."""
    prefix = ["prlimit", "--nofile=400:400", "setpriv", "--bounding-set=-sys_resource"]
    with one_host(LONG, prefix=prefix) as host, nothing_left(host):
        many = [attached(host) for _ in range(45)]
        assert export(many[-1], memfd(4096)) == errno.EMFILE
        assert export(many[0], memfd(4096)) == 0
        with Client(host.homad.socket) as another:
            assert another.ask(ATTACH, 1 << 17).error == 0
        with Client(host.homad.socket) as taker:
            assert show(taker, IMPORT, many[0].token) == 0
            assert show(taker, TAKE) == 0
        for connection in many:
            connection.close()
