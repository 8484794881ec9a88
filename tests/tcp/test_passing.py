# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP sockets of homad's that go to other processes through UNIX sockets (SCM_RIGHTS), by unmodified programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from netns import eventually
from ops_tools import snapshot
from ways import PROGRAMS, Side, port, two_sides

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "tcp_calls").exists(), reason="tcp_calls is not built"
)


@pytest.fixture(scope="module")
def accelerated() -> Iterator[tuple[Side, Side]]:
    with two_sides("homad") as sides:
        assert sides[0].homad
        os.chmod(sides[0].homad.socket, 0o777)
        os.chmod(Path(sides[0].homad.socket).parent, 0o755)
        yield sides


def tickets(side: Side) -> dict[str, int]:
    assert side.homad
    return {name: snapshot(side.homad)["tcp"][name] for name in ("taken", "takes_refused")}


NOBODY = "10.9.0.77"  # an address of the network at which there is no host

# What each script begins with: `pair()` is a connection within the host, by homad.
BEGIN = """
import array, errno, os, resource, signal, socket, sys, time
address, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def pair():
    with socket.create_server((address, port), reuse_port=True) as listener:
        near = socket.create_connection((address, port))
        return near, listener.accept()[0]

def fails(error, call, *words):
    try:
        got = call(*words)
    except OSError as wrong:
        assert wrong.errno == error, wrong
    else:
        raise AssertionError(got)

def received(there, count=1):
    return [socket.socket(fileno=fd) for fd in socket.recv_fds(there, 1, count)[1]]

def ends(near):
    near.settimeout(20)
    assert near.recv(1) == b""

def refused():
    # homad hears of a process's end a moment after waitpid().
    for _ in range(2000):
        try:
            socket.create_connection((address, port), timeout=20).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass
        time.sleep(0.01)
    raise AssertionError("somebody listens still")
"""

SENDER = """
unix = socket.create_server(path, family=socket.AF_UNIX)
print("ready", flush=True)
there = unix.accept()[0]
listener = socket.create_server((address, port))
with open(path + ".listens", "w"):
    pass
socket.send_fds(there, [b"l"], [0, listener.fileno(), 0])
for _ in range(3):
    one, _ = listener.accept()
    one.sendall(b"from the first, ")
    socket.send_fds(there, [b"c"], [one.fileno()])
    one.close()
"""

RECEIVER = """
there = socket.socket(socket.AF_UNIX)
there.connect(path)
files = socket.recv_fds(there, 1, 3)[1]
assert len(files) == 3
listener = socket.socket(fileno=files[1])
assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
assert listener.getsockname() == (address, port)
for _ in range(3):
    one, = received(there)
    assert (one.family, one.getsockname()) == (socket.AF_INET, (address, port))
    one.sendall(b"from the second: " + one.recv(100))
    one.close()
assert socket.recv_fds(there, 1, 3)[0] == b""   # the first process has ended
one, _ = listener.accept()
one.sendall(b"by its listener")
one.close()
"""

CLIENT = """
def talk():
    with socket.create_connection((address, port), timeout=20) as one:
        one.sendall(b"question")
        got = b""
        while piece := one.recv(100):
            got += piece
        return got

for _ in range(3):
    got = talk()
    assert got == b"from the first, from the second: question", got
with socket.create_connection((address, port), timeout=20) as one:
    got = one.recv(100)
    assert got == b"by its listener", got
"""


def test_two_programs__pass_a_listener_and_connections(
    accelerated: tuple[Side, Side], tmp_path: Path
) -> None:
    """The one that passes closes at once, then ends; the other one goes on with both."""
    server, client = accelerated
    words = [server.v4, port(), tmp_path / "socket"]
    before = tickets(server)
    sender = server.start([sys.executable, "-c", BEGIN + SENDER, *words])
    assert sender.line() == "ready"
    receiver = server.start([sys.executable, "-c", BEGIN + RECEIVER, *words])
    eventually((tmp_path / "socket.listens").exists)
    client.run([sys.executable, "-c", BEGIN + CLIENT, *words])
    for program in (receiver, sender):
        status, _, complaint = program.wait()
        assert status == 0, complaint
    assert tickets(server)["taken"] - before["taken"] == 4


