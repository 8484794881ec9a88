# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs that are hostile or unlucky, under homa-run's supervisor."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from netns import Process, eventually
from test_by_supervisor import supervisors
from ways import PATIENCE, SUPERVISOR, Side, port, two_sides

pytestmark = pytest.mark.skipif(not SUPERVISOR.exists(), reason=f"{SUPERVISOR} is not built")

# What each program begins with: where it listens or connects to, and how it waits for the test.
BEGIN = """
import os, resource, select, signal, socket, struct, sys, threading, time
where = (sys.argv[1], int(sys.argv[2]))
def say(*words): print(*words, flush=True)
def wait(name):
    while not os.path.exists(os.path.join(sys.argv[3], name)): time.sleep(0.01)
def listening(backlog=10):
    s = socket.socket(); s.bind(where); s.listen(backlog); return s
def error_of(call, *args):
    try: call(*args)
    except OSError as error: return error.errno
    return 0
"""


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    with two_sides("supervisor") as both:
        yield both


class Attack:
    """A Python program under a supervisor of its own."""

    def __init__(self, side: Side, host: str, number: int, folder: Path, text: str) -> None:
        self.folder = folder
        words = ["/usr/bin/python3", "-c", BEGIN + text, host, number, folder]
        self.process: Process = side.start(words)
        self.number = number

    def line(self) -> str:
        return self.process.line(PATIENCE)

    def go_on(self, name: str) -> None:
        (self.folder / name).touch()

    def supervisor(self) -> int:
        (one,) = supervisors(self.number)
        return one

    def ends_well(self) -> None:
        assert self.process.wait(PATIENCE) == (0, "", "")


def serve(sides: tuple[Side, Side], folder: Path, text: str) -> Attack:
    return Attack(sides[0], sides[0].v4, port(), folder, text)


def files_of(process: int) -> set[int]:
    return {int(name) for name in os.listdir(f"/proc/{process}/fd")}


def watched_by(process: int) -> set[int]:
    """Descriptors in the epoll sets of a process."""
    found = set()
    for number in files_of(process):
        for line in Path(f"/proc/{process}/fdinfo/{number}").read_text().splitlines():
            if line.startswith("tfd:"):
                found.add(int(line.split()[1]))
    return found


def no_more_files(process: int) -> tuple[int, int]:
    """Let a process open no further descriptors; its limit before."""
    had = resource.prlimit(process, resource.RLIMIT_NOFILE)
    files = files_of(process)
    free = next(number for number in range(had[1]) if number not in files)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (free, had[1]))
    return had


def used_by(process: int) -> list[str]:
    """The processor time of a process, in ticks."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]


def test_listener__that_another_descriptor_has_too(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """The kernel keeps it in the supervisor's epoll set, so it has to be taken out of it."""
    attack = serve(
        sides, tmp_path,
        "s = socket.socket(); s.bind(where); other = s.dup(); s.listen(); say('listens')\n"
        "wait('close'); s.close(); say('closed'); wait('end')",
    )  # fmt: skip
    assert attack.line() == "listens"
    one = attack.supervisor()
    before = files_of(one)
    attack.go_on("close")
    assert attack.line() == "closed"
    eventually(lambda: len(files_of(one)) < len(before))
    assert watched_by(one) <= files_of(one)
    attack.go_on("end")
    attack.ends_well()


# A thread waits in connect(); the socket's number becomes a file's; then the connection opens.
REPLACED = """
s = socket.socket()
said = []
def call(): said.append(error_of(s.connect, where))
thread = threading.Thread(target=call)
thread.start()
path = f"/proc/self/task/{thread.native_id}/stat"
while open(path).read().rsplit(")", 1)[1].split()[0] != "S": pass
time.sleep(0.3)
file = os.open("/dev/null", os.O_RDWR)
os.dup2(file, s.fileno())
say("replaced")
thread.join()
say(os.path.samestat(os.fstat(file), os.fstat(s.fileno())))
"""


