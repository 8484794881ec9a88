# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Connections that a rule gives to homad and that it cannot open, because no device of its own leads there: the
kernel opens them, also if the program does not wait for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from homad import HOMAD, Homad, finishing
from netns import Namespace, Net
from ways import PATIENCE, SUPERVISOR, Side, port

FAR = "10.8.0.2"
CONFIG = """
[network]
interfaces = ["eth0"]
udp = {udp}

[[tcp_rule]]
listen = [10000, 29999]
connect = [10000, 29999]
"""
SERVE = """
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
server = socket.create_server((host, port), family=family)
print("ready", flush=True)
one, _ = server.accept()
one.sendall(one.recv(1))
"""
# What select() and SO_ERROR say of the connection; the last word is what comes back by it.
CONNECT = """
import errno, select, socket, sys
host, port, waits = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
one = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
one.setblocking(waits)
said = one.connect_ex((host, port))
select.select([], [one], [], 60)
error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
print(errno.errorcode.get(said, "open"), errno.errorcode.get(error, "open"))
one.setblocking(True)
one.sendall(b"x")
print(one.recv(1).decode())
"""

# A connection that is opened while homad, whose process this is, stands still.
CONNECT_MEANWHILE = """
import errno, os, signal, socket, sys
host, port, homad = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
first = socket.create_connection((host, port))
two = socket.socket()
two.setblocking(False)
os.kill(homad, signal.SIGSTOP)
try:
    said = two.connect_ex((host.rpartition(".")[0] + ".77", port))
finally:
    os.kill(homad, signal.SIGCONT)
print(errno.errorcode[said])
first.sendall(b"x")
print(first.recv(1).decode())
"""

pytestmark = pytest.mark.skipif(not HOMAD.exists(), reason=f"{HOMAD} is not built")


@pytest.fixture(scope="module", params=["preload", "preload-without-udp", "supervisor"])
def sides(request: pytest.FixtureRequest) -> Iterator[tuple[Side, Namespace]]:
    """A host with a homad that has one of its two devices; and the host at the other ends of both."""
    by, _, without = request.param.partition("-")
    if by == "supervisor" and not SUPERVISOR.exists():
        pytest.skip(f"{SUPERVISOR} is not built")
    with ExitStack() as stack:
        net = stack.enter_context(Net())
        here, there = net.pair()
        net.veth(here, there, a_device="eth1", b_device="eth1")
        here.ip("address", "add", "10.8.0.1/24", "dev", "eth1")
        there.ip("address", "add", f"{FAR}/24", "dev", "eth1")
        homad = Homad(here, CONFIG.format(udp="false" if without else "true"))
        stack.enter_context(finishing(homad))
        homad.start()
        yield Side(here, homad, by), there


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("listen", "connect"),
    [(FAR, FAR), ("127.0.0.1", "0.0.0.0"), ("::1", "::"),
     ("0.0.0.0", "127.0.0.9"), ("0.0.0.0", "::ffff:127.0.0.9")],
)  # fmt: skip
def test_connect__by_the_kernel(
    listen: str, connect: str, waits: bool, sides: tuple[Side, Namespace]
) -> None:
    side, there = sides
    number = port()
    space = there if listen == FAR else side.space
    serving = space.start(["python3", "-c", SERVE, listen, str(number)])
    assert serving.line(PATIENCE) == "ready"
    told = side.run(["python3", "-c", CONNECT, connect, number, waits]).stdout.split()
    assert told == ["open" if waits else "EINPROGRESS", "open", "x"]
    assert serving.wait(PATIENCE)[0] == 0


def test_connect__does_not_wait_for_a_homad_that_stands_still(
    sides: tuple[Side, Namespace],
) -> None:
    """A call that does not wait says that the connection is being opened, as a program has other work."""
    side, there = sides
    if side.by == "supervisor":
        pytest.skip("its process makes the call")
    assert side.homad
    number = port()
    serving = there.start(["python3", "-c", SERVE, "10.9.0.2", str(number)])
    assert serving.line(PATIENCE) == "ready"
    words = ["python3", "-c", CONNECT_MEANWHILE, "10.9.0.2", number, side.homad.pid]
    assert side.run(words).stdout.split() == ["EINPROGRESS", "x"]
    assert serving.wait(PATIENCE)[0] == 0