ALONE = {
    "both_have_it_afterwards": """
near, far = pair()
here, there = socket.socketpair()
if os.fork():
    socket.send_fds(here, [b"x"], [far.fileno()])
    for _ in range(50):
        far.sendall(b"a" * 16)
    assert os.wait()[1] == 0
    far.close()
    got = b""
    while piece := near.recv(65536):
        got += piece
    assert len(got) == 1600 and got.count(b"b") == 800
else:
    far.close()
    one, = received(there)
    for _ in range(50):
        one.sendall(b"b" * 16)
""",
    "to_itself_it_is_the_same_socket": """
near, far = pair()
here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [far.fileno()])
again, = received(there)
again.setblocking(False)
fails(errno.EAGAIN, far.recv, 1)
far.close()
near.sendall(b"x")
again.setblocking(True)
assert again.recv(1) == b"x"
again.close()
ends(near)
""",
    "after_it_was_closed_here": """
near, far = pair()
here, there = socket.socketpair()
near.sendall(b"x")
socket.send_fds(here, [b"x"], [far.fileno()])
far.close()
again, = received(there)
assert again.recv(1) == b"x"
again.close()
ends(near)
""",
    "nobody_reads_it": """
near, far = pair()
here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [far.fileno()])
far.close()
near.settimeout(0.3)
try:
    raise AssertionError(near.recv(1))
except TimeoutError:
    there.close()
    here.close()
ends(near)
""",
    "there_is_no_room_for_it": """
near, far = pair()
here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [0, 1, far.fileno(), far.fileno(), far.fileno(), far.fileno()])
far.close()
message = there.recvmsg(1, socket.CMSG_LEN(8))
assert message[2] & socket.MSG_CTRUNC
ends(near)
""",
    # As with the kernel the list ends where the process can have no more, and says so. Connections
    # and listeners that nobody can have end.
    "the_receiver_has_no_descriptors": """
def files():
    return {int(fd) for fd in os.listdir("/proc/self/fd")}

def receives(there, spare):
    before = files()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before) + 1 + spare, 4096))
    for fd in range(max(before)):
        if fd not in before:
            os.dup2(0, fd)   # all free numbers are above
    before = files()
    data, parts, flags, _ = there.recvmsg(1, 200)
    assert data == b"x"
    fds = [fd for _, _, each in parts for fd in array.array("i", each)]
    assert bool(flags & socket.MSG_CTRUNC) == (len(fds) < 2), (flags, fds)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
    assert len(files() - before) <= len(fds) + 2   # at most the sleeper's and a listener's own
    got = [socket.socket(fileno=fd) for fd in fds]
    if got:
        got[0].sendall(b"c")
    if len(got) == 2:
        got[1].settimeout(20)
        there.sendall(b"l")
        again, _ = got[1].accept()
        again.sendall(b"a")
    os._exit(len(got))

seen = set()
for spare in range(7):
    near, far = pair()
    here, there = socket.socketpair()
    listener = socket.create_server((address, port))
    child = os.fork()
    if not child:
        near.close(), far.close(), listener.close(), here.close()
        receives(there, spare)
    socket.send_fds(here, [b"x"], [far.fileno(), listener.fileno()])
    far.close(), listener.close(), there.close()
    if here.recv(1) == b"l":
        with socket.create_connection((address, port), timeout=20) as again:
            assert again.recv(1) == b"a"
    got = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    near.settimeout(20)
    assert near.recv(2) == (b"c" if got else b""), got
    here.close()
    refused()
    seen.add(got)
assert {0, 2} <= seen, seen
""",
    "peeked_at": """
near, far = pair()
here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [far.fileno()])
if os.fork():
    far.close()
    assert os.wait()[1] == 0
    there.close()
    here.close()
    ends(near)
else:
    far.close(), near.close(), here.close()
    (_, _, data), = there.recvmsg(1, 100, socket.MSG_PEEK)[1]
    first = socket.socket(fileno=array.array("i", data)[0])
    second, = received(there)
    assert first.fileno() != second.fileno()
    first.close()
    second.sendall(b"")
    assert second.getpeername()[0] == address
""",
    "the_sender_is_killed": """
near, far = pair()
here, there = socket.socketpair()
child = os.fork()
if not child:
    socket.send_fds(here, [b"x"], [far.fileno()])
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
far.close()
one, = received(there)
near.sendall(b"x")
assert one.recv(1) == b"x"
one.close()
ends(near)
""",
    "the_receiver_is_killed": """
near, far = pair()
here, there = socket.socketpair()
child = os.fork()
if not child:
    far.close(), near.close()
    one, = received(there)
    one.sendall(b"x")
    os.kill(os.getpid(), signal.SIGKILL)
socket.send_fds(here, [b"x"], [far.fileno()])
os.waitpid(child, 0)
far.sendall(b"y")
got = b""
while len(got) < 2:
    got += near.recv(2)
assert got == b"xy"
far.close()
ends(near)
""",
    "it_is_passed_on_and_forked_and_run": """
near, far = pair()
here, there = socket.socketpair()
child = os.fork()
if not child:
    far.close(), near.close()
    one, = received(there)
    socket.send_fds(there, [b"x"], [one.fileno()])
    one.close()
    os._exit(0)
socket.send_fds(here, [b"x"], [far.fileno()])
far.close()
assert os.waitpid(child, 0)[1] == 0
one, = received(here)
near.sendall(b"question")
near.shutdown(socket.SHUT_WR)
if not os.fork():
    near.close()
    os.dup2(one.fileno(), 0), os.dup2(one.fileno(), 1)
    os.execlp("cat", "cat")
one.close()
assert near.recv(100) == b"question"
ends(near)
""",
    "a_thousand_times": """
near, far = pair()
here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
here.setblocking(False)
for _ in range(1000):
    socket.send_fds(here, [b"x"], [far.fileno()])
    again, = received(there)
    again.close()
sent = 0
try:
    while True:
        socket.send_fds(here, [b"x"], [far.fileno()] * 10)
        sent += 10
except OSError as full:
    assert full.errno in (errno.ETOOMANYREFS, errno.EAGAIN), full
assert 10 < sent <= 256, sent
there.close()
here.close()
near.sendall(b"goes on")
assert far.recv(10) == b"goes on"
far.close()
ends(near)
""",
    "not_while_it_is_being_opened": """
here, there = socket.socketpair()
opens = socket.socket()
opens.setblocking(False)
nobody = socket.socket()
nobody.bind((address, 0))
opens.connect_ex((sys.argv[4], port))
fails(errno.EOPNOTSUPP, socket.send_fds, here, [b"x"], [opens.fileno()])
""",
    "accepted_by_whoever_is_first": """
listener = socket.create_server((address, port))
here, there = socket.socketpair()
waits = socket.create_connection((address, port))   # it is open before the listener is passed
if not os.fork():
    waits.close(), listener.close()
    again, = received(there)
    one, _ = again.accept()
    one.sendall(b"x")
    os._exit(0)
socket.send_fds(here, [b"x"], [listener.fileno()])
listener.close()
assert waits.recv(1) == b"x"
assert os.wait()[1] == 0
refused()
""",
}