def test_connect__of_a_number_that_is_a_file_now(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """The file stays where it is."""
    server, client = sides
    serving = serve(sides, tmp_path, "s = listening(); say('ready'); wait('end')")
    assert serving.line() == "ready"
    assert server.homad
    server.homad.send_signal(signal.SIGSTOP)
    try:
        attack = Attack(client, server.v4, serving.number, tmp_path, REPLACED)
        assert attack.line() == "replaced"
    finally:
        server.homad.send_signal(signal.SIGCONT)
    assert attack.line() == "True"
    attack.ends_well()
    serving.go_on("end")
    serving.ends_well()


def test_connect__whose_time_ends_without_descriptors(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """The call is answered, though the supervisor cannot make a pair."""
    text = (
        "s = socket.socket(); s.setsockopt(1, 21, struct.pack('ll', 2, 0)); say('connects')\n"
        "say(error_of(s.connect, where) > 0)"
    )
    server, client = sides
    assert server.homad
    serving = serve(sides, tmp_path, "s = listening(); say('ready'); wait('end')")
    assert serving.line() == "ready"
    serves = serving.supervisor()
    server.homad.send_signal(signal.SIGSTOP)
    try:
        attack = Attack(client, server.v4, serving.number, tmp_path, text)
        assert attack.line() == "connects"
        (one,) = set(supervisors(serving.number)) - {serves}
        time.sleep(0.5)
        no_more_files(one)
        assert attack.line() == "True"
    finally:
        server.homad.send_signal(signal.SIGCONT)
    attack.ends_well()
    serving.go_on("end")
    serving.ends_well()


def test_bind__has_the_rights_of_the_program(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """Who has given root's rights away does not get them back from the supervisor."""
    text = "os.setuid(65534); s = socket.socket(); say(error_of(s.bind, (where[0], 81)))"
    attack = serve(sides, tmp_path, text)
    assert attack.line() == "13"
    attack.ends_well()


def test_bind__of_root(sides: tuple[Side, Side], tmp_path: Path) -> None:
    attack = serve(
        sides, tmp_path, "s = socket.socket(); say(error_of(s.bind, (where[0], 82))); wait('end')"
    )
    assert attack.line() == "0"
    attack.go_on("end")
    attack.ends_well()


def test_signal__for_all_of_a_service(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """A service manager sends SIGTERM to each process; the program may still end its work."""
    attack = serve(
        sides, tmp_path,
        "s = listening(); say('ready'); c = s.accept()[0]; c.sendall(c.recv(1)); say(c.recv(1))",
    )  # fmt: skip
    assert attack.line() == "ready"
    os.kill(attack.supervisor(), signal.SIGTERM)
    text = (
        "s = socket.create_connection(where); s.sendall(b'x'); assert s.recv(1) == b'x'; s.close()"
    )
    Attack(sides[1], sides[0].v4, attack.number, tmp_path, text).ends_well()
    assert attack.line() == "b''"
    attack.ends_well()


def test_accept__one_for_each_poll(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """poll() tells of each connection, though more have come than a UNIX socket takes bytes."""
    attack = serve(
        sides, tmp_path,
        "s = listening(700); say('ready'); wait('open'); p = select.poll(); p.register(s, 1)\n"
        "for i in range(600):\n    assert p.poll(10000), i\n    s.accept()[0].close()\n"
        "assert not p.poll(0)\nsay('all')",
    )  # fmt: skip
    assert attack.line() == "ready"
    text = "a = [socket.create_connection(where) for i in range(600)]; say('open'); wait('end')"
    client = Attack(sides[1], sides[0].v4, attack.number, tmp_path, text)
    assert client.line() == "open"
    attack.go_on("open")
    assert attack.line() == "all"
    attack.ends_well()
    client.go_on("end")
    client.ends_well()


def test_descriptors__of_the_supervisor_are_all_used(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """It sleeps though a connection waits; calls get EMFILE or what they want; later all goes on."""
    attack = serve(
        sides, tmp_path,
        "s = listening(); say('ready'); c = s.accept()[0]; say('open'); wait('full')\n"
        "s.setblocking(False); say(c.getpeername()[0], c.getsockname()[1] == where[1],\n"
        "    c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), error_of(s.accept) in (11, 24))\n"
        "wait('room'); s.setblocking(True); d = s.accept()[0]; say(d.recv(1))",
    )  # fmt: skip
    assert attack.line() == "ready"
    one = attack.supervisor()
    opens = "s = socket.create_connection(where); s.sendall(b'x'); say('open'); wait('end')"
    client = Attack(sides[1], sides[0].v4, attack.number, tmp_path, opens)
    assert (attack.line(), client.line()) == ("open", "open")
    had = no_more_files(one)
    words = ["/usr/bin/python3", "-c", BEGIN + opens, sides[0].v4, attack.number, tmp_path]
    unserved = sides[0].space.start([str(word) for word in words])
    assert unserved.line(PATIENCE) == "open"

    def sleeps() -> bool:
        before = used_by(one)
        time.sleep(0.5)
        return used_by(one) == before

    eventually(sleeps)
    attack.go_on("full")
    assert attack.line() == f"{sides[1].v4} True 0 True"
    resource.prlimit(one, resource.RLIMIT_NOFILE, had)
    attack.go_on("room")
    assert attack.line() == "b'x'"
    client.go_on("end")
    attack.ends_well()
    client.ends_well()
    assert unserved.wait(PATIENCE)[0] == 0


INTERRUPTED = """
count = 0
def rings(number, frame):
    global count
    count += 1
    if count == 6000: signal.setitimer(signal.ITIMER_REAL, 0); say("rung")
s = listening()
signal.signal(signal.SIGALRM, rings)
say("ready")
wait("ring")
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
s.accept()
"""


def test_accept__interrupted_again_and_again(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """Calls that wait no more are forgotten before a connection comes."""
    attack = serve(sides, tmp_path, INTERRUPTED)
    assert attack.line() == "ready"
    one = attack.supervisor()

    def memory() -> int:
        text = Path(f"/proc/{one}/status").read_text()
        return int(text.split("VmData:")[1].split()[0])

    before = memory()
    attack.go_on("ring")
    assert attack.line() == "rung"
    assert memory() - before < 256, "kB"
    attack.process.stop(signal.SIGKILL)


@pytest.mark.parametrize("way", ["supervisor", "homad"])
def test_option__that_points_into_memory(way: str, tmp_path: Path) -> None:
    """The pointer is the program's, so the supervisor must not hand it to the kernel as its own. The library
    cannot have homad do what these options say, either."""
    with two_sides(way) as sides:
        options_are_refused(sides, tmp_path)


def options_are_refused(sides: tuple[Side, Side], tmp_path: Path) -> None:
    attack = serve(
        sides, tmp_path,
        "s = listening(); say('ready'); c = s.accept()[0]\n"
        "for name in (26, 50, 51, 52): say(error_of(c.setsockopt, 1, name, b'\\1' * 16))",
    )  # fmt: skip
    assert attack.line() == "ready"
    text = "s = socket.create_connection(where); s.recv(1)"
    client = Attack(sides[1], sides[0].v4, attack.number, tmp_path, text)
    assert [attack.line() for _ in range(4)] == ["95"] * 4
    attack.ends_well()
    client.ends_well()


def test_names__of_a_connection_that_was_reset(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """It is still a TCP socket: who asks for its options and names gets what TCP says then."""
    attack = serve(
        sides, tmp_path,
        "s = listening(); say('ready'); c = s.accept()[0]; c.sendall(b'x')\n"
        "say(error_of(c.recv, 1), error_of(c.getpeername)); c.setsockopt(6, 1, 1)\n"
        "say(c.getsockopt(6, 1) in (0, 1), c.getsockopt(1, 39), len(c.getsockname()))\n"
        "a, b = socket.socketpair(); b.close(); say(error_of(a.setsockopt, 6, 1, 1))",
    )  # fmt: skip
    assert attack.line() == "ready"
    text = (
        "s = socket.create_connection(where); s.recv(1)\n"
        "s.setsockopt(1, 13, struct.pack('ii', 1, 0)); s.close()"
    )
    Attack(sides[1], sides[0].v4, attack.number, tmp_path, text).ends_well()
    assert attack.line() == "104 107"
    assert attack.line() == "True 2 2"
    assert attack.line() == "95"
    attack.ends_well()


# A thread writes while another ends the direction, 300 times.
WRITES = """
def write(s):
    while not error_of(s.sendall, b'a'): pass
for i in range(300):
    s = socket.create_connection(where)
    threads = [threading.Thread(target=write, args=(s,)) for j in range(2)]
    for thread in threads: thread.start()
    s.shutdown(socket.SHUT_WR)
    for thread in threads: thread.join()
    s.close()
"""


def test_shutdown__while_another_thread_writes(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """The supervisor has a byte of its own in the pair, which the peer must not get."""
    attack = serve(
        sides, tmp_path,
        "s = listening(600); say('ready')\n"
        "for i in range(300):\n    c = s.accept()[0]\n"
        "    while got := c.recv(65536): assert got.count(b'a') == len(got), i\n",
    )  # fmt: skip
    assert attack.line() == "ready"
    Attack(sides[1], sides[0].v4, attack.number, tmp_path, WRITES).ends_well()
    attack.ends_well()


def test_connect__refused_without_waiting(sides: tuple[Side, Side], tmp_path: Path) -> None:
    """The socket becomes writable, and SO_ERROR says once why there is no connection."""
    text = (
        "s = socket.socket(); s.setblocking(False); say(error_of(s.connect, where))\n"
        "p = select.poll(); p.register(s, select.POLLOUT)\n"
        "while not p.poll()[0][1] & select.POLLOUT: pass\n"
        "say(s.getsockopt(1, 4), s.getsockopt(1, 4))"
    )
    attack = Attack(sides[1], sides[0].v4, port(), tmp_path, text)
    assert attack.line() == "115"
    assert attack.line() == "111 0"
    attack.ends_well()


# A client fills all buffers of a server that reads nothing, and resets.
FILLS = """
s = socket.create_connection(where); s.settimeout(2); sent = 0
try:
    while True: sent += s.send(b'a' * 16384)
except TimeoutError: pass
s.setsockopt(1, 13, struct.pack('ii', 1, 0)); wait('writes'); s.close(); say(sent)
"""
HEARS = """
s = listening(); say('ready'); c = s.accept()[0]
def write():
    while not (error := error_of(c.send, b'b' * 65536)): pass
    said.append(error)
def poll():
    while not (error := error_of(c.send, b'b' * 65536, socket.MSG_DONTWAIT)) or error == 11:
        p = select.poll(); p.register(c, select.POLLOUT); p.poll()
    said.append(error)
said = []; threads = [threading.Thread(target=one) for one in (write, poll)]
for thread in threads: thread.start()
say('writes')
for thread in threads: thread.join()
say(set(said) <= {32, 104})
# A write that waited may have taken the reset, and returned what it had written before.
got = 0
try:
    while piece := c.recv(65536):
        assert piece.count(b'a') == len(piece); got += len(piece)
except ConnectionResetError: pass
say(got)
"""


def test_reset__of_one_who_writes_and_does_not_read(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """Though there are more bytes for it than its socket holds: its writes fail, and it can read those that
    have come. The client loses the others."""
    attack = serve(sides, tmp_path, HEARS)
    assert attack.line() == "ready"
    client = Attack(sides[1], sides[0].v4, attack.number, tmp_path, FILLS)
    assert attack.line() == "writes"
    attack.go_on("writes")
    assert attack.line() == "True"
    assert 200000 < int(attack.line()) < int(client.line())
    client.ends_well()
    attack.ends_well()