@pytest.mark.parametrize("case", ALONE)
def test_alone(case: str, accelerated: tuple[Side, Side], tmp_path: Path) -> None:
    """A program with children of its own, and connections within the host."""
    server = accelerated[0]
    script = BEGIN + ALONE[case]
    words = [server.v4, port(), tmp_path / "socket", NOBODY]
    server.run([sys.executable, "-c", script, *words])


PASSES = """
near, far = pair()
listener = socket.create_server((address, port))
unix = socket.create_server(path, family=socket.AF_UNIX)
print("ready", flush=True)
os.chmod(path, 0o777)
there = unix.accept()[0]
socket.send_fds(there, [b"x"], [far.fileno(), listener.fileno()])
far.close()
assert there.recv(1) == b""
ends(near)
"""

GETS_NOTHING = """
there = socket.socket(socket.AF_UNIX)
there.connect(path)
one, listener = received(there, 2)
fails(errno.EINVAL, one.recv, 1)
fails(errno.ENOTCONN, one.send, b"x")
fails(errno.ENOTCONN, one.getpeername)
fails(errno.EINVAL, listener.recv, 1)
"""


@pytest.mark.parametrize("who", ["without_homad", "another_user"])
def test_who_cannot_have_it__hears_errors(
    who: str, accelerated: tuple[Side, Side], tmp_path: Path
) -> None:
    """And when it is gone there, the connection ends."""
    server = accelerated[0]
    os.chmod(tmp_path, 0o777)
    words = [server.v4, port(), f"/tmp/{os.getpid()}-{who}"]
    passes = server.start([sys.executable, "-c", BEGIN + PASSES, *words])
    assert passes.line() == "ready"
    before = tickets(server)["takes_refused"]
    gets = [sys.executable, "-c", BEGIN + GETS_NOTHING, *words]
    if who == "another_user":
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        server.space.run(nobody + server.words(gets))
        assert tickets(server)["takes_refused"] - before == 2
    else:
        server.space.run([str(word) for word in gets])
    status, _, complaint = passes.wait()
    assert status == 0, complaint
    os.unlink(f"/tmp/{os.getpid()}-{who}")
